//! The Agent Client Protocol as a state machine without I/O.
//!
//! [`Machine`] takes lines of the agent and requests of the control plane, and returns [`Effects`]: events to report,
//! and live text. Output for the agent stays in the machine ([`Machine::lines`]) until the shim has taken it. The
//! journal stores the whole machine after each relevant step, so a restarted host continues where it stopped, even
//! within a sentence.
//!
//! The host names its requests: `<generation>.<command>` for the prompt of a turn, with a suffix for preceding
//! requests. So an answer identifies its command.
//!
//! - `rpc.rs`: lines.
//! - `turns.rs`: starting, cancelling and ending turns.
//! - `sessions.rs`: the handshake, and the sessions of conversations.
//! - `options.rs`: options of sessions; `offers.rs`: offered models and modes; `choices.rs`: setting them.
//! - `updates.rs`: the agent's output as messages.
//! - `requests.rs`: the agent's requests; `permission.rs`: options of a permission; `forms.rs`: questions as forms.
//! - `prompts.rs`: people's messages.
//! - `usage.rs`: usage of a turn.

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
use muster_protocol::{DEEPEST, HostEvent, is_too_deep};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{
    choices::{Choice, Choices},
    offers::Offered,
    rpc::Incoming,
    turns::Active,
    updates::{MessageInProgress, Tool},
};
pub use self::{
    prompts::blocks,
    requests::{DecisionEffect, Open, decision_text},
    sessions::{Opening, render_session},
    turns::{Turn, ended as turn_ended},
};

/// Bytes of text per message: an agent may write one endless message. A longer text continues in the next message.
pub const LONGEST_TEXT: usize = 64 * 1024;
/// Bytes of JSON stored of a tool's input or output: they may exceed a frame.
pub const LONGEST_VALUE: usize = 200 * 1024;
/// Open requests: an agent may send any number.
const MAX_OPEN: usize = 64;
/// Remembered sessions: an agent may open any number of them.
const MAX_SESSIONS: usize = 256;

/// Settings from the plan. None is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The agent's home, the working directory of its sessions.
    pub home: PathBuf,
    /// The chosen model, if any.
    pub model: Option<String>,
    /// The chosen mode, if any.
    pub mode: Option<String>,
    /// Instructions of each session.
    pub instructions: String,
    /// Disabled MCP servers, and disabled kinds of tools.
    #[serde(default)]
    pub disabled: Vec<String>,
}

/// The agent's capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Whether the handshake is answered.
    pub is_known: bool,
    /// Accepts pictures.
    pub image: bool,
    /// Resumes a session without a replay.
    pub resume: bool,
    /// Loads a session with a replay.
    pub load: bool,
    /// Closes a session.
    pub close: bool,
}

/// An unanswered request of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Pending {
    Initialize,
    Open {
        conversation_id: i64,
        opening: Opening,
    },
    Model {
        conversation_id: i64,
        /// The reported mode option, handled next.
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
    /// An idle session, resumed when its conversation continues.
    Rest {
        conversation_id: i64,
    },
    /// A session that was given up.
    Drop,
    Prompt {
        conversation_id: i64,
        turn_id: i64,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Conversation {
    /// The session, once opened in this launch.
    session: Option<String>,
    /// Whether the assignments have changed since the opening.
    is_stale: bool,
    /// Whether the next prompt is the first of a new session.
    is_new: bool,
    /// Whether the session is being reopened, so the agent may replay it.
    is_replaying: bool,
    turn: Option<Active>,
    waiting: VecDeque<Turn>,
    writing: Option<MessageInProgress>,
    tools: BTreeMap<String, Tool>,
    model: Option<String>,
    context_tokens: Option<i64>,
    /// The session's total cost in millionths.
    cost: Option<i64>,
}

/// An output line that the shim has not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutgoingLine {
    /// Lines are numbered 1, 2, 3, ….
    pub seq: u64,
    pub text: Text,
    /// The decision in this line.
    pub delivers: Option<Delivery>,
}

/// A decision on its way to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub approval_id: i64,
    /// Whether the line has no field for the accompanying text.
    pub without_text: bool,
}

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Text {
    Plain(String),
    /// Opens a session. The line contains secrets, so it is rendered when it is written ([`render_session`]).
    Session {
        id: String,
        conversation_id: i64,
        opening: Opening,
    },
}

/// Live text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub conversation_id: i64,
    /// The message's key.
    pub key: String,
    pub is_thinking: bool,
    /// Start in the message, in bytes.
    pub offset: usize,
    pub text: String,
}

/// Results of a step.
#[derive(Debug, Default)]
pub struct Effects {
    /// Events to report.
    pub events: Vec<HostEvent>,
    /// Live text.
    pub pieces: Vec<Piece>,
    /// The handshake's result: the agent's own name, or an error.
    pub greeted: Option<Result<Option<String>, String>>,
}

