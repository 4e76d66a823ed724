//! `GET /.well-known/jwks.json`: the public signing keys, for services that verify access tokens.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use sha2::{Digest, Sha256};

use crate::{api::middleware::etag::is_known, core::Core};

/// How long clients may cache the keys. A new key is published long before it signs (`signing.publish_minutes`).
const CACHE: &str = "public, max-age=300";

pub fn router() -> Router<Arc<Core>> {
    Router::new().route("/.well-known/jwks.json", get(jwks))
}

async fn jwks(State(core): State<Arc<Core>>, headers: HeaderMap) -> Response {
    let body = core.access.jwt.jwks(core.clock.now()).to_string();
    let digest = Sha256::digest(body.as_bytes());
    let tag = format!("\"{}\"", hex::encode(&digest[..8]));
    let same = is_known(&headers, &tag);
    let about = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, CACHE.to_owned()),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*".to_owned()),
    ];
    if same {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    (about, [(header::CONTENT_TYPE, "application/jwk-set+json")], body).into_response()
}
