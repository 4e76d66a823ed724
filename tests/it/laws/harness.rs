//! Tests of the harness.

use std::time::Duration;

use serde_json::json;

use crate::harness::{TestApp, undocumented};

#[tokio::test]
async fn time_stands_until_advanced_and_ids_of_kinds_differ() {
    let app = TestApp::start().await;
    app.clock.advance(Duration::from_secs(90));
    let agent = app.agent().await;
    let created: i64 = app.one("SELECT created_at FROM agents WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(created, "2026-06-01T12:01:30Z".parse::<muster::base::time::Timestamp>().unwrap().0);
    assert_ne!(agent, app.conversation(agent).await);
}

#[test]
fn an_undocumented_answer_is_detected() {
    let said = |method: &str, path: &str, status: u16, code: &str| {
        let body = json!({ "code": code }).to_string();
        undocumented(&method.parse().unwrap(), path, status.try_into().unwrap(), body.as_bytes())
    };
    assert_eq!(said("POST", "/v1/org/1/agent/2/start", 200, ""), None);
    assert_eq!(said("POST", "/v1/org/1/agent/2/start", 409, "AGENT_ALREADY_RUNNING"), None);
    let wrong = said("POST", "/v1/org/1/agent/2/start", 409, "ARCHIVED");
    assert_eq!(wrong.as_deref(), Some("StartAgent: 409 ARCHIVED"));
    let wrong = said("GET", "/v1/org/1", 201, "");
    assert_eq!(wrong.as_deref(), Some("GetOrganization: 201 "));
    // Paths outside the document aren't checked.
    assert_eq!(said("DELETE", "/v1/org/1", 405, "METHOD_NOT_ALLOWED"), None);
    assert_eq!(said("POST", "/graphql", 200, "ARCHIVED"), None);
}
