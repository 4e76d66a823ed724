//! Idempotency keys: a change requested twice is made once, despite failures in between.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderValue, StatusCode};
use muster::{
    api::middleware::idempotency::{self, Claim, Claimed},
    base::{ids::OrgId, problem::Code},
    core::{
        Request,
        access::{Caller, Scope},
    },
};
use reqwest::Method;
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp, until};

type Kept = idempotency::Answer;

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
    let mut shown = first.body.clone();
    assert!(shown["provisioning_token"].as_str().unwrap().starts_with("mst_"));
    shown["provisioning_token"] = Value::Null;
    assert_eq!(again.body, shown, "the token is shown once, everything else again");
    assert_eq!(again.header("content-type"), "application/json");
    assert_eq!(servers(&app).await, 1);
    // The kept answer is sealed.
    let sealed: Vec<u8> = app.one("SELECT answer_sealed FROM idempotency_keys", vec![]).await;
    assert!(!String::from_utf8_lossy(&sealed).contains("rack"));
    // A different request, caller, or organization.
    let other = post(&app.owner, &path, "k-1", &json!({ "name": "other" })).await;
    assert_eq!(other.problem(), (422, "IDEMPOTENCY_KEY_REUSED"));
    let admin = post(&app.admin, &path, "k-1", &json!({ "name": "other" })).await;
    assert_eq!((admin.status, admin.header("idempotent-replayed")), (201, ""));
    assert_eq!(post(&app.stranger, &path, "k-1", &body).await.problem(), (403, "NOT_A_MEMBER"));
    let elsewhere = post(&app.stranger, &format!("/v1/org/{}/server", app.other_org), "k-1", &body).await;
    assert_eq!((elsewhere.status, elsewhere.header("idempotent-replayed")), (201, ""));
    // A permanent refusal is replayed; permission and membership are checked each time.
    let agents = format!("/v1/org/{}/agent", app.org);
    let nowhere = json!({ "name": "a", "server_id": 999_999, "image_id": 999_999 });
    for replayed in ["", "true"] {
        let refused = post(&app.owner, &agents, "k-2", &nowhere).await;
        assert_eq!(
            (refused.problem(), refused.header("idempotent-replayed")),
            ((422, "VALIDATION_FAILED"), replayed)
        );
    }
    assert_eq!(post(&app.viewer, &path, "k-1", &body).await.problem(), (403, "PERMISSION_DENIED"));
    // After a day the key is free again.
    app.clock.advance(Duration::from_hours(24));
    assert_eq!(post(&app.owner, &path, "k-1", &body).await.problem(), (409, "NAME_TAKEN"));
    assert_eq!(idempotency::remove_expired(&app.core).await.unwrap(), 3);
}

#[tokio::test]
async fn of_many_concurrent_requests_one_is_done() {
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
    let ids: std::collections::HashSet<i64> =
        answers.iter().filter_map(|answer| answer.body["id"].as_i64()).collect();
    assert_eq!(ids.len(), 1, "all get the same server");
    assert_eq!(post(&app.owner, &path, "same", &body).await.header("idempotent-replayed"), "true");
}

async fn claim(app: &TestApp, key: &str) -> Result<Claimed, Code> {
    let claimed = idempotency::claim(&app.core, &owner(app).await, OrgId(app.org), key, &[7; 32]).await;
    claimed.map(Option::unwrap).map_err(|problem| problem.code)
}

async fn owner(app: &TestApp) -> Caller {
    app.caller(&app.owner).await
}

async fn ours(app: &TestApp, key: &str) -> Arc<Claim> {
    match claim(app, key).await {
        Ok(Claimed::Ours(claim)) => claim,
        Ok(Claimed::Done(kept)) => panic!("{kept:?}"),
        Err(code) => panic!("{code:?}"),
    }
}

fn kept(status: u16) -> Kept {
    Kept {
        status: StatusCode::from_u16(status).unwrap(),
        media: HeaderValue::from_static("application/json"),
        body: Bytes::from_static(b"{}"),
        kept: idempotency::is_lasting(status).then(|| Bytes::from_static(b"{}")),
        retry_after: None,
        replayed: false,
    }
}

