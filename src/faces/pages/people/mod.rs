//! The pages that mailed links and sign-ins at a provider lead to if there is no panel: two files with a common
//! head.
//!
//! Opening a mailed link does nothing by itself, because mail scanners follow links. The token is behind the
//! `#`, which no server sees, and is sent with the mutation once the person presses the button.
//!
//! `/sign-in` is where a sign-in at a provider ends. It accepts a code only in the browser that started here,
//! as the state in session storage proves: otherwise anyone could sign others in to an account of their own.
//! Tokens stay in the page's memory and are gone with it.

use std::sync::LazyLock;

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
    routing::get,
};
use http::header;

use super::policy_of;

/// Markup, style, and script of the pages for mailed links.
const LINKS: &str = concat!(include_str!("head.html"), include_str!("page.html"));
/// Markup, style, and script of the sign-in page.
const SIGN_IN: &str = concat!(include_str!("head.html"), include_str!("sign-in.html"));

/// Only this script and style run.
static LINKS_POLICY: LazyLock<String> = LazyLock::new(|| policy_of(LINKS, ""));
static SIGN_IN_POLICY: LazyLock<String> = LazyLock::new(|| policy_of(SIGN_IN, ""));

/// The routes of the pages.
pub fn router() -> Router {
    ["/confirm-email", "/reset-password", "/accept-invitation"]
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, get(async || page(LINKS, &LINKS_POLICY))))
        .route("/sign-in", get(async || page(SIGN_IN, &SIGN_IN_POLICY)))
}

fn page(text: &'static str, policy: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, policy)];
    (headers, Body::from(text)).into_response()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn a_page_loads_nothing_from_elsewhere_and_runs_only_its_script() {
        let nothing = BASE64_STANDARD.encode(Sha256::digest(""));
        for (page, policy) in [(LINKS, &LINKS_POLICY), (SIGN_IN, &SIGN_IN_POLICY)] {
            assert!(policy.matches("'sha256-").count() == 2 && !policy.contains(&nothing), "{}", **policy);
            for foreign in
                ["http://", "https://", "src=", "@import", "url(", "style=", "onclick", "innerHTML"]
            {
                assert!(!page.contains(foreign), "{foreign}");
            }
        }
    }
}
