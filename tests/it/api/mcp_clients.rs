//! `/mcp` as seen by the protocol's official client libraries (`tests/peers/mcp`).

use std::{path::Path, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::harness::{Actor, TestApp, node};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The library for Python.
fn python() -> Command {
    let program = Path::new(ROOT).join("target/mcp/bin/python3");
    assert!(
        program.exists(),
        "the peers are not installed: python3 -m venv target/mcp && target/mcp/bin/pip install -r \
         tests/peers/mcp/requirements.txt"
    );
    let mut command = Command::new(program);
    command.arg(Path::new(ROOT).join("tests/peers/mcp/tools.py"));
    command
}

/// The output of a client: the server, the tools, and the result of each call.
async fn told(mut client: Command, app: &TestApp, actor: &Actor, calls: &[(&str, &str)]) -> Vec<Value> {
    client.arg(format!("{}/mcp", app.base)).arg(actor.bearer());
    for (name, arguments) in calls {
        client.arg(name).arg(arguments);
    }
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
        client.env_remove(name);
    }
    let run = client.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(Duration::from_mins(4), run).await.unwrap().expect("the client is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The code of a refused call.
#[track_caller]
fn code(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result:#}");
    let problem: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    problem["code"].as_str().unwrap().to_owned()
}

async fn lists_and_calls_tools(client: impl Fn() -> Command) {
    let (app, agent) = TestApp::with_agent().await;
    let (start, create) = (json!({ "id": agent }).to_string(), json!({ "name": "from a tool" }).to_string());
    let calls = [
        ("list_agents", r#"{"page":1,"limit":10}"#),
        ("create_server", &create),
        ("create_server", &create),
        ("start_agent", &start),
        ("get_organization", "{}"),
        ("list_channels", "{}"),
        ("list_approvals", r#"{"page":1,"limit":10,"only_pending":false}"#),
        ("no_such_tool", "{}"),
    ];
    let said = told(client(), &app, &app.admin, &calls).await;
    assert_eq!(said.len(), 10, "{said:#?}");
    assert_eq!(said[0]["server"]["name"], "muster");
    assert_eq!(said[0]["session"], Value::Null);
    assert!(said[1]["tools"].as_array().unwrap().len() > 20);
    assert_eq!(said[2]["structuredContent"]["total"], 1);
    assert!(said[3]["structuredContent"]["provisioning_token"].is_string());
    assert_eq!(code(&said[4]), "NAME_TAKEN");
    assert_eq!(said[5]["structuredContent"]["status"], "SPAWNING");
    assert_eq!(said[6]["structuredContent"]["id"], app.org);
    assert_eq!(said[7]["structuredContent"]["data"], json!([]));
    assert_eq!(said[8]["structuredContent"]["total"], 0);
    assert_eq!(said[9]["code"], -32602);
    // A stranger's client sees their own organization and nothing of this one.
    let foreign = json!({ "org_id": app.org, "page": 1, "limit": 10 }).to_string();
    let said = told(client(), &app, &app.stranger, &[("list_agents", &foreign)]).await;
    assert_eq!(code(&said[2]), "NOT_A_MEMBER");
}

#[tokio::test]
async fn the_official_client_for_javascript_lists_and_calls_tools() {
    lists_and_calls_tools(|| node("mcp", "tools.mjs")).await;
}

#[tokio::test]
async fn the_official_client_for_python_lists_and_calls_tools() {
    lists_and_calls_tools(python).await;
}
