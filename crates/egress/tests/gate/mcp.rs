//! MCP servers behind the gate: judged, with headers that the agent never sees, as programs outside of its sandbox.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use muster_egress::{CONVERSATION, Verdict};
use muster_protocol::plan::{McpServer, McpTransport, Variable};
use serde_json::{Value, json};

use crate::{
    servers::{Server, body, plainly},
    support::{World, send},
};

fn server(name: &str, transport: McpTransport) -> McpServer {
    McpServer { name: name.to_owned(), transport }
}

fn secret(name: &str) -> Vec<Variable> {
    vec![Variable { name: name.to_owned(), value: "canary".to_owned().into() }]
}

fn call(tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": tool, "arguments": { "a": 1 } } })
}

/// A server that answers everything, and an agent that has it as `shop`.
async fn shop() -> (Server, World) {
    let there =
        Server::start(plainly(|_| Response::new(body(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#)))).await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp", there.port);
    world.plan.mcp_servers = vec![server("shop", McpTransport::Http { url, headers: secret("x-key") })];
    world.apply();
    (there, world)
}

#[tokio::test]
async fn calls_of_tools_are_judged_and_everything_else_passes() {
    let there =
        Server::start(plainly(|_| Response::new(body(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#)))).await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp", there.port);
    world.plan.mcp_servers =
        vec![server("the shop", McpTransport::Http { url, headers: secret("authorization") })];
    world.apply();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(world.post("/mcp/the%20shop", &list).await.0, StatusCode::OK);
    let seen = there.seen().remove(0);
    assert_eq!((seen.uri().path(), seen.headers()["authorization"].to_str().unwrap()), ("/mcp", "canary"));
    assert_eq!(world.post("/mcp/the%20shop/mcp", &list).await.0, StatusCode::OK, "as some clients write it");
    assert_eq!(there.seen().pop().unwrap().uri().path(), "/mcp");
    let elsewhere = world.post("/mcp/the%20shop/other", &call("buy")).await;
    assert_eq!(elsewhere.0, StatusCode::NOT_FOUND);
    assert!(world.host.judged.lock().unwrap().is_empty(), "nobody is asked for nothing");
}

#[tokio::test]
async fn a_call_is_refused_asked_or_made() {
    let (there, mut world) = shop().await;
    let text = |answer: &str| -> String {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(3), &json!(true)));
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let (status, answer) = world.post("/mcp/shop", &call("buy")).await;
    assert_eq!(status, StatusCode::OK, "a refusal is an error of the tool, which the model reads");
    assert!(text(&answer).contains("The rules say no."));
    let verdict = |verdict| _ = world.host.verdicts.lock().unwrap().insert("shop.buy".to_owned(), verdict);
    verdict(Verdict::Asked);
    assert!(text(&world.post("/mcp/shop", &call("buy")).await.1).contains("End your turn now"));
    // What looks different to two readers is read once.
    let twice =
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","method":"tools/call","params":{"name":"buy"}}"#;
    let request = Request::post("/mcp/shop").body(Full::from(twice)).unwrap();
    assert!(text(&world.ask(request).await.1).contains("End your turn now"));
    let batch = world.post("/mcp/shop", &json!([call("buy")])).await;
    assert_eq!(batch.0, StatusCode::BAD_REQUEST);
    // The control plane is asked about the arguments as they are sent, and 1e15 is written in 18 characters.
    let numbers = vec!["1e15"; 60_000].join(",");
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"buy","arguments":{{"n":[{numbers}]}}}}}}"#
    );
    let request = Request::post("/mcp/shop").body(Full::from(long)).unwrap();
    let (status, answer) = world.ask(request).await;
    assert!(status == StatusCode::BAD_REQUEST && answer.contains("512 KiB"), "{status} {answer}");
    let (open, close) = ("[".repeat(64), "]".repeat(64));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"buy","arguments":{{"a":{open}{close}}}}}}}"#
    );
    let request = Request::post("/mcp/shop").body(Full::from(deep)).unwrap();
    let (status, answer) = world.ask(request).await;
    assert!(status == StatusCode::BAD_REQUEST && answer.contains("64 levels"), "{status} {answer}");
    assert!(there.seen().is_empty(), "nothing has left");
    verdict(Verdict::Allowed);
    let request = Request::post("/mcp/shop").header(CONVERSATION, "12").header("authorization", "Bearer own");
    let (status, answer) = world.ask(request.body(Full::from(call("buy").to_string())).unwrap()).await;
    assert_eq!((status, answer.as_str()), (StatusCode::OK, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#));
    let seen = there.seen().remove(0);
    assert_eq!(seen.headers()["x-key"], "canary");
    assert!(!seen.headers().contains_key("authorization") && !seen.headers().contains_key(CONVERSATION));
    let judged = world.host.judged.lock().unwrap().pop().unwrap();
    assert_eq!((judged.conversation_id, judged.crossing.tool_kind.as_str()), (Some(12), "other"));
    assert_eq!(judged.crossing.input, json!({ "a": 1 }));
    for group in ["shop", "OTHER"] {
        world.plan.disabled_tool_groups = vec![group.to_owned()];
        world.apply();
        assert!(text(&world.post("/mcp/shop", &call("buy")).await.1).contains("switched off"), "{group}");
    }
    assert_eq!(world.post("/mcp/other", &call("buy")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_judged_is_what_another_reader_reads() {
    let (there, world) = shop().await;
    let post = async |text: &str| {
        world.ask(Request::post("/mcp/shop").body(Full::from(text.to_owned())).unwrap()).await
    };
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
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"buy","arguments":[1]}}"#,
        r#"[{"jsonrpc":"2.0","id":3,"Method":"tools/call","params":{"name":"buy"}}]"#,
    ] {
        let (status, words) = post(text).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}: {words}");
    }
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"{}"}}}}"#,
        "x".repeat(201)
    );
    assert_eq!(post(&long).await.0, StatusCode::BAD_REQUEST, "nobody judges a name that is cut off");
    assert!(there.seen().is_empty() && world.host.judged.lock().unwrap().is_empty());
    // Judged though it is not quite the method; others may not mind.
    assert!(
        post(r#"{"id":3,"method":"Tools/Call ","params":{"name":"buy"}}"#)
            .await
            .1
            .contains("The rules say no.")
    );
    // Of two fields of one name, one is judged, and the same one leaves.
    world.host.verdicts.lock().unwrap().insert("shop.buy".to_owned(), Verdict::Allowed);
    let twice = r#"{"id":3,"method":"tools/call","params":{"name":"look","name":"buy","arguments":{"a":1,"b":{"c":1,"c":2},"a":2}}}"#;
    assert_eq!(post(twice).await.0, StatusCode::OK);
    let judged = world.host.judged.lock().unwrap().pop().unwrap().crossing;
    assert_eq!((judged.tool.as_str(), &judged.input), ("shop.buy", &json!({ "a": 2, "b": { "c": 2 } })));
    let left = there.seen().remove(0);
    assert_eq!(
        left.body(),
        r#"{"id":3,"method":"tools/call","params":{"name":"buy","arguments":{"a":2,"b":{"c":2}}}}"#
    );
}

