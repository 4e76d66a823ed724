//! Sessions that are given up or rest, and what they offer.

use muster_protocol::event::Offer;

use super::*;

#[test]
fn a_turn_whose_session_can_not_be_opened_fails_and_the_next_one_tries_again() {
    let mut script = Script::prompted();
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    let settings = script.machine.settings.clone();
    script.machine.assignments_changed(settings);
    script.turn(6, Some("s"));
    script.turn(7, Some("s"));
    script.says(&json!({ "id": "3.60.close", "result": {} }));
    let before = script.machine.written - 1;
    script.fx.events.clear();
    script.machine.not_opened(before, "It is too large.", &mut script.fx);
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
fn text_given_with_a_verdict_is_reported_as_still_to_be_told() {
    for (comment, is_left) in [(Some("Use staging."), true), (Some(" "), false), (None, false)] {
        let mut script = Script::prompted();
        script.asks(&json!(0), &json!({ "toolCallId": "t", "title": "Run" }));
        let comment = comment.map(str::to_owned);
        script.machine.decide("3.h1", &Decision::Denied { comment }, Some(9));
        script.machine.took(100, &mut script.fx);
        let delivered = Happening::Delivered { approval_id: 9, without_text: is_left };
        assert_eq!(script.fx.events.last(), Some(&delivered));
    }
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
            Happening::Offered { models, modes } => Some((models.clone(), modes.clone())),
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
    let [Happening::Session { session: None, .. }, Happening::TurnEnded(end)] = &script.fx.events[..] else {
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
fn an_unused_session_is_closed_and_opened_again_by_the_next_turn() {
    let mut script = Script::prompted();
    assert_eq!(script.machine.idle().count(), 0, "a turn runs");
    script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
    assert!(script.machine.may_rest());
    assert_eq!(script.machine.idle().collect::<Vec<_>>(), [1]);
    script.machine.rest(1);
    let close = script.written().remove(0);
    assert_eq!((&close["method"], &close["params"]["sessionId"]), (&json!("session/close"), &json!("s")));
    assert_eq!(script.machine.idle().count(), 0);
    script.turn(6, Some("s"));
    assert!(script.written().is_empty(), "it is being closed");
    script.says(&json!({ "id": close["id"], "result": {} }));
    let line = json!({ "id": "3.60.again", "opening": { "Resume": { "session": "s" } } });
    assert_eq!(script.written(), [line]);
    let unable = Script::new(&json!({ "sessionCapabilities": { "close": {} } }));
    assert!(!unable.machine.may_rest(), "it could not be opened again");
}
