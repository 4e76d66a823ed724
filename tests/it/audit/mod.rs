//! The audit log: successful operations have an entry, failed ones don't, and no one can read a secret in it.
//! For refusals see `audit/refusals.rs`.

mod chain;
mod forged;
mod law;
mod moving;
mod refusals;

use std::time::Duration;

use muster::core::audit::{self, AuditKey, PublicKey, Report};
use serde_json::{Value, json};

use crate::harness::{Actor, TestApp};

const LOG: &str = "query($o: Id!, $page: Int!, $operation: String, $kind: String, $target: Id, $actor: Id, $from: Timestamp, $to: Timestamp) {
    auditLog(orgId: $o, page: $page, limit: 3, operation: $operation, targetKind: $kind, targetId: $target, actorId: $actor, from: $from, to: $to) {
        total
        data { at actorKind actorId actorName credentialHint operation permission outcome targetKind targetId changes requestId ip organizationId }
    }
}";

async fn log(app: &TestApp, actor: &Actor, filter: Value) -> Value {
    app.seal().await;
    let mut variables = json!({ "o": app.org, "page": 1 });
    for (name, value) in filter.as_object().unwrap() {
        variables[name] = value.clone();
    }
    actor.gql(LOG, variables).await.data()["auditLog"].clone()
}

fn keys(app: &TestApp) -> Vec<PublicKey> {
    AuditKey::known(&app.core.config.keys().unwrap())
}

/// Verifies the organization's log.
async fn verify(app: &TestApp) -> Report {
    audit::verify(&app.core, app.org, &keys(app), None).await.unwrap()
}

async fn checkpoint(app: &TestApp) {
    assert_eq!(audit::checkpoint(&app.core).await.unwrap(), 1);
}

async fn lines(app: &TestApp) -> i64 {
    app.one("SELECT COUNT(*) FROM audit_lines", vec![]).await
}

#[tokio::test]
async fn an_entry_says_who_did_what_to_which_record() {
    let (app, agent) = TestApp::with_agent().await;
    app.clock.advance(Duration::from_secs(1));
    let start = format!("/v1/org/{}/agent/{agent}/start", app.org);
    let request =
        app.operator.request(reqwest::Method::POST, &start).header("x-request-id", "a-request-of-ours");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let page = log(&app, &app.admin, json!({ "kind": "agent" })).await;
    assert_eq!(page["total"], 2);
    assert_eq!(
        page["data"][0],
        json!({
            "at": "2026-06-01T12:00:01.000Z", "actorKind": "USER", "actorId": app.operator.user, "actorName": "operator",
            "credentialHint": null, "operation": "startAgent", "permission": "agent.edit", "outcome": "ALLOWED",
            "targetKind": "agent", "targetId": agent, "changes": { "status": { "before": "STOPPED", "after": "SPAWNING" } },
            "requestId": "a-request-of-ours", "ip": "127.0.0.1", "organizationId": app.org,
        })
    );
    assert_eq!(page["data"][1]["operation"], "createAgent");
    assert_eq!(page["data"][1]["actorKind"], "SYSTEM");
}

#[tokio::test]
async fn a_service_token_is_identified_by_its_hint() {
    let (app, agent) = TestApp::with_agent().await;
    let token = app.token(&["agent.edit"]).await;
    token.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await.expect(200);
    let line = &log(&app, &app.owner, json!({ "operation": "startAgent" })).await["data"][0];
    assert_eq!(line["actorKind"], "SERVICE_TOKEN");
    let hint = line["credentialHint"].as_str().unwrap();
    assert!(hint.len() >= 4 && token.bearer().contains(hint) && hint.len() < 12, "{hint}");
}

#[tokio::test]
async fn the_log_can_be_filtered_and_paged() {
    let (app, one, two) = TestApp::with_two_agents().await;
    app.clock.advance(Duration::from_secs(10));
    for agent in [one, two] {
        app.operator.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await.expect(200);
    }
    let total = |filter| async { log(&app, &app.owner, filter).await["total"].clone() };
    // Each agent has its own server and image.
    assert_eq!(total(json!({})).await, 8);
    assert_eq!(total(json!({ "operation": "startAgent" })).await, 2);
    assert_eq!(total(json!({ "kind": "agent", "target": one })).await, 2);
    assert_eq!(total(json!({ "actor": app.operator.user })).await, 2);
    assert_eq!(total(json!({ "actor": app.viewer.user })).await, 0);
    assert_eq!(total(json!({ "from": "2026-06-01T12:00:10Z" })).await, 2);
    assert_eq!(total(json!({ "to": "2026-06-01T14:00:10+02:00" })).await, 6);
    assert_eq!(log(&app, &app.owner, json!({ "page": 3 })).await["data"].as_array().unwrap().len(), 2);
    let newest = log(&app, &app.owner, json!({})).await;
    assert_eq!(newest["data"][0]["targetId"], two);
    assert_eq!(newest["data"][1]["targetId"], one);
}

