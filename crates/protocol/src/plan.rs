//! Requests that a host sends just before it acts. The responses hold secrets: a host keeps them only in memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Secret,
    profile::Profile,
    spending::{Lease, LeaseAsked, Price},
};

/// A host's request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlanRequest {
    /// How to launch the agent, and what its sessions need.
    Launch,
    /// The content of a turn.
    Turn {
        /// The turn.
        turn_id: i64,
    },
    /// A person's decision.
    Answer {
        /// The approval.
        approval_id: i64,
    },
    /// Whether the agent may cross its sandbox's boundary: call a tool or open a connection.
    Judgement(Crossing),
    /// Permission to spend on its model. A used-up or expired lease must be renewed.
    Lease(LeaseAsked),
    /// The actions that a conversation's channel offers, as tools of Muster's own MCP server.
    Actions {
        /// The conversation.
        conversation_id: i64,
    },
    /// To perform one of them. It was judged before.
    Act(ActionCall),
}

/// The name of Muster's own MCP server.
const OWN_SERVER: &str = "muster";

/// The [`Crossing::tool_kind`] of MCP servers' tools and of actions.
pub const MCP_KIND: &str = "other";

/// The tool of an action, as in [`Crossing::tool`].
#[must_use]
pub fn tool_of_action(action: &str) -> String {
    format!("{OWN_SERVER}.{action}")
}

/// The action of a tool, as in [`Crossing::tool`]. `None`: the tool is not one of Muster's own MCP server.
#[must_use]
pub fn action_of_tool(tool: &str) -> Option<&str> {
    tool.strip_prefix(OWN_SERVER)?.strip_prefix('.')
}

/// A call of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionCall {
    /// The conversation.
    pub conversation_id: i64,
    /// Identifies the call within the conversation: a repeated call is the same one.
    pub key: String,
    /// The action's name.
    pub name: String,
    /// The complete arguments.
    pub arguments: serde_json::Value,
    /// How long the caller waits for the outcome, in milliseconds. At most 20 seconds count.
    pub wait_ms: i64,
}

/// A crossing of an agent's sandbox boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// The tool: `<MCP server>.<tool>`, `muster.<action>`, or `network`.
    pub tool: String,
    /// Its kind, as in [`crate::event::Asked::Action`].
    pub tool_kind: String,
    /// The MCP server's id. Null if the tool belongs to none.
    pub mcp_server_id: Option<i64>,
    /// The complete input; for `network`, its `host` and `port`.
    pub input: serde_json::Value,
}

/// The verdict of the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Judgement {
    /// It may.
    Allowed,
    /// It may not.
    Refused {
        /// The reason, for the agent.
        reason: String,
    },
    /// A person decides: report it as [`crate::event::HostEvent::Asked`].
    Asked,
}

/// The control plane's response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlanResponse {
    /// To [`PlanRequest::Launch`].
    Launch(Box<LaunchPlan>),
    /// To [`PlanRequest::Turn`].
    Turn(TurnPlan),
    /// To [`PlanRequest::Answer`].
    Answer(Answer),
    /// To [`PlanRequest::Judgement`].
    Judgement(Judgement),
    /// To [`PlanRequest::Lease`].
    Lease(Lease),
    /// To [`PlanRequest::Lease`]: nothing may be spent now.
    Spent {
        /// The reason, for the agent.
        reason: String,
        /// When to ask again; null: once a person has allowed more.
        until: Option<i64>,
    },
    /// To [`PlanRequest::Actions`].
    Actions {
        /// The actions.
        actions: Vec<Action>,
    },
    /// To [`PlanRequest::Act`], once the outcome is known or the wait has ended.
    Acted(ActionOutcome),
    /// It does not exist, or the host has no access to it.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// What an agent can do at the vendor of a channel, beyond messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// Its name, as a tool.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// For the agent.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: serde_json::Value,
}

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActionOutcome {
    /// The vendor has done it.
    Done {
        /// The vendor's id of the result, if it has one.
        vendor_id: Option<String>,
    },
    /// It was not done, or that is unknown.
    Failed {
        /// The reason, for the agent.
        reason: String,
    },
    /// It waits to be done.
    Queued {
        /// Its delivery.
        delivery_id: i64,
    },
}

/// Everything needed to launch an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LaunchPlan {
    /// The agent's name.
    pub name: String,
    /// When the agent was created. After a restore the control plane may reuse an id for another agent, but not with
    /// the same time.
    pub created_at: i64,
    /// The image's reference. A host that runs plain processes looks it up in its owner's list.
    pub image: String,
    /// The digest that the image must have, if its record has one.
    pub digest: Option<String>,
    /// The agent's revision being launched.
    pub revision: i64,
    /// The agent's introduction, for each session: its role, how it answers, what needs approval. Sent with a turn's
    /// `instructions`.
    pub instructions: String,
    /// The selected model, if any.
    pub model: Option<String>,
    /// The selected mode of its sessions, if any.
    pub mode: Option<String>,
    /// Access to the model, if the agent has its own.
    pub model_access: Option<ModelAccess>,
    /// The environment, from the assigned credentials.
    pub environment: Vec<Variable>,
    /// The assigned skills.
    pub skills: Vec<Skill>,
    /// The assigned MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// The limits of its processes.
    pub limits: Limits,
    /// How its program is wired; by default as in the list of the host's owner.
    pub profile: Option<Profile>,
    /// Its network access.
    pub network: Network,
    /// Credentials that the host adds to the agent's requests. The agent never holds them.
    pub injected: Vec<Injected>,
    /// Secret files in the agent's home, which it may read.
    pub files: Vec<SecretFile>,
    /// MCP servers and kinds of tools that it may not use.
    pub disabled_tool_groups: Vec<String>,
    /// The prices of models.
    pub prices: Vec<Price>,
    /// Whether each model call needs a lease.
    pub metered: bool,
    /// Emergency stop: nothing may leave the sandbox. The gate refuses everything and closes open connections. For a
    /// running agent the rest of the plan may be missing; a complete plan follows the release.
    pub stopped: bool,
}

