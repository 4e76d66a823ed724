//! GraphQL over HTTP: forms of requests and answers, statuses, limits.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp};

const FORM: &str = "application/graphql-response+json";

/// POST /graphql with this body and this `Accept`.
async fn post(app: &TestApp, accept: &str, body: &str) -> Answer {
    let request = app.owner.request(Method::POST, "/graphql").header("accept", accept);
    Answer::of(request.header("content-type", "application/json").body(body.to_owned())).await
}

#[tokio::test]
async fn the_media_type_decides_how_an_invalid_document_is_answered() {
    let app = TestApp::start().await;
    for wrong in
        [r#"{"query": "{"}"#, r#"{"query": "{ nothing }"}"#, r#"{"query": "query($x: Int!) { __typename }"}"#]
    {
        let (plain, strict) = (post(&app, "application/json", wrong).await, post(&app, FORM, wrong).await);
        assert_eq!((plain.status, strict.status), (200, 400), "{wrong}");
        for answer in [plain, strict] {
            assert!(answer.body.get("data").is_none(), "{:#}", answer.body);
            let extensions = &answer.body["errors"][0]["extensions"];
            assert!(extensions["code"].is_string() && extensions["status"].is_number(), "{extensions}");
            assert_eq!(extensions["requestId"].as_str(), Some(answer.header("x-request-id")));
        }
    }
    let answer = post(&app, FORM, r#"{"query": "{ __typename }"}"#).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/graphql-response+json; charset=utf-8")
    );
}

#[tokio::test]
async fn an_invalid_request_is_400_in_either_form() {
    let app = TestApp::start().await;
    for body in ["", "{", "[]", "7", r#"{"query": 1}"#, r#"{"query": "{ __typename }", "variables": 1}"#] {
        for accept in ["application/json", FORM] {
            let answer = post(&app, accept, body).await;
            assert_eq!((answer.status, answer.code().as_str()), (400, "MALFORMED_REQUEST"), "{body}");
        }
    }
    let request = app.owner.request(Method::POST, "/graphql").header("content-type", "text/plain");
    let answer = Answer::of(request.body(r#"{"query": "{ __typename }"}"#)).await;
    assert_eq!((answer.status, answer.code().as_str()), (415, "UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn a_bad_credential_is_401_and_a_missing_one_is_anonymous() {
    let app = TestApp::start().await;
    let answer = app.anonymous.with_bearer("nonsense").gql("{ __typename }", json!({})).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "UNAUTHENTICATED"));
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    assert_eq!(app.anonymous.gql("{ __typename }", json!({})).await.data()["__typename"], "Query");
    let list = "query($o: Id!) { agents(orgId: $o, page: 1, limit: 10) { total } }";
    assert_eq!(app.anonymous.gql(list, json!({"o": app.org})).await.code(), "UNAUTHENTICATED");
}

#[tokio::test]
async fn a_batch_is_answered_in_order_and_bounded() {
    let app = TestApp::start().await;
    let answer = post(
        &app,
        "*/*",
        r#"[{"query": "{ a: __typename }"}, {"query": "{"}, {"query": "{ c: __typename }"}]"#,
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body[0], json!({"data": {"a": "Query"}}));
    assert!(answer.body[1]["errors"].is_array());
    assert_eq!(answer.body[2], json!({"data": {"c": "Query"}}));
    let many = Value::from(vec![json!({"query": "{ __typename }"}); 11]).to_string();
    let answer = post(&app, "*/*", &many).await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "QUERY_TOO_COMPLEX"));
}

#[tokio::test]
async fn get_only_reads() {
    let (app, agent) = TestApp::with_agent().await;
    let get = |query: &str, variables: Value| {
        let parameters = [("query", query.to_owned()), ("variables", variables.to_string())];
        Answer::of(app.owner.request(Method::GET, "/graphql").query(&parameters))
    };
    let variables = json!({"o": app.org, "a": agent});
    let read =
        get("query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { id status } }", variables.clone()).await;
    assert_eq!(read.data()["agent"]["status"], "STOPPED");
    let start = "mutation($o: Id!, $a: Id!) { startAgent(orgId: $o, id: $a) { id } }";
    let refused = get(start, variables.clone()).await;
    assert_eq!((refused.status, refused.header("allow")), (405, "POST"));
    assert_eq!(refused.code(), "METHOD_NOT_ALLOWED");
    let read = get("query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { status } }", variables).await;
    assert_eq!(read.data()["agent"]["status"], "STOPPED");
    assert_eq!(Answer::of(app.owner.request(Method::GET, "/graphql")).await.status, 400);
}

#[tokio::test]
async fn one_root_field_fails_and_the_other_answers() {
    let (app, agent) = TestApp::with_agent().await;
    let both = "query($o: Id!, $a: Id!, $b: Id!) { good: agent(orgId: $o, id: $a) { id } bad: agent(orgId: $o, id: $b) { id } }";
    let answer = app.viewer.gql(both, json!({"o": app.org, "a": agent, "b": 999_999})).await;
    assert_eq!((answer.status, answer.code().as_str()), (200, "NOT_FOUND"));
    assert_eq!(answer.body["data"], json!({"good": {"id": agent}, "bad": null}));
    assert_eq!(answer.body["errors"][0]["path"], json!(["bad"]));
}

#[tokio::test]
async fn a_cached_document_takes_other_values_but_no_wrong_ones() {
    let (app, one, two) = TestApp::with_two_agents().await;
    let read = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { id } }";
    for agent in [one, two, one] {
        assert_eq!(app.owner.gql(read, json!({"o": app.org, "a": agent})).await.data()["agent"]["id"], agent);
    }
    for wrong in [json!({"o": app.org}), json!({"o": app.org, "a": "x"}), json!({"o": app.org, "a": null})] {
        assert_eq!(app.owner.gql(read, wrong).await.code(), "VALIDATION_FAILED");
    }
}

