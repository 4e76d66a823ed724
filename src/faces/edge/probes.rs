//! What an orchestrator asks: does the process live, and can it serve?

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::Arrival;
use crate::{
    base::problem::{Code, Problem, Result},
    core::Core,
    faces::edge::problem_response,
};

/// The process lives. Says nothing about the database, whose loss no restart mends; what is wrong with the policy shows here,
/// and which replicas have other policy files.
pub async fn health(State(core): State<Arc<Core>>) -> Response {
    let policy = core.policy.status();
    let differing: Vec<String> = core.replicas.differing().into_iter().map(|it| it.id).collect();
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "policy": {
            "version": policy.version, "loaded_at": policy.loaded_at,
            // How many, not which and whose: anybody may ask. The log and `muster policy check` say it.
            "problems": policy.problems.len(),
            // Names that the replicas have made up; where they are, `muster doctor` tells.
            "replica": core.replicas.own_id(), "differing_replicas": differing,
        },
    }))
    .into_response()
}

/// The service can serve: it is not shutting down, and the database answers and has this version's tables.
pub async fn ready(State(core): State<Arc<Core>>, arrival: Arrival) -> Response {
    match check(&core).await {
        Ok(()) => Json(json!({"status": "ready"})).into_response(),
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

async fn check(core: &Core) -> Result<()> {
    if core.tasks.stopping.is_cancelled() {
        return Err(Problem::new(Code::Unavailable, "The service is shutting down."));
    }
    core.db.ping().await.map_err(Problem::unavailable)?;
    if core.db.is_migrated().await.map_err(Problem::unavailable)? {
        return Ok(());
    }
    Err(Problem::new(
        Code::Unavailable,
        "The database does not have this version's tables: run `muster migrate`.",
    ))
}
