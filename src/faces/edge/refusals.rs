//! What the HTTP machinery refuses by itself, as problem documents.
//!
//! Extractors, the router and the limits answer with plain text of their own; [`as_problem`] rewrites every such
//! refusal, so that a client meets one kind of error whatever refused it.

use axum::response::Response;
use http::{HeaderMap, StatusCode, header};

use super::Arrival;
use crate::{
    base::problem::{Code, Problem},
    faces::edge::problem_response,
};

/// No route fits.
pub async fn no_route(arrival: Arrival) -> Response {
    let problem = Problem::new(Code::NotFound, "There is no such route.");
    problem_response(&problem, arrival.uri.path(), &arrival.request_id)
}

/// `response`, or the problem document in its place if it is a refusal in plain text.
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

/// Our own answers say what they are; plain text, or nothing at all, comes from the machinery.
fn speaks_for_itself(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| !value.starts_with("text/plain"))
}

fn problem_of(status: StatusCode) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::new(Code::NotFound, "There is no such route."),
        StatusCode::METHOD_NOT_ALLOWED => Problem::new(
            Code::MethodNotAllowed,
            "The path does not take this method; `Allow` lists those it takes.",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(Code::PayloadTooLarge, "The body is larger than the service takes.")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Problem::new(Code::UnsupportedMediaType, "The service does not take bodies of this type.")
        }
        status if status.is_server_error() => {
            Problem::internal(anyhow::anyhow!("answered {status} without a reason"))
        }
        _ => Problem::new(Code::MalformedRequest, "The request can't be read."),
    }
}
