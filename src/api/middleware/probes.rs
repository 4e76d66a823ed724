//! Probes for an orchestrator: is the process alive, and can it serve?

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::Arrival;
use crate::{
    api::middleware::problem_response,
    base::problem::{Code, Problem, Result},
    core::Core,
};

/// Answers that the process is alive. Does not check the database, which no restart of the service would repair.
/// Reports problems with the policy, and replicas whose policy files differ.
pub async fn health(State(core): State<Arc<Core>>) -> Response {
    let policy = core.policy.status();
    let differing: Vec<String> = core.replicas.differing().into_iter().map(|it| it.id).collect();
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "policy": {
            "version": policy.version, "loaded_at": policy.loaded_at,
            // Only the number, because the probe needs no credential. The log and `muster policy check` have the
            // details.
            "problems": policy.problems.len(),
            // Random names. `muster doctor` says where the replicas run.
            "replica": core.replicas.own_id(), "differing_replicas": differing,
        },
    }))
    .into_response()
}

/// Answers whether the service can serve: it isn't shutting down, and the database answers and has this version's
/// tables.
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
        "The database does not have this version's tables. Run `muster migrate`.",
    ))
}
