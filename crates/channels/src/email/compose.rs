//! Composes an answer as a mail.

use std::time::SystemTime;

use lettre::{
    Address, Message,
    message::{
        Attachment as LetterFile, Mailbox, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
};

use crate::{
    contract::{Attachment, EmailConfig, Failure, Part},
    signature::Key,
};

pub struct ComposedMail {
    pub mail: Message,
    /// Without angle brackets.
    pub id: String,
}

/// The sender: the mailbox's address, with its own name or the channel's.
pub fn sender(config: &EmailConfig) -> Result<Mailbox, Failure> {
    let sender: Mailbox = config
        .from
        .parse()
        .map_err(|_| Failure::Refused("The channel's `from` is not a valid address.".into()))?;
    let name = sender.name.or_else(|| Some(config.from_name.clone()).filter(|name| !name.is_empty()));
    Ok(Mailbox::new(name, sender.email))
}

pub fn compose_mail(config: &EmailConfig, part: &Part<'_>) -> Result<ComposedMail, Failure> {
    let mut from = sender(config)?;
    let to: Address =
        part.target.parse().map_err(|_| Failure::Refused("The recipient is not a valid address.".into()))?;
    let id = message_id(config, part, from.email.domain());
    if let Some(person) = part.speaker {
        from.name = Some(person.to_owned());
    }
    let mut mail = Message::builder()
        .from(from)
        .to(Mailbox::new(None, to))
        .date(SystemTime::from(part.written_at))
        .message_id(Some(format!("<{id}>")))
        .subject(subject(part));
    if let Some(answered) = id_header("In-Reply-To", part.reply_to) {
        mail = mail.raw_header(answered);
    }
    let refs = part.refs.iter().map(String::as_str);
    let answered = part.reply_to.filter(|answered| refs.clone().all(|id| id != *answered));
    if let Some(refs) = id_header("References", refs.chain(answered)) {
        mail = mail.raw_header(refs);
    }
    // A person's message is not an automatic reply.
    if part.speaker.is_none() {
        mail = mail.raw_header(raw_header("Auto-Submitted", "auto-replied"));
        mail = mail.raw_header(raw_header("X-Auto-Response-Suppress", "All"));
    }
    let mail = mail
        .multipart(body(part))
        .map_err(|error| Failure::Refused(format!("The mail can't be written: {error}").into()))?;
    Ok(ComposedMail { mail, id })
}

/// The Message-ID: the same for every attempt, and unguessable, since naming it proves receipt.
fn message_id(config: &EmailConfig, part: &Part<'_>, domain: &str) -> String {
    let word = Key::new(&config.id_key).map(|key| format!(".{}", key.token(part.id))).unwrap_or_default();
    format!("{}.{}{word}@{domain}", part.conversation, part.id)
}

/// Whether an id may be ours, by its form: keys and addresses change while mails are in transit.
pub fn may_be_ours(id: &str) -> bool {
    let word = id.rsplit_once('@').and_then(|(local, _)| local.rsplit_once('.'));
    word.is_some_and(|(rest, word)| rest.contains('.') && Key::is_token(word))
}

fn subject(part: &Part<'_>) -> String {
    let title: String =
        part.title.unwrap_or(part.conversation).chars().filter(|c| !c.is_control()).take(200).collect();
    let is_reply = title.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    if part.reply_to.is_none() || is_reply { title } else { format!("Re: {title}") }
}

/// A header with ids in their original form: encoded, they would match no mail (RFC 2047, 5). Each has its own line, so
/// that `smtp.rs` can drop those that a server can't accept. `None`: no ids.
fn id_header<'a>(name: &'static str, ids: impl IntoIterator<Item = &'a str>) -> Option<HeaderValue> {
    let fits = |id: &&str| {
        // A line has at most 998 bytes (RFC 5322, 2.1.1).
        id.len() <= 960 && !id.contains(|c: char| c.is_control() || matches!(c, '<' | '>'))
    };
    let lines: Vec<String> = ids.into_iter().filter(fits).map(|id| format!("<{id}>")).collect();
    let name = HeaderName::new_from_ascii_str(name);
    let begin = if lines.iter().all(|line| line.is_ascii()) { "" } else { "\r\n " };
    let encoded = format!("{begin}{}", lines.join("\r\n "));
    (!lines.is_empty()).then(|| HeaderValue::dangerous_new_pre_encoded(name, lines.join(" "), encoded))
}

fn raw_header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

fn body(part: &Part<'_>) -> MultiPart {
    let html = format!("<!DOCTYPE html>\n<html><body>\n{}\n</body></html>\n", part.text.text);
    let text = MultiPart::alternative_plain_html(part.text.plain.clone(), html);
    if part.files.is_empty() {
        return text;
    }
    let mixed = MultiPart::mixed().multipart(text);
    part.files.iter().map(file).fold(mixed, MultiPart::singlepart)
}

fn file(file: &Attachment) -> SinglePart {
    let kind = ContentType::parse(&file.media_type).unwrap_or_else(|_| octet_stream());
    LetterFile::new(file.name.clone()).body(file.content.to_vec(), kind)
}

fn octet_stream() -> ContentType {
    ContentType::parse("application/octet-stream").unwrap_or(ContentType::TEXT_PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(ids: &[&str]) -> Option<String> {
        let value = super::id_header("References", ids.iter().copied())?;
        let mut mail = Message::builder().from("a@a.test".parse().unwrap()).to("b@b.test".parse().unwrap());
        mail = mail.raw_header(value);
        let mail = String::from_utf8(mail.body(String::new()).unwrap().formatted()).unwrap();
        let from = mail.find("References:").unwrap();
        Some(mail[from..].split("\r\n\r\n").next().unwrap().split("\r\nContent-").next().unwrap().to_owned())
    }

    #[test]
    fn own_ids_are_recognized() {
        let word = Key::new(&"a key".to_owned().into()).unwrap().token("d-1");
        assert!(may_be_ours(&format!("C-1.d-1.{word}@b.test")));
        let upper = word.to_uppercase();
        for other in [
            "foreign@b.test",
            "C-1.d-1@b.test",
            &format!("C-1.d-1.{upper}@b.test"),
            &format!("C-1.d-1.{word}0@b.test"),
            &format!("d-1.{word}@b.test"),
            &format!("C-1.d-1.{word}"),
        ] {
            assert!(!may_be_ours(other), "{other}");
        }
    }

    #[test]
    fn references_keep_ids_unchanged() {
        let long = format!("{}@a.test", "x".repeat(320));
        assert_eq!(header(&["1@a.test"]).unwrap(), "References: <1@a.test>");
        assert_eq!(header(&["1@a.test", &long]).unwrap(), format!("References: <1@a.test>\r\n <{long}>"));
        assert_eq!(
            header(&["größe@a.test", "1@a.test"]).unwrap(),
            "References: \r\n <größe@a.test>\r\n <1@a.test>"
        );
        // An id that would end its line or brackets is dropped.
        let forged = ["1@a.test\r\nBcc: eve@evil.test", "1@a.test>, <2@b.test", "\u{0}", &"x".repeat(2_000)];
        assert_eq!(header(&forged), None);
    }
}
