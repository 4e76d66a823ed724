//! MCP servers: operations 23 to 25, and what the panel adds. For what they share with skills see
//! `agents/assignments.rs`.

use serde_json::{Value, json};

use crate::{
    harness::{Actor, Answer, TestApp},
    tools::CREATE_SERVER,
};

const UPDATE: &str = "mutation($o: Id!, $id: Id!, $i: UpdateMcpServerInput!) { \
                      updateMcpServer(orgId: $o, id: $id, input: $i) { transport command args url auth } }";

async fn create(app: &TestApp, actor: &Actor, input: Value) -> Answer {
    actor.gql(CREATE_SERVER, json!({ "o": app.org, "i": input })).await
}

async fn made(app: &TestApp, input: Value) -> i64 {
    create(app, &app.operator, input).await.data()["createMcpServer"]["id"].as_i64().unwrap()
}

async fn update(app: &TestApp, id: i64, input: Value) -> Answer {
    app.operator.gql(UPDATE, json!({ "o": app.org, "id": id, "i": input })).await
}

#[tokio::test]
async fn an_mcp_server_is_read_archived_and_restored_over_rest() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let input = json!({ "name": "tickets", "transport": "STDIO", "command": "tickets-mcp",
                        "args": ["--verbose", ""], "auth": ["TICKETS_TOKEN"] });
    let id = made(&app, input).await;
    let assign = "mutation($o: Id!, $id: Id!, $i: SetAgentsInput!) { setMcpServerAgents(orgId: $o, id: $id, input: $i) { id } }";
    app.operator.gql(assign, json!({ "o": app.org, "id": id, "i": { "agentIds": [agent] } })).await.data();

    let path = format!("/v1/org/{}/mcp/{id}", app.org);
    let shown = app.viewer.get(&path).await.expect(200);
    let named = json!({ "id": agent, "name": shown["agents"][0]["name"], "avatar_url": null });
    let mut assigned = named.clone();
    assigned["assigned_at"] = json!("2026-06-01T12:00:00.000Z");
    let whole = json!({
        "id": id, "name": "tickets", "description": null, "transport": "STDIO", "command": "tickets-mcp",
        "args": ["--verbose", ""], "url": null, "auth": ["TICKETS_TOKEN"], "assignment_count": 1,
        "agents": [named], "created_by": app.operator.user, "created_at": "2026-06-01T12:00:00.000Z",
        "updated_at": "2026-06-01T12:00:00.000Z", "archived_at": null, "assignments": [assigned],
    });
    assert_eq!(shown.to_string(), whole.to_string(), "every field, in the specification's order");

    let archived = app.operator.post(&format!("{path}/archive"), json!(null)).await.expect(200);
    assert_eq!(archived["archived_at"], "2026-06-01T12:00:00.000Z");
    assert_eq!(app.viewer.get(&path).await.expect(200), archived, "archived ones are readable by id");
    let restored = app.operator.post(&format!("{path}/unarchive"), json!(null)).await.expect(200);
    assert_eq!(restored, shown);

    assert_eq!(app.viewer.get(&format!("/v1/org/{}/mcp/1", app.org)).await.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn stdio_takes_a_command_and_the_others_a_url() {
    let app = TestApp::start().await;
    let cases = [
        (json!({ "transport": "STDIO" }), vec![("/input/command", "REQUIRED")]),
        (
            json!({ "transport": "STDIO", "url": "https://mcp.example.com" }),
            vec![("/input/command", "REQUIRED"), ("/input/url", "NOT_ALLOWED")],
        ),
        (json!({ "transport": "HTTP" }), vec![("/input/url", "REQUIRED")]),
        (
            json!({ "transport": "SSE", "url": "https://mcp.example.com", "command": "x", "args": ["y"] }),
            vec![("/input/command", "NOT_ALLOWED"), ("/input/args", "NOT_ALLOWED")],
        ),
        (json!({ "transport": "HTTP", "url": "ftp://mcp.example.com" }), vec![("/input/url", "NOT_ALLOWED")]),
    ];
    for (mut input, wrong) in cases {
        input["name"] = json!("new");
        assert_eq!(create(&app, &app.operator, input.clone()).await.wrong_inputs(), wrong, "{input}");
    }
    made(&app, json!({ "name": "new", "transport": "SSE", "url": "https://mcp.example.com/sse" })).await;
}

#[tokio::test]
async fn changing_the_transport_needs_its_fields_and_clears_the_rest() {
    let app = TestApp::start().await;
    let id = made(&app, json!({ "name": "new", "transport": "STDIO", "command": "x", "args": ["y"] })).await;
    let wrong = update(&app, id, json!({ "transport": "HTTP", "url": "https://mcp.example.com" })).await;
    assert_eq!(wrong.wrong_inputs(), [("/input/command", "NOT_ALLOWED"), ("/input/args", "NOT_ALLOWED")]);
    let edit = json!({ "transport": "HTTP", "url": "https://mcp.example.com", "command": null, "args": [] });
    let edited = update(&app, id, edit).await.data();
    let now = json!({ "transport": "HTTP", "command": null, "args": [], "url": "https://mcp.example.com", "auth": [] });
    assert_eq!(edited["updateMcpServer"], now);
    assert_eq!(update(&app, id, json!({ "url": null })).await.wrong_inputs(), [("/input/url", "REQUIRED")]);
    assert_eq!(update(&app, id, json!({ "auth": null })).await.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn urls_have_no_password_and_secret_names_are_unique() {
    let app = TestApp::start().await;
    let url = "https://user:hunter2@x.example/mcp";
    let refused = create(&app, &app.operator, json!({ "name": "m", "transport": "HTTP", "url": url })).await;
    assert_eq!(refused.wrong_inputs(), [("/input/url", "NOT_ALLOWED")]);
    assert!(!refused.text.contains("hunter2"), "{}", refused.text);
    let input = json!({ "name": "m", "transport": "STDIO", "command": "c", "auth": ["K", "L", " K "] });
    let refused = create(&app, &app.operator, input).await;
    assert_eq!(refused.wrong_inputs(), [("/input/auth/2", "DUPLICATE")]);
    let id = made(&app, json!({ "name": "m", "transport": "STDIO", "command": "c", "auth": [" K "] })).await;
    let same = update(&app, id, json!({ "auth": ["K"] })).await.data();
    assert_eq!(same["updateMcpServer"]["auth"], json!(["K"]));
}

#[tokio::test]
async fn all_that_is_wrong_is_named_at_once() {
    let app = TestApp::start().await;
    let wrong = json!({ "name": " Muster ", "auth": ["K", "K"], "url": "https://tickets.example/mcp" });
    let mut new = wrong.clone();
    new["transport"] = json!("STDIO");
    let refused = create(&app, &app.operator, new).await;
    let expected = [
        ("/input/name", "NOT_ALLOWED"),
        ("/input/auth/1", "DUPLICATE"),
        ("/input/command", "REQUIRED"),
        ("/input/url", "NOT_ALLOWED"),
    ];
    assert_eq!(refused.wrong_inputs(), expected);
    let id = made(&app, json!({ "name": "tickets", "transport": "STDIO", "command": "c" })).await;
    let refused = update(&app, id, wrong).await;
    assert_eq!(refused.wrong_inputs(), [expected[0], expected[1], expected[3]]);
}
