//! Malformed input, and limits on the stored state of an agent.

use muster_protocol::{Event, FromHost};

use super::*;
use crate::agent::Record;

#[test]
fn malformed_lines_are_counted_and_unknown_requests_answered() {
    let mut script = Script::prompted();
    for line in ["", "no JSON", "[1]", "{\"jsonrpc\":\"2.0\"", "\u{fffd}"] {
        script.raw(line);
    }
    script.says(&json!({ "method": "_auth/status_update", "params": {} }));
    script.says(&json!({ "id": "9.9", "result": {} }));
    assert_eq!((script.machine.garbage, script.machine.unknown), (5, 2));
    script.says(&json!({ "id": 4, "method": "fs/read_text_file", "params": {} }));
    script.says(&json!({ "id": 5, "method": "session/request_permission", "params": { "sessionId": 1 } }));
    let codes: Vec<Value> = script.written().iter().map(|line| line["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!(-32601), json!(-32602)]);
    assert!(script.fx.events.is_empty());
}

#[test]
fn a_long_name_of_a_tool_call_is_cut() {
    let mut script = Script::prompted();
    let name = "x".repeat(1_100_000);
    script
        .update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": name, "status": "in_progress" }));
    script.asks(&json!(1), &json!({ "toolCallId": name }));
    assert!(matches!(script.messages()[..], [Content::ToolCall { .. }]));
    assert!(matches!(script.fx.events.last(), Some(HostEvent::Asked(_))));
    script.assert_small();
}

#[test]
fn too_many_questions_are_not_kept() {
    let mut script = Script::prompted();
    for number in 0..MAX_OPEN + 5 {
        script.asks(&json!(number), &json!({ "toolCallId": format!("t{number}"), "title": "Run" }));
    }
    let asked = script.fx.events.iter().filter(|event| matches!(event, HostEvent::Asked(_))).count();
    assert_eq!(asked, MAX_OPEN);
    assert_eq!(script.written().len(), 5, "the others are refused at once");
}

impl Script {
    /// Feeds a line without the journal.
    fn writes(&mut self, line: &Value) {
        self.machine.line(self.machine.read + 1, line.to_string().as_bytes(), &mut self.fx);
    }

    /// Size of the stored state in bytes.
    fn size(&self) -> usize {
        serde_json::to_vec(&self.machine).unwrap().len()
    }
}

fn tool_call(name: &str, input: &str) -> Value {
    json!({ "method": "session/update", "params": { "sessionId": "s", "update": {
        "sessionUpdate": "tool_call", "toolCallId": name, "title": "Run", "rawInput": { "a": input } } } })
}

#[test]
fn tool_calls_that_never_end_are_forgotten() {
    let mut script = Script::prompted();
    for number in 0..1500 {
        script.writes(&tool_call(&format!("t{number}"), "x"));
        assert!(script.machine.conversations[&1].tools.len() <= 1000);
    }
    assert_eq!(script.messages().len(), 1500, "each is reported");
    let mut script = Script::prompted();
    for number in 0..30 {
        script.writes(&tool_call(&format!("t{number}"), &"x".repeat(LONGEST_VALUE - 100)));
    }
    assert!(script.size() < 3 << 20, "{} bytes", script.size());
    let mut script = Script::prompted();
    let name = "x".repeat(1 << 20);
    script.writes(&tool_call(&name, "x"));
    script.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": name, "status": "completed" }));
    assert!(matches!(script.messages()[..], [Content::ToolCall { .. }, Content::ToolResult { .. }]));
    assert!(script.size() < 16 << 10, "{} bytes", script.size());
}

#[test]
fn state_kept_for_an_agent_is_bounded() {
    let mut script = Script::prompted();
    let long = "x".repeat(1 << 20);
    script.writes(&json!({ "id": 1, "method": "session/request_permission", "params": { "sessionId": "s",
        "toolCall": { "toolCallId": "t", "title": "Run" },
        "options": [{ "optionId": long, "name": "Once", "kind": "allow_once" }] } }));
    assert!(
        matches!(script.fx.events.last(), Some(HostEvent::Asked(_))),
        "what can't be kept hides no question"
    );
    script.writes(&json!({ "id": 2, "method": "elicitation/create", "params": { "mode": "form", "sessionId": "s",
        "message": "?", "requestedSchema": { "type": "object", "properties": { long.as_str(): { "type": "string" } } } } }));
    assert_eq!(script.written()[0]["result"], json!({ "action": "decline" }));
    let option = |id: &str, value: &str| {
        json!({ "id": id, "name": "M", "category": "model", "type": "select", "currentValue": value,
            "options": [{ "value": value, "name": "L" }, { "value": "small", "name": "S" }] })
    };
    for option in [option("model", &long), option(&long, "small")] {
        script.writes(&json!({ "method": "session/update", "params": { "sessionId": "s",
            "update": { "sessionUpdate": "config_option_update", "configOptions": [option] } } }));
    }
    assert!(script.size() < 16 << 10, "{} bytes", script.size());
    for number in 0..5000 {
        script.writes(&json!({ "id": number, "method": "fs/read_text_file", "params": {} }));
    }
    assert!(script.machine.lines.len() <= 1000, "an agent that reads nothing is not answered forever");
}

/// Nested lists.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| json!([inner]))
}

impl Script {
    /// Asserts that state and events can be read again, by both sides.
    fn assert_readable(&mut self) {
        let record = Record { machine: std::mem::take(&mut self.machine), ..Record::new(1) };
        muster_json::from_slice::<Record>(&record.to_bytes()).expect("the record can be read");
        self.machine = record.machine;
        for what in &self.fx.events {
            let event = Event { seq: 1, agent_id: 1, generation: 3, at: 5, what: what.clone() };
            let kept = serde_json::to_vec(&event).unwrap();
            assert_eq!(muster_json::from_slice::<Event>(&kept).expect("the journal can be read"), event);
            let frame = FromHost::Event(event);
            let sent = serde_json::to_string(&frame).unwrap();
            assert_eq!(muster_json::from_str::<FromHost>(&sent).expect("the frame can be read"), frame);
        }
    }
}

#[test]
fn too_deeply_nested_input_is_reported_as_text_and_not_asked() {
    // The last one is at the limit of a readable line.
    for levels in [DEEPEST - 1, DEEPEST, DEEPEST + 1, 121, 125] {
        let (value, is_whole) = (nested(levels), levels <= DEEPEST);
        let mut script = Script::prompted();
        let call =
            json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "rawInput": value });
        let change = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
            "rawOutput": value });
        script.update(&call);
        script.update(&change);
        for number in 1..=2 {
            // A second request about the same call.
            script.asks(&json!(number), &json!({ "toolCallId": "p", "title": "Run", "rawInput": value }));
        }
        script.assert_readable();
        let messages = script.messages();
        let [
            Content::ToolCall { input: called, .. },
            Content::ToolResult { output, .. },
            Content::ToolCall { input: asked, .. },
        ] = messages[..]
        else {
            panic!("{levels}: {messages:?}")
        };
        let cut =
            json!({ "truncated": true, "bytes": value.to_string().len(), "beginning": value.to_string() });
        for told in [called, output, asked] {
            assert_eq!(told, if is_whole { &value } else { &cut }, "{levels}");
        }
        let is_asked = matches!(script.fx.events.last(), Some(HostEvent::Asked(_)));
        assert_eq!(is_asked, is_whole, "{levels}");
        let refused = script.written().pop().map(|line| line["error"]["code"].clone());
        assert_eq!(refused, (!is_whole).then(|| json!(-32602)), "{levels}");
    }
}

