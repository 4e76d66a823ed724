//! Endpoints that are switched off: by the service after days of failure, or by a person. Their events wait.

use std::time::Duration;

use muster::{base::enums::MessageRole, domain::event_endpoints};
use serde_json::{Value, json};

use super::{ADDED, UPDATE, arrived, deliveries, endpoint, receiver::Receiver, says, statuses};
use crate::{
    channels::deliveries::DAY,
    conversations::messages::say,
    harness::{TestApp, until},
};

/// An app with mail, whose receiver answers like this first, and a conversation.
async fn receiving(answers: &[u16]) -> (TestApp, Receiver, i64, i64) {
    let app = TestApp::with_mail_and(|config| {
        config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let receiver = Receiver::start(answers).await;
    let (id, _) = endpoint(&app, &receiver.url, &ADDED).await;
    let conversation = app.conversation(app.agent().await).await;
    (app, receiver, id, conversation)
}

async fn state(app: &TestApp, id: i64) -> Value {
    let query = "query($o: Id!, $i: Id!) { eventEndpoint(orgId: $o, id: $i) { isActive inactiveReason inactiveDetail } }";
    app.owner.gql(query, json!({ "o": app.org, "i": id })).await.data()["eventEndpoint"].clone()
}

async fn switch(app: &TestApp, id: i64, is_active: bool) {
    let variables = json!({ "o": app.org, "i": id, "input": { "isActive": is_active } });
    app.owner.gql(UPDATE, variables).await.data();
}

#[tokio::test]
async fn an_outage_of_four_days_loses_nothing() {
    let (app, receiver, _, conversation) = receiving(&[500; 40]).await;
    let own = [says(&app, conversation).await, says(&app, conversation).await];
    let mut tried = 0;
    for _ in 0..16 {
        tried += 1;
        arrived(&app, &receiver, tried).await;
        app.clock.advance(Duration::from_hours(6));
    }
    assert_eq!(statuses(&app).await, ["PENDING", "PENDING"], "after {tried} attempts");
    receiver.clear();
    arrived(&app, &receiver, tried + 2).await;
    assert_eq!(receiver.numbers("message_id")[tried..], own);
}

#[tokio::test]
async fn a_recovered_receiver_gets_all_that_waits_at_once() {
    let (app, receiver, _, conversation) = receiving(&[500; 3]).await;
    let other = app.conversation(app.agent().await).await;
    let first = says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    app.clock.advance(Duration::from_hours(2));
    arrived(&app, &receiver, 2).await;
    let second = says(&app, other).await;
    arrived(&app, &receiver, 3).await;
    // Both wait now. One is sent by hand, and the other follows.
    let retry = "mutation($o: Id!, $i: Id!) { retryEventDelivery(orgId: $o, id: $i) { status } }";
    let event = deliveries(&app.owner, app.org).await[1]["id"].clone();
    app.owner.gql(retry, json!({ "o": app.org, "i": event })).await.data();
    arrived(&app, &receiver, 5).await;
    assert_eq!(receiver.numbers("message_id"), [first, first, second, second, first]);
}

#[tokio::test]
async fn an_event_that_always_fails_is_given_up() {
    let (app, receiver, _, conversation) = receiving(&[]).await;
    let other = app.conversation(app.agent().await).await;
    let mut tried = 0;
    says(&app, conversation).await;
    let next = says(&app, conversation).await;
    for _ in 1..8 {
        receiver.answer(&[500]);
        arrived(&app, &receiver, tried + 1).await;
        // Other events are accepted, so it is not the endpoint that fails.
        says(&app, other).await;
        tried += 2;
        arrived(&app, &receiver, tried).await;
        app.clock.advance(Duration::from_hours(6));
    }
    receiver.answer(&[500]);
    arrived(&app, &receiver, tried + 2).await;
    let first = &deliveries(&app.owner, app.org).await[0];
    assert_eq!((&first["status"], &first["attempts"]), (&json!("FAILED"), &json!(8)));
    assert_eq!(receiver.numbers("message_id").last(), Some(&next));
}

#[tokio::test]
async fn five_days_of_failure_switch_it_off_with_a_mail() {
    let (app, receiver, id, conversation) = receiving(&[500, 500]).await;
    let first = says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    app.clock.advance(5 * DAY);
    arrived(&app, &receiver, 2).await;
    let expected = json!({
        "isActive": false, "inactiveReason": "DELIVERY_FAILING",
        "inactiveDetail": "The receiver answered with status 500.",
    });
    assert_eq!(state(&app, id).await, expected);
    let mut mails = Vec::new();
    until("both who can switch it on get a mail", async || {
        mails.extend(app.mails().await);
        mails.len() >= 2
    })
    .await;
    let mut recipients: Vec<&str> = mails.iter().map(|mail| mail.to.as_str()).collect();
    recipients.sort_unstable();
    assert_eq!(recipients, ["admin@example.com", "owner@example.com"]);
    let link = format!("https://muster.example.com/o/{}/settings?tab=events", app.org);
    assert!(
        mails.iter().all(|mail| mail.subject.contains("Desk") && mail.text.contains(&link)),
        "{mails:#?}"
    );
    // What happens meanwhile waits, and is sent in its order once a person has switched it on.
    let second = says(&app, conversation).await;
    assert_eq!(statuses(&app).await, ["WAITING", "WAITING"]);
    event_endpoints::send_due(&app.core).await.unwrap();
    switch(&app, id, true).await;
    arrived(&app, &receiver, 4).await;
    assert_eq!(receiver.numbers("message_id"), [first, first, first, second]);
    let line = "SELECT CAST(COUNT(*) AS BIGINT) FROM audit_lines WHERE operation = 'switchOffEventEndpoint'";
    assert_eq!(app.column::<i64>(line).await, [1]);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_called_once() {
    let (app, receiver, id, conversation) = receiving(&[410]).await;
    says(&app, conversation).await;
    arrived(&app, &receiver, 1).await;
    assert_eq!(state(&app, id).await["inactiveReason"], "GONE");
    assert_eq!(statuses(&app).await, ["WAITING"]);
    // Another address gets it at once, when it is switched on.
    let other = Receiver::start(&[]).await;
    let input = json!({ "url": other.url, "isActive": true });
    app.owner.gql(UPDATE, json!({ "o": app.org, "i": id, "input": input })).await.data();
    arrived(&app, &other, 1).await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn while_a_person_has_it_off_events_wait() {
    let (app, receiver, id, conversation) = receiving(&[]).await;
    switch(&app, id, false).await;
    let waits = say(&app, conversation, MessageRole::User, "Hello").await;
    assert_eq!(statuses(&app).await, ["WAITING"]);
    let retry = "mutation($o: Id!, $i: Id!) { retryEventDelivery(orgId: $o, id: $i) { status } }";
    let event = deliveries(&app.owner, app.org).await[0]["id"].clone();
    assert_eq!(app.owner.gql(retry, json!({ "o": app.org, "i": event })).await.code(), "CONFLICT");
    switch(&app, id, true).await;
    arrived(&app, &receiver, 1).await;
    assert_eq!(receiver.numbers("message_id"), [waits]);
    assert!(app.mails().await.is_empty(), "no mail about what a person did");
}
