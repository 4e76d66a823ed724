//! One's own account: confirming an address, a forgotten password, changing one's own data.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Actor, TestApp,
    account::{CHANGE_EMAIL, CHANGE_PASSWORD, CONFIRM, REQUEST_RESET, RESET},
};

const VIEWER: &str = "{ viewer { user { name email emailConfirmed } } }";

async fn sign_in(app: &TestApp, email: &str, password: &str) -> Actor {
    app.session(&app.sign_in(email, password).await.data()["signIn"]).0
}

async fn code(actor: &Actor, mutation: &str, variables: Value) -> String {
    actor.gql(mutation, variables).await.code()
}

async fn operations(app: &TestApp) -> Vec<String> {
    app.column(
        "SELECT operation FROM audit_lines WHERE organization_id IS NULL AND operation NOT IN ('createUser', 'signIn') \
         ORDER BY id",
    )
    .await
}

#[tokio::test]
async fn a_link_confirms_an_address_once_and_a_newer_one_replaces_it() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    let someone = sign_in(&app, "someone@example.org", "correct horse").await;
    let request = "mutation { requestEmailConfirmation }";
    someone.gql(request, json!({})).await.data();
    let first = app.mail().await;
    assert_eq!(first.to, "someone@example.org");
    someone.gql(request, json!({})).await.data();
    let second = app.mail().await;
    assert_eq!(code(&app.anonymous, CONFIRM, json!({ "t": first.token })).await, "LINK_INVALID");
    app.anonymous.gql(CONFIRM, json!({ "t": second.token })).await.data();
    assert_eq!(code(&app.anonymous, CONFIRM, json!({ "t": second.token })).await, "LINK_INVALID");
    assert_eq!(someone.gql(VIEWER, json!({})).await.data()["viewer"]["user"]["emailConfirmed"], true);
    // There is nothing left to confirm.
    someone.gql(request, json!({})).await.data();
    assert!(app.mails().await.is_empty());
    // The database contains neither the token nor anything like it.
    let stored: Vec<Vec<u8>> = app.column("SELECT token_hash FROM email_tokens").await;
    assert!(stored.iter().all(|hash| hash.len() == 32 && !second.token.as_bytes().starts_with(hash)));
    assert_eq!(
        operations(&app).await,
        ["requestEmailConfirmation", "requestEmailConfirmation", "confirmEmail"]
    );
}

#[tokio::test]
async fn a_link_expires() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    app.anonymous.gql(REQUEST_RESET, json!({ "e": "someone@example.org" })).await.data();
    let mail = app.mail().await;
    app.clock.advance(Duration::from_hours(1));
    let reset = json!({ "t": mail.token, "p": "battery staple" });
    assert_eq!(code(&app.anonymous, RESET, reset).await, "LINK_INVALID");
    // One kind of link doesn't do what another does.
    app.anonymous.gql(REQUEST_RESET, json!({ "e": "someone@example.org" })).await.data();
    let mail = app.mail().await;
    assert_eq!(code(&app.anonymous, CONFIRM, json!({ "t": mail.token })).await, "LINK_INVALID");
}

#[tokio::test]
async fn a_reset_sets_a_password_ends_sessions_and_proves_the_address() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    let session = sign_in(&app, "someone@example.org", "correct horse").await;
    app.anonymous.gql(REQUEST_RESET, json!({ "e": " Someone@Example.org" })).await.data();
    let mail = app.mail().await;
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), ("someone@example.org", "Set a new password"));
    // A password that breaks the rules doesn't use up the link.
    let weak = json!({ "t": mail.token, "p": "short" });
    assert_eq!(code(&app.anonymous, RESET, weak).await, "VALIDATION_FAILED");
    app.anonymous.gql(RESET, json!({ "t": mail.token, "p": "battery staple" })).await.data();
    assert_eq!(app.mail().await.subject, "Your password was changed");
    let again = json!({ "t": mail.token, "p": "battery staple 2" });
    assert_eq!(code(&app.anonymous, RESET, again).await, "LINK_INVALID");
    assert_eq!(session.gql(VIEWER, json!({})).await.code(), "UNAUTHENTICATED");
    assert_eq!(app.sign_in("someone@example.org", "correct horse").await.code(), "SIGN_IN_FAILED");
    let viewer = sign_in(&app, "someone@example.org", "battery staple").await;
    assert_eq!(viewer.gql(VIEWER, json!({})).await.data()["viewer"]["user"]["emailConfirmed"], true);
    assert_eq!(operations(&app).await, ["requestPasswordReset", "resetPassword"]);
}

#[tokio::test]
async fn a_reset_does_not_reveal_who_has_an_account() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    let id: i64 = app.one("SELECT id FROM users WHERE email = 'someone@example.org'", vec![]).await;
    let ask = |email: &'static str| app.anonymous.gql(REQUEST_RESET, json!({ "e": email }));
    let known = ask("someone@example.org").await;
    for unknown in ["unknown@example.org", "not an address", "someone@example.org "] {
        assert_eq!(ask(unknown).await.text, known.text, "{unknown}");
    }
    // Only the account received mail, and of its two links the first no longer works.
    app.mails().await;
    app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![id.into()]).await;
    assert_eq!(ask("someone@example.org").await.text, known.text);
    let strangers: i64 =
        app.one("SELECT COUNT(*) FROM email_tokens WHERE user_id <> $1", vec![id.into()]).await;
    assert_eq!(strangers, 0);
}

