//! SQL of the limits that keep agents from calling their model.

use sea_orm::Value;

use crate::{
    base::{
        enums::LimitKind,
        ids::{AgentId, ModelCredentialId, OrgId},
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
    /// The limit that an agent waits for.
    pub(super) struct Wait {
        kind: LimitKind,
        reason: String,
        /// When the agent is checked again.
        until_at: Option<Timestamp>,
        /// The organization's credential that the provider refuses.
        model_credential_id: Option<ModelCredentialId>,
        /// Since when a single turn probes the provider.
        probing_at: Option<Timestamp>,
        since: Timestamp,
    }
}

pub(super) async fn wait_of(tx: &Tx, agent: AgentId) -> Result<Option<Wait>> {
    let sql = sql!(
        "SELECT kind, reason, until_at, model_credential_id, probing_at, since FROM agent_limits \
         WHERE organization_id = $org AND agent_id = $2"
    );
    tx.one(sql, [agent.into()]).await
}

/// A limit that keeps an agent from calling its model.
pub(super) struct Limit<'a> {
    pub kind: LimitKind,
    pub reason: &'a str,
    /// When to check again.
    pub until: Timestamp,
    /// The organization's credential that the provider refuses.
    pub credential: Option<ModelCredentialId>,
}

/// Makes an agent wait for a limit. A wait for the same kind of limit keeps its start.
pub(super) async fn write_wait(tx: &Tx, agent: AgentId, limit: &Limit<'_>) -> Result<()> {
    let sql = sql!(
        "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, model_credential_id, since) \
         VALUES ($org, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization_id, agent_id) DO UPDATE \
         SET kind = excluded.kind, reason = excluded.reason, until_at = excluded.until_at, \
         model_credential_id = excluded.model_credential_id, probing_at = NULL, \
         since = CASE WHEN agent_limits.kind = excluded.kind THEN agent_limits.since ELSE excluded.since END"
    );
    let values: [Value; 6] = [
        agent.into(),
        limit.kind.into(),
        limit.reason.into(),
        limit.until.into(),
        limit.credential.into(),
        tx.now.into(),
    ];
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    pub(super) struct EndedWait { kind: LimitKind, since: Timestamp }
}

/// Ends an agent's wait and returns it.
pub(super) async fn delete_wait(tx: &Tx, agent: AgentId) -> Result<Option<EndedWait>> {
    let sql =
        sql!("DELETE FROM agent_limits WHERE organization_id = $org AND agent_id = $2 RETURNING kind, since");
    tx.one(sql, [agent.into()]).await
}

/// The organization's agents that wait for this kind of limit, in lock order.
pub(super) async fn waiting_agents(tx: &Tx, kind: LimitKind) -> Result<Vec<AgentId>> {
    let sql = sql!(
        "SELECT agent_id FROM agent_limits WHERE organization_id = $org AND kind = $2 ORDER BY agent_id"
    );
    tx.column(sql, [kind.into()]).await
}

const NOW: &str = "UPDATE agent_limits SET until_at = $2 WHERE organization_id = $org";

/// Makes all agents but this one that wait for money or tokens check again now. Written right before the commit.
pub(super) fn look_again_but(tx: &Tx, agent: AgentId) {
    let sql = sql!(NOW, " AND kind <> 'USAGE' AND agent_id <> $3");
    tx.before_commit(sql, [tx.now.into(), agent.into()]);
}

/// Makes an agent that waits for tokens check again now. Written right before the commit.
pub(super) fn look_for_tokens_again(tx: &Tx, agent: AgentId) {
    let sql = sql!(NOW, " AND kind = 'TOKENS' AND agent_id = $3");
    tx.before_commit(sql, [tx.now.into(), agent.into()]);
}

/// Makes the agents that wait for a model credential check again now, and ends their probes.
pub(super) async fn look_for_credential_again(tx: &Tx, credential: ModelCredentialId) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET until_at = $3, probing_at = NULL \
         WHERE organization_id = $org AND model_credential_id = $2"
    );
    tx.execute(sql, [credential.into(), tx.now.into()]).await?;
    Ok(())
}

row! {
    pub(super) struct DueAgent { organization_id: OrgId, agent_id: AgentId }
}

/// SQL: the waits that are due for a check by `$1`.
pub const LIMIT_OVER: &str = "agent_limits WHERE until_at IS NOT NULL AND until_at <= $1";

/// At most `most` agents of all organizations that are due for a check.
pub(super) async fn due_agents(core: &Core, most: i64) -> Result<Vec<DueAgent>> {
    let sql =
        every_org_sql!("SELECT organization_id, agent_id FROM ", LIMIT_OVER, " ORDER BY until_at LIMIT $2");
    core.db.every_org().all(sql, [core.clock.now().into(), most.into()]).await
}

/// Sets when an agent checks again, and why, unless its time differs from `seen`.
pub(super) async fn extend_wait(
    tx: &Tx,
    agent: AgentId,
    seen: Option<Timestamp>,
    (until, reason): (Timestamp, &str),
) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET until_at = $4, reason = $5 WHERE organization_id = $org AND agent_id = $2 \
         AND until_at = $3"
    );
    tx.execute(sql, [agent.into(), seen.into(), until.into(), reason.into()]).await?;
    Ok(())
}

/// Makes an agent wait for this model credential, and ends its probe.
pub(super) async fn set_wait_credential(
    tx: &Tx,
    agent: AgentId,
    credential: ModelCredentialId,
) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET model_credential_id = $3, probing_at = NULL \
         WHERE organization_id = $org AND agent_id = $2"
    );
    tx.execute(sql, [agent.into(), credential.into()]).await?;
    Ok(())
}

/// Sets when an agent checks again. `probing`: since when a single turn probes the provider.
pub(super) async fn postpone(
    tx: &Tx,
    agent: AgentId,
    until: Timestamp,
    probing: Option<Timestamp>,
) -> Result<()> {
    let sql = sql!(
        "UPDATE agent_limits SET until_at = $3, probing_at = $4 WHERE organization_id = $org AND agent_id = $2"
    );
    tx.execute(sql, [agent.into(), until.into(), probing.into()]).await?;
    Ok(())
}
