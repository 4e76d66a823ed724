//! Turns: how messages become turns, what a host gets, and what becomes of them.

use std::{collections::BTreeSet, time::Duration};

use futures::{FutureExt, future::join_all};
use muster::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{ConversationId, OrgId},
    },
    core::{News, access::Caller},
    domain::conversations::turns,
};
use muster_protocol::{
    event::{Content, EndReason, TurnEnd, TurnOutcome, Usage},
    plan::Part,
};
use serde_json::{Value, json};

use crate::{
    conversations::takeover::{hand_back, take_over},
    harness::{Answer, Host, Socket, TestApp, is_postgres},
};

const POST: &str = "mutation($o: Id!, $c: Id!, $t: String!) { \
    postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { id seq status turn { id state cause causedByUserId } } }";

async fn post(app: &TestApp, conversation: i64, text: &str) -> Value {
    let variables = json!({ "o": app.org, "c": conversation, "t": text });
    app.operator.gql(POST, variables).await.data()["postMessage"].clone()
}

/// The id of the turn that a new message belongs to.
pub async fn write(app: &TestApp, conversation: i64, text: &str) -> i64 {
    post(app, conversation, text).await["turn"]["id"].as_i64().unwrap()
}

pub async fn statuses(app: &TestApp, conversation: i64) -> Vec<String> {
    let sql = format!("SELECT status FROM messages WHERE conversation_id = {conversation} ORDER BY seq");
    app.column(&sql).await
}

pub fn texts(parts: &[Part]) -> Vec<&str> {
    let mut all = Vec::new();
    for part in parts {
        all.push(match part {
            Part::Text { text, .. } | Part::Note { text } => text.as_str(),
            Part::File { filename, .. } => filename.as_str(),
        });
    }
    all
}

async fn cancel(app: &TestApp, turn: i64) -> Answer {
    let query = "mutation($o: Id!, $i: Id!) { cancelTurn(orgId: $o, id: $i) { state cancelRequestedAt } }";
    app.operator.gql(query, json!({ "o": app.org, "i": turn })).await
}

async fn retry(app: &TestApp, turn: i64) -> Answer {
    let query = "mutation($o: Id!, $i: Id!) { retryTurn(orgId: $o, id: $i) { id state cause messages { seq status } } }";
    app.operator.gql(query, json!({ "o": app.org, "i": turn })).await
}

fn ending(turn_id: i64, usage: Usage, context_tokens: i64) -> TurnEnd {
    TurnEnd {
        turn_id,
        outcome: TurnOutcome::Done,
        error: None,
        model: Some("model-9\0".to_owned()),
        usage,
        context_tokens: Some(context_tokens),
    }
}

#[tokio::test]
async fn messages_to_a_stopped_agent_wait_for_its_start() {
    let app = TestApp::start().await;
    let host = Host { app: &app, agent: app.agent().await, generation: 0 };
    let conversation = app.conversation(host.agent).await;
    let first = post(&app, conversation, "one").await;
    assert_eq!((&first["status"], &first["turn"]["state"]), (&json!("PENDING"), &json!("QUEUED")));
    assert_eq!(first["turn"]["cause"], "PANEL");
    assert_eq!(first["turn"]["causedByUserId"], app.operator.user.unwrap());
    let turn = first["turn"]["id"].as_i64().unwrap();
    assert_eq!(write(&app, conversation, "two").await, turn);
    assert!(host.commands().await.is_empty(), "no host could carry it out");
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
        (app.turn_is(turn).await.as_str(), statuses(&app, conversation).await),
        ("RUNNING", vec!["PENDING".to_owned(); 2])
    );
    host.turn_started(turn).await;
    assert_eq!(statuses(&app, conversation).await, ["DELIVERED", "DELIVERED"]);
}

