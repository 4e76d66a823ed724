//! Code hosts through the whole service. GitHub is the fake that octokit takes for GitHub.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use muster::{
    base::{enums::MessageRole, ids::OrgId},
    core::{config::Config, sealing::SealContext},
    domain::deliveries,
};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::oneshot;

use crate::{
    channels::{
        at, code_host, connect, path,
        probes::{app_with, whitelist},
        sets,
    },
    conversations::messages::say,
    harness::{
        Actor, TestApp,
        fakes::github::{CLIENT, KEY, PERSON, SECRET, Shared, commented, commented_on, github, refusal},
        until,
    },
};

const STORED: &str = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";

fn with_app(config: &mut Config) {
    config.channels.github_client_id = Some(CLIENT.to_owned());
    config.channels.github_client_secret = Some("the client secret".into());
    config.channels.github_app_key = Some(KEY.into());
    config.channels.github_webhook_secret = Some(SECRET.into());
}

fn body(agent: i64) -> Value {
    json!({
        "name": "Code", "transport": "CODE_HOST", "agent_id": agent,
        "code_host": { "installation_id": 7, "repos": ["acme/shop"] },
    })
}

/// Ada authorizes the channel.
async fn authorize(app: &TestApp, channel: &Value) {
    let id = channel["id"].as_i64().unwrap();
    let place = SealContext::new(OrgId(app.org), "channels", id, "oauth_access_token");
    let sealed = app.core.sealing.seal(&PERSON.into(), &place);
    let sql = "UPDATE channels SET oauth_access_token_sealed = $2, code_host_oauth_authorized = TRUE, \
               code_host_oauth_user_login = 'ada' WHERE id = $1";
    app.execute(sql, vec![id.into(), sealed.into()]).await;
}

/// An active channel of the installation, to which Ada may write.
async fn active() -> (TestApp, Shared, Value) {
    let (address, fake) = github().await;
    let app = app_with(address, with_app).await;
    let channel = connect(&app, body(app.agent().await)).await;
    authorize(&app, &channel).await;
    let channel = sets(&app, &channel, json!({ "is_active": true })).await;
    whitelist(&app, &channel, "5").await;
    (app, fake, channel)
}

/// GitHub's request.
pub async fn sends(vendor: &Actor, event: &str, payload: &Value, secret: &str) -> u16 {
    let body = payload.to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
    let request = vendor.request(Method::POST, "/webhooks/github").header("x-hub-signature-256", signature);
    let request = request.header("x-github-event", event).header("content-type", "application/json");
    request.body(body).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_channel_is_active_once_a_person_reaches_its_installation() {
    let (address, fake) = github().await;
    let app = app_with(address, with_app).await;
    let channel = connect(&app, body(app.agent().await)).await;
    assert_eq!((&channel["is_active"], &channel["inactive_reason"]), (&json!(false), &json!("AUTH_FAILED")));
    assert!(fake.lock().unwrap().asked.is_empty(), "GitHub is not asked");
    let switch_on = async || app.operator.patch(&at(&app, &channel), json!({ "is_active": true })).await;
    assert_eq!(switch_on().await.violations(), [("/is_active", "NOT_ALLOWED")]);
    authorize(&app, &channel).await;
    let installation = [("/code_host/installation_id", "NOT_ALLOWED")];
    // Another organization's.
    fake.lock().unwrap().reached = vec![8];
    assert_eq!(switch_on().await.violations(), installation);
    fake.lock().unwrap().reached = vec![7];
    // Without GitHub's confirmation, too.
    fake.lock().unwrap().answers.push_back((502, json!({}), None));
    assert_eq!(switch_on().await.violations(), installation);
    assert_eq!(sends(&app.anonymous, "issue_comment", &commented(80, "@muster look"), SECRET).await, 200);
    assert_eq!(app.column::<i64>(STORED).await, [0]);
    switch_on().await.expect(200);
    let offered = "query($o: Id!, $c: Id!) { channelRepositories(orgId: $o, id: $c) }";
    let offered = app.operator.gql(offered, json!({ "o": app.org, "c": channel["id"] })).await.data();
    assert_eq!(offered["channelRepositories"], json!(["acme/shop"]));
    let moved = json!({ "code_host": { "installation_id": 8 } });
    assert_eq!(app.operator.patch(&at(&app, &channel), moved).await.violations(), installation);
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { botUsername inviteUrl warnings codeHost { host } } }";
    let shown =
        app.viewer.gql(query, json!({ "o": app.org, "c": channel["id"] })).await.data()["channel"].clone();
    let invite = "https://github.com/apps/muster/installations/new";
    assert_eq!(
        shown,
        json!({ "botUsername": "muster", "inviteUrl": invite, "warnings": [], "codeHost": { "host": null } })
    );
    let disconnect =
        "mutation($o: Id!, $c: Id!) { disconnectChannel(orgId: $o, id: $c) { isActive inactiveReason } }";
    let ended = app.operator.gql(disconnect, json!({ "o": app.org, "c": channel["id"] })).await.data();
    assert_eq!(ended["disconnectChannel"], json!({ "isActive": false, "inactiveReason": "AUTH_FAILED" }));
}

