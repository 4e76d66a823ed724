//! MCP servers over HTTP: streamable HTTP, and server-sent events as before 2025.
//!
//! In the older transport the server names an address to post to, in its first event. It is rewritten so that it leads
//! through the gate, and only within the server's own origin. Messages are posted there, and nowhere else.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Incoming;
use muster_protocol::plan::Variable;
use url::Url;

use super::Message;
use crate::{
    answers::{Answer, Body, BodyError, empty, full, passed, refusal},
    forward::{self, Astray},
    heads,
    shared::Shared,
};

/// How much of a stream may come before its first event, in bytes.
const LONGEST_FIRST: usize = 64 * 1024;

/// How many addresses are remembered that servers have named.
const MOST_ENDPOINTS: usize = 256;

/// Addresses that servers of the older transport have named: the server's own, and the path with its query.
#[derive(Debug, Default)]
pub struct Endpoints(Mutex<VecDeque<(String, String)>>);

impl Endpoints {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, url: &str, place: String) {
        let (mut all, new) = (self.lock(), (url.to_owned(), place));
        all.retain(|kept| *kept != new);
        all.push_back(new);
        if all.len() > MOST_ENDPOINTS {
            all.pop_front();
        }
    }

    fn has(&self, url: &str, place: &str) -> bool {
        self.lock().iter().any(|(own, kept)| own == url && kept == place)
    }
}

/// Passes a message on.
pub async fn answer(shared: &Arc<Shared>, message: Message, url: &str, headers: &[Variable]) -> Answer {
    if message.query.as_deref().is_some_and(|query| !query.is_empty()) {
        return refusal(
            StatusCode::BAD_REQUEST,
            "This MCP server has one address, without further parameters.",
        );
    }
    let target = forward::below(url, "", None);
    match send(shared, message, target, headers).await {
        Ok(answer) => answer.map(passed),
        Err(refused) => *refused,
    }
}

/// Passes a message on, in the older transport: clients listen at the server's own address, and post to the one that the server
/// has named then. Nothing else of the server is reached. `own` is the gate's path for it.
pub async fn older(
    shared: &Arc<Shared>,
    message: Message,
    (url, own): (&str, &str),
    place: Option<&str>,
    headers: &[Variable],
) -> Answer {
    let query = message.query.as_deref();
    let target = match (place, &message.method) {
        (None, &Method::GET) if query.is_none_or(str::is_empty) => forward::below(url, "", None),
        (Some(place), &Method::POST) => {
            let asked = query.map_or_else(|| format!("/{place}"), |query| format!("/{place}?{query}"));
            if !shared.endpoints.has(url, &asked) {
                return refusal(StatusCode::NOT_FOUND, "The MCP server has not named this address.");
            }
            within(url, place, query)
        }
        _ => {
            let words = "This MCP server is listened to at its own address, and sent messages at the one that it names.";
            return refusal(StatusCode::METHOD_NOT_ALLOWED, words);
        }
    };
    match send(shared, message, target, headers).await {
        Ok(mut answer) if place.is_none() && is_stream(answer.headers()) => {
            answer.headers_mut().remove(header::CONTENT_LENGTH);
            let naming = Naming { shared: Arc::clone(shared), url: url.to_owned(), own: own.to_owned() };
            answer.map(|body| named_anew(body, naming))
        }
        Ok(answer) => answer.map(passed),
        Err(refused) => *refused,
    }
}

/// Sends a message, with the server's headers.
async fn send(
    shared: &Shared,
    message: Message,
    target: Result<Uri, Astray>,
    headers: &[Variable],
) -> Result<Response<Incoming>, Box<Answer>> {
    let target = target.map_err(|astray| Box::new(refusal(StatusCode::BAD_REQUEST, &astray.to_string())))?;
    let bytes = message.bytes();
    let mut request = Request::new(if bytes.is_empty() { empty() } else { full(bytes) });
    let mut own = message.headers;
    forward::strip(&mut own);
    heads::of_mcp(&mut own);
    // The gate reads what comes back.
    own.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    forward::add(&mut own, headers);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (message.method, target, own);
    let (host, port) = forward::place(request.uri());
    let exchanged = forward::exchange(shared, request).await;
    exchanged.map_err(|failed| Box::new(forward::unanswered(shared, failed, &host, port)))
}

