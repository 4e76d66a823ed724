//! MCP servers of an agent: each call to any server is judged; headers and secrets stay outside of the sandbox.

use std::time::Duration;

use futures::StreamExt;
use http::{Method, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use muster_egress::{CrossingDecision, SessionKey};
use muster_protocol::plan::{McpServer, McpTransport, Variable};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    time::timeout,
};

use crate::{
    servers::{Server, body, plainly},
    support::World,
};

pub fn server(id: i64, name: &str, transport: McpTransport) -> McpServer {
    McpServer {
        id,
        name: name.to_owned(),
        transport,
        reads_workspace: false,
        credential_ids: Vec::new(),
        tools: None,
    }
}

pub fn secret(name: &str) -> Vec<Variable> {
    vec![Variable { name: name.to_owned(), value: "canary".to_owned().into() }]
}

pub fn shell(script: &str, environment: Vec<Variable>) -> McpTransport {
    McpTransport::Stdio {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        environment,
    }
}

pub fn call(tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": tool, "arguments": { "a": 1 } } })
}

pub fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

/// A client, or a client's relay.
pub struct Client(pub BufReader<UnixStream>);

impl Client {
    /// A client of server 5 in conversation 12.
    pub async fn of(world: &World) -> Self {
        let socket = world.dir.path().join("12-5");
        if !socket.exists() {
            let listener = UnixListener::bind(&socket).unwrap();
            let key = SessionKey { server_id: 5, conversation_id: Some(12) };
            tokio::spawn(world.gate.serve_mcp(listener, key));
        }
        Self(BufReader::new(UnixStream::connect(socket).await.unwrap()))
    }

    pub async fn write(&mut self, line: &[u8]) {
        self.0.write_all(&[line, b"\n"].concat()).await.unwrap();
    }

    /// The next raw line. Empty at the end.
    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(Duration::from_secs(20), self.0.read_line(&mut line)).await.unwrap().unwrap();
        line.trim_end().to_owned()
    }

    pub async fn hear(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"))
    }

    pub async fn ask(&mut self, message: &Value) -> Value {
        self.write(message.to_string().as_bytes()).await;
        self.hear().await
    }

    /// The text of a tool's error.
    pub async fn refusal(&mut self, message: &Value) -> String {
        let answer = self.ask(message).await;
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(3), &json!(true)), "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// The reason in the answer to a refused message.
pub fn words(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

/// A server that answers everything, and an agent with it as `shop`.
pub async fn shop() -> (Server, World) {
    let there = Server::start(plainly(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }).to_string();
        Response::builder().header("content-type", "application/json").body(body(answer)).unwrap()
    }))
    .await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp", there.port);
    let shop = server(5, "shop", McpTransport::Http { url, headers: secret("x-key") });
    world.plan.mcp_servers = vec![McpServer { credential_ids: vec![8, 9], ..shop }];
    world.apply();
    (there, world)
}

#[tokio::test]
async fn a_call_is_refused_asked_or_made() {
    let (there, mut world) = shop().await;
    let mut client = Client::of(&world).await;
    assert!(world.host.used().is_empty());
    assert_eq!(client.ask(&list()).await["result"], json!({}));
    let seen = there.seen.lock().unwrap().remove(0);
    assert_eq!((seen.uri().path(), seen.headers()["x-key"].to_str().unwrap()), ("/mcp", "canary"));
    assert!(world.host.judged.lock().unwrap().is_empty(), "no question for a free call");
    assert!(
        client.refusal(&call("buy")).await.contains("The rules say no."),
        "an error that the model reads"
    );
    let verdict = |verdict| _ = world.host.verdicts.lock().unwrap().insert("shop.buy".to_owned(), verdict);
    verdict(CrossingDecision::Asked);
    assert!(client.refusal(&call("buy")).await.contains("End your turn now"));
    // Ambiguous messages are read once.
    let twice =
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","method":"tools/call","params":{"name":"buy"}}"#;
    client.write(twice.as_bytes()).await;
    assert!(client.line().await.contains("End your turn now"));
    client.write(json!([call("buy")]).to_string().as_bytes()).await;
    assert!(words(&client.hear().await).contains("one message at a time"));
    // The control plane gets the arguments as sent, and 1e15 is written with 18 characters.
    let numbers = vec!["1e15"; 60_000].join(",");
    let (open, close) = ("[".repeat(64), "]".repeat(64));
    for (arguments, limit) in
        [(format!("{{\"n\":[{numbers}]}}"), "512 KiB"), (format!("{{\"a\":{open}{close}}}"), "64 levels")]
    {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"buy","arguments":{arguments}}}}}"#
        );
        client.write(text.as_bytes()).await;
        assert!(words(&client.hear().await).contains(limit));
    }
    assert!(there.seen().is_empty(), "nothing has left");
    verdict(CrossingDecision::Allowed);
    assert_eq!(client.ask(&call("buy")).await, json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    assert_eq!(there.seen().len(), 1);
    assert_eq!(world.host.used(), [8, 9], "reported once an hour");
    let judged = world.host.judged.lock().unwrap().pop().unwrap();
    assert_eq!((judged.conversation_id, judged.crossing.tool_kind.as_str()), (Some(12), "other"));
    assert_eq!(judged.crossing.input, json!({ "a": 1 }));
    for group in ["shop", "OTHER"] {
        world.plan.disabled_tool_groups = vec![group.to_owned()];
        world.apply();
        assert!(client.refusal(&call("buy")).await.contains("switched off"), "{group}");
        for method in
            ["resources/read", "prompts/get", "completion/complete", "tasks/result", "Resources/Read", "x"]
        {
            let asked =
                json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": { "uri": "a", "name": "a" } });
            assert!(words(&client.ask(&asked).await).contains("switched off"), "{group}: {method}");
            client.write(json!({ "jsonrpc": "2.0", "method": method }).to_string().as_bytes()).await;
        }
    }
    assert_eq!(there.seen().len(), 1, "nothing of it has left");
    assert_eq!(client.ask(&list()).await["result"], json!({}), "listings are not secret");
    there.seen.lock().unwrap().pop();
    world.plan.disabled_tool_groups.clear();
    world.plan.mcp_servers.clear();
    world.apply();
    assert!(client.refusal(&call("buy")).await.contains("no longer has"));
    assert!(words(&client.ask(&list()).await).contains("no longer has"));
    assert_eq!(there.seen().len(), 1);
}

