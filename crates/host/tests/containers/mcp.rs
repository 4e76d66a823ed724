//! MCP servers of an agent in a container: inside it without secrets, next to it with secrets.

use muster_protocol::{
    HostEvent,
    event::{McpReport, McpState},
    plan::{Judgement, McpServer, McpTransport, Variable},
};

use crate::{
    engine::{Contained, PROBE, plan},
    support::{Plane, State},
};

const KEY: &str = "canary-mcp-4b71";

/// A shell server with one tool that reports its location, environment and limits.
const SERVER: &str = r#"test -x /busybox && place=inside || place=beside
while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}";;
*'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$place, ${#SECRET} letters, $(ulimit -d) KiB\"}]}}";;
esac
done"#;

fn server(id: i64, name: &str, command: &str, environment: Vec<Variable>) -> McpServer {
    let args = vec!["-c".to_owned(), SERVER.to_owned()];
    let transport = McpTransport::Stdio { command: command.to_owned(), args, environment };
    McpServer {
        id,
        name: name.to_owned(),
        transport,
        reads_workspace: false,
        credential_ids: Vec::new(),
        tools: None,
    }
}

/// The latest report of a server.
fn report(state: &State, server_id: i64) -> Option<McpReport> {
    let reports = state.events_of(7).filter_map(|what| match what {
        HostEvent::McpServer(report) if report.server_id == server_id => Some(report.clone()),
        _ => None,
    });
    reports.last()
}

/// The output of a tool.
async fn said(plane: &Plane, server: &str) -> String {
    let turn = plane.turn(7, 1, 70, &format!("call {server}__look {{\"a\": 1}}"));
    plane.end_of(turn).await;
    let state = plane.lock();
    let of_turn = format!("turn_id: Some({turn})");
    let all = state.events.iter().map(|event| format!("{:?}", event.what));
    all.filter(|what| what.contains(&of_turn)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn mcp_servers_with_secrets_run_outside_the_container() {
    let plane = Plane::start().await;
    let host = Contained::start(&plane, &["--isolation", "bubblewrap"]);
    plan(&plane, 7, |plan| {
        let secret = vec![Variable { name: "SECRET".to_owned(), value: KEY.to_owned().into() }];
        plan.limits.memory_mb = Some(256);
        plan.mcp_servers = vec![
            server(5, "open", "sh", Vec::new()),
            server(6, "closed", "sh", secret.clone()),
            server(8, "absent", "/busybox", secret),
        ];
    });
    plane.set(|state| {
        for tool in ["closed.look", "open.look"] {
            state.judgements.insert(tool.to_owned(), Judgement::Allowed);
        }
    });
    plane.begin(7, 1, PROBE);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let inside = said(&plane, "open").await;
    assert!(inside.contains("inside, 0 letters"), "{inside}");
    let beside = said(&plane, "closed").await;
    assert!(beside.contains(&format!("beside, {} letters, 262144 KiB", KEY.len())), "{beside}");
    let works = |state: &State, id| {
        report(state, id).filter(|shown| shown.state == McpState::Running && shown.tools == ["look"])
    };
    for id in [5, 6] {
        plane.wait("it works", |state| works(state, id)).await;
    }
    // A program that exists only in the image does not run with a secret.
    let absent = plane.wait("it is shown", |state| report(state, 8)).await;
    assert_eq!(absent.state, McpState::Failed);
    assert!(absent.error.unwrap().contains("never in it"));
    let script = format!("cat /proc/[0-9]*/environ 2>/dev/null | grep -c {KEY}");
    let found = host.as_agent(7, 1, &["/busybox", "sh", "-c", &script]);
    assert_eq!(String::from_utf8_lossy(&found.stdout).trim(), "0", "the secret stays outside");
}
