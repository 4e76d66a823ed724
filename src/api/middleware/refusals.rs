//! Turns errors from the HTTP stack itself into problem documents.
//!
//! Extractors, the router, and the limits answer in plain text. [`as_problem`] rewrites those answers, so that
//! clients see one form of error wherever it comes from.

use axum::response::Response;
use http::{HeaderMap, StatusCode, header};

use super::Arrival;
use crate::{
    api::middleware::problem_response,
    base::problem::{Code, Problem},
};

/// The fallback for unknown routes.
pub async fn no_route(arrival: Arrival) -> Response {
    let problem = Problem::new(Code::NotFound, "This route does not exist.");
    problem_response(&problem, arrival.uri.path(), &arrival.request_id)
}

/// `response`, or a problem document if it is a plain-text error.
pub fn as_problem(response: Response, path: &str, request_id: &str) -> Response {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || speaks_for_itself(response.headers()) {
        return response;
    }
    let mut rewritten = problem_response(&problem_of(status), path, request_id);
    for name in [header::ALLOW, header::CONNECTION, header::UPGRADE, header::SEC_WEBSOCKET_VERSION] {
        if let Some(value) = response.headers().get(&name) {
            rewritten.headers_mut().insert(name, value.clone());
        }
    }
    rewritten
}

/// Our own answers declare a type; plain text, or no type at all, comes from the HTTP stack.
fn speaks_for_itself(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| !value.starts_with("text/plain"))
}

fn problem_of(status: StatusCode) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::new(Code::NotFound, "This route does not exist."),
        StatusCode::METHOD_NOT_ALLOWED => Problem::new(
            Code::MethodNotAllowed,
            "The path does not support this method. See the `Allow` header for those it does.",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(Code::PayloadTooLarge, "The body is too large."),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Problem::new(Code::UnsupportedMediaType, "The service does not accept bodies of this type.")
        }
        status if status.is_server_error() => {
            Problem::internal(anyhow::anyhow!("answered {status} without a reason"))
        }
        _ => Problem::new(Code::MalformedRequest, "The request could not be read."),
    }
}
