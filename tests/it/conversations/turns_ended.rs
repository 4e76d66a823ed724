//! Turns whose agent ends, is deleted, stopped with its organization, or can't take them; and hosts that report what they must
//! not.

use std::time::Duration;

use muster::{
    base::ids::{AgentId, ConversationId, TurnId},
    domain::{conversations::turns, emergency_stop, hosts},
    jobs,
};
use muster_protocol::event::{Asked, Content, EndReason, RefusedReason, TurnOutcome};
use serde_json::json;

use crate::{
    conversations::turns::{statuses, texts, write},
    harness::{Host, TestApp},
};

#[tokio::test]
async fn a_launchs_end_interrupts_only_begun_turns() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let begun = app.conversation(host.agent).await;
    let interrupted = write(&app, begun, "begun").await;
    host.takes(interrupted).await;
    let later = write(&app, begun, "later").await;
    // The host has requested the turn's content, but the agent never got it.
    let planned = app.conversation(host.agent).await;
    let unseen = write(&app, planned, "unseen").await;
    host.plan(unseen).await.unwrap();
    let both = app.conversation(host.agent).await;
    let early = write(&app, both, "early").await;
    host.plan(early).await.unwrap();
    let late = write(&app, both, "late").await;
    host.ended(EndReason::OutOfMemory).await;
    assert_eq!(app.turn_is(interrupted).await, "INTERRUPTED");
    assert_eq!(app.turn_is(later).await, "QUEUED");
    assert_eq!(app.turn_is(unseen).await, "QUEUED");
    assert_eq!(
        (app.turn_is(early).await.as_str(), app.turn_is(late).await.as_str()),
        ("CANCELLED", "QUEUED")
    );
    let said: String = app
        .one(
            "SELECT CAST(content AS TEXT) FROM messages WHERE turn_id = $1 AND kind = 'ERROR'",
            vec![interrupted.into()],
        )
        .await;
    assert!(said.contains("INTERRUPTED") && said.contains("it ran out of memory (code 3)"), "{said}");
    assert_eq!(
        host.agent_shows("status statusReason runningTurns { id }").await,
        json!({ "status": "ERROR", "statusReason": "OUT_OF_MEMORY", "runningTurns": [] })
    );
    let host = host.relaunched().await;
    assert_eq!(host.given().await, [later, unseen, late], "nothing runs twice, nothing is lost");
    assert_eq!(texts(&host.plan(late).await.unwrap().prompt), ["early", "late"]);
    assert_eq!(texts(&host.plan(unseen).await.unwrap().prompt), ["unseen"]);
}

#[tokio::test]
async fn reports_of_another_launch_change_nothing() {
    let app = TestApp::start().await;
    let old = app.running_agent().await;
    let conversation = app.conversation(old.agent).await;
    let lost = write(&app, conversation, "one").await;
    old.takes(lost).await;
    old.act("stop").await;
    old.ended(EndReason::Stopped).await;
    assert_eq!(app.turn_is(lost).await, "INTERRUPTED");
    let status = || app.one::<String>("SELECT status FROM agents WHERE id = $1", vec![old.agent.into()]);
    assert_eq!(status().await, "STOPPED");
    let new = old.launched().await;
    new.started().await;
    let turn = write(&app, conversation, "two").await;
    new.takes(turn).await;
    for stale in [old, Host { generation: 9, ..old }] {
        stale.turn_ended(turn, TurnOutcome::Done).await;
        stale.ended(EndReason::Exited).await;
        stale.started().await;
        let said = Content::Text { text: "a ghost".to_owned() };
        stale.says(conversation, Some(turn), "9.1", said).await.unwrap();
        assert!(stale.plan(turn).await.is_err());
        assert!(stale.launch_plan().await.is_err());
    }
    assert_eq!((app.turn_is(turn).await.as_str(), status().await.as_str()), ("RUNNING", "RUNNING"));
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM messages WHERE role = 'ASSISTANT'", vec![]).await, 0);
}

#[tokio::test]
async fn late_events_of_a_stopped_agent_count_until_its_end() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let text = |text: &str| Content::Text { text: text.to_owned() };
    host.act("stop").await;
    host.says(conversation, None, "1.1", text("goodbye")).await.unwrap();
    host.ended(EndReason::Stopped).await;
    let turn = write(&app, conversation, "are you there?").await;
    host.says(conversation, None, "1.2", text("a ghost")).await.unwrap();
    let (options, multiple, allow_text) = (Vec::new(), false, true);
    let question = Asked::Question { text: "May I?".to_owned(), options, multiple, allow_text };
    host.asks(conversation, None, "1.3", question).await.unwrap();
    host.turn_started(turn).await;
    let said: Vec<String> = app.column("SELECT host_key FROM messages WHERE host_key IS NOT NULL").await;
    assert_eq!(said, ["1.1"]);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM approvals", vec![]).await, 0);
    assert_eq!(app.turn_is(turn).await, "QUEUED");
}

