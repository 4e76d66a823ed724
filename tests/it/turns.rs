//! Turns: how messages become turns, what a host is told, and what becomes of them.

use std::{collections::BTreeSet, time::Duration};

use futures::future::join_all;
use muster::{
    base::ids::{AgentId, ConversationId},
    slices::turns,
};
use muster_protocol::{
    event::{EndReason, TurnEnd, TurnOutcome, Usage},
    plan::Part,
};
use serde_json::{Value, json};

use crate::harness::{Answer, Host, Socket, TestApp, is_postgres};

const POST: &str = "mutation($o: Id!, $c: Id!, $t: String!) { \
    postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { id seq status turn { id state cause causedByUserId } } }";

async fn post(app: &TestApp, conversation: i64, text: &str) -> Value {
    let variables = json!({ "o": app.org, "c": conversation, "t": text });
    app.operator.gql(POST, variables).await.data()["postMessage"].clone()
}

/// The id of the turn that a new message belongs to.
async fn write(app: &TestApp, conversation: i64, text: &str) -> i64 {
    post(app, conversation, text).await["turn"]["id"].as_i64().unwrap()
}

async fn state(app: &TestApp, turn: i64) -> String {
    app.one("SELECT state FROM turns WHERE id = $1", vec![turn.into()]).await
}

async fn statuses(app: &TestApp, conversation: i64) -> Vec<String> {
    let sql = format!("SELECT status FROM messages WHERE conversation_id = {conversation} ORDER BY seq");
    app.column(&sql).await
}

fn texts(parts: &[Part]) -> Vec<&str> {
    let mut all = Vec::new();
    for part in parts {
        all.push(match part {
            Part::Text { text, .. } => text.as_str(),
            Part::File { filename, .. } => filename.as_str(),
        });
    }
    all
}

async fn cancel(app: &TestApp, turn: i64) -> Answer {
    let query = "mutation($o: Id!, $i: Id!) { cancelTurn(orgId: $o, id: $i) { state cancelRequestedAt } }";
    app.operator.gql(query, json!({ "o": app.org, "i": turn })).await
}

#[tokio::test]
async fn messages_to_an_agent_at_rest_wait_together_and_are_sent_when_it_has_started() {
    let app = TestApp::start().await;
    let host = Host { app: &app, agent: app.agent().await, generation: 0 };
    let conversation = app.conversation(host.agent).await;
    let first = post(&app, conversation, "one").await;
    assert_eq!((&first["status"], &first["turn"]["state"]), (&json!("PENDING"), &json!("QUEUED")));
    assert_eq!(first["turn"]["cause"], "PANEL");
    assert_eq!(first["turn"]["causedByUserId"], app.operator.user.unwrap());
    let turn = first["turn"]["id"].as_i64().unwrap();
    assert_eq!(write(&app, conversation, "two").await, turn);
    assert!(host.commands().await.is_empty(), "nobody could carry it out");
    let host = host.launched().await;
    assert_eq!(host.given().await, [0_i64; 0]);
    assert!(host.plan(turn).await.is_err(), "the agent is not up");
    host.started().await;
    assert_eq!(host.given().await, [turn]);
    host.started().await;
    assert_eq!(host.given().await, [turn], "a host that says it again changes nothing");
    let plan = host.plan(turn).await.unwrap();
    assert_eq!((plan.conversation_id, plan.session), (conversation, None));
    let text = |text: &str| Part::Text { author: Some("operator".to_owned()), text: text.to_owned() };
    assert_eq!(plan.prompt, [text("one"), text("two")]);
    assert_eq!(
        (state(&app, turn).await.as_str(), statuses(&app, conversation).await),
        ("RUNNING", vec!["PENDING".to_owned(); 2])
    );
    host.turn_started(turn).await;
    assert_eq!(statuses(&app, conversation).await, ["DELIVERED", "DELIVERED"]);
}

