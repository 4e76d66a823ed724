//! Wraps every request: its id, its span and log line, its deadline, and the headers on every response.
//!
//! Neither the span nor the log line contains a token or a query string, and the path is the route's pattern.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use http_body_util::BodyExt;
use tracing::{Instrument, field};
use uuid::Uuid;

use super::{connections::Connection, cors::CrossOrigin, refusals::as_problem};
use crate::{
    api::middleware::problem_response,
    base::{
        numerals::with_noun,
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        rate_limits::client_address,
        request_notes::RequestNotes,
        resource_limits::{AlreadyCounted, Holder, OWED, Resource, ResourceLimit, SMALL, count_refusal},
        telemetry::{metrics, traces},
    },
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The state of the outermost layer.
#[derive(Clone)]
pub struct Outermost {
    pub core: Arc<Core>,
    /// Turns a problem, a path, and a request id into a response.
    pub refuse: fn(&Problem, &str, &str) -> Response,
}

pub async fn observe(State(outermost): State<Outermost>, mut request: Request, next: Next) -> Response {
    let Outermost { core, refuse } = outermost;
    let began = Instant::now();
    let id = request_id(request.headers());
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let is_probe = matches!(route, "/health" | "/ready");
    let connection = request.extensions().get::<Connection>();
    let ip = connection.map(|from| client_address(from.peer.ip(), request.headers(), &core.config));
    let measured = metrics::on().map(|meters| (meters, request.method().clone()));
    let traced = traces::request(&request, route);
    let notes = RequestNotes::default();
    request.extensions_mut().insert(notes.clone());
    let unfit = check(&request, is_probe);
    let cross_origin = CrossOrigin::of(&request, &core.config);
    let preflight = cross_origin.as_ref().and_then(CrossOrigin::preflight);
    let span = tracing::info_span!(
        "request",
        request_id = id.to_str().unwrap_or_default(),
        method = %request.method(),
        route,
        caller = field::Empty,
        user_id = field::Empty,
        token_id = field::Empty,
    );
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let id_text = id.to_str().unwrap_or_default();
    let refuse = |problem: &Problem| refuse(problem, &path, id_text);
    let answering = async {
        let response = match (unfit, preflight) {
            (Err(problem), _) => refuse(&problem),
            (Ok(()), Some(granted)) => granted,
            (Ok(()), None) => answer(&core, next.run(request), &path, id_text).await,
        };
        let response = enter(&core, response, &notes, ip).unwrap_or_else(|problem| refuse(&problem));
        let (status, micros) = (response.status().as_u16(), began.elapsed().as_micros() as u64);
        let (client, org) = (ip.map(field::display), notes.org().map(|org| org.0));
        // Orchestrators probe every few seconds and get the same answer.
        if is_probe && response.status().is_success() {
            tracing::debug!(status, micros, client, org, "request.answered");
        } else {
            tracing::info!(status, micros, client, org, "request.answered");
        }
        response
    }
    .instrument(span);
    let mut response = match &traced {
        Some(span) => answering.instrument(span.clone()).await,
        None => answering.await,
    };
    if let Some(span) = &traced {
        traces::answered(span, response.status());
    }
    if let Some(limits) = &core.rate_limits {
        let status = response.status();
        limits.write_headers(&notes, status, response.headers_mut());
    }
    if let Some((meters, method)) = measured {
        meters.answered(route, &method, response.status(), began.elapsed());
    }
    response.headers_mut().insert(REQUEST_ID, id);
    harden(response.headers_mut());
    if let Some(cross_origin) = cross_origin {
        cross_origin.allow(response.headers_mut());
    }
    response
}

/// Checks that precede any reading of the request.
fn check(request: &Request, is_probe: bool) -> Result<()> {
    // RFC 9112, section 3.2. Of two hosts, a proxy in front may have used the other one.
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Err(Problem::new(Code::MalformedRequest, "A request must have exactly one `Host` header."));
    }
    if !is_probe && request.extensions().get::<Connection>().is_some_and(|from| from.place.reserved) {
        count_refusal("connections");
        let detail = "The service has reached its maximum number of connections. Try again.";
        return Err(Problem::new(Code::Unavailable, detail));
    }
    Ok(())
}

/// Enters an answer that isn't small into the resource limits until it is sent. Streams are entered piece by piece.
fn enter(core: &Core, response: Response, notes: &RequestNotes, ip: Option<IpAddr>) -> Result<Response> {
    let (limit, holder) =
        (core.resource_limits.limit(Resource::Answers), notes.holder().unwrap_or_else(|| Holder::at(ip)));
    let Some(bytes) = http_body::Body::size_hint(response.body()).exact() else {
        return Ok(response.map(|body| in_pieces(body, Arc::clone(limit), holder)));
    };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes <= SMALL || response.extensions().get::<AlreadyCounted>().is_some() {
        return Ok(response);
    }
    let held = Arc::new(match limit.take(holder, bytes) {
        Err(_) if notes.is_change() && bytes <= OWED => limit.take_unchecked(holder, bytes),
        Err(_) if notes.is_change() => {
            let detail =
                "The service has no room for the answer right now. Any change the request made is kept.";
            return Err(Problem::new(Code::Unavailable, detail).with("limit", "answer_bytes"));
        }
        taken => taken?,
    });
    Ok(response
        .map(|body| Body::new(body.map_frame(move |frame| frame.map_data(|data| held.with_bytes(data))))))
}

