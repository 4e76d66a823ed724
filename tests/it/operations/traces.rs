//! Traces: what a collector receives over OTLP, decoded with OpenTelemetry's own protocol crate.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, routing::post};
use muster::core::{
    config::Config,
    telemetry::{self, traces},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value as Any, trace::v1::Span,
};
use prost::Message;
use reqwest::Method;
use serde_json::json;

use crate::{
    conversations::turns::write,
    harness::{Actor, Answer, TestApp, served, spending::CALL, until},
    organizations::emergency_stop::{release, stop},
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector, and the spans that it has received.
#[derive(Clone, Default)]
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    spans: Arc<Mutex<Vec<Span>>>,
    /// How many batches arrived as part of a trace.
    traced: Arc<Mutex<u32>>,
}

async fn take(State(collector): State<Collector>, headers: http::HeaderMap, body: Bytes) {
    *collector.traced.lock().unwrap() += u32::from(headers.contains_key("traceparent"));
    collector.bytes.lock().unwrap().extend_from_slice(&body);
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for resource in request.resource_spans {
        let named = resource.resource.unwrap().attributes.into_iter().any(|attribute| {
            attribute.key == "service.name"
                && attribute.value.unwrap().value == Some(Any::StringValue("muster".into()))
        });
        assert!(named, "the service says who it is");
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        collector.spans.lock().unwrap().extend(spans);
    }
}

/// A collector, and a service that sends it the given `ratio` of its requests.
async fn traced(ratio: f64) -> (TestApp, Collector) {
    traced_with(ratio, |_| ()).await
}

async fn traced_with(ratio: f64, configure: impl FnOnce(&mut Config)) -> (TestApp, Collector) {
    // The process's own subscriber: run with cargo-nextest, one process per test.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let collector = Collector::default();
    let endpoint = served(Router::new().route("/v1/traces", post(take)).with_state(collector.clone())).await;
    let mut config = Config::in_folder(Path::new("/nowhere")).unwrap();
    config.traces.sample_ratio = ratio;
    let subscriber = telemetry::traced_subscriber(&config, &endpoint, std::io::sink, false).unwrap();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let app = TestApp::start_with(|config| {
        config.traces.endpoint = Some(endpoint);
        configure(config);
    })
    .await;
    (app, collector)
}

async fn with_parent(actor: &Actor, path: &str, sampled: bool) -> Answer {
    let flags = u8::from(sampled);
    let request =
        actor.request(Method::GET, path).header("traceparent", format!("00-{TRACE}-{PARENT}-{flags:02x}"));
    Answer::of(request).await
}

