//! A client of an MCP server: its messages are read, judged, and forwarded to the server.

use std::sync::Arc;

use bytes::Bytes;
use muster_protocol::plan::{McpServer, McpTransport};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};

use super::{
    lines::{Lines, MessageLine},
    message::{Message, Rejection},
    program,
    remote::Remote,
    server_states::CountedSession,
    session::{ClientOutput, INITIALIZE, LISTS, MAX_OPEN, Session, SessionKey, TAKEN, Tag, error},
};
use crate::shared::Shared;

const CROWDED: &str = "Too many requests to this server are open. Try again later.";
const NOT_BEGUN: &str =
    "This MCP server was changed after the session was opened. The next session reaches it.";

/// The destination of the client's messages.
enum Server {
    /// A program started by the client's relay.
    Relayed,
    Program(mpsc::Sender<Bytes>),
    Remote(Arc<Remote>),
    /// Unavailable, for this reason.
    None(String),
}

/// A client and its server.
struct Client {
    session: Arc<Session>,
    /// Whether it is a test of the server, for which the host starts any program.
    is_test: bool,
    server: Mutex<Arc<Server>>,
}

/// Serves a client until it leaves, its server ends, or the agent is stopped.
pub async fn serve(shared: Arc<Shared>, key: SessionKey, stream: UnixStream, is_test: bool) {
    let Some(rules) = shared.rules().await else { return };
    let (from, to) = stream.into_split();
    let mut lines = Lines::new(from, shared.memory.clone());
    let is_relay = match lines.peek().await {
        Some(b'+') => lines.next().await.is_some(),
        Some(_) => false,
        None => return,
    };
    let (session, waiting) = Session::new(shared, key, &rules);
    let nowhere = Mutex::new(Arc::new(Server::None(TAKEN.to_owned())));
    let client = Arc::new(Client { session: Arc::clone(&session), is_test, server: nowhere });
    let _ends = AbortOnDrop(Arc::clone(&client));
    let began_with = session.server_of(&rules).cloned();
    let _counts = began_with.as_ref().map(|_| CountedSession::begin(&session.shared.states, key.server_id));
    if let Some(server) = &began_with {
        let begun = client.connect_server(server, is_relay).unwrap_or_else(|why| {
            session.report_failure(&why);
            Server::None(why)
        });
        client.turn_to(begun);
    }
    tokio::select! {
        () = write(to, waiting, is_relay) => {}
        () = client.read(lines, is_relay) => {}
        () = client.rules_change(began_with) => {}
    }
}

/// Ends the tasks of a session on drop.
struct AbortOnDrop(Arc<Client>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        let Self(client) = self;
        client.session.open.lock().tasks.abort_all();
        let before = client.turn_to(Server::None(TAKEN.to_owned()));
        if let Server::Remote(remote) = &*before {
            let (remote, session) = (Arc::clone(remote), Arc::clone(&client.session));
            session.shared.clone().tasks.spawn(async move { remote.close(&session).await });
        }
    }
}

async fn write(mut to: OwnedWriteHalf, mut waiting: mpsc::Receiver<ClientOutput>, is_relay: bool) {
    while let Some(ClientOutput::Line(tag, bytes)) = waiting.recv().await {
        let tag = [tag as u8];
        let tag = if is_relay { &tag[..] } else { &[] };
        for part in [tag, &bytes, b"\n"] {
            if to.write_all(part).await.is_err() {
                return;
            }
        }
    }
}

impl Client {
    fn server(&self) -> Arc<Server> {
        Arc::clone(&self.server.lock())
    }

    fn turn_to(&self, server: Server) -> Arc<Server> {
        std::mem::replace(&mut *self.server.lock(), Arc::new(server))
    }

    /// Connects to the server, or returns the reason for a failure.
    fn connect_server(&self, server: &McpServer, is_relay: bool) -> Result<Server, String> {
        Ok(match &server.transport {
            McpTransport::Stdio { .. } if server.runs_in_sandbox() && !self.is_test => {
                if !is_relay {
                    return Err(NOT_BEGUN.to_owned());
                }
                Server::Relayed
            }
            McpTransport::Stdio { .. } => {
                let why = |error| format!("The MCP server {} can't be started: {error}.", server.name);
                Server::Program(program::start(&self.session, server).map_err(why)?)
            }
            McpTransport::Http { url, .. } => Server::Remote(Remote::start(&self.session, url, false)),
            McpTransport::Sse { url, .. } => Server::Remote(Remote::start(&self.session, url, true)),
        })
    }

