//! Mails are kept as they came: sealed, counted, and for a while. What was misread is read again by `muster message reread`.

use std::time::Duration;

use muster::{core::config::Config, jobs};
use muster_protocol::event::TurnOutcome;
use serde_json::{Value, json};

use crate::{
    channels::{
        connect, inbound_webhooks,
        mail::{mailbox, soon},
        probes::whitelist,
    },
    conversations::search,
    harness::{Dovecot, Ran, TestApp, found, is_postgres, until},
    operations::sealing_keys::replace_key,
};

const DAY: Duration = Duration::from_hours(24);
/// The only message of a test that came in.
const TEXT: &str = "SELECT CAST(content AS TEXT) FROM messages WHERE via_channel_id IS NOT NULL ORDER BY id";

/// A service whose agent has a mailbox, which Ada may write to.
struct Mailed {
    app: TestApp,
    dovecot: Dovecot,
    agent: i64,
    channel: i64,
}

impl Mailed {
    async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    async fn start_with(configure: impl FnOnce(&mut Config)) -> Self {
        let dovecot = Dovecot::start().await;
        let app = TestApp::start_with(|config| {
            config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()];
            configure(config);
        })
        .await;
        let agent = app.running_agent().await.agent;
        let channel = connect(&app, mailbox(&dovecot, agent, None)).await;
        whitelist(&app, &channel, "ada@a.test").await;
        app.service.ingest.listen();
        Self { app, dovecot, agent, channel: channel["id"].as_i64().unwrap() }
    }

    /// Ada writes: headers, an empty line and a text. Returns the message.
    async fn gets(&self, id: &str, rest: &str) -> i64 {
        let mail = format!(
            "From: ada@a.test\nTo: agent@b.test\nMessage-ID: <{id}@a.test>\nMIME-Version: 1.0\n{rest}"
        );
        self.dovecot.deliver_at(id, &mail, soon(&self.app));
        let sql = "SELECT id FROM messages WHERE vendor_id = $1";
        let stored = async || {
            let count = "SELECT COUNT(*) FROM messages WHERE vendor_id = $1";
            let vendor_id = || vec![format!("{id}@a.test").into()];
            let is_there = self.app.one::<i64>(count, vendor_id()).await > 0;
            if is_there { Some(self.app.one::<i64>(sql, vendor_id()).await) } else { None }
        };
        found(stored).await.expect("the mail is stored")
    }

    async fn conversation(&self, message: i64) -> i64 {
        self.app.one("SELECT conversation_id FROM messages WHERE id = $1", vec![message.into()]).await
    }

    /// Stores a message as an earlier version would have parsed it.
    async fn misread(&self, message: i64, word: &str) {
        // As each database writes JSON, since its length counts.
        let mut content = said(word).to_string();
        if is_postgres() {
            content = content.replace(':', ": ").replace(',', ", ");
        }
        let sql = format!("UPDATE messages SET content = '{content}' WHERE id = $1");
        self.app.execute(&sql, vec![message.into()]).await;
        let places = (self.app.org, self.agent, self.conversation(message).await);
        let tokens = format!("{word} #o{} #a{} #{}", places.0, places.1, places.2);
        if is_postgres() {
            let sql = "UPDATE message_search SET tokens = array_to_tsvector(string_to_array($2, ' ')) WHERE message_id = $1";
            self.app.execute(sql, vec![message.into(), tokens.into()]).await;
        } else {
            self.app.execute("DELETE FROM messages_fts WHERE rowid = $1", vec![message.into()]).await;
            let sql = "INSERT INTO messages_fts (rowid, tokens) VALUES ($1, $2)";
            self.app.execute(sql, vec![message.into(), tokens.into()]).await;
        }
    }

    async fn rereads(&self, arguments: &[&str]) -> Ran {
        self.app.cli(&[&["message", "reread"], arguments].concat()).await
    }

    async fn count(&self, what: &str) -> i64 {
        self.app.one(&format!("SELECT COUNT(*) FROM {what}"), vec![]).await
    }

    /// The contents of messages, without their subjects.
    async fn contents(&self) -> Vec<Value> {
        let mut contents: Vec<Value> = self
            .app
            .column::<String>(TEXT)
            .await
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        for content in &mut contents {
            content.as_object_mut().unwrap().remove("subject");
        }
        contents
    }

    async fn stored_bytes(&self) -> i64 {
        self.app
            .one(
                "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM stored_bytes WHERE organization_id = $1",
                vec![self.app.org.into()],
            )
            .await
    }
}

fn said(text: &str) -> Value {
    json!({ "text": text, "format": "plain" })
}

