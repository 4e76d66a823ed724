//! The source of a report: which host, about which launch of which agent.

use super::locked::{LockedAgent, lock_agent};
use crate::{
    base::{
        ids::{AgentId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
};

/// The source of a report: a host, about a launch of one of its agents.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    pub agent: AgentId,
    pub server: ServerId,
    pub generation: i64,
    /// By the host's clock.
    pub at: Timestamp,
}

impl Reporter {
    /// The time of the report, clamped because the host's clock may be wrong: not in the future, and not before
    /// `not_before`.
    #[must_use]
    pub fn time(&self, tx: &Tx, not_before: Timestamp) -> Timestamp {
        self.at.max(not_before).min(tx.now)
    }
}

/// Locks the agent. `None` unless the report is about its current launch.
pub async fn lock_current(tx: &Tx, from: &Reporter) -> Result<Option<LockedAgent>> {
    let agent = lock_agent(tx, from.agent).await?;
    Ok(agent.filter(|agent| !is_of_unknown_launch(tx, agent, from) && agent.generation == from.generation))
}

/// [`lock_current`], unless the launch has ended. The end is the last report of a launch, so its messages and requests
/// are stored by then. Later ones don't come from the agent.
pub async fn lock_live(tx: &Tx, from: &Reporter) -> Result<Option<LockedAgent>> {
    let agent = lock_current(tx, from).await?;
    Ok(agent.filter(|agent| !agent.status.is_at_rest()))
}

/// Whether the report is about a launch that never took place.
pub(in crate::domain) fn is_of_unknown_launch(tx: &Tx, agent: &LockedAgent, from: &Reporter) -> bool {
    let is_unknown = from.generation > agent.generation;
    if is_unknown {
        let (org, server, generation) = (tx.scope.org.0, from.server.0, from.generation);
        tracing::warn!(org, agent = agent.id.0, server, generation, "report.of_no_launch");
    }
    is_unknown
}
