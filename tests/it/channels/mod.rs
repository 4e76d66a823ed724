//! Channels: connecting them, permissions, and the answers. For what happens later see `channels/edited.rs`.

pub mod accounts;
mod acting;
mod albums_and_edits;
mod batched_ingest;
mod calendar;
mod chat_decisions;
mod code_host;
mod contacts;
pub mod deliveries;
mod discord;
mod drive;
mod edited;
mod email_walkthrough;
mod faults;
mod files;
mod inactive;
pub mod inbound_webhooks;
mod labels_and_mentions;
pub mod linked;
mod listeners;
pub mod mail;
mod notices;
pub mod probes;
pub mod send_limits;
pub mod telegram_webhook;
mod test_messages;
mod typing_indicator;

use std::sync::atomic::{AtomicU32, Ordering};

use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp, is_postgres};

pub fn path(app: &TestApp) -> String {
    format!("/v1/org/{}/channel", app.org)
}

pub fn at(app: &TestApp, channel: &Value) -> String {
    format!("{}/{}", path(app), channel["id"])
}

/// A bot of its own: no two channels have the same.
pub fn bot(agent: i64) -> Value {
    static BOTS: AtomicU32 = AtomicU32::new(1);
    let token = format!("{}:seventy-seven", BOTS.fetch_add(1, Ordering::Relaxed));
    json!({"name": "Support", "transport": "TELEGRAM", "agent_id": agent, "bot_token": token})
}

pub fn webhook(agent: i64) -> Value {
    json!({
        "name": "Orders", "transport": "WEBHOOK", "agent_id": agent,
        "webhook": {"outbound_url": "https://hooks.example/out"},
    })
}

pub fn mailbox(agent: i64) -> Value {
    json!({
        "name": "Mail", "transport": "EMAIL", "agent_id": agent,
        "email": {
            "imap": {"host": "imap.example", "port": 993, "user": "desk", "pass": "pass-one", "tls": true},
            "smtp": {"host": "smtp.example", "port": 465, "user": "desk", "pass": "pass-two", "from": "desk@example.com"},
        },
    })
}

pub fn code_host(agent: i64) -> Value {
    json!({
        "name": "Code", "transport": "CODE_HOST", "agent_id": agent,
        "code_host": {"installation_id": 7_000_000_001_i64, "repos": ["meridian/api"], "events": ["issues"]},
    })
}

pub async fn connect(app: &TestApp, body: Value) -> Value {
    app.operator.post(&path(app), body).await.expect(201)
}

pub async fn delete(app: &TestApp, channel: &Value) -> Answer {
    let query = "mutation($o: Id!, $c: Id!) { deleteChannel(orgId: $o, id: $c) }";
    app.operator.gql(query, json!({ "o": app.org, "c": channel })).await
}

pub async fn sets(app: &TestApp, channel: &Value, body: Value) -> Value {
    app.operator.patch(&at(app, channel), body).await.expect(200)
}

#[tokio::test]
async fn a_connected_bots_record_is_the_specified_one() {
    let (app, agent) = TestApp::with_agent().await;
    let body = json!({
        "name": "  Support ", "transport": "TELEGRAM", "agent_id": agent, "bot_token": "77:seventy-seven",
        "destination": "@support", "instructions": "Be brief.",
    });
    let channel = connect(&app, body).await;
    let mut known = channel.clone();
    for key in ["id", "agent_id", "created_at"] {
        assert!(!known[key].is_null());
        known.as_object_mut().unwrap().remove(key);
    }
    let expected = json!({
        "transport": "TELEGRAM", "scope": "EXTERNAL", "direction": "BIDIRECTIONAL", "name": "Support",
        "target": "@support", "bot_username": null, "has_token": true, "whitelist": [], "label_whitelist": [],
        "mention_off": [], "webhook_registered": false, "inbound_path": null, "invite_url": null, "webhook": null,
        "code_host": null, "provider_account": null, "drive": null, "calendar": null, "instructions": "Be brief.",
        "notify_conversation_id": null, "notify_conversation": null, "is_active": true, "inactive_reason": null,
        "last_activity_at": null, "alert_recipient_user_ids": [],
    });
    assert_eq!(known, expected);
}

