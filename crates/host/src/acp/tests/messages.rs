//! The agent's output as messages.

use super::*;

fn text(text: &str) -> Content {
    Content::Text { text: text.to_owned() }
}

#[test]
fn chunks_end_at_a_change_of_kind_or_name_and_at_the_end() {
    let mut script = Script::prompted();
    script.chunk("agent_thought_chunk", "Hm", None);
    script.chunk("agent_thought_chunk", "m", None);
    script.chunk("agent_message_chunk", "A", Some("1"));
    script.chunk("agent_message_chunk", "b", Some("1"));
    script.chunk("agent_message_chunk", "C", Some("2"));
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    let thinking = Content::Thinking { text: "Hmm".to_owned() };
    assert_eq!(script.messages(), [&thinking, &text("Ab"), &text("C")]);
    assert_eq!(script.end().outcome, TurnOutcome::Done);
    let offsets: Vec<usize> = script.fx.pieces.iter().map(|piece| piece.offset).collect();
    assert_eq!(offsets, [0, 2, 0, 1, 0]);
}

#[test]
fn a_long_text_is_cut_into_messages_without_losing_a_byte() {
    let mut script = Script::prompted();
    let long = "ä".repeat(LONGEST_TEXT);
    script.chunk("agent_message_chunk", "x", None);
    script.chunk("agent_message_chunk", &long, None);
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    let texts = script.messages().into_iter().map(|content| match content {
        Content::Text { text } => text.clone(),
        other => panic!("{other:?}"),
    });
    let texts: Vec<String> = texts.collect();
    assert!(texts.len() == 3 && texts.iter().all(|text| text.len() <= LONGEST_TEXT));
    assert_eq!(texts.concat(), format!("x{long}"));
    let keys: std::collections::BTreeSet<&str> =
        script.fx.pieces.iter().map(|piece| piece.key.as_str()).collect();
    assert_eq!(keys.len(), 3);
}

#[test]
fn a_tool_call_and_its_result_are_reported_once_each() {
    let mut script = Script::prompted();
    script.update(
        &json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "List", "kind": "execute",
        "status": "pending", "rawInput": {} }),
    );
    assert!(script.messages().is_empty());
    for _ in 0..2 {
        script.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "name": "bash",
            "rawInput": { "command": "ls" } }));
    }
    for _ in 0..2 {
        script.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed",
            "content": [{ "type": "content", "content": { "type": "text", "text": "none" } }] }));
    }
    let call = Content::ToolCall {
        tool: "bash".to_owned(),
        call_id: "t".to_owned(),
        input: json!({ "command": "ls" }),
    };
    let result = Content::ToolResult { call_id: "t".to_owned(), output: json!("none"), is_error: true };
    assert_eq!(script.messages(), [&call, &result]);
}

#[test]
fn a_line_is_read_once() {
    let mut script = Script::prompted();
    script.chunk("agent_message_chunk", "A", None);
    let (read, before) = (script.machine.read, script.fx.pieces.len());
    let again = json!({ "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "A" } } } });
    script.machine.line(read, again.to_string().as_bytes(), &mut script.fx);
    assert_eq!(script.fx.pieces.len(), before);
}

#[test]
fn texts_and_values_are_cut_between_characters() {
    assert_eq!(floor_boundary("aäb", 2), 1);
    assert_eq!((short("äöü", 2), short("äöü", 3)), ("äö…".to_owned(), "äöü".to_owned()));
    let large = fit_event(Value::String("ä".repeat(LONGEST_VALUE)));
    assert_eq!(large["truncated"], true);
    assert!(large.to_string().len() < LONGEST_VALUE);
}
