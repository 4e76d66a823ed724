//! Recovering an account: what an intruder started doesn't survive a new password or the end of a session, and
//! no one can keep the owner from recovering it.

use sea_orm::{ConnectionTrait, TransactionTrait};
use serde_json::json;

use crate::{
    harness::{
        Actor, Answer, TestApp,
        account::{CHANGE_EMAIL, CHANGE_PASSWORD, CONFIRM, REQUEST_RESET, RESET},
        is_postgres, until,
    },
    people::refresh,
};

const EMAIL: &str = "someone@example.org";

/// The tokens of a sign-in: an actor with the access token, and the refresh token.
async fn signed_in(app: &TestApp, password: &str) -> (Actor, String) {
    app.session(&app.sign_in(EMAIL, password).await.data()["signIn"])
}

/// Whether the service has a connection for writing in use.
fn is_writing(app: &TestApp) -> bool {
    let [_, (_, connections, idle, _)] = app.core.db.pools();
    connections > idle
}

/// Runs `work` while no one can be charged for an attempt; by its end, another password has replaced the old
/// one.
async fn while_the_password_is_replaced(app: &TestApp, work: impl Future<Output = Answer>) -> Answer {
    let tx = app.database.begin().await.unwrap();
    if is_postgres() {
        tx.execute_unprepared("LOCK TABLE sign_in_throttle IN EXCLUSIVE MODE").await.unwrap();
    }
    let sql = format!("UPDATE users SET password_hash = 'another' WHERE email = '{EMAIL}'");
    tx.execute_unprepared(&sql).await.unwrap();
    let commit = async {
        // Work begins to write when it is charged, after it has read the old password.
        until("it waits to be charged", async || is_writing(app)).await;
        tx.commit().await.unwrap();
    };
    tokio::join!(work, commit).0
}

#[tokio::test]
async fn a_new_password_ends_pending_address_changes() {
    for by_link in [true, false] {
        let app = TestApp::with_mail().await;
        app.user(EMAIL, true).await;
        let (intruder, _) = signed_in(&app, "correct horse").await;
        let wanted = json!({ "e": "intruder@example.net", "p": "correct horse" });
        intruder.gql(CHANGE_EMAIL, wanted).await.data();
        let theirs = app.mail().await;
        assert_eq!(theirs.to, "intruder@example.net");
        if by_link {
            app.anonymous.gql(REQUEST_RESET, json!({ "e": EMAIL })).await.data();
            let token = app.mail().await.token;
            app.anonymous.gql(RESET, json!({ "t": token, "p": "battery staple" })).await.data();
        } else {
            let (owner, _) = signed_in(&app, "correct horse").await;
            owner.gql(CHANGE_PASSWORD, json!({ "c": "correct horse", "n": "battery staple" })).await.data();
        }
        let late = app.anonymous.gql(CONFIRM, json!({ "t": theirs.token })).await;
        assert_eq!(late.code(), "LINK_INVALID");
        signed_in(&app, "battery staple").await;
    }
}

#[tokio::test]
async fn claiming_an_address_does_not_block_its_owners_reset() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    // The address is taken, so none of these sends a mail, but each is charged.
    let mut codes = Vec::new();
    for _ in 0..5 {
        let answer = app.stranger.gql(CHANGE_EMAIL, json!({ "e": EMAIL })).await;
        codes.push(if answer.body["errors"].is_null() { String::new() } else { answer.code() });
    }
    assert_eq!(codes.last().unwrap(), "RATE_LIMITED");
    app.anonymous.gql(REQUEST_RESET, json!({ "e": EMAIL })).await.data();
    let mail = app.mail().await;
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), (EMAIL, "Set a new password"));
}

#[tokio::test]
async fn signing_in_during_a_password_change_fails_with_the_old_one() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    let late = while_the_password_is_replaced(&app, app.sign_in(EMAIL, "correct horse")).await;
    assert_eq!(late.code(), "SIGN_IN_FAILED");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM sessions WHERE user_agent IS NOT NULL", vec![]).await, 0);
}

#[tokio::test]
async fn changing_a_password_during_a_reset_does_not_undo_it() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    let (intruder, _) = signed_in(&app, "correct horse").await;
    // The first use of a token is recorded in the background, which writes too.
    let writes = app.writes();
    intruder.gql("{ viewer { user { id } } }", json!({})).await.data();
    until("it is recorded", async || app.writes() > writes && !is_writing(&app)).await;
    let change = json!({ "c": "correct horse", "n": "intruder's own" });
    let late = while_the_password_is_replaced(&app, intruder.gql(CHANGE_PASSWORD, change)).await;
    assert_eq!(late.code(), "SIGN_IN_FAILED");
    let stored: String =
        app.one("SELECT password_hash FROM users WHERE email = $1", vec![EMAIL.into()]).await;
    assert_eq!(stored, "another");
}

#[tokio::test]
async fn refreshing_during_sign_out_leaves_no_session() {
    let app = TestApp::start().await;
    app.user(EMAIL, true).await;
    for round in 0..30 {
        let (actor, token) = signed_in(&app, "correct horse").await;
        let end = if round % 2 == 0 { "mutation { signOut }" } else { "mutation { revokeOtherSessions }" };
        let (owner, _) = signed_in(&app, "correct horse").await;
        let ender = if round % 2 == 0 { &actor } else { &owner };
        let (renewed, ended) = tokio::join!(refresh(&app, &token), ender.gql(end, json!({})));
        ended.data();
        if renewed.body["errors"].is_null() {
            let (heir, token) = app.session(&renewed.data()["refreshSession"]);
            let viewer = heir.gql("{ viewer { user { id } } }", json!({})).await;
            assert_eq!(viewer.code(), "UNAUTHENTICATED", "round {round}");
            assert_eq!(refresh(&app, &token).await.code(), "UNAUTHENTICATED");
        } else {
            assert_eq!(renewed.code(), "UNAUTHENTICATED");
        }
    }
}

/// Uses a link while someone else holds its person, who then locks the link as well.
async fn while_the_person_is_held(app: &TestApp, using: impl Future<Output = Answer>) -> Answer {
    let person = "SELECT 1 FROM users WHERE name = 'Someone' FOR NO KEY UPDATE";
    app.while_held(person, "SELECT 1 FROM email_tokens FOR UPDATE NOWAIT", using).await
}

/// Anyone who locks both locks the person first, so that no one ends in a deadlock. SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_link_is_not_locked_before_its_person() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let (actor, _) = signed_in(&app, "correct horse").await;
    let other = "other@example.net";
    actor.gql(CHANGE_EMAIL, json!({ "e": other, "p": "correct horse" })).await.data();
    let link = json!({ "t": app.mail().await.token });
    while_the_person_is_held(&app, app.anonymous.gql(CONFIRM, link)).await.data();
    assert_eq!(app.mail().await.to, EMAIL, "the old address is notified");
    app.anonymous.gql(REQUEST_RESET, json!({ "e": other })).await.data();
    let link = json!({ "t": app.mail().await.token, "p": "battery staple" });
    while_the_person_is_held(&app, app.anonymous.gql(RESET, link)).await.data();
}
