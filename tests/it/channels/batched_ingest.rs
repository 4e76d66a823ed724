//! Messages that come in together: written by few statements, and yet each in its conversation, once, in order, told of and
//! found.

use std::{collections::BTreeMap, time::Duration};

use futures::FutureExt;
use muster::{
    base::{
        enums::{ChangeOp, MessageRole, RecordKind, Transport},
        ids::{AgentId, ChannelId, ContactId, ConversationId, IdentityId, MessageId, OrgId},
    },
    core::{Event, News, access::Caller, events::Subscription},
    domain::{
        agents,
        conversations::{self, Incoming},
    },
};
use muster_channels::Thread;
use serde_json::{Value, json};

use crate::{
    channels::inbound_webhooks::{app, bring, bring_named, channel, forbid},
    conversations::messages::say,
    harness::{Socket, TestApp, is_postgres},
};

fn says(who: &str, thread: &str, text: &str) -> Value {
    json!({ "text": text, "origin_id": who, "origin_name": who, "thread": thread })
}

/// A channel with a person who has written through it.
struct Known {
    agent: AgentId,
    channel: ChannelId,
    contact: ContactId,
    identity: IdentityId,
    conversation: ConversationId,
}

impl Known {
    /// Ada, who has written once, in the thread "t1".
    async fn ada(app: &TestApp) -> Self {
        let (channel, path) = channel(app, "https://hooks.example/out").await;
        let (status, taken) = bring(app, &path, "first", &says("Ada", "t1", "Hello")).await;
        assert_eq!(status, 202, "{taken}");
        let id = async |sql: &str| app.one::<i64>(sql, vec![]).await;
        Self {
            agent: AgentId(id("SELECT agent_id FROM channels").await),
            channel: ChannelId(channel),
            contact: ContactId(id("SELECT contact_id FROM identities").await),
            identity: IdentityId(id("SELECT id FROM identities").await),
            conversation: ConversationId(taken["conversation_id"].as_i64().unwrap()),
        }
    }

    fn says<'a>(&self, thread: &'a Thread, n: usize) -> Incoming<'a> {
        Incoming {
            channel: self.channel,
            transport: Transport::Webhook,
            contact: self.contact,
            identity: self.identity,
            author: Some("Ada".to_owned()),
            key: Some(format!("key-{n}")),
            vendor_id: Some(format!("vendor-{n}")),
            album: None,
            is_edit: false,
            thread,
            context: "",
            text: format!("word{n} of many"),
            files: Vec::new(),
            source: None,
            is_answered: true,
            is_automatic: false,
            is_unproven: false,
        }
    }
}

fn thread(key: &str, refs: &[&str]) -> Thread {
    let refs = refs.iter().map(|id| (*id).to_owned()).collect();
    Thread {
        key: key.to_owned(),
        refs,
        readers: Vec::new(),
        target: key.to_owned(),
        title: None,
        is_private: false,
    }
}

/// Stores these in one transaction, in this order.
async fn receive(
    app: &TestApp,
    agent: AgentId,
    incoming: Vec<Incoming<'_>>,
) -> Vec<(ConversationId, MessageId)> {
    let tx = app.scope().begin().await.unwrap();
    let agent = agents::lock_agent(&tx, agent).await.unwrap().unwrap();
    let stored = conversations::receive(&tx, &agent, incoming).await.unwrap();
    tx.commit().await.unwrap();
    stored
}

/// The events so far about records of these kinds.
fn heard(news: &mut Subscription, kinds: &[RecordKind]) -> Vec<Event> {
    let mut heard = Vec::new();
    while let Some(Some((told, _))) = news.next().now_or_never() {
        if let News::Changed(event) = told
            && kinds.contains(&event.kind)
        {
            heard.push(event);
        }
    }
    heard
}

/// The places of a conversation's messages, with their texts, in order.
async fn said(app: &TestApp, conversation: i64) -> Vec<(i64, String)> {
    let of = |column: &str| {
        format!("SELECT {column} FROM messages WHERE conversation_id = {conversation} ORDER BY seq")
    };
    let seqs: Vec<i64> = app.column(&of("seq")).await;
    let contents: Vec<Value> = app.column(&of("content")).await;
    let texts = contents.iter().map(|content| content["text"].as_str().unwrap().to_owned());
    seqs.into_iter().zip(texts).collect()
}

/// Where a word is found in a conversation.
async fn found(app: &TestApp, (agent, conversation): (i64, i64), word: &str) -> Value {
    let query = "query($o: Id!, $a: Id!, $c: Id!, $q: String!) { \
        searchMessages(orgId: $o, agentId: $a, conversationId: $c, q: $q) { data { seq } } }";
    let variables = json!({ "o": app.org, "a": agent, "c": conversation, "q": word });
    app.viewer.gql(query, variables).await.data()["searchMessages"]["data"].clone()
}

