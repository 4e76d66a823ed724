//! SQL of launches.

use crate::{
    base::{
        enums::CommandKind,
        ids::{AgentId, OrgId},
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
    domain::agents::{AWAY, HALTED},
};

row! {
    /// An agent whose automatic restart is due.
    pub(super) struct DueRestart { organization_id: OrgId, id: AgentId }
}

/// The agents whose automatic restart is due at `$1`.
pub const RESTART_DUE: &str = "agents t WHERE t.restart_at <= $1 AND t.archived_at IS NULL";

/// At most 1,000 due restarts, of organizations that are not stopped.
pub(super) async fn due_restarts(core: &Core) -> Result<Vec<DueRestart>> {
    let sql = every_org_sql!(
        "SELECT t.organization_id, t.id FROM ",
        RESTART_DUE,
        " AND NOT ",
        HALTED,
        " ORDER BY t.restart_at LIMIT 1000"
    );
    core.db.every_org().all(sql, [core.clock.now().into()]).await
}

row! {
    /// A start that takes long.
    pub(super) struct LateStart {
        organization_id: OrgId,
        id: AgentId,
        status_changed_at: Timestamp,
        /// 1: the agent can't be launched.
        waits: i32,
    }
}

/// The agents that are starting. The literal status makes the partial index apply.
pub const SPAWNING: &str = "agents t WHERE t.status = 'SPAWNING' AND t.archived_at IS NULL";

/// At most 1,000 starts that began before `since`.
pub(super) async fn late_starts(core: &Core, since: Timestamp) -> Result<Vec<LateStart>> {
    let sql = every_org_sql!(
        "SELECT t.organization_id, t.id, t.status_changed_at, CASE WHEN ",
        AWAY,
        " OR ",
        HALTED,
        " THEN 1 ELSE 0 END AS waits FROM ",
        SPAWNING,
        " AND t.status_changed_at <= $1 ORDER BY t.status_changed_at LIMIT 1000"
    );
    core.db.every_org().all(sql, [since.into()]).await
}

/// Restarts the deadline of a start, unless its agent has another status by now.
pub(super) async fn postpone_deadline(core: &Core, start: &LateStart, now: Timestamp) -> Result<()> {
    let sql = every_org_sql!(
        "UPDATE agents SET status_changed_at = $1 \
         WHERE organization_id = $2 AND id = $3 AND status = 'SPAWNING' AND status_changed_at = $4"
    );
    let values = [now.into(), start.organization_id.into(), start.id.into(), start.status_changed_at.into()];
    core.db.every_org().execute(sql, values).await?;
    Ok(())
}

/// The payload of a command for the agent, if it is of this kind.
pub(super) async fn command_payload(
    tx: &Tx,
    agent: AgentId,
    (command, kind): (i64, CommandKind),
) -> Result<Option<serde_json::Value>> {
    let sql = sql!(
        "SELECT payload FROM commands WHERE id = $2 AND organization_id = $org AND agent_id = $3 AND kind = $4"
    );
    tx.scalar(sql, [command.into(), agent.into(), kind.into()]).await
}