#[tokio::test]
async fn what_is_written_while_a_turn_runs_is_the_next_turn() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
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
        "a host that asks again gets the same answer"
    );
    assert!(host.plan(second).await.is_err(), "one at a time");
    let elsewhere = write(&app, other, "meanwhile").await;
    assert_eq!(host.given().await, [first, elsewhere], "another conversation does not wait");
    host.turn_started(first).await;
    let session = ConversationId(conversation);
    host.tell(async |tx, from| turns::reports::session(tx, from, session, Some("s-1".to_owned())).await)
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
        (&json!(3), &json!(5), &json!(1)),
        "its last message says why it failed"
    );
    assert!(shown["startedAt"].is_string() && shown["endedAt"].is_string());
    host.turn_ended(second, TurnOutcome::Done).await;
    assert_eq!(app.turn_is(second).await, "FAILED", "it ends once");
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
                let post = muster::domain::conversations::Post {
                    text: format!("message {n}"),
                    format: muster::base::enums::TextFormat::Plain,
                    attachments: Vec::new(),
                };
                muster::domain::conversations::post(&scope, ConversationId(conversation), post).await.unwrap()
            }
        });
        join_all(posts).await;
        let sql = format!("SELECT DISTINCT turn_id FROM messages WHERE conversation_id = {conversation}");
        let made: BTreeSet<i64> = app.column::<i64>(&sql).await.into_iter().collect();
        assert_eq!(made.len(), 1);
        let given = host.given().await;
        assert_eq!(given.iter().filter(|turn| made.contains(turn)).count(), 1, "and it is sent once");
        assert_eq!(host.plan(*made.first().unwrap()).await.unwrap().prompt.len(), 12);
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
async fn a_paused_agent_gets_waiting_turns_when_it_resumes() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let turn = write(&app, conversation, "one").await;
    host.takes(turn).await;
    host.act("pause").await;
    assert_eq!(app.turn_is(turn).await, "RUNNING");
    let next = write(&app, conversation, "two").await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    assert_eq!(host.given().await, [turn]);
    host.act("resume").await;
    assert_eq!(host.given().await, [turn, next]);
}

#[tokio::test]
async fn a_turn_is_cancelled_by_a_person() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let running = write(&app, conversation, "one").await;
    host.takes(running).await;
    let waiting = write(&app, conversation, "two").await;
    let cancelled = cancel(&app, waiting).await.data()["cancelTurn"].clone();
    assert_eq!(cancelled["state"], "CANCELLED");
    // The third says who cancelled it.
    assert_eq!(statuses(&app, conversation).await, ["DELIVERED", "CANCELLED", "DELIVERED"]);
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
    assert_eq!(cancel(&app, running + 500).await.code(), "NOT_FOUND");
}

#[tokio::test]
async fn a_failed_turn_is_retried_as_the_next_one() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let first = write(&app, conversation, "one").await;
    assert_eq!(retry(&app, first).await.code(), "CONFLICT", "it has not ended");
    host.plan(first).await.unwrap();
    host.turn_ended(first, TurnOutcome::Failed).await;
    assert_eq!(statuses(&app, conversation).await[0], "FAILED", "the agent never got it");
    take_over(&app, &app.operator, conversation).await;
    assert_eq!(retry(&app, first).await.code(), "CONFLICT", "a person answers");
    hand_back(&app, &app.operator, conversation).await;
    let shown = "query($o: Id!, $i: Id!) { turn(orgId: $o, id: $i) { isRetryable } }";
    let is_retryable = async |turn: i64| {
        let turn = app.viewer.gql(shown, json!({ "o": app.org, "i": turn })).await.data();
        turn["turn"]["isRetryable"].as_bool().unwrap()
    };
    assert!(is_retryable(first).await);
    let second = retry(&app, first).await.data()["retryTurn"].clone();
    assert!(!is_retryable(first).await, "its messages have moved");
    assert_eq!(second["cause"], "PANEL");
    assert_eq!(second["messages"], json!([{ "seq": 1, "status": "PENDING" }]));
    let second = second["id"].as_i64().unwrap();
    assert_eq!(host.given().await, [first, second]);
    assert_eq!(texts(&host.takes(second).await.prompt), ["one"]);
    assert_eq!(statuses(&app, conversation).await[0], "DELIVERED");
    assert_eq!(app.turn_is(first).await, "FAILED");
    assert_eq!(retry(&app, first).await.code(), "CONFLICT", "the other turn has its messages");

    host.act("stop").await;
    host.ended(EndReason::Stopped).await;
    assert_eq!(app.turn_is(second).await, "INTERRUPTED");
    let waiting = write(&app, conversation, "two").await;
    let sets = "mutation($o: Id!, $c: Id!, $s: ConversationStatus!) { \
                updateConversation(orgId: $o, id: $c, input: { status: $s }) { id } }";
    let set = async |status: &str| {
        app.operator.gql(sets, json!({ "o": app.org, "c": conversation, "s": status })).await.data()
    };
    set("ARCHIVED").await;
    assert_eq!(retry(&app, second).await.code(), "ARCHIVED");
    set("OPEN").await;
    set("RESOLVED").await;
    let retried = retry(&app, second).await.data();
    let reopened =
        "SELECT COUNT(*) FROM conversations WHERE id = $1 AND status = 'OPEN' AND resolved_at IS NULL";
    assert_eq!(app.one::<i64>(reopened, vec![conversation.into()]).await, 1);
    assert_eq!(retried["retryTurn"]["id"], waiting, "the turn that waits takes the messages");
    let host = host.relaunched().await;
    assert_eq!(texts(&host.takes(waiting).await.prompt), ["one", "two"]);
}

