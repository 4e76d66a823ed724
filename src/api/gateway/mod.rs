//! `/gateway`: where the hosts of servers join (`POST /gateway/join`) and stay connected (a WebSocket). The frames are
//! those of `crates/protocol`; docs/gateway.md describes them, and `domain/hosts` handles them.
//!
//! - this file: the two routes, and their authentication.
//! - `connection.rs`: a connection from its first frame to its last.
//! - `reading.rs`, `sending.rs`: the frames from the host, and the frames to it.
//!
//! Frames are never logged: some hold secrets.

mod connection;
mod reading;
mod sending;

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::StatusCode;
use muster_protocol::{LARGEST_FRAME, join};

use super::middleware::{Arrival, body, is_json, problem_response};
use crate::{
    base::problem::{Code, Problem, Result},
    core::{
        Core,
        access::{Caller, Scope},
        audit,
        rate_limits::Class,
        resource_limits::{Holder, Resource},
    },
    domain::hosts,
};

pub fn router(core: &Arc<Core>) -> Router {
    Router::new()
        .route(join::PATH, post(on_join))
        .route(muster_protocol::PATH, get(on_connect))
        .with_state(Arc::clone(core))
}

async fn on_join(State(core): State<Arc<Core>>, arrival: Arrival, body: Body) -> Response {
    let joined = join(&core, &arrival, body).await;
    joined.unwrap_or_else(|problem| {
        if problem.code.status() == StatusCode::UNAUTHORIZED {
            audit::refused_credential(&core, &problem, arrival.ip, &arrival.request_id);
        }
        problem_response(&problem, arrival.uri.path(), &arrival.request_id)
    })
}

/// A joining host is anonymous until it has joined, and is charged and limited as such.
async fn join(core: &Arc<Core>, arrival: &Arrival, body: Body) -> Result<Response> {
    arrival.charge(core, &Caller::Anonymous, Class::Anonymous)?;
    let token = arrival.bearer()?;
    if !is_json(&arrival.headers) {
        let detail = "Send the request as `Content-Type: application/json`.";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    let body = body::read(core, arrival, &Caller::Anonymous, body, core.config.limits.body_bytes).await?;
    let join: join::Join = muster_json::from_slice(&body).map_err(|error| {
        // The parser's own text may repeat the token.
        let (line, column) = (error.line(), error.column());
        let detail = format!("The body is not a request to join: see line {line}, column {column}.");
        Problem::new(Code::MalformedRequest, detail)
    })?;
    let joined = hosts::join(core, token, &join, (arrival.ip, &arrival.request_id)).await?;
    Ok(Json(joined).into_response())
}

async fn on_connect(
    State(core): State<Arc<Core>>,
    arrival: Arrival,
    handshake: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    match connect(&core, &arrival, handshake).await {
        Ok(response) => response,
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

async fn connect(
    core: &Arc<Core>,
    arrival: &Arrival,
    handshake: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let token = arrival.bearer().and_then(hosts::parse_host_token);
    let identity = async { hosts::identify(core, token.clone()?).await };
    let identity = match &token {
        // A known host can't be locked out by others at its address.
        Ok(token) if core.access.cache.is_proven(token) => identity.await?,
        _ => arrival.check_credential(core, identity).await?,
    };
    let handshake = match handshake {
        Ok(handshake) => handshake,
        Err(rejection) => return Ok(rejection.into_response()),
    };
    let permit = core
        .resource_limits
        .limit(Resource::Hosts)
        .take(Holder::Server(identity.org.0, identity.server.0), 1)?;
    let scope = Scope::host(core, identity.org, arrival.ip, &arrival.request_id);
    let handshake = handshake.max_message_size(LARGEST_FRAME).max_frame_size(LARGEST_FRAME);
    let arrival = arrival.clone();
    Ok(handshake.on_upgrade(move |socket| async move {
        connection::serve(scope, identity, socket).await;
        // Both reservations in the resource limits: the host's and the connection's.
        drop((permit, arrival));
    }))
}
