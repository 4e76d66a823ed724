//! What the control plane and the hosts of servers say to each other.
//!
//! Both sides build on this crate, so it knows neither the database nor GraphQL. Ids are the numbers that `/v1` shows.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// What the control plane asks of a host, about one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Command {
    /// Launch the agent.
    Launch,
    /// Stop it.
    Stop,
    /// Give it no more turns.
    Pause,
    /// Give it turns again.
    Resume,
    /// Give it a message to answer.
    Turn {
        /// The conversation of the message.
        conversation_id: i64,
        /// The message.
        message_id: i64,
    },
    /// Give it a person's decision.
    Answer {
        /// The approval that was decided.
        approval_id: i64,
    },
    /// Bring its skills, MCP servers and credentials up to date.
    Sync,
}
