//! What integrations do through `/v1`: ask an agent, wait for its turn, send files, repeat requests. The laws of all
//! operations are in `rest_parity.rs`.

use muster::{api::rest::ROUTES, core::resource_limits::Resource};
use muster_protocol::event::{Content, TurnOutcome};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    api::calls::calls,
    harness::{Answer, Spare, TestApp, until},
};

/// Asks an agent. Returns the conversation and the turn.
async fn ask(app: &TestApp, agent: i64) -> (i64, i64) {
    let new = json!({ "agent_id": agent, "title": "Ticket 4711" });
    let started =
        app.operator.post(&format!("/v1/org/{}/conversation", app.org), new).await.expect(201)["id"].clone();
    let path = format!("/v1/org/{}/conversation/{started}/message", app.org);
    let posted = app.operator.post(&path, json!({ "text": "Is it on?" })).await.expect(201);
    (started.as_i64().unwrap(), posted["turn_id"].as_i64().unwrap())
}

/// The path of a turn, for a request that waits so many seconds for its end.
fn turn_path(app: &TestApp, turn: i64, wait: &str) -> String {
    format!("/v1/org/{}/turn/{turn}?wait={wait}", app.org)
}

/// Waits until so many requests wait.
async fn wait_for(app: &TestApp, requests: usize) {
    let waits = || app.core.resource_limits.limit(Resource::Watchers).total();
    until("the requests wait", async || waits() == requests).await;
}

#[tokio::test]
async fn a_waiting_request_is_answered_when_its_turn_ends() {
    let app = TestApp::start().await;
    let host = app.running_agent().await;
    let (conversation, turn) = ask(&app, host.agent).await;
    host.takes(turn).await;
    let path = turn_path(&app, turn, "25");
    let short = app.viewer.get(&turn_path(&app, turn, "1")).await.expect(200);
    assert_eq!((&short["state"], &short["ended_at"]), (&json!("RUNNING"), &Value::Null), "it goes on");
    let work = async {
        wait_for(&app, 1).await;
        let text = Content::Text { text: "Now it is.".to_owned() };
        host.says(conversation, Some(turn), "1.1", text).await.unwrap();
        host.turn_ended(turn, TurnOutcome::Done).await;
    };
    let (answer, ()) = tokio::join!(app.viewer.get(&path), work);
    let ended = answer.expect(200);
    assert_eq!(ended["state"], "DONE");
    let said = ended["messages"].as_array().unwrap().iter();
    let said: Vec<_> = said.map(|it| json!([it["role"], it["content"]["text"], it["turn_id"]])).collect();
    assert_eq!(said, [json!(["USER", "Is it on?", turn]), json!(["ASSISTANT", "Now it is.", turn])]);
    wait_for(&app, 0).await;
    // An ended turn is answered at once.
    assert_eq!(app.viewer.get(&path).await.expect(200), ended);
}

#[tokio::test]
async fn waiting_requests_have_a_share_of_each_organization() {
    let app = TestApp::start_with(|config| config.limits.subscriptions_per_organization = 1).await;
    let host = app.running_agent().await;
    let (_, turn) = ask(&app, host.agent).await;
    host.takes(turn).await;
    let path = turn_path(&app, turn, "25");
    let others = async {
        wait_for(&app, 1).await;
        let refused = app.owner.get(&path).await;
        assert_eq!(refused.problem(), (429, "RATE_LIMITED"));
        assert_eq!(refused.body["details"]["limit"], "watchers");
        // Without waiting, it is only read.
        app.owner.get(&turn_path(&app, turn, "0")).await.expect(200);
        let theirs = app.stranger.get(&format!("/v1/org/{}/turn/{turn}?wait=25", app.other_org)).await;
        assert_eq!(theirs.problem(), (404, "NOT_FOUND"), "another organization has a share of its own");
        app.operator.post(&format!("/v1/org/{}/turn/{turn}/cancel", app.org), Value::Null).await.expect(200);
        host.turn_ended(turn, TurnOutcome::Cancelled).await;
    };
    let (answer, ()) = tokio::join!(app.viewer.get(&path), others);
    assert_eq!(answer.expect(200)["state"], "CANCELLED");
}

