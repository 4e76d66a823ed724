//! The pages that links in mails lead to where there is no panel: one file, which speaks with nobody but this service.
//!
//! A page does nothing when it is opened: mail scanners follow links. The token stands behind `#`, which no server sees,
//! and goes with the mutation once somebody presses the button.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
    routing::get,
};
use http::header;

use crate::{app::App, edge::policy_of};

/// Markup, style and script.
const PAGE: &str = include_str!("pages/page.html");

/// Only this script and this style run.
static POLICY: LazyLock<String> = LazyLock::new(|| policy_of(PAGE, ""));

/// The routes of the pages.
pub fn router() -> Router<Arc<App>> {
    ["/confirm-email", "/reset-password", "/accept-invitation"]
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, get(page)))
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, Body::from(PAGE)).into_response()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_page_loads_nothing_from_elsewhere_and_its_script_is_the_one_that_runs() {
        let nothing = BASE64_STANDARD.encode(Sha256::digest(""));
        assert!(POLICY.matches("'sha256-").count() == 2 && !POLICY.contains(&nothing), "{}", *POLICY);
        for foreign in ["http://", "https://", "src=", "@import", "url(", "style=", "onclick"] {
            assert!(!PAGE.contains(foreign), "{foreign}");
        }
    }
}
