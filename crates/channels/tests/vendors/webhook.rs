//! Tests of webhooks against the official libraries.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use muster_channels::{
    Attachment, Config, Content, Event, Failure, NamedId, Participants, Proof, RawRequest, Refusal,
    RemoteFile, Scope, Transport, WebhookConfig, open,
};
use serde_json::{Map, Value, json};
use standardwebhooks::Webhook as Official;

use crate::{
    peers::{json_lines, peer},
    support::{Seen, message, open_network, part, serve, text},
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEXT: &str = "another secret";

fn channel(config: WebhookConfig) -> Arc<dyn Transport> {
    open(Config::Webhook(Box::new(config)), &open_network(None))
}

/// A receiver that stores its requests and always returns the same answer.
pub async fn receiver(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> (String, Seen<(HeaderMap, Bytes)>) {
    type Requests = Seen<(HeaderMap, Bytes)>;
    let seen = Requests::default();
    let answer = move |State(seen): State<Requests>, got: HeaderMap, bytes: Bytes| async move {
        seen.lock().unwrap().push((got, bytes));
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        (StatusCode::from_u16(status).unwrap(), headers, body)
    };
    let address = serve(Router::new().fallback(answer).with_state(Arc::clone(&seen))).await;
    (format!("http://{address}/hook"), seen)
}

#[tokio::test]
async fn the_official_library_verifies_our_signatures() {
    let (url, seen) = receiver(200, &[], r#"{"id":"theirs-7"}"#).await;
    let config = WebhookConfig {
        outbound_url: Some(url),
        outbound_secrets: vec![NEXT.into(), SECRET.into()],
        signature_header: Some("X-Signature".to_owned()),
        ..WebhookConfig::default()
    };
    let said = text("**Hello**, wörld");
    let file = Attachment { name: "a.txt".into(), media_type: "text/plain".into(), content: "abc".into() };
    let files = [file];
    let named = |id, name: &str| NamedId { id, name: name.to_owned() };
    let scene = Participants {
        conversation: 12,
        channel: named(7, "Orders"),
        agent: named(3, "Marlow"),
        contact: Some(named(5, "Ada")),
        origin: Some("ada".to_owned()),
    };
    let mut part = part(&said, "thread-1");
    (part.files, part.scene) = (&files, Some(&scene));
    let receipt = channel(config).send(&part).await.unwrap();
    assert_eq!(receipt.vendor_id.as_deref(), Some("theirs-7"));

    let (headers, body) = seen.lock().unwrap().pop().unwrap();
    Official::new(SECRET).unwrap().verify(&body, &headers).unwrap();
    Official::from_bytes(NEXT.as_bytes().to_vec()).unwrap().verify(&body, &headers).unwrap();
    assert!(Official::from_bytes(b"a third".to_vec()).unwrap().verify(&body, &headers).is_err());
    assert!(headers["x-signature"].to_str().unwrap().starts_with("sha256="));
    assert_eq!(headers["webhook-id"], "d-1");
    let sent: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(sent["type"], "message.created");
    let attachments = json!([{"name": "a.txt", "media_type": "text/plain", "content_base64": "YWJj"}]);
    let expected = json!({
        "message": {"id": "d-1", "text": "**Hello**, wörld", "speaker": null, "reply_to": null, "attachments": attachments},
        "conversation": {"id": 12, "ref": "C-1", "thread": "thread-1", "title": null},
        "channel": {"id": 7, "name": "Orders"},
        "agent": {"id": 3, "name": "Marlow"},
        "contact": {"id": 5, "name": "Ada", "origin_id": "ada"},
    });
    assert_eq!(sent["data"], expected);
}

#[tokio::test]
async fn answers_map_to_failures() {
    let failed = async |status, headers| {
        let (url, _) = receiver(status, headers, "").await;
        channel(WebhookConfig { outbound_url: Some(url), ..WebhookConfig::default() })
            .send(&part(&text("x"), "t"))
            .await
            .unwrap_err()
    };
    assert!(matches!(failed(410, &[]).await, Failure::Gone(_)));
    for status in [429, 503] {
        let failure = failed(status, &[("retry-after", "7")]).await;
        assert!(
            matches!(failure, Failure::RateLimited { wait, scope: Scope::Channel, .. } if wait == Duration::from_secs(7)),
            "{failure}"
        );
    }
    assert!(matches!(failed(422, &[]).await, Failure::Refused(_)));
    for status in [401, 404, 500, 502] {
        assert!(matches!(failed(status, &[]).await, Failure::NotSent(_)), "{status}");
    }
    let silent = channel(WebhookConfig {
        outbound_url: Some("http://127.0.0.1:9/".into()),
        ..WebhookConfig::default()
    });
    assert!(matches!(silent.send(&part(&text("x"), "t")).await, Err(Failure::NotSent(_))));
}

/// The receiver reads the message and closes the connection.
#[tokio::test]
async fn a_lost_answer_is_unknown() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4096];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await;
        }
    });
    let failure = channel(WebhookConfig { outbound_url: Some(url), ..WebhookConfig::default() })
        .send(&part(&text("x"), "t"))
        .await
        .unwrap_err();
    assert!(matches!(failure, Failure::Unknown(_)), "{failure}");
}

