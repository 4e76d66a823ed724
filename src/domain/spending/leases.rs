//! Leases: what an agent's host may spend by itself. A lease is 5 % of what is left, for 15 minutes at most, so that a host
//! which is cut off has spent little; but never less than a call needs, as long as there is so much.
//!
//! An agent's leases are granted while its row is held, so two for one agent can't get in each other's way; two agents meet
//! in the organization's month ([`months::take`]).

use std::{sync::Arc, time::Duration};

use muster_protocol::{
    plan::Given,
    spending::{Finished, Lease, LeaseAsked, Price, price_of},
};

use super::{
    budget::Terms,
    calls, cost_guard, lease_queries, limits,
    monthly_totals::{self, Of},
};
use crate::{
    base::{
        bounds,
        enums::{AgentStatus, CostGuardAction, LimitKind},
        ids::{AgentId, LeaseId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, access::Scope, job_counts::Tally, store::Tx},
    domain::{
        agents::{self, LockedAgent, reporter::Reporter},
        orgs,
    },
};

/// The tokens that one call reasonably needs: read, and written.
const CALL: (i64, i64) = (32_000, 8_000);
/// How many leases an agent may hold that are not over: more than calls at the same time need, and so few that a host which
/// asks without end takes no whole budget from the others.
const MOST_OPEN: i64 = 16;

/// Nothing may be spent.
pub(super) struct Spent {
    /// What was reached.
    pub kind: LimitKind,
    /// Whose limit it is: the agent's own, or the organization's.
    pub of: Of,
    /// What follows.
    pub action: CostGuardAction,
    /// When there is something again by itself.
    pub until: Timestamp,
    /// The limit, with what was allowed on top: millionths, or tokens.
    pub limit: i64,
    /// What of it is spent.
    pub used: i64,
    /// What of it calls that are under way may still spend.
    pub held: i64,
    /// How much more it takes for one call.
    pub short: i64,
}

/// What may be spent: money and tokens. None: any amount.
type Slice = (Option<i64>, Option<i64>);

/// Grants the host of an agent a lease, or says why not. A question that is asked again gets the same lease.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING` for a launch that is not the agent's present one.
pub async fn lease(scope: &Scope, agent: AgentId, generation: i64, asked: &LeaseAsked) -> Result<Given> {
    let tx = scope.begin().await?;
    let agent = up(&tx, agent, generation).await?;
    if orgs::is_stopped(&tx).await? {
        let reason =
            "The whole organization was stopped. No model is called until it is released.".to_owned();
        return Ok(Given::Refused { reason });
    }
    let terms = Terms::of(&tx, agent.id).await?;
    let prices = terms.prices(&tx, tx.now);
    let price = price_of(&prices, &asked.model);
    if terms.has_budget() && price.is_none() {
        let reason = format!(
            "The model {} has no price in {}, so a call of it can't be counted against the budget. The operator of \
             Muster can add one.",
            asked.model, terms.currency
        );
        return Ok(Given::Refused { reason });
    }
    if let Some((reason, until)) = limits::waits_for_provider(&tx, agent.id).await? {
        return Ok(Given::Spent { reason, until: Some(until.0) });
    }
    if let Some(lease) = granted(&tx, agent.id, asked.question).await? {
        return Ok(Given::Lease(lease));
    }
    if lease_queries::open_leases(&tx, agent.id).await? >= MOST_OPEN {
        let reason = format!(
            "The agent holds {MOST_OPEN} leases already. The next is granted when one is returned or over."
        );
        return Ok(Given::Refused { reason });
    }
    finish(&tx, agent.id, &asked.finished).await?;
    let mut sliced = slice(&tx, &agent, &terms, price).await?;
    if sliced.as_ref().is_err_and(|spent| spent.of == Of::Organization) {
        // Someone may be allowing more: either that is seen now, or this agent's wait is seen there.
        months::hold(&tx, &terms).await?;
        sliced = slice(&tx, &agent, &terms, price).await?;
    }
    let given = match sliced {
        Ok((from, slice)) => {
            limits::eased_of(&tx, &agent, &[LimitKind::Money, LimitKind::Tokens]).await?;
            Given::Lease(write(&tx, agent.id, asked.question, (from, slice)).await?)
        }
        Err(spent) => cost_guard::act(&tx, &agent, &terms, &spent).await?,
    };
    tx.commit().await?;
    Ok(given)
}

/// The agent, held, if this is its present launch and it is up.
async fn up(tx: &Tx, agent: AgentId, generation: i64) -> Result<LockedAgent> {
    use AgentStatus::{Paused, Running, Spawning};
    let agent = agents::lock_agent(tx, agent).await?.ok_or_else(|| Problem::not_found("agent", agent))?;
    if agent.generation == generation && matches!(agent.status, Spawning | Running | Paused) {
        return Ok(agent);
    }
    let detail = format!("Launch {generation} is not the agent's present one, or has ended.");
    Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()))
}

