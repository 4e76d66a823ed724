//! The page that a browser gets: an explorer of the schema that needs nothing from elsewhere.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::header;

const PAGE: &str = include_str!("explorer.html");

/// The page. Its script and style stand in it; the policy lets nothing else run.
pub fn page() -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                          connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                          frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept"),
    ];
    (headers, Body::from(PAGE)).into_response()
}
