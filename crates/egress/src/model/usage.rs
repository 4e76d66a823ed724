//! Counts the tokens of an answer by class while it passes. Only the current event is stored.
//!
//! A stream is parsed as in the HTML standard: lines end with CR, LF or both, an event has one or several data lines,
//! and ends with an empty line. The first byte distinguishes a stream from JSON; the headers don't.

use muster_protocol::event::Usage;
use serde_json::{Value, value::RawValue};

use super::call::Interface;
use crate::{
    bounds,
    fields::{Fields, each},
    memory::{MemoryBudget, MemoryReservation},
};

/// The longest parsed event in bytes: a model, or an impostor, could fill the host's memory. Longer ones are not
/// counted. A complete answer may be four times as long.
const LONGEST_EVENT: usize = 4 * 1024 * 1024;

/// The byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Token counter of an answer.
#[derive(Debug)]
pub struct Counter {
    interface: Interface,
    /// Whether the answer is an event stream. `None` until it begins.
    is_stream: Option<bool>,
    /// The answer; in a stream the event's data and the current line.
    kept: Vec<u8>,
    /// Start of the current line.
    line: usize,
    /// Number of the event's data lines.
    lines: usize,
    /// Whether the last line ended with a CR; an LF may follow.
    after_cr: bool,
    memory: MemoryBudget,
    held: Option<MemoryReservation>,
    /// The event or the answer was too long, or out of memory budget.
    is_lost: bool,
    /// Skipped data may have contained the usage.
    pub is_short: bool,
    said: Counts,
    /// All bytes so far.
    pub bytes: usize,
}

impl Counter {
    pub fn new(interface: Interface, memory: MemoryBudget) -> Self {
        Self {
            interface,
            is_stream: None,
            kept: Vec::new(),
            line: 0,
            lines: 0,
            after_cr: false,
            memory,
            held: None,
            is_lost: false,
            is_short: false,
            said: Counts::default(),
            bytes: 0,
        }
    }

    /// Whether the answer so far is an event stream.
    pub fn is_stream(&self) -> bool {
        self.is_stream.unwrap_or(false)
    }

    /// Adds a piece of the answer.
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

    /// The usage so far.
    pub fn usage(&mut self) -> Usage {
        if self.is_stream() {
            // The end of the answer ends its last line and its last event.
            self.end_line();
            self.end_event();
        } else if !self.is_lost {
            let whole = std::mem::take(&mut self.kept);
            let interface = self.interface;
            // Gemini streams a list unless events are requested.
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

    /// Output tokens at the start: only a hint, if the end is missing.
    pub fn begun(&self) -> Option<i64> {
        self.said.begun
    }

    /// Cache writes kept for an hour, so far.
    pub fn cache_hour(&self) -> Option<i64> {
        self.said.hour
    }

    fn keep(&mut self, piece: &[u8], most: usize) {
        let (old, needed) = (self.kept.capacity(), self.kept.len() + piece.len());
        self.is_lost |= needed > most;
        // Most events are too short to reserve memory.
        if !self.is_lost && needed > old.max(4 * 1024) {
            // At least doubled, so that data is seldom moved.
            let new = needed.max(2 * old).min(most);
            match self.memory.try_take(new - old) {
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

    fn hold(&mut self, more: MemoryReservation) {
        match &mut self.held {
            Some(held) => held.add(more),
            None => self.held = Some(more),
        }
    }

    /// Ends a line. An empty one ends the event.
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
        // Some end their events with a single newline.
        if let Some(found) = found {
            self.count(found);
        }
        self.kept.drain(self.line..self.line + name);
        self.kept.push(b'\n');
        (self.line, self.lines) = (self.kept.len(), self.lines + 1);
    }

    fn end_event(&mut self) {
        if self.lines > 1
            && let Some(found) = read(self.interface, &self.kept)
        {
            self.count(found);
        }
        (self.line, self.lines) = (0, 0);
        self.kept.clear();
    }

    fn count(&mut self, said: Counts) {
        self.said.add(said);
    }
}

/// Counts of an answer, by the classes of its interface.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    read: Option<i64>,
    written: Option<i64>,
    /// Output tokens at the start.
    begun: Option<i64>,
    cached: Option<i64>,
    kept: Option<i64>,
    /// Part of `kept`.
    hour: Option<i64>,
}

impl Counts {
    /// Later counts are totals, and omit unchanged ones or repeat them as 0.
    fn add(&mut self, later: Self) {
        self.read = self.read.max(later.read);
        self.written = self.written.max(later.written);
        self.begun = self.begun.max(later.begun);
        self.cached = self.cached.max(later.cached);
        self.kept = self.kept.max(later.kept);
        self.hour = self.hour.max(later.hour);
    }

    /// Except for Anthropic, cache reads and writes are part of the input.
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

fn read(interface: Interface, event: &[u8]) -> Option<Counts> {
    // Most events contain no counts.
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
                let said = read_counts(interface, &begun);
                return Some(Counts { begun: said.written, written: None, ..said });
            }
            None => own(),
        },
        Interface::Gemini => within(&event, "usageMetadata"),
    };
    found.map(|found| read_counts(interface, &found))
}

/// Moonshot puts the counts of its last event into the choice.
fn of_choice<'a>(event: &Fields<'a>) -> Option<Fields<'a>> {
    let choices = event.raw("choices").filter(|raw| raw.len() <= bounds::TEXT)?;
    let choices: Vec<&RawValue> = muster_json::from_str(choices).ok()?;
    within(&Fields::read(choices.first()?.get().as_bytes())?, "usage")
}

