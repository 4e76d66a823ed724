//! MCP servers over HTTP: streamable HTTP, and server-sent events as before 2025. The session's client knows nothing of it: what
//! it says is posted, and what comes back, or on the server's own stream, is what the server says.
//!
//! In the older transport the server names an address to post to, in its first event: one of its own origin, and no other is
//! posted to.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use muster_protocol::plan::McpTransport;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use url::Url;

use super::{
    events::{Events, whole},
    lines::SENDING,
    message::Message,
    session::Session,
};
use crate::{
    answers::{empty, full},
    client::Failed,
    fields::Fields,
    forward,
};

/// Names a session, and the version of the protocol that it has.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const STREAM: &str = "text/event-stream";
const EITHER: &str = "application/json, text/event-stream";
/// How long to wait until a stream is asked for again that has ended.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a server may take to hear that its session is over.
const LEAVING: Duration = Duration::from_secs(5);

/// Where messages are posted to, or why that isn't known.
type Endpoint = Result<Uri, String>;

/// A session with a server.
pub struct Remote {
    url: String,
    /// What each request names: the session and the version of the protocol.
    named: Mutex<HeaderMap>,
    endpoint: watch::Sender<Option<Endpoint>>,
    is_older: bool,
}

impl Remote {
    pub fn begin(session: &Arc<Session>, url: &str, is_older: bool) -> Arc<Self> {
        let endpoint = watch::Sender::new((!is_older).then(|| own(url)));
        let remote = Arc::new(Self { url: url.to_owned(), named: Mutex::default(), endpoint, is_older });
        if is_older {
            let (listening, listens) = (Arc::clone(&remote), Arc::clone(session));
            session.spawn(None, async move {
                if let Err(why) = listening.listen(&listens).await {
                    listening.endpoint.send_if_modified(|endpoint| {
                        endpoint.is_none() && {
                            *endpoint = Some(Err(why));
                            true
                        }
                    });
                }
                listens.ended().await;
            });
        }
        remote
    }

    /// Posts a message. A request is answered when this returns, or will be on the server's stream.
    pub async fn send(self: &Arc<Self>, session: &Arc<Session>, message: Message) {
        let (request, method) = (message.request().cloned(), message.method.clone());
        if let Err(why) = self.post(session, message).await {
            // What one request can't do is no failure of the server.
            if method.as_deref() == Some("initialize") {
                session.failed(&why);
            }
            session.refuse(request.as_ref(), &why).await;
        }
        if method.as_deref() == Some("notifications/initialized") && !self.is_older {
            let (remote, listens) = (Arc::clone(self), Arc::clone(session));
            session.spawn(None, async move {
                // One that has no stream says so.
                while remote.listen(&listens).await.is_ok() {
                    sleep(AGAIN).await;
                }
            });
        }
    }

    async fn post(&self, session: &Session, message: Message) -> Result<(), String> {
        let id = message.request().map(ToString::to_string);
        let is_first = message.method.as_deref() == Some("initialize");
        let mut endpoint = self.endpoint.subscribe();
        let endpoint = timeout(SENDING, endpoint.wait_for(Option::is_some)).await;
        let endpoint = endpoint.ok().and_then(Result::ok).and_then(|endpoint| endpoint.clone());
        let target = endpoint.ok_or("It has not named an address in time.")??;
        let answer = self.ask(session, Method::POST, target, message.bytes).await?;
        let status = answer.status();
        if let Some(name) = answer.headers().get(SESSION).filter(|_| is_first) {
            self.name(SESSION, name.clone());
        }
        if !status.is_success() {
            if status == StatusCode::NOT_FOUND && self.named().contains_key(SESSION) {
                // Its session is over, and only the client can begin another one.
                session.ended().await;
            }
            return Err(format!("The MCP server answered with {status}."));
        }
        let Some(id) = id.filter(|_| !self.is_older) else { return Ok(()) };
        let is_stream = is_stream(answer.headers());
        let room = &session.shared.room;
        let mut events = None;
        let mut next = if is_stream {
            events.insert(Events::of(answer.into_body(), room.clone())).next().await.map(|event| event.data)
        } else {
            whole(answer.into_body(), room).await
        };
        let mut is_answered = false;
        while let Some(line) = next.take() {
            if is_first && let Some(version) = version(&line.bytes) {
                self.name(VERSION, version);
            }
            is_answered |= session.heard(line).await.as_ref() == Some(&id);
            if let Some(events) = &mut events {
                next = events.next().await.map(|event| event.data);
            }
        }
        if is_answered { Ok(()) } else { Err("The MCP server did not answer.".to_owned()) }
    }

