//! The person who ends a turn early is named in the turn, in its approvals, in its conversation and in the audit log.

use muster::domain::approvals;
use muster_protocol::event::EndReason;
use serde_json::{Value, json};

use crate::{
    approvals::asked::{Working, question, working},
    harness::TestApp,
    organizations::emergency_stop::stop,
};

const ENDS: &str =
    "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { waitingRequests runningTurns { id } }
    overview(orgId: $o) { begunTurns waitingRequests } }";
const TURN: &str = "query($o: Id!, $t: Id!) { turn(orgId: $o, id: $t) { state cancelledBy cancelledWith } }";
const APPROVAL: &str =
    "query($o: Id!, $a: Id!) { approval(orgId: $o, id: $a) { outcome withdrawnBy withdrawnWith } }";

async fn ends(app: &TestApp, work: &Working<'_>) -> Value {
    app.viewer.gql(ENDS, json!({ "o": app.org, "a": work.host.agent })).await.data()
}

async fn events(app: &TestApp) -> Vec<String> {
    let said: Vec<String> =
        app.column("SELECT CAST(content AS TEXT) FROM messages WHERE kind = 'EVENT' ORDER BY id").await;
    said.iter()
        .map(|said| serde_json::from_str::<Value>(said).unwrap()["text"].as_str().unwrap().to_owned())
        .collect()
}

async fn logged(app: &TestApp, operation: &str) -> Value {
    let sql = format!("SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = '{operation}'");
    let lines: Vec<String> = app.column(&sql).await;
    serde_json::from_str(lines.last().unwrap()).unwrap()
}

#[tokio::test]
async fn stopping_an_agent_names_who_did_it_and_what_ended() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let asked = work.raises("1.1", question()).await;
    let counted = ends(&app, &work).await;
    assert_eq!(counted["agent"]["waitingRequests"], 1);
    assert_eq!(counted["agent"]["runningTurns"].as_array().unwrap().len(), 1);
    assert_eq!(counted["overview"], json!({ "begunTurns": 1, "waitingRequests": 1 }));
    work.host.act("stop").await;
    assert_eq!(events(&app).await, ["operator stopped the agent."]);
    let log = logged(&app, "stopAgent").await;
    assert_eq!((&log["ended_turns"], &log["withdrawn_approvals"]), (&json!(1), &json!(1)));
    work.host.ended(EndReason::Stopped).await;
    let turn = app.viewer.gql(TURN, json!({ "o": app.org, "t": work.turn })).await.data();
    assert_eq!(
        turn["turn"],
        json!({ "state": "INTERRUPTED", "cancelledBy": "operator", "cancelledWith": "AGENT" })
    );
    let approval = app.viewer.gql(APPROVAL, json!({ "o": app.org, "a": asked })).await.data();
    let withdrawn = json!({ "outcome": "WITHDRAWN", "withdrawnBy": "operator", "withdrawnWith": "AGENT" });
    assert_eq!(approval["approval"], withdrawn);
    assert_eq!(ends(&app, &work).await["overview"], json!({ "begunTurns": 0, "waitingRequests": 0 }));
}

#[tokio::test]
async fn cancelling_a_turn_and_stopping_all_name_who_did_it() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let cancel = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { cancelledBy cancelledWith } }";
    let cancelled = app.operator.gql(cancel, json!({ "o": app.org, "t": work.turn })).await.data();
    assert_eq!(cancelled["cancelTurn"], json!({ "cancelledBy": "operator", "cancelledWith": "TURN" }));
    let app = TestApp::start().await;
    let work = working(&app).await;
    stop(&app, &app.operator, "Fire").await.data();
    let turn = app.viewer.gql(TURN, json!({ "o": app.org, "t": work.turn })).await.data();
    assert_eq!(
        (&turn["turn"]["cancelledBy"], &turn["turn"]["cancelledWith"]),
        (&json!("operator"), &json!("ORGANIZATION"))
    );
    assert_eq!(events(&app).await, ["operator stopped all agents."]);
}

