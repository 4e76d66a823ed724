//! The channels that are listened to, and their order; and mailboxes whose server is slow, or whose listener ends,
//! while a mail is read.

use std::{sync::Arc, time::Duration};

use muster::{
    base::ids::{ChannelId, OrgId},
    core::{access::Scope, resource_limits::Resource},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    channels::{inbound_webhooks::app, mailbox},
    harness::{Actor, TestApp, until},
};

/// Connects a channel of an organization. Returns its id.
async fn connects(actor: &Actor, org: i64, body: Value) -> i64 {
    actor.post(&format!("/v1/org/{org}/channel"), body).await.expect(201)["id"].as_i64().unwrap()
}

#[tokio::test]
async fn who_has_waited_longest_is_listened_to_first() {
    let app = TestApp::start().await;
    let (agent, other) = (app.agent().await, app.other_agent().await);
    let mut ours = Vec::new();
    for _ in 0..20 {
        ours.push((OrgId(app.org), ChannelId(connects(&app.operator, app.org, mailbox(agent)).await)));
        app.clock.advance(Duration::from_secs(1));
    }
    let mut theirs = Vec::new();
    for _ in 0..2 {
        let id = connects(&app.stranger, app.other_org, mailbox(other)).await;
        theirs.push((OrgId(app.other_org), ChannelId(id)));
        app.clock.advance(Duration::from_secs(1));
    }
    let waiting = async || app.service.ingest.waiting().await.unwrap();
    assert_eq!(waiting().await, [&ours[..16], &theirs].concat(), "the oldest, and a part for each");
    let listened = async |(org, channel): (OrgId, ChannelId), until: i64| {
        let sql = "INSERT INTO channel_listeners (organization_id, channel_id, holder, until) VALUES ($1, $2, 'x', $3)";
        app.execute(sql, vec![org.into(), channel.into(), until.into()]).await;
    };
    let now = app.clock.now();
    // One channel of each organization is listened to. The listener of another has failed, and its pause has ended.
    listened(ours[0], now.plus(Duration::from_secs(15)).0).await;
    listened(theirs[1], now.plus(Duration::from_secs(15)).0).await;
    listened(ours[1], now.0).await;
    assert_eq!(waiting().await, [&ours[2..18], &theirs[..1]].concat());
    app.clock.advance(Duration::from_secs(15));
    assert_eq!(waiting().await, [&ours[2..18], &theirs].concat(), "leases end");
    let off = "UPDATE channels SET is_active = FALSE, inactive_reason = 'MANUAL' WHERE organization_id = $1 AND id < $2";
    app.execute(off, vec![app.org.into(), ours[19].1.into()]).await;
    assert_eq!(waiting().await, [&ours[19..], &theirs].concat(), "those that are switched off do not wait");
}

/// How a mail server gives a mail out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Whole,
    /// All of the mail, and then nothing: not even that this was all.
    Stalls,
}

/// A mail server with one mail. Returns its port.
async fn mail_server(app: &TestApp, mail: Arc<str>, gives: Gives) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let core = Arc::clone(&app.core);
    app.core.tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let speaking = speak(stream, Arc::clone(&mail), gives);
            core.tasks.spawn(async { drop(speaking.await) });
        }
    });
    port
}

