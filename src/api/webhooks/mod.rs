//! `/webhooks/{transport}/{slug}`: where vendors deliver the messages of channels. The slug in the path identifies the
//! channel, and its transport verifies the request with the channel's secret. The answer follows the commit.
//! `/webhooks/github`: the same for all installations of the GitHub App, each of which names its channels.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::post,
};
use http::{StatusCode, header};
use muster_channels::Reply;
use serde_json::json;

use super::middleware::{Arrival, HoldsCore, body, problem_response};
use crate::{
    base::problem::{Code, Result},
    core::{Core, resource_limits::Holder},
    domain::ingest::{GITHUB, Ingest, Outcome},
};

#[derive(Clone)]
struct WebhookState {
    core: Arc<Core>,
    ingest: Arc<Ingest>,
}

impl HoldsCore for WebhookState {
    fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

pub fn router(core: &Arc<Core>, ingest: &Arc<Ingest>) -> Router {
    let state = WebhookState { core: Arc::clone(core), ingest: Arc::clone(ingest) };
    Router::new()
        .route("/webhooks/github", post(on_github))
        .route("/webhooks/{transport}/{slug}", post(on_request))
        .with_state(state)
}

async fn on_github(State(state): State<WebhookState>, arrival: Arrival, body: Body) -> Response {
    match receive_github(&state, &arrival, body).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

/// As [`receive`], for all channels of an installation. If one of them fails, so does the request: the channels' listeners
/// fetch what GitHub could not deliver.
async fn receive_github(
    WebhookState { core, ingest }: &WebhookState,
    arrival: &Arrival,
    body: Body,
) -> Result<()> {
    let from = Holder::at(arrival.ip);
    let is_proven = ingest.is_proven(GITHUB, from);
    let prepaid = if is_proven { None } else { Some(arrival.charge_in_advance(core)?) };
    let body = body::read_for(core, from, body, core.config.limits.body_bytes).await?;
    let channels =
        ingest.find_installation(from, (&arrival.headers, &body)).await.inspect_err(|problem| {
            if is_proven && problem.code == Code::Unauthenticated {
                // Not refunded: the address stays charged.
                drop(arrival.charge_in_advance(core));
            }
        })?;
    if let Some(prepaid) = prepaid {
        prepaid.refund();
    }
    let mut outcome = Ok(());
    for channel in channels {
        let charge = || arrival.charge_channel(core, channel.holder());
        let received = ingest.receive(&channel, from, (&arrival.headers, body.clone()), charge).await;
        outcome = outcome.and(received.map(drop));
    }
    outcome
}

async fn on_request(
    State(state): State<WebhookState>,
    arrival: Arrival,
    Path((transport, slug)): Path<(String, String)>,
    body: Body,
) -> Response {
    match receive(&state, &arrival, (&transport, &slug), body).await {
        Ok(outcome) => response(outcome),
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

/// A request that names no channel, or is not signed for it, is charged to its address like an anonymous one. An
/// address that has signed for the channel before pays nothing in advance, and its bodies count for the channel in the
/// resource limits, where no stranger who knows the path can fill them; otherwise they count for the address. Signed
/// requests are charged to the channel, which has a rate like any caller.
async fn receive(
    WebhookState { core, ingest }: &WebhookState,
    arrival: &Arrival,
    (transport, slug): (&str, &str),
    body: Body,
) -> Result<Outcome> {
    let from = Holder::at(arrival.ip);
    let is_proven = ingest.is_proven(slug, from);
    let prepaid = if is_proven { None } else { Some(arrival.charge_in_advance(core)?) };
    let channel = ingest.find(transport, slug).await?;
    if let Some(prepaid) = prepaid {
        prepaid.refund();
    }
    let most = core.config.limits.body_bytes;
    let holder = if is_proven { channel.holder() } else { from };
    let body = body::read_for(core, holder, body, most).await?;
    let charge = || arrival.charge_channel(core, channel.holder());
    let outcome = ingest.receive(&channel, from, (&arrival.headers, body), charge).await;
    if outcome.as_ref().is_err_and(|problem| problem.code == Code::Unauthenticated) {
        // Dropped without a refund: the address stays charged.
        drop(arrival.charge_in_advance(core)?);
    }
    outcome
}

fn response(outcome: Outcome) -> Response {
    match outcome {
        Outcome::Replied(Reply { status, content_type, body }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            (status, [(header::CONTENT_TYPE, content_type)], body).into_response()
        }
        Outcome::Stored(admitted) => (
            StatusCode::ACCEPTED,
            Json(json!({
                "status": "accepted",
                "conversation_id": admitted.conversation_id,
                "message_id": admitted.message_id,
            })),
        )
            .into_response(),
        Outcome::Ignored(why) => Json(json!({ "status": "ignored", "reason": why.as_str() })).into_response(),
    }
}
