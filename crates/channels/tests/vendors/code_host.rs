//! GitHub's published webhook payloads, signed and verified by GitHub's own library, and the JavaScript library of
//! Standard Webhooks.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use muster_channels::{Config, Event, RawRequest, Refusal, Transport, WebhookConfig, open};
use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::{
    github::installation,
    peers::{json_lines, node, on_this_machine},
    support::{message, open_network, part, text},
    webhook::receiver,
};

const SECRET: &str = "It's a Secret to Everybody";

fn libraries() -> Command {
    on_this_machine(node("channels", "webhook.mjs"))
}

fn channel(outbound_url: Option<String>) -> Arc<dyn Transport> {
    let config = WebhookConfig {
        outbound_url,
        outbound_secrets: vec![SECRET.into()],
        inbound_secrets: vec![SECRET.into()],
        signature_header: Some("X-Hub-Signature-256".to_owned()),
        actor_paths: vec!["sender.login".to_owned(), "sender.id".to_owned()],
    };
    open(Config::Webhook(Box::new(config)), &open_network(None))
}

#[tokio::test]
async fn all_github_payloads_are_read() {
    let mut library = libraries();
    library.args(["github", SECRET]);
    let payloads = json_lines(library, "").await;
    assert!(payloads.len() > 150, "{}", payloads.len());
    let (channel, now) = (channel(None), Timestamp::now());
    for (nth, payload) in payloads.iter().enumerate() {
        let name = payload["name"].as_str().unwrap();
        let id = format!("delivery-{nth}");
        let headers = [
            ("content-type", "application/json"),
            ("x-github-event", name),
            ("x-github-delivery", &id),
            ("x-hub-signature-256", payload["signature"].as_str().unwrap()),
        ];
        let headers: HeaderMap = headers
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let body = payload["body"].as_str().unwrap();
        let of = |body: &str| channel.receive(&RawRequest { headers: &headers, body: body.as_bytes() }, now);
        let received = of(body).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let inbound = message(&received.events);
        assert_eq!(inbound.origin.id, payload["sender"].as_str().unwrap_or("webhook"), "{name}");
        assert_eq!(inbound.key.as_deref(), Some(id.as_str()), "{name}");
        let shown = inbound.text.strip_prefix("```json\n").and_then(|text| text.strip_suffix("\n```"));
        let shown: Value = serde_json::from_str(shown.expect("it is shown as it is")).unwrap();
        assert_eq!(shown, serde_json::from_str::<Value>(body).unwrap(), "{name}");
        assert_eq!(of(&format!("{body} ")), Err(Refusal::BadSignature), "{name}");
    }
}

/// All of them, by the transport for GitHub. Those with something to read become messages.
#[tokio::test]
async fn all_github_payloads_go_into_the_transport() {
    let mut library = libraries();
    library.args(["github", SECRET, "7"]);
    let payloads = json_lines(library, "").await;
    let channel = installation(7, None);
    let (mut messages, now) = (BTreeMap::<String, usize>::new(), Timestamp::now());
    for payload in &payloads {
        let (name, body) = (payload["name"].as_str().unwrap(), payload["body"].as_str().unwrap());
        let headers =
            [("x-github-event", name), ("x-hub-signature-256", payload["signature"].as_str().unwrap())];
        let headers: HeaderMap = headers
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let request = RawRequest { headers: &headers, body: body.as_bytes() };
        let received = channel.receive(&request, now).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        for event in &received.events {
            let Event::Message(message) = event else { panic!("{name}: {event:?}") };
            assert!(
                message.thread.target.contains(['#', '~']) && message.key.is_some(),
                "{name}: {message:?}"
            );
            assert!(message.is_edit || !message.text.is_empty(), "{name}: {message:?}");
            *messages.entry(name.to_owned()).or_default() += 1;
        }
        let forged = RawRequest { headers: &headers, body: &[body.as_bytes(), b" "].concat() };
        assert_eq!(channel.receive(&forged, now), Err(Refusal::BadSignature), "{name}");
    }
    let names: Vec<_> = messages.keys().map(String::as_str).collect();
    // The published reviews have no words of their own.
    let expected = [
        "discussion",
        "discussion_comment",
        "issue_comment",
        "issues",
        "pull_request",
        "pull_request_review_comment",
    ];
    assert_eq!(names, expected, "{messages:?}");
}

#[tokio::test]
async fn javascript_libraries_verify_our_signatures() {
    let (url, seen) = receiver(200, &[], "").await;
    channel(Some(url)).send(&part(&text("Grüße 😀"), "t")).await.unwrap();
    let (headers, body) = seen.lock().unwrap().pop().unwrap();
    let headers: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect();
    let request = json!({"headers": headers, "body": std::str::from_utf8(&body).unwrap()}).to_string();
    for (secret, expected) in [
        (SECRET, json!({"github": true, "standard": true})),
        ("another", json!({"github": false, "standard": "No matching signature found"})),
    ] {
        let mut library = libraries();
        library.args(["verify", &BASE64_STANDARD.encode(secret), secret]);
        assert_eq!(json_lines(library, &request).await, [expected]);
    }
}
