//! The resources that callers may hold at a time: connections, sockets, subscriptions, bodies, answers. The resource
//! limits count all of it and release it at the end.

use muster::{
    base::enums::RecordKind,
    core::{config::Config, resource_limits::Resource},
};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{connect_async, tungstenite::client::IntoClientRequest};

use crate::{
    channels::inbound_webhooks::{bring, channel, hello, inbound},
    harness::{self, Actor, Answer, PATIENCE, Socket, TestApp, introduction},
};

const WATCH: &str = "subscription($o: Id!) { agentChanged(orgId: $o) { id } }";

async fn with(configure: impl FnOnce(&mut Config)) -> TestApp {
    TestApp::start_with(configure).await
}

fn held(app: &TestApp, what: Resource) -> usize {
    app.core.resource_limits.limit(what).total()
}

fn connections(app: &TestApp) -> usize {
    app.core.resource_limits.totals()[0].1
}

/// Waits until a figure reaches its expected value.
async fn until(what: &str, is_reached: impl Fn() -> bool) {
    harness::until(what, async || is_reached()).await;
}

/// The status in answer to a handshake.
async fn handshake(base: &str, bearer: Option<&str>) -> u16 {
    let mut request = format!("{}/graphql", base.replace("http", "ws")).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "graphql-transport-ws".parse().unwrap());
    if let Some(bearer) = bearer {
        request.headers_mut().insert("authorization", format!("Bearer {bearer}").parse().unwrap());
    }
    match connect_async(request).await {
        Ok((_, response)) => response.status().as_u16(),
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => response.status().as_u16(),
        Err(error) => panic!("{error}"),
    }
}

async fn raw(app: &TestApp) -> TcpStream {
    TcpStream::connect(app.base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// The status line of the response.
async fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

#[tokio::test]
async fn anonymous_sockets_are_few_and_short_lived() {
    let app = with(|config| {
        config.limits.sockets_anonymous = 3;
        // Long enough for what comes before the silent ones are sent away.
        config.limits.socket_init_seconds = 4;
    })
    .await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(Socket::connect(&app.base, "graphql-transport-ws").await);
    }
    assert_eq!(held(&app, Resource::Sockets), 3);
    assert_eq!(handshake(&app.base, None).await, 429);
    // Anonymous sockets don't keep a known caller out.
    assert_eq!(handshake(&app.base, Some(app.viewer.bearer())).await, 101);
    // A client that introduces itself as anonymous is sent away at once, a silent one after a while.
    sockets[0].send(json!({"type": "connection_init"})).await;
    assert_eq!(sockets[0].next().await["closed"], 4403);
    assert_eq!(sockets[1].next().await["closed"], 4408);
    assert_eq!(sockets[2].next().await["closed"], 4408);
    drop(sockets);
    until("all are given back", || held(&app, Resource::Sockets) == 0 && connections(&app) <= 1).await;
}

#[tokio::test]
async fn each_caller_has_their_own_socket_limit() {
    let app = with(|config| config.limits.sockets_per_caller = 2).await;
    let first = Socket::of(&app.viewer).await;
    let _second = Socket::of(&app.viewer).await;
    let mut third = Socket::connect(&app.base, "graphql-transport-ws").await;
    third.send(introduction(&app.viewer)).await;
    assert_eq!(third.next().await["closed"], 4403);
    assert_eq!(handshake(&app.base, Some(app.viewer.bearer())).await, 429);
    let _other = Socket::of(&app.stranger).await;
    drop(first);
    until("a place is free", || held(&app, Resource::Sockets) <= 2).await;
    let _again = Socket::of(&app.viewer).await;
}

#[tokio::test]
async fn a_handshake_is_charged() {
    let app = with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.anonymous_per_minute = 4;
    })
    .await;
    for _ in 0..4 {
        assert_eq!(handshake(&app.base, None).await, 101);
    }
    assert_eq!(handshake(&app.base, None).await, 429);
}

