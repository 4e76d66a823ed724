//! Which hosts may hold secrets: those that a person who may edit credentials vouches for. Any other host gets no plan
//! that contains a secret.

use std::collections::BTreeSet;

use futures::FutureExt;
use muster::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
    },
    core::{News, access::Caller},
};
use serde_json::{Value, json};

use crate::{
    agents::{
        launched::made,
        revisions::{assign, let_agents_read},
    },
    gateway::{server_of, started},
    harness::{
        Actor, Answer, Host as Launch, TestApp,
        gateway::{Host, Line, host_token, join, machine},
    },
};

const RENEW: &str =
    "mutation($o: Id!, $s: Id!) { regenerateProvisioningToken(orgId: $o, id: $s) { provisioningToken } }";
const CONFIRM: &str = "mutation($o: Id!, $s: Id!, $j: Int!) { confirmHost(orgId: $o, id: $s, join: $j) { host { confirmedAt } } }";
const MOVE: &str =
    "mutation($o: Id!, $a: Id!, $s: Id!) { updateAgent(orgId: $o, id: $a, input: { serverId: $s }) { id } }";

/// A secret that only a confirmed host may read.
const CANARY: &str = "canary-of-the-confirmed";

async fn renewed(app: &TestApp, actor: &Actor, server: i64) -> String {
    let renewed = actor.gql(RENEW, json!({ "o": app.org, "s": server })).await.data();
    renewed["regenerateProvisioningToken"]["provisioningToken"].as_str().unwrap().to_owned()
}

/// The host that joins with a provisioning token of this actor's.
pub async fn joined_by(app: &TestApp, actor: &Actor, server: i64) -> Host {
    let (provisioning, token) = (renewed(app, actor, server).await, host_token());
    let machine = machine(&app.name("machine").replace(' ', "-"));
    join(&app.anonymous, &provisioning, &token, &machine).await.expect(200);
    Host { base: app.base.clone(), server, token, machine, journal: [0, 0] }
}

async fn shown(app: &TestApp, actor: &Actor, server: i64) -> Value {
    let query = "query($o: Id!, $s: Id!) { server(orgId: $o, id: $s) { host { join confirmedAt joinedAt joinedFrom machineId \
                 tokenMadeByKind tokenMadeById tokenMadeByName } } }";
    actor.gql(query, json!({ "o": app.org, "s": server })).await.data()["server"]["host"].clone()
}

async fn confirm(app: &TestApp, actor: &Actor, server: i64) -> Answer {
    let join = shown(app, &app.viewer, server).await["join"].clone();
    actor.gql(CONFIRM, json!({ "o": app.org, "s": server, "j": join })).await
}

/// Gives the agent a credential of one field. Returns the credential.
async fn given(app: &TestApp, agent: i64, kind: &str, may_read: bool) -> i64 {
    let label = if kind == "ssh-key" { "private key" } else { "token" };
    let credential = json!({
        "name": app.name("credential"), "kind": kind, "destinations": ["https://api.example"],
        "fields": [{ "label": label, "type": "secret", "value": CANARY }],
    });
    let credential = made(app, "createCredential", credential).await;
    if may_read {
        let_agents_read(app, credential).await;
    }
    assign(app, "Credential", credential, &[agent]).await;
    credential
}

/// Gives the agent an MCP server with this credential.
async fn given_tools(app: &TestApp, agent: i64, credential: i64, transport: &str) {
    let name: String = app.one("SELECT name FROM credentials WHERE id = $1", vec![credential.into()]).await;
    let mut input = json!({ "name": app.name("tools"), "transport": transport, "auth": [name] });
    match transport {
        "STDIO" => input["command"] = json!("tools"),
        _ => input["url"] = json!("https://api.example/mcp"),
    }
    let server = made(app, "createMcpServer", input).await;
    assign(app, "McpServer", server, &[agent]).await;
}

/// Status and reason of an agent.
async fn why(app: &TestApp, agent: i64) -> (String, Option<String>) {
    let of = |column: &str| format!("SELECT {column} FROM agents WHERE id = $1");
    let status = app.one(&of("status"), vec![agent.into()]).await;
    (status, app.one(&of("status_reason"), vec![agent.into()]).await)
}

