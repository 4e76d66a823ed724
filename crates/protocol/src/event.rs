//! Events: a host's reports. They are numbered without gaps, kept by the host until they are acknowledged, and applied
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
    /// The launch it is about. Reports of an older launch are acknowledged but otherwise ignored.
    pub generation: i64,
    /// The time of the event, by the host's clock.
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
        /// The model it uses, if it reports one.
        model: Option<String>,
    },
    /// The launch waits for the container engine, which the host can't reach. It keeps trying.
    EngineAway {
        /// For people: which engine, and what to do.
        detail: String,
    },
    /// The agent ended, or failed to start.
    Ended {
        /// The reason.
        reason: EndReason,
        /// The exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// For people: the end of its standard error, or what is missing.
        detail: Option<String>,
    },
    /// Its skills, MCP servers and credentials are up to date.
    Synced,
    /// The launch needs something that only a new launch can supply.
    Lacks {
        /// What is missing, in words.
        what: String,
    },
    /// A conversation's session, to resume with the next turn.
    Session {
        /// The conversation.
        conversation_id: i64,
        /// The agent's name for the session. Null: it was discarded, and the next turn starts a new one.
        session: Option<String>,
    },
    /// The models and modes that the agent's sessions offer.
    Offered {
        /// The models.
        models: Vec<Offer>,
        /// The modes.
        modes: Vec<Offer>,
    },
    /// A turn has started.
    TurnStarted {
        /// The turn.
        turn_id: i64,
    },
    /// A message is complete.
    Message(Message),
    /// A turn has ended.
    TurnEnded(TurnEnd),
    /// The agent asks and waits.
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
        /// Only the verdict reached the agent: its protocol has no place for the text, so a turn must deliver it.
        #[serde(default)]
        without_text: bool,
    },
    /// The agent no longer waits for this decision, so a turn must deliver it.
    NotWaiting {
        /// The approval.
        approval_id: i64,
    },
    /// The agent has no valid access to its model.
    AuthRequired {
        /// The agent's message.
        detail: String,
    },
    /// A model was called.
    ModelCalled(ModelCall),
    /// A lease was returned with its remainder.
    LeaseReturned {
        /// The lease.
        lease_id: i64,
    },
    /// The provider temporarily refuses calls because a limit was reached.
    Limited {
        /// The organization's model credential; null: the agent's own.
        credential_id: Option<i64>,
        /// The model.
        model: String,
        /// The end of the limit, according to the provider.
        until: Option<i64>,
        /// The provider's message.
        detail: String,
    },
    /// Connections refused since the last event of this kind.
    Unreached {
        /// The destination.
        destination: Destination,
        /// The reason, in words.
        reason: String,
        /// How often.
        count: i64,
    },
    /// Credentials were added to its requests, or used by its MCP servers. Reported at most once an hour for each.
    CredentialsUsed {
        /// The credentials.
        credential_ids: Vec<i64>,
    },
    /// The state of one of its MCP servers. The latest report counts.
    McpServer(McpReport),
    /// Tools that one of its MCP servers lists, other than in the launch plan.
    McpTools(McpToolReport),
    /// The result of [`crate::Command::TestMcp`].
    McpTested(McpTest),
    /// A backup of the home is complete, or has failed.
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
    /// The home was restored from the backup, or could not be.
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
        /// The reason.
        reason: RefusedReason,
    },
}

/// The state of an agent's MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpReport {
    /// The server's id.
    pub server_id: i64,
    /// Its state.
    pub state: McpState,
    /// Why it failed.
    pub error: Option<String>,
    /// The end of its standard error, if it failed.
    pub stderr: Option<String>,
    /// The known names of its tools.
    pub tools: Vec<String>,
}

/// Tools of an MCP server that the launch plan doesn't have, or has with another digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpToolReport {
    /// The server's id.
    pub server_id: i64,
    /// Whether the plan had no tools of this server when the session began: these are the first known ones.
    pub is_first: bool,
    /// The tools.
    pub tools: Vec<McpTool>,
}

/// A tool as its MCP server defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpTool {
    /// Its name.
    pub name: String,
    /// The SHA-256 of its definition, in base64.
    pub digest: String,
    /// Its definition without `_meta`: name, description, schemas, annotations. Null if it is too long.
    pub definition: Option<serde_json::Value>,
}

