//! The organization's record and its settings.

pub mod emergency_stop;
mod plan_limits;
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

/// The pointer and code of each violation.
fn wrong(answer: &crate::harness::Answer) -> Vec<(String, String)> {
    let errors = answer.body["errors"][0]["extensions"]["errors"].as_array().expect("violations").clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    errors.iter().map(|error| (text(&error["pointer"]), text(&error["code"]))).collect()
}

#[tokio::test]
async fn the_record_has_every_field_of_the_specification_in_its_order() {
    let app = TestApp::start().await;
    let record = app.viewer.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    let keys: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "id name plan avatar_url viewer_role viewer_permissions has_voice_key has_transcription_key \
        has_provider_oauth_app provider_oauth_client_id timezone trial_ends_at grace_until grace_from_plan limits \
        support_access_until support_access_granted_at support_access_granted_by customer_type tax_name tax_id \
        tax_country tax_address tax_postal_code tax_city vat_validated vat_validated_at backup_retention backup_cron \
        cost_guard_tokens_per_hour cost_guard_action session_reset_tokens transcript_retention_days contracted_agents \
        max_channels_per_agent doctor_runs_per_month cron_llm_runs_per_month file_versions version_retention \
        server_alert_ram_pct server_alert_cpu_pct server_alert_load_factor created_at updated_at";
    assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(record["plan"], "BUSINESS");
    assert_eq!(record["viewer_role"], "VIEWER");
    assert_eq!(record["limits"]["max_agents"], 250);
    assert_eq!(record["limits"].as_object().unwrap().len(), 8);
    let permissions: Vec<_> =
        record["viewer_permissions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(permissions.is_sorted() && permissions.contains(&"agent.view"), "{permissions:?}");
    assert!(!permissions.contains(&"agent.edit"));
}

#[tokio::test]
async fn a_token_sees_its_own_permissions_within_the_cap_and_no_role() {
    let app = TestApp::start().await;
    let token = app.token(&["organization.view", "agent.view", "member.edit"]).await;
    let record = token.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(record["viewer_role"], json!(null));
    assert_eq!(record["viewer_permissions"], json!(["agent.view", "organization.view"]));
}

#[tokio::test]
async fn the_contract_overrides_the_plan() {
    let app = TestApp::start().await;
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
async fn a_stranger_reads_and_edits_nothing() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}", app.org);
    assert_eq!(app.stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.stranger.get("/v1/org/999999").await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.anonymous.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
    assert_eq!(update(&app, &app.stranger, json!({ "name": "Mine" })).await.code(), "NOT_A_MEMBER");
    let token = app.token_of(app.other_org, &["organization.view"]).await;
    assert_eq!(token.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
}

#[tokio::test]
async fn admins_edit_settings_and_operators_do_not() {
    let app = TestApp::start().await;
    let edit = json!({ "name": " Harbour ", "timezone": "Europe/Lisbon", "backupCron": "0 4 * * *", "taxId": "PT1" });
    let after = update(&app, &app.admin, edit).await.data()["updateOrganization"].clone();
    assert_eq!((&after["name"], &after["timezone"]), (&json!("Harbour"), &json!("Europe/Lisbon")));
    assert_eq!(after["backupCron"], "0 4 * * *");
    let after =
        update(&app, &app.admin, json!({ "backupCron": null })).await.data()["updateOrganization"].clone();
    assert_eq!((&after["backupCron"], &after["taxId"]), (&json!(null), &json!("PT1")));
    assert_eq!(update(&app, &app.operator, json!({ "name": "Mine" })).await.code(), "PERMISSION_DENIED");
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
    let wrong = wrong(&answer);
    let expected = [
        ("/input/timezone", "NOT_ALLOWED"),
        ("/input/backupCron", "TOO_SMALL"),
        ("/input/defaultImageId", "NOT_FOUND"),
        ("/input/taxCountry", "NOT_ALLOWED"),
        ("/input/supportAccessUntil", "TOO_SMALL"),
    ];
    assert_eq!(wrong, expected.map(|(at, code)| (at.to_owned(), code.to_owned())));
    assert_eq!(update(&app, &app.owner, json!({ "name": "  " })).await.code(), "VALIDATION_FAILED");
    assert_eq!(update(&app, &app.owner, json!({ "name": null })).await.code(), "VALIDATION_FAILED");
    let answer = update(&app, &app.owner, json!({ "plan": "ENTERPRISE" })).await;
    assert!(answer.body["errors"][0]["message"].as_str().unwrap().contains("plan"), "{:#}", answer.body);
}

#[tokio::test]
async fn the_default_image_is_the_organizations_own_and_not_archived() {
    let app = TestApp::start().await;
    let image = app.image().await;
    let after = update(&app, &app.owner, json!({ "defaultImageId": image })).await.data();
    assert_eq!(after["updateOrganization"]["defaultImageId"], image);
    let answer =
        app.stranger.gql(UPDATE, json!({ "o": app.other_org, "i": { "defaultImageId": image } })).await;
    assert_eq!(wrong(&answer), [("/input/defaultImageId".to_owned(), "NOT_FOUND".to_owned())]);
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
