//! Vendors' answers about channels: our identity, the valid credentials, and whether the vendor is reachable. The
//! vendors are the fakes that their own clients take for real ones (`crates/channels/tests/vendors`).

use std::{net::SocketAddr, time::Duration};

use hmac::{Hmac, KeyInit, Mac};
use muster::{
    base::enums::MessageRole,
    core::config::Config,
    domain::{channels, deliveries},
};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::oneshot;

use crate::{
    channels::{at, connect, delete, path, send_limits::let_time_pass},
    conversations::messages::say,
    harness::{
        TestApp,
        fakes::{
            slack::{self, APP, BOT, envelope, slack},
            telegram::{self, TOKEN, refusal, said, telegram},
        },
        until,
    },
};

async fn app(vendor: SocketAddr) -> TestApp {
    app_with(vendor, |_| ()).await
}

/// An installation whose vendors are all at this address.
pub async fn app_with(vendor: SocketAddr, configure: impl FnOnce(&mut Config)) -> TestApp {
    TestApp::start_with(|config| {
        configure(config);
        let base = format!("http://{vendor}/");
        config.channels.telegram_url = base.parse().unwrap();
        config.channels.discord_url = format!("{base}api/v10/").parse().unwrap();
        config.channels.discord_files_url = base.parse().unwrap();
        config.channels.github_url = base.parse().unwrap();
        config.channels.github_api_url = format!("{base}api/").parse().unwrap();
        config.channels.slack_url = format!("{base}api/").parse().unwrap();
        config.channels.slack_files_url = base.parse().unwrap();
    })
    .await
}

pub async fn with_telegram() -> (TestApp, telegram::Shared) {
    let (address, fake) = telegram().await;
    (app(address).await, fake)
}

/// A bot with which a person has begun a conversation, by this update of chat 5. Its channel and the conversation.
pub async fn begun_by(update: Value) -> (TestApp, telegram::Shared, Value, i64) {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    whitelist(&app, &channel, "5").await;
    telegram.lock().unwrap().updates = vec![update];
    app.service.ingest.listen();
    let stored = "SELECT conversation_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("it is stored", async || app.column::<i64>(stored).await.len() == 1).await;
    let conversation = app.column::<i64>(stored).await[0];
    (app, telegram, channel, conversation)
}

pub async fn with_slack() -> (TestApp, slack::Shared) {
    let (address, fake) = slack().await;
    (app(address).await, fake)
}

pub fn bot(agent: i64, token: &str) -> Value {
    json!({ "name": "Bot", "transport": "TELEGRAM", "agent_id": agent, "bot_token": token })
}

pub fn workspace(agent: i64, second: &str) -> Value {
    json!({ "name": "Slack", "transport": "SLACK", "agent_id": agent, "bot_token": format!("{BOT} {second}") })
}

/// The channel as the panel shows it.
async fn shown(app: &TestApp, channel: &Value) -> Value {
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { isActive inactiveReason botUsername inviteUrl warnings \
                 link { state cause since } } }";
    app.viewer.gql(query, json!({ "o": app.org, "c": channel["id"] })).await.data()["channel"].clone()
}

pub async fn whitelist(app: &TestApp, channel: &Value, origin: &str) {
    let list = format!("{}/whitelist", at(app, channel));
    app.operator.post(&list, json!({ "origin_id": origin })).await.expect(200);
}

#[tokio::test]
async fn a_token_that_the_vendor_refuses_is_refused_with_its_field() {
    let (app, _telegram) = with_telegram().await;
    let agent = app.agent().await;
    let refused = app.operator.post(&path(&app), bot(agent, "8:of-no-one")).await;
    assert_eq!(refused.violations(), [("/bot_token", "NOT_ALLOWED")]);
    assert!(refused.text.contains("Telegram: Unauthorized"), "{}", refused.text);
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM channels").await, [0]);
    let channel = connect(&app, bot(agent, TOKEN)).await;
    let refused = app.operator.patch(&at(&app, &channel), json!({ "bot_token": "8:of-no-one" })).await;
    assert_eq!(refused.violations(), [("/bot_token", "NOT_ALLOWED")]);
    assert_eq!(shown(&app, &channel).await["botUsername"], "muster_bot");
}

