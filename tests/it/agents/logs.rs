//! Logs of agents: people see them live and later, without the agent's secrets, and only the host keeps them.

use std::{collections::BTreeMap, fs};

use serde_json::json;

use crate::{
    agents::running::House,
    harness::{Crew, Socket, found},
};

const TOKEN: &str = "canary-of-the-log-51";

/// Someone who looks at a log.
struct Viewer {
    socket: Socket,
    /// Source and text by position.
    seen: BTreeMap<i64, (String, String)>,
}

impl Viewer {
    async fn of(house: &House, crew: &Crew) -> Self {
        let watch = "subscription($o: Id!, $a: Id!) { agentLogs(orgId: $o, id: $a) { position lines { source text } } }";
        let mut socket = Socket::of(&house.actor).await;
        socket.subscribe("1", watch, json!({ "o": house.tenant.org, "a": crew.agent })).await;
        Self { socket, seen: BTreeMap::new() }
    }

    /// Waits for a line of this source that contains this text.
    async fn shows(&mut self, source: &str, text: &str) -> String {
        loop {
            let mut lines = self.seen.values();
            if let Some((_, line)) = lines.find(|(of, line)| of == source && line.contains(text)) {
                return line.clone();
            }
            let next = self.socket.next().await;
            let batch = &next["payload"]["data"]["agentLogs"];
            let position = batch["position"].as_i64().unwrap_or_else(|| panic!("{next}"));
            for (line, position) in batch["lines"].as_array().unwrap().iter().zip(position..) {
                let word = |field: &str| line[field].as_str().unwrap().to_owned();
                self.seen.insert(position, (word("source"), word("text")));
            }
        }
    }

    fn times(&self, text: &str) -> usize {
        self.seen.values().filter(|(_, line)| line.contains(text)).count()
    }
}

/// A credential that the gate adds to the agent's requests.
async fn gives_token(house: &House, crew: &Crew) {
    let fields = json!([{ "label": "token", "type": "secret", "value": TOKEN }]);
    let destinations = json!(["https://tickets.example.com"]);
    let input =
        json!({ "name": "tickets", "kind": "bearer-token", "fields": fields, "destinations": destinations });
    let create =
        "mutation($o: Id!, $i: CreateCredentialInput!) { createCredential(orgId: $o, input: $i) { id } }";
    let credential = house.gql(create, json!({ "i": input })).await["createCredential"]["id"].clone();
    let assign = "mutation($o: Id!, $c: Id!, $a: [Id!]!) { setCredentialAgents(orgId: $o, id: $c, input: { agentIds: $a }) { id } }";
    house.gql(assign, json!({ "c": credential, "a": [crew.agent] })).await;
    let allow = "mutation($o: Id!) { allowHost(orgId: $o, input: { host: \"tickets.example.com\", port: 443 }) { id } }";
    house.owner().gql(allow, json!({ "o": house.tenant.org })).await.data();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_an_agent_is_seen_live_and_later() {
    let house = House::open().await;
    let mut crew = house.crew("logging").await;
    gives_token(&house, &crew).await;
    let mut viewer = Viewer::of(&house, &crew).await;
    house.starts(&crew).await;
    viewer.shows("LAUNCH", "Launch 1 begins.").await;
    viewer.shows("LAUNCH", "The agent runs").await;

    let conversation = house.says(&crew, &format!("stderr It is late, and the token is {TOKEN}")).await;
    let line = viewer.shows("STDERR", "It is late").await;
    assert_eq!(line, "muster-agent: It is late, and the token is •••");
    assert!(viewer.seen.keys().copied().eq((1..).take(viewer.seen.len())), "{:#?}", viewer.seen);
    let mut later = Viewer::of(&house, &crew).await;
    assert_eq!(later.shows("STDERR", "It is late").await, line);
    assert_eq!(later.times("Launch 1 begins."), 1, "it begins with the end of the log");
    house.rests(conversation).await;

    // What is written while the host is away is there when it is back, once.
    let next = house.says(&crew, "stderr It is watched\nslowly 20 100\nstderr It is away").await;
    viewer.shows("STDERR", "It is watched").await;
    crew.machine.kill();
    let stderr = crew.machine.folder().join(format!("agents/{}/1/stderr", crew.agent));
    let is_written =
        async || fs::read_to_string(&stderr).is_ok_and(|text| text.contains("It is away")).then_some(());
    found(is_written).await.expect("the agent goes on");
    crew.machine.run();
    viewer.shows("STDERR", "It is away").await;
    house.rests(next).await;

    house.stops(&crew).await;
    viewer.shows("LAUNCH", "Launch 1 has ended").await;
    for text in ["It is late", "It is watched", "It is away", "Launch 1 has ended"] {
        assert_eq!(viewer.times(text), 1, "{text}: {:#?}", viewer.seen);
    }
    // A stopped agent's log is there too.
    let mut last = Viewer::of(&house, &crew).await;
    last.shows("LAUNCH", "Launch 1 has ended").await;
    assert_eq!(last.seen, viewer.seen);
    for entry in fs::read_dir(crew.machine.folder().join(format!("agents/{}/log", crew.agent))).unwrap() {
        let path = entry.unwrap().path();
        assert!(!fs::read_to_string(&path).unwrap().contains(TOKEN), "{}", path.display());
    }
}
