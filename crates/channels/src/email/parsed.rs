//! What a mail says.

use bytes::Bytes;
use jiff::Timestamp;
use mail_parser::{HeaderValue, Message, MessageParser, MimeHeaders, PartType};
use sha2::{Digest, Sha256};

use super::{automatic, proof};
use crate::contract::{
    Bounce, Content, EmailConfig, Event, Inbound, Origin, Proof, Refusal, RemoteFile, Thread,
};

/// How many mails a thread is looked for by.
const MOST_REFS: usize = 50;
/// How many files one mail may have.
const MOST_FILES: usize = 50;
/// The longest text that is taken.
const LONGEST_TEXT: usize = 500_000;

/// What happened, by a mail. A report that another one is late is nothing.
pub fn event(
    bytes: &[u8],
    labels: &[String],
    config: &EmailConfig,
    now: Timestamp,
) -> Result<Option<Event>, Refusal> {
    let mail = MessageParser::default()
        .parse(bytes)
        .ok_or_else(|| Refusal::Malformed("A mail can't be read.".into()))?;
    if automatic::is_report(&mail) {
        match bounce(&mail) {
            Report::Failed(bounce) => return Ok(Some(Event::Bounced(bounce))),
            Report::Late => return Ok(None),
            Report::Other => {}
        }
    }
    inbound(&mail, labels, config, now).map(|inbound| Some(Event::Message(Box::new(inbound))))
}

fn inbound(
    mail: &Message<'_>,
    labels: &[String],
    config: &EmailConfig,
    now: Timestamp,
) -> Result<Inbound, Refusal> {
    let author = mail.from().and_then(|from| from.first());
    let address = author.and_then(|author| author.address()).map(str::to_lowercase);
    let is_address = |address: &String| address.contains('@') && !address.contains(char::is_control);
    let address = address.filter(is_address);
    let address = address.ok_or_else(|| Refusal::Malformed("A mail has no sender.".into()))?;
    let id = mail.message_id().map(str::to_owned);
    let text: String = mail.body_text(0).unwrap_or_default().chars().take(LONGEST_TEXT).collect();
    let key = id.clone().unwrap_or_else(|| digest(mail, &address, &text));
    let has_proof = config.authserv_id.as_deref().is_some_and(|server| proof::passes(mail, server, &address));
    let sent_at = mail.date().and_then(|date| Timestamp::from_second(date.to_timestamp()).ok());
    Ok(Inbound {
        key: Some(key.clone()),
        vendor_id: id,
        answers: None,
        authors: vec![address.clone()],
        is_automatic: automatic::is_automatic(mail, &address),
        proof: if has_proof { Proof::Signed } else { Proof::None },
        thread: Thread {
            key,
            refs: refs(mail),
            target: address.clone(),
            title: mail
                .subject()
                .map(|subject| subject.trim().to_owned())
                .filter(|subject| !subject.is_empty()),
            is_private: false,
        },
        origin: Origin {
            id: address,
            place: None,
            name: author.and_then(|author| author.name()).map(str::to_owned),
        },
        is_addressed: true,
        labels: labels.to_vec(),
        text: text.trim().to_owned(),
        files: files(mail),
        at: sent_at.map_or(now, |sent_at| sent_at.min(now)),
    })
}

/// Ids of earlier mails, the newest first: who answers from some programs names only old ones. However long the thread is, the
/// mail that began it is among them.
fn refs(mail: &Message<'_>) -> Vec<String> {
    let references = ids(mail.references());
    let first = references.first().cloned();
    let mut refs: Vec<String> = Vec::new();
    for id in ids(mail.in_reply_to()).into_iter().chain(references.into_iter().rev()) {
        if refs.len() == MOST_REFS {
            break;
        }
        if !refs.contains(&id) {
            refs.push(id);
        }
    }
    if let Some(first) = first.filter(|first| !refs.contains(first)) {
        refs.truncate(MOST_REFS - 1);
        refs.push(first);
    }
    refs
}

fn ids(value: &HeaderValue<'_>) -> Vec<String> {
    match value {
        HeaderValue::Text(id) => vec![id.to_string()],
        HeaderValue::TextList(ids) => ids.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// What stands for a mail without an id.
fn digest(mail: &Message<'_>, address: &str, text: &str) -> String {
    let mut digest = Sha256::new();
    let date = mail.header_raw("Date").unwrap_or_default();
    for part in [date, address, mail.subject().unwrap_or_default(), text] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}

fn files(mail: &Message<'_>) -> Vec<RemoteFile> {
    let file = |(nth, part): (usize, &mail_parser::MessagePart<'_>)| {
        let kind = part.content_type();
        let media_type = kind.map_or_else(
            || "application/octet-stream".to_owned(),
            |kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("octet-stream")),
        );
        let (default, content) = match &part.body {
            PartType::Message(inner) => ("message.eml", Bytes::copy_from_slice(inner.raw_message())),
            _ => ("", Bytes::copy_from_slice(part.contents())),
        };
        let numbered = if default.is_empty() { format!("file-{}", nth + 1) } else { default.to_owned() };
        let name = part.attachment_name().map_or(numbered, str::to_owned);
        RemoteFile { name, media_type, size: Some(content.len() as u64), content: Content::Here(content) }
    };
    mail.attachments().enumerate().take(MOST_FILES).map(file).collect()
}

enum Report {
    Failed(Bounce),
    Late,
    Other,
}

/// What a report (RFC 3464) says about which mail of ours.
fn bounce(mail: &Message<'_>) -> Report {
    let text = |part: &mail_parser::MessagePart<'_>| String::from_utf8_lossy(part.contents()).into_owned();
    let status = mail.parts.iter().find(|part| part.is_content_type("message", "delivery-status")).map(text);
    let Some(status) = status else { return Report::Other };
    let field = |name: &str| {
        status.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    match field("Action").unwrap_or_default().to_ascii_lowercase().as_str() {
        "failed" => {}
        "delayed" | "relayed" | "expanded" | "delivered" => return Report::Late,
        _ => return Report::Other,
    }
    let original = mail.parts.iter().find_map(|part| match &part.body {
        PartType::Message(inner) => inner.message_id().map(str::to_owned),
        _ if part.is_content_type("text", "rfc822-headers") => {
            let headers = text(part);
            MessageParser::default().parse(headers.as_bytes())?.message_id().map(str::to_owned)
        }
        _ => None,
    });
    // One with other characters is not ours, and no database takes all of them.
    let ours = original.filter(|id| !id.contains(char::is_control));
    let Some(vendor_id) = ours else { return Report::Other };
    let why = field("Diagnostic-Code").or_else(|| field("Status")).unwrap_or_default();
    Report::Failed(Bounce { vendor_id, cause: format!("The mail came back: {why}").into() })
}

#[cfg(test)]
mod tests;
