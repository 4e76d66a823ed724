//! Splits a mail into its parts (RFC 2046).
//!
//! Strangers send mails, so depth, parts and headers are limited, and each level scans each byte once. Nothing is
//! copied. An attached mail stays a file and is never split. The mail-parser library reads single headers only.
//!
//! - `headers.rs`: headers of a mail or part; `multipart.rs`: relations between parts.

mod headers;
mod multipart;

use std::{borrow::Cow, cell::OnceCell, collections::HashSet};

use mail_parser::{decoders::base64::base64_decode, parsers::MessageStream};

pub use self::headers::Headers;
use self::{
    headers::Remaining,
    multipart::{MultipartContext, MultipartKind, plain_id},
};
use super::{body_text::is_visible, charset, content_type::ContentType, encoded_words, flowed, html};
use crate::bounds;

/// Maximum nesting of parts: a stranger's could be as deep as they are many. Programs use three or four levels.
const DEPTH: usize = 10;
/// Maximum parts of a stranger's mail, and lines and bytes of all headers.
const PARTS: usize = 500;
const HEADER_LINES: usize = 10_000;
const HEADER_BYTES: usize = 1 << 20;
/// Maximum decoded bytes of one text.
const TEXT_BYTES: usize = 8 << 20;

/// The exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    #[error("its parts are nested more than {DEPTH} deep")]
    Depth,
    #[error("it has more than {PARTS} parts")]
    Parts,
    #[error("its headers have more than {HEADER_LINES} lines")]
    Lines,
    #[error("its headers are longer than {HEADER_BYTES} bytes")]
    Headers,
}

/// A leaf part.
#[derive(Debug)]
pub struct Part<'a> {
    pub head: Headers<'a>,
    pub content_type: Option<ContentType>,
    pub kind: Kind,
    /// Still encoded.
    pub body: &'a [u8],
    /// Caches [`is_blank`](Self::is_blank): each surrounding level asks again.
    blank: OnceCell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Html,
    /// Another type, such as `text/markdown`. Read like plain text, but dropped beside a better alternative.
    OtherText,
    /// A calendar event.
    Calendar,
    /// An attached mail.
    Mail,
    Other,
}

