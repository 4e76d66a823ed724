//! Parses IMAP responses, as far as they are needed.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;

use super::imap_reader::{RawResponse, ReadError};
use crate::bounds;

/// Maximum keywords of a mail, and bytes of each.
const LABELS: (usize, usize) = (100, 200);

#[derive(Debug, PartialEq)]
pub enum Response {
    /// Continuation request.
    Continue,
    /// Completion of a command.
    Done {
        tag: u32,
        status: Status,
    },
    Capabilities(Vec<String>),
    /// Another mail arrived.
    Exists,
    /// The first and the last UID of a search.
    Found(Option<(u32, u32)>),
    Mail(Mail),
    /// UIDVALIDITY.
    UidValidity(u32),
    /// UIDNEXT.
    UidNext(u32),
    /// Any other OK.
    Ready,
    /// End of the connection.
    Bye,
    Other,
}

/// Completion status of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    No(String),
    Bad(String),
}

/// Metadata of a mail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mail {
    pub uid: Option<u32>,
    pub size: Option<u64>,
    pub labels: Vec<String>,
    pub arrived: Option<Timestamp>,
    /// The mail, or the requested part.
    pub body: Option<Bytes>,
}

impl RawResponse {
    pub fn parse(&self) -> Result<Response, ReadError> {
        let mut words = Words { response: self, at: 0 };
        let first = words.next();
        match first {
            Some(Word::Atom(b"+")) => Ok(Response::Continue),
            Some(Word::Atom(b"*")) => parse_untagged(&mut words),
            Some(Word::Atom(tag)) => {
                let tag = tag.strip_prefix(b"A").and_then(parse_number).ok_or(ReadError::Unclear)?;
                let status =
                    words.next_atom().and_then(|word| words.read_status(word)).ok_or(ReadError::Unclear)?;
                Ok(Response::Done { tag, status })
            }
            _ => Err(ReadError::Unclear),
        }
    }
}

fn parse_untagged(words: &mut Words<'_>) -> Result<Response, ReadError> {
    let word = words.next_atom().ok_or(ReadError::Unclear)?;
    if let Some(count) = parse_number::<u32>(word) {
        let what = words.next_atom().ok_or(ReadError::Unclear)?;
        return Ok(if what.eq_ignore_ascii_case(b"EXISTS") {
            Response::Exists
        } else if what.eq_ignore_ascii_case(b"FETCH") && count > 0 {
            Response::Mail(parse_fetch(words)?)
        } else {
            Response::Other
        });
    }
    Ok(match word.to_ascii_uppercase().as_slice() {
        b"OK" | b"PREAUTH" => parse_code(&words.rest()),
        b"BYE" => Response::Bye,
        b"CAPABILITY" => {
            Response::Capabilities(words.rest().split_whitespace().map(str::to_ascii_uppercase).collect())
        }
        b"SEARCH" => {
            let numbers =
                || words.rest_bytes().split(u8::is_ascii_whitespace).filter_map(parse_number::<u32>);
            Response::Found(numbers().min().zip(numbers().max()))
        }
        _ => Response::Other,
    })
}

/// Parses the response code of `* OK [CODE n] …`.
fn parse_code(text: &str) -> Response {
    let code =
        text.trim_start().strip_prefix('[').and_then(|text| text.split(']').next()).unwrap_or_default();
    let (name, value) = code.split_once(' ').unwrap_or((code, ""));
    let value = value.trim().parse().ok();
    match (name.to_ascii_uppercase().as_str(), value) {
        ("UIDVALIDITY", Some(value)) => Response::UidValidity(value),
        ("UIDNEXT", Some(value)) => Response::UidNext(value),
        _ => Response::Ready,
    }
}

/// `(UID 5 RFC822.SIZE 12 FLAGS (\Seen work) INTERNALDATE "…" BODY[] {12}…)`
fn parse_fetch(words: &mut Words<'_>) -> Result<Mail, ReadError> {
    let mut mail = Mail::default();
    if words.next() != Some(Word::Open) {
        return Err(ReadError::Unclear);
    }
    loop {
        let name = match words.next() {
            Some(Word::Close) => return Ok(mail),
            Some(Word::Atom(name)) => name.to_ascii_uppercase(),
            _ => return Err(ReadError::Unclear),
        };
        match name.as_slice() {
            b"UID" => mail.uid = words.next_atom().and_then(parse_number),
            b"RFC822.SIZE" => mail.size = words.next_atom().and_then(parse_number),
            b"FLAGS" => mail.labels = words.read_labels()?,
            b"INTERNALDATE" => mail.arrived = words.read_value()?.and_then(|text| parse_date(&text)),
            name if name.starts_with(b"BODY[") => mail.body = words.read_value()?,
            _ => words.skip_value()?,
        }
    }
}

