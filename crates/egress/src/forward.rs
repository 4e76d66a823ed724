//! Forwarded requests: to a credential's address, with its headers, and to listed hosts over plain HTTP.

use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
    header::{self, Entry},
};
use hyper::body::Incoming;
use muster_protocol::plan::Variable;
use percent_encoding::percent_decode_str;
use tokio::time::timeout;
use url::Url;

use crate::{
    answers::{Answer, Body, refusal, streamed_body},
    bounds,
    client::{self, ExchangeError},
    header_filter, host_access,
    queries::{self, MAX_DECODED},
    rules::{NETWORK_IS_OFF, NETWORK_KIND, Rules},
    shared::Shared,
};

/// Headers of a single connection.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Methods that make a server echo the request with its secrets, or change the connection's protocol.
const ODD: [&str; 4] = ["TRACE", "TRACK", "DEBUG", "CONNECT"];

/// Why a path can't be appended to a base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The base address is invalid.
    #[error("The address is invalid.")]
    Base,
    /// The path leads upwards.
    #[error("The path leads out of the address, or is encoded in an unusual way.")]
    Path,
    /// The query overrides the base's parameters.
    #[error("The query sets a parameter that the address sets itself, or is encoded in an unusual way.")]
    Query,
}

/// Forwards a plain request through the proxy.
pub async fn plain(shared: &Shared, request: Request<Incoming>) -> Answer {
    let to = request.uri();
    let is_http = to.scheme_str() == Some("http");
    let Some(authority) = to.authority().filter(|to| is_http && !to.as_str().contains('@')) else {
        return refusal(StatusCode::BAD_REQUEST, "The proxy takes http:// addresses, and CONNECT.");
    };
    let port = authority.port_u16().unwrap_or(80);
    let host = match host_access::require_access(shared, authority.host(), port).await {
        Ok(host) => host,
        Err(answer) => return *answer,
    };
    let path = to.path_and_query().map_or("/", |path| path.as_str());
    let Ok(target) = format!("http://{host}:{port}{path}").parse::<Uri>() else {
        return refusal(StatusCode::BAD_REQUEST, "The address is invalid.");
    };
    let said = match port {
        80 => HeaderValue::from_str(&host),
        port => HeaderValue::from_str(&format!("{host}:{port}")),
    };
    let (mut head, body) = request.into_parts();
    strip(&mut head.headers);
    if let Ok(said) = said {
        head.headers.insert(header::HOST, said);
    }
    head.uri = target;
    send(shared, Request::from_parts(head, streamed_body(body)), &host, port).await
}

/// Forwards a request to a credential's address.
pub async fn credential(shared: &Shared, rules: &Rules, rest: &str, request: Request<Incoming>) -> Answer {
    if rules.is_disabled(NETWORK_KIND) {
        return refusal(StatusCode::FORBIDDEN, NETWORK_IS_OFF);
    }
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = percent_decode_str(name).decode_utf8_lossy();
    let Some(injected) = rules.injected.iter().find(|injected| injected.name == name) else {
        return refusal(StatusCode::NOT_FOUND, "This agent has no credential of this name.");
    };
    if ODD.iter().any(|method| request.method().as_str().eq_ignore_ascii_case(method)) {
        let words = format!("{} is not sent to a credential's address.", request.method());
        return refusal(StatusCode::METHOD_NOT_ALLOWED, &words);
    }
    let target = match below(&injected.url, path, request.uri().query()) {
        Ok(target) => target,
        Err(astray) => return refusal(StatusCode::BAD_REQUEST, &astray.to_string()),
    };
    let base = format!("/c/{}", rest.split_once('/').map_or(rest, |(name, _)| name));
    shared.uses.note(&[injected.credential_id]);
    let sent = retarget(request, target, &injected.headers, streamed_body);
    let (host, port) = host_and_port(sent.uri());
    let mut answer = send(shared, sent, &host, port).await;
    keep_redirect_inside(answer.headers_mut(), &injected.url, &base);
    answer
}

