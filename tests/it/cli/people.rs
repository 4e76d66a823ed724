//! `muster org`, `user`, `session`, and `member` with the real program. What it creates works in the service;
//! when it refuses, it says why, sets an exit code, and leaves nothing half done.

use std::path::Path;

use serde_json::json;

use crate::harness::{TestApp, is_postgres, muster};

/// The number of everything the commands create: organizations, users, members, sessions, invitations.
async fn all(app: &TestApp) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["organizations", "users", "members", "sessions", "invitations", "images", "mails"] {
        counts.push(app.one(&format!("SELECT COUNT(*) FROM {table}"), vec![]).await);
    }
    counts
}

/// The environment for commands that put mails in this folder.
fn with_mail(app: &TestApp, mails: &Path) -> Vec<(String, String)> {
    let mail = [
        ("MUSTER_MAIL_URL", format!("file://{}", mails.display())),
        ("MUSTER_MAIL_FROM", "Muster <muster@example.com>".to_owned()),
        ("MUSTER_PUBLIC_URL", "https://muster.example.com".to_owned()),
    ];
    app.variables().into_iter().chain(mail.map(|(name, value)| (name.to_owned(), value))).collect()
}

#[tokio::test]
async fn an_organization_its_owner_and_a_session_are_made() {
    let app = TestApp::start().await;
    let made = ["org", "create", "--name", " Depot ", "--owner-email", "Ann@example.org", "--plan", "PRO"];
    let made = app.cli(&made).await.expect();
    assert_eq!((&made["name"], &made["plan"]), (&json!("Depot"), &json!("PRO")));
    let user = ["user", "create", "--email", "ann@example.org", "--name", "Ann", "--password-stdin"];
    let user = app.cli_with_input(&[&user[..], &["--confirmed"]].concat(), "correct horse\n").await.expect();
    assert_eq!(user["id"], made["owner_id"], "the user named before");
    assert_eq!((&user["email"], &user["email_confirmed"]), (&json!("Ann@example.org"), &json!(true)));
    let session = app.cli(&["session", "create", "--email", "ANN@example.org"]).await.expect();
    assert_eq!(session["user_id"], user["id"]);
    let ann = app.anonymous.with_bearer(session["access_token"].as_str().unwrap());
    let record = ann.get(&format!("/v1/org/{}", made["id"])).await.expect(200);
    assert_eq!((&record["viewer_role"], &record["name"]), (&json!("OWNER"), &json!("Depot")));
    // For people: one line each, and nothing else.
    let text = std::process::Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(["session", "create", "--email", "ann@example.org"])
        .env_clear()
        .envs(app.variables())
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().all(|line| line.contains(": ")) && text.lines().count() == 5, "{text}");
}

#[tokio::test]
async fn failed_creations_leave_nothing_behind() {
    let app = TestApp::start().await;
    app.user("taken@example.org", true).await;
    let gone = app.user("gone@example.org", true).await;
    app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![gone.into()]).await;
    let before = all(&app).await;
    let long = "x".repeat(81);
    let org = ["org", "create", "--owner-email", "new@example.org", "--name"];
    for name in ["", "  ", long.as_str()] {
        app.refuses(&[&org[..], &[name]].concat(), 1, "VALIDATION_FAILED").await;
    }
    app.refuses(&["org", "create", "--name", "N", "--owner-email", "unknown"], 1, "VALIDATION_FAILED").await;
    let said = app.refuses(&[&org[..], &["N", "--plan", "GOLD"]].concat(), 2, "USAGE").await;
    assert!(said.contains("GOLD") && said.contains("--plan"), "{said}");
    app.refuses(&org[..4], 2, "USAGE").await;

    let user =
        |email: &'static str, name| ["user", "create", "--email", email, "--name", name, "--password-stdin"];
    let taken = app.cli_with_input(&user("TAKEN@example.org", "T"), "correct horse").await;
    let said = taken.refused(1, "NAME_TAKEN");
    assert!(said.contains("TAKEN@example.org"), "{said}");
    let wrong = app.cli_with_input(&user("unknown", " "), "short").await;
    wrong.refused(1, "VALIDATION_FAILED");
    for part in ["/email", "/name", "/password"] {
        assert!(wrong.err.contains(part), "every mistake is named: {}", wrong.err);
    }
    assert!(!wrong.err.contains("\"short\""), "a password is not repeated");
    let same = app.cli_with_input(&user("new@example.org", "N"), "new@example.org").await;
    same.refused(1, "VALIDATION_FAILED");
    app.refuses(&user("new@example.org", "N")[..4], 2, "USAGE").await;

    app.refuses(&["session", "create", "--email", "unknown@example.org"], 1, "NOT_FOUND").await;
    app.refuses(&["session", "create", "--email", "gone@example.org"], 1, "SIGN_IN_FAILED").await;
    app.refuses(&["session", "create"], 2, "USAGE").await;
    assert_eq!(all(&app).await, before);
}