/// Everything received, once spans with these names are among it: a span may end a moment after the answer.
async fn received(collector: &Collector, names: &[&str]) -> Vec<Span> {
    let has = |name: &&str| collector.spans.lock().unwrap().iter().any(|span| span.name == *name);
    let have_ended = async || {
        traces::finish().await;
        names.iter().all(has)
    };
    until(&format!("spans {names:?}"), have_ended).await;
    collector.spans.lock().unwrap().clone()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.clone()).and_then(|value| value.value) {
        Some(Any::StringValue(text)) => text,
        Some(Any::IntValue(number)) => number.to_string(),
        other => panic!("{key} of {}: {other:?}", span.name),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_one_trace_from_its_caller_to_its_statements() {
    let (app, collector) = traced(1.0).await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    with_parent(&app.viewer, &path, true).await.expect(200);
    let spans = received(&collector, &["GET /v1/org/{org_id}/agent", "query agents", "SELECT"]).await;
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:#?}");
    let named = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let request = named("GET /v1/org/{org_id}/agent");
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!((request.kind, attribute(request, "http.response.status_code").as_str()), (2, "200"));
    let field = named("query agents");
    assert_eq!(field.parent_span_id, request.span_id);
    let statements: Vec<&Span> = spans.iter().filter(|span| span.name == "SELECT").collect();
    assert!(statements.iter().any(|span| span.parent_span_id == field.span_id), "{statements:#?}");
    assert!(
        statements.iter().any(|span| span.parent_span_id == request.span_id),
        "authentication queries as well"
    );
    for statement in statements {
        assert!(attribute(statement, "db.query.text").contains("$1"));
        assert!(statement.start_time_unix_nano <= statement.end_time_unix_nano);
        assert!(["sqlite", "postgresql"].contains(&attribute(statement, "db.system.name").as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_failures_and_rounds_are_traced_without_their_data() {
    let (app, collector) = traced(1.0).await;
    let body = json!({ "name": "canary-name", "description": "canary-text" });
    let made = app.owner.post(&format!("/v1/org/{}/server?canary=1", app.org), body.clone()).await;
    assert_eq!(made.status, 422, "{:#}", made.body);
    let body = json!({ "name": "canary-name" });
    let made = app.owner.post(&format!("/v1/org/{}/server", app.org), body).await.expect(201);
    app.stranger.get(&format!("/v1/org/{}/server?page=1&limit=1", app.org)).await.problem();
    app.anonymous.get("/canary-path").await.problem();
    let sign_in =
        "mutation { signIn(email: \"canary@example.com\", password: \"canary-word\") { accessToken } }";
    app.anonymous.gql(sign_in, json!({})).await.code();
    telemetry::job("test.job", async { Err::<(), _>(()) }).await.unwrap_err();
    let spans = received(&collector, &["mutation createServer", "mutation signIn", "GET", "test.job"]).await;
    let named = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let change = named("mutation createServer");
    // The server and its audit entry.
    for (statement, count) in [("INSERT", 2), ("COMMIT", 1)] {
        let is_it = |span: &&Span| span.name == statement && span.trace_id == change.trace_id;
        assert_eq!(spans.iter().filter(is_it).count(), count, "{statement}: {spans:#?}");
    }
    assert_eq!(named("test.job").status.as_ref().unwrap().code, 2);
    named("mutation signIn");
    assert_eq!(attribute(named("GET"), "http.response.status_code"), "404");
    let sent = String::from_utf8_lossy(&collector.bytes.lock().unwrap()).into_owned();
    let token = made["provisioning_token"].as_str().unwrap();
    for secret in ["canary", token, app.owner.bearer(), app.stranger.bearer()] {
        assert!(!sent.contains(secret), "{secret} was sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_sampled_traces_are_sent() {
    let (app, collector) = traced(0.0).await;
    let path = format!("/v1/org/{}/agent?page=1&limit=5", app.org);
    app.viewer.get(&path).await.expect(200);
    with_parent(&app.stranger, &path, false).await.problem();
    traces::finish().await;
    assert!(collector.spans.lock().unwrap().is_empty());
    // The caller's decision overrides the ratio.
    with_parent(&app.viewer, &path, true).await.expect(200);
    received(&collector, &["GET /v1/org/{org_id}/agent"]).await;
    let mut headers = http::HeaderMap::new();
    tracing::Instrument::instrument(async { traces::inject(&mut headers) }, traces::job("test.job")).await;
    let said = headers["traceparent"].to_str().unwrap();
    assert!(said.starts_with("00-") && said.len() == 55, "{said}");
}

/// A foreign server, which answers nothing useful and records the headers of each call.
async fn elsewhere() -> (String, Arc<Mutex<Vec<http::HeaderMap>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    let router = Router::new().fallback(move |headers: http::HeaderMap| {
        kept.lock().unwrap().push(headers);
        async { http::StatusCode::NOT_FOUND }
    });
    (served(router).await, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outgoing_call_joins_its_trace() {
    let (issuer, heard) = elsewhere().await;
    let (app, collector) = traced_with(1.0, |config| {
        let file = config.data_dir.join("oidc.toml");
        std::fs::write(&file, format!("[other]\nissuer = \"{issuer}\"\nclient_id = \"muster\"\n")).unwrap();
        config.oidc_file = Some(file);
        config.public_url = Some("https://muster.test".to_owned());
    })
    .await;
    app.expects_failures();
    let start = "/auth/oidc/other/start";
    let browser = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let browser = browser.build().unwrap();
    // It leads back to the panel, because the provider is down.
    let visit = async |parent: Option<&str>| {
        let mut request = app.anonymous.request(Method::GET, start).build().unwrap();
        if let Some(flags) = parent {
            let parent = format!("00-{TRACE}-{PARENT}-{flags}").parse().unwrap();
            request.headers_mut().insert("traceparent", parent);
            request.headers_mut().insert("tracestate", "vendor=canary".parse().unwrap());
        }
        assert_eq!(browser.execute(request).await.unwrap().status(), 303);
    };
    visit(Some("01")).await;
    // A caller's wish not to be traced is passed on. A call without a parent has its own trace.
    visit(Some("00")).await;
    visit(None).await;
    let is_it = |span: &Span| hex(&span.trace_id) == TRACE && span.name.starts_with("GET /auth");
    let has_ended = async || {
        traces::finish().await;
        collector.spans.lock().unwrap().iter().any(is_it)
    };
    until("the request's span", has_ended).await;
    let heard = heard.lock().unwrap();
    let parents: Vec<Vec<&str>> =
        heard.iter().map(|headers| headers["traceparent"].to_str().unwrap().split('-').collect()).collect();
    let spans = collector.spans.lock().unwrap();
    let span = spans.iter().find(|span| is_it(span));
    let span = hex(&span.expect("the request's span").span_id);
    assert_eq!(parents[0], ["00", TRACE, &span, "01"]);
    assert_eq!((parents[1][1], parents[1][3]), (TRACE, "00"));
    assert_ne!(parents[2][1], TRACE);
    assert_eq!(parents.len(), 3);
    assert!(heard.iter().all(|headers| !headers.contains_key("tracestate")), "{heard:?}");
    assert_eq!(*collector.traced.lock().unwrap(), 0, "exporting spans is not part of a trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turns_trace_has_its_text_only_on_request() {
    use muster_protocol::{
        event::{Content, TurnOutcome},
        spending::ModelCall,
    };
    let (app, collector) = traced(1.0).await;
    let host = app.running_agent().await;
    let turns = async |text: &str| {
        let conversation = app.conversation(host.agent).await;
        let turn = write(&app, conversation, text).await;
        host.takes(turn).await;
        host.calls(ModelCall { millis: 1500, ..host.call(Some(turn), 1000, 100) }).await;
        let (tool, call_id) = ("search".to_owned(), "c1".to_owned());
        let content = Content::ToolCall { tool, call_id, input: json!({ "q": "canary-input" }) };
        host.says(conversation, Some(turn), &format!("1.{turn}"), content).await.unwrap();
        host.turn_ended(turn, TurnOutcome::Done).await;
        turn
    };
    let silent = turns("canary-prompt").await;
    let edit =
        "mutation($o: Id!) { updateOrganization(orgId: $o, input: { traceContent: true }) { traceContent } }";
    app.owner.gql(edit, json!({ "o": app.org })).await.data();
    let told = turns("shown-prompt").await;
    traces::finish().await;
    let spans = collector.spans.lock().unwrap().clone();
    let of = |turn: i64| {
        let is_it = |span: &&Span| {
            span.name.starts_with("invoke_agent") && attribute(span, "muster.turn.id") == turn.to_string()
        };
        spans.iter().find(is_it).unwrap_or_else(|| panic!("turn {turn}: {spans:#?}"))
    };
    let whole = of(silent);
    assert_eq!(attribute(whole, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(whole, "gen_ai.usage.input_tokens"), "1000");
    assert_eq!(attribute(whole, "muster.usage.cost_micro"), "4500");
    let part = |name: &str| {
        let is_it = |span: &&Span| span.name == name && span.parent_span_id == whole.span_id;
        spans.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let call = part("chat claude-sonnet-4-5");
    assert_eq!(attribute(call, "gen_ai.provider.name"), "anthropic");
    assert_eq!(call.end_time_unix_nano - call.start_time_unix_nano, 1_500_000_000);
    assert_eq!(attribute(part("execute_tool search"), "gen_ai.tool.call.id"), "c1");
    assert!(attribute(of(told), "gen_ai.input.messages").contains("shown-prompt"));
    let sent = String::from_utf8_lossy(&collector.bytes.lock().unwrap()).into_owned();
    assert!(!sent.contains("canary-prompt") && !sent.contains("canary-input"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_shows_usage_windows_and_caches() {
    use muster_protocol::{
        event::{TurnOutcome, Usage},
        spending::ModelCall,
    };
    let (app, collector) = traced(1.0).await;
    let host = app.running_agent().await;
    let (_, turn) = host.works().await;
    let cached =
        Usage { input: Some(1000), cache_read: Some(10_000), cache_write: Some(2000), ..Usage::default() };
    for (status, usage) in [(429, Usage::default()), (429, Usage::default()), (200, cached)] {
        let call = ModelCall { status: Some(status), millis: 1000, usage, ..host.call(Some(turn), 0, 0) };
        host.calls(call).await;
        app.clock.advance(Duration::from_secs(30));
    }
    host.turn_ended(turn, TurnOutcome::Done).await;
    let spans = received(&collector, &["wait limit", "chat claude-sonnet-4-5"]).await;
    let waits: Vec<&Span> = spans.iter().filter(|span| span.name == "wait limit").collect();
    let [wait] = waits[..] else { panic!("{waits:#?}") };
    assert_eq!(attribute(wait, "gen_ai.request.model"), "claude-sonnet-4-5");
    // From the end of the first call to the beginning of the third.
    assert_eq!(wait.end_time_unix_nano - wait.start_time_unix_nano, 59_000_000_000);
    let passed =
        |span: &&Span| span.name.starts_with("chat") && attribute(span, "http.response.status_code") == "200";
    let passed = spans.iter().find(passed).unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!(attribute(passed, "gen_ai.usage.cache_read.input_tokens"), "10000");
    assert_eq!(attribute(passed, "gen_ai.usage.cache_creation.input_tokens"), "2000");
    assert_eq!(attribute(passed, "gen_ai.usage.input_tokens"), "13000");
}

/// The waits of this name, once all `turns` have one: the turn's span, and the span of its only such wait.
async fn waits(collector: &Collector, name: &str, turns: &[i64]) -> Vec<(Span, Span)> {
    let all = || collector.spans.lock().unwrap().clone();
    let have_come = async || {
        traces::finish().await;
        all().iter().filter(|span| span.name.starts_with("invoke_agent")).count() >= turns.len()
    };
    until("the traces of the turns", have_come).await;
    let spans = all();
    let of = |turn: &i64| {
        let is_it = |span: &&Span| {
            span.name.starts_with("invoke_agent") && attribute(span, "muster.turn.id") == turn.to_string()
        };
        let whole = spans.iter().find(is_it).unwrap_or_else(|| panic!("turn {turn}: {spans:#?}"));
        let is_part = |span: &&Span| span.name == name && span.parent_span_id == whole.span_id;
        let parts: Vec<&Span> = spans.iter().filter(is_part).collect();
        let [wait] = parts[..] else { panic!("{name} of {turn}: {spans:#?}") };
        (whole.clone(), wait.clone())
    };
    turns.iter().map(of).collect()
}

fn seconds(span: &Span) -> u64 {
    Duration::from_nanos(span.end_time_unix_nano - span.start_time_unix_nano).as_secs()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_shows_its_wait_for_a_budget() {
    use muster_protocol::event::TurnOutcome;
    let (app, collector) = traced(1.0).await;
    app.sets(json!({ "monthlyBudgetMicro": CALL })).await;
    let host = app.running_agent().await;
    let (_, begun) = host.works().await;
    host.calls(host.call(Some(begun), 100_000, 0)).await;
    app.clock.advance(Duration::from_secs(30));
    assert!(host.leases().await.is_none());
    assert_eq!(app.turn_is(begun).await, "WAITING_LIMIT");
    app.clock.advance(Duration::from_secs(10));
    let conversation = app.conversation(host.agent).await;
    let queued = app.posts(conversation).await;
    app.clock.advance(Duration::from_secs(50));
    let [guard] = app.guards().await[..] else { panic!() };
    app.allows(json!({ "costMicro": 10 * CALL, "approvalId": guard })).await;
    assert_eq!(app.turn_is(begun).await, "RUNNING");
    app.clock.advance(Duration::from_secs(5));
    // Until a call has passed, the end of the turn would be the agent's giving up.
    host.calls(host.call(Some(begun), 1000, 0)).await;
    host.turn_ended(begun, TurnOutcome::Done).await;
    host.takes(queued).await;
    app.clock.advance(Duration::from_secs(5));
    host.turn_ended(queued, TurnOutcome::Done).await;
    let found = waits(&collector, "wait budget", &[begun, queued]).await;
    let [(whole, wait), (queued, its_wait)] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((seconds(whole), seconds(wait)), (95, 60), "from the refusal until more was allowed");
    assert_eq!(wait.trace_id, whole.trace_id);
    // It could not be sent: it waits from its beginning.
    assert_eq!((seconds(queued), seconds(its_wait)), (60, 50));
    assert_eq!(its_wait.start_time_unix_nano, queued.start_time_unix_nano);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_ends_waiting_has_waited_until_then() {
    use muster_protocol::event::TurnOutcome;
    let (app, collector) = traced(1.0).await;
    let host = app.running_agent().await;
    let limits = json!({
        "costGuardMode": "CUSTOM", "costGuardTokensPerHour": 50_000, "costGuardAction": "PAUSE",
    });
    app.sets_agent(host.agent, limits).await;
    let (_, turn) = host.works().await;
    host.calls(host.call(Some(turn), 100_000, 0)).await;
    assert!(host.leases().await.is_none());
    app.clock.advance(Duration::from_secs(20));
    host.turn_ended(turn, TurnOutcome::Cancelled).await;
    let found = waits(&collector, "wait tokens", &[turn]).await;
    assert_eq!(seconds(&found[0].1), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_shows_its_wait_for_the_release_of_its_organization() {
    use muster_protocol::event::TurnOutcome;
    let (app, collector) = traced(1.0).await;
    let host = app.running_agent().await;
    let conversation = app.conversation(host.agent).await;
    stop(&app, &app.operator, "so").await.data();
    app.clock.advance(Duration::from_secs(10));
    let turn = app.posts(conversation).await;
    app.clock.advance(Duration::from_secs(40));
    release(&app, &app.admin).await.data();
    app.clock.advance(Duration::from_secs(5));
    host.takes(turn).await;
    app.clock.advance(Duration::from_secs(5));
    host.turn_ended(turn, TurnOutcome::Done).await;
    let found = waits(&collector, "wait stop", &[turn]).await;
    let (whole, wait) = &found[0];
    assert_eq!((seconds(whole), seconds(wait)), (50, 40), "from the turn's making to the release");
}
