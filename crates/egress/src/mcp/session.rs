//! One client of an MCP server: what it says is judged, what the server says is looked at, and both are passed on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use muster_protocol::plan::{Crossing, McpServer, McpTransport};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use super::{
    lines::{Line, Lines},
    message::{Called, Message, Refused},
    program,
    remote::Remote,
    states::{self, Counted},
};
use crate::{
    fields::Fields,
    outside::{Asking, Verdict},
    room,
    rules::Rules,
    shared::Shared,
};

/// The kind of tool that tools of MCP servers are.
const TOOL_KIND: &str = "other";
/// How many requests of a client may be open at the same time that wait here: for a verdict, or for a server over HTTP. An agent
/// could send any number.
const MOST_OPEN: usize = 32;
/// The methods that begin a session, the one that lists tools, and how many tools are reported.
pub const INITIALIZE: &str = "initialize";
pub const INITIALIZED: &str = "notifications/initialized";
const LISTS: &str = "tools/list";
/// What a client may ask of a server whose group of tools is switched off: to go on, and what there would be. All else reads from it
/// or has it do something.
const HARMLESS: [&str; 6] =
    [INITIALIZE, "ping", LISTS, "prompts/list", "resources/list", "resources/templates/list"];
const MOST_TOOLS: usize = 256;
/// The longest name of a tool that people are shown, in bytes. A report of all of them fits into a frame of the gateway.
const LONGEST_TOOL: usize = 128;
/// How much of a standard error is kept, in bytes: more than people are shown, so that no secret is cut before it is hidden.
const KEPT_STDERR: usize = 3 * states::LONGEST_STDERR;
/// How many lines wait to be written to a client.
const WAITING: usize = 8;
/// The code of an error that is not the server's.
const REFUSED: i64 = -32_000;

const ASKED: &str = "Asked. Nobody has answered yet, and the call was not made. End your turn now: the answer comes as the next \
                     message of this conversation. Don't ask again.";
const AWAY: &str = "The control plane can't be reached. Try again later.";
const CROWDED: &str = "Too many requests to this server are open. Try again later.";
const NOT_BEGUN: &str =
    "This MCP server was changed after the session was opened. The next session reaches it.";
const TAKEN: &str = "This agent no longer has this MCP server.";

/// What a line on the socket of a relay is about that has started the server's program, by its first byte. Such a relay says `+`
/// first; all that another client writes are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    /// A message of the client, or for the program.
    ToServer = b'>',
    /// A message of the program, or for the client.
    ToClient = b'<',
}

/// Which server a client speaks to, and in which conversation.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The server's id.
    pub server_id: i64,
    /// The conversation's id.
    pub conversation_id: i64,
}

/// What is written to the client's socket.
enum Out {
    Line(Tag, Bytes),
    /// Nothing comes any more.
    End,
}

/// Where messages of the client go.
enum Server {
    /// To a program that the client's relay has started.
    Relayed,
    Program(mpsc::Sender<Bytes>),
    Remote(Arc<Remote>),
    /// Nowhere, for this reason.
    None(String),
}

/// A session, for all that works for it.
pub struct Session {
    pub shared: Arc<Shared>,
    pub place: Place,
    server: Mutex<Arc<Server>>,
    out: mpsc::Sender<Out>,
    open: Mutex<Open>,
    /// Requests whose answers say how the server is doing, by their id: the method.
    asked: Mutex<HashMap<String, &'static str>>,
    /// The end of the program's standard error.
    stderr: Mutex<String>,
    tools: Mutex<Vec<String>>,
}

/// What waits here.
#[derive(Default)]
struct Open {
    tasks: JoinSet<()>,
    /// The requests among them, by their id.
    requests: HashMap<String, AbortHandle>,
}

