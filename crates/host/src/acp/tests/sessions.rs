//! Sessions: opened, resumed, given up and idle, their instructions and offers.

use muster_protocol::event::Offer;

use super::*;
use crate::acp::turns::REPLACED;

#[test]
fn a_session_resumes_without_replay_or_starts_over() {
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
    assert_eq!(texts(&prompt), [REPLACED, "Be brief.", "Hi"], "those of an earlier launch are unknown");
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    assert!(script.messages().is_empty());
    assert!(!script.fx.events.iter().any(|event| matches!(event, HostEvent::Session { .. })));
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
    let session = HostEvent::Session { conversation_id: 1, session: Some("s".to_owned()) };
    assert!(script.fx.events.contains(&session));
}

#[test]
fn instructions_are_sent_first_and_after_each_change() {
    let mut script = Script::plain();
    let mut told = |turn_id: i64, session: Option<&str>, (of_agent, of_turn): (&str, &str)| {
        script.machine.settings.instructions = of_agent.to_owned();
        script.instructions = of_turn.to_owned();
        script.turn(turn_id, session);
        if session.is_none() {
            script.says(&json!({ "id": format!("3.{}.new", turn_id * 10), "result": { "sessionId": "s" } }));
        }
        let prompt = script.written().pop().unwrap();
        script.says(&json!({ "id": format!("3.{}", turn_id * 10), "result": { "stopReason": "end_turn" } }));
        texts(&prompt)
    };
    let first = ("You are Ada.", "Promise nothing.");
    assert_eq!(told(5, None, first), ["You are Ada.", "Promise nothing.", "Hi"]);
    assert_eq!(told(6, Some("s"), first), ["Hi"]);
    let second = ("You are Ada.", "Promise less.");
    assert_eq!(told(7, Some("s"), second), [REPLACED, "You are Ada.", "Promise less.", "Hi"]);
    assert_eq!(told(8, Some("s"), second), ["Hi"]);
    assert_eq!(told(9, Some("s"), ("You are Ada.", "")), [REPLACED, "You are Ada.", "Hi"]);
    assert_eq!(told(10, Some("s"), ("You are Grace.", "")), [REPLACED, "You are Grace.", "Hi"]);
    let begun = told(11, None, ("You are Grace.", ""));
    assert_eq!(begun, ["You are Grace.", "Hi"], "a new session by the old name");
    script.machine.suspend_session(1);
    let close = script.written().remove(0);
    script.says(&json!({ "id": close["id"], "result": {} }));
    script.turn(12, Some("s"));
    script.says(&json!({ "id": "3.120.again", "result": {} }));
    let prompt = script.written().pop().unwrap();
    assert_eq!(texts(&prompt), ["Hi"], "an idle session has not forgotten them");
}

#[test]
fn instructions_are_sent_again_after_a_failed_turn() {
    let mut script = Script::plain();
    script.machine.settings.instructions = "Be brief.".to_owned();
    script.turn(5, None);
    script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s" } }));
    script.says(&json!({ "id": "3.50", "error": { "code": -32603, "message": "The model is away." } }));
    script.turn(6, Some("s"));
    let prompt = script.written().pop().unwrap();
    assert_eq!(texts(&prompt), [REPLACED, "Be brief.", "Hi"], "the agent may have kept nothing");
}

