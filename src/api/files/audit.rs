//! `GET /export/audit/{org_id}`: the organization's audit log as JSON Lines, streamed from the database.
//!
//! The schema defines the permission, on `auditLog`. `?from=` and `?to=` are timestamps. The export itself leaves an
//! entry in the log. A header says how many lines to expect, so a shorter answer was cut off.

use std::{collections::HashSet, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{RawPathParams, State},
    response::Response,
    routing::get,
};
use futures::TryStreamExt;
use http::{HeaderValue, header};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    api::middleware::{Arrival, Visit, org_in_path, problem_response},
    base::{
        enums::{ChangeOp, DecidedVia, RecordKind},
        ids::OrgId,
        problem::{Code, Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        Core,
        audit::{self, Entry},
        telemetry,
    },
    resolvers::authorize,
};

pub fn router() -> Router<Arc<Core>> {
    Router::new().route("/export/audit/{org_id}", get(on_export))
}

async fn on_export(State(core): State<Arc<Core>>, arrival: Arrival, path: RawPathParams) -> Response {
    let answered = export(&core, &arrival, &path).await;
    answered.unwrap_or_else(|problem| problem_response(&problem, arrival.uri.path(), &arrival.request_id))
}

async fn export(core: &Arc<Core>, arrival: &Arrival, path: &RawPathParams) -> Result<Response> {
    let operation = "auditLog";
    let caller = Visit::new(core, arrival).caller().await?;
    caller.require_identity()?;
    let permit = core.access.permits.required_by(operation);
    let permit = permit.ok_or_else(|| Problem::internal(anyhow::anyhow!("no root field {operation}")))?;
    let request = Arc::new(arrival.request(core, caller, DecidedVia::Rest));
    let org = path.iter().find(|(name, _)| *name == "org_id").map_or("", |(_, text)| text);
    let scope = authorize(&request, operation, permit, org_in_path(org)?).await?;
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
    let request_id = arrival.request_id.clone();
    let lines = lines.map_err(move |problem| {
        // Held for as long as the client reads.
        let _ = &exporting;
        telemetry::problem(&problem, &request_id);
        std::io::Error::other("the log could not be read completely")
    });
    let mut response = Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    let name = format!("attachment; filename=\"audit-{}.jsonl\"", scope.org);
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).map_err(Problem::internal)?);
    Ok(response)
}

/// An export in progress. Each process runs one per organization at a time, because each reads the whole log.
struct Exporting(Arc<Mutex<HashSet<OrgId>>>, OrgId);

impl Exporting {
    fn reserve(core: &Core, org: OrgId) -> Result<Self> {
        let all = Arc::clone(&core.audit.exporting);
        if all.lock().insert(org) {
            return Ok(Self(all, org));
        }
        let detail = "The log is already being exported. An organization can run one export at a time.";
        Err(Problem::new(Code::RateLimited, detail).with("retry_after", 5))
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
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
    Problem::refuse(violations)?;
    Ok((from, to))
}
