//! The second factor: set up, required, lost, and demanded by an organization.

use std::time::Duration;

use serde_json::{Value, json};
use totp_rs::Totp;

use crate::{
    harness::{Actor, Answer, TestApp, muster},
    people::refresh,
};

const COMPLETE: &str = "mutation($t: SecretString!, $c: SecretString, $r: SecretString) { completeSignIn(challenge: $t, code: $c, recoveryCode: $r) { accessToken refreshToken user { hasSecondFactor } challenge { token } } }";
const BEGIN: &str = "mutation($p: SecretString) { beginTotp(password: $p) { secret url } }";
const CONFIRM: &str = "mutation($c: SecretString!) { confirmTotp(code: $c) }";
const DISABLE: &str = "mutation($p: SecretString, $c: SecretString!) { disableTotp(password: $p, code: $c) }";
const REGENERATE: &str = "mutation($c: SecretString!) { regenerateRecoveryCodes(code: $c) }";
const REQUIRE: &str = "mutation($o: Id!, $r: Boolean!) { updateOrganization(orgId: $o, input: { requireSecondFactor: $r }) { requireSecondFactor } }";
const EMAIL: &str = "someone@example.org";

/// A person's authenticator app.
struct Phone(Totp);

impl Phone {
    fn code(&self, app: &TestApp) -> String {
        self.0.generate(u64::try_from(app.clock.now().unix_seconds()).unwrap()).to_string()
    }

    /// A code that hasn't been used yet.
    fn next(&self, app: &TestApp) -> String {
        app.clock.advance(Duration::from_secs(30));
        self.code(app)
    }
}

async fn password(app: &TestApp) -> Value {
    app.sign_in(EMAIL, "correct horse").await.data()["signIn"].clone()
}

async fn set_up(app: &TestApp, actor: &Actor) -> (Phone, Vec<String>) {
    let begun = actor.gql(BEGIN, json!({ "p": "correct horse" })).await.data()["beginTotp"].clone();
    let url = begun["url"].as_str().unwrap();
    assert!(url.starts_with("otpauth://totp/Muster:") && url.contains(begun["secret"].as_str().unwrap()));
    let phone = Phone(Totp::from_url(url).unwrap());
    let confirmed = actor.gql(CONFIRM, json!({ "c": phone.next(app) })).await.data();
    let codes = confirmed["confirmTotp"].as_array().unwrap();
    (phone, codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect())
}

/// A service with a person who has a second factor.
async fn enrolled() -> (TestApp, Actor, Phone, Vec<String>) {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let session = password(&app).await;
    let actor = app.anonymous.with_bearer(session["accessToken"].as_str().unwrap());
    let (phone, codes) = set_up(&app, &actor).await;
    assert_eq!(app.mail().await.subject, "A second factor was set up");
    (app, actor, phone, codes)
}

#[tokio::test]
async fn an_account_without_a_password_needs_a_recent_sign_in() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let session = password(&app).await;
    app.execute("UPDATE users SET password_hash = NULL WHERE email = $1", vec![EMAIL.into()]).await;
    let person = app.anonymous.with_bearer(session["accessToken"].as_str().unwrap());
    let change = "mutation($e: String!) { changeEmail(email: $e) }";
    person.gql(change, json!({ "e": "new@example.org" })).await.data();
    person.gql(BEGIN, json!({})).await.data();

    // Renewing the session is not signing in.
    app.clock.advance(Duration::from_secs(601));
    let renewed = refresh(&app, session["refreshToken"].as_str().unwrap()).await.data();
    let (person, _) = app.session(&renewed["refreshSession"]);
    assert_eq!(person.gql(change, json!({ "e": "new@example.org" })).await.code(), "SIGN_IN_AGAIN");
    assert_eq!(person.gql(BEGIN, json!({})).await.code(), "SIGN_IN_AGAIN");
    let disable = person.gql(DISABLE, json!({ "c": "123456" })).await;
    assert_eq!(disable.code(), "SIGN_IN_AGAIN");
    // Anyone who has a password gives it, however long ago they signed in.
    app.user("other@example.org", true).await;
    let session = app.sign_in("other@example.org", "correct horse").await.data();
    let other = app.anonymous.with_bearer(session["signIn"]["accessToken"].as_str().unwrap());
    app.clock.advance(Duration::from_secs(601));
    other.gql(BEGIN, json!({ "p": "correct horse" })).await.data();
}

