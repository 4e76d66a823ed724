//! Tests of the guard by a tenant's webhook URL.

use std::{process::Command, sync::Arc};

use axum::{Router, extract::State, http::header::LOCATION, response::IntoResponse, routing::post};
use muster_channels::{Config, Failure, Network, Receipt, WebhookConfig, open};
use tokio::net::TcpListener;

use crate::support::{Names, Seen, network, open_network, part, serve, text};

async fn send(url: &str, network: &Network) -> Result<Receipt, Failure> {
    let config = WebhookConfig { outbound_url: Some(url.to_owned()), ..WebhookConfig::default() };
    open(Config::Webhook(Box::new(config)), network).send(&part(&text("hello"), "t")).await
}

/// A server that counts its requests.
async fn counting() -> (u16, Seen<String>) {
    let seen = Seen::<String>::default();
    let router = Router::new()
        .fallback(
            |State(seen): State<Seen<String>>, body: String| async move { seen.lock().unwrap().push(body) },
        )
        .with_state(Arc::clone(&seen));
    (serve(router).await.port(), seen)
}

#[tokio::test]
async fn six_spellings_of_loopback_are_refused() {
    let (port, seen) = counting().await;
    let closed = network(&[], Names::default(), None);
    let spellings =
        ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "0", "[::ffff:127.0.0.1]", "[::1]", "017700000001"];
    for spelling in spellings {
        let failure = send(&format!("http://{spelling}:{port}/"), &closed).await.unwrap_err();
        assert!(
            matches!(&failure, Failure::NotPublic(cause) if cause.as_str().contains("not public")),
            "{spelling}: {failure}"
        );
        assert!(closed.guard.check(&format!("https://{spelling}/")).is_err(), "{spelling}");
    }
    assert!(seen.lock().unwrap().is_empty());
    // The server does answer if the operator allows its network.
    for spelling in ["127.0.0.1", "2130706433", "0x7f.1", "127.1"] {
        send(&format!("http://{spelling}:{port}/"), &open_network(None)).await.unwrap();
    }
    assert_eq!(seen.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_name_with_one_private_address_is_refused() {
    let (port, seen) = counting().await;
    let names = || {
        Names(vec![
            ("mixed.test", vec!["1.1.1.1".parse().unwrap(), "127.0.0.1".parse().unwrap()]),
            ("inward.test", vec!["127.0.0.1".parse().unwrap()]),
            ("metadata.test", vec!["169.254.169.254".parse().unwrap()]),
        ])
    };
    let closed = network(&[], names(), None);
    for name in ["mixed.test", "inward.test", "metadata.test"] {
        let failure = send(&format!("http://{name}:{port}/"), &closed).await.unwrap_err();
        assert!(
            matches!(&failure, Failure::NotPublic(cause) if cause.as_str().contains("not public")),
            "{name}: {failure}"
        );
    }
    assert!(seen.lock().unwrap().is_empty());
    send(&format!("http://inward.test:{port}/"), &network(&["127.0.0.0/8"], names(), None)).await.unwrap();
    let unknown = send("http://unknown.test/", &closed).await.unwrap_err();
    assert!(matches!(unknown, Failure::NotSent(_)), "{unknown}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (port, seen) = counting().await;
    let to = format!("http://127.0.0.1:{port}/");
    let router = Router::new().route(
        "/",
        post(move || async move { (axum::http::StatusCode::FOUND, [(LOCATION, to)]).into_response() }),
    );
    let redirecting = serve(router).await.port();
    let failure = send(&format!("http://127.0.0.1:{redirecting}/"), &open_network(None)).await.unwrap_err();
    assert!(matches!(&failure, Failure::NotSent(cause) if cause.as_str().contains("302")), "{failure}");
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn other_schemes_are_refused() {
    let open = open_network(None);
    for url in [
        "ftp://a.test/",
        "file:///etc/passwd",
        "http://user:secret@a.test/",
        "http://user@a.test/",
        "a.test",
        "http://",
    ] {
        let failure = send(url, &open).await.unwrap_err();
        assert!(matches!(failure, Failure::Refused(_)), "{url}: {failure}");
        assert!(!failure.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn answers_are_bounded_and_never_shown() {
    let router = Router::new()
        .route("/", post(|| async { (axum::http::StatusCode::BAD_REQUEST, "private ".repeat(1_000_000)) }));
    let port = serve(router).await.port();
    let failure = send(&format!("http://127.0.0.1:{port}/"), &open_network(None)).await.unwrap_err();
    assert_eq!(failure.to_string(), "The receiver answered with status 400.");
}

/// The environment belongs to the whole process, so a child process gets the proxy.
#[tokio::test]
async fn the_environments_proxy_is_not_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "guard::with_a_proxy", "--ignored", "--test-threads=1"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, &proxy);
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    let asked = tokio::time::timeout(std::time::Duration::from_millis(100), listener.accept()).await;
    assert!(asked.is_err(), "the proxy was asked");
}

#[tokio::test]
#[ignore = "run by the test above, with a proxy in the environment"]
async fn with_a_proxy() {
    assert!(std::env::vars().any(|(name, _)| name == "HTTP_PROXY"));
    let (port, seen) = counting().await;
    send(&format!("http://127.0.0.1:{port}/"), &open_network(None)).await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
}
