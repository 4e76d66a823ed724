//! The page at `/`: where to go from here.

use axum::response::{Html, IntoResponse, Response};
use http::header;

use super::policy_of;

const PAGE: &str = include_str!("front.html");

/// What there is, for whoever opens the address in a browser.
pub async fn page() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, policy_of(PAGE, ""))], Html(PAGE)).into_response()
}