#[tokio::test]
async fn an_id_of_ours_leads_to_our_conversation() {
    let app = app().await;
    let ada = Known::ada(&app).await;
    say(&app, ada.conversation.0, MessageRole::Assistant, "Hello, Ada").await;
    app.execute("UPDATE deliveries SET vendor_id = 'ours@b.test'", vec![]).await;
    // A recipient reuses our mail's id for a mail of another thread.
    let (theirs, reply) = (thread("m1@a.test", &[]), thread("m2@a.test", &["ours@b.test"]));
    let mail = |thread, id: &str, n| Incoming {
        transport: Transport::Email,
        vendor_id: Some(id.to_owned()),
        ..ada.says(thread, n)
    };
    let other = receive(&app, ada.agent, vec![mail(&theirs, "ours@b.test", 1)]).await[0].0;
    assert_ne!(other, ada.conversation);
    let answered = receive(&app, ada.agent, vec![mail(&reply, "m2@a.test", 2)]).await[0].0;
    assert_eq!(answered, ada.conversation);
}

#[tokio::test]
async fn who_got_a_mail_counts_in_what_is_stored() {
    let app = app().await;
    app.keeps_for(json!(1)).await;
    let ada = Known::ada(&app).await;
    let to = |first: usize| Thread {
        readers: (first..first + 100).map(|n| format!("reader-{n}@a.test")).collect(),
        ..thread("m1@a.test", &[])
    };
    let threads = [to(0), to(50), to(80)];
    let mail = |n: usize| Incoming { transport: Transport::Email, ..ada.says(&threads[n], n) };
    // Two at once, and another.
    let begun = receive(&app, ada.agent, vec![mail(0), mail(1)]).await[0].0;
    assert_eq!(receive(&app, ada.agent, vec![mail(2)]).await[0].0, begun);
    let stored = async || {
        app.one::<i64>("SELECT stored_bytes FROM conversations WHERE id = $1", vec![begun.into()]).await
    };
    let readers: Value = app.one("SELECT readers FROM conversations WHERE id = $1", vec![begun.into()]).await;
    assert_eq!(readers.as_array().unwrap().len(), 180);
    let readers = i64::try_from(readers.to_string().len()).unwrap();
    let length =
        if is_postgres() { "octet_length(CAST(content AS TEXT))" } else { "length(CAST(content AS BLOB))" };
    let sum =
        format!("SELECT CAST(SUM(512 + {length}) AS BIGINT) FROM messages WHERE conversation_id = {begun}");
    let messages: i64 = app.one(&sum, vec![]).await;
    assert_eq!(stored().await, readers + messages);
    app.execute("UPDATE turns SET state = 'CANCELLED', ended_at = 1", vec![]).await;
    app.clock.advance(Duration::from_hours(9 * 24));
    assert_eq!(app.forgets().await, 2);
    assert_eq!(stored().await, readers, "they stay when the messages go");
}

#[tokio::test]
async fn a_mail_thread_goes_on_after_its_transcript_was_removed() {
    let app = app().await;
    app.keeps_for(json!(1)).await;
    let ada = Known::ada(&app).await;
    let (first, reply) = (thread("m1@a.test", &[]), thread("m3@a.test", &["m2@b.test", "m1@a.test"]));
    let mail = |thread, n| Incoming {
        transport: Transport::Email,
        vendor_id: Some(format!("m{n}@a.test")),
        ..ada.says(thread, n)
    };
    let begun = receive(&app, ada.agent, vec![mail(&first, 1)]).await[0].0;
    app.execute("UPDATE turns SET state = 'CANCELLED', ended_at = 1", vec![]).await;
    app.clock.advance(Duration::from_hours(9 * 24));
    assert_eq!(app.forgets().await, 2);
    assert_eq!(receive(&app, ada.agent, vec![mail(&reply, 3)]).await[0].0, begun);
    assert_eq!(said(&app, begun.0).await, [(2, "word3 of many".to_owned())]);
    // A webhook's reference is not the key of a thread.
    let other = thread("t4", &["m1@a.test"]);
    let stored = receive(&app, ada.agent, vec![ada.says(&other, 4)]).await;
    assert_ne!(stored[0].0, begun);
}

