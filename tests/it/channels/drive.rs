//! Drives through the whole service. Google is the fake that Google's own client takes for it; the WebDAV server is
//! WsgiDAV.

use std::{fs, process::Stdio};

use muster::{
    base::{
        enums::MessageRole,
        ids::{AgentId, ConversationId},
    },
    domain::{conversations, deliveries},
};
use muster_testing::peers::peer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    channels::{
        at, connect, path,
        probes::{app_with, whitelist},
        test_messages::{error, test},
    },
    conversations::messages::say,
    harness::{
        TestApp,
        fakes::drive::{Shared, drive, refusal, service_account},
        until,
    },
};

const STORED: &str = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
const FOLDERS: &str =
    "query($o: Id!, $c: Id!, $p: String) { channelFolders(orgId: $o, id: $c, parent: $p) { id name } }";

async fn start() -> (TestApp, Shared) {
    let (address, fake) = drive().await;
    let base: url::Url = format!("http://{address}/").parse().unwrap();
    let app = app_with(address, |config| {
        config.channels.google_api_url = base.clone();
        config.channels.google_tokens_url = base;
        config.channels.drive_seconds = 1;
    })
    .await;
    (app, fake)
}

/// A folder whose files were read once.
async fn connected() -> (TestApp, Shared, Value) {
    let (app, fake) = start().await;
    let channel = connect_folder(&app, app.agent().await).await;
    (app, fake, channel)
}

async fn connect_folder(app: &TestApp, agent: i64) -> Value {
    let folder = json!({ "folder_id": "folder1", "folder_name": "Reports", "pass": service_account().await });
    let body = json!({ "name": "Files", "transport": "DRIVE", "agent_id": agent, "drive": folder });
    let channel = connect(app, body).await;
    whitelist(app, &channel, "folder").await;
    app.service.ingest.listen();
    let looked = "SELECT COUNT(*) FROM channel_listeners WHERE cursor IS NOT NULL";
    until("the first look is over", async || app.column::<i64>(looked).await == [1]).await;
    channel
}

#[tokio::test]
async fn files_and_comments_come_in_and_answers_go_out() {
    let (app, fake, _) = connected().await;
    fake.lock().unwrap().puts("F1", "plan.txt", "folder1", "abc");
    until("the file is stored", async || app.column::<i64>(STORED).await == [1]).await;
    assert_eq!(app.column::<Vec<u8>>("SELECT content FROM attachment_blobs").await, [b"abc"]);
    fake.lock().unwrap().says("F1", "Bob, look");
    let comment = fake.lock().unwrap().says("F1", "@agent@example.test check it");
    until("the comment is stored", async || app.column::<i64>(STORED).await == [2]).await;
    let refused = "SELECT origin_id || ' ' || reason FROM channel_refusals";
    until("the other is counted", async || app.column::<String>(refused).await == ["name:Ada NOT_ADDRESSED"])
        .await;
    let thread = "SELECT id FROM conversations WHERE target = $1";
    let target = format!("F1/{comment}");
    let conversation: i64 = app.one(thread, vec![target.clone().into()]).await;
    say(&app, conversation, MessageRole::Assistant, "It is right").await;
    let file: i64 = app.one(thread, vec!["F1".into()]).await;
    say(&app, file, MessageRole::Assistant, "I have read it").await;
    until("both are sent", async || {
        deliveries::send_due(&app.core).await.unwrap();
        app.column::<String>("SELECT status FROM deliveries").await == ["SENT", "SENT"]
    })
    .await;
    let mut sent = fake.lock().unwrap().sent();
    sent.sort();
    assert_eq!(sent, ["I have read it", "It is right"]);
    // A reply to the answer is in the conversation of the file.
    let own = fake.lock().unwrap().comments["F1"].last().unwrap()["id"].as_str().unwrap().to_owned();
    fake.lock().unwrap().replies("F1", &own, "Thank you");
    let said = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL AND conversation_id = $1";
    until("it is there", async || app.one::<i64>(said, vec![file.into()]).await == 2).await;
}

#[tokio::test]
async fn a_folder_is_chosen_and_a_revoked_key_is_noticed() {
    let (app, fake, channel) = connected().await;
    let inner =
        app.operator.gql(FOLDERS, json!({ "o": app.org, "c": channel["id"], "p": "folder1" })).await.data();
    assert_eq!(inner["channelFolders"], json!([{ "id": "folder2", "name": "2026" }]));
    let refused = app.viewer.gql(FOLDERS, json!({ "o": app.org, "c": channel["id"] })).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED");
    fake.lock().unwrap().answers.push_back(refusal(401, "authError", "Invalid Credentials"));
    let shown = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { inactiveReason } }";
    until("the channel is off", async || {
        let shown = app.viewer.gql(shown, json!({ "o": app.org, "c": channel["id"] })).await.data();
        shown["channel"]["inactiveReason"] == "AUTH_FAILED"
    })
    .await;
}