/// A streaming body. Each piece is entered when it is produced; a piece without room ends the stream.
fn in_pieces(body: Body, limit: Arc<ResourceLimit>, holder: Holder) -> Body {
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let piece = piece?;
        match limit.take_piece(holder, piece.len()) {
            Ok(None) => Ok(piece),
            Ok(Some(held)) => Ok(Arc::new(held).with_bytes(piece)),
            Err(problem) => Err(axum::Error::new(std::io::Error::other(problem.detail))),
        }
    }))
}

/// Produces a response, even if the handler fails.
async fn answer(core: &Core, work: impl Future<Output = Response>, path: &str, id: &str) -> Response {
    let deadline = core.config.limits.request_timeout();
    match tokio::time::timeout(deadline, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(response)) => as_problem(response, path, id),
        Ok(Err(panic)) => {
            let cause = anyhow::anyhow!("panicked: {}", message_of(panic.as_ref()));
            problem_response(&Problem::internal(cause), path, id)
        }
        Err(_late) => {
            let detail = format!("The request took longer than {}.", with_noun(deadline.as_secs(), "second"));
            problem_response(&Problem::new(Code::Unavailable, detail), path, id)
        }
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The client's request id if it is safe in a log line and a header, otherwise a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|id| is_request_id(id.as_bytes()));
    given.cloned().unwrap_or_else(|| {
        let mut text = Uuid::encode_buffer();
        let text = Uuid::now_v7().hyphenated().encode_lower(&mut text);
        HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"))
    })
}

fn is_request_id(text: &[u8]) -> bool {
    (1..=128).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte))
}

/// Security headers for every response. A page that needs more (the explorer) sets its own.
fn harden(headers: &mut HeaderMap) {
    const ALWAYS: [(HeaderName, HeaderValue); 3] = [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    const UNLESS_SAID: [(HeaderName, HeaderValue); 2] = [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    // Grow the map only once.
    headers.reserve(ALWAYS.len() + UNLESS_SAID.len());
    for (name, value) in ALWAYS {
        headers.insert(name, value);
    }
    for (name, value) in UNLESS_SAID {
        headers.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to a request whose handler runs `work`, with a deadline of one second.
    async fn answered(work: impl Future<Output = Response>) -> (u16, String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let mut config = crate::core::config::Config::in_folder(folder.path()).unwrap();
        config.limits.request_timeout_seconds = 1;
        let core = crate::service::open(config, crate::core::Options::default()).await.unwrap();
        let response = answer(&core, work, "/x", "an id").await;
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, 10_000).await.unwrap();
        let body: serde_json::Value = muster_json::from_slice(&body).unwrap();
        let code = body["code"].as_str().unwrap().to_owned();
        assert!(!body.to_string().contains("canary") && body["request_id"] == "an id");
        (parts.status.as_u16(), code, parts.headers.contains_key(header::RETRY_AFTER))
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_without_its_cause() {
        let panics = answered(async { panic!("canary") }).await;
        assert_eq!(panics, (500, "INTERNAL".to_owned(), false));
    }

    #[tokio::test]
    async fn a_slow_handler_is_unavailable() {
        let late = answered(std::future::pending()).await;
        assert_eq!(late, (503, "UNAVAILABLE".to_owned(), true));
    }

    #[tokio::test]
    async fn a_streamed_piece_counts_until_sent() {
        let folder = tempfile::tempdir().unwrap();
        let config = crate::core::config::Config::in_folder(folder.path()).unwrap();
        let resource_limits = crate::core::resource_limits::ResourceLimits::new(&config);
        let limit = resource_limits.limit(Resource::Answers);
        let pieces = [100, 50_000, 100_000].map(|bytes| Ok::<_, std::io::Error>(vec![7_u8; bytes]));
        let body = Body::from_stream(futures::stream::iter(pieces));
        let mut sent = in_pieces(body, Arc::clone(limit), Holder::Person(1)).into_data_stream();
        for held in [0, 50_000, 100_000] {
            let piece = sent.next().await.unwrap().unwrap();
            assert_eq!(limit.total(), held);
            drop(piece);
        }
        assert_eq!(limit.total(), 0);
        // A piece without room ends the stream.
        let _others = limit.take_unchecked(Holder::Person(1), config.limits.answers_bytes);
        let body = Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>(vec![7_u8; 100_000])]));
        let mut sent = in_pieces(body, Arc::clone(limit), Holder::Person(1)).into_data_stream();
        assert!(sent.next().await.unwrap().is_err());
    }

    #[test]
    fn an_id_that_could_break_a_log_line_is_replaced() {
        for good in ["a", "req-1.2:3/4_5", &"x".repeat(128)] {
            assert!(is_request_id(good.as_bytes()), "{good}");
        }
        for bad in ["", "a b", "a\"b", "a{b", "é", &"x".repeat(129)] {
            assert!(!is_request_id(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn a_missing_id_is_generated() {
        let (one, two) = (request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
        assert_ne!(one, two);
        assert!(is_request_id(one.as_bytes()));
    }
}