#[tokio::test]
async fn githubs_answer_counts_only_for_its_own_installation() {
    let (address, fake) = github().await;
    let app = app_with(address, with_app).await;
    let channel = connect(&app, body(app.agent().await)).await;
    authorize(&app, &channel).await;
    let (answer, held) = oneshot::channel();
    fake.lock().unwrap().held = Some(("GET user/installations", held));
    let switch_on = async { app.operator.patch(&at(&app, &channel), json!({ "is_active": true })).await };
    let move_away = async {
        until("GitHub is asked", async || fake.lock().unwrap().held.is_none()).await;
        sets(&app, &channel, json!({ "code_host": { "installation_id": 8 } })).await;
        answer.send(()).unwrap();
    };
    let (switched, ()) = tokio::join!(switch_on, move_away);
    assert_eq!(switched.violations(), [("/code_host/installation_id", "NOT_ALLOWED")]);
}

#[tokio::test]
async fn restoring_the_agent_activates_only_what_is_confirmed() {
    let (app, _, channel) = active().await;
    let of_agent = async |what: &str| {
        let mutation = format!("mutation($o: Id!, $a: Id!) {{ {what} }}");
        app.admin.gql(&mutation, json!({ "o": app.org, "a": channel["agent_id"] })).await.data();
    };
    let state = async || {
        let listed = app.viewer.get(&path(&app)).await.expect(200);
        json!([listed[0]["is_active"], listed[0]["inactive_reason"]])
    };
    of_agent("deleteAgent(orgId: $o, id: $a)").await;
    of_agent("restoreAgent(orgId: $o, id: $a) { id }").await;
    assert_eq!(state().await, json!([true, null]));
    of_agent("deleteAgent(orgId: $o, id: $a)").await;
    sets(&app, &channel, json!({ "code_host": { "installation_id": 8 } })).await;
    of_agent("restoreAgent(orgId: $o, id: $a) { id }").await;
    assert_eq!(state().await, json!([false, "AUTH_FAILED"]));
    sets(&app, &channel, json!({ "is_active": true, "code_host": { "installation_id": 7 } })).await;
    of_agent("deleteAgent(orgId: $o, id: $a)").await;
    let disconnect = "mutation($o: Id!, $c: Id!) { disconnectChannel(orgId: $o, id: $c) { isActive } }";
    app.operator.gql(disconnect, json!({ "o": app.org, "c": channel["id"] })).await.data();
    of_agent("restoreAgent(orgId: $o, id: $a) { id }").await;
    assert_eq!(state().await, json!([false, "AUTH_FAILED"]));
}

#[tokio::test]
async fn comments_come_in_once_and_answers_go_out() {
    let (app, fake, channel) = active().await;
    let github = async |event: &str, payload: &Value| sends(&app.anonymous, event, payload, SECRET).await;
    assert_eq!(sends(&app.anonymous, "issue_comment", &commented(80, "@muster look"), "another").await, 401);
    for _ in 0..2 {
        assert_eq!(github("issue_comment", &commented(80, "@muster look")).await, 200);
    }
    assert_eq!(app.column::<i64>(STORED).await, [1]);
    // Once it takes part, the rest of the issue concerns it. Another issue does not.
    github("issue_comment", &commented(81, "and there")).await;
    github("issue_comment", &commented_on(13, 82, "elsewhere")).await;
    assert_eq!(app.column::<i64>(STORED).await, [2]);
    let mut own = commented(83, "@muster done");
    own["sender"] = json!({ "id": 71, "login": "muster[bot]", "type": "Bot" });
    github("issue_comment", &own).await;
    let mut stranger = commented(84, "@muster pay");
    stranger["sender"] = json!({ "id": 6, "login": "eve", "type": "User" });
    github("issue_comment", &stranger).await;
    assert_eq!(app.column::<i64>(STORED).await, [2]);
    let conversation: i64 =
        app.one("SELECT id FROM conversations WHERE target = $1", vec!["acme/shop#12".into()]).await;
    say(&app, conversation, MessageRole::Assistant, "On it").await;
    until("it is sent", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<String>("SELECT status FROM deliveries").await == ["SENT"]
    })
    .await;
    let body = fake.lock().unwrap().comments[0]["body"].as_str().unwrap().to_owned();
    assert!(body.starts_with("On it\n\n<!-- muster:"), "{body}");
    // What GitHub could not deliver comes by itself, what it could deliver does not come again.
    {
        let mut fake = fake.lock().unwrap();
        fake.happens("issue_comment", &commented(81, "and there"), 503);
        fake.happens("issue_comment", &commented(85, "missed"), 0);
    }
    app.service.ingest.listen();
    until("it is fetched", async || app.column::<i64>(STORED).await == [3]).await;
    assert_eq!(
        sets(&app, &channel, json!({ "code_host": { "listen_scope": "mentions" } })).await["is_active"],
        true
    );
    github("issue_comment", &commented(86, "aside")).await;
    assert_eq!(app.column::<i64>(STORED).await, [3]);
}