#[tokio::test]
async fn a_misread_mail_is_read_again_once_and_prompts_no_agent() {
    let mailed = Mailed::start().await;
    let app = &mailed.app;
    let message = mailed.gets("m1", "Subject: Post\n\nDie Pomeranze ist da.\n").await;
    let conversation = mailed.conversation(message).await;
    let host = crate::harness::Host { app, agent: mailed.agent, generation: 1 };
    let turn = found(async || host.given().await.first().copied()).await.expect("the mail is a turn");
    host.takes(turn).await;
    host.turn_ended(turn, TurnOutcome::Done).await;
    mailed.misread(message, "kauderwelsch").await;
    let before = (host.commands().await, mailed.count("turns").await);
    let place = (mailed.agent, conversation);
    assert_eq!(search::found(app, place, "kauderwelsch").await, [1]);

    // A rehearsal says what would change.
    let rehearsed = mailed.rereads(&["--dry-run"]).await.expect();
    let expected = json!([{
        "id": message, "organization_id": app.org, "conversation_id": conversation, "changed": true,
        "before": "kauderwelsch", "after": "Die Pomeranze ist da.", "error": null,
    }]);
    let report =
        |dry_run: bool| json!({ "messages": expected, "changed": 1, "not_kept": [], "dry_run": dry_run });
    assert_eq!(rehearsed, report(true));
    assert_eq!((mailed.contents().await, mailed.count("messages").await), (vec![said("kauderwelsch")], 1));

    assert_eq!(mailed.rereads(&[]).await.expect(), report(false));
    assert_eq!(mailed.contents().await, [said("Die Pomeranze ist da.")]);
    assert_eq!(search::found(app, place, "pomeranze").await, [1]);
    assert_eq!(search::found(app, place, "kauderwelsch").await, [0_i64; 0]);
    let event =
        "SELECT CAST(content AS TEXT) FROM messages WHERE kind = 'EVENT' AND role = 'SYSTEM' AND seq = 2";
    let event: Value = serde_json::from_str(&app.one::<String>(event, vec![]).await).unwrap();
    let told = "The message was read again: its text changed.";
    assert_eq!(event, json!({ "event": "message_reread", "text": told, "message_id": message }));
    let line = "SELECT target_kind || ' ' || CAST(target_id AS TEXT) || REPLACE(CAST(changes AS TEXT), ' ', '') FROM audit_lines \
                WHERE operation = 'rereadMessage'";
    assert_eq!(app.column::<String>(line).await, [format!("message {message}{{\"text\":\"changed\"}}")]);
    assert_eq!((host.commands().await, mailed.count("turns").await), before, "no turn begins");

    // A correctly parsed message is not changed.
    let again = mailed.rereads(&[]).await.expect();
    assert_eq!((&again["changed"], &again["messages"][0]["changed"]), (&json!(0), &json!(false)));
    assert_eq!(mailed.count("messages").await, 2);
    assert_eq!(app.column::<String>(line).await.len(), 1);
}

#[tokio::test]
async fn reading_a_message_again_keeps_stored_bytes_right() {
    let mailed = Mailed::start().await;
    let message = mailed.gets("m1", "\nA text, \"quoted\": with some length.\n").await;
    mailed.misread(message, "short").await;
    let sql = "SELECT stored_bytes FROM conversations";
    // As it would be if the text had been stored so.
    let bytes =
        if is_postgres() { "octet_length(CAST(content AS TEXT))" } else { "length(CAST(content AS BLOB))" };
    let taken = format!("SELECT CAST(SUM(512 + {bytes}) AS BIGINT) FROM messages");
    let now: i64 = mailed.app.one(&taken, vec![]).await;
    mailed.app.execute("UPDATE conversations SET stored_bytes = stored_bytes - $1", vec![now.into()]).await;
    let readers: i64 = mailed.app.one(sql, vec![]).await;
    mailed.app.execute("UPDATE conversations SET stored_bytes = stored_bytes + $1", vec![now.into()]).await;
    mailed.rereads(&[]).await.expect();
    let taken: i64 = mailed.app.one(&taken, vec![]).await;
    assert!(taken > now + 512, "an event, and a longer text");
    assert_eq!(mailed.app.one::<i64>(sql, vec![]).await - readers, taken);
}

