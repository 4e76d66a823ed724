//! Mail that comes in: read from a real dovecot, and what the agent is told about its sender.

use std::time::{Duration, SystemTime};

use muster_protocol::{event::TurnOutcome, plan::Part};
use serde_json::{Value, json};

use crate::{
    channels::connect,
    channels_probed::whitelist,
    harness::{Dovecot, MAILBOX, TestApp, found},
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
    let now = u64::try_from(app.clock.now().plus(Duration::from_secs(1)).0).unwrap();
    dovecot.deliver_at("m1", mail, SystemTime::UNIX_EPOCH + Duration::from_millis(now));
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
