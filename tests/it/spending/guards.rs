//! People are asked when a limit is reached, and allow more or take it back.

use std::time::Duration;

use muster::domain::spending;
use serde_json::{Value, json};

use crate::harness::{TestApp, spending::CALL};

#[tokio::test]
async fn stop_cancels_turns_and_stops_the_agent() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": CALL, "budgetAction": "STOP" })).await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    assert_eq!(host.agent_shows("status").await["status"], "STOPPING");
    let kinds: Vec<Value> =
        host.commands().await.into_iter().map(|command| command["kind"].clone()).collect();
    assert_eq!(kinds[kinds.len() - 2..], [json!("CANCEL"), json!("STOP")]);
    assert_eq!(app.guards().await.len(), 1);
    // It says why until it is started again.
    host.ended(muster_protocol::event::EndReason::Stopped).await;
    let shown = host.agent_shows("status statusReason statusDetail").await;
    assert_eq!((&shown["status"], &shown["statusReason"]), (&json!("STOPPED"), &json!("LIMIT_REACHED")));
    let detail = "The agent's budget of 0.2160 USD for this month is used up: 0.30 USD used.";
    assert_eq!(shown["statusDetail"], detail);
    host.launched().await;
    let reason = "SELECT status_reason FROM agents WHERE id = $1";
    let reason: Option<String> = app.one(reason, vec![host.agent.into()]).await;
    assert_eq!(reason, None);
}

#[tokio::test]
async fn a_guard_ends_with_its_month_and_the_next_one_has_its_own() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "timezone": "UTC" })).await;
    let host = app.running_agent().await;
    host.runs_out().await;
    let [guard] = app.guards().await[..] else { panic!() };
    let reminder: Option<i64> = app.one("SELECT remind_at FROM approvals", vec![]).await;
    assert_eq!(reminder, None, "nothing is lost with it");
    app.clock.advance(Duration::from_hours(29 * 24 + 13));
    let query = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { status expiresAt } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "i": guard })).await.data();
    assert_eq!(shown["approval"], json!({ "status": "EXPIRED", "expiresAt": "2026-07-01T00:00:00.000Z" }));
    app.may_not_allow(json!({ "costMicro": CALL, "approvalId": guard }), "APPROVAL_NOT_PENDING").await;
    assert!(host.leases().await.is_some());
    // Before the job has ended the first one.
    host.runs_out().await;
    assert_eq!(app.guards().await.len(), 2);
}

#[tokio::test]
async fn a_guard_of_tokens_and_one_of_money_end_each_by_itself() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let limits = json!({
        "monthlyBudgetMicro": CALL, "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 50_000,
        "costGuardAction": "PAUSE",
    });
    app.sets_agent(host.agent, limits).await;
    host.calls(host.call(None, 100_000, 0)).await;
    assert!(host.leases().await.is_none(), "of tokens");
    let more = json!({ "agentId": host.agent, "tokens": 200_000 });
    app.allows(more.clone()).await;
    assert!(host.leases().await.is_none(), "of money");
    let [_, money] = app.guards().await[..] else { panic!() };
    let tokens = json!({ "agentId": host.agent, "tokens": 1, "approvalId": money });
    app.may_not_allow(tokens, "VALIDATION_FAILED").await;
    app.allows(more).await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "PENDING"]);
    app.allows(json!({ "agentId": host.agent, "costMicro": 300_000, "approvalId": money })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "RESOLVED"]);
    assert!(host.leases().await.is_some());
}

#[tokio::test]
async fn a_guard_follows_its_limit() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "budgetAction": "NOTIFY" })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    host.leases().await.unwrap();
    assert_eq!(app.guards_are().await, ["PENDING"]);
    app.sets(json!({ "budgetAction": "PAUSE" })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED"]);
    assert!(host.leases().await.is_none());
    assert_eq!(app.guards_are().await, ["DISMISSED", "PENDING"]);
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "DISMISSED"]);
    // An agent's own.
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": CALL })).await;
    assert!(host.leases().await.is_none());
    assert_eq!(app.guards_are().await, ["DISMISSED", "DISMISSED", "PENDING"]);
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": null })).await;
    assert_eq!(app.guards_are().await, ["DISMISSED"; 3]);
    assert!(host.leases().await.is_some());
}

