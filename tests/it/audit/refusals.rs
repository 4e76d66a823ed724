//! Refusals have an entry: who, with what, which operation, why, from where. For what was done see `audit/law.rs`.

use std::time::Duration;

use muster::core::audit;
use serde_json::{Value, json};

use crate::harness::TestApp;

const REFUSED: &str = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 50, outcome: REFUSED) { total data {
    operation permission decidedBy outcome code count actorKind actorId actorName credentialKind credentialId ip lastAt requestId } } }";
const REFRESH: &str = "mutation($t: SecretString!) { refreshSession(refreshToken: $t) { refreshToken } }";

async fn write(app: &TestApp) -> usize {
    audit::write_refusals(&app.core, false).await.unwrap()
}

async fn refused(app: &TestApp) -> Value {
    write(app).await;
    app.seal().await;
    app.owner.gql(REFUSED, json!({ "o": app.org })).await.data()["auditLog"].clone()
}

/// The instance's own entries, as `operation code target_id`.
async fn instance(app: &TestApp) -> Vec<String> {
    write(app).await;
    app.column(
        "SELECT operation || ' ' || COALESCE(code, '-') || ' ' || COALESCE(CAST(target_id AS TEXT), '-') \
         FROM audit_lines WHERE organization_id IS NULL ORDER BY id",
    )
    .await
}

#[tokio::test]
async fn a_refusal_has_an_entry_on_either_face() {
    let (app, agent) = TestApp::with_agent().await;
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    assert_eq!(app.viewer.post(&path, Value::Null).await.status, 403);
    let delete = "mutation($o: Id!, $i: Id!) { d: deleteAgent(orgId: $o, id: $i) }";
    assert_eq!(app.viewer.gql(delete, json!({ "o": app.org, "i": agent })).await.code(), "PERMISSION_DENIED");
    let page = refused(&app).await;
    assert_eq!(page["total"], 2, "{page:#}");
    let line =
        page["data"].as_array().unwrap().iter().find(|line| line["operation"] == "startAgent").unwrap();
    assert_eq!(line["permission"], "agent.edit");
    assert_eq!((&line["code"], &line["outcome"]), (&json!("PERMISSION_DENIED"), &json!("REFUSED")));
    assert_eq!((&line["count"], &line["lastAt"]), (&json!(1), &Value::Null));
    assert_eq!((&line["actorKind"], &line["actorId"]), (&json!("USER"), &json!(app.viewer.user)));
    assert_eq!(
        (&line["credentialKind"], &line["credentialId"]),
        (&json!("SESSION"), &json!(app.viewer.user))
    );
    assert_eq!(line["ip"], "127.0.0.1");
    assert!(line["requestId"].as_str().is_some_and(|id| id.len() > 10));
    let operations: Vec<_> = page["data"].as_array().unwrap().iter().map(|line| &line["operation"]).collect();
    assert!(
        operations.contains(&&json!("deleteAgent")),
        "by the field's name, not its alias: {operations:?}"
    );
}

#[tokio::test]
async fn an_operations_refusal_is_logged_with_the_missing_right() {
    let (app, agent) = TestApp::with_agent().await;
    let promote =
        "mutation($o: Id!, $u: Id!) { updateMember(orgId: $o, userId: $u, input: { role: OWNER }) { role } }";
    let promoted = app.admin.gql(promote, json!({ "o": app.org, "u": app.admin.user })).await;
    assert_eq!(promoted.code(), "PERMISSION_DENIED");
    for setting in ["networkPrivileged: true", "monthlyBudgetMicro: 1"] {
        let edit = format!(
            "mutation($o: Id!, $a: Id!) {{ updateAgent(orgId: $o, id: $a, input: {{ {setting} }}) {{ id }} }}"
        );
        let edited = app.operator.gql(&edit, json!({ "o": app.org, "a": agent })).await;
        assert_eq!(edited.code(), "PERMISSION_DENIED", "{setting}");
    }
    let path = format!("/v1/org/{}/credential", app.org);
    let fields = json!([{ "label": "token", "value": "x" }]);
    let credential = json!({ "name": "Shop", "kind": "bearer-token", "fields": fields });
    let credential = app.operator.post(&path, credential).await.expect(201);
    let token = app.token(&["credential.edit", "credential.view"]).await;
    let foreign = json!({ "destinations": ["https://evil.example"] });
    let added = token.patch(&format!("{path}/{}", credential["id"]), foreign).await;
    assert_eq!(added.problem(), (403, "PERMISSION_DENIED"));
    let page = refused(&app).await;
    let mut lines: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap();
            // A line that allows the operation can't have decided a refusal.
            let is_refused = line["decidedBy"].as_str().is_none_or(|line| !line.ends_with("allow"));
            assert!(is_refused, "{line}");
            format!("{} {} {} {}", text("operation"), text("permission"), text("actorKind"), line["count"])
        })
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "updateAgent network.edit USER 1",
            "updateAgent organization.edit USER 1",
            "updateCredential credential.edit SERVICE_TOKEN 1",
            "updateMember member.edit USER 1",
        ]
    );
}

