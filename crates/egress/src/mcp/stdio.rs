//! MCP servers that are programs: the host runs them outside of the agent's sandbox, in one of their own, and offers them over
//! streamable HTTP. So their secrets never come near the agent.
//!
//! Each session of a client has a process of its own. Messages pass as they are, whatever they are about: answers go to the
//! request that waits for them, everything else to the client's stream of events.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use muster_protocol::plan::McpServer;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{Message, Posted};
use crate::{
    answers::{Answer, BodyError, empty, json, refusal},
    forward::PATIENCE,
    shared::Shared,
};

/// Names a session.
const SESSION: &str = "mcp-session-id";
/// The session of clients that know no sessions.
const COMMON: &str = "";
/// How many processes a server may have. The one that was unused for the longest time makes room.
const MOST_SESSIONS: usize = 16;
/// The longest line of a server, in bytes.
const LONGEST_LINE: u64 = 8 * 1024 * 1024;
/// How many messages wait for a stream of events. Further ones are dropped.
const MOST_EVENTS: usize = 256;
/// How long a line may take to be written.
const WRITING: Duration = Duration::from_secs(30);

/// The processes of a gate's servers. They end with it.
#[derive(Default)]
pub struct Servers(Mutex<HashMap<(Server, String), Arc<Session>>>);

/// A server as it was when its process began: a changed one gets another. A digest, since it has secrets.
type Server = u64;

fn digest(server: &McpServer) -> Server {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(server).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// A process.
struct Session {
    /// Whoever writes takes it, and puts it back after a whole line.
    input: tokio::sync::Mutex<Option<Input>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    events: tokio::sync::Mutex<mpsc::Receiver<Value>>,
    used: Mutex<Instant>,
}

/// What a process reads. It ends when this is dropped, as by a writer that is cut off: whatever came after half a line would
/// only be the rest of it, and nobody would be answered any more.
struct Input {
    stdin: ChildStdin,
    _ends: oneshot::Sender<()>,
}

/// Answers a request to a program.
pub async fn answer(shared: &Arc<Shared>, server: &McpServer, message: Message) -> Answer {
    let named = message.headers.get(SESSION).and_then(|name| name.to_str().ok()).map(str::to_owned);
    let key = |session: &str| (digest(server), session.to_owned());
    if message.method == Method::DELETE {
        let ended = named.and_then(|name| shared.servers.lock().remove(&key(&name)));
        return status(if ended.is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND });
    }
    let method = message.body.as_ref().and_then(|body| body.method.as_deref());
    let is_new = method == Some("initialize");
    let name = match (is_new, named) {
        (true, _) => fresh_name(),
        (false, Some(name)) => name,
        (false, None) => COMMON.to_owned(),
    };
    let found = shared.servers.lock().get(&key(&name)).cloned();
    let session = match found {
        Some(session) => session,
        None if is_new || name == COMMON => match shared.servers.begin(shared, server, key(&name)) {
            Ok(session) => session,
            Err(error) => {
                let words = format!("The MCP server {} can't be started: {error}.", server.name);
                return refusal(StatusCode::BAD_GATEWAY, &words);
            }
        },
        // As the protocol has it: the client begins another session.
        None => return refusal(StatusCode::NOT_FOUND, "This session has ended."),
    };
    *session.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    let mut answer = match (&message.method, message.body) {
        (&Method::POST, Some(body)) => session.post(body).await,
        (&Method::GET, _) => session.listen(),
        _ => status(StatusCode::METHOD_NOT_ALLOWED),
    };
    if let Ok(value) = HeaderValue::from_str(&name)
        && is_new
    {
        answer.headers_mut().insert(SESSION, value);
    }
    answer
}

fn status(status: StatusCode) -> Answer {
    let mut answer = Response::new(empty());
    *answer.status_mut() = status;
    answer
}