#[tokio::test]
async fn each_test_is_sent_and_actions_are_those_of_the_account() {
    let (app, fake) = start().await;
    let host = app.running_agent().await;
    let channel = connect_folder(&app, host.agent).await;
    fake.lock().unwrap().puts("F1", "plan.txt", "folder1", "abc");
    until("the file is stored", async || app.column::<i64>(STORED).await == [1]).await;
    let thread = "SELECT id FROM conversations WHERE target = $1";
    let conversation: i64 = app.one(thread, vec!["F1".into()]).await;
    for _ in 0..2 {
        let tested = test(&app, &app.operator, channel["id"].as_i64().unwrap(), Some(conversation)).await;
        assert_eq!(error(tested), Value::Null);
    }
    assert_eq!(fake.lock().unwrap().sent().len(), 2);
    let offered = async || {
        let (agent, conversation) = (AgentId(host.agent), ConversationId(conversation));
        let offered =
            conversations::offered_actions(&app.scope(), agent, host.generation, conversation).await.unwrap();
        offered.into_iter().map(|action| action.name).collect::<Vec<_>>()
    };
    assert_eq!(offered().await, ["comment", "put_file"]);
    let server = json!({ "drive": { "url": "https://192.168.7.7/dav", "user": "agent", "pass": "secret" } });
    app.operator.patch(&at(&app, &channel), server).await.expect(200);
    assert_eq!(offered().await, ["put_file"]);
}

#[tokio::test]
async fn a_drive_without_an_account_says_so() {
    let app = TestApp::start().await;
    let folder = json!({ "folder_id": "root" });
    let body =
        json!({ "name": "Files", "transport": "DRIVE", "agent_id": app.agent().await, "drive": folder });
    let channel = connect(&app, body).await;
    assert_eq!(channel["is_active"], true);
    let warnings = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { warnings } }";
    let named = json!({ "o": app.org, "c": channel["id"] });
    let shown = app.viewer.gql(warnings, named.clone()).await.data();
    let warning = shown["channel"]["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("No account is connected."), "{shown}");
    assert_eq!(app.operator.gql(FOLDERS, named).await.code(), "UNAVAILABLE");
}

#[tokio::test]
async fn a_stored_key_goes_to_no_other_server() {
    let (app, _fake, channel) = connected().await;
    let server = json!({ "drive": { "url": "https://dav.example", "user": "agent" } });
    let refused = app.operator.patch(&at(&app, &channel), server).await;
    assert_eq!(refused.violations(), [("/drive/pass", "REQUIRED")]);
    let server = json!({ "folder_id": "a", "url": "https://dav.example" });
    let body = json!({ "name": "x", "transport": "DRIVE", "agent_id": channel["agent_id"], "drive": server });
    let refused = app.operator.post(&path(&app), body).await;
    assert_eq!(refused.violations(), [("/drive/user", "REQUIRED"), ("/drive/pass", "REQUIRED")]);
}

#[tokio::test]
async fn two_agents_do_not_answer_each_other_s_files() {
    let place = tempfile::tempdir().unwrap();
    let mut process = peer("dav.py").arg(place.path()).stderr(Stdio::null()).spawn().unwrap();
    let first = BufReader::new(process.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let url = format!("http://127.0.0.1:{}/dav", first.strip_prefix("listening ").unwrap());
    let app = TestApp::start_with(|config| {
        config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.channels.drive_seconds = 1;
    })
    .await;
    for _ in 0..2 {
        let folder = json!({ "folder_id": "/", "url": url, "user": "agent", "pass": "secret" });
        let body =
            json!({ "name": "Files", "transport": "DRIVE", "agent_id": app.agent().await, "drive": folder });
        whitelist(&app, &connect(&app, body).await, "folder").await;
    }
    app.service.ingest.listen();
    let looked = "SELECT COUNT(*) FROM channel_listeners WHERE cursor IS NOT NULL";
    until("the first looks are over", async || app.column::<i64>(looked).await == [2]).await;
    let arrives = async |name: &str, stored: i64| {
        fs::write(place.path().join(name), name).unwrap();
        until("both have it", async || app.column::<i64>(STORED).await == [stored]).await;
    };
    arrives("plan.txt", 2).await;
    let conversation = app.column::<i64>("SELECT MIN(id) FROM conversations").await[0];
    say(&app, conversation, MessageRole::Assistant, "I have read it").await;
    until("the answer is there", async || {
        deliveries::send_due(&app.core).await.unwrap();
        fs::read_dir(place.path()).unwrap().count() == 2
    })
    .await;
    arrives("theirs.txt", 4).await;
    arrives("more.txt", 6).await;
    let begun = "SELECT target FROM conversations WHERE target LIKE '%answer%'";
    assert_eq!(app.column::<String>(begun).await, [""; 0]);
}