fn waits() -> (String, Option<String>) {
    ("ERROR".to_owned(), Some("HOST_NOT_CONFIRMED".to_owned()))
}

/// The answer to a question of the host.
async fn told(line: &mut Line, (agent, generation): (i64, i64), wanted: Value) -> Value {
    line.send(
        json!({ "frame": "ASK", "id": 1, "agent_id": agent, "generation": generation, "wanted": wanted }),
    )
    .await;
    line.wait_for("TOLD").await["given"].clone()
}

fn launch() -> Value {
    json!({ "kind": "LAUNCH" })
}

/// An agent that runs on a confirmed host, and has each kind of secret.
async fn rich_agent(app: &TestApp) -> (i64, i64) {
    let agent = app.agent().await;
    app.sets_agent(agent, json!({ "modelCredential": CANARY, "modelCredentialProvider": "anthropic" })).await;
    let credential = given(app, agent, "bearer-token", true).await;
    given_tools(app, agent, credential, "STDIO").await;
    let mut line = app.host_of(agent).await.connect().await;
    let generation = app.start_agent(agent).await;
    line.reports((agent, generation), started()).await;
    assert_eq!(why(app, agent).await.0, "RUNNING");
    (agent, generation)
}

#[tokio::test]
async fn a_token_that_edits_servers_reads_no_secret() {
    let app = TestApp::start().await;
    let (agent, generation) = rich_agent(&app).await;
    let server = server_of(&app, agent).await;
    let token = app.token(&["server.view", "server.edit"]).await;
    let host = joined_by(&app, &token, server).await;
    assert_eq!(why(&app, agent).await, waits(), "at once");

    let mut line = host.connect().await;
    assert_eq!(line.welcome["agents"], json!([]), "{}", line.welcome);
    let lease = json!({ "kind": "LEASE", "model": "m", "question": 1, "finished": [] });
    for wanted in [launch(), json!({ "kind": "TURN", "turn_id": 1 }), lease] {
        let given = told(&mut line, (agent, generation), wanted).await;
        assert_eq!(given["kind"], "REFUSED", "{given}");
        assert!(!given.to_string().contains(CANARY));
    }
    // Starting the agent, claiming that it runs, or asking again doesn't help either.
    let all = app.token(&["server.view", "server.edit", "agent.view", "agent.edit"]).await;
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    assert_eq!(all.post(&path, Value::Null).await.expect(200)["status"], "ERROR");
    assert_eq!(why(&app, agent).await, waits());
    app.execute("UPDATE agents SET status = 'SPAWNING' WHERE id = $1", vec![agent.into()]).await;
    line.reports((agent, generation), started()).await;
    assert_eq!(why(&app, agent).await, waits(), "it did not run with a plan that the host never had");
    app.execute("UPDATE agents SET status = 'RUNNING' WHERE id = $1", vec![agent.into()]).await;
    let given = told(&mut line, (agent, generation), launch()).await;
    assert!(given["reason"].as_str().unwrap().contains("not confirmed"), "{given}");
    assert_eq!(why(&app, agent).await, waits());
    assert_eq!(confirm(&app, &token, server).await.code(), "PERMISSION_DENIED");
    let ended: i64 = app
        .one(
            "SELECT COUNT(*) FROM agent_launches WHERE agent_id = $1 AND ended_at IS NULL",
            vec![agent.into()],
        )
        .await;
    assert_eq!(ended, 0, "its launch is over");
}

