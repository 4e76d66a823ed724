//! The page at `/`: links to the service's interfaces.

use axum::response::{Html, IntoResponse, Response};
use http::header;

use super::policy_of;

const PAGE: &str = include_str!("front.html");

/// An overview for anyone who opens the address in a browser.
pub async fn page() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, policy_of(PAGE, ""))], Html(PAGE)).into_response()
}
