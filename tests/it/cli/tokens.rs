//! `muster token` with the real program, against the service that the tokens are for.

use serde_json::{Value, json};

use crate::harness::TestApp;

/// Every token as stored in the database.
async fn stored(app: &TestApp) -> Vec<String> {
    let columns = "id || ' ' || name || ' ' || hint || ' ' || COALESCE(revoked_at, 0) || ' ' || COALESCE(previous_hint, '-')";
    app.column(&format!("SELECT {columns} FROM service_tokens ORDER BY id")).await
}

async fn status(app: &TestApp, token: &Value) -> u16 {
    app.forget_sessions();
    app.anonymous.with_bearer(token.as_str().unwrap()).get(&format!("/v1/org/{}", app.org)).await.status
}

#[tokio::test]
async fn a_token_is_made_listed_rotated_and_revoked() {
    let app = TestApp::start().await;
    let org = app.org.to_string();
    let create = ["token", "create", "--org", &org, "--name", " ci "];
    let permissions = ["--permission", "agent.view", "--permission", "organization.view"];
    let made = app.cli(&[&create[..], &permissions].concat()).await.expect();
    assert_eq!((&made["organization_id"], status(&app, &made["token"]).await), (&json!(app.org), 200));
    let list = ["token", "list", "--org", &org];
    let listed = app.cli(&list).await;
    assert!(!listed.text.contains(made["token"].as_str().unwrap()), "a secret is shown once");
    let listed = listed.expect()["tokens"][0].clone();
    assert_eq!((&listed["id"], &listed["name"]), (&made["id"], &json!("ci")));
    assert!(listed["expires_at"].is_string() || listed["expires_at"].is_null(), "{listed:#}");

    let id = made["id"].to_string();
    let rotate = ["token", "rotate", "--org", &org, "--id", &id];
    let second = app.cli(&rotate).await.expect();
    assert_ne!(second["token"], made["token"]);
    // The service's clock is in the past, within the overlap whenever this runs.
    assert_eq!((status(&app, &made["token"]).await, status(&app, &second["token"]).await), (200, 200));
    let listed = app.cli(&list).await.expect()["tokens"][0].clone();
    assert!(made["token"].as_str().unwrap().ends_with(listed["previous_hint"].as_str().unwrap()));
    let third = app.cli(&[&rotate[..], &["--overlap", "0"]].concat()).await.expect();
    // A second rotation ends the first secret.
    assert_eq!((status(&app, &made["token"]).await, status(&app, &third["token"]).await), (401, 200));

    let revoke = ["token", "revoke", "--org", &org, "--id", &id];
    assert_eq!(app.cli(&revoke).await.expect()["revoked"], true);
    assert_eq!(status(&app, &third["token"]).await, 401);
    app.refuses(&rotate, 1, "CONFLICT").await;
    assert_eq!(app.cli(&list).await.expect()["tokens"], json!([]));
}

#[tokio::test]
async fn a_refused_command_changes_no_token() {
    let app = TestApp::start().await;
    let (org, other) = (app.org.to_string(), app.other_org.to_string());
    let made = app.cli(&["token", "create", "--org", &org, "--name", "ci", "--all"]).await.expect();
    let before = stored(&app).await;
    let create = |rest: &[&'static str]| {
        let begin = ["token", "create", "--org", "Meridian Freight", "--name"];
        begin.iter().chain(rest).map(|part| (*part).to_owned()).collect::<Vec<_>>()
    };
    for (rest, exit, code) in [
        (&["x"][..], 2, "USAGE"),
        (&["x", "--all", "--permission", "agent.view"], 2, "USAGE"),
        (&["x", "--permission", "agent.fly"], 2, "USAGE"),
        (&["x", "--all", "--expires-at", "tomorrow"], 2, "USAGE"),
        (&["x", "--all", "--expires-at", "2020-01-01T00:00:00Z"], 1, "VALIDATION_FAILED"),
        (&["x", "--permission", "token.edit"], 1, "VALIDATION_FAILED"),
        (&["", "--all"], 1, "VALIDATION_FAILED"),
    ] {
        let arguments = create(rest);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = app.refuses(&arguments, exit, code).await;
        assert!(said.len() > 10, "{said}");
    }
    let id = made["id"].to_string();
    for verb in ["rotate", "revoke"] {
        // The stranger's organization has no such token, regardless of its number.
        app.refuses(&["token", verb, "--org", &other, "--id", &id], 1, "NOT_FOUND").await;
        app.refuses(&["token", verb, "--org", &org, "--id", "999999"], 1, "NOT_FOUND").await;
        app.refuses(&["token", verb, "--org", &org, "--id", "first"], 2, "USAGE").await;
        app.refuses(&["token", verb, "--org", "Nowhere", "--id", &id], 1, "NOT_FOUND").await;
    }
    app.refuses(&["token", "rotate", "--org", &org, "--id", &id, "--overlap", "2592001"], 2, "USAGE").await;
    app.refuses(&["token", "list", "--org", "Nowhere"], 1, "NOT_FOUND").await;
    assert_eq!(stored(&app).await, before);
    assert_eq!(status(&app, &made["token"]).await, 200);
}
