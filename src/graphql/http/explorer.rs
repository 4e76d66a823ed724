//! The page that a browser gets: an explorer of the schema that needs nothing from elsewhere.

use std::sync::LazyLock;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::header;
use sha2::{Digest, Sha256};

/// One file: markup, style and script.
const PAGE: &str = include_str!("explorer.html");

/// Only this script and this style run; the page may speak with nobody but this service.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; style-src-attr 'unsafe-inline'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash("<script>", "</script>"),
        hash("<style>", "</style>"),
    )
});

/// The page.
pub fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept"),
    ];
    (headers, Body::from(PAGE)).into_response()
}

/// How a content security policy names the text between two tags.
fn hash(open: &str, close: &str) -> String {
    let inner =
        PAGE.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map_or("", |(inner, _)| inner);
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_style() {
        let nothing = BASE64_STANDARD.encode(Sha256::digest(""));
        assert!(POLICY.matches("'sha256-").count() == 2 && !POLICY.contains(&nothing), "{}", *POLICY);
        for foreign in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!PAGE.contains(foreign), "the page refers to something elsewhere: {foreign}");
        }
    }
}
