//! A mail, split into its parts (RFC 2046).
//!
//! Mails are what strangers send, so this reader is bounded in depth, parts and headers, and looks at each byte once for each level. It
//! copies nothing. A mail inside a mail stays a file: it is never split. The library behind it reads single headers only.
//!
//! - `head.rs`: the headers of a mail or part; `around.rs`: how several parts belong together.

mod around;
mod head;

use std::{borrow::Cow, cell::OnceCell, collections::HashSet};

use mail_parser::{decoders::base64::base64_decode, parsers::MessageStream};

pub use self::head::Head;
use self::{
    around::{Around, Several, plain_id},
    head::Left,
};
use super::{charset, content_type::ContentType, flowed, html, texts::is_visible, words};
use crate::bounds;

/// How deep parts may be nested: a stranger's could be as deep as they are many. Programs write three or four levels.
const DEPTH: usize = 10;
/// How many parts a stranger's mail may have, how many lines the headers of all of them, and how many bytes.
const PARTS: usize = 500;
const HEADER_LINES: usize = 10_000;
const HEADER_BYTES: usize = 1 << 20;
/// How much of one text is decoded, in bytes: strangers send more.
const TEXT_BYTES: usize = 8 << 20;

/// Why a mail is not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    #[error("its parts are nested more than {DEPTH} deep")]
    Depth,
    #[error("it has more than {PARTS} parts")]
    Parts,
    #[error("its headers have more than {HEADER_LINES} lines")]
    Lines,
    #[error("its headers are longer than {HEADER_BYTES} bytes")]
    Headers,
}

/// A part that holds no others.
#[derive(Debug)]
pub struct Part<'a> {
    pub head: Head<'a>,
    pub content_type: Option<ContentType>,
    pub kind: Kind,
    /// As it is written, before it is decoded.
    pub body: &'a [u8],
    /// Whether it is blank, once that was asked: each level around it asks again.
    blank: OnceCell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Html,
    /// Of another type, such as `text/markdown`. It is read like a plain one, but counts for nothing beside a better alternative.
    OtherText,
    /// An event.
    Calendar,
    /// Another mail.
    Mail,
    Other,
}

impl<'a> Part<'a> {
    /// Whether it is of this type.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.content_type.as_ref().is_some_and(|own| own.is(kind, subtype))
    }

    /// A parameter of its type.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.content_type.as_ref()?.param(name)
    }

    /// The id by which HTML shows it.
    fn id(&self) -> Option<Vec<u8>> {
        let id = String::from_utf8_lossy(self.head.last("Content-ID")?.value()).into_owned();
        Some(plain_id(&id).as_bytes().to_vec())
    }

    /// The name that it gives itself. `charset`: that of the mail, where the part has none.
    pub fn name(&self, charset: Option<&str>) -> Option<String> {
        let charset = self.param("charset").filter(|name| charset::says(name)).or(charset);
        let name = |header, param| Some(self.head.with_params(header, charset)?.param(param)?.to_owned());
        name("Content-Disposition", "filename").or_else(|| name("Content-Type", "name"))
    }

    /// What it holds. What can't be decoded is left as it is written.
    pub fn content(&self) -> Cow<'a, [u8]> {
        self.decoded(self.body)
    }

    /// What its text says. Lines end with one character.
    pub fn text(&self) -> String {
        self.words().0
    }

    /// The same, and whether that is all of it.
    pub fn words(&self) -> (String, bool) {
        let (bytes, is_whole) = self.beginning();
        let text = charset::decode(self.charset(&bytes), &bytes);
        if self.kind == Kind::Html {
            let (text, is_all) = html::words(&text);
            return (text, is_whole && is_all);
        }
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is =
            |name: &str, value: &str| self.param(name).is_some_and(|own| own.eq_ignore_ascii_case(value));
        let text = if is("format", "flowed") { flowed::joined(&text, is("delsp", "yes")) } else { text };
        (text, is_whole)
    }

    /// What is read of its text, and whether that is all of it.
    fn beginning(&self) -> (Cow<'a, [u8]>, bool) {
        let Some(beginning) = self.body.get(..TEXT_BYTES).filter(|text| text.len() < self.body.len()) else {
            return (self.content(), true);
        };
        if self.kind != Kind::Html {
            return (self.decoded(beginning), false);
        }
        let mut html = html::without_pictures(&self.content(), TEXT_BYTES);
        let is_whole = html.len() <= TEXT_BYTES;
        html.truncate(TEXT_BYTES);
        (Cow::Owned(html), is_whole)
    }

    /// The charset that its type names, else the one that its text in HTML names where it begins.
    fn charset<'s>(&'s self, text: &'s [u8]) -> Option<&'s str> {
        let named = self.param("charset").filter(|name| charset::says(name));
        named.or_else(|| html::charset(text).filter(|_| self.kind == Kind::Html))
    }

    /// Whether a person sees nothing of its text.
    fn is_blank(&self) -> bool {
        // Of a stranger's 500 texts each is looked at.
        let is_blank = || self.body.len() <= bounds::TEXT && !self.text().chars().any(is_visible);
        *self.blank.get_or_init(is_blank)
    }

    fn decoded(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        let encoding = self.head.raw("Content-Transfer-Encoding").next_back().unwrap_or_default();
        // `"base64"`, `base64; (x)`
        let mut words = encoding.split(|c: char| c.is_whitespace() || matches!(c, '"' | ';' | '('));
        let encoding = words.find(|word| !word.is_empty()).unwrap_or_default();
        let decoded = if encoding.eq_ignore_ascii_case("base64") {
            base64_decode(body).or_else(|| base64_above(body))
        } else if encoding.eq_ignore_ascii_case("quoted-printable") {
            // Bare equals signs are common in HTML, and stay.
            match MessageStream::new(body).decode_quoted_printable_mime(b"") {
                // It gives up at what it does not know, as in a footer that a gateway added.
                (usize::MAX, _) => Some(words::percent(&without_soft_ends(body), b'=')),
                (_, decoded) => Some(decoded.into_owned()),
            }
        } else {
            None
        };
        decoded.map_or(Cow::Borrowed(body), Cow::Owned)
    }
}

