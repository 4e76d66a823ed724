//! What turns have spent, read from the calls that their hosts measured.

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

/// What a turn has spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    /// Tokens and money. The cost is unknown if that of one call is.
    pub usage: Usage,
    /// The model that was called last.
    pub model: String,
}

/// What a turn has spent, as its host measured it. None: it measured nothing.
pub(super) async fn measured(tx: &Tx, turn: TurnId) -> Result<Option<Measured>> {
    let Some(sum) = queries::sum_of_turn(tx, turn).await? else { return Ok(None) };
    let usage = sum.usage();
    Ok(sum.model.map(|model| Measured { usage, model }))
}

/// Whether the agent's host has measured a call since then. None: the turn was never begun, and none was of it.
pub(super) async fn has_measured(tx: &Tx, agent: AgentId, since: Option<Timestamp>) -> Result<bool> {
    match since {
        Some(since) => queries::has_call(tx, agent, since).await,
        None => Ok(false),
    }
}
