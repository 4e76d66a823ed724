//! The server's side of a client session with an MCP server: it inspects and forwards the server's messages, and judges
//! the client's calls.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use muster_protocol::{
    event::McpTool,
    plan::{Crossing, MCP_KIND, McpServer},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use super::{
    lines::MessageLine,
    message::{CalledTool, Message},
    tools::{self, ChangedTools, KnownTools, ToolPage},
};
use crate::{
    bounds,
    fields::Fields,
    host_services::{CrossingDecision, CrossingRequest},
    memory,
    rules::Rules,
    shared::Shared,
};

/// Requests of a client that wait here for a decision or a remote server: an agent could send any number.
pub const MAX_OPEN: usize = 32;
/// The methods that start a session, and the one that lists tools.
pub const INITIALIZE: &str = "initialize";
pub const INITIALIZED: &str = "notifications/initialized";
pub const LISTS: &str = "tools/list";
/// Allowed requests to a server whose tool group is switched off: keep-alive and listings. All others read from the
/// server or change it.
const HARMLESS: [&str; 6] =
    [INITIALIZE, "ping", LISTS, "prompts/list", "resources/list", "resources/templates/list"];

/// The answer to a call that waits for a person.
pub const ASKED: &str = "Asked. No answer yet, and the call was not made. End your turn now: the answer comes as the next \
                     message of this conversation. Don't ask again.";
pub const AWAY: &str = "The control plane can't be reached. Try again later.";
pub const TAKEN: &str = "This agent no longer has this MCP server.";
const NOT_USABLE: &str =
    "This tool can't be used: it is switched off, or its definition has not been accepted.";

/// The tag of a line on the socket of a relay with its own program. Such a relay starts with `+`; all lines of other
/// clients are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// A message from the client, or for the program.
    ToServer = b'>',
    /// A message from the program, or for the client.
    ToClient = b'<',
}

/// A server in a conversation.
#[derive(Clone, Copy, Debug)]
pub struct SessionKey {
    pub server_id: i64,
    /// None: a connection test, whose answers no agent sees.
    pub conversation_id: Option<i64>,
}

/// Output to the client's socket.
pub enum ClientOutput {
    Line(Tag, Bytes),
    /// End of output.
    End,
}

/// A session, shared by its tasks.
pub struct Session {
    pub shared: Arc<Shared>,
    pub key: SessionKey,
    pub out: mpsc::Sender<ClientOutput>,
    pub open: Mutex<Open>,
    /// Requests whose answers show the server's state: id and method.
    pub asked: Mutex<HashMap<String, &'static str>>,
    /// The end of the program's standard error.
    stderr: Mutex<String>,
    tools: Mutex<Vec<String>>,
    /// Whether the server's tools were unknown at the beginning.
    began_unknown: bool,
    /// The server's first list in this session.
    first_listed: OnceLock<Instant>,
    changed: Mutex<ChangedTools>,
}

/// Open tasks.
#[derive(Default)]
pub struct Open {
    pub tasks: JoinSet<()>,
    /// The requests among them, by id.
    pub requests: HashMap<String, AbortHandle>,
}

