//! Counts in the providers' formats.

use super::*;
use crate::memory::of_host;

/// Feeds each answer in one piece, and byte by byte.
fn count(interface: Interface, answer: &str) -> [Option<i64>; 4] {
    let counted = |size: usize| {
        let mut counter = Counter::new(interface, MemoryBudget::new(of_host()));
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

/// The counts of every framing below: 400 read, 200 written, 600 from a cache.
const SAID: [Option<i64>; 4] = [Some(400), Some(200), Some(600), None];

#[test]
fn a_stream_is_counted_however_it_is_framed() {
    let usage =
        r#"{"prompt_tokens":1000,"completion_tokens":200,"prompt_tokens_details":{"cached_tokens":600}}"#;
    let event = format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let hi = r#"{"choices":[{"delta":{"content":"usage"}}],"usage":null}"#;
    let pretty = event.replace(",\"", ",\n\"");
    let lines =
        |name: &str, end: &str| pretty.lines().map(|line| format!("{name}{line}{end}")).collect::<String>();
    for end in ["\n", "\r\n", "\r"] {
        for name in ["data: ", "data:"] {
            let blank = format!("{end}{end}");
            let begun = format!("{name}{hi}{blank}");
            for answer in [
                format!("{begun}{name}{event}{blank}{name}[DONE]{blank}"),
                format!("{begun}: a comment{blank}event: x{end}id: 7{end}{name}{event}{end}retry: 1{blank}"),
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
}

#[test]
fn a_count_that_can_not_be_read_is_none_and_hides_no_other() {
    for odd in [
        "-5",
        "\"many\"",
        "[1]",
        "{}",
        "null",
        "true",
        "1e400",
        "1e9",
        "9223372036854775807",
        "18446744073709551616",
        "\"\"",
        "\"inf\"",
        "\"NaN\"",
        "\"1,000\"",
        "100000000.5",
    ] {
        let usage = format!(
            r#"{{"usage":{{"prompt_tokens":{odd},"completion_tokens":200,"prompt_tokens_details":{{"cached_tokens":{odd}}}}}}}"#
        );
        assert_eq!(count(Interface::Chat, &usage), [None, Some(200), None, None], "{odd}");
    }
    for (odd, read) in [("-0.0", 0), ("0", 0), ("\" +7 \"", 7), ("100000000", 100_000_000), ("1E2", 100)] {
        let usage = format!(r#"{{"usage":{{"prompt_tokens":{odd}}}}}"#);
        assert_eq!(count(Interface::Chat, &usage)[0], Some(read), "{odd}");
    }
}

#[test]
fn of_several_counts_the_largest_is_the_total() {
    let stream =
        |events: &[&str]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    let begun = r#"{"type":"message_start","message":{"usage":{"input_tokens":300,"cache_read_input_tokens":600,"output_tokens":1}}}"#;
    for ended in [
        r#"{"usage":{"output_tokens":200}}"#,
        r#"{"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":200}}"#,
        r#"{"usage":{"input_tokens":null,"cache_read_input_tokens":600,"output_tokens":200}}"#,
        r#"{"usage":{"input_tokens":300,"output_tokens":"200"}}"#,
    ] {
        let expected = [Some(300), Some(200), Some(600), None];
        assert_eq!(count(Interface::Anthropic, &stream(&[begun, ended])), expected, "{ended}");
        assert_eq!(count(Interface::Anthropic, &stream(&[ended, begun])), expected, "{ended}");
    }
    let first = r#"{"usage":{"prompt_tokens":1000,"completion_tokens":1}}"#;
    let second = r#"{"usage":{"prompt_tokens":1000,"completion_tokens":200,"prompt_tokens_details":{"cached_tokens":600}}}"#;
    for events in
        [[first, second], [second, first], [second, r#"{"usage":null}"#], [second, r#"{"usage":{}}"#]]
    {
        assert_eq!(count(Interface::Chat, &stream(&events)), SAID, "{events:?}");
    }
}

#[test]
fn initial_counts_are_not_final() {
    let begun = r#"data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":3}}}"#;
    let mut counter = Counter::new(Interface::Anthropic, MemoryBudget::new(of_host()));
    counter.take(format!("{begun}\n\ndata: {{\"type\":\"error\"}}\n\n").as_bytes());
    assert_eq!((counter.usage().input, counter.usage().output, counter.begun()), (Some(5), None, Some(3)));
}

#[test]
fn counts_are_found_where_others_put_them() {
    let usage = r#"{"prompt_tokens":1000,"completion_tokens":200,"cached_tokens":600}"#;
    for event in [
        format!(r#"{{"choices":[{{"delta":{{}},"usage":{usage}}}]}}"#),
        format!(r#"{{"choices":[{{}}],"usage":null,"x_groq":{{"id":"x","usage":{usage}}}}}"#),
        r#"{"usage":{"input_tokens":1000,"output_tokens":200,"cached_tokens":600}}"#.to_owned(),
    ] {
        assert_eq!(count(Interface::Chat, &event), SAID, "{event}");
        assert_eq!(count(Interface::Chat, &format!("data:{event}\r\r")), SAID, "{event}");
    }
}

#[test]
fn hour_and_five_minute_caches_are_distinguished() {
    for (usage, kept, hour) in [
        (r#"{"cache_creation_input_tokens":100}"#, Some(100), None),
        (r#"{"cache_creation":{"ephemeral_5m_input_tokens":100}}"#, Some(100), None),
        (
            r#"{"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":40}}"#,
            Some(100),
            Some(40),
        ),
        (
            r#"{"cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":"40"}}"#,
            Some(100),
            Some(40),
        ),
        (r#"{"cache_creation":null,"cache_creation_input_tokens":0}"#, Some(0), None),
    ] {
        let mut counter = Counter::new(Interface::Anthropic, MemoryBudget::new(of_host()));
        counter.take(format!("{{\"usage\":{usage}}}").as_bytes());
        assert_eq!((counter.usage().cache_write, counter.cache_hour()), (kept, hour), "{usage}");
    }
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
    let memory = MemoryBudget::new(std::sync::Arc::clone(&host));
    let answer = format!(r#"{{"x":"{}","usage":{{"prompt_tokens":1}}}}"#, "x".repeat(2 * 1024 * 1024));
    let count = || {
        let mut counter = Counter::new(Interface::Chat, memory.clone());
        answer.as_bytes().chunks(1000).for_each(|piece| counter.take(piece));
        counter.usage().input
    };
    assert_eq!(count(), Some(1));
    let free = host.available_permits();
    let held = memory.try_take(free * 1024 / 4 - 1024 * 1024).unwrap();
    assert_eq!(count(), None);
    drop(held);
    assert_eq!((count(), host.available_permits()), (Some(1), free), "nothing is held afterwards");
}

#[test]
fn an_endless_line_is_not_kept() {
    let mut counter = Counter::new(Interface::Chat, MemoryBudget::new(of_host()));
    for _ in 0..10 {
        counter.take(&vec![b'x'; LONGEST_EVENT / 4]);
        assert!(counter.kept.len() <= LONGEST_EVENT);
    }
    counter.take(b"\ndata: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n");
    assert_eq!(counter.usage().input, Some(1));
}