#[tokio::test]
async fn what_is_written_while_a_turn_runs_is_the_next_turn() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let other = app.conversation(host.agent).await;
    let first = write(&app, conversation, "one").await;
    assert_eq!(host.given().await, [first], "an idle agent gets it at once");
    assert_eq!(write(&app, conversation, "two").await, first, "its host has not asked what to say yet");
    assert_eq!(texts(&host.plan(first).await.unwrap().prompt), ["one", "two"]);
    let second = write(&app, conversation, "three").await;
    assert_ne!(second, first);
    assert_eq!(write(&app, conversation, "four").await, second);
    assert_eq!(host.given().await, [first]);
    assert_eq!(
        texts(&host.plan(first).await.unwrap().prompt),
        ["one", "two"],
        "a host that asks again is told the same"
    );
    assert!(host.plan(second).await.is_err(), "one at a time");
    let elsewhere = write(&app, other, "meanwhile").await;
    assert_eq!(host.given().await, [first, elsewhere], "another conversation does not wait");
    host.turn_started(first).await;
    let session = ConversationId(conversation);
    host.tell(async |tx, from| turns::reports::session(tx, from, session, "s-1".to_owned()).await)
        .await
        .unwrap();
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!(host.given().await, [first, elsewhere, second]);
    let plan = host.takes(second).await;
    assert_eq!(texts(&plan.prompt), ["three", "four"]);
    assert_eq!(plan.session.as_deref(), Some("s-1"));
    host.turn_ended(second, TurnOutcome::Failed).await;
    let query = "query($o: Id!, $i: Id!) { turn(orgId: $o, id: $i) { state error firstSeq lastSeq generation startedAt endedAt } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "i": second })).await.data()["turn"].clone();
    assert_eq!((&shown["state"], &shown["error"]), (&json!("FAILED"), &json!("it broke")));
    assert_eq!(
        (&shown["firstSeq"], &shown["lastSeq"], &shown["generation"]),
        (&json!(3), &json!(4), &json!(1))
    );
    assert!(shown["startedAt"].is_string() && shown["endedAt"].is_string());
    host.turn_ended(second, TurnOutcome::Done).await;
    assert_eq!(state(&app, second).await, "FAILED", "it ends once");
}

#[tokio::test]
async fn many_who_write_at_once_make_one_turn() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    // SQLite has one process.
    let replica = if is_postgres() { app.replica(None).await } else { std::sync::Arc::clone(&app.core) };
    for _ in 0..3 {
        let conversation = app.conversation(host.agent).await;
        let posts = (0..12).map(|n| {
            let core = if n % 2 == 0 { &app.core } else { &replica };
            let scope = muster::core::access::Scope::system(core, muster::base::ids::OrgId(app.org));
            async move {
                let post = muster::slices::conversations::Post {
                    text: format!("message {n}"),
                    format: muster::base::enums::TextFormat::Plain,
                    attachments: Vec::new(),
                };
                muster::slices::conversations::post(&scope, ConversationId(conversation), post).await.unwrap()
            }
        });
        join_all(posts).await;
        let sql = format!("SELECT DISTINCT turn_id FROM messages WHERE conversation_id = {conversation}");
        let made: BTreeSet<i64> = app.column::<i64>(&sql).await.into_iter().collect();
        assert_eq!(made.len(), 1);
        let given = host.given().await;
        assert_eq!(given.iter().filter(|turn| made.contains(turn)).count(), 1, "and it is sent once");
        let plan = host.plan(*made.first().unwrap()).await.unwrap();
        assert_eq!(plan.prompt.len(), 12);
    }
}

#[tokio::test]
async fn a_start_and_a_message_at_once_lose_no_turn() {
    let app = TestApp::start().await;
    for _ in 0..5 {
        let host = app.starting_agent().await;
        let conversation = app.conversation(host.agent).await;
        let (turn, ()) = futures::join!(write(&app, conversation, "hello"), host.started());
        assert_eq!(host.given().await, [turn]);
    }
}

#[tokio::test]
async fn a_paused_agent_keeps_its_turns_and_gets_what_waits_when_it_resumes() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let turn = write(&app, conversation, "one").await;
    host.takes(turn).await;
    host.act("pause").await;
    assert_eq!(state(&app, turn).await, "RUNNING");
    let next = write(&app, conversation, "two").await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    assert_eq!(host.given().await, [turn]);
    host.act("resume").await;
    assert_eq!(host.given().await, [turn, next]);
}