impl<'a> Part<'a> {
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.content_type.as_ref().is_some_and(|own| own.is(kind, subtype))
    }

    /// A parameter of its type.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.content_type.as_ref()?.param(name)
    }

    /// The id by which HTML embeds it.
    fn id(&self) -> Option<Vec<u8>> {
        let id = String::from_utf8_lossy(self.head.last("Content-ID")?.value()).into_owned();
        Some(plain_id(&id).as_bytes().to_vec())
    }

    /// The file name. `charset`: the mail's, if the part has none.
    pub fn name(&self, charset: Option<&str>) -> Option<String> {
        let charset = self.param("charset").filter(|name| charset::is_informative(name)).or(charset);
        let name = |header, param| Some(self.head.with_params(header, charset)?.param(param)?.to_owned());
        name("Content-Disposition", "filename").or_else(|| name("Content-Type", "name"))
    }

    /// The decoded content. Undecodable content stays encoded.
    pub fn content(&self) -> Cow<'a, [u8]> {
        self.decoded(self.body)
    }

    /// The text, with `\n` as line end.
    pub fn text(&self) -> String {
        self.read_text().0
    }

    /// The text, and whether it is complete.
    pub fn read_text(&self) -> (String, bool) {
        let (bytes, is_whole) = self.beginning();
        let text = charset::decode(self.charset(&bytes), &bytes);
        if self.kind == Kind::Html {
            let (text, is_all) = html::to_text(&text);
            return (text, is_whole && is_all);
        }
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is =
            |name: &str, value: &str| self.param(name).is_some_and(|own| own.eq_ignore_ascii_case(value));
        let text = if is("format", "flowed") { flowed::join_lines(&text, is("delsp", "yes")) } else { text };
        (text, is_whole)
    }

    /// The beginning of the text's bytes, and whether it is complete.
    fn beginning(&self) -> (Cow<'a, [u8]>, bool) {
        let Some(beginning) = self.body.get(..TEXT_BYTES).filter(|text| text.len() < self.body.len()) else {
            return (self.content(), true);
        };
        if self.kind != Kind::Html {
            return (self.decoded(beginning), false);
        }
        let mut html = html::strip_inline_pictures(&self.content(), TEXT_BYTES);
        let is_whole = html.len() <= TEXT_BYTES;
        html.truncate(TEXT_BYTES);
        (Cow::Owned(html), is_whole)
    }

    /// The charset of its type, else the one that its HTML declares.
    fn charset<'s>(&'s self, text: &'s [u8]) -> Option<&'s str> {
        let named = self.param("charset").filter(|name| charset::is_informative(name));
        named.or_else(|| html::declared_charset(text).filter(|_| self.kind == Kind::Html))
    }

    /// Whether the text is invisible.
    fn is_blank(&self) -> bool {
        // Bounded, since each of a stranger's 500 texts is checked.
        let is_blank = || self.body.len() <= bounds::TEXT && !self.text().chars().any(is_visible);
        *self.blank.get_or_init(is_blank)
    }

    fn decoded(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        let encoding = self.head.raw("Content-Transfer-Encoding").next_back().unwrap_or_default();
        // `"base64"`, `base64; (x)`
        let mut words = encoding.split(|c: char| c.is_whitespace() || matches!(c, '"' | ';' | '('));
        let encoding = words.find(|word| !word.is_empty()).unwrap_or_default();
        let decoded = if encoding.eq_ignore_ascii_case("base64") {
            base64_decode(body).or_else(|| decode_base64_prefix(body))
        } else if encoding.eq_ignore_ascii_case("quoted-printable") {
            // Bare equals signs are common in HTML, and stay.
            match MessageStream::new(body).decode_quoted_printable_mime(b"") {
                // The library gives up at unknown sequences, as in a gateway's footer.
                (usize::MAX, _) => Some(encoded_words::decode_escapes(&join_soft_breaks(body), b'=')),
                (_, decoded) => Some(decoded.into_owned()),
            }
        } else {
            None
        };
        decoded.map_or(Cow::Borrowed(body), Cow::Owned)
    }
}

/// Decodes base64 with plain lines appended by a program. `None`: nothing above them.
fn decode_base64_prefix(text: &[u8]) -> Option<Vec<u8>> {
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

/// Joins soft line breaks of quoted-printable.
fn join_soft_breaks(text: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        // Two signs end a bare address.
        let soft = line.trim_ascii_end().strip_suffix(b"=").filter(|soft| !soft.ends_with(b"="));
        joined.extend_from_slice(soft.filter(|_| line.ends_with(b"\n")).unwrap_or(line));
    }
    joined
}

/// A mail split into parts.
#[derive(Debug, Default)]
pub struct MimeMail<'a> {
    pub head: Headers<'a>,
    pub parts: Vec<Part<'a>>,
    /// Readable parts, in order. Of alternatives the plain one.
    pub texts: Vec<usize>,
    /// Attached parts, in order.
    pub files: Vec<usize>,
    /// Calendar events among them.
    pub events: Vec<usize>,
    /// Like `texts`, but of alternatives the HTML.
    htmls: Vec<usize>,
}

impl<'a> MimeMail<'a> {
    pub fn parse(mail: &'a [u8]) -> Result<Self, LimitError> {
        let mut split = Self { head: Headers::read(mail)?, ..Self::default() };
        split.add(&mut Remaining::default(), mail, &mut MultipartContext::default())?;
        Ok(split)
    }

