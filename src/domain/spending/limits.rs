//! The rows of agents that may not call their model at the moment. `release.rs` resumes them.

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

/// An edit has changed spending limits.
#[derive(Debug)]
pub struct LimitsChanged {
    /// None: the organization's limits, and with them those of all agents.
    pub agent: Option<AgentId>,
}

impl DomainEvent for LimitsChanged {}

/// Keeps the agent from calling its model until `limit.until`.
pub(super) async fn set_wait(tx: &Tx, agent: AgentId, limit: &Limit<'_>) -> Result<()> {
    if let Some(last) = limit_queries::wait_of(tx, agent).await?.filter(|last| last.kind != limit.kind) {
        turns::record_limit_wait(tx, agent, last.kind, last.since).await?;
    }
    limit_queries::write_wait(tx, agent, limit).await?;
    agents::announce(tx, agent);
    Ok(())
}

/// Whether a limit keeps the agent from calling its model.
pub(super) async fn is_limited(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(limit_queries::wait_of(tx, agent).await?.is_some())
}

/// The limit that keeps the agent from calling its model, and since when.
pub async fn limited_since(tx: &Tx, agent: AgentId) -> Result<Option<(LimitKind, Timestamp)>> {
    Ok(limit_queries::wait_of(tx, agent).await?.map(|row| (row.kind, row.since)))
}

/// Why the agent's provider refuses requests, and until when. None while it accepts them, and while a turn probes it.
pub(super) async fn find_provider_wait(tx: &Tx, agent: AgentId) -> Result<Option<(String, Timestamp)>> {
    let Some(row) = limit_queries::wait_of(tx, agent).await? else { return Ok(None) };
    let waits = row.kind == LimitKind::Usage && row.probing_at.is_none();
    Ok(row.until_at.filter(|until| waits && *until > tx.now).map(|until| (row.reason, until)))
}

/// Lifts the limit: the agent's turns resume.
pub(super) async fn lift(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    delete_wait(tx, agent.id).await?;
    turns::resume_turns(tx, agent, None).await?;
    Ok(())
}

/// Lifts the limit if it is of one of these kinds. Returns whether it was.
pub(super) async fn lift_if_kind(tx: &Tx, agent: &LockedAgent, kinds: &[LimitKind]) -> Result<bool> {
    let is_of = limit_queries::wait_of(tx, agent.id).await?.is_some_and(|row| kinds.contains(&row.kind));
    if is_of {
        lift(tx, agent).await?;
    }
    Ok(is_of)
}

/// The organization's terms have changed: waiting agents check again with the next run. The caller has locked all
/// running agents, so that no old terms refuse one; and all agents if the time zone changes, so that no call is counted
/// in a month of the old zone.
pub async fn changed_for_all(tx: &Tx, terms: &TermsChanged) -> Result<()> {
    if terms.has_other_timezone() {
        monthly_totals::rezone(tx, &zone_of(&terms.old_timezone), &zone_of(&terms.timezone)).await?;
    }
    emit(tx, LimitsChanged { agent: None }).await?;
    recheck(tx, None);
    Ok(())
}

/// Makes agents that wait for money or tokens check again with the next run, except `but`, which checks now.
///
/// These rows are written last: a transaction that locks rows of agents it has not locked must not wait for anything
/// afterwards. A transaction that has already written such a row must hold the organization's month, or two could
/// deadlock.
pub(super) fn recheck(tx: &Tx, but: Option<AgentId>) {
    limit_queries::look_again_but(tx, but.unwrap_or(AgentId(0)));
}

/// Makes the agent check again after it has got tokens back. Other agents can't use them.
pub(super) fn recheck_tokens(tx: &Tx, agent: &LockedAgent) {
    limit_queries::look_for_tokens_again(tx, agent.id);
}

/// Ends the agent's wait. The caller resumes its turns.
pub async fn delete_wait(tx: &Tx, agent: AgentId) -> Result<()> {
    let Some(over) = limit_queries::delete_wait(tx, agent).await? else { return Ok(()) };
    agents::announce(tx, agent);
    turns::record_limit_wait(tx, agent, over.kind, over.since).await
}
