//! Telegram's webhook: where the installation wants it, Telegram sends what comes in, under a secret that Muster made. The vendor is
//! the fake that python-telegram-bot takes for Telegram.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    channels::{
        connect, delete,
        inbound_webhooks::forbid,
        path,
        probes::{self, app_with, whitelist, with_telegram},
        sets,
    },
    harness::{
        Actor, TestApp,
        fakes::telegram::{OTHER, Shared, TOKEN, said, telegram},
        until,
    },
};

/// Where people, and Telegram, find the installation.
const PUBLIC: &str = "https://muster.example";

/// Where Telegram was told to send.
#[derive(Clone)]
pub struct Hook {
    pub vendor: Actor,
    pub path: String,
    pub secret: String,
}

impl Hook {
    /// As it was told last.
    pub fn of(app: &TestApp, telegram: &Shared) -> Self {
        let asked = asked(telegram, "setWebhook").pop().unwrap();
        let text = |field: &str| asked[field].as_str().unwrap().to_owned();
        let path = text("url").strip_prefix(PUBLIC).unwrap().to_owned();
        Self { vendor: app.anonymous.clone(), path, secret: text("secret_token") }
    }

    /// Telegram sends an update. Returns the status of the answer.
    pub async fn brings(&self, update: &Value) -> u16 {
        let request = self.vendor.request(Method::POST, &self.path);
        let request = request.header("x-telegram-bot-api-secret-token", &self.secret);
        request.json(update).send().await.unwrap().status().as_u16()
    }
}

fn asked(telegram: &Shared, method: &str) -> Vec<Value> {
    let fake = telegram.lock().unwrap();
    fake.asked.iter().filter(|(name, _)| name == method).map(|(_, asked)| asked.clone()).collect()
}

/// The channel's state: `webhookRegistered`, its path, and whether it is reached.
async fn shown(app: &TestApp, channel: &Value) -> Value {
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { webhookRegistered inboundPath link { state } } }";
    app.viewer.gql(query, json!({ "o": app.org, "c": channel["id"] })).await.data()["channel"].clone()
}

async fn until_registered(app: &TestApp, channel: &Value) {
    until("Telegram knows where to send", async || {
        let shown = shown(app, channel).await;
        shown["webhookRegistered"] == true && shown["link"]["state"] == "UP"
    })
    .await;
}

/// A bot that has a webhook: its installation, its vendor, its agent and its channel.
pub async fn bot() -> (TestApp, Shared, i64, Value) {
    let (address, fake) = telegram().await;
    let app = app_with(address, |config| {
        config.public_url = Some(PUBLIC.to_owned());
        config.channels.telegram_webhooks = true;
    })
    .await;
    let agent = app.agent().await;
    let channel = connect(&app, probes::bot(agent, TOKEN)).await;
    assert_eq!((&channel["webhook_registered"], &channel["inbound_path"]), (&json!(false), &Value::Null));
    app.service.ingest.listen();
    until_registered(&app, &channel).await;
    (app, fake, agent, channel)
}

const STORED: &str = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";

#[tokio::test]
async fn telegrams_webhook_is_acknowledged_once_stored() {
    let (app, telegram, _, channel) = bot().await;
    whitelist(&app, &channel, "5").await;
    let hook = Hook::of(&app, &telegram);
    assert_eq!(shown(&app, &channel).await["inboundPath"], hook.path.as_str());
    assert_eq!(hook.secret.len(), 43);
    let updates =
        json!(["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"]);
    assert_eq!(asked(&telegram, "setWebhook")[0]["allowed_updates"], updates);
    assert_eq!(hook.brings(&said(10, "Hello")).await, 200);
    let turns = "SELECT m.author_name || ' ' || t.cause FROM messages m JOIN turns t ON t.id = m.turn_id";
    assert_eq!(app.column::<String>(turns).await, ["Ada CHANNEL"]);
    assert_eq!(hook.brings(&said(10, "Hello")).await, 200);
    assert_eq!(app.column::<i64>(STORED).await, [1]);
    // An unreadable update would hold up the others.
    assert_eq!(hook.brings(&json!({ "update_id": 11, "message": 5 })).await, 200);
    for (secret, path, status) in [
        ("another", hook.path.as_str(), 401),
        ("", hook.path.as_str(), 401),
        (hook.secret.as_str(), "/webhooks/telegram/elsewhere", 404),
    ] {
        let other = Hook { secret: secret.to_owned(), path: path.to_owned(), ..hook.clone() };
        assert_eq!(other.brings(&said(12, "Let me in")).await, status, "{secret} {path}");
    }
    assert_eq!(app.column::<i64>(STORED).await, [1]);
    assert_eq!(asked(&telegram, "getUpdates"), [Value::Null; 0]);
    // The secret is sealed, and never shown.
    let sealed = app.column::<Vec<u8>>("SELECT webhook_inbound_secret_sealed FROM channels").await;
    assert!(!sealed[0].windows(43).any(|window| window == hook.secret.as_bytes()));
    let records = app.owner.get(&path(&app)).await;
    assert!(records.text.contains(&hook.path) && !records.text.contains(&hook.secret), "{}", records.text);
}