    /// The charset of undeclared headers: the mail's own, else the first informative one of its texts.
    pub fn charset(&self) -> Option<String> {
        let own = self.head.content_type();
        let own =
            own.as_ref().and_then(|own| own.param("charset")).filter(|name| charset::is_informative(name));
        let of = |part: &Part<'_>| {
            let beginning = part.body.get(..4 << 10).unwrap_or(part.body);
            part.charset(&part.decoded(beginning)).map(str::to_owned)
        };
        let is_text = |part: &&Part<'_>| matches!(part.kind, Kind::Plain | Kind::Html | Kind::OtherText);
        own.map(str::to_owned).or_else(|| self.parts.iter().filter(is_text).find_map(of))
    }

    pub fn select(&self, list: &[usize]) -> impl Iterator<Item = &Part<'a>> {
        list.iter().filter_map(|at| self.parts.get(*at))
    }

    /// The attached parts: documents first, then pictures embedded in the HTML. Readers take a limited number.
    pub fn documents_first(&self) -> impl Iterator<Item = &Part<'a>> {
        let is_picture = |part: &&Part<'_>| part.content_type.as_ref().is_some_and(|own| own.kind == "image");
        let mut shown = HashSet::new();
        if self.files.len() > 1 && self.select(&self.files).any(|part| is_picture(&part)) {
            for part in self.parts.iter().filter(|part| part.kind == Kind::Html) {
                html::collect_picture_ids(&part.beginning().0, &mut shown);
            }
        }
        let is_shown = |part: &&Part<'_>| is_picture(part) && part.id().is_some_and(|id| shown.contains(&id));
        let (pictures, others): (Vec<_>, Vec<_>) = self.select(&self.files).partition(is_shown);
        others.into_iter().chain(pictures)
    }

    fn add(
        &mut self,
        left: &mut Remaining,
        entity: &'a [u8],
        around: &mut MultipartContext,
    ) -> Result<(), LimitError> {
        left.parts = left.parts.checked_sub(1).ok_or(LimitError::Parts)?;
        around.parts += 1;
        let (head, body) = left.read_headers(entity)?;
        let content_type = head.content_type();
        let several = content_type.as_ref().filter(|kind| kind.kind == "multipart");
        if let Some((kind, inner)) = several.and_then(|kind| Some((kind, BodyParts::of(body, kind)?))) {
            let inner: Vec<_> = inner.take(PARTS + 1).collect();
            let mut around = around.within(kind, &inner)?;
            return self.add_several(left, &inner, &mut around);
        }
        let kind = kind_of(content_type.as_ref(), around);
        self.classify(Part { head, content_type, kind, body, blank: OnceCell::new() }, around);
        Ok(())
    }

    fn add_several(
        &mut self,
        left: &mut Remaining,
        inner: &[&'a [u8]],
        around: &mut MultipartContext,
    ) -> Result<(), LimitError> {
        let (texts, htmls) = (self.texts.len(), self.htmls.len());
        for entity in inner {
            self.add(left, entity, around)?;
        }
        // Alternatives of one kind replace the other.
        if around.kind == MultipartKind::Alternative && around.needs_html && around.needs_text {
            let (mut more_texts, more_htmls) = (self.texts.split_off(texts), self.htmls.split_off(htmls));
            if self.select(&more_texts).all(Part::is_blank) {
                more_texts.clear();
            }
            let other = if more_htmls.is_empty() { around.other.as_slice() } else { &more_htmls };
            self.texts.extend(if more_texts.is_empty() { other } else { &more_texts });
            self.htmls.extend(if more_htmls.is_empty() { &more_texts } else { &more_htmls });
        }
        Ok(())
    }

    /// Decides whether a part is read or attached.
    fn classify(&mut self, part: Part<'a>, around: &mut MultipartContext) {
        let at = self.parts.len();
        let (in_html, in_text) = match (part.kind, around.kind) {
            _ if is_attached(&part) && !is_fragment(&part) => (false, false),
            (Kind::Html, MultipartKind::Alternative) => (true, false),
            (Kind::Plain, MultipartKind::Alternative) => (false, true),
            (Kind::OtherText, MultipartKind::Alternative) => {
                around.other.push(at);
                self.parts.push(part);
                return;
            }
            (Kind::Html | Kind::Plain | Kind::OtherText, _) if is_read(&part, around) => {
                around.choose_for(part.kind)
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

/// Whether a part is declared an attachment.
fn is_attached(part: &Part<'_>) -> bool {
    let disposition = part.head.with_params("Content-Disposition", None);
    disposition.is_some_and(|disposition| disposition.kind == "attachment")
}

/// Whether a part is a piece of the text, under Exchange's name for unnamed ones: `ATT00001.txt`.
fn is_fragment(part: &Part<'_>) -> bool {
    // A longer one is an unnamed file.
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

/// Whether a text is meant to be read in place.
fn is_read(part: &Part<'_>, around: &MultipartContext) -> bool {
    match around.kind {
        MultipartKind::Slides => true,
        MultipartKind::Related => around.parts == around.root,
        _ => around.parts == 1 || part.name(None).is_none() || is_fragment(part),
    }
}

fn kind_of(content_type: Option<&ContentType>, around: &MultipartContext) -> Kind {
    let Some(own) = content_type else {
        return if around.kind == MultipartKind::Digest { Kind::Mail } else { Kind::Plain };
    };
    match (&*own.kind, &*own.subtype) {
        // A multipart with a missing or wrong boundary is read as text.
        ("text", "plain" | "") | ("multipart", _) => Kind::Plain,
        ("text", "html") => Kind::Html,
        ("text", "calendar") | ("application", "ics") => Kind::Calendar,
        // Returned headers, contacts and program data: files.
        ("text", "rfc822-headers" | "vcard" | "x-vcard" | "directory" | "rtf") => Kind::Other,
        ("text", _) => Kind::OtherText,
        ("message", "rfc822" | "global") => Kind::Mail,
        _ => Kind::Other,
    }
}

/// The entities between boundary lines.
struct BodyParts<'a> {
    lines: Lines<'a>,
    boundary: Vec<u8>,
    /// The beginning of the current entity. `None`: at the end.
    begin: Option<usize>,
}

impl<'a> BodyParts<'a> {
    /// The parts of a body. `None`: no boundary.
    fn of(body: &'a [u8], kind: &ContentType) -> Option<Self> {
        let named = kind.param("boundary").map(|boundary| boundary.as_bytes().to_vec());
        named
            .and_then(|boundary| Self::after(body, boundary))
            .or_else(|| Self::after(body, guess_boundary(body)?))
    }

    fn after(body: &'a [u8], boundary: Vec<u8>) -> Option<Self> {
        let mut lines = Lines { text: body, at: 0 };
        while let Some((_, line)) = lines.next() {
            if match_boundary(line, &boundary).is_some() {
                return Some(Self { begin: Some(lines.at), lines, boundary });
            }
        }
        None
    }
}

/// Guesses a missing or wrong boundary: a line with two hyphens above a part's header.
fn guess_boundary(body: &[u8]) -> Option<Vec<u8>> {
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

impl<'a> Iterator for BodyParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.begin.take()?;
        let text = self.lines.text;
        while let Some((from, line)) = self.lines.next() {
            if let Some(is_last) = match_boundary(line, &self.boundary) {
                self.begin = (!is_last).then_some(self.lines.at);
                let entity = text.get(begin..from).unwrap_or_default();
                // The last line end belongs to the boundary.
                let entity = entity.strip_suffix(b"\n").unwrap_or(entity);
                return Some(entity.strip_suffix(b"\r").unwrap_or(entity));
            }
        }
        // Unclosed: a non-empty rest is a part.
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

/// Whether a line is a boundary, and whether it is the last one.
fn match_boundary(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?;
    if rest.starts_with(b"--") { Some(true) } else { rest.trim_ascii().is_empty().then_some(false) }
}

#[cfg(test)]
mod tests;
