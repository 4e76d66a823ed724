//! A person's browser, as far as the service can tell: it holds the session cookie and says where its requests are from.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{Actor, Answer, Socket, TestApp};

const SIGN_IN: &str = "mutation($e: String!, $p: SecretString!) { signIn(email: $e, password: $p, cookie: true) { \
    accessToken accessTokenExpiresAt refreshToken refreshTokenExpiresAt user { id email } challenge { token } } }";

/// The header that a browser adds to a request of one of the service's own pages.
pub const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");

/// A browser with the panel open.
#[derive(Clone)]
pub struct Browser {
    /// Sends requests without a token.
    pub actor: Actor,
    /// The cookies: `name=value`.
    pub cookie: String,
}

impl Browser {
    /// A browser without cookies.
    pub fn new(app: &TestApp) -> Self {
        Self { actor: app.anonymous.clone(), cookie: String::new() }
    }

    /// A browser in which a [`TestApp::user`] has signed in.
    pub async fn signed_in(app: &TestApp, email: &str) -> Self {
        let mut browser = Self::new(app);
        browser.sign_in(email).await.data();
        browser
    }

    /// Signs in, and keeps the cookie.
    pub async fn sign_in(&mut self, email: &str) -> Answer {
        self.gql(SIGN_IN, json!({ "e": email, "p": "correct horse" })).await
    }

    /// A GraphQL operation from the panel. Keeps the cookie that the answer sets, and forgets one that it clears.
    pub async fn gql(&mut self, query: &str, variables: Value) -> Answer {
        self.post(json!({ "query": query, "variables": variables })).await
    }

    /// The same for any body: a batch of operations.
    pub async fn post(&mut self, body: Value) -> Answer {
        let answer = Answer::of(self.request(Method::POST, "/graphql").json(&body)).await;
        if let Some(set) = answer.headers.get("set-cookie") {
            let (pair, rest) = set.to_str().unwrap().split_once("; ").unwrap();
            self.cookie = if rest.contains("Max-Age=0;") { String::new() } else { pair.to_owned() };
        }
        answer
    }

    /// A request from the panel.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).header(OWN_PAGE.0, OWN_PAGE.1)
    }

    /// A request with only the cookie.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.sending(&self.actor, method, path)
    }

    /// The same by another caller: a browser that adds a token.
    pub fn sending(&self, actor: &Actor, method: Method, path: &str) -> RequestBuilder {
        let request = actor.request(method, path);
        if self.cookie.is_empty() { request } else { request.header("cookie", &self.cookie) }
    }

    /// The code of the error, if the session does not count.
    pub async fn refusal(&self) -> Option<String> {
        let body = json!({ "query": "{ viewer { user { id } } }" });
        let answer = Answer::of(self.request(Method::POST, "/graphql").json(&body)).await;
        (!answer.body["errors"].is_null()).then(|| answer.code())
    }

    /// An introduced socket.
    pub async fn socket(&self) -> Socket {
        let origin = self.actor.base().to_owned();
        let mut socket =
            Socket::shake(self.actor.base(), &[("cookie", &self.cookie), ("origin", &origin)]).await.unwrap();
        socket.send(json!({ "type": "connection_init" })).await;
        assert_eq!(socket.next().await["type"], "connection_ack");
        socket
    }
}