/// The address below a base, with the parameters of both.
pub fn below(base: &str, path: &str, query: Option<&str>) -> Result<Uri, PathError> {
    if leads_upwards(path) {
        return Err(PathError::Path);
    }
    let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or(PathError::Base)?;
    let mut text = format!("{}{}", url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
    if !path.is_empty() {
        text.push('/');
        text.push_str(path);
    } else if text.len() == url.origin().ascii_serialization().len() || url.path().ends_with('/') {
        text.push('/');
    }
    let both = queries::joined(url.query(), path, query).ok_or(PathError::Query)?;
    if queries::ends_early(path) {
        return Err(PathError::Path);
    }
    if !both.is_empty() {
        text.push('?');
        text.push_str(&both);
    }
    text.parse().map_err(|_| PathError::Base)
}

/// Whether a path leads upwards in any encoding, or is not text.
pub fn leads_upwards(path: &str) -> bool {
    if queries::has_odd_escapes(path) {
        return true;
    }
    let mut path = plain_signs(path);
    for _ in 0..MAX_DECODED {
        if path.split('/').any(leads_up) || path.chars().any(char::is_control) {
            return true;
        }
        // Some servers decode more than once.
        let Some(decoded) = queries::decoded(&path) else { return true };
        let decoded = plain_signs(&decoded);
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

/// Whether any server might resolve this segment to the parent folder. Some servers cut off parameters first (`..;x`),
/// others trim the end (`.. `, `...`).
fn leads_up(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or_default();
    name.contains('.') && name.chars().all(|char| char == '.' || char.is_whitespace())
}

/// A path with Unicode lookalikes of its separators normalized, as some servers do.
fn plain_signs(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for char in path.chars() {
        match char {
            '\\' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{fe68}' | '\u{ff0f}' | '\u{ff3c}' => {
                text.push('/');
            }
            '\u{2024}' | '\u{fe52}' | '\u{ff0e}' => text.push('.'),
            '\u{2025}' => text.push_str(".."),
            '\u{2026}' => text.push_str("..."),
            '\u{ff1b}' => text.push(';'),
            char => text.push(char),
        }
    }
    text
}

/// Readdresses a request to `target`, with these headers in place of the agent's own.
pub fn retarget(
    request: Request<Incoming>,
    target: Uri,
    headers: &[Variable],
    body: impl FnOnce(Incoming) -> Body,
) -> Request<Body> {
    let (mut head, incoming) = request.into_parts();
    strip(&mut head.headers);
    header_filter::remove_overrides(&mut head.headers);
    head.uri = target;
    add_headers(&mut head.headers, headers);
    Request::from_parts(head, body(incoming))
}

/// Inserts secret headers. Invalid values are skipped.
pub fn add_headers(to: &mut HeaderMap, headers: &[Variable]) {
    let valid = headers.iter().filter_map(|Variable { name, value }| {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.expose()).ok());
        if parsed.is_none() {
            tracing::warn!(name, "not a valid header");
        }
        parsed
    });
    let valid: Vec<_> = valid.collect();
    for (name, _) in &valid {
        header_filter::remove_aliases(to, name);
    }
    for (name, mut value) in valid {
        value.set_sensitive(true);
        to.insert(name, value);
    }
}

/// Sends a request. Redirects are returned: the agent decides whether to follow.
pub async fn send(shared: &Shared, request: Request<Body>, host: &str, port: u16) -> Answer {
    match exchange(shared, request).await {
        Ok(answer) => answer.map(streamed_body),
        Err(failed) => failure_answer(shared, failed, host, port),
    }
}

/// The response for a failure.
pub fn failure_answer(shared: &Shared, failed: ExchangeError, host: &str, port: u16) -> Answer {
    match failed {
        ExchangeError::NotPublic(reason) => {
            let words = format!("{reason}.");
            shared.refusals.count(host, port, &words);
            refusal(StatusCode::FORBIDDEN, &words)
        }
        ExchangeError::Broken(reason) => {
            refusal(StatusCode::BAD_GATEWAY, &format!("{host} did not answer: {reason}."))
        }
        ExchangeError::Late => {
            refusal(StatusCode::GATEWAY_TIMEOUT, &format!("{host} did not answer in time."))
        }
    }
}

/// Sends a request, and strips the response's connection headers.
pub async fn exchange(shared: &Shared, request: Request<Body>) -> Result<Response<Incoming>, ExchangeError> {
    let mut answer = match timeout(bounds::THOUGHT, shared.client.request(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(client::cause(&error)),
        Err(_) => return Err(ExchangeError::Late),
    };
    strip(answer.headers_mut());
    Ok(answer)
}

pub fn host_and_port(to: &Uri) -> (String, u16) {
    let port = if to.scheme_str() == Some("https") { 443 } else { 80 };
    (to.host().unwrap_or_default().to_owned(), to.port_u16().unwrap_or(port))
}

/// Removes headers of a single connection.
pub fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove("proxy-connection");
    headers.remove(header::EXPECT);
}