#[tokio::test]
async fn a_turn_is_cancelled_by_a_person() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let running = write(&app, conversation, "one").await;
    host.takes(running).await;
    let waiting = write(&app, conversation, "two").await;
    let cancelled = cancel(&app, waiting).await.data()["cancelTurn"].clone();
    assert_eq!(cancelled["state"], "CANCELLED");
    assert_eq!(statuses(&app, conversation).await, ["DELIVERED", "CANCELLED"]);
    let asked = cancel(&app, running).await.data()["cancelTurn"].clone();
    assert_eq!(asked["state"], "RUNNING", "until its host has done it");
    assert!(asked["cancelRequestedAt"].is_string());
    cancel(&app, running).await.data();
    let cancels = host.commands().await;
    let cancels: Vec<_> = cancels.iter().filter(|command| command["kind"] == "CANCEL").collect();
    assert_eq!(cancels, [&json!({ "kind": "CANCEL", "turn_id": running })]);
    host.turn_ended(running, TurnOutcome::Cancelled).await;
    let ended = cancel(&app, running).await.data()["cancelTurn"].clone();
    assert_eq!(ended["state"], "CANCELLED");
    let lines: i64 = app.one("SELECT COUNT(*) FROM audit_lines WHERE operation = 'cancelTurn'", vec![]).await;
    assert_eq!(lines, 2);
    let query = "mutation($o: Id!, $i: Id!) { cancelTurn(orgId: $o, id: $i) { id } }";
    let variables = json!({ "o": app.org, "i": running });
    assert_eq!(app.viewer.gql(query, variables.clone()).await.code(), "PERMISSION_DENIED");
    assert_eq!(app.stranger.gql(query, variables).await.code(), "NOT_A_MEMBER");
    assert_eq!(cancel(&app, running + 500).await.code(), "NOT_FOUND");
}

#[tokio::test]
async fn the_end_of_a_launch_interrupts_what_was_begun_and_keeps_the_rest() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let begun = app.conversation(host.agent).await;
    let interrupted = write(&app, begun, "begun").await;
    host.takes(interrupted).await;
    let later = write(&app, begun, "later").await;
    // Its host has asked what to say, and the agent never got it.
    let planned = app.conversation(host.agent).await;
    let unseen = write(&app, planned, "unseen").await;
    host.plan(unseen).await.unwrap();
    let both = app.conversation(host.agent).await;
    let early = write(&app, both, "early").await;
    host.plan(early).await.unwrap();
    let late = write(&app, both, "late").await;
    host.ended(EndReason::OutOfMemory).await;
    assert_eq!(state(&app, interrupted).await, "INTERRUPTED");
    assert_eq!(state(&app, later).await, "QUEUED");
    assert_eq!(state(&app, unseen).await, "QUEUED");
    assert_eq!(
        (state(&app, early).await.as_str(), state(&app, late).await.as_str()),
        ("CANCELLED", "QUEUED")
    );
    let said: String = app
        .one(
            "SELECT CAST(content AS TEXT) FROM messages WHERE turn_id = $1 AND kind = 'ERROR'",
            vec![interrupted.into()],
        )
        .await;
    assert!(said.contains("INTERRUPTED") && said.contains("its memory did not suffice (code 3)"), "{said}");
    let query =
        "query($o: Id!, $i: Id!) { agent(orgId: $o, id: $i) { status statusReason runningTurns { id } } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "i": host.agent })).await.data();
    assert_eq!(
        shown["agent"],
        json!({ "status": "ERROR", "statusReason": "OUT_OF_MEMORY", "runningTurns": [] })
    );
    let host = host.launched().await;
    host.started().await;
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
    assert_eq!(state(&app, lost).await, "INTERRUPTED");
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
        let said = muster_protocol::event::Content::Text { text: "a ghost".to_owned() };
        stale.says(conversation, Some(turn), "9.1", said).await.unwrap();
        assert!(stale.plan(turn).await.is_err());
        assert!(stale.launch_plan().await.is_err());
    }
    assert_eq!((state(&app, turn).await.as_str(), status().await.as_str()), ("RUNNING", "RUNNING"));
    let ghosts: i64 = app.one("SELECT COUNT(*) FROM messages WHERE role = 'ASSISTANT'", vec![]).await;
    assert_eq!(ghosts, 0);
}

#[tokio::test]
async fn an_agent_does_not_touch_anothers_turns() {
    let app = TestApp::start().await;
    let (host, other) = (app.running_agent().await, app.running_agent().await);
    let theirs = app.conversation(other.agent).await;
    let turn = write(&app, theirs, "private").await;
    assert!(host.plan(turn).await.is_err());
    let started = host
        .tell(async |tx, from| turns::reports::turn_started(tx, from, muster::base::ids::TurnId(turn)).await);
    assert_eq!(started.await.unwrap_err().code.as_str(), "NOT_FOUND");
    let session = ConversationId(theirs);
    let named = host.tell(async |tx, from| turns::reports::session(tx, from, session, "s".to_owned()).await);
    assert_eq!(named.await.unwrap_err().code.as_str(), "NOT_FOUND");
    assert_eq!(state(&app, turn).await, "QUEUED");
    let foreign =
        turns::plans::turn(&app.other_scope(), AgentId(other.agent), 1, muster::base::ids::TurnId(turn))
            .await;
    assert_eq!(foreign.unwrap_err().code.as_str(), "NOT_FOUND");
}

