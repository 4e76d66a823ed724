//! What a whole response of a mail server says, as far as we ask for it. All else is passed over.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;

use super::responses::{Broken, Response};
use crate::bounds;

/// The most keywords of a mail that count, and the longest of them in bytes.
const LABELS: (usize, usize) = (100, 200);

/// What a response says.
#[derive(Debug, PartialEq)]
pub enum Said {
    /// The command goes on.
    Go,
    /// A command is done.
    Done { tag: u32, verdict: Verdict },
    /// What it can do.
    Can(Vec<String>),
    /// There are other mails.
    Exists,
    /// The first and the last of the mails that a search found.
    Found(Option<(u32, u32)>),
    /// About a mail.
    Mail(Mail),
    /// The mailbox's UIDVALIDITY.
    Validity(u32),
    /// The next UID that it will give.
    Next(u32),
    /// It is ready.
    Ready,
    /// It ends the connection.
    Bye,
    /// Something else.
    Other,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    No(String),
    Bad(String),
}

/// What is known of a mail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mail {
    pub uid: Option<u32>,
    pub size: Option<u64>,
    pub labels: Vec<String>,
    pub arrived: Option<Timestamp>,
    /// The mail, or that part of it which was asked for.
    pub body: Option<Bytes>,
}

impl Response {
    /// Understands it.
    pub fn said(&self) -> Result<Said, Broken> {
        let mut words = Words { response: self, at: 0 };
        let first = words.next();
        match first {
            Some(Word::Atom(b"+")) => Ok(Said::Go),
            Some(Word::Atom(b"*")) => untagged(&mut words),
            Some(Word::Atom(tag)) => {
                let tag = tag.strip_prefix(b"A").and_then(number).ok_or(Broken::Unclear)?;
                let verdict = words.atom().and_then(|word| words.verdict(word)).ok_or(Broken::Unclear)?;
                Ok(Said::Done { tag, verdict })
            }
            _ => Err(Broken::Unclear),
        }
    }
}

fn untagged(words: &mut Words<'_>) -> Result<Said, Broken> {
    let word = words.atom().ok_or(Broken::Unclear)?;
    if let Some(count) = number::<u32>(word) {
        let what = words.atom().ok_or(Broken::Unclear)?;
        return Ok(if what.eq_ignore_ascii_case(b"EXISTS") {
            Said::Exists
        } else if what.eq_ignore_ascii_case(b"FETCH") && count > 0 {
            Said::Mail(mail(words)?)
        } else {
            Said::Other
        });
    }
    Ok(match word.to_ascii_uppercase().as_slice() {
        b"OK" | b"PREAUTH" => status(&words.rest()),
        b"BYE" => Said::Bye,
        b"CAPABILITY" => Said::Can(words.rest().split_whitespace().map(str::to_ascii_uppercase).collect()),
        b"SEARCH" => {
            let numbers = || words.rest_bytes().split(u8::is_ascii_whitespace).filter_map(number::<u32>);
            Said::Found(numbers().min().zip(numbers().max()))
        }
        _ => Said::Other,
    })
}

/// What the code of `* OK [CODE n] …` says.
fn status(text: &str) -> Said {
    let code =
        text.trim_start().strip_prefix('[').and_then(|text| text.split(']').next()).unwrap_or_default();
    let (name, value) = code.split_once(' ').unwrap_or((code, ""));
    let value = value.trim().parse().ok();
    match (name.to_ascii_uppercase().as_str(), value) {
        ("UIDVALIDITY", Some(value)) => Said::Validity(value),
        ("UIDNEXT", Some(value)) => Said::Next(value),
        _ => Said::Ready,
    }
}

/// `(UID 5 RFC822.SIZE 12 FLAGS (\Seen work) INTERNALDATE "…" BODY[] {12}…)`
fn mail(words: &mut Words<'_>) -> Result<Mail, Broken> {
    let mut mail = Mail::default();
    if words.next() != Some(Word::Open) {
        return Err(Broken::Unclear);
    }
    loop {
        let name = match words.next() {
            Some(Word::Close) => return Ok(mail),
            Some(Word::Atom(name)) => name.to_ascii_uppercase(),
            _ => return Err(Broken::Unclear),
        };
        match name.as_slice() {
            b"UID" => mail.uid = words.atom().and_then(number),
            b"RFC822.SIZE" => mail.size = words.atom().and_then(number),
            b"FLAGS" => mail.labels = words.labels()?,
            b"INTERNALDATE" => mail.arrived = words.value()?.and_then(|text| instant(&text)),
            name if name.starts_with(b"BODY[") => mail.body = words.value()?,
            _ => words.skip()?,
        }
    }
}

