//! The content security policy for pages, each a single file that only runs its own script and style and only
//! talks to this service.

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

/// The content security policy of a page with one script and one style. `more` adds directives, each with its
/// semicolon.
#[must_use]
pub fn policy_of(page: &str, more: &str) -> String {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; {more} connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash(page, "<script>", "</script>"),
        hash(page, "<style>", "</style>"),
    )
}

/// The CSP hash of the text between two tags.
fn hash(page: &str, open: &str, close: &str) -> String {
    let inner =
        page.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map_or("", |(inner, _)| inner);
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(inner)))
}
