//! Commands: what the control plane asks of a host. They hold ids alone; the host asks for the rest ([`crate::plan`])
//! just before it acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a host has to do, about one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Command {
    /// Launch the agent. An older generation of it is ended first.
    Launch,
    /// Stop it.
    Stop,
    /// Give it no more turns.
    Pause,
    /// Give it turns again.
    Resume,
    /// Give it a turn.
    Turn {
        /// The turn.
        turn_id: i64,
    },
    /// End a turn that is running.
    Cancel {
        /// The turn.
        turn_id: i64,
    },
    /// Give it what a person decided.
    Answer {
        /// The approval that was decided.
        approval_id: i64,
    },
    /// Answer a request for permission that no person has to decide.
    Verdict {
        /// The request, as in [`crate::event::HostEvent::Asked`].
        request: String,
        /// Whether the agent may go on.
        allowed: bool,
    },
    /// Bring its skills, MCP servers and credentials up to date.
    Sync,
    /// Keep a copy of its volume.
    Backup {
        /// The backup.
        backup_id: i64,
    },
    /// Make its volume what it was in a backup. The agent doesn't run meanwhile.
    Restore {
        /// The backup.
        backup_id: i64,
        /// The SHA-256 of its file, in hexadecimal. Another file is not restored.
        sha256: String,
    },
    /// Remove a backup's file.
    Forget {
        /// The backup.
        backup_id: i64,
    },
}

/// A command on its way to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandEnvelope {
    /// Its number among the commands of this host: 1, 2, 3, ….
    pub seq: i64,
    /// Identifies the command forever; a host carries out each id once.
    pub id: i64,
    /// The agent.
    pub agent_id: i64,
    /// The launch that the command belongs to. A host that has a newer one answers STALE.
    pub generation: i64,
    /// From then on it is useless.
    pub deadline: i64,
    /// What to do.
    pub command: Command,
}