#[tokio::test]
async fn an_unconfirmed_address_and_a_reached_limit_are_refusals() {
    let (app, agent) = TestApp::with_agent().await;
    let unconfirmed = app.person("ADMIN", false).await;
    let channel = json!({ "name": "hook", "transport": "WEBHOOK", "agent_id": agent, "webhook": { "outbound_url": "https://h.example" } });
    let path = format!("/v1/org/{}/channel", app.org);
    assert_eq!(unconfirmed.post(&path, channel).await.problem(), (403, "EMAIL_NOT_CONFIRMED"));
    app.execute("UPDATE organizations SET max_servers_override = 1", vec![]).await;
    let server = format!("/v1/org/{}/server", app.org);
    assert_eq!(app.owner.post(&server, json!({ "name": "x" })).await.problem(), (403, "PLAN_LIMIT_REACHED"));
    let page = refused(&app).await;
    let mut codes: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {}", line["operation"].as_str().unwrap(), line["code"].as_str().unwrap()))
        .collect();
    codes.sort();
    assert_eq!(codes, ["createChannel EMAIL_NOT_CONFIRMED", "createServer PLAN_LIMIT_REACHED"]);
}

#[tokio::test]
async fn invalid_input_and_missing_records_are_not_refusals() {
    let app = TestApp::start().await;
    app.owner.post(&format!("/v1/org/{}/server", app.org), json!({ "nmae": "x" })).await;
    app.owner.post(&format!("/v1/org/{}/agent/999999/start", app.org), Value::Null).await;
    app.anonymous.get(&format!("/v1/org/{}", app.org)).await;
    assert_eq!(write(&app).await, 0);
}

#[tokio::test]
async fn a_stranger_appears_only_in_the_instance_log() {
    let app = TestApp::start().await;
    assert_eq!(app.stranger.get(&format!("/v1/org/{}", app.org)).await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.stranger.get("/v1/org/999999").await.problem(), (403, "NOT_A_MEMBER"));
    let token = app.token_of(app.other_org, &["agent.view"]).await;
    assert_eq!(token.get(&format!("/v1/org/{}", app.org)).await.problem(), (403, "NOT_A_MEMBER"));
    let lines = instance(&app).await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.contains(&format!("organization NOT_A_MEMBER {}", app.org)));
    assert_eq!(refused(&app).await["total"], 0, "a stranger can't fill the organization's log");
}

#[tokio::test]
async fn a_bad_credential_has_an_entry_without_the_credential() {
    let app = TestApp::start().await;
    let bad = app.anonymous.with_bearer("mst_canary_not_a_token");
    assert_eq!(bad.get(&format!("/v1/org/{}", app.org)).await.problem(), (401, "UNAUTHENTICATED"));
    bad.gql("{ viewer { user { id } } }", json!({})).await;
    assert_eq!(instance(&app).await, ["authenticate UNAUTHENTICATED -"]);
    assert_eq!(app.one::<i64>("SELECT count FROM audit_lines", vec![]).await, 2);
    let text: Vec<String> = app.column("SELECT CAST(changes AS TEXT) || operation FROM audit_lines").await;
    assert!(text.iter().all(|line| !line.contains("canary")));
}