#[tokio::test]
async fn what_was_allowed_can_be_taken_back() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let allowed = async |micro: i64| {
        let shown = app.allows(json!({ "costMicro": micro })).await;
        shown["allowSpending"]["spending"]["allowedMicro"].as_str().unwrap().parse::<i64>().unwrap()
    };
    assert_eq!(allowed(10 * CALL).await, 10 * CALL);
    host.calls(host.call(None, 100_000, 0)).await;
    assert_eq!(allowed(-9 * CALL).await, CALL);
    assert_eq!(host.leases().await.unwrap().cost_micro, Some(2 * CALL - 300_000));
    assert_eq!(allowed(-9 * CALL).await, 0, "at most all of it");
    assert!(host.leases().await.is_none());
    let [guard] = app.guards().await[..] else { panic!() };
    allowed(-1).await;
    assert_eq!(app.guards_are().await, ["PENDING"]);
    for wrong in [json!({ "costMicro": 0 }), json!({ "costMicro": -1, "approvalId": guard })] {
        app.may_not_allow(wrong, "VALIDATION_FAILED").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_who_is_allowed_more_at_this_moment_is_not_refused() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    let more = "UPDATE organization_months SET allowed_micro = 1000000";
    let lease = Box::pin(app.while_changed(more, None, host.leases())).await;
    assert!(lease.is_some());
    assert!(app.guards().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_who_is_refused_while_more_is_allowed_looks_again() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    let refused = format!(
        "UPDATE organization_months SET tokens = tokens; \
         INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, since) \
         VALUES ({}, {}, 'MONEY', 'so', {}, 0)",
        app.org,
        host.agent,
        i64::MAX
    );
    app.while_changed(&refused, None, app.allows(json!({ "costMicro": 10 * CALL }))).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
}

#[tokio::test]
async fn notify_tells_people_once_a_month_and_stops_nothing() {
    let app = TestApp::start().await;
    app.sets(json!({ "monthlyBudgetMicro": CALL, "budgetAction": "NOTIFY" })).await;
    let host = app.running_agent().await;
    host.calls(host.call(None, 100_000, 0)).await;
    for _ in 0..3 {
        assert_eq!(host.leases().await.unwrap().cost_micro, None);
    }
    let [guard] = app.guards().await[..] else { panic!() };
    let dismiss = "mutation($o: Id!, $i: Id!) { dismissApproval(orgId: $o, id: $i) { id } }";
    app.operator.gql(dismiss, json!({ "o": app.org, "i": guard })).await.data();
    app.clock.advance(Duration::from_hours(24 * 3));
    host.leases().await.unwrap();
    assert_eq!(app.guards().await.len(), 1);
    // The next month is another one.
    app.clock.advance(Duration::from_hours(24 * 30));
    host.calls(host.call(None, 100_000, 0)).await;
    host.leases().await.unwrap();
    assert_eq!(app.guards().await.len(), 2);
}

#[tokio::test]
async fn what_is_allowed_is_one_kind_and_no_operator_sets_limits() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    for wrong in [json!({}), json!({ "costMicro": 1, "tokens": 1 }), json!({ "tokens": 1 })] {
        app.may_not_allow(wrong, "VALIDATION_FAILED").await;
    }
    // An operator edits agents, but not what they may spend.
    let edit = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";
    for input in [
        json!({ "monthlyBudgetMicro": 1 }),
        json!({ "budgetAction": "STOP" }),
        json!({ "networkPrivileged": true }),
    ] {
        let refused = app.operator.gql(edit, json!({ "o": app.org, "a": host.agent, "i": input })).await;
        assert_eq!(refused.code(), "PERMISSION_DENIED");
    }
}
