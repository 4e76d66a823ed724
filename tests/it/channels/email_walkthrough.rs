//! The walk of `docs/channels/email.md`: a mail becomes an agent's answer. Service, host and agent are processes of their own, the
//! mailbox is a real dovecot's, and what is sent goes to a real aiosmtpd.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    agents::running::House,
    harness::{Dovecot, MAILBOX, PATIENCE, Smtp, found, until},
};

/// The channel's address.
const ADDRESS: &str = "agent@walk.test";
/// The person who writes to the mailbox.
const ADA: &str = "ada@walk.test";

/// A mail of Ada's, as the mailbox's server keeps it: it has proven who sends it. `more` is a header, with the end of its line.
fn mail(id: &str, subject: &str, more: &str, text: &str) -> String {
    format!(
        "Authentication-Results: mx.walk.test; dmarc=pass header.from=walk.test\nFrom: Ada <{ADA}>\n\
         To: {ADDRESS}\nSubject: {subject}\nMessage-ID: <{id}@walk.test>\n{more}\n{text}\n"
    )
}

/// Connects the mailbox with an agent, as the manual says, and waits until it is read. Returns the channel's id.
async fn connected(house: &House, agent: i64, dovecot: &Dovecot, smtp: &Smtp) -> Value {
    let body = json!({
        "name": "Support", "transport": "EMAIL", "agent_id": agent,
        "email": {
            "imap": {
                "host": "127.0.0.1", "port": dovecot.address.port(), "user": MAILBOX, "pass": "secret", "tls": false,
            },
            "smtp": { "host": "127.0.0.1", "port": smtp.port, "from": ADDRESS },
            "authserv_id": "mx.walk.test",
        },
    });
    let path = format!("/v1/org/{}/channel", house.tenant.org);
    let channel = house.actor.post(&path, body).await.expect(201)["id"].clone();
    house.actor.post(&format!("{path}/{channel}/whitelist"), json!({ "origin_id": ADA })).await.expect(200);
    let query = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { isActive warnings link { state } } }";
    let mut last = Value::Null;
    let is_read = async || {
        last = house.gql(query, json!({ "c": channel })).await["channel"].clone();
        (last["link"]["state"] == "UP").then_some(())
    };
    let is_read = found(is_read).await.is_some();
    assert!(is_read, "the mailbox is not read: {last:#}");
    // Both servers were reached, and vouch for what they must.
    assert_eq!((&last["isActive"], &last["warnings"]), (&json!(true), &json!([])));
    channel
}

/// The agent's conversations, as the panel lists them.
async fn conversations(house: &House, agent: i64) -> Vec<Value> {
    let query = "query($o: Id!, $a: Id!) { conversations(orgId: $o, agentId: $a) { data { \
                 id title transport channelId contactName } } }";
    house.gql(query, json!({ "a": agent })).await["conversations"]["data"].as_array().unwrap().clone()
}

/// A conversation's messages, as the panel shows them.
async fn messages(house: &House, conversation: i64) -> Vec<Value> {
    let query = "query($o: Id!, $c: Id!) { messages(orgId: $o, conversationId: $c) { data { \
                 role authorName isUnproven viaChannelId content delivery { status error } } } }";
    house.gql(query, json!({ "c": conversation })).await["messages"]["data"].as_array().unwrap().clone()
}

/// Waits until this many of the agent's messages are sent.
async fn are_sent(house: &House, conversation: i64, count: usize) {
    let sent = json!({ "status": "SENT", "error": null });
    let are_sent = async || {
        let messages = messages(house, conversation).await;
        let answers = messages.iter().filter(|message| message["role"] == "ASSISTANT");
        (answers.filter(|answer| answer["delivery"] == sent).count() == count).then_some(())
    };
    let are_sent = found(are_sent).await.is_some();
    assert!(are_sent, "{count} should be sent: {:#?}", messages(house, conversation).await);
}