#[tokio::test]
async fn a_launch_that_ends_by_itself_names_no_one() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let asked = work.raises("1.1", question()).await;
    work.host.ended(EndReason::Killed).await;
    let turn = app.viewer.gql(TURN, json!({ "o": app.org, "t": work.turn })).await.data();
    assert_eq!(turn["turn"]["cancelledBy"], Value::Null);
    let approval = app.viewer.gql(APPROVAL, json!({ "o": app.org, "a": asked })).await.data();
    assert_eq!(
        (&approval["approval"]["outcome"], &approval["approval"]["withdrawnBy"]),
        (&json!("WITHDRAWN"), &Value::Null)
    );
    assert_eq!(events(&app).await, [""; 0]);
}

#[tokio::test]
async fn the_first_to_end_a_turn_is_named_only_for_what_ended() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let [early, late] = [work.raises("1.1", question()).await, work.raises("1.2", question()).await];
    let withdrawn = async |request: &str| {
        let told = work
            .host
            .tell(async |tx, from| approvals::reports::withdrawn(tx, from, request.to_owned()).await);
        told.await.unwrap();
    };
    // The agent no longer waits for the first. After that, people end its turn, one after another.
    withdrawn("1.1").await;
    app.clock.advance(std::time::Duration::from_secs(1));
    work.host.act("stop").await;
    let cancel = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { cancelledBy cancelledWith } }";
    let cancelled = app.admin.gql(cancel, json!({ "o": app.org, "t": work.turn })).await.data();
    assert_eq!(cancelled["cancelTurn"], json!({ "cancelledBy": "operator", "cancelledWith": "AGENT" }));
    assert_eq!(events(&app).await, ["operator stopped the agent."]);
    work.host.ended(EndReason::Stopped).await;
    let of = async |id: i64| {
        app.viewer.gql(APPROVAL, json!({ "o": app.org, "a": id })).await.data()["approval"].clone()
    };
    let by =
        |by: Value, with: Value| json!({ "outcome": "WITHDRAWN", "withdrawnBy": by, "withdrawnWith": with });
    assert_eq!(of(early).await, by(Value::Null, Value::Null));
    assert_eq!(of(late).await, by(json!("operator"), json!("AGENT")));
}

#[tokio::test]
async fn a_conversation_is_called_by_its_first_message() {
    let (app, agent) = TestApp::with_agent().await;
    let start = "mutation($o: Id!, $a: Id!, $t: String, $s: String) {
        startConversation(orgId: $o, input: { agentId: $a, text: $t, title: $s }) { id title } }";
    let begun = async |text: Option<&str>, title: Option<&str>| {
        let values = json!({ "o": app.org, "a": agent, "t": text, "s": title });
        app.operator.gql(start, values).await.data()["startConversation"].clone()
    };
    assert_eq!(begun(Some("**Where** are the beans?"), None).await["title"], "Where are the beans?");
    assert_eq!(begun(Some("Where?"), Some("Beans")).await["title"], "Beans");
    let empty = begun(None, None).await;
    assert_eq!(empty["title"], Value::Null);
    let post = "mutation($o: Id!, $c: Id!, $t: String!) {
        postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { conversation { title } } }";
    for text in ["Later words", "and more"] {
        let said = app.operator.gql(post, json!({ "o": app.org, "c": empty["id"], "t": text })).await.data();
        assert_eq!(said["postMessage"]["conversation"]["title"], "Later words");
    }
    let found = "query($o: Id!) { conversationFeed(orgId: $o, search: \"later\") { total } }";
    assert_eq!(app.viewer.gql(found, json!({ "o": app.org })).await.data()["conversationFeed"]["total"], 1);
    // It goes with the transcript. A subject that someone gave stays.
    app.keeps_for(json!(1)).await;
    app.execute("UPDATE turns SET state = 'DONE', ended_at = 1", vec![]).await;
    app.clock.advance(std::time::Duration::from_hours(49));
    assert_eq!(app.forgets().await, 3);
    let titles: Vec<Option<String>> = app.column("SELECT title FROM conversations ORDER BY id").await;
    assert_eq!(titles, [None, Some("Beans".to_owned()), None]);
}

