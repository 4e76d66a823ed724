//! Mail through a third-party mail server (`tests/peers/mail`), and the mails that wait for it.

use std::{process::Stdio, time::Duration};

use muster::{
    base::{enums::ApprovalKind, ids::AgentId},
    core::config::Config,
    domain::{
        approvals::{self, NewApproval},
        notifications,
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::harness::{PATIENCE, TestApp, account::CONFIRM, node, peer_folder};

const REQUEST: &str = "mutation { requestEmailConfirmation }";

/// The mail server.
struct Server {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
}

impl Server {
    async fn start(options: Value) -> Self {
        let mut command = node("mail", "server.mjs");
        let command = command.arg(options.to_string()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("node is installed");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut server = Self { _process: process, lines, port: 0 };
        let first = server.line().await;
        server.port = first.strip_prefix("listening ").expect("a port").parse().unwrap();
        server
    }

    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        line.unwrap().expect("the mail server still runs")
    }

    async fn mail(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no mail: {line}"))
    }
}

fn sends_to(url: String) -> impl FnOnce(&mut Config) {
    move |config| {
        config.mail.url = Some(url.into());
        config.mail.from = Some("Muster <muster@example.com>".to_owned());
        config.public_url = Some("https://muster.example.com".to_owned());
    }
}

fn token(mail: &Value) -> String {
    let text = mail["text"].as_str().unwrap();
    let (_, rest) = text.split_once("/confirm-email#token=").unwrap_or_else(|| panic!("no link: {text}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

async fn waiting(app: &TestApp) -> i64 {
    app.one("SELECT COUNT(*) FROM mails", vec![]).await
}

fn pem(name: &str) -> String {
    std::fs::read_to_string(peer_folder("mail").join(name)).unwrap()
}

#[tokio::test]
async fn a_mail_arrives_in_both_forms_and_its_link_works() {
    let mut server = Server::start(json!({ "tls": "none", "user": "me", "password": "pa ss" })).await;
    let url = format!("smtp://me:pa%20ss@127.0.0.1:{}?tls=none", server.port);
    let app = TestApp::start_with(sends_to(url)).await;
    let someone = app.person("VIEWER", false).await;
    assert_eq!(someone.gql(REQUEST, json!({})).await.data()["requestEmailConfirmation"], true);
    assert_eq!(waiting(&app).await, 1);
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 1);
    let mail = server.mail().await;
    assert_eq!(waiting(&app).await, 0);
    assert_eq!(mail["envelope"], json!({ "from": "muster@example.com", "to": ["person-1@example.com"] }));
    assert_eq!(mail["from"]["name"], "Muster");
    assert_eq!(mail["subject"], "Confirm your e-mail address");
    let token = token(&mail);
    assert!(mail["html"].as_str().unwrap().contains(&format!("#token={token}\"")), "{}", mail["html"]);
    assert!(mail["headers"]["message-id"].as_str().unwrap().ends_with("@example.com>"), "{mail:#}");
    app.anonymous.gql(CONFIRM, json!({ "t": token })).await.data();
    let again = app.anonymous.gql(CONFIRM, json!({ "t": token })).await;
    assert_eq!(again.code(), "LINK_INVALID");
    let sql =
        "SELECT COUNT(*) FROM users WHERE email = 'person-1@example.com' AND email_confirmed_at IS NOT NULL";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
}

#[tokio::test]
async fn a_notification_arrives_in_both_forms() {
    let mut server = Server::start(json!({ "tls": "none" })).await;
    let app = TestApp::start_with(sends_to(format!("smtp://127.0.0.1:{}?tls=none", server.port))).await;
    let agent = app.agent().await;
    app.execute("UPDATE agents SET name = '<b>\u{202e}Bot</b>' WHERE id = $1", vec![agent.into()]).await;
    let tx = app.scope().begin().await.unwrap();
    let new =
        NewApproval { agent_id: Some(AgentId(agent)), ..NewApproval::new(ApprovalKind::Question, "Which?") };
    let id = approvals::raise(&tx, new).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(notifications::collect_due(&app.core).await.unwrap(), 2);
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 2);
    let link = format!("https://muster.example.com/o/{}/approvals/{id}", app.org);
    let mut told = Vec::new();
    for _ in 0..2 {
        let mail = server.mail().await;
        told.push(mail["envelope"]["to"][0].as_str().unwrap().to_owned());
        assert_eq!(mail["subject"], "<b>Bot</b> asks a question");
        let (text, html) = (mail["text"].as_str().unwrap(), mail["html"].as_str().unwrap());
        assert!(text.contains(&link) && html.contains(&format!("href=\"{link}\"")), "{html}");
        assert!(html.contains("&lt;b&gt;Bot&lt;/b&gt; asks a question") && !html.contains("<b>"), "{html}");
        assert!(!text.contains("Which?") && !html.contains("Which?"), "{text}");
    }
    told.sort();
    assert_eq!(told, ["admin@example.com", "owner@example.com"]);
}

#[tokio::test]
async fn mail_is_encrypted_and_the_server_verified() {
    for (tls, scheme) in [("starttls", "smtp"), ("tls", "smtps")] {
        let options = json!({ "tls": tls, "cert": pem("server.pem"), "key": pem("server.key") });
        let mut server = Server::start(options).await;
        let url = format!("{scheme}://localhost:{}", server.port);
        let trusting = |config: &mut Config| {
            sends_to(url.clone())(config);
            let file = Some(peer_folder("mail").join("ca.pem"));
            // Either setting is enough.
            if tls == "tls" { config.ca_file = file } else { config.mail.ca_file = file }
        };
        let app = TestApp::start_with(trusting).await;
        app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
        assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 1, "{tls}");
        assert_eq!(server.mail().await["secure"], true, "{tls}");
        // The same server, for a client that doesn't trust the CA of its certificate.
        let app = TestApp::start_with(sends_to(url)).await;
        app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
        assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0, "{tls}");
        assert_eq!(waiting(&app).await, 1);
    }
    // A server without encryption gets nothing.
    let server = Server::start(json!({ "tls": "none" })).await;
    let app = TestApp::start_with(sends_to(format!("smtp://127.0.0.1:{}", server.port))).await;
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0);
}

