//! Authorization servers that differ from the standard, after their documentation: GitHub answers errors with status 200
//! and deletes grants, Google lets people deselect permissions. tests/it runs the flow against a third-party server.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
};
use muster_channels::{
    Failure,
    oauth::{Access, Client, GITHUB_USER, GOOGLE_DRIVE, Server},
};
use secrecy::ExposeSecret;

use crate::support::{Seen, open_network, serve};

const REDIRECT: &str = "https://muster.test/oauth/channel";
const GITHUB: &str = r#"{ "access_token": "ghu_1", "expires_in": 28800, "refresh_token": "ghr_1",
    "refresh_token_expires_in": "15897600", "scope": "", "token_type": "bearer" }"#;
const GOOGLE: &str = r#"{ "access_token": "ya29", "expires_in": 3599, "refresh_token": "1//0",
    "scope": "openid https://www.googleapis.com/auth/userinfo.email" }"#;

/// Both vendors, and the requests.
async fn vendors() -> (SocketAddr, Seen<String>) {
    let seen = Seen::<String>::default();
    let answer = move |State(seen): State<Seen<String>>,
                       method: Method,
                       uri: Uri,
                       headers: HeaderMap,
                       body: String| async move {
        let credential = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let credential = credential.unwrap_or_default();
        seen.lock().unwrap().push(format!("{method} {} {credential} {body}", uri.path()));
        match uri.path() {
            "/login/oauth/access_token" if body.contains("code=good") => (StatusCode::OK, GITHUB),
            "/login/oauth/access_token" => (StatusCode::OK, r#"{ "error": "bad_verification_code" }"#),
            "/api/user" => (StatusCode::OK, r#"{ "login": "octo" }"#),
            "/token" => (StatusCode::OK, GOOGLE),
            _ => (StatusCode::NO_CONTENT, ""),
        }
    };
    let address = serve(Router::new().fallback(answer).with_state(Arc::clone(&seen))).await;
    (address, seen)
}

fn server(access: &'static Access, address: SocketAddr) -> Server {
    let client = Client { id: "Iv1".to_owned(), secret: "hush".into() };
    Server::new(access, client, &open_network(Some(address)))
}

#[tokio::test]
async fn a_github_user_authorizes_and_the_grant_is_deleted() {
    let (address, seen) = vendors().await;
    let server = server(&GITHUB_USER, address);
    let url = server.authorization_url(REDIRECT, "s", "c").unwrap();
    assert_eq!(url.path(), "/login/oauth/authorize");
    assert!(!url.query().unwrap().contains("scope="), "{url}");
    let tokens = server.exchange(&"good".into(), "v", REDIRECT).await.unwrap();
    assert_eq!(tokens.access.expose_secret(), "ghu_1");
    assert_eq!(tokens.lifetime, Some(Duration::from_secs(8 * 60 * 60)));
    assert_eq!(tokens.refresh_lifetime, Some(Duration::from_secs(184 * 24 * 60 * 60)));
    assert_eq!(server.account(&tokens.access).await.unwrap(), "octo");
    let refused = server.exchange(&"bad".into(), "v", REDIRECT).await.unwrap_err();
    assert!(matches!(refused, Failure::Credentials(_)), "{refused:?}");
    server.revoke(&tokens.access, tokens.refresh.as_ref()).await.unwrap();
    let last = seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(last, r#"DELETE /api/applications/Iv1/grant Basic SXYxOmh1c2g= {"access_token":"ghu_1"}"#);
}

#[tokio::test]
async fn a_partial_consent_is_refused() {
    let (address, _) = vendors().await;
    let refused = server(&GOOGLE_DRIVE, address).exchange(&"good".into(), "v", REDIRECT).await.unwrap_err();
    assert!(matches!(&refused, Failure::Refused(why) if why.as_str().contains("allow all")), "{refused:?}");
}
