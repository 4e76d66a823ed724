//! The common behaviour of credentials, MCP servers, and skills: they are assigned to agents, archived, and restored.
//! Each test runs for all three.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp};

/// One of the three, with the names it has in the schema.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    one: &'static str,
    list: &'static str,
    permission: &'static str,
    input: fn(&str) -> Value,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "Credential",
        one: "credential",
        list: "credentials",
        permission: "credential",
        input: |name| json!({ "name": name, "kind": "api-key", "fields": [] }),
    },
    Kind {
        name: "McpServer",
        one: "mcpServer",
        list: "mcpServers",
        permission: "mcp",
        input: |name| json!({ "name": name, "transport": "STDIO", "command": "run-it" }),
    },
    Kind {
        name: "Skill",
        one: "skill",
        list: "skills",
        permission: "skill",
        input: |name| json!({ "name": name, "content": "Do it well." }),
    },
];

const RECORD: &str = "id name updatedAt archivedAt assignmentCount \
                      agents { id name avatarUrl } assignments { id name avatarUrl assignedAt }";

impl Kind {
    async fn create(self, app: &TestApp, actor: &Actor, name: &str) -> Answer {
        let name_of_type = self.name;
        let query = format!(
            "mutation($o: Id!, $i: Create{name_of_type}Input!) {{ it: create{name_of_type}(orgId: $o, input: $i) {{ {RECORD} }} }}"
        );
        actor.gql(&query, json!({ "o": app.org, "i": (self.input)(name) })).await
    }

    async fn made(self, app: &TestApp, name: &str) -> i64 {
        self.create(app, &app.operator, name).await.data()["it"]["id"].as_i64().unwrap()
    }

    async fn update(self, app: &TestApp, actor: &Actor, id: i64, input: Value) -> Answer {
        let name = self.name;
        let query = format!(
            "mutation($o: Id!, $id: Id!, $i: Update{name}Input!) {{ it: update{name}(orgId: $o, id: $id, input: $i) {{ {RECORD} }} }}"
        );
        actor.gql(&query, json!({ "o": app.org, "id": id, "i": input })).await
    }

    async fn set_agents(self, app: &TestApp, actor: &Actor, id: i64, agents: &[i64]) -> Answer {
        let query = format!(
            "mutation($o: Id!, $id: Id!, $i: SetAgentsInput!) {{ it: set{}Agents(orgId: $o, id: $id, input: $i) {{ {RECORD} }} }}",
            self.name
        );
        actor.gql(&query, json!({ "o": app.org, "id": id, "i": { "agentIds": agents } })).await
    }

    /// `verb`: `archive` or `unarchive`.
    async fn switch(self, app: &TestApp, actor: &Actor, verb: &str, id: i64) -> Answer {
        let query = format!(
            "mutation($o: Id!, $id: Id!) {{ it: {verb}{}(orgId: $o, id: $id) {{ {RECORD} }} }}",
            self.name
        );
        actor.gql(&query, json!({ "o": app.org, "id": id })).await
    }

    async fn read(self, app: &TestApp, actor: &Actor, id: i64) -> Answer {
        let query =
            format!("query($o: Id!, $id: Id!) {{ it: {}(orgId: $o, id: $id) {{ {RECORD} }} }}", self.one);
        actor.gql(&query, json!({ "o": app.org, "id": id })).await
    }

    async fn listed(self, app: &TestApp, actor: &Actor, archived_too: bool) -> Answer {
        let query = format!(
            "query($o: Id!, $a: Boolean!) {{ it: {}(orgId: $o, page: 1, limit: 10, includeArchived: $a) {{ total data {{ id }} }} }}",
            self.list
        );
        actor.gql(&query, json!({ "o": app.org, "a": archived_too })).await
    }
}

/// The ids of a list of objects.
fn ids(list: &Value) -> Vec<i64> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_i64().unwrap()).collect()
}

async fn set_running(app: &TestApp, agent: i64) {
    app.execute("UPDATE agents SET status = 'RUNNING' WHERE id = $1", vec![agent.into()]).await;
}

