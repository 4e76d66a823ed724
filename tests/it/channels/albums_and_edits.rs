//! Albums, which come in parts, and messages that people edit or delete. The vendor is the fake that python-telegram-bot takes for
//! Telegram; it sends to the bot's webhook.

use std::time::Duration;

use muster::{
    base::{
        enums::Transport,
        ids::{AgentId, ChannelId, ContactId, IdentityId},
    },
    domain::{
        agents,
        conversations::{self, Incoming},
    },
};
use muster_channels::Thread;
use muster_protocol::plan::Part;
use serde_json::{Value, json};

use crate::{
    channels::{
        probes::whitelist,
        telegram_webhook::{self, Hook},
    },
    harness::{Host, TestApp, fakes::telegram::said, until},
};

/// A bot in whose chat user 5 may write.
struct Bot {
    app: TestApp,
    hook: Hook,
    agent: i64,
    channel: Value,
}

impl Bot {
    async fn of(listed: &str) -> Self {
        let (app, telegram, agent, channel) = telegram_webhook::bot().await;
        whitelist(&app, &channel, listed).await;
        let hook = Hook::of(&app, &telegram);
        Self { app, hook, agent, channel }
    }

    async fn brings(&self, update: &Value) {
        assert_eq!(self.hook.brings(update).await, 200);
    }

    /// The texts of all messages, and whether each has a turn.
    async fn stored(&self) -> Vec<(String, bool)> {
        let contents: Vec<Value> = self.app.column("SELECT content FROM messages ORDER BY id").await;
        let turns: Vec<i64> =
            self.app.column("SELECT COUNT(turn_id) FROM messages GROUP BY id ORDER BY id").await;
        let texts = contents.iter().map(|content| content["text"].as_str().unwrap().to_owned());
        texts.zip(turns.iter().map(|turn| *turn == 1)).collect()
    }

    /// The places of the messages that files belong to.
    async fn files(&self) -> Vec<i64> {
        let sql = "SELECT m.seq FROM attachments a JOIN messages m ON m.id = a.message_id ORDER BY a.id";
        self.app.column(sql).await
    }

    async fn turn_becomes(&self, state: &str) {
        let sql = format!("UPDATE turns SET state = '{state}', ended_at = 1");
        let sql = if state == "RUNNING" { sql.replace(", ended_at = 1", "") } else { sql };
        self.app.execute(&sql, vec![]).await;
    }

    async fn refused(&self) -> Vec<String> {
        self.app.column("SELECT reason FROM channel_refusals").await
    }
}

/// A part of an album.
fn photo(id: i64, caption: &str) -> Value {
    let mut update = said(id, "");
    update["message"]["text"] = Value::Null;
    update["message"]["caption"] = json!(caption);
    update["message"]["media_group_id"] = json!("g1");
    update["message"]["photo"] = json!([{ "file_id": format!("f{id}"), "file_size": 3 }]);
    update
}

/// The same in a group.
fn in_group(mut update: Value) -> Value {
    update["message"]["chat"] = json!({ "id": -100, "type": "supergroup", "title": "Team" });
    let text = update["message"]["caption"].as_str().or_else(|| update["message"]["text"].as_str());
    if text.is_some_and(|text| text.starts_with("@muster_bot")) {
        let named = json!([{ "type": "mention", "offset": 0, "length": 11 }]);
        update["message"]["caption_entities"] = named.clone();
        update["message"]["entities"] = named;
    }
    update
}

fn edited(original: i64, update: i64, text: &str) -> Value {
    let said = said(original, text);
    json!({ "update_id": update, "edited_message": said["message"] })
}

#[tokio::test]
async fn an_album_is_one_message_with_all_its_files() {
    let bot = Bot::of("5").await;
    for part in [photo(10, "Which of these?"), photo(11, ""), photo(12, "The zebra one")] {
        bot.brings(&part).await;
    }
    // Updates that Telegram sends again are already stored.
    for part in [photo(10, "Which of these?"), photo(12, "The zebra one")] {
        bot.brings(&part).await;
    }
    assert_eq!(bot.stored().await, [("Which of these?\n\nThe zebra one".to_owned(), true)]);
    assert_eq!(bot.files().await, [1, 1, 1]);
    let found = "query($o: Id!, $a: Id!, $c: Id!, $q: String!) { \
        searchMessages(orgId: $o, agentId: $a, conversationId: $c, q: $q) { data { seq } } }";
    let conversation: i64 = bot.app.one("SELECT id FROM conversations", vec![]).await;
    for (word, hits) in [("which", 1), ("zebra", 1), ("giraffe", 0)] {
        let variables = json!({ "o": bot.app.org, "a": bot.agent, "c": conversation, "q": word });
        let data = bot.app.viewer.gql(found, variables).await.data();
        assert_eq!(data["searchMessages"]["data"].as_array().unwrap().len(), hits, "{word}");
    }
    let shown: Vec<String> = bot.app.column("SELECT last_message_preview FROM conversations").await;
    assert_eq!(shown, ["Which of these? The zebra one"]);
    let stored: i64 = bot.app.one("SELECT stored_bytes FROM conversations", vec![]).await;
    let content: Value = bot.app.one("SELECT content FROM messages", vec![]).await;
    let written = i64::try_from(content.to_string().len()).unwrap();
    assert!((512 + written..512 + written + 10).contains(&stored), "{stored} for {written}");
}

