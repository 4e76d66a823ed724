//! Turns that reach a limit: they wait, or are parked and sent again, and none is lost.

use std::time::Duration;

use muster::domain::{conversations::turns, spending};
use muster_protocol::event::{EndReason, RefusedReason, TurnOutcome};
use serde_json::json;

use crate::{
    approvals::asked::question,
    harness::{TestApp, spending::CALL},
};

#[tokio::test]
async fn a_parked_turn_is_cancelled_at_once_and_survives_its_launch() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let ((_, first), (_, second)) = (host.works().await, host.works().await);
    host.runs_out().await;
    for turn in [first, second] {
        host.turn_ended(turn, TurnOutcome::Failed).await;
    }
    app.cancels(first).await;
    assert_eq!(app.turn_is(first).await, "CANCELLED");
    host.ended(EndReason::Exited).await;
    assert_eq!(app.turn_is(second).await, "WAITING_LIMIT");
    app.allows(json!({ "costMicro": CALL })).await;
    let host = host.launched().await;
    host.started().await;
    assert_eq!(host.given().await, [second]);
}

#[tokio::test]
async fn an_agent_that_still_may_not_spend_is_not_prompted() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.runs_out().await;
    host.turn_ended(turn, TurnOutcome::Failed).await;
    let waits = async || {
        assert_eq!((host.given().await, app.turn_is(turn).await.as_str()), (vec![turn], "WAITING_LIMIT"));
    };
    waits().await;
    // The agent's own budget is used up too: first the organization's budget blocks it, then its own.
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": CALL })).await;
    waits().await;
    app.allows(json!({ "costMicro": 100 * CALL })).await;
    waits().await;
    app.sets_agent(host.agent, json!({ "monthlyBudgetMicro": 100 * CALL })).await;
    host.runs(turn, 2).await;
}

#[tokio::test]
async fn a_parked_turn_that_does_not_reach_its_agent_again_waits_on() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    host.turn_ended(turn, TurnOutcome::Failed).await;
    app.allows(json!({ "costMicro": 300_000 })).await;
    host.runs(turn, 2).await;
    host.refuses(RefusedReason::TooLate).await;
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    host.runs(turn, 3).await;
    // The same if it never reached its host at all.
    let now = app.clock.now().0;
    app.execute("UPDATE commands SET expires_at = $1 WHERE kind = 'TURN'", vec![now.into()]).await;
    turns::free_unsent(&app.core).await.unwrap();
    assert_eq!(app.turn_is(turn).await, "WAITING_LIMIT");
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    assert_eq!(app.cancels(turn).await, "RUNNING", "its host may have it");
    host.refuses(RefusedReason::TooLate).await;
    assert_eq!(app.turn_is(turn).await, "CANCELLED");
}

#[tokio::test]
async fn a_resent_turn_waits_on_despite_another_refusal() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let turn = host.is_sent_again().await;
    host.is_limited(None, 60).await;
    host.refuses(RefusedReason::TooLate).await;
    app.clock.advance(Duration::from_secs(61));
    assert_eq!(spending::release_due(&app.core).await.unwrap(), 1);
    host.runs(turn, 3).await;
}

#[tokio::test]
async fn undelivered_messages_are_cancelled_with_their_turn() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let turn = app.posts(app.conversation(host.agent).await).await;
    host.plan(turn).await.unwrap();
    host.gives_up(turn, None, 60).await;
    app.cancels(turn).await;
    let status: String = app.one("SELECT status FROM messages WHERE turn_id = $1", vec![turn.into()]).await;
    assert_eq!((app.turn_is(turn).await.as_str(), status.as_str()), ("CANCELLED", "CANCELLED"));
}

#[tokio::test]
async fn an_undelivered_turn_survives_anothers_limit() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let (_, begun) = host.works().await;
    // The host opens a session for this turn.
    let unseen = app.posts(app.conversation(host.agent).await).await;
    host.plan(unseen).await.unwrap();
    host.runs_out().await;
    assert_eq!(app.turn_is(unseen).await, "WAITING_LIMIT");
    host.ended(EndReason::Exited).await;
    assert_eq!([app.turn_is(begun).await, app.turn_is(unseen).await], ["INTERRUPTED", "QUEUED"]);
    app.allows(json!({ "costMicro": 300_000 })).await;
    let host = host.launched().await;
    host.started().await;
    assert_eq!(host.given().await, [unseen]);
    // The limit was the other launch's.
    host.takes(unseen).await;
    host.turn_ended(unseen, TurnOutcome::Failed).await;
    assert_eq!(app.turn_is(unseen).await, "FAILED");
}

#[tokio::test]
async fn a_turn_given_up_while_it_asks_is_sent_again() {
    let app = TestApp::with_budget(CALL).await;
    let host = app.running_agent().await;
    let ((_, other), (conversation, turn)) = (host.works().await, host.works().await);
    host.runs_out().await;
    app.allows(json!({ "costMicro": 300_000 })).await;
    assert_eq!(app.turn_is(turn).await, "RUNNING");
    host.asks(conversation, Some(turn), "1.1", question()).await.unwrap();
    assert_eq!(app.turn_is(turn).await, "WAITING_APPROVAL");
    // The next call is refused, too, and the agent ends the turn without the person's answer.
    host.runs_out().await;
    host.turn_ended(turn, TurnOutcome::Failed).await;
    assert_eq!([app.turn_is(other).await, app.turn_is(turn).await], ["WAITING_LIMIT", "WAITING_LIMIT"]);
    assert_eq!(host.given().await, [other, turn]);
    app.allows(json!({ "costMicro": 600_000 })).await;
    assert_eq!(host.given().await, [other, turn, turn]);
    assert_eq!(app.turn_is(turn).await, "RUNNING");
    host.takes(turn).await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    assert_eq!(app.turn_is(turn).await, "DONE");
}

#[tokio::test]
async fn a_finished_turn_is_not_resent_for_anothers_call() {
    let app = TestApp::with_budget(CALL).await;
    let (host, single) = (app.running_agent().await, app.running_agent().await);
    let ((_, first), (_, second), (_, only)) = (host.works().await, host.works().await, single.works().await);
    host.calls(host.call(None, 100_000, 0)).await;
    for host in [&host, &single] {
        assert!(host.leases().await.is_none());
    }
    host.turn_ended(first, TurnOutcome::Done).await;
    host.turn_ended(second, TurnOutcome::Failed).await;
    // Some agents say that a turn is done which they gave up. This one can't have been another's call.
    single.turn_ended(only, TurnOutcome::Done).await;
    let states = [app.turn_is(first).await, app.turn_is(second).await, app.turn_is(only).await];
    assert_eq!(states, ["DONE", "WAITING_LIMIT", "WAITING_LIMIT"]);
    app.allows(json!({ "costMicro": 300_000 })).await;
    assert_eq!((host.given().await, single.given().await), (vec![first, second, second], vec![only, only]));
}
