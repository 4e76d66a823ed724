//! Other agents that others wrote, unchanged, as agents on a host. OpenCode has a file of its own.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    agents::running::House,
    harness::{Address, ChildProcess, Crew, found, until},
};

/// A host that lists the program, and an agent of the profile.
async fn hired(house: &House, folder: &Path, profile: &str, listed: Value) -> Crew {
    let list = folder.join("programs.toml");
    fs::write(&list, toml::to_string(&json!({ profile: listed })).unwrap()).unwrap();
    let image = house.image(json!({ "name": profile, "reference": profile, "profile": profile })).await;
    house.crew_with(profile, image, &[("MUSTER_HOST_PROGRAMS", list.to_str().unwrap())]).await
}

/// Cline does nothing until a person has signed it in.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_not_signed_in_has_people_asked_for_it() {
    let house = House::open().await;
    let folder = tempfile::tempdir().unwrap();
    let installed = std::path::absolute("tests/peers/node_modules").unwrap();
    let listed = json!({ "command": installed.join(".bin/cline"), "readable": [installed] });
    let crew = hired(&house, folder.path(), "cline", listed).await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "Hello there").await;
    let path = format!("/v1/org/{}/approval?only_pending=true&page=1&limit=50", house.tenant.org);
    let mut asked = Value::Null;
    found(async || {
        asked = house.actor.get(&path).await.expect(200);
        (asked["data"] != json!([])).then_some(())
    })
    .await;
    let kinds: Vec<&Value> = asked["data"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["AUTH_REQUIRED"], "{:#?}\n{}", house.turns(conversation).await, crew.machine.log());
    let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { statusReason authFailedAt } }";
    let agent = house.gql(query, json!({ "a": crew.agent })).await["agent"].clone();
    assert_eq!(agent["statusReason"], "AUTH_REQUIRED");
    assert!(agent["authFailedAt"].is_string());
}

/// An MCP server that others wrote, over HTTP. It listens until it is dropped.
pub struct Everything {
    pub url: String,
    _server: ChildProcess,
    _address: Address,
}

impl Everything {
    /// Listens once this returns: an agent asks for its tools as soon as it runs.
    pub async fn start() -> Self {
        let address = Address::free();
        let port = address.port();
        let mut command = Command::new("tests/peers/node_modules/.bin/mcp-server-everything");
        command.arg("streamableHttp").env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = ChildProcess::spawn(&mut command).unwrap();
        let this = Self { url: format!("http://127.0.0.1:{port}/mcp"), _server: server, _address: address };
        until("it listens", async || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        this
    }
}

/// fast-agent needs Python 3.12, and is installed by `tests/install` where there is one: `tests/run` runs this where it is.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs fast-agent, which needs Python 3.12"]
async fn python_fast_agent_answers_calls_tools_and_resumes() {
    let house = House::open().await;
    let folder = tempfile::tempdir().unwrap();
    let installed = fs::canonicalize("target/fast-agent").unwrap();
    let python = fs::canonicalize(installed.join("bin/python3")).unwrap();
    let python = python.parent().and_then(Path::parent).unwrap();
    let listed = json!({ "command": installed.join("bin/fast-agent-acp"), "readable": [installed, python] });
    let crew = hired(&house, folder.path(), "fast-agent", listed).await;
    let server =
        "mutation($o: Id!, $i: CreateMcpServerInput!) { createMcpServer(orgId: $o, input: $i) { id } }";
    let everything = Everything::start().await;
    let input = json!({ "name": "everything", "transport": "HTTP", "url": everything.url });
    let server = house.gql(server, json!({ "i": input })).await["createMcpServer"]["id"].clone();
    let assign = "mutation($o: Id!, $s: Id!, $a: [Id!]!) { setMcpServerAgents(orgId: $o, id: $s, input: { agentIds: $a }) { id } }";
    house.gql(assign, json!({ "s": server, "a": [crew.agent] })).await;
    house.stays_down(crew.agent).await;
    house.starts(&crew).await;

    let conversation = house.says(&crew, "Hello there").await;
    house.hears(&crew, conversation, "Hello there").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);

    house.adds(conversation, r#"***CALL_TOOL everything__echo {"message": "out of the tool"}"#).await;
    let (approval, kind) = house.asked(&crew, conversation).await;
    assert_eq!(kind, "ACTION");
    house.answers(approval, json!({ "options": ["approve"] })).await;
    house.hears(&crew, conversation, "Echo: out of the tool").await;
    assert_eq!(house.rests(conversation).await, ["DONE", "DONE"]);

    crew.machine.kill_one("shim");
    crew.until(&house.actor, house.tenant.org, "ERROR").await;
    house.starts(&crew).await;
    house.adds(conversation, "Still there?").await;
    house.hears(&crew, conversation, "Still there?").await;
    house.rests(conversation).await;
    let home = crew.machine.folder().join(format!("agents/{}/home", crew.agent));
    let sessions = fs::read_dir(home.join(".fast-agent/sessions")).unwrap();
    let histories = sessions.map(|session| session.unwrap().path().join("history_agent.json"));
    let histories: Vec<String> = histories.filter_map(|file| fs::read_to_string(file).ok()).collect();
    assert_eq!(histories.len(), 1, "it has one session");
    assert!(histories[0].contains("Hello there") && histories[0].contains("Still there?"), "and resumes it");
}
