//! Tests of the Telegram transport against the fake Telegram.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::http::HeaderMap;
use jiff::Timestamp;
use muster_channels::{
    ActionCall, Attachment, Button, ButtonPress, Config, Content, Cursor, Event, Failure, Link, Proof,
    RawRequest, Receipt, Refusal, RemoteFile, Rendered, Scope, TelegramConfig, Transport, open,
};
use serde_json::{Value, json};

use crate::{
    fakes::{
        self,
        telegram::{Shared, TOKEN, refusal, said},
    },
    support::{SinkCall, TestSink, message, open_network, part, text},
};

async fn telegram() -> (Arc<dyn Transport>, Shared) {
    let (address, fake) = fakes::telegram::telegram().await;
    (bot(TOKEN, Some(address)), fake)
}

fn bot(token: &str, at: Option<SocketAddr>) -> Arc<dyn Transport> {
    let config = TelegramConfig {
        token: token.into(),
        webhook_secret: "our-secret".into(),
        username: Some("muster_bot".to_owned()),
    };
    open(Config::Telegram(config), &open_network(at))
}

#[tokio::test]
async fn the_probe_returns_the_bots_identity() {
    let (bot, _) = telegram().await;
    let identity = bot.probe().await.unwrap();
    assert_eq!((identity.self_ids, identity.handle.as_deref()), (vec!["7".to_owned()], Some("muster_bot")));
    assert!(identity.warnings[0].contains("setprivacy"));
}

#[tokio::test]
async fn updates_are_confirmed_after_storage() {
    let (bot, fake) = telegram().await;
    fake.lock().unwrap().updates =
        vec![said(10, "one"), json!({"update_id": 11, "message": 5}), said(12, "two")];
    // The first commit fails, so nothing is confirmed.
    let (sink, mut calls) = TestSink::new(0);
    assert!(matches!(bot.listen(None, &sink).await, Err(Failure::NotSent(_))));
    assert_eq!(calls.recv().await, Some(SinkCall::Link(Link::Up)));
    let Some(SinkCall::Skipped(skipped)) = calls.recv().await else { panic!() };
    assert!(skipped.vendor_id == "11" && skipped.reason.as_str().contains("not an update"), "{skipped:?}");
    let Some(SinkCall::Admitted(first, cursor)) = calls.recv().await else { panic!() };
    assert_eq!((first.len(), cursor), (2, Some(Cursor("13".to_owned()))));
    assert_eq!(fake.lock().unwrap().updates.len(), 3);

    // The next listener gets the same updates with the same keys, and confirms them with its next request.
    let (sink, mut calls) = TestSink::new(9);
    let listening = bot.listen(None, &sink);
    let confirmed = async {
        let again = loop {
            if let Some(SinkCall::Admitted(again, _)) = calls.recv().await {
                break again;
            }
        };
        assert_eq!(again, first);
        while !fake.lock().unwrap().updates.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = listening => panic!("{ended:?}"),
        () = confirmed => {}
    }
    let Event::Message(one) = &first[0] else { panic!() };
    assert_eq!((one.text.as_str(), one.proof, one.thread.is_private), ("one", Proof::Vendor, true));
}

#[tokio::test]
async fn reset_update_ids_are_followed() {
    let (bot, fake) = telegram().await;
    fake.lock().unwrap().updates = vec![said(500, "one"), said(501, "two")];
    let (sink, mut calls) = TestSink::new(9);
    let listening = bot.listen(Some(Cursor("900000".to_owned())), &sink);
    let seen = async {
        assert_eq!(calls.recv().await, Some(SinkCall::Link(Link::Up)));
        let Some(SinkCall::Admitted(events, cursor)) = calls.recv().await else { panic!() };
        assert_eq!((events.len(), cursor), (2, Some(Cursor("502".to_owned()))));
        while !fake.lock().unwrap().updates.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = listening => panic!("{ended:?}"),
        () = seen => {}
    }
}

