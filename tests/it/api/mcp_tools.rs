//! `/mcp`: operations of `/v1` as tools. For third-party clients see `api/mcp_clients.rs`.

use std::collections::BTreeSet;

use muster::api::{
    mcp::{ToolRoute, tool_routes},
    rest::ROUTES,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, TestApp};

/// A message to `/mcp`, as an MCP client sends it.
async fn send(actor: &Actor, message: Value) -> Answer {
    send_with(actor, message, &[]).await
}

async fn send_with(actor: &Actor, message: Value, headers: &[(&str, &str)]) -> Answer {
    let mut request = actor.request(Method::POST, "/mcp");
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.json(&message)).await
}

#[expect(clippy::needless_pass_by_value, reason = "it is written inline")]
fn ask(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

async fn call(actor: &Actor, name: &str, arguments: Value) -> Value {
    let answer = send(actor, ask("tools/call", json!({ "name": name, "arguments": arguments }))).await;
    answer.expect(200)["result"].clone()
}

/// The problem document of a refused call.
#[track_caller]
fn problem(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result:#}");
    assert!(result["structuredContent"].is_null());
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

async fn tools(actor: &Actor) -> Vec<Value> {
    let listed = send(actor, ask("tools/list", json!({}))).await.expect(200);
    listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed:#}")).clone()
}

fn names(tools: &[Value]) -> BTreeSet<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_routes_marked_as_tools_are_tools() {
    let app = TestApp::start().await;
    let all = tool_routes(&app.service.rest.routes, &app.service.graphql.catalogue);
    let marked: Vec<_> = ROUTES.iter().filter(|route| route.is_tool).collect();
    assert!(ROUTES.iter().all(|route| route.is_tool || !route.is_specified()));
    assert!(marked.len() <= 40, "every client reads all of them: {}", marked.len());
    assert_eq!(all.all().len(), marked.len());
    let document: Value = app.anonymous.get("/openapi.json").await.expect(200);
    for (ToolRoute { tool, operation, .. }, route) in all.all().iter().zip(&marked) {
        assert_eq!(operation.name, route.operation);
        assert!(tool.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", tool.name);
        assert!(tool.description.as_ref().unwrap().contains("Requires the permission"), "{}", tool.name);
        let described = &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
        let mut expected: BTreeSet<String> = described["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|parameter| parameter["in"] != "header")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let parameters = expected.len();
        let body = &described["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        if let Some(name) = body.as_str() {
            let schema = document.pointer(name.trim_start_matches('#')).unwrap();
            let keys: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            expected.extend(keys.iter().cloned());
            assert_eq!(
                expected.len(),
                parameters + keys.len(),
                "{}: a key of the body is also a parameter",
                tool.name
            );
        }
        let properties = tool.input_schema["properties"].as_object().unwrap();
        assert_eq!(properties.keys().cloned().collect::<BTreeSet<_>>(), expected, "{}", tool.name);
        let hints = tool.annotations.as_ref().unwrap();
        assert_eq!(hints.read_only_hint, Some(route.method == "GET"), "{}", tool.name);
    }
    assert_eq!(names(&tools(&app.owner).await).len(), marked.len());
    let by_name = |name: &str| all.find(name).unwrap().tool.annotations.clone().unwrap();
    assert_eq!(by_name("create_agent").destructive_hint, Some(false));
    assert_eq!(by_name("regenerate_provisioning_token").destructive_hint, Some(true));
    assert_eq!(by_name("edit_channel").idempotent_hint, Some(true));
}

/// The components a schema refers to.
fn referred(schema: &Value) -> BTreeSet<String> {
    let text = schema.to_string();
    let names = text.split("\"#/$defs/").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    names.collect()
}

#[tokio::test]
async fn each_tool_describes_its_input_and_output() {
    let app = TestApp::start().await;
    let answer = send(&app.owner, ask("tools/list", json!({}))).await;
    // Every client pays for additions to this.
    assert!(answer.text.len() < 270_000, "{} bytes", answer.text.len());
    assert!(answer.body["result"]["nextCursor"].is_null());
    let listed = tools(&app.owner).await;
    for tool in &listed {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            // Every reference resolves within the schema, and every component is referred to.
            let components = schema["$defs"].as_object().cloned().unwrap_or_default();
            assert_eq!(components.keys().cloned().collect::<BTreeSet<_>>(), referred(schema), "{name}");
            for schema in components.values().chain([schema]) {
                let says = ["properties", "enum", "anyOf", "items"].iter().any(|key| !schema[key].is_null());
                assert!(says, "{name} does not describe {schema:#}");
            }
        }
    }
    // A record looks the same wherever it is returned.
    let output = |name: &str| &listed.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"];
    let (started, created) = (output("start_agent"), output("create_agent"));
    assert!(started["properties"]["sync_pending"]["description"].is_string(), "{started:#}");
    assert_eq!(started, created);
    assert_eq!(output("list_agents")["$defs"]["Agent"]["properties"], started["properties"]);
    // Also for a caller who sees fewer tools.
    let token = app.token(&["agent.create"]).await;
    let alone = tools(&token).await;
    assert_eq!((alone[0]["name"].as_str(), &alone[0]["outputSchema"]), (Some("create_agent"), created));
    assert_eq!(tools(&app.stranger).await.len(), listed.len());
}

#[tokio::test]
async fn a_tool_that_only_reads_is_charged_as_a_read() {
    let app = TestApp::start_with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.reads_per_minute = 5;
        config.rate_limits.writes_per_minute = 2;
    })
    .await;
    let call =
        |name: &str, arguments: Value| ask("tools/call", json!({ "name": name, "arguments": arguments }));
    let bucket = |answer: &Answer| answer.header("ratelimit").to_owned();
    let agents = call("list_agents", json!({ "page": 1, "limit": 5 }));
    assert_eq!(bucket(&send(&app.operator, ask("tools/list", json!({}))).await), "\"reads\";r=4;t=12");
    let read = send(&app.operator, agents.clone()).await;
    assert_eq!(bucket(&read), "\"reads\";r=3;t=24");
    let keyed = send_with(&app.operator, agents.clone(), &[("idempotency-key", "a-key")]).await;
    assert_eq!((bucket(&keyed), keyed.header("idempotent-replayed")), ("\"reads\";r=2;t=36".to_owned(), ""));
    let keys: i64 = app.one("SELECT COUNT(*) FROM idempotency_keys", vec![]).await;
    assert_eq!(keys, 0, "a tool call claims no key");
    assert_eq!(bucket(&send(&app.operator, ask("ping", json!({}))).await), "\"reads\";r=1;t=48");
    // Changes, unknown tools, and messages that can be read in two ways.
    let write = send(&app.operator, call("start_agent", json!({ "id": 1 }))).await;
    assert_eq!(bucket(&write), "\"writes\";r=1;t=30");
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_agents","name":"start_agent"}}"#;
    let request = app.operator.request(Method::POST, "/mcp").header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream").body(twice);
    assert_eq!(bucket(&Answer::of(request).await), "\"writes\";r=0;t=60");
    let limited = send(&app.operator, call("no_such_tool", json!({}))).await;
    assert_eq!(limited.problem(), (429, "RATE_LIMITED"));
    assert_eq!(limited.body["details"]["limit"], "writes");
    // Reads continue until their own bucket is empty, and no other one is affected.
    assert_eq!(send(&app.operator, agents.clone()).await.status, 200);
    assert_eq!(send(&app.operator, agents.clone()).await.problem(), (429, "RATE_LIMITED"));
    assert_eq!(bucket(&send(&app.stranger, agents).await), "\"reads\";r=4;t=12");
}

#[tokio::test]
async fn a_caller_sees_only_tools_they_may_use_and_where() {
    let app = TestApp::start().await;
    let viewer = tools(&app.viewer).await;
    let shown = names(&viewer);
    assert!(shown.contains("list_agents") && !shown.contains("create_agent"), "{shown:?}");
    let list = viewer.iter().find(|tool| tool["name"] == "list_agents").unwrap();
    assert_eq!(list["inputSchema"]["properties"]["org_id"]["enum"], json!([app.org]));
    assert_eq!(list["inputSchema"]["properties"]["org_id"]["default"], app.org);
    assert_eq!(list["inputSchema"]["required"], json!(["page", "limit"]));
    let token = app.token(&["agent.view", "agent.create"]).await;
    assert_eq!(
        names(&tools(&token).await),
        BTreeSet::from(["list_agents", "list_channels", "create_agent", "get_agent"])
    );
    let stranger = tools(&app.stranger).await;
    assert_eq!(stranger[0]["inputSchema"]["properties"]["org_id"]["enum"], json!([app.other_org]));
    let powerless = app.token(&["token.edit"]).await;
    assert_eq!(tools(&powerless).await.len(), 0);
    // An organization that keeps someone out doesn't affect the others.
    let sql = "INSERT INTO members (organization_id, user_id, role, created_at) VALUES ($1, $2, 'VIEWER', 1)";
    app.execute(sql, vec![app.other_org.into(), app.viewer.user.into()]).await;
    let sql = "UPDATE organizations SET require_second_factor = TRUE WHERE id = $1";
    app.execute(sql, vec![app.other_org.into()]).await;
    app.forget_sessions();
    let both = tools(&app.viewer).await;
    let list = both.iter().find(|tool| tool["name"] == "list_agents").unwrap();
    assert_eq!(list["inputSchema"]["properties"]["org_id"]["enum"], json!([app.org]));
    // Some operations need a confirmed address.
    let unconfirmed = app.person("OWNER", false).await;
    assert!(!names(&tools(&unconfirmed).await).contains("create_channel"));
}

#[tokio::test]
async fn a_tool_call_does_what_its_route_does() {
    let app = TestApp::start().await;
    let (server, image) = (app.server().await, app.image().await);
    let input = json!({ "org_id": app.org, "name": "Dispatch", "server_id": server, "image_id": image });
    let made = call(&app.admin, "create_agent", input).await;
    let agent = &made["structuredContent"];
    assert_eq!((&made["isError"], &agent["name"]), (&json!(false), &json!("Dispatch")));
    let text: Value = serde_json::from_str(made["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(&text, agent);
    let listed = app.viewer.get(&format!("/v1/org/{}/agent?page=1&limit=5", app.org)).await.expect(200);
    let told = call(&app.viewer, "list_agents", json!({ "page": 1, "limit": 5 })).await;
    assert_eq!(told["structuredContent"], listed);
    // A bare list is wrapped in an object.
    let channels = call(&app.viewer, "list_channels", json!({ "org_id": app.org })).await;
    assert_eq!(channels["structuredContent"], json!({ "data": [] }));
    let started = call(&app.operator, "start_agent", json!({ "id": agent["id"] })).await;
    assert_eq!(started["structuredContent"]["status"], "SPAWNING");
    let operations: Vec<String> =
        app.column("SELECT operation FROM audit_lines WHERE actor_kind = 'USER'").await;
    assert!(operations.contains(&"createAgent".to_owned()) && operations.contains(&"startAgent".to_owned()));
}

#[tokio::test]
async fn a_refusal_is_a_tool_error_with_a_problem_document() {
    let (app, agent) = TestApp::with_agent().await;
    let new = json!({ "org_id": app.org, "name": "x", "server_id": 1 });
    let denied = problem(&call(&app.viewer, "create_agent", new).await);
    assert_eq!(
        (&denied["code"], &denied["details"]["permission"]),
        (&json!("PERMISSION_DENIED"), &json!("agent.create"))
    );
    assert_eq!((&denied["status"], &denied["instance"]), (&json!(403), &json!("/mcp")));
    // The stranger gets nothing here, with any question, and the same answer for what doesn't exist.
    for (name, arguments) in [
        ("list_agents", json!({ "org_id": app.org, "page": 1, "limit": 5 })),
        ("start_agent", json!({ "org_id": app.org, "id": agent })),
        ("get_organization", json!({ "org_id": app.org })),
        ("get_organization", json!({ "org_id": 4711 })),
        ("get_organization", json!({ "org_id": -1 })),
    ] {
        assert_eq!(problem(&call(&app.stranger, name, arguments).await)["code"], "NOT_A_MEMBER", "{name}");
    }
    let foreign = problem(&call(&app.stranger, "start_agent", json!({ "id": agent })).await);
    assert_eq!(foreign["code"], "NOT_FOUND");
    let wrong =
        problem(&call(&app.owner, "list_agents", json!({ "page": 0, "limit": "many", "pgae": 1 })).await);
    let places: BTreeSet<&str> =
        wrong["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect();
    assert_eq!(places, BTreeSet::from(["/limit", "/page", "/pgae"]));
    let missing = problem(&call(&app.owner, "create_server", json!({ "nmae": "s" })).await);
    let places: Vec<&Value> =
        missing["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert!(places.contains(&&json!("/name")) && places.contains(&&json!("/nmae")), "{missing:#}");
    let kind = problem(&call(&app.owner, "get_organization", json!({ "org_id": "one" })).await);
    assert_eq!(kind["code"], "VALIDATION_FAILED");
    for (asked, told) in [
        ("list_agnets", "Unknown tool `list_agnets` (did you mean `list_agents`?)."),
        ("launch_missiles", "Unknown tool `launch_missiles`."),
        (&"x".repeat(1_000), &format!("Unknown tool `{}`.", "x".repeat(60))),
    ] {
        let unknown = send(&app.owner, ask("tools/call", json!({ "name": asked, "arguments": {} }))).await;
        assert_eq!(unknown.expect(200)["error"]["message"], told);
    }
}

#[tokio::test]
async fn no_one_gets_in_without_a_token_or_from_a_foreign_host() {
    let app = TestApp::start().await;
    let list = ask("tools/list", json!({}));
    let refused = send(&app.anonymous, list.clone()).await;
    assert_eq!((refused.problem(), refused.header("www-authenticate")), ((401, "UNAUTHENTICATED"), "Bearer"));
    let unknown = send(&app.anonymous.with_bearer("mst_svc_nonsense"), list.clone()).await;
    assert_eq!(unknown.problem(), (401, "UNAUTHENTICATED"));
    // A foreign page, and a host name that was made to resolve here.
    let page = send_with(&app.owner, list.clone(), &[("origin", "https://evil.example")]).await;
    assert_eq!((page.status, &page.body["jsonrpc"]), (403, &json!("2.0")));
    assert_eq!(send_with(&app.owner, list.clone(), &[("origin", "null")]).await.status, 403);
    let rebound = send_with(&app.owner, list.clone(), &[("host", "evil.example:8080")]).await;
    assert_eq!((rebound.status, &rebound.body["jsonrpc"]), (403, &json!("2.0")));
    // There are no sessions or streams to hold.
    let stream =
        Answer::of(app.owner.request(Method::GET, "/mcp").header("accept", "text/event-stream")).await;
    assert_eq!(stream.status, 405);
    assert_eq!(app.owner.delete("/mcp").await.status, 405);
    // Too large, not JSON, not the protocol.
    let much = ask("tools/list", json!({ "padding": "x".repeat(2 << 20) }));
    assert_eq!(send(&app.owner, much).await.status, 413);
    assert!((400..500).contains(&send(&app.owner, json!({ "hello": true })).await.status));
    let request = app.owner.request(Method::POST, "/mcp").header("content-type", "application/json");
    let broken = Answer::of(request.header("accept", "application/json, text/event-stream").body("{")).await;
    assert!((400..500).contains(&broken.status), "{broken:?}");
}

/// A body to `/mcp`, with only these headers.
async fn post(actor: &Actor, headers: &[(&str, &str)], body: String) -> Answer {
    let request = actor.request(Method::POST, "/mcp").header("content-type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request.body(body)).await
}

#[tokio::test]
async fn a_client_that_takes_json_is_answered() {
    let app = TestApp::start().await;
    let ping = ask("ping", json!({})).to_string();
    let send = async |accept: &[&str], body: &str| {
        let headers: Vec<_> = accept.iter().map(|value| ("accept", *value)).collect();
        post(&app.owner, &headers, body.to_owned()).await
    };
    for accept in [
        &[][..],
        &["*/*"],
        &["application/json"],
        &["application/*"],
        &["application/json, text/event-stream"],
        &["text/event-stream", "application/json"],
        &["text/event-stream, */*;q=0.1"],
    ] {
        assert_eq!(send(accept, &ping).await.expect(200)["result"], json!({}), "{accept:?}");
    }
    for accept in [
        &["text/event-stream"][..],
        &["application/json;q=0, */*"],
        &["text/event-stream, application/json;q=0"],
        &["text/html"],
    ] {
        let refused = send(accept, &ping).await;
        assert_eq!((refused.status, &refused.body["jsonrpc"]), (406, &json!("2.0")), "{accept:?}");
    }
    for (body, code, word) in [
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), -32600, "The id"),
        (r#"{"hello":true}"#.to_owned(), -32600, "not a JSON-RPC"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), -32600, "not a JSON-RPC"),
        ("[]".to_owned(), -32600, "1 to 10 messages"),
        (format!("[{ping}, 7]"), -32600, "not a JSON-RPC"),
        ("{".to_owned(), -32700, "not valid JSON"),
    ] {
        let refused = send(&[], &body).await.expect(400);
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(code), &json!(null)), "{body}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(word), "{refused}");
    }
}

#[tokio::test]
async fn a_batch_is_answered_in_the_version_that_has_them() {
    let app = TestApp::start_with(|config| {
        config.rate_limits.enabled = true;
        config.rate_limits.reads_per_minute = 6;
        config.rate_limits.writes_per_minute = 2;
    })
    .await;
    let agent = app.agent().await;
    let message = |id: i64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let old = [("mcp-protocol-version", "2025-03-26")];
    let start = json!({ "name": "start_agent", "arguments": { "id": agent } });
    let batch = json!([
        message(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        message(2, "tools/call", start),
        message(3, "tools/call", json!({ "name": "no_such_tool" })),
    ]);
    let answer = post(&app.operator, &old, batch.to_string()).await;
    assert_eq!(answer.header("content-type"), "application/json");
    let answers = answer.expect(200);
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_i64()).collect();
    assert_eq!(ids, [Some(1), Some(2), Some(3)], "in their order, and none for what asks nothing");
    assert_eq!(answers[1]["result"]["structuredContent"]["status"], "SPAWNING");
    assert_eq!(answers[2]["error"]["code"], -32602);
    // Each message was charged: both changes of the minute are spent.
    let more = post(
        &app.operator,
        &old,
        json!([message(1, "ping", json!({})), message(2, "tools/call", json!({ "name": "x" }))]).to_string(),
    );
    assert_eq!(more.await.problem(), (429, "RATE_LIMITED"));
    // If all messages of a batch are refused for the same reason, so is the batch.
    let pings = json!([message(1, "ping", json!({})), message(2, "ping", json!({}))]).to_string();
    let foreign =
        [(&app.stranger, "origin", "https://evil.example"), (&app.viewer, "host", "evil.example:8080")];
    for (caller, name, foreign) in foreign {
        let one = post(caller, &[(name, foreign)], message(1, "ping", json!({})).to_string()).await;
        let both = post(caller, &[(name, foreign)], pings.clone()).await;
        assert_eq!((one.status, both.status, &both.body), (403, 403, &one.body), "{name}");
    }
    // The version is the one that is spoken where none is named.
    let told = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]).to_string();
    let heard = post(&app.owner, &[], told.clone()).await;
    assert_eq!((heard.status, heard.text.as_str()), (202, ""));
    let newer = post(&app.owner, &[("mcp-protocol-version", "2025-06-18")], told).await.expect(400);
    assert!(newer["error"]["message"].as_str().unwrap().contains("only version 2025-03-26"), "{newer}");
}

#[tokio::test]
async fn a_body_of_many_values_is_refused_before_it_is_read() {
    let app = TestApp::start().await;
    let lists = vec!["[]"; 300_000].join(",");
    for body in [
        format!("[{lists}]"),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":[{lists}]}}}}}}"#
        ),
    ] {
        let refused = post(&app.owner, &[], body).await.expect(400);
        assert!(
            refused["error"]["message"].as_str().unwrap().contains("more than 10000 values"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn configured_hosts_and_origins_are_allowed() {
    let app = TestApp::start_with(|config| {
        config.public_url = Some("https://muster.example".into());
        config.mcp.hosts = "inside.example".into();
        config.mcp.origins = "https://app.example:443, http://localhost:*".into();
    })
    .await;
    let list = ask("tools/list", json!({}));
    let token = app.token(&["agent.view"]).await;
    for (name, value, status) in [
        ("host", "muster.example", 200),
        ("host", "inside.example:8443", 200),
        ("host", "outside.example", 403),
        ("origin", "https://muster.example", 200),
        ("origin", "https://app.example", 200),
        ("origin", "http://localhost:6274", 200),
        ("origin", "http://muster.example", 403),
        ("origin", "https://app.example:444", 403),
    ] {
        assert_eq!(send_with(&token, list.clone(), &[(name, value)]).await.status, status, "{name}: {value}");
    }
}
