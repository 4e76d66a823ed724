//! Tests of the Slack transport against the fake Slack.

use std::{sync::Arc, time::Duration};

use axum::http::HeaderMap;
use jiff::Timestamp;
use muster_channels::{
    ActionCall, Attachment, Button, Config, Content, Event, Failure, Link, Proof, RawRequest, Receipt,
    Refusal, RemoteFile, Scope, SlackConfig, Transport, open,
};
use serde_json::json;

use crate::{
    fakes::{
        self,
        slack::{APP, BOT, Shared, envelope},
    },
    support::{SinkCall, TestSink, message, open_network, part, text},
};

const SIGNING: &str = "8f742231b10e8888abcd99yyyzzz85a5";

async fn slack(second: &str) -> (Arc<dyn Transport>, Shared) {
    let (address, fake) = fakes::slack::slack().await;
    let config = SlackConfig::parse(&format!("{BOT} {second}")).unwrap();
    (open(Config::Slack(config), &open_network(Some(address))), fake)
}

#[tokio::test]
async fn the_probe_tries_both_tokens() {
    let (app, fake) = slack(APP).await;
    let identity = app.probe().await.unwrap();
    assert_eq!(
        (identity.self_ids, identity.handle.as_deref()),
        (vec!["UBOT".to_owned(), "BBOT".to_owned()], Some("muster"))
    );
    assert_eq!(fake.lock().unwrap().asked[1].0, "apps.connections.open");
    let (wrong, _) = slack("xapp-another").await;
    assert!(matches!(wrong.probe().await, Err(Failure::Credentials(_))));
}

#[tokio::test]
async fn only_stored_events_are_acknowledged() {
    let (app, fake) = slack(APP).await;
    fake.lock().unwrap().envelopes = vec![envelope("1", "one"), envelope("2", "two")];
    // The sink stores one event and refuses the other.
    let (sink, mut calls) = TestSink::new(1);
    assert!(matches!(app.listen(None, &sink).await, Err(Failure::NotSent(_))));
    assert_eq!(calls.recv().await, Some(SinkCall::Link(Link::Up)));
    let Some(SinkCall::Admitted(first, None)) = calls.recv().await else { panic!() };
    assert_eq!((message(&first).text.as_str(), message(&first).proof), ("one", Proof::Vendor));
    assert_eq!(fake.lock().unwrap().envelopes.len(), 1);
    // Slack sends the other event again, and the socket is renewed on request.
    let (sink, mut calls) = TestSink::new(9);
    let listening = app.listen(None, &sink);
    let renewed = async {
        while fake.lock().unwrap().sockets < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = listening => panic!("{ended:?}"),
        () = renewed => {}
    }
    let mut texts = Vec::new();
    while let Ok(call) = calls.try_recv() {
        if let SinkCall::Admitted(events, _) = call {
            texts.push(message(&events).text.clone());
        }
    }
    assert_eq!(texts, ["two"]);
}

#[tokio::test]
async fn a_disabled_app_stops_listening() {
    let (app, _) = slack("xapp-revoked").await;
    assert!(matches!(app.listen(None, &TestSink::new(1).0).await, Err(Failure::Credentials(_))));
    let (events, _) = slack(SIGNING).await;
    assert!(matches!(events.listen(None, &TestSink::new(1).0).await, Err(Failure::Refused(_))));
}