/// Verifies a request with the official Python library. Returns the error.
async fn verify_in_python(secret: &str, (headers, body): &(HeaderMap, Bytes)) -> Option<String> {
    let headers: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect();
    let asked = json!({"verify": secret, "headers": headers, "body": std::str::from_utf8(body).unwrap()});
    let said = json_lines(peer("webhook.py"), &asked.to_string()).await;
    said[0]["error"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn the_python_library_verifies_our_signatures() {
    let (url, seen) = receiver(200, &[], "").await;
    let config = WebhookConfig {
        outbound_url: Some(url),
        outbound_secrets: vec![NEXT.into(), SECRET.into()],
        ..WebhookConfig::default()
    };
    channel(config).send(&part(&text("Grüße 😀"), "t")).await.unwrap();
    let sent = seen.lock().unwrap().pop().unwrap();
    assert_eq!(verify_in_python(SECRET, &sent).await, None);
    // The library expects secrets in base64.
    assert_eq!(verify_in_python(&BASE64_STANDARD.encode(NEXT), &sent).await, None);
    let other = verify_in_python(&BASE64_STANDARD.encode("a third"), &sent).await;
    assert_eq!(other.as_deref(), Some("No matching signature found"));
}

#[tokio::test]
async fn signatures_of_the_python_library_are_valid() {
    let config = WebhookConfig { inbound_secrets: vec![SECRET.into()], ..WebhookConfig::default() };
    let (channel, now) = (channel(config), Timestamp::now());
    let body = r#"{"text": "Grüße 😀"}"#;
    let asked = json!({"sign": SECRET, "id": "m1", "at": now.as_second(), "body": body});
    let said = json_lines(peer("webhook.py"), &asked.to_string()).await;
    let at = now.as_second().to_string();
    let headers = [
        ("webhook-id", "m1"),
        ("webhook-timestamp", &at),
        ("webhook-signature", said[0]["signature"].as_str().unwrap()),
    ];
    let headers: HeaderMap =
        headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let received = channel.receive(&RawRequest { headers: &headers, body: body.as_bytes() }, now).unwrap();
    assert_eq!(message(&received.events).text, "Grüße 😀");
}

fn signed(secret: &str, id: &str, at: i64, body: &str) -> HeaderMap {
    let signature = Official::new(secret).unwrap().sign(id, at, body.as_bytes()).unwrap();
    [("webhook-id", id), ("webhook-timestamp", &at.to_string()), ("webhook-signature", &signature)]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

#[tokio::test]
async fn signatures_of_the_official_library_are_valid() {
    let channel = channel(WebhookConfig {
        inbound_secrets: vec![NEXT.into(), SECRET.into()],
        ..WebhookConfig::default()
    });
    let now = Timestamp::now();
    let body = r#"{"type":"message.created","data":{"text":"Hi","origin_id":"ada"}}"#;
    let headers = signed(SECRET, "msg_1", now.as_second(), body);
    let request = RawRequest { headers: &headers, body: body.as_bytes() };
    let received = channel.receive(&request, now).unwrap();
    let [Event::Message(inbound)] = &received.events[..] else { panic!("{received:?}") };
    assert_eq!(
        (inbound.key.as_deref(), inbound.text.as_str(), inbound.proof),
        (Some("msg_1"), "Hi", Proof::Signed)
    );
    assert_eq!(inbound.origin.id, "ada");

    let changed = RawRequest { body: &body.as_bytes()[1..], ..request };
    assert_eq!(channel.receive(&changed, now), Err(Refusal::BadSignature));
    let late = now + jiff::SignedDuration::from_secs(302);
    assert_eq!(channel.receive(&request, late), Err(Refusal::Stale));
    assert_eq!(
        channel.receive(&RawRequest { headers: &HeaderMap::new(), ..request }, now),
        Err(Refusal::Unsigned)
    );
}

#[tokio::test]
async fn without_a_secret_requests_are_refused() {
    let headers = HeaderMap::new();
    let request = RawRequest { headers: &headers, body: b"hello" };
    let channel =
        channel(WebhookConfig { signature_header: Some("x-sig".into()), ..WebhookConfig::default() });
    assert_eq!(channel.receive(&request, Timestamp::now()), Err(Refusal::NotConfigured));
}

#[tokio::test]
async fn githubs_signature_counts_only_in_its_own_header() {
    let config = WebhookConfig {
        inbound_secrets: vec!["It's a Secret to Everybody".into()],
        signature_header: Some("X-Hub-Signature-256".to_owned()),
        ..WebhookConfig::default()
    };
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let with = |name: &'static str| -> HeaderMap {
        [(name.parse().unwrap(), signature.parse().unwrap())].into_iter().collect()
    };
    let (right, wrong) = (with("x-hub-signature-256"), with("x-other"));
    let channel = channel(config);
    let of = |headers| channel.receive(&RawRequest { headers, body: b"Hello, World!" }, Timestamp::now());
    assert!(of(&right).is_ok());
    assert_eq!(of(&wrong), Err(Refusal::Unsigned));
}

#[tokio::test]
async fn a_signature_is_not_valid_for_another_text() {
    let (id, body, then) = ("m1", r#"{"text": "Hello"}"#, Timestamp::now() - Duration::from_secs(86_400));
    let signed = Official::new(SECRET).unwrap().sign(id, then.as_second(), body.as_bytes()).unwrap();
    let hex = hex::encode(BASE64_STANDARD.decode(signed.strip_prefix("v1,").unwrap()).unwrap());
    let header = |name: &str, value: &str| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    let mut headers: HeaderMap = [header("x-signature", &format!("sha256={hex}"))].into_iter().collect();
    let config = WebhookConfig {
        inbound_secrets: vec![SECRET.into()],
        signature_header: Some("X-Signature".to_owned()),
        ..WebhookConfig::default()
    };
    let channel = channel(config);
    let text = format!("{id}.{}.{body}", then.as_second());
    let of = |headers: &HeaderMap| {
        channel.receive(&RawRequest { headers, body: text.as_bytes() }, Timestamp::now())
    };
    assert_eq!(of(&headers), Err(Refusal::BadSignature));
    // Duplicate headers must not count as missing.
    for _ in 0..2 {
        let (name, value) = header("webhook-signature", &signed);
        headers.append(name, value);
    }
    assert_eq!(of(&headers), Err(Refusal::BadSignature));
}

#[tokio::test]
async fn ambiguous_signed_texts_are_refused() {
    use hmac::{Hmac, KeyInit, Mac};
    let config = WebhookConfig {
        inbound_secrets: vec![SECRET.into()],
        signature_header: Some("X-Signature".to_owned()),
        ..WebhookConfig::default()
    };
    let (channel, now) = (channel(config), Timestamp::now());
    let key = BASE64_STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let signature = |text: &str| {
        let mac = Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
        mac.chain_update(text).finalize().into_bytes()
    };
    let of = |headers: &[(&str, &str)], body: &str| {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers: HeaderMap = headers.collect();
        channel.receive(&RawRequest { headers: &headers, body: body.as_bytes() }, now).map(drop)
    };
    let long = "x".repeat(257);
    let at = now.as_second().to_string();
    let plus = format!("+{at}");
    let cases = [
        ("msg_1:2.3/4=", &at, r#"{"text": "Hello"}"#, Ok(())),
        (r#"{"a":1}"#, &at, r#"{"text": "Hello"}"#, Err(Refusal::BadSignature)),
        ("[1]", &at, "Hello", Err(Refusal::BadSignature)),
        ("{x", &at, "Hello", Err(Refusal::BadSignature)),
        ("a b", &at, "Hello", Err(Refusal::BadSignature)),
        // The time has a sign.
        ("m1", &plus, "Hello", Err(Refusal::BadSignature)),
        // The whole signed text is JSON.
        ("[\"a", &at, "b\"]", Err(Refusal::BadSignature)),
        (&long, &at, "Hello", Err(Refusal::BadSignature)),
    ];
    for (id, at, body, expected) in cases {
        let text = format!("{id}.{at}.{body}");
        let given = format!("v1,{}", BASE64_STANDARD.encode(signature(&text)));
        let headers = [("webhook-id", id), ("webhook-timestamp", at.as_str()), ("webhook-signature", &given)];
        assert_eq!(of(&headers, body), expected, "{id}");
        if expected.is_ok() {
            // A replay under the other header, which has no time.
            let given = format!("sha256={}", hex::encode(signature(&text)));
            assert_eq!(of(&[("x-signature", &given)], &text), Err(Refusal::BadSignature), "{id}");
        }
    }
    // A similar text is accepted.
    let body = r#"{"text": "See app.1700000000.log"}"#;
    assert_eq!(of(&[("x-signature", &format!("sha256={}", hex::encode(signature(body))))], body), Ok(()));
}

#[tokio::test]
async fn files_are_fetched_through_the_guard() {
    let router = Router::new().fallback(|| async { "abcdef" });
    let address = serve(router).await;
    let file = |url: String| RemoteFile {
        name: "f".into(),
        media_type: String::new(),
        size: None,
        content: Content::There(url),
    };
    let channel = channel(WebhookConfig::default());
    let mut bytes = Vec::new();
    let here = file(format!("http://{address}/f"));
    assert_eq!(channel.fetch(&here, &mut bytes, 6).await, Ok(6));
    assert_eq!(bytes, b"abcdef");
    assert!(matches!(channel.fetch(&here, &mut Vec::new(), 5).await, Err(Failure::Refused(_))));
    let inward = file("http://10.0.0.1/".to_owned());
    assert!(matches!(channel.fetch(&inward, &mut bytes, 6).await, Err(Failure::NotPublic(_))));
}
