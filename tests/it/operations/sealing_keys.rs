//! Sealing keys are replaced while people edit secrets, and no sealed value is lost.

#![expect(clippy::disallowed_methods, reason = "everything that a test starts ends with it")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use muster::core::{
    Core,
    keys::{self, Pace, Progress, SEALED},
    sealing::{KeyFile, Locator},
};
use sea_orm::ConnectionTrait;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::{
    channels::{connect, path},
    harness::{Actor, TestApp, is_postgres, until},
};

const FAST: Pace = Pace { batch: 3, rest: Duration::ZERO };

fn rotate_file(app: &Core) -> u32 {
    let mut file = KeyFile::load(&app.config.keys_file).unwrap();
    let id = file.rotate_sealing();
    file.save(&app.config.keys_file).unwrap();
    keys::reload(app);
    id
}

async fn rewrap(app: &TestApp) -> Progress {
    keys::rewrap(&app.core, FAST, |_, _| ()).await.unwrap()
}

#[tokio::test]
async fn every_sealed_column_of_the_database_is_on_the_list() {
    let app = TestApp::start().await;
    let sql = if is_postgres() {
        "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND column_name LIKE '%\\_sealed'"
    } else {
        "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c \
         WHERE m.type = 'table' AND c.name LIKE '%\\_sealed' ESCAPE '\\'"
    };
    let found: BTreeSet<String> = app.column::<String>(sql).await.into_iter().collect();
    let listed: BTreeSet<String> =
        SEALED.iter().map(|column| format!("{}.{}", column.table, column.column)).collect();
    assert_eq!(found, listed, "src/core/keys/columns.rs lists the sealed columns of the database");
    assert!(found.len() >= 12);
}

/// Puts a secret in every place that accepts one. Returns how many.
async fn seal_everything(app: &TestApp) -> i64 {
    keys::load(&app.core).await.unwrap();
    let (o, agent) = (app.org, app.agent().await);
    let gql = async |query: &str, input: serde_json::Value| {
        app.owner.gql(query, json!({ "o": o, "id": agent, "i": input })).await.data()
    };
    let channel = "mutation($o: Id!, $i: CreateChannelInput!) { createChannel(orgId: $o, input: $i) { id } }";
    gql(channel, json!({ "agentId": agent, "name": "bot", "transport": "TELEGRAM", "botToken": "5:s-bot" }))
        .await;
    let hook = gql(
        channel,
        json!({ "agentId": agent, "name": "hook", "transport": "WEBHOOK", "webhook": {
            "outboundUrl": "https://example.com/in", "outboundSecret": "s-before", "inboundSecret": "s-before" } }),
    )
    .await;
    let hook = format!("/v1/org/{o}/channel/{}", hook["createChannel"]["id"]);
    let secrets = json!({ "webhook": { "outbound_secret": "s-out", "inbound_secret": "s-in" } });
    app.owner.patch(&hook, secrets).await.expect(200);
    gql(
        channel,
        json!({ "agentId": agent, "name": "mail", "transport": "EMAIL", "email": {
        "imap": { "host": "imap.example.com", "port": 993, "user": "u", "pass": "s-imap", "tls": true },
        "smtp": { "host": "smtp.example.com", "port": 587, "user": "u", "pass": "s-smtp", "from": "a@example.com" } } }),
    )
    .await;
    gql(
        "mutation($o: Id!, $id: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $id, input: $i) { id } }",
        json!({ "modelCredential": "s-model" }),
    )
    .await;
    gql(
        "mutation($o: Id!, $i: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $i) { id } }",
        json!({ "voiceKey": "s-voice", "transcriptionKey": "s-text", "providerOauthClientId": "c", "providerOauthSecret": "s-oauth" }),
    )
    .await;
    for n in 0..5 {
        credential(&app.owner, o, n).await;
    }
    sealed(app, |_| true).await
}

async fn credential(owner: &Actor, org: i64, n: i64) -> i64 {
    let fields = json!([{ "label": "key", "type": "secret", "value": format!("s-{n}") }]);
    let body = json!({ "name": format!("credential {n}"), "kind": "api-key", "fields": fields });
    let made = owner.post(&format!("/v1/org/{org}/credential"), body).await.expect(201);
    made["id"].as_i64().unwrap()
}

