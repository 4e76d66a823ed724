//! Sessions: what reusing a refresh token means, and who can end which session.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Actor, Answer, TestApp, is_postgres};

const REFRESH: &str =
    "mutation($t: SecretString!) { refreshSession(refreshToken: $t) { accessToken refreshToken } }";
const VIEWER: &str = "{ viewer { user { id } } sessions { id current } }";
const EMAIL: &str = "someone@example.org";

/// A service with a person and their session: access and refresh token.
async fn signed_in() -> (TestApp, Actor, String) {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let (actor, token) = app.signed_in(EMAIL).await;
    (app, actor, token)
}

async fn refresh(app: &TestApp, token: &str) -> Answer {
    app.anonymous.gql(REFRESH, json!({ "t": token })).await
}

async fn renewed(app: &TestApp, token: &str) -> (Actor, String) {
    app.session(&refresh(app, token).await.data()["refreshSession"])
}

async fn is_open(actor: &Actor) -> bool {
    actor.gql(VIEWER, json!({})).await.body["errors"].is_null()
}

#[tokio::test]
async fn a_lost_answer_is_repeated_and_a_stolen_one_ends_the_session() {
    let (app, _, first) = signed_in().await;
    let (lost, lost_refresh) = renewed(&app, &first).await;
    app.clock.advance(Duration::from_secs(9));
    let (kept, kept_refresh) = renewed(&app, &first).await;
    // One heir, shown twice.
    assert_eq!(lost_refresh, kept_refresh);
    assert!(is_open(&lost).await && is_open(&kept).await);
    let (_, next) = renewed(&app, &kept_refresh).await;
    assert!(app.mails().await.is_empty());
    // It wasn't lost but stolen: anyone who uses it second ends the session, and the person is notified.
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(refresh(&app, &lost_refresh).await.code(), "UNAUTHENTICATED");
    let mail = app.mail().await;
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), (EMAIL, "A session was ended for your security"));
    assert_eq!(refresh(&app, &next).await.code(), "UNAUTHENTICATED");
    // The person is told only once.
    assert_eq!(refresh(&app, &lost_refresh).await.code(), "UNAUTHENTICATED");
    assert!(app.mails().await.is_empty());
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'refreshTokenReused'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
}

#[tokio::test]
async fn suspicious_reuse_of_a_refresh_token_ends_the_session() {
    let (app, _, first) = signed_in().await;
    let (_, heir) = renewed(&app, &first).await;
    let (kept, _) = renewed(&app, &heir).await;
    assert_eq!(refresh(&app, &first).await.code(), "UNAUTHENTICATED");
    assert!(!is_open(&kept).await);

    let (_, second) = app.signed_in(EMAIL).await;
    let (kept, _) = renewed(&app, &second).await;
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(refresh(&app, &second).await.code(), "UNAUTHENTICATED");
    assert!(!is_open(&kept).await);

    let (_, third) = app.signed_in(EMAIL).await;
    let (kept, _) = renewed(&app, &third).await;
    let body = json!({ "query": REFRESH, "variables": { "t": third } });
    let other = app.anonymous.request(reqwest::Method::POST, "/graphql").header("user-agent", "thief/1.0");
    assert_eq!(Answer::of(other.json(&body)).await.code(), "UNAUTHENTICATED");
    assert!(!is_open(&kept).await);
}

#[tokio::test]
async fn eight_tabs_refreshing_at_once_share_one_session() {
    let (app, _, token) = signed_in().await;
    let answers = futures::future::join_all((0..8).map(|_| refresh(&app, &token))).await;
    let mut tokens = Vec::new();
    for answer in answers {
        let (actor, token) = app.session(&answer.data()["refreshSession"]);
        assert!(is_open(&actor).await);
        tokens.push(token);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "one heir");
    let sql = "SELECT COUNT(*) FROM sessions WHERE generation = 1 AND revoked_at IS NULL";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
    // Later refreshes end nothing, and no one was told of a theft.
    app.clock.advance(Duration::from_mins(10));
    let (kept, _) = renewed(&app, &tokens[0]).await;
    assert!(is_open(&kept).await && app.mails().await.is_empty());
}

#[tokio::test]
async fn key_rotation_keeps_the_heir_and_ended_sessions_have_none() {
    let (app, _, first) = signed_in().await;
    let (_, heir) = renewed(&app, &first).await;
    app.cli(&["key", "rotate", "--encryption"]).await.expect();
    muster::core::keys::reload(&app.core);
    assert_eq!(renewed(&app, &first).await.1, heir);
    let (actor, second) = app.signed_in(EMAIL).await;
    let (_, _) = renewed(&app, &second).await;
    actor.gql("mutation { revokeOtherSessions }", json!({})).await;
    assert_eq!(refresh(&app, &first).await.code(), "UNAUTHENTICATED");
}

#[tokio::test]
async fn ending_other_sessions_affects_only_ones_own() {
    let (app, first, _) = signed_in().await;
    let (second, _) = app.signed_in(EMAIL).await;
    let (_, token) = app.signed_in(EMAIL).await;
    let (third, _) = renewed(&app, &token).await;
    assert_eq!(third.gql(VIEWER, json!({})).await.data()["sessions"].as_array().unwrap().len(), 3);
    third.gql("mutation { revokeOtherSessions }", json!({})).await.data();
    assert!(!is_open(&first).await && !is_open(&second).await && is_open(&third).await);
    assert!(is_open(&app.stranger).await && is_open(&app.owner).await);
    let left = third.gql(VIEWER, json!({})).await.data()["sessions"].clone();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["current"]), (1, &json!(true)));
}

#[tokio::test]
async fn a_session_that_was_refreshed_often_hides_no_other() {
    let (app, actor, token) = signed_in().await;
    let newest = "SELECT MAX(id) FROM sessions WHERE user_id = (SELECT id FROM users WHERE email = $1)";
    let mine: i64 = app.one(newest, vec![EMAIL.into()]).await;
    let bytes = if is_postgres() { "BYTEA" } else { "BLOB" };
    let often = format!(
        "INSERT INTO sessions (user_id, family, generation, kind, token_hash, created_at, last_used_at, expires_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
         SELECT s.user_id, 'another', n.i, s.kind, CAST('token ' || n.i AS {bytes}), s.created_at, s.last_used_at, \
         s.expires_at FROM sessions s, n WHERE s.id = $1 ORDER BY n.i"
    );
    app.execute(&often, vec![mine.into()]).await;
    let look = "{ viewer { session { current } } sessions { current } }";
    let shown = async || actor.gql(look, json!({})).await.data();
    let (this, other) = (json!({ "current": true }), json!({ "current": false }));
    assert_eq!(shown().await, json!({ "viewer": { "session": this }, "sessions": [other, this] }));
    // Its access token is one generation behind now.
    renewed(&app, &token).await;
    assert_eq!(shown().await, json!({ "viewer": { "session": this }, "sessions": [this, other] }));
}
