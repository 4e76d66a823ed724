//! Subscriptions over WebSockets and server-sent events, and how they end.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use muster::{
    base::{
        enums::ApprovalKind,
        ids::{ConversationId, OrgId},
    },
    domain::approvals::NewApproval,
};

use crate::{
    approvals::raise,
    harness::{Actor, PATIENCE, Socket as Client, TestApp, introduction, until},
};

const WATCH: &str = "subscription($o: Id!) { agentChanged(orgId: $o) { id status server { name } } }";

async fn start(app: &TestApp, agent: i64) {
    app.operator.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await.expect(200);
}

#[tokio::test]
async fn a_viewer_watches_agents_and_the_stranger_sees_nothing() {
    let (app, agent) = TestApp::with_agent().await;
    let (mut viewer, mut stranger) = (Client::of(&app.viewer).await, Client::of(&app.stranger).await);
    stranger.subscribe("1", WATCH, json!({"o": app.org})).await;
    let refused = stranger.next().await;
    let error = &refused["payload"]["errors"][0];
    assert_eq!(error["extensions"]["code"], "NOT_A_MEMBER", "{refused}");
    assert!(error["extensions"]["requestId"].as_str().unwrap().len() > 10);
    assert_eq!(stranger.next().await, json!({"type": "complete", "id": "1"}));

    viewer.subscribe("1", WATCH, json!({"o": app.org})).await;
    viewer.settled().await;
    start(&app, agent).await;
    let next = viewer.next().await;
    assert_eq!((next["type"].as_str(), next["id"].as_str()), (Some("next"), Some("1")));
    let seen = &next["payload"]["data"]["agentChanged"];
    assert_eq!((seen["id"].as_i64(), seen["status"].as_str()), (Some(agent), Some("SPAWNING")));
    assert!(seen["server"]["name"].is_string());
    viewer.send(json!({"type": "complete", "id": "1"})).await;
    viewer.send(json!({"type": "ping"})).await;
    assert_eq!(viewer.next().await["type"], "pong");
}

#[tokio::test]
async fn an_ended_operations_id_is_free_at_once() {
    let (app, agent) = TestApp::with_agent().await;
    let mut viewer = Client::of(&app.viewer).await;
    viewer.subscribe("1", WATCH, json!({"o": app.org})).await;
    for _ in 0..20 {
        viewer.send(json!({"type": "complete", "id": "1"})).await;
        viewer.subscribe("1", WATCH, json!({"o": app.org})).await;
    }
    viewer.settled().await;
    // The last subscription continues, and got no completion.
    start(&app, agent).await;
    let next = viewer.next().await;
    assert_eq!((next["type"].as_str(), next["id"].as_str()), (Some("next"), Some("1")));
    // Its id is still in use.
    viewer.subscribe("1", WATCH, json!({"o": app.org})).await;
    assert_eq!(viewer.next().await["closed"], 4409);
}

#[tokio::test]
async fn queries_and_mutations_run_over_a_socket_too() {
    let (app, agent) = TestApp::with_agent().await;
    let mut client = Client::of(&app.operator).await;
    let start = "mutation($o: Id!, $a: Id!) { startAgent(orgId: $o, id: $a) { status } }";
    client.subscribe("m", start, json!({"o": app.org, "a": agent})).await;
    assert_eq!(client.next().await["payload"]["data"]["startAgent"]["status"], "SPAWNING");
    assert_eq!(client.next().await["type"], "complete");
    let unknown = "query($o: Id!) { agent(orgId: $o, id: 999999) { id } }";
    client.subscribe("q", unknown, json!({"o": app.org})).await;
    assert_eq!(client.next().await["payload"]["errors"][0]["extensions"]["code"], "NOT_FOUND");
    assert_eq!(client.next().await, json!({"type": "complete", "id": "q"}));
}

