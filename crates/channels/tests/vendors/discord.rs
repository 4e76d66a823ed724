//! Tests of the Discord transport against the fake Discord.

use std::{future::pending, net::SocketAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use muster_channels::{
    ActionCall, Attachment, Button, Config, Content, Cursor, DiscordConfig, Event, Failure, Inbound, Link,
    Part, Proof, Receipt, RemoteFile, Scope, Transport, open,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    fakes::{
        self,
        discord::{Shared, TOKEN, refusal, said, tapped},
    },
    support::{SinkCall, TestSink, open_network, part, text},
};

async fn discord() -> (Arc<dyn Transport>, Shared) {
    let (address, fake) = fakes::discord::discord().await;
    (bot(TOKEN, Some(address)), fake)
}

pub fn bot(token: &str, at: Option<SocketAddr>) -> Arc<dyn Transport> {
    open(Config::Discord(DiscordConfig { token: token.into() }), &open_network(at))
}

/// Waits until this many sessions have begun.
pub async fn begun(fake: &Shared, count: u64) {
    until(|| fake.lock().unwrap().begun == count).await;
}

pub async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Listens until `done`, and returns its outcome.
pub async fn listen<T>(
    bot: &dyn Transport,
    cursor: Option<Cursor>,
    sink: &TestSink,
    done: impl Future<Output = T>,
) -> T {
    tokio::select! {
        ended = bot.listen(cursor, sink) => panic!("{ended:?}"),
        done = done => done,
    }
}

/// Waits for a call to a vendor that hangs. Once it does, time passes at once.
pub async fn outwait<T>(call: impl Future<Output = T>, does_hang: impl Fn() -> bool) -> T {
    let skipping = async {
        until(does_hang).await;
        tokio::time::pause();
        pending().await
    };
    let ended = tokio::select! {
        ended = call => ended,
        never = skipping => never,
    };
    tokio::time::resume();
    ended
}

/// The reason for the next interruption.
async fn interruption(calls: &mut UnboundedReceiver<SinkCall>) -> String {
    loop {
        if let SinkCall::Link(Link::Down(cause)) = calls.recv().await.unwrap() {
            return cause.to_string();
        }
    }
}

/// The next message, with its cursor.
async fn next(calls: &mut UnboundedReceiver<SinkCall>) -> (Inbound, Option<Cursor>) {
    loop {
        if let SinkCall::Admitted(mut events, cursor) = calls.recv().await.unwrap()
            && let Some(Event::Message(message)) = events.pop()
        {
            return (*message, cursor);
        }
    }
}

/// A position after the message "one" in the direct chat, which is 2001.
async fn after_one(bot: &dyn Transport, fake: &Shared) -> Cursor {
    let (sink, mut calls) = TestSink::new(9);
    let read = async {
        begun(fake, 1).await;
        fake.lock().unwrap().says(2001, 50, "one");
        let (one, cursor) = next(&mut calls).await;
        assert_eq!((one.text.as_str(), one.proof, one.thread.is_private), ("one", Proof::Vendor, true));
        cursor.unwrap()
    };
    listen(bot, None, &sink, read).await
}

#[tokio::test]
async fn the_probe_returns_the_bots_identity() {
    let (bot, fake) = discord().await;
    let identity = bot.probe().await.unwrap();
    assert_eq!((identity.self_ids, identity.handle.as_deref()), (vec!["7".to_owned()], Some("muster_bot")));
    let invite = "https://discord.com/oauth2/authorize?client_id=70&scope=bot&permissions=274878008384";
    assert_eq!((identity.invite_url.as_deref(), identity.warnings.len()), (Some(invite), 0));
    let answers = [json!({"id": "7"}), json!({"id": "70", "flags": 0})];
    fake.lock().unwrap().answers = answers.map(|answer| (200, answer)).into();
    assert!(bot.probe().await.unwrap().warnings[0].contains("Message Content Intent"));
}

#[tokio::test]
async fn a_session_is_resumed_after_the_last_stored_event() {
    let (bot, fake) = discord().await;
    // The sink stores the beginning of the session and one message, and refuses the other.
    let (sink, mut calls) = TestSink::new(2);
    let saying = async {
        begun(&fake, 1).await;
        let mut fake = fake.lock().unwrap();
        fake.says(2001, 50, "one");
        fake.says(2002, 50, "two");
    };
    let (ended, ()) = tokio::join!(bot.listen(None, &sink), saying);
    assert!(matches!(ended, Err(Failure::NotSent(_))), "{ended:?}");
    let (one, cursor) = next(&mut calls).await;
    assert_eq!(one.text, "one");
    let (sink, mut calls) = TestSink::new(9);
    let (two, _) = listen(&*bot, cursor, &sink, next(&mut calls)).await;
    assert_eq!((two.text.as_str(), two.key.as_deref()), ("two", Some("2002")));
    let fake = fake.lock().unwrap();
    assert_eq!((&fake.resumed[..], fake.begun), (&[2][..], 1));
}

#[tokio::test]
async fn after_a_lost_session_missed_messages_are_fetched() {
    let (bot, fake) = discord().await;
    let cursor = after_one(&*bot, &fake).await;
    {
        let mut fake = fake.lock().unwrap();
        fake.end_session();
        fake.history.extend((0..150).map(|n| said(3000 + n, 50, &format!("missed {n}"))));
        // No one has addressed the bot there.
        fake.history.push(said(3500, 200, "elsewhere"));
    }
    let (sink, mut calls) = TestSink::new(999);
    let (texts, last) = listen(&*bot, Some(cursor), &sink, async {
        let mut texts = Vec::new();
        while texts.len() < 150 {
            texts.push(next(&mut calls).await.0.text);
        }
        fake.lock().unwrap().says(4000, 50, "live");
        let (live, cursor) = next(&mut calls).await;
        assert_eq!(live.text, "live");
        (texts, cursor)
    })
    .await;
    assert_eq!(texts, (0..150).map(|n| format!("missed {n}")).collect::<Vec<_>>());
    // The new session is resumed, and nothing comes again.
    let (sink, mut calls) = TestSink::new(9);
    let five = listen(&*bot, last, &sink, async {
        until(|| fake.lock().unwrap().resumed.len() == 1).await;
        fake.lock().unwrap().says(5000, 50, "five");
        next(&mut calls).await.0.text
    });
    assert_eq!((five.await.as_str(), fake.lock().unwrap().begun), ("five", 2));
}

#[tokio::test]
async fn an_interrupted_search_for_missed_messages_goes_on() {
    let (bot, fake) = discord().await;
    let cursor = after_one(&*bot, &fake).await;
    fake.lock().unwrap().end_session();
    fake.lock().unwrap().history.extend([said(3001, 50, "two"), said(3002, 50, "three")]);
    // The beginning of the session and one message are stored.
    let (sink, mut calls) = TestSink::new(2);
    assert!(bot.listen(Some(cursor), &sink).await.is_err());
    let (two, cursor) = next(&mut calls).await;
    assert_eq!(two.text, "two");
    let (sink, mut calls) = TestSink::new(9);
    let (three, _) = listen(&*bot, cursor, &sink, next(&mut calls)).await;
    assert_eq!((three.text.as_str(), fake.lock().unwrap().begun), ("three", 2));
}

#[tokio::test]
async fn threads_and_replies() {
    let (bot, fake) = discord().await;
    let (sink, mut calls) = TestSink::new(99);
    let read = async {
        begun(&fake, 1).await;
        {
            let mut fake = fake.lock().unwrap();
            fake.says(2001, 300, "<@7> look");
            let mut reply = said(2002, 300, "and this");
            (reply["type"], reply["message_reference"]) = (json!(19), json!({"message_id": "1000"}));
            reply["referenced_message"] =
                json!({"content": "What?", "author": {"id": "7", "username": "muster_bot"}});
            fake.happens("MESSAGE_CREATE", reply);
            fake.says(2003, 200, "to others");
            let mut role = said(2004, 200, "<@&6> you too");
            role["mention_roles"] = json!(["6"]);
            fake.happens("MESSAGE_CREATE", role);
        }
        let mut read = Vec::new();
        while read.len() < 4 {
            read.push(next(&mut calls).await.0);
        }
        read
    };
    let read = listen(&*bot, None, &sink, read).await;
    let [named, reply, aside, role] = &read[..] else { panic!() };
    assert_eq!((role.text.as_str(), role.is_addressed), ("you too", true));
    assert_eq!((named.text.as_str(), named.origin.place.as_deref()), ("look", Some("200")));
    assert_eq!((named.thread.target.as_str(), named.thread.title.as_deref()), ("300", Some("Order 7")));
    assert_eq!(
        (reply.answers.as_deref(), reply.is_addressed, reply.context.as_str()),
        (Some("1000"), true, "")
    );
    assert_eq!((aside.is_addressed, aside.thread.title.as_deref()), (false, Some("support")));
    assert_eq!(fake.lock().unwrap().bodies("GET channels/300").len(), 1);
}

#[tokio::test]
async fn a_tap_is_acknowledged_before_it_is_handled() {
    let (bot, fake) = discord().await;
    let (sink, mut calls) = TestSink::new(99);
    let press = listen(&*bot, None, &sink, async {
        begun(&fake, 1).await;
        fake.lock().unwrap().happens("INTERACTION_CREATE", tapped(800, "A-1:abc:yes"));
        loop {
            if let Some(SinkCall::Admitted(events, Some(_))) = calls.recv().await
                && let [Event::Pressed(press)] = &events[..]
            {
                return press.clone();
            }
        }
    })
    .await;
    assert_eq!((press.value.as_str(), press.origin.id.as_str()), ("A-1:abc:yes", "5"));
    assert!(press.is_private && press.proof == Proof::Vendor);
    let deferred = fake.lock().unwrap().bodies("POST interactions/800/tap-800/callback");
    assert_eq!(deferred, [json!({"type": 5, "data": {"flags": 64}})]);
    bot.answer(&press, "Done").await.unwrap();
    let answers = fake.lock().unwrap().bodies("PATCH webhooks/70/tap-800/messages/@original");
    assert_eq!(answers[0]["content"], "Done");
}

#[tokio::test]
async fn codes_that_forbid_to_connect_again_switch_the_channel_off() {
    let (bot, fake) = discord().await;
    for (code, expected) in
        [(4004, "token"), (4011, "more servers"), (4013, "4013"), (4014, "Privileged Gateway")]
    {
        fake.lock().unwrap().closes = Some(code);
        let ended = bot.listen(None, &TestSink::new(1).0).await;
        let Err(Failure::Credentials(cause)) = ended else { panic!("{code}: {ended:?}") };
        assert!(cause.as_str().contains(expected), "{cause}");
    }
    let (address, fake) = fakes::discord::discord().await;
    let stranger = self::bot("Nw.another", Some(address));
    assert!(matches!(stranger.listen(None, &TestSink::new(1).0).await, Err(Failure::Credentials(_))));
    assert_eq!(fake.lock().unwrap().asked.len(), 1, "it is not asked again");
}

#[tokio::test]
async fn a_bot_with_few_sessions_left_begins_none() {
    let (bot, fake) = discord().await;
    fake.lock().unwrap().left = Some(1);
    let (sink, mut calls) = TestSink::new(9);
    let down = listen(&*bot, None, &sink, async { calls.recv().await }).await;
    let Some(SinkCall::Link(Link::Down(cause))) = down else { panic!("{down:?}") };
    assert!(cause.as_str().contains("too many sessions"), "{cause}");
    assert_eq!(fake.lock().unwrap().begun, 0);
}

#[tokio::test]
async fn a_dead_connection_is_replaced() {
    let (bot, fake) = discord().await;
    {
        let mut fake = fake.lock().unwrap();
        (fake.is_deaf, fake.beat) = (true, Some(20));
    }
    let (sink, mut calls) = TestSink::new(9);
    let down = listen(&*bot, None, &sink, async {
        let down = loop {
            if let Some(SinkCall::Link(Link::Down(cause))) = calls.recv().await {
                break cause;
            }
        };
        until(|| !fake.lock().unwrap().resumed.is_empty()).await;
        down
    })
    .await;
    assert!(down.as_str().contains("heartbeats"), "{down}");
}

#[tokio::test]
async fn a_gateway_that_hangs_is_left() {
    let (bot, fake) = discord().await;
    fake.lock().unwrap().hangs = Some("HELLO");
    let (sink, mut calls) = TestSink::new(9);
    let recovery = async {
        let down = interruption(&mut calls).await;
        fake.lock().unwrap().hangs = None;
        begun(&fake, 1).await;
        down
    };
    let down = outwait(listen(&*bot, None, &sink, recovery), || !fake.lock().unwrap().asked.is_empty()).await;
    assert!(down.contains("does not answer in time"), "{down}");
}

#[tokio::test]
async fn calls_that_hang_lose_no_event() {
    let (bot, fake) = discord().await;
    let (sink, mut calls) = TestSink::new(99);
    let hangs = |request: Option<&'static str>| fake.lock().unwrap().hangs = request;
    let is_asked = |request: &str| !fake.lock().unwrap().bodies(request).is_empty();
    let text = async {
        begun(&fake, 1).await;
        hangs(Some("GET channels/200"));
        fake.lock().unwrap().says(2001, 200, "<@7> look");
        interruption(&mut calls).await;
        hangs(None);
        next(&mut calls).await.0.text
    };
    let text = outwait(listen(&*bot, None, &sink, text), || is_asked("GET channels/200")).await;
    assert_eq!(text, "look");
    // A tap that Discord does not know to have arrived counts as well.
    let tap = async {
        begun(&fake, 2).await;
        hangs(Some("POST interactions/"));
        fake.lock().unwrap().happens("INTERACTION_CREATE", tapped(800, "A-1:abc:yes"));
        loop {
            if let Some(SinkCall::Admitted(events, _)) = calls.recv().await
                && let [Event::Pressed(press)] = &events[..]
            {
                return press.value.clone();
            }
        }
    };
    let callback = "POST interactions/800/tap-800/callback";
    let value = outwait(listen(&*bot, None, &sink, tap), || is_asked(callback)).await;
    assert_eq!((value.as_str(), fake.lock().unwrap().resumed.len()), ("A-1:abc:yes", 1));
}

#[tokio::test]
async fn a_message_without_an_answer_is_sent_once() {
    let (bot, fake) = discord().await;
    fake.lock().unwrap().hangs = Some("POST channels/50/messages");
    let said = text("x");
    let part = part(&said, "50");
    let lost = outwait(bot.send(&part), || !fake.lock().unwrap().sent.is_empty()).await;
    assert!(matches!(lost, Err(Failure::Unknown(_))), "{lost:?}");
    fake.lock().unwrap().hangs = None;
    bot.send(&part).await.unwrap();
    assert_eq!(fake.lock().unwrap().sent.len(), 1);
}

#[tokio::test]
async fn errors_map_to_failures() {
    let (bot, fake) = discord().await;
    let failure = async |answer: (u16, Value)| {
        fake.lock().unwrap().answers.push_back(answer);
        bot.send(&part(&text("x"), "50")).await.unwrap_err()
    };
    let limited = |global: bool| (429, json!({"message": "Limited", "retry_after": 1.5, "global": global}));
    for (global, expected) in [(false, Scope::Target), (true, Scope::Channel)] {
        let failure = failure(limited(global)).await;
        assert!(
            matches!(failure, Failure::RateLimited { wait, scope, .. } if wait == Duration::from_millis(1500) && scope == expected),
            "{failure:?}"
        );
    }
    assert!(matches!(failure(refusal(401, 0, "401: Unauthorized")).await, Failure::Credentials(_)));
    // An error for one chat must not disable the bot.
    assert!(matches!(
        failure(refusal(403, 50_007, "Cannot send to this user")).await,
        Failure::TargetGone(_)
    ));
    assert!(matches!(failure(refusal(404, 10_003, "Unknown Channel")).await, Failure::TargetGone(_)));
    assert!(matches!(failure(refusal(400, 50_035, "Invalid Form Body")).await, Failure::Refused(_)));
    assert!(matches!(failure((403, json!("error code: 1015"))).await, Failure::NotSent(_)));
    let failure = failure((502, json!("Bad Gateway"))).await;
    assert!(matches!(failure, Failure::Unknown(_)));
    assert!(!format!("{failure:?}").contains("canary"));
    assert!(matches!(bot.send(&part(&text("x"), "ada/5")).await, Err(Failure::Refused(_))));
    for malformed in ["", "a b", "Bot abc", "abc\n"] {
        let refused = self::bot(malformed, None).probe().await;
        assert!(matches!(refused, Err(Failure::Credentials(_))), "{malformed}");
    }
}

#[tokio::test]
async fn an_exhausted_route_is_not_called() {
    let (bot, fake) = discord().await;
    let said = text("x");
    fake.lock().unwrap().exhausts.push_back(3600.5);
    bot.send(&part(&said, "50")).await.unwrap();
    let refused = bot.send(&part(&said, "50")).await.unwrap_err();
    assert!(matches!(refused, Failure::RateLimited { scope: Scope::Target, .. }), "{refused:?}");
    // Others are free.
    bot.send(&part(&said, "300")).await.unwrap();
    bot.typing("50").await.unwrap();
    let asked = fake.lock().unwrap().asked.iter().map(|(asked, _)| asked.clone()).collect::<Vec<_>>();
    assert_eq!(asked, ["POST channels/50/messages", "POST channels/300/messages", "POST channels/50/typing"]);
}

#[tokio::test]
async fn a_repeated_message_is_sent_once() {
    let (bot, fake) = discord().await;
    fake.lock().unwrap().answers.push_back((502, json!({})));
    let said = text("x");
    let long = Part { id: "C-1234567890_1234567890123", ..part(&said, "50") };
    assert!(matches!(bot.send(&long).await, Err(Failure::Unknown(_))));
    let receipt = bot.send(&long).await.unwrap();
    assert_eq!(bot.send(&long).await.unwrap(), receipt);
    bot.send(&Part { id: "C-1234567890_1234567890124", ..long.clone() }).await.unwrap();
    bot.send(&Part { target: "300", ..long.clone() }).await.unwrap();
    let fake = fake.lock().unwrap();
    assert_eq!(fake.sent.len(), 3);
    let bodies = fake.bodies("POST channels/50/messages");
    assert!(bodies.iter().all(|body| body["nonce"].as_str().unwrap().len() <= 25), "{bodies:?}");
    assert_eq!(bodies[0]["nonce"], bodies[1]["nonce"]);
    assert!(bot.traits().idempotent_send);
}

#[tokio::test]
async fn nothing_sent_mentions_anyone() {
    let (bot, fake) = discord().await;
    let said = text("<@5> @everyone");
    let buttons = [Button { label: "Yes".into(), value: "A-1:abc:yes".into() }];
    let asking = Part { buttons: &buttons, reply_to: Some("900"), ..part(&said, "300") };
    let receipt = bot.send(&asking).await.unwrap();
    let edit = Part { replaces: receipt.vendor_id.as_deref(), ..part(&said, "300") };
    bot.send(&edit).await.unwrap();
    let fake = fake.lock().unwrap();
    assert!(fake.asked.iter().all(|(_, body)| body["allowed_mentions"] == json!({"parse": []})));
    assert_eq!(
        fake.asked[0].1["message_reference"],
        json!({"message_id": "900", "fail_if_not_exists": false})
    );
    assert_eq!(fake.asked[0].1["components"][0]["components"][0]["custom_id"], "A-1:abc:yes");
    assert_eq!(
        (fake.asked[1].0.as_str(), &fake.asked[1].1["components"]),
        ("PATCH channels/300/messages/1000", &json!([]))
    );
}

#[tokio::test]
async fn a_reaction_is_an_emoji_itself_or_the_servers_own() {
    let (bot, fake) = discord().await;
    let react = async |emoji: &str, received: &str| {
        let (arguments, received) = (json!({"emoji": emoji}), [received.to_owned()]);
        let (id, name, target) = ("d-1", "react", "300");
        bot.act(&ActionCall { id, name, arguments: &arguments, target, received: &received }).await
    };
    for emoji in ["👀", "👀", "wave:12", "<:wave:12>"] {
        assert_eq!(react(emoji, "2001").await, Ok(Receipt::default()), "{emoji}");
    }
    let refused = async |emoji: &str| {
        let Err(Failure::Refused(cause)) = react(emoji, "2001").await else { panic!("{emoji}") };
        cause.to_string()
    };
    let unknown =
        |emoji: &str| format!("Discord has no emoji \"{emoji}\". Give the emoji itself, such as 👀.");
    assert_eq!(refused("🪗").await, unknown("🪗"));
    // Only emoji get into the path.
    for word in ["eyes", "..", "../../2002/pins"] {
        assert_eq!(refused(word).await, unknown(word));
    }
    assert!(matches!(react("👀", "<x>").await, Err(Failure::Refused(_))), "no id of Discord");
    let asked = fake.lock().unwrap().asked.iter().map(|(asked, _)| asked.clone()).collect::<Vec<_>>();
    let put = |emoji: &str| format!("PUT channels/300/messages/2001/reactions/{emoji}/@me");
    let (eyes, wave, accordion) = (put("%F0%9F%91%80"), put("wave%3A12"), put("%F0%9F%AA%97"));
    assert_eq!(asked, [eyes.clone(), eyes, wave.clone(), wave, accordion]);
    fake.lock().unwrap().answers.push_back(refusal(403, 50_013, "Missing Permissions"));
    assert!(matches!(react("👀", "2001").await, Err(Failure::TargetGone(_))));
}

#[tokio::test]
async fn files_both_ways() {
    let (bot, fake) = discord().await;
    let at = fake.lock().unwrap().at.unwrap();
    let remote = |url: String| RemoteFile {
        name: "a.txt".into(),
        media_type: String::new(),
        size: None,
        content: Content::There(url),
    };
    let mut bytes = Vec::new();
    assert_eq!(
        bot.fetch(&remote(format!("http://{at}/attachments/a.txt?ex=1")), &mut bytes, 10).await,
        Ok(3)
    );
    for elsewhere in ["http://127.0.0.1:1/attachments/a.txt", "https://cdn.discordapp.com.evil.test/a", "x"] {
        let refused = bot.fetch(&remote(elsewhere.to_owned()), &mut bytes, 10).await;
        assert!(matches!(refused, Err(Failure::Refused(_))), "{elsewhere}");
    }
    let files =
        [Attachment { name: "b.txt".into(), media_type: "text/plain".into(), content: "bytes of b".into() }];
    let none = text("");
    bot.send(&Part { files: &files, written_at: Timestamp::UNIX_EPOCH, ..part(&none, "50") }).await.unwrap();
    assert_eq!(fake.lock().unwrap().asked[0].1["files[0]"], "b.txt: bytes of b");
}