#[tokio::test]
async fn errors_map_to_failures() {
    let (bot, fake) = telegram().await;
    let failure = async |answer: (u16, Value)| {
        fake.lock().unwrap().answers.push_back(answer);
        bot.send(&part(&text("x"), "5")).await.unwrap_err()
    };
    let limited =
        (429, json!({"ok": false, "description": "Too Many Requests", "parameters": {"retry_after": 9}}));
    assert!(
        matches!(failure(limited).await, Failure::RateLimited { wait, scope: Scope::Target, .. } if wait == Duration::from_secs(9))
    );
    // An error for one chat must not disable the bot.
    assert!(matches!(
        failure(refusal(403, "Forbidden: bot was blocked by the user")).await,
        Failure::TargetGone(_)
    ));
    assert!(matches!(failure(refusal(400, "Bad Request: chat not found")).await, Failure::TargetGone(_)));
    assert!(matches!(failure(refusal(400, "Bad Request: message is too long")).await, Failure::Refused(_)));
    assert!(matches!(failure(refusal(401, "Unauthorized")).await, Failure::Credentials(_)));
    assert!(matches!(failure(refusal(502, "Bad Gateway")).await, Failure::Unknown(_)));
    let moved =
        (400, json!({"ok": false, "description": "upgraded", "parameters": {"migrate_to_chat_id": -1009}}));
    assert_eq!(failure(moved).await, Failure::TargetMoved { to: "-1009".into() });
    assert!(matches!(bot.send(&part(&text("x"), "ada")).await, Err(Failure::Refused(_))));
    fake.lock().unwrap().answers.push_back(refusal(409, "Conflict: terminated by other getUpdates request"));
    assert!(matches!(bot.listen(None, &TestSink::new(1).0).await, Err(Failure::Taken(_))));
}

/// The server reads the message and closes the connection, so it may have been sent.
#[tokio::test]
async fn a_lost_answer_is_unknown() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let bot = bot(TOKEN, Some(listener.local_addr().unwrap()));
    let taken = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let length = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await.unwrap();
        drop(stream);
        // The message must not be sent again.
        let again = tokio::time::timeout(Duration::from_millis(200), listener.accept()).await;
        (length, again.is_ok())
    });
    let failure = bot.send(&part(&text("x"), "5")).await.unwrap_err();
    assert!(matches!(failure, Failure::Unknown(_)), "{failure}");
    let (length, again) = taken.await.unwrap();
    assert!(length > 0 && !again);
    assert!(!bot.traits().idempotent_send);
}

#[tokio::test]
async fn refused_markup_is_sent_as_plain_text() {
    let (bot, fake) = telegram().await;
    fake.lock()
        .unwrap()
        .answers
        .push_back(refusal(400, "Bad Request: can't parse entities: unsupported tag"));
    let text = Rendered { text: "<b>hi</b>".into(), plain: "hi".into() };
    let receipt = bot.send(&part(&text, "-100/9")).await.unwrap();
    assert_eq!(receipt.vendor_id.as_deref(), Some("-100:42"));
    let asked = &fake.lock().unwrap().asked;
    assert_eq!((&asked[0].1["text"], &asked[0].1["parse_mode"]), (&json!("<b>hi</b>"), &json!("HTML")));
    assert_eq!((&asked[1].1["text"], &asked[1].1["parse_mode"]), (&json!("hi"), &Value::Null));
    assert_eq!((&asked[1].1["chat_id"], &asked[1].1["message_thread_id"]), (&json!(-100), &json!(9)));
}

