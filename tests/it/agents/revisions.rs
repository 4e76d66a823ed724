//! Revisions of agents and versions of skills: what writes one, what is in it, and what it costs.

use std::{collections::BTreeSet, time::Duration};

use async_graphql::registry::MetaType;
use futures::{FutureExt, future::join_all};
use muster::{
    base::ids::AgentId,
    domain::agents::{self, revisions},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Actor, TestApp, Walker};

const REVISIONS: &str = "query($o: Id!, $a: Id!) { agentRevisions(orgId: $o, agentId: $a, page: 1, limit: 200) { total data { \
    revision agentId content contentHash changes revertsTo authorKind authorId authorName operation reason createdAt } } }";
const VERSIONS: &str = "query($o: Id!, $s: Id!) { skillVersions(orgId: $o, skillId: $s, page: 1, limit: 200) { total data { \
    version skillId content contentHash changes revertsTo authorKind authorName operation reason } } }";
const UPDATE_SKILL: &str = "mutation($o: Id!, $s: Id!, $c: String!) { updateSkill(orgId: $o, id: $s, input: { content: $c }) { id } }";
const UPDATE: &str = "mutation($o: Id!, $id: Id!, $i: UpdateAgentInput!, $r: String) { \
    updateAgent(orgId: $o, id: $id, input: $i, reason: $r) { revision } }";

/// The revisions of an agent, newest first.
pub async fn history(app: &TestApp, agent: i64) -> Vec<Value> {
    let shown = app.viewer.gql(REVISIONS, json!({ "o": app.org, "a": agent })).await.data();
    let list = shown["agentRevisions"]["data"].as_array().unwrap().clone();
    assert_eq!(shown["agentRevisions"]["total"], list.len());
    list
}

/// The versions of a skill, newest first.
pub async fn versions(app: &TestApp, skill: i64) -> Vec<Value> {
    let shown = app.viewer.gql(VERSIONS, json!({ "o": app.org, "s": skill })).await.data();
    shown["skillVersions"]["data"].as_array().unwrap().clone()
}

pub async fn update(app: &TestApp, actor: &Actor, agent: i64, input: Value) -> i64 {
    let given = json!({ "o": app.org, "id": agent, "i": input });
    actor.gql(UPDATE, given).await.data()["updateAgent"]["revision"].as_i64().unwrap()
}

/// A skill, its content the same as its name.
pub async fn skill(app: &TestApp, name: &str) -> i64 {
    let create =
        "mutation($o: Id!, $n: String!) { createSkill(orgId: $o, input: { name: $n, content: $n }) { id } }";
    let made = app.operator.gql(create, json!({ "o": app.org, "n": name })).await.data();
    made["createSkill"]["id"].as_i64().unwrap()
}

pub async fn mcp_server(app: &TestApp) -> i64 {
    let create = "mutation($o: Id!, $n: String!) { \
                  createMcpServer(orgId: $o, input: { name: $n, transport: STDIO, command: \"c\" }) { id } }";
    let made = app.operator.gql(create, json!({ "o": app.org, "n": app.name("tool") })).await.data();
    made["createMcpServer"]["id"].as_i64().unwrap()
}

pub async fn credential(app: &TestApp) -> i64 {
    let create = "mutation($o: Id!, $n: String!) { \
                  createCredential(orgId: $o, input: { name: $n, kind: \"custom\", fields: [] }) { id } }";
    let made = app.operator.gql(create, json!({ "o": app.org, "n": app.name("key") })).await.data();
    made["createCredential"]["id"].as_i64().unwrap()
}

/// Assigns a `Skill`, an `McpServer` or a `Credential`.
pub async fn assign(app: &TestApp, kind: &str, id: i64, agents: &[i64]) {
    let set = format!(
        "mutation($o: Id!, $id: Id!, $a: [Id!]!) {{ set{kind}Agents(orgId: $o, id: $id, input: {{ agentIds: $a }}) {{ id }} }}"
    );
    app.operator.gql(&set, json!({ "o": app.org, "id": id, "a": agents })).await.data();
}

/// Agents may read what this credential holds.
pub async fn let_agents_read(app: &TestApp, credential: i64) {
    let read = "mutation($o: Id!, $i: Id!) { updateCredential(orgId: $o, id: $i, input: {}, agentMayRead: true) { id } }";
    app.owner.gql(read, json!({ "o": app.org, "i": credential })).await.data();
}

pub async fn switch(app: &TestApp, mutation: &str, id: i64) {
    let call = format!("mutation($o: Id!, $id: Id!) {{ {mutation}(orgId: $o, id: $id) {{ id }} }}");
    app.operator.gql(&call, json!({ "o": app.org, "id": id })).await.data();
}

