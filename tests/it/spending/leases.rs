//! Leases keep hosts within budgets, and give back what is left.

use std::time::Duration;

use futures::future::join_all;
use muster::{
    base::ids::LeaseId,
    domain::{emergency_stop, spending},
};
use muster_protocol::{
    event::TurnOutcome,
    plan::PlanResponse,
    spending::{Finished, LeaseAsked, ModelCall},
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::json;

use crate::harness::{
    Host, TestApp,
    spending::{CALL, MODEL, question},
};

/// Two agents, each with a lease's worth of tokens an hour.
async fn guarded(app: &TestApp) -> [Host<'_>; 2] {
    let hosts = [app.running_agent().await, app.running_agent().await];
    let guard =
        json!({ "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 40_000, "costGuardAction": "PAUSE" });
    for host in &hosts {
        app.sets_agent(host.agent, guard.clone()).await;
    }
    hosts
}

#[tokio::test]
async fn all_leases_together_stay_within_the_budget() {
    let app = TestApp::with_budget(10 * CALL).await;
    let hosts = [app.running_agent().await, app.running_agent().await, app.running_agent().await];
    let asked = join_all((0..21).map(|n| hosts[n % 3].leases())).await;
    let granted: Vec<i64> = asked.into_iter().flatten().map(|lease| lease.cost_micro.unwrap()).collect();
    assert_eq!(granted.iter().sum::<i64>(), 10 * CALL);
    assert_eq!(granted.len(), 10, "each as much as a call needs");
    let leased: i64 = app.one("SELECT leased_micro FROM organization_months", vec![]).await;
    assert_eq!(leased, 10 * CALL);
    let of_agents: i64 = app.one("SELECT CAST(SUM(leased_micro) AS BIGINT) FROM agent_months", vec![]).await;
    assert_eq!(of_agents, 10 * CALL);
    assert_eq!(app.guards().await.len(), 1, "people are notified once");
}

#[tokio::test]
async fn a_leases_rest_goes_back_at_its_end() {
    let app = TestApp::with_budget(2 * CALL).await;
    let host = app.running_agent().await;
    let (first, second) = (host.leases().await.unwrap(), host.leases().await.unwrap());
    assert_eq!(app.leased().await, (2 * CALL, 0));
    host.calls(ModelCall { lease_id: Some(first.id), ..host.call(None, 1000, 0) }).await;
    assert_eq!(app.leased().await, (2 * CALL - 3000, 3000));
    host.returns(first.id).await;
    host.returns(first.id).await;
    assert_eq!(app.leased().await, (CALL, 3000), "once, however often it is returned");
    assert_eq!(spending::expire_due(&app.core).await.unwrap(), 0);
    app.clock.advance(Duration::from_mins(15));
    assert_eq!(spending::expire_due(&app.core).await.unwrap(), 1);
    assert_eq!(app.leased().await, (0, 3000));
    // A call that is reported late is counted, and takes nothing from what is open.
    host.calls(ModelCall { lease_id: Some(second.id), ..host.call(None, 1000, 0) }).await;
    assert_eq!(app.leased().await, (0, 6000));
}

#[tokio::test]
async fn an_agents_own_lease_does_not_refuse_it() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let first = host.leases().await.unwrap();
    assert_eq!(first.cost_micro, Some(CALL));
    host.calls(ModelCall { lease_id: Some(first.id), ..host.call(Some(turn), 1000, 0) }).await;
    // The report of another call of 6,000 is on its way.
    let finished = vec![Finished { lease_id: first.id, cost_micro: 9000, tokens: 3000 }];
    let asked = LeaseAsked { finished, ..question(MODEL) };
    let PlanResponse::Lease(second) = host.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_eq!(second.cost_micro, Some(CALL - 9000));
    assert_eq!(app.leased().await, (CALL - 3000, 3000), "no more than there is");
    assert_eq!((app.turn_is(turn).await.as_str(), app.guards().await.len()), ("RUNNING", 0));
    host.calls(ModelCall { lease_id: Some(first.id), ..host.call(Some(turn), 2000, 0) }).await;
    assert_eq!(app.leased().await, (CALL - 9000, 9000));
    // Now the whole budget is leased. Returning a used-up lease wakes no one in vain.
    assert!(host.leases().await.is_none());
    host.returns(first.id).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    host.returns(second.id).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!((app.leased().await, app.turn_is(turn).await.as_str()), ((0, 9000), "RUNNING"));
}

#[tokio::test]
async fn a_returned_lease_resends_only_affordable_turns() {
    let app = TestApp::start().await;
    let [one, two] = guarded(&app).await;
    let (_, turn) = two.works().await;
    two.calls(two.call(Some(turn), 40_000, 0)).await;
    assert!(two.leases().await.is_none());
    two.turn_ended(turn, TurnOutcome::Failed).await;
    let waits = async || {
        assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
        assert_eq!((app.turn_is(turn).await.as_str(), two.given().await.len()), ("WAITING_LIMIT", 1));
    };
    // The tokens of an hour are each agent's.
    one.returns(one.leases().await.unwrap().id).await;
    waits().await;
    // The limits have changed, so people are asked once more.
    app.sets(json!({ "monthlyBudgetMicro": 10 * CALL })).await;
    waits().await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "PENDING"]);
    app.execute("UPDATE agent_limits SET reason = 'Another limit was used up.'", vec![]).await;
    // Money is for all that wait.
    one.returns(one.leases().await.unwrap().id).await;
    waits().await;
    assert_eq!(app.guards_are().await, ["DISMISSED", "PENDING"], "they are asked once");
    let limit = two.agent_shows("limit { reason }").await["limit"].clone();
    assert!(
        limit["reason"].as_str().unwrap().contains("40000 tokens"),
        "what people read is true now: {limit}"
    );
    app.allows(json!({ "agentId": two.agent, "tokens": 100_000 })).await;
    assert_eq!(two.given().await, [turn, turn]);
}

