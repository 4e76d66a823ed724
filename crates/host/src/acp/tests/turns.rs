//! Turns: their order, cost and failures.

use std::iter;

use super::*;

#[test]
fn a_turns_cost_is_the_increase_of_its_sessions_cost() {
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
fn the_cost_of_the_longest_unused_session_is_dropped_first() {
    let mut script = Script::prompted();
    let names = (0..MAX_SESSIONS - 1).map(|number| format!("t{number}"));
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
    assert_eq!((kept.len(), kept.contains_key("t0")), (MAX_SESSIONS, false));
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
    assert_eq!(script.fx.events.last(), Some(&HostEvent::TurnStarted { turn_id: 6 }));
}

#[test]
fn an_agent_without_access_to_its_model_says_so() {
    let mut script = Script::plain();
    script.turn(5, None);
    script.says(
        &json!({ "id": "3.50.new", "error": { "code": -32000, "message": "Authentication required" } }),
    );
    let told = HostEvent::AuthRequired { detail: "Authentication required".to_owned() };
    assert!(script.fx.events.contains(&told));
    assert_eq!(script.end().outcome, TurnOutcome::Failed);
}
