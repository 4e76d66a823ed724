//! Sessions: what a used refresh token means, and who can end which session.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Actor, Answer, TestApp};

const REFRESH: &str =
    "mutation($t: SecretString!) { refreshSession(refreshToken: $t) { accessToken refreshToken } }";
const VIEWER: &str = "{ viewer { user { id } } sessions { id current } }";
const EMAIL: &str = "someone@example.org";

/// A service with a person, and their session: access, refresh.
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
async fn an_answer_that_got_lost_is_given_once_more_and_what_was_lost_is_dead() {
    let (app, _, first) = signed_in().await;
    let (lost, lost_refresh) = renewed(&app, &first).await;
    app.clock.advance(Duration::from_secs(9));
    let (kept, kept_refresh) = renewed(&app, &first).await;
    assert!(!is_open(&lost).await && is_open(&kept).await);
    let (_, next) = renewed(&app, &kept_refresh).await;
    assert!(app.mails().await.is_empty());
    // It was not lost but stolen: whoever has it ends the session, and the person is told.
    assert_eq!(refresh(&app, &lost_refresh).await.code(), "UNAUTHENTICATED");
    let mail = app.mail().await;
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), (EMAIL, "A session was ended for safety"));
    assert_eq!(refresh(&app, &next).await.code(), "UNAUTHENTICATED");
    // Once is enough to be told.
    assert_eq!(refresh(&app, &lost_refresh).await.code(), "UNAUTHENTICATED");
    assert!(app.mails().await.is_empty());
    let sql = "SELECT COUNT(*) FROM audit_lines WHERE operation = 'refreshTokenReused'";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
}

#[tokio::test]
async fn a_third_use_and_a_late_one_and_one_from_another_client_end_the_session() {
    let (app, _, first) = signed_in().await;
    renewed(&app, &first).await;
    let (kept, _) = renewed(&app, &first).await;
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
async fn of_many_who_refresh_at_once_at_most_one_is_left_with_a_session() {
    for _ in 0..3 {
        let (app, _, token) = signed_in().await;
        let answers = futures::future::join_all((0..6).map(|_| refresh(&app, &token))).await;
        let won: Vec<_> = answers.iter().filter(|answer| answer.body["errors"].is_null()).collect();
        // The first, and the one that took it for lost; the third was one too many.
        assert_eq!(won.len(), 2);
        for answer in won {
            let (actor, token) = app.session(&answer.body["data"]["refreshSession"]);
            assert!(!is_open(&actor).await);
            assert_eq!(refresh(&app, &token).await.code(), "UNAUTHENTICATED");
        }
        let (app, _, token) = signed_in().await;
        let (one, two) = tokio::join!(refresh(&app, &token), refresh(&app, &token));
        let mut open = 0;
        for answer in [one, two] {
            let (actor, _) = app.session(&answer.data()["refreshSession"]);
            open += usize::from(is_open(&actor).await);
        }
        assert_eq!(open, 1);
    }
}

#[tokio::test]
async fn a_person_ends_their_other_sessions_and_nobody_elses() {
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