async fn speak(stream: TcpStream, mail: Arc<str>, gives: Gives) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"* OK hi\r\n").await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let (tag, command) = line.trim_end().split_once(' ').unwrap_or_default();
        let length = mail.len();
        let data = if command.starts_with("SELECT") {
            "* OK [UIDVALIDITY 1] ok\r\n* OK [UIDNEXT 6] ok\r\n".to_owned()
        } else if command.starts_with("UID SEARCH") {
            "* SEARCH 5\r\n".to_owned()
        } else if command.starts_with("UID FETCH 5 (UID BODY.PEEK[]") {
            stream.write_all(format!("* 1 FETCH (UID 5 BODY[] {{{length}}}\r\n").as_bytes()).await?;
            stream.write_all(mail.as_bytes()).await?;
            if gives == Gives::Stalls {
                // The server keeps reading commands, but never answers.
                while stream.read_line(&mut line).await? > 0 {}
                return Ok(());
            }
            ")\r\n".to_owned()
        } else if command.starts_with("UID FETCH 5:") {
            let arrived = "01-Jan-2099 00:00:00 +0000";
            format!("* 1 FETCH (UID 5 RFC822.SIZE {length} FLAGS () INTERNALDATE \"{arrived}\")\r\n")
        } else {
            String::new()
        };
        stream.write_all(format!("{data}{tag} OK done\r\n").as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

/// A mail of this length, with these headers.
fn mail(headers: &str, line: &str, bytes: usize) -> Arc<str> {
    let head = format!("From: ada@a.test\r\nMessage-ID: <m1@a.test>\r\n{headers}\r\n");
    let lines = (bytes - head.len()) / line.len();
    format!("{head}{}", line.repeat(lines)).into()
}

/// A channel that reads this mail server, in which Ada may write.
async fn reads(actor: &Actor, org: i64, agent: i64, port: u16) {
    let imap = json!({ "host": "127.0.0.1", "port": port, "user": "agent", "pass": "secret", "tls": false });
    let body = json!({
        "name": "Mail", "transport": "EMAIL", "agent_id": agent, "direction": "INBOUND", "email": { "imap": imap },
    });
    let id = connects(actor, org, body).await;
    let list = format!("/v1/org/{org}/channel/{id}/whitelist");
    actor.post(&list, json!({ "origin_id": "ada@a.test" })).await.expect(200);
}

#[tokio::test]
async fn stalled_mails_of_two_organizations_hold_up_no_third() {
    const THIRD: i64 = 103;
    let app = app().await;
    let line = app.core.resource_limits.limit(Resource::Mails);
    let large = mail("", "a line of a large mail\r\n", 40 << 20);
    for (actor, org, agent) in
        [(&app.operator, app.org, app.agent().await), (&app.stranger, app.other_org, app.other_agent().await)]
    {
        reads(actor, org, agent, mail_server(&app, Arc::clone(&large), Gives::Stalls).await).await;
    }
    app.service.ingest.listen();
    until("both take nearly all of the memory", async || line.total() > 235 << 20).await;
    let make = "INSERT INTO organizations (id, name, plan, created_at, updated_at) VALUES ($1, 'Third', 'BUSINESS', $2, $2)";
    app.execute(make, vec![THIRD.into(), app.clock.now().0.into()]).await;
    let owner = app.person_of(THIRD, "OWNER", true).await;
    let agent = app.agent_in(&Scope::system(&app.core, OrgId(THIRD))).await;
    let mail = mail("", "a line of a mail\r\n", 8 << 20);
    reads(&owner, THIRD, agent, mail_server(&app, mail, Gives::Whole).await).await;
    let stored = "SELECT organization_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("the third one's mail is stored", async || app.column::<i64>(stored).await == [THIRD]).await;
    let tried = "SELECT COUNT(*) FROM channel_listeners WHERE cursor LIKE '%sends a mail too slowly%'";
    until("the others' sessions have ended", async || app.column::<i64>(tried).await == [2]).await;
}

#[tokio::test]
async fn what_is_being_read_when_listening_ends_is_stored() {
    let app = app().await;
    // Reading this mail takes a while, but less than the time allowed when listening ends.
    let mail = mail("Content-Type: text/html\r\n", "&amp;<b>a</b>\r\n", 1 << 20);
    let port = mail_server(&app, mail, Gives::Whole).await;
    reads(&app.operator, app.org, app.agent().await, port).await;
    app.service.ingest.listen();
    let cursor = "SELECT COALESCE(MAX(cursor), '') FROM channel_listeners";
    let is_tried = async || app.column::<String>(cursor).await[0].contains("\"tried\"");
    until("it is being read", is_tried).await;
    app.core.tasks.stopping.cancel();
    let stored = "SELECT vendor_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("it is stored", async || app.column::<String>(stored).await == ["m1@a.test"]).await;
    assert!(!is_tried().await);
}
