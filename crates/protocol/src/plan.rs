//! What a host asks for just before it acts. The answers hold secrets: a host keeps them in memory alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Secret,
    profile::Profile,
    spending::{Lease, LeaseAsked, Price},
};

/// A host's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PlanRequest {
    /// How to launch the agent, and what its sessions get.
    Launch,
    /// What to say in this turn.
    Turn {
        /// The turn.
        turn_id: i64,
    },
    /// What was decided.
    Answer {
        /// The approval.
        approval_id: i64,
    },
    /// Whether something that crosses the agent's boundary may: a call of a tool, a connection.
    Judgement(Crossing),
    /// The right to spend on its model. One that is spent or over has to be followed by another.
    Lease(LeaseAsked),
}

/// What crosses an agent's boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// The tool: `<MCP server>.<tool>`, or `network`.
    pub tool: String,
    /// Its kind, as in [`crate::event::Asked::Action`].
    pub tool_kind: String,
    /// The MCP server's id. Null: it is not a tool of one.
    pub mcp_server_id: Option<i64>,
    /// The complete input; for `network`, its `host` and `port`.
    pub input: serde_json::Value,
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Judgement {
    /// It may.
    Allowed,
    /// It may not.
    Refused {
        /// Why, for the agent to read.
        reason: String,
    },
    /// A person decides: report it as [`crate::event::HostEvent::Asked`].
    Asked,
}

/// The control plane's answer.
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
        /// Why, for the agent to read.
        reason: String,
        /// When to ask again; null: once someone has allowed more.
        until: Option<i64>,
    },
    /// The host may not have it, or it no longer exists.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Everything an agent is launched with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LaunchPlan {
    /// The agent's name.
    pub name: String,
    /// When the agent was created. A restored control plane may give the number of an agent to another one, but not this as well.
    pub created_at: i64,
    /// The image's reference. A host that runs plain processes looks it up in its operator's list.
    pub image: String,
    /// The digest that the image must have, if its record names one.
    pub digest: Option<String>,
    /// The agent's revision, of which this is the launch.
    pub revision: i64,
    /// What the agent is told at the beginning of each session: its role, how it answers, what it must ask.
    pub instructions: String,
    /// The model to use, if one is chosen.
    pub model: Option<String>,
    /// The mode that its sessions are to be in, if one is chosen.
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
    /// How its program is wired; without one, as the host's operator lists it.
    pub profile: Option<Profile>,
    /// What it may reach.
    pub network: Network,
    /// Credentials that the host adds to the agent's requests. The agent never holds them.
    pub injected: Vec<Injected>,
    /// Secrets that the agent may read, as files in its home.
    pub files: Vec<SecretFile>,
    /// Names of MCP servers, and kinds of tools, that it may not use.
    pub disabled_tool_groups: Vec<String>,
    /// What calls of models cost.
    pub prices: Vec<Price>,
    /// Whether each call of its model needs a lease.
    pub metered: bool,
    /// Whether nothing may leave its sandbox any more: an emergency stop. Its gate refuses everything, and ends what is open. The
    /// plan of an agent that is up may then have nothing else; a new one comes with the release.
    pub stopped: bool,
}

/// What an agent may reach beside its model, its MCP servers and the destinations of its credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// Whether its container has a network interface of its own, past the proxy.
    pub privileged: bool,
    /// Where it may connect to, through the proxy.
    pub allowed: Vec<Destination>,
}

/// Where an agent may connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Destination {
    /// A name, or `*.` and a name of at least two labels.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A credential that the host adds to requests for one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Injected {
    /// The credential's name, as a part of a path: `/c/<name>/`.
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
    /// Where its interface is, unless it is the provider's own.
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

/// A skill: a file that the agent finds in its folder.
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
    /// Whether it may read the agent's home, as a program outside of the agent's sandbox.
    pub reads_workspace: bool,
}

impl McpServer {
    /// Whether it runs in the agent's sandbox: a program without secrets. All others run, or are reached, outside of it.
    #[must_use]
    pub fn runs_in_sandbox(&self) -> bool {
        matches!(&self.transport, McpTransport::Stdio { environment, .. } if environment.is_empty())
    }

    /// Whether sessions with it go on when it has become this one. New headers count with the next request.
    #[must_use]
    pub fn goes_on_as(&self, now: &Self) -> bool {
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

/// Limits of an agent's processes; null is the host's own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Memory, in MiB.
    pub memory_mb: Option<i64>,
    /// Processors.
    pub cpus: Option<f64>,
    /// How long it may take to start, in seconds.
    pub start_seconds: Option<i64>,
}

/// What to say in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnPlan {
    /// The conversation.
    pub conversation_id: i64,
    /// The session to resume; without one, a new session begins.
    pub session: Option<String>,
    /// What each session of the conversation is told behind the agent's own instructions: what to know about its channel. Told
    /// again when it has changed. May be empty.
    pub instructions: String,
    /// The messages, oldest first.
    pub prompt: Vec<Part>,
    /// Whether several people write in the conversation, now or before: then each text begins with its author's name.
    pub is_shared: bool,
}

/// A part of what is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Part {
    /// Text.
    Text {
        /// Who says it.
        author: Option<String>,
        /// The text.
        text: String,
    },
    /// What the agent should know about what follows. No one says it, so it is not answered.
    Note {
        /// The text.
        text: String,
    },
    /// A file. Its bytes are given up to 512 KiB in all; a larger one is named only.
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

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The request that it answers.
    pub request: String,
    /// The decision.
    pub decision: Decision,
    /// Who decided, for the agent to read.
    pub by: Option<String>,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    /// The action may be done.
    Approved {
        /// What the person said about it.
        comment: Option<String>,
    },
    /// It may not.
    Denied {
        /// What the person said about it.
        comment: Option<String>,
    },
    /// The question is answered.
    Answered {
        /// The ids of the chosen options.
        options: Vec<String>,
        /// Text.
        text: Option<String>,
    },
    /// No one will answer: it was dismissed, or no one answered in time.
    Closed {
        /// Why, in words.
        reason: String,
    },
}