/// A text in base64, below which a program has put lines of its own, and these lines. `None`: there is nothing above them.
fn base64_above(text: &[u8]) -> Option<Vec<u8>> {
    let is_encoded = |line: &[u8]| {
        let is = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        line.trim_ascii().iter().all(is)
    };
    let lines = (Lines { text, at: 0 }).take_while(|(_, line)| is_encoded(line));
    let end = lines.last().map(|(from, line)| from + line.len())?;
    let mut decoded = base64_decode(text.get(..end)?).filter(|decoded| !decoded.is_empty())?;
    decoded.extend_from_slice(b"\r\n");
    decoded.extend_from_slice(text.get(end..)?);
    Some(decoded)
}

/// The lines of a quoted-printable text, each with those that continue it.
fn without_soft_ends(text: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        // Two signs are the end of a bare address.
        let soft = line.trim_ascii_end().strip_suffix(b"=").filter(|soft| !soft.ends_with(b"="));
        joined.extend_from_slice(soft.filter(|_| line.ends_with(b"\n")).unwrap_or(line));
    }
    joined
}

/// A mail in parts.
#[derive(Debug, Default)]
pub struct Split<'a> {
    pub head: Head<'a>,
    pub parts: Vec<Part<'a>>,
    /// The parts that people read, in their order. Of alternatives the plain one.
    pub texts: Vec<usize>,
    /// The parts that come with it, in their order.
    pub files: Vec<usize>,
    /// The events among them.
    pub events: Vec<usize>,
    /// As `texts`. Of alternatives the HTML.
    htmls: Vec<usize>,
}

impl<'a> Split<'a> {
    /// Splits a mail.
    pub fn of(mail: &'a [u8]) -> Result<Self, TooMuch> {
        let mut split = Self { head: Head::read(mail)?, ..Self::default() };
        split.add(&mut Left::default(), mail, &mut Around::default())?;
        Ok(split)
    }

