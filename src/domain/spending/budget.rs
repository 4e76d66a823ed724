//! An agent's spending terms: its budgets, its cost guard and the prices.

use std::time::Duration;

use jiff::{Timestamp as Instant, civil::Date, tz::TimeZone};
use muster_protocol::spending::Price;

use super::queries;
use crate::{
    base::{
        enums::{CostGuardAction, OverrideMode},
        ids::AgentId,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
};

/// A monthly budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In millionths.
    pub micro: i64,
    pub action: CostGuardAction,
}

/// An hourly token limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Includes allowances.
    pub tokens: i64,
    pub action: CostGuardAction,
}

/// The spending terms of an agent.
#[derive(Clone, Debug)]
pub struct Terms {
    pub currency: String,
    /// Decides when days and months begin.
    pub zone: TimeZone,
    pub organization: Option<Budget>,
    /// The agent's own budget.
    pub own: Option<Budget>,
    pub guard: Option<Guard>,
}

impl Terms {
    pub async fn load(tx: &Tx, agent: AgentId) -> Result<Self> {
        let found = queries::agent_terms(tx, agent).await?;
        let row = found.ok_or_else(|| Problem::not_found("agent", agent))?;
        let budget = |micro: Option<i64>, action| micro.map(|micro| Budget { micro, action });
        let (tokens, action) = match row.guard_mode {
            OverrideMode::Off => (None, None),
            OverrideMode::Inherit => (row.organization_guard_tokens, Some(row.organization_guard_action)),
            OverrideMode::Custom => (row.guard_tokens, row.guard_action),
        };
        let guard =
            |(tokens, action): (i64, _)| Guard { tokens: tokens.saturating_add(row.allowed_tokens), action };
        Ok(Self {
            zone: zone_of(&row.timezone),
            organization: budget(row.organization_budget_micro, row.organization_budget_action),
            own: budget(row.budget_micro, row.budget_action),
            guard: tokens.zip(action).map(guard),
            currency: row.currency,
        })
    }

    /// The organization's terms, without any agent's limits.
    pub async fn load_for_organization(tx: &Tx) -> Result<Self> {
        let found = queries::organization_terms(tx).await?;
        let row = found.ok_or_else(|| Problem::not_found("organization", tx.scope.org))?;
        let action = row.budget_action;
        Ok(Self {
            currency: row.currency,
            zone: zone_of(&row.timezone),
            organization: row.monthly_budget_micro.map(|micro| Budget { micro, action }),
            own: None,
            guard: None,
        })
    }

    /// Whether calls need a lease.
    pub const fn is_metered(&self) -> bool {
        self.organization.is_some() || self.own.is_some() || self.guard.is_some()
    }

    /// Whether money is limited.
    pub const fn has_budget(&self) -> bool {
        self.organization.is_some() || self.own.is_some()
    }

    /// The prices in force at this time.
    pub fn prices(&self, tx: &Tx, at: Timestamp) -> Vec<Price> {
        let prices = tx.scope.core.prices.on(&self.currency, day(&self.zone, at));
        prices.into_iter().map(|since| since.price).collect()
    }
}

pub(super) fn zone_of(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap_or(TimeZone::UTC)
}

/// The day in this time zone.
pub(super) fn day(zone: &TimeZone, at: Timestamp) -> Date {
    Instant::from_millisecond(at.0).map_or(Date::MIN, |at| at.to_zoned(zone.clone()).date())
}

/// The first instant of the month, and of the next one.
pub(super) fn month(zone: &TimeZone, at: Timestamp) -> (Timestamp, Timestamp) {
    span(zone, day(zone, at).first_of_month(), at)
}

/// The bounds in time zone `to` of the month that begins at `begins` in time zone `from`.
pub(super) fn month_in_zone(from: &TimeZone, to: &TimeZone, begins: Timestamp) -> (Timestamp, Timestamp) {
    // The middle of the month belongs to it even if the rules of the time zone have changed since.
    span(to, day(from, begins.plus(Duration::from_hours(14 * 24))).first_of_month(), begins)
}

/// When this month and the next one begin; `at` for dates out of range.
fn span(zone: &TimeZone, first: Date, at: Timestamp) -> (Timestamp, Timestamp) {
    let begins = |first: Date| {
        let begins = first.to_zoned(zone.clone());
        begins.map_or(at, |begins| Timestamp(begins.timestamp().as_millisecond()))
    };
    let next = first.last_of_month().tomorrow().unwrap_or(first);
    (begins(first), begins(next))
}

/// Whether calls of this agent's model need a lease.
pub async fn is_metered(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(Terms::load(tx, agent).await?.is_metered())
}

/// The current prices, as sent to a host.
pub async fn prices_now(tx: &Tx, agent: AgentId) -> Result<Vec<Price>> {
    Ok(Terms::load(tx, agent).await?.prices(tx, tx.now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_where_the_organization_is() {
        let month = |at: &str, zone: &str| {
            let (from, until) = month(&zone_of(zone), at.parse().unwrap());
            (from.to_string(), until.to_string())
        };
        let utc = ("2026-06-01T00:00:00.000Z".to_owned(), "2026-07-01T00:00:00.000Z".to_owned());
        assert_eq!(month("2026-06-01T00:00:00.000Z", "UTC"), utc);
        assert_eq!(month("2026-06-30T23:59:59.999Z", "UTC"), utc);
        let tokyo = ("2026-06-30T15:00:00.000Z".to_owned(), "2026-07-31T15:00:00.000Z".to_owned());
        assert_eq!(month("2026-06-30T23:59:59.999Z", "Asia/Tokyo"), tokyo);
        // The clocks go back in the night of the 25th of October.
        let berlin = ("2026-09-30T22:00:00.000Z".to_owned(), "2026-10-31T23:00:00.000Z".to_owned());
        assert_eq!(month("2026-10-10T00:00:00.000Z", "Europe/Berlin"), berlin);
        assert_eq!(month("2026-12-31T23:00:00.000Z", "Nowhere").1, "2027-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_month_that_moves_to_another_time_zone_is_the_same_month() {
        let (utc, tokyo, lima) = (zone_of("UTC"), zone_of("Asia/Tokyo"), zone_of("America/Lima"));
        let june = month(&utc, "2026-06-01T00:00:00.000Z".parse().unwrap());
        let there = month_in_zone(&utc, &tokyo, june.0);
        assert_eq!(there.0.to_string(), "2026-05-31T15:00:00.000Z");
        assert_eq!(there.1.to_string(), "2026-06-30T15:00:00.000Z");
        assert_eq!(month_in_zone(&tokyo, &lima, there.0), month_in_zone(&utc, &lima, june.0));
        assert_eq!(month_in_zone(&lima, &utc, month_in_zone(&tokyo, &lima, there.0).0), june);
    }
}
