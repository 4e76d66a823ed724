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
    if let Some(answered) = ids("In-Reply-To", part.reply_to) {
        mail = mail.raw_header(answered);
    }
    let refs = part.refs.iter().map(String::as_str);
    let answered = part.reply_to.filter(|answered| refs.clone().all(|id| id != *answered));
    if let Some(refs) = ids("References", refs.chain(answered)) {
        mail = mail.raw_header(refs);
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

/// Whether an id may be one of ours. Keys and addresses change while mails are on their way, so it is known by its form only.
pub fn may_be_ours(id: &str) -> bool {
    let word = id.rsplit_once('@').and_then(|(local, _)| local.rsplit_once('.'));
    word.is_some_and(|(rest, word)| rest.contains('.') && Key::is_word(word))
}

fn subject(part: &Part<'_>) -> String {
    let title: String =
        part.title.unwrap_or(part.conversation).chars().filter(|c| !c.is_control()).take(200).collect();
    let is_reply = title.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    if part.reply_to.is_none() || is_reply { title } else { format!("Re: {title}") }
}

/// A header with ids as other programs wrote them: encoded, they would name no mail (RFC 2047, 5). Each has a line of its own, so
/// that `post.rs` can leave out those that a server does not take. `None`: there are none.
fn ids<'a>(name: &'static str, ids: impl IntoIterator<Item = &'a str>) -> Option<HeaderValue> {
    let fits = |id: &&str| {
        // A line has no more than 998 bytes (RFC 5322, 2.1.1).
        id.len() <= 960 && !id.contains(|c: char| c.is_control() || matches!(c, '<' | '>'))
    };
    let lines: Vec<String> = ids.into_iter().filter(fits).map(|id| format!("<{id}>")).collect();
    let name = HeaderName::new_from_ascii_str(name);
    let begin = if lines.iter().all(|line| line.is_ascii()) { "" } else { "\r\n " };
    let encoded = format!("{begin}{}", lines.join("\r\n "));
    (!lines.is_empty()).then(|| HeaderValue::dangerous_new_pre_encoded(name, lines.join(" "), encoded))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn header(ids: &[&str]) -> Option<String> {
        let value = super::ids("References", ids.iter().copied())?;
        let mut mail = Message::builder().from("a@a.test".parse().unwrap()).to("b@b.test".parse().unwrap());
        mail = mail.raw_header(value);
        let mail = String::from_utf8(mail.body(String::new()).unwrap().formatted()).unwrap();
        let from = mail.find("References:").unwrap();
        Some(mail[from..].split("\r\n\r\n").next().unwrap().split("\r\nContent-").next().unwrap().to_owned())
    }

    #[test]
    fn our_ids_are_known_by_their_form() {
        let word = Key::new(&"a key".to_owned().into()).unwrap().word("d-1");
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
    fn ids_are_named_as_they_were_written() {
        let long = format!("{}@a.test", "x".repeat(320));
        assert_eq!(header(&["1@a.test"]).unwrap(), "References: <1@a.test>");
        assert_eq!(header(&["1@a.test", &long]).unwrap(), format!("References: <1@a.test>\r\n <{long}>"));
        assert_eq!(
            header(&["größe@a.test", "1@a.test"]).unwrap(),
            "References: \r\n <größe@a.test>\r\n <1@a.test>"
        );
        // What would end the line, or the id, names no mail.
        let forged = ["1@a.test\r\nBcc: eve@evil.test", "1@a.test>, <2@b.test", "\u{0}", &"x".repeat(2_000)];
        assert_eq!(header(&forged), None);
    }
}