    /// The charset of its headers, where they name none: the mail's own, else that of its first text that has one.
    pub fn charset(&self) -> Option<String> {
        let own = self.head.content_type();
        let own = own.as_ref().and_then(|own| own.param("charset")).filter(|name| charset::says(name));
        let of = |part: &Part<'_>| {
            let beginning = part.body.get(..4 << 10).unwrap_or(part.body);
            part.charset(&part.decoded(beginning)).map(str::to_owned)
        };
        let is_text = |part: &&Part<'_>| matches!(part.kind, Kind::Plain | Kind::Html | Kind::OtherText);
        own.map(str::to_owned).or_else(|| self.parts.iter().filter(is_text).find_map(of))
    }

    /// Those parts of a list.
    pub fn among(&self, list: &[usize]) -> impl Iterator<Item = &Part<'a>> {
        list.iter().filter_map(|at| self.parts.get(*at))
    }

    /// The parts that come with it: first those that people look for, and then the pictures that its HTML shows where they belong. Who
    /// reads takes only so many files.
    pub fn documents_first(&self) -> impl Iterator<Item = &Part<'a>> {
        let is_picture = |part: &&Part<'_>| part.content_type.as_ref().is_some_and(|own| own.kind == "image");
        let mut shown = HashSet::new();
        if self.files.len() > 1 && self.among(&self.files).any(|part| is_picture(&part)) {
            for part in self.parts.iter().filter(|part| part.kind == Kind::Html) {
                html::pictures(&part.beginning().0, &mut shown);
            }
        }
        let is_shown = |part: &&Part<'_>| is_picture(part) && part.id().is_some_and(|id| shown.contains(&id));
        let (pictures, others): (Vec<_>, Vec<_>) = self.among(&self.files).partition(is_shown);
        others.into_iter().chain(pictures)
    }

    fn add(&mut self, left: &mut Left, entity: &'a [u8], around: &mut Around) -> Result<(), TooMuch> {
        left.parts = left.parts.checked_sub(1).ok_or(TooMuch::Parts)?;
        around.parts += 1;
        let (head, body) = left.head(entity)?;
        let content_type = head.content_type();
        let several = content_type.as_ref().filter(|kind| kind.kind == "multipart");
        if let Some((kind, inner)) = several.and_then(|kind| Some((kind, Between::of(body, kind)?))) {
            let inner: Vec<_> = inner.take(PARTS + 1).collect();
            let mut around = around.within(kind, &inner)?;
            return self.add_several(left, &inner, &mut around);
        }
        let kind = kind_of(content_type.as_ref(), around);
        self.place(Part { head, content_type, kind, body, blank: OnceCell::new() }, around);
        Ok(())
    }

    fn add_several(
        &mut self,
        left: &mut Left,
        inner: &[&'a [u8]],
        around: &mut Around,
    ) -> Result<(), TooMuch> {
        let (texts, htmls) = (self.texts.len(), self.htmls.len());
        for entity in inner {
            self.add(left, entity, around)?;
        }
        // Alternatives of one kind stand for the other.
        if around.kind == Several::Alternative && around.needs_html && around.needs_text {
            let (mut more_texts, more_htmls) = (self.texts.split_off(texts), self.htmls.split_off(htmls));
            if self.among(&more_texts).all(Part::is_blank) {
                more_texts.clear();
            }
            let other = if more_htmls.is_empty() { around.other.as_slice() } else { &more_htmls };
            self.texts.extend(if more_texts.is_empty() { other } else { &more_texts });
            self.htmls.extend(if more_htmls.is_empty() { &more_texts } else { &more_htmls });
        }
        Ok(())
    }

    /// Decides whether a part is read or comes as a file.
    fn place(&mut self, part: Part<'a>, around: &mut Around) {
        let at = self.parts.len();
        let (in_html, in_text) = match (part.kind, around.kind) {
            _ if is_attached(&part) && !is_fragment(&part) => (false, false),
            (Kind::Html, Several::Alternative) => (true, false),
            (Kind::Plain, Several::Alternative) => (false, true),
            (Kind::OtherText, Several::Alternative) => {
                around.other.push(at);
                self.parts.push(part);
                return;
            }
            (Kind::Html | Kind::Plain | Kind::OtherText, _) if is_read(&part, around) => {
                around.wants(part.kind)
            }
            _ => (false, false),
        };
        if in_html {
            self.htmls.push(at);
        }
        if in_text {
            self.texts.push(at);
        }
        let is_shown = if part.kind == Kind::Html { in_html } else { in_text };
        if !is_shown {
            self.files.push(at);
        }
        let is_named = || part.name(None).is_some_and(|name| name.to_ascii_lowercase().ends_with(".ics"));
        if part.kind == Kind::Calendar || part.is("application", "octet-stream") && is_named() {
            self.events.push(at);
        }
        self.parts.push(part);
    }
}

/// Whether a part says that it is a file.
fn is_attached(part: &Part<'_>) -> bool {
    let disposition = part.head.with_params("Content-Disposition", None);
    disposition.is_some_and(|disposition| disposition.kind == "attachment")
}