#[tokio::test]
async fn messages_of_conversations_are_written_in_one_batch() {
    let app = app().await;
    let ada = Known::ada(&app).await;
    let (one, two) = (thread("t1", &[]), thread("t2", &[]));
    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    // The thread "t1" gets the even ones; the odd ones begin "t2".
    let incoming = (0..7).map(|n| ada.says(if n % 2 == 0 { &one } else { &two }, n)).collect();
    let stored = receive(&app, ada.agent, incoming).await;
    let begun = stored[1].0;
    let places: Vec<_> = stored.iter().map(|(conversation, _)| *conversation).collect();
    assert_eq!(places, (0..7).map(|n| if n % 2 == 0 { ada.conversation } else { begun }).collect::<Vec<_>>());
    let text = |n: usize| format!("word{n} of many");
    let expected = [(1, "Hello".to_owned()), (2, text(0)), (3, text(2)), (4, text(4)), (5, text(6))];
    assert_eq!(said(&app, ada.conversation.0).await, expected);
    assert_eq!(said(&app, begun.0).await, [(1, text(1)), (2, text(3)), (3, text(5))]);
    // The ids returned for each message are those of its own row.
    for (n, (conversation, message)) in stored.iter().enumerate() {
        let row = format!(
            "SELECT dedupe_key FROM messages WHERE id = {message} AND conversation_id = {conversation}"
        );
        assert_eq!(app.column::<String>(&row).await, [format!("key-{n}")]);
        let seq = n / 2 + if n % 2 == 0 { 2 } else { 1 };
        let hits = found(&app, (ada.agent.0, conversation.0), &format!("word{n}")).await;
        assert_eq!(hits, json!([{ "seq": seq }]), "word{n}");
    }
    for (conversation, (count, last)) in [(ada.conversation, (5, 6)), (begun, (3, 5))] {
        let query = "query($o: Id!, $c: Id!) { conversation(orgId: $o, id: $c) { messageCount lastMessage { seq preview } } }";
        let shown = app.viewer.gql(query, json!({ "o": app.org, "c": conversation.0 })).await.data();
        let summary =
            json!({ "messageCount": count, "lastMessage": { "seq": count, "preview": text(last) } });
        assert_eq!(shown["conversation"], summary);
        let reach =
            |column: &str| format!("SELECT {column} FROM turns WHERE conversation_id = {conversation}");
        assert_eq!(app.column::<i64>(&reach("first_seq")).await, [1], "one turn");
        assert_eq!(app.column::<i64>(&reach("last_seq")).await, [count]);
    }
    let told = heard(&mut news, &[RecordKind::Conversation, RecordKind::Message]);
    let org = OrgId(app.org);
    let mut expected =
        vec![Event::new(org, ChangeOp::Created, RecordKind::Conversation, begun).with_parent(ada.agent)];
    expected.extend(stored.iter().map(|(conversation, message)| {
        Event::new(org, ChangeOp::Created, RecordKind::Message, *message).with_parent(*conversation)
    }));
    expected.push(
        Event::new(org, ChangeOp::Updated, RecordKind::Conversation, ada.conversation).with_parent(ada.agent),
    );
    assert_eq!(told, expected);
}

/// A message may depend on one that came with it, and that is not written yet when it is read.
#[tokio::test]
async fn a_message_may_refer_to_one_that_came_with_it() {
    let app = app().await;
    let ada = Known::ada(&app).await;
    let (begins, refers) = (thread("t2", &[]), thread("t3", &["vendor-7", "vendor-0"]));
    let incoming = vec![ada.says(&begins, 0), ada.says(&refers, 1), ada.says(&begins, 2)];
    let stored = receive(&app, ada.agent, incoming).await;
    let begun = stored[0].0;
    assert_ne!(begun, ada.conversation);
    assert!(stored.iter().all(|(conversation, _)| *conversation == begun), "{stored:?}");
    let expected = [0_usize, 1, 2].map(|n| format!("word{n} of many"));
    assert_eq!(said(&app, begun.0).await, [1, 2, 3].into_iter().zip(expected).collect::<Vec<_>>());
}

/// Two robots would talk forever: a program that writes many messages at once gets no more answers than one that writes
/// them one by one.
#[tokio::test]
async fn of_what_a_program_writes_at_once_three_are_answered() {
    let app = app().await;
    let ada = Known::ada(&app).await;
    let own = thread("t2", &[]);
    let incoming = (0..5).map(|n| Incoming { is_automatic: true, ..ada.says(&own, n) }).collect();
    let begun = receive(&app, ada.agent, incoming).await[0].0;
    let sql = format!(
        "SELECT COUNT(*) FROM messages WHERE conversation_id = {begun} AND turn_id IS NOT NULL AND seq <= 3"
    );
    assert_eq!(app.column::<i64>(&sql).await, [3]);
    assert_eq!(said(&app, begun.0).await.len(), 5);
    let reach = format!("SELECT last_seq FROM turns WHERE conversation_id = {begun}");
    assert_eq!(app.column::<i64>(&reach).await, [3]);
}

