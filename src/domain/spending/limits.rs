//! Agents that may not call their model at the moment: their rows. `release.rs` lets them go on.

use super::{
    budget::zone_of,
    limit_queries::{self, Limit},
    monthly_totals,
};
use crate::{
    base::{enums::LimitKind, ids::AgentId, problem::Result, time::Timestamp},
    core::{
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{
        agents::{self, LockedAgent},
        conversations::turns,
        orgs::TermsChanged,
    },
};

/// What may be spent was changed by an edit.
#[derive(Debug)]
pub struct LimitsChanged {
    /// The agent whose limits are others now. None: the organization's, and with them those of all agents.
    pub agent: Option<AgentId>,
}

impl DomainEvent for LimitsChanged {}

/// The agent may not call its model until then.
pub(super) async fn set(tx: &Tx, agent: AgentId, limit: &Limit<'_>) -> Result<()> {
    if let Some(last) = limit_queries::wait_of(tx, agent).await?.filter(|last| last.kind != limit.kind) {
        turns::wait_spans(tx, agent, last.kind, last.since).await?;
    }
    limit_queries::write_wait(tx, agent, limit).await?;
    agents::announce(tx, agent);
    Ok(())
}

/// Whether the agent may not call its model: its turns wait.
pub(super) async fn is_limited(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(limit_queries::wait_of(tx, agent).await?.is_some())
}

/// What keeps the agent from calling its model, and since when.
pub async fn limited_since(tx: &Tx, agent: AgentId) -> Result<Option<(LimitKind, Timestamp)>> {
    Ok(limit_queries::wait_of(tx, agent).await?.map(|row| (row.kind, row.since)))
}

/// Why the agent's provider takes no more, and until when. None while it does, or while a turn is being tried.
pub(super) async fn waits_for_provider(tx: &Tx, agent: AgentId) -> Result<Option<(String, Timestamp)>> {
    let Some(row) = limit_queries::wait_of(tx, agent).await? else { return Ok(None) };
    let waits = row.kind == LimitKind::Usage && row.probing_at.is_none();
    Ok(row.until_at.filter(|until| waits && *until > tx.now).map(|until| (row.reason, until)))
}

/// Nothing keeps the agent from calling its model now: its turns go on.
pub(super) async fn eased(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    forget(tx, agent.id).await?;
    turns::go_on(tx, agent, None).await?;
    Ok(())
}

/// The same, if it is this kind of limit. Returns whether it was.
pub(super) async fn eased_of(tx: &Tx, agent: &LockedAgent, kinds: &[LimitKind]) -> Result<bool> {
    let is = limit_queries::wait_of(tx, agent.id).await?.is_some_and(|row| kinds.contains(&row.kind));
    if is {
        eased(tx, agent).await?;
    }
    Ok(is)
}

/// What the organization's agents may spend has changed: agents that wait look again with the next run. The caller holds all that
/// run, so that none is refused by what was true before; and all there are if the time zone changes, so that nothing is counted in
/// a month of the old one.
pub async fn changed_for_all(tx: &Tx, terms: &TermsChanged) -> Result<()> {
    if terms.has_other_timezone() {
        monthly_totals::rezone(tx, &zone_of(&terms.old_timezone), &zone_of(&terms.timezone)).await?;
    }
    emit(tx, LimitsChanged { agent: None }).await?;
    recheck(tx, None);
    Ok(())
}

/// What may be spent has changed: agents that wait for it look again with the next run, except one that looks now. Their rows
/// are written last of all: anyone who holds rows of agents that it doesn't hold must wait for nothing more. Who has written one
/// before must hold the organization's month, or two might wait for each other's.
pub(super) fn recheck(tx: &Tx, but: Option<AgentId>) {
    limit_queries::look_again_but(tx, but.unwrap_or(AgentId(0)));
}

/// Tokens of this agent have come back. They are its own, so others that wait don't look again.
pub(super) fn recheck_tokens(tx: &Tx, agent: &LockedAgent) {
    limit_queries::look_for_tokens_again(tx, agent.id);
}

/// Nothing keeps the agent from calling its model now. Its turns are the caller's to see to.
pub async fn forget(tx: &Tx, agent: AgentId) -> Result<()> {
    let Some(over) = limit_queries::delete_wait(tx, agent).await? else { return Ok(()) };
    agents::announce(tx, agent);
    turns::wait_spans(tx, agent, over.kind, over.since).await
}