#[tokio::test]
async fn errors_come_with_status_200() {
    let (app, fake) = slack(APP).await;
    let failed = async |status: u16, error: &str| {
        fake.lock().unwrap().answers.push_back((status, json!({"ok": false, "error": error})));
        app.send(&part(&text("x"), "C1")).await.unwrap_err()
    };
    for error in ["invalid_auth", "token_revoked", "account_inactive"] {
        assert!(matches!(failed(200, error).await, Failure::Credentials(_)), "{error}");
    }
    for error in ["channel_not_found", "not_in_channel", "is_archived"] {
        assert!(matches!(failed(200, error).await, Failure::TargetGone(_)), "{error}");
    }
    for (status, error) in [(200, "ratelimited"), (429, "")] {
        let failure = failed(status, error).await;
        assert!(
            matches!(failure, Failure::RateLimited { wait, scope: Scope::Target, .. } if wait == Duration::from_secs(11)),
            "{failure}"
        );
    }
    assert!(matches!(failed(200, "msg_too_long").await, Failure::Refused(_)));
    assert!(matches!(failed(200, "service_unavailable").await, Failure::NotSent(_)));
    assert!(matches!(failed(200, "fatal_error").await, Failure::Unknown(_)));
    let failure = failed(500, "").await;
    assert!(matches!(failure, Failure::Unknown(_)));
    assert!(!format!("{failure:?}").contains("canary"));
}

#[tokio::test]
async fn sent_messages_are_found_by_their_metadata() {
    let (app, fake) = slack(APP).await;
    let said = text("*Delete* it?");
    let buttons = [Button { label: "Yes".into(), value: "A-1:abc:yes".into() }];
    let mut question = part(&said, "C1/1700000000.000100");
    question.buttons = &buttons;
    let receipt = app.send(&question).await.unwrap();
    assert_eq!(receipt.vendor_id.as_deref(), Some("C1:1700000002.000200"));
    assert_eq!(app.reconcile(&question).await.unwrap(), Some(receipt));
    question.id = "d-2";
    assert_eq!(app.reconcile(&question).await.unwrap(), None);
    (question.buttons, question.replaces) = (&[], Some("C1:1700000002.000200"));
    app.send(&question).await.unwrap();
    let asked = &fake.lock().unwrap().asked;
    assert_eq!(
        (&asked[0].1["thread_ts"], &asked[0].1["channel"]),
        (&json!("1700000000.000100"), &json!("C1"))
    );
    assert_eq!(asked[0].1["blocks"][1]["elements"][0]["value"], "A-1:abc:yes");
    assert_eq!(asked[1].0, "conversations.replies");
    let last = asked.last().unwrap();
    assert_eq!(
        (last.0.as_str(), &last.1["ts"], &last.1["blocks"]),
        ("chat.update", &json!("1700000002.000200"), &json!([]))
    );
}