#[tokio::test]
async fn what_was_read_right_stays_as_it_is() {
    let mailed = Mailed::start_with(|config| config.limits.attachment_bytes = 2_000_000).await;
    let files = |count: usize| -> String {
        (0..count)
            .map(|n| {
                format!(
                    "--x\nContent-Type: text/csv; name=f{n}.csv\nContent-Disposition: attachment\n\na,b\n"
                )
            })
            .collect()
    };
    let mixed = |text: &str, files: &str| {
        format!(
            "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\n{text}\n{files}--x--\n"
        )
    };
    let long = format!("\n{}\n", "many words and ".repeat(40_000));
    let nul = "Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\na=00b\n";
    let noted = "\n[A file came with this message and was not stored: f0.csv (too many files)]\n";
    let mails = [
        ("plain", "\nHello\n".to_owned()),
        ("a file and no words", mixed("", &files(2))),
        ("more files than are kept", mixed("Here they are", &files(12))),
        ("more files than are kept and no words", mixed("", &files(12))),
        ("words like ours", mixed(noted, &files(12))),
        ("a NUL", nul.to_owned()),
        ("too long", long),
        ("nothing", "\n\n".to_owned()),
    ];
    let mut contents = Vec::new();
    for (n, (_, rest)) in mails.iter().enumerate() {
        mailed.gets(&format!("m{n}"), rest).await;
        contents = mailed.contents().await;
    }
    assert_eq!(mailed.count("message_sources").await, mails.len().cast_signed() as i64, "all are kept");
    assert!(
        contents[2]["text"].as_str().unwrap().ends_with("not stored: f11.csv (too many files)]"),
        "{}",
        contents[2]
    );
    let read = mailed.rereads(&[]).await.expect();
    for (mail, read) in mails.iter().zip(read["messages"].as_array().unwrap()) {
        assert_eq!((&read["changed"], &read["error"]), (&json!(false), &Value::Null), "{}: {read}", mail.0);
    }
    assert_eq!(mailed.count("messages WHERE kind = 'EVENT'").await, 0);
    // And when they were misread, all of it is as it would have been.
    for message in mailed.app.column::<i64>("SELECT id FROM messages ORDER BY id").await {
        mailed.misread(message, "kauderwelsch").await;
    }
    assert_eq!(mailed.rereads(&[]).await.expect()["changed"], mails.len());
    assert_eq!(mailed.contents().await, contents);
}