/// A place at the server's origin.
fn within(url: &str, place: &str, query: Option<&str>) -> Result<Uri, Astray> {
    let origin = Url::parse(url).map_err(|_| Astray::Base)?.origin().ascii_serialization();
    forward::below(&origin, place, query)
}

fn is_stream(headers: &http::HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

/// What is needed to have a server's address lead through the gate.
struct Naming {
    shared: Arc<Shared>,
    url: String,
    own: String,
}

/// The stream, with the address in its first event leading through the gate.
fn named_anew(body: Incoming, naming: Naming) -> Body {
    let frames = BodyStream::new(body).map(|frame| frame.map_err(BodyError::from));
    let state = (frames.boxed(), Some((Vec::new(), naming)));
    let stream = futures::stream::unfold(state, |(mut frames, mut first)| async move {
        loop {
            let frame = match frames.next().await? {
                Ok(frame) => frame,
                Err(error) => return Some((Err(error), (frames, first))),
            };
            let Some((mut kept, naming)) = first.take() else { return Some((Ok(frame), (frames, first))) };
            let Ok(data) = frame.into_data() else {
                first = Some((kept, naming));
                continue;
            };
            kept.extend_from_slice(&data);
            let text = String::from_utf8_lossy(&kept).replace("\r\n", "\n");
            if let Some((event, rest)) = text.split_once("\n\n") {
                let said = naming.rewrite(event).map(|event| format!("{event}\n\n{rest}"));
                let said = said.ok_or_else(|| BodyError::from("the MCP server names no address of its own"));
                return Some((said.map(|text| Frame::data(Bytes::from(text))), (frames, None)));
            }
            if kept.len() > LONGEST_FIRST {
                return Some((Err("the first event is too long".into()), (frames, None)));
            }
            first = Some((kept, naming));
        }
    });
    StreamBody::new(stream).boxed_unsync()
}

impl Naming {
    /// An event, with its address leading through the gate if it is the one that names it. Messages may be posted there then.
    fn rewrite(&self, event: &str) -> Option<String> {
        if !is_endpoint(event) {
            return Some(event.to_owned());
        }
        let place = named(event, &self.url)?;
        let said = format!("event: endpoint\ndata: {}{place}", self.own);
        self.shared.endpoints.keep(&self.url, place);
        Some(said)
    }
}

/// Whether an event names an address.
fn is_endpoint(event: &str) -> bool {
    event.lines().any(|line| line.strip_prefix("event:").is_some_and(|name| name.trim() == "endpoint"))
}

/// The path and the query of the address that an event names. None if it is not one of the server's own.
fn named(event: &str, url: &str) -> Option<String> {
    let base = Url::parse(url).ok()?;
    let data = event.lines().find_map(|line| line.strip_prefix("data:"))?;
    let named = base.join(data.trim()).ok().filter(|named| named.origin() == base.origin())?;
    let query = named.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("{}{query}", named.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_an_address_of_its_own() {
        let named = |data: &str| named(&format!("event: endpoint\ndata: {data}"), "https://m.example/a/sse");
        let expected = Some("/a/messages?id=1".to_owned());
        assert_eq!(named("messages?id=1"), expected);
        assert_eq!(named("/a/messages?id=1"), expected);
        assert_eq!(named("https://m.example/a/messages?id=1"), expected);
        assert_eq!(named("https://other.example/messages"), None);
        assert!(is_endpoint("event: endpoint\ndata: x") && !is_endpoint("data: endpoint"));
        let back = within("https://m.example/a/sse", "a/messages", Some("id=1")).unwrap();
        assert_eq!(back.to_string(), "https://m.example/a/messages?id=1");
    }

    #[test]
    fn only_so_many_addresses_are_remembered() {
        let all = Endpoints::default();
        (0..=MOST_ENDPOINTS).for_each(|at| all.keep("u", format!("/{at}")));
        all.keep("u", "/1".to_owned());
        assert!(!all.has("u", "/0") && all.has("u", "/1") && !all.has("v", "/1"));
        assert_eq!(all.lock().len(), MOST_ENDPOINTS);
    }
}
