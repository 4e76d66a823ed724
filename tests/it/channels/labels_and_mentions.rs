//! What `label_whitelist` and `mention_off` mean for each transport, as docs/channels/README.md has it.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    channels::{
        connect,
        inbound_webhooks::{app, bring, channel, hello},
        mail::{mailbox, soon},
        probes::{bot, whitelist, with_slack, with_telegram, workspace},
        sets,
        telegram_webhook::in_group,
    },
    harness::{
        Dovecot, MAILBOX, TestApp,
        fakes::{
            slack::{APP, envelope},
            telegram::TOKEN,
        },
        until,
    },
};

/// Waits until these threads have a message, and these origins were refused.
async fn until_judged(app: &TestApp, threads: &[&str], refusals: &[&str]) {
    let stored = "SELECT c.thread_key FROM messages m JOIN conversations c ON c.id = m.conversation_id";
    let refused = "SELECT origin_id || ' ' || reason FROM channel_refusals";
    until("all are judged", async || {
        app.column::<String>(stored).await == threads && app.column::<String>(refused).await == refusals
    })
    .await;
}

#[tokio::test]
async fn a_webhooks_messages_are_all_for_the_agent_and_have_labels() {
    let app = app().await;
    let (id, path) = channel(&app, "https://hooks.example/out").await;
    let edit = json!({ "label_whitelist": ["VIP"], "mention_off": ["elsewhere"] });
    sets(&app, &json!({ "id": id }), edit).await;
    for (id, labels, status) in [("m1", json!([]), 200), ("m2", json!(["other", "vip"]), 202)] {
        let mut said = hello("Hello");
        said["labels"] = labels;
        assert_eq!(bring(&app, &path, id, &said).await.0, status, "{id}");
    }
    until_judged(&app, &["t1"], &["ada LABEL"]).await;
}

/// Gives the mails in the mailbox a keyword.
async fn add_keyword(dovecot: &Dovecot, keyword: &str) {
    let mut stream = TcpStream::connect(dovecot.address).await.unwrap();
    let commands = format!(
        "a LOGIN {MAILBOX} secret\r\nb SELECT INBOX\r\nc STORE 1:* +FLAGS ({keyword})\r\nd LOGOUT\r\n"
    );
    stream.write_all(commands.as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert!(answers.contains("c OK"), "{answers}");
}

#[tokio::test]
async fn a_mails_labels_are_its_keywords() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    let channel = connect(&app, mailbox(&dovecot, app.agent().await, None)).await;
    sets(&app, &channel, json!({ "label_whitelist": ["VIP"] })).await;
    let mail = |id: &str| format!("From: {id}@a.test\nMessage-ID: <{id}@a.test>\n\nHello\n");
    dovecot.deliver_at("m1", &mail("m1"), soon(&app));
    add_keyword(&dovecot, "Vip").await;
    dovecot.deliver_at("m2", &mail("m2"), soon(&app));
    for origin in ["m1@a.test", "m2@a.test"] {
        whitelist(&app, &channel, origin).await;
    }
    app.service.ingest.listen();
    until_judged(&app, &["m1@a.test"], &["m2@a.test LABEL"]).await;
}

/// What is written in two groups, of which `mention_off` names one, without naming the bot; and where a message needs a
/// label.
fn in_groups(named: &str) -> [(Value, bool, &'static str); 2] {
    [
        (json!({ "mention_off": [named] }), true, "NOT_ADDRESSED"),
        (json!({ "label_whitelist": ["vip"], "mention_off": [named] }), false, "LABEL"),
    ]
}

#[tokio::test]
async fn telegram_groups_can_need_no_mention_and_have_no_labels() {
    for (edit, is_stored, reason) in in_groups("-100") {
        let (app, telegram) = with_telegram().await;
        let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
        whitelist(&app, &channel, "5").await;
        sets(&app, &channel, edit).await;
        telegram.lock().unwrap().updates =
            [-100, -200].map(|group| in_group(10 - group, group, &json!({}))).to_vec();
        app.service.ingest.listen();
        let threads: &[&str] = if is_stored { &["-100"] } else { &[] };
        until_judged(&app, threads, &[&format!("5 {reason}")]).await;
    }
}

#[tokio::test]
async fn slacks_channels_can_need_no_mention_and_labels_admit_nothing() {
    for (edit, is_stored, reason) in in_groups("C1") {
        let (app, slack) = with_slack().await;
        let channel = connect(&app, workspace(app.agent().await, APP)).await;
        whitelist(&app, &channel, "U1").await;
        sets(&app, &channel, edit).await;
        let said = |id: &str, place: &str| {
            let mut said = envelope(id, "Hello");
            said["payload"]["event"]["channel"] = json!(place);
            said["payload"]["event"]["channel_type"] = json!("channel");
            said
        };
        slack.lock().unwrap().envelopes = vec![said("1", "C1"), said("2", "C2")];
        app.service.ingest.listen();
        let threads: &[&str] = if is_stored { &["C1/1700000000.1"] } else { &[] };
        until_judged(&app, threads, &[&format!("U1 {reason}")]).await;
    }
}
