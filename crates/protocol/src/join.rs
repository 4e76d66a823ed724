//! Joining: a host exchanges its server's provisioning token for its own token, once.
//!
//! `POST /gateway/join` with `Authorization: Bearer mst_prov_…`. The host creates its own token and stores it before
//! sending it, so a lost response costs nothing: the same host can repeat the request. Errors are problem documents.
//!
//! A host that starts over in its folder, after a backup was restored on either side, sends the same request. It may
//! present its own token instead: `Authorization: Bearer mst_host_…`. Commands and events are counted from one again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// The path of the request.
pub const PATH: &str = "/gateway/join";

/// The request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// The host's future token: `mst_host_…`.
    pub host_token: Secret,
    /// The machine.
    pub machine: Machine,
    /// The folder's contents, if the host starts over in it.
    #[serde(default)]
    pub again: Option<FolderState>,
}

/// How many agents a folder may name.
pub const MAX_AGENTS: usize = 10_000;

/// The state of a host that starts over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FolderState {
    /// The agents with files in the folder, at most [`MAX_AGENTS`].
    pub agents: Vec<i64>,
    /// The last command in its journal.
    pub commands: i64,
    /// The last event that the journal knows to be acknowledged.
    pub acknowledged: i64,
}

/// What the control plane knows about a host that starts over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KnownState {
    /// The folder's agents whose ids belong to the organization.
    pub agents: Vec<KnownAgent>,
    /// The last command sent.
    pub commands: i64,
    /// The last event stored.
    pub events: i64,
}

/// An agent of a host that starts over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownAgent {
    /// The agent.
    pub agent_id: i64,
    /// [`crate::plan::LaunchPlan::created_at`]. If the folder's launches have a different one, the id belonged to
    /// another agent then.
    pub created_at: i64,
    /// Its name, if it is on the host's server.
    pub name: Option<String>,
    /// Its last launch.
    pub generation: i64,
}

/// A host's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Identifies the host's folder: random, created at the first join.
    pub id: String,
    /// The machine's name.
    pub hostname: String,
    /// The operating system, such as `linux`.
    pub os: String,
    /// The processor's architecture, such as `x86_64`.
    pub arch: String,
    /// The number of processors.
    pub cpu_cores: i64,
    /// The memory, in MiB.
    pub memory_mb: i64,
    /// The size of the disk that holds the host's folder, in MiB.
    pub disk_mb: i64,
    /// The version of the host's program.
    pub version: String,
}

/// The response: the host's organization and server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Joined {
    /// The organization.
    pub organization_id: i64,
    /// The server.
    pub server_id: i64,
    /// The server's name.
    pub server_name: String,
    /// What is known about the host, if it starts over.
    #[serde(default)]
    pub known: Option<KnownState>,
}