/// Takes a part of what is left, of money and of tokens. Returns when the month began from whose budgets it is.
async fn slice(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
    price: Option<&Price>,
) -> Result<Result<(Timestamp, Slice), Spent>> {
    let tokens = match tokens(tx, agent.id, terms).await? {
        Ok(tokens) => tokens,
        Err(spent) if spent.action == CostGuardAction::Notify => {
            cost_guard::tell(tx, agent, terms, &spent).await?;
            None
        }
        Err(spent) => return Ok(Err(spent)),
    };
    // Another replica may be faster.
    for _ in 0..5 {
        let (left, from) = match money(tx, agent, terms, least(price)).await? {
            Ok(found) => found,
            Err(spent) => return Ok(Err(spent)),
        };
        let Some(left) = left else { return Ok(Ok((from, (None, tokens)))) };
        let micro = part(left.0, least(price));
        if take(tx, agent.id, from, micro, left.1).await? {
            return Ok(Ok((from, (Some(micro), tokens))));
        }
    }
    Err(Problem::new(Code::Unavailable, "Too many hosts ask for a lease at once. Try again."))
}

/// What keeps the agent from getting a lease. What only tells people keeps no one from it. No one is notified.
pub(super) async fn spent(tx: &Tx, agent: &LockedAgent, terms: &Terms) -> Result<Option<Spent>> {
    let keeps = |action: CostGuardAction| action != CostGuardAction::Notify;
    let enforced = Terms {
        organization: terms.organization.filter(|budget| keeps(budget.action)),
        own: terms.own.filter(|budget| keeps(budget.action)),
        guard: terms.guard.filter(|guard| keeps(guard.action)),
        ..terms.clone()
    };
    if let Err(spent) = tokens(tx, agent.id, &enforced).await? {
        return Ok(Some(spent));
    }
    Ok(money(tx, agent, &enforced, 0).await?.err())
}

/// 5 % of what is left, at least what a call needs, and at most what is left.
fn part(left: i64, least: i64) -> i64 {
    (left / 20).max(least).min(left)
}

/// What one call reasonably needs, in millionths.
fn least(price: Option<&Price>) -> i64 {
    price.map_or(0, |price| {
        (price.input.saturating_mul(CALL.0) / 1_000_000) + (price.output.saturating_mul(CALL.1) / 1_000_000)
    })
}

/// The budgets that stop an agent: the agent's own, and the organization's.
type Enforced = (Option<i64>, Option<i64>);

/// What is left of the tighter budget, if one is enforced, and when the month began.
async fn money(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
    least: i64,
) -> Result<Result<(Option<(i64, Enforced)>, Timestamp), Spent>> {
    let mut tightest: Option<i64> = None;
    let mut enforced: Enforced = (None, None);
    let mut begins = tx.now;
    for (of, budget) in [(Of::Agent(agent.id), terms.own), (Of::Organization, terms.organization)] {
        let (month, from, until) = months::at(tx, of, terms, tx.now).await?;
        begins = from;
        let Some(budget) = budget else { continue };
        let left = month.left(budget.micro);
        let spent = Spent {
            kind: LimitKind::Money,
            of,
            action: budget.action,
            until,
            limit: budget.micro.saturating_add(month.allowed_micro),
            used: month.cost_micro,
            held: month.leased_micro,
            short: least.saturating_sub(left),
        };
        match (left, budget.action) {
            (..=0, CostGuardAction::Notify) => cost_guard::tell(tx, agent, terms, &spent).await?,
            (_, CostGuardAction::Notify) => {}
            (..=0, _) => return Ok(Err(spent)),
            (left, _) => {
                tightest = Some(tightest.map_or(left, |known| known.min(left)));
                match of {
                    Of::Agent(_) => enforced.0 = Some(budget.micro),
                    Of::Organization => enforced.1 = Some(budget.micro),
                }
            }
        }
    }
    Ok(Ok((tightest.map(|left| (left, enforced)), begins)))
}

