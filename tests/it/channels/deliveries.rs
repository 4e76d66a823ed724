//! Deliveries through channels: signed and in order, to a receiver on loopback.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, routing::post};
use http::{HeaderMap, HeaderName, StatusCode, header::RETRY_AFTER};
use muster::{
    base::{
        enums::{MessageKind, MessageRole},
        ids::ConversationId,
    },
    core::resource_limits::{Holder, Resource},
    domain::{
        conversations::{self, NewMessage},
        deliveries,
    },
};
use muster_protocol::event::{Content, Message};
use sea_orm::{ConnectionTrait, Statement};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::{
    channels::{
        inbound_webhooks::{INBOUND, OUTBOUND, app, bring, channel, hello},
        probes::{begun_by, hold},
    },
    conversations::messages::say,
    harness::{
        Host, TestApp,
        fakes::telegram::{refusal, said},
        until,
    },
};

pub const DAY: Duration = Duration::from_hours(24);

/// The requests that a receiver got: headers and body.
pub type Got = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Another company's service. Answers with the statuses left in `answers`, then with 200.
#[derive(Clone)]
pub struct Receiver {
    url: String,
    pub got: Got,
    answers: Arc<Mutex<Vec<u16>>>,
    /// A test holds it to keep the receiver from answering.
    pub gate: Arc<tokio::sync::Mutex<()>>,
}

impl Receiver {
    pub async fn start(app: &TestApp, answers: &[u16]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let (answers, gate) = (Arc::new(Mutex::new(answers.to_vec())), Arc::default());
        let receiver = Self { url, got: Got::default(), answers, gate };
        let router = Router::new().route("/in", post(receive)).with_state(receiver.clone());
        app.core.tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        receiver
    }

    pub fn texts(&self) -> Vec<String> {
        let got = self.got.lock().unwrap();
        got.iter()
            .map(|(_, body)| {
                let body: Value = serde_json::from_slice(body).unwrap();
                body["data"]["message"]["text"].as_str().unwrap().to_owned()
            })
            .collect()
    }
}

async fn receive(
    State(Receiver { got, answers, gate, .. }): State<Receiver>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(HeaderName, &'static str); 1]) {
    got.lock().unwrap().push((headers, body));
    drop(gate.lock().await);
    let mut answers = answers.lock().unwrap();
    let status = if answers.is_empty() { 200 } else { answers.remove(0) };
    // A day. It counts only with 429 and 503.
    (StatusCode::from_u16(status).unwrap(), [(RETRY_AFTER, "86400")])
}

/// The delivery of a message, once it is no longer on its way.
pub async fn settled(app: &TestApp, message: i64, expected: &str) -> Value {
    let sql = "SELECT delivery_status FROM messages WHERE id = $1";
    until(&format!("it is {expected}"), async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.one::<String>(sql, vec![message.into()]).await == expected
    })
    .await;
    let attempts: i64 =
        app.one("SELECT delivery_attempts FROM messages WHERE id = $1", vec![message.into()]).await;
    let status: String = app.one(sql, vec![message.into()]).await;
    json!({ "status": status, "attempts": attempts })
}

/// A channel that the receiver serves, and a conversation in it.
pub async fn connected(app: &TestApp, receiver: &Receiver) -> (i64, i64) {
    let (id, path) = channel(app, &receiver.url).await;
    let (_, taken) = bring(app, &path, "m1", &hello("Hello")).await;
    (id, taken["conversation_id"].as_i64().unwrap())
}

/// A channel whose receiver answers like this first, and a conversation in it.
pub async fn receiving(answers: &[u16]) -> (TestApp, Receiver, i64, i64) {
    let app = app().await;
    let receiver = Receiver::start(&app, answers).await;
    let (channel, conversation) = connected(&app, &receiver).await;
    (app, receiver, channel, conversation)
}

