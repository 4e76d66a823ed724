//! The tokens in an answer, by class, read while it passes. An event is kept until its end, and nothing else.
//!
//! A stream is read as the HTML standard has it: lines end with CR, LF or both, an event has one or several lines of data, and ends
//! with an empty line. The first byte tells a stream from JSON, not the head.

use muster_protocol::event::Usage;
use serde_json::{Value, value::RawValue};

use super::call::Interface;
use crate::{
    bounds,
    fields::{Fields, each},
    room::{Held, Room},
};

/// The longest event of a stream that is read, in bytes: what a model, or who plays one, can have the host keep. Of longer ones
/// nothing is counted. An answer in one piece may be four times as long.
const LONGEST_EVENT: usize = 4 * 1024 * 1024;

/// A mark that some put before their text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Counts.
#[derive(Debug)]
pub struct Counter {
    interface: Interface,
    /// Whether the answer is a stream of events. None until it begins.
    is_stream: Option<bool>,
    /// The answer; in a stream the event's data so far, and the line that arrives.
    kept: Vec<u8>,
    /// Where the line begins.
    line: usize,
    /// How many lines of data the event has.
    lines: usize,
    /// Whether a line's end was a CR. An LF may belong to it.
    after_cr: bool,
    room: Room,
    held: Option<Held>,
    /// The event, or the answer, was too long, or there was no room for it.
    is_lost: bool,
    /// There was no room for something that may have been what it has cost.
    pub is_short: bool,
    said: Said,
    /// All bytes so far.
    pub bytes: usize,
}

impl Counter {
    /// For an answer of this interface.
    pub fn new(interface: Interface, room: Room) -> Self {
        Self {
            interface,
            is_stream: None,
            kept: Vec::new(),
            line: 0,
            lines: 0,
            after_cr: false,
            room,
            held: None,
            is_lost: false,
            is_short: false,
            said: Said::default(),
            bytes: 0,
        }
    }

    /// Whether the answer is a stream of events, as far as it has arrived.
    pub fn is_stream(&self) -> bool {
        self.is_stream.unwrap_or(false)
    }

