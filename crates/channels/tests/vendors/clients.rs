//! Runs the leading client libraries against the fake vendors, and compares their requests with those of our
//! transports.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use axum::http::HeaderMap;
use jiff::Timestamp;
use muster_channels::{
    ActionCall, Attachment, Button, ButtonPress, Config, Content, Event, Origin, Part, Proof, RawRequest,
    Receipt, Refusal, RemoteFile, Rendered, SlackConfig, TelegramConfig, Transport, open,
};
use serde_json::{Value, json};

use crate::{
    discord::{begun, bot as discord_bot, listen, until},
    drive::at_google,
    fakes::{
        discord::{self, discord},
        drive::{self, drive},
        github,
        slack::{APP, BOT, envelope, slack},
        telegram::{TOKEN, refusal, said, telegram},
    },
    github::installation,
    peers::{json_lines, node, on_this_machine, peer},
    support::{SinkCall, TestSink, message, open_network, part, text},
};

const WEBHOOK: &str = "https://m.test/webhooks/telegram/abc";
const SIGNING: &str = "8f742231b10e8888abcd99yyyzzz85a5";

/// Normalizes a request so that JSON and forms compare equal: scalars become strings, and null and empty lists are
/// removed.
fn loosely(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_something = |value: &Value| !value.is_null() && *value != json!([]);
            let fields = fields.into_iter().filter(|(_, value)| is_something(value));
            fields.map(|(name, value)| (name, loosely(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(loosely).collect(),
        Value::Number(number) => number.to_string().into(),
        other => other,
    }
}

fn loosely_all(asked: &mut Vec<(String, Value)>) -> Vec<(String, Value)> {
    asked.drain(..).map(|(method, asked)| (method, loosely(asked))).collect()
}

/// Sends all requests of our Telegram transport in the order of `telegram_bot.py`.
async fn talk_to_telegram(at: SocketAddr) {
    let config = TelegramConfig { token: TOKEN.into(), webhook_secret: "our-secret".into(), username: None };
    let bot = open(Config::Telegram(config), &open_network(Some(at)));
    bot.probe().await.unwrap();
    let (said, buttons) =
        (question("<b>Delete</b> it?"), [Button { label: "Yes".into(), value: "A-1:abc:yes".into() }]);
    let asking = Part { buttons: &buttons, reply_to: Some("-100:3"), ..part(&said, "-100/9") };
    let receipt = bot.send(&asking).await.unwrap();
    let done = text("Deleted");
    let edit =
        Part { reply_to: Some("-100:3"), replaces: receipt.vendor_id.as_deref(), ..part(&done, "-100") };
    bot.send(&edit).await.unwrap();
    let (none, files) = (text(""), [file()]);
    bot.send(&Part { files: &files, reply_to: Some("5:3"), ..part(&none, "5") }).await.unwrap();
    bot.typing("5").await.unwrap();
    react(&*bot, "👀", "-100/9", &receipt).await;
    bot.fetch(&remote("f1"), &mut Vec::new(), 100).await.unwrap();
    bot.answer(&press("5", "q9"), "Done").await.unwrap();
    bot.register(Some(WEBHOOK)).await.unwrap();
    assert!(bot.listen(None, &TestSink::new(0).0).await.is_err());
    bot.register(None).await.unwrap();
    // Only once, because the sink stores nothing.
    assert!(bot.listen(None, &TestSink::new(0).0).await.is_err());
}

/// Puts an emoji on the message of this receipt.
async fn react(transport: &dyn Transport, emoji: &str, target: &str, receipt: &Receipt) {
    let (arguments, received) = (json!({"emoji": emoji}), [receipt.vendor_id.clone().unwrap()]);
    let call = ActionCall { id: "d-3", name: "react", arguments: &arguments, target, received: &received };
    transport.act(&call).await.unwrap();
}

fn question(html: &str) -> Rendered {
    Rendered { text: html.to_owned(), plain: String::new() }
}

fn file() -> Attachment {
    Attachment { name: "b.txt".into(), media_type: "text/plain".into(), content: "bytes of b".into() }
}

fn remote(word: &str) -> RemoteFile {
    let (name, media_type) = (String::new(), String::new());
    RemoteFile { name, media_type, size: None, content: Content::There(word.to_owned()) }
}

fn press(target: &str, reply_to: &str) -> ButtonPress {
    ButtonPress {
        key: String::new(),
        origin: Origin { id: "5".into(), place: None, name: None },
        proof: Proof::Vendor,
        is_private: true,
        target: target.to_owned(),
        vendor_id: None,
        value: String::new(),
        reply_to: reply_to.to_owned(),
    }
}

#[tokio::test]
async fn python_telegram_bot_sends_the_same_requests() {
    let open = async || {
        let (address, fake) = telegram().await;
        fake.lock().unwrap().updates = vec![said(10, "one"), said(11, "two")];
        (address, fake)
    };
    let (address, fake) = open().await;
    talk_to_telegram(address).await;
    let ours = loosely_all(&mut fake.lock().unwrap().asked);

    // A new server, because message ids must start from the beginning.
    let (address, fake) = open().await;
    let mut client = peer("telegram_bot.py");
    client.args([&format!("http://{address}"), TOKEN]);
    let seen = json_lines(client, "").await;
    let mut theirs = loosely_all(&mut fake.lock().unwrap().asked);
    // The library confirms the last updates.
    let confirmed = theirs.pop().unwrap();
    assert_eq!((confirmed.0.as_str(), &confirmed.1["offset"]), ("getUpdates", &json!("12")));
    assert_eq!(ours, theirs);

    let expected = [
        json!({"id": 7, "username": "muster_bot", "reads_all": false}),
        json!({"chat": -100, "message": 42, "text": "<b>Delete</b> it?"}),
        json!({"file": "abc"}),
        json!({"error": "Conflict", "wait": null, "chat": null}),
        json!({"updates": [[10, "one", 5], [11, "two", 5]]}),
        json!({"updates": []}),
        json!({"error": "InvalidToken", "wait": null, "chat": null}),
    ];
    assert_eq!(seen, expected);
}

/// The samples have only fields known to the library, except those of earlier and later versions of the Bot API.
#[tokio::test]
async fn python_telegram_bot_reads_our_samples() {
    let folder = crate::peers::file("tests/samples/telegram");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_sample = |path: &PathBuf| !path.to_string_lossy().ends_with(".expected.json");
    let mut files: Vec<_> = files.filter(is_sample).collect();
    files.sort();
    let mut client = peer("telegram_samples.py");
    client.args(&files);
    let read = json_lines(client, "").await;
    assert_eq!(read.len(), files.len());
    let unknown: Vec<_> =
        read.iter().filter(|read| read.as_object().unwrap().values().any(|of| *of != json!([]))).collect();
    let expected = [
        json!({"ephemeral_command_is_refused": ["ephemeral_message_id", "receiver_user"]}),
        json!({"forward_from_user": ["forward_date", "forward_from"]}),
        json!({"forward_old_fields":
            ["forward_date", "forward_from_chat", "forward_from_message_id", "forward_signature"]}),
        json!({"service_new_member_is_nothing": ["new_chat_member", "new_chat_participant"]}),
        json!({"unknown_kind_of_the_future": ["hologram"]}),
    ];
    assert_eq!(unknown, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn python_telegram_bot_reads_errors() {
    let (address, fake) = telegram().await;
    let limited = json!({"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 9",
        "parameters": {"retry_after": 9}});
    let moved = json!({"ok": false, "error_code": 400, "description": "Bad Request: group chat was upgraded",
        "parameters": {"migrate_to_chat_id": -1009}});
    let read = |error: &str, wait: Value, chat: Value| json!({"error": error, "wait": wait, "chat": chat});
    let refusals = [
        ((429, limited), read("RetryAfter", json!(9.0), Value::Null)),
        ((400, moved), read("ChatMigrated", Value::Null, json!(-1009))),
        (refusal(403, "Forbidden: bot was blocked by the user"), read("Forbidden", Value::Null, Value::Null)),
        (refusal(400, "Bad Request: chat not found"), read("BadRequest", Value::Null, Value::Null)),
        (refusal(502, "Bad Gateway"), read("NetworkError", Value::Null, Value::Null)),
    ];
    let (answers, expected): (Vec<_>, Vec<_>) = refusals.into_iter().unzip();
    let mut client = peer("telegram_bot.py");
    client.args([&format!("http://{address}"), TOKEN]).args(answers.iter().map(|_| "x"));
    fake.lock().unwrap().answers = answers.into();
    assert_eq!(json_lines(client, "").await, expected);
}

fn app(at: SocketAddr, second: &str) -> Arc<dyn Transport> {
    let config = SlackConfig::parse(&format!("{BOT} {second}")).unwrap();
    open(Config::Slack(config), &open_network(Some(at)))
}

/// Sends all requests of our Slack transport in the order of `slack.py`.
async fn talk_to_slack(at: SocketAddr) {
    let app = app(at, APP);
    app.probe().await.unwrap();
    let said = text("*Delete* it?");
    let buttons = [Button { label: "Yes".into(), value: "A-1:abc:yes".into() }];
    let asking = Part { buttons: &buttons, ..part(&said, "C1/1700000000.000100") };
    let receipt = app.send(&asking).await.unwrap();
    assert_eq!(app.reconcile(&asking).await.unwrap().as_ref(), Some(&receipt));
    let done = text("Deleted");
    app.send(&Part { replaces: receipt.vendor_id.as_deref(), ..part(&done, "C1") }).await.unwrap();
    let (none, files) = (text(""), [file()]);
    app.send(&Part { files: &files, ..part(&none, "C1/1.2") }).await.unwrap();
    app.answer(&press("C1", "U1"), "Done").await.unwrap();
    // The second time it is there already.
    for _ in 0..2 {
        react(&*app, "eyes", "C1/1.2", &receipt).await;
    }
    app.typing("C1/1.2").await.unwrap();
    // Slack supports it only in threads.
    app.typing("C1").await.unwrap();
}

#[tokio::test]
async fn slack_sdk_sends_the_same_requests() {
    let ((address, us), (another, them)) = (slack().await, slack().await);
    talk_to_slack(address).await;
    let mut client = peer("slack.py");
    client.args(["talk", &format!("http://{another}"), BOT, APP]);
    let seen = json_lines(client, "").await;
    let (mut us, mut them) = (us.lock().unwrap(), them.lock().unwrap());
    assert_eq!(loosely_all(&mut us.asked), loosely_all(&mut them.asked));
    assert_eq!((&us.uploaded, us.uploaded.len()), (&them.uploaded, 1));
    let expected = [
        json!({"user": "UBOT", "bot": "BBOT", "name": "muster"}),
        json!({"channel": "C1", "ts": "1700000002.000200"}),
        json!({"found": ["1700000002.000200"]}),
        json!({"again": "already_reacted"}),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn slack_sdk_reads_errors() {
    let (address, fake) = slack().await;
    let no = |error: &str| json!({"ok": false, "error": error});
    fake.lock().unwrap().answers = [(200, no("not_in_channel")), (429, no("ratelimited"))].into();
    let mut client = peer("slack.py");
    client.args(["refused", &format!("http://{address}"), BOT, "2"]);
    let expected = [
        json!({"error": "not_in_channel", "status": 200, "wait": "11"}),
        json!({"error": "ratelimited", "status": 429, "wait": "11"}),
    ];
    assert_eq!(json_lines(client, "").await, expected);
    let mut stranger = peer("slack.py");
    stranger.args(["refused", &format!("http://{address}"), "xoxb-another", "1"]);
    assert_eq!(json_lines(stranger, "").await[0]["error"], "invalid_auth");
}

#[tokio::test]
async fn slack_sdk_listens_by_socket_mode() {
    let (address, fake) = slack().await;
    fake.lock().unwrap().envelopes = vec![envelope("1", "one"), envelope("2", "two")];
    let mut client = peer("slack.py");
    client.args(["listen", &format!("http://{address}"), BOT, APP]);
    let heard =
        |id: &str, said: &str| json!({"type": "events_api", "envelope": id, "text": said, "user": "U1"});
    assert_eq!(
        json_lines(client, "").await,
        [heard("1", "one"), heard("2", "two"), json!({"renewed": true})]
    );
    assert!(fake.lock().unwrap().envelopes.is_empty());
}

#[tokio::test]
async fn signatures_of_slack_sdk_are_valid() {
    let body = envelope("1", "hello, wörld")["payload"].to_string();
    let mut client = peer("slack.py");
    client.args(["sign", "", SIGNING, &body]);
    let signed = json_lines(client, "").await;
    let headers = [
        ("x-slack-request-timestamp", "1700000000"),
        ("x-slack-signature", signed[0]["signed"].as_str().unwrap()),
    ];
    let headers: HeaderMap =
        headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let (at, now) = ("127.0.0.1:9".parse().unwrap(), Timestamp::from_second(1_700_000_000).unwrap());
    let of = |body: &[u8]| app(at, SIGNING).receive(&RawRequest { headers: &headers, body }, now);
    assert_eq!(message(&of(body.as_bytes()).unwrap().events).text, "hello, wörld");
    assert_eq!(of(&body.as_bytes()[1..]), Err(Refusal::BadSignature));
}

/// Sends all requests of our Discord transport in the order of `discord.mjs`.
async fn talk_to_discord(at: SocketAddr, fake: &discord::Shared) {
    let bot = discord_bot(discord::TOKEN, Some(at));
    let said = text("**Delete** it?");
    let buttons = [Button { label: "Yes".into(), value: "A-1:abc:yes".into() }];
    let asking = Part { buttons: &buttons, reply_to: Some("900"), ..part(&said, "300") };
    let receipt = bot.send(&asking).await.unwrap();
    assert_eq!(bot.send(&asking).await.unwrap(), receipt);
    let done = text("Deleted");
    bot.send(&Part { replaces: receipt.vendor_id.as_deref(), ..part(&done, "300") }).await.unwrap();
    // The second time it is there already.
    for _ in 0..2 {
        react(&*bot, "👀", "300", &receipt).await;
    }
    let (none, files) = (text(""), [file()]);
    bot.send(&Part { id: "d-2", files: &files, ..part(&none, "50") }).await.unwrap();
    bot.typing("50").await.unwrap();
    let (sink, mut calls) = TestSink::new(9);
    let press = listen(&*bot, None, &sink, async {
        begun(fake, 1).await;
        fake.lock().unwrap().happens("INTERACTION_CREATE", &discord::tapped(800, "A-1:abc:yes"));
        loop {
            if let Some(SinkCall::Admitted(events, _)) = calls.recv().await
                && let [Event::Pressed(press)] = &events[..]
            {
                return press.clone();
            }
        }
    })
    .await;
    bot.answer(&press, "Done").await.unwrap();
}

/// What happens in Discord while `discord.mjs` runs: after its requests, messages come over a resumed session, then a tap.
async fn happen_in_discord(fake: &discord::Shared) {
    until(|| !fake.lock().unwrap().bodies("GET channels/50/messages").is_empty()).await;
    {
        let mut fake = fake.lock().unwrap();
        let mut look = discord::said(2001, 300, "<@7> look");
        (look["type"], look["referenced_message"]) = (json!(19), Value::Null);
        look["message_reference"] =
            json!({"type": 0, "message_id": "900", "channel_id": "300", "guild_id": "100"});
        look["attachments"] = json!([{"id": "1", "filename": "a.txt", "size": 3, "url": "https://a.test/a.txt", "proxy_url": "x"}]);
        fake.cut();
        fake.happens("MESSAGE_CREATE", &look);
        fake.says(2002, 50, "two");
    }
    until(|| fake.lock().unwrap().resumed.len() == 1).await;
    fake.lock().unwrap().happens("INTERACTION_CREATE", &discord::tapped(800, "A-1:abc:yes"));
}

#[tokio::test]
async fn discord_js_sends_the_same_requests() {
    let ((address, us), (another, them)) = (discord().await, discord().await);
    them.lock().unwrap().history.push(discord::said(1500, 50, "one"));
    let client = || on_this_machine(node("channels", "discord.mjs"));
    let mut talking = client();
    talking.args([&format!("http://{another}"), discord::TOKEN]);
    let (seen, ()) = tokio::join!(json_lines(talking, ""), happen_in_discord(&them));
    let heard = |said: &str, place: &str, is_private: bool| {
        let (guild, answers, files) =
            if is_private { (None, None, vec![]) } else { (Some("100"), Some("900"), vec!["a.txt"]) };
        json!({"said": said, "by": "Ada", "in": place, "guild": guild, "private": is_private, "names": !is_private,
            "answers": answers, "files": files})
    };
    let expected = [
        json!({"ready": "muster_bot", "id": "7", "name": "muster_bot"}),
        json!({"application": "70", "readsMessages": true}),
        json!({"thread": "Order 7", "parent": "200", "isThread": true}),
        json!({"sent": "**Delete** it?", "to": "300", "once": true}),
        json!({"edited": "Deleted", "buttons": 0}),
        json!({"file": "b.txt"}),
        json!({"missed": ["one"]}),
        heard("<@7> look", "300", false),
        heard("two", "50", true),
        json!({"resumed": true}),
        json!({"tapped": "A-1:abc:yes", "by": "5", "private": true}),
    ];
    assert_eq!(seen, expected);
    let mut refused = client();
    refused.args([&format!("http://{another}"), "Nw.another"]);
    assert_eq!(json_lines(refused, "").await, [json!({"refused": "TokenInvalid"})]);

    talk_to_discord(address, &us).await;
    let [ours, theirs] = [us, them].map(|fake| {
        let mut asked = loosely_all(&mut fake.lock().unwrap().asked);
        asked.retain(|(request, _)| !request.starts_with("GET"));
        asked
    });
    let requests =
        |asked: &[(String, Value)]| asked.iter().map(|(request, _)| request.clone()).collect::<Vec<_>>();
    assert_eq!(requests(&ours), requests(&theirs));
    // The library also sends defaults.
    for ((request, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        for (field, value) in ours.as_object().unwrap().iter().filter(|(field, _)| *field != "nonce") {
            assert_eq!(*value, theirs[field], "{field} of {request}");
        }
    }
}

/// Sends all requests of our transport in the order of `github.mjs`.
async fn talk_to_github(at: SocketAddr) {
    let app = installation(7, Some(at));
    app.probe().await.unwrap();
    let said = text("On it");
    for target in ["acme/shop#12", "acme/shop#12/80"] {
        let part = part(&said, target);
        app.send(&part).await.unwrap();
        if target == "acme/shop#12" {
            assert!(app.reconcile(&part).await.unwrap().is_some());
        }
    }
    let comment = Receipt { vendor_id: Some("acme/shop/issues/comments/80".to_owned()), target: None };
    react(&*app, "👀", "acme/shop#12", &comment).await;
    let arguments = json!({"summary": "Good", "comments": [{"path": "src/a.rs", "line": 7, "text": "Why?"}]});
    let call = ActionCall {
        id: "d-4",
        name: "review",
        arguments: &arguments,
        target: "acme/shop#12",
        received: &[],
    };
    app.act(&call).await.unwrap();
    let (sink, mut calls) = TestSink::new(9);
    let heard = async {
        loop {
            if let Some(SinkCall::Admitted(events, _)) = calls.recv().await
                && let [Event::Message(message)] = &events[..]
            {
                return message.text.clone();
            }
        }
    };
    assert_eq!(listen(&*app, None, &sink, heard).await, "look");
}

#[tokio::test]
async fn octokit_sends_the_same_requests() {
    let ((address, us), (another, them)) = (github::github().await, github::github().await);
    for fake in [&us, &them] {
        let mut fake = fake.lock().unwrap();
        fake.happens("issue_comment", &github::commented(80, "@muster look"), 502);
        fake.happens("issue_comment", &github::commented(81, "@muster seen"), 200);
    }
    let mut client = on_this_machine(node("channels", "github.mjs"));
    client.args([&format!("http://{another}/api"), github::CLIENT, github::KEY, github::PERSON]);
    let seen = json_lines(client, "").await;
    let expected = [
        json!({"installations": [[7, "acme"]]}),
        json!({"repositories": ["acme/shop"], "of": 1}),
        json!({"app": "muster"}),
        json!({"comment": "On it\n\n<!-- muster:d-1 -->", "by": "muster[bot]"}),
        json!({"found": 1}),
        json!({"reaction": "eyes"}),
        json!({"review": "COMMENTED"}),
        json!({"missed": "@muster look", "guid": true}),
        json!({"refused": 401}),
    ];
    assert_eq!(seen, expected);
    talk_to_github(address).await;
    let [ours, mut theirs] = [us, them].map(|fake| loosely_all(&mut fake.lock().unwrap().asked));
    // That of a stranger.
    theirs.pop();
    assert_eq!(ours, theirs);
}

/// Sends all requests of our transport for Google Drive in the order of `drive.mjs`.
async fn talk_to_drive(at: SocketAddr) {
    let drive = at_google(at, drive::TOKEN);
    drive.probe().await.unwrap();
    let (none, files) = (text(""), [file()]);
    let put = drive.send(&Part { id: "d-2", files: &files, ..part(&none, "F1") }).await.unwrap();
    let (first, second) = (text("Read"), text("Right"));
    let receipt = drive.send(&part(&first, put.vendor_id.as_ref().unwrap())).await.unwrap();
    drive.send(&part(&second, receipt.target.as_ref().unwrap())).await.unwrap();
}

#[tokio::test]
async fn googles_client_sends_the_same_requests() {
    let ((address, us), (another, them)) = (drive().await, drive().await);
    let client = |token: &str| {
        let mut client = on_this_machine(node("channels", "drive.mjs"));
        client.args([&format!("http://{another}"), token]);
        client
    };
    let expected = [
        json!({"account": "agent@example.test", "me": true}),
        json!({"folder": "Reports", "type": "application/vnd.google-apps.folder"}),
        json!({"changes": 1, "moved": true}),
        json!({"files": ["2026", "b.txt"]}),
        json!({"put": ["b.txt"]}),
        json!({"bytes": "bytes of b", "text": "bytes of b"}),
        json!({"comment": "Read", "replies": ["Right"], "me": true}),
        json!({"comments": 1}),
    ];
    assert_eq!(json_lines(client(drive::TOKEN), "").await, expected);
    assert_eq!(json_lines(client("ya29.another"), "").await, [json!({"refused": 401})]);
    talk_to_drive(address).await;
    let [ours, theirs] = [us, them].map(|fake| {
        let mut asked = std::mem::take(&mut fake.lock().unwrap().asked);
        asked.retain(|(request, _)| request.starts_with("POST"));
        asked
    });
    assert_eq!(ours, theirs);
}