    async fn read(self: &Arc<Self>, mut lines: Lines<OwnedReadHalf>, is_relay: bool) {
        while let Some(mut line) = lines.next().await {
            let tag = if is_relay && !line.bytes.is_empty() { line.bytes.remove(0) } else { b'>' };
            // Only the relay that runs a program may send its output.
            let is_relayed = matches!(*self.server(), Server::Relayed);
            match tag {
                b'>' => self.handle_client_line(line).await,
                b'<' if is_relayed => _ = self.session.handle_server_line(line).await,
                b'!' if is_relayed => {
                    self.session.record_stderr(&line.bytes);
                    self.session.record_stderr(b"\n");
                }
                b'.' if is_relayed => {
                    let how = String::from_utf8_lossy(&line.bytes).into_owned();
                    self.session.report_failure(&format!(
                        "It has exited ({}).",
                        how.chars().take(40).collect::<String>()
                    ));
                }
                _ => {}
            }
        }
    }

    /// Returns when the session must end: the agent is stopped, or the server was replaced. The session of a server
    /// removed from the agent stays: the server ends, and the client gets the reason.
    async fn rules_change(&self, began_with: Option<McpServer>) {
        let mut rules = self.session.shared.rules.clone();
        loop {
            if let Some(rules) = rules.borrow_and_update().clone() {
                let is_other = self
                    .session
                    .server_of(&rules)
                    .map(|now| began_with.as_ref().is_none_or(|before| !before.sessions_survive(now)));
                if rules.stopped || is_other == Some(true) {
                    return;
                }
                if is_other.is_none() {
                    self.turn_to(Server::None(TAKEN.to_owned()));
                }
            }
            if rules.changed().await.is_err() {
                return;
            }
        }
    }

    async fn handle_client_line(self: &Arc<Self>, line: MessageLine) {
        let mut message = match Message::read(&self.session.shared, line).await {
            Ok(message) => message,
            Err(Rejection { id, why }) => return self.session.answer(error(id.as_ref(), why)).await,
        };
        if let Some(id) = &message.cancels
            && let Some(request) = self.session.open.lock().requests.remove(&id.to_string())
        {
            request.abort();
        }
        if let Some(why) = self.session.refusal_for(&message) {
            return self.session.refuse(message.request(), &why).await;
        }
        let called = message.call.take();
        let is_remote = matches!(*self.server(), Server::Remote(_));
        let Some(id) = message.request().filter(|_| called.is_some() || is_remote).cloned() else {
            // In order. A call is always a request: one without an id is not parsed as a message.
            return self.forward(message).await;
        };
        let client = Arc::clone(self);
        let is_open = self.session.spawn(Some(id.to_string()), async move {
            let judged = match called {
                Some(called) => client.session.authorize_call(called).await,
                None => Ok(()),
            };
            match judged {
                Ok(()) => client.forward(message).await,
                Err(reason) => client.session.answer(refused_call(message.id.as_ref(), &reason)).await,
            }
        });
        if !is_open {
            self.session.answer(error(Some(&id), CROWDED)).await;
        }
    }

    /// Forwards a message to the server.
    async fn forward(&self, message: Message) {
        let telling =
            [INITIALIZE, LISTS].into_iter().find(|method| message.method.as_deref() == Some(method));
        if let Some((method, id)) = telling.zip(message.request()) {
            let mut asked = self.session.asked.lock();
            if asked.len() < MAX_OPEN {
                asked.insert(id.to_string(), method);
            }
        }
        let server = self.server();
        if !matches!(*server, Server::None(_)) {
            self.note_use();
        }
        match &*server {
            Server::Relayed => {
                _ = self.session.out.send(ClientOutput::Line(Tag::ToServer, message.bytes)).await;
            }
            Server::Program(input) => _ = input.send(message.bytes).await,
            Server::Remote(remote) => remote.send(&self.session, message).await,
            Server::None(reason) => self.session.refuse(message.request(), reason).await,
        }
    }

    /// Notes that the server's credentials are used.
    fn note_use(&self) {
        let rules = self.session.shared.rules.borrow().clone();
        if let Some(server) = rules.as_ref().and_then(|rules| self.session.server_of(rules)) {
            self.session.shared.uses.note(&server.credential_ids);
        }
    }
}

/// The result of a refused call: a tool error, which the model reads.
fn refused_call(id: Option<&Value>, reason: &str) -> Value {
    let result = json!({ "content": [{ "type": "text", "text": reason }], "isError": true });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}
