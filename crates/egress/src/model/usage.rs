//! The tokens in an answer, by class, read while it passes. An event is kept until its end, and nothing else.

use muster_protocol::event::Usage;
use serde_json::Value;

use super::call::Interface;
use crate::{
    fields::{Fields, each},
    room::{Held, Room},
};

/// The longest line of a stream that is read, in bytes. Of longer ones nothing is counted.
const LONGEST_LINE: usize = 4 * 1024 * 1024;
/// The longest answer in one piece that is read, in bytes.
const LONGEST_WHOLE: usize = 16 * 1024 * 1024;

/// What is kept without asking for room, in bytes: most events are no longer.
const SMALL: usize = 4 * 1024;

/// Counts.
#[derive(Debug)]
pub struct Counter {
    interface: Interface,
    /// Whether the answer is a stream of events.
    pub is_stream: bool,
    kept: Vec<u8>,
    room: Room,
    held: Option<Held>,
    /// The line, or the answer, was too long, or there was no room for it.
    is_lost: bool,
    /// There was no room for something that may have been what it has cost.
    pub is_short: bool,
    usage: Usage,
    /// All bytes so far.
    pub bytes: usize,
}

impl Counter {
    /// For an answer of this kind.
    pub fn new(interface: Interface, is_stream: bool, room: Room) -> Self {
        let (kept, held, usage) = (Vec::new(), None, Usage::default());
        Self { interface, is_stream, kept, room, held, is_lost: false, is_short: false, usage, bytes: 0 }
    }

