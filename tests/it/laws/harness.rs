//! Tests of the harness: an example of everything it offers.

use std::time::Duration;

use serde_json::json;

use crate::harness::{TestApp, undocumented};

#[tokio::test]
async fn the_actors_are_who_they_say() {
    let app = TestApp::start().await;
    let agents = format!("/v1/org/{}/agent?page=1&limit=10", app.org);
    for member in [&app.owner, &app.admin, &app.operator, &app.viewer] {
        assert_eq!(member.get(&agents).await.expect(200)["total"], 0);
    }
    assert_eq!(app.stranger.get(&agents).await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.anonymous.get(&agents).await.problem(), (401, "UNAUTHENTICATED"));
    let token = app.token(&["agent.view"]).await;
    assert_eq!(token.get(&agents).await.status, 200);
    let agent = app.agent().await;
    let start = format!("/v1/org/{}/agent/{agent}/start", app.org);
    assert_eq!(token.post(&start, json!(null)).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(app.viewer.post(&start, json!(null)).await.problem(), (403, "PERMISSION_DENIED"));
    let started = app.operator.post(&start, json!(null)).await.expect(200);
    assert_eq!(started["status"], "SPAWNING");
}

#[tokio::test]
async fn both_faces_answer() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    assert_ne!(agent, conversation, "ids of different kinds differ");
    let query = "query($o: Id!) { agents(orgId: $o, page: 1, limit: 10) { total data { id createdAt } } }";
    let data = app.owner.gql(query, json!({ "o": app.org })).await.data();
    let list = json!({ "total": 1, "data": [{ "id": agent, "createdAt": "2026-06-01T12:00:00.000Z" }] });
    assert_eq!(data, json!({ "agents": list }));
    assert_eq!(app.stranger.gql(query, json!({ "o": app.org })).await.code(), "NOT_A_MEMBER");
    let other = app.stranger.gql(query, json!({ "o": app.other_org })).await.data();
    assert_eq!(other["agents"]["total"], 0);
}

#[tokio::test]
async fn time_stands_still_until_advanced() {
    let app = TestApp::start().await;
    app.clock.advance(Duration::from_secs(90));
    let agent = app.agent().await;
    let created: i64 = app.one("SELECT created_at FROM agents WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(created, "2026-06-01T12:01:30Z".parse::<muster::base::time::Timestamp>().unwrap().0);
}

#[tokio::test]
async fn every_kind_of_record_can_be_created() {
    let app = TestApp::start().await;
    let (ours, others) = (app.populate(7).await, app.populate_other(1).await);
    assert_eq!((ours.skills.len(), others.skills.len()), (7, 1));
    let agents = format!("/v1/org/{}/agent?page=1&limit=10", app.org);
    assert_eq!(app.viewer.get(&agents).await.expect(200)["total"], 7);
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
