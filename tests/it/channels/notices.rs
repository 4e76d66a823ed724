//! Notices: a conversation that a channel notifies of its incoming messages.

use std::time::Duration;

use muster::base::enums::MessageRole;
use serde_json::{Value, json};

use crate::{
    channels::{
        inbound_webhooks::{app, bring, bring_named, channel, forbid, hello},
        sets,
    },
    conversations::messages::say,
    harness::TestApp,
};

/// The channel notifies this conversation from now on.
async fn notify(app: &TestApp, channel: i64, conversation: i64) {
    sets(app, &json!({ "id": channel }), json!({ "notify_conversation_id": conversation })).await;
}

/// A channel that notifies another agent's conversation: its id, its path, and that conversation.
async fn notifying(app: &TestApp) -> (i64, String, i64) {
    let (channel, path) = channel(app, "https://hooks.example/out").await;
    let desk = app.conversation(app.agent().await).await;
    notify(app, channel, desk).await;
    (channel, path, desk)
}

fn in_thread(thread: &str, text: &str) -> Value {
    json!({ "text": text, "origin_id": "ada", "origin_name": "Ada", "thread": thread })
}

/// The contents of a conversation's notices.
async fn notices(app: &TestApp, conversation: i64) -> Vec<Value> {
    let sql = format!(
        "SELECT content FROM messages WHERE conversation_id = {conversation} AND role = 'SYSTEM' AND kind = 'EVENT' ORDER BY seq"
    );
    app.column(&sql).await
}

#[tokio::test]
async fn a_conversation_is_named_once_in_ten_minutes() {
    let app = app().await;
    let (_, path, desk) = notifying(&app).await;
    let (_, taken) = bring(&app, &path, "m1", &hello("Where is my order?")).await;
    let source = taken["conversation_id"].as_i64().unwrap();
    let reference: String = app.one("SELECT ref FROM conversations WHERE id = $1", vec![source.into()]).await;
    // Neither what was said, nor by whom.
    let notice = json!({
        "event": "CHANNEL_MESSAGE", "conversation_id": source,
        "text": format!("A message came in through Orders: conversation {reference}."),
    });
    assert_eq!(notices(&app, desk).await, std::slice::from_ref(&notice));
    bring(&app, &path, "m2", &hello("It is late.")).await;
    let (_, other) = bring(&app, &path, "m3", &in_thread("t2", "Hello")).await;
    say(&app, desk, MessageRole::Assistant, "Noted.").await;
    bring(&app, &path, "m4", &hello("Anyone?")).await;
    let named = notices(&app, desk).await;
    assert_eq!((named.len(), &named[1]["conversation_id"]), (2, &other["conversation_id"]));
    app.clock.advance(Duration::from_mins(10));
    assert_eq!(bring(&app, &path, "m1", &hello("Where is my order?")).await.0, 200, "a duplicate");
    assert_eq!(notices(&app, desk).await.len(), 2);
    bring(&app, &path, "m5", &hello("Hello?")).await;
    assert_eq!(notices(&app, desk).await[2..], [notice]);
    let turns = format!("SELECT COUNT(*) FROM turns WHERE conversation_id = {desk}");
    assert_eq!(app.column::<i64>(&turns).await, [0]);
}

#[tokio::test]
async fn a_notice_causes_no_other() {
    let app = app().await;
    let (one, to_one) = channel(&app, "https://hooks.example/out").await;
    let (two, to_two) = channel(&app, "https://hooks.example/out").await;
    let begun = async |path: &str| {
        bring(&app, path, "m1", &hello("Hello")).await.1["conversation_id"].as_i64().unwrap()
    };
    let (first, second) = (begun(&to_one).await, begun(&to_two).await);
    let counts = async || (notices(&app, first).await.len(), notices(&app, second).await.len());
    // Each notifies a conversation of the other.
    notify(&app, one, second).await;
    notify(&app, two, first).await;
    bring(&app, &to_one, "m2", &hello("Again")).await;
    assert_eq!(counts().await, (0, 1));
    bring(&app, &to_two, "m2", &hello("Again")).await;
    assert_eq!(counts().await, (1, 1));
    // A channel may notify a conversation of its own, but not of that conversation's messages.
    notify(&app, one, first).await;
    bring(&app, &to_one, "m3", &hello("And again")).await;
    assert_eq!(counts().await, (1, 1));
    bring(&app, &to_one, "m4", &in_thread("t2", "Hello")).await;
    assert_eq!(counts().await, (2, 1));
    // Only the three conversations' own messages have turns, and nothing is sent.
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM turns").await, [3]);
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM deliveries").await, [0]);
}

#[tokio::test]
async fn an_archived_conversation_is_not_notified() {
    let app = app().await;
    let (channel, path, desk) = notifying(&app).await;
    let status = async |status: &str| {
        let sql = "UPDATE conversations SET status = $2 WHERE id = $1";
        app.execute(sql, vec![desk.into(), status.into()]).await;
        let query =
            "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { notifyConversation { id status } } }";
        let shown = app.viewer.gql(query, json!({ "o": app.org, "c": channel })).await.data();
        assert_eq!(shown["channel"]["notifyConversation"], json!({ "id": desk, "status": status }));
    };
    status("ARCHIVED").await;
    assert_eq!(bring(&app, &path, "m1", &hello("Hello")).await.0, 202);
    assert_eq!(notices(&app, desk).await, [Value::Null; 0]);
    status("OPEN").await;
    bring(&app, &path, "m2", &hello("Again")).await;
    assert_eq!(notices(&app, desk).await.len(), 1);
}

#[tokio::test]
async fn of_a_failed_message_there_is_no_notice() {
    let app = app().await;
    app.expects_failures();
    let (_, path, desk) = notifying(&app).await;
    forbid(&app, "Unspeakable").await;
    let said = [("a", in_thread("t1", "Apples")), ("b", in_thread("t2", "Unspeakable"))];
    let answers = bring_named(&app, &path, &said.map(|(id, said)| (id.to_owned(), said))).await;
    assert_eq!((answers[0].0, answers[1].0), (202, 500), "{answers:?}");
    let named = notices(&app, desk).await;
    assert_eq!((named.len(), &named[0]["conversation_id"]), (1, &answers[0].1["conversation_id"]));
}

#[tokio::test]
async fn a_failed_notice_costs_no_message() {
    let app = app().await;
    let (_, path, desk) = notifying(&app).await;
    forbid(&app, "CHANNEL_MESSAGE").await;
    let (status, taken) = bring(&app, &path, "m1", &hello("Hello")).await;
    assert_eq!(status, 202, "{taken}");
    assert_eq!(notices(&app, desk).await, [Value::Null; 0]);
    let turns = format!("SELECT COUNT(*) FROM turns WHERE conversation_id = {}", taken["conversation_id"]);
    assert_eq!(app.column::<i64>(&turns).await, [1]);
}