#[tokio::test]
async fn a_caller_who_loses_the_right_stops_waiting() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let (_, turn) = ask(&app, agent).await;
    let path = turn_path(&app, turn, "25");
    let member = format!("/v1/org/{}/member/{}", app.org, app.viewer.user.unwrap());
    let removed = async {
        wait_for(&app, 1).await;
        app.owner.delete(&member).await.expect(200)
    };
    let (answer, id) = tokio::join!(app.viewer.get(&path), removed);
    assert_eq!(id, json!(app.viewer.user));
    assert_eq!(answer.problem(), (403, "NOT_A_MEMBER"));
    for (wait, code) in [("26", "TOO_LARGE"), ("-1", "TOO_SMALL"), ("long", "WRONG_TYPE")] {
        let refused = app.owner.get(&turn_path(&app, turn, wait)).await;
        assert_eq!(refused.violations(), [("wait", code)]);
    }
}

#[tokio::test]
async fn a_message_with_files_is_posted_once() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    let upload = format!("/v1/org/{}/attachment?filename=log.txt", app.org);
    let upload =
        app.operator.request(Method::POST, &upload).header("content-type", "text/plain").body("offline");
    let file = Answer::of(upload).await.expect(201)["id"].clone();
    let path = format!("/v1/org/{}/conversation/{conversation}/message", app.org);
    let body = json!({ "text": "The printer's log", "attachment_ids": [file] });
    let post = async || {
        let request = app.operator.request(Method::POST, &path).header("idempotency-key", "ticket-4711");
        Answer::of(request.json(&body)).await
    };
    let (first, again) = (post().await, post().await);
    assert_eq!((first.status, again.status), (201, 201), "{:#}", first.body);
    assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), ("", "true"));
    assert_eq!((&first.body["attachments"][0]["id"], &first.body), (&file, &again.body));
    let messages: i64 = app.one("SELECT COUNT(*) FROM messages", vec![]).await;
    assert_eq!(messages, 1);
    // The routes of files have no stored document, and are described all the same.
    let paths = app.anonymous.get("/openapi.json").await.expect(200)["paths"].clone();
    for (path, method, permission) in [
        ("/v1/org/{org_id}/attachment", "post", "`agent.interact`"),
        ("/v1/org/{org_id}/attachment/{id}", "get", "`agent.output.view`"),
    ] {
        let said = paths[path][method]["description"].as_str().unwrap();
        assert!(said.contains(permission), "{said}");
    }
}

#[tokio::test]
async fn routes_find_no_id_of_another_organization() {
    let (app, all) = TestApp::populated(4).await;
    let spare = Spare::make(&app, &all).await;
    let mut tried = 0;
    for call in calls(&all, spare) {
        let route = ROUTES.iter().find(|route| route.operation == call.operation).unwrap();
        if route.is_specified() || call.path.is_empty() {
            continue;
        }
        let answer = app.stranger.send(call.method.clone(), &call.url(app.other_org), &call.body).await;
        assert_eq!(answer.problem(), (404, "NOT_FOUND"), "{}: {:#}", call.operation, answer.body);
        tried += 1;
    }
    assert!(tried > 25, "{tried}");
}

#[tokio::test]
async fn the_examples_of_bodies_are_accepted() {
    let (app, all) = TestApp::populated(4).await;
    let spare = Spare::make(&app, &all).await;
    let document = app.anonymous.get("/openapi.json").await.expect(200);
    let mut sent = 0;
    for call in calls(&all, spare) {
        let route = ROUTES.iter().find(|route| route.operation == call.operation).unwrap();
        if route.is_specified() || call.body.is_null() {
            continue;
        }
        let described = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        let mut body = described["requestBody"]["content"]["application/json"]["example"].clone();
        for (key, value) in body.as_object_mut().expect(call.operation) {
            match key.as_str() {
                "agent_id" => *value = json!(all.agents[0]),
                "agent_ids" => *value = json!([all.agents[0]]),
                _ => {}
            }
        }
        let answer = app.owner.send(call.method.clone(), &call.url(app.org), &body).await;
        assert_eq!(answer.status, call.status, "{}: {:#}", call.operation, answer.body);
        let shown =
            &described["responses"][call.status.to_string()]["content"]["application/json"]["example"];
        let keys = |it: &Value| it.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(shown), keys(&answer.body), "{}", call.operation);
        sent += 1;
    }
    assert!(sent > 10, "{sent}");
}
