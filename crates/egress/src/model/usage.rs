//! The tokens in an answer, by class, read while it passes. An event is kept until its end, and nothing else.
//!
//! A stream is read as the HTML standard has it: lines end with CR, LF or both, an event has one or several lines of data, and ends
//! with an empty line. The first byte tells a stream from JSON, not the head.

use muster_protocol::event::Usage;
use serde_json::Value;

use super::call::Interface;
use crate::{
    fields::{Fields, each},
    room::{Held, Room},
};

/// The longest event of a stream that is read, in bytes: what a model, or who plays one, can have the host keep. Of longer ones
/// nothing is counted.
const LONGEST_EVENT: usize = 4 * 1024 * 1024;
/// The longest answer in one piece that is read, in bytes.
const LONGEST_WHOLE: usize = 16 * 1024 * 1024;

/// What is kept without asking for room, in bytes: most events are no longer.
const SMALL: usize = 4 * 1024;

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
    usage: Usage,
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
            usage: Usage::default(),
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
            return self.keep(rest, LONGEST_WHOLE);
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
        self.usage
    }

    fn keep(&mut self, piece: &[u8], most: usize) {
        let (old, needed) = (self.kept.capacity(), self.kept.len() + piece.len());
        self.is_lost |= needed > most;
        if !self.is_lost && needed > old.max(SMALL) {
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

    /// Later counts are totals too, and leave out what they don't change.
    fn count(&mut self, read: Usage) {
        let usage = &mut self.usage;
        usage.input = read.input.or(usage.input);
        usage.output = read.output.or(usage.output);
        usage.cache_read = read.cache_read.or(usage.cache_read);
        usage.cache_write = read.cache_write.or(usage.cache_write);
    }
}

/// What an event says.
fn read(interface: Interface, event: &[u8]) -> Option<Usage> {
    // Most events count nothing, and need not be understood.
    if !event.windows(5).any(|word| word == b"usage") {
        return None;
    }
    let event = Fields::read(event)?;
    let inner = |name: &str| event.within(name).and_then(|inner| inner.value("usage"));
    let found = match interface {
        Interface::Chat => event.value("usage"),
        Interface::Responses => inner("response").or_else(|| event.value("usage")),
        Interface::Anthropic => inner("message").or_else(|| event.value("usage")),
        Interface::Gemini => event.value("usageMetadata"),
    };
    let found = found.filter(Value::is_object)?;
    let number = |path: &str| found.pointer(path).and_then(number);
    let first = |paths: &[&str]| paths.iter().find_map(|path| number(path));
    let sum = |paths: &[&str]| paths.iter().filter_map(|path| number(path)).reduce(i64::saturating_add);
    Some(match interface {
        Interface::Chat => classes(
            number("/prompt_tokens"),
            number("/completion_tokens"),
            first(&[
                "/prompt_tokens_details/cached_tokens",
                "/prompt_cache_hit_tokens",
                "/cache_read_input_tokens",
                "/cached_tokens",
            ]),
            first(&[
                "/prompt_tokens_details/cache_write_tokens",
                "/prompt_tokens_details/cache_creation_tokens",
                "/cache_creation_input_tokens",
            ]),
        ),
        Interface::Responses => classes(
            number("/input_tokens"),
            number("/output_tokens"),
            number("/input_tokens_details/cached_tokens"),
            number("/input_tokens_details/cache_write_tokens"),
        ),
        Interface::Anthropic => Usage {
            input: number("/input_tokens"),
            output: number("/output_tokens"),
            cache_read: number("/cache_read_input_tokens"),
            cache_write: number("/cache_creation_input_tokens").or_else(|| {
                sum(&[
                    "/cache_creation/ephemeral_5m_input_tokens",
                    "/cache_creation/ephemeral_1h_input_tokens",
                ])
            }),
            cost_micro: None,
        },
        Interface::Gemini => classes(
            sum(&["/promptTokenCount", "/toolUsePromptTokenCount"]),
            sum(&["/candidatesTokenCount", "/thoughtsTokenCount"]),
            number("/cachedContentTokenCount"),
            None,
        ),
    })
}

/// A count: some write `1000.0`, or `"1000"`.
fn number(value: &Value) -> Option<i64> {
    let rounded = |number: f64| number.is_finite().then(|| number.ceil() as i64);
    let number = match value {
        Value::Number(number) => number.as_i64().or_else(|| rounded(number.as_f64()?)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| rounded(text.parse().ok()?))
        }
        _ => None,
    };
    number.map(|number| number.max(0))
}