/// How many sealed values open, each in its context with the current keys.
async fn sealed(app: &TestApp, fits: impl Fn(u32) -> bool) -> i64 {
    let mut count = 0;
    for column in SEALED {
        let (key, name) = (column.record.column(), column.column);
        let sql = format!(
            "SELECT {}, CAST({key} AS TEXT) AS record, {name} FROM {} WHERE length({name}) > 0",
            column.organization, column.table
        );
        let statement = sea_orm::Statement::from_string(app.core.db.backend(), sql);
        for row in app.database.query_all_raw(statement).await.unwrap() {
            let (org, record): (i64, String) = (row.try_get_by(0).unwrap(), row.try_get_by(1).unwrap());
            let value: Vec<u8> = row.try_get_by(2).unwrap();
            let locator = record.parse().map_or(Locator::Name(&record), Locator::Id);
            let locator = if column.table == "signing_keys" { Locator::Name(&record) } else { locator };
            let place = column.seal_context(muster::base::ids::OrgId(org), locator);
            let opened = app.core.sealing.open_bytes(&value, &place);
            let opened = opened.unwrap_or_else(|error| panic!("{}.{name} {record}: {error}", column.table));
            if column.table != "signing_keys" {
                // A bot's token begins with its number.
                let is_ours = opened.expose_secret().windows(2).any(|part| part == b"s-");
                assert!(is_ours, "{}.{name}", column.table);
            }
            count += i64::from(fits(u32::from_be_bytes(value[1..5].try_into().unwrap())));
        }
    }
    count
}

#[tokio::test]
async fn everything_moves_to_the_new_key_and_the_old_one_can_go() {
    let app = TestApp::start().await;
    let total = seal_everything(&app).await;
    assert!(total >= 15, "{total} values");
    assert!(keys::retire(&app.core, 1).await.unwrap_err().detail.contains("active"));
    let new = rotate_file(&app.core);
    assert_eq!((new, app.core.sealing.active_id()), (2, 2));
    let refused = keys::retire(&app.core, 1).await.unwrap_err();
    assert!(refused.detail.contains("credential_fields.value_sealed: 5"), "{refused}");
    let done = rewrap(&app).await;
    assert_eq!((done.moved.cast_signed(), done.changed, done.broken), (total, 0, 0));
    assert_eq!(rewrap(&app).await, Progress::default(), "there is nothing left to do");
    keys::retire(&app.core, 1).await.unwrap();
    keys::reload(&app.core);
    assert_eq!(app.core.sealing.current().ids().collect::<Vec<_>>(), [2]);
    assert_eq!(sealed(&app, |id| id == 2).await, total);
    assert!(keys::retire(&app.core, 7).await.is_err());
    // And the service still works.
    keys::load(&app.core).await.unwrap();
    app.owner.get(&format!("/v1/org/{}", app.org)).await.expect(200);
}

fn bot(agent: i64) -> Value {
    json!({ "name": "Bot", "transport": "TELEGRAM", "agent_id": agent, "bot_token": "5:s-bot" })
}