#[tokio::test]
async fn a_group_with_a_new_id_keeps_its_place_on_the_lists() {
    let (app, telegram, _, channel) = bot().await;
    whitelist(&app, &channel, "-100").await;
    sets(&app, &channel, json!({ "mention_off": ["-7", "-100"] })).await;
    let hook = Hook::of(&app, &telegram);
    assert_eq!(hook.brings(&in_group(10, -100, &json!({}))).await, 200);
    assert_eq!(hook.brings(&in_group(11, -100, &json!({ "migrate_to_chat_id": -1009 }))).await, 200);
    assert_eq!(hook.brings(&in_group(12, -1009, &json!({}))).await, 200);
    // Both are in one conversation, and both are answered.
    let places = "SELECT c.thread_key FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.turn_id IS NOT NULL";
    assert_eq!(app.column::<String>(places).await, ["-1009", "-1009"]);
    assert_eq!(app.owner.get(&path(&app)).await.expect(200)[0]["mention_off"], json!(["-7", "-1009"]));
    assert_eq!(app.column::<String>("SELECT origin_id FROM channel_whitelist").await, ["-1009"]);
    let told = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'moveOrigin'";
    assert_eq!(app.column::<i64>(told).await, [1]);
}

#[tokio::test]
async fn messages_after_a_moved_id_are_judged_by_place() {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, probes::bot(app.agent().await, TOKEN)).await;
    whitelist(&app, &channel, "-100").await;
    sets(&app, &channel, json!({ "mention_off": ["-100", "-1009"] })).await;
    let moved = in_group(11, -100, &json!({ "migrate_to_chat_id": -1009 }));
    telegram.lock().unwrap().updates = vec![moved, in_group(12, -1009, &json!({}))];
    app.service.ingest.listen();
    let answered = "SELECT COUNT(*) FROM messages WHERE turn_id IS NOT NULL";
    until("it is answered", async || app.column::<i64>(answered).await == [1]).await;
    assert_eq!(app.owner.get(&path(&app)).await.expect(200)[0]["mention_off"], json!(["-1009"]));
}

#[tokio::test]
async fn of_a_batch_only_unstorable_messages_are_left_out() {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, probes::bot(app.agent().await, TOKEN)).await;
    whitelist(&app, &channel, "5").await;
    forbid(&app, "Unspeakable").await;
    let texts = ["One", "Unspeakable", "Two", "Three"];
    telegram.lock().unwrap().updates = (10..).zip(texts).map(|(id, text)| said(id, text)).collect();
    app.service.ingest.listen();
    until("the others are stored", async || app.column::<i64>(STORED).await == [3]).await;
    let stored = app.column::<Value>("SELECT content FROM messages ORDER BY seq").await;
    let stored: Vec<_> = stored.iter().map(|content| content["text"].as_str().unwrap()).collect();
    assert_eq!(stored, ["One", "Two", "Three"]);
    let seqs = app.column::<i64>("SELECT seq FROM messages ORDER BY seq").await;
    assert_eq!(seqs, [1, 2, 3]);
}

