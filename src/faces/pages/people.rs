//! The pages that links in mails, and sign-ins elsewhere, lead to where there is no panel: two files behind one head, which
//! speak with nobody but this service.
//!
//! A page of a mail's link does nothing when it is opened: mail scanners follow links. The token stands behind `#`, which
//! no server sees, and goes with the mutation once somebody presses the button.
//!
//! `/sign-in` is where a sign-in elsewhere ends. It takes a code only in the browser that has begun here, as its own state
//! in the session's storage shows: otherwise anybody could sign others in to an account of theirs. Tokens stay in
//! the page's memory, and are gone with it.

use std::sync::LazyLock;

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
    routing::get,
};
use http::header;

use super::policy_of;

/// Markup, style and script of the pages of mails' links.
const LINKS: &str = concat!(include_str!("people/head.html"), include_str!("people/page.html"));
/// The same of the page to sign in.
const SIGN_IN: &str = concat!(include_str!("people/head.html"), include_str!("people/sign-in.html"));

/// Only this script and this style run.
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
    fn a_page_loads_nothing_from_elsewhere_and_its_script_is_the_one_that_runs() {
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
