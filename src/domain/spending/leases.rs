//! Leases: the amount an agent's host may spend without asking again. A lease is 5 % of the rest of the budget for at
//! most 15 minutes, so that a host that has lost its connection can spend only little. It covers at least one call, as
//! long as the budget does.
//!
//! Grants to one agent are serialized by its row lock, grants to several by the organization's month
//! ([`monthly_totals::lease`]).

use std::{sync::Arc, time::Duration};

use muster_protocol::{
    plan::PlanResponse,
    spending::{Finished, Lease, LeaseAsked, Price, price_of},
};

use super::{
    budget::Terms,
    calls, cost_guard, lease_queries, limits,
    monthly_totals::{self, BudgetOwner},
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

/// The input and output tokens of a typical call.
const CALL: (i64, i64) = (32_000, 8_000);
/// How many open leases an agent may hold: more than concurrent calls need, and too few for a greedy host to take the
/// whole budget.
const MAX_OPEN: i64 = 16;

/// A used-up limit.
pub(super) struct SpentLimit {
    pub kind: LimitKind,
    pub owner: BudgetOwner,
    pub action: CostGuardAction,
    /// When spending is possible again without an allowance.
    pub until: Timestamp,
    /// Includes allowances. Millionths or tokens, as in the fields below.
    pub limit: i64,
    pub used: i64,
    /// Leased to calls under way.
    pub held: i64,
    /// How much is missing for one more call.
    pub short: i64,
}

/// A lease's money and tokens. None: unlimited.
type Slice = (Option<i64>, Option<i64>);

/// Grants a lease to the agent's host, or gives the reason for the refusal. A repeated question gets the same lease.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING` for a launch that is not the agent's current one.
pub async fn grant_lease(
    scope: &Scope,
    agent: AgentId,
    generation: i64,
    asked: &LeaseAsked,
) -> Result<PlanResponse> {
    let tx = scope.begin().await?;
    let agent = lock_running_agent(&tx, agent, generation).await?;
    if orgs::is_stopped(&tx).await? {
        let reason = "The organization is stopped. No model can be called until it is released.".to_owned();
        return Ok(PlanResponse::Refused { reason });
    }
    let terms = Terms::load(&tx, agent.id).await?;
    let prices = terms.prices(&tx, tx.now);
    let price = price_of(&prices, &asked.model);
    if terms.has_budget() && price.is_none() {
        let reason = format!(
            "The model {} has no price in {}, so a call of it can't be counted against the budget. The operator of \
             Muster can add one.",
            asked.model, terms.currency
        );
        return Ok(PlanResponse::Refused { reason });
    }
    if let Some((reason, until)) = limits::find_provider_wait(&tx, agent.id).await? {
        return Ok(PlanResponse::Spent { reason, until: Some(until.0) });
    }
    if let Some(lease) = find_granted_lease(&tx, agent.id, asked.question).await? {
        return Ok(PlanResponse::Lease(lease));
    }
    if lease_queries::open_leases(&tx, agent.id).await? >= MAX_OPEN {
        let reason = format!(
            "The agent already holds {MAX_OPEN} leases. Another is granted when one is returned or expires."
        );
        return Ok(PlanResponse::Refused { reason });
    }
    cut_finished(&tx, agent.id, &asked.finished).await?;
    let mut sliced = take_slice(&tx, &agent, &terms, price).await?;
    if sliced.as_ref().is_err_and(|spent| spent.owner == BudgetOwner::Organization) {
        // A concurrent allowance is either visible under this lock, or sees this agent's wait.
        monthly_totals::lock_organization(&tx, &terms).await?;
        sliced = take_slice(&tx, &agent, &terms, price).await?;
    }
    let given = match sliced {
        Ok((from, slice)) => {
            limits::lift_if_kind(&tx, &agent, &[LimitKind::Money, LimitKind::Tokens]).await?;
            PlanResponse::Lease(insert_lease(&tx, agent.id, asked.question, (from, slice)).await?)
        }
        Err(spent) => cost_guard::enforce(&tx, &agent, &terms, &spent).await?,
    };
    tx.commit().await?;
    Ok(given)
}

/// Locks the agent. Fails unless this is its current launch and it runs.
async fn lock_running_agent(tx: &Tx, agent: AgentId, generation: i64) -> Result<LockedAgent> {
    use AgentStatus::{Paused, Running, Spawning};
    let agent = agents::lock_agent(tx, agent).await?.ok_or_else(|| Problem::not_found("agent", agent))?;
    if agent.generation == generation && matches!(agent.status, Spawning | Running | Paused) {
        return Ok(agent);
    }
    let detail = format!("Launch {generation} is not the agent's current one, or has ended.");
    Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()))
}

