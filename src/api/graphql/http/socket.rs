//! Operations over a WebSocket: the protocol `graphql-transport-ws`.
//!
//! async-graphql speaks the protocol's messages. This guard adds the rest: deadlines, keep-alive, the number of
//! operations, duplicate ids, expiring credentials, the message `error`, and the protocol's own close codes (the
//! library uses some from other protocols).
//!
//! ```text
//! client ── read ──► async-graphql ──► write ── client
//!             │            │ each operation: Session::stream_responses
//!             └─ close with a code: 4400, 4401, 4403, 4408, 4409, 4429, 1001
//! ```

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_graphql::{
    Data, Executor,
    http::{ClientMessage, WebSocketProtocols},
};
use async_graphql_axum::{GraphQLProtocol, GraphQLWebSocket};
use axum::{
    Error,
    extract::{
        FromRequestParts, WebSocketUpgrade,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket},
    },
    response::Response,
};
use futures::{
    SinkExt, StreamExt,
    channel::mpsc,
    stream::{self, BoxStream, SplitSink, SplitStream},
};
use http::{HeaderValue, header};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{interval, timeout},
};

use super::{
    request::Operation,
    run::{Session, refused, too_many},
};
use crate::{
    api::middleware::bearer_of,
    base::{bounds, problem::Problem},
    core::{
        Core,
        resource_limits::{Held, Holder, Resource},
    },
    read::SharedBudget,
    resolvers::RECHECK,
};

const PROTOCOL: &str = "graphql-transport-ws";
/// The maximum number of concurrent operations on one socket: each holds memory and is checked repeatedly, for as long
/// as its caller likes.
const MAX_OPERATIONS: usize = 100;
/// The largest message from a client, which could fill the memory. Larger operations must be sent as requests.
const LARGEST_MESSAGE: usize = 256 << 10;
/// Marks the response to an operation that is not executed, until it is written as an `error`.
const REFUSED: &str = "refused";

/// Answers the handshake. The session comes from its headers until the client sends `connection_init`.
///
/// # Errors
/// `RATE_LIMITED` for a caller who already has the maximum number of sockets.
pub fn upgrade(
    core: Arc<Core>,
    session: Session,
    request_id: String,
    handshake: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let place = core.resource_limits.limit(Resource::Sockets).take(session.holder(), 1)?;
    let most = core.config.limits.body_bytes.min(LARGEST_MESSAGE);
    let handshake = handshake.max_message_size(most).max_frame_size(most).protocols([PROTOCOL]);
    let agreed = handshake.selected_protocol().is_some();
    Ok(handshake.on_upgrade(move |mut socket| async move {
        if agreed {
            serve(Arc::new(Socket::new(core, session, place, request_id)), socket).await;
        } else {
            let frame = close(4406, "Subprotocol not acceptable: use graphql-transport-ws");
            let _ = timeout(bounds::BRIEF_WAIT, socket.send(Message::Close(Some(frame)))).await;
        }
    }))
}

struct Socket {
    core: Arc<Core>,
    request_id: String,
    /// The session from the handshake's headers.
    arrived: Session,
    /// The session after `connection_init`.
    session: OnceLock<Session>,
    /// The reservation in the resource limits: for the IP address at first, then for the caller.
    place: Mutex<Held>,
    /// The running operations by id, with the resource limits entry of any whose message wasn't small.
    running: Mutex<HashMap<String, Option<Held>>>,
    /// The operations that the client has ended and the library has not completed yet. The client may reuse their ids.
    stopped: Mutex<Vec<String>>,
    /// The close code for a client whose `connection_init` was refused.
    refusal: OnceLock<u16>,
    slots: Arc<Semaphore>,
}

