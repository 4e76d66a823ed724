//! SQL of the network.

use crate::{
    base::{ids::AgentId, problem::Result, time::Timestamp},
    core::store::{
        Tx,
        sql::{RunWritingSql as _, sql},
    },
};

/// Counts refused connections of an agent to a host and port.
pub(super) async fn count_refused(
    tx: &Tx,
    agent: AgentId,
    (host, port): (String, u16),
    (reason, count): (String, i64),
    at: Timestamp,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO refused_destinations (organization_id, agent_id, host, port, reason, count, last_at) \
         VALUES ($org, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization_id, agent_id, host, port) DO UPDATE \
         SET reason = excluded.reason, count = refused_destinations.count + excluded.count, \
         last_at = excluded.last_at"
    );
    let (port, count) = (i64::from(port).into(), count.into());
    tx.execute(sql, [agent.into(), host.into(), port, reason.into(), count, at.into()]).await?;
    Ok(())
}

/// Deletes the agent's refused destinations except the newest `kept`.
pub(super) async fn delete_old_refused(tx: &Tx, agent: AgentId, kept: i64) -> Result<()> {
    let sql = sql!(
        "DELETE FROM refused_destinations WHERE organization_id = $org AND agent_id = $2 AND id NOT IN \
         (SELECT id FROM refused_destinations WHERE organization_id = $org AND agent_id = $2 \
         ORDER BY last_at DESC, id DESC LIMIT $3)"
    );
    tx.execute(sql, [agent.into(), kept.into()]).await?;
    Ok(())
}