#[tokio::test]
async fn a_socket_keeps_its_place_and_probes_still_answer() {
    let app = with(|config| config.limits.connections = 2).await;
    app.expects_failures();
    let mut sockets = Vec::new();
    for _ in 0..2 {
        sockets.push(Socket::of(&app.viewer).await);
    }
    assert_eq!(connections(&app), 2);
    let refused = app.owner.get(&format!("/v1/org/{}", app.org)).await;
    assert_eq!((refused.problem(), refused.header("retry-after")), ((503, "UNAVAILABLE"), "5"));
    assert_eq!(app.anonymous.get("/health").await.status, 200);
    assert_eq!(app.anonymous.get("/ready").await.status, 200);
    drop(sockets);
    until("the places are free", || connections(&app) == 0).await;
    app.owner.get(&format!("/v1/org/{}", app.org)).await.expect(200);
}

#[tokio::test]
async fn subscriptions_of_callers_and_organizations_are_counted() {
    let app = with(|config| {
        config.limits.subscriptions_per_caller = 2;
        config.limits.subscriptions_per_organization = 3;
    })
    .await;
    let subscribe = async |socket: &mut Socket, id: &str| {
        socket.subscribe(id, WATCH, json!({"o": app.org})).await;
    };
    let code = async |socket: &mut Socket| {
        let refused = socket.next().await;
        assert_eq!(socket.next().await["type"], "complete");
        refused["payload"]["errors"][0]["extensions"]["code"].as_str().unwrap().to_owned()
    };
    let (mut one, mut two) = (Socket::of(&app.viewer).await, Socket::of(&app.viewer).await);
    subscribe(&mut one, "1").await;
    subscribe(&mut two, "1").await;
    until("both are open", || held(&app, Resource::Subscriptions) == 2).await;
    subscribe(&mut one, "2").await;
    assert_eq!(code(&mut one).await, "RATE_LIMITED");
    let mut owner = Socket::of(&app.owner).await;
    subscribe(&mut owner, "1").await;
    until("a third", || held(&app, Resource::Watchers) == 3).await;
    subscribe(&mut owner, "2").await;
    assert_eq!(code(&mut owner).await, "RATE_LIMITED");
    // Another organization has its own limit.
    let mut stranger = Socket::of(&app.stranger).await;
    stranger.subscribe("1", WATCH, json!({"o": app.other_org})).await;
    until("a fourth", || held(&app, Resource::Watchers) == 4).await;
    drop((one, two, owner, stranger));
    until("all are given back", || held(&app, Resource::Subscriptions) + held(&app, Resource::Watchers) == 0)
        .await;
}

/// The head of a POST that announces a body of this many bytes.
fn head(path: &str, bearer: Option<&str>, announced: usize) -> String {
    let bearer = bearer.map_or_else(String::new, |bearer| format!("authorization: Bearer {bearer}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\n{bearer}content-type: application/json\r\ncontent-length: {announced}\r\n\r\n"
    )
}

/// Sends 60,000 bytes of a body of 65,000.
async fn send_most(stream: &mut TcpStream, path: &str) {
    stream.write_all(head(path, None, 65_000).as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 60_000]).await.unwrap();
}

#[tokio::test]
async fn a_body_is_not_read_before_its_caller_is_known() {
    let app = TestApp::start().await;
    for (path, expected) in
        [("/v1/org/1/server", "401"), ("/mcp", "401"), ("/v1/org/1/attachment?filename=a", "401")]
    {
        let mut stream = raw(&app).await;
        stream.write_all(head(path, None, 1_000_000).as_bytes()).await.unwrap();
        assert_eq!(status(&mut stream).await, format!("HTTP/1.1 {expected}"), "{path}");
    }
    // An anonymous caller can only send a small document.
    let mut stream = raw(&app).await;
    stream.write_all(head("/graphql", None, 65_537).as_bytes()).await.unwrap();
    assert_eq!(status(&mut stream).await, "HTTP/1.1 413");
    assert_eq!(held(&app, Resource::Bodies), 0);
    // A client that sends everything before reading still gets the refusal.
    let request = app.anonymous.request(Method::POST, "/v1/org/1/server").body(vec![b' '; 1_000_000]);
    let refused = Answer::of(request.header("content-type", "application/json")).await;
    assert_eq!(refused.problem(), (401, "UNAUTHENTICATED"));
}

