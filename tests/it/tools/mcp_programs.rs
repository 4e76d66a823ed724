//! Programs of MCP servers run in their agents' sandboxes, and can read what the agents can. So can, indirectly, anyone
//! who chooses the programs or reads their output.

use serde_json::{Value, json};

use crate::{
    agents::revisions::history,
    harness::{Actor, Answer, TestApp},
    tools::{ARCHIVE_SERVER, ASSIGN_SERVER, CREATE_SERVER, EDIT_SERVER, UNARCHIVE_SERVER},
};

async fn creates(app: &TestApp, actor: &Actor, endpoint: Value) -> i64 {
    let mut input = endpoint;
    input["name"] = json!(app.name("tools"));
    let created = actor.gql(CREATE_SERVER, json!({ "o": app.org, "i": input })).await.data();
    created["createMcpServer"]["id"].as_i64().unwrap()
}

async fn edits(app: &TestApp, actor: &Actor, server: i64, input: Value) -> Answer {
    actor.gql(EDIT_SERVER, json!({ "o": app.org, "m": server, "i": input })).await
}

async fn assigns(app: &TestApp, actor: &Actor, server: i64, agents: &[i64]) -> Answer {
    actor.gql(ASSIGN_SERVER, json!({ "o": app.org, "i": server, "a": agents })).await
}

/// An agent that may read a credential.
async fn reader(app: &TestApp) -> i64 {
    let agent = app.agent().await;
    let fields = json!([{ "label": "token", "type": "secret", "value": "canary" }]);
    let input = json!({ "name": app.name("credential"), "kind": "bearer-token", "fields": fields });
    let create = "mutation($o: Id!, $i: CreateCredentialInput!) { createCredential(orgId: $o, input: $i, agentMayRead: true) { id } }";
    let made = app.owner.gql(create, json!({ "o": app.org, "i": input })).await.data();
    let assign = "mutation($o: Id!, $i: Id!, $a: [Id!]!) { setCredentialAgents(orgId: $o, id: $i, input: { agentIds: $a }) { id } }";
    let args = json!({ "o": app.org, "i": made["createCredential"]["id"], "a": [agent] });
    app.owner.gql(assign, args).await.data();
    agent
}

fn is_refused(answer: &Answer) {
    assert_eq!(answer.code(), "PERMISSION_DENIED", "{}", answer.text);
    assert!(answer.text.contains("Only a person can set it up or assign it"), "{}", answer.text);
}

#[tokio::test]
async fn no_token_chooses_a_program_beside_readable_secrets() {
    let app = TestApp::start().await;
    let (reader, other) = (reader(&app).await, app.agent().await);
    let token = app.token(&["mcp.view", "mcp.create", "mcp.edit", "mcp.delete"]).await;
    let program = || json!({ "transport": "STDIO", "command": "spy" });
    let server = creates(&app, &token, program()).await;
    assigns(&app, &token, server, &[other]).await.data();
    is_refused(&assigns(&app, &token, server, &[other, reader]).await);
    // One that is reached at an address runs elsewhere, until it becomes a program.
    let remote = creates(&app, &token, json!({ "transport": "HTTP", "url": "https://mcp.example/x" })).await;
    assigns(&app, &token, remote, &[reader]).await.data();
    is_refused(
        &edits(&app, &token, remote, json!({ "transport": "STDIO", "command": "spy", "url": null })).await,
    );

    // A person's assignments stay, and stay unchanged.
    assigns(&app, &app.operator, server, &[other, reader]).await.data();
    assigns(&app, &token, server, &[reader]).await.data();
    assigns(&app, &token, server, &[reader, other]).await.data();
    edits(&app, &token, server, json!({ "description": "Looks things up." })).await.data();
    for edit in
        [json!({ "command": "other" }), json!({ "args": ["--other"] }), json!({ "workspace": "READ" })]
    {
        is_refused(&edits(&app, &token, server, edit).await);
    }
    let this = json!({ "o": app.org, "m": server });
    token.gql(ARCHIVE_SERVER, this.clone()).await.data();
    is_refused(&token.gql(UNARCHIVE_SERVER, this.clone()).await);
    app.operator.gql(UNARCHIVE_SERVER, this).await.data();
    edits(&app, &app.operator, server, json!({ "command": "other" })).await.data();
}

#[tokio::test]
async fn no_token_reverts_an_agent_to_a_program() {
    let app = TestApp::start().await;
    let reader = reader(&app).await;
    let server = creates(&app, &app.owner, json!({ "transport": "STDIO", "command": "tools" })).await;
    assigns(&app, &app.owner, server, &[reader]).await.data();
    let with = history(&app, reader).await[0]["revision"].clone();
    assigns(&app, &app.owner, server, &[]).await.data();
    let all = ["agent.view", "agent.edit", "mcp.view", "mcp.edit", "credential.edit", "skill.edit"];
    let token = app.token(&all).await;
    let revert = "mutation($o: Id!, $a: Id!, $n: Int!) { revertAgent(orgId: $o, id: $a, revision: $n, reason: \"back\") { id } }";
    let args = json!({ "o": app.org, "a": reader, "n": with });
    is_refused(&token.gql(revert, args.clone()).await);
    app.owner.gql(revert, args).await.data();
}

#[tokio::test]
async fn standard_error_is_for_people_who_hold_the_secrets() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let server = creates(&app, &app.owner, json!({ "transport": "STDIO", "command": "tools" })).await;
    assigns(&app, &app.owner, server, &[agent]).await.data();
    let sql = "UPDATE mcp_server_agents SET state = 'FAILED', error = 'ended', stderr = 'yranac' WHERE agent_id = $1";
    app.execute(sql, vec![agent.into()]).await;
    let token =
        app.token(&["mcp.view", "mcp.edit", "agent.view", "credential.view", "credential.edit"]).await;
    let query = "query($o: Id!, $a: Id!, $s: Id!) { agent(orgId: $o, id: $a) { mcpServerStates { error stderr } } \
                 mcpServer(orgId: $o, id: $s) { states { error stderr } } }";
    for (actor, seen) in [(&token, Value::Null), (&app.viewer, Value::Null), (&app.owner, json!("yranac"))] {
        let shown = actor.gql(query, json!({ "o": app.org, "a": agent, "s": server })).await.data();
        for states in [&shown["agent"]["mcpServerStates"], &shown["mcpServer"]["states"]] {
            assert_eq!(states[0], json!({ "error": "ended", "stderr": seen }), "{shown}");
        }
    }
}