async fn serve(socket: Arc<Socket>, connection: WebSocket) {
    let _working = socket.core.tasks.hold_shutdown();
    let stopping = socket.core.tasks.stopping.clone();
    let Some(protocol) = protocol().await else { return };
    let (mut to_client, mut from_client) = connection.split();
    let (in_sender, in_receiver) = mpsc::channel(8);
    // No buffer: answers are large, and the next one should not be computed while one waits for the client.
    let (out_sender, out_receiver) = mpsc::channel(0);
    let introduced = Arc::clone(&socket);
    let library =
        GraphQLWebSocket::new_with_pair(out_sender, in_receiver, Operations(Arc::clone(&socket)), protocol)
            .on_connection_init(move |payload| async move { introduced.handle_init(&payload).await })
            .serve();
    let ended = {
        let answering = async {
            tokio::join!(library, socket.write(&mut to_client, out_receiver));
            None
        };
        tokio::select! {
            ended = answering => ended,
            ended = socket.read(&mut from_client, in_sender) => ended,
            ended = socket.wait_for_expiry() => Some(ended),
            () = stopping.cancelled() => Some(close(1001, "The service is shutting down")),
        }
    };
    if let Some(frame) = ended {
        let farewell = async {
            let _ = to_client.send(Message::Close(Some(frame))).await;
            // Wait until the client has closed too, or it might not see the frame.
            while let Some(Ok(_)) = from_client.next().await {}
        };
        let _ = timeout(bounds::BRIEF_WAIT, farewell).await;
    } else {
        // The client has closed. This closes our half.
        let _ = timeout(bounds::BRIEF_WAIT, to_client.close()).await;
    }
}

/// What the library's extractor would produce for our only protocol.
async fn protocol() -> Option<GraphQLProtocol> {
    debug_assert_eq!(WebSocketProtocols::GraphQLWS.sec_websocket_protocol(), PROTOCOL);
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    GraphQLProtocol::from_request_parts(&mut parts, &()).await.ok()
}

