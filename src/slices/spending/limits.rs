//! Agents that may not call their model at the moment: their rows. `release.rs` lets them go on.

use sea_orm::{QueryResult, Statement, Value};

use super::{months, terms::zone_of};
use crate::{
    base::{
        enums::LimitKind,
        ids::{AgentId, ModelCredentialId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    slices::{
        agents::{self, LockedAgent},
        approvals, turns,
    },
};

/// What keeps an agent from calling its model.
pub(super) struct Limit<'a> {
    /// What was reached.
    pub kind: LimitKind,
    /// The same in words.
    pub reason: &'a str,
    /// When to go on.
    pub until: Timestamp,
    /// The organization's model credential whose provider refuses.
    pub credential: Option<ModelCredentialId>,
}

/// The agent may not call its model until then.
pub(super) async fn set(tx: &Tx, agent: AgentId, limit: &Limit<'_>) -> Result<()> {
    if let Some(last) = find(tx, agent).await?.filter(|last| last.kind != limit.kind) {
        turns::waited(tx, agent, last.kind, last.since).await?;
    }
    let sql = "INSERT INTO agent_limits (organization_id, agent_id, kind, reason, until_at, model_credential_id, since) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization_id, agent_id) DO UPDATE \
               SET kind = excluded.kind, reason = excluded.reason, until_at = excluded.until_at, \
               model_credential_id = excluded.model_credential_id, probing_at = NULL, \
               since = CASE WHEN agent_limits.kind = excluded.kind THEN agent_limits.since ELSE excluded.since END";
    let values = vec![
        tx.scope.org.into(),
        agent.into(),
        limit.kind.as_str().into(),
        limit.reason.into(),
        limit.until.into(),
        limit.credential.into(),
        tx.now.into(),
    ];
    tx.run(sql, values).await?;
    agents::announce(tx, agent);
    Ok(())
}

/// Whether the agent may not call its model: its turns wait.
///
/// # Errors
/// The database is unreachable.
pub async fn is_limited(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(find(tx, agent).await?.is_some())
}

/// What keeps the agent from calling its model, and since when.
///
/// # Errors
/// The database is unreachable.
pub async fn limited_since(tx: &Tx, agent: AgentId) -> Result<Option<(LimitKind, Timestamp)>> {
    Ok(find(tx, agent).await?.map(|row| (row.kind, row.since)))
}

/// Why the agent's provider takes no more, and until when. None while it does, or while a turn is being tried.
pub(super) async fn waits_for_provider(tx: &Tx, agent: AgentId) -> Result<Option<(String, Timestamp)>> {
    let Some(row) = find(tx, agent).await? else { return Ok(None) };
    let waits = row.kind == LimitKind::Usage && row.probing.is_none();
    Ok(row.until.filter(|until| waits && *until > tx.now).map(|until| (row.reason, until)))
}

/// Nothing keeps the agent from calling its model now: its turns go on.
pub(super) async fn eased(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    forget(tx, agent.id).await?;
    turns::go_on(tx, agent, None).await?;
    Ok(())
}

/// The same, if it is this kind of limit. Returns whether it was.
pub(super) async fn eased_of(tx: &Tx, agent: &LockedAgent, kinds: &[LimitKind]) -> Result<bool> {
    let is = find(tx, agent.id).await?.is_some_and(|row| kinds.contains(&row.kind));
    if is {
        eased(tx, agent).await?;
    }
    Ok(is)
}

/// What the organization's agents may spend has changed, whose time zone was and is the one of these names: agents that wait look again with the next
/// round. The caller holds all that run, so that none is refused by what was true before; and all there are if the time zone
/// changes, so that nothing is counted in a month of the old one.
///
/// # Errors
/// The database is unreachable.
pub async fn changed_for_all(tx: &mut Tx, (was, is): (&str, &str)) -> Result<()> {
    if was != is {
        months::rezone(tx, &zone_of(was), &zone_of(is)).await?;
    }
    approvals::withdraw_guards(tx, |_| true).await?;
    recheck(tx, None);
    Ok(())
}

/// What may be spent has changed: agents that wait for it look again with the next round, except one that looks now. Their rows
/// are written last of all: anyone who holds rows of agents that it doesn't hold must wait for nothing more. Who has written one
/// before must hold the organization's month, or two might wait for each other's.
pub(super) fn recheck(tx: &Tx, but: Option<AgentId>) {
    look_again(tx, "kind <> 'USAGE' AND agent_id <> $3", but.unwrap_or(AgentId(0)));
}

/// Tokens of this agent have come back. They are its own, so others that wait don't look again.
pub(super) fn recheck_tokens(tx: &Tx, agent: &LockedAgent) {
    look_again(tx, "kind = 'TOKENS' AND agent_id = $3", agent.id);
}

fn look_again(tx: &Tx, which: &str, agent: AgentId) {
    let sql = format!("UPDATE agent_limits SET until_at = $2 WHERE organization_id = $1 AND {which}");
    let values: Vec<Value> = vec![tx.scope.org.into(), tx.now.into(), agent.into()];
    let backend = tx.scope.core.db.backend();
    tx.connection().before_commit(Statement::from_sql_and_values(backend, sql, values));
}

/// Nothing keeps the agent from calling its model now. Its turns are the caller's to see to.
///
/// # Errors
/// The database is unreachable.
pub async fn forget(tx: &Tx, agent: AgentId) -> Result<()> {
    let sql = "DELETE FROM agent_limits WHERE organization_id = $1 AND agent_id = $2 RETURNING kind, since";
    let gone = tx.rows(sql, vec![tx.scope.org.into(), agent.into()]).await?;
    let Some(row) = gone.first() else { return Ok(()) };
    let (kind, since): (LimitKind, Timestamp) = (row.try_get_by(0)?, row.try_get_by(1)?);
    agents::announce(tx, agent);
    turns::waited(tx, agent, kind, since).await
}

/// The agents of the organization that wait for this kind of limit, in the order in which several are held.
pub(super) async fn waiting(tx: &Tx, kind: LimitKind) -> Result<Vec<AgentId>> {
    let sql = "SELECT agent_id FROM agent_limits WHERE organization_id = $1 AND kind = $2 ORDER BY agent_id";
    let rows = tx.rows(sql, vec![tx.scope.org.into(), kind.as_str().into()]).await?;
    rows.iter().map(|row| Ok(row.try_get_by(0)?)).collect()
}

/// An agent that waits.
pub(super) struct Row {
    /// For what.
    pub kind: LimitKind,
    reason: String,
    /// When it looks again.
    pub until: Option<Timestamp>,
    /// The organization's model credential whose provider refuses.
    pub credential: Option<ModelCredentialId>,
    /// Since when a turn is being tried alone.
    pub probing: Option<Timestamp>,
    since: Timestamp,
}

/// What an agent waits for.
pub(super) async fn find(tx: &Tx, agent: AgentId) -> Result<Option<Row>> {
    let sql = "SELECT kind, reason, until_at, model_credential_id, probing_at, since FROM agent_limits \
               WHERE organization_id = $1 AND agent_id = $2";
    let rows = tx.rows(sql, vec![tx.scope.org.into(), agent.into()]).await?;
    let read = |row: &QueryResult| -> Result<Row> {
        Ok(Row {
            kind: row.try_get_by(0)?,
            reason: row.try_get_by(1)?,
            until: row.try_get_by(2)?,
            credential: row.try_get_by(3)?,
            probing: row.try_get_by(4)?,
            since: row.try_get_by(5)?,
        })
    };
    rows.first().map(read).transpose()
}
