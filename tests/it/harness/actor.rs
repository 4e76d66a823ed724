//! The callers that send requests, and the responses. Everything goes through a socket, as in production.

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

/// A user of the service: a person with a session, a service token, or an anonymous caller.
#[derive(Clone, Debug)]
pub struct Actor {
    client: Client,
    base: String,
    bearer: Option<String>,
    /// The user, if the actor is a person.
    pub user: Option<i64>,
}

impl Actor {
    pub(super) fn anonymous(client: &Client, base: &str) -> Self {
        Self { client: client.clone(), base: base.to_owned(), bearer: None, user: None }
    }

    /// The same client with another credential.
    pub fn with_bearer(&self, bearer: impl Into<String>) -> Self {
        Self { bearer: Some(bearer.into()), user: None, ..self.clone() }
    }

    /// The same client with another base URL.
    pub fn at(&self, base: &str) -> Self {
        Self { base: base.to_owned(), ..self.clone() }
    }

    pub(super) fn person(&self, user: i64, bearer: String) -> Self {
        Self { user: Some(user), ..self.with_bearer(bearer) }
    }

    /// The base URL of the service.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The credential, without the word `Bearer`.
    pub fn bearer(&self) -> &str {
        self.bearer.as_deref().unwrap_or_default()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &Value::Null).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &Value::Null).await
    }

    /// `null` sends no body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &body).await
    }

    /// `null` sends no body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, &body).await
    }

    /// `null` sends no body.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, &body).await
    }

    /// Any method. `null` sends no body.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self.request(method, path);
        Answer::of(if body.is_null() { request } else { request.json(body) }).await
    }

    /// A GraphQL operation. What is wrong with its arguments is named by where the operation has them.
    pub async fn gql(&self, query: &str, variables: Value) -> Answer {
        let answer = self.post("/graphql", json!({ "query": query, "variables": variables })).await;
        let errors = answer.body["errors"].as_array().into_iter().flatten();
        let wrong = errors.filter_map(|error| error["extensions"]["errors"].as_array()).flatten();
        let mut pointers = wrong.filter_map(|wrong| wrong["pointer"].as_str());
        let known = |pointer: &str| !pointer.starts_with("/input") || query.contains("input");
        assert!(pointers.all(known), "{query} has no input: {:#}", answer.body);
        answer
    }

    /// A request to customize: other headers, bodies that aren't JSON. Send it with [`Answer::of`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.bearer {
            Some(bearer) => request.bearer_auth(bearer),
            None => request,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    /// The body as JSON. A string if it isn't JSON, null if it is empty.
    pub body: Value,
    /// The raw body.
    pub text: String,
}

impl Answer {
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the service answers");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.expect("a complete body");
        let body = match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        };
        Self { status, headers, body, text }
    }

    /// The status and code of a problem document (REST). Panics if the answer isn't one.
    #[track_caller]
    pub fn problem(&self) -> (u16, &str) {
        let kind = self.headers.get("content-type").map_or("", |value| value.to_str().unwrap_or_default());
        assert!(kind.starts_with("application/problem+json"), "not a problem document: {self:#?}");
        (self.status, self.body["code"].as_str().expect("a problem has a code"))
    }

    /// The violations in a problem document: position and code.
    #[track_caller]
    pub fn violations(&self) -> Vec<(&str, &str)> {
        assert_eq!(self.problem(), (422, "VALIDATION_FAILED"), "{:#}", self.body);
        let errors = self.body["errors"].as_array().expect("a list of errors");
        let place = |error: &'_ Value| error.get("pointer").is_some();
        errors
            .iter()
            .map(|error| {
                let at = if place(error) { &error["pointer"] } else { &error["parameter"] };
                (at.as_str().unwrap_or_default(), error["code"].as_str().unwrap_or_default())
            })
            .collect()
    }

    /// The record of a REST answer, which must have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }

    /// The data of a GraphQL answer. Panics on errors.
    #[track_caller]
    pub fn data(self) -> Value {
        assert!(self.body["errors"].is_null(), "{:#}", self.body);
        assert_eq!(self.status, 200, "{:#}", self.body);
        self.body["data"].clone()
    }

    /// The code of the first error in a GraphQL answer. Panics if there is none.
    #[track_caller]
    pub fn code(&self) -> String {
        let code = self.body["errors"][0]["extensions"]["code"].as_str();
        code.unwrap_or_else(|| panic!("no error with a code: {:#}", self.body)).to_owned()
    }

    /// The violations in the arguments of a GraphQL operation: position and code.
    #[track_caller]
    pub fn wrong_inputs(&self) -> Vec<(&str, &str)> {
        assert_eq!(self.code(), "VALIDATION_FAILED", "{:#}", self.body);
        let errors = &self.body["errors"][0]["extensions"]["errors"];
        let errors = errors.as_array().expect("a list of errors");
        errors
            .iter()
            .map(|error| {
                (error["pointer"].as_str().unwrap_or_default(), error["code"].as_str().unwrap_or_default())
            })
            .collect()
    }

    /// A header's value, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap_or_default())
    }
}