#[tokio::test]
async fn failed_operations_have_no_entry() {
    let (app, agent) = TestApp::with_agent().await;
    let before = lines(&app).await;
    let path = |verb: &str| format!("/v1/org/{}/agent/{agent}/{verb}", app.org);
    app.viewer.post(&path("start"), Value::Null).await;
    app.stranger.post(&path("start"), Value::Null).await;
    app.anonymous.post(&path("start"), Value::Null).await;
    let servers = format!("/v1/org/{}/server", app.org);
    app.owner.post(&servers, json!({ "name": "" })).await;
    app.owner.post(&servers, json!({ "name": "ok", "nmae": "x" })).await;
    let pause = "mutation($o: Id!, $i: Id!) { pauseAgent(orgId: $o, id: $i) { id } }";
    assert_eq!(app.owner.gql(pause, json!({ "o": app.org, "i": agent })).await.code(), "AGENT_NOT_RUNNING");
    assert_eq!(app.owner.gql(pause, json!({ "o": app.org, "i": 999_999 })).await.code(), "NOT_FOUND");
    app.owner.patch(&format!("/v1/org/{}/approval/999999/resolve", app.org), Value::Null).await;
    assert_eq!(lines(&app).await, before);
}

#[tokio::test]
async fn secrets_do_not_reach_the_log() {
    let (app, agent) = TestApp::with_agent().await;
    let input = json!({
        "modelCredential": "canary-credential",
        "modelCredentialBaseUrl": "https://models.example/canary-path",
    });
    app.sets_agent(agent, input).await;
    let server =
        app.owner.post(&format!("/v1/org/{}/server", app.org), json!({ "name": "dock" })).await.expect(201);
    let token = server["provisioning_token"].as_str().unwrap();
    let changes: Vec<String> = app.column("SELECT CAST(changes AS TEXT) FROM audit_lines").await;
    assert!(changes.iter().any(|line| line.contains("https://models.example")), "{changes:?}");
    assert!(changes.iter().all(|line| !line.contains("canary") && !line.contains(token)), "{changes:?}");
}

#[tokio::test]
async fn an_organization_reads_only_its_own_log() {
    let app = TestApp::start().await;
    app.agent().await;
    app.seal().await;
    let total = async |actor: &Actor, org: i64| {
        actor.gql(LOG, json!({ "o": org, "page": 1 })).await.data()["auditLog"]["total"].clone()
    };
    assert_eq!(total(&app.stranger, app.other_org).await, 0);
    assert_eq!(total(&app.token(&["audit.view"]).await, app.org).await, 3);
}

#[tokio::test]
async fn an_edit_without_a_change_has_no_entry() {
    let (app, all) = TestApp::populated(1).await;
    let edits = [
        ("Server", all.servers[0], json!({ "description": "once" })),
        ("Image", all.images[0], json!({ "description": "once" })),
        ("Agent", all.agents[0], json!({ "description": "once" })),
        ("Channel", all.channels[0], json!({ "name": "once" })),
        ("Contact", all.contacts[0], json!({ "note": "once" })),
        ("Conversation", all.conversations[0], json!({ "title": "once" })),
        ("Credential", all.credentials[0], json!({ "description": "once" })),
        ("McpServer", all.mcp_servers[0], json!({ "description": "once" })),
        ("Skill", all.skills[0], json!({ "description": "once" })),
        ("Organization", app.org, json!({ "name": "Once" })),
    ];
    for (kind, id, input) in edits {
        let (declared, given) = if kind == "Organization" { ("", "") } else { (", $id: Id!", ", id: $id") };
        let edit = format!(
            "mutation($o: Id!, $i: Update{kind}Input!{declared}) {{ \
             edited: update{kind}(orgId: $o, input: $i{given}) {{ updatedAt }} }}"
        );
        let mut variables = json!({ "o": app.org, "i": input });
        if kind != "Organization" {
            variables["id"] = json!(id);
        }
        let (mut times, mut counts) = (Vec::new(), vec![lines(&app).await]);
        for _ in 0..2 {
            app.clock.advance(Duration::from_secs(1));
            times.push(app.owner.gql(&edit, variables.clone()).await.data()["edited"]["updatedAt"].clone());
            counts.push(lines(&app).await);
        }
        assert_eq!((counts[1] - counts[0], counts[2] - counts[1]), (1, 0), "{kind}");
        assert_eq!(times[0], times[1], "{kind}");
    }
}