#[tokio::test]
async fn what_the_vendor_says_about_a_bot_is_kept() {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    assert_eq!(channel["bot_username"], "muster_bot");
    assert_eq!(channel["invite_url"], "https://t.me/muster_bot?startgroup=true");
    let shown = shown(&app, &channel).await;
    assert!(shown["warnings"][0].as_str().unwrap().contains("setprivacy"), "{shown}");
    assert_eq!(app.column::<String>("SELECT CAST(self_ids AS TEXT) FROM channels").await, [r#"["7"]"#]);
    // An edit that concerns no credential causes no call.
    let asked = telegram.lock().unwrap().asked.len();
    app.operator.patch(&at(&app, &channel), json!({ "name": "Other" })).await.expect(200);
    assert_eq!(telegram.lock().unwrap().asked.len(), asked);
}

#[tokio::test]
async fn an_absent_vendor_is_probed_again_by_the_listener() {
    let (app, telegram) = with_telegram().await;
    telegram.lock().unwrap().answers.push_back(refusal(502, "Bad Gateway"));
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    assert_eq!((&channel["is_active"], &channel["bot_username"]), (&json!(true), &Value::Null));
    let warned = shown(&app, &channel).await["warnings"][0].clone();
    assert_eq!(warned, "Not checked: Telegram: Bad Gateway");
    app.service.ingest.listen();
    until("the listener learns who it is", async || {
        let shown = shown(&app, &channel).await;
        shown["botUsername"] == "muster_bot" && shown["link"]["state"] == "UP"
    })
    .await;
}

#[tokio::test]
async fn an_absent_vendor_without_a_listener_is_probed_again() {
    let (app, telegram) = with_telegram().await;
    for _ in 0..2 {
        telegram.lock().unwrap().answers.push_back(refusal(502, "Bad Gateway"));
    }
    let mut body = bot(app.agent().await, TOKEN);
    body["direction"] = json!("OUTBOUND");
    let channel = connect(&app, body).await;
    let warned = "Not checked: Telegram: Bad Gateway";
    for expected in [0, 1, 0] {
        let shown = shown(&app, &channel).await;
        assert_eq!(shown["warnings"][0] == warned, shown["botUsername"].is_null(), "{shown}");
        assert_eq!(shown["warnings"][0] == warned, telegram.lock().unwrap().asked.len() <= 2, "{shown}");
        assert_eq!(channels::check_again(&app.core).await.unwrap(), expected);
    }
    assert_eq!(shown(&app, &channel).await["botUsername"], "muster_bot");
    assert_eq!(telegram.lock().unwrap().asked.len(), 4, "what is checked is not asked again");
}

#[tokio::test]
async fn a_credential_that_turns_out_to_be_refused_ends_the_channel() {
    let (app, telegram) = with_telegram().await;
    telegram.lock().unwrap().answers.push_back(refusal(502, "Bad Gateway"));
    let mut body = bot(app.agent().await, TOKEN);
    body["direction"] = json!("OUTBOUND");
    let channel = connect(&app, body).await;
    telegram.lock().unwrap().answers.push_back(refusal(401, "Unauthorized"));
    assert_eq!(channels::check_again(&app.core).await.unwrap(), 1);
    assert_eq!(shown(&app, &channel).await["inactiveReason"], "AUTH_FAILED");
    assert_eq!(channels::check_again(&app.core).await.unwrap(), 0);
}

/// The vendor's answer to the next call of this method is sent from here.
pub fn hold(telegram: &telegram::Shared, method: &'static str) -> oneshot::Sender<(u16, Value)> {
    let (answer, held) = oneshot::channel();
    telegram.lock().unwrap().held = Some((method, held));
    answer
}

/// A person enters the token while the call that is held runs with the one before, which is refused.
async fn correct(
    app: &TestApp,
    channel: &Value,
    telegram: &telegram::Shared,
    answer: oneshot::Sender<(u16, Value)>,
) {
    assert!(telegram.lock().unwrap().held.is_none());
    app.clock.advance(Duration::from_secs(1));
    app.operator.patch(&at(app, channel), json!({ "bot_token": TOKEN })).await.expect(200);
    // On a slow machine it may no longer be awaited.
    answer.send(refusal(401, "Unauthorized")).ok();
}

#[tokio::test]
async fn a_listeners_old_credential_keeps_a_corrected_channel_on() {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    let answer = hold(&telegram, "getMe");
    app.service.ingest.listen();
    until("the listener asks", async || telegram.lock().unwrap().held.is_none()).await;
    correct(&app, &channel, &telegram, answer).await;
    until("the listener runs, or never will", async || {
        let shown = shown(&app, &channel).await;
        shown["link"]["state"] == "UP" || shown["isActive"] == false
    })
    .await;
    assert_eq!(shown(&app, &channel).await["isActive"], true);
}

#[tokio::test]
async fn sending_with_the_old_credential_keeps_the_channel_on() {
    let (app, telegram, channel, conversation) = begun_by(said(1, "Hello")).await;
    let answer = hold(&telegram, "sendMessage");
    let message = say(&app, conversation, MessageRole::Assistant, "Yes?").await;
    until("it is being sent", async || {
        deliveries::send_due(&app.core).await.unwrap();
        telegram.lock().unwrap().held.is_none()
    })
    .await;
    correct(&app, &channel, &telegram, answer).await;
    let status = "SELECT delivery_status FROM messages WHERE id = $1";
    until("it is sent, or never will be", async || {
        let_time_pass(&app).await;
        deliveries::send_due(&app.core).await.unwrap();
        app.one::<String>(status, vec![message.into()]).await == "SENT"
            || shown(&app, &channel).await["isActive"] == false
    })
    .await;
    assert_eq!(shown(&app, &channel).await["isActive"], true);
}

#[tokio::test]
async fn why_a_vendor_is_not_reached_is_shown() {
    let app = TestApp::start().await;
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    assert_eq!(shown(&app, &channel).await["link"], Value::Null);
    app.service.ingest.listen();
    let said = "Telegram can't be reached";
    until("the cause is shown", async || {
        let link = shown(&app, &channel).await["link"].clone();
        link["state"] == "DOWN"
            && link["cause"].as_str().is_some_and(|cause| cause.contains(said))
            && !link["since"].is_null()
    })
    .await;
}

#[tokio::test]
async fn no_two_channels_have_the_same_bot_in_any_organization() {
    let (app, _telegram) = with_telegram().await;
    let agent = app.agent().await;
    let channel = connect(&app, bot(agent, TOKEN)).await;
    let again = app.operator.post(&path(&app), bot(agent, TOKEN)).await;
    assert_eq!(again.violations(), [("/bot_token", "NOT_ALLOWED")]);
    assert!(again.text.contains("Another channel has this token."), "{}", again.text);
    let theirs = format!("/v1/org/{}/channel", app.other_org);
    let again = app.stranger.post(&theirs, bot(app.other_agent().await, TOKEN)).await;
    assert_eq!(again.violations(), [("/bot_token", "NOT_ALLOWED")]);
    // The same token again is not another bot; a deleted channel has none.
    app.operator.patch(&at(&app, &channel), json!({ "bot_token": TOKEN })).await.expect(200);
    delete(&app, &channel["id"]).await.data();
    connect(&app, bot(agent, TOKEN)).await;
    let kept = app.column::<Vec<u8>>("SELECT bot_hash FROM channels WHERE bot_hash IS NOT NULL").await;
    assert_eq!(kept.len(), 1);
}

#[tokio::test]
async fn what_an_app_says_itself_is_no_message_to_it() {
    let (app, slack) = with_slack().await;
    let channel = connect(&app, workspace(app.agent().await, APP)).await;
    // Even where the app itself is whitelisted.
    for origin in ["U1", "UBOT"] {
        whitelist(&app, &channel, origin).await;
    }
    let mut own = envelope("1", "I said so");
    own["payload"]["event"]["user"] = json!("UBOT");
    own["payload"]["event"]["bot_id"] = json!("BBOT");
    slack.lock().unwrap().envelopes = vec![own, envelope("2", "Hello")];
    app.service.ingest.listen();
    until("both are acknowledged", async || slack.lock().unwrap().envelopes.is_empty()).await;
    let said = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    until("the person's message is stored", async || app.column::<i64>(said).await == [1]).await;
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM channel_refusals").await, [0]);
}

#[tokio::test]
async fn a_program_is_answered_three_times_an_hour() {
    let (app, slack) = with_slack().await;
    let channel = connect(&app, workspace(app.agent().await, APP)).await;
    whitelist(&app, &channel, "U9").await;
    let robot = |id: &str| {
        let mut said = envelope(id, "Beep");
        said["payload"]["event"]["user"] = json!("U9");
        said["payload"]["event"]["bot_id"] = json!("B9");
        said
    };
    slack.lock().unwrap().envelopes = ["1", "2", "3", "4", "5"].map(robot).to_vec();
    app.service.ingest.listen();
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    let answered = "SELECT COUNT(turn_id) FROM messages WHERE via_channel_id IS NOT NULL";
    until("all are stored", async || app.column::<i64>(stored).await == [5]).await;
    assert_eq!(app.column::<i64>(answered).await, [3]);
    app.clock.advance(Duration::from_secs(3_601));
    slack.lock().unwrap().envelopes = vec![robot("6")];
    until("the next one is stored", async || app.column::<i64>(stored).await == [6]).await;
    assert_eq!(app.column::<i64>(answered).await, [4]);
}

#[tokio::test]
async fn an_origin_that_can_not_be_stored_holds_nothing_up() {
    let (app, slack) = with_slack().await;
    let channel = connect(&app, workspace(app.agent().await, APP)).await;
    whitelist(&app, &channel, "U1").await;
    let mut unstored = envelope("1", "Never stored");
    unstored["payload"]["event"]["user"] = json!("U\u{0}1");
    slack.lock().unwrap().envelopes = vec![unstored, envelope("2", "Hello")];
    app.service.ingest.listen();
    let said = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    until("what came after it is stored", async || app.column::<i64>(said).await == [1]).await;
    let refused = "SELECT origin_id FROM channel_refusals";
    until("it is counted", async || app.column::<String>(refused).await == ["U\u{fffd}1"]).await;
}

#[tokio::test]
async fn a_signing_secret_makes_slack_use_the_channels_path() {
    let (app, _slack) = with_slack().await;
    let secret = "8f742231b10e8888abcd99yyyzzz85a5";
    let channel = connect(&app, workspace(app.agent().await, secret)).await;
    let path = channel["inbound_path"].as_str().unwrap();
    assert!(path.starts_with("/webhooks/slack/") && channel["webhook_registered"] == true, "{channel}");
    whitelist(&app, &channel, "U1").await;
    let sent = async |payload: &Value, key: &str| {
        let (body, at) = (payload.to_string(), app.clock.now().0 / 1000);
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
        mac.update(format!("v0:{at}:{body}").as_bytes());
        let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
        let request = app.anonymous.request(Method::POST, path).header("x-slack-signature", signature);
        request.header("x-slack-request-timestamp", at).body(body).send().await.unwrap()
    };
    let challenge = json!({ "type": "url_verification", "challenge": "3eZbrw1a" });
    assert_eq!(sent(&challenge, secret).await.text().await.unwrap(), "3eZbrw1a");
    let said = envelope("1", "Hello")["payload"].clone();
    assert_eq!(sent(&said, "another secret").await.status(), 401);
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    assert_eq!(app.column::<i64>(stored).await, [0]);
    assert_eq!(sent(&said, secret).await.status(), 200);
    assert_eq!(sent(&said, secret).await.status(), 200);
    assert_eq!(app.column::<i64>(stored).await, [1]);
    // Anyone with the secret could claim any sender: nothing is decided here.
    let link = "mutation($o: Id!, $c: Id!) { linkChat(orgId: $o, channelId: $c) { code } }";
    let refused = app.admin.gql(link, json!({ "o": app.org, "c": channel["id"] })).await;
    assert_eq!(refused.code(), "NOT_SUPPORTED");
    // Socket Mode has no path.
    let token = format!("{BOT} {APP}");
    let socket = app.operator.patch(&at(&app, &channel), json!({ "bot_token": token })).await.expect(200);
    assert_eq!((&socket["inbound_path"], &socket["webhook_registered"]), (&Value::Null, &json!(false)));
}