#[tokio::test]
async fn each_place_of_a_secret_in_a_plan_is_refused() {
    let app = TestApp::start().await;
    let allow = "mutation($o: Id!) { allowHost(orgId: $o, input: { host: \"api.example\" }) { id } }";
    app.owner.gql(allow, json!({ "o": app.org })).await.data();
    let token = app.token(&["server.view", "server.edit"]).await;
    let mut seen = BTreeSet::new();
    for case in ["own key", "inherited key", "variable", "file", "header", "STDIO", "HTTP", "SSE", "nothing"]
    {
        let agent = app.agent().await;
        app.sets_agent(
            agent,
            json!({ "credentialChoice": if case == "inherited key" { "INHERIT" } else { "NONE" } }),
        )
        .await;
        match case {
            "own key" => {
                let own = json!({ "modelCredential": CANARY, "modelCredentialProvider": "openai", "credentialChoice": "OWN" });
                app.sets_agent(agent, own).await;
            }
            "inherited key" => {
                let all =
                    json!({ "name": "all", "provider": "anthropic", "secret": CANARY, "isDefault": true });
                made(&app, "createModelCredential", all).await;
            }
            "nothing" => {}
            "variable" | "file" | "header" => {
                let kinds = [("variable", "api-key"), ("file", "ssh-key"), ("header", "bearer-token")];
                let (_, kind) = kinds.into_iter().find(|(of, _)| *of == case).unwrap();
                given(&app, agent, kind, case != "header").await;
            }
            transport => {
                let is_program = transport == "STDIO";
                let credential = given(&app, agent, "bearer-token", is_program).await;
                given_tools(&app, agent, credential, transport).await;
            }
        }
        // Without a host on the server nothing is withheld: this is what a confirmed one gets.
        let own = Launch { app: &app, agent, generation: 0 }.launched().await;
        let plan = serde_json::to_value(own.launch_plan().await.unwrap()).unwrap();
        places(&plan, "", &mut seen);
        let host = joined_by(&app, &token, server_of(&app, agent).await).await;
        let mut line = host.connect().await;
        if case == "nothing" {
            let given = told(&mut line, (agent, own.generation), launch()).await;
            assert_eq!(given["kind"], "LAUNCH", "{given}");
            assert_eq!(why(&app, agent).await.0, "SPAWNING");
            continue;
        }
        assert_eq!(why(&app, agent).await, waits(), "{case}: at once");
        let started = app.launch_of(agent).await.0;
        app.execute("UPDATE agents SET status = 'SPAWNING' WHERE id = $1", vec![agent.into()]).await;
        let given = told(&mut line, (agent, started), launch()).await;
        assert_eq!(given["kind"], "REFUSED", "{case}: {given}");
        assert!(!given.to_string().contains(CANARY), "{case}: {given}");
        assert_eq!(why(&app, agent).await, waits(), "{case}: when it asks");
    }
    let all = [
        ".environment[].value",
        ".files[].content",
        ".injected[].headers[].value",
        ".mcp_servers[].transport.HTTP.headers[].value",
        ".mcp_servers[].transport.SSE.headers[].value",
        ".mcp_servers[].transport.STDIO.environment[].value",
        ".model_access.key",
    ];
    assert_eq!(
        seen.iter().map(String::as_str).collect::<Vec<_>>(),
        all,
        "as the law in plans/withheld.rs lists them"
    );
}