/// Leases a part of the remaining money and tokens. Returns the start of the month whose budgets it charges, and the
/// part.
async fn take_slice(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
    price: Option<&Price>,
) -> Result<Result<(Timestamp, Slice), SpentLimit>> {
    let tokens = match tokens_left(tx, agent.id, terms).await? {
        Ok(tokens) => tokens,
        Err(spent) if spent.action == CostGuardAction::Notify => {
            cost_guard::notify_people(tx, agent, terms, &spent).await?;
            None
        }
        Err(spent) => return Ok(Err(spent)),
    };
    // A concurrent lease may take the rest first.
    for _ in 0..5 {
        let (left, from) = match money_left(tx, agent, terms, cost_of_one_call(price)).await? {
            Ok(found) => found,
            Err(spent) => return Ok(Err(spent)),
        };
        let Some(left) = left else { return Ok(Ok((from, (None, tokens)))) };
        let micro = slice_of(left.0, cost_of_one_call(price));
        if take_from_months(tx, agent.id, from, micro, left.1).await? {
            return Ok(Ok((from, (Some(micro), tokens))));
        }
    }
    Err(Problem::new(Code::Unavailable, "Too many hosts ask for a lease at once. Try again."))
}

/// The used-up limit that keeps the agent from getting a lease. Ignores limits that only notify. Sends no
/// notifications.
pub(super) async fn find_spent_limit(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
) -> Result<Option<SpentLimit>> {
    let keeps = |action: CostGuardAction| action != CostGuardAction::Notify;
    let enforced = Terms {
        organization: terms.organization.filter(|budget| keeps(budget.action)),
        own: terms.own.filter(|budget| keeps(budget.action)),
        guard: terms.guard.filter(|guard| keeps(guard.action)),
        ..terms.clone()
    };
    if let Err(spent) = tokens_left(tx, agent.id, &enforced).await? {
        return Ok(Some(spent));
    }
    Ok(money_left(tx, agent, &enforced, 0).await?.err())
}

/// 5 % of `left`, but at least `least`, and at most `left`.
fn slice_of(left: i64, least: i64) -> i64 {
    (left / 20).max(least).min(left)
}

/// The cost of a typical call, in millionths.
fn cost_of_one_call(price: Option<&Price>) -> i64 {
    price.map_or(0, |price| {
        (price.input.saturating_mul(CALL.0) / 1_000_000) + (price.output.saturating_mul(CALL.1) / 1_000_000)
    })
}

/// The enforced budgets: the agent's own, and the organization's.
type Enforced = (Option<i64>, Option<i64>);