async fn commands(app: &TestApp) -> Vec<i64> {
    app.column("SELECT agent_id FROM commands WHERE kind = 'SYNC' ORDER BY id").await
}

#[tokio::test]
async fn assigning_replaces_the_whole_list() {
    let app = TestApp::start().await;
    let (first, second, third) = (app.agent().await, app.agent().await, app.agent().await);
    for kind in KINDS {
        let id = kind.made(&app, "shared").await;
        let set = kind.set_agents(&app, &app.operator, id, &[second, first, second]).await.data();
        assert_eq!(ids(&set["it"]["agents"]), [first, second], "duplicates count once");
        assert_eq!(set["it"]["assignmentCount"], 2);
        assert_eq!(app.marked_agents().await, [first, second]);
        let since = set["it"]["assignments"][1]["assignedAt"].clone();

        app.clock.advance(Duration::from_mins(1));
        let set = kind.set_agents(&app, &app.operator, id, &[second, third]).await.data();
        assert_eq!(ids(&set["it"]["assignments"]), [second, third]);
        assert_eq!(set["it"]["assignments"][0]["assignedAt"], since, "an agent that stays keeps its time");
        assert_ne!(set["it"]["assignments"][1]["assignedAt"], since);
        assert_eq!(
            app.marked_agents().await,
            [first, third],
            "added and removed agents are marked, those that stay are not"
        );

        kind.set_agents(&app, &app.operator, id, &[third, second]).await.data();
        assert_eq!(app.marked_agents().await, [0; 0], "the same list changes nothing");
        let set = kind.set_agents(&app, &app.operator, id, &[]).await.data();
        assert_eq!(set["it"]["assignments"], json!([]));
        app.marked_agents().await;
    }
    assert_eq!(commands(&app).await, [0; 0], "a stopped agent gets it when it starts");
}

#[tokio::test]
async fn one_unknown_agent_fails_the_whole_list() {
    let app = TestApp::start().await;
    let (known, foreign, deleted) = (app.agent().await, app.other_agent().await, app.agent().await);
    app.delete_agent(deleted).await;
    for kind in KINDS {
        let id = kind.made(&app, "shared").await;
        kind.set_agents(&app, &app.operator, id, &[known]).await.data();
        app.marked_agents().await;
        let refused = kind.set_agents(&app, &app.operator, id, &[foreign, known, deleted, 9_999_999]).await;
        assert_eq!(
            refused.wrong_inputs(),
            [
                ("/input/agentIds/0", "NOT_FOUND"),
                ("/input/agentIds/2", "NOT_FOUND"),
                ("/input/agentIds/3", "NOT_FOUND")
            ]
        );
        assert_eq!(ids(&kind.read(&app, &app.operator, id).await.data()["it"]["agents"]), [known]);
        assert_eq!(app.marked_agents().await, [0; 0]);
    }
}

