//! Operations over server-sent events: the "distinct connections mode" of the GraphQL-over-SSE protocol. Each
//! response is a `next` event, and a `complete` event ends the stream.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    request::{Operation, weight},
    run::Session,
};
use crate::base::problem::Result;

/// Whether the caller asks for events.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    weight(headers, "text/event-stream") > 0
}

/// The operation's responses as events. `sent` is the size of its request in bytes.
///
/// # Errors
/// `RATE_LIMITED`, `UNAVAILABLE`: the resource limits are reached.
pub fn respond(session: &Session, operation: Operation, sent: usize) -> Result<Response> {
    let held = session.reserve_request(sent)?;
    let next = stream::unfold((session.stream_json(operation), held), |(mut responses, held)| async move {
        let json = responses.next().await?;
        Some((next(&json), (responses, held)))
    });
    Ok(events(next))
}

/// An existing answer, as events.
pub fn answered(json: &[u8]) -> Response {
    let next = next(json);
    events(stream::once(async { next }))
}

fn next(json: &[u8]) -> Event {
    Event::default().event("next").data(String::from_utf8_lossy(json))
}

fn events(next: impl Stream<Item = Event> + Send + 'static) -> Response {
    let complete = stream::once(async { Event::default().event("complete").data("") });
    let events = next.chain(complete).map(Ok::<_, Infallible>);
    // Comments keep proxies from closing the stream.
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(12))).into_response();
    // Otherwise nginx would buffer the events.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}
