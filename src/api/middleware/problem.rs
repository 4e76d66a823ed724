//! Errors of `/v1` as RFC 9457 problem documents, and the pages that their types link to.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::{
    base::problem::{Code, Problem},
    core::telemetry,
};

/// The problem document for the answer to a request for `path`.
#[must_use]
pub fn problem_document(problem: &Problem, path: &str, request_id: &str) -> serde_json::Value {
    let mut document = json!({
        "type": format!("/problems/{}", problem.code.slug()),
        "title": problem.code.title(),
        "status": problem.code.status().as_u16(),
        "detail": problem.detail,
        "instance": path,
        "code": problem.code.as_str(),
        "request_id": request_id,
        "details": problem.details,
    });
    if !problem.errors.is_empty() {
        document["errors"] = json!(problem.errors);
    }
    document
}

/// `problem` as a response to a request for `path`.
pub fn problem_response(problem: &Problem, path: &str, request_id: &str) -> Response {
    telemetry::problem(problem, request_id);
    let body = problem_document(problem, path, request_id);
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = problem.code.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if problem.code.status() == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = problem.retry_after() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The page that explains a type of problem. None for an unknown one.
#[must_use]
pub fn problem_page(slug: &str) -> Option<Response> {
    let code = Code::ALL.iter().find(|code| code.slug() == slug)?;
    let (title, status) = (code.title(), code.status());
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <h1>{title}</h1><p><code>{}</code>, {status}</p><p>{}</p></html>\n",
        code.as_str(),
        code.about(),
    );
    Some(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}