/// An update from a group.
pub fn in_group(id: i64, chat: i64, more: &Value) -> Value {
    let mut update = said(id, "Hello");
    update["message"]["chat"] = json!({ "id": chat, "type": "supergroup", "title": "Crew" });
    update["message"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    update
}

#[tokio::test]
async fn switching_off_or_deleting_takes_the_webhook_back() {
    let (app, telegram, _, channel) = bot().await;
    let first = Hook::of(&app, &telegram);
    sets(&app, &channel, json!({ "is_active": false })).await;
    // From this moment on: Telegram keeps what it can't bring.
    assert_eq!(first.brings(&said(10, "Hello")).await, 404);
    until("it is taken back", async || asked(&telegram, "deleteWebhook").len() == 1).await;
    until("its path is gone", async || shown(&app, &channel).await["inboundPath"].is_null()).await;
    assert_eq!(shown(&app, &channel).await["webhookRegistered"], false);
    sets(&app, &channel, json!({ "is_active": true })).await;
    until_registered(&app, &channel).await;
    let second = Hook::of(&app, &telegram);
    assert!(second.path != first.path && second.secret != first.secret);
    delete(&app, &channel["id"]).await.data();
    assert_eq!(second.brings(&said(10, "Hello")).await, 404);
    until("it is taken back again", async || asked(&telegram, "deleteWebhook").len() == 2).await;
}

#[tokio::test]
async fn a_new_token_gets_a_path_and_a_secret_of_its_own() {
    let (app, telegram, _, channel) = bot().await;
    let first = Hook::of(&app, &telegram);
    // Listeners know by its time that something was changed.
    app.clock.advance(Duration::from_secs(1));
    let changed = sets(&app, &channel, json!({ "bot_token": TOKEN })).await;
    assert_eq!((&changed["webhook_registered"], &changed["inbound_path"]), (&json!(false), &Value::Null));
    assert_eq!(first.brings(&said(10, "Hello")).await, 404);
    until_registered(&app, &channel).await;
    let second = Hook::of(&app, &telegram);
    assert!(second.path != first.path && second.secret != first.secret);
    assert_eq!(asked(&telegram, "deleteWebhook").len(), 1);
    assert_eq!(second.brings(&said(10, "Hello")).await, 200);
}

#[tokio::test]
async fn another_bots_numbers_do_not_count_as_stored() {
    let (app, telegram, _, channel) = bot().await;
    whitelist(&app, &channel, "5").await;
    assert_eq!(Hook::of(&app, &telegram).brings(&said(7, "To the first")).await, 200);
    // Listeners know by its time that something was changed.
    app.clock.advance(Duration::from_secs(1));
    sets(&app, &channel, json!({ "bot_token": OTHER })).await;
    until_registered(&app, &channel).await;
    let second = Hook::of(&app, &telegram);
    for _ in 0..2 {
        assert_eq!(second.brings(&said(7, "To the second")).await, 200);
    }
    let stored = "SELECT content FROM messages WHERE via_channel_id IS NOT NULL ORDER BY id";
    let stored = app.column::<Value>(stored).await;
    let stored: Vec<_> = stored.iter().map(|content| content["text"].as_str().unwrap()).collect();
    assert_eq!(stored, ["To the first", "To the second"]);
}

#[tokio::test]
async fn without_the_setting_telegram_is_polled_again() {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, probes::bot(app.agent().await, TOKEN)).await;
    whitelist(&app, &channel, "5").await;
    // As it was left behind.
    let left = "UPDATE channels SET inbound_slug = 'left', webhook_registered = TRUE";
    app.execute(left, vec![]).await;
    {
        let mut fake = telegram.lock().unwrap();
        fake.webhook = format!("{PUBLIC}/webhooks/telegram/left");
        fake.updates = vec![said(10, "Hello")];
    }
    app.service.ingest.listen();
    until("it is stored", async || app.column::<i64>(STORED).await == [1]).await;
    assert_eq!(asked(&telegram, "deleteWebhook").len(), 1);
    let shown = shown(&app, &channel).await;
    assert_eq!((&shown["webhookRegistered"], &shown["inboundPath"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn a_webhook_that_telegram_refuses_is_shown_with_its_cause() {
    let (app, telegram, _, channel) = bot().await;
    let refused = json!({ "ok": false, "error_code": 400, "description": "Bad Request: bad webhook: HTTPS url must be provided" });
    sets(&app, &channel, json!({ "is_active": false })).await;
    until("it is taken back", async || shown(&app, &channel).await["inboundPath"].is_null()).await;
    // Who it is, and what about its webhook: the edit asks so, and then the listener.
    let ok = |result: Value| (200, json!({ "ok": true, "result": result }));
    let me = json!({ "id": 7, "is_bot": true, "first_name": "Muster", "username": "muster_bot" });
    let first = [ok(me.clone()), ok(json!({})), ok(me), ok(json!({})), (400, refused)];
    telegram.lock().unwrap().answers.extend(first);
    sets(&app, &channel, json!({ "is_active": true })).await;
    let query =
        "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { webhookRegistered link { state cause } } }";
    until("the cause is shown", async || {
        let found = app.viewer.gql(query, json!({ "o": app.org, "c": channel["id"] })).await.data();
        let found = &found["channel"];
        found["webhookRegistered"] == false
            && found["link"]["state"] == "DOWN"
            && found["link"]["cause"].as_str().is_some_and(|cause| cause.contains("bad webhook"))
    })
    .await;
}