/// A change under a claim that changes nothing else.
async fn change(app: &TestApp, claim: &Arc<Claim>) -> Result<(), Code> {
    let request = Request::system(&app.core);
    request.set_key(Arc::clone(claim) as _);
    let tx = Scope::system_for(&request, OrgId(app.org)).begin().await.unwrap();
    tx.commit().await.map_err(|problem| problem.code)
}

#[tokio::test]
async fn a_process_that_dies_before_its_change_frees_the_key() {
    let app = TestApp::start().await;
    let dead = ours(&app, "k").await;
    assert_eq!(claim(&app, "k").await.err(), Some(Code::IdempotencyInProgress));
    app.clock.advance(Duration::from_mins(1));
    let next = ours(&app, "k").await;
    // The first one was only slow: its change must not happen in addition to the other's.
    assert_eq!(change(&app, &dead).await, Err(Code::Conflict));
    assert_eq!(change(&app, &next).await, Ok(()));
}

#[tokio::test]
async fn a_death_after_a_change_leaves_doubt_and_no_repeat() {
    let app = TestApp::start().await;
    let dead = ours(&app, "k").await;
    change(&app, &dead).await.unwrap();
    assert_eq!(claim(&app, "k").await.err(), Some(Code::IdempotencyInProgress));
    app.clock.advance(Duration::from_mins(1));
    assert_eq!(claim(&app, "k").await.err(), Some(Code::IdempotencyInDoubt));
    app.clock.advance(Duration::from_hours(24));
    ours(&app, "k").await;
}

#[tokio::test]
async fn a_rolled_back_change_leaves_no_mark() {
    let app = TestApp::start().await;
    let first = ours(&app, "k").await;
    let request = Request::system(&app.core);
    request.set_key(Arc::clone(&first) as _);
    let tx = Scope::system_for(&request, OrgId(app.org)).begin().await.unwrap();
    tx.rollback().await.unwrap();
    // Failures and temporary refusals aren't kept: the next request may try at once.
    let mut claim_of = first;
    for status in [503, 401, 404, 409, 412, 429] {
        idempotency::run_under_claim(claim_of, async move { kept(status) }).await.unwrap();
        claim_of = ours(&app, "k").await;
    }
    idempotency::run_under_claim(claim_of, async { kept(422) }).await.unwrap();
    let told = claim(&app, "k").await;
    assert!(matches!(told, Ok(Claimed::Done(Kept { status: StatusCode::UNPROCESSABLE_ENTITY, .. }))));
}

/// Its client repeats the request, and must not wait until the claim is too old.
#[tokio::test]
async fn a_key_is_free_once_the_database_is_back() {
    let app = TestApp::start().await;
    let refused = ours(&app, "k").await;
    app.database.execute_unprepared("ALTER TABLE idempotency_keys RENAME TO away").await.unwrap();
    idempotency::run_under_claim(refused, async { kept(503) }).await.unwrap();
    app.database.execute_unprepared("ALTER TABLE away RENAME TO idempotency_keys").await.unwrap();
    until("the key is free", async || claim(&app, "k").await.is_ok()).await;
}