impl Session {
    /// A session, and the output to its client.
    pub fn new(
        shared: Arc<Shared>,
        key: SessionKey,
        rules: &Rules,
    ) -> (Arc<Self>, mpsc::Receiver<ClientOutput>) {
        let (out, waiting) = mpsc::channel(bounds::QUEUE);
        let (open, asked) = (Mutex::default(), Mutex::default());
        let (stderr, tools, changed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let began_unknown = rules.mcp_server(key.server_id).is_some_and(|server| server.tools.is_none());
        let first_listed = OnceLock::new();
        let session =
            Self { shared, key, out, open, asked, stderr, tools, began_unknown, first_listed, changed };
        (Arc::new(session), waiting)
    }

    /// The server in the current rules.
    pub fn server_of<'a>(&self, rules: &'a Rules) -> Option<&'a McpServer> {
        rules.mcp_server(self.key.server_id)
    }

    /// The server's known tools in the current rules. `None`: all tools may be used.
    fn known_tools<'a>(&self, rules: &'a Rules) -> Option<KnownTools<'a>> {
        let pins = self.server_of(rules)?.tools.as_deref()?;
        Some(KnownTools { pins, is_first: self.is_first() })
    }

    /// Whether a list is the server's first one, or the rest of it. It ends after a minute, as for the control plane: a
    /// session can last for days, and a list can always have another page.
    fn is_first(&self) -> bool {
        self.began_unknown && self.first_listed.get().is_none_or(|at| at.elapsed() < bounds::WAIT)
    }

    /// Spawns a task that ends with the session, unless too many requests are open.
    pub fn spawn(&self, id: Option<String>, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut open = self.open.lock();
        while open.tasks.try_join_next().is_some() {}
        open.requests.retain(|_, request| !request.is_finished());
        if id.is_some() && open.tasks.len() >= MAX_OPEN {
            return false;
        }
        let handle = open.tasks.spawn(task);
        if let Some(id) = id {
            open.requests.insert(id, handle);
        }
        true
    }

    /// Handles a line of the server. Lines that are not messages are dropped. Returns the raw id of a response.
    pub async fn handle_server_line(&self, MessageLine { bytes, mut held }: MessageLine) -> Option<String> {
        // Some readers take `Result` for `result`.
        let mut fields = Fields::read(&bytes).filter(|fields| !fields.misspells(&["result"]))?;
        let answers = fields.raw("id").filter(|_| !fields.has("method")).map(str::to_owned);
        let page = fields.within("result").and_then(|result| tools::read_page(&result));
        if let Some(method) = answers.as_ref().and_then(|id| self.asked.lock().remove(id)) {
            self.update_state(method, &fields, page.as_ref());
        }
        // The answer's id doesn't matter: a server could write it in another way than the client.
        if let Some(page) = page {
            self.report_new_tools(page.tools);
        }
        if let Some(result) = self.hide_tools(&fields) {
            fields.set("result", result);
        }
        let text = fields.write(bytes.len());
        held.shrink(text.len());
        let _ = self.out.send(ClientOutput::Line(Tag::ToClient, memory::into_bytes(text, held))).await;
        answers
    }

    /// Updates the server's state or tools from an answer.
    fn update_state(&self, method: &str, answer: &Fields<'_>, page: Option<&ToolPage>) {
        let (shared, server_id) = (&self.shared, self.key.server_id);
        match (method, page) {
            (INITIALIZE, _) if answer.has("result") => shared.states.report_running(server_id),
            (INITIALIZE, _) => {
                let words = answer.within("error").and_then(|error| error.text("message"));
                self.report_failure(&words.unwrap_or_else(|| "It refused to start a session.".to_owned()));
            }
            (_, Some(page)) => {
                let mut tools = self.tools.lock();
                // The next page of a list, or the list starts over.
                let mut all = std::mem::take(&mut *tools);
                all.extend(page.tools.iter().map(|tool| truncate_name(tool.name.clone())));
                all.truncate(bounds::LIST);
                if !page.is_last {
                    tools.clone_from(&all);
                }
                shared.states.report_tools(server_id, all);
            }
            (_, None) => {}
        }
    }

    /// Reports tools that the rules don't know, or know with another definition.
    fn report_new_tools(&self, mut listed: Vec<McpTool>) {
        self.first_listed.get_or_init(Instant::now);
        let rules = self.shared.rules.borrow().clone();
        let Some(server) = rules.as_ref().and_then(|rules| self.server_of(rules)) else { return };
        let pins = server.tools.as_deref().unwrap_or_default();
        let is_known =
            |tool: &McpTool| pins.iter().any(|pin| pin.name == tool.name && pin.digest == tool.digest);
        listed.retain(|tool| tools::is_callable(&tool.name) && !is_known(tool));
        for tool in &mut listed {
            // People see definitions, and a server can repeat its secrets in them.
            let text = tool.definition.as_ref().map(|shown| self.shared.secrets.hide(&shown.to_string()));
            tool.definition = text.and_then(|text| muster_json::from_str(&text).ok());
        }
        self.shared.states.report_new_tools(self.key.server_id, self.is_first(), listed);
    }

    /// The result of an answer without its hidden tools, if it lists tools. A connection test sees all.
    fn hide_tools(&self, answer: &Fields<'_>) -> Option<String> {
        self.key.conversation_id?;
        let rules = self.shared.rules.borrow().clone()?;
        tools::hide(answer.raw("result")?, self.known_tools(&rules), &mut self.changed.lock())
    }

    /// Appends to the program's stderr. Keeps more of its end than people see, so that secrets are removed before it is
    /// cut.
    pub fn record_stderr(&self, piece: &[u8]) {
        let mut stderr = self.stderr.lock();
        stderr.push_str(&String::from_utf8_lossy(piece));
        let from = stderr.ceil_char_boundary(stderr.len().saturating_sub(bounds::TEXT));
        stderr.drain(..from);
    }

    /// Reports a failure to people, unless the server was removed from the agent.
    pub fn report_failure(&self, why: &str) {
        let rules = self.shared.rules.borrow().clone();
        if rules.is_some_and(|rules| !rules.stopped && self.server_of(&rules).is_some()) {
            let Shared { states, secrets, .. } = &*self.shared;
            states.report_failure(self.key.server_id, secrets.hide(why), secrets.hide(&self.stderr.lock()));
        }
    }

    /// Ends the output after the queued messages.
    pub async fn close_client(&self) {
        let _ = self.out.send(ClientOutput::End).await;
    }

    /// Answers a refused request. Other messages expect no answer.
    pub async fn refuse(&self, id: Option<&Value>, why: &str) {
        if id.is_some() {
            self.answer(error(id, why)).await;
        }
    }

    pub async fn answer(&self, answer: Value) {
        let _ = self.out.send(ClientOutput::Line(Tag::ToClient, Bytes::from(answer.to_string()))).await;
    }

    /// Judges a tool call: by the current rules, by the control plane or a person, and by the rules at that time.
    pub async fn authorize_call(&self, called: CalledTool) -> Result<(), String> {
        let name = self.require_allowed(&called.name)?;
        let tool = format!("{name}.{}", called.name);
        let title = format!("Use {tool}");
        let crossing = Crossing {
            tool,
            tool_kind: MCP_KIND.to_owned(),
            mcp_server_id: Some(self.key.server_id),
            input: called.input,
        };
        let asking = CrossingRequest { crossing, conversation_id: self.key.conversation_id, title };
        match self.shared.services.judge(asking).await {
            CrossingDecision::Allowed | CrossingDecision::Approved => {
                self.require_allowed(&called.name).map(drop)
            }
            CrossingDecision::Refused { reason } => Err(format!("The call was not made. {reason}")),
            CrossingDecision::Asked => Err(ASKED.to_owned()),
        }
    }

    /// The reason to refuse a message that is not a tool call: its group is switched off, and it would use the server.
    pub fn refusal_for(&self, message: &Message) -> Option<String> {
        let method = message.method.as_deref().filter(|_| message.call.is_none())?;
        let is_harmless = HARMLESS.contains(&method) || method.starts_with("notifications/");
        let rules = self.shared.rules.borrow().clone().filter(|_| !is_harmless)?;
        switched_off(&rules, self.server_of(&rules)?)
    }

    /// The server's name, if the current rules allow the use of its tool.
    fn require_allowed(&self, tool: &str) -> Result<String, String> {
        let rules = self.shared.rules.borrow().clone().ok_or(AWAY)?;
        let server = self.server_of(&rules).ok_or(TAKEN)?;
        if let Some(why) = switched_off(&rules, server) {
            return Err(why);
        }
        let known = self.known_tools(&rules);
        if known.is_some_and(|known| !known.allow(tool, &self.changed.lock())) {
            return Err(NOT_USABLE.to_owned());
        }
        Ok(server.name.clone())
    }
}

fn switched_off(rules: &Rules, server: &McpServer) -> Option<String> {
    let group = [server.name.as_str(), MCP_KIND].into_iter().find(|group| rules.is_disabled(group))?;
    Some(format!("The tool group {group:?} is switched off for this agent."))
}

/// Limits the name's length. A report of all tools fits into a gateway frame.
pub fn truncate_name(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(bounds::NAME));
    name
}

/// The error answer to a refused message.
pub fn error(id: Option<&Value>, why: &str) -> Value {
    let error = json!({ "code": -32_000, "message": format!("Muster: {why}") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