#[tokio::test]
async fn buttons_edits_and_taps() {
    let (bot, fake) = telegram().await;
    let said = text("Delete it?");
    let buttons = [Button { label: "Yes".into(), value: "A-1:abc:yes".into() }];
    let mut question = part(&said, "5");
    (question.buttons, question.reply_to) = (&buttons, Some("7/5:3"));
    let receipt = bot.send(&question).await.unwrap();
    assert_eq!(receipt.vendor_id.as_deref(), Some("7/5:42"));
    (question.buttons, question.replaces) = (&[], receipt.vendor_id.as_deref());
    bot.send(&question).await.unwrap();
    // Message ids of another bot are different.
    (question.reply_to, question.replaces) = (Some("9/5:3"), None);
    bot.send(&question).await.unwrap();
    question.replaces = Some("9/5:42");
    let refused = bot.send(&question).await.unwrap_err();
    assert!(matches!(refused, Failure::Refused(_)), "{refused}");
    {
        let asked = &fake.lock().unwrap().asked;
        let keyboard = json!({"inline_keyboard": [[{"text": "Yes", "callback_data": "A-1:abc:yes"}]]});
        assert_eq!(
            (&asked[0].1["reply_markup"], &asked[0].1["reply_parameters"]["message_id"]),
            (&keyboard, &json!(3))
        );
        assert_eq!((asked[1].0.as_str(), &asked[1].1["message_id"]), ("editMessageText", &json!(42)));
        assert_eq!(asked[1].1["reply_markup"], json!({"inline_keyboard": []}));
        assert_eq!((asked.len(), &asked[2].1["reply_parameters"]), (3, &Value::Null));
    }
    let update = json!({"update_id": 1, "callback_query": {"id": "q9", "from": {"id": 5, "first_name": "Ada"}, "data": "A-1:abc:yes",
        "message": {"message_id": 42, "date": 0, "chat": {"id": 5, "type": "private"}}}});
    let headers: HeaderMap =
        [("x-telegram-bot-api-secret-token".parse().unwrap(), "our-secret".parse().unwrap())]
            .into_iter()
            .collect();
    let body = update.to_string();
    let received =
        bot.receive(&RawRequest { headers: &headers, body: body.as_bytes() }, Timestamp::UNIX_EPOCH).unwrap();
    let [Event::Pressed(press)] = &received.events[..] else { panic!("{received:?}") };
    assert_eq!((press.value.as_str(), press.vendor_id.as_deref()), ("A-1:abc:yes", Some("7/5:42")));
    assert!(press.is_private && press.proof == Proof::Vendor);
    let press: &ButtonPress = press;
    bot.answer(press, "Done").await.unwrap();
    let asked = fake.lock().unwrap().asked.pop().unwrap();
    assert_eq!(asked, ("answerCallbackQuery".to_owned(), json!({"callback_query_id": "q9", "text": "Done"})));
}

#[tokio::test]
async fn the_webhook_needs_our_secret() {
    let (bot, fake) = telegram().await;
    let body = said(1, "hi").to_string();
    let of = |secret: Option<&str>| {
        let header = secret
            .map(|secret| ("x-telegram-bot-api-secret-token".parse().unwrap(), secret.parse().unwrap()));
        let headers: HeaderMap = header.into_iter().collect();
        bot.receive(&RawRequest { headers: &headers, body: body.as_bytes() }, Timestamp::UNIX_EPOCH)
    };
    assert_eq!(message(&of(Some("our-secret")).unwrap().events).text, "hi");
    assert_eq!(of(Some("another")), Err(Refusal::BadSignature));
    assert_eq!(of(None), Err(Refusal::Unsigned));
    assert_eq!(bot.register(Some("https://m.test/webhooks/telegram/abc")).await, Ok(true));
    assert_eq!(bot.register(None).await, Ok(false));
    let asked = &fake.lock().unwrap().asked;
    assert_eq!((asked[0].0.as_str(), &asked[0].1["secret_token"]), ("setWebhook", &json!("our-secret")));
    let updates =
        json!(["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"]);
    assert_eq!(asked[0].1["allowed_updates"], updates);
    assert_eq!(asked[2].0, "deleteWebhook");
}

