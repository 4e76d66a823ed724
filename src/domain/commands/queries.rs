//! SQL of commands.

use std::collections::HashSet;

use super::Host;
use crate::{
    base::{
        enums::CommandKind,
        ids::{AgentId, OrgId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        queue::Depth,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

/// SQL condition on a row `c` of `commands`: a stop of the organization doesn't hold the command back.
pub const MAY_GO: &str = "(c.kind IN ('STOP', 'CANCEL', 'SYNC', 'FORGET') \
     OR NOT EXISTS (SELECT 1 FROM organizations stopped WHERE stopped.id = c.organization_id \
     AND stopped.stopped_at IS NOT NULL))";

/// Inserts a command when the transaction commits.
pub(super) fn insert(
    tx: &Tx,
    to: Host,
    (kind, payload): (CommandKind, serde_json::Value),
    expires_at: Timestamp,
) {
    let sql = sql!(
        "INSERT INTO commands (organization_id, server_id, agent_id, generation, kind, payload, created_at, expires_at) \
         VALUES ($org, $2, $3, $4, $5, $6, $7, $8)"
    );
    let values = [to.server.into(), to.agent.into(), to.generation.into(), kind.into(), payload.into()];
    tx.before_commit(sql, values.into_iter().chain([tx.now.into(), expires_at.into()]).collect::<Vec<_>>());
}

/// The servers for which new commands wait.
pub(super) async fn servers_waiting(tx: &Tx) -> Result<Vec<ServerId>> {
    let sql = sql!(
        "SELECT DISTINCT server_id FROM commands WHERE organization_id = $org AND acknowledged_at IS NULL \
         AND host_seq IS NULL"
    );
    tx.column(sql, []).await
}

/// Counts the waiting commands of each kind, including kinds of a later version. Reads only an index of waiting rows.
pub async fn waiting(core: &Core) -> Result<Vec<Depth>> {
    let sql = every_org_sql!(
        "SELECT kind, COUNT(organization_id) AS depth, MIN(created_at) AS oldest FROM commands \
         WHERE acknowledged_at IS NULL GROUP BY kind"
    );
    let mut waiting: Vec<Depth> = core.db.every_org().all(sql, []).await?;
    for kind in CommandKind::ALL {
        if !waiting.iter().any(|depth| depth.kind == kind.as_str()) {
            waiting.push(Depth { kind: kind.as_str().to_owned(), depth: 0, oldest: None });
        }
    }
    waiting.sort_by(|a, b| a.kind.cmp(&b.kind));
    Ok(waiting)
}

row! {
    /// A launch of an agent.
    struct Launch { agent_id: i64, generation: i64 }
}

fn pairs(launches: Vec<Launch>) -> HashSet<(i64, i64)> {
    launches.into_iter().map(|launch| (launch.agent_id, launch.generation)).collect()
}

/// The launches of these agents with a SYNC that has not been sent: their hosts will ask for a plan after this
/// transaction, so another SYNC is not needed. A command that is being sent doesn't count.
pub async fn pending_syncs(tx: &Tx, agents: &[AgentId]) -> Result<HashSet<(i64, i64)>> {
    // The lock keeps it from being sent before this transaction has ended.
    let sql = sql!(
        "SELECT agent_id, generation FROM commands WHERE organization_id = $org AND agent_id = ANY($2) \
         AND kind = 'SYNC' AND acknowledged_at IS NULL AND host_seq IS NULL AND expires_at > $3 FOR UPDATE SKIP LOCKED"
    );
    let ids: Vec<i64> = agents.iter().map(|agent| agent.0).collect();
    Ok(pairs(tx.all(sql, [tx.scope.core.db.keys(&ids), tx.now.into()]).await?))
}

/// The launches of these agents that ran on this server, judged by the commands sent to its host. A FORGET doesn't
/// count, because it goes to the server that has the backup's file. A week after the last command of a launch was
/// acknowledged, this is no longer known.
pub async fn launches_sent(tx: &Tx, server: ServerId, agents: &[i64]) -> Result<HashSet<(i64, i64)>> {
    let sql = sql!(
        "SELECT DISTINCT agent_id, generation FROM commands WHERE organization_id = $org AND agent_id = ANY($2) \
         AND server_id = $3 AND host_seq IS NOT NULL AND kind <> 'FORGET'"
    );
    Ok(pairs(tx.all(sql, [tx.scope.core.db.keys(agents), server.into()]).await?))
}

/// Expires commands instead of deleting them, because the gateway may be about to send one.
const EXPIRE: &str =
    "UPDATE commands SET expires_at = $3 WHERE organization_id = $org AND acknowledged_at IS NULL AND ";

/// Expires the agent's waiting commands except those about backups, because the agent is being stopped: a LAUNCH that
/// waits while its organization is stopped must not follow the STOP that overtakes it.
pub async fn expire_of_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    let sql = sql!(EXPIRE, "agent_id = $2 AND kind NOT IN ('BACKUP', 'RESTORE', 'FORGET')");
    tx.execute(sql, [agent.into(), tx.now.into()]).await?;
    Ok(())
}

/// Expires the waiting backups and restores of an agent that moves to another server.
pub async fn expire_backups_of_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    let sql = sql!(EXPIRE, "agent_id = $2 AND kind IN ('BACKUP', 'RESTORE')");
    tx.execute(sql, [agent.into(), tx.now.into()]).await?;
    Ok(())
}

/// Expires the waiting backups and restores of a server whose machine was replaced: the new one has no homes and no
/// backups.
pub async fn expire_backups_of_server(tx: &Tx, server: ServerId) -> Result<()> {
    let sql = sql!(EXPIRE, "server_id = $2 AND kind IN ('BACKUP', 'RESTORE')");
    tx.execute(sql, [server.into(), tx.now.into()]).await?;
    Ok(())
}

row! {
    /// A command that was not sent before its deadline.
    pub struct Unsent { id: i64, organization_id: OrgId, agent_id: AgentId }
}

/// At most `most` commands of this kind, after the id `after`, that were not sent before their deadline.
pub async fn unsent(core: &Core, kind: CommandKind, after: i64, most: i64) -> Result<Vec<Unsent>> {
    let sql = every_org_sql!(
        "SELECT id, organization_id, agent_id FROM commands WHERE acknowledged_at IS NULL AND host_seq IS NULL \
         AND expires_at <= $1 AND kind = $2 AND id > $3 ORDER BY id LIMIT $4"
    );
    core.db.every_org().all(sql, [core.clock.now().into(), kind.into(), after.into(), most.into()]).await
}

row! {
    /// A command that was dropped.
    pub struct Dropped { generation: i64, payload: serde_json::Value }
}

/// Drops a command that was not sent before its deadline. `None`: it was sent in the meantime.
pub async fn drop_unsent(tx: &Tx, id: i64) -> Result<Option<Dropped>> {
    let sql = sql!(
        "DELETE FROM commands WHERE organization_id = $org AND id = $2 AND acknowledged_at IS NULL AND host_seq IS NULL \
         AND expires_at <= $3 RETURNING generation, payload"
    );
    tx.one(sql, [id.into(), tx.now.into()]).await
}

/// Deletes the commands for a server that is being deleted.
pub async fn delete_of_server(tx: &Tx, server: ServerId) -> Result<()> {
    let sql = sql!("DELETE FROM commands WHERE organization_id = $org AND server_id = $2");
    tx.execute(sql, [server.into()]).await?;
    Ok(())
}
