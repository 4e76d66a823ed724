//! `GET /avatars/{kind}/{id}?v=…`: a picture's bytes, for anyone who knows its URL.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use http::{HeaderValue, header};
use sea_orm::EntityTrait;

use crate::domain::avatars::entity::avatars;
use crate::{
    api::middleware::{Arrival, problem_response},
    base::problem::{Code, Problem, Result},
    core::Core,
};

pub fn router() -> Router<Arc<Core>> {
    Router::new().route("/avatars/{kind}/{id}", get(show))
}

async fn show(State(core): State<Arc<Core>>, arrival: Arrival, path: Path<(String, String)>) -> Response {
    match guess(&core, &path, &arrival).await {
        Ok(picture) => picture,
        Err(problem) => problem_response(&problem, arrival.uri.path(), &arrival.request_id),
    }
}

/// The URL is the credential: a wrong guess is charged to the client's IP address before the database is queried.
async fn guess(core: &Core, path: &(String, String), arrival: &Arrival) -> Result<Response> {
    let prepaid = arrival.charge_in_advance(core)?;
    let found = find(core, path, arrival.uri.query().unwrap_or_default()).await;
    match &found {
        Err(problem) if problem.code == Code::NotFound => prepaid.keep(arrival),
        _ => prepaid.refund(),
    }
    found
}

async fn find(core: &Core, (kind, id): &(String, String), query: &str) -> Result<Response> {
    let absent = || Problem::new(Code::NotFound, "This picture does not exist.");
    let version = query.strip_prefix("v=").and_then(|text| text.parse::<i64>().ok()).ok_or_else(absent)?;
    #[expect(clippy::disallowed_methods, reason = "the random version is the credential")]
    let found = avatars::Entity::find_by_id(version).one(core.db.read()).await?.ok_or_else(absent)?;
    let owner = match kind.as_str() {
        "agent" => found.agent_id.map(|id| id.0),
        "organization" if found.agent_id.is_none() => found.organization_id.map(|id| id.0),
        "user" => found.user_id.map(|id| id.0),
        _ => None,
    };
    if owner.is_none_or(|owner| owner.to_string() != *id) {
        return Err(absent());
    }
    let mut response = Response::new(Body::from(found.content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(&found.mime_type).map_err(Problem::internal)?);
    // A new picture gets a new URL.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(response)
}
