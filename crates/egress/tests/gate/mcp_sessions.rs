//! MCP sessions: ended, renewed, too many, and reported to people.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use muster_egress::CrossingDecision;
use muster_protocol::{
    HostEvent,
    event::{McpReport, McpState},
    plan::{McpTransport, Variable},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    mcp::{Client, call, list, secret, server, shell, words},
    servers::{Body, Server, body, plainly},
    support::World,
};

fn message(id: impl Into<Value>, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method })
}

fn begin() -> Value {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn answer(status: StatusCode, text: String) -> Response<Body> {
    let answer = Response::builder().status(status).header("content-type", "application/json");
    answer.body(body(text)).unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(120), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// The latest report about server 5, if none is delayed.
fn report(world: &World) -> Option<McpReport> {
    let reports = world.host.reports.lock().unwrap();
    let mut all = reports.iter().rev();
    all.find_map(|report| match report {
        HostEvent::McpServer(report) if report.server_id == 5 => Some(report.clone()),
        _ => None,
    })
}

/// A server over HTTP that can forget all its sessions.
#[derive(Clone, Default)]
struct Forgetful {
    sessions: Arc<Mutex<HashMap<String, bool>>>,
    begun: Arc<AtomicUsize>,
    refuses: Arc<Mutex<Option<String>>>,
    /// Handled messages and their sessions.
    done: Arc<Mutex<Vec<(String, String)>>>,
}

impl Forgetful {
    fn answers(&self, request: &Request<bytes::Bytes>) -> Response<Body> {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let method = asked["method"].as_str().unwrap_or_default().to_owned();
        let result =
            |result: Value| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string();
        if method == "initialize" {
            assert!(!request.headers().contains_key("mcp-session-id"), "a new one has no name");
            if let Some(words) = self.refuses.lock().unwrap().clone() {
                let error =
                    json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": 1, "message": words } });
                return answer(StatusCode::OK, error.to_string());
            }
            assert_eq!(asked["params"]["clientInfo"]["name"], "c", "as the client has begun");
            let name = format!("s{}", self.begun.fetch_add(1, Ordering::SeqCst));
            self.sessions.lock().unwrap().insert(name.clone(), false);
            let mut answer = answer(StatusCode::OK, result(json!({ "protocolVersion": "2025-06-18" })));
            answer.headers_mut().insert("mcp-session-id", name.parse().unwrap());
            return answer;
        }
        let session = request.headers().get("mcp-session-id").map(|name| name.to_str().unwrap().to_owned());
        let Some(session) = session.filter(|name| self.sessions.lock().unwrap().contains_key(name)) else {
            return answer(StatusCode::NOT_FOUND, String::new());
        };
        if *request.method() == Method::GET {
            return answer(StatusCode::METHOD_NOT_ALLOWED, String::new());
        }
        if method == "notifications/initialized" {
            self.sessions.lock().unwrap().insert(session, true);
            return answer(StatusCode::ACCEPTED, String::new());
        }
        assert!(self.sessions.lock().unwrap()[&session], "the session was not initialized");
        assert_eq!(request.headers()["mcp-protocol-version"], "2025-06-18");
        self.done.lock().unwrap().push((session, method));
        answer(StatusCode::OK, result(json!({ "content": [] })))
    }

    fn forget(&self) {
        self.sessions.lock().unwrap().clear();
    }

    async fn serve(&self) -> (Server, World) {
        let own = self.clone();
        let there = Server::start(plainly(move |request| own.answers(&request))).await;
        let mut world = World::new();
        let url = format!("http://127.0.0.1:{}/mcp", there.port);
        world.plan.mcp_servers =
            vec![server(5, "shop", McpTransport::Http { url, headers: secret("x-key") })];
        world.apply();
        world.host.verdicts.lock().unwrap().insert("shop.buy".to_owned(), CrossingDecision::Allowed);
        (there, world)
    }
}

async fn begins(client: &mut Client) {
    assert_eq!(client.ask(&begin()).await["result"]["protocolVersion"], "2025-06-18");
    client
        .write(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string().as_bytes())
        .await;
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_begun_again_for_the_next_call() {
    let shop = Forgetful::default();
    let (_there, world) = shop.serve().await;
    let mut client = Client::of(&world).await;
    begins(&mut client).await;
    assert_eq!(client.ask(&call("buy")).await["result"], json!({ "content": [] }));
    shop.forget();
    assert_eq!(client.ask(&call("buy")).await["result"], json!({ "content": [] }));
    let done = |session: &str| (session.to_owned(), "tools/call".to_owned());
    assert_eq!(*shop.done.lock().unwrap(), [done("s0"), done("s1")], "each once");
    // Parallel calls renew the session once.
    shop.forget();
    for id in 10..16 {
        client.write(message(id, "resources/list").to_string().as_bytes()).await;
    }
    for _ in 10..16 {
        assert_eq!(client.hear().await["result"], json!({ "content": [] }));
    }
    assert_eq!(shop.begun.load(Ordering::SeqCst), 3);
    // Other messages of the client are not repeated in a new session.
    shop.forget();
    client.write(json!({ "jsonrpc": "2.0", "method": "notifications/x" }).to_string().as_bytes()).await;
    assert_eq!(client.ask(&call("buy")).await["result"], json!({ "content": [] }));
    assert_eq!(shop.done.lock().unwrap().iter().filter(|(_, method)| method == "notifications/x").count(), 0);
}

#[tokio::test]
async fn a_session_that_can_not_be_begun_again_is_shown() {
    let shop = Forgetful::default();
    let (_there, world) = shop.serve().await;
    let mut client = Client::of(&world).await;
    begins(&mut client).await;
    assert!(client.ask(&call("buy")).await["error"].is_null());
    shop.forget();
    *shop.refuses.lock().unwrap() = Some("closed on Sundays".to_owned());
    let said = client.ask(&call("buy")).await;
    assert!(words(&said).contains("can't start another one: closed on Sundays"), "{said}");
    // Reports are ten seconds apart, so the next round shows it.
    until("it is shown", || {
        report(&world).is_some_and(|shown| {
            shown.state == McpState::Failed && shown.error.unwrap_or_default().contains("closed on Sundays")
        })
    })
    .await;
    *shop.refuses.lock().unwrap() = None;
    assert_eq!(client.ask(&call("buy")).await["result"], json!({ "content": [] }), "the client goes on");
    drop(client);
    assert_eq!(shop.done.lock().unwrap().len(), 2);
}

/// A server of the older transport, whose streams can be cut.
#[derive(Clone, Default)]
struct Cut {
    streams: Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>,
    done: Arc<Mutex<Vec<String>>>,
}

impl Cut {
    fn answers(&self, request: &Request<bytes::Bytes>) -> Response<Body> {
        let mut streams = self.streams.lock().unwrap();
        if *request.method() == Method::GET {
            let (say, said) = mpsc::unbounded_channel();
            say.send(format!("event: endpoint\ndata: /messages?session={}\n\n", streams.len())).unwrap();
            streams.push(say);
            let said = futures::stream::unfold(said, |mut said| async move {
                let text: String = said.recv().await?;
                Some((Ok(Frame::data(bytes::Bytes::from(text))), said))
            });
            let answer = Response::builder().header("content-type", "text/event-stream");
            return answer.body(StreamBody::new(said.boxed()).boxed_unsync()).unwrap();
        }
        let session = request.uri().query().unwrap().strip_prefix("session=").unwrap();
        let asked: Value = serde_json::from_slice(request.body()).unwrap();
        let method = asked["method"].as_str().unwrap().to_owned();
        self.done.lock().unwrap().push(format!("{session} {method}"));
        if asked["id"].is_null() || method == "slow" {
            return answer(StatusCode::ACCEPTED, String::new());
        }
        let result =
            json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "protocolVersion": "2024-11-05" } });
        let _ = streams[session.parse::<usize>().unwrap()].send(format!("data: {result}\n\n"));
        answer(StatusCode::ACCEPTED, String::new())
    }

    fn cut(&self) {
        let mut streams = self.streams.lock().unwrap();
        for stream in &mut *streams {
            *stream = mpsc::unbounded_channel().0;
        }
    }
}

