//! A law: the service answers any bytes at any path, never with a 5xx, and reports the error in the
//! form of that interface.
//!
//! The harness fails a test if a panic was logged or a 5xx answered. These tests check the form.

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use reqwest::Method;

use crate::harness::{Actor, Answer, TestApp};

/// Requests per property: enough to be worthwhile, few enough for every run.
const CASES: usize = 300;

fn runner() -> TestRunner {
    let config = Config::default();
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn sample<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).expect("the strategy produces values").current()
}

/// Fragments of JSON close to what the service accepts.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("JSON has no infinities", |n| n.is_finite()).prop_map(|n| n.to_string()),
        ".{0,20}".prop_map(|text| serde_json::Value::from(text).to_string()),
        Just("true".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("1e999".to_owned()),
        Just("\"\\u0000\"".to_owned()),
        Just("\"\\ud800\"".to_owned()),
    ];
    let key = prop_oneof![
        "name|description|server_id|image_id|role|fields|kind|destinations|agent_ids|options|text|origin_id",
        "transport|agent_id|webhook|email|code_host|bot_token|drive|calendar|content|force|labels|is_active",
        ".{0,8}",
    ];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        let list =
            proptest::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(",")));
        let object = proptest::collection::vec((key.clone(), inner), 0..6).prop_map(|fields| {
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key)))
                .collect();
            format!("{{{}}}", fields.join(","))
        });
        prop_oneof![list, object]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => json().prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => Just(b"[".repeat(5000)),
        1 => Just(Vec::new()),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let name = "page|limit|only_pending|agent_id|before_seq|after_seq|q|sort|order|offset|search|ref|status|[a-z%&=]{0,6}";
    let value =
        prop_oneof!["[0-9]{1,22}", "-?[0-9]{1,3}", "[ -~]{0,12}", "(%[0-9a-fA-F]{2}){0,6}", "%zz|%|%f"];
    proptest::collection::vec((name, value), 0..5).prop_map(|pairs| {
        let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&").replace(['#', ' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}'], "%20")
    })
}

async fn send(actor: &Actor, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Answer {
    let request = actor.request(method, path).header("content-type", kind).body(body);
    Answer::of(request).await
}

#[tokio::test]
async fn every_route_refuses_any_bytes_with_a_problem_document() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    let mut runner = runner();
    let (bodies, queries) = (body(), query());
    let ids = prop_oneof![
        "0|1|2|3",
        "[0-9]{1,25}",
        "[a-z%]{1,4}".prop_map(|text| text.replace('%', "%25")),
        "%00|%ff"
    ];
    for case in 0..CASES {
        let route = &muster::api::rest::ROUTES[case % muster::api::rest::ROUTES.len()];
        let mut path = route.path.replace("{org_id}", &app.org.to_string());
        path = path
            .replace("{agent_id}", &agent.to_string())
            .replace("{conversation_id}", &conversation.to_string());
        for name in ["{id}", "{origin_id}", "{user_id}"] {
            path = path.replace(name, &sample(&mut runner, &ids));
        }
        let path = format!("{path}?{}", sample(&mut runner, &queries));
        let kind = if case % 7 == 0 { "text/plain" } else { "application/json" };
        let answer = send(&app.owner, route.method.clone(), &path, kind, sample(&mut runner, &bodies)).await;
        assert!(answer.status < 500, "{} {path}: {answer:#?}", route.method);
        if answer.status >= 400 {
            let (status, code) = answer.problem();
            assert_eq!(answer.body["status"], status, "{path}");
            assert!(!code.is_empty() && answer.body["request_id"].is_string(), "{path}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn graphql_refuses_any_bytes_with_errors() {
    let app = TestApp::start().await;
    let mut runner = runner();
    let document = prop_oneof![
        "[ -~]{0,60}",
        "(query|mutation|subscription|fragment)? ?\\{[a-zA-Z(){}:$!,. 0-9\"]{0,60}\\}?",
        Just("{".repeat(3000)),
        Just(format!("query($a:{}", "[".repeat(3000))),
        Just(format!("{{ a {}}}", "@skip(if: true) ".repeat(500))),
        Just("query { agents(orgId: 1, page: 1, limit: 99999999999999999999) { total } }".to_owned()),
    ];
    let bodies = prop_oneof![
        (document, json()).prop_map(|(query, variables)| {
            format!("{{\"query\":{},\"variables\":{variables}}}", serde_json::Value::from(query)).into_bytes()
        }),
        body(),
    ];
    for _ in 0..CASES {
        let answer =
            send(&app.owner, Method::POST, "/graphql", "application/json", sample(&mut runner, &bodies))
                .await;
        assert!(answer.status < 500, "{answer:#?}");
    }
}

#[tokio::test]
async fn tools_refuse_any_arguments_with_problems() {
    let app = TestApp::start().await;
    app.agent().await;
    let mut runner = runner();
    let tool_routes = muster::api::mcp::tool_routes(&app.service.rest.routes, &app.service.graphql.catalogue);
    let (arguments, bodies) = (json(), body());
    for case in 0..CASES {
        let name = &tool_routes.all()[case % tool_routes.all().len()].tool.name;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{case},"method":"tools/call","params":{{"name":"{name}","arguments":{}}}}}"#,
            sample(&mut runner, &arguments)
        );
        let body = if case % 5 == 0 { sample(&mut runner, &bodies) } else { call.into_bytes() };
        let request = app.owner.request(Method::POST, "/mcp").header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream").body(body);
        let answer = Answer::of(request).await;
        assert!(answer.status < 500, "{name}: {answer:#?}");
        if answer.body["result"]["isError"] == true {
            let text = answer.body["result"]["content"][0]["text"].as_str().unwrap();
            let problem: serde_json::Value = serde_json::from_str(text).unwrap();
            assert!(problem["code"].is_string() && problem["code"] != "INTERNAL", "{name}: {problem:#}");
        }
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let app = TestApp::start().await;
    for path in
        ["//", "/v1", "/v1/org", "/v2/org/1", "/v1/org/1/agents", "/%00", "/v1/org/%ff/agent", "/graphql/x"]
    {
        let answer = app.owner.get(path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:#?}");
        answer.problem();
    }
    let wrong = app.owner.delete(&format!("/v1/org/{}/agent", app.org)).await;
    assert_eq!(wrong.problem(), (405, "METHOD_NOT_ALLOWED"));
    let mut allowed: Vec<_> = wrong.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    assert_eq!(app.stranger.get("/v1/org/0").await.problem(), (403, "NOT_A_MEMBER"));
}
