//! Decodes a mail as a message.
//!
//! Strangers' mails are parsed off the async workers ([`read`]), split by `mime.rs` within limits.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use mail_parser::{Addr, Address, HeaderValue};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::{
    auth_results, automatic, body_text, compose, dates,
    mime::{Headers, Kind, MimeMail, Part},
};
use crate::{
    bounds,
    contract::{Bounce, Content, Event, Inbound, OneLine, Origin, Proof, Refusal, RemoteFile, Thread},
};

/// Maximum number of referenced mails by which a thread is found: a stranger may name any number.
const MAX_REFS: usize = 50;
/// Maximum characters of a stranger's text.
pub const LONGEST_TEXT: usize = 500_000;

/// Facts about a mail that it doesn't contain itself.
#[derive(Clone, Debug)]
pub struct MailContext {
    /// IMAP keywords.
    pub labels: Vec<String>,
    /// The mail server trusted to verify senders.
    pub authserv_id: Option<String>,
    /// The current time.
    pub now: Timestamp,
}

/// Why a mail was not read.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Rejected for good.
    #[error("{0}")]
    Refused(Refusal),
    /// The parser crashed.
    #[error("its text makes the reader fail")]
    Failed,
}

/// Reads a mail on a thread of its own.
pub async fn read(mail: Bytes, context: MailContext) -> Result<Option<Event>, ParseError> {
    match spawn_blocking(move || decode_event(&mail, context)).await {
        Ok(read) => read.map_err(ParseError::Refused),
        Err(_) => Err(ParseError::Failed),
    }
}

/// Decodes a mail as an event. A report that our mail is delayed is not an event, and a report about someone else's
/// mail is an ordinary message.
pub fn decode_event(bytes: &Bytes, context: MailContext) -> Result<Option<Event>, Refusal> {
    let mail = MimeMail::parse(bytes).map_err(|why| Refusal::Malformed(why.to_string().into()))?;
    if automatic::is_report(&mail.head) {
        match read_report(&mail) {
            Report::Failed(bounce) => return Ok(Some(Event::Bounced(bounce))),
            Report::Late => return Ok(None),
            Report::Other => {}
        }
    }
    decode_message(bytes, &mail, context).map(|inbound| Some(Event::Message(Box::new(inbound))))
}

/// The subject, if it is near the beginning of the mail.
pub fn subject(mail: &[u8]) -> Option<String> {
    let head = Headers::read(mail.get(..bounds::TEXT).unwrap_or(mail)).ok()?;
    let kind = head.content_type();
    let charset = kind.as_ref().and_then(|kind| kind.param("charset"));
    head.text("Subject", charset).filter(|subject| !subject.is_empty())
}

impl Headers<'_> {
    /// The Message-ID, without angle brackets.
    fn id(&self) -> Option<String> {
        ids(self.value("Message-ID")).into_iter().next()
    }

    /// The addresses of a header, in lower case.
    fn addresses(&self, name: &str) -> Vec<String> {
        let Some(HeaderValue::Address(list)) = self.value(name) else { return Vec::new() };
        list.iter().filter_map(|one| normalize_address(one.address())).collect()
    }
}

fn normalize_address(written: Option<&str>) -> Option<String> {
    let address = to_lower_case(written?);
    let is_one = address.contains('@') && !address.contains(char::is_control);
    is_one.then(|| to_ascii_domain(&address).unwrap_or(address))
}

/// Name and address of the first author. Preceding words without an address belong to a name with a comma: `Lovelace,
/// Ada <ada@a.test>`.
fn first_author(from: &Address<'_>) -> Option<(Option<String>, Option<String>)> {
    // Anything that another program may take for an address counts as one.
    let names_nobody = |one: &&Addr<'_>| {
        let words = [one.name(), one.address()].into_iter().flatten();
        !words.into_iter().any(|word| word.contains('@'))
    };
    let begin = from.iter().take_while(names_nobody).filter_map(|one| one.name().or(one.address()));
    let author = from.iter().find(|one| !names_nobody(one))?;
    let name: Vec<_> = begin.chain(author.name()).collect();
    Some(((!name.is_empty()).then(|| name.join(", ")), normalize_address(author.address())))
}

/// The ASCII form of an internationalized address: `user@xn--bcher-kva.example`. `None`: already ASCII, or with
/// characters that map to ASCII letters, which would let one domain's owner pass for another's.
fn to_ascii_domain(address: &str) -> Option<String> {
    let (local, domain) = address.rsplit_once('@')?;
    let is_odd = domain.is_ascii() || domain.contains('%');
    let url::Host::Domain(known) = url::Host::parse(domain).ok().filter(|_| !is_odd)? else { return None };
    let mut labels = domain.split('.').zip(known.split('.'));
    let is_same = domain.split('.').count() == known.split('.').count()
        && labels.all(|(own, known)| own == known || !own.is_ascii() && known.starts_with("xn--"));
    is_same.then(|| format!("{local}@{known}"))
}

