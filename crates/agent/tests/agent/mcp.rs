//! Tests with the reference MCP server (`tests/peers/everything`).

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::client::{Agent, peers};

fn stdio(name: &str, args: &Value) -> Value {
    let variable = json!({ "name": "GIVEN", "value": "yes" });
    json!({ "name": name, "command": "/usr/bin/env", "args": args, "env": [variable] })
}

fn everything() -> Value {
    stdio("everything", &json!(["node", peers("node_modules/.bin/mcp-server-everything"), "stdio"]))
}

fn person() -> Value {
    stdio("muster", &json!(["node", peers("everything").join("person.mjs")]))
}

/// Starts the server over HTTP. Returns its address.
async fn http() -> (Child, String) {
    let mut command = Command::new("node");
    command.arg(peers("everything").join("http.mjs")).stdout(Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn().expect("node is installed");
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let port = line.strip_prefix("listening ").expect("a port");
    (server, format!("http://127.0.0.1:{port}/mcp"))
}

fn over_http(url: &str, token: &str) -> Value {
    let header = json!({ "name": "Authorization", "value": format!("Bearer {token}") });
    json!({ "type": "http", "name": "remote", "url": url, "headers": [header] })
}

#[tokio::test]
async fn tools_are_called_over_stdio_and_http() {
    let (_server, url) = http().await;
    let mut agent = Agent::start_with(&[("OPENAI_API_KEY", "secret")], json!({})).await;
    let session = agent.session_with(json!([everything(), over_http(&url, "peer")])).await;
    let tools = agent.prompt(&session, "tools").await.said();
    assert!(tools.contains("- echo (everything): ") && tools.contains("- echo (remote): "), "{tools}");
    for server in ["everything", "remote"] {
        let turn = agent.prompt(&session, &format!(r#"call {server}__echo {{"message": "hi"}}"#)).await;
        let call = (format!("{server}: echo"), "completed".to_owned(), "Echo: hi".to_owned());
        assert_eq!(turn.calls(), [call]);
        assert_eq!(turn.said(), format!("{server}__echo answered: Echo: hi"));
        let announced = &turn.updates[0];
        assert_eq!(announced["rawInput"], json!({ "message": "hi" }));
        assert_eq!(announced["name"], format!("{server}__echo"));
    }
    let failed = agent.prompt(&session, "call everything__echo").await;
    assert_eq!(failed.calls()[0].1, "failed", "{:?}", failed.calls());
    // The server gets its own variables, not the agent's.
    let environment = agent.prompt(&session, "call everything__get-env").await.said();
    assert!(environment.contains("GIVEN") && !environment.contains("secret"), "{environment}");
}

#[tokio::test]
async fn an_unreachable_server_does_not_affect_the_others() {
    let (_server, url) = http().await;
    let missing = json!({ "name": "missing", "command": "/no/such/program", "args": [], "env": [] });
    let sse = json!({ "type": "sse", "name": "old", "url": url, "headers": [] });
    let mut agent = Agent::start().await;
    let session = agent.session_with(json!([missing, sse, over_http(&url, "wrong"), person()])).await;
    let tools = agent.prompt(&session, "tools").await.said();
    for part in [
        "MCP server missing: /no/such/program can't be started",
        "MCP server old: ",
        "MCP server remote: ",
        "- ask_person (muster)",
    ] {
        assert!(tools.contains(part), "{part}: {tools}");
    }
    assert!(!tools.contains("wrong"), "a header is a secret: {tools}");
    let turn = agent.prompt(&session, "call no_such_tool {}").await;
    assert!(turn.said().starts_with("Unknown tool: no_such_tool. MCP server missing"), "{}", turn.said());
}

#[tokio::test]
async fn musters_own_server_asks_people_and_sends_files() {
    let mut agent = Agent::start().await;
    let session = agent.session_with(json!([person()])).await;
    let asked = agent.prompt(&session, "ask Which? | this | that").await;
    assert_eq!((asked.said().as_str(), asked.calls()[0].1.as_str()), ("The answer is: this", "completed"));
    assert_eq!(asked.updates[0]["rawInput"], json!({ "question": "Which?", "options": ["this", "that"] }));
    let sent = agent.prompt(&session, "file report.txt All is well").await;
    assert_eq!(sent.calls()[0].2, r#"{"filename":"report.txt","content":"All is well"}"#);
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_tool_call() {
    let mut agent = Agent::start().await;
    let session = agent.session_with(json!([person()])).await;
    let mut errors = BufReader::new(agent.process.stderr.take().unwrap()).lines();
    let id = agent.say(&session, "call wait").await;
    assert_eq!(errors.next_line().await.unwrap().unwrap(), "waiting");
    agent.cancel(&session).await;
    let turn = agent.end(&session, id).await;
    assert_eq!((turn.reason(), turn.calls()[0].1.as_str()), ("cancelled", "failed"));
    assert_eq!(errors.next_line().await.unwrap().unwrap(), "cancelled");
}

#[tokio::test]
async fn a_closed_session_ends_its_servers() {
    let mut agent = Agent::start().await;
    let session = agent.session_with(json!([person()])).await;
    agent.prompt(&session, "tools").await;
    let children = format!("/proc/{0}/task/{0}/children", agent.process.id().unwrap());
    let running = || std::fs::read_to_string(&children).unwrap();
    assert!(!running().trim().is_empty());
    agent.call("session/close", json!({ "sessionId": session })).await;
    for _ in 0..500 {
        if running().trim().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the server still runs");
}