    /// Takes a piece of the answer.
    pub fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        if !self.is_stream {
            return self.keep(piece, LONGEST_WHOLE);
        }
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n' || *byte == b'\r') {
            self.keep(&rest[..end], LONGEST_LINE);
            self.line();
            rest = &rest[end + 1..];
        }
        self.keep(rest, LONGEST_LINE);
    }

    /// What the answer says it has cost, as far as it has arrived.
    pub fn usage(&mut self) -> Usage {
        if self.is_stream {
            self.line();
        } else if !self.is_lost {
            let whole = std::mem::take(&mut self.kept);
            // Gemini streams a list where nobody asks for events.
            if !each(&whole, |part| self.event(part)) {
                self.event(&whole);
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
            (self.kept, self.held) = (Vec::new(), None);
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

    fn line(&mut self) {
        let is_lost = std::mem::take(&mut self.is_lost);
        let mut kept = std::mem::take(&mut self.kept);
        // Most events count nothing, and need not be understood.
        let has_usage = |data: &[u8]| data.windows(5).any(|word| word == b"usage");
        if let Some(data) = kept.strip_prefix(b"data:".as_slice()).filter(|data| !is_lost && has_usage(data))
        {
            self.event(data);
        }
        kept.clear();
        self.kept = kept;
    }

    fn event(&mut self, event: &[u8]) {
        let Some(event) = Fields::read(event) else { return };
        let inner = |name: &str| event.within(name).and_then(|inner| inner.value("usage"));
        let found = match self.interface {
            Interface::Chat => event.value("usage"),
            Interface::Responses => inner("response").or_else(|| event.value("usage")),
            Interface::Anthropic => inner("message").or_else(|| event.value("usage")),
            Interface::Gemini => event.value("usageMetadata"),
        };
        let Some(found) = found.filter(Value::is_object) else { return };
        let number = |path: &str| found.pointer(path).and_then(Value::as_i64).map(|number| number.max(0));
        let read = match self.interface {
            Interface::Chat => {
                let cached =
                    number("/prompt_tokens_details/cached_tokens").or(number("/prompt_cache_hit_tokens"));
                classes(number("/prompt_tokens"), number("/completion_tokens"), cached)
            }
            Interface::Responses => {
                let cached = number("/input_tokens_details/cached_tokens");
                classes(number("/input_tokens"), number("/output_tokens"), cached)
            }
            Interface::Anthropic => Usage {
                input: number("/input_tokens"),
                output: number("/output_tokens"),
                cache_read: number("/cache_read_input_tokens"),
                cache_write: number("/cache_creation_input_tokens"),
                cost_micro: None,
            },
            Interface::Gemini => {
                let sum = |one: &str, other: &str| {
                    let both = [number(one), number(other)];
                    both.iter()
                        .any(Option::is_some)
                        .then(|| both.into_iter().flatten().fold(0, i64::saturating_add))
                };
                let input = sum("/promptTokenCount", "/toolUsePromptTokenCount");
                let output = sum("/candidatesTokenCount", "/thoughtsTokenCount");
                classes(input, output, number("/cachedContentTokenCount"))
            }
        };
        // Later counts are totals too, and leave out what they don't change.
        let usage = &mut self.usage;
        usage.input = read.input.or(usage.input);
        usage.output = read.output.or(usage.output);
        usage.cache_read = read.cache_read.or(usage.cache_read);
        usage.cache_write = read.cache_write.or(usage.cache_write);
    }
}

/// Where cached tokens are among those that were read.
fn classes(all: Option<i64>, output: Option<i64>, cached: Option<i64>) -> Usage {
    let input = all.map(|all| (all - cached.unwrap_or(0)).max(0));
    Usage { input, output, cache_read: cached, cache_write: None, cost_micro: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::of_host;

    /// Each answer is given in one piece, and byte by byte.
    fn count(interface: Interface, is_stream: bool, answer: &str) -> [Option<i64>; 4] {
        let counted = |size: usize| {
            let mut counter = Counter::new(interface, is_stream, Room::new(of_host()));
            answer.as_bytes().chunks(size).for_each(|piece| counter.take(piece));
            let Usage { input, output, cache_read, cache_write, .. } = counter.usage();
            [input, output, cache_read, cache_write]
        };
        assert_eq!(counted(1), counted(usize::MAX));
        counted(1)
    }

    #[test]
    fn every_interface_says_what_it_has_used() {
        let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"usage\"}}],\"usage\":null}\r\n\r\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\
            \"prompt_tokens_details\":{\"cached_tokens\":6}}}\n\ndata: [DONE]\n\n";
        assert_eq!(count(Interface::Chat, true, chat), [Some(4), Some(4), Some(6), None]);
        let whole = r#"{"usage":{"prompt_tokens":10,"completion_tokens":4}}"#;
        assert_eq!(count(Interface::Chat, false, whole), [Some(10), Some(4), None, None]);
        let responses = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":\
            {\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":2},\"output_tokens\":3}}}\n\n";
        assert_eq!(count(Interface::Responses, true, responses), [Some(7), Some(3), Some(2), None]);
        let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
            {\"input_tokens\":5,\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":11,\"output_tokens\":1}}}\n\n\
            data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":13}}\n\n";
        assert_eq!(count(Interface::Anthropic, true, anthropic), [Some(5), Some(13), Some(11), Some(7)]);
        let gemini = "data: {\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":1}}\n\n\
            data: {\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":2,\"thoughtsTokenCount\":3,\
            \"cachedContentTokenCount\":4}}";
        assert_eq!(count(Interface::Gemini, true, gemini), [Some(4), Some(5), Some(4), None]);
        let list = r#"[{"usageMetadata":{"promptTokenCount":1}},{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}]"#;
        assert_eq!(count(Interface::Gemini, false, list), [Some(1), Some(2), None, None]);
    }

    #[test]
    fn an_answer_without_room_is_not_kept() {
        let host = of_host();
        let room = Room::new(std::sync::Arc::clone(&host));
        let answer = format!(r#"{{"x":"{}","usage":{{"prompt_tokens":1}}}}"#, "x".repeat(2 * 1024 * 1024));
        let count = || {
            let mut counter = Counter::new(Interface::Chat, false, room.clone());
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
        assert_eq!(super::tests::count(Interface::Gemini, false, huge)[1], Some(i64::MAX));
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let mut counter = Counter::new(Interface::Chat, true, Room::new(of_host()));
        for _ in 0..10 {
            counter.take(&vec![b'x'; LONGEST_LINE / 4]);
            assert!(counter.kept.len() <= LONGEST_LINE);
        }
        counter.take(b"\ndata: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n");
        assert_eq!(counter.usage().input, Some(1));
    }
}
