//! Forms of agents for people.

use super::*;

#[test]
fn a_question_of_another_session_is_not_shown() {
    let mut script = Script::prompted();
    script.says(&json!({ "id": 1, "method": "elicitation/create", "params": { "mode": "form", "sessionId": "other",
        "message": "?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "string" } } } } }));
    assert_eq!(script.written()[0]["result"], json!({ "action": "decline" }));
    script.says(&json!({ "id": 2, "method": "elicitation/create", "params": { "mode": "form", "sessionId": "s",
        "message": "?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "string" } } } } }));
    let Some(HostEvent::Asked(request)) = script.fx.events.last() else { panic!("{:?}", script.fx.events) };
    assert!(matches!(request.asked, Asked::Question { allow_text: true, .. }));
    script.says(&json!({ "method": "$/cancel_request", "params": { "requestId": 2 } }));
    assert_eq!(script.fx.events.last(), Some(&HostEvent::Withdrawn { request: "3.h1".to_owned() }));
}

#[test]
fn an_answer_that_a_form_has_no_place_for_is_not_delivered() {
    let choice = json!({ "type": "string", "enum": ["red", "blue"] });
    let fields = [
        (json!({ "c": choice, "t": { "type": "string" } }), json!(["c"]), "neither, use green"),
        (json!({ "n": { "type": "integer" } }), json!([]), "twelve"),
    ];
    for (fields, required, text) in fields {
        let mut script = Script::prompted();
        script.says(&json!({ "id": 1, "method": "elicitation/create", "params": { "mode": "form",
            "sessionId": "s", "message": "?",
            "requestedSchema": { "type": "object", "properties": fields, "required": required } } }));
        let decision = Decision::Answered { options: Vec::new(), text: Some(text.to_owned()) };
        assert_eq!(script.machine.decide("3.h1", &decision, Some(9)), DecisionEffect::NotWaiting);
        assert_eq!(script.written().pop().unwrap()["result"], json!({ "action": "decline" }));
        script.fx.events.clear();
        script.machine.mark_taken(100, &mut script.fx);
        assert!(script.fx.events.is_empty(), "{:?}", script.fx.events);
    }
}

#[test]
fn a_form_with_an_overlong_option_is_declined() {
    let mut script = Script::prompted();
    let long = "x".repeat(2 << 20);
    let fields = [
        json!({ "type": "string", "enum": [long] }),
        json!({ "type": "string", "oneOf": [{ "const": long, "title": "L" }] }),
    ];
    for (id, field) in fields.into_iter().enumerate() {
        script.says(&json!({ "id": id, "method": "elicitation/create", "params": { "mode": "form",
            "sessionId": "s", "message": "?",
            "requestedSchema": { "type": "object", "properties": { "a": field } } } }));
        assert_eq!(script.written()[0]["result"], json!({ "action": "decline" }));
    }
    assert!(script.fx.events.is_empty());
}