#[tokio::test]
async fn a_change_leaves_a_revision_with_its_author_and_reason() {
    let app = TestApp::start().await;
    let (server, image) = (app.server().await, app.image().await);
    let create =
        "mutation($o: Id!, $i: CreateAgentInput!) { createAgent(orgId: $o, input: $i) { id revision } }";
    let new = json!({ "name": "Ada", "serverId": server, "imageId": image });
    let made = app.operator.gql(create, json!({ "o": app.org, "i": new })).await.data();
    assert_eq!(made["createAgent"]["revision"], 1);
    let agent = made["createAgent"]["id"].as_i64().unwrap();

    app.clock.advance(Duration::from_mins(1));
    let edit = json!({ "role": "support", "approvalCategories": ["money"] });
    let given = json!({ "o": app.org, "id": agent, "i": edit, "r": "Ann asked for it" });
    let edited = app.operator.gql(UPDATE, given.clone()).await.data();
    assert_eq!(edited["updateAgent"]["revision"], 2);
    assert_eq!(
        app.operator.gql(UPDATE, given).await.data(),
        edited,
        "nothing differs, so nothing is written"
    );
    let token = app.token(&["agent.edit"]).await;
    assert_eq!(update(&app, &token, agent, json!({ "name": "Grace" })).await, 3);

    let [third, second, first] = &history(&app, agent).await[..] else { panic!() };
    let text = first["content"].to_string();
    assert_eq!(first["contentHash"], hex::encode(Sha256::digest(&text)));
    assert_eq!((&first["content"]["name"], &first["content"]["serverId"]), (&json!("Ada"), &json!(server)));
    assert_eq!((&first["changes"], &first["operation"]), (&json!({}), &json!("createAgent")));
    assert_eq!(first["reason"], Value::Null);
    let changes = json!({ "approvalCategories": [[], ["money"]], "role": [null, "support"] });
    assert_eq!((&second["revision"], &second["changes"]), (&json!(2), &changes));
    assert_eq!(second["reason"], "Ann asked for it");
    assert_eq!((&second["authorKind"], &second["authorId"]), (&json!("USER"), &json!(app.operator.user)));
    assert_eq!(second["authorName"], "operator");
    assert_eq!(second["createdAt"], "2026-06-01T12:01:00.000Z");
    assert_eq!((&third["authorKind"], &third["operation"]), (&json!("SERVICE_TOKEN"), &json!("updateAgent")));
    assert_eq!(third["changes"], json!({ "name": ["Ada", "Grace"] }));
    let blank = json!({ "o": app.org, "id": agent, "i": {}, "r": " " });
    assert_eq!(app.operator.gql(UPDATE, blank).await.wrong_inputs()[0].0, "/reason");

    let one = "query($o: Id!, $a: Id!, $n: Int!) { agentRevision(orgId: $o, agentId: $a, revision: $n) { content } }";
    let given = |n: i64| json!({ "o": app.org, "a": agent, "n": n });
    assert_eq!(app.viewer.gql(one, given(1)).await.data()["agentRevision"]["content"].to_string(), text);
    assert_eq!(app.viewer.gql(one, given(4)).await.code(), "NOT_FOUND");
    assert_eq!(app.viewer.gql(REVISIONS, json!({ "o": app.org, "a": agent + 1 })).await.code(), "NOT_FOUND");
}

#[tokio::test]
async fn a_revision_has_every_setting_and_no_secret() {
    let (app, agent) = TestApp::with_agent().await;
    let secret = json!({ "modelCredential": "sk-canary", "modelCredentialProvider": "openai" });
    update(&app, &app.operator, agent, secret).await;
    let newest = &history(&app, agent).await[0];
    let kept: BTreeSet<String> = newest["content"].as_object().unwrap().keys().cloned().collect();
    let walker = Walker::new();
    let Some(MetaType::InputObject { input_fields, .. }) =
        walker.catalogue.registry.types.get("UpdateAgentInput")
    else {
        panic!()
    };
    let mut expected: BTreeSet<String> = input_fields.keys().cloned().collect();
    expected.remove("modelCredential");
    expected.extend(["hasModelCredential", "skills", "mcpServers", "credentials"].map(str::to_owned));
    assert_eq!(kept, expected);
    assert_eq!(newest["content"]["hasModelCredential"], true);
    let all: Vec<String> = app.column("SELECT CAST(content AS TEXT) FROM agent_revisions").await;
    assert!(all.len() > 1 && all.iter().all(|content| !content.contains("sk-canary")));
}