/// One that reads it as other text would read another message.
#[tokio::test]
async fn a_message_is_utf_8_whatever_its_head_says() {
    let (there, world) = shop().await;
    let post = async |head: &[(&str, &str)], body: &[u8]| {
        let request = head
            .iter()
            .fold(Request::post("/mcp/shop"), |request, (name, value)| request.header(*name, *value));
        world.ask(request.body(Full::from(body.to_vec())).unwrap()).await
    };
    // As UTF-7, this is a call of a tool.
    let ping = br#"{"jsonrpc":"2.0","id":3,"method":"ping","x":"+ACI-,+ACI-method+ACI-:+ACI-tools/call"}"#;
    let (status, words) = post(&[("content-type", "application/json; charset=utf-7")], ping).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(words.contains("names a charset other than UTF-8"), "{words}");
    let kind = |value| ("content-type", value);
    for head in [
        &[kind("application/json; charset=\"UTF-16\"")][..],
        &[kind("application/json"), kind("application/json; charset=utf-7")],
        &[kind("application/json"), ("content-encoding", "gzip")],
    ] {
        assert_eq!(post(head, ping).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{head:?}");
    }
    let wide: Vec<u8> = ping.iter().flat_map(|byte| [0, *byte]).collect();
    let marked = [b"\xef\xbb\xbf", &ping[..]].concat();
    for bytes in [&wide[..], &marked[..], b"{\"method\":\"ping\",\"x\":\"\xe9\"}"] {
        let (status, words) = post(&[kind("application/json")], bytes).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{bytes:?}");
        assert!(words.contains("not plain UTF-8"), "{words}");
    }
    assert!(there.seen().is_empty(), "nothing has left");
    let plain = [kind("text/plain; charset=utf-8"), ("content-encoding", "identity")];
    for head in [&plain[..], &[]] {
        assert_eq!(post(head, ping).await.0, StatusCode::OK, "{head:?}");
        let left = there.seen().pop().unwrap();
        assert_eq!(left.headers()["content-type"], "application/json");
        assert!(!left.headers().contains_key("content-encoding"));
    }
}

#[tokio::test]
async fn an_older_server_names_an_address_that_leads_through_the_gate() {
    let there = Server::start(plainly(|request| match request.uri().path() {
        "/a/sse" => Response::builder()
            .header("content-type", "text/event-stream")
            .body(body("event: endpoint\ndata: /a/messages?session=1\n\nevent: message\ndata: {}\n\n"))
            .unwrap(),
        _ => Response::builder().status(202).body(body("")).unwrap(),
    }))
    .await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/a/sse", there.port);
    world.plan.mcp_servers = vec![server("old", McpTransport::Sse { url, headers: secret("x-key") })];
    world.apply();
    let (_, stream) = world.get("/mcp/old").await;
    assert_eq!(
        stream,
        "event: endpoint\ndata: /mcp/old/at/a/messages?session=1\n\nevent: message\ndata: {}\n\n"
    );
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(world.post("/mcp/old/at/a/messages?session=1", &list).await.0, StatusCode::ACCEPTED);
    let seen = there.seen();
    assert_eq!(
        (seen[1].uri().to_string().as_str(), &seen[1].headers()["x-key"]),
        ("/a/messages?session=1", &"canary".parse().unwrap())
    );
    let (status, words) = world.post("/mcp/old/at/a/messages?session=1", &call("buy")).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{words}");
    // What the server has not named stays closed, with its key, and so does every other way of asking.
    for path in [
        "/at/../x",
        "/at/admin/keys",
        "/at/a/messages",
        "/at/a/messages?session=2",
        "/at/a/sse",
        "/at/",
        "/at",
    ] {
        assert_eq!(world.post(&format!("/mcp/old{path}"), &list).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(world.post("/mcp/old", &list).await.0, StatusCode::METHOD_NOT_ALLOWED);
    for path in ["/mcp/old/at/a/messages?session=1", "/mcp/old/at/admin/keys", "/mcp/old"] {
        for method in ["DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "GET"] {
            if (method, path) == ("GET", "/mcp/old") {
                continue;
            }
            let request = Request::builder().method(method).uri(path).body(Full::default()).unwrap();
            assert_eq!(world.ask(request).await.0, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
    assert_eq!(there.seen().len(), 2);
}

/// A server in the shell: says what its secret is, tells everybody when it is asked to, and ends.
const SCRIPT: &str = r#"while read -r line; do
case "$line" in
*initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"key\":\"$KEY\"}}";;
*tell*) echo noise; echo '{"jsonrpc":"2.0","method":"notifications/told"}'; echo '{"jsonrpc":"2.0","id":"x","result":{}}';;
*leave*) exit 0;;
esac
done"#;

#[tokio::test]
async fn a_program_runs_outside_one_for_each_session() {
    let mut world = World::new();
    let (command, args) = ("sh".to_owned(), vec!["-c".to_owned(), SCRIPT.to_owned()]);
    let transport = McpTransport::Stdio { command, args, environment: secret("KEY") };
    world.plan.mcp_servers = vec![server("sh", transport)];
    world.apply();
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} });
    let request = || Request::post("/mcp/sh").body(Full::from(begin.to_string())).unwrap();
    let answer = send(&world.socket(), request()).await;
    let session = answer.headers()["mcp-session-id"].clone();
    let other = send(&world.socket(), request()).await.headers()["mcp-session-id"].clone();
    assert_ne!(session, other);
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&bytes).contains("canary"), "the program has its secret");
    let said = |what: &Value| {
        let request = Request::post("/mcp/sh").header("mcp-session-id", &session);
        world.ask(request.body(Full::from(what.to_string())).unwrap())
    };
    let told = said(&json!({ "jsonrpc": "2.0", "id": "x", "method": "tell" })).await;
    assert_eq!(told, (StatusCode::OK, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#.to_owned()));
    let listen = Request::get("/mcp/sh").header("mcp-session-id", &session).body(Full::default()).unwrap();
    let mut events = send(&world.socket(), listen).await.into_body();
    let event = events.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&event).contains("notifications/told"));
    assert_eq!(
        said(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await.0,
        StatusCode::ACCEPTED
    );
    // A message is one line, however it is written: what comes after a line's end is not another message.
    let split = "{\"jsonrpc\":\"2.0\",\"id\":\"y\",\"method\":\"none\",\"x\":\n[\"leave\",\n\"tell\"]}";
    let request =
        Request::post("/mcp/sh").header("mcp-session-id", &session).body(Full::from(split)).unwrap();
    let waits = tokio::time::timeout(std::time::Duration::from_millis(300), world.ask(request)).await;
    assert!(waits.is_err(), "the one line that has both is about `tell`: {waits:?}");
    // Its end is told to whoever waits, and to whoever comes later.
    let (status, words) = said(&json!({ "jsonrpc": "2.0", "id": 9, "method": "leave" })).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY, "{words}");
    assert_eq!(said(&json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" })).await.0, StatusCode::NOT_FOUND);
    let end = Request::delete("/mcp/sh").header("mcp-session-id", other).body(Full::default()).unwrap();
    assert_eq!(world.ask(end).await.0, StatusCode::NO_CONTENT);
    let missing =
        McpTransport::Stdio { command: "no-such-program".to_owned(), args: vec![], environment: vec![] };
    world.plan.mcp_servers = vec![server("none", missing)];
    world.apply();
    assert_eq!(world.post("/mcp/none", &begin).await.0, StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn an_agent_changes_neither_address_nor_mode_of_a_server() {
    let there =
        Server::start(plainly(|_| Response::new(body(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#)))).await;
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{}/mcp?read_only=true&project=mine", there.port);
    world.plan.mcp_servers =
        vec![server("shop", McpTransport::Http { url, headers: secret("x-mcp-toolsets") })];
    world.apply();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for query in ["?read_only=false&project=other", "?x=1", "?READ%5FONLY[]=0"] {
        let (status, words) = world.post(&format!("/mcp/shop{query}"), &list).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {words}");
    }
    assert!(there.seen().is_empty(), "nothing has left");
    let request = Request::post("/mcp/shop?")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("last-event-id", "7")
        .header("mcp-protocol-version", "2025-06-18")
        .header("mcp-session-id", "s")
        .header("user-agent", "an agent")
        .header("connection", "x-listed")
        .header("x-listed", "1")
        .header("x-mcp-readonly", "false")
        .header("x_mcp_toolsets", "all")
        .header("x-http-method-override", "DELETE")
        .header("x-forwarded-host", "other.test")
        .header("forwarded", "host=other.test")
        .header("accept-encoding", "gzip");
    assert_eq!(world.ask(request.body(Full::from(list.to_string())).unwrap()).await.0, StatusCode::OK);
    let seen = there.seen().remove(0);
    assert_eq!(seen.uri().to_string(), "/mcp?read_only=true&project=mine");
    let mut names: Vec<&str> = seen.headers().keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let expected = [
        "accept",
        "accept-encoding",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "user-agent",
        "x-mcp-toolsets",
    ];
    assert_eq!(
        (names, &seen.headers()["accept-encoding"]),
        (expected.to_vec(), &"identity".parse().unwrap())
    );
}

/// A server that begins, and then reads nothing for a long time.
const SLOW: &str = r#"read -r line; echo '{"jsonrpc":"2.0","id":0,"result":{}}'; sleep 30
while read -r line; do echo '{"jsonrpc":"2.0","id":1,"result":{}}'; done"#;

#[tokio::test]
async fn a_session_ends_with_a_message_that_is_cut_off() {
    let mut world = World::new();
    let (command, args) = ("sh".to_owned(), vec!["-c".to_owned(), SLOW.to_owned()]);
    let transport = McpTransport::Stdio { command, args, environment: vec![] };
    world.plan.mcp_servers = vec![server("slow", transport)];
    world.apply();
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} });
    let request = || Request::post("/mcp/slow").body(Full::from(begin.to_string())).unwrap();
    let session = send(&world.socket(), request()).await.headers()["mcp-session-id"].clone();
    let said = |what: &Value| {
        let request = Request::post("/mcp/slow").header("mcp-session-id", &session);
        world.ask(request.body(Full::from(what.to_string())).unwrap())
    };
    // More than a pipe holds.
    let text = "x".repeat(300 * 1024);
    let long = json!({ "jsonrpc": "2.0", "id": 1, "method": "long", "params": { "text": text } });
    let cut = tokio::time::timeout(std::time::Duration::from_secs(5), said(&long)).await;
    assert!(cut.is_err(), "the client hangs up while it is written: {cut:?}");
    let ping = said(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    let (status, words) = tokio::time::timeout(std::time::Duration::from_secs(60), ping).await.unwrap();
    assert!(matches!(status, StatusCode::BAD_GATEWAY | StatusCode::NOT_FOUND), "{status} {words}");
    let again = send(&world.socket(), request()).await;
    assert_eq!(again.status(), StatusCode::OK);
    assert_ne!(again.headers()["mcp-session-id"], session, "the client begins another one");
}
