//! Idempotency keys: a change that is asked for twice is made once, whatever happens in between.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderValue, StatusCode};
use muster::{
    access::Caller,
    edge::idempotency::{self, Claim, Claimed, Kept},
    error::Code,
    ids::OrgId,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp};

async fn post(actor: &Actor, path: &str, key: &str, body: &Value) -> Answer {
    Answer::of(actor.request(Method::POST, path).header("idempotency-key", key).json(body)).await
}

async fn servers(app: &TestApp) -> i64 {
    app.one("SELECT COUNT(*) FROM servers", vec![]).await
}

#[tokio::test]
async fn the_same_request_is_done_once_and_answered_the_same() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/server", app.org);
    let body = json!({ "name": "rack" });
    let first = post(&app.owner, &path, "k-1", &body).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, ""));
    let again = post(&app.owner, &path, "\"k-1\"", &body).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, "true"));
    assert_eq!(again.text, first.text, "the token that is shown once too");
    assert_eq!(again.header("content-type"), "application/json");
    assert_eq!(servers(&app).await, 1);
    // What is kept is sealed.
    let sealed: Vec<u8> = app.one("SELECT answer_sealed FROM idempotency_keys", vec![]).await;
    let token = first.body["provisioning_token"].as_str().unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains(token));
    // Another request, another caller, another organization.
    let other = post(&app.owner, &path, "k-1", &json!({ "name": "other" })).await;
    assert_eq!(other.problem(), (422, "IDEMPOTENCY_KEY_REUSED"));
    let admin = post(&app.admin, &path, "k-1", &json!({ "name": "other" })).await;
    assert_eq!((admin.status, admin.header("idempotent-replayed")), (201, ""));
    assert_eq!(post(&app.stranger, &path, "k-1", &body).await.problem(), (403, "NOT_A_MEMBER"));
    let elsewhere = post(&app.stranger, &format!("/v1/org/{}/server", app.other_org), "k-1", &body).await;
    assert_eq!((elsewhere.status, elsewhere.header("idempotent-replayed")), (201, ""));
    // What was refused for good is told again; permission and membership are asked each time.
    let taken = post(&app.owner, &path, "k-2", &body).await;
    assert_eq!(taken.problem(), (409, "NAME_TAKEN"));
    let again = post(&app.owner, &path, "k-2", &body).await;
    assert_eq!((again.problem(), again.header("idempotent-replayed")), ((409, "NAME_TAKEN"), "true"));
    assert_eq!(post(&app.viewer, &path, "k-1", &body).await.problem(), (403, "PERMISSION_DENIED"));
    // After a day the key is as good as new.
    app.clock.advance(Duration::from_hours(24));
    assert_eq!(post(&app.owner, &path, "k-1", &body).await.problem(), (409, "NAME_TAKEN"));
    assert_eq!(idempotency::remove_expired(&app.muster).await.unwrap(), 3);
}

#[tokio::test]
async fn of_many_at_once_one_is_done() {
    let app = TestApp::start().await;
    let (path, body) = (format!("/v1/org/{}/server", app.org), json!({ "name": "rack" }));
    let answers = join_all((0..12).map(|_| post(&app.owner, &path, "same", &body))).await;
    let mut made = 0;
    for answer in &answers {
        match answer.status {
            201 => made += 1,
            _ => {
                assert_eq!(answer.problem(), (409, "IDEMPOTENCY_IN_PROGRESS"));
                assert_eq!(answer.header("retry-after"), "1");
            }
        }
    }
    assert!(made >= 1);
    assert_eq!(servers(&app).await, 1);
    let texts: std::collections::HashSet<&str> =
        answers.iter().filter(|answer| answer.status == 201).map(|answer| answer.text.as_str()).collect();
    assert_eq!(texts.len(), 1, "everybody gets the same answer");
    assert_eq!(post(&app.owner, &path, "same", &body).await.header("idempotent-replayed"), "true");
}

async fn claim(app: &TestApp, key: &str) -> Result<Claimed, Code> {
    let claimed = idempotency::claim(&app.muster, &owner(app).await, OrgId(app.org), key, &[7; 32]).await;
    claimed.map(Option::unwrap).map_err(|problem| problem.code)
}

async fn owner(app: &TestApp) -> Caller {
    app.caller(&app.owner).await
}

async fn ours(app: &TestApp, key: &str) -> Arc<Claim> {
    match claim(app, key).await {
        Ok(Claimed::Ours(claim)) => claim,
        Ok(Claimed::Before(kept)) => panic!("{kept:?}"),
        Err(code) => panic!("{code:?}"),
    }
}

