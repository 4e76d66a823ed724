//! The organization's record and its settings.

pub mod emergency_stop;
mod plan_limits;
mod rights;
mod storage;
mod time_zones;

use serde_json::{Value, json};

use crate::harness::{Actor, TestApp};

const UPDATE: &str = "mutation($o: Id!, $i: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $i) {
    name timezone backupCron taxId vatValidated vatValidatedAt hasVoiceKey hasTranscriptionKey hasProviderOauthApp
    providerOauthClientId supportAccessUntil supportAccessGrantedAt supportAccessGrantedBy defaultImageId } }";

async fn update(app: &TestApp, actor: &Actor, input: Value) -> crate::harness::Answer {
    actor.gql(UPDATE, json!({ "o": app.org, "i": input })).await
}

#[tokio::test]
async fn the_record_shows_the_callers_permissions_and_the_limits() {
    let app = TestApp::start().await;
    let record = app.viewer.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["plan"], "BUSINESS");
    assert_eq!(record["viewer_role"], "VIEWER");
    assert_eq!(record["limits"]["max_agents"], 250);
    assert_eq!(record["limits"].as_object().unwrap().len(), 8);
    let permissions: Vec<_> =
        record["viewer_permissions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(permissions.is_sorted() && permissions.contains(&"agent.view"), "{permissions:?}");
    assert!(!permissions.contains(&"agent.edit"));
    // A token sees its own, within the cap, and no role.
    let token = app.token(&["organization.view", "agent.view", "member.edit"]).await;
    let record = token.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["viewer_role"], json!(null));
    assert_eq!(record["viewer_permissions"], json!(["agent.view", "organization.view"]));
    // The contract overrides the plan.
    let sql = "UPDATE organizations SET contracted_agents = 7, file_versions = 9 WHERE id = $1";
    app.execute(sql, vec![app.org.into()]).await;
    let record = app.owner.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!((&record["limits"]["max_agents"], &record["contracted_agents"]), (&json!(7), &json!(7)));
    assert_eq!((&record["limits"]["file_versions"], &record["file_versions"]), (&json!(9), &json!(9)));
    assert_eq!(
        (&record["limits"]["max_servers"], &record["max_channels_per_agent"]),
        (&json!(50), &json!(null))
    );
}

#[tokio::test]
async fn an_organization_that_does_not_exist_is_refused_like_anothers() {
    let app = TestApp::start().await;
    assert_eq!(app.stranger.get("/v1/org/999999").await.problem(), (403, "NOT_A_MEMBER"));
    let token = app.token_of(app.other_org, &["organization.view"]).await;
    assert_eq!(token.get(&format!("/v1/org/{}", app.org)).await.problem(), (403, "NOT_A_MEMBER"));
}

#[tokio::test]
async fn admins_edit_settings() {
    let app = TestApp::start().await;
    let edit = json!({ "name": " Harbour ", "timezone": "Europe/Lisbon", "backupCron": "0 4 * * *", "taxId": "PT1" });
    let after = update(&app, &app.admin, edit).await.data()["updateOrganization"].clone();
    assert_eq!((&after["name"], &after["timezone"]), (&json!("Harbour"), &json!("Europe/Lisbon")));
    assert_eq!(after["backupCron"], "0 4 * * *");
    let after =
        update(&app, &app.admin, json!({ "backupCron": null })).await.data()["updateOrganization"].clone();
    assert_eq!((&after["backupCron"], &after["taxId"]), (&json!(null), &json!("PT1")));
    let lines: i64 =
        app.one("SELECT COUNT(*) FROM audit_lines WHERE operation = 'updateOrganization'", vec![]).await;
    assert_eq!(lines, 2);
}

