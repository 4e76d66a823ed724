//! Metrics: counts are true, bounded, readable by Prometheus's own parser, and not on the public listener.

use std::{fs, path::Path, process::Stdio, time::Duration};

use muster::core::{
    config::Config,
    replicas,
    telemetry::{self, metrics},
};
use muster_protocol::event::{Asked, TurnOutcome};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::{
    conversations::turns::write,
    harness::{Actor, PATIENCE, TestApp, policy_folder},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A service that measures, and the URL of its metrics page.
async fn measured() -> (TestApp, Actor) {
    measured_with(|_| ()).await
}

async fn measured_with(configure: impl FnOnce(&mut Config)) -> (TestApp, Actor) {
    let app = TestApp::start_with(|config| {
        config.metrics.listen = Some("127.0.0.1:0".parse().unwrap());
        configure(config);
    });
    let app = app.await;
    let page = app.measured().await;
    (app, page)
}

/// The page as Prometheus's client library reads it.
async fn scrape(page: &Actor) -> Value {
    let answer = page.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    let python = Path::new(ROOT).join("target/prometheus/bin/python3");
    assert!(python.exists(), "see tests/peers/prometheus/README.md for how to install the parser");
    let mut command = Command::new(python);
    command.arg(Path::new(ROOT).join("tests/peers/prometheus/parse")).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(answer.text.as_bytes()).await.unwrap();
    let output = timeout(PATIENCE, process.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The value of the sample with exactly these labels, rounded to an integer. 0 if there is none.
#[expect(clippy::needless_pass_by_value, reason = "written where it is called")]
fn value(scraped: &Value, name: &str, labels: Value) -> i64 {
    let family = name.trim_end_matches("_total").trim_end_matches("_count");
    let samples = scraped[family]["samples"].as_array().unwrap_or_else(|| panic!("no {family}"));
    let found = samples.iter().find(|sample| sample["name"] == name && sample["labels"] == labels);
    found.map_or(0, |sample| sample["value"].as_f64().unwrap().ceil() as i64)
}

#[tokio::test]
async fn requests_and_answers_are_counted() {
    let (app, page) = measured().await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    for _ in 0..3 {
        app.viewer.get(&path).await.expect(200);
    }
    app.stranger.get(&path).await.problem();
    app.anonymous.get("/nothing/at/all").await.problem();
    app.owner.post(&format!("/v1/org/{}/server", app.org), json!({ "name": "rack" })).await.expect(201);
    app.owner
        .gql("query($o: Id!) { agents(orgId: $o, page: 1, limit: 1) { total } }", json!({ "o": app.org }))
        .await;
    let sign_in = "mutation { signIn(email: \"owner@example.com\", password: \"wrong\") { accessToken } }";
    app.anonymous.gql(sign_in, json!({})).await.code();
    telemetry::job("test.job", async { Err::<(), _>(()) }).await.unwrap_err();

    let scraped = scrape(&page).await;
    let route = "/v1/org/{org_id}/agent";
    let requests = |status| {
        let labels = json!({ "route": route, "method": "GET", "status": status });
        value(&scraped, "muster_http_requests_total", labels)
    };
    assert_eq!((requests("2xx"), requests("4xx"), requests("5xx")), (3, 1, 0));
    let seconds = json!({ "route": route, "method": "GET" });
    assert_eq!(value(&scraped, "muster_http_request_duration_seconds_count", seconds), 4);
    let lost = json!({ "route": "none", "method": "GET", "status": "4xx" });
    assert_eq!(value(&scraped, "muster_http_requests_total", lost), 1);
    let problems = |code| value(&scraped, "muster_problems_total", json!({ "code": code }));
    assert_eq!((problems("NOT_A_MEMBER"), problems("NOT_FOUND"), problems("SIGN_IN_FAILED")), (1, 1, 1));
    let operations = |ty| value(&scraped, "muster_graphql_operations_total", json!({ "type": ty }));
    assert_eq!((operations("query"), operations("mutation"), operations("subscription")), (1, 1, 0));
    let field = |ty, field| {
        let labels = json!({ "type": ty, "field": field });
        value(&scraped, "muster_graphql_root_field_duration_seconds_count", labels)
    };
    // REST runs root fields too. The stranger reached none.
    assert_eq!((field("query", "agents"), field("mutation", "createServer")), (4, 1));
    for pool in ["read", "write"] {
        assert!(
            value(&scraped, "muster_sql_statement_duration_seconds_count", json!({ "pool": pool })) >= 1,
            "{pool}"
        );
        assert_eq!(
            value(&scraped, "muster_sql_statements_failed_total", json!({ "pool": pool })),
            0,
            "{pool}"
        );
    }
    let failed = json!({ "job": "test.job", "outcome": "failed" });
    assert_eq!(value(&scraped, "muster_job_runs_total", failed), 1);
}

#[tokio::test]
async fn gauges_are_read_when_scraped() {
    let (app, page) = measured().await;
    let agent = app.agent().await;
    app.operator.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await.expect(200);
    app.clock.advance(Duration::from_secs(90));
    let scraped = scrape(&page).await;
    let plain = |name| value(&scraped, name, json!({}));
    let waiting = |kind: &str| {
        ["muster_queue_depth", "muster_queue_oldest_seconds"]
            .map(|name| value(&scraped, name, json!({ "kind": kind })))
    };
    assert_eq!([waiting("LAUNCH"), waiting("MAIL")], [[1, 90], [0, 0]]);
    assert_eq!((plain("muster_database_up"), plain("muster_policy_problems")), (1, 0));
    // Nothing is sealed here except by the test.
    assert!(plain("muster_audit_unsealed") >= 1);
    muster::core::audit::seal(&app.core).await.unwrap();
    app.clock.advance(Duration::from_secs(90));
    let scraped = scrape(&page).await;
    let plain = |name| value(&scraped, name, json!({}));
    assert_eq!((plain("muster_audit_unsealed"), plain("muster_audit_checkpoint_age_seconds")), (0, 90));
    let version = app.core.policy.status().version;
    assert_eq!(value(&scraped, "muster_policy_info", json!({ "version": version })), 1);
    let idle = value(&scraped, "muster_db_pool_connections", json!({ "pool": "read", "state": "idle" }));
    assert!((1..=4).contains(&idle), "{idle}");
    assert!(plain("process_resident_memory_bytes") > 1_000_000 && plain("process_open_fds") > 3);
    assert!(plain("process_cpu_seconds_total") > 0 && plain("process_max_fds") > 100);
    // The page works even if the database is away.
    app.core.db.close().await;
    let scraped = scrape(&page).await;
    assert_eq!(value(&scraped, "muster_database_up", json!({})), 0);
    assert!(scraped.get("muster_queue_depth").is_none() && scraped.get("muster_agents").is_none());
}

#[tokio::test]
async fn records_of_all_organizations_are_counted_by_state() {
    let (app, page) = measured().await;
    let host = app.running_agent().await;
    app.other_agent().await;
    let conversation = app.conversation(host.agent).await;
    let turn = write(&app, conversation, "Refund it?").await;
    host.takes(turn).await;
    let (options, multiple, allow_text) = (Vec::new(), false, true);
    let question = Asked::Question { text: "May I?".to_owned(), options, multiple, allow_text };
    host.asks(conversation, Some(turn), "r1", question).await.unwrap();
    let month = "INSERT INTO organization_months (organization_id, from_at, until_at, cost_micro) \
                 VALUES ($1, 0, 9000000000000, 1250000)";
    for org in [app.org, app.other_org] {
        app.execute(month, vec![org.into()]).await;
    }
    // A tenant chooses its currency, and must not choose labels.
    let currency = "UPDATE organizations SET currency = 'XYZ' WHERE id = $1";
    app.execute(currency, vec![app.other_org.into()]).await;
    app.clock.advance(Duration::from_secs(90));
    let before = app.statements();
    let scraped = scrape(&page).await;
    assert!(app.statements() - before <= 8, "{}", app.statements() - before);
    let agents = |status| value(&scraped, "muster_agents", json!({ "status": status }));
    assert_eq!((agents("RUNNING"), agents("STOPPED"), agents("ERROR")), (1, 1, 0));
    assert_eq!(value(&scraped, "muster_hosts", json!({ "status": "PENDING" })), 2);
    let turns = |state| value(&scraped, "muster_turns", json!({ "state": state }));
    assert_eq!((turns("WAITING_APPROVAL"), turns("QUEUED")), (1, 0));
    let approvals = scraped["muster_approvals_pending"]["samples"].as_array().unwrap();
    let pending: f64 = approvals.iter().filter_map(|sample| sample["value"].as_f64()).sum();
    assert_eq!(pending as i64, 1);
    assert_eq!(value(&scraped, "muster_approvals_oldest_seconds", json!({})), 90);
    assert_eq!(value(&scraped, "muster_deliveries", json!({ "state": "FAILED" })), 0);
    assert_eq!(value(&scraped, "muster_channels", json!({ "state": "ACTIVE" })), 0);
    assert_eq!(value(&scraped, "muster_spending_month_micro", json!({ "currency": "USD" })), 1_250_000);
    assert!(!scraped["muster_spending_month_micro"].to_string().contains("XYZ"));
    host.turn_ended(turn, TurnOutcome::Failed).await;
    let scraped = scrape(&page).await;
    let ended = |state| value(&scraped, "muster_turns_ended_total", json!({ "state": state }));
    assert_eq!((ended("FAILED"), ended("DONE")), (1, 0));
}

#[tokio::test]
async fn every_metric_shown_is_in_the_table_with_its_labels() {
    let (app, page) = measured().await;
    app.populate(2).await;
    app.viewer.get(&format!("/v1/org/{}/agent?page=1&limit=5", app.org)).await.expect(200);
    telemetry::job("test.job", async { Ok::<_, ()>(()) }).await.unwrap();
    metrics::start().limited("reads");
    metrics::start().attempted("MAIL", "done");
    let scraped = scrape(&page).await;
    let scraped = scraped.as_object().unwrap();
    for family in metrics::FAMILIES {
        let name = family.name.trim_end_matches("_total");
        let shown = scraped.get(name).unwrap_or_else(|| panic!("{name} is not shown"));
        assert_eq!(
            (shown["type"].as_str(), shown["help"].as_str()),
            (Some(family.kind), Some(family.about)),
            "{name}"
        );
        for sample in shown["samples"].as_array().unwrap() {
            let mut labels: Vec<_> =
                sample["labels"].as_object().unwrap().keys().map(String::as_str).collect();
            labels.retain(|label| *label != "le");
            labels.sort_unstable();
            let mut known = family.labels.to_vec();
            known.sort_unstable();
            assert_eq!(labels, known, "{name}");
        }
    }
    assert_eq!(scraped.len(), metrics::FAMILIES.len(), "{:?}", scraped.keys());
}

#[tokio::test]
async fn policy_reads_and_differing_replicas_are_counted() {
    let dir = policy_folder();
    let (app, page) = measured_with(|config| config.policy_dir = Some(dir.path().to_owned())).await;
    let counted = async || {
        let scraped = scrape(&page).await;
        let read = |outcome| value(&scraped, "muster_policy_reloads_total", json!({ "outcome": outcome }));
        [read("taken"), read("refused"), value(&scraped, "muster_policy_replicas_differing", json!({}))]
    };
    assert_eq!(counted().await, [0; 3], "the first read at start does not count");
    let file = dir.path().join("orgs/7.csv");
    fs::write(&file, "nonsense\n").unwrap();
    assert!(app.core.policy.reload().is_err());
    fs::remove_file(&file).unwrap();
    app.core.policy.reload().unwrap();
    assert_eq!(counted().await, [1, 1, 0]);
    let own = policy_folder();
    fs::write(own.path().join("orgs/7.csv"), "p, VIEWER, 7, contact.view, allow\n").unwrap();
    let other = app.replica(Some(own.path())).await;
    for replica in [&other, &app.core] {
        replicas::refresh_and_compare(replica).await.unwrap();
    }
    assert_eq!(counted().await, [1, 1, 1]);
    other.shut_down().await;
    replicas::refresh_and_compare(&app.core).await.unwrap();
    assert_eq!(counted().await, [1, 1, 0]);
}

#[tokio::test]
async fn metrics_are_not_on_the_public_listener() {
    let (app, page) = measured().await;
    for actor in [&app.anonymous, &app.stranger, &app.owner] {
        assert_eq!(actor.get("/metrics").await.problem(), (404, "NOT_FOUND"));
    }
    // A token in a path, or an unknown name, never becomes a label.
    app.anonymous.get("/mst_svc_canary").await.problem();
    app.anonymous.gql("query canary { canary }", json!({})).await.code();
    assert!(!page.get("/metrics").await.text.contains("canary"));
    assert_eq!(page.get("/v1/org/1/agent").await.status, 404);
}