    /// Takes a piece of the answer.
    pub fn take(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.bytes += piece.len();
        let mut rest = piece;
        if self.is_stream.is_none() {
            let begins = |byte: &u8| !(byte.is_ascii_whitespace() || MARK.contains(byte));
            let Some(at) = rest.iter().position(begins) else { return };
            rest = &rest[at..];
            self.is_stream = Some(!matches!(rest[0], b'{' | b'['));
        }
        if !self.is_stream() {
            return self.keep(rest, 4 * LONGEST_EVENT);
        }
        if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n' || *byte == b'\r') {
            self.keep(&rest[..end], LONGEST_EVENT);
            self.end_line();
            let both = rest[end..].starts_with(b"\r\n");
            self.after_cr = rest[end] == b'\r' && end + 1 == rest.len();
            rest = &rest[end + 1 + usize::from(both)..];
        }
        self.keep(rest, LONGEST_EVENT);
    }

    /// What the answer says it has cost, as far as it has arrived.
    pub fn usage(&mut self) -> Usage {
        if self.is_stream() {
            // The end of the answer ends its last line, and its last event.
            self.end_line();
            self.end_event();
        } else if !self.is_lost {
            let whole = std::mem::take(&mut self.kept);
            let interface = self.interface;
            // Gemini streams a list where nobody asks for events.
            let is_list = each(&whole, |part| {
                if let Some(found) = read(interface, part) {
                    self.count(found);
                }
            });
            if !is_list && let Some(found) = read(interface, &whole) {
                self.count(found);
            }
        }
        self.said.usage(self.interface)
    }

    /// How many tokens had been written when the answer began: no more than a hint, if it does not say how it ended.
    pub fn begun(&self) -> Option<i64> {
        self.said.begun
    }

    /// How many of the tokens written to a cache are kept there for an hour, as far as the answer has been read.
    pub fn cache_hour(&self) -> Option<i64> {
        self.said.hour
    }

    fn keep(&mut self, piece: &[u8], most: usize) {
        let (old, needed) = (self.kept.capacity(), self.kept.len() + piece.len());
        self.is_lost |= needed > most;
        // Most events are so short that they need not ask for room.
        if !self.is_lost && needed > old.max(4 * 1024) {
            // At least twice as much, so that it is seldom moved.
            let new = needed.max(2 * old).min(most);
            match self.room.try_take(new - old) {
                Some(more) => self.hold(more),
                None => (self.is_lost, self.is_short) = (true, true),
            }
            if !self.is_lost {
                self.kept.reserve_exact(new - self.kept.len());
            }
        }
        if self.is_lost {
            (self.kept, self.held, self.line, self.lines) = (Vec::new(), None, 0, 0);
        } else {
            self.kept.extend_from_slice(piece);
        }
    }

    fn hold(&mut self, more: Held) {
        match &mut self.held {
            Some(held) => held.add(more),
            None => self.held = Some(more),
        }
    }

    /// A line has arrived. An empty one ends the event.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_lost) {
            (self.line, self.lines) = (0, 0);
            return self.kept.clear();
        }
        let line = &self.kept[self.line..];
        if line.is_empty() {
            return self.end_event();
        }
        let Some(data) = line.strip_prefix(b"data:") else {
            return self.kept.truncate(self.line);
        };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        let (name, found) = (line.len() - data.len(), read(self.interface, data));
        // Some end their events with one line's end.
        if let Some(found) = found {
            self.count(found);
        }
        self.kept.drain(self.line..self.line + name);
        self.kept.push(b'\n');
        (self.line, self.lines) = (self.kept.len(), self.lines + 1);
    }

    /// An event has arrived.
    fn end_event(&mut self) {
        if self.lines > 1
            && let Some(found) = read(self.interface, &self.kept)
        {
            self.count(found);
        }
        (self.line, self.lines) = (0, 0);
        self.kept.clear();
    }

    fn count(&mut self, said: Said) {
        self.said.add(said);
    }
}

/// What an answer says, by the classes of its interface.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    read: Option<i64>,
    written: Option<i64>,
    /// What was written when the answer began.
    begun: Option<i64>,
    cached: Option<i64>,
    kept: Option<i64>,
    /// Of `kept`.
    hour: Option<i64>,
}

impl Said {
    /// Later counts are totals too, and leave out what they don't change, or say 0.
    fn add(&mut self, later: Self) {
        self.read = self.read.max(later.read);
        self.written = self.written.max(later.written);
        self.begun = self.begun.max(later.begun);
        self.cached = self.cached.max(later.cached);
        self.kept = self.kept.max(later.kept);
        self.hour = self.hour.max(later.hour);
    }

    /// Except for Anthropic, tokens read from a cache and written to it are among those that were read.
    fn usage(self, interface: Interface) -> Usage {
        let others = match interface {
            Interface::Anthropic => 0,
            _ => self.cached.unwrap_or(0) + self.kept.unwrap_or(0),
        };
        Usage {
            input: self.read.map(|read| (read - others).max(0)),
            output: self.written,
            cache_read: self.cached,
            cache_write: self.kept,
            cost_micro: None,
        }
    }
}

/// What an event says.
fn read(interface: Interface, event: &[u8]) -> Option<Said> {
    // Most events count nothing, and need not be understood.
    if !event.windows(5).any(|word| word == b"usage") {
        return None;
    }
    let event = Fields::read(event)?;
    let own = || within(&event, "usage");
    let inner = |name: &str| within(&event.within(name)?, "usage");
    let found = match interface {
        Interface::Chat => own().or_else(|| of_choice(&event)).or_else(|| inner("x_groq")),
        Interface::Responses => inner("response").or_else(own),
        Interface::Anthropic => match inner("message") {
            Some(begun) => {
                let said = said(interface, &begun);
                return Some(Said { begun: said.written, written: None, ..said });
            }
            None => own(),
        },
        Interface::Gemini => within(&event, "usageMetadata"),
    };
    found.map(|found| said(interface, &found))
}