#[tokio::test]
async fn an_album_reaches_the_agent_whole() {
    let bot = Bot::of("5").await;
    let host = Host { app: &bot.app, agent: bot.agent, generation: 0 }.launched().await;
    host.started().await;
    let sent = "SELECT COUNT(*) FROM commands WHERE kind = 'TURN'";
    bot.brings(&photo(10, "Which of these?")).await;
    assert_eq!(bot.app.column::<i64>(sent).await, [0], "others may follow");
    bot.brings(&photo(11, "")).await;
    until("its turn is sent", async || bot.app.column::<i64>(sent).await == [1]).await;
    let turn: i64 = bot.app.one("SELECT id FROM turns", vec![]).await;
    let prompt = host.plan(turn).await.unwrap().prompt;
    let files = prompt.iter().filter(|part| matches!(part, Part::File { .. })).count();
    assert_eq!((prompt.len(), files), (3, 2), "{prompt:?}");
    // The agent has it by now.
    bot.brings(&photo(12, "")).await;
    assert_eq!(bot.stored().await, [("Which of these?".to_owned(), true), ("photo.jpg".to_owned(), false)]);
}

#[tokio::test]
async fn a_part_that_comes_too_late_follows_without_a_turn() {
    let bot = Bot::of("5").await;
    bot.brings(&photo(10, "Which of these?")).await;
    bot.app.clock.advance(Duration::from_secs(11));
    bot.brings(&photo(11, "And this")).await;
    bot.brings(&photo(11, "And this")).await;
    let stored = [("Which of these?".to_owned(), true), ("And this".to_owned(), false)];
    assert_eq!(bot.stored().await, stored);
    assert_eq!(bot.files().await, [1, 2]);
}

#[tokio::test]
async fn a_mention_in_an_albums_first_part_counts_for_all() {
    let bot = Bot::of("-100").await;
    bot.brings(&in_group(photo(10, "@muster_bot which of these?"))).await;
    bot.brings(&in_group(photo(11, ""))).await;
    let mut other = in_group(photo(12, ""));
    other["message"]["media_group_id"] = json!("g2");
    bot.brings(&other).await;
    assert_eq!(bot.stored().await, [("which of these?".to_owned(), true)]);
    assert_eq!(bot.files().await, [1, 1]);
    until("the other is counted", async || bot.refused().await == ["NOT_ADDRESSED"]).await;
}

#[tokio::test]
async fn an_edited_messages_turn_depends_on_the_first_ones() {
    for (state, makes_a_turn) in [
        (None, true),
        (Some("RUNNING"), true),
        (Some("DONE"), false),
        (Some("FAILED"), true),
        (Some("CANCELLED"), true),
    ] {
        let bot = Bot::of("5").await;
        bot.brings(&said(10, "order 4711")).await;
        if let Some(state) = state {
            bot.turn_becomes(state).await;
        }
        bot.brings(&edited(10, 11, "order 4712")).await;
        bot.brings(&edited(10, 11, "order 4712")).await;
        // Nothing that people see has changed.
        bot.brings(&edited(10, 12, "order 4712")).await;
        let expected = [("order 4711".to_owned(), true), ("edited: order 4712".to_owned(), makes_a_turn)];
        assert_eq!(bot.stored().await, expected, "{state:?}");
        let turns = if makes_a_turn && state.is_some() { 2 } else { 1 };
        assert_eq!(bot.app.column::<i64>("SELECT COUNT(*) FROM turns").await, [turns], "{state:?}");
        let threads: i64 = bot.app.one("SELECT COUNT(DISTINCT conversation_id) FROM messages", vec![]).await;
        assert_eq!(threads, 1);
    }
}

#[tokio::test]
async fn an_edit_that_needs_no_answer_moves_no_conversation() {
    for (status, texts) in
        [("RESOLVED", &["order 4711", "edited: order 4712"][..]), ("ARCHIVED", &["order 4711"])]
    {
        let bot = Bot::of("5").await;
        bot.brings(&said(10, "order 4711")).await;
        bot.turn_becomes("DONE").await;
        bot.app.execute(&format!("UPDATE conversations SET status = '{status}'"), vec![]).await;
        bot.brings(&edited(10, 11, "order 4712")).await;
        let stored: Vec<String> = bot.stored().await.into_iter().map(|(text, _)| text).collect();
        assert_eq!(stored, texts, "{status}");
        assert_eq!(bot.app.column::<String>("SELECT status FROM conversations").await, [status]);
    }
}

