//! Third-party GraphQL clients and audits, against the running service (`tests/peers/graphql`).

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::harness::{PATIENCE, TestApp, node};

async fn passes(script: &str, arguments: &[&str]) {
    let run = node("graphql", script).args(arguments).output();
    let output = timeout(Duration::from_mins(5), run).await.unwrap();
    let output = output.expect("node is installed");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&said));
}

#[tokio::test]
async fn the_graphql_over_http_audits_pass() {
    let app = TestApp::start().await;
    passes("audit.mjs", &[&format!("{}/graphql", app.base)]).await;
}

#[tokio::test]
async fn a_code_generator_reads_the_schema() {
    let app = TestApp::start().await;
    passes("introspect.mjs", &[&format!("{}/graphql", app.base)]).await;
}

#[tokio::test]
async fn the_client_of_graphql_ws_watches_agents() {
    watches("ws").await;
}

#[tokio::test]
async fn the_client_of_graphql_sse_watches_agents() {
    watches("sse").await;
}

async fn watches(transport: &str) {
    let (app, agent) = TestApp::with_agent().await;
    let (url, org) = (format!("{}/graphql", app.base), app.org.to_string());
    let mut client = node("graphql", "watch.mjs");
    client.args([transport, &url, app.viewer.bearer(), &org]);
    let mut peer = Peer::start(client);
    assert_eq!(peer.answer("query").await["data"]["agents"]["total"], 1);
    assert_eq!(peer.line().await, "ready");
    // `ready` comes before the subscription has reached the service, and existing records are no change.
    let path = format!("/v1/org/{}/agent/{agent}", app.org);
    let (mut seen, began) = (None, Instant::now());
    for n in 0.. {
        if began.elapsed() > PATIENCE {
            break;
        }
        app.operator.gql(
            "mutation($o: Id!, $a: Id!, $r: String) { updateAgent(orgId: $o, id: $a, input: {role: $r}) { id } }",
            serde_json::json!({"o": app.org, "a": agent, "r": format!("seen {n}")}),
        )
        .await
        .data();
        if let Ok(answer) = timeout(Duration::from_millis(200), peer.answer("next")).await {
            seen = Some(answer);
            break;
        }
    }
    let seen = seen.unwrap_or_else(|| panic!("{transport} heard nothing about {path}"));
    assert_eq!(seen["data"]["agentChanged"]["id"], agent, "{seen}");
    app.core.tasks.stopping.cancel();
    loop {
        let line = peer.line().await;
        if line.starts_with("complete") || line.starts_with("error") || line.starts_with("closed") {
            break;
        }
    }
}

struct Peer {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("node is installed");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, lines }
    }

    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        line.unwrap().expect("the peer still runs")
    }

    /// The next line, which must be an answer of this kind.
    async fn answer(&mut self, kind: &str) -> Value {
        let line = self.line().await;
        let json = line.strip_prefix(kind).unwrap_or_else(|| panic!("{line}"));
        serde_json::from_str(json).unwrap()
    }
}