#[tokio::test]
async fn an_agent_does_not_touch_anothers_turns() {
    let app = TestApp::start().await;
    let (host, other) = (app.running_agent().await, app.running_agent().await);
    let theirs = app.conversation(other.agent).await;
    let turn = write(&app, theirs, "private").await;
    assert!(host.plan(turn).await.is_err());
    let started = host.tell(async |tx, from| turns::reports::turn_started(tx, from, TurnId(turn)).await);
    assert_eq!(started.await.unwrap_err().code.as_str(), "NOT_FOUND");
    let session = ConversationId(theirs);
    let named =
        host.tell(async |tx, from| turns::reports::session(tx, from, session, Some("s".to_owned())).await);
    assert_eq!(named.await.unwrap_err().code.as_str(), "NOT_FOUND");
    assert_eq!(app.turn_is(turn).await, "QUEUED");
    let foreign = hosts::turn_plan(&app.other_scope(), AgentId(other.agent), 1, TurnId(turn)).await;
    assert_eq!(foreign.unwrap_err().code.as_str(), "NOT_FOUND");
}

#[tokio::test]
async fn what_waits_for_a_deleted_agent_is_cancelled() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let turn = write(&app, conversation, "one").await;
    app.delete_agent(agent).await;
    assert_eq!(app.turn_is(turn).await, "CANCELLED");
    assert_eq!(statuses(&app, conversation).await, ["CANCELLED"]);
}

#[tokio::test]
async fn a_stopped_organization_sends_no_turn_until_it_is_released() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (busy, idle) = (app.conversation(host.agent).await, app.conversation(host.agent).await);
    let running = write(&app, busy, "one").await;
    host.takes(running).await;
    let sent = write(&app, app.conversation(host.agent).await, "too late").await;
    emergency_stop::stop(&app.scope(), "it runs wild").await.unwrap();
    assert_eq!(host.plan(sent).await.unwrap_err().code.as_str(), "ORGANIZATION_STOPPED");
    let cancel = json!({ "kind": "CANCEL", "turn_id": running });
    assert!(host.commands().await.contains(&cancel));
    let waiting = write(&app, idle, "two").await;
    host.turn_ended(running, TurnOutcome::Cancelled).await;
    assert_eq!(host.given().await, [running, sent]);
    emergency_stop::release(&app.scope(), None).await.unwrap();
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(emergency_stop::let_go(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [running, sent, waiting]);
    assert!(host.plan(sent).await.is_ok());
}

#[tokio::test]
async fn a_turn_that_its_host_refuses_waits_for_the_next_occasion() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let turn = write(&app, conversation, "one").await;
    host.refuses(RefusedReason::NotRunning).await;
    assert_eq!(host.given().await, [turn]);
    assert_eq!(write(&app, conversation, "two").await, turn);
    assert_eq!(host.given().await, [turn, turn]);
    assert_eq!(texts(&host.plan(turn).await.unwrap().prompt), ["one", "two"]);
}

#[tokio::test]
async fn a_turn_of_a_long_absent_host_waits_again() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let turn = write(&app, conversation, "one").await;
    let expire = async || {
        let now = app.clock.now().0;
        app.execute("UPDATE commands SET expires_at = $1 WHERE kind = 'TURN'", vec![now.into()]).await;
    };
    assert_eq!(turns::free_unsent(&app.core).await.unwrap(), 0, "it may still be sent");
    expire().await;
    app.execute("UPDATE commands SET host_seq = 1 WHERE kind = 'TURN'", vec![]).await;
    assert_eq!(turns::free_unsent(&app.core).await.unwrap(), 0, "it was sent, and its host will answer");
    app.execute("UPDATE commands SET host_seq = NULL WHERE kind = 'TURN'", vec![]).await;
    jobs::sweep(&app.core).await.unwrap();
    assert_eq!(host.given().await, [turn], "it does not go before the turn is free");
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0);
    assert_eq!(turns::free_unsent(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [0_i64; 0]);
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [turn]);
    // The next message would have sent it as well.
    expire().await;
    assert_eq!(turns::free_unsent(&app.core).await.unwrap(), 1);
    assert_eq!(write(&app, conversation, "two").await, turn);
    assert_eq!(host.given().await, [turn]);
    assert_eq!(texts(&host.takes(turn).await.prompt), ["one", "two"]);
}

#[tokio::test]
async fn a_command_of_an_earlier_launch_frees_nothing() {
    let app = TestApp::start().await;
    let old = app.running_agent().await;
    let turn = write(&app, app.conversation(old.agent).await, "one").await;
    // The stop makes what was not sent useless.
    old.act("stop").await;
    old.ended(EndReason::Stopped).await;
    let new = old.launched().await;
    new.started().await;
    assert_eq!((old.given().await, new.given().await), (vec![turn], vec![turn]));
    assert_eq!(turns::free_unsent(&app.core).await.unwrap(), 1);
    assert_eq!((old.given().await, new.given().await), (vec![], vec![turn]));
    app.clock.advance(Duration::from_secs(31));
    assert_eq!(turns::send_left(&app.core).await.unwrap(), 0, "it is on its way");
}