#[tokio::test]
async fn a_cut_stream_is_reported_and_reopened_by_the_next_request() {
    let old = Cut::default();
    let own = old.clone();
    let there = Server::start(plainly(move |request| own.answers(&request))).await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/sse", there.port);
    world.plan.mcp_servers = vec![server(5, "old", McpTransport::Sse { url, headers: secret("x-key") })];
    world.apply();
    let mut client = Client::of(&world).await;
    assert_eq!(client.ask(&begin()).await["id"], 0);
    client
        .write(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string().as_bytes())
        .await;
    client.write(message("s", "slow").to_string().as_bytes()).await;
    until("it is under way", || old.done.lock().unwrap().contains(&"0 slow".to_owned())).await;
    old.cut();
    let said = client.hear().await;
    assert_eq!(said["id"], "s");
    assert!(words(&said).contains("has cut its stream"), "waiting calls get the error: {said}");
    until("it is shown", || {
        report(&world).is_some_and(|shown| shown.error.is_some_and(|error| error.contains("cut its stream")))
    })
    .await;
    assert_eq!(client.ask(&message(7, "tools/list")).await["id"], 7);
    let done = old.done.lock().unwrap().clone();
    let again = ["1 initialize", "1 notifications/initialized", "1 tools/list"];
    assert_eq!(done[done.len() - 3..], again, "{done:?}");
    assert_eq!(there.seen().iter().filter(|seen| seen.method() == Method::GET).count(), 2);
}

