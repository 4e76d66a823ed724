//! Pages of other origins: those in `cors.origins` may call the API with a token, and never with the cookie.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Actor, Answer, Browser, TestApp};

const PAGE: &str = "https://app.example.com";

async fn app() -> TestApp {
    TestApp::start_with(|config| config.cors.origins = format!("{PAGE}, http://localhost:*")).await
}

/// A browser's question before the actual request.
async fn preflight(app: &TestApp, path: &str, origin: &str, headers: &str) -> Answer {
    let request = app.anonymous.request(Method::OPTIONS, path).header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    Answer::of(request.header("access-control-request-headers", headers)).await
}

async fn get(actor: &Actor, path: &str, origin: &str) -> Answer {
    Answer::of(actor.request(Method::GET, path).header("origin", origin)).await
}

#[tokio::test]
async fn a_listed_page_calls_the_api_with_a_token() {
    let app = app().await;
    let agents = format!("/v1/org/{}/agent", app.org);
    for (path, origin) in [(agents.as_str(), PAGE), ("/graphql", PAGE), ("/mcp", "http://localhost:5173")] {
        let granted = preflight(&app, path, origin, "Content-Type, Authorization").await;
        assert_eq!((granted.status, granted.text.as_str()), (204, ""), "{path}");
        assert_eq!(granted.header("access-control-allow-origin"), origin);
        assert!(granted.header("access-control-allow-methods").contains("PATCH"), "{path}");
        assert!(granted.header("access-control-allow-headers").contains("idempotency-key"), "{path}");
        assert_eq!(granted.header("vary"), "origin");
        assert!(!granted.headers.contains_key("access-control-allow-credentials"), "{path}");
    }
    let organization = format!("/v1/org/{}", app.org);
    let record = get(&app.viewer, &organization, PAGE).await;
    assert_eq!((record.status, record.header("access-control-allow-origin")), (200, PAGE));
    for name in ["etag", "x-request-id", "ratelimit"] {
        assert!(record.header("access-control-expose-headers").contains(name), "{name}");
    }
    assert!(!record.headers.contains_key("access-control-allow-credentials"));
    // The page can read refusals, too.
    let refused = get(&app.stranger, &organization, PAGE).await;
    assert_eq!((refused.problem().0, refused.header("access-control-allow-origin")), (403, PAGE));
}

#[tokio::test]
async fn no_other_page_is_let_in() {
    let app = app().await;
    let agents = format!("/v1/org/{}/agent", app.org);
    let agents = agents.as_str();
    for (path, origin, headers) in [
        (agents, "https://evil.example", "authorization"),
        (agents, "http://app.example.com", "authorization"),
        (agents, "https://app.example.com:8443", "authorization"),
        (agents, "null", "authorization"),
        // Without a token there is nothing to grant: the cookie never counts here.
        (agents, PAGE, "content-type"),
        ("/sign-in", PAGE, "authorization"),
        ("/avatars/1", PAGE, "authorization"),
    ] {
        let refused = preflight(&app, path, origin, headers).await;
        let named = refused.headers.keys().find(|name| name.as_str().starts_with("access-control"));
        assert!(refused.status >= 400 && named.is_none(), "{path} {origin} {headers}: {refused:?}");
    }
    let organization = format!("/v1/org/{}", app.org);
    let other = get(&app.viewer, &organization, "https://evil.example").await;
    assert!(!other.headers.contains_key("access-control-allow-origin"));
    let without_token = get(&app.anonymous, &organization, PAGE).await;
    assert!(
        without_token.status == 401 && !without_token.headers.contains_key("access-control-allow-origin")
    );
}

#[tokio::test]
async fn no_page_is_listed_by_default() {
    let app = TestApp::start().await;
    let refused = preflight(&app, "/graphql", PAGE, "authorization").await;
    assert!(refused.status == 405 && !refused.headers.contains_key("access-control-allow-origin"));
    // A plain OPTIONS is not a preflight.
    let plain = app.owner.send(Method::OPTIONS, "/graphql", &json!(null)).await;
    assert_eq!(plain.status, 405);
}

/// Between subdomains of one site browsers send the cookie, `SameSite=Strict` or not.
#[tokio::test]
async fn a_listed_page_cannot_use_the_cookie() {
    let app = app().await;
    app.user("ann@example.com", true).await;
    let browser = Browser::signed_in(&app, "ann@example.com").await;
    let request = browser.bare(Method::POST, "/graphql").header("origin", PAGE);
    let body = json!({ "query": "{ viewer { user { id } } }" });
    let refused = Answer::of(request.header("sec-fetch-site", "same-site").json(&body)).await;
    assert_eq!(refused.code(), "CROSS_ORIGIN");
    assert!(!refused.headers.contains_key("access-control-allow-origin"));
}
