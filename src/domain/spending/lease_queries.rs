//! SQL of leases.

use sea_orm::Value;

use crate::{
    base::{
        ids::{AgentId, LeaseId, OrgId},
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

/// The number of open leases of the agent.
pub(super) async fn open_leases(tx: &Tx, agent: AgentId) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM leases WHERE organization_id = $org AND agent_id = $2 AND closed_at IS NULL \
         AND until_at > $3"
    );
    Ok(tx.scalar(sql, [agent.into(), tx.now.into()]).await?.unwrap_or(0))
}

/// The number of tokens that the agent's open leases may still take.
pub(super) async fn leased_tokens(tx: &Tx, agent: AgentId) -> Result<i64> {
    let sql = sql!(
        "SELECT CAST(COALESCE(SUM(tokens - used_tokens), 0) AS BIGINT) FROM leases WHERE organization_id = $org \
         AND agent_id = $2 AND closed_at IS NULL AND until_at > $3 AND tokens > used_tokens"
    );
    Ok(tx.scalar(sql, [agent.into(), tx.now.into()]).await?.unwrap_or(0))
}

row! {
    pub(super) struct GrantedLease {
        id: LeaseId,
        cost_micro: Option<i64>,
        tokens: Option<i64>,
        until_at: Timestamp,
    }
}

/// The open lease that was granted for this question of the agent's host.
pub(super) async fn lease_of_question(
    tx: &Tx,
    agent: AgentId,
    question: i64,
) -> Result<Option<GrantedLease>> {
    let sql = sql!(
        "SELECT id, cost_micro, tokens, until_at FROM leases WHERE organization_id = $org AND agent_id = $2 \
         AND question = $3 AND closed_at IS NULL AND until_at > $4"
    );
    tx.one(sql, [agent.into(), question.into(), tx.now.into()]).await
}

row! {
    pub(super) struct LeaseRow {
        id: LeaseId,
        cost_micro: Option<i64>,
        tokens: Option<i64>,
        used_micro: i64,
        used_tokens: i64,
        month_at: Timestamp,
        closed_at: Option<Timestamp>,
    }
}

const LEASE: &str = "SELECT id, cost_micro, tokens, used_micro, used_tokens, month_at, closed_at FROM leases \
     WHERE organization_id = $org AND agent_id = $2";

pub(super) async fn unclosed_leases(tx: &Tx, agent: AgentId) -> Result<Vec<LeaseRow>> {
    tx.all(sql!(LEASE, " AND closed_at IS NULL"), [agent.into()]).await
}

pub(super) async fn lease_of(tx: &Tx, agent: AgentId, lease: LeaseId) -> Result<Option<LeaseRow>> {
    tx.one(sql!(LEASE, " AND id = $3"), [agent.into(), lease.into()]).await
}

/// Replaces a lease's amounts.
pub(super) async fn cut_lease(
    tx: &Tx,
    agent: AgentId,
    lease: LeaseId,
    (cost, tokens): (Option<i64>, Option<i64>),
) -> Result<()> {
    let sql = sql!(
        "UPDATE leases SET cost_micro = $4, tokens = $5 WHERE organization_id = $org AND agent_id = $2 AND id = $3"
    );
    tx.execute(sql, [agent.into(), lease.into(), cost.into(), tokens.into()]).await?;
    Ok(())
}

/// Adds to a lease's used amounts.
pub(super) async fn use_lease(
    tx: &Tx,
    agent: AgentId,
    lease: LeaseId,
    (cost, tokens): (i64, i64),
) -> Result<()> {
    let sql = sql!(
        "UPDATE leases SET used_micro = used_micro + $4, used_tokens = used_tokens + $5 \
         WHERE organization_id = $org AND agent_id = $2 AND id = $3"
    );
    tx.execute(sql, [agent.into(), lease.into(), cost.into(), tokens.into()]).await?;
    Ok(())
}

pub(super) async fn add_lease(
    tx: &Tx,
    agent: AgentId,
    question: i64,
    (month, until): (Timestamp, Timestamp),
    (cost, tokens): (Option<i64>, Option<i64>),
) -> Result<Option<LeaseId>> {
    let sql = sql!(
        "INSERT INTO leases (organization_id, agent_id, question, month_at, cost_micro, tokens, until_at, created_at) \
         VALUES ($org, $2, $3, $4, $5, $6, $7, $8) RETURNING id"
    );
    let values: [Value; 7] = [
        agent.into(),
        question.into(),
        month.into(),
        cost.into(),
        tokens.into(),
        until.into(),
        tx.now.into(),
    ];
    tx.scalar(sql, values).await
}

row! {
    pub(super) struct ClosedLease {
        cost_micro: Option<i64>,
        used_micro: i64,
        tokens: Option<i64>,
        used_tokens: i64,
        month_at: Timestamp,
    }
}

/// Closes a lease. `None` if it does not exist or was closed before.
pub(super) async fn close_lease(tx: &Tx, agent: AgentId, lease: LeaseId) -> Result<Option<ClosedLease>> {
    let sql = sql!(
        "UPDATE leases SET closed_at = $4 WHERE organization_id = $org AND agent_id = $2 AND id = $3 \
         AND closed_at IS NULL RETURNING cost_micro, used_micro, tokens, used_tokens, month_at"
    );
    tx.one(sql, [agent.into(), lease.into(), tx.now.into()]).await
}

row! {
    pub(super) struct DueLease { organization_id: OrgId, agent_id: AgentId, id: LeaseId }
}

/// SQL: the leases that have expired by `$1` and are not closed.
pub const LEASE_OVER: &str = "leases WHERE closed_at IS NULL AND until_at <= $1";

/// At most `most` leases of all organizations that have expired and are not closed.
pub(super) async fn due_leases(core: &Core, most: i64) -> Result<Vec<DueLease>> {
    let sql = every_org_sql!(
        "SELECT organization_id, agent_id, id FROM ",
        LEASE_OVER,
        " ORDER BY until_at LIMIT $2"
    );
    core.db.every_org().all(sql, [core.clock.now().into(), most.into()]).await
}
