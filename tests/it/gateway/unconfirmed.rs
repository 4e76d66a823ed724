//! Reports of an unconfirmed host: they have no effect if they are about launches whose plan it never got, or about
//! models, whose keys it never has.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    agents::revisions::{assign, credential, mcp_server},
    gateway::confirmed::joined_by,
    harness::{TestApp, gateway::Host},
};

const SCHEMA: &str = include_str!("../../../schema/gateway.json");
const TABLES: &str = include_str!("../../../migrations/schema.sqlite.sql");
const TABLES_TOO: &str = include_str!("../../../migrations/schema.postgres.sql");

/// All kinds of events, as the schema has them.
fn kinds() -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let all = schema["$defs"]["HostEvent"]["oneOf"].as_array().unwrap();
    all.iter().map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap().to_owned()).collect()
}

/// An event of a kind, which would change something if it counted.
fn event(kind: &str, conversation: i64, server: i64) -> Value {
    let usage = json!({ "input": 100_000_000, "output": 100_000_000 });
    let fields = match kind {
        "STARTED" => json!({ "container_id": "c", "program": null, "model": null }),
        "ENGINE_AWAY" | "AUTH_REQUIRED" => json!({ "detail": "forged" }),
        "ENDED" => json!({ "reason": "EXITED", "code": 1, "signal": null, "detail": "forged" }),
        "SYNCED" => json!({}),
        "LACKS" => json!({ "what": "forged" }),
        "SESSION" => json!({ "conversation_id": conversation, "session": "forged" }),
        "OFFERED" => {
            let offer = json!({ "id": "forged", "name": "forged", "description": null, "current": true });
            json!({ "models": [offer], "modes": [] })
        }
        "TURN_STARTED" => json!({ "turn_id": 1 }),
        "MESSAGE" => {
            let content = json!({ "kind": "TEXT", "text": "forged" });
            json!({ "conversation_id": conversation, "turn_id": null, "key": "forged", "content": content })
        }
        "TURN_ENDED" => {
            json!({ "turn_id": 1, "outcome": "DONE", "error": null, "model": null, "usage": usage, "context_tokens": null })
        }
        "ASKED" => {
            let action = json!({ "kind": "ACTION", "tool": null, "tool_kind": "execute", "title": "forged", "input": {} });
            json!({ "request": "1.1", "conversation_id": conversation, "turn_id": null, "asked": action })
        }
        "WITHDRAWN" => json!({ "request": "1.1" }),
        "DELIVERED" => json!({ "approval_id": 1, "without_text": false }),
        "NOT_WAITING" => json!({ "approval_id": 1 }),
        "MODEL_CALLED" => json!({
            "turn_id": null, "provider": "anthropic", "model": "claude-opus-4-5", "started_at": 1, "millis": 1,
            "status": 200, "usage": usage, "lease_id": null,
        }),
        "LEASE_RETURNED" => json!({ "lease_id": 1 }),
        "LIMITED" => json!({ "credential_id": null, "model": "m", "until": null, "detail": "forged" }),
        "UNREACHED" => {
            json!({ "destination": { "host": "forged.example", "port": 443 }, "reason": "forged", "count": 1 })
        }
        "CREDENTIALS_USED" => json!({ "credential_ids": (1..10).collect::<Vec<i64>>() }),
        "MCP_SERVER" => {
            json!({ "server_id": server, "state": "FAILED", "error": "forged", "stderr": "forged", "tools": [] })
        }
        "MCP_TOOLS" => {
            let tool = json!({ "name": "forged", "digest": "forged", "definition": {} });
            json!({ "server_id": server, "is_first": true, "tools": [tool] })
        }
        "MCP_TESTED" => {
            let names = ["forged"];
            json!({ "server_id": server, "listed": names, "protocol": null, "program": null, "error": "forged" })
        }
        "BACKED_UP" => json!({ "backup_id": 1, "bytes": 1, "sha256": null, "error": null }),
        "RESTORED" => json!({ "backup_id": 1, "error": null }),
        "REFUSED" => json!({ "command_id": 1, "reason": "STALE" }),
        other => panic!("what would change with {other}?"),
    };
    let mut event = fields;
    event["kind"] = json!(kind);
    event
}