/// State of one launch of one agent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub generation: i64,
    pub settings: Settings,
    pub capabilities: Capabilities,
    /// The last line read.
    pub read: u64,
    /// The last line written.
    written: u64,
    lines: VecDeque<OutgoingLine>,
    pending: BTreeMap<String, Pending>,
    conversations: BTreeMap<i64, Conversation>,
    open: BTreeMap<String, Open>,
    /// Offers of sessions, once reported.
    offered: Option<Offered>,
    /// Choices of sessions.
    choices: Choices,
    own: u64,
    /// The line of the last key, and the number of keys for it.
    key: (u64, u32),
    /// Total costs of sessions at the end of their last turn, in the order of these turns. Sessions outlive launches.
    pub costs: IndexMap<String, i64>,
    /// Digests of sessions' last instructions, in the order of their last turns. Not those of earlier launches: a
    /// session may have lost its end with the process.
    #[serde(default)]
    told: IndexMap<String, u64>,
    /// Malformed lines.
    pub garbage: u64,
    /// Unknown messages.
    pub unknown: u64,
}

impl Machine {
    /// A launch before its start, with the session costs of earlier launches.
    pub fn new(generation: i64, costs: IndexMap<String, i64>) -> Self {
        Self { generation, costs, ..Self::default() }
    }

    /// Handles a line of the agent.
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
            Some(Pending::Initialize) => self.handle_handshake(answer, fx),
            Some(Pending::Open { conversation_id, opening }) => {
                self.handle_session_response(conversation_id, &opening, answer, fx);
            }
            Some(Pending::Model { conversation_id, mode }) => {
                self.model_chosen(conversation_id, mode, answer, fx);
            }
            Some(Pending::Mode { conversation_id, mode }) => {
                self.mode_chosen(conversation_id, &mode, answer.ok(), fx);
            }
            // Closed or unknown: it can be reopened in both cases.
            Some(Pending::Close { conversation_id, reopening }) => {
                self.open_session(conversation_id, reopening);
            }
            Some(Pending::Prompt { conversation_id, turn_id })
                if self.turn_of(conversation_id) == Some(turn_id) =>
            {
                self.prompt_ended(conversation_id, answer, fx);
            }
            // The turn was given up, or nothing waits for the session.
            Some(Pending::Prompt { .. } | Pending::Rest { .. } | Pending::Drop) => {}
            None => self.unknown += 1,
        }
    }

    /// Lines after this number that the shim has not taken.
    pub fn lines(&self, after: u64) -> impl Iterator<Item = &OutgoingLine> {
        self.lines.iter().filter(move |line| line.seq > after)
    }

    /// Records the lines that the shim has taken, up to this number.
    pub fn mark_taken(&mut self, seq: u64, fx: &mut Effects) {
        while self.lines.front().is_some_and(|line| line.seq <= seq) {
            if let Some(OutgoingLine { delivers: Some(delivery), .. }) = self.lines.pop_front() {
                let Delivery { approval_id, without_text } = delivery;
                fx.events.push(HostEvent::Delivered { approval_id, without_text });
            }
        }
    }

    /// Whether a turn runs or waits.
    pub fn is_busy(&self) -> bool {
        self.conversations.values().any(|conversation| conversation.turn.is_some())
    }

    fn write(&mut self, text: Text) -> &mut OutgoingLine {
        self.written += 1;
        self.lines.push_back(OutgoingLine { seq: self.written, text, delivers: None });
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    fn send(&mut self, text: String) -> &mut OutgoingLine {
        self.write(Text::Plain(text))
    }

    /// A new name for a request of the host.
    pub fn own_name(&mut self) -> String {
        self.own += 1;
        format!("{}.h{}", self.generation, self.own)
    }

    /// A key for a message that this line starts or completes.
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

/// Whether a value is too long or nested too deeply to be stored.
pub fn is_too_long(value: &Value) -> bool {
    is_too_deep(value) || value.to_string().len() > LONGEST_VALUE
}

/// Why an action with an overlong input is not asked about.
pub fn not_judged() -> String {
    let most = LONGEST_VALUE / 1024;
    format!(
        "The input is longer than {most} KiB or nested deeper than {DEEPEST} levels, so it can't be judged."
    )
}

/// A value that fits into an event, or the beginning of its JSON.
fn fit_event(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= LONGEST_VALUE && !is_too_deep(&value) {
        return value;
    }
    let most = floor_boundary(&text, LONGEST_VALUE / 4);
    serde_json::json!({ "truncated": true, "bytes": text.len(), "beginning": &text[..most] })
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
