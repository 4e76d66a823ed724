//! A session of a client with an MCP server, as the server's side knows it: what the server says is looked at and passed on, and
//! what the client says is judged.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use muster_protocol::plan::{Crossing, McpServer};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use super::{
    lines::Line,
    message::{Called, Message},
};
use crate::{
    bounds,
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
pub const MOST_OPEN: usize = 32;
/// The methods that begin a session, and the one that lists tools.
pub const INITIALIZE: &str = "initialize";
pub const INITIALIZED: &str = "notifications/initialized";
pub const LISTS: &str = "tools/list";
/// What a client may ask of a server whose group of tools is switched off: to go on, and what there would be. All else reads from it
/// or has it do something.
const HARMLESS: [&str; 6] =
    [INITIALIZE, "ping", LISTS, "prompts/list", "resources/list", "resources/templates/list"];

const ASKED: &str = "Asked. Nobody has answered yet, and the call was not made. End your turn now: the answer comes as the next \
                     message of this conversation. Don't ask again.";
const AWAY: &str = "The control plane can't be reached. Try again later.";
pub const TAKEN: &str = "This agent no longer has this MCP server.";

/// What a line on the socket of a relay is about that has started the server's program, by its first byte. Such a relay says `+`
/// first; all that another client writes are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
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
pub enum Out {
    Line(Tag, Bytes),
    /// Nothing comes any more.
    End,
}

/// A session, for all that works for it.
pub struct Session {
    pub shared: Arc<Shared>,
    pub place: Place,
    pub out: mpsc::Sender<Out>,
    pub open: Mutex<Open>,
    /// Requests whose answers say how the server is doing, by their id: the method.
    pub asked: Mutex<HashMap<String, &'static str>>,
    /// The end of the program's standard error.
    stderr: Mutex<String>,
    tools: Mutex<Vec<String>>,
}

/// What waits here.
#[derive(Default)]
pub struct Open {
    pub tasks: JoinSet<()>,
    /// The requests among them, by their id.
    pub requests: HashMap<String, AbortHandle>,
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

impl Session {
    /// A session, and what is written to its client.
    pub fn new(shared: Arc<Shared>, place: Place) -> (Arc<Self>, mpsc::Receiver<Out>) {
        let (out, waiting) = mpsc::channel(bounds::QUEUE);
        let (open, asked) = (Mutex::default(), Mutex::default());
        let (stderr, tools) = (Mutex::default(), Mutex::default());
        (Arc::new(Self { shared, place, out, open, asked, stderr, tools }), waiting)
    }

    /// The server as the rules have it.
    pub fn server_of<'a>(&self, rules: &'a Rules) -> Option<&'a McpServer> {
        rules.mcp_servers.iter().find(|server| server.id == self.place.server_id)
    }

    /// Begins something that ends with the session, unless it is a request too many.
    pub fn spawn(&self, id: Option<String>, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut open = self.open.lock();
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

    /// The server has said something. What is not a message is noise. Returns the id of an answer, as it is written.
    pub async fn heard(&self, Line { bytes, mut held }: Line) -> Option<String> {
        let fields = Fields::read(&bytes)?;
        let answers = fields.raw("id").filter(|_| !fields.has("method")).map(str::to_owned);
        if let Some(method) = answers.as_ref().and_then(|id| self.asked.lock().remove(id)) {
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
            (INITIALIZE, Some(_)) => shared.states.works(server_id),
            (INITIALIZE, None) => {
                let words = answer.within("error").and_then(|error| error.text("message"));
                self.failed(&words.unwrap_or_else(|| "It refused to start a session.".to_owned()));
            }
            (_, Some(result)) => {
                let Ok(listed) = muster_json::from_str::<Listed>(result) else { return };
                let mut tools = self.tools.lock();
                // The next page follows, or the whole list is asked for again.
                let mut all = std::mem::take(&mut *tools);
                all.extend(listed.tools.into_iter().take(bounds::LIST).map(|tool| cut(tool.name)));
                all.truncate(bounds::LIST);
                if listed.next_cursor.is_some() {
                    tools.clone_from(&all);
                }
                shared.states.has_tools(server_id, all);
            }
            (_, None) => {}
        }
    }

    /// A piece of the program's standard error. Its end is kept: more than people are shown, so that no secret is cut before it
    /// is hidden.
    pub fn complains(&self, piece: &[u8]) {
        let mut stderr = self.stderr.lock();
        stderr.push_str(&String::from_utf8_lossy(piece));
        let from = stderr.ceil_char_boundary(stderr.len().saturating_sub(bounds::TEXT));
        stderr.drain(..from);
    }

    /// The server has failed, for people to see. One that was taken from the agent has not.
    pub fn failed(&self, why: &str) {
        let rules = self.shared.rules.borrow().clone();
        if rules.is_some_and(|rules| !rules.stopped && self.server_of(&rules).is_some()) {
            let Shared { states, secrets, .. } = &*self.shared;
            states.failed(self.place.server_id, secrets.hide(why), secrets.hide(&self.stderr.lock()));
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

    pub async fn answer(&self, answer: Value) {
        let _ = self.out.send(Out::Line(Tag::ToClient, Bytes::from(answer.to_string()))).await;
    }

    /// Whether a call of a tool may be made: by the rules before, by whoever has to be asked, and by the rules then.
    pub async fn judge(&self, called: Called) -> Result<(), String> {
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
    pub fn withheld(&self, message: &Message) -> Option<String> {
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

/// As people are shown it. A report of all tools fits into a frame of the gateway.
fn cut(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(bounds::NAME));
    name
}

/// The answer to what was not passed on.
pub fn error(id: Option<&Value>, why: &str) -> Value {
    let error = json!({ "code": -32_000, "message": format!("Muster: {why}") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