#[tokio::test]
async fn what_the_agent_says_is_sent_signed_and_in_order() {
    let (app, receiver, id, conversation) = receiving(&[]).await;
    let first = say(&app, conversation, MessageRole::Assistant, "One").await;
    let second = say(&app, conversation, MessageRole::Assistant, "Two").await;
    assert_eq!(settled(&app, second, "SENT").await, json!({ "status": "SENT", "attempts": 1 }));
    assert_eq!(settled(&app, first, "SENT").await, json!({ "status": "SENT", "attempts": 1 }));
    assert_eq!(receiver.texts(), ["One", "Two"]);
    for (headers, body) in receiver.got.lock().unwrap().iter() {
        Webhook::new(OUTBOUND).unwrap().verify(body, headers).unwrap();
    }
    let kept = app.column::<i64>("SELECT COUNT(*) FROM deliveries WHERE text IS NOT NULL").await;
    assert_eq!(kept, [0], "the text goes once it is sent");
    // The payload names the agent, the contact, the channel and the conversation.
    let mut sent: Value = serde_json::from_slice(&receiver.got.lock().unwrap()[0].1).unwrap();
    assert_eq!(sent["type"], "message.created");
    let data = sent["data"].as_object_mut().unwrap();
    let message = data.remove("message").unwrap();
    assert_eq!((&message["reply_to"], &message["attachments"]), (&json!("m1"), &json!([])));
    let [reference, agent] = [
        "SELECT ref FROM conversations WHERE id = $1",
        "SELECT a.name FROM agents a JOIN conversations c ON c.agent_id = a.id WHERE c.id = $1",
    ];
    let reference: String = app.one(reference, vec![conversation.into()]).await;
    let agent: String = app.one(agent, vec![conversation.into()]).await;
    let [agents, contacts] = ["agent_id", "contact_id"]
        .map(|column| format!("SELECT {column} FROM conversations WHERE id = {conversation}"));
    let [agent_id, contact_id] =
        [app.one::<i64>(&agents, vec![]).await, app.one::<i64>(&contacts, vec![]).await];
    let expected = json!({
        "conversation": { "id": conversation, "ref": reference, "thread": "t1", "title": "An order" },
        "channel": { "id": id, "name": "Orders" },
        "agent": { "id": agent_id, "name": agent },
        "contact": { "id": contact_id, "name": "Ada", "origin_id": "ada" },
    });
    assert_eq!(sent["data"], expected);
}

/// Two systems' ids for people are unrelated.
#[tokio::test]
async fn the_same_origin_of_two_webhooks_is_two_people() {
    let app = app().await;
    let receiver = Receiver::start(&app, &[]).await;
    let (_, first) = channel(&app, &receiver.url).await;
    let (_, second) = channel(&app, &receiver.url).await;
    let greeting =
        |name: &str| json!({ "text": "Hello", "origin_id": "5", "origin_name": name, "thread": "t1" });
    for (n, (path, name)) in
        [(&first, "Ada"), (&second, "Bob"), (&first, "Ada"), (&second, "Bob")].into_iter().enumerate()
    {
        assert_eq!(bring(&app, path, &format!("m{n}"), &greeting(name)).await.0, 202);
    }
    assert_eq!(app.column::<String>("SELECT name FROM contacts ORDER BY name").await, ["Ada", "Bob"]);
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM identities").await, [2]);
    let (_, taken) = bring(&app, &second, "m5", &greeting("Bob")).await;
    let message = say(&app, taken["conversation_id"].as_i64().unwrap(), MessageRole::Assistant, "Yes?").await;
    settled(&app, message, "SENT").await;
    let sent: Value = serde_json::from_slice(&receiver.got.lock().unwrap()[0].1).unwrap();
    let contact = &sent["data"]["contact"];
    assert_eq!((&contact["name"], &contact["origin_id"]), (&json!("Bob"), &json!("5")));
}