async fn challenge(app: &TestApp) -> String {
    let answer = password(app).await;
    assert!(answer["accessToken"].is_null() && answer["user"].is_null(), "{answer:#}");
    answer["challenge"]["token"].as_str().unwrap().to_owned()
}

async fn complete(app: &TestApp, challenge: &str, code: &str) -> Answer {
    app.anonymous.gql(COMPLETE, json!({ "t": challenge, "c": code })).await
}

async fn recover(app: &TestApp, challenge: &str, code: &str) -> Answer {
    app.anonymous.gql(COMPLETE, json!({ "t": challenge, "r": code })).await
}

#[tokio::test]
async fn signing_in_needs_a_code_and_each_code_works_once() {
    let (app, _, phone, _) = enrolled().await;
    let first = challenge(&app).await;
    // The code that confirmed the factor was thereby used.
    assert_eq!(complete(&app, &first, &phone.code(&app)).await.code(), "SIGN_IN_FAILED");
    assert_eq!(complete(&app, &first, "000000").await.code(), "SIGN_IN_FAILED");
    let code = phone.next(&app);
    let spaced = format!(" {} {} ", &code[..3], &code[3..]);
    let done = complete(&app, &first, &spaced).await.data()["completeSignIn"].clone();
    assert!(done["accessToken"].is_string() && done["challenge"].is_null());
    assert_eq!(done["user"]["hasSecondFactor"], true);
    assert_eq!(
        complete(&app, &first, &phone.next(&app)).await.code(),
        "LINK_INVALID",
        "a challenge works once"
    );
    let second = challenge(&app).await;
    let code = phone.next(&app);
    complete(&app, &second, &code).await.data();
    assert_eq!(complete(&app, &challenge(&app).await, &code).await.code(), "SIGN_IN_FAILED");
    // A challenge isn't a credential, and expires within minutes.
    let third = challenge(&app).await;
    let viewer = app.anonymous.with_bearer(&third).gql("{ viewer { user { id } } }", json!({})).await;
    assert_eq!(viewer.code(), "UNAUTHENTICATED");
    app.clock.advance(Duration::from_mins(5));
    assert_eq!(complete(&app, &third, &phone.code(&app)).await.code(), "LINK_INVALID");
    let neither = app.anonymous.gql(COMPLETE, json!({ "t": third })).await;
    assert_eq!(neither.wrong_inputs(), [("/code", "REQUIRED")]);
}

#[tokio::test]
async fn when_two_send_one_code_at_once_one_gets_in() {
    let (app, _, phone, codes) = enrolled().await;
    let (one, two) = (challenge(&app).await, challenge(&app).await);
    let code = phone.next(&app);
    let (a, b) = tokio::join!(complete(&app, &one, &code), complete(&app, &two, &code));
    assert_eq!([a, b].iter().filter(|answer| answer.body["errors"].is_null()).count(), 1);
    let (one, two) = (challenge(&app).await, challenge(&app).await);
    let (a, b) = tokio::join!(recover(&app, &one, &codes[0]), recover(&app, &two, &codes[0]));
    assert_eq!([a, b].iter().filter(|answer| answer.body["errors"].is_null()).count(), 1);
}

#[tokio::test]
async fn guessing_codes_is_slow_and_recovery_codes_stay_open() {
    let (app, _, phone, codes) = enrolled().await;
    let mut said = Vec::new();
    for _ in 0..7 {
        said.push(complete(&app, &challenge(&app).await, "123123").await.code());
    }
    assert_eq!(said.iter().filter(|code| *code == "SIGN_IN_FAILED").count(), 5, "{said:?}");
    let limited = complete(&app, &challenge(&app).await, &phone.code(&app)).await;
    assert_eq!(limited.code(), "RATE_LIMITED");
    assert_eq!(limited.body["errors"][0]["extensions"]["details"]["retry_after"], 1);
    let entered = recover(&app, &challenge(&app).await, &codes[3].to_uppercase().replace('-', " ")).await;
    entered.data();
    assert_eq!(app.mail().await.subject, "A recovery code was used");
    let again = recover(&app, &challenge(&app).await, &codes[3]).await;
    assert_eq!(again.code(), "SIGN_IN_FAILED");
    muster::core::audit::write_refusals(&app.core, true).await.unwrap();
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'completeSignIn' AND outcome = 'REFUSED'";
    assert!(app.one::<i64>(sql, vec![]).await >= 1);
}

