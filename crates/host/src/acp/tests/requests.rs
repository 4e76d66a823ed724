//! The agent's requests and their answers.

use super::*;

#[test]
fn permission_is_granted_once_never_always() {
    for (decision, chosen) in [
        (Decision::Approved { comment: None }, "once"),
        (Decision::Denied { comment: None }, "no"),
        (Decision::Closed { reason: String::new() }, "no"),
    ] {
        let mut script = Script::prompted();
        script.asks(&json!(0), &json!({ "toolCallId": "pending", "title": "Run", "rawInput": { "a": 1 } }));
        let Some(HostEvent::Asked(request)) = script.fx.events.last() else {
            panic!("{:?}", script.fx.events)
        };
        assert_eq!((request.request.as_str(), request.turn_id), ("3.h1", Some(5)));
        assert!(matches!(script.messages()[..], [Content::ToolCall { .. }]), "the first to mention the call");
        assert_eq!(script.machine.decide("3.h1", &decision, Some(9)), DecisionEffect::Said);
        let answer = script.written().pop().unwrap();
        assert_eq!((&answer["id"], &answer["result"]["outcome"]["optionId"]), (&json!(0), &chosen.into()));
        script.fx.events.clear();
        script.machine.mark_taken(100, &mut script.fx);
        let delivered = HostEvent::Delivered { approval_id: 9, without_text: false };
        assert_eq!(script.fx.events, [delivered], "when the agent has it");
        assert_eq!(script.machine.decide("3.h1", &decision, Some(9)), DecisionEffect::NotWaiting);
    }
}

#[test]
fn odd_options_hide_no_question_and_are_no_yes() {
    let ask = |options: &Value| {
        let mut script = Script::prompted();
        script.says(&json!({ "id": 0, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": { "toolCallId": "t", "title": "Run" }, "options": options } }));
        assert!(matches!(script.fx.events.last(), Some(HostEvent::Asked(_))), "{:?}", script.fx.events);
        script
    };
    let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
    let comment = || None;
    for options in [
        json!([option("a", "deny"), option("b", "allow_session")]),
        json!([option("same", "allow_once"), option("same", "reject_once")]),
        json!([option("n", "reject_once")]),
        json!([]),
    ] {
        let mut script = ask(&options);
        let approved = Decision::Approved { comment: comment() };
        assert_eq!(
            script.machine.decide("3.h1", &approved, Some(9)),
            DecisionEffect::NotWaiting,
            "{options}"
        );
        let answer = script.written().pop().unwrap();
        assert_eq!(answer["error"]["code"], -32602, "no option is a yes");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("The action was allowed, but the request has")
        );
    }
    let denied = Decision::Denied { comment: comment() };
    let mut script = ask(&json!([option("y", "allow_once"), option("n", "reject_always")]));
    assert_eq!(script.machine.decide("3.h1", &denied, Some(9)), DecisionEffect::Said);
    assert_eq!(script.written().pop().unwrap()["result"]["outcome"]["optionId"], "n");
}

#[test]
fn a_decision_reaches_its_request_when_a_name_is_reused() {
    let mut script = Script::prompted();
    let ask = |script: &mut Script, title: &str| {
        script.asks(&json!(5), &json!({ "toolCallId": title, "title": title }));
        match script.fx.events.last() {
            Some(HostEvent::Asked(request)) => request.request.clone(),
            other => panic!("{other:?}"),
        }
    };
    let harmless = ask(&mut script, "Read");
    script.says(&json!({ "method": "$/cancel_request", "params": { "requestId": 5 } }));
    let harmful = ask(&mut script, "Wipe");
    assert_eq!(script.machine.verdict(&harmless, true), DecisionEffect::NotWaiting);
    assert_eq!(script.machine.verdict(&harmful, false), DecisionEffect::Said);
    assert_eq!(script.written().pop().unwrap()["result"]["outcome"]["optionId"], "no");
    assert_ne!(ask(&mut script, "Read on"), harmful, "a name may be used again once it was answered");
}

#[test]
fn an_unreadably_long_input_is_not_allowed() {
    let mut script = Script::prompted();
    let input = json!({ "pad": "x".repeat(LONGEST_VALUE), "command": "rm -rf /" });
    script.asks(&json!(1), &json!({ "toolCallId": "t", "title": "Run", "rawInput": input }));
    assert_eq!(script.written().pop().unwrap()["error"]["code"], -32602);
    assert!(!script.fx.events.iter().any(|event| matches!(event, HostEvent::Asked(_))));
}

#[test]
fn the_same_name_with_different_input_is_another_call() {
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
    assert_eq!(script.fx.events, [HostEvent::Withdrawn { request: "3.h1".to_owned() }]);
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
fn a_comment_with_a_verdict_is_reported_as_undelivered() {
    for (comment, is_left) in [(Some("Use staging."), true), (Some(" "), false), (None, false)] {
        let mut script = Script::prompted();
        script.asks(&json!(0), &json!({ "toolCallId": "t", "title": "Run" }));
        let comment = comment.map(str::to_owned);
        script.machine.decide("3.h1", &Decision::Denied { comment }, Some(9));
        script.machine.mark_taken(100, &mut script.fx);
        let delivered = HostEvent::Delivered { approval_id: 9, without_text: is_left };
        assert_eq!(script.fx.events.last(), Some(&delivered));
    }
}