#[tokio::test]
async fn what_a_turn_cost_is_shown_and_added_up() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let usage = Usage {
        input: Some(9_007_199_254_740_993),
        output: Some(20),
        cache_read: Some(-5),
        cache_write: None,
        cost_micro: Some(1_500),
    };
    let end = |turn_id, usage| TurnEnd {
        turn_id,
        outcome: TurnOutcome::Done,
        error: None,
        model: Some("model-9\0".to_owned()),
        usage,
        context_tokens: Some(1234),
    };
    let first = write(&app, conversation, "one").await;
    host.takes(first).await;
    host.ends(end(first, Usage { input: Some(30), ..usage })).await;
    let second = write(&app, conversation, "two").await;
    host.takes(second).await;
    host.ends(end(second, Usage::default())).await;
    let query = "query($o: Id!, $c: Id!) { turns(orgId: $o, conversationId: $c, page: 1, limit: 10) { total data { id model \
                 inputTokens outputTokens cacheReadTokens cacheWriteTokens costMicro } } conversation(orgId: $o, id: $c) { model \
                 contextTokens openTurns { id } } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org, "c": conversation })).await.data();
    let known = json!({ "id": first, "model": "model-9\u{fffd}", "inputTokens": "30", "outputTokens": "20",
        "cacheReadTokens": "0", "cacheWriteTokens": null, "costMicro": "1500" });
    let unknown = json!({ "id": second, "model": "model-9\u{fffd}", "inputTokens": null, "outputTokens": null,
        "cacheReadTokens": null, "cacheWriteTokens": null, "costMicro": null });
    assert_eq!(shown["turns"], json!({ "total": 2, "data": [unknown, known] }));
    assert_eq!(
        shown["conversation"],
        json!({ "model": "model-9\u{fffd}", "contextTokens": 1234, "openTurns": [] })
    );
    let path = format!("/v1/org/{}/agent?page=1&limit=9", app.org);
    let agent = app.viewer.get(&path).await.expect(200)["data"][0].clone();
    assert_eq!((&agent["tokens_used"], &agent["cost_micro"]), (&json!("50"), &json!("1500")));
    let third = write(&app, conversation, "three").await;
    host.takes(third).await;
    host.ends(end(third, usage)).await;
    let tokens: i64 = app.one("SELECT input_tokens FROM turns WHERE id = $1", vec![third.into()]).await;
    assert_eq!(tokens, 1 << 50, "nonsense is bounded");
}

#[tokio::test]
async fn a_full_session_starts_over_with_the_next_turn() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let sql = "UPDATE agents SET session_reset_mode = 'CUSTOM', session_reset_tokens = 1000 WHERE id = $1";
    app.execute(sql, vec![host.agent.into()]).await;
    let conversation = app.conversation(host.agent).await;
    for (tokens, session) in [(999, Some("s-1".to_owned())), (1000, None)] {
        let turn = write(&app, conversation, "go on").await;
        host.takes(turn).await;
        let of = ConversationId(conversation);
        host.tell(async |tx, from| turns::reports::session(tx, from, of, "s-1".to_owned()).await)
            .await
            .unwrap();
        let (outcome, usage) = (TurnOutcome::Done, Usage::default());
        let end =
            TurnEnd { turn_id: turn, outcome, error: None, model: None, usage, context_tokens: Some(tokens) };
        host.ends(end).await;
        let kept: Option<String> =
            app.one("SELECT session FROM conversations WHERE id = $1", vec![conversation.into()]).await;
        assert_eq!(kept, session);
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_taken_in_parts() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let long = "ü".repeat(65_536);
    let mut turn = write(&app, conversation, &long).await;
    for _ in 0..9 {
        assert_eq!(write(&app, conversation, &long).await, turn);
    }
    let mut told = 0;
    while told < 10 {
        let plan = host.takes(turn).await;
        assert!(serde_json::to_string(&plan).unwrap().len() < muster_protocol::LARGEST_FRAME - 1024);
        told += plan.prompt.len();
        assert!(plan.prompt.len() == 3 || told == 10, "as many as fit");
        host.turn_ended(turn, TurnOutcome::Done).await;
        turn = *host.given().await.last().unwrap();
    }
    assert_eq!(told, 10, "each message once");
    assert_eq!(statuses(&app, conversation).await, vec!["DELIVERED".to_owned(); 10]);
}

