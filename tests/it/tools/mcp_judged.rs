//! An agent and an MCP server that others wrote, both unchanged: OpenCode and server-everything, a program without secrets that the
//! agent's sandbox runs. Each call is judged, and what is switched off or archived is gone.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    agents::{
        opencode::{image, thinks_with},
        running::House,
    },
    harness::{Crew, found, model::Model},
};

const AGENT: &str = "tests/peers/node_modules/opencode-linux-x64/bin/opencode";
const FOLDER: &str = "tests/peers/node_modules";
const SERVER: &str = "tests/peers/node_modules/.bin/mcp-server-everything";

/// A host that lists both, and an agent that has the server as `Everything`, and asks before it uses a tool.
async fn equipped(house: &House, model: &Model, folder: &Path, options: &[&str]) -> (Crew, Value) {
    let path = |path: &str| std::path::absolute(path).unwrap();
    let list = folder.join("programs.toml");
    let listed = json!({
        "opencode": { "command": path(AGENT), "readable": [path(AGENT)] },
        "mcp": { (path(SERVER).to_str().unwrap()): { "readable": [path(FOLDER)] } },
    });
    fs::write(&list, toml::to_string(&listed).unwrap()).unwrap();
    let image = image(house, "opencode").await;
    let list = [("MUSTER_HOST_PROGRAMS", list.to_str().unwrap())];
    let mut crew = house.crew_with("tools", image, &list).await;
    crew.machine.kill();
    crew.machine.options(options);
    crew.machine.run();
    thinks_with(house, &crew, model).await;
    edits(house, &crew, json!({ "approvalAskThreshold": 40 })).await;
    let server = adds(house, &crew, "Everything", path(SERVER).to_str().unwrap(), &["stdio"]).await;
    (crew, server)
}

async fn edits(house: &House, crew: &Crew, input: Value) {
    let query = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";
    house.gql(query, json!({ "a": crew.agent, "i": input })).await;
}

/// Makes an MCP server that is a program, and assigns it.
async fn adds(house: &House, crew: &Crew, name: &str, command: &str, args: &[&str]) -> Value {
    let query =
        "mutation($o: Id!, $i: CreateMcpServerInput!) { createMcpServer(orgId: $o, input: $i) { id } }";
    let input = json!({ "name": name, "transport": "STDIO", "command": command, "args": args });
    let server = house.gql(query, json!({ "i": input })).await["createMcpServer"]["id"].clone();
    let query = "mutation($o: Id!, $s: Id!, $a: [Id!]!) { setMcpServerAgents(orgId: $o, id: $s, input: { agentIds: $a }) { id } }";
    house.gql(query, json!({ "s": server, "a": [crew.agent] })).await;
    server
}

/// Waits until a change has reached the host.
async fn is_synced(house: &House, crew: &Crew) {
    let query =
        "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { syncPending restartPending restartReason } }";
    let synced = async || {
        let agent = house.gql(query, json!({ "a": crew.agent })).await["agent"].clone();
        (agent["syncPending"] == false).then_some(agent)
    };
    let agent = found(synced).await.expect("it is synced");
    assert_eq!(agent["restartPending"], false, "{agent}");
}

/// Waits until people see that the server works and has tools, and that the one that is not there has failed.
async fn is_shown(house: &House, crew: &Crew, server: &Value) {
    let query = "query($o: Id!, $a: Id!, $s: Id!) { \
                 agent(orgId: $o, id: $a) { mcpServerStates { status error stderr tools mcpServer { name } } } \
                 mcpServer(orgId: $o, id: $s) { states { status tools agent { id } } } }";
    let shown = async || {
        // Standard errors are for people.
        let variables = json!({ "o": house.tenant.org, "a": crew.agent, "s": server });
        let shown = house.owner().gql(query, variables).await.data();
        let works = |state: &Value| {
            state["status"] == "RUNNING" && state["tools"].as_array().unwrap().contains(&json!("echo"))
        };
        let has_failed = |state: &Value| {
            state["mcpServer"]["name"] == "Broken"
                && state["status"] == "FAILED"
                && state["stderr"].as_str().unwrap_or_default().contains("/srv/no-such-program")
        };
        let at_agent = shown["agent"]["mcpServerStates"].as_array().unwrap();
        let at_server = shown["mcpServer"]["states"].as_array().unwrap();
        let is_it = at_agent.iter().any(works)
            && at_agent.iter().any(has_failed)
            && at_server.iter().any(|state| works(state) && state["agent"]["id"] == crew.agent);
        is_it.then_some(())
    };
    assert!(found(shown).await.is_some(), "{}", crew.machine.log());
}

/// Switches the tool `echo`, or sets its risk.
async fn sets(house: &House, server: &Value, input: Value) {
    let query = "mutation($o: Id!, $s: Id!, $i: McpServerToolInput!) { setMcpServerTool(orgId: $o, id: $s, tool: \"echo\", input: $i) { id } }";
    house.gql(query, json!({ "s": server, "i": input })).await;
}