#[test]
fn extra_fields_of_question_options_are_dropped() {
    let mut script = Script::prompted();
    script.says(&json!({ "id": 1, "method": "session/request_permission", "params": { "sessionId": "s",
        "toolCall": { "toolCallId": "t", "title": "Run" },
        "options": [{ "optionId": "once", "name": "Once", "kind": "allow_once", "_meta": { "a": nested(122) } }] } }));
    assert!(matches!(script.fx.events.last(), Some(HostEvent::Asked(_))), "{:?}", script.fx.events);
    script.assert_readable();
    assert_eq!(script.machine.verdict("3.h1", true), DecisionEffect::Said);
    assert_eq!(script.written().pop().unwrap()["result"]["outcome"]["optionId"], "once");
}

/// Law: no line of an agent crashes the process, even on a stack as small as a worker's.
#[test]
fn no_line_of_an_agent_ends_its_host() {
    let law = |size: usize| {
        let mut script = Script::prompted();
        let nests =
            ["[", "{\"a\":", "[{\"content\":", "{\"params\":["].map(|open| open.repeat(size / open.len()));
        let whole = ["[", "{\"a\":"].map(|open| {
            let (levels, close) = (size / 2 / open.len(), if open == "[" { "]" } else { "}" });
            format!("{}1{}", open.repeat(levels), close.repeat(levels))
        });
        let tokens =
            ["a", "\\u0061", "1", "\u{feff}", "\0", " "].map(|token| token.repeat(size / token.len()));
        for text in nests.iter().chain(&whole).chain(&tokens) {
            let quoted = Value::from(text.as_str());
            for value in [text.clone(), quoted.to_string()] {
                for line in [
                    value.clone(),
                    format!(r#"{{"id":{value},"method":"session/request_permission","params":{value}}}"#),
                    format!(r#"{{"method":{value},"params":{value}}}"#),
                    format!(r#"{{"id":"3.50","result":{value}}}"#),
                    format!(
                        r#"{{"id":1,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t","rawInput":{value}}},"options":[{value}]}}}}"#
                    ),
                    format!(
                        r#"{{"id":2,"method":"elicitation/create","params":{{"sessionId":"s","mode":"form","message":{value},"requestedSchema":{value}}}}}"#
                    ),
                    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{value}}}}}"#),
                    format!(
                        r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{value}}}}}}}"#
                    ),
                    format!(
                        r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"t","title":"t","rawOutput":{value}}}}}}}"#
                    ),
                ] {
                    script.machine.line(script.machine.read + 1, line.as_bytes(), &mut script.fx);
                }
            }
        }
        script.assert_small();
    };
    for size in [1024, 64 * 1024, 1024 * 1024] {
        std::thread::Builder::new()
            .stack_size(2 * 1024 * 1024)
            .spawn(move || law(size))
            .unwrap()
            .join()
            .unwrap();
    }
}