#[tokio::test]
async fn what_an_agent_works_with_is_part_of_its_revisions() {
    let (app, agent, other) = TestApp::with_two_agents().await;
    let (tool, key, how) = (mcp_server(&app).await, credential(&app).await, skill(&app, "how").await);
    assign(&app, "McpServer", tool, &[agent]).await;
    assign(&app, "Credential", key, &[agent]).await;
    assign(&app, "Skill", how, &[agent]).await;
    let content = |list: &[Value]| list[0]["content"].clone();
    let four = history(&app, agent).await;
    assert_eq!((four.len(), &four[0]["operation"]), (4, &json!("setSkillAgents")));
    assert_eq!(content(&four)["mcpServers"], json!([tool]));
    assert_eq!(content(&four)["credentials"], json!([key]));
    assert_eq!(content(&four)["skills"], json!([{ "id": how, "version": 1 }]));

    let edit = "mutation($o: Id!, $s: Id!, $c: String!, $f: Boolean, $r: String) { \
                updateSkill(orgId: $o, id: $s, input: { content: $c, force: $f }, reason: $r) { version } }";
    let given = json!({ "o": app.org, "s": how, "c": "new", "f": true, "r": "better" });
    assert_eq!(app.operator.gql(edit, given.clone()).await.data()["updateSkill"]["version"], 2);
    assert_eq!(
        app.operator.gql(edit, given).await.data()["updateSkill"]["version"],
        2,
        "forced, but the same"
    );
    let five = history(&app, agent).await;
    let changed = json!([[{ "id": how, "version": 1 }], [{ "id": how, "version": 2 }]]);
    assert_eq!((five.len(), &five[0]["changes"]), (5, &json!({ "skills": changed })));
    assert_eq!((&five[0]["operation"], &five[0]["reason"]), (&json!("updateSkill"), &json!("better")));

    switch(&app, "archiveSkill", how).await;
    assert_eq!(content(&history(&app, agent).await)["skills"], json!([]));
    switch(&app, "unarchiveSkill", how).await;
    let seven = history(&app, agent).await;
    assert_eq!((seven.len(), seven[0]["content"].clone()), (7, content(&five)), "it is again what it was");
    assert_eq!(seven[0]["contentHash"], five[0]["contentHash"]);
    assert_eq!(history(&app, other).await.len(), 1, "another agent's things are its own");
}

#[tokio::test]
async fn a_skill_has_versions() {
    let app = TestApp::start().await;
    let how = skill(&app, "how").await;
    let edit = "mutation($o: Id!, $s: Id!, $i: UpdateSkillInput!) { updateSkill(orgId: $o, id: $s, input: $i) { version } }";
    let long = "a".repeat(2000);
    for input in [
        json!({ "content": long }),
        json!({ "description": "d", "effort": "LOW" }),
        json!({ "effort": "LOW" }),
    ] {
        app.operator.gql(edit, json!({ "o": app.org, "s": how, "i": input })).await.data();
    }
    let [third, second, first] = &versions(&app, how).await[..] else { panic!() };
    let content =
        json!({ "content": "how", "description": null, "effort": null, "model": null, "name": "how" });
    assert_eq!(first["content"].to_string(), content.to_string());
    assert_eq!(first["contentHash"], hex::encode(Sha256::digest(content.to_string())));
    let hash = hex::encode(Sha256::digest(&long));
    assert_eq!(second["changes"], json!({ "content": ["how", { "bytes": 2000, "sha256": hash }] }));
    assert_eq!(third["changes"], json!({ "description": [null, "d"], "effort": [null, "LOW"] }));
}

#[tokio::test]
async fn a_skill_costs_the_same_for_many_agents() {
    let app = TestApp::start().await;
    let first = app.agent().await;
    let many = "INSERT INTO agents (organization_id, server_id, image_id, name, name_folded, created_at, updated_at) \
                SELECT organization_id, server_id, image_id, $2, $2, 0, 0 FROM agents WHERE id = $1";
    for n in 0..199 {
        app.execute(many, vec![first.into(), format!("many {n}").into()]).await;
    }
    let all: Vec<i64> = app.column("SELECT id FROM agents ORDER BY id").await;
    let (narrow, wide) = (skill(&app, "narrow").await, skill(&app, "wide").await);
    assign(&app, "Skill", narrow, &[first]).await;
    assign(&app, "Skill", wide, &all).await;
    let cost = async |skill: i64, content: &str| {
        let before = app.statements();
        app.operator.gql(UPDATE_SKILL, json!({ "o": app.org, "s": skill, "c": content })).await.data();
        app.statements() - before
    };
    cost(narrow, "warm").await;
    let (of_one, of_many) = (cost(narrow, "one").await, cost(wide, "many").await);
    assert_eq!(of_one, of_many);
    let newest =
        "SELECT COUNT(*) FROM agent_revisions r JOIN agents a ON a.id = r.agent_id AND a.revision = r.number";
    assert_eq!(app.one::<i64>(newest, vec![]).await, 200, "each has its newest");
    assert_eq!(app.one::<i64>("SELECT MIN(revision) FROM agents", vec![]).await, 2);
}

