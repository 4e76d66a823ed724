//! The machine alone, on lines as agents write them.

use std::iter;

use agent_client_protocol_schema::v1::{ContentBlock, TextContent};
use muster_protocol::{
    event::{Asked, Content, TurnEnd, TurnOutcome},
    plan::Decision,
};
use serde_json::json;

use super::*;

mod choices;
mod forms;
mod sessions;

/// An agent as a script: lines in, happenings and lines out.
struct Script {
    machine: Machine,
    fx: Effects,
    /// What the conversation's next turn says about it.
    instructions: String,
    /// The last line for the agent that was looked at.
    looked: u64,
}

impl Script {
    /// An agent that has answered the handshake with these capabilities.
    fn new(capabilities: &Value) -> Self {
        let (machine, fx) = (Machine::of(3, IndexMap::new()), Effects::default());
        let mut script = Self { machine, fx, instructions: String::new(), looked: 0 };
        script.machine.greet();
        assert_eq!(script.written()[0]["params"]["clientCapabilities"]["elicitation"], json!({ "form": {} }));
        script.says(
            &json!({ "id": "3.init", "result": { "protocolVersion": 1, "agentCapabilities": capabilities,
            "agentInfo": { "name": "scripted", "version": "2" } } }),
        );
        assert_eq!(script.fx.greeted.take(), Some(Ok(Some("scripted 2".to_owned()))));
        script
    }

    fn plain() -> Self {
        Self::new(&json!({ "loadSession": true, "sessionCapabilities": { "resume": {}, "close": {} } }))
    }

    /// The agent writes a line. The machine goes through the journal in between, as after a crash.
    fn says(&mut self, line: &Value) {
        self.raw(&line.to_string());
    }

    fn raw(&mut self, line: &str) {
        let kept = serde_json::to_vec(&self.machine).unwrap();
        self.machine = serde_json::from_slice(&kept).unwrap();
        self.machine.line(self.machine.read + 1, line.as_bytes(), &mut self.fx);
    }

