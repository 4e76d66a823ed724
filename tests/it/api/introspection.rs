//! Introspection: the same answers as the executor's, with little work for any question.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, TestApp};

/// The introspection limit per request, in bytes, plus the braces around it.
const MOST: usize = (2 << 20) + 4096;

/// The query of graphql-js, which code generators, GraphiQL, and Apollo's tools send.
const OF_GRAPHQL_JS: &str = "
query IntrospectionQuery {
  __schema {
    description
    queryType { name kind } mutationType { name kind } subscriptionType { name kind }
    types { ...FullType }
    directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } }
  }
}
fragment FullType on __Type {
  kind name description specifiedByURL isOneOf
  fields(includeDeprecated: true) {
    name description
    args(includeDeprecated: true) { ...InputValue }
    type { ...TypeRef } isDeprecated deprecationReason
  }
  inputFields(includeDeprecated: true) { ...InputValue }
  interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue {
  name description type { ...TypeRef } defaultValue isDeprecated deprecationReason
}
fragment TypeRef on __Type {
  kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType {
  kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }
}";

/// The query's older form, which tools from some years ago send.
const OF_OLDER_TOOLS: &str = "
{ __schema { queryType { name } mutationType { name } subscriptionType { name }
  types { kind name description
    fields(includeDeprecated: true) { name description args { ...i } type { ...t } isDeprecated deprecationReason }
    inputFields { ...i } interfaces { ...t } possibleTypes { ...t }
    enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } }
  directives { name description locations args { ...i } } } }
fragment i on __InputValue { name description type { ...t } defaultValue }
fragment t on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }";

const SMALL: &[&str] = &[
    "{ __schema { __typename queryType { __typename name fields { name } } } }",
    "{ a: __schema { types { n: name } } b: __schema { types { kind } types { name } } }",
    "{ __type(name: \"Agent\") { name fields { name type { name kind ofType { name fields { name } } } } } }",
    "{ __type(name: \"Nothing\") { name } t: __typename }",
    "query($n: String!) { __type(name: $n) { ...t } } fragment t on __Type { enumValues { name isDeprecated } }",
    "query($s: Boolean!) { __schema { directives @skip(if: $s) { name } types @include(if: $s) { name ofType { name } } } }",
    "{ __schema { ... on __Schema { directives { locations args { name defaultValue type { name } } } } } }",
    "{ __type(name: \"UpdateAgentInput\") { inputFields { name type { kind ofType { name } } } isOneOf possibleTypes { name } } }",
];

fn variables() -> Value {
    json!({ "n": "AgentStatus", "s": true })
}

/// The executor's own answer.
async fn by_the_executor(app: &TestApp, document: &str) -> Value {
    let variables = async_graphql::Variables::from_json(variables());
    let answer =
        app.service.graphql.schema.execute(async_graphql::Request::new(document).variables(variables)).await;
    assert!(answer.errors.is_empty(), "{:?}", answer.errors);
    serde_json::to_value(answer.data).unwrap()
}

/// POST /graphql with a batch of the same document.
async fn batch(actor: &crate::harness::Actor, document: &str, times: usize) -> Answer {
    let body = Value::from(vec![json!({ "query": document }); times]);
    Answer::of(actor.request(Method::POST, "/graphql").json(&body)).await
}

#[tokio::test]
async fn anonymous_introspection_matches_the_executors() {
    let app = TestApp::start().await;
    for document in [OF_GRAPHQL_JS, OF_OLDER_TOOLS] {
        let first = app.anonymous.gql(document, json!({})).await;
        let again = app.anonymous.gql(document, json!({})).await;
        assert_eq!(first.text, again.text);
        assert!(first.text.len() < MOST / 2, "{} bytes", first.text.len());
        assert_eq!(first.data(), by_the_executor(&app, document).await);
    }
    // The executor would refuse a missing variable here.
    let default = "query($d: Boolean) { __type(name: \"Agent\") { fields(includeDeprecated: $d) { name } } }";
    assert!(app.anonymous.gql(default, json!({})).await.data()["__type"]["fields"].is_array());
    for document in SMALL {
        let answer = app.anonymous.gql(document, variables()).await;
        assert!(answer.body["errors"].is_null(), "{document}: {}", answer.text);
        let expected = by_the_executor(&app, document).await;
        assert_eq!(answer.body["data"], expected, "{document}");
        assert_eq!(app.viewer.gql(document, variables()).await.text, answer.text, "{document}");
        let events = app.anonymous.request(Method::POST, "/graphql").header("accept", "text/event-stream");
        let events = Answer::of(events.json(&json!({ "query": document, "variables": variables() }))).await;
        assert!(events.text.contains(&answer.text), "{document}: {}", events.text);
    }
}

#[tokio::test]
async fn introspection_per_request_is_bounded() {
    let app = TestApp::start().await;
    let deep = "{types{name fields{name description type{name description fields{name description type{name \
                description fields{name description args{name description type{name description}}}}}}}}}";
    let times = |n: usize, selection: &str| -> String {
        let roots: String = (0..n).map(|n| format!("a{n}:__schema{selection} ")).collect();
        format!("{{ {roots} }}")
    };
    for document in
        [times(30, deep), times(3, deep), times(30, "{types{fields{description type{name description}}}}")]
    {
        let document = &document;
        let answer = app.anonymous.gql(document, json!({})).await;
        assert_eq!(answer.code(), "QUERY_TOO_COMPLEX", "{document:.90}: {} bytes", answer.text.len());
        assert!(answer.text.len() < 1_000, "{document:.90}: {} bytes", answer.text.len());
        // Applies to a batch as well.
        let answer = batch(&app.viewer, document, 10).await;
        assert!(answer.text.len() < MOST, "{document:.90}: {} bytes", answer.text.len());
    }
    // An answer that fits once doesn't fit ten times in one request.
    let answer = batch(&app.viewer, OF_GRAPHQL_JS, 10).await;
    assert!(answer.text.len() < MOST, "{} bytes", answer.text.len());
    assert!(answer.body[0]["errors"].is_null() && !answer.body[9]["errors"].is_null());
}

#[tokio::test]
async fn an_anonymous_batch_is_short() {
    let app = TestApp::start().await;
    let answer = batch(&app.anonymous, "{ __typename }", 3).await;
    assert_eq!(answer.body, Value::from(vec![json!({ "data": { "__typename": "Query" } }); 3]));
    let answer = batch(&app.anonymous, "{ __typename }", 4).await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "QUERY_TOO_COMPLEX"));
    assert!(answer.text.contains("Without a credential, a batch can have at most 3 operations, not 4."));
    assert_eq!(batch(&app.stranger, "{ __typename }", 10).await.body.as_array().map(Vec::len), Some(10));
}

#[tokio::test]
async fn without_introspection_the_schema_stays_hidden() {
    let app = TestApp::start_with(|config| config.introspection = false).await;
    for document in SMALL {
        let answer = app.owner.gql(document, variables()).await;
        let data = answer.body["data"].as_object();
        let about = data.into_iter().flatten().filter(|(key, value)| *key != "t" && !value.is_null()).count();
        assert_eq!(about, 0, "{document}: {}", answer.text);
    }
}