#[tokio::test]
async fn what_a_turn_cost_is_shown_and_added_up() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let usage = Usage {
        input: Some(9_007_199_254_740_993),
        output: Some(20),
        cache_read: Some(-5),
        cache_write: None,
        cost_micro: Some(1_500),
    };
    let end = |turn, usage| ending(turn, usage, 1234);
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
    assert_eq!(tokens, 1 << 40, "nonsense is bounded");
}

#[tokio::test]
async fn an_excessive_spending_report_does_not_block_a_stop() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let full = "UPDATE agents SET tokens_used = $1, cost_micro = $1 WHERE id = $2";
    app.execute(full, vec![(i64::MAX - 10).into(), host.agent.into()]).await;
    let conversation = app.conversation(host.agent).await;
    let turn = write(&app, conversation, "one").await;
    host.takes(turn).await;
    let much = Usage { input: Some(100), cost_micro: Some(100), ..Usage::default() };
    host.ends(ending(turn, much, 100)).await;
    assert_eq!(app.turn_is(turn).await, "DONE");
    host.act("stop").await;
    let spent = "SELECT tokens_used FROM agents WHERE id = $1";
    assert_eq!(app.one::<i64>(spent, vec![host.agent.into()]).await, i64::MAX - 10, "it counts no further");
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
        host.tell(async |tx, from| turns::reports::session(tx, from, of, Some("s-1".to_owned())).await)
            .await
            .unwrap();
        host.ends(ending(turn, Usage::default(), tokens)).await;
        let kept: Option<String> =
            app.one("SELECT session FROM conversations WHERE id = $1", vec![conversation.into()]).await;
        assert_eq!(kept, session);
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_taken_in_parts() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
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
async fn turns_are_filtered_and_watched() {
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
}

#[tokio::test]
async fn what_joins_a_turn_or_takes_it_back_is_told() {
    let app = TestApp::start().await;
    let (host, conversation) = app.talking_agent().await;
    let first = write(&app, conversation, "one").await;
    host.takes(first).await;
    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    let mut heard = || {
        let mut heard = Vec::new();
        while let Some(Some((News::Changed(event), _))) = news.next().now_or_never() {
            if event.kind == RecordKind::Turn {
                heard.push((event.id, event.op));
            }
        }
        heard
    };
    let next = write(&app, conversation, "two").await;
    assert_eq!(heard(), [(next, ChangeOp::Created)]);
    let query = "query($o: Id!, $i: Id!) { turn(orgId: $o, id: $i) { generation lastSeq updatedAt } }";
    let shown =
        async || app.viewer.gql(query, json!({ "o": app.org, "i": next })).await.data()["turn"].clone();
    let before = shown().await;
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(write(&app, conversation, "three").await, next);
    assert_eq!(heard(), [(next, ChangeOp::Updated)]);
    let after = shown().await;
    assert_eq!((&before["lastSeq"], &after["lastSeq"]), (&json!(2), &json!(3)));
    assert_ne!(before["updatedAt"], after["updatedAt"]);
    host.says(conversation, Some(first), "m1", Content::Text { text: "done".to_owned() }).await.unwrap();
    assert_eq!(heard(), [(first, ChangeOp::Updated)]);
    host.turn_ended(first, TurnOutcome::Done).await;
    assert_eq!((heard().len(), &shown().await["generation"]), (2, &json!(1)));
    take_over(&app, &app.admin, conversation).await;
    assert_eq!((heard(), &shown().await["generation"]), (vec![(next, ChangeOp::Updated)], &Value::Null));
}