#[tokio::test]
async fn ambiguous_messages_are_refused() {
    let (there, world) = shop().await;
    let mut client = Client::of(&world).await;
    for text in [
        r#"{"jsonrpc":"2.0","id":3,"Method":"tools/call","params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","METHOD":"tools/call","params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look"},"Params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look"},"param\u017f":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look","Name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look","arguments":{},"ARGUMENTS":{"a":1}}}"#,
        r#"{"jsonrpc":"2.0","ID":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"ERROR":{}}"#,
        r#"{"jsonRPC":"2.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":["tools/call"],"params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call\u0000","params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call\u0000x"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call\n","params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":[3],"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":["buy",{}]}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"buy"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"buy","arguments":[1]}}"#,
        r#"[{"jsonrpc":"2.0","id":3,"Method":"tools/call","params":{"name":"buy"}}]"#,
    ] {
        client.write(text.as_bytes()).await;
        assert!(words(&client.hear().await).starts_with("Muster: "), "{text}");
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"{}"}}}}"#,
        "x".repeat(201)
    );
    client.write(long.as_bytes()).await;
    assert!(words(&client.hear().await).contains("200 characters"), "truncated names are never judged");
    assert!(there.seen().is_empty() && world.host.judged.lock().unwrap().is_empty());
    // Judged although the method differs slightly: lenient servers may accept it.
    client.write(br#"{"id":3,"method":"Tools/Call ","params":{"name":"buy"}}"#).await;
    assert!(client.line().await.contains("The rules say no."));
    // Of duplicate fields, the judged one leaves.
    world.host.verdicts.lock().unwrap().insert("shop.buy".to_owned(), CrossingDecision::Allowed);
    let twice = r#"{"id":3,"method":"tools/call","params":{"name":"look","name":"buy","arguments":{"a":1,"b":{"c":1,"c":2},"a":2}}}"#;
    client.write(twice.as_bytes()).await;
    assert_eq!(client.hear().await["result"], json!({}));
    let judged = world.host.judged.lock().unwrap().pop().unwrap().crossing;
    assert_eq!((judged.tool.as_str(), &judged.input), ("shop.buy", &json!({ "a": 2, "b": { "c": 2 } })));
    let left = there.seen().remove(0);
    assert_eq!(
        left.body(),
        r#"{"id":3,"method":"tools/call","params":{"name":"buy","arguments":{"a":2,"b":{"c":2}}}}"#
    );
}