#[tokio::test]
async fn in_a_batch_repeats_are_stored_once_and_failures_alone() {
    let app = app().await;
    app.expects_failures();
    let (channel, path) = channel(&app, "https://hooks.example/out").await;
    let agent: i64 = app.one("SELECT agent_id FROM channels WHERE id = $1", vec![channel.into()]).await;
    forbid(&app, "Unspeakable").await;
    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    let all = [
        ("a", says("Ada", "t1", "Apples")),
        ("b", says("Bob", "t2", "Bananas")),
        ("c", says("Ada", "t1", "Cherries")),
        ("c", says("Ada", "t1", "Cherries")),
        ("d", says("Mallory", "t3", "Unspeakable")),
        ("e", says("Bob", "t2", "Elderberries")),
        ("f", says("Ada", "t1", "Figs")),
    ];
    let answers = bring_named(&app, &path, &all.map(|(id, said)| (id.to_owned(), said))).await;
    let mut statuses: Vec<_> = answers.iter().map(|(status, _)| *status).collect();
    // Which of the two came first is open.
    statuses[2..4].sort_unstable();
    assert_eq!(statuses, [202, 202, 200, 202, 500, 202, 202], "{answers:?}");
    let of = |n: usize| answers[n].1["conversation_id"].as_i64().unwrap();
    let expected = [(of(0), vec!["Apples", "Cherries", "Figs"]), (of(1), vec!["Bananas", "Elderberries"])];
    for (conversation, words) in expected {
        let stored = said(&app, conversation).await;
        let (seqs, mut texts): (Vec<_>, Vec<_>) = stored.iter().cloned().unzip();
        assert_eq!(seqs, (1..).take(words.len()).collect::<Vec<i64>>());
        texts.sort_unstable();
        assert_eq!(texts, words);
        for (seq, word) in stored {
            assert_eq!(found(&app, (agent, conversation), &word).await, json!([{ "seq": seq }]), "{word}");
        }
    }
    let reach = async |column: &str| {
        app.column::<i64>(&format!("SELECT {column} FROM turns ORDER BY {column}")).await
    };
    assert_eq!((reach("first_seq").await, reach("last_seq").await), (vec![1, 1], vec![2, 3]));
    // Nothing is left of what failed.
    for (of, count) in
        [("messages", 5), ("conversations", 2), ("turns", 2), ("contacts", 2), ("identities", 2)]
    {
        assert_eq!(app.column::<i64>(&format!("SELECT COUNT(*) FROM {of}")).await, [count], "{of}");
    }
    // And each was told of as created, once.
    let kinds = [RecordKind::Message, RecordKind::Conversation, RecordKind::Contact];
    let mut created: BTreeMap<&str, usize> = BTreeMap::new();
    for event in heard(&mut news, &kinds) {
        if event.op == ChangeOp::Created {
            *created.entry(event.kind.as_str()).or_default() += 1;
        }
    }
    assert_eq!(created, BTreeMap::from([("CONTACT", 2), ("CONVERSATION", 2), ("MESSAGE", 5)]));
}

#[tokio::test]
async fn a_first_message_announces_contact_and_conversation() {
    let app = app().await;
    let (_, path) = channel(&app, "https://hooks.example/out").await;
    let mut client = Socket::of(&app.owner).await;
    let watch = "subscription($o: Id!) { changes(orgId: $o, kinds: [CONTACT, CONVERSATION]) { kind id op } }";
    client.subscribe("1", watch, json!({ "o": app.org })).await;
    let mut told = async || client.next().await["payload"]["data"]["changes"].clone();
    assert_eq!(told().await["op"], "RESYNC");
    let (_, taken) = bring(&app, &path, "m1", &says("Ada", "t1", "Hello")).await;
    let conversation = &taken["conversation_id"];
    let contact: i64 = app.one("SELECT id FROM contacts", vec![]).await;
    assert_eq!(told().await, json!({ "kind": "CONTACT", "id": contact, "op": "CREATED" }));
    assert_eq!(told().await, json!({ "kind": "CONVERSATION", "id": conversation, "op": "CREATED" }));
    // The next one begins nothing.
    assert_eq!(bring(&app, &path, "m2", &says("Ada", "t1", "Again")).await.0, 202);
    assert_eq!(told().await, json!({ "kind": "CONVERSATION", "id": conversation, "op": "UPDATED" }));
}
