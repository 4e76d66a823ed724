//! MCP servers over HTTP: streamable HTTP, and the older transport with server-sent events, as before 2025. The client
//! doesn't notice the transport: its messages are posted, and it receives the responses and the server's own stream as
//! the server's messages.
//!
//! A server may forget a session, for example in a restart, and in the older transport a session ends with its stream.
//! The client's next request then starts another session with the original initialization.
//!
//! In the older transport the server's first event names the address for posts. It must have the server's origin.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use muster_protocol::plan::McpTransport;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    events::{Events, read_whole},
    lines::MessageLine,
    message::Message,
    session::{INITIALIZE, INITIALIZED, Session},
};
use crate::{
    answers::{empty, full},
    bounds,
    client::ExchangeError,
    fields::Fields,
    forward,
};

/// Headers for the session and for its protocol version.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const STREAM: &str = "text/event-stream";
const EITHER: &str = "application/json, text/event-stream";

const CUT: &str = "The MCP server has cut its stream. It is unknown whether the request was carried out.";

const UNKNOWN: &str = "The session with the MCP server has ended, and only its client can start another one.";

/// The address for posts, or the reason why it is unknown.
type Endpoint = Result<Uri, String>;

/// A server and its session.
pub struct Remote {
    url: String,
    is_older: bool,
    endpoint: watch::Sender<Option<Endpoint>>,
    state: Mutex<SessionState>,
    /// Held during a renewal: one renewal serves all waiting requests.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct SessionState {
    /// Number of the session.
    number: u64,
    is_lost: bool,
    /// Whether a failure has been reported to people.
    has_failed: bool,
    /// Headers of each request: session and protocol version.
    named: HeaderMap,
    /// The client's initialization: the request's id, and the message.
    begun: Option<(String, Bytes)>,
    /// Receives the answer to a repeated initialization.
    awaited: Option<oneshot::Sender<Result<(), String>>>,
    /// Requests that the stream must answer, in the older transport.
    open: Vec<Value>,
    /// Cancels reading of the server's stream; there is one at a time.
    stream: CancellationToken,
}

/// Why a message was not posted or not answered.
enum PostError {
    /// The server does not know the session, and has done nothing.
    Lost(String),
    Failed(String),
}

/// Why a stream can't be read.
enum StreamReadError {
    /// The server has none.
    Refused(String),
    Unreached(String),
}

impl From<String> for PostError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl PostError {
    fn reason(self) -> String {
        let (Self::Lost(why) | Self::Failed(why)) = self;
        why
    }
}

impl StreamReadError {
    fn reason(self) -> String {
        let (Self::Refused(why) | Self::Unreached(why)) = self;
        why
    }
}

impl Remote {
    pub fn start(session: &Arc<Session>, url: &str, is_older: bool) -> Arc<Self> {
        let remote = Arc::new(Self {
            url: url.to_owned(),
            is_older,
            endpoint: watch::Sender::new((!is_older).then(|| server_address(url))),
            state: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
        });
        if is_older {
            remote.open_stream(session);
        }
        remote
    }

    fn session_headers(&self) -> HeaderMap {
        self.state.lock().named.clone()
    }

    /// Posts a message. The response to a request arrives before this returns, or later on the server's stream.
    pub async fn send(self: &Arc<Self>, session: &Arc<Session>, message: Message) {
        let (request, method) = (message.request().cloned(), message.method.clone());
        let is_first = request.is_some() && method.as_deref() == Some(INITIALIZE);
        if is_first {
            self.reset_session(session, &message);
        }
        if let Err(why) = self.deliver(session, message, is_first).await {
            // A failed single request is not a failure of the server.
            if is_first {
                self.record_failure(session, &why);
            }
            session.refuse(request.as_ref(), &why).await;
        }
        if method.as_deref() == Some(INITIALIZED) && !self.is_older {
            self.keep_listening(session);
        }
    }

    /// Resets all state: the client initializes a session.
    fn reset_session(self: &Arc<Self>, session: &Arc<Session>, message: &Message) {
        let was_lost = {
            let mut state = self.state.lock();
            state.named.clear();
            state.awaited = None;
            state.has_failed = false;
            state.begun = message
                .request()
                .filter(|_| message.bytes.len() <= bounds::TEXT)
                .map(|id| (id.to_string(), Bytes::copy_from_slice(&message.bytes)));
            let was_lost = std::mem::take(&mut state.is_lost);
            state.number += u64::from(was_lost || !self.is_older);
            was_lost
        };
        if was_lost && self.is_older {
            self.open_stream(session);
        }
    }

