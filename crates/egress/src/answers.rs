//! Bodies, and the gate's own responses.

use std::task::Poll;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, ext::ReasonPhrase};
use serde_json::{Value, json};

/// The error of a broken body.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The next frame of a body.
pub type Polled = Poll<Option<Result<Frame<Bytes>, BodyError>>>;
pub type Body = UnsyncBoxBody<Bytes, BodyError>;
/// A response to the agent.
pub type Answer = Response<Body>;

pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// An upstream body.
pub fn streamed_body(body: Incoming) -> Body {
    body.map_err(BodyError::from).boxed_unsync()
}

pub fn json(status: StatusCode, value: &Value) -> Answer {
    let mut answer = Response::new(full(value.to_string()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// A refusal for people and agents. The status line repeats the text: clients show nothing else of a refused tunnel.
pub fn refusal(status: StatusCode, words: &str) -> Answer {
    let mut answer = Response::new(full(format!("Muster: {words}\n")));
    *answer.status_mut() = status;
    let line: String = words.chars().filter(|char| matches!(char, ' '..='~')).take(300).collect();
    if let Ok(phrase) = ReasonPhrase::try_from(format!("Muster: {line}").into_bytes()) {
        answer.extensions_mut().insert(phrase);
    }
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// A refusal in the format of model providers. One shape fits all: each client finds its own field.
pub fn model_error(status: StatusCode, kind: &str, words: &str) -> Answer {
    let name = match status {
        StatusCode::PAYMENT_REQUIRED | StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::BAD_REQUEST => "INVALID_ARGUMENT",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        _ => "UNAVAILABLE",
    };
    let error = json!({ "type": kind, "code": status.as_u16(), "status": name, "message": format!("Muster: {words}") });
    let mut answer = json(status, &json!({ "type": "error", "error": error }));
    if status.is_client_error() {
        // Client libraries of the large providers check this header before a retry.
        answer.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    answer
}
