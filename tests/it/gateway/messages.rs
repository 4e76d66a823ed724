//! Messages that hosts report, many at a time: a few statements for all, each message once and in order, and none by an old
//! connection.

use muster::domain::hosts::{self, Ended, Link, MAX_EVENTS};
use muster_protocol::{Event, FromHost};
use serde_json::{Value, json};

use crate::harness::{TestApp, gateway::Host};

/// A connection of the host, without its socket.
async fn link(app: &TestApp, host: &Host) -> Link {
    let who = hosts::identify(&app.core, hosts::parse_host_token(&host.token).unwrap()).await.unwrap();
    let FromHost::Hello(hello) = serde_json::from_value(host.hello()).unwrap() else { panic!("not a HELLO") };
    hosts::accept_connection(&app.scope(), &who, &hello).await.unwrap().0
}

/// A host's reports, numbered.
struct Reports {
    link: Link,
    seq: i64,
}

impl Reports {
    async fn of(app: &TestApp, host: &Host) -> Self {
        Self { link: link(app, host).await, seq: 0 }
    }

    fn event(&mut self, (agent, generation): (i64, i64), what: &Value) -> Event {
        self.seq += 1;
        let event =
            json!({ "seq": self.seq, "agent_id": agent, "generation": generation, "at": 1, "what": what });
        serde_json::from_value(event).unwrap()
    }

    async fn store(&mut self, of: (i64, i64), all: Vec<Value>) {
        let events: Vec<Event> = all.into_iter().map(|what| self.event(of, &what)).collect();
        assert_eq!(hosts::store_events(&self.link, &events).await.unwrap(), 0);
    }
}

fn message(conversation: i64, turn: Option<i64>, n: usize) -> Value {
    json!({
        "kind": "MESSAGE", "conversation_id": conversation, "turn_id": turn, "key": format!("1.{n}"),
        "content": { "kind": "TEXT", "text": format!("word{n} of many") },
    })
}

/// The keys of the host's messages in the conversation, in order. Their places have no gaps.
async fn keys(app: &TestApp, conversation: i64) -> Vec<String> {
    let of = |column: &str| {
        format!("SELECT {column} FROM messages WHERE conversation_id = {conversation} ORDER BY seq")
    };
    let seqs: Vec<i64> = app.column(&of("seq")).await;
    assert_eq!(seqs, (1..=i64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>());
    let keys: Vec<Option<String>> = app.column(&of("host_key")).await;
    keys.into_iter().flatten().collect()
}

fn named(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|n| format!("1.{n}")).collect()
}

#[tokio::test]
async fn a_batch_takes_as_few_statements_as_one_message() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let host = app.host_of(agent).await;
    let generation = app.start_agent(agent).await;
    let turn = crate::conversations::turns::write(&app, conversation, "Go on.").await;
    let mut reports = Reports::of(&app, &host).await;
    let mut said = 0;
    let mut costs = Vec::new();
    for size in [1, 20, MAX_EVENTS] {
        // Recurring work may fall into a measurement.
        let mut least = u64::MAX;
        for _ in 0..3 {
            let batch = (said..said + size).map(|n| message(conversation, Some(turn), n)).collect();
            said += size;
            let before = app.writes();
            reports.store((agent, generation), batch).await;
            least = least.min(app.writes() - before);
        }
        costs.push(least);
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
    assert!(costs[0] <= 13, "{costs:?}");
    assert_eq!(keys(&app, conversation).await, named(0..said));
}

#[tokio::test]
async fn a_batch_is_stored_once_and_in_order() {
    let (app, one, two) = TestApp::with_two_agents().await;
    let host = app.host_of(one).await;
    app.execute("UPDATE agents SET server_id = $1 WHERE id = $2", vec![host.server.into(), two.into()]).await;
    let places = [
        (one, app.conversation(one).await),
        (one, app.conversation(one).await),
        (two, app.conversation(two).await),
    ];
    let generation = app.start_agent(one).await;
    assert_eq!(app.start_agent(two).await, generation);
    let turn = crate::conversations::turns::write(&app, places[0].1, "Go on.").await;
    let mut reports = Reports::of(&app, &host).await;
    // The second round is a host that has lost its place. In the first, every tenth message comes twice.
    for round in 0..2 {
        let mut events = Vec::new();
        for n in 0..60 {
            let (agent, conversation) = places[n % 3];
            let what = message(conversation, (n % 3 == 0).then_some(turn), n);
            for _ in 0..=usize::from(n % 10 == 0) {
                events.push(reports.event((agent, generation), &what));
            }
        }
        assert_eq!(hosts::store_events(&reports.link, &events).await.unwrap(), 0, "{round}");
    }
    for (n, (agent, conversation)) in places.into_iter().enumerate() {
        let expected: Vec<usize> = (0..60).filter(|m| m % 3 == n).collect();
        assert_eq!(keys(&app, conversation).await, named(expected.iter().copied()));
        let query = "query($o: Id!, $a: Id!, $c: Id!, $q: String!) { \
            conversation(orgId: $o, id: $c) { messageCount lastMessage { seq preview } } \
            searchMessages(orgId: $o, agentId: $a, conversationId: $c, q: $q) { data { seq } } }";
        let word = format!("word{}", expected[7]);
        let variables = json!({ "o": app.org, "a": agent, "c": conversation, "q": word });
        let shown = app.viewer.gql(query, variables).await.data();
        // Its own first message belongs to the person.
        let count = if n == 0 { 21 } else { 20 };
        let last = format!("word{} of many", expected[19]);
        let summary = json!({ "messageCount": count, "lastMessage": { "seq": count, "preview": last } });
        assert_eq!(shown["conversation"], summary);
        assert_eq!(shown["searchMessages"]["data"], json!([{ "seq": count - 12 }]));
    }
    assert_eq!(app.one::<i64>("SELECT last_seq FROM turns WHERE id = $1", vec![turn.into()]).await, 21);
}

