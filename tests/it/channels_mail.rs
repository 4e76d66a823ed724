//! Mail that comes in: read from a real dovecot, and what the agent is told about its sender.

use std::time::{Duration, SystemTime};

use muster_protocol::{event::TurnOutcome, plan::Part};
use serde_json::{Value, json};

use crate::{
    channels::connect,
    channels_probed::whitelist,
    harness::{Dovecot, MAILBOX, TestApp, found, until},
};

/// An agent's channel that reads the mailbox.
fn mailbox(dovecot: &Dovecot, agent: i64, authserv_id: Option<&str>) -> Value {
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
fn soon(app: &TestApp) -> SystemTime {
    let now = u64::try_from(app.clock.now().plus(Duration::from_secs(1)).0).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(now)
}

#[tokio::test]
async fn a_mail_from_no_address_does_not_hold_up_the_next_one() {
    let dovecot = Dovecot::start().await;
    let app =
        TestApp::start_with(|config| config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()]).await;
    let channel = connect(&app, mailbox(&dovecot, app.agent().await, None)).await;
    whitelist(&app, &channel, "ada@a.test").await;
    // The first one's address has a NUL.
    for (id, from) in [("m1", "=?utf-8?q?a=00b@evil.test?= (x)"), ("m2", "ada@a.test")] {
        let mail = format!("From: {from}\nTo: agent@b.test\nMessage-ID: <{id}@a.test>\n\nHello\n");
        dovecot.deliver_at(id, &mail, soon(&app));
    }
    app.service.door.listen();
    let stored = "SELECT vendor_id FROM messages WHERE via_channel_id IS NOT NULL";
    until("the second one is stored", async || app.column::<String>(stored).await == ["m2@a.test"]).await;
}

#[tokio::test]
async fn the_agent_is_told_before_a_mail_that_its_sender_is_not_proven() {
    let dovecot = Dovecot::start().await;
    let app =
        TestApp::start_with(|config| config.channels.networks = vec!["127.0.0.0/8".parse().unwrap()]).await;
    // Both read the same mail. One of them believes the server that the mailbox belongs to.
    let agents = [app.running_agent().await, app.running_agent().await];
    for (host, authserv_id) in agents.iter().zip([None, Some("mx.b.test")]) {
        let channel = connect(&app, mailbox(&dovecot, host.agent, authserv_id)).await;
        whitelist(&app, &channel, "ada@a.test").await;
    }
    app.service.door.listen();
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
    let said = Part::Text { author: Some("Ada".to_owned()), text: "Where is my order?".to_owned() };
    assert!(
        matches!(&told[0][..], [Part::Note { text }, part] if text.contains("not proven") && *part == said),
        "{told:?}"
    );
    assert_eq!(told[1], [said]);
}