#[tokio::test]
async fn a_limit_waits_and_an_end_switches_off() {
    let (app, fake, channel) = active().await;
    sends(&app.anonymous, "issue_comment", &commented(80, "@muster look"), SECRET).await;
    let conversation: i64 =
        app.one("SELECT id FROM conversations WHERE target = $1", vec!["acme/shop#12".into()]).await;
    let (status, limited) = refusal(403, "You have exceeded a secondary rate limit.");
    fake.lock().unwrap().answers.push_back((status, limited, Some(("retry-after", "90".to_owned()))));
    say(&app, conversation, MessageRole::Assistant, "On it").await;
    let waiting =
        "SELECT available_at FROM deliveries WHERE status = 'PENDING' AND attempts = 0 AND error IS NOT NULL";
    until("it waits", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<i64>(waiting).await == [app.clock.now().0 + 90_000]
    })
    .await;
    fake.lock().unwrap().is_suspended = true;
    app.clock.advance(Duration::from_secs(91));
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { inactiveReason } }";
    until("the channel is off", async || {
        deliveries::send_due(&app.core).await.unwrap();
        let shown = app.viewer.gql(query, json!({ "o": app.org, "c": channel["id"] })).await.data();
        shown["channel"]["inactiveReason"] == "AUTH_FAILED"
    })
    .await;
}

#[tokio::test]
async fn hosts_are_the_operators() {
    let (address, _) = github().await;
    let app = app_with(address, |config| {
        let url = "http://127.0.0.1:9/".parse().unwrap();
        let software = muster_channels::Software::Gitlab;
        let host = muster::core::config::CodeHost { name: "gitlab.example".to_owned(), software, url };
        config.channels.code_hosts = vec![host];
    })
    .await;
    let agent = app.agent().await;
    let refused = async |more: Value| {
        let mut body = json!({ "name": "Code", "transport": "CODE_HOST", "agent_id": agent });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = app.operator.post(&path(&app), body).await;
        let all = answer.violations();
        all.into_iter().map(|(field, code)| format!("{field} {code}")).collect::<Vec<_>>()
    };
    let other = json!({ "bot_token": "t", "code_host": { "host": "evil.example", "repos": ["a/b"] } });
    assert_eq!(refused(other).await, ["/code_host/host NOT_ALLOWED"]);
    let bare = json!({ "code_host": { "host": "gitlab.example" } });
    assert_eq!(refused(bare).await, ["/bot_token REQUIRED", "/code_host/repos REQUIRED"]);
    let token = json!({ "bot_token": "t", "code_host": { "installation_id": 7 } });
    assert_eq!(refused(token).await, ["/bot_token NOT_ALLOWED"]);
    let channel = connect(&app, code_host(agent)).await;
    let moved = json!({ "bot_token": "t", "code_host": { "host": "gitlab.example" } });
    let answer = app.operator.patch(&at(&app, &channel), moved).await;
    assert_eq!(answer.violations(), [("/code_host/host", "NOT_ALLOWED")]);
    let host = json!({
        "name": "Code", "transport": "CODE_HOST", "agent_id": agent, "bot_token": "t",
        "code_host": { "host": "gitlab.example", "repos": ["acme/web/shop"] },
    });
    // It can't be reached now.
    assert_eq!(connect(&app, host).await["is_active"], true);
    // Without an App GitHub has nowhere to send, and no channel becomes active.
    assert_eq!(sends(&app.anonymous, "ping", &json!({}), SECRET).await, 404);
    authorize(&app, &channel).await;
    let answer = app.operator.patch(&at(&app, &channel), json!({ "is_active": true })).await;
    assert_eq!(answer.problem(), (409, "NOT_SUPPORTED"));
}