#[tokio::test]
async fn only_the_unstorable_message_is_left_out() {
    let (app, agent, stranger) = TestApp::with_two_agents().await;
    let (conversation, theirs) = (app.conversation(agent).await, app.conversation(stranger).await);
    let host = app.host_of(agent).await;
    let generation = app.start_agent(agent).await;
    let mut reports = Reports::of(&app, &host).await;
    let mut batch: Vec<Value> = (0..9).map(|n| message(conversation, None, n)).collect();
    batch[2] = message(theirs, None, 2);
    batch[4] = message(conversation, Some(4711), 4);
    batch[6] = json!({ "kind": "SYNCED" });
    reports.store((agent, generation), batch).await;
    assert_eq!(keys(&app, conversation).await, named([0, 1, 3, 5, 7, 8]));
    assert_eq!(keys(&app, theirs).await, named([]));
}

#[tokio::test]
async fn messages_of_an_old_connection_or_launch_are_not_stored() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let host = app.host_of(agent).await;
    let generation = app.start_agent(agent).await;
    let mut old = Reports::of(&app, &host).await;
    let mut new = Reports::of(&app, &host).await;
    let events: Vec<Event> =
        (0..5).map(|n| old.event((agent, generation), &message(conversation, None, n))).collect();
    let refused = hosts::store_events(&old.link, &events).await;
    assert!(
        matches!(&refused, Err(Ended::Refused(refusal)) if refusal.reason.contains("newer")),
        "{refused:?}"
    );
    assert_eq!(keys(&app, conversation).await, named([]));
    // Repeated numbers notify no one, and a batch with a gap is refused as a whole.
    new.store((agent, generation), (0..5).map(|n| message(conversation, None, n)).collect()).await;
    for numbers in [0..5, 6..8] {
        let events: Vec<Event> = numbers
            .map(|n: usize| {
                new.seq = i64::try_from(n).unwrap();
                new.event((agent, generation), &message(conversation, None, 100 + n))
            })
            .collect();
        hosts::store_events(&new.link, &events).await.unwrap_err();
    }
    assert_eq!(keys(&app, conversation).await, named(0..5));
    // A replaced launch has nothing to say.
    app.execute("UPDATE agents SET launch_generation = 2 WHERE id = $1", vec![agent.into()]).await;
    new.seq = 5;
    new.store((agent, generation), vec![message(conversation, None, 9)]).await;
    assert_eq!(keys(&app, conversation).await, named(0..5));
}

/// SQLite has a single writer.
#[tokio::test]
async fn postgres_agents_are_held_in_order_also_after_leaving() {
    let (app, one, other) = TestApp::with_two_agents().await;
    let (moved, own) = (one.min(other), one.max(other));
    let host = app.host_of(moved).await;
    let server = |server: i64, agent: i64| {
        app.execute("UPDATE agents SET server_id = $1 WHERE id = $2", vec![server.into(), agent.into()])
    };
    server(host.server, own).await;
    let launches = [(own, app.start_agent(own).await), (moved, app.start_agent(moved).await)];
    let mut reports = Reports::of(&app, &host).await;
    // Its command was sent before it was moved.
    app.execute("UPDATE commands SET host_seq = 1 WHERE agent_id = $1", vec![moved.into()]).await;
    server(app.server().await, moved).await;
    let synced = json!({ "kind": "SYNCED" });
    let events = launches.map(|launch| reports.event(launch, &synced));
    let hold = |agent: i64| format!("SELECT 1 FROM agents WHERE id = {agent} FOR NO KEY UPDATE NOWAIT");
    let stores = Box::pin(hosts::store_events(&reports.link, &events));
    let stored = app.while_held(&hold(moved), &hold(own), stores).await;
    assert_eq!(stored.unwrap(), 0, "the agent that was moved is not foreign");
}