#[tokio::test]
async fn an_unexecuted_operation_gets_only_an_error() {
    let app = TestApp::start().await;
    let mut client = Client::of(&app.viewer).await;
    let unknown = "subscription($o: Id!) { agentChanged(orgId: $o) { nothing } }";
    for (query, variables) in [
        ("subscription {", json!({})),
        (unknown, json!({"o": app.org})),
        (WATCH, json!({})),
        ("{ nothing }", json!({})),
    ] {
        // The id is free again each time.
        client.subscribe("1", query, variables).await;
        let refused = client.next().await;
        assert_eq!((&refused["type"], &refused["id"]), (&json!("error"), &json!("1")), "{refused}");
        let error = &refused["payload"][0];
        assert!(error["message"].is_string() && error["extensions"]["requestId"].is_string(), "{refused}");
        assert!(error["extensions"]["code"].is_string(), "{refused}");
    }
    client.settled().await;
}

#[tokio::test]
async fn a_subscription_with_several_root_fields_is_invalid() {
    let app = TestApp::start().await;
    let mut client = Client::of(&app.viewer).await;
    let (one, two) = ("one: agentChanged(orgId: $o) { id }", "two: approvalChanged(orgId: $o) { id }");
    let part = |name: &str, field: &str| format!("fragment {name} on Subscription {{ {field} }}");
    for (query, detail) in [
        (format!("subscription($o: Id!) {{ {one} {two} }}"), "one root field"),
        (format!("subscription($o: Id!) {{ {one} ... {{ {two} }} }}"), "one root field"),
        (
            format!("subscription($o: Id!) {{ ...A ...B }} {} {}", part("A", one), part("B", two)),
            "one root field",
        ),
        (format!("query Q {{ __typename }} subscription S($o: Id!) {{ {one} {two} }}"), "one root field"),
        (
            format!("subscription($o: Id!) {{ {} }}", one.replace(" {", " @skip(if: false) {")),
            "can't depend on `@skip`",
        ),
        (
            format!("subscription($o: Id!, $v: Boolean = true) {{ ... @include(if: $v) {{ {one} }} }}"),
            "can't depend on `@include`",
        ),
    ] {
        let variables = json!({ "o": app.org });
        let name = query.contains("subscription S").then_some("S");
        let payload = json!({ "query": query, "variables": variables, "operationName": name });
        client.send(json!({ "type": "subscribe", "id": "1", "payload": payload })).await;
        let refused = client.next().await;
        assert_eq!(refused["type"], "error", "{query}: {refused}");
        let error = &refused["payload"][0];
        assert!(error["message"].as_str().unwrap().contains(detail), "{query}: {refused}");
        assert!(error["locations"][0]["column"].is_number(), "{query}: {refused}");
        let request = app.viewer.request(Method::POST, "/graphql").header("accept", "text/event-stream");
        let events = request.json(&payload).send().await.unwrap().text().await.unwrap();
        assert!(events.contains(detail) && events.contains("event: complete"), "{query}: {events}");
    }
    // The same field twice is one field.
    let twice = format!("subscription($o: Id!) {{ {one} {} }}", one.replace("id }", "name }"));
    client.subscribe("2", &twice, json!({ "o": app.org })).await;
    client.settled().await;
    let agent = app.agent().await;
    start(&app, agent).await;
    let next = client.next().await;
    assert!(next["payload"]["data"]["one"]["name"].is_string(), "{next}");
}

#[tokio::test]
async fn protocol_violations_close_the_socket_with_a_code() {
    let app = TestApp::start().await;
    let subscribe = |id: &str| json!({"type": "subscribe", "id": id, "payload": {"query": WATCH, "variables": {"o": app.org}}});
    let connect = || Client::connect(&app.base, "graphql-transport-ws");

    let mut early = connect().await;
    early.send(subscribe("1")).await;
    assert_eq!(early.next().await["closed"], 4401);

    let mut bad = connect().await;
    bad.send(json!({"type": "connection_init", "payload": {"Authorization": "Bearer nonsense"}})).await;
    assert_eq!(bad.next().await["closed"], 4403);

    let mut twice = Client::of(&app.viewer).await;
    twice.send(json!({"type": "connection_init"})).await;
    assert_eq!(twice.next().await["closed"], 4429);

    let mut same = Client::of(&app.viewer).await;
    same.send(subscribe("1")).await;
    same.send(subscribe("1")).await;
    assert_eq!(same.next().await["closed"], 4409);

    let mut garbled = Client::of(&app.viewer).await;
    garbled.send(json!({"type": "nothing"})).await;
    assert_eq!(garbled.next().await["closed"], 4400);

    let mut other = Client::connect(&app.base, "graphql-ws, graphql-transport-ws").await;
    other.send(introduction(&app.viewer)).await;
    assert_eq!(other.next().await["type"], "connection_ack");

    let mut unknown = connect().await;
    unknown.send(json!({"type": "connection_init"})).await;
    assert_eq!(unknown.next().await["closed"], 4403);
}