#[tokio::test]
async fn each_transport_shows_its_own_object_and_no_other() {
    let (app, agent) = TestApp::with_agent().await;
    let hook = connect(&app, webhook(agent)).await;
    let echo = json!({"actor_paths": [], "self_ids": []});
    assert_eq!(
        hook["webhook"],
        json!({
            "outbound_url": "https://hooks.example/out", "has_outbound_secret": false, "has_inbound_secret": false,
            "signature_header": null, "echo_filter": echo,
        })
    );
    let slug = hook["inbound_path"].as_str().unwrap().strip_prefix("/webhooks/webhook/").unwrap();
    // Base64 carries six bits per character.
    assert!(slug.len() * 6 >= 128, "{slug}");
    let host = connect(&app, code_host(agent)).await;
    assert_eq!(
        host["code_host"],
        json!({
            "installation_id": 7_000_000_001_i64, "repos": ["meridian/api"], "events": ["issues"],
            "listen_scope": "involved", "raw_payload": false, "oauth": null,
        })
    );
    let drive =
        json!({"name": "Files", "transport": "DRIVE", "agent_id": agent, "drive": {"folder_id": "f1"}});
    let drive = connect(&app, drive).await;
    assert_eq!(drive["drive"], json!({"folder_id": "f1", "folder_name": null}));
    assert_eq!(drive["provider_account"], json!({"connected": false, "provider_email": null}));
    let calendar = json!({
        "name": "Dates", "transport": "CALENDAR", "agent_id": agent, "calendar": {"reminder_lead_minutes": 15},
    });
    let calendar = connect(&app, calendar).await;
    assert_eq!(calendar["calendar"], json!({"calendar_whitelist": [], "reminder_lead_minutes": 15}));
    assert_eq!(calendar["provider_account"]["connected"], false);
    for (channel, own) in
        [(&hook, "webhook"), (&host, "code_host"), (&drive, "drive"), (&calendar, "calendar")]
    {
        for key in ["webhook", "code_host", "drive", "calendar"] {
            assert_eq!(channel[key].is_null(), key != own, "{key} of {own}");
        }
    }
    let listed = app.viewer.get(&path(&app)).await.expect(200);
    assert_eq!(listed, json!([hook, host, drive, calendar]));
}

#[tokio::test]
async fn a_code_hosts_authorization_shows_once_granted() {
    let app = TestApp::start().await;
    let channel = connect(&app, code_host(app.agent().await)).await;
    let sql = "UPDATE channels SET code_host_oauth_user_login = 'desk', code_host_oauth_expires_at = 0 WHERE id = $1";
    app.execute(sql, vec![channel["id"].as_i64().into()]).await;
    let listed = app.viewer.get(&path(&app)).await.expect(200);
    let oauth = json!({"authorized": false, "user_login": "desk", "expires_at": "1970-01-01T00:00:00.000Z"});
    assert_eq!(listed[0]["code_host"]["oauth"], oauth);
}

#[tokio::test]
async fn each_transports_settings_are_required() {
    let (app, agent) = TestApp::with_agent().await;
    let refused = async |more: Value| {
        let mut body = json!({"name": "x", "agent_id": agent});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = app.operator.post(&path(&app), body).await;
        answer.violations().iter().map(|(at, code)| format!("{at} {code}")).collect::<Vec<_>>()
    };
    for transport in ["TELEGRAM", "DISCORD", "SLACK"] {
        assert_eq!(refused(json!({"transport": transport})).await, ["/bot_token REQUIRED"]);
    }
    assert_eq!(refused(json!({"transport": "WEBHOOK"})).await, ["/webhook/outbound_url REQUIRED"]);
    assert_eq!(refused(json!({"transport": "CODE_HOST"})).await, ["/code_host/installation_id REQUIRED"]);
    assert_eq!(refused(json!({"transport": "DRIVE"})).await, ["/drive/folder_id REQUIRED"]);
    assert_eq!(
        refused(json!({"transport": "EMAIL"})).await,
        [
            "/email/imap/host REQUIRED",
            "/email/imap/user REQUIRED",
            "/email/imap/pass REQUIRED",
            "/email/smtp/host REQUIRED",
            "/email/smtp/from REQUIRED",
        ]
    );
    assert_eq!(refused(json!({"transport": "INTERNAL"})).await, ["/transport NOT_ALLOWED"]);
    assert_eq!(refused(json!({"transport": "PIGEON"})).await, ["/transport NOT_ALLOWED"]);
    let missing = app.operator.post(&path(&app), json!({})).await;
    assert_eq!(
        missing.violations(),
        [("/name", "REQUIRED"), ("/transport", "REQUIRED"), ("/agent_id", "REQUIRED")]
    );
    // An inbound channel needs no outbound address, and vice versa.
    connect(&app, json!({"name": "x", "transport": "WEBHOOK", "direction": "INBOUND", "agent_id": agent}))
        .await;
    let mut mail = mailbox(agent);
    mail["direction"] = json!("INBOUND");
    mail["email"].as_object_mut().unwrap().remove("smtp");
    connect(&app, mail).await;
}