/// An agent's network access, in addition to its model, its MCP servers and the destinations of its credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// Whether its container has its own network interface, which bypasses the gate.
    pub privileged: bool,
    /// The destinations allowed through the gate.
    pub allowed: Vec<Destination>,
}

/// A destination for connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Destination {
    /// A name, or `*.` and a name of at least two labels.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A credential that the host adds to requests to one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Injected {
    /// The credential.
    #[serde(default)]
    pub credential_id: i64,
    /// The credential's name in paths: `/c/<name>/`.
    pub name: String,
    /// The address.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<Variable>,
}

/// A secret as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretFile {
    /// Its path in the agent's home.
    pub path: String,
    /// Its content.
    pub content: Secret,
}

/// Access to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAccess {
    /// The organization's model credential; null: the agent's own.
    #[serde(default)]
    pub credential_id: Option<i64>,
    /// The provider, such as `anthropic` or `openai`.
    pub provider: String,
    /// The address of its API, unless it is the provider's own.
    pub base_url: Option<String>,
    /// The key.
    pub key: Secret,
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Secret,
}

/// A skill: a file in the agent's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skill {
    /// The name.
    pub name: String,
    /// When to use it.
    pub description: Option<String>,
    /// The text, in markdown.
    pub content: String,
    /// The version.
    pub version: i64,
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    /// Its id.
    pub id: i64,
    /// The name.
    pub name: String,
    /// How to reach it.
    pub transport: McpTransport,
    /// Whether it may read the agent's home from outside the agent's sandbox.
    pub reads_workspace: bool,
    /// The credentials that it has.
    #[serde(default)]
    pub credential_ids: Vec<i64>,
    /// Its known tools. Only usable ones with this digest are shown and called. Null: none are known, and all are.
    #[serde(default)]
    pub tools: Option<Vec<ToolPin>>,
}

/// A known tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolPin {
    /// Its name.
    pub name: String,
    /// The digest of its last known definition.
    pub digest: String,
    /// Whether it is switched on, and this definition was accepted.
    pub usable: bool,
}

impl McpServer {
    /// Whether it runs in the agent's sandbox: a program without secrets. All others run, or are reached, outside of
    /// it.
    #[must_use]
    pub fn runs_in_sandbox(&self) -> bool {
        matches!(&self.transport, McpTransport::Stdio { environment, .. } if environment.is_empty())
    }

    /// Whether its sessions survive its replacement by `now`. New headers apply from the next request.
    #[must_use]
    pub fn sessions_survive(&self, now: &Self) -> bool {
        use McpTransport::{Http, Sse};
        let is_same = match (&self.transport, &now.transport) {
            (Http { url, .. }, Http { url: now, .. }) | (Sse { url, .. }, Sse { url: now, .. }) => url == now,
            (before, now) => before == now,
        };
        is_same && self.id == now.id && self.reads_workspace == now.reads_workspace
    }
}

/// How to reach an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum McpTransport {
    /// A program.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment.
        environment: Vec<Variable>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<Variable>,
    },
    /// Server-sent events, as before 2025.
    Sse {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<Variable>,
    },
}

/// Resource limits of an agent; null stands for the host's own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Memory, in MiB.
    pub memory_mb: Option<i64>,
    /// Processors.
    pub cpus: Option<f64>,
    /// The maximum time to start, in seconds.
    pub start_seconds: Option<i64>,
}

/// The content of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnPlan {
    /// The conversation.
    pub conversation_id: i64,
    /// The session to resume; null starts a new one.
    pub session: Option<String>,
    /// Instructions in addition to those of the launch plan: those that people wrote for the agent and for the
    /// conversation's channel. A new session gets both; a session gets both again if either has changed. May be empty.
    pub instructions: String,
    /// The messages, oldest first.
    pub prompt: Vec<Part>,
    /// Whether several people have written in the conversation: each text then starts with its author's name.
    pub is_shared: bool,
}

/// A part of a turn's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Part {
    /// Text.
    Text {
        /// The author.
        author: Option<String>,
        /// The text.
        text: String,
    },
    /// Context for what follows. It has no author and needs no answer.
    Note {
        /// The text.
        text: String,
    },
    /// A file. The bytes are included up to 512 KiB in total; beyond that, only the name.
    File {
        /// The name.
        filename: String,
        /// The type.
        mime_type: String,
        /// The size, in bytes.
        size_bytes: i64,
        /// The bytes, in base64.
        base64: Option<String>,
    },
}

/// A decision with its author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The answered request.
    pub request: String,
    /// The decision.
    pub decision: Decision,
    /// The author, for the agent.
    pub by: Option<String>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    /// The action is allowed.
    Approved {
        /// The person's comment.
        comment: Option<String>,
    },
    /// The action is not allowed.
    Denied {
        /// The person's comment.
        comment: Option<String>,
    },
    /// The question is answered.
    Answered {
        /// The ids of the chosen options.
        options: Vec<String>,
        /// Text.
        text: Option<String>,
    },
    /// There will be no answer: the request was dismissed or has expired.
    Closed {
        /// The reason, in words.
        reason: String,
    },
}
