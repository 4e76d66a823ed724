//! The headers of a mail or part: as they are written, as words, and as people.

use std::borrow::Cow;

use mail_parser::{Address, HeaderValue, MessageParser};

use super::{HEADER_BYTES, HEADER_LINES, PARTS, TooMuch};
use crate::{
    bounds,
    email::{
        charset,
        content_type::ContentType,
        words::{self, LONGEST_WORD},
    },
};

/// How many encoded words of a header may have no end: a stranger could make it quadratic with them.
const ENDLESS_WORDS: usize = 16;

/// The headers of a mail or part, as they are written.
#[derive(Debug, Default)]
pub struct Head<'a>(Vec<Field<'a>>);

#[derive(Debug)]
pub struct Field<'a> {
    name: &'a [u8],
    /// With its name, and the lines that continue it.
    whole: &'a [u8],
}

impl<'a> Field<'a> {
    pub fn value(&self) -> &'a [u8] {
        let colon = self.whole.iter().position(|byte| *byte == b':').unwrap_or_default();
        self.whole.get(colon + 1..).unwrap_or_default()
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
        named.map(|field| String::from_utf8_lossy(field.value()))
    }

    /// How many headers have this name.
    pub fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes())).count()
    }

    pub fn last(&self, name: &str) -> Option<&Field<'a>> {
        self.0.iter().rfind(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// The value of the last header of this name, whose encoded words may be in any charset.
    pub fn value(&self, name: &str) -> Option<HeaderValue<'static>> {
        parsed(&self.in_utf8(name)?).map(HeaderValue::into_owned)
    }

    /// The last header of this name, whose encoded words are in UTF-8.
    fn in_utf8(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let field = self.last(name)?.whole;
        // The library makes up to seventy times as much of a list of addresses.
        let field = field.get(..bounds::TEXT).unwrap_or(field);
        Some(if endless_words(field) > ENDLESS_WORDS {
            Cow::Owned(String::from_utf8_lossy(field).replace("=?", "= ?").into_bytes())
        } else {
            words::in_utf8(field)
        })
    }

    /// The people in the last header of this name. Bytes of their names that are not UTF-8 are of this charset; their addresses stay
    /// what a mail server reads, which knows no charset.
    pub fn people(&self, name: &str, charset: Option<&str>) -> Option<Address<'static>> {
        let field = self.in_utf8(name)?;
        let people = addresses(&field)?;
        if std::str::from_utf8(&field).is_ok() {
            return Some(people);
        }
        let named = addresses(charset::raw(charset, &field).as_bytes());
        let is_same = |named: &Address<'_>| {
            named.iter().map(|one| one.address()).eq(people.iter().map(|one| one.address()))
        };
        named.filter(is_same).or(Some(people))
    }

    /// What the last header of this name says, if it has no structure. Bytes outside of encoded words are of this charset.
    pub fn text(&self, name: &str, charset: Option<&str>) -> Option<String> {
        let value = self.last(name)?.value();
        Some(words::text(value.get(..bounds::TEXT).unwrap_or(value), charset))
    }

    pub fn content_type(&self) -> Option<ContentType> {
        self.with_params("Content-Type", None)
    }

    /// A header with parameters. `name`: the charset of bytes outside of encoded words.
    pub fn with_params(&self, header: &str, name: Option<&str>) -> Option<ContentType> {
        let value = self.last(header)?.value();
        ContentType::read(value.get(..bounds::TEXT).unwrap_or(value), name)
    }
}

/// The value of a single header.
fn parsed(field: &[u8]) -> Option<HeaderValue<'_>> {
    let mut read = MessageParser::default().parse_headers(field)?;
    let headers = &mut read.parts.first_mut()?.headers;
    headers.truncate(1);
    headers.pop().map(|header| header.value)
}

/// The people in a single header.
fn addresses(field: &[u8]) -> Option<Address<'static>> {
    match parsed(field)?.into_owned() {
        HeaderValue::Address(people) => Some(people),
        _ => None,
    }
}

/// How many encoded words begin, and do not end. For each of them, the library reads all of the header.
fn endless_words(field: &[u8]) -> usize {
    let begins = field.windows(2).enumerate().filter(|(_, pair)| *pair == b"=?").map(|(at, _)| at + 2);
    let rests = begins.map(|at| field.get(at..at + LONGEST_WORD).or(field.get(at..)).unwrap_or_default());
    rests.filter(|rest| !rest.windows(2).any(|pair| pair == b"?=")).count()
}

/// What may still come.
pub struct Left {
    pub parts: usize,
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
    pub fn head<'a>(&mut self, text: &'a [u8]) -> Result<(Head<'a>, &'a [u8]), TooMuch> {
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