/// The texts of a prompt.
fn texts(prompt: &Value) -> Vec<String> {
    let parts = prompt["params"]["prompt"].as_array().unwrap().iter();
    parts.map(|part| part["text"].as_str().unwrap().to_owned()).collect()
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
fn a_failed_opening_fails_the_turn_and_the_next_one_retries() {
    let mut script = Script::prompted();
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    let settings = script.machine.settings.clone();
    script.machine.assignments_changed(settings);
    script.turn(6, Some("s"));
    script.turn(7, Some("s"));
    script.says(&json!({ "id": "3.60.close", "result": {} }));
    let before = script.machine.written - 1;
    script.fx.events.clear();
    script.machine.fail_unopened_sessions(before, "It is too large.", &mut script.fx);
    assert_eq!((script.end().turn_id, script.end().outcome), (6, TurnOutcome::Failed));
    assert_eq!(script.end().error.as_deref(), Some("It is too large."));
    let written = script.written();
    let methods: Vec<_> = written.iter().map(|line| line["method"].as_str()).collect();
    assert_eq!(methods, [Some("session/close"), Some("$/cancel_request"), None], "no number is left out");
    assert_eq!(written[2]["opening"], json!({ "Resume": { "session": "s" } }));
    script.says(&json!({ "id": "3.70.again", "result": {} }));
    assert_eq!(script.written()[0]["id"], "3.70");
}

#[test]
fn models_and_modes_are_reported_whenever_they_change() {
    let mut script = Script::plain();
    script.turn(5, None);
    let options = json!([{ "id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "small",
        "options": [{ "group": "g", "name": "G", "options": [
            { "value": "small", "name": "Small\u{7}", "description": "quick" }, { "value": "large", "name": "Large" }] }] }]);
    let modes = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask", "name": "Ask" }, { "id": "code",
        "name": "Code" }, { "id": "x".repeat(300), "name": "too long" }, { "name": "no id" }] });
    script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s", "configOptions": options, "modes": modes } }));
    let offered = |script: &Script| {
        let offers = script.fx.events.iter().filter_map(|event| match event {
            HostEvent::Offered { models, modes } => Some((models.clone(), modes.clone())),
            _ => None,
        });
        offers.collect::<Vec<_>>()
    };
    let shown = |offers: &[Offer]| -> Vec<(String, String, bool)> {
        offers.iter().map(|offer| (offer.id.clone(), offer.name.clone(), offer.current)).collect()
    };
    let named = |id: &str, name: &str, current| (id.to_owned(), name.to_owned(), current);
    let (models, modes) = offered(&script).remove(0);
    assert_eq!(shown(&models), [named("small", "Small ", true), named("large", "Large", false)]);
    assert_eq!(models[0].description.as_deref(), Some("quick"));
    assert_eq!(shown(&modes), [named("ask", "Ask", true), named("code", "Code", false)]);
    script.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" }));
    script.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" }));
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    assert_eq!(offered(&script).len(), 2, "what is known is not repeated");
    assert_eq!(shown(&offered(&script)[1].1)[1], named("code", "Code", true));

    let mut script = Script::plain();
    script.turn(5, None);
    script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s", "models": { "currentModelId": "b",
        "availableModels": [{ "modelId": "a", "name": "A" }, { "modelId": "b" }] } } }));
    let (models, modes) = offered(&script).remove(0);
    assert_eq!(shown(&models), [named("a", "A", false), named("b", "b", true)]);
    assert_eq!(modes, []);

    let mut script = Script::plain();
    script.turn(5, Some("s"));
    script.says(&json!({ "id": "3.50.again", "result": {} }));
    assert_eq!(offered(&script), [], "a resumed session that says nothing takes nothing back");
}

#[test]
fn a_session_that_was_given_up_is_forgotten() {
    let mut script = Script::prompted();
    script.machine.cancel(5, &mut script.fx);
    script.written();
    script.machine.give_up(5, &mut script.fx);
    let [HostEvent::Session { session: None, .. }, HostEvent::TurnEnded(end)] = &script.fx.events[..] else {
        panic!("{:?}", script.fx.events)
    };
    assert_eq!(end.outcome, TurnOutcome::Cancelled);
    assert_eq!(script.written()[0]["method"], "session/close");
    script.turn(6, None);
    assert_eq!(script.written()[0]["opening"], "New");
    script.fx.events.clear();
    script.chunk("agent_message_chunk", "too late", None);
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "cancelled" } }));
    script.says(&json!({ "id": "3.60.new", "result": { "sessionId": "t" } }));
    script.says(&json!({ "id": "3.60", "result": { "stopReason": "end_turn" } }));
    assert!(script.messages().is_empty());
    assert_eq!((script.end().turn_id, script.end().outcome), (6, TurnOutcome::Done));
}

#[test]
fn a_session_that_opens_after_it_was_given_up_gets_no_turn() {
    let mut script = Script::plain();
    script.turn(5, None);
    script.machine.cancel(5, &mut script.fx);
    script.machine.give_up(5, &mut script.fx);
    script.turn(6, None);
    script.written();
    script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "late" } }));
    assert!(script.written().is_empty());
    script.says(&json!({ "id": "3.60.new", "result": { "sessionId": "s" } }));
    let prompts = script.written();
    assert_eq!((prompts.len(), &prompts[0]["params"]["sessionId"]), (1, &json!("s")));
}

#[test]
fn an_idle_session_is_closed_and_reopened_by_the_next_turn() {
    let mut script = Script::prompted();
    assert_eq!(script.machine.idle().count(), 0, "a turn runs");
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    assert!(script.machine.may_suspend());
    assert_eq!(script.machine.idle().collect::<Vec<_>>(), [1]);
    script.machine.suspend_session(1);
    let close = script.written().remove(0);
    assert_eq!((&close["method"], &close["params"]["sessionId"]), (&json!("session/close"), &json!("s")));
    assert_eq!(script.machine.idle().count(), 0);
    script.turn(6, Some("s"));
    assert!(script.written().is_empty(), "it is being closed");
    script.says(&json!({ "id": close["id"], "result": {} }));
    let line = json!({ "id": "3.60.again", "opening": { "Resume": { "session": "s" } } });
    assert_eq!(script.written(), [line]);
    let unable = Script::new(&json!({ "sessionCapabilities": { "close": {} } }));
    assert!(!unable.machine.may_suspend(), "it could not be opened again");
}