#[tokio::test]
async fn archiving_hides_a_thing_and_keeps_its_assignments() {
    let (app, running, stopped) = TestApp::with_two_agents().await;
    set_running(&app, running).await;
    for kind in KINDS {
        let id = kind.made(&app, "shared").await;
        kind.set_agents(&app, &app.operator, id, &[running, stopped]).await.data();
        app.marked_agents().await;
        app.execute("DELETE FROM commands", vec![]).await;

        let archived = kind.switch(&app, &app.operator, "archive", id).await.data();
        assert_ne!(archived["it"]["archivedAt"], Value::Null);
        assert_eq!(ids(&archived["it"]["assignments"]), [running, stopped]);
        assert_eq!(app.marked_agents().await, [running, stopped]);
        assert_eq!(commands(&app).await, [running], "a running agent gets it at once");
        assert_eq!(
            kind.listed(&app, &app.viewer, false).await.data()["it"],
            json!({ "total": 0, "data": [] })
        );
        let all = kind.listed(&app, &app.viewer, true).await.data();
        assert_eq!(all["it"], json!({ "total": 1, "data": [{ "id": id }] }));
        assert_eq!(kind.read(&app, &app.viewer, id).await.data()["it"], archived["it"], "readable by id");

        app.clock.advance(Duration::from_mins(1));
        let again = kind.switch(&app, &app.operator, "archive", id).await.data();
        assert_eq!(again["it"], archived["it"], "archiving again does nothing");
        let edited = kind.update(&app, &app.operator, id, json!({ "description": "new" })).await;
        assert_eq!(edited.code(), "ARCHIVED");
        assert_eq!(kind.set_agents(&app, &app.operator, id, &[running]).await.code(), "ARCHIVED");

        app.execute("DELETE FROM commands", vec![]).await;
        let restored = kind.switch(&app, &app.operator, "unarchive", id).await.data();
        assert_eq!(restored["it"]["archivedAt"], Value::Null);
        assert_eq!(ids(&restored["it"]["assignments"]), [running, stopped]);
        assert_eq!(app.marked_agents().await, [running, stopped]);
        assert_eq!(commands(&app).await, [running]);
        app.clock.advance(Duration::from_mins(1));
        let again = kind.switch(&app, &app.operator, "unarchive", id).await.data();
        assert_eq!(again["it"], restored["it"], "restoring again does nothing");
        assert_eq!(app.marked_agents().await, [0; 0]);
        let sql = format!("SELECT COUNT(*) FROM audit_lines WHERE operation LIKE '%archive{}'", kind.name);
        assert_eq!(app.one::<i64>(&sql, vec![]).await, 2, "operations without an effect are not in the log");
    }
}

#[tokio::test]
async fn a_name_is_unique_among_unarchived_things() {
    let app = TestApp::start().await;
    for kind in KINDS {
        let first = kind.made(&app, "  shared ").await;
        assert_eq!(kind.read(&app, &app.viewer, first).await.data()["it"]["name"], "shared", "trimmed");
        assert_eq!(kind.create(&app, &app.operator, "shared").await.code(), "NAME_TAKEN");
        let other = kind.made(&app, "other").await;
        let renamed = kind.update(&app, &app.operator, other, json!({ "name": "shared" })).await;
        assert_eq!(renamed.code(), "NAME_TAKEN");
        kind.update(&app, &app.operator, other, json!({ "name": "other" })).await.data();

        kind.switch(&app, &app.operator, "archive", first).await.data();
        kind.made(&app, "shared").await;
        assert_eq!(kind.switch(&app, &app.operator, "unarchive", first).await.code(), "NAME_TAKEN");
    }
}

#[tokio::test]
async fn an_edit_tells_assigned_agents_unless_it_changes_nothing() {
    let (app, agent) = TestApp::with_agent().await;
    for kind in KINDS {
        let id = kind.made(&app, "shared").await;
        kind.set_agents(&app, &app.operator, id, &[agent]).await.data();
        app.marked_agents().await;
        app.clock.advance(Duration::from_mins(1));
        let edit = json!({ "name": "renamed", "description": "said" });
        let edited = kind.update(&app, &app.operator, id, edit.clone()).await.data();
        assert_eq!(app.marked_agents().await, [agent]);
        app.clock.advance(Duration::from_mins(1));
        let again = kind.update(&app, &app.operator, id, edit).await.data();
        assert_eq!(again["it"]["updatedAt"], edited["it"]["updatedAt"]);
        assert_eq!(app.marked_agents().await, [0; 0]);
    }
}

#[tokio::test]
async fn an_agent_shows_what_it_works_with() {
    let (app, agent) = TestApp::with_agent().await;
    for kind in KINDS {
        let (kept, archived) = (kind.made(&app, "kept").await, kind.made(&app, "archived").await);
        for id in [kept, archived] {
            kind.set_agents(&app, &app.operator, id, &[agent]).await.data();
        }
        kind.switch(&app, &app.operator, "archive", archived).await.data();
        let query = format!(
            "query($o: Id!, $id: Id!) {{ agent(orgId: $o, id: $id) {{ {} {{ id name }} }} }}",
            kind.list
        );
        let variables = json!({ "o": app.org, "id": agent });
        let shown = app.viewer.gql(&query, variables.clone()).await.data();
        assert_eq!(shown["agent"][kind.list], json!([{ "id": kept, "name": "kept" }]));

        assert_eq!(app.token(&["agent.view"]).await.gql(&query, variables).await.code(), "PERMISSION_DENIED");
    }
}

