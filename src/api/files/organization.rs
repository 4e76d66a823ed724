//! `GET /export/organization/{org_id}`: all data of the organization as a tar archive, streamed from the database.
//!
//! Its permission is that of the root field `scheduleDeletion`: who may export everything may also delete it. The export
//! leaves an entry in the log. An archive without its end was cut off.

use std::sync::Arc;

use axum::{
    Router,
    extract::{RawPathParams, State},
    response::Response,
    routing::get,
};
use serde_json::json;

use super::{Exporting, enter};
use crate::{
    api::middleware::{Arrival, problem_response},
    base::{
        enums::{ChangeOp, RecordKind},
        problem::Result,
    },
    core::{
        Core,
        audit::{self, Entry},
    },
    domain::rights,
};

pub fn router() -> Router<Arc<Core>> {
    Router::new().route("/export/organization/{org_id}", get(on_export))
}

async fn on_export(State(core): State<Arc<Core>>, arrival: Arrival, path: RawPathParams) -> Response {
    let answered = export(&core, &arrival, &path).await;
    answered.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

async fn export(core: &Arc<Core>, arrival: &Arrival, path: &RawPathParams) -> Result<Response> {
    let scope = enter(core, arrival, path, "scheduleDeletion").await?;
    let exporting = Exporting::reserve(core, scope.org)?;
    let tx = scope.begin().await?;
    let entry = Entry {
        operation: "exportOrganization",
        op: ChangeOp::Updated,
        kind: RecordKind::Organization,
        id: scope.org.0,
        changes: json!({}),
    };
    audit::record(&tx, entry);
    tx.commit().await?;
    let name = format!("organization-{}.tar", scope.org);
    exporting.answer(rights::export(&scope), arrival.request_id.clone(), "application/x-tar", &name)
}
