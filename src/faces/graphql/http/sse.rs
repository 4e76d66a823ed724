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

/// A comment at this interval keeps proxies from closing the stream.
const KEEP_ALIVE: Duration = Duration::from_secs(12);

/// Whether the caller asks for events.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    weight(headers, "text/event-stream") > 0
}

/// The operation's responses as events.
pub fn respond(session: &Session, operation: Operation) -> Response {
    let next = session
        .stream_json(operation)
        .map(|json| Event::default().event("next").data(String::from_utf8_lossy(&json)));
    events(next)
}

/// An existing answer, as events.
pub fn answered(json: &[u8]) -> Response {
    let next = Event::default().event("next").data(String::from_utf8_lossy(json));
    events(stream::once(async { next }))
}

fn events(next: impl Stream<Item = Event> + Send + 'static) -> Response {
    let complete = stream::once(async { Event::default().event("complete").data("") });
    let events = next.chain(complete).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // Otherwise nginx would buffer the events.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}
