//! Skills: operation 26, and what the panel adds. For what they share with MCP servers see `agents/assignments.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp};

const CREATE: &str =
    "mutation($o: Id!, $i: CreateSkillInput!) { createSkill(orgId: $o, input: $i) { id name } }";
const ASSIGN: &str = "mutation($o: Id!, $id: Id!, $i: SetAgentsInput!) { setSkillAgents(orgId: $o, id: $id, input: $i) { id } }";
/// SHA-256 of `Be kind.`
const BE_KIND: &str = "5499befb38dbf3fcc08107141cb2a9e7f42a6aae403361dc3601b8296d7967ea";

async fn create(app: &TestApp, actor: &Actor, input: Value) -> Answer {
    actor.gql(CREATE, json!({ "o": app.org, "i": input })).await
}

/// A skill `manners` that one agent has, its path, and the agent.
async fn assigned(app: &TestApp) -> (i64, String, i64) {
    let agent = app.agent().await;
    let made = create(app, &app.operator, json!({ "name": "manners", "content": "Be kind." })).await.data();
    let id = made["createSkill"]["id"].as_i64().unwrap();
    app.operator.gql(ASSIGN, json!({ "o": app.org, "id": id, "i": { "agentIds": [agent] } })).await.data();
    app.marked_agents().await;
    (id, format!("/v1/org/{}/skill/{id}", app.org), agent)
}

#[tokio::test]
async fn an_edit_marks_agents_with_the_skill() {
    let app = TestApp::start().await;
    let (id, path, agent) = assigned(&app).await;
    app.clock.advance(Duration::from_mins(1));
    let body = json!({ "description": "How to behave.", "model": "model-2", "effort": "LOW" });
    let edited = app.operator.patch(&path, body).await.expect(200);
    let since = "2026-06-01T12:00:00.000Z";
    let whole = json!({
        "id": id, "name": "manners", "description": "How to behave.", "content": "Be kind.",
        "content_hash": BE_KIND, "model": "model-2", "effort": "LOW", "assignment_count": 1,
        "created_by": app.operator.user, "created_at": since, "updated_at": "2026-06-01T12:01:00.000Z",
        "archived_at": null,
        "assignments": [{ "id": agent, "name": edited["assignments"][0]["name"], "avatar_url": null, "assigned_at": since }],
    });
    assert_eq!(edited.to_string(), whole.to_string(), "every field, in the specification's order");
    assert_eq!(app.marked_agents().await, [agent]);

    let edited =
        app.operator.patch(&path, json!({ "content": "Be very kind.", "effort": null })).await.expect(200);
    assert_ne!(edited["content_hash"], BE_KIND);
    assert_eq!((&edited["effort"], &edited["model"]), (&Value::Null, &json!("model-2")));
    assert_eq!(app.marked_agents().await, [agent]);
    let sql = "SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'updateSkill' ORDER BY id";
    let changes: Vec<String> = app.column(sql).await;
    assert_eq!(changes.len(), 2);
    assert!(changes[1].contains("content_hash") && !changes[1].contains("very kind"), "{changes:?}");
}

#[tokio::test]
async fn an_edit_that_changes_nothing_marks_no_agent_unless_forced() {
    let app = TestApp::start().await;
    let (id, path, agent) = assigned(&app).await;
    app.execute("UPDATE agents SET status = 'RUNNING' WHERE id = $1", vec![agent.into()]).await;
    let same = json!({ "name": " manners ", "content": "Be kind.", "description": null });
    let before = app.operator.patch(&path, same.clone()).await.expect(200);
    assert_eq!(app.marked_agents().await, [0; 0]);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM commands", vec![]).await, 0);

    app.clock.advance(Duration::from_mins(1));
    for body in [json!({ "force": true }), json!({ "content": "Be kind.", "force": true })] {
        assert_eq!(
            app.operator.patch(&path, body).await.expect(200),
            before,
            "the record itself is unchanged"
        );
        assert_eq!(app.marked_agents().await, [agent]);
    }
    assert_eq!(
        app.one::<i64>("SELECT COUNT(*) FROM commands WHERE kind = 'SYNC'", vec![]).await,
        1,
        "one that waits is not repeated"
    );
    app.operator.patch(&path, json!({ "content": "Be kind.", "force": false })).await.expect(200);
    assert_eq!(app.marked_agents().await, [0; 0]);
    let archive = "mutation($o: Id!, $id: Id!) { archiveSkill(orgId: $o, id: $id) { id } }";
    app.operator.gql(archive, json!({ "o": app.org, "id": id })).await.data();
    for body in [json!({ "content": "Be rude." }), json!({ "force": true })] {
        assert_eq!(app.operator.patch(&path, body).await.problem(), (409, "ARCHIVED"));
    }
    assert_eq!(app.marked_agents().await.len(), 1, "archiving marked the agent, nothing else did");
}

#[tokio::test]
async fn a_skills_name_must_be_a_folder_name() {
    let app = TestApp::start().await;
    let (_, path, _) = assigned(&app).await;
    for (name, code) in [
        ("a/b", "NOT_ALLOWED"),
        ("a\\b", "NOT_ALLOWED"),
        ("..", "NOT_ALLOWED"),
        (" .hidden", "NOT_ALLOWED"),
        ("a\nb", "NOT_ALLOWED"),
        ("  ", "BLANK"),
    ] {
        let wrong = app.operator.patch(&path, json!({ "name": name })).await;
        let found = wrong.violations();
        assert_eq!(found.len(), 1, "{name:?}: {found:?}");
        assert_eq!(found[0].0, "/name");
        assert!(code == "BLANK" || found[0].1 == code, "{name:?}: {found:?}");
        let wrong = create(&app, &app.operator, json!({ "name": name, "content": "" })).await;
        assert_eq!(wrong.wrong_inputs()[0].0, "/input/name");
    }
    let wrong = app.operator.patch(&path, json!({ "name": "𝕊".repeat(80) })).await;
    assert_eq!(wrong.violations(), [("/name", "TOO_LONG")], "longer than a file system allows");
    let made =
        create(&app, &app.operator, json!({ "name": "Rechnungen prüfen", "content": "" })).await.data();
    assert_eq!(made["createSkill"]["name"], "Rechnungen prüfen");
    assert_eq!(app.operator.patch(&path, json!({ "content": null })).await.violations()[0].0, "/content");
    assert_eq!(
        app.operator.patch(&path, json!({ "efort": "LOW" })).await.violations(),
        [("/efort", "UNKNOWN_KEY")]
    );
}

/// SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_an_edit_locks_agents_before_stored_bytes() {
    let app = TestApp::start().await;
    let (_, path, agent) = assigned(&app).await;
    let agent = format!("SELECT 1 FROM agents WHERE id = {agent} FOR NO KEY UPDATE");
    let bytes =
        format!("SELECT 1 FROM stored_bytes WHERE organization_id = {} FOR NO KEY UPDATE NOWAIT", app.org);
    let edit = app.operator.patch(&path, json!({ "content": "Be very kind." }));
    app.while_held(&agent, &bytes, edit).await.expect(200);
}