fn kept(status: u16) -> Kept {
    Kept {
        status: StatusCode::from_u16(status).unwrap(),
        media: HeaderValue::from_static("application/json"),
        body: Bytes::from_static(b"{}"),
        lasting: idempotency::is_lasting(status),
    }
}

#[tokio::test]
async fn a_process_that_dies_before_its_change_leaves_the_key_to_the_next() {
    let app = TestApp::start().await;
    let dead = ours(&app, "k").await;
    assert_eq!(claim(&app, "k").await.err(), Some(Code::IdempotencyInProgress));
    app.clock.advance(Duration::from_mins(1));
    let next = ours(&app, "k").await;
    // The first one was only slow: its change must not happen beside the other's.
    let tx = app.scope().begin().await.unwrap();
    assert_eq!(dead.mark(tx.connection()).await.unwrap_err().code, Code::IdempotencyInProgress);
    next.mark(tx.connection()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_process_that_dies_after_its_change_leaves_a_doubt_and_no_second_change() {
    let app = TestApp::start().await;
    let dead = ours(&app, "k").await;
    let tx = app.scope().begin().await.unwrap();
    dead.mark(tx.connection()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(claim(&app, "k").await.err(), Some(Code::IdempotencyInProgress));
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(claim(&app, "k").await.err(), Some(Code::IdempotencyInDoubt));
    app.clock.advance(Duration::from_hours(24));
    ours(&app, "k").await;
}

#[tokio::test]
async fn a_change_that_was_undone_leaves_no_mark() {
    let app = TestApp::start().await;
    let first = ours(&app, "k").await;
    let tx = app.scope().begin().await.unwrap();
    first.mark(tx.connection()).await.unwrap();
    tx.rollback().await.unwrap();
    idempotency::under(first, async { kept(503) }).await.unwrap();
    // A failure is not kept: at once the next may try.
    let second = ours(&app, "k").await;
    idempotency::under(second, async { kept(409) }).await.unwrap();
    assert!(matches!(claim(&app, "k").await, Ok(Claimed::Before(Kept { status: StatusCode::CONFLICT, .. }))));
}

#[tokio::test]
async fn a_client_that_goes_away_finds_its_answer_when_it_comes_back() {
    let app = TestApp::start().await;
    let held = ours(&app, "k").await;
    let (go, gone) = tokio::sync::oneshot::channel();
    let work = idempotency::under(held, async {
        gone.await.unwrap();
        kept(201)
    });
    assert!(tokio::time::timeout(Duration::from_millis(5), work).await.is_err());
    go.send(()).unwrap();
    loop {
        match claim(&app, "k").await {
            Err(Code::IdempotencyInProgress) => tokio::task::yield_now().await,
            Ok(Claimed::Before(kept)) => {
                assert_eq!(kept.status, StatusCode::CREATED);
                break;
            }
            _ => panic!("done twice"),
        }
    }
}

#[tokio::test]
async fn a_mutation_over_graphql_has_a_key_of_its_own() {
    let app = TestApp::start().await;
    let query = "mutation($o: Id!, $i: CreateServerInput!) { createServer(orgId: $o, input: $i) { id provisioningToken } }";
    let body = json!({ "query": query, "variables": { "o": app.org, "i": { "name": "rack" } } });
    let first = post(&app.owner, "/graphql", "k", &body).await;
    let again = post(&app.owner, "/graphql", "k", &body).await;
    assert_eq!((again.status, again.header("idempotent-replayed"), &again.text), (200, "true", &first.text));
    first.data();
    assert_eq!(servers(&app).await, 1);
    let other = json!({ "query": query, "variables": { "o": app.org, "i": { "name": "other" } } });
    let refused = post(&app.owner, "/graphql", "k", &other).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "IDEMPOTENCY_KEY_REUSED"));
    // What may pass is not kept.
    assert_eq!(post(&app.stranger, "/graphql", "k", &body).await.code(), "NOT_A_MEMBER");
    let again = post(&app.stranger, "/graphql", "k", &body).await;
    assert_eq!((again.code().as_str(), again.header("idempotent-replayed")), ("NOT_A_MEMBER", ""));
    let batch = post(&app.owner, "/graphql", "k2", &json!([other])).await;
    assert_eq!((batch.status, batch.code().as_str()), (400, "MALFORMED_REQUEST"));
    let read = json!({ "query": format!("{{ agents(orgId: {}, page: 1, limit: 1) {{ total }} }}", app.org) });
    assert_eq!(post(&app.owner, "/graphql", "k", &read).await.status, 200, "a query has no use for it");
    let long =
        post(&app.owner, &format!("/v1/org/{}/server", app.org), &"k".repeat(256), &json!({ "name": "x" }))
            .await;
    assert_eq!(long.problem(), (400, "MALFORMED_REQUEST"));
}
