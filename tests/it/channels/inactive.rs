//! Channels that send no more, because people have closed them or deleted their agent: what becomes of what waits there.

use std::time::Duration;

use muster::{base::enums::MessageRole, domain::deliveries};
use serde_json::{Value, json};

use crate::{
    channels::{
        delete,
        deliveries::{DAY, receiving, says_while, settled},
    },
    conversations::messages::say,
    harness::{TestApp, until},
};

/// Sends a message that was not sent.
async fn send_by_hand(app: &TestApp, message: i64) {
    let again = "mutation($o: Id!, $m: Id!) { retryDelivery(orgId: $o, messageId: $m) { id } }";
    app.operator.gql(again, json!({ "o": app.org, "m": message })).await.data();
    settled(app, message, "SENT").await;
}

/// How a person closes a channel, and opens it again.
fn closings() -> [(Value, Value); 2] {
    [
        (json!({ "direction": "INBOUND" }), json!({ "direction": "BIDIRECTIONAL" })),
        (json!({ "is_active": false }), json!({ "is_active": true })),
    ]
}

#[tokio::test]
async fn what_waits_in_a_deleted_channel_is_skipped() {
    let (app, receiver, id, conversation) = receiving(&[]).await;
    // More than are skipped at a time.
    for n in 0..101 {
        say(&app, conversation, MessageRole::Assistant, &format!("Answer {n}")).await;
    }
    // The sender of the claimed part has died.
    let claimed = "UPDATE deliveries SET status = 'SENDING', available_at = $1 WHERE id = (SELECT MAX(id) FROM deliveries)";
    app.execute(claimed, vec![app.clock.now().plus(Duration::from_secs(60)).0.into()]).await;
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 0);
    delete(&app, &json!(id)).await.data();
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 100);
    app.clock.advance(Duration::from_secs(60));
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 1);
    let said = "SELECT DISTINCT delivery_status || ' ' || delivery_error FROM messages WHERE role = 'ASSISTANT' ORDER BY 1";
    let said = app.column::<String>(said).await;
    assert_eq!(said, ["FAILED The channel was deleted.", "SKIPPED The channel was deleted."]);
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM deliveries WHERE text IS NOT NULL").await, [0]);
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 0);
    assert!(receiver.texts().is_empty());
}

#[tokio::test]
async fn closing_a_channel_skips_waiting_messages() {
    for (close, open) in closings() {
        let (app, receiver, id, conversation) = receiving(&[500]).await;
        let waits = say(&app, conversation, MessageRole::Assistant, "One").await;
        until("it has failed", async || settled(&app, waits, "PENDING").await["attempts"] == 1).await;
        let edit = format!("/v1/org/{}/channel/{id}", app.org);
        app.owner.patch(&edit, close).await.expect(200);
        settled(&app, waits, "SKIPPED").await;
        app.owner.patch(&edit, open).await.expect(200);
        app.clock.advance(Duration::from_secs(6));
        let later = say(&app, conversation, MessageRole::Assistant, "Two").await;
        settled(&app, later, "SENT").await;
        assert_eq!(receiver.texts(), ["One", "Two"]);
        send_by_hand(&app, waits).await;
        assert_eq!(receiver.texts(), ["One", "Two", "One"]);
    }
}