fn close(code: u16, reason: &str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

impl Socket {
    fn new(core: Arc<Core>, arrived: Session, place: Held, request_id: String) -> Self {
        Self {
            core,
            request_id,
            refusal: OnceLock::new(),
            arrived: arrived.with_budget(SharedBudget::new("socket")),
            session: OnceLock::new(),
            place: Mutex::new(place),
            running: Mutex::default(),
            stopped: Mutex::default(),
            slots: Arc::new(Semaphore::new(MAX_OPERATIONS)),
        }
    }

    /// Handles `connection_init`. Its payload may carry the credential that a browser can't put in a header. A
    /// socket is useless without one, because signing in is a request.
    async fn handle_init(&self, payload: &serde_json::Value) -> async_graphql::Result<Data> {
        let introduced = self.authenticate(payload).await;
        introduced.map_err(|problem| {
            let _ = self.refusal.set(self.code_of(&problem));
            problem.into()
        })
    }

    /// The close code for a problem with the credential. At 4401, a browser checks whether its cookie is still valid.
    fn code_of(&self, problem: &Problem) -> u16 {
        match problem.code.status() {
            http::StatusCode::UNAUTHORIZED if self.arrived.has_cookie() => 4401,
            http::StatusCode::BAD_REQUEST => 4400,
            _ => 4403,
        }
    }

    async fn authenticate(&self, payload: &serde_json::Value) -> Result<Data, Problem> {
        let session = self.arrived.clone();
        let given = payload.get("Authorization").or_else(|| payload.get("authorization"));
        let session = match given {
            None | Some(serde_json::Value::Null) => session,
            Some(given) => session.with_bearer(bearer_of(given.as_str().unwrap_or_default())?).await?,
        };
        session.caller().require_identity()?;
        self.move_place(session.holder())?;
        let _ = self.session.set(session);
        Ok(Data::default())
    }

    /// Moves the socket's reservation in the resource limits from the address to the caller.
    fn move_place(&self, holder: Holder) -> Result<(), Problem> {
        let mut place = self.place.lock();
        if place.holder() != holder {
            *place = self.core.resource_limits.limit(Resource::Sockets).take(holder, 1)?;
        }
        Ok(())
    }

    /// Passes on the client's messages while they follow the protocol. Returns how to close.
    async fn read(
        &self,
        from_client: &mut SplitStream<WebSocket>,
        mut to_library: mpsc::Sender<Result<Message, Error>>,
    ) -> Option<CloseFrame> {
        let mut introduced = false;
        let deadline = tokio::time::Instant::now() + self.core.config.limits.socket_init();
        loop {
            let message = if introduced {
                timeout(Duration::from_secs(65), from_client.next())
                    .await
                    .map_err(|_| close(1001, "No response to ping"))
            } else {
                let next = tokio::time::timeout_at(deadline, from_client.next()).await;
                next.map_err(|_| close(4408, "Connection initialisation timeout"))
            };
            let message = match message {
                Ok(Some(Ok(message @ (Message::Text(_) | Message::Binary(_))))) => message,
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
                Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return None,
                Err(frame) => return Some(frame),
            };
            if let Err(frame) = self.check_message(&message, &mut introduced) {
                return Some(frame);
            }
            to_library.send(Ok(message)).await.ok()?;
        }
    }

    fn check_message(&self, message: &Message, introduced: &mut bool) -> Result<(), CloseFrame> {
        let bytes = match message {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) => bytes,
            _ => return Ok(()),
        };
        let message = ClientMessage::from_bytes(bytes).map_err(|_| close(4400, "Invalid message"))?;
        let mut running = self.running.lock();
        match message {
            ClientMessage::ConnectionInit { .. } if *introduced => {
                return Err(close(4429, "Too many initialisation requests"));
            }
            ClientMessage::ConnectionInit { .. } => *introduced = true,
            ClientMessage::Start { .. } if !*introduced => return Err(close(4401, "Unauthorized")),
            ClientMessage::Start { id, .. } => {
                if running.contains_key(&id) {
                    return Err(close(4409, &format!("Subscriber for {id:.60} already exists")));
                }
                running.insert(id, self.reserve_message(bytes.len())?);
            }
            ClientMessage::Stop { id } => {
                if running.remove(&id).is_some() {
                    self.stopped.lock().push(id);
                }
            }
            ClientMessage::ConnectionTerminate => return Err(close(4400, "Invalid message")),
            ClientMessage::Ping { .. } | ClientMessage::Pong { .. } => {}
        }
        Ok(())
    }

    /// Enters a message that starts an operation into the resource limits, for as long as the operation runs.
    fn reserve_message(&self, bytes: usize) -> Result<Option<Held>, CloseFrame> {
        let held = self.session.get().unwrap_or(&self.arrived).reserve_request(bytes);
        held.map_err(|problem| close(1013, problem.code.as_str()))
    }

    /// Sends answers and pings to the client.
    async fn write(
        &self,
        to_client: &mut SplitSink<WebSocket, Message>,
        mut from_library: mpsc::Receiver<Message>,
    ) {
        // Three times before a silent client is closed.
        let mut ping = interval(Duration::from_secs(20));
        let mut refused = HashMap::new();
        loop {
            let message = tokio::select! {
                message = from_library.next() => match message {
                    Some(message) => message,
                    None => return,
                },
                _ = ping.tick() => Message::Ping(bytes::Bytes::new()),
            };
            let message = match message {
                // The library's close code for a client it refuses.
                Message::Close(Some(frame)) if frame.code == 1002 => Message::Close(Some(CloseFrame {
                    code: self.refusal.get().copied().unwrap_or(4403),
                    ..frame
                })),
                Message::Text(text) => match self.as_protocol(text, &mut refused) {
                    Some(text) => Message::Text(text),
                    None => continue,
                },
                message => message,
            };
            let Ok(waiting) = self.reserve_answer(&message) else { return };
            if to_client.send(message).await.is_err() {
                return;
            }
            drop(waiting);
        }
    }

    /// Enters a message into the resource limits until it is sent.
    fn reserve_answer(&self, message: &Message) -> Result<Option<Held>, Problem> {
        let bytes = if let Message::Text(text) = message { text.len() } else { 0 };
        let (line, holder) = (
            self.core.resource_limits.limit(Resource::Answers),
            self.session.get().unwrap_or(&self.arrived).holder(),
        );
        line.take_piece(holder, bytes)
    }

    /// Translates a message of the library to the protocol. The library refuses an operation with `next` and then
    /// `complete`; the protocol has one `error` for both, after which the id can be reused, as after `complete`. The
    /// library also sends `complete` for an operation that the client has ended, which would end the next one with its
    /// id.
    fn as_protocol(
        &self,
        text: Utf8Bytes,
        refused: &mut HashMap<String, Vec<serde_json::Value>>,
    ) -> Option<Utf8Bytes> {
        if let Some(Refusal { id, payload }) = Refusal::read(&text) {
            refused.insert(id, payload.errors);
            return None;
        }
        let Some(Complete { id }) = Complete::read(&text) else { return Some(text) };
        let errors = refused.remove(&id);
        if self.was_stopped(&id) {
            return None;
        }
        self.running.lock().remove(&id);
        Some(match errors {
            Some(errors) => json!({ "type": "error", "id": id, "payload": errors }).to_string().into(),
            None => text,
        })
    }

    /// Whether the client had ended this operation. Forgets it.
    fn was_stopped(&self, id: &str) -> bool {
        let mut stopped = self.stopped.lock();
        let at = stopped.iter().position(|stopped| stopped == id);
        at.map(|at| stopped.swap_remove(at)).is_some()
    }

    /// Waits until the credential expires. The client reconnects with a new one.
    async fn wait_for_expiry(&self) -> CloseFrame {
        let mut recheck = interval(RECHECK);
        let mut forgotten = self.core.access.cache.invalidated();
        loop {
            tokio::select! {
                _ = recheck.tick() => {}
                _ = forgotten.changed() => {}
            }
            let Some(session) = self.session.get() else { continue };
            match session.recheck().await {
                Err(problem) if problem.code.status() == http::StatusCode::UNAUTHORIZED => {
                    return close(self.code_of(&problem), problem.code.as_str());
                }
                _ => {}
            }
        }
    }

    fn start_operation(
        &self,
        request: async_graphql::Request,
    ) -> BoxStream<'static, async_graphql::Response> {
        let refuse = |response: async_graphql::Response| {
            stream::once(async { response.extension(REFUSED, true.into()) }).boxed()
        };
        let Some(session) = self.session.get() else {
            let problem = Problem::internal(anyhow::anyhow!("an operation before the introduction"));
            return refuse(refused(&problem, &self.request_id));
        };
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            return refuse(refused(&too_many(MAX_OPERATIONS), &self.request_id));
        };
        let operation = Operation::new(request.query, request.operation_name, request.variables);
        match session.stream_responses(operation) {
            Ok(responses) => responses.inspect(move |_| _ = &slot).boxed(),
            Err(unfit) => refuse(*unfit),
        }
    }
}

