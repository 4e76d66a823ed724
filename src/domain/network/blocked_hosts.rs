//! Refused connections of agents, counted for each agent, host and port. The newest of each agent are kept.

use muster_protocol::plan::Destination;

use super::queries;
use crate::{
    base::{bounds, plain::truncated_line, problem::Result},
    core::store::Tx,
    domain::agents::{
        self,
        reporter::{Reporter, lock_current},
    },
};

/// The largest count of one report. A host can report any number, and sums must not overflow.
const MOST: i64 = 1_000_000;

/// Counts an agent's refused connections.
pub async fn record_unreached(
    tx: &Tx,
    from: &Reporter,
    to: Destination,
    reason: String,
    count: i64,
) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let host = truncated_line(&to.host, bounds::NAME);
    let reason = truncated_line(&reason, bounds::REASON);
    let at = from.time(tx, crate::base::time::Timestamp(0));
    let count = count.clamp(1, MOST);
    queries::count_refused(tx, agent.id, (host, to.port), (reason, count), at).await?;
    queries::delete_old_refused(tx, agent.id, bounds::HISTORY).await?;
    agents::announce(tx, agent.id);
    Ok(())
}