/// `signature.rs` tests this signature with the documented vector.
fn signed(body: &str, at: i64) -> HeaderMap {
    let key = muster_channels::Key::new(&SIGNING.into()).unwrap();
    let signature = key.sign_slack(&at.to_string(), body.as_bytes());
    [("x-slack-request-timestamp", at.to_string()), ("x-slack-signature", signature)]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

/// The form in which Slack sends button presses.
fn form_of(payload: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", payload).finish()
}

#[tokio::test]
async fn the_events_api() {
    let (app, _) = slack(SIGNING).await;
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let of =
        |body: &str, headers: &HeaderMap| app.receive(&RawRequest { headers, body: body.as_bytes() }, now);
    let challenge = json!({"type": "url_verification", "challenge": "3eZbrw"}).to_string();
    let received = of(&challenge, &signed(&challenge, 1_700_000_000)).unwrap();
    assert_eq!((received.events.len(), &received.reply.body[..]), (0, &b"3eZbrw"[..]));
    assert_eq!(of(&challenge, &HeaderMap::new()), Err(Refusal::Unsigned));
    assert_eq!(of(&challenge, &signed("{}", 1_700_000_000)), Err(Refusal::BadSignature));
    assert_eq!(of(&challenge, &signed(&challenge, 1_699_999_000)), Err(Refusal::Stale));
    let event = envelope("1", "hello")["payload"].to_string();
    let received = of(&event, &signed(&event, 1_700_000_000)).unwrap();
    // Every holder of the signing secret can send this, so it does not prove a person's decision.
    assert_eq!(
        (message(&received.events).text.as_str(), message(&received.events).proof),
        ("hello", Proof::Signed)
    );
    // People control an event's content, so a form inside of it must not be read.
    let forged = envelope("2", "forged")["payload"].to_string();
    let link = format!("https://a.test/?a&{}&z", form_of(&forged));
    let mut event = envelope("3", "true")["payload"].clone();
    event["event"]["blocks"] = json!([{"type": "rich_text", "elements": [{"type": "link", "url": link}]}]);
    let event = event.to_string();
    assert_eq!(message(&of(&event, &signed(&event, 1_700_000_000)).unwrap().events).text, "true");
    let tap = json!({"type": "block_actions", "trigger_id": "t1", "user": {"id": "U1"}, "channel": {"id": "D1"},
        "message": {"ts": "1.2"}, "actions": [{"value": "A-1:abc:yes"}]});
    let form = form_of(&tap.to_string());
    let received = of(&form, &signed(&form, 1_700_000_000)).unwrap();
    let [Event::Pressed(press)] = &received.events[..] else { panic!("{received:?}") };
    assert_eq!((press.value.as_str(), press.target.as_str(), press.is_private), ("A-1:abc:yes", "D1", true));
    let (socket, _) = slack(APP).await;
    assert_eq!(
        socket.receive(&RawRequest { headers: &HeaderMap::new(), body: b"{}" }, now),
        Err(Refusal::NotConfigured)
    );
}

#[tokio::test]
async fn files_both_ways() {
    let (app, fake) = slack(APP).await;
    let at = fake.lock().unwrap().at.unwrap();
    let remote = |url: String| RemoteFile {
        name: "a.txt".into(),
        media_type: String::new(),
        size: None,
        content: Content::There(url),
    };
    let mut bytes = Vec::new();
    assert_eq!(app.fetch(&remote(format!("http://{at}/files/a.txt")), &mut bytes, 10).await, Ok(3));
    // The token is sent to no other host.
    for elsewhere in ["http://127.0.0.1:1/files/a.txt", "https://files.slack.com.evil.test/a", "x"] {
        assert!(
            matches!(
                app.fetch(&remote(elsewhere.to_owned()), &mut bytes, 10).await,
                Err(Failure::Refused(_))
            ),
            "{elsewhere}"
        );
    }
    let (none, files) = (
        text(""),
        [Attachment { name: "b.txt".into(), media_type: "text/plain".into(), content: "bytes of b".into() }],
    );
    let mut file = part(&none, "C1/1.2");
    file.files = &files;
    app.send(&file).await.unwrap();
    let fake = fake.lock().unwrap();
    assert_eq!(fake.uploaded, ["bytes of b"]);
    let (method, shown) = fake.asked.last().unwrap();
    assert_eq!(
        (method.as_str(), &shown["thread_ts"], &shown["files"][0]["id"]),
        ("files.completeUploadExternal", &json!("1.2"), &json!("F1"))
    );
}

#[tokio::test]
async fn a_reaction_is_put_once_and_an_unknown_emoji_is_named() {
    let (app, fake) = slack(APP).await;
    let received = ["C1:1700000000.000100".to_owned()];
    let react = async |emoji: &str| {
        let arguments = json!({"emoji": emoji});
        let (id, name, target) = ("d-1", "react", "C1/1.2");
        app.act(&ActionCall { id, name, arguments: &arguments, target, received: &received }).await
    };
    for emoji in ["eyes", ":eyes:"] {
        assert_eq!(react(emoji).await, Ok(Receipt::default()));
    }
    let expected = json!({"channel": "C1", "timestamp": "1700000000.000100", "name": "eyes"});
    assert_eq!(fake.lock().unwrap().asked, vec![("reactions.add".to_owned(), expected); 2]);
    let Err(Failure::Refused(cause)) = react("👀").await else { panic!() };
    assert_eq!(cause.as_str(), "Slack has no emoji \"👀\". Give its name, such as thumbsup.");
    fake.lock().unwrap().answers.push_back((200, json!({"ok": false, "error": "message_not_found"})));
    let Err(Failure::Refused(cause)) = react("eyes").await else { panic!() };
    assert_eq!(cause.as_str(), "Slack: message_not_found");
}