/// Rows of all tables, and what an agent's own says.
async fn everything(app: &TestApp, agent: i64) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let tables = TABLES.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next());
    for table in tables.filter(|table| TABLES_TOO.contains(&format!("CREATE TABLE {table} ("))) {
        let count: i64 = app.one(&format!("SELECT COUNT(*) FROM {table}"), vec![]).await;
        found.insert(table.to_owned(), count.to_string());
    }
    for column in ["status", "status_reason", "status_detail", "launch_lacks", "container_id"] {
        let sql = format!("SELECT {column} FROM agents WHERE id = $1");
        let value: Option<String> = app.one(&sql, vec![agent.into()]).await;
        found.insert(format!("agents.{column}"), value.unwrap_or_default());
    }
    let sql = "SELECT COUNT(*) FROM mcp_server_agents WHERE state IS NOT NULL OR tested_at IS NOT NULL";
    found.insert("states".to_owned(), app.one::<i64>(sql, vec![]).await.to_string());
    let sql = "SELECT COUNT(*) FROM credentials WHERE last_used_at IS NOT NULL";
    found.insert("uses".to_owned(), app.one::<i64>(sql, vec![]).await.to_string());
    found
}

async fn calls(app: &TestApp) -> i64 {
    app.one("SELECT COUNT(*) FROM model_calls", vec![]).await
}

#[tokio::test]
async fn no_event_counts_of_a_launch_elsewhere() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let tools = mcp_server(&app).await;
    assign(&app, "McpServer", tools, &[agent]).await;
    assign(&app, "Credential", credential(&app).await, &[agent]).await;

    // On a confirmed host the same events count.
    let mut line = app.host_of(agent).await.connect().await;
    let generation = app.start_agent(agent).await;
    for kind in ["STARTED", "MODEL_CALLED"] {
        line.reports((agent, generation), event(kind, conversation, tools)).await;
    }
    assert_eq!(calls(&app).await, 1);
    drop(line);

    let server = app.server().await;
    let token = app.token(&["server.view", "server.edit"]).await;
    let host = joined_by(&app, &token, server).await;
    let sql = "UPDATE agents SET server_id = $2, status = 'STOPPED' WHERE id = $1";
    app.execute(sql, vec![agent.into(), server.into()]).await;
    let before = everything(&app, agent).await;
    let mut seq = 0;
    for kind in kinds() {
        for generation in [0, generation] {
            // Not too many foreign ones in a connection.
            let mut line = Host { journal: [0, seq], ..host.clone() }.connect().await;
            seq = line.reports((agent, generation), event(&kind, conversation, tools)).await;
            assert_eq!(everything(&app, agent).await, before, "{kind} of launch {generation}");
        }
    }
}

#[tokio::test]
async fn models_are_not_called_where_no_key_is() {
    let app = TestApp::start().await;
    let (agent, server) = (app.agent().await, app.server().await);
    let token = app.token(&["server.view", "server.edit"]).await;
    let host = joined_by(&app, &token, server).await;
    app.execute("UPDATE agents SET server_id = $2 WHERE id = $1", vec![agent.into(), server.into()]).await;
    let mut line = host.connect().await;
    // Without secrets it runs there.
    let generation = app.start_agent(agent).await;
    let mut seq = line.reports((agent, generation), event("STARTED", 1, 1)).await;
    let status: String = app.one("SELECT status FROM agents WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(status, "RUNNING");
    let before = everything(&app, agent).await;
    for kind in ["MODEL_CALLED", "LIMITED", "AUTH_REQUIRED", "LEASE_RETURNED"] {
        let mut line = Host { journal: [0, seq], ..host.clone() }.connect().await;
        seq = line.reports((agent, generation), event(kind, 1, 1)).await;
        assert_eq!(everything(&app, agent).await, before, "{kind}");
    }
    let mut line = Host { journal: [0, seq], ..host.clone() }.connect().await;
    let wanted = json!({ "kind": "LEASE", "model": "claude-opus-4-5", "question": 1, "finished": [] });
    let ask =
        json!({ "frame": "ASK", "id": 1, "agent_id": agent, "generation": generation, "wanted": wanted });
    line.send(ask).await;
    let given = line.wait_for("TOLD").await["given"].clone();
    assert!(given["reason"].as_str().unwrap().contains("not confirmed"), "{given}");
    assert_eq!(everything(&app, agent).await, before);

    // A person confirms it, and it counts.
    let show = "query($o: Id!, $s: Id!) { server(orgId: $o, id: $s) { host { join } } }";
    let join = app.owner.gql(show, json!({ "o": app.org, "s": server })).await.data();
    let confirm = "mutation($o: Id!, $s: Id!, $j: Int!) { confirmHost(orgId: $o, id: $s, join: $j) { id } }";
    let args = json!({ "o": app.org, "s": server, "j": join["server"]["host"]["join"] });
    app.owner.gql(confirm, args).await.data();
    line.reports((agent, generation), event("MODEL_CALLED", 1, 1)).await;
    assert_eq!(calls(&app).await, 1);
}
