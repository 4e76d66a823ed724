//! A month's spending and the amount that open leases may still spend: one row for the organization, one for each
//! agent.
//!
//! Lock order, which prevents deadlocks: the agent's month, the organization's month, then the rows of limits
//! (`limits.rs`).

use jiff::tz::TimeZone;

pub use super::queries::{BudgetOwner, Month};
use super::{
    budget::{Terms, month, month_in_zone},
    queries,
};
use crate::{
    base::{enums::LimitKind, ids::AgentId, problem::Result, time::Timestamp},
    core::store::Tx,
};

/// A limit that people may raise when it is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedLimit {
    /// The agent whose limit it is. None: the organization's.
    pub agent: Option<AgentId>,
    /// Money, or hourly tokens.
    pub kind: LimitKind,
}

impl BudgetOwner {
    pub const fn limit(self, kind: LimitKind) -> GuardedLimit {
        let agent = match self {
            Self::Agent(agent) => Some(agent),
            Self::Organization => None,
        };
        GuardedLimit { agent, kind }
    }
}

impl Month {
    /// The part of `budget` that is neither spent nor leased.
    pub const fn left(&self, budget: i64) -> i64 {
        budget.saturating_add(self.allowed_micro) - self.cost_micro - self.leased_micro
    }
}

/// The month that contains `at`, its first instant, and the first instant of the next month. Creates a missing row.
pub async fn load(
    tx: &Tx,
    owner: BudgetOwner,
    terms: &Terms,
    at: Timestamp,
) -> Result<(Month, Timestamp, Timestamp)> {
    let (from, until) = month(&terms.zone, at);
    Ok((queries::load_month(tx, owner, (from, until)).await?, from, until))
}

/// Leases `micro` if the budget has that much left. Returns whether it did. Without a budget it always does. This
/// single statement keeps hosts within the budget, even with several replicas.
pub async fn lease(
    tx: &Tx,
    owner: BudgetOwner,
    from: Timestamp,
    micro: i64,
    budget: Option<i64>,
) -> Result<bool> {
    queries::lease_of_month(tx, owner, from, micro, budget).await
}

/// Adds the cost and the tokens (`amounts.0`, `amounts.1`) and releases leased money (`amounts.2`).
pub async fn spend(tx: &Tx, owner: BudgetOwner, from: Timestamp, amounts: (i64, i64, i64)) -> Result<()> {
    queries::spend_of_month(tx, owner, from, amounts).await
}

/// Locks the organization's month until the transaction ends.
pub async fn lock_organization(tx: &Tx, terms: &Terms) -> Result<()> {
    spend(tx, BudgetOwner::Organization, month(&terms.zone, tx.now).0, (0, 0, 0)).await
}

/// Adds an allowance on top of the budget. A negative amount takes back the allowance, at most all of it.
pub async fn allow(tx: &Tx, owner: BudgetOwner, from: Timestamp, micro: i64) -> Result<()> {
    queries::allow_in_month(tx, owner, from, micro).await
}

/// Moves the bounds of the organization's months to another time zone. Each month keeps its amounts.
pub async fn rezone(tx: &Tx, from: &TimeZone, to: &TimeZone) -> Result<()> {
    for was in queries::month_starts(tx).await? {
        queries::move_month(tx, was, month_in_zone(from, to, was)).await?;
    }
    Ok(())
}