/// A reader with another encoding would read another message.
#[tokio::test]
async fn a_message_is_utf_8_and_one_line() {
    let (there, world) = shop().await;
    let mut client = Client::of(&world).await;
    let ping = br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    let wide: Vec<u8> = ping.iter().flat_map(|byte| [0, *byte]).collect();
    let marked = [b"\xef\xbb\xbf", &ping[..]].concat();
    for bytes in [&wide[..], &marked[..], b"{\"method\":\"ping\",\"x\":\"\xe9\"}"] {
        client.write(bytes).await;
        assert!(words(&client.hear().await).contains("not plain UTF-8"), "{bytes:?}");
    }
    client.write(b"{\"id\":3,\"method\":\"ping\",\r\"x\":1}\r").await;
    assert_eq!(client.hear().await["result"], json!({}));
    assert_eq!(there.seen().remove(0).body(), r#"{"id":3,"method":"ping","x":1}"#);
    let long = format!(r#"{{"id":3,"method":"ping","x":"{}"}}"#, "x".repeat(8 * 1024 * 1024));
    let _ = client.0.write_all(long.as_bytes()).await;
    assert_eq!(client.line().await, "", "it is too long, and the last");
    assert_eq!(there.seen().len(), 1);
}

/// A stream that stays open.
pub fn stream(text: &str) -> Response<crate::servers::Body> {
    let first = Ok(Frame::data(bytes::Bytes::from(text.to_owned())));
    let open = futures::stream::once(std::future::ready(first)).chain(futures::stream::pending());
    let answer = Response::builder().header("content-type", "text/event-stream");
    answer.body(StreamBody::new(open).boxed_unsync()).unwrap()
}

#[tokio::test]
async fn a_server_over_http_has_a_session_and_a_stream() {
    let there = Server::start(plainly(|request| {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string();
        let plain = Response::builder().header("content-type", "application/json; charset=utf-8");
        match (request.method(), asked["method"].as_str().unwrap_or_default()) {
            (&Method::GET, _) => stream(
                ": hello\n\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"told\"}\r\n\r\n",
            ),
            (_, "initialize") => {
                let plain = plain.header("mcp-session-id", "s1");
                plain.body(body(answer(json!({ "protocolVersion": "2025-06-18" })))).unwrap()
            }
            (_, "tools/list") => stream(&format!(
                "id: 1\ndata: {{\"method\":\"progress\"}}\n\ndata: {}\n\n",
                answer(json!({ "tools": [] }))
            )),
            (_, "over") => Response::builder().status(404).body(body("")).unwrap(),
            (_, "wrong") => Response::builder().status(500).body(body("a secret")).unwrap(),
            _ => Response::builder().status(202).body(body("")).unwrap(),
        }
    }))
    .await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp", there.port);
    let transport = |key| McpTransport::Http { url: url.clone(), headers: secret(key) };
    world.plan.mcp_servers = vec![server(5, "shop", transport("x-key"))];
    world.apply();
    let mut client = Client::of(&world).await;
    let ask = |method: &str| json!({ "jsonrpc": "2.0", "id": 3, "method": method });
    assert_eq!(client.ask(&ask("initialize")).await["result"]["protocolVersion"], "2025-06-18");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(
        client.ask(&initialized).await,
        json!({ "jsonrpc": "2.0", "method": "told" }),
        "by the own stream"
    );
    world.plan.mcp_servers = vec![server(5, "shop", transport("x-new"))];
    world.apply();
    assert_eq!(client.ask(&ask("tools/list")).await["method"], "progress");
    assert_eq!(client.hear().await["result"], json!({ "tools": [] }));
    let last = there.seen().pop().unwrap();
    assert_eq!(last.headers()["mcp-session-id"], "s1");
    assert_eq!(last.headers()["mcp-protocol-version"], "2025-06-18");
    assert_eq!(last.headers()["x-new"], "canary", "a new secret counts at once");
    assert_eq!(
        words(&client.ask(&ask("wrong")).await),
        "Muster: The MCP server answered with 500 Internal Server Error."
    );
    let mut said = client.ask(&ask("over")).await;
    if said["method"] == "told" {
        said = client.hear().await;
    }
    let refused = "Muster: The MCP server answered with 404 Not Found.";
    assert_eq!(words(&said), refused, "another session doesn't help");
    let begins = there
        .seen()
        .iter()
        .filter(|seen| seen.body().starts_with(br#"{"jsonrpc":"2.0","id":3,"method":"initialize""#))
        .count();
    assert_eq!(begins, 2, "one more was begun");
    drop(client);
    let left = async {
        while !there.seen().iter().any(|seen| seen.method() == Method::DELETE) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), left).await.unwrap();
}

#[tokio::test]
async fn an_older_server_names_where_to_post() {
    let there = Server::start(plainly(|request| match request.uri().path() {
        "/a/sse" => stream(
            "event: endpoint\ndata: /a/messages?session=1\n\nevent: message\ndata: {\"id\":1,\"result\":{}}\n\n",
        ),
        "/b/sse" => stream("event: endpoint\ndata: http://127.0.0.1:9/a/messages\n\n"),
        _ => Response::builder().status(202).body(body("")).unwrap(),
    }))
    .await;
    let mut world = World::new();
    let at = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", there.port);
        vec![server(5, "old", McpTransport::Sse { url, headers: secret("x-key") })]
    };
    world.plan.mcp_servers = at("/a/sse");
    world.apply();
    let mut client = Client::of(&world).await;
    assert_eq!(client.ask(&list()).await["id"], 1);
    let seen = async {
        while there.seen().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        there.seen()
    };
    let seen = timeout(Duration::from_secs(10), seen).await.unwrap();
    assert_eq!(seen[1].uri().to_string(), "/a/messages?session=1");
    assert_eq!(seen[1].headers()["x-key"], "canary");
    assert!(client.refusal(&call("buy")).await.contains("The rules say no."));
    world.plan.mcp_servers = at("/b/sse");
    world.apply();
    assert_eq!(client.line().await, "", "it is another server");
    let mut client = Client::of(&world).await;
    assert!(words(&client.ask(&list()).await).contains("no address of its own"));
    assert_eq!(there.seen().len(), 3, "its key goes nowhere else");
}

/// A shell server: reports its secret, sends notifications, and exits, all on request.
const SCRIPT: &str = r#"while read -r line; do
case "$line" in
*initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"key\":\"$KEY\",\"pid\":$$}}";;
*tell*) echo noise; echo '{"jsonrpc":"2.0","method":"notifications/told"}'; echo '{"jsonrpc":"2.0","id":"x","result":{}}';;
*leave*) echo '{"jsonrpc":"2.0","id":9,"result":{}}'; exit 0;;
esac
done"#;