/// Redirects within the credential's address go through the gate again. All others are left to the agent, without the
/// credential.
fn keep_redirect_inside(headers: &mut HeaderMap, url: &str, base: &str) {
    let Entry::Occupied(mut location) = headers.entry(header::LOCATION) else { return };
    let Ok(text) = location.get().to_str() else { return };
    let url = url.trim_end_matches('/');
    let inside = text.strip_prefix(url).filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    let own_path = Url::parse(url).ok().map(|url| url.path().trim_end_matches('/').to_owned());
    let inside = inside.or_else(|| {
        let rest = text.starts_with('/').then(|| text.strip_prefix(own_path.as_deref()?)).flatten()?;
        (!text.starts_with("//") && (rest.is_empty() || rest.starts_with(['/', '?']))).then_some(rest)
    });
    if let Some(value) = inside.and_then(|rest| HeaderValue::from_str(&format!("{base}{rest}")).ok()) {
        location.insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_its_base() {
        let text = |base, path, query| below(base, path, query).ok().map(|uri| uri.to_string());
        assert_eq!(
            text("https://h.example/a/", "b/c", Some("q=1")).as_deref(),
            Some("https://h.example/a/b/c?q=1")
        );
        assert_eq!(text("https://h.example", "", None).as_deref(), Some("https://h.example/"));
        assert_eq!(text("https://h.example/a", "", None).as_deref(), Some("https://h.example/a"));
        assert_eq!(
            text("https://h.example/a?k=v", "b", Some("q")).as_deref(),
            Some("https://h.example/a/b?k=v&q")
        );
        let wrong = [
            "../x",
            "a/../../x",
            "%2e%2e/x",
            "a/.%2e/x",
            "..%2fx",
            "a\\..\\x",
            "%252e%252e/x",
            "./x",
            "..;/x",
            "a/..;y=1/x",
            "%2e%2e%3b/x",
            "a/%25252e%25252e/x",
            "%2525252525252525252e./x",
            "a/%ff/x",
            "a/%c0%ae%c0%ae/x",
            "%0ax",
            "%u002e%u002e/x",
            "%25u002e%25u002e/x",
            "a%u002f..%u002fx",
            "a/%",
            "a/%2/x",
            "a/%zz/x",
            ".. /x",
            "..%20/x",
            ".../x",
            "%ef%bc%8e%ef%bc%8e/x",
            "a%ef%bc%8f..%ef%bc%8fx",
            "%e2%80%a5/x",
            "..%ef%bc%8fx",
            "a/..%2520/x",
            "...%2fx",
            "..%ef%bc%9bx/y",
            "a%e2%a7%b8..%e2%a7%b8x",
            "a%3fx",
        ];
        for path in wrong {
            assert_eq!(text("https://h.example/a", path, None), None, "{path}");
        }
        for path in [
            "x;v=1/y",
            "a..b/..c",
            "100%25",
            "%C3%A9",
            "a%20b",
            "a...b",
            "%25up",
            ".git/x",
            "a%20b/.git",
            "a;v=1/b",
        ] {
            assert!(text("https://h.example/a", path, None).is_some(), "{path}");
        }
        assert_eq!(text("ftp://h.example/a", "x", None), None);
        assert_eq!(below("https://h.example/x?mode=ro", "y", Some("mode=rw")), Err(PathError::Query));
        let again = text("https://h.example/x?mode=ro", "y", Some("mode=ro&page=2"));
        assert_eq!(again.as_deref(), Some("https://h.example/x/y?mode=ro&page=2"));
        let both = text("https://h.example/x?mode=ro#part", "y", Some("page=2"));
        assert_eq!(both.as_deref(), Some("https://h.example/x/y?mode=ro&page=2"));
    }

    #[test]
    fn a_redirect_stays_within_the_address_or_is_not_changed() {
        let led = |location: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, HeaderValue::from_static(location));
            keep_redirect_inside(&mut headers, "https://h.example/org/", "/c/git");
            headers[header::LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(led("https://h.example/org/repo.git"), "/c/git/repo.git");
        assert_eq!(led("/org/repo.git?x"), "/c/git/repo.git?x");
        assert_eq!(led("https://h.example/organic"), "https://h.example/organic");
        assert_eq!(led("https://other.example/org/"), "https://other.example/org/");
        assert_eq!(led("//other.example/org"), "//other.example/org");
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "close, x-secret"), ("x-secret", "1"), ("te", "trailers"), ("accept", "*/*")]
        {
            headers.append(name, HeaderValue::from_static(value));
        }
        strip(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