#[tokio::test]
async fn a_deferred_mail_comes_later_with_a_new_link() {
    let mut server = Server::start(json!({ "tls": "none", "refuse": [451] })).await;
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port);
    let app = TestApp::start_with(sends_to(url)).await;
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    let hash = "SELECT token_hash FROM email_tokens";
    let unsent: Vec<u8> = app.one(hash, vec![]).await;
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0);
    assert_eq!(server.line().await, "refused 451");
    let tried: Vec<u8> = app.one(hash, vec![]).await;
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0, "not at once");
    app.clock.advance(Duration::from_secs(16));
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 1);
    let token = token(&server.mail().await);
    let sent: Vec<u8> = app.one(hash, vec![]).await;
    assert!(unsent != tried && tried != sent);
    app.anonymous.gql(CONFIRM, json!({ "t": token })).await.data();
}

#[tokio::test]
async fn a_permanently_refused_or_expired_mail_is_dropped() {
    let mut server = Server::start(json!({ "tls": "none", "refuse": [550] })).await;
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port);
    let app = TestApp::start_with(sends_to(url)).await;
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0);
    assert_eq!(server.line().await, "refused 550");
    assert_eq!(waiting(&app).await, 0);
    // No one is listening: the mail waits, as `operations::queue` has it, until it is useless.
    let app = TestApp::start_with(sends_to("smtp://127.0.0.1:1?tls=none".to_owned())).await;
    app.person("VIEWER", false).await.gql(REQUEST, json!({})).await.data();
    assert_eq!(notifications::deliver_due(&app.core).await.unwrap(), 0);
    assert_eq!(waiting(&app).await, 1);
    app.clock.advance(Duration::from_hours(48));
    notifications::deliver_due(&app.core).await.unwrap();
    assert_eq!(waiting(&app).await, 0);
}