#[tokio::test]
async fn a_failed_message_is_retried_with_its_id_first() {
    let (app, receiver, _, conversation) = receiving(&[500]).await;
    let first = say(&app, conversation, MessageRole::Assistant, "One").await;
    let second = say(&app, conversation, MessageRole::Assistant, "Two").await;
    until("it is tried", async || {
        deliveries::send_due(&app.core).await.unwrap();
        !receiver.got.lock().unwrap().is_empty()
    })
    .await;
    // The failure is written down a moment after the request, and the clock must not run ahead of it.
    until("it has failed", async || settled(&app, first, "PENDING").await["attempts"] == 1).await;
    app.clock.advance(Duration::from_secs(6));
    assert_eq!(settled(&app, second, "SENT").await["status"], "SENT");
    assert_eq!(settled(&app, first, "SENT").await, json!({ "status": "SENT", "attempts": 2 }));
    assert_eq!(receiver.texts(), ["One", "One", "Two"]);
    let got = receiver.got.lock().unwrap();
    assert_eq!(got[0].0["webhook-id"], got[1].0["webhook-id"]);
}

#[tokio::test]
async fn what_one_receiver_made_wait_is_sent_to_the_next_at_once() {
    let app = app().await;
    let (first, second) = (Receiver::start(&app, &[503]).await, Receiver::start(&app, &[]).await);
    let (id, path) = channel(&app, &first.url).await;
    let (_, taken) = bring(&app, &path, "m1", &hello("Hello")).await;
    let conversation = taken["conversation_id"].as_i64().unwrap();
    let message = say(&app, conversation, MessageRole::Assistant, "One").await;
    let waits = "SELECT COUNT(*) FROM channels WHERE send_after IS NOT NULL";
    until("the channel waits", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<i64>(waits).await == [1]
    })
    .await;
    let edit = format!("/v1/org/{}/channel/{id}", app.org);
    app.owner.patch(&edit, json!({ "name": "Shipping" })).await.expect(200);
    assert_eq!(app.column::<i64>(waits).await, [1], "a name says nothing about the receiver");
    app.owner.patch(&edit, json!({ "webhook": { "outbound_url": second.url } })).await.expect(200);
    settled(&app, message, "SENT").await;
    assert_eq!((first.texts(), second.texts()), (vec!["One".to_owned()], vec!["One".to_owned()]));
}

#[tokio::test]
async fn a_channel_says_that_its_receiver_is_gone_and_waits() {
    let (app, receiver, channel, conversation) = receiving(&[410]).await;
    let message = say(&app, conversation, MessageRole::Assistant, "One").await;
    let state = format!("SELECT COALESCE(inactive_reason, '') FROM channels WHERE id = {channel}");
    until("the channel says so", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<String>(&state).await == ["GONE"]
    })
    .await;
    let told = "SELECT COUNT(*) FROM approvals WHERE kind = 'CHANNEL_ERROR' AND status = 'PENDING'";
    assert_eq!(app.column::<i64>(told).await, [1]);
    let more = say(&app, conversation, MessageRole::Assistant, "Two").await;
    assert_eq!(settled(&app, more, "PENDING").await["status"], "PENDING");
    assert!(receiver.answers.lock().unwrap().is_empty());
    let edit = format!("/v1/org/{}/channel/{channel}", app.org);
    app.owner.patch(&edit, json!({ "is_active": true })).await.expect(200);
    assert_eq!(settled(&app, more, "SENT").await["status"], "SENT");
    assert_eq!(settled(&app, message, "SENT").await["status"], "SENT");
    assert_eq!(receiver.texts(), ["One", "One", "Two"]);
}

/// Appends a message, and changes one row before the message can be sent. The statement gets the organization as `$1`,
/// and the message as `$2`.
pub async fn says_while(app: &TestApp, conversation: i64, text: &str, change: &str) -> i64 {
    let content = json!({ "text": text, "format": "markdown" });
    let new =
        NewMessage::new(ConversationId(conversation), MessageRole::Assistant, MessageKind::Text, content);
    let tx = app.scope().begin().await.unwrap();
    let message = conversations::append(&tx, new).await.unwrap().0;
    let values = [app.org.into(), message.into()];
    let change = Statement::from_sql_and_values(app.core.db.backend(), change, values);
    assert_eq!(tx.connection().execute_raw(change).await.unwrap().rows_affected(), 1);
    tx.commit().await.unwrap();
    message
}