#[tokio::test]
async fn a_flood_is_few_entries_and_dropped_ones_are_counted() {
    let app = TestApp::start().await;
    for n in 0..40 {
        let answer = app.viewer.post(&format!("/v1/org/{}/agent/{n}/start", app.org), Value::Null).await;
        assert_eq!(answer.status, 403);
    }
    assert_eq!(write(&app).await, 1);
    for _ in 0..10 {
        app.viewer.post(&format!("/v1/org/{}/agent/7/start", app.org), Value::Null).await;
    }
    assert_eq!(write(&app).await, 0, "the rest of the burst waits");
    app.clock.advance(Duration::from_secs(61));
    assert_eq!(write(&app).await, 1);
    let counts: Vec<i64> =
        app.column("SELECT count FROM audit_lines WHERE code IS NOT NULL ORDER BY id").await;
    assert_eq!(counts, [40, 10]);
    // Strangers from one IP address: each organization they try is another entry, up to a limit.
    for org in 1..100 {
        app.stranger.get(&format!("/v1/org/{}", 5_000 + org)).await;
    }
    let written = write(&app).await;
    assert!((2..60).contains(&written), "{written}");
    let lost: i64 = app.one("SELECT count FROM audit_lines WHERE operation = 'auditOverflow'", vec![]).await;
    let noted: i64 = app
        .one("SELECT CAST(SUM(count) AS BIGINT) FROM audit_lines WHERE code = 'NOT_A_MEMBER'", vec![])
        .await;
    assert_eq!(lost + noted, 99);
}

#[tokio::test]
async fn rate_limited_callers_have_an_entry() {
    let app = TestApp::start_with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.reads_per_minute = 2;
    })
    .await;
    let token = app.token(&["organization.view"]).await;
    for _ in 0..6 {
        token.get(&format!("/v1/org/{}", app.org)).await;
    }
    assert_eq!(write(&app).await, 1);
    let sql = "SELECT count FROM audit_lines WHERE code = 'RATE_LIMITED' AND organization_id = $1 AND actor_kind = 'SERVICE_TOKEN'";
    assert_eq!(app.one::<i64>(sql, vec![app.org.into()]).await, 4);
}

#[tokio::test]
async fn shutdown_writes_the_remaining_entries() {
    let app = TestApp::start().await;
    app.viewer.post(&format!("/v1/org/{}/agent/7/start", app.org), Value::Null).await;
    assert_eq!(write(&app).await, 1);
    app.viewer.post(&format!("/v1/org/{}/agent/7/start", app.org), Value::Null).await;
    app.core.tasks.stopping.cancel();
    assert_eq!(audit::write_refusals(&app.core, true).await.unwrap(), 1);
}

#[tokio::test]
async fn signing_in_and_out_and_failing_to_have_entries() {
    let app = TestApp::start().await;
    let user = app.user("someone@example.org", true).await;
    assert_eq!(app.sign_in("someone@example.org", "canary password").await.code(), "SIGN_IN_FAILED");
    assert_eq!(app.sign_in("canary@example.org", "canary password").await.code(), "SIGN_IN_FAILED");
    let opened = app.sign_in("someone@example.org", "correct horse").await.data()["signIn"].clone();
    let refreshed = app.anonymous.gql(REFRESH, json!({ "t": opened["refreshToken"] })).await.data();
    assert!(refreshed["refreshSession"]["refreshToken"].is_string());
    let again = app.sign_in("someone@example.org", "correct horse").await.data()["signIn"].clone();
    let person = app.anonymous.with_bearer(again["accessToken"].as_str().unwrap());
    person.gql("mutation { signOut }", json!({})).await.data();
    // The used refresh token again, too late for a lost answer: the family ends, and the owner is notified.
    app.clock.advance(std::time::Duration::from_secs(10));
    assert_eq!(
        app.anonymous.gql(REFRESH, json!({ "t": opened["refreshToken"] })).await.code(),
        "UNAUTHENTICATED"
    );
    let mut lines = instance(&app).await;
    lines.sort();
    let expected = [
        format!("createUser - {user}"),
        format!("refreshSession - {user}"),
        format!("refreshTokenReused - {user}"),
        format!("signIn - {user}"),
        format!("signIn - {user}"),
        "signIn SIGN_IN_FAILED -".to_owned(),
        format!("signIn SIGN_IN_FAILED {user}"),
        format!("signOut - {user}"),
    ];
    assert_eq!(lines, expected);
    let text: Vec<String> = app
        .column("SELECT CAST(changes AS TEXT) || COALESCE(actor_name, '') || COALESCE(request_id, '') FROM audit_lines")
        .await;
    assert!(text.iter().all(|line| !line.contains("canary")), "{text:?}");
}