/// The rest of the tighter enforced budget, if there is one, and the start of the month.
async fn money_left(
    tx: &Tx,
    agent: &LockedAgent,
    terms: &Terms,
    least: i64,
) -> Result<Result<(Option<(i64, Enforced)>, Timestamp), SpentLimit>> {
    let mut tightest: Option<i64> = None;
    let mut enforced: Enforced = (None, None);
    let mut begins = tx.now;
    for (owner, budget) in
        [(BudgetOwner::Agent(agent.id), terms.own), (BudgetOwner::Organization, terms.organization)]
    {
        let (month, from, until) = monthly_totals::load(tx, owner, terms, tx.now).await?;
        begins = from;
        let Some(budget) = budget else { continue };
        let left = month.left(budget.micro);
        let spent = SpentLimit {
            kind: LimitKind::Money,
            owner,
            action: budget.action,
            until,
            limit: budget.micro.saturating_add(month.allowed_micro),
            used: month.cost_micro,
            held: month.leased_micro,
            short: least.saturating_sub(left),
        };
        match (left, budget.action) {
            (..=0, CostGuardAction::Notify) => cost_guard::notify_people(tx, agent, terms, &spent).await?,
            (_, CostGuardAction::Notify) => {}
            (..=0, _) => return Ok(Err(spent)),
            (left, _) => {
                tightest = Some(tightest.map_or(left, |known| known.min(left)));
                match owner {
                    BudgetOwner::Agent(_) => enforced.0 = Some(budget.micro),
                    BudgetOwner::Organization => enforced.1 = Some(budget.micro),
                }
            }
        }
    }
    Ok(Ok((tightest.map(|left| (left, enforced)), begins)))
}

/// Leases from both the agent's and the organization's month, or from neither.
async fn take_from_months(
    tx: &Tx,
    agent: AgentId,
    from: Timestamp,
    micro: i64,
    enforced: Enforced,
) -> Result<bool> {
    let savepoint = tx.savepoint().await?;
    let is_taken = monthly_totals::lease(tx, BudgetOwner::Agent(agent), from, micro, enforced.0).await?
        && monthly_totals::lease(tx, BudgetOwner::Organization, from, micro, enforced.1).await?;
    tx.close_savepoint(savepoint, is_taken).await?;
    Ok(is_taken)
}

/// A part of the hour's remaining tokens. None: without a cost guard.
async fn tokens_left(tx: &Tx, agent: AgentId, terms: &Terms) -> Result<Result<Option<i64>, SpentLimit>> {
    let Some(guard) = terms.guard else { return Ok(Ok(None)) };
    let leased = lease_queries::leased_tokens(tx, agent).await?;
    let used = calls::tokens_of_last_hour(tx, agent).await?;
    let left = guard.tokens - used - leased;
    if left > 0 {
        return Ok(Ok(Some(slice_of(left, CALL.0 + CALL.1))));
    }
    Ok(Err(SpentLimit {
        kind: LimitKind::Tokens,
        owner: BudgetOwner::Agent(agent),
        action: guard.action,
        until: calls::when_tokens_free(tx, agent, guard.tokens).await?,
        limit: guard.tokens,
        used,
        held: leased,
        short: (CALL.0 + CALL.1).saturating_sub(left),
    }))
}

/// The lease granted for this question before, if its answer was lost.
async fn find_granted_lease(tx: &Tx, agent: AgentId, question: i64) -> Result<Option<Lease>> {
    let granted = lease_queries::lease_of_question(tx, agent, question).await?;
    Ok(granted.map(|lease| Lease {
        id: lease.id.0,
        cost_micro: lease.cost_micro,
        tokens: lease.tokens,
        until: lease.until_at.0,
    }))
}

/// Cuts leases that a host no longer uses to the used amounts, and returns the rest at once. They stay open, because
/// reports of their calls may still be on their way.
async fn cut_finished(tx: &Tx, agent: AgentId, finished: &[Finished]) -> Result<()> {
    if finished.is_empty() {
        return Ok(());
    }
    for lease in lease_queries::unclosed_leases(tx, agent).await? {
        let Some(told) = finished.iter().find(|told| told.lease_id == lease.id.0) else { continue };
        let granted: Slice = (lease.cost_micro, lease.tokens);
        // Reported calls count, even if the host claims less.
        let needed =
            |granted: Option<i64>, taken: i64, used: i64| granted.map(|granted| granted.min(taken.max(used)));
        let kept = (
            needed(granted.0, told.cost_micro, lease.used_micro),
            needed(granted.1, told.tokens, lease.used_tokens),
        );
        if kept == granted {
            continue;
        }
        lease_queries::cut_lease(tx, agent, lease.id, kept).await?;
        return_money(tx, agent, lease.month_at, granted.0.unwrap_or(0) - kept.0.unwrap_or(0)).await?;
        // Only money is shared with other agents. This agent is about to ask again anyway.
        if kept.0 != granted.0 {
            limits::recheck(tx, Some(agent));
        }
    }
    Ok(())
}

