//! Files that come and go through channels.

use muster::{core::resource_limits::Resource, domain::deliveries};
use serde_json::{Value, json};

use crate::{
    channels::{
        connect,
        probes::{begun_by, bot, whitelist, with_telegram},
        send_limits::let_time_pass,
    },
    conversations::takeover::take_over,
    harness::{
        Answer, TestApp,
        fakes::telegram::{Shared, TOKEN, said},
        until,
    },
};

#[tokio::test]
async fn a_file_that_comes_with_a_message_is_kept_with_it() {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    whitelist(&app, &channel, "5").await;
    let mut update = said(10, "");
    update["message"]["text"] = Value::Null;
    update["message"]["caption"] = json!("Look at this");
    update["message"]["document"] =
        json!({ "file_id": "f1", "file_name": "../a.txt", "mime_type": "text/plain", "file_size": 3 });
    let mut large = said(11, "And this");
    large["message"]["document"] =
        json!({ "file_id": "f2", "file_name": "film.mp4", "file_size": 99_000_000 });
    telegram.lock().unwrap().updates = vec![update, large];
    app.service.ingest.listen();
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    until("both are stored", async || app.column::<i64>(stored).await == [2]).await;
    let kept = "SELECT a.filename || ' ' || a.mime_type || ' ' || m.seq FROM attachments a JOIN messages m ON m.id = a.message_id";
    assert_eq!(app.column::<String>(kept).await, ["a.txt text/plain 1"]);
    assert_eq!(app.column::<Vec<u8>>("SELECT content FROM attachment_blobs").await, [b"abc"]);
    let texts = app.column::<String>("SELECT CAST(content AS TEXT) FROM messages ORDER BY seq").await;
    assert!(texts[0].contains("Look at this") && !texts[0].contains("a.txt"), "{texts:?}");
    assert!(texts[1].contains("And this") && texts[1].contains("film.mp4 (it is longer than"), "{texts:?}");
}

/// A conversation that a person has taken over from the agent.
async fn taken_over() -> (TestApp, Shared, i64) {
    let (app, telegram, _, conversation) = begun_by(said(10, "Send me the file")).await;
    take_over(&app, &app.operator, conversation).await;
    (app, telegram, conversation)
}

/// A person answers in the place of the agent.
async fn answer(app: &TestApp, conversation: i64, input: Value) -> Value {
    let post = "mutation($o: Id!, $c: Id!, $i: PostMessageInput!) { postMessage(orgId: $o, conversationId: $c, input: $i) { attachments { id } } }";
    app.operator.gql(post, json!({ "o": app.org, "c": conversation, "i": input })).await.data()
}

/// The person uploads a file with this text. Returns its id.
async fn uploaded(app: &TestApp, name: &str, text: &'static str) -> Value {
    let path = format!("/v1/org/{}/attachment?filename={name}", app.org);
    let upload = app.operator.request(reqwest::Method::POST, &path).header("content-type", "text/plain");
    Answer::of(upload.body(text)).await.expect(201)["id"].clone()
}

/// A person has answered with a text and a file.
async fn answered_with_a_file() -> (TestApp, Shared) {
    let (app, telegram, conversation) = taken_over().await;
    let file = uploaded(&app, "plan.txt", "the plan").await;
    answer(&app, conversation, json!({ "text": "Here it is", "attachmentIds": [file] })).await;
    (app, telegram)
}

#[tokio::test]
async fn files_keep_the_order_in_which_they_are_posted() {
    let (app, telegram, conversation) = taken_over().await;
    let (a, b, c) = (
        uploaded(&app, "a.txt", "1").await,
        uploaded(&app, "b.txt", "2").await,
        uploaded(&app, "c.txt", "3").await,
    );
    let shown = answer(&app, conversation, json!({ "text": "Three", "attachmentIds": [c, a, b] })).await;
    assert_eq!(shown["postMessage"]["attachments"], json!([{ "id": c }, { "id": a }, { "id": b }]));
    parts_are_sent(&app, 4).await;
    let documents: Vec<_> =
        asked(&telegram, "sendDocument").iter().map(|asked| asked["document"].clone()).collect();
    assert_eq!(documents, ["c.txt: 3", "a.txt: 1", "b.txt: 2"]);
}

async fn parts_are_sent(app: &TestApp, expected: i64) {
    until(&format!("{expected} parts are sent"), async || {
        deliveries::send_due(&app.core).await.unwrap();
        let_time_pass(app).await;
        app.column::<i64>("SELECT COUNT(*) FROM deliveries WHERE status = 'SENT'").await == [expected]
    })
    .await;
}

/// The requests to a method of the vendor.
fn asked(telegram: &Shared, method: &str) -> Vec<Value> {
    let asked = telegram.lock().unwrap().asked.clone();
    asked.into_iter().filter(|(name, _)| name == method).map(|(_, asked)| asked).collect()
}

#[tokio::test]
async fn plain_text_of_a_person_arrives_as_it_was_written() {
    let (app, telegram, conversation) = taken_over().await;
    let text = "2*3*4\n\n[1]: https://a.test";
    answer(&app, conversation, json!({ "text": text, "format": "plain" })).await;
    parts_are_sent(&app, 1).await;
    let sent: Vec<_> = asked(&telegram, "sendMessage").iter().map(|asked| asked["text"].clone()).collect();
    assert_eq!(sent, [text]);
}

#[tokio::test]
async fn a_persons_file_goes_out_with_their_message() {
    let (app, telegram) = answered_with_a_file().await;
    parts_are_sent(&app, 2).await;
    assert_eq!(asked(&telegram, "sendMessage").len(), 1);
    let documents: Vec<_> =
        asked(&telegram, "sendDocument").iter().map(|asked| asked["document"].clone()).collect();
    assert_eq!(documents, ["plan.txt: the plan"]);
}

#[tokio::test]
async fn what_the_database_did_not_give_is_sent_later() {
    let (app, telegram) = answered_with_a_file().await;
    let lanes = app.core.resource_limits.limit(Resource::Lanes);
    app.execute("ALTER TABLE attachment_blobs RENAME TO away", vec![]).await;
    parts_are_sent(&app, 1).await;
    // The file has no room for a second after the text, and can't be read.
    for _ in 0..3 {
        until("the lane is free", async || lanes.total() == 0).await;
        let_time_pass(&app).await;
        deliveries::send_due(&app.core).await.unwrap();
    }
    until("the lane is free", async || lanes.total() == 0).await;
    assert_eq!(app.column::<String>("SELECT status FROM deliveries WHERE files = 1").await, ["PENDING"]);
    app.execute("ALTER TABLE away RENAME TO attachment_blobs", vec![]).await;
    parts_are_sent(&app, 2).await;
    assert_eq!(asked(&telegram, "sendDocument").len(), 1);
    assert_eq!(app.column::<i64>("SELECT attempts FROM deliveries").await, [1, 1]);
}