#[tokio::test]
async fn what_a_document_may_ask_for_is_bounded() {
    let app = TestApp::start_with(|config| config.limits.graphql_aliases = 3).await;
    let aliases: String = (0..4).map(|n| format!(" a{n}: __typename")).collect();
    let nested = format!("{}__typename{}", "{ a ".repeat(70), "}".repeat(70));
    let roots: String = (0..40).map(|_| " __typename").collect();
    for document in [
        format!("{{{aliases} }}"),
        nested,
        format!("{{{roots} }}"),
        format!("{{ __typename }} #{}", "x".repeat(70_000)),
    ] {
        assert_eq!(app.owner.gql(&document, json!({})).await.code(), "QUERY_TOO_COMPLEX", "{document:.60}");
    }
    let cycle = "query { agents(orgId: 1, page: 1, limit: 1) { ...a } } fragment a on AgentPage { ...b } fragment b on AgentPage { ...a }";
    assert!(app.owner.gql(cycle, json!({})).await.body["errors"].is_array());
}

#[tokio::test]
async fn a_browser_gets_a_page_whose_examples_fit_the_schema() {
    let app = TestApp::start().await;
    let browser = app.anonymous.request(Method::GET, "/graphql").header("accept", "text/html,*/*;q=0.8");
    let page = Answer::of(browser).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").contains("script-src 'sha256-"));
    let list = page.text.split_once("id=\"example-list\">").unwrap().1.split_once("</script>").unwrap().0;
    let examples: Vec<Value> = serde_json::from_str(list).unwrap();
    assert!(examples.len() > 3);
    for example in examples {
        let request = app.anonymous.request(Method::POST, "/graphql").header("accept", "text/event-stream");
        let answer = Answer::of(request.json(&example)).await;
        assert!(
            answer.text.contains("UNAUTHENTICATED") && answer.text.contains("event: complete"),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn introspection_may_nest_deeper_than_data() {
    let app = TestApp::start_with(|config| config.limits.graphql_depth = 3).await;
    let deep = "{ __schema { types { fields { type { ofType { ofType { name } } } } } } }";
    app.anonymous.gql(deep, json!({})).await.data();
    let data = "query($o: Id!) { agents(orgId: $o, page: 1, limit: 1) { data { server { id } } } }";
    let answer = app.viewer.gql(data, json!({"o": app.org})).await;
    assert_eq!(answer.code(), "QUERY_TOO_COMPLEX", "{}", answer.text);
}
