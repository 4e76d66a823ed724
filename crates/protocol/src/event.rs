//! Events: what a host reports. They are numbered without gaps, kept by the host until they are acknowledged, and applied
//! once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{plan::Destination, spending::ModelCall};

/// A numbered report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number among the events of this host: 1, 2, 3, ….
    pub seq: i64,
    /// The agent.
    pub agent_id: i64,
    /// The launch it is about. Reports of an older launch are acknowledged, and otherwise ignored.
    pub generation: i64,
    /// When it happened, by the host's clock.
    pub at: i64,
    /// What happened.
    pub what: HostEvent,
}

/// What happened to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HostEvent {
    /// It runs and takes turns.
    Started {
        /// The process or the container.
        container_id: String,
        /// The agent's own name and version.
        program: Option<String>,
        /// The model it uses, if it says so.
        model: Option<String>,
    },
    /// Its launch waits for the container engine, which the host can't reach and goes on trying.
    EngineAway {
        /// What people should read: which engine, and what to do.
        detail: String,
    },
    /// It has ended, or never began.
    Ended {
        /// Why.
        reason: EndReason,
        /// The exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// What people should read: the end of its standard error, or what is missing.
        detail: Option<String>,
    },
    /// Its skills, MCP servers and credentials are up to date.
    Synced,
    /// Its launch lacks something that only another one has.
    Lacks {
        /// What, in words.
        what: String,
    },
    /// A conversation has a session now, to be resumed with the next turn.
    Session {
        /// The conversation.
        conversation_id: i64,
        /// The agent's name for the session. Null: it is given up, and the next turn begins a new one.
        session: Option<String>,
    },
    /// What the agent's sessions offer to choose from.
    Offered {
        /// The models.
        models: Vec<Offer>,
        /// The modes.
        modes: Vec<Offer>,
    },
    /// A turn runs.
    TurnStarted {
        /// The turn.
        turn_id: i64,
    },
    /// A message is complete.
    Message(Message),
    /// A turn has ended.
    TurnEnded(TurnEnd),
    /// The agent asks, and waits.
    Asked(Request),
    /// The agent no longer waits for this request.
    Withdrawn {
        /// The request.
        request: String,
    },
    /// A decision has reached the agent.
    Delivered {
        /// The approval.
        approval_id: i64,
        /// The agent has the verdict alone: its protocol has no place for the text, which has to be told in a turn.
        #[serde(default)]
        without_text: bool,
    },
    /// The agent no longer waits for this decision. It has to be told in a turn.
    NotWaiting {
        /// The approval.
        approval_id: i64,
    },
    /// The agent has no valid access to its model.
    AuthRequired {
        /// What the agent says.
        detail: String,
    },
    /// A model was called.
    ModelCalled(ModelCall),
    /// A lease is given back, whatever is left of it.
    LeaseReturned {
        /// The lease.
        lease_id: i64,
    },
    /// The provider has refused a call for now, because too much was used.
    Limited {
        /// The organization's model credential; null: the agent's own.
        credential_id: Option<i64>,
        /// The model.
        model: String,
        /// Until when, as the provider says.
        until: Option<i64>,
        /// What the provider says.
        detail: String,
    },
    /// Connections were refused, since the last report of this kind.
    Unreached {
        /// Where to.
        destination: Destination,
        /// Why, in words.
        reason: String,
        /// How often.
        count: i64,
    },
    /// How one of its MCP servers is doing. The newest report counts.
    McpServer(McpReport),
    /// A backup of its volume is complete, or failed.
    BackedUp {
        /// The backup.
        backup_id: i64,
        /// The size of its file, in bytes.
        bytes: Option<i64>,
        /// The SHA-256 of its file, in hexadecimal.
        sha256: Option<String>,
        /// Why it failed.
        error: Option<String>,
    },
    /// Its volume is as in the backup, or could not be restored.
    Restored {
        /// The backup.
        backup_id: i64,
        /// Why it failed.
        error: Option<String>,
    },
    /// A command had no effect.
    Refused {
        /// The command's id.
        command_id: i64,
        /// Why.
        reason: RefusedReason,
    },
}

/// How an MCP server of an agent is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpReport {
    /// The server's id.
    pub server_id: i64,
    /// How.
    pub state: McpState,
    /// Why it has failed.
    pub error: Option<String>,
    /// The end of its standard error, if it has failed.
    pub stderr: Option<String>,
    /// The names of its tools, as far as they are known.
    pub tools: Vec<String>,
}

/// How an MCP server is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum McpState {
    /// No one uses it.
    #[default]
    Idle,
    /// It was started, and has not answered yet.
    Starting,
    /// It works.
    Running,
    /// It could not be started or reached, or has ended by itself.
    Failed,
}