/// Serves a client until it leaves, its server ends, or the agent is stopped.
pub async fn serve(shared: Arc<Shared>, place: Place, client: UnixStream) {
    let Some(rules) = shared.rules().await else { return };
    let (from, to) = client.into_split();
    let mut lines = Lines::of(from, shared.room.clone());
    let is_relay = match lines.peek().await {
        Some(b'+') => lines.next().await.is_some(),
        Some(_) => false,
        None => return,
    };
    let (out, waiting) = mpsc::channel(WAITING);
    let session = Arc::new(Session {
        shared,
        place,
        server: Mutex::new(Arc::new(Server::None(TAKEN.to_owned()))),
        out,
        open: Mutex::default(),
        asked: Mutex::default(),
        stderr: Mutex::default(),
        tools: Mutex::default(),
    });
    let _ends = Ends(Arc::clone(&session));
    let began_with = session.server_of(&rules).cloned();
    let _counts = began_with.as_ref().map(|_| Counted::begin(&session.shared, place.server_id));
    if let Some(server) = &began_with {
        let begun = session.begin(server, is_relay).unwrap_or_else(|why| {
            session.failed(&why);
            Server::None(why)
        });
        session.turn_to(begun);
    }
    tokio::select! {
        () = write(to, waiting, is_relay) => {}
        () = session.read(lines, is_relay) => {}
        () = session.rules_change(began_with) => {}
    }
}

/// Ends what a session has begun.
struct Ends(Arc<Session>);

impl Drop for Ends {
    fn drop(&mut self) {
        let Self(session) = self;
        session.open().tasks.abort_all();
        let before = session.turn_to(Server::None(TAKEN.to_owned()));
        if let Server::Remote(remote) = &*before {
            let (remote, session) = (Arc::clone(remote), Arc::clone(session));
            session.shared.clone().tasks.spawn(async move { remote.leave(&session).await });
        }
    }
}

async fn write(mut to: OwnedWriteHalf, mut waiting: mpsc::Receiver<Out>, is_relay: bool) {
    while let Some(Out::Line(tag, bytes)) = waiting.recv().await {
        let tag = [tag as u8];
        let tag = if is_relay { &tag[..] } else { &[] };
        for part in [tag, &bytes, b"\n"] {
            if to.write_all(part).await.is_err() {
                return;
            }
        }
    }
}

