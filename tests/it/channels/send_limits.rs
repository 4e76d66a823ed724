//! Vendors' limits are counted beforehand: no more is sent than they allow, and one chat that is full holds up no other.

use std::time::Duration;

use muster::{base::enums::MessageRole, core::resource_limits::Resource, domain::deliveries};
use serde_json::{Value, json};

use crate::{
    channels::{
        connect,
        probes::{bot, whitelist, with_telegram},
        sets,
    },
    conversations::messages::say,
    harness::{
        TestApp,
        fakes::telegram::{Shared, TOKEN, said},
        until,
    },
};

/// A second passes if something waits only for its vendor's limits: the clock of tests stands still.
pub async fn let_time_pass(app: &TestApp) {
    let held = "SELECT (SELECT COUNT(*) FROM approval_asks WHERE state IN ('TO_ASK', 'TO_CLOSE') AND attempts = 0 AND available_at > $1) \
                + (SELECT COUNT(*) FROM deliveries WHERE status = 'PENDING' AND attempts = 0 AND available_at > $1)";
    if app.one::<i64>(held, vec![app.clock.now().0.into()]).await > 0 {
        app.clock.advance(Duration::from_secs(1));
    }
}

const GROUP: i64 = -100;

/// A chat writes to the bot.
fn written(id: i64, chat: i64) -> Value {
    let mut update = said(id, "Hello");
    update["message"]["from"]["id"] = json!(chat.abs());
    update["message"]["chat"] =
        json!({ "id": chat, "type": if chat < 0 { "supergroup" } else { "private" } });
    update
}

/// A bot that these chats have written to.
async fn bot_of(chats: &[i64]) -> (TestApp, Shared) {
    let (app, telegram) = with_telegram().await;
    let channel = connect(&app, bot(app.agent().await, TOKEN)).await;
    sets(&app, &channel, json!({ "mention_off": [GROUP.to_string()] })).await;
    for chat in chats {
        whitelist(&app, &channel, &chat.to_string()).await;
    }
    telegram.lock().unwrap().updates = (1..).zip(chats).map(|(id, chat)| written(id, *chat)).collect();
    app.service.ingest.listen();
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    let all = i64::try_from(chats.len()).unwrap();
    until("all are stored", async || app.column::<i64>(stored).await == [all]).await;
    (app, telegram)
}

/// The conversation of a chat.
async fn with(app: &TestApp, chat: i64) -> i64 {
    app.one("SELECT id FROM conversations WHERE target = $1", vec![chat.to_string().into()]).await
}

/// The messages sent since `from`: chats and texts.
fn sent(telegram: &Shared, from: usize) -> Vec<(i64, String)> {
    let asked = &telegram.lock().unwrap().asked;
    let sent = asked.iter().filter(|(method, _)| method == "sendMessage").skip(from);
    sent.map(|(_, sent)| (sent["chat_id"].as_i64().unwrap(), sent["text"].as_str().unwrap().to_owned()))
        .collect()
}

/// Sends all that may be sent at this instant.
async fn send(app: &TestApp) {
    let now = app.clock.now().0;
    let due = "SELECT COUNT(*) FROM deliveries d JOIN channels c ON c.id = d.channel_id WHERE d.status IN ('PENDING', 'SENDING') \
               AND (d.status = 'SENDING' OR (d.available_at <= $1 AND (c.send_after IS NULL OR c.send_after <= $1) \
               AND NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.conversation_id = d.conversation_id \
               AND (e.message_id, e.part) < (d.message_id, d.part) AND e.status = 'PENDING')))";
    until("all is sent that may be", async || {
        deliveries::send_due(&app.core).await.unwrap();
        // A task that has found no room for the next part may still be about to send those before it.
        app.one::<i64>(due, vec![now.into()]).await == 0
            && app.core.resource_limits.limit(Resource::Lanes).total() == 0
    })
    .await;
}

#[tokio::test]
async fn a_burst_into_three_chats_keeps_each_chats_limit() {
    let chats = [5, 6, GROUP];
    let (app, telegram) = bot_of(&chats).await;
    let bursts = [(5, 4), (6, 1), (GROUP, 22)];
    for (chat, count) in bursts {
        let conversation = with(&app, chat).await;
        for n in 0..count {
            say(&app, conversation, MessageRole::Assistant, &format!("{n}")).await;
        }
    }
    // The messages sent in each second.
    let mut seconds: Vec<Vec<(i64, String)>> = Vec::new();
    for _ in 0..62 {
        send(&app).await;
        let before = seconds.iter().map(Vec::len).sum();
        seconds.push(sent(&telegram, before));
        app.clock.advance(Duration::from_secs(1));
    }
    let of = |chat: i64| {
        seconds
            .iter()
            .flatten()
            .filter(|(to, _)| *to == chat)
            .map(|(_, text)| text.clone())
            .collect::<Vec<_>>()
    };
    for (chat, count) in bursts {
        // In their order, all of them.
        assert_eq!(of(chat), (0..count).map(|n| n.to_string()).collect::<Vec<_>>(), "{chat}");
        for (second, sent) in seconds.iter().enumerate() {
            assert!(sent.iter().filter(|(to, _)| *to == chat).count() <= 1, "{chat} in {second}: {sent:?}");
        }
    }
    // One that is full holds up no other.
    assert_eq!(seconds[0].len(), 3);
    assert!((0..4).all(|second| seconds[second].iter().any(|(to, _)| *to == 5)), "{seconds:?}");
    let minute = seconds[..60].iter().flatten().filter(|(to, _)| *to == GROUP).count();
    assert_eq!(minute, 20);
    // Waiting for it was no attempt.
    let rows = "SELECT DISTINCT status || ' ' || attempts FROM deliveries";
    assert_eq!(app.column::<String>(rows).await, ["SENT 1"]);
}

#[tokio::test]
async fn a_bot_keeps_its_limit_for_a_second_over_all_chats() {
    // The bot itself is 7.
    let chats: Vec<i64> = (101..=140).collect();
    let (app, telegram) = bot_of(&chats).await;
    for chat in &chats {
        say(&app, with(&app, *chat).await, MessageRole::Assistant, "Hello").await;
    }
    send(&app).await;
    assert_eq!(sent(&telegram, 0).len(), 30);
    assert_eq!(app.column::<i64>("SELECT send_after FROM channels").await, [app.clock.now().0 + 1_000]);
    app.clock.advance(Duration::from_secs(1));
    send(&app).await;
    let mut reached: Vec<i64> = sent(&telegram, 0).into_iter().map(|(chat, _)| chat).collect();
    reached.sort_unstable();
    assert_eq!(reached, chats);
}
