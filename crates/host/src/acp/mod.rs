//! The Agent Client Protocol, as a state machine without input or output.
//!
//! [`Machine`] is told lines of the agent, and what the control plane wants; it answers with [`Effects`]: events to
//! report, text to show right now. What is to be written to the agent waits in the machine itself ([`Machine::lines`])
//! until the shim has taken it. The whole machine is written to the journal after each step that matters, so a host that
//! is started again goes on where it was, in the middle of a sentence if need be.
//!
//! The host chooses the names of its requests: `<generation>.<command>` for the prompt of a turn, with a suffix for what
//! has to happen before it. An answer therefore names its command, whoever reads it.
//!
//! - `rpc.rs`: lines.
//! - `turns.rs`: turns begin, are cancelled, and end.
//! - `sessions.rs`: the handshake, and sessions of conversations.
//! - `options.rs`: the options of sessions; `offers.rs`: the models and modes that they offer; `choices.rs`: those that they
//!   are asked to choose.
//! - `updates.rs`: what the agent says, as messages.
//! - `requests.rs`: what the agent asks; `permission.rs`: the options of a permission; `forms.rs`: questions as forms.
//! - `prompts.rs`: what people say.
//! - `usage.rs`: what a turn has spent.

mod choices;
mod forms;
mod offers;
mod options;
mod permission;
mod prompts;
mod requests;
pub mod rpc;
mod sessions;
#[cfg(test)]
mod tests;
mod turns;
mod updates;
mod usage;

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

use indexmap::IndexMap;
use muster_protocol::{DEEPEST, Happening, is_too_deep};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{
    choices::{Choice, Choices},
    offers::Offered,
    rpc::Incoming,
    turns::Active,
    updates::{Tool, Writing},
};
pub use self::{
    prompts::blocks,
    requests::{Answered, Open, in_words},
    sessions::{Opening, render_session},
    turns::{Turn, ended as turn_ended},
};

/// An agent that says one endless message: what is kept in one piece, in bytes. A longer text goes on in the next message.
pub const LONGEST_TEXT: usize = 64 * 1024;
/// A tool that reads or writes more than a frame has: what is kept of its input or output, in bytes of JSON.
pub const LONGEST_VALUE: usize = 200 * 1024;
/// An agent that asks without end.
const MOST_OPEN: usize = 64;
/// An agent that opens sessions without end: so many of their costs are remembered.
const MOST_COSTS: usize = 256;

/// What the machine needs to know of the plan. None of it is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The agent's home, where its sessions work.
    pub home: PathBuf,
    /// The model to use, if one is chosen.
    pub model: Option<String>,
    /// The mode to be in, if one is chosen.
    pub mode: Option<String>,
    /// What each new session is told first.
    pub instructions: String,
    /// Names of MCP servers, and kinds of tools, that it may not use.
    #[serde(default)]
    pub disabled: Vec<String>,
}

/// What the agent can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// It answered the handshake.
    pub is_known: bool,
    /// It takes pictures.
    pub image: bool,
    /// It resumes a session without replaying it.
    pub resume: bool,
    /// It loads a session, and replays it.
    pub load: bool,
    /// It closes a session.
    pub close: bool,
}

/// A request of the host that is not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Pending {
    Initialize,
    Open {
        conversation_id: i64,
        opening: Opening,
    },
    Model {
        conversation_id: i64,
        /// What it has told about its modes: the mode is next.
        mode: Option<Choice>,
    },
    Mode {
        conversation_id: i64,
        mode: String,
    },
    Close {
        conversation_id: i64,
        reopening: Opening,
    },
    /// The session is unused, and is resumed when its conversation goes on.
    Rest {
        conversation_id: i64,
    },
    /// The session was given up.
    Drop,
    Prompt {
        conversation_id: i64,
        turn_id: i64,
    },
}

/// A conversation of the agent.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Conversation {
    /// The session, once it was opened in this launch.
    session: Option<String>,
    /// The assignments have changed since it was opened.
    is_stale: bool,
    /// The next prompt is the first of a new session.
    is_new: bool,
    /// A digest of what the session was last told about the conversation. Not known of one that was opened before: it is told
    /// again.
    told: Option<[u8; 32]>,
    /// The session is being opened again: the agent may replay it.
    is_replaying: bool,
    turn: Option<Active>,
    waiting: VecDeque<Turn>,
    writing: Option<Writing>,
    tools: BTreeMap<String, Tool>,
    model: Option<String>,
    context_tokens: Option<i64>,
    /// What the session has cost so far, in millionths.
    cost: Option<i64>,
}

/// A line for the agent that the shim has not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its number: 1, 2, 3, ….
    pub seq: u64,
    /// The line.
    pub text: Text,
    /// The decision that it delivers.
    pub delivers: Option<Delivery>,
}

/// A decision on its way to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The approval.
    pub approval_id: i64,
    /// The line has no place for the text that was given with it.
    pub without_text: bool,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Text {
    /// This.
    Plain(String),
    /// A session is opened. The line holds secrets, so it is made when it is written ([`render_session`]).
    Session {
        /// The request's name.
        id: String,
        /// The conversation.
        conversation_id: i64,
        /// How.
        opening: Opening,
    },
}

/// Text that the agent is writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The conversation.
    pub conversation_id: i64,
    /// The message.
    pub key: String,
    /// Whether it is a thought.
    pub is_thinking: bool,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// The text.
    pub text: String,
}

/// What a step leads to.
#[derive(Debug, Default)]
pub struct Effects {
    /// To report.
    pub events: Vec<Happening>,
    /// To show right now.
    pub pieces: Vec<Piece>,
    /// The handshake has succeeded, with the agent's own name, or failed.
    pub greeted: Option<Result<Option<String>, String>>,
}