/// The result of a test of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpTest {
    /// The server's id.
    pub server_id: i64,
    /// The names of its tools, if the list was complete and has fewer than 256.
    pub listed: Option<Vec<String>>,
    /// The version of the protocol that it chose.
    pub protocol: Option<String>,
    /// Its own name and version.
    pub program: Option<String>,
    /// The failed step and the reason; null if it has listed its tools.
    pub error: Option<String>,
}

/// The state of an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum McpState {
    /// Not in use.
    #[default]
    Idle,
    /// Started, but not yet responding.
    Starting,
    /// It works.
    Running,
    /// It could not be started or reached, or it exited.
    Failed,
}

/// A model or mode that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// The agent's name for it.
    pub id: String,
    /// For people.
    pub name: String,
    /// A longer description.
    pub description: Option<String>,
    /// Whether it is selected.
    pub current: bool,
}

/// Why an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndReason {
    /// On command.
    Stopped,
    /// On its own.
    Exited,
    /// Killed by a signal that the host did not send.
    Killed,
    /// Killed because memory ran out.
    OutOfMemory,
    /// Its shim disappeared without a record.
    ShimLost,
    /// The image is not on the list of the host's owner, or was not found.
    ImageNotFound,
    /// The program could not be started.
    SpawnFailed,
    /// The program does not speak the Agent Client Protocol, or not in time.
    NoProtocol,
    /// It wrote an overlong line.
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
    /// The deadline had passed.
    TooLate,
    /// The agent is not running.
    NotRunning,
    /// The control plane refused the host's request.
    Forbidden,
}

/// A complete message from an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The conversation.
    pub conversation_id: i64,
    /// The turn it belongs to.
    pub turn_id: Option<i64>,
    /// Identifies the message within the launch; deltas refer to it.
    pub key: String,
    /// Its content.
    pub content: Content,
}

/// The content of an agent's message. The fields match those of a message's content in `/v1`.
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
    /// A tool call.
    ToolCall {
        /// The tool's name or title.
        tool: String,
        /// Identifies the call within the launch.
        call_id: String,
        /// The input, as reported by the agent.
        input: serde_json::Value,
    },
    /// A tool's result.
    ToolResult {
        /// The call.
        call_id: String,
        /// The output, as reported by the agent.
        output: serde_json::Value,
        /// Whether the call failed.
        is_error: bool,
    },
    /// Something for people to know, such as an error of the agent.
    Error {
        /// A code in capital letters.
        code: String,
        /// The text.
        text: String,
    },
    /// A file from the agent.
    File {
        /// Its name.
        filename: String,
        /// Its type.
        mime_type: String,
        /// Its bytes, in base64. At most 512 KiB.
        base64: String,
        /// The agent's description of it.
        caption: Option<String>,
    },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnd {
    /// The turn.
    pub turn_id: i64,
    /// The outcome.
    pub outcome: TurnOutcome,
    /// The reason in words, unless it is DONE.
    pub error: Option<String>,
    /// The model used, if the agent reports it.
    pub model: Option<String>,
    /// Tokens and cost; null where the agent does not report them.
    #[serde(default)]
    pub usage: Usage,
    /// The size of the session's context, in tokens.
    pub context_tokens: Option<i64>,
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TurnOutcome {
    /// The agent finished.
    Done,
    /// It could not be completed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// The tokens and cost of a turn. Null is unknown.
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
    /// All known tokens, of all classes.
    #[must_use]
    pub fn tokens(&self) -> i64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().flatten().sum()
    }
}

/// A request from an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Identifies the request: `<generation>.<rpc id>`, or a name that the host chose.
    pub request: String,
    /// Its conversation.
    pub conversation_id: i64,
    /// Its turn.
    pub turn_id: Option<i64>,
    /// Its content.
    pub asked: Asked,
}

/// The content of an agent's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Asked {
    /// Permission for an action.
    Action {
        /// The tool's name, if the agent reports it.
        tool: Option<String>,
        /// The kind of tool, as in ACP: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `other`.
        tool_kind: String,
        /// The agent's title for it.
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
        /// Whether several options may be chosen.
        multiple: bool,
        /// Whether a text is allowed.
        allow_text: bool,
    },
}

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Identifies it within the question.
    pub id: String,
    /// For people.
    pub label: String,
    /// A longer description.
    pub description: Option<String>,
}