/// Tests the connection, and waits for the result. The tools of the first session are accepted.
async fn is_tested(house: &House, crew: &Crew, server: &Value) {
    let query =
        "mutation($o: Id!, $s: Id!, $a: Id!) { testMcpServer(orgId: $o, id: $s, agentId: $a) { id } }";
    house.gql(query, json!({ "s": server, "a": crew.agent })).await;
    let query = "query($o: Id!, $s: Id!) { mcpServer(orgId: $o, id: $s) { \
                 states { testedAt testError protocol program } tools { name digest newDigest definition } } }";
    let tested = async || {
        let shown = house.gql(query, json!({ "s": server })).await["mcpServer"].clone();
        shown["states"][0]["testedAt"].is_string().then_some(shown)
    };
    let shown = found(tested).await.unwrap_or_else(|| panic!("{}", crew.machine.log()));
    let state = &shown["states"][0];
    assert!(state["testError"].is_null() && state["protocol"].is_string(), "{state}");
    let tools = shown["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap_or_else(|| panic!("{tools:?}"));
    assert!(echo["digest"].is_string() && echo["definition"]["inputSchema"].is_object(), "{echo}");
    assert!(tools.iter().all(|tool| tool["newDigest"].is_null()), "the test lists the same ones: {tools:?}");
}

fn echo(text: &str) -> String {
    format!("USE Everything_echo {}", json!({ "message": text }))
}

async fn is_judged_switched_off_and_archived(options: &[&str]) {
    let (house, model) = (House::open().await, Model::start().await);
    let folder = tempfile::tempdir().unwrap();
    let (crew, server) = equipped(&house, &model, folder.path(), options).await;
    adds(&house, &crew, "Broken", "/srv/no-such-program", &[]).await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, &echo("one")).await;
    let (approval, kind) = house.asked(&crew, conversation).await;
    assert_eq!(kind, "ACTION");
    let path = format!("/v1/org/{}/approval?only_pending=true&page=1&limit=50", house.tenant.org);
    let asked = house.actor.get(&path).await.expect(200).to_string();
    assert!(asked.contains("Everything.echo"), "{asked}");
    house.answers(approval, json!({ "options": ["approve"] })).await;
    house.hears(&crew, conversation, "Echo: one").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    // A call that needs no approval leaves a line in the audit log.
    edits(&house, &crew, json!({ "approvalAskThreshold": 60 })).await;
    house.adds(conversation, &echo("unasked")).await;
    house.hears(&crew, conversation, "Echo: unasked").await;
    house.rests(conversation).await;
    let audit = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 200) { data { operation changes } } }";
    let judged = async || {
        let audit = house.owner().gql(audit, json!({ "o": house.tenant.org })).await.data();
        let mut lines = audit["auditLog"]["data"].as_array().unwrap().clone().into_iter();
        lines.find(|line| line["operation"] == "judgeAction" && line.to_string().contains("Everything.echo"))
    };
    assert!(found(judged).await.is_some(), "{}", crew.machine.log());
    edits(&house, &crew, json!({ "approvalAskThreshold": 40 })).await;
    is_shown(&house, &crew, &server).await;
    is_tested(&house, &crew, &server).await;
    sets(&house, &server, json!({ "enabled": false, "risk": null })).await;
    is_synced(&house, &crew).await;
    house.adds(conversation, &echo("off")).await;
    house.rests(conversation).await;
    sets(&house, &server, json!({ "enabled": true })).await;
    is_synced(&house, &crew).await;

    edits(&house, &crew, json!({ "disabledToolGroups": ["everything"] })).await;
    is_synced(&house, &crew).await;
    house.adds(conversation, &echo("two")).await;
    house.rests(conversation).await;
    edits(&house, &crew, json!({ "disabledToolGroups": [] })).await;
    is_synced(&house, &crew).await;
    house.adds(conversation, &echo("three")).await;
    let (approval, _) = house.asked(&crew, conversation).await;
    house.answers(approval, json!({ "options": ["approve"] })).await;
    house.hears(&crew, conversation, "Echo: three").await;
    house.rests(conversation).await;
    let archive = "mutation($o: Id!, $s: Id!) { archiveMcpServer(orgId: $o, id: $s) { id } }";
    house.gql(archive, json!({ "s": server })).await;
    is_synced(&house, &crew).await;
    house.adds(conversation, &echo("four")).await;
    house.rests(conversation).await;
    let thread = format!("{:?}", house.thread(&crew, conversation).await);
    for text in ["Echo: off", "Echo: two", "Echo: four"] {
        assert!(!thread.contains(text), "{text}: {thread}");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_others_is_judged_and_switched_off() {
    is_judged_switched_off_and_archived(&["--isolation", "none"]).await;
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs bubblewrap"]
async fn bwrap_a_program_of_others_is_judged_and_switched_off() {
    is_judged_switched_off_and_archived(&["--isolation", "bubblewrap"]).await;
}
