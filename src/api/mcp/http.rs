//! The endpoint: identifies the caller, checks the host name, and refuses requests before the protocol library sees
//! them.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
    routing::any,
};
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    ToolRoutes,
    messages::{self, Invalid, Sent},
    server::{McpCaller, ToolServer},
    tool_routes,
};
use crate::{
    api::{
        middleware::{Arrival, body, problem_response},
        rest::Rest,
    },
    base::{
        bounds,
        problem::{Problem, Result},
    },
    core::{
        Core,
        config::{Config, listed},
        rate_limits::Class,
    },
    read::SharedBudget,
};

type Service = StreamableHttpService<ToolServer, NeverSessionManager>;
/// The beginning of the library's text about an unreadable message.
const UNREADABLE: &str = "fail to deserialize";
/// The code of a JSON-RPC error that has no code of its own: the specification leaves it to servers.
const OTHER: i32 = -32000;
/// The answer to a client that does not accept JSON.
const NOT_JSON: &str = "Every response is JSON, which the Accept header refuses.";

pub fn router(rest: &Arc<Rest>) -> Router {
    let core = &rest.core;
    let tool_routes = Arc::new(tool_routes(&rest.routes, &rest.graphql.catalogue));
    let server = ToolServer {
        core: Arc::clone(core),
        graphql: Arc::clone(&rest.graphql),
        tool_routes: Arc::clone(&tool_routes),
    };
    let factory = move || Ok(server.clone());
    // A shutdown waits for calls as for other requests, so nothing here needs to watch for it.
    let service = Service::new(factory, Arc::new(NeverSessionManager::default()), settings(&core.config));
    let handler = move |State(core): State<Arc<Core>>, arrival: Arrival, request: Request| async move {
        match answer(&core, service, &tool_routes, &arrival, request).await {
            Ok(response) => response,
            Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
        }
    };
    Router::new().route("/mcp", any(handler)).with_state(Arc::clone(core))
}

/// Answers each request with a single JSON response, and only under our own host names.
fn settings(config: &Config) -> StreamableHttpServerConfig {
    let public = config.public_url.as_deref().and_then(|url| url::Url::parse(url).ok());
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    if !config.listen.ip().is_unspecified() {
        hosts.push(config.listen.ip().to_string());
    }
    hosts.extend(public.as_ref().and_then(|url| url.host_str()).map(str::to_owned));
    hosts.extend(listed(&config.mcp.hosts).map(str::to_owned));
    let mut origins: Vec<String> = listed(&config.mcp.origins).map(str::to_owned).collect();
    origins.extend(public.and_then(|url| {
        Some(format!("{}://{}:{}", url.scheme(), url.host_str()?, url.port_or_known_default()?))
    }));
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_retry(None)
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(config.limits.body_bytes)
}

async fn answer(
    core: &Arc<Core>,
    service: Service,
    tool_routes: &ToolRoutes,
    arrival: &Arrival,
    request: Request,
) -> Result<Response> {
    let caller = arrival.caller_uncharged(core).await?;
    if let Err(problem) = caller.require_identity() {
        arrival.charge(core, &caller, Class::Anonymous)?;
        return Err(problem);
    }
    let (mut parts, body) = request.into_parts();
    let body = body::read(core, arrival, &caller, body, core.config.limits.body_bytes).await;
    let sent = match &body {
        Ok(body) if arrival.method == Method::POST => messages::read(body, &parts.headers),
        _ => Ok(Sent::One),
    };
    for class in classes(&arrival.method, body.as_deref().unwrap_or_default(), &sent, tool_routes) {
        arrival.charge(core, &caller, class)?;
    }
    if arrival.method == Method::POST && body.is_ok() {
        if !messages::takes_json(&parts.headers) {
            return Ok(refusal(StatusCode::NOT_ACCEPTABLE, OTHER, NOT_JSON));
        }
        // The library requires both media types in `Accept`, though every response is JSON.
        let both = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(header::ACCEPT, both);
    }
    parts.extensions.insert(McpCaller { caller, arrival: arrival.clone() });
    match sent {
        Err(invalid) => Ok(refusal(StatusCode::BAD_REQUEST, invalid.code(), &invalid.to_string())),
        Ok(Sent::Batch(messages)) => batch(&service, &parts, &messages).await,
        Ok(Sent::One) => Ok(handle(&service, Request::from_parts(parts, Body::from(body?))).await),
    }
}