#[tokio::test]
async fn a_kept_mail_is_sealed_and_counted() {
    let mailed = Mailed::start().await;
    let message = mailed.gets("m1", "Subject: Quarterly pomegranates\n\nPomegranate prices went up.\n").await;
    let sealed: Vec<u8> = mailed.app.one("SELECT source_sealed FROM message_sources", vec![]).await;
    for word in ["omegranate", "ada@a.test", "Message-ID", "prices"] {
        let is_plain = sealed.windows(word.len()).any(|part| part == word.as_bytes());
        assert!(!is_plain, "{word:?} stands in the database");
    }
    assert!(sealed.len() > 150, "it is there at all: {}", sealed.len());
    assert_eq!(mailed.app.one::<String>("SELECT notes FROM message_sources", vec![]).await, "");
    assert_eq!(mailed.stored_bytes().await, sealed.len().cast_signed() as i64);
    // A sealed source belongs to its message, and can't be opened for another.
    let other = mailed.gets("m2", "\nAnother one.\n").await;
    let swap = "UPDATE message_sources SET source_sealed = (SELECT source_sealed FROM message_sources WHERE message_id = $1) \
                WHERE message_id = $2";
    mailed.app.execute(swap, vec![other.into(), message.into()]).await;
    let ran = mailed.rereads(&[]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let errors: Vec<_> =
        ran.out["messages"].as_array().unwrap().iter().map(|one| one["error"].clone()).collect();
    assert_eq!(errors, [json!("the sealed value was changed or moved from another place"), Value::Null]);
    assert_eq!(mailed.contents().await, [said("Pomegranate prices went up."), said("Another one.")]);
}

#[tokio::test]
async fn a_mail_that_is_not_kept_comes_in_all_the_same() {
    let big = format!("\n{}\n", "word ".repeat(30_000));
    // No room in the plan: what is sent takes some as well, and is counted each minute.
    let full = Mailed::start().await;
    full.app.execute("UPDATE plans SET max_stored_mib = 0", vec![]).await;
    full.gets("m1", &big).await;
    assert_eq!((full.count("message_sources").await, full.stored_bytes().await), (0, 0));
    full.app.execute("UPDATE plans SET max_stored_mib = 1", vec![]).await;
    full.gets("m2", &big).await;
    assert_eq!(full.count("message_sources").await, 1);

    let off = Mailed::start_with(|config| config.email.keep_source = 0).await;
    off.gets("m1", "\nHello\n").await;
    assert_eq!(off.count("message_sources").await, 0);

    let bounded = Mailed::start_with(|config| config.limits.attachment_bytes = 100_000).await;
    bounded.gets("m1", &big).await;
    assert_eq!(bounded.count("message_sources").await, 0);
    let kept = bounded.gets("m2", "\nHello\n").await;
    assert_eq!(bounded.app.column::<i64>("SELECT message_id FROM message_sources").await, [kept]);
    assert_eq!(bounded.contents().await[0]["text"].as_str().unwrap().len(), "word ".len() * 30_000 - 1);
}

#[tokio::test]
async fn a_kept_mail_goes_in_time_and_with_its_message() {
    let mailed = Mailed::start_with(|config| config.email.keep_source = 3).await;
    let first = mailed.gets("m1", "\nHello\n").await;
    mailed.gets("m2", "\nAgain\n").await;
    let older = "UPDATE message_sources SET created_at = created_at - $2 WHERE message_id = $1";
    let two_days = i64::try_from((DAY * 2).as_millis()).unwrap();
    mailed.app.execute(older, vec![first.into(), two_days.into()]).await;
    let kept = async || {
        jobs::sweep(&mailed.app.core).await.unwrap();
        mailed.count("message_sources").await
    };
    assert_eq!(kept().await, 2);
    mailed.app.clock.advance(DAY + Duration::from_secs(1));
    assert_eq!(kept().await, 1, "three days are over for the first one");
    assert!(mailed.stored_bytes().await > 0);
    // The organization keeps transcripts for a shorter time.
    mailed.app.keeps_for(json!(1)).await;
    mailed.app.execute("UPDATE turns SET state = 'CANCELLED', ended_at = 1", vec![]).await;
    assert_eq!(mailed.app.forgets().await, 2);
    assert_eq!((mailed.count("message_sources").await, mailed.stored_bytes().await), (0, 0));
}

#[tokio::test]
async fn kept_mails_move_to_the_new_sealing_key() {
    let mailed = Mailed::start().await;
    for id in ["m1", "m2", "m3"] {
        let message = mailed.gets(id, "\nIt is in Graz.\n").await;
        mailed.misread(message, "kauderwelsch").await;
    }
    replace_key(&mailed.app).await;
    let keys: Vec<Vec<u8>> = mailed.app.column("SELECT source_sealed FROM message_sources").await;
    let keys: Vec<_> = keys.iter().map(|sealed| sealed[..5].to_vec()).collect();
    assert_eq!(keys, vec![vec![1, 0, 0, 0, 2]; 3]);
    assert_eq!(mailed.rereads(&[]).await.expect()["changed"], 3);
    assert_eq!(mailed.contents().await, vec![said("It is in Graz."); 3]);
}

#[tokio::test]
async fn those_are_read_again_that_are_named() {
    let mailed = Mailed::start().await;
    let mut messages = Vec::new();
    for id in ["m1", "m2", "m3"] {
        messages.push(mailed.gets(id, "\nIt is in Graz.\n").await);
    }
    let [first, second, third] = messages[..] else { panic!("{messages:?}") };
    let (org, other) = (mailed.app.org.to_string(), mailed.app.other_org.to_string());
    let conversation = mailed.conversation(second).await.to_string();
    let (channel, no_channel) = (mailed.channel.to_string(), (mailed.channel + 1).to_string());
    let third_id = third.to_string();
    for (arguments, expected) in [
        (vec!["--org", &org], vec![first, second, third]),
        (vec!["--org", &other], vec![]),
        (vec!["--channel", &channel], vec![first, second, third]),
        (vec!["--channel", &no_channel], vec![]),
        (vec!["--conversation", &conversation], vec![second]),
        (vec!["--channel", &channel, &third_id], vec![third]),
    ] {
        let read = mailed.rereads(&arguments).await.expect();
        let read: Vec<_> = read["messages"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        assert_eq!(json!(read), json!(expected), "{arguments:?}");
    }
    // One of which nothing is kept.
    mailed.app.execute("DELETE FROM message_sources WHERE message_id = $1", vec![first.into()]).await;
    let ran = mailed.rereads(&[&first.to_string(), &third_id]).await;
    assert_eq!((ran.code, &ran.out["not_kept"]), (Some(1), &json!([first])));
    assert_eq!(ran.out["messages"].as_array().unwrap().len(), 1);
    mailed.app.refuses(&["message", "reread", "--org", "Nowhere"], 1, "NOT_FOUND").await;
    mailed.app.refuses(&["message", "reread", "first"], 2, "USAGE").await;
}

#[tokio::test]
async fn other_messages_are_not_kept_as_they_came() {
    let app = inbound_webhooks::app().await;
    let (_, path) = inbound_webhooks::channel(&app, "https://hooks.example/out").await;
    let (status, _) = inbound_webhooks::bring(&app, &path, "m1", &inbound_webhooks::hello("Hi")).await;
    assert_eq!(status, 202);
    until("it is stored", async || app.one::<i64>("SELECT COUNT(*) FROM messages", vec![]).await == 1).await;
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM message_sources", vec![]).await, 0);
}