#[tokio::test]
async fn nothing_can_be_assigned_to_a_deleted_agent() {
    let (app, agent) = TestApp::with_agent().await;
    let mut made = Vec::new();
    for kind in KINDS {
        let id = kind.made(&app, "shared").await;
        kind.set_agents(&app, &app.operator, id, &[agent]).await.data();
        made.push((kind, id));
    }
    app.delete_agent(agent).await;
    for (kind, id) in made {
        let shown = kind.read(&app, &app.viewer, id).await.data();
        assert_eq!((&shown["it"]["assignmentCount"], &shown["it"]["agents"]), (&json!(0), &json!([])));
    }
}

#[tokio::test]
async fn an_editor_restores_and_does_not_archive() {
    let app = TestApp::start().await;
    for kind in KINDS {
        let id = kind.made(&app, "shared").await;
        assert_eq!(kind.read(&app, &app.viewer, id + 1).await.code(), "NOT_FOUND");
        assert_eq!(kind.switch(&app, &app.operator, "archive", id + 1).await.code(), "NOT_FOUND");
        let editor = app.token(&[&format!("{}.edit", kind.permission)]).await;
        assert_eq!(kind.switch(&app, &editor, "archive", id).await.code(), "PERMISSION_DENIED");
        kind.switch(&app, &app.operator, "archive", id).await.data();
        kind.switch(&app, &editor, "unarchive", id).await.data();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_assignments_to_the_same_agents_never_deadlock() {
    // On a slow machine, twenty that wait for one writer take longer than a request should.
    let app = TestApp::start_with(|config| config.database.acquire_timeout_seconds = 60).await;
    let all = app.populate(4).await;
    let (there, back) = (all.agents.clone(), all.agents.iter().rev().copied().collect::<Vec<_>>());
    let skill = format!("/v1/org/{}/skill/{}", app.org, all.skills[0]);
    for round in 0..10 {
        let mut work: Vec<BoxFuture<'_, Answer>> = Vec::new();
        for (n, kind) in KINDS.into_iter().enumerate() {
            let ids = [&all.credentials, &all.mcp_servers, &all.skills][n];
            for (m, id) in ids.iter().enumerate() {
                let agents: &[i64] = if (round + m) % 2 == 0 { [&there, &back][n % 2] } else { &[] };
                work.push(kind.set_agents(&app, &app.owner, *id, agents).boxed());
            }
        }
        let body = json!({ "content": format!("# {round}"), "force": true });
        work.push(app.owner.patch(&skill, body).boxed());
        for agent in &all.agents {
            let verb = if round % 2 == 0 { "startAgent" } else { "stopAgent" };
            let given = json!({ "o": app.org, "a": agent, "r": format!("role {round}") });
            let switch = format!("mutation($o: Id!, $a: Id!) {{ {verb}(orgId: $o, id: $a) {{ id }} }}");
            let edit = "mutation($o: Id!, $a: Id!, $r: String) { updateAgent(orgId: $o, id: $a, input: { role: $r }) { id } }";
            let (owner, same) = (&app.owner, given.clone());
            work.push(async move { owner.gql(&switch, same).await }.boxed());
            work.push(async move { owner.gql(edit, given).await }.boxed());
        }
        for answer in join_all(work).await {
            let code =
                answer.body["code"].as_str().or(answer.body["errors"][0]["extensions"]["code"].as_str());
            assert!(
                code.is_none() || code == Some("AGENT_ALREADY_RUNNING") || code == Some("AGENT_NOT_RUNNING"),
                "{:#}",
                answer.body
            );
        }
    }
}
