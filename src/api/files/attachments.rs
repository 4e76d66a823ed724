//! The bytes of attachments over HTTP: the two requests that aren't JSON.
//!
//! `POST /v1/org/{org_id}/attachment?filename=…` accepts a raw file of any type, up to the limit for
//! attachments. A panel can send a dropped file without encoding it in base64 (a third larger) inside a
//! document that must be parsed as a whole. The mutation `uploadAttachment` does the same for small files. `GET
//! /v1/org/{org_id}/attachment/{id}` returns the bytes for saving, never for display: a file may contain a
//! script.
//!
//! The schema defines the permissions, on `uploadAttachment` and `attachment`.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawPathParams, State},
    response::Response,
    routing::{get, post},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use super::{enter, parameter, permit_of};
use crate::{
    api::middleware::{
        Arrival, body,
        etag::is_known,
        id_in_path,
        idempotency::{self, Answer, Claim, KeyedRequest},
        problem_response, refusal,
    },
    base::{
        ids::AttachmentId,
        problem::{Problem, Result, Violation},
    },
    core::{
        Core,
        access::Scope,
        resource_limits::{AlreadyCounted, Holder, Resource},
    },
    domain::conversations::{File, Upload},
    resolvers::authorize_again,
};

/// The root field whose permission an upload needs.
const UPLOAD: &str = "uploadAttachment";

pub fn router() -> Router<Arc<Core>> {
    Router::new()
        .route("/v1/org/{org_id}/attachment", post(on_upload))
        .route("/v1/org/{org_id}/attachment/{id}", get(on_download))
}

async fn on_upload(
    State(core): State<Arc<Core>>,
    arrival: Arrival,
    path: RawPathParams,
    file: Body,
) -> Response {
    let answered = upload(&core, &arrival, &path, file).await;
    answered.unwrap_or_else(|problem| refused(&problem, &arrival))
}

async fn upload(core: &Arc<Core>, arrival: &Arrival, path: &RawPathParams, file: Body) -> Result<Response> {
    let mut scope = enter(core, arrival, path, UPLOAD).await?;
    let filename = filename(arrival.uri.query().unwrap_or_default())?;
    let mime_type = arrival.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let most = core.config.limits.attachment_bytes;
    let content = body::read(core, arrival, &scope.request.caller, file, most).await?;
    // While the file arrived, the caller may have lost the right.
    scope = authorize_again(&scope.request, UPLOAD, permit_of(core, UPLOAD)?, scope.org).await?;
    let mime_type = mime_type.map(str::to_owned);
    let Some(key) = idempotency::key_of(&arrival.headers)? else {
        let stored = store(&scope, Upload { filename, mime_type, content: content.into() }).await?;
        return Ok(created(stored));
    };
    let uri = arrival.uri.to_string();
    let said = mime_type.clone().unwrap_or_default();
    let parts: &[&[u8]] = &[b"POST", uri.as_bytes(), said.as_bytes(), &Sha256::digest(&content)];
    let caller = scope.request.caller.clone();
    let keyed = KeyedRequest { caller: &caller, org: scope.org, key, parts };
    let instance = arrival.uri.path().to_owned();
    let work = move |claim: Option<Arc<Claim>>| async move {
        if let Some(claim) = claim {
            scope.request.set_key(claim);
        }
        match store(&scope, Upload { filename, mime_type, content: content.into() }).await {
            Ok(stored) => Answer::created(stored),
            Err(problem) => refusal(&problem, &instance, &scope.request.id),
        }
    };
    let done = idempotency::run_once(core, keyed, async { Ok(()) }, work).await?;
    let mut response = created(done.body.clone());
    *response.status_mut() = done.status;
    done.write_headers(response.headers_mut());
    Ok(response)
}

/// Stores the file and returns its record as JSON.
async fn store(scope: &Scope, file: Upload) -> Result<Bytes> {
    let record = crate::domain::conversations::upload(scope, file).await?;
    Ok(serde_json::to_vec(&record).map_err(Problem::internal)?.into())
}

