//! What a mail says.
//!
//! It may be a stranger's, so it is read off the workers ([`read`]), in parts that `parts.rs` has found within its bounds.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use mail_parser::{Addr, Address, HeaderValue};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::{
    automatic, dates, letter,
    parts::{Head, Kind, Part, Split},
    proof, texts,
};
use crate::{
    bounds,
    contract::{Bounce, Content, Event, Inbound, OneLine, Origin, Proof, Refusal, RemoteFile, Thread},
};

/// How many mails a thread is looked for by: a stranger may name any number.
const MOST_REFS: usize = 50;
/// The longest text of a stranger that is taken.
pub const LONGEST_TEXT: usize = 500_000;

/// What is known of a mail beside its text.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its keywords.
    pub labels: Vec<String>,
    /// The mail server whose word about senders counts.
    pub authserv_id: Option<String>,
    /// The present time.
    pub now: Timestamp,
}

/// Why a mail was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// It says nothing that can be taken, today or later.
    #[error("{0}")]
    Refused(Refusal),
    /// The reader failed.
    #[error("its text makes the reader fail")]
    Failed,
}

/// Reads a mail on a thread of its own.
pub async fn read(mail: Bytes, beside: Beside) -> Result<Option<Event>, Unread> {
    match spawn_blocking(move || event(&mail, beside)).await {
        Ok(read) => read.map_err(Unread::Refused),
        Err(_) => Err(Unread::Failed),
    }
}

/// What happened, by a mail. A report that one of ours is late is nothing, and a report about another is a mail like others.
pub fn event(bytes: &Bytes, beside: Beside) -> Result<Option<Event>, Refusal> {
    let mail = Split::of(bytes).map_err(|why| Refusal::Malformed(why.to_string().into()))?;
    if automatic::is_report(&mail.head) {
        match bounce(&mail) {
            Report::Failed(bounce) => return Ok(Some(Event::Bounced(bounce))),
            Report::Late => return Ok(None),
            Report::Other => {}
        }
    }
    inbound(bytes, &mail, beside).map(|inbound| Some(Event::Message(Box::new(inbound))))
}

/// The subject of a mail, as far as its beginning has one.
pub fn subject(mail: &[u8]) -> Option<String> {
    let head = Head::read(mail.get(..bounds::TEXT).unwrap_or(mail)).ok()?;
    let kind = head.content_type();
    let charset = kind.as_ref().and_then(|kind| kind.param("charset"));
    head.text("Subject", charset).filter(|subject| !subject.is_empty())
}

impl Head<'_> {
    /// The id of the mail, as it is written between the angle brackets.
    fn id(&self) -> Option<String> {
        ids(self.value("Message-ID")).into_iter().next()
    }

    /// The addresses of a header, in lower case.
    fn addresses(&self, name: &str) -> Vec<String> {
        let Some(HeaderValue::Address(list)) = self.value(name) else { return Vec::new() };
        list.iter().filter_map(|one| address(one.address())).collect()
    }
}

fn address(written: Option<&str>) -> Option<String> {
    let address = lower(written?);
    let is_one = address.contains('@') && !address.contains(char::is_control);
    is_one.then(|| in_ascii(&address).unwrap_or(address))
}

/// The name and address of the first of those who wrote a mail. Words before it that have no address are the first part of a name with a
/// comma in it: `Lovelace, Ada <ada@a.test>`.
fn author(from: &Address<'_>) -> Option<(Option<String>, Option<String>)> {
    // What another program may take for an address counts as one, however it is written.
    let names_nobody = |one: &&Addr<'_>| {
        let words = [one.name(), one.address()].into_iter().flatten();
        !words.into_iter().any(|word| word.contains('@'))
    };
    let begin = from.iter().take_while(names_nobody).filter_map(|one| one.name().or(one.address()));
    let author = from.iter().find(|one| !names_nobody(one))?;
    let name: Vec<_> = begin.chain(author.name()).collect();
    Some(((!name.is_empty()).then(|| name.join(", ")), address(author.address())))
}

/// An address whose domain has other letters than ASCII, as programs write it that know no others: `user@xn--bcher-kva.example`. `None`:
/// the domain has none, or some that stand for letters of ASCII. Those would make the owner of one domain the owner of another.
fn in_ascii(address: &str) -> Option<String> {
    let (local, domain) = address.rsplit_once('@')?;
    let is_odd = domain.is_ascii() || domain.contains('%');
    let url::Host::Domain(known) = url::Host::parse(domain).ok().filter(|_| !is_odd)? else { return None };
    let mut labels = domain.split('.').zip(known.split('.'));
    let is_same = domain.split('.').count() == known.split('.').count()
        && labels.all(|(own, known)| own == known || !own.is_ascii() && known.starts_with("xn--"));
    is_same.then(|| format!("{local}@{known}"))
}

/// The address that a list of origins means: `Ada <Ada@A.test>` is `ada@a.test`, as it is compared with. `None`: no mail has it.
pub fn origin(written: &str) -> Option<String> {
    let written = written.trim();
    let named = written.strip_suffix('>').and_then(|text| text.rsplit_once('<'));
    let (name, inside) = named.unwrap_or(("", written));
    let plain = inside.strip_prefix("mailto:").unwrap_or(inside).trim();
    let address = address(Some(plain))?;
    let (local, domain) = address.rsplit_once('@')?;
    let is_odd = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | ',' | ';' | '*');
    // Of two addresses, neither is meant.
    let is_one = !name.contains(['<', '>']);
    let is_name =
        !local.is_empty() && !domain.is_empty() && !domain.contains("..") && !domain.contains(['?', '&']);
    (is_one && is_name && !address.contains(is_odd) && !domain.starts_with('.')).then_some(address)
}

