//! How long transcripts are kept: messages and files go, with their search index; what was decided and spent stays.

use std::time::Duration;

use muster::{base::enums::MessageRole, domain::conversations};
use muster_protocol::{event::TurnOutcome, plan::Part};
use serde_json::{Value, json};

use crate::{
    approvals::asked::{Working, question, working},
    channels::inbound_webhooks::{app, channel},
    conversations::messages::say,
    harness::TestApp,
};

const DAY: Duration = Duration::from_hours(24);
const THREAD: &str = "query($o: Id!, $c: Id!) { conversation(orgId: $o, id: $c) { messageCount lastSeq lastMessage { kind } } \
    messages(orgId: $o, conversationId: $c, limit: 50) { total hasBefore data { seq } } }";

impl TestApp {
    pub async fn keeps_for(&self, days: Value) {
        self.sets(json!({ "transcriptRetentionDays": days })).await;
    }

    async fn count(&self, table: &str) -> i64 {
        self.one(&format!("SELECT COUNT(*) FROM {table}"), vec![]).await
    }

    /// The audit log's entries about removed transcripts.
    async fn forgotten(&self) -> Vec<Value> {
        let sql =
            "SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'forgetTranscript' ORDER BY id";
        let changes: Vec<String> = self.column(sql).await;
        changes.iter().map(|text| serde_json::from_str::<Value>(text).unwrap()["messages"].clone()).collect()
    }

    pub async fn forgets(&self) -> u64 {
        conversations::forget_old(&self.core).await.unwrap()
    }
}

#[tokio::test]
async fn a_transcript_expires_and_its_conversation_continues() {
    let (app, agent) = TestApp::with_agent().await;
    let (old, young) = (app.conversation(agent).await, app.conversation(agent).await);
    // More than one transaction removes.
    for n in 0..520 {
        say(&app, old, MessageRole::User, &format!("pomegranate {n}")).await;
    }
    let message: i64 = app.one("SELECT MAX(id) FROM messages", vec![]).await;
    let sql = "INSERT INTO attachments (organization_id, message_id, filename, mime_type, size_bytes, sha256, created_at) \
               VALUES ($1, $2, 'f', 'text/plain', 4, $3, 0)";
    app.execute(sql, vec![app.org.into(), message.into(), vec![0_u8; 32].into()]).await;
    app.clock.advance(10 * DAY);
    say(&app, young, MessageRole::User, "still here").await;
    app.clock.advance(25 * DAY);
    assert_eq!(app.forgets().await, 0, "no setting removes transcripts");
    app.keeps_for(json!(30)).await;
    assert_eq!(app.forgets().await, 1);
    assert_eq!(app.forgets().await, 0);
    assert_eq!((app.count("messages").await, app.count("attachments").await), (1, 0));
    assert_eq!(app.one::<i64>("SELECT bytes FROM stored_bytes", vec![]).await, 0);
    let thread = app.viewer.gql(THREAD, json!({ "o": app.org, "c": old })).await.data();
    assert_eq!(thread["conversation"], json!({ "messageCount": 0, "lastSeq": 520, "lastMessage": null }));
    assert_eq!(thread["messages"]["total"], 0);
    // The conversation continues at its position, and shows no earlier messages.
    say(&app, old, MessageRole::User, "again").await;
    let thread = app.viewer.gql(THREAD, json!({ "o": app.org, "c": old })).await.data();
    assert_eq!(thread["messages"], json!({ "total": 1, "hasBefore": false, "data": [{ "seq": 521 }] }));
    app.clock.advance(31 * DAY);
    assert_eq!(app.forgets().await, 2);
    assert_eq!(app.forgotten().await, [json!([520, 20]), json!([20, 0]), json!([1, 0]), json!([1, 0])]);
}

#[tokio::test]
async fn what_waits_for_an_answer_is_kept() {
    let app = TestApp::start().await;
    app.keeps_for(json!(1)).await;
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"Hello?\" }) { id } }";
    app.operator.gql(post, json!({ "o": app.org, "c": conversation })).await.data();
    app.clock.advance(9 * DAY);
    assert_eq!(app.forgets().await, 0, "its turn has not begun");
    app.execute("UPDATE turns SET state = 'CANCELLED', ended_at = 1", vec![]).await;
    assert_eq!(app.forgets().await, 1);
    assert_eq!(app.count("messages").await, 0);
}