#[tokio::test]
async fn wrong_settings_are_all_named() {
    let app = TestApp::start().await;
    let sql = "UPDATE organizations SET min_cron_interval_minutes_override = 60 WHERE id = $1";
    app.execute(sql, vec![app.org.into()]).await;
    let edit = json!({ "timezone": "Mars/Olympus", "backupCron": "*/5 * * * *", "taxCountry": "de",
        "defaultImageId": 1, "supportAccessUntil": "2020-01-01T00:00:00Z" });
    let answer = update(&app, &app.owner, edit).await;
    let expected = [
        ("/input/timezone", "NOT_ALLOWED"),
        ("/input/backupCron", "TOO_SMALL"),
        ("/input/defaultImageId", "NOT_FOUND"),
        ("/input/taxCountry", "NOT_ALLOWED"),
        ("/input/supportAccessUntil", "TOO_SMALL"),
    ];
    assert_eq!(answer.wrong_inputs(), expected);
    assert_eq!(update(&app, &app.owner, json!({ "name": "  " })).await.code(), "VALIDATION_FAILED");
    assert_eq!(update(&app, &app.owner, json!({ "name": null })).await.code(), "VALIDATION_FAILED");
    let answer = update(&app, &app.owner, json!({ "plan": "ENTERPRISE" })).await;
    assert!(answer.body["errors"][0]["message"].as_str().unwrap().contains("plan"), "{:#}", answer.body);
}

#[tokio::test]
async fn the_default_image_is_not_archived() {
    let app = TestApp::start().await;
    let image = app.image().await;
    let after = update(&app, &app.owner, json!({ "defaultImageId": image })).await.data();
    assert_eq!(after["updateOrganization"]["defaultImageId"], image);
    let archived = app.image().await;
    let archive = "mutation($o: Id!, $id: Id!) { archiveImage(orgId: $o, id: $id) { id } }";
    app.owner.gql(archive, json!({ "o": app.org, "id": archived })).await.data();
    let answer = update(&app, &app.owner, json!({ "defaultImageId": archived })).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn secrets_are_sealed_and_never_come_back() {
    let app = TestApp::start().await;
    let secrets = json!({ "voiceKey": "canary-voice", "transcriptionKey": "canary-transcription",
        "providerOauthSecret": "canary-oauth", "providerOauthClientId": "client-1" });
    let answer = update(&app, &app.owner, secrets).await;
    assert!(!answer.text.contains("canary"), "{}", answer.text);
    let after = answer.data()["updateOrganization"].clone();
    for field in ["hasVoiceKey", "hasTranscriptionKey", "hasProviderOauthApp"] {
        assert_eq!(after[field], true, "{field}");
    }
    let sealed: Vec<u8> =
        app.one("SELECT voice_key_sealed FROM organizations WHERE id = $1", vec![app.org.into()]).await;
    assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
    let changes: Value =
        app.one("SELECT changes FROM audit_lines WHERE operation = 'updateOrganization'", vec![]).await;
    assert_eq!(changes["voice_key_sealed"], "changed");
    assert!(!changes.to_string().contains("canary"));
    let after = update(&app, &app.owner, json!({ "voiceKey": null })).await.data();
    assert_eq!(after["updateOrganization"]["hasVoiceKey"], false);
}

#[tokio::test]
async fn support_access_has_an_end_and_a_grantor() {
    let app = TestApp::start().await;
    let until = "2026-06-08T12:00:00.000Z";
    let after = update(&app, &app.owner, json!({ "supportAccessUntil": until })).await.data();
    let after = &after["updateOrganization"];
    assert_eq!(after["supportAccessUntil"], until);
    assert_eq!(after["supportAccessGrantedAt"], "2026-06-01T12:00:00.000Z");
    assert_eq!(after["supportAccessGrantedBy"], json!(app.owner.user));
    let answer = update(&app, &app.owner, json!({ "supportAccessUntil": "2027-06-08T12:00:00Z" })).await;
    assert_eq!(answer.code(), "VALIDATION_FAILED");
    let after = update(&app, &app.owner, json!({ "supportAccessUntil": null })).await.data();
    assert_eq!(after["updateOrganization"]["supportAccessGrantedBy"], json!(null));
}

#[tokio::test]
async fn a_new_tax_number_is_not_yet_validated() {
    let app = TestApp::start().await;
    let sql = "UPDATE organizations SET vat_validated = TRUE, vat_validated_at = 1 WHERE id = $1";
    app.execute(sql, vec![app.org.into()]).await;
    let after = update(&app, &app.owner, json!({ "name": "Harbour" })).await.data();
    assert_eq!(after["updateOrganization"]["vatValidated"], true);
    let after = update(&app, &app.owner, json!({ "taxId": "DE123456789" })).await.data();
    assert_eq!(after["updateOrganization"]["vatValidated"], false);
    assert_eq!(after["updateOrganization"]["vatValidatedAt"], json!(null));
}