#[tokio::test]
async fn a_launch_names_its_revision() {
    let (app, agent) = TestApp::with_agent().await;
    update(&app, &app.operator, agent, json!({ "role": "x" })).await;
    switch(&app, "startAgent", agent).await;
    update(&app, &app.operator, agent, json!({ "role": "y" })).await;
    let of = "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { revision launchedRevision } }";
    let shown = app.viewer.gql(of, json!({ "o": app.org, "id": agent })).await.data();
    assert_eq!(shown["agent"], json!({ "revision": 3, "launchedRevision": 2 }));
    let tx = app.scope().begin().await.unwrap();
    assert_eq!(revisions::current(&tx, AgentId(agent)).await.unwrap(), 3);
    drop(tx);
    // An agent that was made in bulk has no revision yet.
    let bulk = "UPDATE agents SET revision = 0, status = 'STOPPED' WHERE id = $1";
    app.execute("DELETE FROM agent_revisions", vec![]).await;
    app.execute(bulk, vec![agent.into()]).await;
    switch(&app, "startAgent", agent).await;
    let shown = app.viewer.gql(of, json!({ "o": app.org, "id": agent })).await.data();
    assert_eq!(shown["agent"], json!({ "revision": 1, "launchedRevision": 1 }));
}

#[tokio::test]
async fn old_revisions_go_except_the_launched_one() {
    let (app, agent) = TestApp::with_agent().await;
    switch(&app, "startAgent", agent).await;
    for n in 0..205 {
        let edit = agents::UpdateAgentInput {
            description: async_graphql::MaybeUndefined::Value(format!("{n}")),
            ..Default::default()
        };
        agents::update(&app.scope(), AgentId(agent), edit, None).await.unwrap();
    }
    let kept: Vec<i64> = app.column("SELECT number FROM agent_revisions ORDER BY number").await;
    let expected: Vec<i64> = [1].into_iter().chain(7..=206).collect();
    assert_eq!(kept, expected);

    let how = skill(&app, "how").await;
    for n in 0..8 {
        let text = format!("{n}{}", "ä".repeat(499_000));
        app.operator.gql(UPDATE_SKILL, json!({ "o": app.org, "s": how, "c": text })).await.data();
    }
    let kept: Vec<i64> = app.column("SELECT number FROM skill_versions ORDER BY number").await;
    assert_eq!(kept, [5, 6, 7, 8, 9], "four mebibytes besides the newest");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_leave_no_gap_and_no_stale_revision() {
    let (app, one, two) = TestApp::with_two_agents().await;
    let (first, second) = (skill(&app, "first").await, skill(&app, "second").await);
    for skill in [first, second] {
        assign(&app, "Skill", skill, &[one, two]).await;
    }
    let mut work = Vec::new();
    for n in 0..6 {
        for (m, skill) in [first, second].into_iter().enumerate() {
            let given = json!({ "o": app.org, "s": skill, "c": format!("{n} {m}") });
            work.push(app.operator.gql(UPDATE_SKILL, given).boxed());
        }
        for agent in [one, two] {
            let given = json!({ "o": app.org, "id": agent, "i": { "role": format!("{n}") } });
            work.push(app.operator.gql(UPDATE, given).boxed());
        }
    }
    for answer in join_all(work).await {
        answer.data();
    }
    for agent in [one, two] {
        let list = history(&app, agent).await;
        let numbers: Vec<i64> = list.iter().rev().map(|it| it["revision"].as_i64().unwrap()).collect();
        let gapless: Vec<i64> = (1..).take(numbers.len()).collect();
        assert_eq!(numbers, gapless);
        let skills = json!([{ "id": first, "version": 7 }, { "id": second, "version": 7 }]);
        assert_eq!(list[0]["content"]["skills"], skills);
        let newest = "SELECT revision FROM agents WHERE id = $1";
        assert_eq!(Some(&app.one::<i64>(newest, vec![agent.into()]).await), numbers.last());
    }
}