#[tokio::test]
async fn a_change_without_a_kept_answer_is_in_doubt_at_once() {
    let app = TestApp::start().await;
    // A failure after the change, an answer that is too large, and one for which the caller has no room left.
    let failed = ours(&app, "failed").await;
    change(&app, &failed).await.unwrap();
    idempotency::run_under_claim(failed, async { kept(500) }).await.unwrap();
    let large = ours(&app, "large").await;
    change(&app, &large).await.unwrap();
    let body = Some(Bytes::from(vec![b'x'; (64 << 10) + 1]));
    idempotency::run_under_claim(large, async { Kept { kept: body, ..kept(200) } }).await.unwrap();
    let room = ours(&app, "room").await;
    idempotency::run_under_claim(room, async { kept(200) }).await.unwrap();
    let bytes: i64 = app
        .one(
            "SELECT answer_bytes FROM idempotency_keys WHERE status = 200 AND answer_sealed IS NOT NULL",
            vec![],
        )
        .await;
    assert!((1..200).contains(&bytes), "{bytes}");
    app.execute(
        "UPDATE idempotency_keys SET answer_bytes = $1 WHERE answer_bytes IS NOT NULL",
        vec![(8_i64 << 20).into()],
    )
    .await;
    let full = ours(&app, "full").await;
    change(&app, &full).await.unwrap();
    idempotency::run_under_claim(full, async { kept(200) }).await.unwrap();
    for key in ["failed", "large", "full"] {
        assert_eq!(claim(&app, key).await.err(), Some(Code::IdempotencyInDoubt), "{key}");
    }
    let kept_bytes: i64 =
        app.one("SELECT COUNT(*) FROM idempotency_keys WHERE answer_sealed IS NOT NULL", vec![]).await;
    assert_eq!(kept_bytes, 1);
    // Another caller has their own room.
    let path = format!("/v1/org/{}/server", app.org);
    let body = json!({ "name": "rack" });
    assert_eq!(post(&app.admin, &path, "k", &body).await.status, 201);
    assert_eq!(post(&app.admin, &path, "k", &body).await.header("idempotent-replayed"), "true");
}

#[tokio::test]
async fn work_under_a_key_has_a_deadline() {
    let app = TestApp::start_with(|config| config.limits.request_timeout_seconds = 1).await;
    let held = ours(&app, "k").await;
    let endless = idempotency::run_under_claim(held, std::future::pending::<Kept>()).await;
    assert_eq!(endless.unwrap_err().code, Code::Unavailable);
    ours(&app, "k").await;
}