#[tokio::test]
async fn a_call_leaves_with_judged_fields_only() {
    let shop = Forgetful::default();
    let (there, world) = shop.serve().await;
    let mut client = Client::of(&world).await;
    begins(&mut client).await;
    let with = |beside: Value| {
        let mut call = call("buy");
        let params = call["params"].as_object_mut().unwrap();
        params.extend(beside.as_object().unwrap().clone());
        call
    };
    for (beside, left) in [
        (json!({ "task": { "ttl": 60_000 }, "other": 1 }), json!({})),
        (
            json!({ "_meta": { "progressToken": 7, "x/order": "two" } }),
            json!({ "_meta": { "progressToken": 7 } }),
        ),
        (json!({ "_meta": { "progressToken": "a" } }), json!({ "_meta": { "progressToken": "a" } })),
        (json!({ "_meta": { "progressToken": { "a": 1 } } }), json!({})),
        (json!({ "_meta": "text" }), json!({})),
    ] {
        assert!(client.ask(&with(beside.clone())).await["error"].is_null(), "{beside}");
        let seen: Value = serde_json::from_slice(there.seen().last().unwrap().body()).unwrap();
        assert_eq!(seen, with(left), "{beside}");
    }
}

/// Answers each request with its own identity.
const ECHO: &str = r#"while read -r line; do
case "$line" in
*initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"pid\":$$}}";;
esac
done"#;

#[tokio::test]
async fn clients_above_the_limit_get_an_error() {
    let mut world = World::new();
    world.plan.mcp_servers = vec![server(5, "sh", shell(ECHO, secret("KEY")))];
    world.apply();
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Client::of(&world).await;
        assert!(client.ask(&begin()).await["result"]["pid"].is_number());
        clients.push(client);
    }
    let mut ninth = Client::of(&world).await;
    assert!(words(&ninth.ask(&begin()).await).contains("too many clients of this MCP server"));
    assert_eq!(ninth.line().await, "", "its connection is closed");
    let mut relay = Client::of(&world).await;
    relay.write(b"+").await;
    relay.write(format!(">{}", begin()).as_bytes()).await;
    let said = relay.line().await;
    assert!(said.starts_with('<') && said.contains("too many clients"), "{said}");
    clients.pop();
    let begun = async {
        loop {
            let mut client = Client::of(&world).await;
            if client.ask(&begin()).await["error"].is_null() {
                break;
            }
        }
    };
    timeout(Duration::from_secs(120), begun).await.expect("there is room again");
}

#[tokio::test]
async fn programs_are_bounded_in_number_and_in_how_often_they_start() {
    let mut world = World::new();
    world.plan.mcp_servers = vec![server(5, "sh", shell(ECHO, secret("KEY")))];
    world.apply();
    let one_after_the_other = async {
        for count in 0.. {
            let mut client = Client::of(&world).await;
            let said = client.ask(&begin()).await;
            if said["error"].is_object() {
                return (count, words(&said).to_owned());
            }
        }
        unreachable!()
    };
    let (count, words) = timeout(Duration::from_secs(120), one_after_the_other).await.unwrap();
    assert!((16..=20).contains(&count), "{count}");
    assert!(words.contains("were started. Try again in"), "{words}");
}