#[tokio::test]
async fn members_are_added_by_organization_and_address() {
    let app = TestApp::start().await;
    let id = app.user("someone@example.org", true).await;
    let org = app.org.to_string();
    let add = |org, email, role| ["member", "add", "--org", org, "--email", email, "--role", role];
    let before = all(&app).await;
    let someone = "someone@example.org";
    app.refuses(&add("Nowhere", someone, "VIEWER"), 1, "NOT_FOUND").await;
    app.refuses(&add("999999", someone, "VIEWER"), 1, "NOT_FOUND").await;
    app.refuses(&add(&org, "unknown@example.org", "VIEWER"), 1, "NOT_FOUND").await;
    let said = app.refuses(&add(&org, someone, "KING"), 2, "USAGE").await;
    assert!(said.contains("KING"), "{said}");
    app.refuses(&add(&org, someone, "VIEWER")[..6], 2, "USAGE").await;
    app.execute("UPDATE organizations SET name = 'Meridian Freight'", vec![]).await;
    app.refuses(&add("Meridian Freight", someone, "VIEWER"), 1, "CONFLICT").await;
    assert_eq!(all(&app).await, before);
    app.execute("UPDATE organizations SET name = 'Depot' WHERE id = $1", vec![app.org.into()]).await;
    let added = app.cli(&add("Depot", someone, "VIEWER")).await.expect();
    assert_eq!(added, json!({ "organization_id": app.org, "user_id": id, "role": "VIEWER" }));
    app.refuses(&add(&org, someone, "OWNER"), 1, "NAME_TAKEN").await;
    let sql = "SELECT role FROM members WHERE user_id = $1";
    assert_eq!(app.one::<String>(sql, vec![id.into()]).await, "VIEWER", "and the role stays");
}

#[tokio::test]
async fn invitations_leave_by_mail_or_by_hand() {
    let app = TestApp::start().await;
    let org = app.org.to_string();
    let invite = |email| ["member", "invite", "--org", org.as_str(), "--email", email, "--role", "OPERATOR"];
    let by_hand = |email| [&invite(email)[..], &["--link"]].concat();
    let before = all(&app).await;
    let said = app.refuses(&invite("new@example.org"), 1, "VALIDATION_FAILED").await;
    assert!(said.contains("mail.url") && said.contains("--link"), "{said}");
    app.refuses(&by_hand("unknown"), 1, "VALIDATION_FAILED").await;
    app.refuses(&by_hand("owner@example.com"), 1, "NAME_TAKEN").await;
    app.refuses(
        &["member", "invite", "--org", "Nowhere", "--email", "a@example.org", "--role", "VIEWER", "--link"],
        1,
        "NOT_FOUND",
    )
    .await;
    assert_eq!(all(&app).await, before);

    let made = app.cli(&by_hand(" new@example.org ")).await.expect();
    assert_eq!((&made["email"], &made["role"]), (&json!("new@example.org"), &json!("OPERATOR")));
    let (page, lost) = made["link"].as_str().unwrap().split_once("#token=").unwrap();
    assert!(page.ends_with("/accept-invitation"), "{page}");
    // A person who lost the link gets another one.
    let again = app.cli(&by_hand("NEW@example.org")).await.expect();
    let (_, token) = again["link"].as_str().unwrap().split_once("#token=").unwrap();
    let accept = "mutation($t: SecretString!) { acceptInvitation(token: $t, name: \"New\", password: \"correct horse\") { organizationId role } }";
    assert_eq!(app.anonymous.gql(accept, json!({ "t": lost })).await.code(), "LINK_INVALID");
    let accepted = app.anonymous.gql(accept, json!({ "t": token })).await.data();
    assert_eq!(accepted["acceptInvitation"], json!({ "organizationId": app.org, "role": "OPERATOR" }));
    app.refuses(&by_hand("new@example.org"), 1, "NAME_TAKEN").await;

    // By mail: the link is only in the mail.
    let mails = app.folder().join("mails");
    let variables = with_mail(&app, &mails);
    let sent = muster(&invite("other@example.org"), &variables).await.expect();
    assert!(sent["link"].is_null() && sent["id"].is_i64(), "{sent:#}");
    assert_eq!(std::fs::read_dir(&mails).unwrap().count(), 1);
    muster(&invite("OTHER@example.org"), &variables).await.refused(1, "NAME_TAKEN");
    assert_eq!(std::fs::read_dir(&mails).unwrap().count(), 1, "nothing more was sent");
    // By hand, what was sent is replaced.
    let by_hand = muster(&by_hand("other@example.org"), &variables).await.expect();
    assert_ne!(by_hand["id"], sent["id"]);
    let sql = "SELECT revoked_at FROM invitations WHERE id = $1";
    let mailed: Option<i64> = app.one(sql, vec![sent["id"].as_i64().unwrap().into()]).await;
    assert!(mailed.is_some(), "the mailed one is void");
}

#[tokio::test]
async fn an_invitation_whose_mail_can_not_be_sent_yet_is_made() {
    let app = TestApp::start().await;
    // No one can claim what waits.
    let stop = if is_postgres() {
        let stop = "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stop'; END $$";
        app.execute(stop, vec![]).await;
        "FOR EACH ROW WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION stop()"
    } else {
        "WHEN NEW.attempts > OLD.attempts BEGIN SELECT RAISE(ABORT, 'stop'); END"
    };
    app.execute(&format!("CREATE TRIGGER stop BEFORE UPDATE ON mails {stop}"), vec![]).await;
    let org = app.org.to_string();
    let invite = ["member", "invite", "--org", &org, "--email", "new@example.org", "--role", "VIEWER"];
    let made = muster(&invite, &with_mail(&app, &app.folder().join("mails"))).await;
    assert!(made.err.contains("mail.not_sent_yet"), "{}", made.err);
    let id = made.expect()["id"].as_i64().unwrap();
    let open = "SELECT COUNT(*) FROM invitations WHERE id = $1 AND revoked_at IS NULL";
    assert_eq!(app.one::<i64>(open, vec![id.into()]).await, 1);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM mails", vec![]).await, 1, "the service sends it later");
}
