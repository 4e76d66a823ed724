//! What was spent in a month, and what open leases may still spend: a row of the organization, and one of the agent. The
//! organization's row is always written last, after the agent's, and before what keeps agents from spending (`limits.rs`), so
//! that no two transactions wait for each other.

use jiff::tz::TimeZone;

pub use super::queries::{Month, Of};
use super::{
    budget::{Terms, month, moved},
    queries,
};
use crate::{
    base::{enums::LimitKind, ids::AgentId, problem::Result, time::Timestamp},
    core::store::Tx,
};

/// A limit that people are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The agent whose limit it is. None: the organization's.
    pub agent: Option<AgentId>,
    /// Money, or the tokens of an hour.
    pub kind: LimitKind,
}

impl Of {
    /// Its limit of this kind, as people are asked about it.
    pub const fn limit(self, kind: LimitKind) -> Guarded {
        let agent = match self {
            Self::Agent(agent) => Some(agent),
            Self::Organization => None,
        };
        Guarded { agent, kind }
    }
}

impl Month {
    /// What is left of a budget.
    pub const fn left(&self, budget: i64) -> i64 {
        budget.saturating_add(self.allowed_micro) - self.cost_micro - self.leased_micro
    }
}

/// The month in which this time is: its row, which is made if it is missing, and when it begins and ends.
pub async fn at(tx: &Tx, of: Of, terms: &Terms, at: Timestamp) -> Result<(Month, Timestamp, Timestamp)> {
    let (from, until) = month(&terms.zone, at);
    Ok((queries::month(tx, of, (from, until)).await?, from, until))
}

/// Takes this much for a lease, unless that is more than is left of the budget. The one statement that keeps hosts from
/// spending more than there is, whatever other replicas do. None: there is no budget.
pub async fn take(tx: &Tx, of: Of, from: Timestamp, micro: i64, budget: Option<i64>) -> Result<bool> {
    queries::lease_of_month(tx, of, from, micro, budget).await
}

/// Something was spent, and this much of a lease is no longer open.
pub async fn spend(tx: &Tx, of: Of, from: Timestamp, amounts: (i64, i64, i64)) -> Result<()> {
    queries::spend_of_month(tx, of, from, amounts).await
}

/// Holds the organization's month until the transaction ends.
pub async fn hold(tx: &Tx, terms: &Terms) -> Result<()> {
    spend(tx, Of::Organization, month(&terms.zone, tx.now).0, (0, 0, 0)).await
}

/// Allows this much on top of the budget. A negative amount takes back what was allowed, at most all of it.
pub async fn allow(tx: &Tx, of: Of, from: Timestamp, micro: i64) -> Result<()> {
    queries::allow_in_month(tx, of, from, micro).await
}

/// The organization's months begin and end at other instants now. What was spent, leased and allowed in one stays in it.
pub async fn rezone(tx: &Tx, from: &TimeZone, to: &TimeZone) -> Result<()> {
    for was in queries::months(tx).await? {
        queries::move_month(tx, was, moved(from, to, was)).await?;
    }
    Ok(())
}