/// Replaces the first sealing key, as docs/keys.md says.
pub async fn replace_key(app: &TestApp) {
    rotate_file(&app.core);
    assert_eq!(rewrap(app).await.broken, 0);
    keys::retire(&app.core, 1).await.unwrap();
    keys::reload(&app.core);
    assert_eq!(app.core.sealing.current().ids().collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn a_bot_with_two_channels_is_known_under_the_new_key() {
    for channels in [1, 2] {
        let app = TestApp::start().await;
        let agent = app.agent().await;
        for _ in 0..channels {
            app.execute("UPDATE channels SET bot_hash = NULL", vec![]).await;
            connect(&app, bot(agent)).await;
        }
        replace_key(&app).await;
        // The bot is refused in each organization.
        let again = app.operator.post(&path(&app), bot(agent)).await;
        assert_eq!(again.violations(), [("/bot_token", "NOT_ALLOWED")]);
        let theirs = format!("/v1/org/{}/channel", app.other_org);
        let again = app.stranger.post(&theirs, bot(app.other_agent().await)).await;
        assert_eq!(again.violations(), [("/bot_token", "NOT_ALLOWED")]);
    }
}

#[tokio::test]
async fn values_that_do_not_open_are_counted_and_not_changed() {
    let app = TestApp::start().await;
    let total = seal_everything(&app).await;
    // A foreign value doesn't open here, and must not stop the others.
    app.execute(
        "UPDATE credential_fields SET value_sealed = (SELECT bot_token_sealed FROM channels WHERE name = 'bot') \
         WHERE id = (SELECT MIN(id) FROM credential_fields)",
        vec![],
    )
    .await;
    rotate_file(&app.core);
    let done = rewrap(&app).await;
    assert_eq!((done.moved.cast_signed(), done.broken), (total - 1, 1));
    assert!(keys::retire(&app.core, 1).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_under_concurrent_edits() {
    let app = Arc::new(TestApp::start().await);
    seal_everything(&app).await;
    let mut ids = Vec::new();
    for n in 10..18 {
        ids.push(credential(&app.owner, app.org, n).await);
    }
    let (stop, edits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let editors: Vec<_> = ids
        .iter()
        .map(|&id| {
            let (app, stop, edits) = (Arc::clone(&app), Arc::clone(&stop), Arc::clone(&edits));
            tokio::spawn(async move {
                let (mut n, path) = (0, format!("/v1/org/{}/credential/{id}", app.org));
                // The last acknowledged value must be the stored one.
                while !stop.load(Ordering::Relaxed) || n == 0 {
                    n += 1;
                    let fields =
                        json!([{ "label": "key", "type": "secret", "value": format!("s-{id}-{n}") }]);
                    app.owner.patch(&path, json!({ "fields": fields })).await.expect(200);
                    edits.fetch_add(1, Ordering::Relaxed);
                }
                (id, n)
            })
        })
        .collect();
    for _ in 0..3 {
        rotate_file(&app.core);
        rewrap(&app).await;
        let so_far = edits.load(Ordering::Relaxed);
        until("more edits", async || edits.load(Ordering::Relaxed) > so_far + 8).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut last = Vec::new();
    for editor in editors {
        last.push(editor.await.unwrap());
    }
    assert!(last.iter().map(|(_, n)| n).sum::<i32>() > 16, "there were edits meanwhile: {last:?}");
    rewrap(&app).await;
    for old in 1..=3 {
        keys::retire(&app.core, old).await.unwrap();
    }
    keys::reload(&app.core);
    assert_eq!(app.core.sealing.current().ids().collect::<Vec<_>>(), [4]);
    assert!(sealed(&app, |id| id == 4).await > 20);
    let column = SEALED.iter().find(|column| column.table == "credential_fields").unwrap();
    for (id, n) in last {
        let sql = "SELECT value_sealed FROM credential_fields WHERE credential_id = $1";
        let value: Vec<u8> = app.one(sql, vec![id.into()]).await;
        let field: i64 =
            app.one("SELECT id FROM credential_fields WHERE credential_id = $1", vec![id.into()]).await;
        let place = column.seal_context(muster::base::ids::OrgId(app.org), Locator::Id(field));
        let secret = app.core.sealing.open(&value, &place).unwrap();
        assert_eq!(secret.expose_secret(), format!("s-{id}-{n}"));
    }
}

#[tokio::test]
async fn a_running_service_seals_with_a_new_key_without_a_restart() {
    let app = TestApp::start().await;
    keys::load(&app.core).await.unwrap();
    let watched = Arc::clone(&app.core);
    let watching = tokio::spawn(async move { keys::watch(watched).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let path = &app.core.config.keys_file;
    let mut file = KeyFile::load(path).unwrap();
    assert_eq!(file.prepare_sealing(), 2);
    file.save(path).unwrap();
    until("it is known", async || app.core.sealing.current().ids().count() == 2).await;
    assert_eq!(app.core.sealing.active_id(), 1, "a prepared key seals nothing");
    file.rotate_sealing();
    file.save(path).unwrap();
    until("it is in use", async || app.core.sealing.active_id() == 2).await;
    // An unreadable file changes nothing.
    std::fs::write(path, "[sealing]\nactive = 3\n").unwrap();
    keys::reload(&app.core);
    assert_eq!(app.core.sealing.active_id(), 2);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(app.core.sealing.active_id(), 2);
    watching.abort();
}
