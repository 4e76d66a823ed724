//! Mail that comes in: read from a real dovecot, and what the agent learns about its sender. Mail that waits to go out.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use muster::{base::enums::MessageRole, domain::deliveries};
use muster_protocol::{event::TurnOutcome, plan::Part};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    channels::{
        connect,
        inbound_webhooks::app,
        probes::whitelist,
        test_messages::{error, test},
    },
    conversations::messages::say,
    harness::{Dovecot, MAILBOX, TestApp, found, until},
};

/// An agent's channel that reads the mailbox.
pub fn mailbox(dovecot: &Dovecot, agent: i64, authserv_id: Option<&str>) -> Value {
    let (host, port) = (dovecot.address.ip(), dovecot.address.port());
    json!({
        "name": "Mail", "transport": "EMAIL", "agent_id": agent, "direction": "INBOUND",
        "email": {
            "imap": { "host": host, "port": port, "user": MAILBOX, "pass": "secret", "tls": false },
            "authserv_id": authserv_id,
        },
    })
}

/// When a mail arrives that is read: after the channel was connected.
pub fn soon(app: &TestApp) -> SystemTime {
    let now = u64::try_from(app.clock.now().plus(Duration::from_secs(1)).0).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(now)
}

#[tokio::test]
async fn a_mail_from_no_address_does_not_hold_up_the_next_one() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    let channel = connect(&app, mailbox(&dovecot, app.agent().await, None)).await;
    whitelist(&app, &channel, "ada@a.test").await;
    // The first one's address has a NUL.
    for (id, from) in [("m1", "=?utf-8?q?a=00b@evil.test?= (x)"), ("m2", "ada@a.test")] {
        let mail = format!("From: {from}\nTo: agent@b.test\nMessage-ID: <{id}@a.test>\n\nHello\n");
        dovecot.deliver_at(id, &mail, soon(&app));
    }
    app.service.ingest.listen();
    let stored = "SELECT vendor_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("the second one is stored", async || app.column::<String>(stored).await == ["m2@a.test"]).await;
}

#[tokio::test]
async fn a_mail_that_cant_be_read_is_listed_by_its_channel() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    let channel = connect(&app, mailbox(&dovecot, app.agent().await, None)).await;
    let id = channel["id"].as_i64().unwrap();
    // The list is full: the oldest one makes room.
    let full = "INSERT INTO channel_skips (organization_id, channel_id, vendor_id, reason, skipped_at) \
                VALUES ($1, $2, $3, 'It has no sender.', $4)";
    for n in 0..100_i64 {
        let row = vec![app.org.into(), id.into(), format!("before {n}").into(), n.into()];
        app.execute(full, row).await;
    }
    let parts = "--x\n\nHello\n".repeat(501);
    let mail = format!(
        "From: ada@a.test\nSubject: Order =?utf-8?q?7=0A8?=\nMessage-ID: <m1@a.test>\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=x\n\n{parts}--x--\n"
    );
    dovecot.deliver_at("m1", &mail, soon(&app));
    app.service.ingest.listen();
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { skipped { vendorId subject reason skippedAt } } }";
    let read = async || {
        let read = app.viewer.gql(query, json!({ "o": app.org, "c": id })).await.data();
        read["channel"]["skipped"].as_array().unwrap().clone()
    };
    until("it is listed", async || read().await[0]["reason"] != "It has no sender.").await;
    let skipped = read().await;
    assert_eq!(skipped[0]["subject"], "Order 7 8");
    assert_eq!(skipped[0]["reason"], "It has more than 500 parts.");
    assert!(skipped[0]["vendorId"].as_str().unwrap().parse::<u32>().is_ok(), "{skipped:?}");
    assert!(skipped[0]["skippedAt"].is_string());
    assert_eq!((skipped.len(), &skipped[99]["vendorId"]), (100, &json!("before 1")));
}