/// The next mail that the mail server is given.
async fn next(smtp: &mut Smtp) -> Value {
    timeout(PATIENCE, smtp.mail()).await.expect("a mail is sent")
}

/// A header of a mail that was sent.
#[track_caller]
fn header<'a>(mail: &'a Value, name: &str) -> &'a str {
    mail["headers"][name].as_str().unwrap_or_else(|| panic!("it has no {name}: {mail:#}"))
}

/// Looks at what is the same in each answer to Ada, and for what the agent says in this one.
#[track_caller]
fn answers(mail: &Value, said: &str) {
    assert_eq!((&mail["sender"], &mail["to"]), (&json!(ADDRESS), &json!([ADA])), "its envelope");
    let from = format!("Support <{ADDRESS}>");
    let expected = [
        ("from", from.as_str()),
        ("to", ADA),
        ("subject", "Re: My order"),
        ("auto-submitted", "auto-replied"),
        ("x-auto-response-suppress", "All"),
    ];
    assert_eq!(expected.map(|(name, _)| (name, header(mail, name))), expected);
    assert!(header(mail, "message-id").ends_with("@walk.test>"), "{mail:#}");
    for kind in ["plain", "html"] {
        assert!(mail[kind].as_str().is_some_and(|text| text.contains(said)), "{kind}: {mail:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_answered_and_its_reply_continues() {
    let dovecot = Dovecot::start().await;
    let mut smtp = Smtp::start("127.0.0.1", 0, "open", dovecot.folder()).await;
    let house = House::open_with(&[("MUSTER_CHANNELS_NETWORKS", "127.0.0.1/32")]).await;
    let crew = house.crew("post").await;
    house.starts(&crew).await;
    let channel = connected(&house, crew.agent, &dovecot, &smtp).await;

    dovecot.deliver("m1", &mail("first", "My order", "", "Where is it?"));
    let begun = async || conversations(&house, crew.agent).await.pop();
    let begun = found(begun).await.expect("the mail begins a conversation");
    let id = begun["id"].as_i64().unwrap();
    let expected = json!({
        "id": id, "title": "My order", "transport": "EMAIL", "channelId": channel, "contactName": "Ada",
    });
    assert_eq!(begun, expected);
    house.hears(&crew, id, "You said: Subject: My order\n\nWhere is it?").await;
    let first = next(&mut smtp).await;
    answers(&first, "You said: Subject: My order");
    assert_eq!(header(&first, "in-reply-to"), "<first@walk.test>");
    assert_eq!(header(&first, "references"), "<first@walk.test>");
    are_sent(&house, id, 1).await;
    let said = messages(&house, id).await.remove(0);
    let expected = json!({
        "role": "USER", "authorName": "Ada", "isUnproven": false, "viaChannelId": channel,
        "content": { "text": "Where is it?", "format": "plain", "subject": "My order" }, "delivery": null,
    });
    assert_eq!(said, expected);

    // She answers the agent's mail. Nothing else in it names the conversation.
    let answered = header(&first, "message-id").to_owned();
    let more = format!("In-Reply-To: {answered}\n");
    dovecot.deliver("m2", &mail("second", "And another thing", &more, "When does it come?"));
    house.hears(&crew, id, "You said: Subject: And another thing\n\nWhen does it come?").await;
    let second = next(&mut smtp).await;
    answers(&second, "You said: Subject: And another thing");
    assert_eq!(header(&second, "in-reply-to"), "<second@walk.test>");
    let references: Vec<_> = header(&second, "references").split_whitespace().collect();
    assert_eq!(references, ["<first@walk.test>", answered.as_str(), "<second@walk.test>"]);
    assert_ne!(header(&second, "message-id"), answered);
    are_sent(&house, id, 2).await;
    assert_eq!(house.rests(id).await, ["DONE", "DONE"]);
    assert_eq!(conversations(&house, crew.agent).await.len(), 1, "both are one conversation");
    until("what comes in is marked as seen", async || dovecot.seen() > 0).await;
}