#[tokio::test]
async fn an_expired_token_ends_a_subscription_and_its_socket() {
    let app = TestApp::start().await;
    let mut client = Client::of(&app.viewer).await;
    client.subscribe("1", WATCH, json!({"o": app.org})).await;
    client.settled().await;
    app.clock.advance(Duration::from_hours(2 * 365 * 24));
    app.forget_sessions();
    let mut last = client.next().await;
    while last["closed"].is_null() {
        if last["type"] == "next" {
            assert_eq!(last["payload"]["errors"][0]["extensions"]["code"], "TOKEN_EXPIRED", "{last}");
        }
        last = client.next().await;
    }
    assert_eq!(last["closed"], 4403);
}

#[tokio::test]
async fn events_end_when_the_service_stops() {
    let (app, agent) = TestApp::with_agent().await;
    let request = app.viewer.request(Method::POST, "/graphql").header("accept", "text/event-stream");
    let body = json!({"query": WATCH, "variables": {"o": app.org}});
    let mut response = request.json(&body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut socket = Client::of(&app.viewer).await;
    start(&app, agent).await;
    let mut text = String::new();
    while !text.contains("SPAWNING") {
        let chunk = timeout(PATIENCE, response.chunk()).await.expect("an event in time");
        text.push_str(std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap());
    }
    assert!(text.contains("event: next\ndata: {\"data\":{\"agentChanged\":{"), "{text}");
    app.core.tasks.stopping.cancel();
    while let Some(chunk) = timeout(PATIENCE, response.chunk()).await.unwrap().unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(
        text.ends_with("event: complete\ndata: \n\n")
            || text.ends_with("event: complete\ndata\n\n")
            || text.ends_with("event: complete\n\n"),
        "{text:?}"
    );
    assert_eq!(socket.next().await["closed"], 1001);
}

const CONVERSATIONS: &str = "subscription($o: Id!, $a: Id) { seen: conversationChanged(orgId: $o, agentId: $a) \
                             { id status title messageCount agent { id } } }";
const OF_AGENT: &str =
    "subscription($o: Id!, $a: Id!) { seen: agentConversationChanged(orgId: $o, agentId: $a) { id status } }";

impl Client {
    /// The next change's record.
    async fn seen(&mut self) -> Value {
        let next = self.next().await;
        assert_eq!(next["type"], "next", "{next}");
        next["payload"]["data"]["seen"].clone()
    }

    /// An operation's answer. Nothing else comes before its end.
    async fn answer(&mut self, query: &str, variables: Value) -> Value {
        self.subscribe("1", query, variables).await;
        let next = self.next().await;
        assert_eq!(self.next().await, json!({"type": "complete", "id": "1"}));
        next["payload"].clone()
    }

    async fn refused(&mut self, query: &str, variables: Value) -> Value {
        self.answer(query, variables).await["errors"][0]["extensions"]["code"].clone()
    }
}

/// Starts a conversation in an organization and returns its id.
async fn begin(actor: &Actor, org: i64, agent: i64, text: Option<&str>) -> i64 {
    let start = "mutation($o: Id!, $a: Id!, $t: String) { startConversation(orgId: $o, input: { agentId: $a, text: $t }) { id } }";
    let data = actor.gql(start, json!({ "o": org, "a": agent, "t": text })).await.data();
    data["startConversation"]["id"].as_i64().unwrap()
}

async fn decide_on(app: &TestApp, conversation: i64) -> i64 {
    let new = NewApproval {
        conversation_id: Some(ConversationId(conversation)),
        ..NewApproval::new(ApprovalKind::Action, "May it?")
    };
    raise(app, new).await
}

#[tokio::test]
async fn permitted_subscribers_see_every_conversation_change_once() {
    let (app, agent, another) = TestApp::with_two_agents().await;
    let (mut all, mut one) = (Client::of(&app.admin).await, Client::of(&app.viewer).await);
    all.subscribe("1", CONVERSATIONS, json!({ "o": app.org })).await;
    one.subscribe("1", OF_AGENT, json!({ "o": app.org, "a": agent })).await;
    all.settled().await;
    one.settled().await;

    // Subscribers to one agent don't see another agent's.
    let quiet = begin(&app.operator, app.org, another, None).await;
    let seen = all.seen().await;
    assert_eq!(
        (&seen["id"], &seen["messageCount"], &seen["agent"]["id"]),
        (&json!(quiet), &json!(0), &json!(another))
    );
    let id = begin(&app.operator, app.org, agent, Some("Hello")).await;
    assert_eq!(all.seen().await["messageCount"], 1);
    assert_eq!(one.seen().await, json!({ "id": id, "status": "OPEN" }));

    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"And?\" }) { id } }";
    app.operator.gql(post, json!({ "o": app.org, "c": id })).await.data();
    assert_eq!(all.seen().await["messageCount"], 2);
    // Each event shows the state when it is sent: the next change waits until both have seen this one.
    assert_eq!(one.seen().await["status"], "OPEN");
    let approval = decide_on(&app, id).await;
    assert_eq!(all.seen().await["status"], "PENDING");
    assert_eq!(one.seen().await["status"], "PENDING");
    let answer = format!("/v1/org/{}/approval/{approval}/dismiss", app.org);
    app.operator.patch(&answer, Value::Null).await.expect(200);
    assert_eq!(all.seen().await["status"], "OPEN");
    assert_eq!(one.seen().await["status"], "OPEN");
    let edit = "mutation($o: Id!, $c: Id!) { updateConversation(orgId: $o, id: $c, \
                input: { status: RESOLVED, title: \"Done\" }) { id } }";
    app.admin.gql(edit, json!({ "o": app.org, "c": id })).await.data();
    let seen = all.seen().await;
    assert_eq!((&seen["status"], &seen["title"]), (&json!("RESOLVED"), &json!("Done")));
    assert_eq!(one.seen().await, json!({ "id": id, "status": "RESOLVED" }));
    // A refused operation is not a change, and nothing comes twice.
    assert_eq!(app.viewer.gql(edit, json!({ "o": app.org, "c": id })).await.code(), "PERMISSION_DENIED");
    all.settled().await;
    one.settled().await;
}

#[tokio::test]
async fn a_stranger_hears_only_of_their_own_conversations() {
    let (app, agent) = TestApp::with_agent().await;
    let theirs = app.populate_other(1).await.agents[0];
    let mut stranger = Client::of(&app.stranger).await;
    for query in [CONVERSATIONS, OF_AGENT] {
        assert_eq!(stranger.refused(query, json!({ "o": app.org, "a": agent })).await, "NOT_A_MEMBER");
    }
    // The organization's whole list needs a permission; an agent's is for every member.
    let mut viewer = Client::of(&app.viewer).await;
    assert_eq!(viewer.refused(CONVERSATIONS, json!({ "o": app.org })).await, "PERMISSION_DENIED");
    // Naming our agent in their own organization finds nothing.
    stranger.subscribe("2", OF_AGENT, json!({ "o": app.other_org, "a": agent })).await;
    stranger.subscribe("3", CONVERSATIONS, json!({ "o": app.other_org })).await;
    stranger.settled().await;
    begin(&app.operator, app.org, agent, Some("Ours")).await;
    let id = begin(&app.stranger, app.other_org, theirs, Some("Theirs")).await;
    let next = stranger.next().await;
    assert_eq!((&next["id"], &next["payload"]["data"]["seen"]["id"]), (&json!("3"), &json!(id)));
}

#[tokio::test]
async fn conversations_are_seen_over_server_sent_events() {
    let (app, agent) = TestApp::with_agent().await;
    let request = app.viewer.request(Method::POST, "/graphql").header("accept", "text/event-stream");
    let body = json!({ "query": OF_AGENT, "variables": { "o": app.org, "a": agent } });
    let mut response = request.json(&body).send().await.unwrap();
    let (mut text, mut begun) = (String::new(), Vec::new());
    // Nothing says when the service has started watching.
    let began = Instant::now();
    while !text.contains("\n\n") && began.elapsed() < PATIENCE {
        begun.push(begin(&app.operator, app.org, agent, None).await);
        if let Ok(chunk) = timeout(Duration::from_millis(100), response.chunk()).await {
            text.push_str(std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap());
        }
    }
    let shows =
        |id| text.contains(&format!("data: {{\"data\":{{\"seen\":{{\"id\":{id},\"status\":\"OPEN\"}}}}}}"));
    assert!(text.starts_with("event: next\n") && begun.into_iter().any(shows), "{text}");
}

#[tokio::test]
async fn a_sockets_operations_share_one_budget_and_return_it() {
    let app = TestApp::start_with(|config| config.limits.request_timeout_seconds = PATIENCE.as_secs()).await;
    let first = app.agent().await;
    let more = "INSERT INTO agents (organization_id, server_id, image_id, name, name_folded, created_at, updated_at) \
                SELECT organization_id, server_id, image_id, name || $2, name_folded || $2, created_at, updated_at FROM agents WHERE id = $1";
    for n in 1..20 {
        app.execute(more, vec![first.into(), format!(" {n}").into()]).await;
    }
    app.execute("UPDATE agents SET description = $1", vec!["x".repeat(256 << 10).into()]).await;
    let agents: Vec<i64> = app.column("SELECT id FROM agents ORDER BY id").await;
    let org = app.org;
    let large = |agent: i64| {
        format!("large: startAgent(orgId: {org}, id: {agent}) {{ server {{ agents {{ description }} }} }}")
    };
    let spawning = "SELECT COUNT(*) FROM agents WHERE status = 'SPAWNING'";
    let started = async || app.one::<i64>(spawning, vec![]).await;
    let is_whole = |payload: &Value| payload["data"]["large"].to_string().len() > 5 << 20;
    // Mutations run one after another. The last one parses a schedule in the organization's slot, and holds the earlier
    // answers for as long as the test has that.
    let slot = app.core.cpu_pool.slot(OrgId(org)).await.unwrap();
    let held = format!(
        "mutation {{ {} next: startAgent(orgId: {org}, id: {}) {{ id }} \
         held: updateAgent(orgId: {org}, id: {}, input: {{ backupCron: \"0 4 * * *\" }}) {{ id }} }}",
        large(agents[0]),
        agents[1],
        agents[0]
    );
    let mut client = Client::of(&app.operator).await;
    client.subscribe("held", &held, json!({})).await;
    until("the large answer is held", async || started().await == 2).await;
    let another = client.answer(&format!("mutation {{ {} }}", large(agents[2])), json!({})).await;
    let error = &another["errors"][0];
    assert_eq!(error["path"][0], "large", "{error}");
    assert_eq!(error["extensions"]["code"], "QUERY_TOO_COMPLEX");
    assert!(error["message"].as_str().unwrap().contains("one socket"), "{error}");
    assert_eq!(started().await, 3, "the change is still made");
    let count = format!("{{ agents(orgId: {org}, page: 1, limit: 1) {{ total data {{ status }} }} }}");
    let small = client.answer(&count, json!({})).await;
    assert_eq!(small["data"]["agents"]["total"], 20, "small answers still fit");
    drop(slot);
    assert!(is_whole(&client.next().await["payload"]));
    assert_eq!(client.next().await, json!({"type": "complete", "id": "held"}));
    // The budget is returned.
    assert!(is_whole(&client.answer(&format!("mutation {{ {} }}", large(agents[3])), json!({})).await));
    let mut stranger = Client::of(&app.stranger).await;
    assert_eq!(stranger.refused(&count, json!({})).await, "NOT_A_MEMBER");
}
