//! Messages: pages by cursor, what people and agents write, and the consequences.

use std::time::Duration;

use muster::{
    base::{
        enums::{DeliveryStatus, MessageKind, MessageRole},
        ids::{ChannelId, ConversationId},
    },
    domain::conversations::{self, Delivery, NewMessage},
};
use serde_json::{Value, json};

use crate::harness::TestApp;

/// Adds a message as the service itself.
pub async fn say(app: &TestApp, conversation: i64, role: MessageRole, text: &str) -> i64 {
    let content = json!({ "text": text, "format": "markdown" });
    add(app, NewMessage::new(ConversationId(conversation), role, MessageKind::Text, content)).await
}

pub async fn add(app: &TestApp, new: NewMessage<'_>) -> i64 {
    let tx = app.scope().begin().await.unwrap();
    let id = conversations::append(&tx, new).await.unwrap();
    tx.commit().await.unwrap();
    id.0
}

fn path(app: &TestApp, agent: i64, conversation: i64, query: &str) -> String {
    format!("/v1/org/{}/agent/{agent}/conversation/{conversation}/message{query}", app.org)
}

fn seqs(page: &Value) -> Vec<i64> {
    page["data"].as_array().unwrap().iter().map(|message| message["seq"].as_i64().unwrap()).collect()
}

async fn thread(app: &TestApp, length: usize) -> (i64, i64) {
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    for n in 1..=length {
        let role = if n % 2 == 1 { MessageRole::User } else { MessageRole::Assistant };
        say(app, conversation, role, &format!("message {n}")).await;
    }
    (agent, conversation)
}

#[tokio::test]
async fn a_message_shows_its_content_and_delivery() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, 0).await;
    say(&app, conversation, MessageRole::Assistant, "Hello").await;
    let delivered = NewMessage {
        delivery: Some(Delivery {
            status: DeliveryStatus::Sent,
            attempts: 1,
            error: None,
            sent_at: Some(app.clock.now()),
        }),
        ..NewMessage::new(
            ConversationId(conversation),
            MessageRole::Assistant,
            MessageKind::Text,
            json!({ "text": "Out there" }),
        )
    };
    add(&app, delivered).await;
    let page = app.viewer.get(&path(&app, agent, conversation, "")).await.expect(200);
    assert_eq!(page["total"], 2);
    let message = &page["data"][0];
    assert_eq!(message["conversation_id"], conversation);
    assert_eq!(message["delivery"], Value::Null);
    assert_eq!(message["content"], json!({ "text": "Hello", "format": "markdown" }));
    assert_eq!(message["attachments"], json!([]));
    let sent =
        json!({ "status": "SENT", "attempts": 1, "error": null, "sent_at": "2026-06-01T12:00:00.000Z" });
    assert_eq!(page["data"][1]["delivery"], sent);
}

#[tokio::test]
async fn pages_walk_the_history_both_ways() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, 60).await;
    let page = async |query: &str| {
        let page = app.viewer.get(&path(&app, agent, conversation, query)).await.expect(200);
        assert_eq!(page["total"], 60, "{query}");
        seqs(&page)
    };
    assert_eq!(page("").await, (11..=60).collect::<Vec<_>>());
    assert_eq!(page("?limit=3").await, [58, 59, 60]);
    assert_eq!(page("?limit=3&before_seq=58").await, [55, 56, 57]);
    assert_eq!(page("?limit=3&before_seq=3").await, [1, 2]);
    assert_eq!(page("?before_seq=1").await, [0_i64; 0]);
    assert_eq!(page("?limit=3&after_seq=0").await, [1, 2, 3]);
    assert_eq!(page("?limit=3&after_seq=3").await, [4, 5, 6]);
    assert_eq!(page("?after_seq=60").await, [0_i64; 0]);
    assert_eq!(page("?after_seq=99999999999999999999").await, [0_i64; 0]);
    assert_eq!(page("?limit=1&before_seq=99999999999999999999").await, [60]);
    assert_eq!(page("?limit=200").await.len(), 60);
}

#[tokio::test]
async fn a_wrong_cursor_or_limit_is_named() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, 1).await;
    for (query, at, code) in [
        ("?before_seq=x", "before_seq", "WRONG_TYPE"),
        ("?after_seq=-1", "after_seq", "WRONG_TYPE"),
        ("?after_seq=1.5", "after_seq", "WRONG_TYPE"),
        ("?before_seq=", "before_seq", "TOO_SHORT"),
        ("?before_seq=5&after_seq=1", "after_seq", "NOT_ALLOWED"),
        ("?limit=0", "limit", "TOO_SMALL"),
        ("?limit=201", "limit", "TOO_LARGE"),
        ("?limit=x", "limit", "WRONG_TYPE"),
        ("?befor_seq=5", "befor_seq", "UNKNOWN_KEY"),
        ("?limit=1&limit=2", "limit", "REPEATED"),
    ] {
        let answer = app.viewer.get(&path(&app, agent, conversation, query)).await;
        assert_eq!(answer.violations(), [(at, code)], "{query}");
    }
    let query =
        "query($o:Id!,$a:Id!,$c:Id!){messages(orgId:$o,agentId:$a,conversationId:$c,beforeSeq:-1){total}}";
    let answer = app.viewer.gql(query, json!({ "o": app.org, "a": agent, "c": conversation })).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
    assert_eq!(answer.body["errors"][0]["extensions"]["errors"][0]["pointer"], "/beforeSeq");
}

