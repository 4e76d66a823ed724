//! Service tokens: rotated with an overlap, edited, and never more powerful than their editor.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp, until};

const FIELDS: &str = "id name hint permissions expiresAt lastUsedAt rotatedAt previousHint previousExpiresAt previousLastUsedAt";

async fn create(app: &TestApp, actor: &Actor, input: Value) -> Answer {
    let query = format!(
        "mutation($o: Id!, $i: CreateServiceTokenInput!) {{ createServiceToken(orgId: $o, input: $i) {{ token {FIELDS} }} }}"
    );
    actor.gql(&query, json!({ "o": app.org, "i": input })).await
}

async fn rotate(app: &TestApp, actor: &Actor, id: &Value, input: Value) -> Answer {
    let query = format!(
        "mutation($o: Id!, $id: Id!, $i: RotateServiceTokenInput) {{ rotateServiceToken(orgId: $o, id: $id, input: $i) {{ token {FIELDS} }} }}"
    );
    actor.gql(&query, json!({ "o": app.org, "id": id, "i": input })).await
}

async fn update(app: &TestApp, actor: &Actor, id: &Value, input: Value) -> Answer {
    let query = format!(
        "mutation($o: Id!, $id: Id!, $i: UpdateServiceTokenInput!) {{ updateServiceToken(orgId: $o, id: $id, input: $i) {{ {FIELDS} }} }}"
    );
    actor.gql(&query, json!({ "o": app.org, "id": id, "i": input })).await
}

async fn made(app: &TestApp, permissions: &[&str], expires_at: Value) -> (Value, Actor) {
    let input = json!({ "name": "ci", "permissions": permissions, "expiresAt": expires_at });
    let issued = create(app, &app.owner, input).await.data()["createServiceToken"].clone();
    let actor = app.anonymous.with_bearer(issued["token"].as_str().unwrap());
    (issued, actor)
}

async fn listed(app: &TestApp) -> Value {
    let query = format!(
        "query($o: Id!) {{ serviceTokens(orgId: $o, page: 1, limit: 50) {{ data {{ {FIELDS} }} }} }}"
    );
    app.admin.gql(&query, json!({ "o": app.org })).await.data()["serviceTokens"]["data"][0].clone()
}

async fn used(app: &TestApp, actor: &Actor) -> (u16, Option<String>) {
    let answer = actor.get(&format!("/v1/org/{}", app.org)).await;
    (answer.status, answer.body["code"].as_str().map(str::to_owned))
}

/// The last use is recorded in the background.
async fn noted(app: &TestApp, key: &str) -> Value {
    until(key, async || !listed(app).await[key].is_null()).await;
    listed(app).await[key].clone()
}

#[tokio::test]
async fn the_old_secret_works_during_the_overlap() {
    let app = TestApp::start().await;
    let (issued, old) = made(&app, &["organization.view"], Value::Null).await;
    assert_eq!(used(&app, &old).await.0, 200);
    noted(&app, "lastUsedAt").await;
    app.clock.advance(Duration::from_hours(2));
    let rotated = rotate(&app, &app.admin, &issued["id"], json!({ "overlapSeconds": 3600 })).await.data()
        ["rotateServiceToken"]
        .clone();
    let new = app.anonymous.with_bearer(rotated["token"].as_str().unwrap());
    assert_eq!((&rotated["previousHint"], &rotated["id"]), (&issued["hint"], &issued["id"]));
    assert_eq!(rotated["previousExpiresAt"], "2026-06-01T15:00:00.000Z");
    assert_eq!(
        (&rotated["previousLastUsedAt"], &rotated["lastUsedAt"]),
        (&json!("2026-06-01T12:00:00.000Z"), &Value::Null)
    );
    assert_eq!((used(&app, &old).await.0, used(&app, &new).await.0), (200, 200));
    let is_noted = async || listed(&app).await["previousLastUsedAt"] == "2026-06-01T14:00:00.000Z";
    until("the old secret's last use", is_noted).await;
    assert_eq!(noted(&app, "lastUsedAt").await, "2026-06-01T14:00:00.000Z");
    app.clock.advance(Duration::from_hours(1));
    assert_eq!(used(&app, &old).await, (401, Some("TOKEN_EXPIRED".to_owned())));
    assert_eq!(used(&app, &new).await.0, 200);
    // Neither the list nor the database contains a secret.
    let list = listed(&app).await.to_string();
    for secret in [old.bearer(), new.bearer()] {
        assert!(!list.contains(secret));
    }
}

#[tokio::test]
async fn without_an_overlap_the_old_secret_ends_at_once() {
    let app = TestApp::start().await;
    let (issued, first) = made(&app, &["organization.view"], Value::Null).await;
    assert_eq!(used(&app, &first).await.0, 200);
    let rotated = rotate(&app, &app.owner, &issued["id"], json!({ "overlapSeconds": 0 })).await.data();
    let second = app.anonymous.with_bearer(rotated["rotateServiceToken"]["token"].as_str().unwrap());
    assert_eq!((used(&app, &first).await.0, used(&app, &second).await.0), (401, 200));
    // A day by default; of three secrets, the last two work.
    let rotated =
        rotate(&app, &app.owner, &issued["id"], Value::Null).await.data()["rotateServiceToken"].clone();
    assert_eq!(rotated["previousExpiresAt"], "2026-06-02T12:00:00.000Z");
    let third = app.anonymous.with_bearer(rotated["token"].as_str().unwrap());
    assert_eq!((used(&app, &second).await.0, used(&app, &third).await.0), (200, 200));
    assert_eq!(used(&app, &first).await, (401, Some("UNAUTHENTICATED".to_owned())));
    let revoke = "mutation($o: Id!, $id: Id!) { revokeServiceToken(orgId: $o, id: $id) { id } }";
    app.owner.gql(revoke, json!({ "o": app.org, "id": issued["id"] })).await.data();
    assert_eq!((used(&app, &second).await.0, used(&app, &third).await.0), (401, 401));
    assert_eq!(rotate(&app, &app.owner, &issued["id"], Value::Null).await.code(), "CONFLICT");
    let operations: Vec<String> = app.column("SELECT operation FROM audit_lines ORDER BY id").await;
    assert_eq!(operations.iter().filter(|name| *name == "rotateServiceToken").count(), 2);
}