/// Says something whose last attempt fails.
async fn gives_up(app: &TestApp, conversation: i64, text: &str) {
    let attempted = "UPDATE deliveries SET attempts = 7 WHERE organization_id = $1 AND message_id = $2";
    let message = says_while(app, conversation, text, attempted).await;
    assert_eq!(settled(app, message, "FAILED").await, json!({ "status": "FAILED", "attempts": 8 }));
}

#[tokio::test]
async fn a_channel_that_fails_for_five_days_is_switched_off() {
    let (app, receiver, channel, conversation) = receiving(&[500; 3]).await;
    let state = format!("SELECT COALESCE(inactive_reason, 'on') FROM channels WHERE id = {channel}");
    let told = "SELECT COUNT(*) FROM approvals WHERE kind = 'CHANNEL_ERROR' AND status = 'PENDING'";
    gives_up(&app, conversation, "One").await;
    app.clock.advance(4 * DAY);
    gives_up(&app, conversation, "Two").await;
    assert_eq!(app.column::<String>(&state).await, ["on"]);
    app.clock.advance(DAY);
    gives_up(&app, conversation, "Three").await;
    assert_eq!(app.column::<String>(&state).await, ["DELIVERY_FAILING"]);
    assert_eq!(app.column::<i64>(told).await, [1]);
    // Messages written meanwhile wait, and the count of days starts over.
    let waits = say(&app, conversation, MessageRole::Assistant, "Four").await;
    let edit = format!("/v1/org/{}/channel/{channel}", app.org);
    app.owner.patch(&edit, json!({ "is_active": true })).await.expect(200);
    assert_eq!(app.column::<i64>(told).await, [0], "it is on again");
    settled(&app, waits, "SENT").await;
    for text in ["Five", "Six"] {
        receiver.answers.lock().unwrap().push(500);
        gives_up(&app, conversation, text).await;
        assert_eq!(app.column::<String>(&state).await, ["on"], "{text}");
        let works = say(&app, conversation, MessageRole::Assistant, "It works").await;
        settled(&app, works, "SENT").await;
        app.clock.advance(6 * DAY);
    }
}

#[tokio::test]
async fn only_an_organization_at_its_share_of_lanes_waits() {
    let (app, _, _, conversation) = receiving(&[]).await;
    let line = app.core.resource_limits.limit(Resource::Lanes);
    let all = (0..64).map(|_| line.take(Holder::Organization(app.org), 1).ok().unwrap());
    let held: Vec<_> = all.collect();
    let message = say(&app, conversation, MessageRole::Assistant, "Hello").await;
    deliveries::send_due(&app.core).await.unwrap();
    assert_eq!(line.total(), 64, "it gets no lane");
    assert!(line.take(Holder::Organization(app.other_org), 1).is_ok());
    drop(held);
    settled(&app, message, "SENT").await;
}

/// The parser takes minutes for this text, but nothing waits for it: the transaction that stores the message doesn't
/// parse it.
#[tokio::test]
async fn a_message_that_no_parser_is_quick_at_is_sent() {
    let (app, receiver, _, conversation) = receiving(&[]).await;
    let deep = format!("{}a\n{}", ">".repeat(170_000), "a\n".repeat(170_000));
    say(&app, conversation, MessageRole::Assistant, &deep).await;
    let after = say(&app, conversation, MessageRole::Assistant, "After it").await;
    settled(&app, after, "SENT").await;
    let texts = receiver.texts();
    assert!(texts.len() > 1 && texts.last().unwrap() == "After it", "{}", texts.len());
}

