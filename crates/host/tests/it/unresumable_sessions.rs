//! An agent that can't reopen its sessions: missing MCP servers are reported.

use std::fs;

use muster_protocol::{
    Command, HostEvent,
    event::TurnOutcome,
    plan::{McpServer, McpTransport},
};
use serde_json::json;

use crate::support::{Host, Plane, State, program};

/// The reference agent, without support for reopening.
const KEPT: &str =
    r#""$0" agent | sed -u 's/"loadSession":true/"loadSession":false/; s/"resume":/"unknown":/'"#;

/// Reported missing access of the launch.
fn lacks(state: &State) -> Vec<String> {
    let all = state.events_of(7).filter_map(|what| match what {
        HostEvent::Lacks { what } => Some(what.clone()),
        _ => None,
    });
    all.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unresumable_sessions_report_missing_servers() {
    let (plane, folder) = (Plane::start().await, tempfile::tempdir().unwrap());
    let list = folder.path().join("programs.toml");
    let listed = json!({ "test/kept": { "command": "/bin/sh", "args": ["-c", KEPT, program()] } });
    fs::write(&list, toml::to_string(&listed).unwrap()).unwrap();
    let mut host = Host::start(&plane, &["--programs", list.to_str().unwrap()]);
    let server = |id, url: &str| McpServer {
        id,
        name: format!("server{id}"),
        transport: McpTransport::Http { url: url.to_owned(), headers: Vec::new() },
        reads_workspace: false,
        credential_ids: Vec::new(),
        tools: None,
    };
    let synced = async |servers: Vec<McpServer>| {
        let count = |state: &State| state.events_of(7).filter(|what| **what == HostEvent::Synced).count();
        let before = count(&plane.lock());
        plane.set(|state| state.plans.entry(7).or_default().mcp_servers = servers);
        plane.order(7, 1, Command::Sync);
        plane.wait("it is synced", |state| (count(state) > before).then_some(())).await;
    };
    plane.begin(7, 1, "test/kept");
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let first = server(5, "https://one.example/mcp");
    synced(vec![first.clone()]).await;
    assert_eq!(lacks(&plane.lock()), Vec::<String>::new(), "no session is open");
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    synced(vec![first.clone()]).await;
    assert_eq!(lacks(&plane.lock()), Vec::<String>::new(), "nothing was added");
    synced(vec![first.clone(), server(6, "https://two.example/mcp")]).await;
    plane.wait("what was added is missed", |state| (lacks(state).len() == 1).then_some(())).await;
    assert!(lacks(&plane.lock())[0].contains("don't get MCP servers that were added or edited"));
    host.kill();
    host.run();
    plane.wait("all of them are missed", |state| (lacks(state).len() == 2).then_some(())).await;
    assert!(lacks(&plane.lock())[1].contains("MCP servers ended with its host"));
    assert_eq!(plane.say(7, 1, 70, "Again").await.outcome, TurnOutcome::Done, "it goes on without");
}
