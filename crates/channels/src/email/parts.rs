//! A mail, split into its parts (RFC 2046).
//!
//! Mails are what strangers send, so this reader is bounded in depth, parts and headers, and looks at each byte once for each level. It
//! copies nothing. A mail inside a mail stays a file: it is never split. The library behind it reads single headers only.

use std::borrow::Cow;

use mail_parser::{
    ContentType, HeaderValue, MessageParser,
    decoders::{base64::base64_decode, charsets::map::charset_decoder, html::html_to_text},
    parsers::MessageStream,
};

/// How deep parts may be nested. Programs write three or four levels.
const DEPTH: usize = 10;
/// How many parts a mail may have.
const PARTS: usize = 500;
/// How many lines the headers of all parts may have.
const HEADER_LINES: usize = 10_000;
/// How long the headers of all parts may be, in bytes.
const HEADER_BYTES: usize = 1 << 20;
/// How much of one header is read: the library makes up to seventy times as much of a list of addresses.
const FIELD_BYTES: usize = 64 << 10;
/// The longest encoded word, in bytes: RFC 2047 allows 75, and programs write more.
const LONGEST_WORD: usize = 1_000;
/// How many encoded words of a header may have no end: a stranger could make it quadratic with them.
const ENDLESS_WORDS: usize = 16;
/// How much of one text is decoded, in bytes.
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

/// The headers of a mail or part, as they are written.
#[derive(Debug, Default)]
pub struct Head<'a>(Vec<Field<'a>>);

#[derive(Debug)]
struct Field<'a> {
    name: &'a [u8],
    /// With its name, and the lines that continue it.
    whole: &'a [u8],
}

impl<'a> Field<'a> {
    fn value(&self) -> Cow<'a, str> {
        let colon = self.whole.iter().position(|byte| *byte == b':').unwrap_or_default();
        String::from_utf8_lossy(self.whole.get(colon + 1..).unwrap_or_default())
    }
}

impl<'a> Head<'a> {
    /// Reads the headers that a text begins with.
    pub fn read(text: &'a [u8]) -> Result<Self, TooMuch> {
        Ok(Left::default().head(text)?.0)
    }

    /// The headers of this name, as they are written, in their order. None is left out: a byte that is not UTF-8 becomes U+FFFD.
    pub fn raw<'s>(&'s self, name: &'s str) -> impl DoubleEndedIterator<Item = Cow<'a, str>> + 's {
        let named = self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name.as_bytes()));
        named.map(Field::value)
    }

    /// How many headers have this name.
    pub fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes())).count()
    }

    /// The value of the last header of this name.
    pub fn value(&self, name: &str) -> Option<HeaderValue<'a>> {
        let field = self.0.iter().rfind(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))?;
        let field: &'a [u8] = field.whole.get(..FIELD_BYTES).unwrap_or(field.whole);
        if endless_words(field) > ENDLESS_WORDS {
            let plain = String::from_utf8_lossy(field).replace("=?", "= ?");
            return parsed(plain.as_bytes()).map(HeaderValue::into_owned);
        }
        parsed(field)
    }

    pub fn content_type(&self) -> Option<ContentType<'a>> {
        match self.value("Content-Type")? {
            HeaderValue::ContentType(kind) => Some(kind),
            _ => None,
        }
    }
}

/// The value of a single header.
fn parsed(field: &[u8]) -> Option<HeaderValue<'_>> {
    let mut read = MessageParser::default().parse_headers(field)?;
    let headers = &mut read.parts.first_mut()?.headers;
    headers.truncate(1);
    headers.pop().map(|header| header.value)
}

/// How many encoded words begin, and do not end. For each of them, the library reads all of the header.
fn endless_words(field: &[u8]) -> usize {
    let begins = field.windows(2).enumerate().filter(|(_, pair)| *pair == b"=?").map(|(at, _)| at + 2);
    let rests = begins.map(|at| field.get(at..at + LONGEST_WORD).or(field.get(at..)).unwrap_or_default());
    rests.filter(|rest| !rest.windows(2).any(|pair| pair == b"?=")).count()
}

/// A part that holds no others.
#[derive(Debug)]
pub struct Part<'a> {
    pub head: Head<'a>,
    pub content_type: Option<ContentType<'a>>,
    pub kind: Kind,
    /// As it is written, before it is decoded.
    pub body: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Html,
    OtherText,
    /// Another mail.
    Mail,
    Other,
}