/// Waits for a process to end.
async fn ended(pid: &Value) {
    let is_there = || std::path::Path::new(&format!("/proc/{pid}")).exists();
    let gone = async {
        while is_there() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn a_program_runs_outside_one_for_each_client() {
    let mut world = World::new();
    world.plan.mcp_servers = vec![server(5, "sh", shell(SCRIPT, secret("KEY")))];
    world.apply();
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} });
    let (mut one, mut two, mut three) =
        (Client::of(&world).await, Client::of(&world).await, Client::of(&world).await);
    let first = one.ask(&begin).await["result"].clone();
    assert_eq!(first["key"], "canary", "the program has its secret");
    let (second, third) = (two.ask(&begin).await, three.ask(&begin).await);
    assert_ne!(first["pid"], second["result"]["pid"]);
    let told = one.ask(&json!({ "jsonrpc": "2.0", "id": "x", "method": "tell" })).await;
    assert_eq!(told["method"], "notifications/told");
    assert_eq!(one.hear().await["id"], "x");
    assert!(one.refusal(&call("tell")).await.contains("The rules say no."));
    assert_eq!(one.ask(&json!({ "jsonrpc": "2.0", "id": 9, "method": "leave" })).await["id"], 9);
    assert_eq!(one.line().await, "", "output ends after the last message");
    drop(two);
    ended(&second["result"]["pid"]).await;
    world.plan.mcp_servers.clear();
    world.apply();
    ended(&third["result"]["pid"]).await;
    assert!(words(&three.ask(&begin).await).contains("no longer has"));
    let missing = McpTransport::Stdio {
        command: "no-such-program".to_owned(),
        args: vec![],
        environment: secret("KEY"),
    };
    world.plan.mcp_servers = vec![server(5, "none", missing)];
    world.apply();
    assert_eq!(three.line().await, "", "it is another server");
    let mut client = Client::of(&world).await;
    assert!(words(&client.ask(&begin).await).contains("can't be started"));
}

#[tokio::test]
async fn a_program_in_the_sandbox_is_judged_too() {
    let mut world = World::new();
    world.plan.mcp_servers = vec![server(5, "own", shell("unused", vec![]))];
    world.apply();
    let mut relay = Client::of(&world).await;
    relay.write(b"+").await;
    relay.write(format!(">{}", list()).as_bytes()).await;
    assert_eq!(relay.line().await, format!(">{}", list()));
    relay.write(b"<noise").await;
    relay.write(b"!complaint").await;
    relay.write(br#"<{"jsonrpc": "2.0", "id": 1, "result": {}}"#).await;
    assert_eq!(relay.line().await, r#"<{"jsonrpc":"2.0","id":1,"result":{}}"#);
    relay.write(format!(">{}", call("buy")).as_bytes()).await;
    assert!(relay.line().await.contains("The rules say no."));
    world.host.verdicts.lock().unwrap().insert("own.buy".to_owned(), CrossingDecision::Approved);
    relay.write(format!(">{}", call("buy")).as_bytes()).await;
    assert_eq!(relay.line().await, format!(">{}", call("buy")));
    let mut client = Client::of(&world).await;
    assert!(words(&client.ask(&list()).await).contains("was changed"), "the program was not started");
    world.plan.disabled_tool_groups = vec!["own".to_owned()];
    world.apply();
    relay.write(format!(">{}", call("buy")).as_bytes()).await;
    assert!(relay.line().await.contains("switched off"));
    world.plan.stopped = true;
    world.apply();
    assert_eq!(relay.line().await, "", "a stop ends what is open");
}
