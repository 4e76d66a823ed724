//! Joining: a host exchanges its server's provisioning token for a token of its own, once.
//!
//! `POST /gateway/join` with `Authorization: Bearer mst_prov_…`. The host makes its own token and stores it before it
//! sends it, so a lost response costs nothing: the same host can ask again. Errors are problem documents.
//!
//! A host that begins again in its folder, after a backup was restored on either side, asks the same way. It may show its own
//! token instead: `Authorization: Bearer mst_host_…`. Commands and events are counted from one again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// The path of the request.
pub const PATH: &str = "/gateway/join";

/// The request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Join {
    /// The token that the host will use from now on: `mst_host_…`.
    pub host_token: Secret,
    /// The machine.
    pub machine: Machine,
    /// What the folder has, if the host begins again in it.
    #[serde(default)]
    pub again: Option<Again>,
}

/// How many agents a folder may name.
pub const MOST_AGENTS: usize = 10_000;

/// What a host knows that begins again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Again {
    /// The agents that have something in the folder, at most [`MOST_AGENTS`].
    pub agents: Vec<i64>,
    /// The last command in its journal.
    pub commands: i64,
    /// The last event of which its journal knows that it was acknowledged.
    pub acknowledged: i64,
}

/// What the control plane knows of a host that begins again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Known {
    /// Those of the folder's agents whose numbers the organization has given.
    pub agents: Vec<KnownAgent>,
    /// The last command that it has sent.
    pub commands: i64,
    /// The last event that it has stored.
    pub events: i64,
}

/// An agent of a host that begins again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownAgent {
    /// The agent.
    pub agent_id: i64,
    /// [`crate::plan::LaunchPlan::created_at`]. If launches in the folder had another one, the number was another agent's then.
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
    /// Identifies the host's folder: random, made when it joined.
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

/// The response: whom the host serves now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Joined {
    /// The organization.
    pub organization_id: i64,
    /// The server.
    pub server_id: i64,
    /// The server's name.
    pub server_name: String,
    /// What is known of the host, if it begins again.
    #[serde(default)]
    pub known: Option<Known>,
}