impl<'a> Part<'a> {
    /// Whether it is of this type.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        let own = self.content_type.as_ref();
        own.is_some_and(|own| own.ctype() == kind && own.subtype() == Some(subtype))
    }

    /// What it holds. What can't be decoded is left as it is written.
    pub fn content(&self) -> Cow<'a, [u8]> {
        self.decoded(self.body)
    }

    /// What its text says.
    pub fn text(&self) -> String {
        let bytes = self.decoded(self.body.get(..TEXT_BYTES).unwrap_or(self.body));
        let charset = self.content_type.as_ref().and_then(|kind| kind.attribute("charset"));
        let text = match charset.and_then(|charset| charset_decoder(charset.as_bytes())) {
            Some(decode) => decode(&bytes),
            None => String::from_utf8_lossy(&bytes).into_owned(),
        };
        if self.kind == Kind::Html { html_to_text(&text) } else { text }
    }

    fn decoded(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        let encoding = self.head.raw("Content-Transfer-Encoding").next_back().unwrap_or_default();
        let encoding = encoding.trim();
        let decoded = if encoding.eq_ignore_ascii_case("base64") {
            base64_decode(body)
        } else if encoding.eq_ignore_ascii_case("quoted-printable") {
            // Bare equals signs are common in HTML, and stay.
            match MessageStream::new(body).decode_quoted_printable_mime(b"") {
                (usize::MAX, _) => None,
                (_, decoded) => Some(decoded.into_owned()),
            }
        } else {
            None
        };
        decoded.map_or(Cow::Borrowed(body), Cow::Owned)
    }
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

    /// Those parts of a list.
    pub fn among(&self, list: &[usize]) -> impl Iterator<Item = &Part<'a>> {
        list.iter().filter_map(|at| self.parts.get(*at))
    }

    fn add(&mut self, left: &mut Left, entity: &'a [u8], around: &mut Around) -> Result<(), TooMuch> {
        left.parts = left.parts.checked_sub(1).ok_or(TooMuch::Parts)?;
        around.parts += 1;
        let (head, body) = left.head(entity)?;
        let content_type = head.content_type();
        let several = content_type.as_ref().filter(|kind| kind.ctype() == "multipart");
        let boundary = several.and_then(|kind| kind.attribute("boundary"));
        if let (Some(kind), Some(inner)) = (several, boundary.and_then(|word| Between::of(body, word))) {
            let mut around = around.within(kind)?;
            return self.add_several(left, inner, &mut around);
        }
        let kind = if several.is_some() { Kind::OtherText } else { kind_of(content_type.as_ref(), around) };
        self.place(Part { head, content_type, kind, body }, around);
        Ok(())
    }

    fn add_several(
        &mut self,
        left: &mut Left,
        inner: Between<'a, '_>,
        around: &mut Around,
    ) -> Result<(), TooMuch> {
        let (texts, htmls) = (self.texts.len(), self.htmls.len());
        for entity in inner {
            self.add(left, entity, around)?;
        }
        // Alternatives of one kind stand for the other.
        if around.kind == Several::Alternative && around.needs_html && around.needs_text {
            let (more_texts, more_htmls) = (self.texts.split_off(texts), self.htmls.split_off(htmls));
            self.texts.extend(if more_texts.is_empty() { &more_htmls } else { &more_texts });
            self.htmls.extend(if more_htmls.is_empty() { &more_texts } else { &more_htmls });
        }
        Ok(())
    }

    /// Decides whether a part is read or comes as a file.
    fn place(&mut self, part: Part<'a>, around: &mut Around) {
        let at = self.parts.len();
        let (in_html, in_text) = match (part.kind, around.kind) {
            (Kind::Html, Several::Alternative) => (true, false),
            (Kind::Plain, Several::Alternative) => (false, true),
            (Kind::Html | Kind::Plain, _) if is_read(&part, around) => around.wants(part.kind),
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
        self.parts.push(part);
    }
}

/// Whether a text is meant to be read where it stands.
fn is_read(part: &Part<'_>, around: &Around) -> bool {
    let is_attached = match part.head.value("Content-Disposition") {
        Some(HeaderValue::ContentType(disposition)) => disposition.is_attachment(),
        _ => false,
    };
    let has_name = part.content_type.as_ref().is_some_and(|kind| kind.has_attribute("name"));
    !is_attached && (around.parts == 1 || around.kind != Several::Related && !has_name)
}

