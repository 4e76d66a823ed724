//! `GET /export/audit/{org_id}`: the organization's audit log as JSON Lines, streamed from the database.
//!
//! The schema defines the permission, on `auditLog`. `?from=` and `?to=` are timestamps. The export itself leaves an
//! entry in the log. A header says how many lines to expect, so a shorter answer was cut off.

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
        problem::{Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        Core,
        audit::{self, Entry},
    },
};

pub fn router() -> Router<Arc<Core>> {
    Router::new().route("/export/audit/{org_id}", get(on_export))
}

async fn on_export(State(core): State<Arc<Core>>, arrival: Arrival, path: RawPathParams) -> Response {
    let answered = export(&core, &arrival, &path).await;
    answered.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

async fn export(core: &Arc<Core>, arrival: &Arrival, path: &RawPathParams) -> Result<Response> {
    let scope = enter(core, arrival, path, "auditLog").await?;
    let (from, to) = range(arrival.uri.query().unwrap_or_default())?;
    let exporting = Exporting::reserve(core, scope.org)?;
    let tx = scope.begin().await?;
    let changes = json!({ "from": from, "to": to });
    audit::record(
        &tx,
        Entry {
            operation: "exportAudit",
            op: ChangeOp::Updated,
            kind: RecordKind::Organization,
            id: scope.org.0,
            changes,
        },
    );
    tx.commit().await?;
    let lines = audit::export(Arc::clone(core), scope.org.0, (from, to)).await?;
    let name = format!("audit-{}.jsonl", scope.org);
    exporting.answer(lines, arrival.request_id.clone(), "application/x-ndjson", &name)
}

fn range(query: &str) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let (mut from, mut to) = (None, None);
    let mut violations = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let place = match &*name {
            "from" => &mut from,
            "to" => &mut to,
            _ => {
                let detail = format!("Unknown query parameter `{name}`.");
                violations.push(Violation::parameter(name, "UNKNOWN_KEY", detail));
                continue;
            }
        };
        match value.parse::<Timestamp>() {
            Ok(at) => *place = Some(at),
            Err(_) => {
                let detail =
                    format!("`{name}` must be an RFC 3339 timestamp, such as 2026-01-31T08:00:00.000Z.");
                violations.push(Violation::parameter(name, "WRONG_TYPE", detail));
            }
        }
    }
    Problem::fail_if_any(violations)?;
    Ok((from, to))
}