/// Takes it from both months, or from none.
async fn take(tx: &Tx, agent: AgentId, from: Timestamp, micro: i64, enforced: Enforced) -> Result<bool> {
    let marked = tx.mark().await?;
    let is_taken = months::take(tx, Of::Agent(agent), from, micro, enforced.0).await?
        && months::take(tx, Of::Organization, from, micro, enforced.1).await?;
    tx.close_mark(marked, is_taken).await?;
    Ok(is_taken)
}

/// A part of what is left of the tokens of an hour. None: there is no cost guard.
async fn tokens(tx: &Tx, agent: AgentId, terms: &Terms) -> Result<Result<Option<i64>, Spent>> {
    let Some(guard) = terms.guard else { return Ok(Ok(None)) };
    let leased = lease_queries::leased_tokens(tx, agent).await?;
    let used = calls::of_hour(tx, agent).await?;
    let left = guard.tokens - used - leased;
    if left > 0 {
        return Ok(Ok(Some(part(left, CALL.0 + CALL.1))));
    }
    Ok(Err(Spent {
        kind: LimitKind::Tokens,
        of: Of::Agent(agent),
        action: guard.action,
        until: calls::eases(tx, agent, guard.tokens).await?,
        limit: guard.tokens,
        used,
        held: leased,
        short: (CALL.0 + CALL.1).saturating_sub(left),
    }))
}

/// The lease that this question got before. Its answer was lost.
async fn granted(tx: &Tx, agent: AgentId, question: i64) -> Result<Option<Lease>> {
    let granted = lease_queries::lease_of_question(tx, agent, question).await?;
    Ok(granted.map(|lease| Lease {
        id: lease.id.0,
        cost_micro: lease.cost_micro,
        tokens: lease.tokens,
        until: lease.until_at.0,
    }))
}

/// A host takes nothing more from these leases. What is left goes back at once; they stay open, because reports of their calls
/// may still be on their way.
async fn finish(tx: &Tx, agent: AgentId, finished: &[Finished]) -> Result<()> {
    if finished.is_empty() {
        return Ok(());
    }
    for lease in lease_queries::unclosed_leases(tx, agent).await? {
        let Some(told) = finished.iter().find(|told| told.lease_id == lease.id.0) else { continue };
        let granted: Slice = (lease.cost_micro, lease.tokens);
        // What was reported is used, whatever the host says.
        let needed = |granted: Option<i64>, taken: i64, used: i64| granted.map(|of| of.min(taken.max(used)));
        let kept = (
            needed(granted.0, told.cost_micro, lease.used_micro),
            needed(granted.1, told.tokens, lease.used_tokens),
        );
        if kept == granted {
            continue;
        }
        lease_queries::cut_lease(tx, agent, lease.id, kept).await?;
        give_back(tx, agent, lease.month_at, granted.0.unwrap_or(0) - kept.0.unwrap_or(0)).await?;
        // Tokens are each agent's. The agent itself is about to learn whether that suffices.
        if kept.0 != granted.0 {
            limits::recheck(tx, Some(agent));
        }
    }
    Ok(())
}

/// So much money can be granted again.
async fn give_back(tx: &Tx, agent: AgentId, month: Timestamp, micro: i64) -> Result<()> {
    if micro == 0 {
        return Ok(());
    }
    months::spend(tx, Of::Agent(agent), month, (0, 0, micro)).await?;
    months::spend(tx, Of::Organization, month, (0, 0, micro)).await
}