fn created(record: Bytes) -> Response {
    let mut response = Response::new(Body::from(record));
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn on_download(State(core): State<Arc<Core>>, arrival: Arrival, path: RawPathParams) -> Response {
    let answered = download(&core, &arrival, &path).await;
    answered.unwrap_or_else(|problem| refused(&problem, &arrival))
}

async fn download(core: &Arc<Core>, arrival: &Arrival, path: &RawPathParams) -> Result<Response> {
    let scope = enter(core, arrival, path, "attachment").await?;
    let id = AttachmentId(id_in_path("id", parameter(path, "id"))?);
    let file = crate::domain::conversations::file(&scope, id).await?;
    let etag = etag(&file);
    let mut response = if is_known(&arrival.headers, &etag) {
        let mut unchanged = Response::new(Body::empty());
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        // Reserved first, so that a refused file isn't read.
        let held = core
            .resource_limits
            .limit(Resource::Answers)
            .take(Holder::of(&scope.request.caller, arrival.ip), file.bytes)?;
        let content = crate::domain::conversations::content(&scope, id).await?;
        let mut found = Response::new(Body::from(Arc::new(held).with_bytes(content.into())));
        found.extensions_mut().insert(AlreadyCounted);
        found
    };
    let headers = headers(&file, &etag)?;
    response.headers_mut().extend(headers);
    Ok(response)
}

/// The only query parameter of an upload.
fn filename(query: &str) -> Result<String> {
    let mut filename = None;
    let mut violations = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if name != "filename" {
            let detail = format!("Unknown query parameter `{name}`.");
            violations.push(Violation::parameter(name, "UNKNOWN_KEY", detail));
        } else if filename.replace(value.into_owned()).is_some() {
            let detail = "The query parameter `filename` is given more than once.";
            violations.push(Violation::parameter("filename", "REPEATED", detail));
        }
    }
    match &filename {
        None => {
            violations.push(Violation::parameter("filename", "REQUIRED", "`filename` is required."));
        }
        Some(name) if name.chars().count() > 255 => {
            let detail = "`filename` must be at most 255 characters.";
            violations.push(Violation::parameter("filename", "TOO_LONG", detail));
        }
        Some(_) => {}
    }
    Problem::fail_if_any(violations)?;
    Ok(filename.unwrap_or_default())
}

fn etag(file: &File) -> String {
    format!("\"{}\"", hex::encode(&file.sha256))
}

fn headers(file: &File, etag: &str) -> Result<HeaderMap> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(Problem::internal);
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: HeaderValue| headers.insert(name, value);
    set(header::CONTENT_TYPE, value(inert(&file.mime_type))?);
    set(header::CONTENT_DISPOSITION, value(&disposition(&file.filename))?);
    set(header::ETAG, value(etag)?);
    // The bytes behind an id never change, but permissions may.
    set(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    set(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    set(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(headers)
}

/// The type, unless browsers would run or apply the file when a page of ours names it: the panel's
/// Content-Security-Policy trusts this origin.
fn inert(mime_type: &str) -> &str {
    let runs = ["javascript", "ecmascript", "jscript", "livescript", "text/css"];
    let lower = mime_type.to_ascii_lowercase();
    if runs.iter().any(|part| lower.contains(part)) { "application/octet-stream" } else { mime_type }
}

/// `attachment`, with the name in ASCII for old clients and in UTF-8 (RFC 8187) for all others.
fn disposition(filename: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');
    let plain =
        |c: char| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') || c == ' ' { c } else { '_' };
    let ascii: String = filename.chars().map(plain).collect();
    let utf8 = percent_encoding::utf8_percent_encode(filename, KEPT);
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{utf8}")
}

fn refused(problem: &Problem, arrival: &Arrival) -> Response {
    problem_response(problem, arrival.uri.path(), &arrival.request_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_header() {
        assert_eq!(
            disposition("a\"b; é.txt"),
            "attachment; filename=\"a_b; _.txt\"; filename*=UTF-8''a%22b%3B%20%C3%A9.txt"
        );
    }

    #[test]
    fn no_file_is_a_script_or_a_style() {
        for runs in ["text/javascript", "application/X-JavaScript;charset=utf-8", "text/css"] {
            assert_eq!(inert(runs), "application/octet-stream");
        }
        assert_eq!(inert("image/png"), "image/png");
    }

    #[test]
    fn an_upload_has_one_parameter() {
        assert_eq!(filename("filename=a%20b.txt").unwrap(), "a b.txt");
        for wrong in ["", "filename=a&filename=b", "filname=a", "filename=a&x=1"] {
            assert!(filename(wrong).is_err(), "{wrong}");
        }
    }
}