#[tokio::test]
async fn bodies_in_flight_are_counted_and_bounded() {
    let app = with(|config| config.limits.bodies_bytes = 1 << 20).await;
    let mut under_way = Vec::new();
    // An eighth of the total for one address: two bodies of 60,000 bytes, but not three.
    for n in 1..=2 {
        let mut stream = raw(&app).await;
        send_most(&mut stream, "/graphql").await;
        under_way.push(stream);
        until("they have arrived", || held(&app, Resource::Bodies) == n * 60_000).await;
    }
    let mut third = raw(&app).await;
    send_most(&mut third, "/graphql").await;
    assert_eq!(status(&mut third).await, "HTTP/1.1 429");
    // A known caller can still send theirs.
    let name = "x".repeat(20_000);
    let path = format!("/v1/org/{}/server", app.org);
    assert_eq!(app.owner.post(&path, json!({ "name": name })).await.status, 422);
    drop((under_way, third));
    until("all are given back", || held(&app, Resource::Bodies) == 0).await;
}

#[tokio::test]
async fn an_unsigned_webhook_costs_its_address_and_no_organization() {
    let app = with(|config| config.limits.bodies_bytes = 1 << 20).await;
    let channel = async |actor: &Actor, org: i64, agent: i64| {
        let made = actor.post(&format!("/v1/org/{org}/channel"), inbound(agent)).await.expect(201);
        made["inbound_path"].as_str().unwrap().to_owned()
    };
    let ours = channel(&app.owner, app.org, app.agent().await).await;
    let theirs = channel(&app.stranger, app.other_org, app.other_agent().await).await;
    let mut under_way = Vec::new();
    // An eighth of the total for one address, regardless of the channels' organizations.
    for n in 1..=2 {
        let mut stream = raw(&app).await;
        send_most(&mut stream, &ours).await;
        under_way.push(stream);
        until("they have arrived", || held(&app, Resource::Bodies) == n * 60_000).await;
    }
    let mut third = raw(&app).await;
    send_most(&mut third, &theirs).await;
    assert_eq!(status(&mut third).await, "HTTP/1.1 429");
    drop((under_way, third));
    until("all are given back", || held(&app, Resource::Bodies) == 0).await;
}

