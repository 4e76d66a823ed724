//! Content outside of the schema's JSON: attachments, avatars, exports of organizations and of their audit logs, and the
//! public signing keys.

mod attachments;
mod audit;
mod avatars;
mod jwks;
mod organization;

use std::{collections::HashSet, sync::Arc};

use axum::{Router, body::Body, extract::RawPathParams, response::Response};
use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http::{HeaderValue, header};
use parking_lot::Mutex;

use crate::{
    api::middleware::{Arrival, Visit, org_in_path},
    base::{
        enums::DecidedVia,
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        access::{Permit, Scope},
        telemetry,
    },
    resolvers::authorize,
};

pub fn router(core: &Arc<Core>) -> Router {
    Router::new()
        .merge(attachments::router())
        .merge(audit::router())
        .merge(avatars::router())
        .merge(jwks::router())
        .merge(organization::router())
        .with_state(Arc::clone(core))
}

/// Authorizes the caller in the path's organization, by the permission of the root field `operation`.
async fn enter(core: &Arc<Core>, arrival: &Arrival, path: &RawPathParams, operation: &str) -> Result<Scope> {
    let caller = Visit::new(core, arrival).caller().await?;
    caller.require_identity()?;
    let org = org_in_path(parameter(path, "org_id"))?;
    let permit = permit_of(core, operation)?;
    let request = Arc::new(arrival.request(core, caller, DecidedVia::Rest));
    authorize(&request, operation, permit, org).await
}

fn parameter<'a>(path: &'a RawPathParams, name: &str) -> &'a str {
    path.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

fn permit_of(core: &Core, operation: &str) -> Result<Permit> {
    let permit = core.access.permits.required_by(operation);
    permit.ok_or_else(|| Problem::internal(anyhow::anyhow!("no root field {operation}")))
}

/// An export in progress. Each process runs one per organization at a time, because each reads whole tables.
struct Exporting(Arc<Mutex<HashSet<OrgId>>>, OrgId);

impl Exporting {
    fn reserve(core: &Core, org: OrgId) -> Result<Self> {
        let all = Arc::clone(&core.audit.exporting);
        if all.lock().insert(org) {
            return Ok(Self(all, org));
        }
        let detail = "An export is running already. An organization can run one at a time.";
        Err(Problem::new(Code::RateLimited, detail).with("retry_after", 5))
    }

    /// The answer: the content as a file to save. A problem cuts it off.
    fn answer(
        self,
        content: impl Stream<Item = Result<Bytes>> + Send + 'static,
        request_id: String,
        media_type: &'static str,
        name: &str,
    ) -> Result<Response> {
        let content = content.map_err(move |problem| {
            // Held for as long as the client reads.
            let _ = &self;
            telemetry::problem(&problem, &request_id);
            std::io::Error::other("the export is incomplete")
        });
        let mut response = Response::new(Body::from_stream(content));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
        headers.insert(header::CONTENT_DISPOSITION, disposition.map_err(Problem::internal)?);
        Ok(response)
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}