#[tokio::test]
async fn what_waits_for_a_deleted_agent_is_cancelled() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    let turn = write(&app, conversation, "one").await;
    let query = "mutation($o: Id!, $i: Id!) { deleteAgent(orgId: $o, id: $i) }";
    app.owner.gql(query, json!({ "o": app.org, "i": agent })).await.data();
    assert_eq!(state(&app, turn).await, "CANCELLED");
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
    muster::slices::orgs::stop(&app.scope(), "it runs wild").await.unwrap();
    assert_eq!(host.plan(sent).await.unwrap_err().code.as_str(), "ORGANIZATION_STOPPED");
    let cancel = json!({ "kind": "CANCEL", "turn_id": running });
    assert!(host.commands().await.contains(&cancel));
    let waiting = write(&app, idle, "two").await;
    host.turn_ended(running, TurnOutcome::Cancelled).await;
    assert_eq!(host.given().await, [running, sent]);
    muster::slices::orgs::release(&app.scope(), None).await.unwrap();
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(muster::slices::orgs::let_go(&app.core).await.unwrap(), 1);
    assert_eq!(host.given().await, [running, sent, waiting]);
    assert!(host.plan(sent).await.is_ok());
}

#[tokio::test]
async fn a_turn_that_its_host_refuses_waits_for_the_next_occasion() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    let turn = write(&app, conversation, "one").await;
    let command: i64 = app.one("SELECT id FROM outbox WHERE kind = 'TURN'", vec![]).await;
    let reason = muster_protocol::event::RefusedReason::NotRunning;
    host.tell(async |tx, from| muster::slices::agents::reports::refused(tx, from, command, reason).await)
        .await
        .unwrap();
    assert_eq!(host.given().await, [turn]);
    assert_eq!(write(&app, conversation, "two").await, turn);
    assert_eq!(host.given().await, [turn, turn]);
    assert_eq!(texts(&host.plan(turn).await.unwrap().prompt), ["one", "two"]);
}

#[tokio::test]
async fn turns_are_filtered_and_watched_by_whoever_may_read_messages() {
    let app = TestApp::start().await;
    let (host, other) = (app.running_agent().await, app.running_agent().await);
    let conversation = app.conversation(host.agent).await;
    let elsewhere = app.conversation(other.agent).await;
    let mut viewer = Socket::of(&app.viewer).await;
    let watch = "subscription($o: Id!, $c: Id) { turnChanged(orgId: $o, conversationId: $c) { id state } }";
    viewer.subscribe("1", watch, json!({ "o": app.org, "c": conversation })).await;
    viewer.subscribe("settled", "{ __typename }", json!({})).await;
    assert_eq!(viewer.next().await["id"], "settled");
    assert_eq!(viewer.next().await["type"], "complete");
    let theirs = write(&app, elsewhere, "not watched").await;
    let turn = write(&app, conversation, "watched").await;
    let seen = viewer.next().await["payload"]["data"]["turnChanged"].clone();
    assert_eq!(seen, json!({ "id": turn, "state": "QUEUED" }));
    host.takes(turn).await;
    let seen = viewer.next().await["payload"]["data"]["turnChanged"].clone();
    assert_eq!(seen, json!({ "id": turn, "state": "RUNNING" }));
    let list = async |filter: &str| {
        let query =
            format!("query($o: Id!) {{ turns(orgId: $o, page: 1, limit: 10{filter}) {{ data {{ id }} }} }}");
        let data = app.viewer.gql(&query, json!({ "o": app.org })).await.data();
        let data = data["turns"]["data"].as_array().unwrap().clone();
        data.iter().map(|turn| turn["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(list("").await, [turn, theirs]);
    assert_eq!(list(", state: QUEUED").await, [theirs]);
    assert_eq!(list(&format!(", agentId: {}", host.agent)).await, [turn]);
    let query = "query($o: Id!, $i: Id!) { turn(orgId: $o, id: $i) { id } }";
    let token = app.token(&["agent.view"]).await;
    let variables = json!({ "o": app.org, "i": turn });
    assert_eq!(token.gql(query, variables.clone()).await.code(), "PERMISSION_DENIED");
    assert_eq!(app.stranger.gql(query, variables).await.code(), "NOT_A_MEMBER");
}
