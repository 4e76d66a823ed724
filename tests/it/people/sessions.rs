//! Sessions: what reusing a refresh token means, and who can end which session.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{Actor, Answer, TestApp, is_postgres},
    people::{REFRESH, refresh},
};

const VIEWER: &str = "{ viewer { user { id } } sessions { id current } }";
const EMAIL: &str = "someone@example.org";

/// A service with a person and their session: access and refresh token.
async fn signed_in() -> (TestApp, Actor, String) {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let (actor, token) = app.signed_in(EMAIL).await;
    (app, actor, token)
}

const SIGN_IN: &str = "mutation($e: String!, $p: SecretString!) { refreshed: signIn(email: $e, password: $p) { refreshToken } }";

/// A change from a browser that calls itself so.
async fn from_browser(app: &TestApp, agent: &str, query: &str, variables: Value) -> Answer {
    let request = app.anonymous.request(Method::POST, "/graphql").header("user-agent", agent);
    Answer::of(request.json(&json!({ "query": query, "variables": variables }))).await
}

async fn renewed(app: &TestApp, token: &str) -> (Actor, String) {
    app.session(&refresh(app, token).await.data()["refreshSession"])
}

async fn is_open(actor: &Actor) -> bool {
    actor.gql(VIEWER, json!({})).await.body["errors"].is_null()
}

#[tokio::test]
async fn a_lost_answer_is_repeated_and_a_stolen_one_ends_the_session() {
    let (app, original, first) = signed_in().await;
    let (other, other_refresh) = app.signed_in(EMAIL).await;
    let (lost, lost_refresh) = renewed(&app, &first).await;
    app.clock.advance(Duration::from_secs(9));
    let (kept, kept_refresh) = renewed(&app, &first).await;
    // One heir, shown twice.
    assert_eq!(lost_refresh, kept_refresh);
    assert!(is_open(&lost).await && is_open(&kept).await);
    // The first access token works until it expires, because requests may be in flight.
    assert!(is_open(&original).await);
    let (_, next) = renewed(&app, &kept_refresh).await;
    assert!(app.mails().await.is_empty());
    // The token wasn't lost but stolen: its second use ends the session, and the person is notified.
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(refresh(&app, &lost_refresh).await.code(), "UNAUTHENTICATED");
    let mail = app.mail().await;
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), (EMAIL, "A session was ended for your security"));
    assert_eq!(refresh(&app, &next).await.code(), "UNAUTHENTICATED");
    for ended in [&original, &lost, &kept] {
        let answer = ended.get(&format!("/v1/org/{}", app.org)).await;
        assert_eq!(answer.problem(), (401, "UNAUTHENTICATED"));
    }
    // The person is notified only once.
    assert_eq!(refresh(&app, &lost_refresh).await.code(), "UNAUTHENTICATED");
    assert!(app.mails().await.is_empty());
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'refreshTokenReused'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
    // Another sign-in of the same person is a different family.
    assert!(is_open(&other).await);
    renewed(&app, &other_refresh).await;
}

#[tokio::test]
async fn an_older_token_or_one_without_a_client_is_refused() {
    let (app, _, first) = signed_in().await;
    let (_, heir) = renewed(&app, &first).await;
    let (kept, _) = renewed(&app, &heir).await;
    assert_eq!(refresh(&app, &first).await.code(), "UNAUTHENTICATED");
    assert!(!is_open(&kept).await);

    let (_, third) = app.signed_in(EMAIL).await;
    let (kept, _) = renewed(&app, &third).await;
    let stolen = from_browser(&app, "thief/1.0", REFRESH, json!({ "t": third })).await;
    assert_eq!(stolen.code(), "UNAUTHENTICATED");
    assert!(!is_open(&kept).await);
}

