//! An answer as a mail.

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

/// A mail, and its id.
pub struct Letter {
    pub mail: Message,
    /// Without the angle brackets.
    pub id: String,
}

/// Who sends: the mailbox's address, with its own name or the channel's.
pub fn sender(config: &EmailConfig) -> Result<Mailbox, Failure> {
    let sender: Mailbox = config
        .from
        .parse()
        .map_err(|_| Failure::Refused("The channel's `from` is not a valid address.".into()))?;
    let name = sender.name.or_else(|| Some(config.from_name.clone()).filter(|name| !name.is_empty()));
    Ok(Mailbox::new(name, sender.email))
}

/// Writes a part as a mail.
pub fn write(config: &EmailConfig, part: &Part<'_>) -> Result<Letter, Failure> {
    let mut from = sender(config)?;
    let to: Address =
        part.target.parse().map_err(|_| Failure::Refused("The recipient is not a valid address.".into()))?;
    let id = id(config, part, from.email.domain());
    if let Some(person) = part.speaker {
        from.name = Some(person.to_owned());
    }
    let mut mail = Message::builder()
        .from(from)
        .to(Mailbox::new(None, to))
        .date(SystemTime::from(part.written_at))
        .message_id(Some(format!("<{id}>")))
        .subject(subject(part));
    if let Some(answered) = part.reply_to {
        mail = mail.in_reply_to(format!("<{answered}>"));
    }
    let mut refs: Vec<_> = part.refs.iter().map(String::as_str).collect();
    refs.extend(part.reply_to.filter(|answered| !refs.contains(answered)));
    if !refs.is_empty() {
        mail = mail.references(refs.iter().map(|id| format!("<{id}>")).collect::<Vec<_>>().join(" "));
    }
    // What a person writes is not an automatic answer.
    if part.speaker.is_none() {
        mail = mail.raw_header(raw("Auto-Submitted", "auto-replied"));
        mail = mail.raw_header(raw("X-Auto-Response-Suppress", "All"));
    }
    let mail = mail
        .multipart(body(part))
        .map_err(|error| Failure::Refused(format!("The mail can't be written: {error}").into()))?;
    Ok(Letter { mail, id })
}

/// The same for every attempt, and not to be guessed: who names it has got the mail.
fn id(config: &EmailConfig, part: &Part<'_>, domain: &str) -> String {
    let word = Key::new(&config.id_key).map(|key| format!(".{}", key.word(part.id))).unwrap_or_default();
    format!("{}.{}{word}@{domain}", part.conversation, part.id)
}

fn subject(part: &Part<'_>) -> String {
    let title: String =
        part.title.unwrap_or(part.conversation).chars().filter(|c| !c.is_control()).take(200).collect();
    let is_reply = title.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    if part.reply_to.is_none() || is_reply { title } else { format!("Re: {title}") }
}

fn raw(name: &'static str, value: &str) -> HeaderValue {
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
    let kind = ContentType::parse(&file.media_type).unwrap_or(ContentType::TEXT_PLAIN);
    let kind = if ContentType::parse(&file.media_type).is_ok() { kind } else { octets() };
    LetterFile::new(file.name.clone()).body(file.content.to_vec(), kind)
}

fn octets() -> ContentType {
    ContentType::parse("application/octet-stream").unwrap_or(ContentType::TEXT_PLAIN)
}