async fn write(tx: &Tx, agent: AgentId, question: i64, (month, slice): (Timestamp, Slice)) -> Result<Lease> {
    let until = tx.now.plus(Duration::from_mins(15));
    let id = lease_queries::add_lease(tx, agent, question, (month, until), slice).await?;
    let id = id.ok_or_else(|| Problem::internal(anyhow::anyhow!("a lease was not written")))?;
    Ok(Lease { id: id.0, cost_micro: slice.0, tokens: slice.1, until: until.0 })
}

/// What a call has taken from its lease, which it returns to the months once. The rest stays open.
pub(super) struct Taken {
    /// What is no longer open, in millionths.
    pub micro: i64,
    /// The month from whose budgets the lease is.
    pub month: Timestamp,
}

/// A call was paid from this lease.
pub(super) async fn paid(
    tx: &Tx,
    agent: AgentId,
    lease: LeaseId,
    cost: i64,
    tokens: i64,
) -> Result<Option<Taken>> {
    let Some(row) = lease_queries::lease_of(tx, agent, lease).await? else { return Ok(None) };
    lease_queries::use_lease(tx, agent, lease, (cost, tokens)).await?;
    let open = row.cost_micro.map_or(0, |granted| (granted - row.used_micro).max(0));
    // What was left of a closed lease has gone back already.
    let micro = if row.closed_at.is_some() { 0 } else { open.min(cost) };
    Ok(Some(Taken { micro, month: row.month_at }))
}

/// A host gives a lease back. What is left of it can be granted again.
pub async fn returned(tx: &Tx, from: &Reporter, lease: LeaseId) -> Result<()> {
    // Of whichever launch, and of a deleted agent too: what was granted is given back.
    match agents::lock_agent_even_deleted(tx, from.agent).await? {
        Some(agent) => close(tx, &agent, lease).await,
        None => Ok(()),
    }
}

async fn close(tx: &Tx, agent: &LockedAgent, lease: LeaseId) -> Result<()> {
    let Some(closed) = lease_queries::close_lease(tx, agent.id, lease).await? else { return Ok(()) };
    let left = |granted: Option<i64>, used: i64| granted.map_or(0, |granted| (granted - used).max(0));
    let micro = left(closed.cost_micro, closed.used_micro);
    let tokens = left(closed.tokens, closed.used_tokens);
    if micro == 0 && tokens == 0 {
        return Ok(());
    }
    give_back(tx, agent.id, closed.month_at, micro).await?;
    // The agent, or others, may be waiting for it.
    if micro == 0 {
        limits::recheck_tokens(tx, agent);
    } else {
        limits::recheck(tx, None);
    }
    Ok(())
}

/// Ends leases that are over, in every organization, and returns how many. A call that was made before and is reported later is
/// still counted.
///
/// # Errors
/// The database is unreachable. What has ended by then stays ended.
pub async fn expire_due(core: &Arc<Core>) -> Result<u64> {
    let mut ended = Tally::default();
    for due in lease_queries::due_leases(core, i64::from(bounds::ROWS)).await? {
        let scope = Scope::system(core, due.organization_id);
        ended.add(scope.org, expire(&scope, due.agent_id, due.id).await);
    }
    ended.close()
}

async fn expire(scope: &Scope, agent: AgentId, lease: LeaseId) -> Result<u64> {
    let tx = scope.begin().await?;
    let Some(agent) = agents::lock_agent_even_deleted(&tx, agent).await? else { return Ok(0) };
    close(&tx, &agent, lease).await?;
    tx.commit().await?;
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_part_but_enough_for_a_call() {
        assert_eq!([part(10_000, 100), part(1000, 100), part(60, 100), part(1, 0)], [500, 100, 60, 0]);
        let price = Price {
            model: String::new(),
            input: 3_000_000,
            output: 15_000_000,
            cache_read: None,
            cache_write: None,
        };
        assert_eq!((least(Some(&price)), least(None)), (216_000, 0));
    }
}