fn kind_of(content_type: Option<&ContentType<'_>>, around: &Around) -> Kind {
    let Some(own) = content_type else {
        return if around.kind == Several::Digest { Kind::Mail } else { Kind::Plain };
    };
    match (own.ctype(), own.subtype().unwrap_or_default()) {
        ("text", "plain") => Kind::Plain,
        ("text", "html") => Kind::Html,
        ("text", _) => Kind::OtherText,
        ("message", "rfc822" | "global") => Kind::Mail,
        _ => Kind::Other,
    }
}

/// How parts belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Several {
    #[default]
    Mixed,
    Alternative,
    Related,
    Digest,
}

/// What a part stands in.
struct Around {
    kind: Several,
    depth: usize,
    /// How many parts have come.
    parts: usize,
    in_alternative: bool,
    needs_html: bool,
    needs_text: bool,
}

impl Default for Around {
    fn default() -> Self {
        Self {
            kind: Several::Mixed,
            depth: 0,
            parts: 0,
            in_alternative: false,
            needs_html: true,
            needs_text: true,
        }
    }
}

impl Around {
    /// What the parts inside parts of this type stand in.
    fn within(&self, kind: &ContentType<'_>) -> Result<Self, TooMuch> {
        if self.depth == DEPTH {
            return Err(TooMuch::Depth);
        }
        let kind = match kind.subtype() {
            Some("alternative") => Several::Alternative,
            Some("related") => Several::Related,
            Some("digest") => Several::Digest,
            _ => Several::Mixed,
        };
        let in_alternative = self.in_alternative || kind == Several::Alternative;
        Ok(Self { kind, depth: self.depth + 1, parts: 0, in_alternative, ..*self })
    }

    /// Whether a text counts as HTML, and as plain: the first kind that comes inside an alternative stands for itself only.
    fn wants(&mut self, kind: Kind) -> (bool, bool) {
        if self.in_alternative && (self.needs_html || self.needs_text) {
            match kind {
                Kind::Html => self.needs_text = false,
                _ => self.needs_html = false,
            }
        }
        (self.needs_html, self.needs_text)
    }
}

/// What may still come.
struct Left {
    parts: usize,
    lines: usize,
    bytes: usize,
}

impl Default for Left {
    fn default() -> Self {
        Self { parts: PARTS, lines: HEADER_LINES, bytes: HEADER_BYTES }
    }
}

impl Left {
    /// Reads the headers that a text begins with. Returns what follows them, too.
    fn head<'a>(&mut self, text: &'a [u8]) -> Result<(Head<'a>, &'a [u8]), TooMuch> {
        let (mut fields, mut at) = (Vec::<Field<'a>>::new(), 0);
        // Where the header begins that lines may continue.
        let mut begin = None;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let from = at;
            at += line.len();
            self.bytes = self.bytes.checked_sub(line.len()).ok_or(TooMuch::Headers)?;
            // A line of spaces goes on with the header before it (RFC 5322, 4.2).
            if matches!(line, b"\n" | b"\r\n") {
                return Ok((Head(fields), text.get(at..).unwrap_or_default()));
            }
            self.lines = self.lines.checked_sub(1).ok_or(TooMuch::Lines)?;
            match line.iter().position(|byte| *byte == b':') {
                _ if line.first().is_some_and(u8::is_ascii_whitespace) => {
                    let whole = begin.and_then(|begin| text.get(begin..at));
                    if let (Some(field), Some(whole)) = (fields.last_mut(), whole) {
                        field.whole = whole;
                    }
                }
                Some(colon) => {
                    begin = Some(from);
                    fields.push(Field {
                        name: line.get(..colon).unwrap_or_default().trim_ascii(),
                        whole: line,
                    });
                }
                None => begin = None,
            }
        }
        Ok((Head(fields), &[]))
    }
}

/// The entities between the lines of a boundary.
struct Between<'a, 'b> {
    lines: Lines<'a>,
    boundary: &'b [u8],
    /// Where the present entity begins. `None`: the last one is over.
    begin: Option<usize>,
}

impl<'a, 'b> Between<'a, 'b> {
    /// Those of a body. `None`: the boundary is not in it.
    fn of(body: &'a [u8], boundary: &'b str) -> Option<Self> {
        let mut lines = Lines { text: body, at: 0 };
        let boundary = Some(boundary.as_bytes()).filter(|boundary| !boundary.is_empty())?;
        while let Some((_, line)) = lines.next() {
            if ends(line, boundary).is_some() {
                return Some(Self { begin: Some(lines.at), lines, boundary });
            }
        }
        None
    }
}

impl<'a> Iterator for Between<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.begin.take()?;
        let text = self.lines.text;
        while let Some((from, line)) = self.lines.next() {
            if let Some(is_last) = ends(line, self.boundary) {
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
