//! Commands: the control plane's instructions to a host. They hold only ids; the host requests the details
//! ([`crate::plan`]) just before it acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a host should do with one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Command {
    /// Launch the agent. An older launch of it is ended first.
    Launch,
    /// Stop it.
    Stop,
    /// Give it no further turns.
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
    /// Deliver a person's decision.
    Answer {
        /// The approval that was decided.
        approval_id: i64,
    },
    /// Answer a permission request that needs no person.
    Verdict {
        /// The request, as in [`crate::event::HostEvent::Asked`].
        request: String,
        /// Whether the agent may continue.
        allowed: bool,
    },
    /// Bring its skills, MCP servers and credentials up to date.
    Sync,
    /// Test the connection to one of its MCP servers: start a session, and list the tools.
    TestMcp {
        /// The server.
        server_id: i64,
    },
    /// Back up its home.
    Backup {
        /// The backup.
        backup_id: i64,
    },
    /// Restore its home from a backup. The agent does not run meanwhile.
    Restore {
        /// The backup.
        backup_id: i64,
        /// The SHA-256 of the backup's file, in hexadecimal. A different file is not restored.
        sha256: String,
    },
    /// Delete a backup's file.
    Forget {
        /// The backup.
        backup_id: i64,
    },
}

/// A command with its number, its target and its deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandEnvelope {
    /// Its number among the commands of this host: 1, 2, 3, ….
    pub seq: i64,
    /// Identifies the command forever; a host executes each id once.
    pub id: i64,
    /// The agent.
    pub agent_id: i64,
    /// The launch that the command belongs to. A host with a newer one answers STALE.
    pub generation: i64,
    /// After this time the command is void.
    pub deadline: i64,
    /// What to do.
    pub command: Command,
}