/// Someone has decided, and the agent's host is away for longer than transcripts are kept. The approval.
async fn decided(app: &TestApp, work: &Working<'_>) -> i64 {
    app.keeps_for(json!(1)).await;
    let id = work.raises("ask-1", question()).await;
    work.end_turn().await;
    work.decides(id, json!({ "options": ["air"] })).await;
    app.clock.advance(9 * DAY);
    assert_eq!(app.forgets().await, 0);
    id
}

#[tokio::test]
async fn a_decision_on_its_way_to_the_agent_is_kept() {
    let app = TestApp::start().await;
    let work = working(&app).await;
    let id = decided(&app, &work).await;
    work.not_waiting(id).await;
    let given = work.host.given().await;
    assert_eq!(given.len(), 2, "the answer is a turn");
    let told = "You asked: How should it go?\nIt is urgent.\noperator answered: By air".to_owned();
    let plan = work.host.takes(given[1]).await;
    assert_eq!(plan.prompt, [Part::Text { author: Some("operator".to_owned()), text: told }]);
    work.host.turn_ended(given[1], TurnOutcome::Done).await;
    app.clock.advance(9 * DAY);
    assert_eq!(app.forgets().await, 1, "it has arrived");
}

#[tokio::test]
async fn a_decision_for_an_agent_that_was_deleted_is_not_kept() {
    let app = TestApp::start().await;
    decided(&app, &working(&app).await).await;
    app.execute("UPDATE agents SET archived_at = 1", vec![]).await;
    assert_eq!(app.forgets().await, 1);
}

#[tokio::test]
async fn what_is_still_to_be_sent_is_kept() {
    let app = app().await;
    app.keeps_for(json!(1)).await;
    let (channel, _) = channel(&app, "https://hooks.example/out").await;
    let agent = app.one("SELECT agent_id FROM channels", vec![]).await;
    let conversation = app.conversation(agent).await;
    let connect = "UPDATE conversations SET channel_id = $2, target = 't1' WHERE id = $1";
    app.execute(connect, vec![conversation.into(), channel.into()]).await;
    // The channel's messages wait until someone corrects its settings.
    app.execute("UPDATE channels SET is_active = FALSE, inactive_reason = 'AUTH_FAILED'", vec![]).await;
    say(&app, conversation, MessageRole::Assistant, "It is in Graz.").await;
    app.clock.advance(9 * DAY);
    for status in ["PENDING", "SENDING"] {
        app.execute("UPDATE deliveries SET status = $1", vec![status.into()]).await;
        assert_eq!((app.forgets().await, app.count("deliveries").await), (0, 1), "{status}");
    }
    app.execute("UPDATE deliveries SET status = 'SENT'", vec![]).await;
    assert_eq!((app.forgets().await, app.count("deliveries").await), (1, 0));
    // Nothing is sent for an agent that was deleted, nor through a channel that a person switched off or that only receives.
    for never in [
        "UPDATE agents SET archived_at = 1",
        "UPDATE channels SET inactive_reason = 'MANUAL'",
        "UPDATE channels SET direction = 'INBOUND'",
    ] {
        say(&app, conversation, MessageRole::Assistant, "It is in Graz.").await;
        app.clock.advance(9 * DAY);
        assert_eq!((app.forgets().await, app.count("deliveries").await), (0, 1), "{never}");
        app.execute(never, vec![]).await;
        assert_eq!((app.forgets().await, app.count("deliveries").await), (1, 0), "{never}");
        app.execute("UPDATE agents SET archived_at = NULL", vec![]).await;
        app.execute(
            "UPDATE channels SET inactive_reason = 'AUTH_FAILED', direction = 'BIDIRECTIONAL'",
            vec![],
        )
        .await;
    }
}

#[tokio::test]
async fn what_a_person_has_answered_goes_as_well() {
    let app = TestApp::start().await;
    app.keeps_for(json!(1)).await;
    let conversation = app.conversation(app.agent().await).await;
    for change in [
        "takeOverConversation(orgId: $o, id: $c) { id }",
        "postMessage(orgId: $o, conversationId: $c, input: { text: \"It is in Graz.\" }) { id }",
        "handBackConversation(orgId: $o, id: $c) { id }",
    ] {
        let change = format!("mutation($o: Id!, $c: Id!) {{ {change} }}");
        app.operator.gql(&change, json!({ "o": app.org, "c": conversation })).await.data();
    }
    let held = "SELECT COUNT(*) FROM turns WHERE held AND ended_at IS NULL";
    assert_eq!(app.one::<i64>(held, vec![]).await, 1, "the agent learns it with the next message");
    app.clock.advance(9 * DAY);
    assert_eq!(app.forgets().await, 1);
    assert_eq!(app.count("messages").await, 0);
}
