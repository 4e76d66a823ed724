//! Runs the examples of `docs/channels/webhook.md`.

use std::{fs, process::Stdio, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jiff::Timestamp;
use muster_channels::{Config, Failure, RawRequest, Transport, WebhookConfig, open};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    process::Command,
};

use crate::{
    dovecot::reserved_port,
    peers::{self, file, on_this_machine, output},
    support::{Seen, message, open_network, part, serve, text},
};

const MARK: &str = "<!-- run by crates/channels/tests/vendors/manual.rs -->\n```";
const SECRETS: [&str; 2] = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "raw and secret: ü"];

/// Finds an example by the name in its first line.
fn example(name: &str) -> String {
    let manual = fs::read_to_string(file("docs/channels/webhook.md")).unwrap();
    let mut examples = manual.split(MARK).skip(1).map(|rest| {
        let (_, code) = rest.split_once('\n').unwrap();
        code.split("\n```").next().unwrap().to_owned()
    });
    let found = examples.find(|code| code.starts_with(&format!("# {name}: ")));
    found.unwrap_or_else(|| panic!("the manual has no {name}"))
}

/// The transport's part of Muster's inbound path. Stores the sender and text of each message.
async fn inbound_path(secret: &str) -> (String, Seen<(String, String)>) {
    let seen = Seen::<(String, String)>::default();
    let config = WebhookConfig {
        inbound_secrets: vec![secret.into()],
        signature_header: Some("X-Hub-Signature-256".to_owned()),
        ..WebhookConfig::default()
    };
    let channel = open(Config::Webhook(Box::new(config)), &open_network(None));
    let state = (channel, Arc::clone(&seen));
    let take = async |State((channel, seen)): State<(Arc<dyn Transport>, Seen<_>)>,
                      headers: HeaderMap,
                      body: Bytes| {
        match channel.receive(&RawRequest { headers: &headers, body: &body }, Timestamp::now()) {
            Ok(received) => {
                let inbound = message(&received.events);
                seen.lock().unwrap().push((inbound.key.clone().unwrap_or_default(), inbound.text.clone()));
                StatusCode::ACCEPTED
            }
            Err(refusal) => StatusCode::from_u16(refusal.status()).unwrap(),
        }
    };
    let address = serve(Router::new().fallback(take).with_state(state)).await;
    (format!("http://{address}/webhooks/webhook/slug"), seen)
}

fn shell(code: &str) -> Command {
    let mut command = on_this_machine(Command::new("sh"));
    command.args(["-euc", code]);
    command
}

fn python(code: &str) -> Command {
    let mut command = peers::python();
    command.args(["-c", code]);
    command
}

#[tokio::test]
async fn example_senders_are_understood() {
    for secret in SECRETS {
        let (url, seen) = inbound_path(secret).await;
        for command in [shell(&example("send.sh")), python(&example("send.py"))] {
            let mut command = command;
            command.env("URL", &url).env("SECRET", secret);
            output(command, "").await;
            let (key, text) = seen.lock().unwrap().pop().expect("it is accepted");
            assert!(key.starts_with("msg_") && key.len() > 20, "{key}");
            assert_eq!(text, "Where is my order?");
        }
    }
    let (url, seen) = inbound_path(SECRETS[1]).await;
    let mut command = shell(&example("send-sha256.sh"));
    command.env("URL", &url).env("SECRET", SECRETS[1]);
    output(command, "").await;
    assert_eq!(*seen.lock().unwrap(), [("alert-17".to_owned(), "The disk is full".to_owned())]);
}

#[tokio::test]
async fn the_example_receiver_accepts_our_requests() {
    for secret in SECRETS {
        let port = reserved_port();
        let mut command = python(&example("receive.py"));
        command.env("PORT", port.to_string()).env("SECRET", secret).stderr(Stdio::null());
        let mut receiver = command.spawn().unwrap();
        let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let channel = |secret: &str| {
            let config = WebhookConfig {
                outbound_url: Some(format!("http://127.0.0.1:{port}/muster")),
                outbound_secrets: vec![secret.into()],
                ..WebhookConfig::default()
            };
            open(Config::Webhook(Box::new(config)), &open_network(None))
        };
        let said = text("It is **on its way**.");
        for _ in 0..2 {
            let receipt = channel(secret).send(&part(&said, "order-7")).await.unwrap();
            assert_eq!(receipt.vendor_id.as_deref(), Some("ours-1"));
        }
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("order-7 It is **on its way**."));
        let stranger = channel("another").send(&part(&said, "order-7")).await;
        assert!(
            matches!(&stranger, Err(Failure::NotSent(cause)) if cause.as_str().contains("401")),
            "{stranger:?}"
        );
        receiver.kill().await.unwrap();
    }
}