/// An address in lower case. Letters outside ASCII whose lower case is ASCII stay: the Kelvin sign would become `k`, and the owner of one
/// mailbox the owner of another.
fn lower(address: &str) -> String {
    let lower = |letter: char| match letter.to_lowercase().next() {
        Some(lower) if letter.is_ascii() || !lower.is_ascii() => lower,
        _ => letter,
    };
    address.chars().map(lower).collect()
}

fn inbound(bytes: &Bytes, mail: &Split<'_>, beside: Beside) -> Result<Inbound, Refusal> {
    let head = &mail.head;
    let charset = mail.charset();
    let from = head.people("From", charset.as_deref());
    let (name, address) = from.as_ref().and_then(author).unwrap_or_default();
    let address = address.ok_or_else(|| Refusal::Malformed("it has no sender".into()))?;
    let id = head.id();
    let text = texts::text(mail, &address);
    let subject = head.text("Subject", charset.as_deref());
    let key = id.clone().unwrap_or_else(|| digest(head, &address, subject.as_deref(), &text));
    let proves = |server| proof::passes(head, server, &address);
    let sent_at = head.raw("Date").next_back().and_then(|date| dates::read(&date));
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
        // Of several senders, a server may have checked another than the one that counts here.
        proof: if beside.authserv_id.as_deref().is_some_and(proves) && head.count("From") == 1 {
            Proof::Signed
        } else {
            Proof::None
        },
        thread: Thread {
            key,
            refs: refs(head),
            target: address.clone(),
            readers,
            title: subject.as_deref().and_then(OneLine::title),
            is_private: false,
        },
        origin: Origin { id: address, place: None, name: name.as_deref().and_then(OneLine::name) },
        is_addressed: true,
        labels: beside.labels,
        context: String::new(),
        text: text.trim().to_owned(),
        files: files(bytes, mail, charset.as_deref()),
        at: sent_at.map_or(beside.now, |sent_at| sent_at.min(beside.now)),
        source: Some(bytes.clone()),
    })
}

/// Ids of earlier mails, the newest first: who answers from some programs names only old ones. However long the thread is, the
/// mail that began it is among them.
fn refs(head: &Head<'_>) -> Vec<String> {
    let references = ids(head.value("References"));
    let first = references.first().cloned();
    let mut refs: Vec<String> = Vec::new();
    for id in ids(head.value("In-Reply-To")).into_iter().chain(references.into_iter().rev()) {
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

fn ids(value: Option<HeaderValue<'_>>) -> Vec<String> {
    match value {
        Some(HeaderValue::Text(id)) => vec![id.into_owned()],
        Some(HeaderValue::TextList(ids)) => ids.into_iter().map(Cow::into_owned).collect(),
        _ => Vec::new(),
    }
}

/// What stands for a mail without an id.
fn digest(head: &Head<'_>, address: &str, subject: Option<&str>, text: &str) -> String {
    let mut digest = Sha256::new();
    let date = head.raw("Date").next_back().unwrap_or_default();
    for part in [&*date, address, subject.unwrap_or_default(), text] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}

fn files(bytes: &Bytes, mail: &Split<'_>, charset: Option<&str>) -> Vec<RemoteFile> {
    let file = |(nth, part): (usize, &Part<'_>)| {
        let named = part.content_type.as_ref().filter(|kind| !kind.subtype.is_empty());
        let media_type = match named {
            Some(kind) => format!("{}/{}", kind.kind, kind.subtype),
            // One of a digest.
            None if part.kind == Kind::Mail => "message/rfc822".to_owned(),
            None => "application/octet-stream".to_owned(),
        };
        let content = match part.content() {
            Cow::Borrowed(content) => bytes.slice_ref(content),
            Cow::Owned(content) => Bytes::from(content),
        };
        let name = part.name(charset).map_or_else(|| unnamed(nth, &media_type), |name| in_no_folder(&name));
        RemoteFile { name, media_type, size: Some(content.len() as u64), content: Content::Here(content) }
    };
    mail.documents_first().take(50).enumerate().map(file).collect()
}

/// The name of a file without the folders that it was in. Other slashes are signs of the name itself, which no file system takes:
/// `Invoice 5/2026.pdf`.
fn in_no_folder(name: &str) -> String {
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

/// The name of a file that has none.
fn unnamed(nth: usize, media_type: &str) -> String {
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

/// What a report (RFC 3464) says about which mail of ours.
fn bounce(mail: &Split<'_>) -> Report {
    // Programs write some lines.
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
    // Of the mail that came back only the headers are read.
    let is_original = |part: &&Part<'_>| part.kind == Kind::Mail || part.is("text", "rfc822-headers");
    let mut originals = mail.parts.iter().filter(is_original);
    let original = originals.find_map(|part| Head::read(&part.content()).ok()?.id());
    // One with other characters is not ours, and no database takes all of them.
    let ours = original.filter(|id| letter::may_be_ours(id) && !id.contains(char::is_control));
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