/// In its last event, Moonshot has the counts in the choice.
fn of_choice<'a>(event: &Fields<'a>) -> Option<Fields<'a>> {
    let choices = event.raw("choices").filter(|raw| raw.len() <= bounds::TEXT)?;
    let choices: Vec<&RawValue> = muster_json::from_str(choices).ok()?;
    within(&Fields::read(choices.first()?.get().as_bytes())?, "usage")
}

/// An object in an object, if it is a short one.
fn within<'a>(fields: &Fields<'a>, name: &str) -> Option<Fields<'a>> {
    fields.raw(name).filter(|raw| raw.len() <= bounds::TEXT).and_then(|raw| Fields::read(raw.as_bytes()))
}

fn said(interface: Interface, found: &Fields<'_>) -> Said {
    let number = |path: &str| number(found, path);
    let first = |paths: &[&str]| paths.iter().find_map(|path| number(path));
    let sum = |paths: &[&str]| paths.iter().filter_map(|path| number(path)).reduce(i64::saturating_add);
    match interface {
        Interface::Chat => Said {
            read: first(&["prompt_tokens", "input_tokens"]),
            written: written_in_chat(
                first(&["completion_tokens", "output_tokens"]),
                number("completion_tokens_details/reasoning_tokens"),
                [number("prompt_tokens"), number("total_tokens")],
            ),
            cached: first(&[
                "prompt_tokens_details/cached_tokens",
                "prompt_cache_hit_tokens",
                "cache_read_input_tokens",
                "cached_tokens",
            ]),
            kept: first(&[
                "prompt_tokens_details/cache_write_tokens",
                "prompt_tokens_details/cache_creation_tokens",
                "cache_creation_input_tokens",
            ]),
            ..Said::default()
        },
        Interface::Responses => Said {
            read: number("input_tokens"),
            written: number("output_tokens"),
            cached: number("input_tokens_details/cached_tokens"),
            kept: number("input_tokens_details/cache_write_tokens"),
            ..Said::default()
        },
        Interface::Anthropic => {
            let parts = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"];
            let [short, hour] = parts.map(|part| number(&format!("cache_creation/{part}")));
            let both = short.max(hour).map(|_| short.unwrap_or(0) + hour.unwrap_or(0));
            Said {
                read: number("input_tokens"),
                written: number("output_tokens"),
                cached: number("cache_read_input_tokens"),
                kept: number("cache_creation_input_tokens").max(both),
                hour,
                ..Said::default()
            }
        }
        Interface::Gemini => Said {
            read: sum(&["promptTokenCount", "toolUsePromptTokenCount"]),
            written: sum(&["candidatesTokenCount", "thoughtsTokenCount"]),
            cached: number("cachedContentTokenCount"),
            ..Said::default()
        },
    }
}

/// The tokens of an answer. xAI counts its reasoning beside them, which only the total shows; others count it among them.
fn written_in_chat(
    answer: Option<i64>,
    thought: Option<i64>,
    [read, total]: [Option<i64>; 2],
) -> Option<i64> {
    let (answer, thought) = (answer?, thought.unwrap_or(0));
    let both = answer.saturating_add(thought);
    let is_beside = total.is_some() && total == read.map(|read| read.saturating_add(both));
    Some(if is_beside { both } else { answer })
}

/// A count, in an object or an object within. One that can't be read doesn't hide the others.
fn number(fields: &Fields<'_>, path: &str) -> Option<i64> {
    match path.split_once('/') {
        Some((outer, rest)) => number(&fields.within(outer)?, rest),
        None => count(&fields.value(path)?),
    }
}

/// Some write `1000.0`, or `"1000"`.
fn count(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // As in the control plane: far more than there can be.
    (0.0..=100_000_000.0).contains(&number).then(|| number.ceil() as i64)
}

#[cfg(test)]
mod tests;