/// A model or a mode that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// The agent's name for it.
    pub id: String,
    /// What people read.
    pub name: String,
    /// A longer description.
    pub description: Option<String>,
    /// Whether it is in use.
    pub current: bool,
}

/// Why an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndReason {
    /// As it was told to.
    Stopped,
    /// By itself.
    Exited,
    /// By a signal that the host didn't send.
    Killed,
    /// By a signal, for want of memory.
    OutOfMemory,
    /// Its shim is gone and left no record.
    ShimLost,
    /// The host's operator doesn't list the image, or it can't be found.
    ImageNotFound,
    /// The program could not be started.
    SpawnFailed,
    /// The program doesn't speak the Agent Client Protocol, or not in time.
    NoProtocol,
    /// It wrote a line that is too long.
    LineTooLong,
    /// The host's disk is full.
    DiskFull,
}

/// Why a command had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefusedReason {
    /// The host has a newer launch of the agent.
    Stale,
    /// Its deadline had passed.
    TooLate,
    /// The agent doesn't run.
    NotRunning,
    /// The control plane refused what the host asked for.
    Forbidden,
}

/// A complete message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The conversation.
    pub conversation_id: i64,
    /// The turn it belongs to.
    pub turn_id: Option<i64>,
    /// Identifies the message within the agent's launch; deltas name it too.
    pub key: String,
    /// What it is.
    pub content: Content,
}

/// What an agent's message contains. The fields are those of a message's content in `/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Content {
    /// Text in markdown.
    Text {
        /// The text.
        text: String,
    },
    /// A thought.
    Thinking {
        /// The text.
        text: String,
    },
    /// A tool is called.
    ToolCall {
        /// The tool's name or title.
        tool: String,
        /// Identifies the call within the launch.
        call_id: String,
        /// The input, as the agent shows it.
        input: serde_json::Value,
    },
    /// A tool has returned.
    ToolResult {
        /// The call.
        call_id: String,
        /// The output, as the agent shows it.
        output: serde_json::Value,
        /// Whether the call failed.
        is_error: bool,
    },
    /// Something that people should know, such as an error of the agent.
    Error {
        /// A code in capitals.
        code: String,
        /// The text.
        text: String,
    },
    /// A file that the agent sends.
    File {
        /// Its name.
        filename: String,
        /// Its type.
        mime_type: String,
        /// Its bytes, in base64. At most 512 KiB.
        base64: String,
        /// What the agent says about it.
        caption: Option<String>,
    },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnd {
    /// The turn.
    pub turn_id: i64,
    /// How.
    pub outcome: TurnOutcome,
    /// Why, in words, unless it is DONE.
    pub error: Option<String>,
    /// The model that was used, if the agent says so.
    pub model: Option<String>,
    /// What was spent; null where the agent doesn't say.
    #[serde(default)]
    pub usage: Usage,
    /// How full the session's context is, in tokens.
    pub context_tokens: Option<i64>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TurnOutcome {
    /// The agent has said everything.
    Done,
    /// It could not be finished.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// What a turn has spent, in tokens and money. Null is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, except cached ones.
    pub input: Option<i64>,
    /// Tokens written.
    pub output: Option<i64>,
    /// Tokens read from a cache.
    pub cache_read: Option<i64>,
    /// Tokens written to a cache.
    pub cache_write: Option<i64>,
    /// The cost, in millionths of the currency.
    pub cost_micro: Option<i64>,
}

impl Usage {
    /// Tokens of all classes that are known.
    #[must_use]
    pub fn tokens(&self) -> i64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().flatten().sum()
    }
}

/// What an agent asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Identifies the request: `<generation>.<rpc id>`, or a name of the host's own.
    pub request: String,
    /// The conversation it is asked in.
    pub conversation_id: i64,
    /// The turn it is asked in.
    pub turn_id: Option<i64>,
    /// What it asks.
    pub asked: Asked,
}

/// What an agent asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Asked {
    /// Whether it may do something.
    Action {
        /// The tool's name, if the agent gives it.
        tool: Option<String>,
        /// The kind of tool, as in ACP: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `other`.
        tool_kind: String,
        /// What the agent calls it.
        title: String,
        /// The complete input.
        input: serde_json::Value,
    },
    /// A question.
    Question {
        /// The question.
        text: String,
        /// The options to choose from.
        options: Vec<Choice>,
        /// Whether several may be chosen.
        multiple: bool,
        /// Whether text may be given.
        allow_text: bool,
    },
}

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Identifies it within the question.
    pub id: String,
    /// What people read.
    pub label: String,
    /// A longer description.
    pub description: Option<String>,
}