#[tokio::test]
async fn keys_of_another_transport_are_refused_by_name() {
    let (app, agent) = TestApp::with_agent().await;
    let mut body = webhook(agent);
    body["bot_token"] = json!("t");
    body["email"] = json!({});
    body["drive"] = json!({"folder_id": "f"});
    // Null counts as left out, even for another transport's object.
    body["calendar"] = Value::Null;
    let answer = app.operator.post(&path(&app), body).await;
    assert_eq!(
        answer.violations(),
        [("/email", "NOT_ALLOWED"), ("/drive", "NOT_ALLOWED"), ("/bot_token", "NOT_ALLOWED")]
    );
    assert!(
        answer.text.contains("`drive` is only for DRIVE channels, and this one is WEBHOOK."),
        "{}",
        answer.text
    );
    let mut body = bot(agent);
    body["bot_tokem"] = json!("t");
    assert_eq!(app.operator.post(&path(&app), body).await.violations(), [("/bot_tokem", "UNKNOWN_KEY")]);
    let channel = connect(&app, bot(agent)).await;
    let answer = app.operator.patch(&at(&app, &channel), json!({"code_host": {"raw_payload": true}})).await;
    assert_eq!(answer.violations(), [("/code_host", "NOT_ALLOWED")]);
    let answer = app.operator.patch(&at(&app, &channel), json!({"transport": "SLACK"})).await;
    assert_eq!(answer.violations(), [("/transport", "UNKNOWN_KEY")]);
}

#[tokio::test]
async fn unknown_recipients_are_named_and_repeated_ones_merged() {
    let app = TestApp::start().await;
    let channel = connect(&app, bot(app.agent().await)).await;
    let (owner, stranger) = (app.owner.user.unwrap(), app.stranger.user.unwrap());
    let body = json!({"alert_recipient_user_ids": [owner, stranger]});
    let answer = app.operator.patch(&at(&app, &channel), body).await;
    assert_eq!(answer.violations(), [("/alert_recipient_user_ids/1", "NOT_FOUND")]);
    let body = json!({"alert_recipient_user_ids": [owner, owner]});
    assert_eq!(sets(&app, &channel, body).await["alert_recipient_user_ids"], json!([owner]));
}

#[tokio::test]
async fn leaving_ends_alerts_and_locks_only_the_members_channels() {
    let (app, agent) = TestApp::with_agent().await;
    let (leaving, staying) = (app.person("VIEWER", true).await, app.owner.user.unwrap());
    let (named, other) = (connect(&app, bot(agent)).await, connect(&app, bot(agent)).await);
    sets(&app, &named, json!({"alert_recipient_user_ids": [leaving.user.unwrap(), staying]})).await;
    sets(&app, &other, json!({"alert_recipient_user_ids": [staying]})).await;
    // Someone is working on the other channel. SQLite has a single writer, so no one else can.
    let busy = app.database.begin().await.unwrap();
    if is_postgres() {
        let lock = format!("SELECT 1 FROM channels WHERE id = {} FOR UPDATE", other["id"]);
        busy.execute_unprepared(&lock).await.unwrap();
    }
    let leave = "mutation($o: Id!) { leaveOrganization(orgId: $o) }";
    // Waiting for the lock would end with 503.
    leaving.gql(leave, json!({ "o": app.org })).await.data();
    busy.rollback().await.unwrap();
    let recipients = "SELECT CAST(alert_recipient_user_ids AS TEXT) FROM channels WHERE id = $1";
    for channel in [&named, &other] {
        let told: String = app.one(recipients, vec![channel["id"].as_i64().unwrap().into()]).await;
        assert_eq!(told, format!("[{staying}]"));
    }
}