/// The channel is closed before the failure is known.
#[tokio::test]
async fn a_failure_while_a_channel_closes_is_skipped() {
    for (close, open) in closings() {
        let (app, receiver, id, conversation) = receiving(&[500]).await;
        let held = receiver.gate.lock().await;
        let fails = say(&app, conversation, MessageRole::Assistant, "One").await;
        until("it is being sent", async || {
            deliveries::send_due(&app.core).await.unwrap();
            !receiver.got.lock().unwrap().is_empty()
        })
        .await;
        let edit = format!("/v1/org/{}/channel/{id}", app.org);
        app.owner.patch(&edit, close).await.expect(200);
        assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 0, "it is being sent");
        drop(held);
        let failed = "SELECT COUNT(*) FROM deliveries WHERE status = 'PENDING' AND attempts = 1";
        until("it has failed", async || app.column::<i64>(failed).await == [1]).await;
        assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 1);
        let said = "SELECT delivery_status || ' ' || delivery_error FROM messages WHERE id = $1";
        let said: String = app.one(said, vec![fails.into()]).await;
        assert_eq!(said, "SKIPPED The channel was switched off, or no longer sends.");
        app.owner.patch(&edit, open).await.expect(200);
        app.clock.advance(DAY);
        let later = say(&app, conversation, MessageRole::Assistant, "Two").await;
        assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 0, "the channel is open");
        settled(&app, later, "SENT").await;
        assert_eq!(receiver.texts(), ["One", "Two"]);
        send_by_hand(&app, fails).await;
        assert_eq!(receiver.texts(), ["One", "Two", "One"]);
    }
}

#[tokio::test]
async fn a_dead_senders_message_in_a_closed_channel_has_failed() {
    let (app, receiver, id, conversation) = receiving(&[]).await;
    let lease = app.clock.now().plus(Duration::from_secs(60)).0;
    let claimed = format!(
        "UPDATE deliveries SET status = 'SENDING', available_at = {lease} WHERE organization_id = $1 AND message_id = $2"
    );
    let left = says_while(&app, conversation, "One", &claimed).await;
    let waits = say(&app, conversation, MessageRole::Assistant, "Two").await;
    let edit = format!("/v1/org/{}/channel/{id}", app.org);
    app.owner.patch(&edit, json!({ "is_active": false })).await.expect(200);
    settled(&app, waits, "SKIPPED").await;
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 0, "its sender may still live");
    app.clock.advance(Duration::from_secs(60));
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 1);
    settled(&app, left, "FAILED").await;
    let code = "SELECT code FROM deliveries WHERE message_id = $1";
    assert_eq!(app.one::<String>(code, vec![left.into()]).await, "unknown_outcome");
    app.owner.patch(&edit, json!({ "is_active": true })).await.expect(200);
    send_by_hand(&app, left).await;
    assert_eq!(receiver.texts(), ["One"]);
}

#[tokio::test]
async fn what_a_dead_sender_left_for_a_deleted_agent_has_failed() {
    let (app, _, id, conversation) = receiving(&[]).await;
    let lease = app.clock.now().plus(Duration::from_secs(60)).0;
    let claimed = format!(
        "UPDATE deliveries SET status = 'SENDING', draft = NULL, plain = text, available_at = {lease} \
         WHERE organization_id = $1 AND message_id = $2"
    );
    let left = says_while(&app, conversation, "One", &claimed).await;
    let rest = "INSERT INTO deliveries (organization_id, channel_id, conversation_id, message_id, part, status, text, plain, \
                first_file, files, attempts, available_at, created_at) \
                SELECT organization_id, channel_id, conversation_id, message_id, 2, 'PENDING', text, plain, 0, 0, 0, \
                created_at, created_at FROM deliveries WHERE message_id = $1";
    app.execute(rest, vec![left.into()]).await;
    let waits = say(&app, conversation, MessageRole::Assistant, "Two").await;
    let agent = app.one::<i64>("SELECT agent_id FROM channels WHERE id = $1", vec![id.into()]).await;
    app.delete_agent(agent).await;
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 0, "its sender may still live");
    app.clock.advance(Duration::from_secs(60));
    assert_eq!(deliveries::skip_closed(&app.core).await.unwrap(), 1);
    settled(&app, left, "FAILED").await;
    let of = async |message: i64| {
        let sql = format!(
            "SELECT status || ' ' || COALESCE(code, '') FROM deliveries WHERE message_id = {message} ORDER BY part"
        );
        app.column::<String>(&sql).await
    };
    assert_eq!(of(left).await, ["FAILED unknown_outcome", "FAILED earlier_part"]);
    assert_eq!(of(waits).await, ["PENDING "], "the agent may be restored");
}