#[tokio::test]
async fn a_title_that_any_message_gave_goes_with_the_transcript() {
    let (app, agent) = TestApp::with_agent().await;
    let start = "mutation($o: Id!, $a: Id!) { startConversation(orgId: $o, input: { agentId: $a, text: \"Beans\" }) { id } }";
    let begin = async || {
        let begun = app.operator.gql(start, json!({ "o": app.org, "a": agent })).await.data();
        begun["startConversation"]["id"].as_i64().unwrap()
    };
    let call = "mutation($o: Id!, $c: Id!, $t: String) { updateConversation(orgId: $o, id: $c, input: { title: $t }) { title } }";
    let called = async |id: i64, title: Value| {
        let called = app.operator.gql(call, json!({ "o": app.org, "c": id, "t": title })).await.data();
        called["updateConversation"]["title"].clone()
    };
    let post = "mutation($o: Id!, $c: Id!) {
        postMessage(orgId: $o, conversationId: $c, input: { text: \"Later words\" }) { conversation { title } } }";
    let said = async |id: i64| {
        let said = app.operator.gql(post, json!({ "o": app.org, "c": id })).await.data();
        said["postMessage"]["conversation"]["title"].clone()
    };
    let (late, kept) = (begin().await, begin().await);
    // A person calls it otherwise, and after many messages takes that back: the next message gives the title.
    assert_eq!(called(late, json!("Coffee")).await, "Coffee");
    for _ in 0..25 {
        assert_eq!(said(late).await, "Coffee");
    }
    assert_eq!(called(late, Value::Null).await, Value::Null);
    assert_eq!(said(late).await, "Later words");
    // A person gives the same title as the message did.
    assert_eq!(called(kept, json!("Beans")).await, "Beans");
    app.keeps_for(json!(1)).await;
    app.execute("UPDATE turns SET state = 'DONE', ended_at = 1", vec![]).await;
    app.clock.advance(std::time::Duration::from_hours(49));
    assert_eq!(app.forgets().await, 2);
    let titles: Vec<Option<String>> = app.column("SELECT title FROM conversations ORDER BY id").await;
    assert_eq!(titles, [None, Some("Beans".to_owned())]);
}

#[tokio::test]
async fn what_the_overview_counts_can_be_listed() {
    let (app, all) = TestApp::populated(6).await;
    app.populate_other(3).await;
    let failed = "UPDATE messages SET delivery_status = 'FAILED' WHERE conversation_id = $1";
    app.execute(failed, vec![all.conversations[0].into()]).await;
    let query = "query($o: Id!) {
        overview(orgId: $o) { undeliveredConversations channelsInactive servers { offline } }
        undelivered: conversationFeed(orgId: $o, undelivered: true) { data { id } }
        inactive: channelFeed(orgId: $o, active: false, limit: 200) { data { id } }
        offline: servers(orgId: $o, page: 1, limit: 200, status: OFFLINE) { total } }";
    let found = app.viewer.gql(query, json!({ "o": app.org })).await.data();
    let undelivered = found["undelivered"]["data"].as_array().unwrap();
    assert_eq!(undelivered, &[json!({ "id": all.conversations[0] })]);
    assert_eq!(found["overview"]["undeliveredConversations"], 1);
    let inactive = found["inactive"]["data"].as_array().unwrap().len();
    assert_eq!(found["overview"]["channelsInactive"], inactive);
    assert_eq!(found["overview"]["servers"]["offline"], found["offline"]["total"]);
}

#[tokio::test]
async fn how_mail_is_sent_is_known_before_signing_in() {
    for (app, way) in [(TestApp::start().await, "OFF"), (TestApp::with_mail().await, "SENT")] {
        assert_eq!(app.anonymous.gql("{ mailWay }", json!({})).await.data()["mailWay"], way);
    }
}