/// The state of one launch of one agent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The launch.
    pub generation: i64,
    /// From the plan.
    pub settings: Settings,
    /// What the agent can do.
    pub capabilities: Capabilities,
    /// The last line that was read.
    pub read: u64,
    /// The last line for the agent.
    written: u64,
    lines: VecDeque<Line>,
    pending: BTreeMap<String, Pending>,
    conversations: BTreeMap<i64, Conversation>,
    open: BTreeMap<String, Open>,
    /// What sessions offer, once one has told.
    offered: Option<Offered>,
    /// What they let the host choose.
    choices: Choices,
    own: u64,
    /// The line that the last key names, and how many keys name it.
    key: (u64, u32),
    /// What sessions had cost at the end of their last turn, in the order of these turns. Sessions outlive launches.
    pub costs: IndexMap<String, i64>,
    /// Lines that made no sense.
    pub garbage: u64,
    /// Messages that the host doesn't know.
    pub unknown: u64,
}

impl Machine {
    /// A launch that has not begun. `costs` are those of sessions that launches before it had.
    pub fn of(generation: i64, costs: IndexMap<String, i64>) -> Self {
        Self { generation, costs, ..Self::default() }
    }

    /// Takes a line of the agent.
    pub fn line(&mut self, seq: u64, bytes: &[u8], fx: &mut Effects) {
        if seq <= self.read {
            return;
        }
        self.read = seq;
        match rpc::read(bytes) {
            Incoming::Notification { method, params } => match method.as_str() {
                "session/update" => self.update(params, fx),
                "$/cancel_request" => self.withdrawn_by_agent(params, fx),
                _ => self.unknown += 1,
            },
            Incoming::Request { id, method, params } => self.request(id, &method, params, fx),
            Incoming::Response { id, answer } => self.response(&id, answer, fx),
            Incoming::Garbage => self.garbage += 1,
        }
    }

    fn response(&mut self, id: &str, answer: Result<&str, rpc::Failure>, fx: &mut Effects) {
        match self.pending.remove(id) {
            Some(Pending::Initialize) => self.greeted(answer, fx),
            Some(Pending::Open { conversation_id, opening }) => {
                self.opened(conversation_id, &opening, answer, fx);
            }
            Some(Pending::Model { conversation_id, mode }) => {
                self.model_chosen(conversation_id, mode, answer, fx);
            }
            Some(Pending::Mode { conversation_id, mode }) => {
                self.mode_chosen(conversation_id, &mode, answer.ok(), fx);
            }
            // Closed or unknown: in both cases it can be opened.
            Some(Pending::Close { conversation_id, reopening }) => {
                self.open_session(conversation_id, reopening);
            }
            Some(Pending::Prompt { conversation_id, turn_id })
                if self.turn_of(conversation_id) == Some(turn_id) =>
            {
                self.prompt_ended(conversation_id, answer, fx);
            }
            // Its turn was given up, or nobody waits for the session.
            Some(Pending::Prompt { .. } | Pending::Rest { .. } | Pending::Drop) => {}
            None => self.unknown += 1,
        }
    }

    /// The lines after this number, which the shim has not taken.
    pub fn lines(&self, after: u64) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.seq > after)
    }

    /// The shim has taken the lines up to this number.
    pub fn took(&mut self, seq: u64, fx: &mut Effects) {
        while self.lines.front().is_some_and(|line| line.seq <= seq) {
            if let Some(Line { delivers: Some(delivery), .. }) = self.lines.pop_front() {
                let Delivery { approval_id, without_text } = delivery;
                fx.events.push(Happening::Delivered { approval_id, without_text });
            }
        }
    }

    /// Whether a turn runs or waits.
    pub fn is_busy(&self) -> bool {
        self.conversations.values().any(|conversation| conversation.turn.is_some())
    }

    fn write(&mut self, text: Text) -> &mut Line {
        self.written += 1;
        self.lines.push_back(Line { seq: self.written, text, delivers: None });
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    fn say(&mut self, text: String) -> &mut Line {
        self.write(Text::Plain(text))
    }

    /// A name for something of the host's own.
    pub fn own_name(&mut self) -> String {
        self.own += 1;
        format!("{}.h{}", self.generation, self.own)
    }

    /// A key for a message that this line begins or completes.
    fn next_key(&mut self, suffix: char) -> String {
        let (line, before) = self.key;
        self.key = (self.read, if line == self.read { before + 1 } else { 0 });
        let count = self.key.1;
        let count = if count == 0 { String::new() } else { count.to_string() };
        format!("{}.{}.{suffix}{count}", self.generation, self.read)
    }

    fn conversation_of(&self, session: &str) -> Option<i64> {
        let mut open = self.conversations.iter();
        open.find_map(|(id, conversation)| (conversation.session.as_deref() == Some(session)).then_some(*id))
    }
}

/// The beginning of a text, in characters.
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Whether a value is longer, or nested deeper, than what is kept of one.
pub fn is_too_long(value: &Value) -> bool {
    is_too_deep(value) || value.to_string().len() > LONGEST_VALUE
}

/// Why an action isn't asked about whose input [`is_too_long`].
pub fn not_judged() -> String {
    let most = LONGEST_VALUE / 1024;
    format!(
        "The input is longer than {most} KiB or nested deeper than {DEEPEST} levels, so it can't be judged."
    )
}

/// A value that fits into an event; of a larger or deeper one, the beginning of its JSON.
fn fit(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= LONGEST_VALUE && !is_too_deep(&value) {
        return value;
    }
    let most = floor_boundary(&text, LONGEST_VALUE / 4);
    serde_json::json!({ "truncated": true, "bytes": text.len(), "beginning": &text[..most] })
}

/// The last place at or before `at` where a character begins.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