#[tokio::test]
async fn secrets_are_sealed_and_codes_are_hashed() {
    let (app, actor, _, codes) = enrolled().await;
    assert_eq!(codes.len(), 10);
    assert!(codes.iter().all(|code| code.len() == 19), "{codes:?}");
    let stored: Vec<Vec<u8>> = app.column("SELECT code_hash FROM recovery_codes").await;
    assert!(stored.len() == 10 && stored.iter().all(|hash| hash.len() == 32));
    let sealed: Vec<u8> =
        app.one("SELECT totp_secret_sealed FROM users WHERE totp_secret_sealed IS NOT NULL", vec![]).await;
    assert!(sealed.len() > 100 && sealed[0] == 1);
    assert_eq!(actor.gql(BEGIN, json!({ "p": "correct horse" })).await.code(), "CONFLICT");
    let nothing_begun = app.stranger.gql(CONFIRM, json!({ "c": "123456" })).await;
    assert_eq!(nothing_begun.code(), "CONFLICT");
}

#[tokio::test]
async fn removal_needs_password_and_code() {
    let (app, actor, phone, codes) = enrolled().await;
    let wrong = actor.gql(REGENERATE, json!({ "c": "000000" })).await;
    assert_eq!(wrong.code(), "SIGN_IN_FAILED");
    let renewed = actor.gql(REGENERATE, json!({ "c": phone.next(&app) })).await.data();
    let renewed = renewed["regenerateRecoveryCodes"].as_array().unwrap().clone();
    assert_eq!(recover(&app, &challenge(&app).await, &codes[0]).await.code(), "SIGN_IN_FAILED");
    for (password, code) in [(None, phone.next(&app)), (Some("wrong horse"), phone.next(&app))] {
        let refused = actor.gql(DISABLE, json!({ "p": password, "c": code })).await;
        assert_eq!(refused.code(), "SIGN_IN_FAILED");
    }
    let right = |code: &str| json!({ "p": "correct horse", "c": code });
    assert_eq!(actor.gql(DISABLE, right("000000")).await.code(), "SIGN_IN_FAILED");
    // If the phone is lost, a recovery code works.
    actor.gql(DISABLE, right(renewed[0].as_str().unwrap())).await.data();
    assert!(password(&app).await["accessToken"].is_string());
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM recovery_codes", vec![]).await, 0);
    let subjects: Vec<String> = app.mails().await.into_iter().map(|mail| mail.subject).collect();
    assert_eq!(subjects, ["Your recovery codes were replaced", "The second factor was removed"]);
    assert_eq!(actor.gql(DISABLE, right("000000")).await.code(), "CONFLICT");
}

#[tokio::test]
async fn an_organization_can_require_one() {
    let app = TestApp::with_mail().await;
    let require = |on: bool| json!({ "o": app.org, "r": on });
    // No one locks themselves out.
    let refused = app.owner.gql(REQUIRE, require(true)).await;
    assert_eq!(refused.wrong_inputs(), [("/input/requireSecondFactor", "NOT_ALLOWED")]);
    let (phone, _) = set_up(&app, &app.owner).await;
    let path = format!("/v1/org/{}", app.org);
    app.viewer.get(&path).await.expect(200);
    let on = app.owner.gql(REQUIRE, require(true)).await.data();
    assert_eq!(on["updateOrganization"]["requireSecondFactor"], true);
    assert_eq!(app.viewer.get(&path).await.problem(), (403, "SECOND_FACTOR_REQUIRED"));
    let over_graphql = app
        .admin
        .gql("query($o: Id!) { agents(orgId: $o, page: 1, limit: 1) { total } }", json!({ "o": app.org }))
        .await;
    assert_eq!(over_graphql.code(), "SECOND_FACTOR_REQUIRED");
    assert_eq!(app.stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    app.owner.get(&path).await.expect(200);
    app.token(&["organization.view"]).await.get(&path).await.expect(200);
    // Their own account stays open and says what to do.
    let mine = app.viewer.gql("{ viewer { memberships { requiresSecondFactor } } }", json!({})).await.data();
    assert_eq!(mine["viewer"]["memberships"], json!([{ "requiresSecondFactor": true }]));
    set_up(&app, &app.viewer).await;
    app.viewer.get(&path).await.expect(200);
    app.stranger.get(&format!("/v1/org/{}", app.other_org)).await.expect(200);
    // Removing it locks one out at once.
    app.owner.gql(DISABLE, json!({ "c": phone.next(&app) })).await.data();
    assert_eq!(app.owner.get(&path).await.problem(), (403, "SECOND_FACTOR_REQUIRED"));
}

#[tokio::test]
async fn setting_one_up_needs_more_than_an_open_session() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let session = password(&app).await;
    let found = app.anonymous.with_bearer(session["accessToken"].as_str().unwrap());
    for guess in [json!({}), json!({ "p": "a guess" })] {
        assert_eq!(found.gql(BEGIN, guess).await.code(), "SIGN_IN_FAILED");
    }
    // The change requires the stranger's own password, but there is none.
    app.stranger.gql(BEGIN, json!({})).await.data();
    let begun: i64 = app.one("SELECT COUNT(*) FROM users WHERE totp_secret_sealed IS NOT NULL", vec![]).await;
    assert_eq!(begun, 1);
    set_up(&app, &found).await;
}

/// SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_factor_being_confirmed_is_not_replaced() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let (actor, _) = app.session(&password(&app).await);
    let begin = || actor.gql(BEGIN, json!({ "p": "correct horse" }));
    begin().await.data();
    let confirmed = "UPDATE users SET totp_confirmed_at = 1 WHERE totp_secret_sealed IS NOT NULL";
    assert_eq!(app.while_changed(confirmed, None, begin()).await.code(), "CONFLICT");
}

/// Anyone who locks both locks the person first, so that no one ends in a deadlock. SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_recovery_code_is_not_locked_before_its_person() {
    let (app, actor, _, codes) = enrolled().await;
    let person = "SELECT 1 FROM users WHERE totp_confirmed_at IS NOT NULL FOR NO KEY UPDATE";
    let disable = actor.gql(DISABLE, json!({ "p": "correct horse", "c": codes[0] }));
    app.while_held(person, "SELECT 1 FROM recovery_codes FOR UPDATE NOWAIT", disable).await.data();
}

#[tokio::test]
async fn the_operator_removes_a_lost_one() {
    let (app, actor, phone, codes) = enrolled().await;
    let begun = challenge(&app).await;
    for _ in 0..6 {
        complete(&app, &begun, "123123").await.code();
    }
    // The command uses the real time, when sessions of the test's time have expired.
    app.execute("UPDATE sessions SET expires_at = 4102444800000", vec![]).await;
    let reset = ["user", "reset-second-factor", EMAIL];
    let mut variables = app.variables();
    let folder = format!("file://{}", app.folder().join("mail").display());
    variables.push(("MUSTER_MAIL_URL".to_owned(), folder));
    variables.push(("MUSTER_MAIL_FROM".to_owned(), "muster@example.com".to_owned()));
    variables.push(("MUSTER_PUBLIC_URL".to_owned(), "https://muster.example.com".to_owned()));
    let done = muster(&reset, &variables).await.expect();
    assert_eq!((&done["sessions_ended"], &done["told_by_mail"]), (&json!(1), &json!(true)));
    app.forget_sessions();
    let gone = actor.gql("{ viewer { user { id } } }", json!({})).await;
    assert_eq!(gone.code(), "UNAUTHENTICATED", "a session from before");
    assert_eq!(complete(&app, &begun, &phone.next(&app)).await.code(), "LINK_INVALID");
    assert_eq!(recover(&app, &begun, &codes[0]).await.code(), "LINK_INVALID");
    let session = password(&app).await;
    assert!(session["accessToken"].is_string() && session["challenge"].is_null(), "the password is enough");
    let told = app.mail().await;
    assert_eq!((told.to.as_str(), told.subject.as_str()), (EMAIL, "The second factor was reset"));
    assert!(told.text.contains("From: the operator of this installation"), "{}", told.text);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM recovery_codes", vec![]).await, 0);
    let sql = "SELECT actor_kind || ' ' || CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'resetSecondFactor' \
               AND organization_id IS NULL";
    let line: String = app.one(sql, vec![]).await;
    assert!(line.starts_with("SYSTEM ") && line.contains("false"), "{line}");
    // Earlier guesses don't keep the person from setting up another one.
    let (actor, _) = app.session(&session);
    set_up(&app, &actor).await;

    let said = app.refuses(&["user", "reset-second-factor", "stranger@example.com"], 1, "CONFLICT").await;
    assert!(said.contains("stranger@example.com has no second factor"), "{said}");
    app.stranger.get(&format!("/v1/org/{}", app.other_org)).await.expect(200);
}