async fn handle(service: &Service, request: Request) -> Response {
    in_json(service.handle(request).await.map(Body::new)).await
}

/// Runs the messages one after another, and returns their answers together. Notifications have no answer. If all
/// messages are refused for the same reason, so is the batch, as a single message would be: a foreign page must not see
/// a success.
async fn batch(service: &Service, parts: &Parts, messages: &[&RawValue]) -> Result<Response> {
    let (room, mut answers, mut refused) = (SharedBudget::of_batch(), vec![b'['], Vec::new());
    for message in messages {
        let mut request = Request::from_parts(parts.clone(), Body::from(message.get().to_owned()));
        request.headers_mut().remove(header::CONTENT_LENGTH);
        let (head, body) = handle(service, request).await.into_parts();
        let mut answer = to_bytes(body, usize::MAX).await.map_err(Problem::internal)?;
        if head.status == StatusCode::ACCEPTED {
            continue;
        }
        if !head.status.is_success() {
            refused.push((head.status, answer.clone()));
        }
        // Answers are kept in memory until the last message is answered.
        if let Err(full) = room.count_answer(&answer) {
            answer = error(&id_of(message), OTHER, &full.to_string()).into();
        }
        if answers.len() > 1 {
            answers.push(b',');
        }
        answers.extend_from_slice(&answer);
    }
    if refused.len() == messages.len() && refused.windows(2).all(|two| two[0] == two[1]) {
        return Ok(refused
            .into_iter()
            .next()
            .map(|(status, answer)| json_response(status, answer))
            .unwrap_or_default());
    }
    if answers.len() == 1 {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::ACCEPTED;
        return Ok(response);
    }
    answers.push(b']');
    Ok(json_response(StatusCode::OK, answers))
}

/// The id of a message, to answer it by.
fn id_of(message: &RawValue) -> Value {
    #[derive(Deserialize)]
    struct Message {
        id: Value,
    }
    muster_json::from_str::<Message>(message.get()).map(|message| message.id).unwrap_or_default()
}

/// The rate-limit class of each message of a request. Every message is a POST, so the method doesn't tell the classes
/// apart.
fn classes(
    method: &Method,
    body: &[u8],
    sent: &std::result::Result<Sent<'_>, Invalid>,
    tool_routes: &ToolRoutes,
) -> Vec<Class> {
    match sent {
        _ if method != Method::POST => vec![Class::of_method(method)],
        Ok(Sent::One) => vec![class(body, tool_routes)],
        Ok(Sent::Batch(messages)) => {
            messages.iter().map(|message| class(message.get().as_bytes(), tool_routes)).collect()
        }
        Err(_) => vec![Class::Writes],
    }
}

/// A message only makes a change if it calls a tool that does. Anything unclear counts as a change: an unknown tool, or
/// a duplicate key.
fn class(message: &[u8], tool_routes: &ToolRoutes) -> Class {
    #[derive(Deserialize)]
    struct Message {
        method: String,
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        name: Option<String>,
    }
    let Ok(Message { method, params }) = muster_json::from_slice(message) else { return Class::Writes };
    let tool = params.and_then(|params| params.name);
    let tool_route = tool.as_deref().and_then(|name| tool_routes.find(name));
    if method != "tools/call" || tool_route.is_some_and(super::ToolRoute::only_reads) {
        Class::Reads
    } else {
        Class::Writes
    }
}

/// The library refuses in plain text, but MCP clients expect JSON-RPC.
async fn in_json(response: Response) -> Response {
    let is_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let status = response.status();
    if !is_text || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, bounds::DETAIL).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if text.starts_with(UNREADABLE) {
        let invalid = Invalid::Message;
        return refusal(StatusCode::BAD_REQUEST, invalid.code(), &invalid.to_string());
    }
    let message = if text.is_empty() { status.canonical_reason().unwrap_or_default() } else { text.trim() };
    let (head, body) = refusal(status, OTHER, message).into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(head.headers);
    Response::from_parts(parts, body)
}

/// A JSON-RPC error without a request id.
fn refusal(status: StatusCode, code: i32, message: &str) -> Response {
    json_response(status, error(&Value::Null, code, message))
}

fn error(id: &Value, code: i32, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