/// Normalizes a whitelisted address: `Ada <Ada@A.test>` is `ada@a.test`, as in comparisons. `None`: no mail has it.
pub fn origin(written: &str) -> Option<String> {
    let written = written.trim();
    let named = written.strip_suffix('>').and_then(|text| text.rsplit_once('<'));
    let (name, inside) = named.unwrap_or(("", written));
    let plain = inside.strip_prefix("mailto:").unwrap_or(inside).trim();
    let address = normalize_address(Some(plain))?;
    let (local, domain) = address.rsplit_once('@')?;
    let is_odd = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | ',' | ';' | '*');
    // Two addresses are ambiguous.
    let is_one = !name.contains(['<', '>']);
    let is_name =
        !local.is_empty() && !domain.is_empty() && !domain.contains("..") && !domain.contains(['?', '&']);
    (is_one && is_name && !address.contains(is_odd) && !domain.starts_with('.')).then_some(address)
}

/// An address in lower case. Non-ASCII letters with an ASCII lower case stay: the Kelvin sign would become `k`, and let
/// one mailbox's owner pass for another's.
fn to_lower_case(address: &str) -> String {
    let map = |letter: char| match letter.to_lowercase().next() {
        Some(lower) if letter.is_ascii() || !lower.is_ascii() => lower,
        _ => letter,
    };
    address.chars().map(map).collect()
}

fn decode_message(bytes: &Bytes, mail: &MimeMail<'_>, context: MailContext) -> Result<Inbound, Refusal> {
    let head = &mail.head;
    let charset = mail.charset();
    let from = head.people("From", charset.as_deref());
    let (name, address) = from.as_ref().and_then(first_author).unwrap_or_default();
    let address = address.ok_or_else(|| Refusal::Malformed("it has no sender".into()))?;
    let id = head.id();
    let text = body_text::read_body(mail, &address);
    let subject = head.text("Subject", charset.as_deref());
    let key = id.clone().unwrap_or_else(|| digest(head, &address, subject.as_deref(), &text));
    let proves = |server| auth_results::confirms_sender(head, server, &address);
    let sent_at = head.raw("Date").next_back().and_then(|date| dates::parse_date(&date));
    let mut readers = [head.addresses("To"), head.addresses("Cc")].concat();
    readers.truncate(bounds::LIST);
    Ok(Inbound {
        key: Some(key.clone()),
        vendor_id: id,
        album: None,
        is_edit: false,
        answers: None,
        authors: vec![address.clone()],
        is_automatic: automatic::is_automatic(head, &address),
        // With several senders, the server may have checked another one.
        proof: if context.authserv_id.as_deref().is_some_and(proves) && head.count("From") == 1 {
            Proof::Signed
        } else {
            Proof::None
        },
        thread: Thread {
            key,
            refs: reference_ids(head),
            target: address.clone(),
            readers,
            title: subject.as_deref().and_then(OneLine::title),
            is_private: false,
        },
        origin: Origin { id: address, place: None, name: name.as_deref().and_then(OneLine::name) },
        is_addressed: true,
        labels: context.labels,
        context: String::new(),
        text: text.trim().to_owned(),
        files: attached_files(bytes, mail, charset.as_deref()),
        at: sent_at.map_or(context.now, |sent_at| sent_at.min(context.now)),
        source: Some(bytes.clone()),
    })
}

/// Ids of earlier mails, newest first: some programs reference only old ones. The mail that began the thread is always
/// included.
fn reference_ids(head: &Headers<'_>) -> Vec<String> {
    let references = ids(head.value("References"));
    let first = references.first().cloned();
    let mut refs: Vec<String> = Vec::new();
    for id in ids(head.value("In-Reply-To")).into_iter().chain(references.into_iter().rev()) {
        if refs.len() == MAX_REFS {
            break;
        }
        if !refs.contains(&id) {
            refs.push(id);
        }
    }
    if let Some(first) = first.filter(|first| !refs.contains(first)) {
        refs.truncate(MAX_REFS - 1);
        refs.push(first);
    }
    refs
}

fn ids(value: Option<HeaderValue<'_>>) -> Vec<String> {
    match value {
        Some(HeaderValue::Text(id)) => vec![id.into_owned()],
        Some(HeaderValue::TextList(ids)) => ids.into_iter().map(Cow::into_owned).collect(),
        _ => Vec::new(),
    }
}