/// Two uses of one token, by whom and how many seconds apart, and whether the second gets the session too.
#[tokio::test]
async fn a_token_is_used_again_only_by_the_browser_that_used_it() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let (old, new, thief) = ("Browser/1.0", "Browser/2.0", "thief/1.0");
    for (signed_in, first, second, apart, expected) in [
        // The browser was updated between the sign-in and two tabs' refreshes.
        (old, new, new, 0, true),
        (old, new, new, 9, true),
        (old, old, old, 9, true),
        // An answer was lost, and the browser was updated at that moment: rare, and looks like theft.
        (old, old, new, 0, false),
        (old, new, old, 0, false),
        // Stolen, and used after or before its owner.
        (old, old, thief, 0, false),
        (old, new, thief, 0, false),
        (old, thief, old, 0, false),
        (old, thief, new, 0, false),
        // Too late, for anyone.
        (old, old, old, 10, false),
        (old, new, new, 10, false),
    ] {
        let case = format!("{signed_in}, {first}, {second}, {apart}");
        let entered = json!({ "e": EMAIL, "p": "correct horse" });
        let session = from_browser(&app, signed_in, SIGN_IN, entered).await.data();
        let used = json!({ "t": session["refreshed"]["refreshToken"] });
        let one = from_browser(&app, first, REFRESH, used.clone()).await.data();
        let (actor, heir) = app.session(&one["refreshSession"]);
        app.clock.advance(Duration::from_secs(apart));
        let two = from_browser(&app, second, REFRESH, used).await;
        assert_eq!(is_open(&actor).await, expected, "{case}");
        if expected {
            assert_eq!(two.data()["refreshSession"]["refreshToken"], heir, "{case}");
            assert!(app.mails().await.is_empty(), "{case}");
        } else {
            assert_eq!(two.code(), "UNAUTHENTICATED", "{case}");
            assert_eq!(app.mail().await.subject, "A session was ended for your security", "{case}");
        }
    }
}

/// The heir of a token that was used again is one session: its second use, after the grace period, ends it.
#[tokio::test]
async fn a_thief_who_calls_himself_the_same_browser_is_found_out() {
    let app = TestApp::with_mail().await;
    app.user(EMAIL, true).await;
    let new = "Browser/2.0";
    let entered = json!({ "e": EMAIL, "p": "correct horse" });
    let session = from_browser(&app, "Browser/1.0", SIGN_IN, entered).await.data();
    let used = json!({ "t": session["refreshed"]["refreshToken"] });
    let mut heirs = Vec::new();
    for _owner_then_thief in 0..2 {
        let data = from_browser(&app, new, REFRESH, used.clone()).await.data();
        heirs.push(json!({ "t": data["refreshSession"]["refreshToken"] }));
    }
    app.clock.advance(Duration::from_mins(10));
    let data = from_browser(&app, new, REFRESH, heirs[0].clone()).await.data();
    let (owner, _) = app.session(&data["refreshSession"]);
    app.clock.advance(Duration::from_secs(10));
    assert_eq!(from_browser(&app, new, REFRESH, heirs[1].clone()).await.code(), "UNAUTHENTICATED");
    assert!(!is_open(&owner).await);
    assert_eq!(app.mail().await.subject, "A session was ended for your security");
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
    // Later refreshes end nothing, and no one was notified of a theft.
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
    let open = third.gql("{ sessions { id current ip } }", json!({})).await.data()["sessions"].clone();
    let current: Vec<_> = open.as_array().unwrap().iter().map(|session| session["current"].clone()).collect();
    assert_eq!(current, [json!(true), json!(false), json!(false)]);
    assert_eq!(open[0]["ip"], "127.0.0.1");
    let revoke = "mutation($id: Id!) { revokeSession(id: $id) }";
    let one = json!({ "id": open[1]["id"] });
    assert_eq!(app.stranger.gql(revoke, one.clone()).await.code(), "NOT_FOUND");
    assert_eq!(third.gql(revoke, one.clone()).await.data()["revokeSession"], one["id"]);
    assert!(is_open(&first).await != is_open(&second).await && is_open(&third).await);
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
    // The session's access token is one generation behind now.
    renewed(&app, &token).await;
    assert_eq!(shown().await, json!({ "viewer": { "session": this }, "sessions": [this, other] }));
}
