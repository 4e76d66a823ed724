//! Which host reports, about which launch of which agent.

use super::locked::{LockedAgent, lock_agent};
use crate::{
    base::{
        ids::{AgentId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
};

/// What reports: a host, about a launch of one of its agents.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    pub agent: AgentId,
    pub server: ServerId,
    pub generation: i64,
    /// When it happened, by the host's clock.
    pub at: Timestamp,
}

impl Reporter {
    /// When it happened, as far as the host's clock can be believed: not in the future, and not before this.
    #[must_use]
    pub fn time(&self, tx: &Tx, not_before: Timestamp) -> Timestamp {
        self.at.max(not_before).min(tx.now)
    }
}

/// The agent, held, if this is its present launch.
pub async fn current(tx: &Tx, from: &Reporter) -> Result<Option<LockedAgent>> {
    let agent = lock_agent(tx, from.agent).await?;
    Ok(agent.filter(|agent| !of_no_launch(agent, from) && agent.generation == from.generation))
}

/// The same, unless the launch has ended, or there was none. Its end is the last that a host reports of a launch, so whatever
/// was said or asked in it is stored by then. What comes later is nothing that the agent has said.
pub async fn alive(tx: &Tx, from: &Reporter) -> Result<Option<LockedAgent>> {
    let agent = current(tx, from).await?;
    Ok(agent.filter(|agent| !agent.status.is_at_rest()))
}

/// Whether the report is about a launch that never was.
pub(in crate::domain) fn of_no_launch(agent: &LockedAgent, from: &Reporter) -> bool {
    let is_unknown = from.generation > agent.generation;
    if is_unknown {
        let (server, generation) = (from.server.0, from.generation);
        tracing::warn!(agent = agent.id.0, server, generation, "report.of_no_launch");
    }
    is_unknown
}