/// When a mail arrived, in IMAP's format.
fn parse_date(written: &[u8]) -> Option<Timestamp> {
    Timestamp::strptime("%d-%b-%Y %H:%M:%S %z", std::str::from_utf8(written).ok()?).ok()
}

fn parse_number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[derive(Debug, PartialEq)]
enum Word<'a> {
    Open,
    Close,
    Atom(&'a [u8]),
    /// Without the quotes.
    Quoted(&'a [u8]),
    Literal(Bytes),
}

struct Words<'a> {
    response: &'a RawResponse,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest_bytes(&self) -> &'a [u8] {
        self.response.bytes.get(self.at..).unwrap_or_default()
    }

    fn rest(&self) -> Cow<'a, str> {
        let rest = self.rest_bytes();
        String::from_utf8_lossy(rest.get(..bounds::TEXT).unwrap_or(rest))
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = self.rest_bytes();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = self.rest_bytes();
        let (word, length) = match rest.first()? {
            b'(' => (Word::Open, 1),
            b')' => (Word::Close, 1),
            b'"' => {
                let inside = quoted_content(rest.get(1..)?)?;
                (Word::Quoted(inside), inside.len() + 2)
            }
            b'{' => return self.literal(),
            _ => {
                let atom = rest.get(..atom_length(rest)).filter(|atom| !atom.is_empty())?;
                (Word::Atom(atom), atom.len())
            }
        };
        self.at += length;
        Some(word)
    }

    /// The literal announced here.
    fn literal(&mut self) -> Option<Word<'a>> {
        let literals = &self.response.literals;
        let range = literals.get(literals.partition_point(|range| range.start <= self.at))?.clone();
        self.at = range.end;
        Some(Word::Literal(self.response.bytes.slice(range)))
    }

    fn next_atom(&mut self) -> Option<&'a [u8]> {
        match self.next()? {
            Word::Atom(atom) => Some(atom),
            _ => None,
        }
    }

    fn read_status(&self, status: &[u8]) -> Option<Status> {
        let words = || self.rest().trim().chars().take(bounds::NAME).collect();
        match status.to_ascii_uppercase().as_slice() {
            b"OK" => Some(Status::Ok),
            b"NO" => Some(Status::No(words())),
            b"BAD" => Some(Status::Bad(words())),
            _ => None,
        }
    }

    /// A string. `None`: NIL.
    fn read_value(&mut self) -> Result<Option<Bytes>, ReadError> {
        match self.next() {
            Some(Word::Literal(bytes)) => Ok(Some(bytes)),
            Some(Word::Quoted(text)) => Ok(Some(Bytes::from(unescape(text)))),
            Some(Word::Atom(nil)) if nil.eq_ignore_ascii_case(b"NIL") => Ok(None),
            _ => Err(ReadError::Unclear),
        }
    }

    /// Labels are the flags other than the system's.
    fn read_labels(&mut self) -> Result<Vec<String>, ReadError> {
        let mut labels = Vec::new();
        if self.next() != Some(Word::Open) {
            return Err(ReadError::Unclear);
        }
        loop {
            match self.next() {
                Some(Word::Close) => return Ok(labels),
                Some(Word::Atom(flag)) if flag.starts_with(b"\\") || flag.len() > LABELS.1 => {}
                Some(Word::Atom(flag)) if labels.len() < LABELS.0 => {
                    labels.push(String::from_utf8_lossy(flag).into_owned());
                }
                Some(Word::Atom(_)) => {}
                _ => return Err(ReadError::Unclear),
            }
        }
    }

    fn skip_value(&mut self) -> Result<(), ReadError> {
        let mut depth = 0_usize;
        loop {
            match self.next().ok_or(ReadError::Unclear)? {
                Word::Open => depth += 1,
                Word::Close => depth = depth.checked_sub(1).ok_or(ReadError::Unclear)?,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

/// The content of a quoted string.
fn quoted_content(text: &[u8]) -> Option<&[u8]> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    text.get(..end?)
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut escaped = false;
    let keep = |byte: &&u8| {
        escaped = **byte == b'\\' && !escaped;
        !escaped
    };
    text.iter().filter(keep).copied().collect()
}

/// Length of the atom at the beginning. `BODY[HEADER.FIELDS (SUBJECT)]` is one.
fn atom_length(text: &[u8]) -> usize {
    let mut in_brackets = false;
    let end = text.iter().position(|byte| match byte {
        b'[' => {
            in_brackets = true;
            false
        }
        b']' => {
            in_brackets = false;
            false
        }
        b'\r' | b'\n' => true,
        b'(' | b')' | b'"' => !in_brackets,
        byte => byte.is_ascii_whitespace() && !in_brackets,
    });
    end.unwrap_or(text.len())
}
