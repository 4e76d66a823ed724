//! Cross-origin requests: the pages in `cors.origins` may call the interfaces of programs with a bearer token.
//!
//! Only requests with a token are allowed, never ones with the session cookie: no answer allows credentials, so browsers
//! neither send the cookie nor show an answer to it. Other pages get no header, so browsers withhold the answer.

use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::core::config::{Config, has_origin};

/// The methods of the interfaces.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
/// The headers that programs send.
const SENT: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, mcp-protocol-version, \
     x-request-id",
);
/// The headers that pages may read, besides those that every page may.
const READ: HeaderValue = HeaderValue::from_static(
    "etag, idempotent-replayed, ratelimit, ratelimit-policy, retry-after, www-authenticate, x-request-id",
);
/// How long browsers remember a permission, in seconds. A changed setting takes effect after that.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// A cross-origin request of a page in the list.
pub struct CrossOrigin {
    origin: HeaderValue,
    is_preflight: bool,
}

impl CrossOrigin {
    /// None for all other requests.
    pub fn of(request: &Request, config: &Config) -> Option<Self> {
        let (path, headers) = (request.uri().path(), request.headers());
        let is_open = path.starts_with("/v1/") || matches!(path, "/graphql" | "/mcp");
        let origin = headers.get(header::ORIGIN).filter(|_| is_open)?;
        let is_preflight = *request.method() == Method::OPTIONS
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let has_token =
            if is_preflight { will_send_token(headers) } else { headers.contains_key(header::AUTHORIZATION) };
        let is_listed = has_token && has_origin(&config.cors.origins, origin.to_str().ok()?);
        is_listed.then(|| Self { origin: origin.clone(), is_preflight })
    }

    /// The answer to a preflight: the request of a browser that asks before it sends the actual one.
    pub fn preflight(&self) -> Option<Response> {
        if !self.is_preflight {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().extend([
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
            (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
        ]);
        Some(response)
    }

    /// Lets the page read an answer.
    pub fn allow(self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if !self.is_preflight {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READ);
        }
    }
}

/// Whether the actual request will have a token.
fn will_send_token(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|name| name.trim().eq_ignore_ascii_case("authorization"))
}