#[tokio::test]
async fn an_edit_of_an_answered_edit_is_not_answered() {
    let bot = Bot::of("5").await;
    bot.brings(&said(10, "order 4711")).await;
    bot.turn_becomes("FAILED").await;
    bot.brings(&edited(10, 11, "order 4712")).await;
    bot.app.execute("UPDATE turns SET state = 'DONE', ended_at = 1 WHERE state = 'QUEUED'", vec![]).await;
    bot.brings(&edited(10, 12, "order 4713")).await;
    let turns: Vec<bool> = bot.stored().await.into_iter().map(|(_, has_turn)| has_turn).collect();
    assert_eq!(turns, [true, true, false]);
}

#[tokio::test]
async fn an_edit_brings_only_files_that_are_new() {
    let bot = Bot::of("5").await;
    let mut first = photo(10, "look");
    first["message"]["media_group_id"] = Value::Null;
    bot.brings(&first).await;
    let mut changed = first["message"].clone();
    changed["caption"] = json!("look here");
    bot.brings(&json!({ "update_id": 11, "edited_message": changed })).await;
    bot.brings(&json!({ "update_id": 12, "edited_message": changed })).await;
    assert_eq!(bot.stored().await, [("look".to_owned(), true), ("edited: look here".to_owned(), true)]);
    assert_eq!(bot.files().await, [1]);
}

#[tokio::test]
async fn an_edit_that_adds_our_name_is_addressed_to_us() {
    let bot = Bot::of("-100").await;
    let hello = in_group(said(10, "what does it cost?"));
    bot.brings(&hello).await;
    let named = in_group(said(10, "@muster_bot what does it cost?"));
    bot.brings(&json!({ "update_id": 11, "edited_message": named["message"] })).await;
    // An edit that takes it out is still addressed to us.
    bot.brings(&json!({ "update_id": 12, "edited_message": in_group(said(10, "never mind"))["message"] }))
        .await;
    let expected = ["edited: what does it cost?", "edited: never mind"].map(|text| (text.to_owned(), true));
    assert_eq!(bot.stored().await, expected);
}

#[tokio::test]
async fn what_is_answered_stands_above_what_is_said() {
    let bot = Bot::of("-100").await;
    let mut update = in_group(said(10, "@muster_bot is this right?"));
    update["message"]["reply_to_message"] = json!({ "message_id": 9, "date": 1, "text": "It costs 5",
        "from": { "id": 6, "is_bot": false, "first_name": "Bob" }, "chat": { "id": -100, "type": "supergroup" } });
    bot.brings(&update).await;
    let said = "[In answer to what Bob wrote]\n> It costs 5\n\nis this right?".to_owned();
    assert_eq!(bot.stored().await, [(said, true)]);
}

/// Vendors that say so tell what was deleted.
#[tokio::test]
async fn what_was_deleted_is_said_and_makes_no_turn() {
    let bot = Bot::of("5").await;
    bot.brings(&said(10, "order 4711")).await;
    let one = async |sql: &str| bot.app.one::<i64>(sql, vec![]).await;
    let thread = Thread {
        key: "5".to_owned(),
        refs: vec!["7/5:10".to_owned()],
        readers: Vec::new(),
        target: "5".to_owned(),
        title: None,
        is_private: true,
    };
    let deleted = Incoming {
        channel: ChannelId(bot.channel["id"].as_i64().unwrap()),
        transport: Transport::Telegram,
        contact: ContactId(one("SELECT id FROM contacts").await),
        identity: IdentityId(one("SELECT id FROM identities").await),
        author: None,
        key: Some("7/5:10:deleted".to_owned()),
        vendor_id: Some("7/5:10".to_owned()),
        album: None,
        is_edit: true,
        thread: &thread,
        context: "",
        text: String::new(),
        files: Vec::new(),
        source: None,
        is_answered: true,
        is_automatic: false,
        is_unproven: false,
    };
    let tx = bot.app.scope().begin().await.unwrap();
    let agent = agents::lock_agent(&tx, AgentId(bot.agent)).await.unwrap().unwrap();
    conversations::receive(&tx, &agent, vec![deleted]).await.unwrap();
    tx.commit().await.unwrap();
    let said = "[This message was deleted: “order 4711”]".to_owned();
    assert_eq!(bot.stored().await, [("order 4711".to_owned(), true), (said, false)]);
}