#[tokio::test]
async fn a_client_that_leaves_finds_its_answer_when_it_returns() {
    let app = TestApp::start().await;
    let held = ours(&app, "k").await;
    let (go, gone) = tokio::sync::oneshot::channel();
    let work = idempotency::run_under_claim(held, async {
        gone.await.unwrap();
        kept(201)
    });
    assert!(tokio::time::timeout(Duration::from_millis(5), work).await.is_err());
    go.send(()).unwrap();
    loop {
        match claim(&app, "k").await {
            Err(Code::IdempotencyInProgress) => tokio::task::yield_now().await,
            Ok(Claimed::Done(kept)) => {
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
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"));
    assert_eq!(again.body["data"]["createServer"]["id"], first.body["data"]["createServer"]["id"]);
    first.data();
    assert_eq!(servers(&app).await, 1);
    let other = json!({ "query": query, "variables": { "o": app.org, "i": { "name": "other" } } });
    let refused = post(&app.owner, "/graphql", "k", &other).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "IDEMPOTENCY_KEY_REUSED"));
    // Temporary refusals aren't kept.
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

/// A service token created with a document in which its secret has many names.
fn issue(app: &TestApp) -> Value {
    let query = "mutation($o: Id! = 999, $i: CreateServiceTokenInput!, $no: Boolean!) { \
                 made: createServiceToken(orgId: $o, input: $i) { name a: token ...F ... on IssuedServiceToken { b: token } } \
                 left: stopAgent(orgId: $o, id: 1) @skip(if: $no) { id } } \
                 fragment F on IssuedServiceToken { token hint }";
    let input = json!({ "name": "ci", "permissions": ["agent.view"] });
    json!({ "query": query, "variables": { "o": app.org, "i": input, "no": true } })
}

#[tokio::test]
async fn a_kept_answer_needs_current_permission_and_has_no_secret() {
    let app = TestApp::start().await;
    let body = issue(&app);
    let first = post(&app.admin, "/graphql", "k", &body).await.data();
    for name in ["a", "b", "token"] {
        assert!(first["made"][name].as_str().unwrap().starts_with("mst_svc_"), "{first:#}");
    }
    let again = post(&app.admin, "/graphql", "k", &body).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert!(!again.text.contains("mst_svc_"), "{}", again.text);
    let (again, made) = (again.data(), &first["made"]);
    let expected = json!({ "name": "ci", "a": null, "token": null, "hint": made["hint"], "b": null });
    assert_eq!(again["made"], expected);
    // With current permissions: a lower role, then no membership. The session is still open.
    let member = json!({ "o": app.org, "u": app.admin.user });
    let demote = "mutation($o: Id!, $u: Id!) { updateMember(orgId: $o, userId: $u, input: { role: VIEWER }) { role } }";
    app.owner.gql(demote, member.clone()).await.data();
    let refused = post(&app.admin, "/graphql", "k", &body).await;
    assert_eq!((refused.code().as_str(), refused.header("idempotent-replayed")), ("PERMISSION_DENIED", ""));
    app.owner.gql("mutation($o: Id!, $u: Id!) { removeMember(orgId: $o, userId: $u) }", member).await.data();
    assert_eq!(post(&app.admin, "/graphql", "k", &body).await.code(), "NOT_A_MEMBER");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM service_tokens WHERE name = 'ci'", vec![]).await, 1);
}

#[tokio::test]
async fn a_key_counts_for_events_too() {
    let (app, agent) = TestApp::with_agent().await;
    let query =
        "mutation($o: Id!, $i: StartConversationInput!) { startConversation(orgId: $o, input: $i) { id } }";
    let body =
        json!({ "query": query, "variables": { "o": app.org, "i": { "agentId": agent, "title": "once" } } });
    let mut heard = Vec::new();
    for replayed in ["", "true", "true"] {
        let request = app.operator.request(Method::POST, "/graphql").header("idempotency-key", "k");
        let answer = Answer::of(request.header("accept", "text/event-stream").json(&body)).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
        assert_eq!(answer.header("idempotent-replayed"), replayed);
        assert!(
            answer.text.contains("event: next") && answer.text.contains("event: complete"),
            "{}",
            answer.text
        );
        heard.push(answer.text);
    }
    assert_eq!(heard[0], heard[1]);
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM conversations WHERE title = 'once'", vec![]).await, 1);
    let plain = post(&app.operator, "/graphql", "k", &body).await;
    assert_eq!(plain.header("idempotent-replayed"), "true");
    assert!(heard[0].contains(&plain.text), "{}", heard[0]);
}

#[tokio::test]
async fn if_match_is_part_of_the_request() {
    let (app, all) = TestApp::populated(1).await;
    let path = format!("/v1/org/{}/skill/{}", app.org, all.skills[0]);
    let patch = async |etag: &str, key: &str, body: Value| {
        let request = app.operator.request(Method::PATCH, &path).header("idempotency-key", key);
        Answer::of(request.header("if-match", etag).json(&body)).await
    };
    let edit = |text: &str| json!({ "description": text });
    let etag = patch("*", "first", edit("one")).await.header("etag").to_owned();
    patch("*", "second", edit("two")).await.expect(200);
    let stale = patch(&etag, "k", edit("three")).await;
    assert_eq!(stale.problem(), (412, "PRECONDITION_FAILED"));
    // Nothing was changed, so the key is free for the intended request.
    let etag = stale.body["details"]["etag"].as_str().unwrap().to_owned();
    let done = patch(&etag, "k", edit("three")).await;
    assert_eq!((done.status, done.header("idempotent-replayed")), (200, ""), "{:#}", done.body);
    assert_eq!(patch(&etag, "k", edit("three")).await.header("idempotent-replayed"), "true");
    assert_eq!(patch("*", "k", edit("three")).await.problem(), (422, "IDEMPOTENCY_KEY_REUSED"));
}

#[tokio::test]
async fn a_freed_name_can_be_taken_under_the_same_key() {
    let app = TestApp::start().await;
    let (path, body) = (format!("/v1/org/{}/server", app.org), json!({ "name": "rack" }));
    app.owner.post(&path, body.clone()).await.expect(201);
    assert_eq!(post(&app.owner, &path, "k", &body).await.problem(), (409, "NAME_TAKEN"));
    app.execute("UPDATE servers SET name = 'other' WHERE name = 'rack'", vec![]).await;
    assert_eq!(post(&app.owner, &path, "k", &body).await.status, 201);
}

#[tokio::test]
async fn a_large_answer_is_not_replayed() {
    let (app, all) = TestApp::populated(1).await;
    let query = "mutation($o: Id!, $s: Id!, $c: String!) { updateSkill(orgId: $o, id: $s, input: { content: $c }) { content } }";
    let variables = json!({ "o": app.org, "s": all.skills[0], "c": "x".repeat(70_000) });
    let body = json!({ "query": query, "variables": variables });
    let first = post(&app.operator, "/graphql", "k", &body).await;
    assert_eq!(first.data()["updateSkill"]["content"].as_str().unwrap().len(), 70_000);
    let again = post(&app.operator, "/graphql", "k", &body).await;
    assert_eq!((again.status, again.code().as_str()), (409, "IDEMPOTENCY_IN_DOUBT"));
    let kept: i64 =
        app.one("SELECT COUNT(*) FROM idempotency_keys WHERE answer_sealed IS NOT NULL", vec![]).await;
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn a_lost_answer_leaves_the_created_records() {
    let app = TestApp::start().await;
    let (path, body) = (format!("/v1/org/{}/server", app.org), json!({ "name": "rack" }));
    let made = post(&app.owner, &path, "k", &body).await;
    // As if the process had died between the commit and the response.
    let lose = "UPDATE idempotency_keys SET status = NULL, answer_sealed = NULL, answer_bytes = NULL, claimed_at = 0";
    app.execute(lose, vec![]).await;
    let again = post(&app.owner, &path, "k", &body).await;
    assert_eq!(again.problem(), (409, "IDEMPOTENCY_IN_DOUBT"));
    let records = json!([{ "kind": "SERVER", "id": made.body["id"] }]);
    assert_eq!(again.body["details"]["records"], records);
}

#[tokio::test]
async fn a_file_is_stored_once() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/attachment?filename=a.txt", app.org);
    let send = async |actor: &Actor, content: &'static str| {
        let request = actor.request(Method::POST, &path).header("idempotency-key", "k");
        Answer::of(request.header("content-type", "text/plain").body(content)).await
    };
    let first = send(&app.operator, "a file").await;
    let again = send(&app.operator, "a file").await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, ""), "{:#}", first.body);
    assert_eq!((again.status, again.header("idempotent-replayed"), &again.text), (201, "true", &first.text));
    assert_eq!(send(&app.operator, "another").await.problem(), (422, "IDEMPOTENCY_KEY_REUSED"));
    assert_eq!(send(&app.stranger, "a file").await.problem(), (403, "NOT_A_MEMBER"));
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM attachments", vec![]).await, 1);
}

#[tokio::test]
async fn a_kept_answer_needs_the_permissions_of_its_relations_too() {
    let (app, agent) = TestApp::with_agent().await;
    let edit = "mutation($o: Id!, $a: Id!) { updateAgent(orgId: $o, id: $a, input: { description: \"x\" }) { id server { name } } }";
    let body = json!({ "query": edit, "variables": { "o": app.org, "a": agent } });
    let token = app.token(&["agent.edit", "agent.view", "server.view"]).await;
    let ask =
        || Answer::of(token.request(Method::POST, "/graphql").header("idempotency-key", "k").json(&body));
    assert!(ask().await.data()["updateAgent"]["server"]["name"].is_string());
    assert_eq!(ask().await.header("idempotent-replayed"), "true");
    let narrowed = "UPDATE service_tokens SET permissions = '[\"agent.edit\",\"agent.view\"]' WHERE id = (SELECT MAX(id) FROM service_tokens)";
    app.execute(narrowed, vec![]).await;
    app.forget_sessions();
    assert_eq!(ask().await.code(), "PERMISSION_DENIED");
}