#[tokio::test]
async fn a_conversation_is_found_under_its_own_agent_only() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, 2).await;
    let other = app.agent().await;
    let foreign = app.other_agent().await;
    let empty = app.conversation(agent).await;
    assert_eq!(
        app.viewer.get(&path(&app, agent, empty, "")).await.expect(200),
        json!({"data": [], "total": 0})
    );
    for (agent, conversation) in
        [(other, conversation), (foreign, conversation), (agent, conversation + 500), (agent, foreign)]
    {
        for query in ["", "?after_seq=0", "/search?q=message", "/search"] {
            let answer = app.owner.get(&path(&app, agent, conversation, query)).await;
            assert_eq!(answer.problem(), (404, "NOT_FOUND"), "{query}");
        }
    }
    let theirs = app.conversation(foreign).await;
    assert_eq!(app.owner.get(&path(&app, foreign, theirs, "")).await.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn parallel_messages_have_consecutive_seqs() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, 0).await;
    let texts: Vec<String> = (0..20).map(|n| format!("parallel {n}")).collect();
    let added = texts.iter().map(|text| say(&app, conversation, MessageRole::User, text));
    let mut ids = futures::future::join_all(added).await;
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    let page = app.viewer.get(&path(&app, agent, conversation, "?after_seq=0")).await.expect(200);
    assert_eq!(seqs(&page), (1..=20).collect::<Vec<_>>());
    assert_eq!(page["total"], 20);
}

const POST: &str = "mutation($o:Id!,$c:Id!,$i:PostMessageInput!){postMessage(orgId:$o,conversationId:$c,input:$i){\
    id seq role kind status authorUserId authorName content delivery{status} attachments{id filename}}}";

#[tokio::test]
async fn a_message_from_the_panel_gives_the_agent_a_turn() {
    let app = TestApp::start().await;
    let (agent, conversation) = thread(&app, 0).await;
    let input = json!({ "text": "Please\n  look at *this*" });
    let variables = json!({ "o": app.org, "c": conversation, "i": input });
    app.clock.advance(Duration::from_secs(5));
    let data = app.operator.gql(POST, variables).await.data();
    let message = &data["postMessage"];
    assert_eq!(message["seq"], 1);
    assert_eq!((&message["role"], &message["status"]), (&json!("USER"), &json!("PENDING")));
    assert_eq!(message["authorUserId"], app.operator.user.unwrap());
    assert_eq!(message["authorName"], "operator");
    assert_eq!(message["content"], json!({ "text": "Please\n  look at *this*", "format": "markdown" }));
    let turns: Vec<String> = app.column("SELECT state FROM turns").await;
    assert_eq!(turns, ["QUEUED"], "the agent is at rest; `conversations/turns.rs` goes on");
    let audited: i64 = app
        .one(
            "SELECT COUNT(*) FROM audit_lines WHERE operation = 'postMessage' AND target_id = $1",
            vec![conversation.into()],
        )
        .await;
    assert_eq!(audited, 1);
    let shown = app.viewer.get(&format!("/v1/org/{}/agent/{agent}/conversation", app.org)).await.expect(200);
    let last = json!({ "seq": 1, "role": "USER", "kind": "TEXT", "preview": "Please look at *this*", "created_at": "2026-06-01T12:00:05.000Z" });
    assert_eq!(shown[0]["last_message"], last);
    assert_eq!(shown[0]["last_activity_at"], "2026-06-01T12:00:05.000Z");
}

#[tokio::test]
async fn an_empty_message_is_refused() {
    let app = TestApp::start().await;
    let (_, conversation) = thread(&app, 0).await;
    for (input, code) in [
        (json!({ "text": "" }), "VALIDATION_FAILED"),
        (json!({ "text": " \n" }), "VALIDATION_FAILED"),
        (json!({ "text": "a\u{0}b" }), "VALIDATION_FAILED"),
        (json!({ "text": "x".repeat(65_537) }), "VALIDATION_FAILED"),
        (json!({ "text": "x", "attachmentIds": [1] }), "VALIDATION_FAILED"),
        (json!({ "text": "x", "attachmentIds": vec![1; 21] }), "VALIDATION_FAILED"),
    ] {
        let answer = app.operator.gql(POST, json!({ "o": app.org, "c": conversation, "i": input })).await;
        assert_eq!(answer.code(), code, "{input}");
    }
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM messages", vec![]).await, 0, "nothing half done");
    let other = json!({ "o": app.org, "c": conversation + 500, "i": { "text": "x" } });
    assert_eq!(app.operator.gql(POST, other).await.code(), "NOT_FOUND");
}

#[tokio::test]
async fn a_message_refers_to_its_own_tenant_only() {
    let app = TestApp::start().await;
    let (_, conversation) = thread(&app, 0).await;
    let tx = app.scope().begin().await.unwrap();
    let content = json!({ "text": "x" });
    let new = NewMessage {
        via_channel: Some(ChannelId(424_242)),
        ..NewMessage::new(ConversationId(conversation), MessageRole::User, MessageKind::Text, content)
    };
    assert!(conversations::append(&tx, new).await.is_err());
    tx.rollback().await.unwrap();
    let tx = app.other_scope().begin().await.unwrap();
    let new = NewMessage::new(
        ConversationId(conversation),
        MessageRole::User,
        MessageKind::Text,
        json!({ "text": "from elsewhere" }),
    );
    assert!(conversations::append(&tx, new).await.is_err());
    tx.rollback().await.unwrap();
}