async fn return_money(tx: &Tx, agent: AgentId, month: Timestamp, micro: i64) -> Result<()> {
    if micro == 0 {
        return Ok(());
    }
    monthly_totals::spend(tx, BudgetOwner::Agent(agent), month, (0, 0, micro)).await?;
    monthly_totals::spend(tx, BudgetOwner::Organization, month, (0, 0, micro)).await
}

async fn insert_lease(
    tx: &Tx,
    agent: AgentId,
    question: i64,
    (month, slice): (Timestamp, Slice),
) -> Result<Lease> {
    let until = tx.now.plus(Duration::from_mins(15));
    let id = lease_queries::add_lease(tx, agent, question, (month, until), slice).await?;
    let id = id.ok_or_else(|| Problem::internal(anyhow::anyhow!("a lease was not written")))?;
    Ok(Lease { id: id.0, cost_micro: slice.0, tokens: slice.1, until: until.0 })
}

/// The part of a lease that a call has used up, which is released from the monthly totals once.
pub(super) struct LeaseCharge {
    /// In millionths.
    pub micro: i64,
    /// The start of the month that the lease charges.
    pub month: Timestamp,
}

/// Charges a call to its lease.
pub(super) async fn charge(
    tx: &Tx,
    agent: AgentId,
    lease: LeaseId,
    cost: i64,
    tokens: i64,
) -> Result<Option<LeaseCharge>> {
    let Some(row) = lease_queries::lease_of(tx, agent, lease).await? else { return Ok(None) };
    lease_queries::use_lease(tx, agent, lease, (cost, tokens)).await?;
    let open = row.cost_micro.map_or(0, |granted| (granted - row.used_micro).max(0));
    // The rest of a closed lease has been returned already.
    let micro = if row.closed_at.is_some() { 0 } else { open.min(cost) };
    Ok(Some(LeaseCharge { micro, month: row.month_at }))
}

/// Closes a lease that its host returns. The rest of it can be granted again.
pub async fn return_lease(tx: &Tx, from: &Reporter, lease: LeaseId) -> Result<()> {
    // Any launch may return its leases, even a deleted agent's.
    match agents::lock_agent_even_deleted(tx, from.agent).await? {
        Some(agent) => close_lease(tx, &agent, lease).await,
        None => Ok(()),
    }
}

async fn close_lease(tx: &Tx, agent: &LockedAgent, lease: LeaseId) -> Result<()> {
    let Some(closed) = lease_queries::close_lease(tx, agent.id, lease).await? else { return Ok(()) };
    let left = |granted: Option<i64>, used: i64| granted.map_or(0, |granted| (granted - used).max(0));
    let micro = left(closed.cost_micro, closed.used_micro);
    let tokens = left(closed.tokens, closed.used_tokens);
    if micro == 0 && tokens == 0 {
        return Ok(());
    }
    return_money(tx, agent.id, closed.month_at, micro).await?;
    // This agent or others may be waiting for the returned amount.
    if micro == 0 {
        limits::recheck_tokens(tx, agent);
    } else {
        limits::recheck(tx, None);
    }
    Ok(())
}

/// Closes expired leases in every organization and returns their number. A call that is reported later still counts.
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
    close_lease(&tx, &agent, lease).await?;
    tx.commit().await?;
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_part_but_enough_for_a_call() {
        assert_eq!(
            [slice_of(10_000, 100), slice_of(1000, 100), slice_of(60, 100), slice_of(1, 0)],
            [500, 100, 60, 0]
        );
        let price = Price {
            model: String::new(),
            input: 3_000_000,
            output: 15_000_000,
            cache_read: None,
            cache_write: None,
        };
        assert_eq!((cost_of_one_call(Some(&price)), cost_of_one_call(None)), (216_000, 0));
    }
}