#[tokio::test]
async fn unsigned_requests_do_not_keep_signers_out() {
    let app = with(|config| config.limits.bodies_bytes = 1 << 20).await;
    let (_, path) = channel(&app, "http://127.0.0.1:9/").await;
    assert_eq!(bring(&app, &path, "m1", &hello("Hi")).await.0, 202);
    let mut under_way = Vec::new();
    for n in 1..=2 {
        let elsewhere = TcpSocket::new_v4().unwrap();
        elsewhere.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let to = app.base.strip_prefix("http://").unwrap().parse().unwrap();
        let mut stream = elsewhere.connect(to).await.unwrap();
        send_most(&mut stream, &path).await;
        under_way.push(stream);
        until("they have arrived", || held(&app, Resource::Bodies) == n * 60_000).await;
    }
    assert_eq!(bring(&app, &path, "m2", &hello(&"x".repeat(100_000))).await.0, 202);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off_and_holds_nothing() {
    const FILE: usize = 24 << 20;
    let app = with(|config| {
        // Long enough for what is asked while the answer waits.
        config.limits.write_timeout_seconds = 4;
        config.limits.answers_bytes = 32 << 20;
    })
    .await;
    app.expects_failures();
    let path = format!("/v1/org/{}/attachment", app.org);
    let upload = app.owner.request(Method::POST, &format!("{path}?filename=large.bin"));
    let upload =
        Answer::of(upload.header("content-type", "application/octet-stream").body(vec![7; FILE])).await;
    let id = upload.expect(201)["id"].as_i64().unwrap();

    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut slow = socket.connect(app.base.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap();
    let request = format!(
        "GET {path}/{id} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        app.owner.bearer()
    );
    slow.write_all(request.as_bytes()).await.unwrap();
    until("the answer waits", || held(&app, Resource::Answers) == FILE).await;
    // One caller gets an eighth, or one answer; all together no more than the total.
    assert_eq!(app.owner.get(&format!("{path}/{id}")).await.problem(), (429, "RATE_LIMITED"));
    assert_eq!(app.admin.get(&format!("{path}/{id}")).await.problem(), (503, "UNAVAILABLE"));
    assert_eq!(held(&app, Resource::Answers), FILE);
    until("it is given up", || held(&app, Resource::Answers) == 0).await;
    let mut taken = Vec::new();
    let _reset = timeout(PATIENCE, slow.read_to_end(&mut taken)).await.expect("it is closed");
    assert!(taken.len() < FILE);
    // A client that reads gets all of it.
    assert_eq!(app.owner.get(&format!("{path}/{id}")).await.text.len(), FILE);
}

#[tokio::test]
async fn a_sockets_messages_are_counted_while_their_operations_run() {
    let app = TestApp::start().await;
    let mut socket = Socket::of(&app.viewer).await;
    socket.subscribe("1", WATCH, json!({"o": app.org, "undeclared": "x".repeat(20_000)})).await;
    until("it is counted", || held(&app, Resource::Bodies) > 8 * 20_000).await;
    socket.send(json!({"type": "complete", "id": "1"})).await;
    until("it is given back", || held(&app, Resource::Bodies) == 0).await;
    // Anything larger than a message must be sent as a request.
    socket.subscribe("2", WATCH, json!({"o": app.org, "undeclared": "x".repeat(300_000)})).await;
    let last = socket.next().await;
    assert!(!last["closed"].is_null(), "{last}");
}

#[tokio::test]
async fn an_event_streams_query_is_counted_while_it_lasts() {
    let app = TestApp::start().await;
    let asks = async |query: &str, variables: serde_json::Value| {
        let request = app.viewer.request(Method::POST, "/graphql").header("accept", "text/event-stream");
        request.json(&json!({ "query": query, "variables": variables })).send().await.unwrap()
    };
    let events = asks(WATCH, json!({ "o": app.org, "undeclared": "x".repeat(20_000) })).await;
    until("it is counted", || held(&app, Resource::Bodies) > 8 * 20_000).await;
    drop(events);
    until("it is given back", || held(&app, Resource::Bodies) == 0).await;
    // A list that would be kept for as long has no more items than make sense.
    let watch = "subscription($o: Id!, $k: [RecordKind!]) { changes(orgId: $o, kinds: $k) { id } }";
    let many = asks(watch, json!({ "o": app.org, "k": vec!["AGENT"; RecordKind::ALL.len() + 1] }))
        .await
        .text()
        .await
        .unwrap();
    assert!(many.contains("`kinds` can have at most "), "{many}");
    let every = asks(watch, json!({ "o": app.org, "k": vec!["AGENT"; RecordKind::ALL.len()] }))
        .await
        .chunk()
        .await
        .unwrap()
        .unwrap();
    assert!(String::from_utf8_lossy(&every).contains("\"id\":null"), "{every:?}");
}

#[tokio::test]
async fn a_request_must_have_one_host_header() {
    let app = TestApp::start().await;
    for hosts in ["", "host: a\r\nhost: b\r\n"] {
        let mut stream = raw(&app).await;
        stream.write_all(format!("GET /health HTTP/1.1\r\n{hosts}\r\n").as_bytes()).await.unwrap();
        assert_eq!(status(&mut stream).await, "HTTP/1.1 400", "{hosts:?}");
    }
    let mut old = raw(&app).await;
    old.write_all(b"GET /health HTTP/1.0\r\n\r\n").await.unwrap();
    assert_eq!(status(&mut old).await, "HTTP/1.0 200");
}
