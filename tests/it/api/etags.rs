//! ETags and If-Match: unchanged records aren't sent again, and no one overwrites a change they haven't seen.

use futures::future::{LocalBoxFuture, join_all};
use reqwest::Method;
use sea_orm::{ConnectionTrait, TransactionTrait};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp, connect};

async fn with(actor: &Actor, method: Method, path: &str, header: (&str, &str), body: &Value) -> Answer {
    let request = actor.request(method, path).header(header.0, header.1);
    Answer::of(if body.is_null() { request } else { request.json(body) }).await
}

async fn channel(app: &TestApp) -> (String, Answer) {
    let agent = app.agent().await;
    let body = json!({ "agent_id": agent, "name": "bot", "transport": "TELEGRAM", "bot_token": "1:a" });
    let made = app.operator.post(&format!("/v1/org/{}/channel", app.org), body).await;
    assert_eq!(made.status, 201, "{:#}", made.body);
    (format!("/v1/org/{}/channel/{}", app.org, made.body["id"]), made)
}

#[tokio::test]
async fn a_known_record_is_not_sent_again() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}", app.org);
    let first = app.viewer.get(&path).await;
    let etag = first.header("etag");
    assert!(etag.len() == 34 && etag.starts_with('"'), "{etag}");
    assert_eq!(first.header("cache-control"), "private, no-cache");
    assert_eq!(app.viewer.get(&path).await.header("etag"), etag);
    for known in [etag.to_owned(), format!("\"other\", W/{etag}"), "*".to_owned()] {
        let unchanged = with(&app.viewer, Method::GET, &path, ("if-none-match", &known), &Value::Null).await;
        assert_eq!((unchanged.status, unchanged.text.as_str(), unchanged.header("etag")), (304, "", etag));
    }
    let other = with(&app.viewer, Method::GET, &path, ("if-none-match", "\"other\""), &Value::Null).await;
    assert_eq!(other.status, 200);
    let hidden = with(&app.stranger, Method::GET, &path, ("if-none-match", etag), &Value::Null).await;
    assert_eq!(hidden.problem(), (403, "NOT_A_MEMBER"));
    // Two changes within the same millisecond are still two.
    let edit =
        "mutation($o: Id!, $i: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $i) { id } }";
    app.owner.gql(edit, json!({ "o": app.org, "i": { "name": "Another name" } })).await.data();
    let changed = with(&app.viewer, Method::GET, &path, ("if-none-match", etag), &Value::Null).await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), etag);
}

#[tokio::test]
async fn an_etag_covers_computed_fields() {
    let (app, all) = TestApp::populated(2).await;
    let mcp = all.mcp_servers[0];
    let path = format!("/v1/org/{}/mcp/{mcp}", app.org);
    let before = app.viewer.get(&path).await;
    app.execute(&format!("DELETE FROM mcp_server_agents WHERE mcp_server_id = {mcp}"), vec![]).await;
    let after = app.viewer.get(&path).await;
    assert_ne!(before.body["assignment_count"], after.body["assignment_count"]);
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_eq!(before.body["updated_at"], after.body["updated_at"]);
}