/// When a mail arrived, as IMAP writes it.
fn instant(written: &[u8]) -> Option<Timestamp> {
    Timestamp::strptime("%d-%b-%Y %H:%M:%S %z", std::str::from_utf8(written).ok()?).ok()
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A word of a response.
#[derive(Debug, PartialEq)]
enum Word<'a> {
    Open,
    Close,
    Atom(&'a [u8]),
    /// In quotes, without them.
    Quoted(&'a [u8]),
    Literal(Bytes),
}

struct Words<'a> {
    response: &'a Response,
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
                let inside = quoted(rest.get(1..)?)?;
                (Word::Quoted(inside), inside.len() + 2)
            }
            b'{' => return self.literal(),
            _ => {
                let atom = rest.get(..atom(rest)).filter(|atom| !atom.is_empty())?;
                (Word::Atom(atom), atom.len())
            }
        };
        self.at += length;
        Some(word)
    }

    /// The literal whose announcement stands here.
    fn literal(&mut self) -> Option<Word<'a>> {
        let literals = &self.response.literals;
        let range = literals.get(literals.partition_point(|range| range.start <= self.at))?.clone();
        self.at = range.end;
        Some(Word::Literal(self.response.bytes.slice(range)))
    }

    fn atom(&mut self) -> Option<&'a [u8]> {
        match self.next()? {
            Word::Atom(atom) => Some(atom),
            _ => None,
        }
    }

    fn verdict(&self, status: &[u8]) -> Option<Verdict> {
        let words = || self.rest().trim().chars().take(bounds::NAME).collect();
        match status.to_ascii_uppercase().as_slice() {
            b"OK" => Some(Verdict::Ok),
            b"NO" => Some(Verdict::No(words())),
            b"BAD" => Some(Verdict::Bad(words())),
            _ => None,
        }
    }

    /// A text. `None`: NIL.
    fn value(&mut self) -> Result<Option<Bytes>, Broken> {
        match self.next() {
            Some(Word::Literal(bytes)) => Ok(Some(bytes)),
            Some(Word::Quoted(text)) => Ok(Some(Bytes::from(unescaped(text)))),
            Some(Word::Atom(nil)) if nil.eq_ignore_ascii_case(b"NIL") => Ok(None),
            _ => Err(Broken::Unclear),
        }
    }

    /// Labels are the flags that are no system's.
    fn labels(&mut self) -> Result<Vec<String>, Broken> {
        let mut labels = Vec::new();
        if self.next() != Some(Word::Open) {
            return Err(Broken::Unclear);
        }
        loop {
            match self.next() {
                Some(Word::Close) => return Ok(labels),
                Some(Word::Atom(flag)) if flag.starts_with(b"\\") || flag.len() > LABELS.1 => {}
                Some(Word::Atom(flag)) if labels.len() < LABELS.0 => {
                    labels.push(String::from_utf8_lossy(flag).into_owned());
                }
                Some(Word::Atom(_)) => {}
                _ => return Err(Broken::Unclear),
            }
        }
    }

    /// Passes over a value.
    fn skip(&mut self) -> Result<(), Broken> {
        let mut depth = 0_usize;
        loop {
            match self.next().ok_or(Broken::Unclear)? {
                Word::Open => depth += 1,
                Word::Close => depth = depth.checked_sub(1).ok_or(Broken::Unclear)?,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

/// What stands in quotes, up to the one that closes them.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    let mut escaped = false;
    let end = text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    text.get(..end?)
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = false;
    let keep = |byte: &&u8| {
        escaped = **byte == b'\\' && !escaped;
        !escaped
    };
    text.iter().filter(keep).copied().collect()
}

/// The length of the atom that a text begins with. `BODY[HEADER.FIELDS (SUBJECT)]` is one.
fn atom(text: &[u8]) -> usize {
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