#[tokio::test]
async fn mail_to_one_address_is_slowed_down() {
    let app = TestApp::with_mail().await;
    let someone = app.person("VIEWER", false).await;
    let mut codes = Vec::new();
    for _ in 0..5 {
        let answer = someone.gql("mutation { requestEmailConfirmation }", json!({})).await;
        codes.push(if answer.body["errors"].is_null() { "sent".to_owned() } else { answer.code() });
    }
    assert_eq!(codes, ["sent", "sent", "sent", "RATE_LIMITED", "RATE_LIMITED"]);
    app.clock.advance(Duration::from_mins(1));
    someone.gql("mutation { requestEmailConfirmation }", json!({})).await.data();
}

#[tokio::test]
async fn changing_the_password_ends_other_sessions() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    let here = sign_in(&app, "someone@example.org", "correct horse").await;
    let there = sign_in(&app, "someone@example.org", "correct horse").await;
    let change = |current: &str, new: &str| json!({ "c": current, "n": new });
    assert_eq!(code(&here, CHANGE_PASSWORD, change("wrong horse", "battery staple")).await, "SIGN_IN_FAILED");
    let same = change("correct horse", "someone@example.org");
    assert_eq!(code(&here, CHANGE_PASSWORD, same).await, "VALIDATION_FAILED");
    here.gql(CHANGE_PASSWORD, change("correct horse", "battery staple")).await.data();
    assert_eq!(app.mail().await.subject, "Your password was changed");
    here.gql(VIEWER, json!({})).await.data();
    assert_eq!(there.gql(VIEWER, json!({})).await.code(), "UNAUTHENTICATED");
    sign_in(&app, "someone@example.org", "battery staple").await;
    // Someone who finds an open session can't guess the password in it.
    let mut codes = Vec::new();
    for _ in 0..8 {
        codes.push(code(&here, CHANGE_PASSWORD, change("guess", "battery staple 2")).await);
    }
    assert_eq!(codes.iter().filter(|code| *code == "SIGN_IN_FAILED").count(), 5, "{codes:?}");
    assert_eq!(codes.last().unwrap(), "RATE_LIMITED");
}

#[tokio::test]
async fn a_new_address_is_confirmed_by_its_link() {
    let app = TestApp::with_mail().await;
    app.user("someone@example.org", false).await;
    let someone = sign_in(&app, "someone@example.org", "correct horse").await;
    let to = |email: &str| json!({ "e": email, "p": "correct horse" });
    let without = json!({ "e": "new@example.org" });
    assert_eq!(code(&someone, CHANGE_EMAIL, without).await, "SIGN_IN_FAILED");
    assert_eq!(code(&someone, CHANGE_EMAIL, to("nowhere")).await, "VALIDATION_FAILED");
    // Another person's address: the answer is the same, and no one gets mail.
    someone.gql(CHANGE_EMAIL, to("Owner@example.com")).await.data();
    assert!(app.mails().await.is_empty());
    someone.gql(CHANGE_EMAIL, to("new@example.org")).await.data();
    let mail = app.mail().await;
    assert_eq!(mail.to, "new@example.org");
    assert_eq!(someone.gql(VIEWER, json!({})).await.data()["viewer"]["user"]["email"], "someone@example.org");
    app.anonymous.gql(CONFIRM, json!({ "t": mail.token })).await.data();
    let told = app.mail().await;
    assert_eq!(
        (told.to.as_str(), told.subject.as_str()),
        ("someone@example.org", "Your e-mail address was changed")
    );
    let now = someone.gql(VIEWER, json!({})).await.data()["viewer"]["user"].clone();
    assert_eq!((&now["email"], &now["emailConfirmed"]), (&json!("new@example.org"), &json!(true)));
    sign_in(&app, "new@example.org", "correct horse").await;
    // The address was taken in the meantime: the link comes too late.
    someone.gql(CHANGE_EMAIL, to("third@example.org")).await.data();
    let mail = app.mail().await;
    app.user("Third@example.org", false).await;
    assert_eq!(code(&app.anonymous, CONFIRM, json!({ "t": mail.token })).await, "NAME_TAKEN");
}

#[tokio::test]
async fn people_change_only_their_own_name() {
    let app = TestApp::with_mail().await;
    let change = "mutation($n: String!) { changeName(name: $n) { name } }";
    let named = app.stranger.gql(change, json!({ "n": "  Someone Else " })).await.data();
    assert_eq!(named["changeName"]["name"], "Someone Else");
    assert_eq!(app.stranger.gql(change, json!({ "n": "  " })).await.code(), "VALIDATION_FAILED");
    assert_eq!(app.owner.gql(VIEWER, json!({})).await.data()["viewer"]["user"]["name"], "owner");
    let token = app.token(&["member.edit"]).await;
    assert_eq!(token.gql(change, json!({ "n": "Robot" })).await.code(), "PERMISSION_DENIED");
}
