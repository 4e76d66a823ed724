//! The usage of turns, from the calls that their hosts measured.

use muster_protocol::event::Usage;

use super::queries;
use crate::{
    base::{
        ids::{AgentId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
};

/// The measured usage of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    /// The cost is unknown if the cost of one call is.
    pub usage: Usage,
    /// The last model called.
    pub model: String,
}

/// The usage of a turn, as its host measured it. None: the host measured no call.
pub(super) async fn load_measured_usage(tx: &Tx, turn: TurnId) -> Result<Option<Measured>> {
    let Some(sum) = queries::sum_of_turn(tx, turn).await? else { return Ok(None) };
    let usage = sum.usage();
    Ok(sum.model.map(|model| Measured { usage, model }))
}

/// Whether the agent's host has measured a call since the turn began. `None`: the turn never began, so it made no call.
pub(super) async fn has_measured(tx: &Tx, agent: AgentId, since: Option<Timestamp>) -> Result<bool> {
    match since {
        Some(since) => queries::has_call(tx, agent, since).await,
        None => Ok(false),
    }
}