/// The tools of a server, as it lists them.
#[derive(Deserialize)]
struct Listed {
    tools: Vec<Listing>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Listing {
    name: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn open(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }

    fn server(&self) -> Arc<Server> {
        Arc::clone(&lock(&self.server))
    }

    fn turn_to(&self, server: Server) -> Arc<Server> {
        std::mem::replace(&mut *lock(&self.server), Arc::new(server))
    }

    /// The server as the rules have it.
    pub fn server_of<'a>(&self, rules: &'a Rules) -> Option<&'a McpServer> {
        rules.mcp_servers.iter().find(|server| server.id == self.place.server_id)
    }

    /// Where messages go, or why nowhere.
    fn begin(self: &Arc<Self>, server: &McpServer, is_relay: bool) -> Result<Server, String> {
        Ok(match &server.transport {
            McpTransport::Stdio { .. } if server.runs_in_sandbox() => {
                if !is_relay {
                    return Err(NOT_BEGUN.to_owned());
                }
                Server::Relayed
            }
            McpTransport::Stdio { .. } => {
                let why = |error| format!("The MCP server {} can't be started: {error}.", server.name);
                Server::Program(program::begin(self, server).map_err(why)?)
            }
            McpTransport::Http { url, .. } => Server::Remote(Remote::begin(self, url, false)),
            McpTransport::Sse { url, .. } => Server::Remote(Remote::begin(self, url, true)),
        })
    }

    async fn read(self: &Arc<Self>, mut lines: Lines<OwnedReadHalf>, is_relay: bool) {
        while let Some(mut line) = lines.next().await {
            let tag = if is_relay && !line.bytes.is_empty() { line.bytes.remove(0) } else { b'>' };
            // Only the relay that runs a program speaks for it.
            let is_relayed = matches!(*self.server(), Server::Relayed);
            match tag {
                b'>' => self.said(line).await,
                b'<' if is_relayed => _ = self.heard(line).await,
                b'!' if is_relayed => {
                    self.complains(&line.bytes);
                    self.complains(b"\n");
                }
                b'.' if is_relayed => {
                    let how = String::from_utf8_lossy(&line.bytes).into_owned();
                    self.failed(&format!(
                        "It has ended by itself ({}).",
                        how.chars().take(40).collect::<String>()
                    ));
                }
                _ => {}
            }
        }
    }

    /// Returns when the session has to end: the agent is stopped, or the server has become another one. One that was taken from
    /// the agent ends, and whoever asks it is told.
    async fn rules_change(&self, began_with: Option<McpServer>) {
        let mut rules = self.shared.rules.clone();
        loop {
            if let Some(rules) = rules.borrow_and_update().clone() {
                let is_other = self
                    .server_of(&rules)
                    .map(|now| began_with.as_ref().is_none_or(|before| !before.goes_on_as(now)));
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

    /// The client has said something.
    async fn said(self: &Arc<Self>, line: Line) {
        let mut message = match Message::read(&self.shared, line).await {
            Ok(message) => message,
            Err(Refused { id, why }) => return self.answer(error(id.as_ref(), why)).await,
        };
        if let Some(id) = &message.cancels
            && let Some(request) = self.open().requests.remove(&id.to_string())
        {
            request.abort();
        }
        if let Some(why) = self.withheld(&message) {
            return self.refuse(message.request(), &why).await;
        }
        let called = message.call.take();
        let is_remote = matches!(*self.server(), Server::Remote(_));
        let Some(id) = message.request().filter(|_| called.is_some() || is_remote).cloned() else {
            // One after the other. A call is a request: one without an id is not read as a message.
            return self.pass(message).await;
        };
        let session = Arc::clone(self);
        let is_open = self.spawn(Some(id.to_string()), async move {
            let judged = match called {
                Some(called) => session.judge(called).await,
                None => Ok(()),
            };
            match judged {
                Ok(()) => session.pass(message).await,
                Err(reason) => session.answer(not_called(message.id.as_ref(), &reason)).await,
            }
        });
        if !is_open {
            self.answer(error(Some(&id), CROWDED)).await;
        }
    }

    /// Begins something that ends with the session, unless it is a request too many.
    pub fn spawn(&self, id: Option<String>, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut open = self.open();
        while open.tasks.try_join_next().is_some() {}
        open.requests.retain(|_, request| !request.is_finished());
        if id.is_some() && open.tasks.len() >= MOST_OPEN {
            return false;
        }
        let handle = open.tasks.spawn(task);
        if let Some(id) = id {
            open.requests.insert(id, handle);
        }
        true
    }

    /// Passes a message on to the server.
    async fn pass(self: &Arc<Self>, message: Message) {
        let telling =
            [INITIALIZE, LISTS].into_iter().find(|method| message.method.as_deref() == Some(method));
        if let Some((method, id)) = telling.zip(message.request()) {
            let mut asked = lock(&self.asked);
            if asked.len() < MOST_OPEN {
                asked.insert(id.to_string(), method);
            }
        }
        match &*self.server() {
            Server::Relayed => _ = self.out.send(Out::Line(Tag::ToServer, message.bytes)).await,
            Server::Program(input) => _ = input.send(message.bytes).await,
            Server::Remote(remote) => remote.send(self, message).await,
            Server::None(reason) => self.refuse(message.request(), reason).await,
        }
    }

    /// The server has said something. What is not a message is noise. Returns the id of an answer, as it is written.
    pub async fn heard(&self, Line { bytes, mut held }: Line) -> Option<String> {
        let fields = Fields::read(&bytes)?;
        let answers = fields.raw("id").filter(|_| !fields.has("method")).map(str::to_owned);
        if let Some(method) = answers.as_ref().and_then(|id| lock(&self.asked).remove(id)) {
            self.tells(method, &fields);
        }
        let text = fields.write(bytes.len());
        held.shrink(text.len());
        let _ = self.out.send(Out::Line(Tag::ToClient, room::kept(text, held))).await;
        answers
    }

    /// An answer says how the server is doing, or which tools it has.
    fn tells(&self, method: &str, answer: &Fields<'_>) {
        let (shared, server_id) = (&self.shared, self.place.server_id);
        match (method, answer.raw("result")) {
            (INITIALIZE, Some(_)) => states::works(shared, server_id),
            (INITIALIZE, None) => {
                let words = answer.within("error").and_then(|error| error.text("message"));
                self.failed(&words.unwrap_or_else(|| "It refused to start a session.".to_owned()));
            }
            (_, Some(result)) => {
                let Ok(listed) = muster_json::from_str::<Listed>(result) else { return };
                let mut tools = lock(&self.tools);
                // The next page follows, or the whole list is asked for again.
                let mut all = std::mem::take(&mut *tools);
                all.extend(listed.tools.into_iter().take(MOST_TOOLS).map(|tool| cut(tool.name)));
                all.truncate(MOST_TOOLS);
                if listed.next_cursor.is_some() {
                    tools.clone_from(&all);
                }
                states::has_tools(shared, server_id, all);
            }
            (_, None) => {}
        }
    }

    /// A piece of the program's standard error. Its end is kept.
    pub fn complains(&self, piece: &[u8]) {
        let mut stderr = lock(&self.stderr);
        stderr.push_str(&String::from_utf8_lossy(piece));
        let from = stderr.ceil_char_boundary(stderr.len().saturating_sub(KEPT_STDERR));
        stderr.drain(..from);
    }

    /// The server has failed, for people to see. One that was taken from the agent has not.
    pub fn failed(&self, why: &str) {
        let rules = self.shared.rules.borrow().clone();
        if rules.is_some_and(|rules| !rules.stopped && self.server_of(&rules).is_some()) {
            states::failed(&self.shared, self.place.server_id, why, &lock(&self.stderr));
        }
    }

    /// The server has ended: the client is told what came before, and nothing more.
    pub async fn ended(&self) {
        let _ = self.out.send(Out::End).await;
    }

    /// Answers a request that was not passed on. Whatever else it is, nobody waits for an answer.
    pub async fn refuse(&self, id: Option<&Value>, why: &str) {
        if id.is_some() {
            self.answer(error(id, why)).await;
        }
    }

    async fn answer(&self, answer: Value) {
        let _ = self.out.send(Out::Line(Tag::ToClient, Bytes::from(answer.to_string()))).await;
    }

    /// Whether a call of a tool may be made: by the rules before, by whoever has to be asked, and by the rules then.
    async fn judge(&self, called: Called) -> Result<(), String> {
        let name = self.allowed()?;
        let tool = format!("{name}.{}", called.name);
        let title = format!("Use {tool}");
        let crossing = Crossing {
            tool,
            tool_kind: TOOL_KIND.to_owned(),
            mcp_server_id: Some(self.place.server_id),
            input: called.input,
        };
        let asking = Asking { crossing, conversation_id: Some(self.place.conversation_id), title };
        match self.shared.outside.judge(asking).await {
            Verdict::Allowed | Verdict::Approved => self.allowed().map(drop),
            Verdict::Refused { reason } => Err(format!("The call was not made. {reason}")),
            Verdict::Asked => Err(ASKED.to_owned()),
        }
    }

    /// Why a message that is no call of a tool does not leave: the group is switched off, and it would use the server.
    fn withheld(&self, message: &Message) -> Option<String> {
        let method = message.method.as_deref().filter(|_| message.call.is_none())?;
        let is_harmless = HARMLESS.contains(&method) || method.starts_with("notifications/");
        let rules = self.shared.rules.borrow().clone().filter(|_| !is_harmless)?;
        switched_off(&rules, self.server_of(&rules)?)
    }

    /// The server's name, if the agent may use it by the rules of this moment.
    fn allowed(&self) -> Result<String, String> {
        let rules = self.shared.rules.borrow().clone().ok_or(AWAY)?;
        let server = self.server_of(&rules).ok_or(TAKEN)?;
        match switched_off(&rules, server) {
            Some(why) => Err(why),
            None => Ok(server.name.clone()),
        }
    }
}

fn switched_off(rules: &Rules, server: &McpServer) -> Option<String> {
    let group = [server.name.as_str(), TOOL_KIND].into_iter().find(|group| rules.is_disabled(group))?;
    Some(format!("The tool group {group:?} is switched off for this agent."))
}

fn cut(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(LONGEST_TOOL));
    name
}

/// The answer to what was not passed on.
pub fn error(id: Option<&Value>, why: &str) -> Value {
    let error = json!({ "code": REFUSED, "message": format!("Muster: {why}") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

/// The result of a call that was not made: an error of the tool, which the model reads.
fn not_called(id: Option<&Value>, reason: &str) -> Value {
    let result = json!({ "content": [{ "type": "text", "text": reason }], "isError": true });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}
