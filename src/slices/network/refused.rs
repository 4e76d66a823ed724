//! Where agents were not let through, counted for each agent, host and port. The newest of each agent are kept.

use muster_protocol::plan::Destination;

use crate::{
    base::{
        plain::{self, bounded},
        problem::Result,
    },
    core::store::Tx,
    slices::agents::{
        self,
        reporter::{Reporter, current},
    },
};

/// How many of an agent are kept.
const KEPT: i64 = 100;
/// The longest name of a host, in bytes.
const HOST_BYTES: usize = 253;
/// The longest reason, in bytes.
const REASON_BYTES: usize = 500;
/// The most that one report counts.
const MOST: i64 = 1_000_000;

/// Connections of an agent were refused.
///
/// # Errors
/// The database is unreachable.
pub async fn unreached(tx: &Tx, from: &Reporter, to: Destination, reason: String, count: i64) -> Result<()> {
    let Some(agent) = current(tx, from).await? else { return Ok(()) };
    let host = bounded(&plain::one_line(&to.host), HOST_BYTES);
    let reason = bounded(&plain::one_line(&reason), REASON_BYTES);
    let at = from.time(tx, crate::base::time::Timestamp(0));
    let sql = "INSERT INTO refused_destinations (organization_id, agent_id, host, port, reason, count, last_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization_id, agent_id, host, port) DO UPDATE \
               SET reason = excluded.reason, count = refused_destinations.count + excluded.count, \
               last_at = excluded.last_at";
    let values = vec![
        tx.scope.org.into(),
        agent.id.into(),
        host.into(),
        i64::from(to.port).into(),
        reason.into(),
        count.clamp(1, MOST).into(),
        at.into(),
    ];
    tx.run(sql, values).await?;
    let sql = "DELETE FROM refused_destinations WHERE organization_id = $1 AND agent_id = $2 AND id NOT IN \
               (SELECT id FROM refused_destinations WHERE organization_id = $1 AND agent_id = $2 \
               ORDER BY last_at DESC, id DESC LIMIT $3)";
    tx.run(sql, vec![tx.scope.org.into(), agent.id.into(), KEPT.into()]).await?;
    agents::announce(tx, agent.id);
    Ok(())
}
