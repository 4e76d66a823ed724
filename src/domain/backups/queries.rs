//! SQL of backups.

use sea_orm::Value;

use crate::{
    base::{
        enums::BackupSchedule,
        ids::{AgentId, OrgId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

row! {
    /// An agent with an active backup schedule.
    #[derive(Debug)]
    pub(super) struct ScheduledAgent {
        organization_id: OrgId,
        id: AgentId,
        backup_schedule: BackupSchedule,
        /// The agent's own cron line.
        own_cron: Option<String>,
        /// The organization's.
        inherited_cron: Option<String>,
        timezone: Option<String>,
        created_at: Timestamp,
        last_backup_at: Option<Timestamp>,
        /// When its newest backup began.
        last_wanted_at: Option<Timestamp>,
        /// When its newest backup ended.
        last_ended_at: Option<Timestamp>,
    }
}

const SCHEDULED: &str = "SELECT t.organization_id, t.id, t.backup_schedule, t.backup_cron AS own_cron, \
     o.backup_cron AS inherited_cron, COALESCE(t.timezone, o.timezone) AS timezone, t.created_at, t.last_backup_at, \
     (SELECT MAX(b.created_at) FROM agent_backups b WHERE b.organization_id = t.organization_id AND b.agent_id = t.id) \
     AS last_wanted_at, \
     (SELECT MAX(b.ended_at) FROM agent_backups b WHERE b.organization_id = t.organization_id AND b.agent_id = t.id) \
     AS last_ended_at \
     FROM agents t JOIN organizations o ON o.id = t.organization_id WHERE t.archived_at IS NULL \
     AND t.launch_generation > 0 AND o.stopped_at IS NULL AND t.backup_schedule <> 'OFF' \
     AND (t.backup_schedule <> 'INHERIT' OR o.backup_cron IS NOT NULL)";

/// The scheduled agents of all organizations that have no pending backup.
pub(super) async fn scheduled_agents(core: &Core) -> Result<Vec<ScheduledAgent>> {
    let idle = every_org_sql!(
        SCHEDULED,
        " AND NOT EXISTS (SELECT 1 FROM agent_backups b WHERE b.organization_id = t.organization_id \
         AND b.agent_id = t.id AND b.state = 'PENDING')"
    );
    core.db.every_org().all(idle, []).await
}

/// The agent, if it is scheduled.
pub(super) async fn scheduled_agent(tx: &Tx, id: AgentId) -> Result<Option<ScheduledAgent>> {
    tx.one(sql!(SCHEDULED, " AND t.organization_id = $org AND t.id = $2"), [id.into()]).await
}

/// Fails the pending backups and restores of an agent, or of all agents of a server. Returns the agents.
pub(super) async fn fail_pending(
    tx: &Tx,
    agent: Option<AgentId>,
    server: Option<ServerId>,
    why: &str,
) -> Result<Vec<AgentId>> {
    const OF: &str = "organization_id = $org AND agent_id = COALESCE($4, agent_id) AND server_id = COALESCE($5, server_id)";
    let backups = sql!(
        "UPDATE agent_backups SET state = 'FAILED', error = $2, ended_at = $3 WHERE ",
        OF,
        " AND state = 'PENDING' RETURNING agent_id"
    );
    let restores = sql!(
        "UPDATE agent_backups SET restore_state = 'FAILED', restore_error = $2, restored_at = $3 WHERE ",
        OF,
        " AND restore_state = 'PENDING' RETURNING agent_id"
    );
    let values: [Value; 4] = [why.into(), tx.now.into(), agent.into(), server.into()];
    let mut agents = tx.column(backups, values.clone()).await?;
    agents.extend(tx.column::<AgentId>(restores, values).await?);
    Ok(agents)
}

/// Fails the backups and restores of all organizations that have been pending since before `late`. Returns how many.
pub(super) async fn fail_late(core: &Core, late: Timestamp, why: &str) -> Result<u64> {
    let late_backups = every_org_sql!(
        "SELECT organization_id FROM agent_backups WHERE state = 'PENDING' AND created_at <= $1 LIMIT 1"
    );
    let late_restores = every_org_sql!(
        "SELECT organization_id FROM agent_backups WHERE restore_state = 'PENDING' AND restored_at <= $1 LIMIT 1"
    );
    let fail_backups = every_org_sql!(
        "UPDATE agent_backups SET state = 'FAILED', error = $2, ended_at = $3 \
         WHERE state = 'PENDING' AND created_at <= $1"
    );
    let fail_restores = every_org_sql!(
        "UPDATE agent_backups SET restore_state = 'FAILED', restore_error = $2, restored_at = $3 \
         WHERE restore_state = 'PENDING' AND restored_at <= $1"
    );
    let (all, mut failed) = (core.db.every_org(), 0);
    for (look, fail) in [(late_backups, fail_backups), (late_restores, fail_restores)] {
        // A read connection looks first, because a write that changes nothing would still wait for its turn.
        if all.scalar::<OrgId>(look, [late.into()]).await?.is_some() {
            failed += all.execute(fail, [late.into(), why.into(), core.clock.now().into()]).await?;
        }
    }
    Ok(failed)
}

row! {
    /// How many backups of an agent are kept.
    pub(super) struct Retention {
        /// Keep all.
        is_frozen: bool,
        /// The agent's own number, or its organization's.
        backups: Option<i64>,
    }
}

/// The retention of the agent's backups. `None` if the agent doesn't exist.
pub(super) async fn retention(tx: &Tx, agent: AgentId) -> Result<Option<Retention>> {
    let sql = sql!(
        "SELECT a.backup_freeze AS is_frozen, COALESCE(a.backup_retention, o.backup_retention) AS backups FROM agents a \
         JOIN organizations o ON o.id = a.organization_id WHERE a.organization_id = $org AND a.id = $2"
    );
    tx.one(sql, [agent.into()]).await
}