    /// Hears the server's own stream until it ends. An error if it has none.
    async fn listen(&self, session: &Session) -> Result<(), String> {
        let answer = self.ask(session, Method::GET, own(&self.url)?, Bytes::new()).await?;
        if !answer.status().is_success() || !is_stream(answer.headers()) {
            return Err(format!("The MCP server answered with {}, and no stream.", answer.status()));
        }
        let mut events = Events::of(answer.into_body(), session.shared.room.clone());
        while let Some(event) = events.next().await {
            if self.is_older && event.name == "endpoint" {
                self.endpoint.send_replace(Some(named(&event.data.bytes, &self.url)));
            } else {
                session.heard(event.data).await;
            }
        }
        Ok(())
    }

    /// The session is over, and the server may forget it.
    pub async fn leave(&self, session: &Session) {
        if let Ok(own) = own(&self.url)
            && self.named().contains_key(SESSION)
        {
            let _ = timeout(LEAVING, self.ask(session, Method::DELETE, own, Bytes::new())).await;
        }
    }

    fn named(&self) -> HeaderMap {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn name(&self, name: HeaderName, value: HeaderValue) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(name, value);
    }

    /// Sends a request, with the headers that the server has by the present rules.
    async fn ask(
        &self,
        session: &Session,
        method: Method,
        target: Uri,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let shared = &session.shared;
        let mut request = Request::new(if body.is_empty() { empty() } else { full(body) });
        let headers = request.headers_mut();
        *headers = self.named();
        let accept = if method == Method::POST { EITHER } else { STREAM };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let rules = shared.rules.borrow().clone();
        if let Some(McpTransport::Http { headers: own, .. } | McpTransport::Sse { headers: own, .. }) =
            rules.as_ref().and_then(|rules| session.server_of(rules)).map(|server| &server.transport)
        {
            forward::add(headers, own);
        }
        (*request.method_mut(), *request.uri_mut()) = (method, target);
        let (host, port) = forward::place(request.uri());
        forward::exchange(shared, request).await.map_err(|failed| match failed {
            Failed::Inward(reason) => {
                shared.refusals.count(&host, port, &format!("{reason}."));
                format!("{reason}.")
            }
            Failed::Broken(reason) => format!("{host} did not answer: {reason}."),
            Failed::Late => format!("{host} did not answer in time."),
        })
    }
}

/// The server's own address.
fn own(url: &str) -> Endpoint {
    forward::below(url, "", None).map_err(|astray| astray.to_string())
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with(STREAM))
}

/// The version of the protocol that a server has chosen.
fn version(answer: &[u8]) -> Option<HeaderValue> {
    let result = Fields::read(answer)?.within("result")?;
    HeaderValue::try_from(result.text("protocolVersion")?).ok()
}

/// The address that a server of the older transport names, which must be one of its own.
fn named(data: &[u8], url: &str) -> Endpoint {
    let base = Url::parse(url).ok();
    let named = base.and_then(|base| {
        let mut named = base.join(std::str::from_utf8(data).ok()?.trim()).ok()?;
        let is_own = named.origin() == base.origin();
        named.set_username("").and_then(|()| named.set_password(None)).ok()?;
        named.set_fragment(None);
        named.as_str().parse().ok().filter(|_| is_own)
    });
    named.ok_or_else(|| "The MCP server names no address of its own.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_an_address_of_its_own() {
        let named =
            |data: &str| named(data.as_bytes(), "https://m.example/a/sse").ok().map(|uri| uri.to_string());
        assert_eq!(named("messages?id=1").as_deref(), Some("https://m.example/a/messages?id=1"));
        assert_eq!(named("/a/messages?id=1").as_deref(), Some("https://m.example/a/messages?id=1"));
        assert_eq!(named("https://x:y@m.example/b#c").as_deref(), Some("https://m.example/b"));
        assert_eq!(named("https://other.example/messages"), None);
        assert_eq!(named("//other.example/messages"), None);
    }
}
