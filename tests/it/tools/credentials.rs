//! Credentials: operations 20 to 22, and what the panel adds. For what they share with skills see
//! `agents/assignments.rs`.

use std::time::Duration;

use muster::{
    base::ids::{CredentialFieldId, OrgId},
    domain::credentials,
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::harness::TestApp;

/// A credential `payments` with the fields `key` and `account`, both with values.
async fn made(app: &TestApp) -> (i64, Value) {
    let body = json!({
        "name": " payments ", "kind": "api-key", "destinations": ["api.example.com", "https://pay.example.com/v1"],
        "fields": [
            { "label": " key ", "value": "canary-of-key" },
            { "label": "account", "type": "text", "value": "canary-of-account", "position": 7 },
        ],
    });
    let created = app.operator.post(&format!("/v1/org/{}/credential", app.org), body).await;
    assert!(!created.text.contains("canary"), "{}", created.text);
    let created = created.expect(201);
    (created["id"].as_i64().unwrap(), created)
}

fn path(app: &TestApp, id: i64) -> String {
    format!("/v1/org/{}/credential/{id}", app.org)
}

/// The stored value of a field, opened in its own context.
async fn stored(app: &TestApp, field: &Value) -> Option<String> {
    let id = field["id"].as_i64().unwrap();
    let sql = "SELECT value_sealed FROM credential_fields WHERE organization_id = $1 AND id = $2";
    let sealed: Option<Vec<u8>> = app.one(sql, vec![app.org.into(), id.into()]).await;
    let sealed = sealed?;
    assert!(!sealed.windows(6).any(|part| part == b"canary"), "the value is not sealed");
    let keys = &app.core.sealing;
    let place = |org, id| credentials::seal_context(OrgId(org), CredentialFieldId(id));
    assert!(keys.open(&sealed, &place(app.org, id + 1)).is_err(), "it opens in another row");
    assert!(keys.open(&sealed, &place(app.other_org, id)).is_err(), "it opens in another organization");
    Some(keys.open(&sealed, &place(app.org, id)).unwrap().expose_secret().to_owned())
}

fn labels(credential: &Value) -> Vec<&str> {
    credential["fields"].as_array().unwrap().iter().map(|field| field["label"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_credentials_values_are_never_returned() {
    let app = TestApp::start().await;
    let (id, created) = made(&app).await;
    let now = "2026-06-01T12:00:00.000Z";
    let field = |n: usize| created["fields"][n]["id"].clone();
    let whole = json!({
        "id": id, "name": "payments", "description": null, "kind": "api-key",
        "destinations": ["api.example.com", "https://pay.example.com/v1"], "assignment_count": 0, "field_count": 2,
        "agents": [], "created_by": app.operator.user, "created_at": now, "updated_at": now, "archived_at": null,
        "fields": [
            { "id": field(0), "label": "key", "type": "secret", "position": 0, "has_value": true },
            { "id": field(1), "label": "account", "type": "text", "position": 7, "has_value": true },
        ],
        "assignments": [], "members": [],
    });
    assert_eq!(created.to_string(), whole.to_string(), "every field, in the specification's order");
    assert_eq!(stored(&app, &created["fields"][0]).await.unwrap(), "canary-of-key");
    assert_eq!(stored(&app, &created["fields"][1]).await.unwrap(), "canary-of-account");
}

#[tokio::test]
async fn editing_fields_replaces_the_list_by_label() {
    let app = TestApp::start().await;
    let (id, created) = made(&app).await;
    app.clock.advance(Duration::from_mins(1));
    let renamed =
        app.operator.patch(&path(&app, id), json!({ "description": "For invoices." })).await.expect(200);
    assert_eq!(renamed["fields"], created["fields"], "fields that are left out of the body stay");

    let body = json!({ "fields": [{ "label": "user" }, { "label": "key" }] });
    let edited = app.operator.patch(&path(&app, id), body).await.expect(200);
    assert_eq!(labels(&edited), ["key", "user"], "a label that is left out is deleted");
    assert_eq!(edited["fields"][1]["has_value"], false);
    let key = &edited["fields"][0];
    assert_eq!(
        (&key["id"], &key["position"]),
        (&created["fields"][0]["id"], &json!(0)),
        "it keeps its position"
    );
    assert_eq!(stored(&app, key).await.unwrap(), "canary-of-key", "a value that is left out is kept");

    let body = json!({ "fields": [
        { "label": "key", "type": "multiline", "value": "canary-again" }, { "label": "user", "value": "canary-of-user" },
    ] });
    let edited = app.operator.patch(&path(&app, id), body).await;
    assert!(!edited.text.contains("canary"), "{}", edited.text);
    let edited = edited.expect(200);
    assert_eq!(edited["fields"][0]["type"], "multiline");
    assert_eq!(stored(&app, &edited["fields"][0]).await.unwrap(), "canary-again");
    assert_eq!(stored(&app, &edited["fields"][1]).await.unwrap(), "canary-of-user");

    let body = json!({ "fields": [{ "label": "key", "value": null }] });
    let edited = app.operator.patch(&path(&app, id), body).await.expect(200);
    assert_eq!(edited["fields"][0]["has_value"], false, "null clears a value");
    assert_eq!(edited["fields"][0]["type"], "multiline", "a type that is left out is kept");
    let edited = app.operator.patch(&path(&app, id), json!({ "fields": [] })).await.expect(200);
    assert_eq!((&edited["fields"], &edited["field_count"]), (&json!([]), &json!(0)));

    let log: Vec<String> = app.column("SELECT CAST(changes AS TEXT) FROM audit_lines").await;
    assert_eq!(log.iter().filter(|changes| changes.contains("\"key\"")).count(), 4, "{log:#?}");
    assert!(!log.iter().any(|changes| changes.contains("canary")), "{log:#?}");
}

#[tokio::test]
async fn a_type_changes_only_if_the_stored_value_fits() {
    let app = TestApp::start().await;
    let (id, created) = made(&app).await;
    let with = async |field: Value| app.operator.patch(&path(&app, id), json!({ "fields": [field] })).await;
    for kind in ["url", "number", "boolean", "json"] {
        let refused = with(json!({ "label": "account", "type": kind })).await;
        assert_eq!(refused.violations(), [("/fields/0/type", "NOT_ALLOWED")], "{kind}");
        assert!(!refused.text.contains("canary"), "{}", refused.text);
    }
    let kept = with(json!({ "label": "account", "type": "secret" })).await.expect(200);
    assert_eq!((&kept["fields"][0]["type"], &kept["fields"][0]["position"]), (&json!("secret"), &json!(7)));
    assert_eq!(stored(&app, &created["fields"][1]).await.unwrap(), "canary-of-account");
    with(json!({ "label": "account", "type": "number", "value": "12" })).await.expect(200);
    with(json!({ "label": "account", "type": "json" })).await.expect(200);
    with(json!({ "label": "account", "type": "boolean", "value": null })).await.expect(200);
    with(json!({ "label": "account", "type": "url" })).await.expect(200);
}

#[tokio::test]
async fn editing_fields_tells_agents_unless_nothing_changes() {
    let app = TestApp::start().await;
    let (id, _) = made(&app).await;
    let agent = app.agent().await;
    let agents = format!("{}/agents", path(&app, id));
    app.operator.put(&agents, json!({ "agent_ids": [agent] })).await.expect(200);
    assert_eq!(app.marked_agents().await, [agent]);
    let same = json!({ "fields": [{ "label": "key" }, { "label": "account", "position": 7 }] });
    app.operator.patch(&path(&app, id), same).await.expect(200);
    assert_eq!(app.marked_agents().await, [0; 0]);
    let less = json!({ "fields": [{ "label": "key" }] });
    app.operator.patch(&path(&app, id), less).await.expect(200);
    assert_eq!(app.marked_agents().await, [agent]);
}

#[tokio::test]
async fn wrong_fields_and_destinations_change_nothing() {
    let app = TestApp::start().await;
    let (id, created) = made(&app).await;
    let body = json!({ "name": "other", "fields": [
        { "label": "key" }, { "label": " key " },
        { "label": "n", "type": "number", "value": "canary" }, { "label": "b", "type": "boolean", "value": "canary" },
        { "label": "j", "type": "json", "value": "canary" }, { "label": "u", "type": "url", "value": "canary" },
    ] });
    let wrong = app.operator.patch(&path(&app, id), body).await;
    assert_eq!(
        wrong.violations(),
        [
            ("/fields/1/label", "DUPLICATE"),
            ("/fields/2/value", "NOT_ALLOWED"),
            ("/fields/3/value", "NOT_ALLOWED"),
            ("/fields/4/value", "NOT_ALLOWED"),
            ("/fields/5/value", "NOT_ALLOWED")
        ]
    );
    assert!(!wrong.text.contains("canary"), "{}", wrong.text);
    let body = json!({ "destinations": ["api.example.com", "not a host", "https://me:canary@example.com"] });
    let wrong = app.operator.patch(&path(&app, id), body).await;
    assert_eq!(wrong.violations(), [("/destinations/1", "NOT_ALLOWED"), ("/destinations/2", "NOT_ALLOWED")]);
    assert!(!wrong.text.contains("canary"), "{}", wrong.text);
    let large = json!({ "fields": [{ "label": "key", "value": "ä".repeat(40_000) }] });
    assert_eq!(
        app.operator.patch(&path(&app, id), large).await.violations(),
        [("/fields/0/value", "TOO_LONG")]
    );
    let many: Vec<_> = (0..101).map(|n| json!({ "label": format!("field {n}") })).collect();
    let wrong = app.operator.patch(&path(&app, id), json!({ "fields": many })).await;
    assert_eq!(wrong.violations(), [("/fields", "TOO_LONG")]);
    let wrong = app.operator.patch(&path(&app, id), json!({ "kind": "apikey" })).await;
    assert_eq!(wrong.violations(), [("/kind", "NOT_ALLOWED")]);

    let read =
        "query($o: Id!, $id: Id!) { credential(orgId: $o, id: $id) { name destinations fields { id } } }";
    let shown = app.viewer.gql(read, json!({ "o": app.org, "id": id })).await.data();
    assert_eq!(shown["credential"]["name"], created["name"]);
    assert_eq!(shown["credential"]["destinations"], created["destinations"]);
    assert_eq!(shown["credential"]["fields"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_new_credential_needs_valid_input() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/credential", app.org);
    let wrong = app.operator.post(&path, json!({})).await;
    assert_eq!(wrong.violations(), [("/name", "REQUIRED"), ("/kind", "REQUIRED"), ("/fields", "REQUIRED")]);
    let least = json!({ "name": "empty", "kind": "custom", "fields": [] });
    app.operator.post(&path, least.clone()).await.expect(201);
    assert_eq!(app.operator.post(&path, least).await.problem(), (409, "NAME_TAKEN"));
    let twice = json!({ "name": "two", "kind": "custom", "fields": [],
                        "destinations": [" a.example.com ", "a.example.com", "*.example.com:8443"] });
    let created = app.operator.post(&path, twice).await.expect(201);
    assert_eq!(created["destinations"], json!(["a.example.com", "*.example.com:8443"]));
}

#[tokio::test]
async fn the_agents_of_a_credential_are_replaced_as_a_list() {
    let app = TestApp::start().await;
    let (id, _) = made(&app).await;
    let (first, second, foreign) = (app.agent().await, app.agent().await, app.other_agent().await);
    let path = format!("{}/agents", path(&app, id));
    let put = app.operator.put(&path, json!({ "agent_ids": [second, first, first] })).await.expect(200);
    let assigned: Vec<_> = put["assignments"].as_array().unwrap().iter().map(|agent| &agent["id"]).collect();
    assert_eq!(assigned, [&json!(first), &json!(second)]);
    assert_eq!(put["assignment_count"], 2);
    let refused = app.operator.put(&path, json!({ "agent_ids": [first, foreign] })).await;
    assert_eq!(refused.violations(), [("/agent_ids/1", "NOT_FOUND")]);
    // JSON has only one kind of number.
    let pointed = app.operator.put(&path, json!({ "agent_ids": [first as f64] })).await.expect(200);
    assert_eq!(pointed["agents"][0]["id"], json!(first));
    let refused = app.operator.put(&path, json!({ "agent_ids": [first as f64 + 0.5] })).await;
    assert_eq!(refused.violations(), [("/agent_ids/0", "WRONG_TYPE")]);
    let put = app.operator.put(&path, json!({ "agent_ids": [second] })).await.expect(200);
    assert_eq!(put["agents"].as_array().unwrap().len(), 1);
    assert_eq!(app.operator.put(&path, json!({})).await.violations(), [("/agent_ids", "REQUIRED")]);
}

#[tokio::test]
async fn the_members_of_a_credential_are_replaced_as_a_list() {
    let app = TestApp::start().await;
    let (id, _) = made(&app).await;
    let query = "mutation($o: Id!, $id: Id!, $i: SetMembersInput!) { setCredentialMembers(orgId: $o, id: $id, input: $i) { \
                 members { userId name email avatarUrl grantedAt } } }";
    let set = |users: Vec<Option<i64>>| json!({ "o": app.org, "id": id, "i": { "userIds": users } });
    let (operator, viewer) = (app.operator.user, app.viewer.user);
    let granted = app.operator.gql(query, set(vec![viewer, operator, viewer])).await.data();
    let members = &granted["setCredentialMembers"]["members"];
    assert_eq!(
        members[1],
        json!({ "userId": viewer, "name": "viewer", "email": "viewer@example.com", "avatarUrl": null,
                "grantedAt": "2026-06-01T12:00:00.000Z" })
    );
    assert_eq!(members.as_array().unwrap().len(), 2);
    let refused = app.operator.gql(query, set(vec![operator, app.stranger.user])).await;
    assert_eq!(refused.wrong_inputs(), [("/input/userIds/1", "NOT_FOUND")]);
    let granted = app.operator.gql(query, set(vec![operator])).await.data();
    assert_eq!(granted["setCredentialMembers"]["members"][0]["userId"], json!(operator));
}

#[tokio::test]
async fn a_credential_shows_when_it_was_last_used() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (id, _) = made(&app).await;
    let last = async || {
        let query = "query($o: Id!, $c: Id!) { credential(orgId: $o, id: $c) { lastUsedAt } }";
        let read = app.viewer.gql(query, json!({ "o": app.org, "c": id })).await.data();
        read["credential"]["lastUsedAt"].clone()
    };
    let used = async || {
        app.clock.advance(Duration::from_secs(1));
        let ids = [id, id + 1];
        host.tell(async |tx, from| credentials::record_use(tx, from, &ids).await).await.unwrap();
    };
    used().await;
    assert_eq!(last().await, Value::Null, "the agent does not have it");
    let agents = format!("{}/agents", path(&app, id));
    app.operator.put(&agents, json!({ "agent_ids": [host.agent] })).await.expect(200);
    host.launch_plan().await.unwrap();
    assert_eq!(last().await, Value::Null, "the host has not used it");
    used().await;
    assert_eq!(last().await, "2026-06-01T12:00:02.000Z");
    let edit = "mutation($o: Id!, $c: Id!) { updateCredential(orgId: $o, id: $c, input: {}, agentMayRead: true) { id } }";
    app.operator.gql(edit, json!({ "o": app.org, "c": id })).await.data();
    app.clock.advance(Duration::from_secs(1));
    host.launch_plan().await.unwrap();
    assert_eq!(last().await, "2026-06-01T12:00:03.000Z", "the agent may read what it is given");
}
