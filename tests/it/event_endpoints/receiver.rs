//! Another company's service, which gets events.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::State, routing::post};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::task::JoinSet;

/// Answers with the statuses left in `answers`, then with 204.
pub struct Receiver {
    pub url: String,
    state: Kept,
    _serving: JoinSet<()>,
}

#[derive(Clone, Default)]
struct Kept {
    got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Receiver {
    pub async fn start(answers: &[u16]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/events", listener.local_addr().unwrap());
        let state = Kept::default();
        state.answers.lock().unwrap().extend(answers);
        let router = Router::new().route("/events", post(receive)).with_state(state.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state, _serving: serving }
    }

    pub fn count(&self) -> usize {
        self.state.got.lock().unwrap().len()
    }

    /// Answers the next requests like this.
    pub fn answer(&self, statuses: &[u16]) {
        self.state.answers.lock().unwrap().extend(statuses);
    }

    /// Accepts everything from now on.
    pub fn clear(&self) {
        self.state.answers.lock().unwrap().clear();
    }

    /// The payloads, as they came.
    pub fn payloads(&self) -> Vec<Value> {
        let got = self.state.got.lock().unwrap();
        got.iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect()
    }

    pub fn types(&self) -> Vec<String> {
        self.payloads().iter().map(|payload| payload["type"].as_str().unwrap().to_owned()).collect()
    }

    /// This number in `data` of each payload.
    pub fn numbers(&self, name: &str) -> Vec<i64> {
        self.payloads().iter().map(|payload| payload["data"][name].as_i64().unwrap()).collect()
    }

    /// The ids of the requests.
    pub fn ids(&self) -> Vec<String> {
        let got = self.state.got.lock().unwrap();
        got.iter().map(|(headers, _)| headers["webhook-id"].to_str().unwrap().to_owned()).collect()
    }

    /// Whether the n-th request is signed with this secret, by the official library.
    pub fn is_signed(&self, n: usize, secret: &str) -> bool {
        let got = self.state.got.lock().unwrap();
        let (headers, body) = &got[n];
        Webhook::new(secret).unwrap().verify(body, headers).is_ok()
    }
}

async fn receive(State(kept): State<Kept>, headers: HeaderMap, body: Bytes) -> StatusCode {
    kept.got.lock().unwrap().push((headers, body));
    let mut answers = kept.answers.lock().unwrap();
    let status = if answers.is_empty() { 204 } else { answers.remove(0) };
    StatusCode::from_u16(status).unwrap()
}