#[tokio::test]
async fn the_plan_limits_an_agents_external_channels() {
    let (app, agent, another) = TestApp::with_two_agents().await;
    let sql = "UPDATE organizations SET max_channels_per_agent = $2 WHERE id = $1";
    app.execute(sql, vec![app.org.into(), 2_i64.into()]).await;
    let first = connect(&app, bot(agent)).await;
    connect(&app, bot(agent)).await;
    let answer = app.operator.post(&path(&app), bot(agent)).await;
    assert_eq!(answer.problem(), (403, "PLAN_LIMIT_REACHED"));
    assert_eq!(answer.body["details"], json!({"limit": "channels_per_agent", "max": 2, "used": 2}));
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM channels", vec![]).await, 2);
    connect(&app, bot(another)).await;
    let mut internal = bot(agent);
    internal["scope"] = json!("INTERNAL");
    let internal = connect(&app, internal).await;
    let answer = app.operator.patch(&at(&app, &internal), json!({"scope": "EXTERNAL"})).await;
    assert_eq!(answer.problem(), (403, "PLAN_LIMIT_REACHED"));
    // The plan shrinks: inactive channels stay inactive until there is room.
    app.execute(sql, vec![app.org.into(), 1_i64.into()]).await;
    sets(&app, &first, json!({"is_active": false})).await;
    let answer = app.operator.patch(&at(&app, &first), json!({"is_active": true})).await;
    assert_eq!(answer.problem(), (403, "PLAN_LIMIT_REACHED"));
}

#[tokio::test]
async fn the_list_can_be_limited_to_one_agent() {
    let (app, agent, another) = TestApp::with_two_agents().await;
    connect(&app, bot(agent)).await;
    let wanted = connect(&app, bot(another)).await;
    let listed = app.viewer.get(&format!("{}?agent_id={another}", path(&app))).await.expect(200);
    assert_eq!(listed, json!([wanted]));
    for wrong in ["0", "-1"] {
        let answer = app.viewer.get(&format!("{}?agent_id={wrong}", path(&app))).await;
        assert_eq!(answer.violations(), [("agent_id", "TOO_SMALL")]);
    }
    let answer = app.viewer.get(&format!("{}?agent_id=x", path(&app))).await;
    assert_eq!(answer.violations(), [("agent_id", "WRONG_TYPE")]);
    let answer = app.viewer.get(&format!("{}?agentid=1", path(&app))).await;
    assert_eq!(answer.violations(), [("agentid", "UNKNOWN_KEY")]);
    let unknown = app.viewer.get(&format!("{}?agent_id=999999", path(&app))).await.expect(200);
    assert_eq!(unknown, json!([]));
}

#[tokio::test]
async fn agents_and_channels_refer_to_each_other() {
    let (app, agent) = TestApp::with_agent().await;
    let channel = connect(&app, bot(agent)).await;
    let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { channels { id agent { id } } } }";
    let data = app.viewer.gql(query, json!({"o": app.org, "a": agent})).await.data();
    assert_eq!(data["agent"]["channels"], json!([{"id": channel["id"], "agent": {"id": agent}}]));
}

#[tokio::test]
async fn a_service_token_needs_no_confirmed_address() {
    let (app, agent) = TestApp::with_agent().await;
    let editor = app.token(&["agent.edit"]).await;
    let channel = editor.post(&path(&app), bot(agent)).await.expect(201);
    editor.patch(&at(&app, &channel), json!({"name": "x"})).await.expect(200);
    // Whitelists need none of anyone.
    let list = format!("{}/whitelist", at(&app, &channel));
    let unconfirmed = app.person("OPERATOR", false).await;
    unconfirmed.post(&list, json!({"origin_id": "x"})).await.expect(200);
    unconfirmed.delete(&format!("{list}/x")).await.expect(200);
}