    fn update(&mut self, update: &Value) {
        self.says(&json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s", "update": update } }));
    }

    fn chunk(&mut self, kind: &str, text: &str, id: Option<&str>) {
        let mut update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        if let Some(id) = id {
            update["messageId"] = id.into();
        }
        self.update(&update);
    }

    fn turn(&mut self, turn_id: i64, session: Option<&str>) {
        let turn = Turn {
            turn_id,
            command_id: turn_id * 10,
            conversation_id: 1,
            session: session.map(str::to_owned),
            instructions: self.instructions.clone(),
            prompt: vec![ContentBlock::Text(TextContent::new("Hi"))],
        };
        self.machine.begin(turn, &mut self.fx);
    }

    /// A turn in a new session, up to its prompt.
    fn prompted() -> Self {
        let mut script = Self::plain();
        script.turn(5, None);
        script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s" } }));
        let written = script.written();
        assert_eq!((&written[1]["method"], &written[1]["id"]), (&"session/prompt".into(), &"3.50".into()));
        script.fx.events.clear();
        script
    }

    /// What was written to the agent since the last look. Openings of sessions are shown as what they are for.
    fn written(&mut self) -> Vec<Value> {
        let lines: Vec<Line> = self.machine.lines(self.looked).cloned().collect();
        self.looked = lines.last().map_or(self.looked, |line| line.seq);
        let shown = lines.into_iter().map(|line| match line.text {
            Text::Plain(text) => serde_json::from_str(&text).unwrap(),
            Text::Session { id, opening, .. } => json!({ "id": id, "opening": opening }),
        });
        shown.collect()
    }

    fn messages(&self) -> Vec<&Content> {
        let messages = self.fx.events.iter().filter_map(|event| match event {
            Happening::Message(message) => Some(&message.content),
            _ => None,
        });
        messages.collect()
    }

    fn end(&self) -> &TurnEnd {
        let mut ends = self.fx.events.iter().filter_map(|event| match event {
            Happening::TurnEnded(end) => Some(end),
            _ => None,
        });
        ends.next_back().unwrap()
    }

    /// Everything that is reported fits into a frame.
    fn assert_small(&self) {
        for event in &self.fx.events {
            let bytes = serde_json::to_vec(event).unwrap().len();
            assert!(bytes < muster_protocol::LARGEST_FRAME, "{bytes} bytes");
        }
    }

    fn asks(&mut self, id: &Value, call: &Value) {
        let options = json!([
            { "optionId": "ever", "name": "Always", "kind": "allow_always" },
            { "optionId": "once", "name": "Once", "kind": "allow_once" },
            { "optionId": "once2", "name": "Once more", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        self.says(&json!({ "id": id, "method": "session/request_permission",
            "params": { "sessionId": "s", "toolCall": call, "options": options } }));
    }
}

fn text(text: &str) -> Content {
    Content::Text { text: text.to_owned() }
}

#[test]
fn chunks_become_messages_at_a_change_of_kind_or_name_and_at_the_end() {
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
fn a_tool_call_is_told_once_it_has_its_input_and_its_result_once() {
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
fn permission_is_chosen_once_and_never_for_ever() {
    for (decision, chosen) in [
        (Decision::Approved { comment: None }, "once"),
        (Decision::Denied { comment: None }, "no"),
        (Decision::Closed { reason: String::new() }, "no"),
    ] {
        let mut script = Script::prompted();
        script.asks(&json!(0), &json!({ "toolCallId": "pending", "title": "Run", "rawInput": { "a": 1 } }));
        let Some(Happening::Asked(request)) = script.fx.events.last() else {
            panic!("{:?}", script.fx.events)
        };
        assert_eq!((request.request.as_str(), request.turn_id), ("3.h1", Some(5)));
        assert!(matches!(script.messages()[..], [Content::ToolCall { .. }]), "the first to mention the call");
        assert_eq!(script.machine.decide("3.h1", &decision, Some(9)), Answered::Said);
        let answer = script.written().pop().unwrap();
        assert_eq!((&answer["id"], &answer["result"]["outcome"]["optionId"]), (&json!(0), &chosen.into()));
        script.fx.events.clear();
        script.machine.took(100, &mut script.fx);
        let delivered = Happening::Delivered { approval_id: 9, without_text: false };
        assert_eq!(script.fx.events, [delivered], "when the agent has it");
        assert_eq!(script.machine.decide("3.h1", &decision, Some(9)), Answered::NotWaiting);
    }
}

#[test]
fn a_decision_reaches_what_was_decided_though_the_agent_uses_a_name_again() {
    let mut script = Script::prompted();
    let ask = |script: &mut Script, title: &str| {
        script.asks(&json!(5), &json!({ "toolCallId": title, "title": title }));
        match script.fx.events.last() {
            Some(Happening::Asked(request)) => request.request.clone(),
            other => panic!("{other:?}"),
        }
    };
    let harmless = ask(&mut script, "Read");
    script.says(&json!({ "method": "$/cancel_request", "params": { "requestId": 5 } }));
    let harmful = ask(&mut script, "Wipe");
    assert_eq!(script.machine.verdict(&harmless, true), Answered::NotWaiting);
    assert_eq!(script.machine.verdict(&harmful, false), Answered::Said);
    assert_eq!(script.written().pop().unwrap()["result"]["outcome"]["optionId"], "no");
    assert_ne!(ask(&mut script, "Read on"), harmful, "a name may be used again once it was answered");
}

#[test]
fn an_input_that_nobody_could_read_whole_is_not_allowed() {
    let mut script = Script::prompted();
    let input = json!({ "pad": "x".repeat(LONGEST_VALUE), "command": "rm -rf /" });
    script.asks(&json!(1), &json!({ "toolCallId": "t", "title": "Run", "rawInput": input }));
    assert_eq!(script.written().pop().unwrap()["error"]["code"], -32602);
    assert!(!script.fx.events.iter().any(|event| matches!(event, Happening::Asked(_))));
}

#[test]
fn questions_that_share_a_name_are_different_calls_if_their_input_differs() {
    let mut script = Script::prompted();
    for number in 1..=2 {
        script.asks(
            &json!(number),
            &json!({ "toolCallId": "pending", "title": "Run", "rawInput": { "n": number } }),
        );
    }
    let calls = script.messages().into_iter().map(|content| match content {
        Content::ToolCall { call_id, input, .. } => (call_id.clone(), input["n"].clone()),
        other => panic!("{other:?}"),
    });
    let calls: Vec<_> = calls.collect();
    assert_ne!(calls[0].0, calls[1].0);
    assert_eq!((&calls[0].1, &calls[1].1), (&json!(1), &json!(2)));
}

#[test]
fn cancelling_answers_what_is_open_and_later_questions_at_once() {
    let mut script = Script::prompted();
    script.asks(&json!("a"), &json!({ "toolCallId": "t", "title": "Run" }));
    script.fx.events.clear();
    assert!(script.machine.cancel(5, &mut script.fx));
    assert_eq!(script.fx.events, [Happening::Withdrawn { request: "3.h1".to_owned() }]);
    let written = script.written();
    assert_eq!(written[0]["method"], "session/cancel");
    assert_eq!(
        written[1],
        json!({ "jsonrpc": "2.0", "id": "a", "result": { "outcome": { "outcome": "cancelled" } } })
    );
    script.asks(&json!("b"), &json!({ "toolCallId": "t", "title": "Run" }));
    assert_eq!(script.written()[0]["result"]["outcome"]["outcome"], "cancelled");
    script.says(&json!({ "id": "3.50", "error": { "code": -32603, "message": "aborted" } }));
    assert_eq!((script.end().outcome, &script.end().error), (TurnOutcome::Cancelled, &None));
}

#[test]
fn a_session_is_resumed_without_its_replay_and_begun_anew_if_it_is_forgotten() {
    let mut script = Script::plain();
    script.machine.settings.instructions = "Be brief.".to_owned();
    script.turn(5, Some("s"));
    assert_eq!(
        script.written()[0],
        json!({ "id": "3.50.again", "opening": { "Resume": { "session": "s" } } })
    );
    script.chunk("agent_message_chunk", "an old answer", None);
    script.says(&json!({ "id": "3.50.again", "result": {} }));
    let prompt = script.written().remove(0);
    assert_eq!(
        prompt["params"]["prompt"].as_array().unwrap().len(),
        1,
        "a session is told its instructions once"
    );
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    assert!(script.messages().is_empty());
    assert!(!script.fx.events.iter().any(|event| matches!(event, Happening::Session { .. })));
    script.turn(6, None);
    let line = json!({ "id": "3.60.new", "opening": "New" });
    assert_eq!(script.written(), [line], "the control plane wants a new session");

    let mut script = Script::plain();
    script.machine.settings.instructions = "Be brief.".to_owned();
    script.turn(5, Some("gone"));
    script.says(&json!({ "id": "3.50.again", "error": { "code": -32002, "message": "not found" } }));
    assert_eq!(script.written().pop().unwrap()["opening"], "New");
    script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s" } }));
    let told = script.written()[0]["params"]["prompt"][0].clone();
    assert_eq!(
        (&told["text"], &told["annotations"]["audience"]),
        (&json!("Be brief."), &json!(["assistant"]))
    );
    let session = Happening::Session { conversation_id: 1, session: Some("s".to_owned()) };
    assert!(script.fx.events.contains(&session));
}

#[test]
fn a_session_is_told_about_its_conversation_first_and_again_once_that_has_changed() {
    let mut script = Script::plain();
    script.machine.settings.instructions = "Be brief.".to_owned();
    let mut told = |turn_id: i64, session: Option<&str>, instructions: &str| {
        script.instructions = instructions.to_owned();
        script.turn(turn_id, session);
        if session.is_none() {
            script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s" } }));
        }
        let prompt = script.written().pop().unwrap()["params"]["prompt"].clone();
        script.says(&json!({ "id": format!("3.{}", turn_id * 10), "result": { "stopReason": "end_turn" } }));
        let texts = prompt.as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(told(5, None, "Promise nothing."), ["Be brief.", "Promise nothing.", "Hi"]);
    assert_eq!(told(6, Some("s"), "Promise nothing."), ["Hi"]);
    assert_eq!(told(7, Some("s"), "Promise less."), ["Promise less.", "Hi"]);
    assert_eq!(told(8, Some("s"), "Promise less."), ["Hi"]);
    assert_eq!(told(9, Some("s"), ""), ["Hi"]);

    // Of a session of an earlier launch nobody knows what it was told.
    let mut script = Script::plain();
    script.instructions = "Promise nothing.".to_owned();
    script.turn(5, Some("s"));
    script.says(&json!({ "id": "3.50.again", "result": {} }));
    let prompt = script.written().pop().unwrap()["params"]["prompt"].clone();
    assert_eq!((&prompt[0]["text"], &prompt[1]["text"]), (&json!("Promise nothing."), &json!("Hi")));
}

#[test]
fn the_chosen_model_is_set_if_the_session_offers_it() {
    let options = json!([{ "id": "model", "name": "Model", "category": "model", "type": "select",
        "currentValue": "small", "options": [{ "value": "small", "name": "S" }, { "value": "large", "name": "L" }] }]);
    for (wanted, is_offered) in [("large", true), ("huge", false), ("small", false)] {
        let mut script = Script::plain();
        script.machine.settings.model = Some(wanted.to_owned());
        script.turn(5, None);
        script.written();
        script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s", "configOptions": options } }));
        if is_offered {
            let choice = script.written().remove(0);
            assert_eq!(
                (&choice["method"], &choice["params"]["value"]),
                (&"session/set_config_option".into(), &"large".into())
            );
            script.says(&json!({ "id": "3.50.model", "result": { "configOptions": [] } }));
        }
        assert_eq!(script.written()[0]["method"], "session/prompt", "{wanted}");
        script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
        let used = if is_offered { "large" } else { "small" };
        assert_eq!(script.end().model.as_deref(), Some(used), "{wanted}");
    }
}

#[test]
fn a_new_session_has_none_of_the_context_of_the_one_before() {
    let mut script = Script::prompted();
    script.update(&json!({ "sessionUpdate": "usage_update", "used": 100, "size": 1000 }));
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    assert_eq!(script.end().context_tokens, Some(100));
    script.turn(6, None);
    script.says(&json!({ "id": "3.60.new", "result": { "sessionId": "t" } }));
    script.says(&json!({ "id": "3.60", "result": { "stopReason": "end_turn" } }));
    assert_eq!(script.end().context_tokens, None);
}

#[test]
fn cost_is_what_a_session_has_become_dearer_by() {
    let mut script = Script::prompted();
    let mut costs = Vec::new();
    for (number, sum) in [(5, 0.00129), (6, 0.00202), (7, 0.00202)] {
        if number > 5 {
            script.turn(number, Some("s"));
        }
        script.update(&json!({ "sessionUpdate": "usage_update", "used": 100, "size": 1000,
            "cost": { "amount": sum, "currency": "USD" } }));
        script.says(&json!({ "id": format!("3.{}", number * 10), "result": { "stopReason": "end_turn" } }));
        costs.push((script.end().usage.cost_micro, script.end().context_tokens));
    }
    assert_eq!(costs, [(Some(1290), Some(100)), (Some(730), Some(100)), (Some(0), Some(100))]);
    assert_eq!(script.machine.costs["s"], 2020, "the next launch goes on from there");
}

#[test]
fn the_cost_that_is_forgotten_is_that_of_the_session_which_was_unused_for_longest() {
    let mut script = Script::prompted();
    let names = (0..MOST_COSTS - 1).map(|number| format!("t{number}"));
    script.machine.costs = iter::once("s".to_owned()).chain(names).map(|name| (name, 1000)).collect();
    let mut turn = |number: i64, session: &str, sum: f64| {
        script.says(&json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": session, "update": { "sessionUpdate": "usage_update", "used": 100, "size": 1000,
                "cost": { "amount": sum, "currency": "USD" } } } }));
        script.says(&json!({ "id": format!("3.{}", number * 10), "result": { "stopReason": "end_turn" } }));
        let cost = script.end().usage.cost_micro;
        script.turn(number + 1, None);
        script.says(&json!({ "id": format!("3.{}.new", (number + 1) * 10), "result": { "sessionId": "u" } }));
        cost
    };
    assert_eq!(turn(5, "s", 0.0015), Some(500));
    assert_eq!(turn(6, "u", 0.0001), Some(100));
    let kept = &script.machine.costs;
    assert_eq!((kept.len(), kept.contains_key("t0")), (MOST_COSTS, false));
    assert_eq!((kept.get("s"), kept.get("u")), (Some(&1500), Some(&100)), "these were used last");
}

#[test]
fn one_turn_at_a_time_in_a_conversation() {
    let mut script = Script::prompted();
    script.turn(6, Some("s"));
    assert!(script.written().is_empty() && script.fx.events.is_empty());
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "refusal" } }));
    assert_eq!(script.written()[0]["id"], "3.60");
    assert_eq!((script.end().turn_id, script.end().outcome), (5, TurnOutcome::Failed));
    assert_eq!(script.fx.events.last(), Some(&Happening::TurnStarted { turn_id: 6 }));
}