fn fresh_name() -> String {
    let mut bytes = [0; 16];
    // Without randomness, names still differ: the session map is this agent's alone.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Servers {
    /// Ends the processes of servers that are assigned no more, or have changed.
    pub fn keep(&self, servers: &[McpServer]) {
        let kept: Vec<Server> = servers.iter().map(digest).collect();
        self.lock().retain(|(server, _), _| kept.contains(server));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(Server, String), Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(
        &self,
        shared: &Arc<Shared>,
        server: &McpServer,
        key: (Server, String),
    ) -> std::io::Result<Arc<Session>> {
        let mut command = shared.outside.program(server)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let (events, listening) = mpsc::channel(MOST_EVENTS);
        let (ends, ended) = oneshot::channel();
        let session = Arc::new(Session {
            input: Some(Input { stdin, _ends: ends }).into(),
            waiting: Mutex::default(),
            events: listening.into(),
            used: Instant::now().into(),
        });
        let mut all = self.lock();
        if all.keys().filter(|(name, _)| *name == key.0).count() >= MOST_SESSIONS {
            let used = |session: &Session| *session.used.lock().unwrap_or_else(PoisonError::into_inner);
            let oldest =
                all.iter().filter(|((name, _), _)| *name == key.0).min_by_key(|(_, session)| used(session));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(key.clone(), Arc::clone(&session));
        drop(all);
        let (weak, shared, name) = (Arc::downgrade(&session), Arc::clone(shared), server.name.clone());
        let closing = shared.closing.clone();
        shared.clone().tasks.spawn(async move {
            let reading = read(output, |message| match weak.upgrade() {
                Some(session) => session.said(message, &events),
                None => false,
            });
            tokio::select! {
                () = reading => {}
                _ = ended => {}
                () = closing.cancelled() => {}
            }
            shared.servers.lock().remove(&key);
            if let Some(session) = weak.upgrade() {
                // Nobody answers any more.
                session.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            end(child, &shared, &name).await;
        });
        Ok(session)
    }
}

/// Ends a process: its stdin is closed already, or nobody is left who could write.
async fn end(mut child: Child, shared: &Shared, name: &str) {
    let status = match timeout(Duration::from_secs(2), child.wait()).await {
        Ok(status) => status,
        Err(_) => match child.start_kill() {
            Ok(()) => child.wait().await,
            Err(error) => Err(error),
        },
    };
    shared.outside.program_ended(name, status);
}

/// Reads lines until they end, are too long, or nobody wants them.
async fn read(output: ChildStdout, mut take: impl FnMut(Value) -> bool) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(count) if count > 0 && line.ends_with(b"\n") => {}
            _ => return,
        }
        // Whatever is not a message is noise.
        if let Ok(message) = serde_json::from_slice::<Value>(&line)
            && message.is_object()
            && !take(message)
        {
            return;
        }
    }
}

impl Session {
    /// The process has said something.
    fn said(&self, message: Value, events: &mpsc::Sender<Value>) -> bool {
        let is_answer = message.get("method").is_none();
        let waits = message.get("id").filter(|_| is_answer).and_then(|id| {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string())
        });
        match waits {
            Some(waits) => _ = waits.send(message),
            None if is_answer => {}
            None => _ = events.try_send(message),
        }
        true
    }

    async fn post(&self, body: Posted) -> Answer {
        let id = body.id.filter(|id| !id.is_null() && body.method.is_some());
        let answered = id.map(|id| {
            let (answered, answer) = oneshot::channel();
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.retain(|_, waits| !waits.is_closed());
            waiting.insert(id.to_string(), answered);
            answer
        });
        let writing = async {
            let mut place = self.input.lock().await;
            let mut input = place.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
            input.stdin.write_all(&body.bytes).await?;
            input.stdin.write_all(b"\n").await?;
            input.stdin.flush().await?;
            *place = Some(input);
            Ok::<_, std::io::Error>(())
        };
        if !matches!(timeout(WRITING, writing).await, Ok(Ok(()))) {
            return refusal(StatusCode::BAD_GATEWAY, "The MCP server has ended.");
        }
        let Some(answered) = answered else { return status(StatusCode::ACCEPTED) };
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => json(StatusCode::OK, &answer),
            Ok(Err(_)) => refusal(StatusCode::BAD_GATEWAY, "The MCP server has ended."),
            Err(_) => refusal(StatusCode::GATEWAY_TIMEOUT, "The MCP server did not answer in time."),
        }
    }

    /// What the process says by itself, as events.
    fn listen(self: Arc<Self>) -> Answer {
        let stream = futures::stream::unfold(self, |session| async move {
            let message = session.events.lock().await.recv().await?;
            Some((message, session))
        });
        let frames = stream.map(|message| {
            let event = format!("event: message\ndata: {message}\n\n");
            Ok::<_, BodyError>(Frame::data(Bytes::from(event)))
        });
        let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
        let kind = HeaderValue::from_static("text/event-stream");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        answer
    }
}