/// A short nested object.
fn within<'a>(fields: &Fields<'a>, name: &str) -> Option<Fields<'a>> {
    fields.raw(name).filter(|raw| raw.len() <= bounds::TEXT).and_then(|raw| Fields::read(raw.as_bytes()))
}

fn read_counts(interface: Interface, found: &Fields<'_>) -> Counts {
    let number = |path: &str| number(found, path);
    let first = |paths: &[&str]| paths.iter().find_map(|path| number(path));
    let sum = |paths: &[&str]| paths.iter().filter_map(|path| number(path)).reduce(i64::saturating_add);
    match interface {
        Interface::Chat => Counts {
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
            ..Counts::default()
        },
        Interface::Responses => Counts {
            read: number("input_tokens"),
            written: number("output_tokens"),
            cached: number("input_tokens_details/cached_tokens"),
            kept: number("input_tokens_details/cache_write_tokens"),
            ..Counts::default()
        },
        Interface::Anthropic => {
            let parts = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"];
            let [short, hour] = parts.map(|part| number(&format!("cache_creation/{part}")));
            let both = short.max(hour).map(|_| short.unwrap_or(0) + hour.unwrap_or(0));
            Counts {
                read: number("input_tokens"),
                written: number("output_tokens"),
                cached: number("cache_read_input_tokens"),
                kept: number("cache_creation_input_tokens").max(both),
                hour,
                ..Counts::default()
            }
        }
        Interface::Gemini => Counts {
            read: sum(&["promptTokenCount", "toolUsePromptTokenCount"]),
            written: sum(&["candidatesTokenCount", "thoughtsTokenCount"]),
            cached: number("cachedContentTokenCount"),
            ..Counts::default()
        },
    }
}

/// Output tokens. xAI counts reasoning separately, visible only in the total; others include it.
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

/// A count at a path. An unreadable one doesn't hide others.
fn number(fields: &Fields<'_>, path: &str) -> Option<i64> {
    match path.split_once('/') {
        Some((outer, rest)) => number(&fields.within(outer)?, rest),
        None => count(&fields.value(path)?),
    }
}

/// Some write `1000.0` or `"1000"`.
fn count(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // The control plane's limit, far above any real count.
    (0.0..=100_000_000.0).contains(&number).then(|| number.ceil() as i64)
}

#[cfg(test)]
mod tests;