#[tokio::test]
async fn an_unreadable_webhook_update_is_not_repeated() {
    let (bot, _) = telegram().await;
    let of = |body: &str| {
        let secret = ("x-telegram-bot-api-secret-token".parse().unwrap(), "our-secret".parse().unwrap());
        let headers: HeaderMap = [secret].into_iter().collect();
        bot.receive(&RawRequest { headers: &headers, body: body.as_bytes() }, Timestamp::UNIX_EPOCH)
    };
    let read = of(r#"{"update_id": 11, "message": 5}"#).unwrap();
    assert_eq!((read.events.len(), read.reply.status), (0, 200));
    assert!(matches!(of("not an update"), Err(Refusal::Malformed(_))));
}

#[tokio::test]
async fn an_unreachable_webhook_is_reported() {
    let (bot, fake) = telegram().await;
    let registered = async |waiting: u64| {
        let info =
            json!({"url": "x", "pending_update_count": waiting, "last_error_message": "Connection refused"});
        let answers = [json!(true), info].map(|result| (200, json!({"ok": true, "result": result})));
        fake.lock().unwrap().answers.extend(answers);
        bot.register(Some("https://m.test/webhooks/telegram/abc")).await
    };
    let failure = registered(1).await.unwrap_err();
    assert_eq!(failure.to_string(), "Telegram can't reach the webhook: Connection refused");
    // Telegram keeps reporting an error after the next success.
    assert_eq!(registered(0).await, Ok(true));
}

#[tokio::test]
async fn rate_limits_apply_to_a_chat_with_its_topics() {
    let (bot, _) = telegram().await;
    assert_eq!(["5", "-100/7", "-100"].map(|target| bot.chat(target)), ["5", "-100", "-100"]);
    assert_eq!(["5", "-100/7", "-100"].map(|target| bot.is_group(target)), [false, true, true]);
}

#[tokio::test]
async fn files_both_ways() {
    let (bot, fake) = telegram().await;
    let remote = RemoteFile {
        name: "a.txt".into(),
        media_type: "text/plain".into(),
        size: None,
        content: Content::There("f1".into()),
    };
    let mut bytes = Vec::new();
    assert_eq!(bot.fetch(&remote, &mut bytes, 100).await, Ok(3));
    assert_eq!(bytes, b"abc");
    for path in ["../../getMe", "http://elsewhere.test/", ""] {
        fake.lock().unwrap().answers.push_back((200, json!({"ok": true, "result": {"file_path": path}})));
        assert!(matches!(bot.fetch(&remote, &mut bytes, 100).await, Err(Failure::Refused(_))), "{path}");
    }
    let (none, files) = (
        text(""),
        [Attachment { name: "b.txt".into(), media_type: "text/plain".into(), content: "bytes of b".into() }],
    );
    let mut file = part(&none, "5");
    file.files = &files;
    bot.send(&file).await.unwrap();
    let (method, form) = fake.lock().unwrap().asked.pop().unwrap();
    assert_eq!(
        (method.as_str(), form),
        ("sendDocument", json!({"chat_id": "5", "document": "b.txt: bytes of b"}))
    );
}

#[tokio::test]
async fn the_token_is_in_no_error() {
    let closed = bot(TOKEN, None);
    let mut failures =
        vec![closed.send(&part(&text("x"), "5")).await.unwrap_err(), closed.probe().await.unwrap_err()];
    let (live, fake) = telegram().await;
    for answer in [refusal(404, &format!("Not Found: {TOKEN}")), refusal(500, "x")] {
        fake.lock().unwrap().answers.push_back(answer);
        failures.push(live.probe().await.unwrap_err());
    }
    assert!(matches!(failures[0], Failure::NotSent(_)), "{}", failures[0]);
    for failure in failures {
        assert!(!format!("{failure} {failure:?}").contains("canary"), "{failure:?}");
    }
    for malformed in ["", "abc", "7:a/../getMe", "7:a?b"] {
        assert!(matches!(bot(malformed, None).probe().await, Err(Failure::Credentials(_))), "{malformed}");
    }
}

#[tokio::test]
async fn reactions_are_to_messages_of_this_bot() {
    let (bot, fake) = telegram().await;
    let react = async |emoji: &str, message: &str| {
        let (arguments, received) = (json!({"emoji": emoji}), [message.to_owned()]);
        let (id, name, target) = ("d-1", "react", "-100/9");
        bot.act(&ActionCall { id, name, arguments: &arguments, target, received: &received }).await
    };
    // People write it with the mark that makes it an emoji.
    assert_eq!(react("❤\u{fe0f}", "-100:3").await, Ok(Receipt::default()));
    let reactions = json!([{"type": "emoji", "emoji": "❤"}]);
    let expected = json!({"chat_id": -100, "message_id": 3, "reaction": reactions});
    assert_eq!(fake.lock().unwrap().asked, [("setMessageReaction".to_owned(), expected)]);
    let Err(Failure::Refused(cause)) = react("🪗", "-100:3").await else { panic!() };
    assert_eq!(cause.as_str(), "Telegram has no reaction \"🪗\", or the chat does not allow it.");
    assert!(matches!(react("👀", "9/-100:3").await, Err(Failure::Refused(_))), "another bot's message");
}