/// Answers one request only.
const SHY: &str = r#"while read -r line; do
case "$line" in
*ping*) echo '{"jsonrpc":"2.0","id":1,"result":{}}';;
esac
done"#;

#[tokio::test]
async fn a_session_that_was_never_counted_ends_none_that_was() {
    let mut world = World::new();
    world.plan.mcp_servers = vec![server(5, "sh", shell(SHY, secret("KEY")))];
    world.apply();
    let mut known = Client::of(&world).await;
    assert_eq!(known.ask(&message(1, "ping")).await["result"], json!({}));
    world.plan.mcp_servers.clear();
    world.apply();
    // Clients of a server that the agent lacks. There is room for eight, so most have ended by then.
    let (mut told, mut turned_away) = (0, 0);
    while told < 20 && turned_away < 100_000 {
        let said = Client::of(&world).await.ask(&list()).await;
        if words(&said).contains("no longer has") { told += 1 } else { turned_away += 1 }
    }
    assert_eq!((told, report(&world)), (20, None), "the one that starts still does");
    drop(known);
    until("it has ended", || report(&world).is_some_and(|shown| shown.state == McpState::Idle)).await;
}

#[tokio::test]
async fn a_long_name_of_a_tool_is_cut_and_a_list_too() {
    let shop = Server::start(plainly(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let names = (0..300).map(|n| json!({ "name": format!("{n}{}", "ä".repeat(80)) }));
        let result = json!({ "tools": names.collect::<Vec<_>>() });
        answer(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string())
    }))
    .await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp", shop.port);
    let name = "é".repeat(300);
    world.plan.mcp_servers = vec![server(5, &name, McpTransport::Http { url, headers: Vec::new() })];
    world.apply();
    let mut client = Client::of(&world).await;
    let listed = client.ask(&list()).await;
    client.ask(&begin()).await;
    let first = listed["result"]["tools"][0]["name"].as_str().unwrap();
    assert_eq!(first.len(), 161, "the agent reads it as it is");
    until("they are shown", || report(&world).is_some_and(|shown| !shown.tools.is_empty())).await;
    let shown = report(&world).unwrap().tools;
    assert_eq!((shown.len(), shown[0].len(), shown[10].len()), (256, 127, 128), "cut between characters");
    // Judged names are never truncated.
    let long = "t".repeat(200);
    assert!(client.refusal(&call(&long)).await.contains("The rules say no."));
    let judged = world.host.judged.lock().unwrap().pop().unwrap().crossing;
    assert_eq!((judged.tool, judged.mcp_server_id), (format!("{name}.{long}"), Some(5)));
}

#[tokio::test]
async fn reports_contain_no_secret_in_any_encoding() {
    let keys = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&keys);
    let shop = Server::start(plainly(move |request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let error = json!({ "code": 1, "message": *said.lock().unwrap() });
        answer(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }).to_string())
    }))
    .await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp", shop.port);
    let rotates = |world: &mut World, key: &str| {
        let headers = vec![Variable { name: "x-key".to_owned(), value: key.to_owned().into() }];
        world.plan.mcp_servers = vec![server(5, "shop", McpTransport::Http { url: url.clone(), headers })];
        world.apply();
    };
    rotates(&mut world, "older/CANARY");
    rotates(&mut world, "newer/CANARY");
    *keys.lock().unwrap() = format!(
        "older/CANARY newer%2FCANARY older\\/CANARY {} {}",
        BASE64_STANDARD.encode("user:older/CANARY"),
        BASE64_STANDARD.encode("newer/CANARY!")
    );
    let mut client = Client::of(&world).await;
    let seen = client.ask(&begin()).await;
    assert!(words(&seen).contains("CANARY"), "the agent's own client is the server's");
    until("it is shown", || report(&world).is_some_and(|shown| shown.error.is_some())).await;
    let shown = report(&world).unwrap().error.unwrap();
    assert_eq!(shown.matches("•••").count(), 5, "{shown}");
    for part in ["older", "newer", "CANARY", "Q0FOQVJZ", "NBTkFSW"] {
        assert!(!shown.contains(part), "{shown}");
    }
}