    /// Posts a message, and repeats a request once if the server has forgotten the session.
    async fn deliver(
        self: &Arc<Self>,
        session: &Arc<Session>,
        message: Message,
        is_first: bool,
    ) -> Result<(), String> {
        let id = message.request().cloned();
        let is_request = id.is_some() && !is_first;
        let mut is_repeated = false;
        loop {
            // The session may be renewed during the request.
            let (number, named, is_lost) = {
                let state = self.state.lock();
                (state.number, state.named.clone(), state.is_lost)
            };
            if is_lost && !is_request {
                // It belonged to a finished session.
                return Ok(());
            }
            if is_lost {
                self.renew_session(session).await?;
                continue;
            }
            let posted = self.post(session, named, id.as_ref(), is_first, message.bytes.clone());
            match posted.await {
                Err(PostError::Lost(_)) if is_request && !is_repeated => {
                    is_repeated = true;
                    self.mark_lost(number);
                }
                done => return done.map_err(PostError::reason),
            }
        }
    }

    fn mark_lost(&self, number: u64) {
        let mut state = self.state.lock();
        state.is_lost |= state.number == number;
    }

    /// Renews a lost session, unless another request already did.
    async fn renew_session(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), String> {
        let _held = self.renewing.lock().await;
        let (begun, is_lost) = {
            let state = self.state.lock();
            (state.begun.clone(), state.is_lost)
        };
        if !is_lost {
            return Ok(());
        }
        let Some((id, begun)) = begun else {
            session.close_client().await;
            return Err(UNKNOWN.to_owned());
        };
        let renewed = timeout(bounds::WAIT, self.begin_again(session, &id, begun)).await;
        let renewed = renewed.unwrap_or_else(|_| Err("it takes too long".to_owned()));
        renewed.map_err(|why| {
            self.state.lock().awaited = None;
            let why = format!("The MCP server has forgotten its session, and can't start another one: {why}");
            self.record_failure(session, &why);
            why
        })
    }

