//! The endpoint: who is calling, under which host name, and what is refused before the protocol comes in.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
    routing::any,
};
use http::{HeaderValue, Method, StatusCode, header};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    ToolRoutes, messages,
    server::{McpCaller, ToolServer},
    tool_routes,
};
use crate::{
    base::problem::Result,
    core::{
        Core,
        config::{Config, listed},
        limits::Class,
    },
    faces::{
        edge::{Arrival, body, problem_response},
        rest::Rest,
    },
};

type Service = StreamableHttpService<ToolServer, NeverSessionManager>;
/// Error texts from the protocol library are short.
const LONGEST_REFUSAL: usize = 4096;
/// How its text about a message begins that it can't read.
const UNREADABLE: &str = "fail to deserialize";
/// The code of a JSON-RPC error that has no code of its own.
const OTHER: i32 = -32000;

/// The route of the endpoint.
pub fn router(rest: &Arc<Rest>) -> Router {
    let core = &rest.core;
    let tool_routes = Arc::new(tool_routes(&rest.routes, &rest.graphql.catalogue));
    let face = ToolServer {
        core: Arc::clone(core),
        graphql: Arc::clone(&rest.graphql),
        tool_routes: Arc::clone(&tool_routes),
    };
    let factory = move || Ok(face.clone());
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

/// One request, one JSON answer, and only under our own host names.
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
    let (parts, body) = request.into_parts();
    let body = body::read(core, arrival, &caller, body, core.config.limits.body_bytes).await;
    let class = body.as_ref().map_or(Class::Writes, |body| class(&arrival.method, body, tool_routes));
    arrival.charge(core, &caller, class)?;
    let (mut parts, body) = (parts, body?);
    if arrival.method == Method::POST {
        if messages::takes_json(&parts.headers) {
            // The library wants to see both kinds named, though every response is JSON.
            let both = HeaderValue::from_static("application/json, text/event-stream");
            parts.headers.insert(header::ACCEPT, both);
        }
        if let Err(invalid) = messages::check(&body) {
            return Ok(refusal(StatusCode::BAD_REQUEST, invalid.code(), &invalid.to_string()));
        }
    }
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(McpCaller { caller, arrival: arrival.clone() });
    Ok(in_json(service.handle(request).await.map(Body::new)).await)
}

/// What a message may do. Everything is a POST here, so the method doesn't tell: a message only makes a change
/// if it calls a tool that does. Anything unclear counts as a change: an unknown tool, or a duplicate key.
fn class(method: &Method, body: &[u8], tool_routes: &ToolRoutes) -> Class {
    #[derive(Deserialize)]
    struct Message {
        method: String,
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        name: Option<String>,
    }
    if method != Method::POST {
        return Class::of(method);
    }
    let Ok(Message { method, params }) = muster_json::from_slice(body) else { return Class::Writes };
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
    let text = to_bytes(body, LONGEST_REFUSAL).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if text.starts_with(UNREADABLE) {
        let invalid = messages::Invalid::Message;
        return refusal(StatusCode::BAD_REQUEST, invalid.code(), &invalid.to_string());
    }
    let message = if text.is_empty() { status.canonical_reason().unwrap_or_default() } else { text.trim() };
    let (head, body) = refusal(status, OTHER, message).into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(head.headers);
    Response::from_parts(parts, body)
}

/// A JSON-RPC error that answers no request.
fn refusal(status: StatusCode, code: i32, message: &str) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