#[tokio::test]
async fn a_spent_agent_waits_on_when_money_goes_back() {
    let app = TestApp::with_budget(10 * CALL).await;
    let (one, two) = (app.running_agent().await, app.running_agent().await);
    app.sets_agent(two.agent, json!({ "monthlyBudgetMicro": CALL })).await;
    let (_, turn) = two.works().await;
    two.runs_out().await;
    two.turn_ended(turn, TurnOutcome::Failed).await;
    one.returns(one.leases().await.unwrap().id).await;
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 0);
    assert_eq!((app.turn_is(turn).await.as_str(), two.given().await.len()), ("WAITING_LIMIT", 1));
    // There is something by itself with the next month.
    app.clock.advance(Duration::from_hours(32 * 24));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    assert_eq!(two.given().await, [turn, turn]);
}

#[tokio::test]
async fn a_question_that_is_asked_again_gets_the_same_lease() {
    let app = TestApp::with_budget(2 * CALL).await;
    let (host, other) = (app.running_agent().await, app.running_agent().await);
    let asked = question(MODEL);
    let given = join_all((0..3).map(|_| host.wants(&asked))).await;
    let given: Vec<PlanResponse> = given.into_iter().map(Result::unwrap).collect();
    let PlanResponse::Lease(first) = &given[0] else { panic!("{:?}", given[0]) };
    assert!(given.iter().all(|again| *again == given[0]), "{given:?}");
    assert_eq!(app.leased().await, (CALL, 0));
    // Another agent's host may ask the same.
    let PlanResponse::Lease(theirs) = other.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_ne!(theirs.id, first.id);
    // An expired lease can't be used.
    app.clock.advance(Duration::from_mins(15));
    spending::expire_due(&app.core).await.unwrap();
    let PlanResponse::Lease(later) = host.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_ne!(later.id, first.id);
}

/// An SQLite database has one writer.
#[tokio::test]
async fn postgres_what_goes_back_keeps_no_other_agent_waiting() {
    let app = TestApp::start().await;
    let [one, two] = guarded(&app).await;
    let lease = one.leases().await.unwrap().id;
    assert!(two.leases().await.is_some() && two.leases().await.is_none());
    assert_eq!(two.agent_shows("limit { kind }").await["limit"]["kind"], "TOKENS");
    app.clock.advance(Duration::from_mins(15));
    let told = one.tell(async |tx, from| {
        spending::return_lease(tx, from, LeaseId(lease)).await?;
        assert!(two.leases().await.is_some(), "its limit is not held by another's report");
        Ok(())
    });
    Box::pin(told).await.unwrap();
    assert!(two.agent_shows("limit { kind }").await["limit"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_tokens_that_go_back_wait_for_no_other_agents_limit() {
    let app = TestApp::start().await;
    let [one, two] = guarded(&app).await;
    let lease_id = one.leases().await.unwrap().id;
    assert!(two.leases().await.is_some() && two.leases().await.is_none());
    let other = app.connection().await;
    let other = other.begin().await.unwrap();
    other.execute_unprepared("UPDATE agent_limits SET reason = reason").await.unwrap();
    let finished = vec![Finished { lease_id, cost_micro: 0, tokens: 1000 }];
    let asked = LeaseAsked { finished, ..question(MODEL) };
    let PlanResponse::Lease(next) = one.wants(&asked).await.unwrap() else { panic!("refused") };
    assert_eq!(next.tokens, Some(39_000));
    other.rollback().await.unwrap();
}

#[tokio::test]
async fn a_host_that_asks_without_end_holds_few_leases() {
    let app = TestApp::with_budget(1000 * CALL).await;
    let (greedy, other) = (app.running_agent().await, app.running_agent().await);
    let mut held = Vec::new();
    for _ in 0..16 {
        held.push(greedy.leases().await.unwrap().id);
    }
    let PlanResponse::Refused { reason } = greedy.asks_for_lease(MODEL).await.unwrap() else {
        panic!("granted")
    };
    assert!(reason.contains("16 leases"), "{reason}");
    other.leases().await.unwrap();
    let first = muster::base::ids::LeaseId(held[0]);
    greedy.tell(async |tx, from| spending::return_lease(tx, from, first).await).await.unwrap();
    greedy.leases().await.unwrap();
    assert!(matches!(greedy.asks_for_lease(MODEL).await.unwrap(), PlanResponse::Refused { .. }));
    app.clock.advance(Duration::from_mins(15));
    greedy.leases().await.unwrap();
}

#[tokio::test]
async fn nothing_is_granted_in_a_stopped_organization() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    assert!(matches!(host.asks_for_lease(MODEL).await.unwrap(), PlanResponse::Lease(_)));
    emergency_stop::stop(&app.scope(), "so").await.unwrap();
    let PlanResponse::Refused { reason } = host.asks_for_lease(MODEL).await.unwrap() else {
        panic!("granted")
    };
    assert!(reason.contains("stopped"), "{reason}");
    emergency_stop::release(&app.scope(), None).await.unwrap();
    assert!(matches!(host.asks_for_lease(MODEL).await.unwrap(), PlanResponse::Lease(_)));
}