/// A stand-in key for a mail without an id.
fn digest(head: &Headers<'_>, address: &str, subject: Option<&str>, text: &str) -> String {
    let mut digest = Sha256::new();
    let date = head.raw("Date").next_back().unwrap_or_default();
    for part in [&*date, address, subject.unwrap_or_default(), text] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}

fn attached_files(bytes: &Bytes, mail: &MimeMail<'_>, charset: Option<&str>) -> Vec<RemoteFile> {
    let file = |(nth, part): (usize, &Part<'_>)| {
        let named = part.content_type.as_ref().filter(|kind| !kind.subtype.is_empty());
        let media_type = match named {
            Some(kind) => format!("{}/{}", kind.kind, kind.subtype),
            // A mail in a digest.
            None if part.kind == Kind::Mail => "message/rfc822".to_owned(),
            None => "application/octet-stream".to_owned(),
        };
        let content = match part.content() {
            Cow::Borrowed(content) => bytes.slice_ref(content),
            Cow::Owned(content) => Bytes::from(content),
        };
        let name =
            part.name(charset).map_or_else(|| default_name(nth, &media_type), |name| strip_folders(&name));
        RemoteFile { name, media_type, size: Some(content.len() as u64), content: Content::Here(content) }
    };
    mail.documents_first().take(50).enumerate().map(file).collect()
}

/// A file name without folders. Other slashes belong to the name, but no file system accepts them: `Invoice
/// 5/2026.pdf`.
fn strip_folders(name: &str) -> String {
    let is_drive = |name: &str| {
        let mut signs = name.chars();
        signs.next().is_some_and(|sign| sign.is_ascii_alphabetic())
            && signs.next() == Some(':')
            && signs.next().is_some_and(|sign| matches!(sign, '/' | '\\'))
    };
    if name.starts_with(['/', '\\', '~']) && name.contains(['/', '\\']) || is_drive(name) {
        return name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    }
    name.replace(['/', '\\'], "_")
}

/// A name for an unnamed file.
fn default_name(nth: usize, media_type: &str) -> String {
    let ending = match media_type {
        "message/rfc822" | "message/global" => return "message.eml".to_owned(),
        "text/calendar" | "application/ics" => return "invite.ics".to_owned(),
        "application/ms-tnef" => return "winmail.dat".to_owned(),
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => "p7m",
        "application/pkcs7-signature" | "application/x-pkcs7-signature" => "p7s",
        "application/pgp-signature" | "application/pgp-encrypted" => "asc",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/json" => "json",
        "application/xml" | "text/xml" => "xml",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/heic" => "heic",
        "audio/mpeg" => "mp3",
        "video/mp4" => "mp4",
        "text/html" => "html",
        "text/csv" => "csv",
        "text/vcard" | "text/x-vcard" => "vcf",
        "text/rtf" | "application/rtf" => "rtf",
        kind if kind.starts_with("text/") => "txt",
        _ => return format!("file-{}", nth + 1),
    };
    format!("file-{}.{ending}", nth + 1)
}

enum Report {
    Failed(Bounce),
    Late,
    Other,
}

/// Reads a report (RFC 3464) about a mail of ours.
fn read_report(mail: &MimeMail<'_>) -> Report {
    // Programs write short reports.
    let text = |part: &Part<'_>| {
        let content = part.content();
        String::from_utf8_lossy(content.get(..bounds::TEXT).unwrap_or(&content)).into_owned()
    };
    let status = mail.parts.iter().find(|part| part.is("message", "delivery-status")).map(text);
    let Some(status) = status else { return Report::Other };
    let field = |name: &str| {
        status.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    // Of the returned mail only the headers are read.
    let is_original = |part: &&Part<'_>| part.kind == Kind::Mail || part.is("text", "rfc822-headers");
    let mut originals = mail.parts.iter().filter(is_original);
    let original = originals.find_map(|part| Headers::read(&part.content()).ok()?.id());
    // Other characters aren't ours, and databases don't accept all of them.
    let ours = original.filter(|id| compose::may_be_ours(id) && !id.contains(char::is_control));
    let Some(vendor_id) = ours else { return Report::Other };
    match field("Action").unwrap_or_default().to_ascii_lowercase().as_str() {
        "failed" => {
            let why = field("Diagnostic-Code").or_else(|| field("Status")).unwrap_or_default();
            Report::Failed(Bounce { vendor_id, cause: format!("The mail came back: {why}").into() })
        }
        "delayed" | "relayed" | "expanded" | "delivered" => Report::Late,
        _ => Report::Other,
    }
}

#[cfg(test)]
mod tests;