/// Each of these lines is ten times as long in the chat.
#[tokio::test]
async fn a_message_that_is_very_long_in_a_chat_has_few_parts() {
    let (app, _telegram, _, conversation) = begun_by(said(1, "Hello")).await;
    let agent = "SELECT agent_id FROM conversations WHERE id = $1";
    let agent = app.one(agent, vec![conversation.into()]).await;
    let host = Host { app: &app, agent, generation: 0 }.launched().await;
    host.started().await;
    let text = format!("{}{}", "1. ".repeat(6), "a\n".repeat(22_000));
    let message = |n: i64| Message {
        conversation_id: conversation,
        turn_id: None,
        key: format!("1.{n}"),
        content: Content::Text { text: text.clone() },
    };
    let told = host.tell(async |tx, from| {
        let all = (0..21).map(|n| (*from, message(n))).collect();
        conversations::reports::messages(tx, all).await
    });
    told.await.unwrap();
    let count = "SELECT COUNT(*) FROM deliveries";
    assert_eq!(app.column::<i64>(count).await, [21], "they are split when they are sent");
    until("the first is split", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<i64>(count).await == [120]
    })
    .await;
    let parts = "SELECT COUNT(*) FROM deliveries WHERE draft IS NULL AND part BETWEEN 1 AND 100";
    assert_eq!(app.column::<i64>(parts).await, [100]);
}

#[tokio::test]
async fn answers_that_are_lost_days_apart_switch_no_channel_off() {
    let (app, telegram, _, conversation) = begun_by(said(1, "Hello")).await;
    for text in ["One", "Two"] {
        // Telegram can't be asked whether it has the message.
        hold(&telegram, "sendMessage").send(refusal(502, "Bad Gateway")).unwrap();
        let message = say(&app, conversation, MessageRole::Assistant, text).await;
        assert_eq!(settled(&app, message, "FAILED").await, json!({ "status": "FAILED", "attempts": 1 }));
        app.clock.advance(6 * DAY);
    }
    assert_eq!(app.column::<String>("SELECT DISTINCT code FROM deliveries").await, ["unknown_outcome"]);
    assert_eq!(app.column::<String>("SELECT COALESCE(inactive_reason, 'on') FROM channels").await, ["on"]);
}

#[tokio::test]
async fn a_refusal_shows_that_the_receiver_is_there() {
    let (app, receiver, _, conversation) = receiving(&[500, 422, 500]).await;
    gives_up(&app, conversation, "One").await;
    app.clock.advance(3 * DAY);
    let refused = say(&app, conversation, MessageRole::Assistant, "Two").await;
    assert_eq!(settled(&app, refused, "FAILED").await, json!({ "status": "FAILED", "attempts": 1 }));
    app.clock.advance(3 * DAY);
    gives_up(&app, conversation, "Three").await;
    assert_eq!(app.column::<String>("SELECT COALESCE(inactive_reason, 'on') FROM channels").await, ["on"]);
    assert_eq!(receiver.texts(), ["One", "Two", "Three"]);
}

#[tokio::test]
async fn an_unsent_message_does_not_show_a_receiver() {
    let (app, receiver, channel, conversation) = receiving(&[500, 500]).await;
    gives_up(&app, conversation, "One").await;
    app.clock.advance(3 * DAY);
    let to = "SELECT target FROM conversations WHERE id = $1";
    let to: String = app.one(to, vec![conversation.into()]).await;
    // The conversation loses its target.
    let forget = "UPDATE conversations SET target = NULL WHERE organization_id = $1 \
                  AND id = (SELECT conversation_id FROM messages WHERE id = $2)";
    let message = says_while(&app, conversation, "Two", forget).await;
    assert_eq!(settled(&app, message, "FAILED").await, json!({ "status": "FAILED", "attempts": 1 }));
    let code = format!("SELECT code FROM deliveries WHERE message_id = {message}");
    assert_eq!(app.column::<String>(&code).await, ["target_gone"]);
    let restore = "UPDATE conversations SET target = $1 WHERE id = $2";
    app.execute(restore, vec![to.into(), conversation.into()]).await;
    app.clock.advance(3 * DAY);
    gives_up(&app, conversation, "Three").await;
    let state = format!("SELECT COALESCE(inactive_reason, 'on') FROM channels WHERE id = {channel}");
    assert_eq!(app.column::<String>(&state).await, ["DELIVERY_FAILING"]);
    assert_eq!(receiver.texts(), ["One", "Three"]);
}