/// Where the canary is.
fn places(value: &Value, at: &str, seen: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.contains(CANARY) => {
            seen.insert(at.to_owned());
        }
        Value::Array(items) => items.iter().for_each(|item| places(item, &format!("{at}[]"), seen)),
        Value::Object(fields) => {
            let kind = value["kind"].as_str().map(|kind| format!("{kind}.")).unwrap_or_default();
            fields.iter().for_each(|(name, value)| places(value, &format!("{at}.{kind}{name}"), seen));
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_secret_that_comes_later_stops_the_agent() {
    let (app, agent) = TestApp::with_agent().await;
    let server = server_of(&app, agent).await;
    let token = app.token(&["server.view", "server.edit"]).await;
    let mut line = joined_by(&app, &token, server).await.connect().await;
    let generation = app.start_agent(agent).await;
    assert_eq!(told(&mut line, (agent, generation), launch()).await["kind"], "LAUNCH");
    line.reports((agent, generation), started()).await;
    assert_eq!(why(&app, agent).await.0, "RUNNING", "it needs no secret");

    given(&app, agent, "api-key", true).await;
    let given = told(&mut line, (agent, generation), launch()).await;
    assert_eq!(given["kind"], "REFUSED", "{given}");
    assert_eq!(why(&app, agent).await, waits());
    let kinds = "SELECT kind FROM commands WHERE kind = 'STOP'";
    assert_eq!(app.column::<String>(kinds).await, ["STOP"], "an honest host ends what it runs");
}

#[tokio::test]
async fn confirming_starts_the_agents_that_waited_and_no_others() {
    let (app, agent) = TestApp::with_agent().await;
    let server = server_of(&app, agent).await;
    given(&app, agent, "api-key", true).await;
    let failed = app.agent().await;
    app.sets_agent(failed, json!({ "serverId": server })).await;
    let sql = "UPDATE agents SET status = 'ERROR', status_reason = 'EXITED' WHERE id = $1";
    app.execute(sql, vec![failed.into()]).await;
    let token = app.token(&["server.view", "server.edit"]).await;
    let mut host = joined_by(&app, &token, server).await;
    let mut line = host.connect().await;
    app.operator.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await.expect(200);
    assert_eq!(why(&app, agent).await, waits());

    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    let confirmed = confirm(&app, &app.admin, server).await.data();
    assert!(confirmed["confirmHost"]["host"]["confirmedAt"].is_string(), "{confirmed}");
    let mut heard = Vec::new();
    while let Some(Some((News::Changed(event), _))) = news.next().now_or_never() {
        heard.push((event.kind, event.op));
    }
    assert!(heard.contains(&(RecordKind::Server, ChangeOp::Updated)), "{heard:?}");
    let (generation, status) = app.launch_of(agent).await;
    assert_eq!(status, "SPAWNING");
    assert_eq!(why(&app, failed).await.1.as_deref(), Some("EXITED"));
    let command = loop {
        let frame = line.wait_for("COMMAND").await;
        if frame["command"]["kind"] == "LAUNCH" {
            break frame;
        }
    };
    assert_eq!((&command["agent_id"], &command["generation"]), (&json!(agent), &json!(generation)));
    let given = told(&mut line, (agent, generation), launch()).await;
    assert!(given.to_string().contains(CANARY), "{given}");
    let lines: Vec<String> = app
        .column("SELECT actor_name || ' ' || operation FROM audit_lines WHERE operation IN ('confirmHost', 'startAgain') ORDER BY id")
        .await;
    assert_eq!(lines, ["admin confirmHost", "admin startAgain"]);

    // The host stays confirmed when it reconnects; another host is not confirmed.
    drop(line);
    host.journal = [command["seq"].as_i64().unwrap(), 0];
    drop(host.connect().await);
    assert!(shown(&app, &app.viewer, server).await["confirmedAt"].is_string());
    joined_by(&app, &token, server).await;
    assert_eq!(shown(&app, &app.viewer, server).await["confirmedAt"], Value::Null);
    assert_eq!(why(&app, agent).await, waits());
}

#[tokio::test]
async fn confirming_starts_no_agent_that_a_person_paused_or_stopped() {
    let app = TestApp::start().await;
    let (agent, generation) = rich_agent(&app).await;
    let server = server_of(&app, agent).await;
    let waiting = app.agent().await;
    app.sets_agent(waiting, json!({ "serverId": server })).await;
    given(&app, waiting, "api-key", true).await;
    let [paused, waiting] = [(agent, generation), (waiting, 0)].map(|(agent, generation)| Launch {
        app: &app,
        agent,
        generation,
    });
    paused.act("pause").await;
    let token = app.token(&["server.view", "server.edit"]).await;
    joined_by(&app, &token, server).await;
    let stopped = ("STOPPED".to_owned(), None);
    assert_eq!(why(&app, paused.agent).await, stopped, "its launch is over");
    waiting.act("start").await;
    assert_eq!(why(&app, waiting.agent).await, waits());
    waiting.act("stop").await;
    assert_eq!(why(&app, waiting.agent).await, stopped);

    confirm(&app, &app.admin, server).await.data();
    for agent in [paused, waiting] {
        assert_eq!(why(&app, agent.agent).await, stopped);
        assert_eq!(app.launch_of(agent.agent).await.0, agent.generation);
        agent.act("start").await;
        assert_eq!(why(&app, agent.agent).await.0, "SPAWNING", "a person starts it");
    }
}

#[tokio::test]
async fn agents_started_together_wait_for_the_confirmation_too() {
    let (app, agent) = TestApp::with_agent().await;
    let server = server_of(&app, agent).await;
    given(&app, agent, "api-key", true).await;
    let plain = app.agent().await;
    app.sets_agent(plain, json!({ "serverId": server })).await;
    joined_by(&app, &app.token(&["server.view", "server.edit"]).await, server).await;
    let start = async || {
        let query = "mutation($o: Id!, $s: Id!) { startAgents(orgId: $o, serverId: $s) { started skipped { id status reason } left } }";
        app.operator.gql(query, json!({ "o": app.org, "s": server })).await.data()["startAgents"].clone()
    };
    let waiting = json!({ "id": agent, "status": "ERROR", "reason": "Its host has to be confirmed first." });
    assert_eq!(start().await, json!({ "started": [plain], "skipped": [waiting], "left": 0 }));
    assert_eq!(why(&app, agent).await, waits());
    let up = json!({ "id": plain, "status": "SPAWNING", "reason": "It is SPAWNING." });
    assert_eq!(start().await, json!({ "started": [], "skipped": [waiting, up], "left": 0 }));
    confirm(&app, &app.admin, server).await.data();
    assert_eq!(why(&app, agent).await.0, "SPAWNING");
}

#[tokio::test]
async fn only_people_with_both_rights_confirm_the_host_they_saw() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let token = app.token(&["server.view", "server.edit", "credential.edit", "agent.edit"]).await;
    let of = |join: i64| json!({ "o": app.org, "s": server, "j": join });
    assert_eq!(app.owner.gql(CONFIRM, of(1)).await.code(), "CONFLICT", "no host has joined");
    joined_by(&app, &token, server).await;
    let host = shown(&app, &app.viewer, server).await;
    assert_eq!((&host["confirmedAt"], &host["joinedFrom"]), (&Value::Null, &json!("127.0.0.1")), "{host}");
    assert_eq!(host["tokenMadeByKind"], "SERVICE_TOKEN");
    assert_eq!(confirm(&app, &token, server).await.code(), "PERMISSION_DENIED");
    joined_by(&app, &token, server).await;
    assert_eq!(app.admin.gql(CONFIRM, of(1)).await.code(), "CONFLICT", "the first host is gone");
    assert_eq!(shown(&app, &app.viewer, server).await["confirmedAt"], Value::Null);
    for actor in [&app.admin, &app.owner] {
        confirm(&app, actor, server).await.data();
    }
    renewed(&app, &app.owner, server).await;
    assert_eq!(shown(&app, &app.viewer, server).await, Value::Null, "a new token cuts it off");
    assert_eq!(app.owner.gql(CONFIRM, of(2)).await.code(), "CONFLICT");
}

#[tokio::test]
async fn who_made_the_token_decides_whether_its_host_is_confirmed() {
    let (app, _dir) = TestApp::with_policy_folder().await;
    let all = app.token(&["server.view", "server.create", "server.edit", "credential.edit"]).await;
    let confirmed =
        async |host: &Host| shown(&app, &app.viewer, host.server).await["confirmedAt"].is_string();
    for (actor, expected) in [(&app.owner, true), (&app.admin, true), (&all, false)] {
        let host = joined_by(&app, actor, app.server().await).await;
        assert_eq!(confirmed(&host).await, expected, "with a token that replaces another");
        let path = format!("/v1/org/{}/server", app.org);
        let created = actor.post(&path, json!({ "name": app.name("server") })).await.expect(201);
        let (token, machine) = (host_token(), machine("machine-of-a-new-server"));
        let provisioning = created["provisioning_token"].as_str().unwrap();
        join(&app.anonymous, provisioning, &token, &machine).await.expect(200);
        let server = created["id"].as_i64().unwrap();
        let host = Host { base: app.base.clone(), server, token, machine, journal: [0, 0] };
        assert_eq!(confirmed(&host).await, expected, "with the token of a new server");
    }
    let system = app.joined(app.server().await).await;
    assert!(confirmed(&system).await);
    assert_eq!(shown(&app, &app.viewer, system.server).await["tokenMadeByKind"], "SYSTEM");

    // What counts are the rights that the person has when the token is made.
    let before = renewed(&app, &app.admin, system.server).await;
    let rule = format!("p, ADMIN, {}, credential.edit, deny\n", app.org);
    app.owner.edit_policy(app.org, "none", &rule).await.data();
    let host = joined_by(&app, &app.admin, app.server().await).await;
    assert!(!confirmed(&host).await, "without credential.edit");
    assert_eq!(confirm(&app, &app.admin, host.server).await.code(), "PERMISSION_DENIED");
    join(&app.anonymous, &before, &host_token(), &machine("machine-2")).await.expect(200);
    assert!(confirmed(&system).await, "it had been made before");
}

#[tokio::test]
async fn agents_with_secrets_move_only_by_who_may_edit_credentials() {
    let app = TestApp::start().await;
    let token = app.token(&["server.view", "agent.view", "agent.edit"]).await;
    let both = app.token(&["server.view", "agent.view", "agent.edit", "credential.edit"]).await;
    let theirs = app.joined(app.server().await).await.server;
    let own_key = json!({ "modelCredential": CANARY, "modelCredentialProvider": "openai" });
    for case in ["credential", "archived credential", "own key"] {
        let agent = app.agent().await;
        let home = server_of(&app, agent).await;
        match case {
            "own key" => app.sets_agent(agent, own_key.clone()).await,
            _ => {
                let credential = given(&app, agent, "bearer-token", false).await;
                if case == "archived credential" {
                    let archive =
                        "mutation($o: Id!, $i: Id!) { archiveCredential(orgId: $o, id: $i) { id } }";
                    app.owner.gql(archive, json!({ "o": app.org, "i": credential })).await.data();
                }
            }
        }
        let args = json!({ "o": app.org, "a": agent, "s": theirs });
        let refused = token.gql(MOVE, args.clone()).await;
        assert_eq!(refused.code(), "PERMISSION_DENIED", "{case}");
        assert!(refused.text.contains("credential.edit"), "{case}: {}", refused.text);
        assert_eq!(server_of(&app, agent).await, home);
        let at_home: i64 = app.one("SELECT revision FROM agents WHERE id = $1", vec![agent.into()]).await;
        both.gql(MOVE, args).await.data();
        assert_eq!(server_of(&app, agent).await, theirs);

        // Reverting to a revision on another server is refused too.
        let revert = "mutation($o: Id!, $a: Id!, $n: Int!) { revertAgent(orgId: $o, id: $a, revision: $n, reason: \"back\") { id } }";
        let args = json!({ "o": app.org, "a": agent, "n": at_home });
        assert_eq!(token.gql(revert, args.clone()).await.code(), "PERMISSION_DENIED", "{case}");
        assert_eq!(server_of(&app, agent).await, theirs);
        // Other edits are still allowed.
        both.gql(revert, args.clone()).await.data();
        assert_eq!(server_of(&app, agent).await, home);
        let describe = "mutation($o: Id!, $a: Id!) { updateAgent(orgId: $o, id: $a, input: { description: \"moved\" }) { id } }";
        token.gql(describe, json!({ "o": app.org, "a": agent })).await.data();
    }
    // One without secrets of its own moves, also if it inherits a key.
    let all = json!({ "name": "all", "provider": "anthropic", "secret": CANARY, "isDefault": true });
    made(&app, "createModelCredential", all).await;
    let agent = app.agent().await;
    token.gql(MOVE, json!({ "o": app.org, "a": agent, "s": theirs })).await.data();
    assert_eq!(server_of(&app, agent).await, theirs);
}