/// Where tokens read from a cache, and those written to it, are among those that were read.
fn classes(all: Option<i64>, output: Option<i64>, cached: Option<i64>, written: Option<i64>) -> Usage {
    let others = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let input = all.map(|all| all.saturating_sub(others).max(0));
    Usage { input, output, cache_read: cached, cache_write: written, cost_micro: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::of_host;

    /// Each answer is given in one piece, and byte by byte.
    fn count(interface: Interface, answer: &str) -> [Option<i64>; 4] {
        let counted = |size: usize| {
            let mut counter = Counter::new(interface, Room::new(of_host()));
            answer.as_bytes().chunks(size).for_each(|piece| counter.take(piece));
            let Usage { input, output, cache_read, cache_write, .. } = counter.usage();
            [input, output, cache_read, cache_write]
        };
        for size in [2, 3, usize::MAX] {
            assert_eq!(counted(1), counted(size), "in pieces of {size}: {answer:?}");
        }
        counted(1)
    }

    #[test]
    fn every_interface_says_what_it_has_used() {
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"usage\"}}],\"usage\":null}\r\n\r\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\
            \"prompt_tokens_details\":{\"cached_tokens\":6}}}\n\ndata: [DONE]\n\n";
        assert_eq!(count(Interface::Chat, chat), [Some(4), Some(4), Some(6), None]);
        let whole = r#"{"usage":{"prompt_tokens":10,"completion_tokens":4}}"#;
        assert_eq!(count(Interface::Chat, whole), [Some(10), Some(4), None, None]);
        let responses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":\
            {\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":2},\"output_tokens\":3}}}\n\n";
        assert_eq!(count(Interface::Responses, responses), [Some(7), Some(3), Some(2), None]);
        let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
            {\"input_tokens\":5,\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":11,\"output_tokens\":1}}}\n\n\
            data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":13}}\n\n";
        assert_eq!(count(Interface::Anthropic, anthropic), [Some(5), Some(13), Some(11), Some(7)]);
        let gemini = "data: {\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":1}}\n\n\
            data: {\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":2,\"thoughtsTokenCount\":3,\
            \"cachedContentTokenCount\":4}}";
        assert_eq!(count(Interface::Gemini, gemini), [Some(4), Some(5), Some(4), None]);
        let list = r#"[{"usageMetadata":{"promptTokenCount":1}},{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}]"#;
        assert_eq!(count(Interface::Gemini, list), [Some(1), Some(2), None, None]);
    }

    /// What every framing below says: 400 read, 200 written, 600 from a cache.
    const SAID: [Option<i64>; 4] = [Some(400), Some(200), Some(600), None];

    #[test]
    fn a_stream_is_counted_however_it_is_framed() {
        let usage =
            r#"{"prompt_tokens":1000,"completion_tokens":200,"prompt_tokens_details":{"cached_tokens":600}}"#;
        let event = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let hi = r#"{"choices":[{"delta":{"content":"usage"}}],"usage":null}"#;
        let pretty = event.replace(",\"", ",\n\"");
        let lines = |name: &str, end: &str| {
            pretty.lines().map(|line| format!("{name}{line}{end}")).collect::<String>()
        };
        for end in ["\n", "\r\n", "\r"] {
            for name in ["data: ", "data:"] {
                let blank = format!("{end}{end}");
                let begun = format!("{name}{hi}{blank}");
                for answer in [
                    format!("{begun}{name}{event}{blank}{name}[DONE]{blank}"),
                    format!(
                        "{begun}: a comment{blank}event: x{end}id: 7{end}{name}{event}{end}retry: 1{blank}"
                    ),
                    format!("{begun}{}{end}{name}[DONE]{blank}", lines(name, end)),
                    format!("{begun}{}", lines(name, end)),
                    format!("\u{feff}{name}{event}{blank}"),
                    format!("\u{feff}{end}{begun}{name}{event}"),
                    format!("{name}{hi}{end}{name}{event}{end}{name}[DONE]{end}"),
                    format!("{begun}data{end}{name}{event}{blank}"),
                ] {
                    assert_eq!(count(Interface::Chat, &answer), SAID, "{answer:?}");
                }
            }
        }
        for whole in [event.clone(), format!("\u{feff}{event}"), format!("\r\n {event}\n"), pretty.clone()] {
            assert_eq!(count(Interface::Chat, &whole), SAID, "{whole:?}");
        }
    }

    #[test]
    fn counts_are_numbers_however_they_are_written() {
        for (all, cached) in
            [("1000.0", "600.0"), ("\"1000\"", "\"600\""), ("1e3", "6e2"), ("999.5", "\"600.0\"")]
        {
            let usage = format!(
                r#"{{"prompt_tokens":{all},"completion_tokens":200.0,"prompt_tokens_details":{{"cached_tokens":{cached}}}}}"#
            );
            let event = format!("data: {{\"usage\":{usage}}}\n\n");
            assert_eq!(count(Interface::Chat, &event), SAID, "{event}");
        }
        let odd = r#"{"usage":{"prompt_tokens":-5,"completion_tokens":"many","prompt_tokens_details":{"cached_tokens":[1]}}}"#;
        assert_eq!(count(Interface::Chat, odd), [Some(0), None, None, None]);
    }

    #[test]
    fn tokens_written_to_a_cache_are_a_class_of_their_own() {
        let chat = |usage: &str| count(Interface::Chat, &format!("{{\"usage\":{usage}}}"));
        let expected = [Some(300), Some(200), Some(600), Some(100)];
        for usage in [
            r#"{"prompt_tokens":1000,"completion_tokens":200,"prompt_tokens_details":{"cached_tokens":600,"cache_write_tokens":100}}"#,
            r#"{"prompt_tokens":1000,"completion_tokens":200,"cache_read_input_tokens":600,"cache_creation_input_tokens":100}"#,
        ] {
            assert_eq!(chat(usage), expected, "{usage}");
        }
        let responses = r#"{"usage":{"input_tokens":1000,"output_tokens":200,"input_tokens_details":{"cached_tokens":600,"cache_write_tokens":100}}}"#;
        assert_eq!(count(Interface::Responses, responses), expected);
        let anthropic = r#"{"usage":{"input_tokens":300,"output_tokens":200,"cache_read_input_tokens":600,"cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":40}}}"#;
        assert_eq!(count(Interface::Anthropic, anthropic), expected);
    }

    #[test]
    fn an_answer_without_room_is_not_kept() {
        let host = of_host();
        let room = Room::new(std::sync::Arc::clone(&host));
        let answer = format!(r#"{{"x":"{}","usage":{{"prompt_tokens":1}}}}"#, "x".repeat(2 * 1024 * 1024));
        let count = || {
            let mut counter = Counter::new(Interface::Chat, room.clone());
            answer.as_bytes().chunks(1000).for_each(|piece| counter.take(piece));
            counter.usage().input
        };
        assert_eq!(count(), Some(1));
        let free = host.available_permits();
        let held = room.try_take(free * 1024 / 4 - 1024 * 1024).unwrap();
        assert_eq!(count(), None);
        drop(held);
        assert_eq!((count(), host.available_permits()), (Some(1), free), "nothing is held afterwards");
        let huge = r#"{"usageMetadata":{"candidatesTokenCount":9223372036854775807,"thoughtsTokenCount":1}}"#;
        assert_eq!(super::tests::count(Interface::Gemini, huge)[1], Some(i64::MAX));
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let mut counter = Counter::new(Interface::Chat, Room::new(of_host()));
        for _ in 0..10 {
            counter.take(&vec![b'x'; LONGEST_EVENT / 4]);
            assert!(counter.kept.len() <= LONGEST_EVENT);
        }
        counter.take(b"\ndata: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n");
        assert_eq!(counter.usage().input, Some(1));
    }
}