#[tokio::test]
async fn a_note_precedes_a_mail_of_an_unproven_sender() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    // Both read the same mail. One of them believes the server that the mailbox belongs to.
    let agents = [app.running_agent().await, app.running_agent().await];
    for (host, authserv_id) in agents.iter().zip([None, Some("mx.b.test")]) {
        let channel = connect(&app, mailbox(&dovecot, host.agent, authserv_id)).await;
        whitelist(&app, &channel, "ada@a.test").await;
    }
    app.service.ingest.listen();
    let mail = "From: Ada <ada@a.test>\nTo: agent@b.test\nSubject: A question\nMessage-ID: <m1@a.test>\n\
                Authentication-Results: mx.b.test; dmarc=pass header.from=a.test\n\nWhere is my order?\n";
    dovecot.deliver_at("m1", mail, soon(&app));
    let mut told = Vec::new();
    let mut shown = Vec::new();
    for host in agents {
        let turn = found(async || host.given().await.first().copied()).await.expect("the mail is a turn");
        told.push(host.takes(turn).await.prompt);
        host.turn_ended(turn, TurnOutcome::Done).await;
        let sql = "SELECT id FROM conversations WHERE agent_id = $1";
        let conversation: i64 = app.one(sql, vec![host.agent.into()]).await;
        let messages =
            "query($o: Id!, $c: Id!) { messages(orgId: $o, conversationId: $c) { data { isUnproven } } }";
        let read = app.viewer.gql(messages, json!({ "o": app.org, "c": conversation })).await.data();
        shown.push(read["messages"]["data"][0]["isUnproven"].clone());
    }
    assert_eq!(shown, [true, false], "and so are people");
    let text = "Subject: A question\n\nWhere is my order?".to_owned();
    let said = Part::Text { author: Some("Ada".to_owned()), text };
    assert!(
        matches!(&told[0][..], [Part::Note { text }, part] if text.contains("not proven") && *part == said),
        "{told:?}"
    );
    assert_eq!(told[1], [said]);
}

#[tokio::test]
async fn a_mail_without_text_says_its_subject() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    let host = app.running_agent().await;
    let channel = connect(&app, mailbox(&dovecot, host.agent, None)).await;
    whitelist(&app, &channel, "ada@a.test").await;
    app.service.ingest.listen();
    let mail = "From: Ada <ada@a.test>\nSubject: Call me back please\nMessage-ID: <m1@a.test>\n\n\n";
    dovecot.deliver_at("m1", mail, soon(&app));
    let turn = found(async || host.given().await.first().copied()).await.expect("the mail is a turn");
    let prompt = host.takes(turn).await.prompt;
    let text = "Subject: Call me back please".to_owned();
    assert_eq!(prompt.last(), Some(&Part::Text { author: Some("Ada".to_owned()), text }));
    let content: String = app.one("SELECT CAST(content AS TEXT) FROM messages", vec![]).await;
    let content: Value = serde_json::from_str(&content).unwrap();
    let subject = "Call me back please";
    assert_eq!(content, json!({ "text": subject, "subject": subject, "format": "plain" }));
}

/// An SMTP server that takes no recipient for the first time. Returns its port, and whom it was asked to write to.
async fn greylisting(app: &TestApp) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&asked);
    app.core.tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            speak(stream, &kept).await;
        }
    });
    (port, asked)
}

async fn speak(stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    let mut answer = "220 hi";
    while stream.write_all(format!("{answer}\r\n").as_bytes()).await.is_ok() {
        let (mut said, end) = (String::new(), if answer.starts_with("354") { "\r\n.\r\n" } else { "\r\n" });
        while !said.ends_with(end) {
            if stream.read_line(&mut said).await.unwrap_or_default() == 0 {
                return;
            }
        }
        answer = match said.split([' ', '\r']).next().unwrap_or_default() {
            "EHLO" => "250-here\r\n250 8BITMIME",
            "RCPT" => {
                let mut asked = asked.lock().unwrap();
                asked.push(said.trim_end().to_owned());
                if asked.len() == 1 { "451 Try again later." } else { "250 ok" }
            }
            "DATA" => "354 go",
            _ => "250 ok",
        };
    }
}