    async fn begin_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        id: &str,
        begun: Bytes,
    ) -> Result<(), String> {
        let (told, answer) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.number += 1;
            state.named.clear();
            state.awaited = Some(told);
        }
        if self.is_older {
            self.open_stream(session);
        }
        let id: Value = muster_json::from_str(id).unwrap_or_default();
        self.post(session, HeaderMap::new(), Some(&id), true, begun).await.map_err(PostError::reason)?;
        answer.await.unwrap_or_else(|_| Err("it has not answered".to_owned()))?;
        let ready = serde_json::json!({ "jsonrpc": "2.0", "method": INITIALIZED }).to_string();
        let named = self.session_headers();
        self.post(session, named, None, false, ready.into()).await.map_err(PostError::reason)?;
        self.is_renewed()?;
        session.shared.states.report_running(session.key.server_id);
        if !self.is_older {
            self.keep_listening(session);
        }
        Ok(())
    }

    /// Marks the session as renewed. Fails if its stream was cut meanwhile.
    fn is_renewed(&self) -> Result<(), String> {
        let mut state = self.state.lock();
        if let Some(Err(why)) = &*self.endpoint.borrow() {
            return Err(why.clone());
        }
        state.is_lost = false;
        state.has_failed = false;
        Ok(())
    }

    /// Posts a message, and reads the response. `id` is the request's, and `is_first` marks an initialization.
    async fn post(
        &self,
        session: &Session,
        named: HeaderMap,
        id: Option<&Value>,
        is_first: bool,
        message: Bytes,
    ) -> Result<(), PostError> {
        let mut endpoint = self.endpoint.subscribe();
        let endpoint = timeout(bounds::WAIT, endpoint.wait_for(Option::is_some)).await;
        let endpoint = endpoint.ok().and_then(Result::ok).and_then(|endpoint| endpoint.clone());
        let target = endpoint.ok_or_else(|| "It has not named an address in time.".to_owned())??;
        if let Some(id) = id.filter(|id| self.is_older && id.to_string().len() <= bounds::NAME) {
            let mut state = self.state.lock();
            if state.awaited.is_none() && state.open.len() < bounds::LIST {
                state.open.push(id.clone());
            }
        }
        let is_named = named.contains_key(SESSION);
        let asked = self.ask(session, named, Method::POST, target, message).await;
        let answer = asked.inspect_err(|_| self.close_request(id))?;
        let status = answer.status();
        if let Some(name) = answer.headers().get(SESSION).filter(|_| is_first) {
            self.state.lock().named.insert(SESSION, name.clone());
        }
        if !status.is_success() {
            self.close_request(id);
            let why = format!("The MCP server answered with {status}.");
            // The server does not know the session.
            let is_lost = match status {
                StatusCode::NOT_FOUND => self.is_older || is_named,
                StatusCode::GONE => self.is_older,
                _ => false,
            };
            return Err(if is_lost { PostError::Lost(why) } else { PostError::Failed(why) });
        }
        let Some(id) = id.filter(|_| !self.is_older) else { return Ok(()) };
        self.hear_answer(session, &id.to_string(), is_first, answer).await
    }

    /// Reads the response to a request up to its end.
    async fn hear_answer(
        &self,
        session: &Session,
        id: &str,
        is_first: bool,
        answer: Response<Incoming>,
    ) -> Result<(), PostError> {
        let memory = &session.shared.memory;
        let mut events = None;
        let mut next = if is_stream(answer.headers()) {
            events
                .insert(Events::new(answer.into_body(), memory.clone()))
                .next()
                .await
                .map(|event| event.data)
        } else {
            read_whole(answer.into_body(), memory).await
        };
        let mut is_answered = false;
        while let Some(line) = next.take() {
            if is_first && let Some(version) = version(&line.bytes) {
                self.state.lock().named.insert(VERSION, version);
            }
            is_answered |= self.handle_message(session, line).await.as_deref() == Some(id);
            if let Some(events) = &mut events {
                next = events.next().await.map(|event| event.data);
            }
        }
        match (is_answered, events) {
            (true, _) => Ok(()),
            (false, None) => Err("The MCP server did not answer.".to_owned().into()),
            (false, Some(_)) => {
                self.record_failure(session, CUT);
                Err(CUT.to_owned().into())
            }
        }
    }

    /// Handles a message of the server. Returns the id of the answered request.
    async fn handle_message(&self, session: &Session, line: MessageLine) -> Option<String> {
        if let Some(id) = self.has_begun_again(&line.bytes) {
            return Some(id);
        }
        let answers = session.handle_server_line(line).await;
        if answers.is_some() {
            let has_failed = {
                let mut state = self.state.lock();
                state.open.retain(|id| Some(id.to_string()) != answers);
                std::mem::take(&mut state.has_failed)
            };
            if has_failed {
                session.shared.states.report_running(session.key.server_id);
            }
        }
        answers
    }

    /// Handles the answer to a repeated initialization. The client got the first answer long ago.
    fn has_begun_again(&self, answer: &[u8]) -> Option<String> {
        let mut state = self.state.lock();
        state.awaited.as_ref()?;
        let fields = Fields::read(answer)?;
        let id = fields.raw("id").filter(|_| !fields.has("method"))?.to_owned();
        state.begun.as_ref().filter(|(begun, _)| *begun == id)?;
        let told = state.awaited.take()?;
        let words = fields.within("error").and_then(|error| error.text("message"));
        let begins =
            if fields.has("result") { Ok(()) } else { Err(words.unwrap_or_else(|| "it refuses".to_owned())) };
        let _ = told.send(begins);
        Some(id)
    }

    fn close_request(&self, id: Option<&Value>) {
        self.state.lock().open.retain(|open| Some(open) != id);
    }

    /// Records a failure, until the next answer.
    fn record_failure(&self, session: &Session, why: &str) {
        self.state.lock().has_failed = true;
        session.report_failure(why);
    }

    /// Replaces the stream. Returns the token that ends the new one.
    fn next_stream(&self) -> CancellationToken {
        let next = CancellationToken::new();
        std::mem::replace(&mut self.state.lock().stream, next.clone()).cancel();
        next
    }

    /// Reads the stream of the older transport. The session ends with it.
    fn open_stream(self: &Arc<Self>, session: &Arc<Session>) {
        let ends = self.next_stream();
        self.endpoint.send_replace(None);
        let (remote, session) = (Arc::clone(self), Arc::clone(session));
        session.clone().spawn(None, async move {
            let why = match ends.run_until_cancelled(remote.listen(&session)).await {
                None => return,
                Some(Ok(())) => "It has cut its stream.".to_owned(),
                Some(Err(unheard)) => unheard.reason(),
            };
            let open = {
                let mut state = remote.state.lock();
                if ends.is_cancelled() {
                    return;
                }
                state.is_lost = true;
                state.awaited = None;
                remote.endpoint.send_replace(Some(Err(why.clone())));
                std::mem::take(&mut state.open)
            };
            remote.record_failure(&session, &why);
            for id in open {
                session.refuse(Some(&id), CUT).await;
            }
        });
    }

    /// Reads the server's own stream during the session. A server without streams refuses it.
    fn keep_listening(self: &Arc<Self>, session: &Arc<Session>) {
        let ends = self.next_stream();
        let (remote, session) = (Arc::clone(self), Arc::clone(session));
        session.clone().spawn(None, async move {
            let hearing = async {
                while !matches!(remote.listen(&session).await, Err(StreamReadError::Refused(_))) {
                    sleep(Duration::from_secs(5)).await;
                }
            };
            ends.run_until_cancelled(hearing).await;
        });
    }

    /// Reads a stream of the server until it ends.
    async fn listen(&self, session: &Session) -> Result<(), StreamReadError> {
        let own = server_address(&self.url).map_err(StreamReadError::Refused)?;
        let answer = self
            .ask(session, self.session_headers(), Method::GET, own, Bytes::new())
            .await
            .map_err(StreamReadError::Unreached)?;
        if !answer.status().is_success() || !is_stream(answer.headers()) {
            let why = format!("The MCP server answered with {}, and no stream.", answer.status());
            return Err(StreamReadError::Refused(why));
        }
        let mut events = Events::new(answer.into_body(), session.shared.memory.clone());
        while let Some(event) = events.next().await {
            if self.is_older && event.name == "endpoint" {
                self.endpoint.send_replace(Some(endpoint_address(&event.data.bytes, &self.url)));
            } else {
                self.handle_message(session, event.data).await;
            }
        }
        Ok(())
    }

    /// Ends the session, so that the server can forget it.
    pub async fn close(&self, session: &Session) {
        let named = self.session_headers();
        if let Ok(own) = server_address(&self.url)
            && named.contains_key(SESSION)
        {
            let _ =
                timeout(bounds::NETWORK_WAIT, self.ask(session, named, Method::DELETE, own, Bytes::new()))
                    .await;
        }
    }

    /// Sends a request, with the server's headers from the current rules.
    async fn ask(
        &self,
        session: &Session,
        named: HeaderMap,
        method: Method,
        target: Uri,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let shared = &session.shared;
        let mut request = Request::new(if body.is_empty() { empty() } else { full(body) });
        let headers = request.headers_mut();
        *headers = named;
        let accept = if method == Method::POST { EITHER } else { STREAM };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let rules = shared.rules.borrow().clone();
        if let Some(McpTransport::Http { headers: own, .. } | McpTransport::Sse { headers: own, .. }) =
            rules.as_ref().and_then(|rules| session.server_of(rules)).map(|server| &server.transport)
        {
            forward::add_headers(headers, own);
        }
        (*request.method_mut(), *request.uri_mut()) = (method, target);
        let (host, port) = forward::host_and_port(request.uri());
        forward::exchange(shared, request).await.map_err(|failed| match failed {
            ExchangeError::NotPublic(reason) => {
                shared.refusals.count(&host, port, &format!("{reason}."));
                format!("{reason}.")
            }
            ExchangeError::Broken(reason) => format!("{host} did not answer: {reason}."),
            ExchangeError::Late => format!("{host} did not answer in time."),
        })
    }
}

/// The server's own address.
fn server_address(url: &str) -> Endpoint {
    forward::below(url, "", None).map_err(|astray| astray.to_string())
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with(STREAM))
}

/// The protocol version chosen by the server.
fn version(answer: &[u8]) -> Option<HeaderValue> {
    let result = Fields::read(answer)?.within("result")?;
    HeaderValue::try_from(result.text("protocolVersion")?).ok()
}

/// The address named by a server of the older transport. It must have the server's origin.
fn endpoint_address(data: &[u8], url: &str) -> Endpoint {
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
        let named = |data: &str| {
            endpoint_address(data.as_bytes(), "https://m.example/a/sse").ok().map(|uri| uri.to_string())
        };
        assert_eq!(named("messages?id=1").as_deref(), Some("https://m.example/a/messages?id=1"));
        assert_eq!(named("/a/messages?id=1").as_deref(), Some("https://m.example/a/messages?id=1"));
        assert_eq!(named("https://x:y@m.example/b#c").as_deref(), Some("https://m.example/b"));
        assert_eq!(named("https://other.example/messages"), None);
        assert_eq!(named("//other.example/messages"), None);
    }
}