#[tokio::test]
async fn an_unseen_change_is_not_overwritten() {
    let app = TestApp::start().await;
    let (path, made) = channel(&app).await;
    let first = made.header("etag").to_owned();
    let edit = |name: &str| json!({ "name": name });
    let second = with(&app.operator, Method::PATCH, &path, ("if-match", &first), &edit("one")).await;
    assert_eq!(second.status, 200, "{:#}", second.body);
    assert_ne!(second.header("etag"), first);
    let refused = with(&app.admin, Method::PATCH, &path, ("if-match", &first), &edit("two")).await;
    assert_eq!(refused.problem(), (412, "PRECONDITION_FAILED"));
    assert_eq!(refused.body["details"]["etag"], second.header("etag"));
    let weak = format!("W/{}", second.header("etag"));
    let weak = with(&app.admin, Method::PATCH, &path, ("if-match", &weak), &edit("two")).await;
    assert_eq!(weak.problem(), (412, "PRECONDITION_FAILED"), "comparison is strong");
    let any = format!("\"x\", {}", second.header("etag"));
    let third = with(&app.admin, Method::PATCH, &path, ("if-match", &any), &edit("two")).await.expect(200);
    assert_eq!(third["name"], "two");
    assert_eq!(with(&app.admin, Method::PATCH, &path, ("if-match", "*"), &edit("three")).await.status, 200);
    // Actions, and missing records.
    let origins = format!("{path}/whitelist");
    let stale =
        with(&app.operator, Method::POST, &origins, ("if-match", &first), &json!({ "origin_id": "7" })).await;
    assert_eq!(stale.problem(), (412, "PRECONDITION_FAILED"));
    let missing = format!("/v1/org/{}/channel/999999", app.org);
    let missing = with(&app.operator, Method::PATCH, &missing, ("if-match", "*"), &edit("x")).await;
    assert_eq!(missing.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn concurrent_edits_of_the_same_version_succeed_once() {
    let app = TestApp::start().await;
    let (path, made) = channel(&app).await;
    let etag = made.header("etag");
    let edits = (0..8).map(|n| {
        let body = json!({ "name": format!("bot {n}") });
        let (operator, path) = (&app.operator, &path);
        async move { with(operator, Method::PATCH, path, ("if-match", etag), &body).await }
    });
    let answers = join_all(edits).await;
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(done.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    for answer in refused {
        assert_eq!(answer.problem(), (412, "PRECONDITION_FAILED"));
    }
}

#[tokio::test]
async fn every_record_has_an_etag_but_lists_and_secrets_have_none() {
    let app = TestApp::start().await;
    app.populate(2).await;
    for (route, operation) in app.service.rest.routes.iter() {
        let list = operation.name.starts_with("List") || operation.name.starts_with("Search");
        let secret = ["CreateServer", "RegenerateProvisioningToken"].contains(&operation.name.as_str());
        // Turns, messages and members have none, and what is deleted is answered with its id.
        let without = [
            "turn",
            "turns",
            "cancelTurn",
            "retryTurn",
            "message",
            "postMessage",
            "member",
            "updateMember",
            "removeMember",
        ];
        let other = without.contains(&operation.root.as_str()) || operation.root.starts_with("delete");
        let has = !list && !secret && !other;
        assert_eq!(operation.etag_source.is_some(), has, "{} {}", route.method, route.path);
        let names_one = route.path.contains("{id}") && route.method != http::Method::GET;
        let changed = operation.etag_source.as_ref().is_some_and(muster::api::rest::EtagSource::is_changed);
        assert_eq!(changed, names_one && has, "{} {}", route.method, route.path);
    }
    let list = app.viewer.get(&format!("/v1/org/{}/agent?page=1&limit=5", app.org)).await;
    assert_eq!((list.status, list.header("etag")), (200, ""));
    let made = app.owner.post(&format!("/v1/org/{}/server", app.org), json!({ "name": "s" })).await;
    assert_eq!((made.status, made.header("etag")), (201, ""));
}

#[tokio::test]
async fn measurements_do_not_change_the_etag() {
    let (app, agent) = TestApp::with_agent().await;
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    let failed = "UPDATE agents SET status = 'ERROR', started_at = created_at WHERE id = $1";
    app.execute(failed, vec![agent.into()]).await;
    let start =
        async |etag: &str| with(&app.owner, Method::POST, &path, ("if-match", etag), &Value::Null).await;
    let seen = start("\"other\"").await;
    assert_eq!(seen.problem(), (412, "PRECONDITION_FAILED"));
    let etag = seen.body["details"]["etag"].as_str().unwrap();
    // The uptime differs on every read.
    app.clock.advance(std::time::Duration::from_secs(90));
    assert_eq!(start("\"other\"").await.body["details"]["etag"], etag);
    // An edit changes the ETag.
    app.execute("UPDATE agents SET role = 'edited' WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(start(etag).await.problem(), (412, "PRECONDITION_FAILED"));
    app.execute("UPDATE agents SET role = NULL WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(start(etag).await.status, 200);
    // What is measured is always sent. The ETag read is good for an edit.
    let path = format!("/v1/org/{}/agent/{agent}", app.org);
    let etag = app.operator.get(&path).await.header("etag").to_owned();
    let again = with(&app.operator, Method::GET, &path, ("if-none-match", &etag), &Value::Null).await;
    assert_eq!((again.status, again.header("etag")), (200, etag.as_str()));
    let edit = json!({ "role": "edited" });
    for status in [200, 412] {
        let edited = with(&app.operator, Method::PATCH, &path, ("if-match", &etag), &edit).await;
        assert_eq!(edited.status, status, "{:#}", edited.body);
    }
}

/// SQLite has a single writer.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_precondition_locks_in_the_common_order() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let url = app.core.config.database.url.expose_secret();
    let (holder, looker) = (connect(url).await, connect(url).await);
    let path = format!("/v1/org/{}/agent/{agent}/start", app.org);
    let seen = with(&app.owner, Method::POST, &path, ("if-match", "\"other\""), &Value::Null).await;
    let etag = seen.body["details"]["etag"].as_str().unwrap();
    let start =
        async { with(&app.owner, Method::POST, &path, ("if-match", etag), &Value::Null).await.status };
    let archive = "mutation($o: Id!, $c: Id!, $r: Int) { updateConversation(orgId: $o, id: $c, ifRevision: $r, \
                   input: { status: ARCHIVED }) { id } }";
    let archive = async {
        app.admin.gql(archive, json!({ "o": app.org, "c": conversation, "r": 0 })).await.data();
        200
    };
    let create = "mutation($o: Id!) { createModelCredential(orgId: $o, input: { name: \"main\", provider: \"Anthropic\", \
                  secret: \"one\", isDefault: true }) { id revision } }";
    let made = app.owner.gql(create, json!({ "o": app.org })).await.data()["createModelCredential"].clone();
    let credential = made["id"].as_i64().unwrap();
    let rename = "mutation($o: Id!, $i: Id!, $r: Int) { updateModelCredential(orgId: $o, id: $i, ifRevision: $r, \
                  input: { name: \"x\" }) { id } }";
    let rename = async {
        app.owner.gql(rename, json!({ "o": app.org, "i": credential, "r": made["revision"] })).await.data();
        200
    };
    let requests: [(LocalBoxFuture<'_, u16>, _, _); 3] = [
        (Box::pin(rename), ("organizations", app.org), ("model_credentials", credential)),
        (Box::pin(start), ("organizations", app.org), ("agents", agent)),
        (Box::pin(archive), ("agents", agent), ("conversations", conversation)),
    ];
    for (request, (held, held_id), (free, free_id)) in requests {
        let holding = holder.begin().await.unwrap();
        let hold = format!("SELECT 1 FROM {held} WHERE id = {held_id} FOR NO KEY UPDATE");
        holding.execute_unprepared(&hold).await.unwrap();
        let look = async {
            app.waits_for_a_lock().await;
            let look = format!("SELECT 1 FROM {free} WHERE id = {free_id} FOR NO KEY UPDATE NOWAIT");
            looker.execute_unprepared(&look).await.expect("what comes later in the order is not locked yet");
            holding.commit().await.unwrap();
        };
        let (status, ()) = tokio::join!(request, look);
        assert_eq!(status, 200, "{free}");
    }
}