#[test]
fn an_agent_without_access_to_its_model_says_so() {
    let mut script = Script::plain();
    script.turn(5, None);
    script.says(
        &json!({ "id": "3.50.new", "error": { "code": -32000, "message": "Authentication required" } }),
    );
    let told = Happening::AuthRequired { detail: "Authentication required".to_owned() };
    assert!(script.fx.events.contains(&told));
    assert_eq!(script.end().outcome, TurnOutcome::Failed);
}

#[test]
fn what_makes_no_sense_is_counted_and_unknown_requests_are_answered() {
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
    assert!(matches!(script.fx.events.last(), Some(Happening::Asked(_))));
    script.assert_small();
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
fn too_many_questions_are_not_kept() {
    let mut script = Script::prompted();
    for number in 0..MOST_OPEN + 5 {
        script.asks(&json!(number), &json!({ "toolCallId": format!("t{number}"), "title": "Run" }));
    }
    let asked = script.fx.events.iter().filter(|event| matches!(event, Happening::Asked(_))).count();
    assert_eq!(asked, MOST_OPEN);
    assert_eq!(script.written().len(), 5, "the others are refused at once");
}

impl Script {
    /// The agent writes a line, without the journal in between.
    fn writes(&mut self, line: &Value) {
        self.machine.line(self.machine.read + 1, line.to_string().as_bytes(), &mut self.fx);
    }

    /// How large what is kept of the agent is, in bytes.
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
    assert_eq!(script.messages().len(), 1500, "each is told");
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
fn what_is_kept_of_an_agent_has_a_bound_whatever_it_asks_and_offers() {
    let mut script = Script::prompted();
    let long = "x".repeat(1 << 20);
    script.writes(&json!({ "id": 1, "method": "session/request_permission", "params": { "sessionId": "s",
        "toolCall": { "toolCallId": "t", "title": "Run" },
        "options": [{ "optionId": long, "name": "Once", "kind": "allow_once" }] } }));
    assert_eq!(script.written()[0]["result"]["outcome"]["outcome"], "cancelled");
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
    assert!(script.machine.lines.len() <= 1000, "an agent that reads nothing is not answered for ever");
}

#[test]
fn texts_and_values_are_cut_between_characters() {
    assert_eq!(floor_boundary("aäb", 2), 1);
    assert_eq!((short("äöü", 2), short("äöü", 3)), ("äö…".to_owned(), "äöü".to_owned()));
    let large = fit(Value::String("ä".repeat(LONGEST_VALUE)));
    assert_eq!(large["truncated"], true);
    assert!(large.to_string().len() < LONGEST_VALUE);
}
