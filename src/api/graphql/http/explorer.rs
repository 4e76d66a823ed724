//! The page for browsers: a schema explorer that loads nothing from elsewhere.

use std::sync::LazyLock;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::header;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("explorer.html");

/// Only this script and style run, and the page can only talk to this service.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let (script, style) = (hash("<script>", "</script>"), hash("<style>", "</style>"));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; style-src-attr 'unsafe-inline'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// The CSP hash of the text between two tags.
fn hash(open: &str, close: &str) -> String {
    let (_, rest) = PAGE.split_once(open).unwrap_or_default();
    let (inner, _) = rest.split_once(close).unwrap_or_default();
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(inner)))
}

pub fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept"),
    ];
    (headers, Body::from(PAGE)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_style() {
        let nothing = BASE64_STANDARD.encode(Sha256::digest(""));
        assert!(POLICY.matches("'sha256-").count() == 2 && !POLICY.contains(&nothing), "{}", *POLICY);
        for foreign in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!PAGE.contains(foreign), "the page loads something from elsewhere: {foreign}");
        }
    }
}
