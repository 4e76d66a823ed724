//! Headers of a mail or part.

use std::borrow::Cow;

use mail_parser::{Address, HeaderValue, MessageParser};

use super::{HEADER_BYTES, HEADER_LINES, LimitError, PARTS};
use crate::{
    bounds,
    email::{
        charset,
        content_type::ContentType,
        encoded_words::{self, LONGEST_WORD},
    },
};

/// Unterminated encoded words in a header: a stranger could cause quadratic time with them.
const MAX_UNTERMINATED: usize = 16;

/// Raw headers of a mail or part.
#[derive(Debug, Default)]
pub struct Headers<'a>(Vec<HeaderField<'a>>);

#[derive(Debug)]
pub struct HeaderField<'a> {
    name: &'a [u8],
    /// With its name, and folded lines.
    whole: &'a [u8],
}

impl<'a> HeaderField<'a> {
    pub fn value(&self) -> &'a [u8] {
        let colon = self.whole.iter().position(|byte| *byte == b':').unwrap_or_default();
        self.whole.get(colon + 1..).unwrap_or_default()
    }
}

impl<'a> Headers<'a> {
    /// Reads the headers at the beginning of a text.
    pub fn read(text: &'a [u8]) -> Result<Self, LimitError> {
        Ok(Remaining::default().read_headers(text)?.0)
    }

    /// The raw headers of this name, in order. All are included: invalid UTF-8 becomes U+FFFD.
    pub fn raw<'s>(&'s self, name: &'s str) -> impl DoubleEndedIterator<Item = Cow<'a, str>> + 's {
        let named = self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|field| String::from_utf8_lossy(field.value()))
    }

    pub fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes())).count()
    }

    pub fn last(&self, name: &str) -> Option<&HeaderField<'a>> {
        self.0.iter().rfind(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// The parsed value of the last header of this name, with encoded words in any charset.
    pub fn value(&self, name: &str) -> Option<HeaderValue<'static>> {
        parse_header(&self.in_utf8(name)?).map(HeaderValue::into_owned)
    }

    /// The last header of this name, with encoded words in UTF-8.
    fn in_utf8(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let field = self.last(name)?.whole;
        // The library expands a list of addresses up to seventy times.
        let field = field.get(..bounds::TEXT).unwrap_or(field);
        Some(if count_unterminated(field) > MAX_UNTERMINATED {
            Cow::Owned(String::from_utf8_lossy(field).replace("=?", "= ?").into_bytes())
        } else {
            encoded_words::recode_utf8(field)
        })
    }

    /// The people in the last header of this name. `charset` applies to their names only; addresses stay as mail
    /// servers read them, without a charset.
    pub fn people(&self, name: &str, charset: Option<&str>) -> Option<Address<'static>> {
        let field = self.in_utf8(name)?;
        let people = parse_addresses(&field)?;
        if std::str::from_utf8(&field).is_ok() {
            return Some(people);
        }
        let named = parse_addresses(charset::decode_header(charset, &field).as_bytes());
        let is_same = |named: &Address<'_>| {
            named.iter().map(|one| one.address()).eq(people.iter().map(|one| one.address()))
        };
        named.filter(is_same).or(Some(people))
    }

    /// The text of the last header of this name, if it is unstructured. `charset`: of bytes outside of encoded words.
    pub fn text(&self, name: &str, charset: Option<&str>) -> Option<String> {
        let value = self.last(name)?.value();
        Some(encoded_words::decode_text(value.get(..bounds::TEXT).unwrap_or(value), charset))
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

fn parse_header(field: &[u8]) -> Option<HeaderValue<'_>> {
    let mut read = MessageParser::default().parse_headers(field)?;
    let headers = &mut read.parts.first_mut()?.headers;
    headers.truncate(1);
    headers.pop().map(|header| header.value)
}

fn parse_addresses(field: &[u8]) -> Option<Address<'static>> {
    match parse_header(field)?.into_owned() {
        HeaderValue::Address(people) => Some(people),
        _ => None,
    }
}

/// Unterminated encoded words. The library scans the whole header for each.
fn count_unterminated(field: &[u8]) -> usize {
    let begins = field.windows(2).enumerate().filter(|(_, pair)| *pair == b"=?").map(|(at, _)| at + 2);
    let rests = begins.map(|at| field.get(at..at + LONGEST_WORD).or(field.get(at..)).unwrap_or_default());
    rests.filter(|rest| !rest.windows(2).any(|pair| pair == b"?=")).count()
}

/// Remaining budget of a mail.
pub struct Remaining {
    pub parts: usize,
    lines: usize,
    bytes: usize,
}

impl Default for Remaining {
    fn default() -> Self {
        Self { parts: PARTS, lines: HEADER_LINES, bytes: HEADER_BYTES }
    }
}

impl Remaining {
    /// Reads the headers at the beginning of a text. Also returns the rest.
    pub fn read_headers<'a>(&mut self, text: &'a [u8]) -> Result<(Headers<'a>, &'a [u8]), LimitError> {
        let (mut fields, mut at) = (Vec::<HeaderField<'a>>::new(), 0);
        // The beginning of a header that folded lines may continue.
        let mut begin = None;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let from = at;
            at += line.len();
            self.bytes = self.bytes.checked_sub(line.len()).ok_or(LimitError::Headers)?;
            // A line of spaces continues the header before (RFC 5322, 4.2).
            if matches!(line, b"\n" | b"\r\n") {
                return Ok((Headers(fields), text.get(at..).unwrap_or_default()));
            }
            self.lines = self.lines.checked_sub(1).ok_or(LimitError::Lines)?;
            match line.iter().position(|byte| *byte == b':') {
                _ if line.first().is_some_and(u8::is_ascii_whitespace) => {
                    let whole = begin.and_then(|begin| text.get(begin..at));
                    if let (Some(field), Some(whole)) = (fields.last_mut(), whole) {
                        field.whole = whole;
                    }
                }
                Some(colon) => {
                    begin = Some(from);
                    fields.push(HeaderField {
                        name: line.get(..colon).unwrap_or_default().trim_ascii(),
                        whole: line,
                    });
                }
                None => begin = None,
            }
        }
        Ok((Headers(fields), &[]))
    }
}