/// The library's `next` for an operation that is not executed.
#[derive(serde::Deserialize)]
struct Refusal {
    id: String,
    payload: RefusedPayload,
}

#[derive(serde::Deserialize)]
struct RefusedPayload {
    #[serde(rename = "extensions")]
    _extensions: Mark,
    errors: Vec<serde_json::Value>,
}

#[derive(serde::Deserialize)]
struct Mark {
    #[serde(rename = "refused")]
    _refused: bool,
}

impl Refusal {
    fn read(text: &str) -> Option<Self> {
        // Answers can be large, and have no extensions.
        let can_be = text.starts_with(r#"{"type":"next""#) && text.contains(r#""data":null,"extensions":"#);
        can_be.then(|| muster_json::from_str(text).ok()).flatten()
    }
}

/// The library's `complete`.
#[derive(serde::Deserialize)]
struct Complete {
    id: String,
}

impl Complete {
    fn read(text: &str) -> Option<Self> {
        text.starts_with(r#"{"type":"complete""#).then(|| muster_json::from_str(text).ok()).flatten()
    }
}

/// Runs operations for the library.
#[derive(Clone)]
struct Operations(Arc<Socket>);

impl Executor for Operations {
    async fn execute(&self, request: async_graphql::Request) -> async_graphql::Response {
        let first = self.0.start_operation(request).next().await;
        first.unwrap_or_else(|| async_graphql::Response::new(async_graphql::Value::Null))
    }

    fn execute_stream(
        &self,
        request: async_graphql::Request,
        _: Option<Arc<Data>>,
    ) -> BoxStream<'static, async_graphql::Response> {
        self.0.start_operation(request)
    }
}