#[tokio::test]
async fn an_answer_that_waits_goes_to_whom_it_answers() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    let (port, asked) = greylisting(&app).await;
    let mut body = mailbox(&dovecot, app.agent().await, None);
    body["direction"] = json!("BIDIRECTIONAL");
    body["email"]["smtp"] = json!({ "host": "127.0.0.1", "port": port, "from": "agent@b.test" });
    let channel = connect(&app, body).await;
    for address in ["ada@a.test", "bob@a.test"] {
        whitelist(&app, &channel, address).await;
    }
    app.service.ingest.listen();
    let stored = "SELECT vendor_id FROM messages WHERE via_identity_id IS NOT NULL ORDER BY id";
    let mail = |id: &str, from: &str, more: &str| {
        format!("From: {from}\nTo: agent@b.test\nMessage-ID: <{id}@a.test>\n{more}\nWhere is it?\n")
    };
    dovecot.deliver_at("m1", &mail("m1", "ada@a.test", "Cc: Bob <BOB@a.test>\n"), soon(&app));
    until("Ada's mail is stored", async || app.column::<String>(stored).await == ["m1@a.test"]).await;
    let conversation = app.one("SELECT id FROM conversations", vec![]).await;
    say(&app, conversation, MessageRole::Assistant, "In Graz.").await;
    let is = async |status: &str, attempts: i64| {
        deliveries::send_due(&app.core).await.unwrap();
        let sql = "SELECT COUNT(*) FROM deliveries WHERE status = $1 AND attempts = $2";
        app.one::<i64>(sql, vec![status.into(), attempts.into()]).await == 1
    };
    until("it is to be tried again", async || is("PENDING", 1).await).await;
    let reply = mail("m2", "bob@a.test", "In-Reply-To: <m1@a.test>\n");
    dovecot.deliver_at("m2", &reply, soon(&app));
    let both = ["m1@a.test", "m2@a.test"];
    until("Bob's mail is stored", async || app.column::<String>(stored).await == both).await;
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM conversations").await, [1]);
    app.clock.advance(Duration::from_secs(6));
    until("it is sent", async || is("SENT", 2).await).await;
    assert_eq!(*asked.lock().unwrap(), ["RCPT TO:<ada@a.test>"; 2]);
}

#[tokio::test]
async fn a_test_message_goes_to_the_person_who_asks_for_it() {
    let app = app().await;
    let (port, asked) = greylisting(&app).await;
    let channel = json!({
        "name": "Mail", "transport": "EMAIL", "agent_id": app.agent().await, "direction": "OUTBOUND",
        "email": { "smtp": { "host": "127.0.0.1", "port": port, "from": "agent@b.test" } },
    });
    let channel = connect(&app, channel).await["id"].as_i64().unwrap();
    let refused = error(test(&app, &app.operator, channel, None).await);
    assert!(refused.as_str().unwrap().contains("does not take the mail"), "{refused}");
    assert_eq!(error(test(&app, &app.operator, channel, None).await), Value::Null);
    let of = "SELECT email FROM users WHERE id = $1";
    let address: String = app.one(of, vec![app.operator.user.unwrap().into()]).await;
    assert_eq!(*asked.lock().unwrap(), [format!("RCPT TO:<{address}>"), format!("RCPT TO:<{address}>")]);
    let token = app.token(&["agent.edit"]).await;
    assert_eq!(test(&app, &token, channel, None).await.code(), "PERMISSION_DENIED", "it has no address");
}

#[tokio::test]
async fn only_who_takes_part_joins_a_conversation_by_its_mails() {
    let dovecot = Dovecot::start().await;
    let app = app().await;
    let channel = connect(&app, mailbox(&dovecot, app.agent().await, None)).await;
    for name in ["ada", "bob", "cho", "dia"] {
        whitelist(&app, &channel, &format!("{name}@a.test")).await;
    }
    app.service.ingest.listen();
    let conversation_of = async |id: &str, from: &str, more: &str| {
        let mail =
            format!("From: {from}@a.test\nTo: agent@b.test\nMessage-ID: <{id}@a.test>\n{more}\nHello\n");
        dovecot.deliver_at(id, &mail, soon(&app));
        let sql = "SELECT conversation_id FROM messages WHERE vendor_id = $1";
        let id = format!("{id}@a.test");
        let stored = async || app.core.db.one(sql.to_owned(), vec![id.clone().into()]).await.unwrap();
        found(stored).await.expect("the mail is stored").try_get_by::<i64, _>(0).unwrap()
    };
    let answer = "References: <m1@a.test>\n";
    let ada = conversation_of("m1", "ada", "Cc: cho@a.test\n").await;
    let bob = conversation_of("m2", "bob", answer).await;
    assert_ne!(bob, ada, "he has learnt the id somewhere");
    assert_eq!(
        conversation_of("m3", "cho", "Cc: dia@a.test\nIn-Reply-To: <m1@a.test>\n").await,
        ada,
        "Ada wrote to her"
    );
    assert_eq!(conversation_of("m4", "dia", answer).await, ada, "Cho did");
    assert_eq!(conversation_of("m5", "ada", answer).await, ada);
    // The mail itself was removed; the conversation's key is still its id.
    app.execute("UPDATE messages SET vendor_id = NULL WHERE vendor_id = 'm1@a.test'", vec![]).await;
    assert_ne!(conversation_of("m6", "bob", answer).await, ada);
    assert_eq!(conversation_of("m7", "cho", answer).await, ada);
}