/// Whether a part is a piece of the text itself, under the name that Exchange gives to what has none: `ATT00001.txt`.
fn is_fragment(part: &Part<'_>) -> bool {
    // A longer one is a file that had no name.
    let is_text = matches!(part.kind, Kind::Plain | Kind::Html) && part.body.len() <= bounds::TEXT;
    let is_made_up = |name: String| {
        let name = name.to_ascii_lowercase();
        let (name, ending) = name.split_once('.').unwrap_or_default();
        let number = name.strip_prefix("att").unwrap_or_default();
        matches!(ending, "txt" | "htm" | "html")
            && number.len() == 5
            && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_text && part.name(None).is_some_and(is_made_up)
}

/// Whether a text is meant to be read where it stands.
fn is_read(part: &Part<'_>, around: &Around) -> bool {
    match around.kind {
        Several::Slides => true,
        Several::Related => around.parts == around.root,
        _ => around.parts == 1 || part.name(None).is_none() || is_fragment(part),
    }
}

fn kind_of(content_type: Option<&ContentType>, around: &Around) -> Kind {
    let Some(own) = content_type else {
        return if around.kind == Several::Digest { Kind::Mail } else { Kind::Plain };
    };
    match (&*own.kind, &*own.subtype) {
        // A multipart without a boundary, or with another one than its parts, is read as it is.
        ("text", "plain" | "") | ("multipart", _) => Kind::Plain,
        ("text", "html") => Kind::Html,
        ("text", "calendar") | ("application", "ics") => Kind::Calendar,
        // Headers of a mail that came back, addresses, what only a program reads: files.
        ("text", "rfc822-headers" | "vcard" | "x-vcard" | "directory" | "rtf") => Kind::Other,
        ("text", _) => Kind::OtherText,
        ("message", "rfc822" | "global") => Kind::Mail,
        _ => Kind::Other,
    }
}

/// The entities between the lines of a boundary.
struct Between<'a> {
    lines: Lines<'a>,
    boundary: Vec<u8>,
    /// Where the present entity begins. `None`: the last one is over.
    begin: Option<usize>,
}

impl<'a> Between<'a> {
    /// The parts of a body. `None`: it has no boundary.
    fn of(body: &'a [u8], kind: &ContentType) -> Option<Self> {
        let named = kind.param("boundary").map(|boundary| boundary.as_bytes().to_vec());
        named.and_then(|boundary| Self::after(body, boundary)).or_else(|| Self::after(body, seen(body)?))
    }

    fn after(body: &'a [u8], boundary: Vec<u8>) -> Option<Self> {
        let mut lines = Lines { text: body, at: 0 };
        while let Some((_, line)) = lines.next() {
            if ends(line, &boundary).is_some() {
                return Some(Self { begin: Some(lines.at), lines, boundary });
            }
        }
        None
    }
}

/// The boundary that a body has, if its mail names another one or none: a line with two hyphens above a header of a part.
fn seen(body: &[u8]) -> Option<Vec<u8>> {
    let mut boundary: Option<&[u8]> = None;
    for (_, line) in (Lines { text: body, at: 0 }) {
        let is_header = || line.get(..8).is_some_and(|begin| begin.eq_ignore_ascii_case(b"content-"));
        if let Some(boundary) = boundary.filter(|_| is_header()) {
            return Some(boundary.to_vec());
        }
        boundary = line.strip_prefix(b"--").map(<[u8]>::trim_ascii);
        boundary = boundary.filter(|word| (1..=70).contains(&word.len()));
    }
    None
}

impl<'a> Iterator for Between<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.begin.take()?;
        let text = self.lines.text;
        while let Some((from, line)) = self.lines.next() {
            if let Some(is_last) = ends(line, &self.boundary) {
                self.begin = (!is_last).then_some(self.lines.at);
                let entity = text.get(begin..from).unwrap_or_default();
                // The end of its last line belongs to the boundary.
                let entity = entity.strip_suffix(b"\n").unwrap_or(entity);
                return Some(entity.strip_suffix(b"\r").unwrap_or(entity));
            }
        }
        // It was never closed. What follows the last boundary is a part, unless it is nothing.
        text.get(begin..).filter(|rest| !rest.trim_ascii().is_empty())
    }
}

struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let from = self.at;
        let rest = self.text.get(from..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive(|byte| *byte == b'\n').next()?;
        self.at += line.len();
        Some((from, line))
    }
}

/// Whether a line is a boundary, and if so, the last one.
fn ends(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    if rest.starts_with(b"--") { Some(true) } else { rest.trim_ascii().is_empty().then_some(false) }
}

#[cfg(test)]
mod tests;