#[tokio::test]
async fn what_the_receiver_refuses_is_sent_again_by_hand() {
    let (app, _, _, conversation) = receiving(&[422]).await;
    let message = say(&app, conversation, MessageRole::Assistant, "One").await;
    assert_eq!(settled(&app, message, "FAILED").await["status"], "FAILED");
    let again =
        "mutation($o: Id!, $m: Id!) { retryDelivery(orgId: $o, messageId: $m) { delivery { status code } } }";
    let variables = json!({ "o": app.org, "m": message });
    let answer = app.operator.gql(again, variables.clone()).await;
    assert_eq!(answer.data()["retryDelivery"]["delivery"], json!({ "status": "PENDING", "code": null }));
    assert_eq!(settled(&app, message, "SENT").await["status"], "SENT");
    assert_eq!(app.operator.gql(again, variables).await.code(), "CONFLICT");
}

#[tokio::test]
async fn an_outgoing_address_that_leads_inward_is_not_called() {
    let app = TestApp::start().await;
    let receiver = Receiver::start(&app, &[]).await;
    let (_, conversation) = connected(&app, &receiver).await;
    let message = say(&app, conversation, MessageRole::Assistant, "One").await;
    assert_eq!(settled(&app, message, "FAILED").await["status"], "FAILED");
    assert!(receiver.texts().is_empty());
}

#[tokio::test]
async fn a_replaced_secret_counts_for_a_day_in_both_directions() {
    let app = app().await;
    let receiver = Receiver::start(&app, &[]).await;
    let (id, path) = channel(&app, &receiver.url).await;
    let channel = format!("/v1/org/{}/channel/{id}", app.org);
    let (new, other) = ("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB");
    let replace = async |field: &str, secret: &str| {
        app.owner.patch(&channel, json!({ "webhook": { field: secret } })).await.expect(200);
    };
    replace("inbound_secret", new).await;
    replace("outbound_secret", new).await;
    let (status, taken) = bring(&app, &path, "m1", &hello("One")).await;
    assert_eq!(status, 202, "{taken}");
    let conversation = taken["conversation_id"].as_i64().unwrap();
    let message = say(&app, conversation, MessageRole::Assistant, "Both").await;
    settled(&app, message, "SENT").await;
    let verified = |secret: &str| {
        let got = receiver.got.lock().unwrap();
        let (headers, body) = got.last().unwrap();
        Webhook::new(secret).unwrap().verify(body, headers).is_ok()
    };
    assert_eq!([new, OUTBOUND, other].map(verified), [true, true, false]);
    // Setting the same secret again doesn't replace it.
    replace("inbound_secret", new).await;
    assert_eq!(bring(&app, &path, "m2", &hello("Two")).await.0, 202);
    app.clock.advance(Duration::from_secs(24 * 60 * 60 + 1));
    assert_eq!(bring(&app, &path, "m3", &hello("Three")).await.0, 401);
    let message = say(&app, conversation, MessageRole::Assistant, "One").await;
    settled(&app, message, "SENT").await;
    assert_eq!([new, OUTBOUND].map(verified), [true, false]);
    // Two exchanges in a row end the first at once.
    replace("inbound_secret", INBOUND).await;
    replace("inbound_secret", other).await;
    replace("inbound_secret", new).await;
    assert_eq!(bring(&app, &path, "m4", &hello("Four")).await.0, 401);
}
