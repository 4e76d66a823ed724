//! Numbers of all organizations together. One statement reads them, whenever the metrics page is read.

use std::collections::{BTreeMap, BTreeSet};

use super::queries::{self, StateCount};
use crate::{
    base::{
        enums::{AgentStatus, InactiveReason, ServerStatus, Severity, TurnState},
        problem::Result,
    },
    core::Core,
};

/// Numbers of records by state, 0 for states without records.
pub type ByState = BTreeMap<String, f64>;

/// The records of all organizations, in numbers.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Agents that are not deleted.
    pub agents: ByState,
    /// Servers that are not deleted, by the status of their host.
    pub hosts: ByState,
    /// Turns that have not ended.
    pub turns: ByState,
    /// Pending approvals by severity.
    pub approvals: ByState,
    /// How long the oldest of these has waited, in seconds.
    pub oldest_approval_seconds: f64,
    /// Messages to channels: `WAITING`, or `FAILED` in the last seven days.
    pub deliveries: ByState,
    /// Channels: `ACTIVE`, `FAILING`, or why they are inactive.
    pub channels: ByState,
    /// The money spent in the current month, in millionths, by currency. Currencies without prices are left out: an
    /// organization may choose any three letters, and each would be a time series.
    pub spending: ByState,
}

/// The records of all organizations, in numbers.
pub async fn totals(core: &Core) -> Result<Totals> {
    let found = queries::totals(core).await?;
    let now = core.clock.now().0 as f64;
    let oldest = found.iter().find(|one| one.what == "oldest_approval").map_or(now, |one| one.count);
    let unfinished =
        [TurnState::Queued, TurnState::Running, TurnState::WaitingApproval, TurnState::WaitingLimit];
    let inactive = InactiveReason::ALL.iter().map(|reason| reason.as_str());
    let priced: BTreeSet<&str> = core.prices.currencies().collect();
    let mut spending = by_state(&found, "spending", priced.iter().copied());
    spending.retain(|currency, _| priced.contains(currency.as_str()));
    Ok(Totals {
        agents: by_state(&found, "agents", AgentStatus::ALL.iter().map(|status| status.as_str())),
        hosts: by_state(&found, "hosts", ServerStatus::ALL.iter().map(|status| status.as_str())),
        turns: by_state(&found, "turns", unfinished.iter().map(|state| state.as_str())),
        approvals: by_state(&found, "approvals", Severity::ALL.iter().map(|severity| severity.as_str())),
        oldest_approval_seconds: ((now - oldest) / 1000.0).max(0.0),
        deliveries: by_state(&found, "deliveries", ["WAITING", "FAILED"].into_iter()),
        channels: by_state(&found, "channels", ["ACTIVE", "FAILING"].into_iter().chain(inactive)),
        spending,
    })
}

/// The numbers of one kind of records. States of a later version count as well.
fn by_state<'a>(found: &[StateCount], what: &str, known: impl Iterator<Item = &'a str>) -> ByState {
    let known = known.map(|state| (state.to_owned(), 0.0));
    let found = found.iter().filter(|one| one.what == what).map(|one| (one.state.clone(), one.count));
    known.chain(found).collect()
}