#[tokio::test]
async fn two_concurrent_rotations_both_yield_working_secrets() {
    let app = TestApp::start().await;
    let (issued, _) = made(&app, &["organization.view"], Value::Null).await;
    let (one, two) = tokio::join!(
        rotate(&app, &app.owner, &issued["id"], Value::Null),
        rotate(&app, &app.admin, &issued["id"], Value::Null)
    );
    for answer in [one, two] {
        let data = answer.data();
        let actor = app.anonymous.with_bearer(data["rotateServiceToken"]["token"].as_str().unwrap());
        assert_eq!(used(&app, &actor).await.0, 200);
    }
}

#[tokio::test]
async fn rotating_or_extending_a_token_needs_all_its_permissions() {
    let app = TestApp::start().await;
    // The owner's token has a permission that an administrator lacks.
    let (strong, _) =
        made(&app, &["organization.view", "organization.edit"], json!("2026-07-01T00:00:00Z")).await;
    let may = "query($o: Id!) { organization(orgId: $o) { viewerPermissions } }";
    let may = app.admin.gql(may, json!({ "o": app.org })).await.data();
    let admin_may = may["organization"]["viewerPermissions"].to_string().contains("organization.edit");
    let expected =
        |answer: &Answer| answer.body["errors"][0]["extensions"]["code"].as_str().map(str::to_owned);
    let denied = (!admin_may).then(|| "PERMISSION_DENIED".to_owned());
    assert_eq!(expected(&rotate(&app, &app.admin, &strong["id"], Value::Null).await), denied);
    let longer = json!({ "expiresAt": "2027-01-01T00:00:00Z" });
    assert_eq!(expected(&update(&app, &app.admin, &strong["id"], longer).await), denied);
    // Anyone who may edit tokens can shorten or weaken one.
    let weaker = json!({ "expiresAt": "2026-06-02T00:00:00Z", "permissions": ["organization.view"], "name": " weak " });
    let edited = update(&app, &app.admin, &strong["id"], weaker).await.data()["updateServiceToken"].clone();
    assert_eq!((&edited["name"], &edited["permissions"]), (&json!("weak"), &json!(["organization.view"])));
    for (input, place) in [
        (json!({ "permissions": ["organization.view", "token.edit"] }), "/input/permissions/1"),
        (json!({ "expiresAt": "2026-05-01T00:00:00Z" }), "/input/expiresAt"),
        (json!({ "name": " " }), "/input/name"),
        (json!({ "name": null }), "/input/name"),
    ] {
        let refused = update(&app, &app.owner, &strong["id"], input).await;
        assert_eq!(refused.wrong_inputs()[0].0, place);
    }
    let too_long = rotate(&app, &app.owner, &strong["id"], json!({ "overlapSeconds": 99_999_999 })).await;
    assert_eq!(too_long.wrong_inputs()[0].0, "/input/overlapSeconds");
}

#[tokio::test]
async fn lifetimes_follow_the_settings() {
    let app = TestApp::start_with(|config| {
        config.service_tokens.default_days = 10;
        config.service_tokens.max_days = 30;
    })
    .await;
    let named = json!({ "name": "ci", "permissions": ["organization.view"] });
    let issued = create(&app, &app.owner, named.clone()).await.data()["createServiceToken"].clone();
    assert_eq!(issued["expiresAt"], "2026-06-11T12:00:00.000Z");
    for beyond in [Value::Null, json!("2026-07-01T12:00:01Z")] {
        let mut input = named.clone();
        input["expiresAt"] = beyond;
        let refused = create(&app, &app.owner, input).await;
        assert_eq!(refused.wrong_inputs(), [("/input/expiresAt", "TOO_LARGE")]);
    }
    // A new secret, and another ten days; the old one doesn't outlive its own expiry.
    app.clock.advance(Duration::from_hours(24 * 9 + 12));
    let rotated =
        rotate(&app, &app.owner, &issued["id"], Value::Null).await.data()["rotateServiceToken"].clone();
    assert_eq!(rotated["expiresAt"], "2026-06-21T00:00:00.000Z");
    assert_eq!(rotated["previousExpiresAt"], "2026-06-11T12:00:00.000Z");
    // Without settings: a year, or no expiry on request.
    let app = TestApp::start().await;
    let issued = create(&app, &app.owner, named).await.data();
    assert_eq!(issued["createServiceToken"]["expiresAt"], "2027-06-01T12:00:00.000Z");
    assert_eq!(made(&app, &["organization.view"], Value::Null).await.0["expiresAt"], Value::Null);
}
