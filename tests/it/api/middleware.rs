//! The handling of requests that all interfaces share: ids, refusals, limits, probes.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp};

#[tokio::test]
async fn every_answer_carries_a_request_id_and_a_good_one_is_kept() {
    let app = TestApp::start().await;
    for path in ["/", "/health", "/nothing", "/v1/org/1/agent", "/graphql", "/sign-in", "/confirm-email"] {
        let own = app.anonymous.get(path).await;
        for name in own.headers.keys() {
            assert_eq!(own.headers.get_all(name).iter().count(), 1, "{path}: {name}");
        }
        assert!(own.header("x-request-id").len() >= 32, "{path}");
        let given = app.anonymous.request(Method::GET, path).header("x-request-id", "trace-7.a");
        let kept = Answer::of(given).await;
        assert_eq!(kept.header("x-request-id"), "trace-7.a");
        assert_eq!(kept.header("x-content-type-options"), "nosniff");
        let bad = app.anonymous.request(Method::GET, path).header("x-request-id", "a b\"{");
        assert_ne!(Answer::of(bad).await.header("x-request-id"), "a b\"{");
    }
    let problem =
        Answer::of(app.anonymous.request(Method::GET, "/nothing").header("x-request-id", "mine")).await;
    assert_eq!(problem.body["request_id"], "mine");
}

#[tokio::test]
async fn http_stack_errors_are_problem_documents() {
    let app = TestApp::start().await;
    assert_eq!(app.owner.get("/nothing").await.problem(), (404, "NOT_FOUND"));
    assert_eq!(app.owner.get("/v1/org").await.problem(), (404, "NOT_FOUND"));
    let wrong = app.stranger.put(&format!("/v1/org/{}/agent", app.org), json!({})).await;
    assert_eq!(wrong.problem(), (405, "METHOD_NOT_ALLOWED"));
    let mut allowed: Vec<&str> = wrong.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    assert_eq!(app.owner.get("/v1/org/%ff/agent").await.problem(), (400, "MALFORMED_REQUEST"));
    assert_eq!(app.owner.get("/problems/%ff").await.problem(), (400, "MALFORMED_REQUEST"));
    assert_eq!(app.owner.get("/problems/nothing").await.problem(), (404, "NOT_FOUND"));
    let page = app.anonymous.get("/problems/approval-not-pending").await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("APPROVAL_NOT_PENDING"));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_on_either_face() {
    let app = TestApp::start_with(|config| config.limits.body_bytes = 2_000).await;
    let large = json!({"name": "x".repeat(3_000)});
    let path = format!("/v1/org/{}/server", app.org);
    assert_eq!(app.owner.post(&path, large).await.problem(), (413, "PAYLOAD_TOO_LARGE"));
    let answer = app.owner.gql("{ __typename }", json!({"x": "y".repeat(3_000)})).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "PAYLOAD_TOO_LARGE"));
}

/// SQLite has no server that could hang up.
#[tokio::test]
async fn postgres_a_read_on_a_dead_connection_retries_on_a_new_one() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}", app.org);
    app.owner.get(&path).await.expect(200);
    for others in [0, 3] {
        futures::future::join_all((0..others).map(|_| app.viewer.get(&path))).await;
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        app.execute(sql, vec![]).await;
        app.owner.get(&path).await.expect(200);
        app.stranger.get(&path).await.expect(403);
    }
}

#[tokio::test]
async fn a_probe_shows_only_the_number_of_policy_problems() {
    let dir = crate::harness::policy_folder();
    let app = TestApp::start_with(|config| config.policy_dir = Some(dir.path().to_owned())).await;
    let text = format!("p, VIEWER, {}, contact.view, alow-SECRET\n", app.org);
    std::fs::write(dir.path().join(format!("orgs/{}.csv", app.org)), text).unwrap();
    assert!(app.core.policy.reload().is_err());
    let health = app.anonymous.get("/health").await;
    assert_eq!((health.status, &health.body["policy"]["problems"]), (200, &json!(1)));
    assert!(!health.text.contains("SECRET") && !health.text.contains("orgs"), "{}", health.text);
}

#[tokio::test]
async fn probes_distinguish_liveness_from_readiness() {
    let app = TestApp::start().await;
    let health = app.anonymous.get("/health").await.expect(200);
    assert_eq!(health["status"], "ok");
    assert_eq!(health["policy"]["problems"], 0);
    assert_eq!(app.anonymous.get("/ready").await.expect(200)["status"], "ready");
    app.expects_failures();
    app.core.tasks.stopping.cancel();
    let ready = app.anonymous.get("/ready").await;
    assert_eq!(ready.problem(), (503, "UNAVAILABLE"));
    assert_eq!(ready.header("retry-after"), "5");
    assert_eq!(app.anonymous.get("/health").await.status, 200);
    app.core.db.close().await;
    assert_eq!(app.anonymous.get("/health").await.status, 200);
    assert_eq!(
        app.viewer.get(&format!("/v1/org/{}/agent?page=1&limit=1", app.org)).await.problem(),
        (503, "UNAVAILABLE")
    );
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/agent?page=1&limit=10", app.org);
    let head = app.viewer.send(Method::HEAD, &path, &Value::Null).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    assert_eq!(head.header("content-type"), "application/json");
}

#[tokio::test]
async fn a_body_full_of_unknown_keys_gets_a_short_refusal() {
    let app = TestApp::start().await;
    let keys: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("unknown{n}"), json!(0))).collect();
    let answer = app.admin.post(&format!("/v1/org/{}/server", app.org), Value::Object(keys)).await;
    assert_eq!(answer.problem(), (422, "VALIDATION_FAILED"));
    assert_eq!(answer.body["errors"].as_array().map(Vec::len), Some(101), "a hundred of them, plus the name");
}
