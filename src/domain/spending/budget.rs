//! What an agent may spend: the budgets and the cost guard that apply to it, and the prices.

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

/// A budget of a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In millionths.
    pub micro: i64,
    /// What happens when it is spent.
    pub action: CostGuardAction,
}

/// The tokens of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// How many, with what people have allowed on top.
    pub tokens: i64,
    /// What happens when they are used.
    pub action: CostGuardAction,
}

/// What applies to an agent.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Of all money.
    pub currency: String,
    /// Where its months and days begin.
    pub zone: TimeZone,
    /// The organization's budget.
    pub organization: Option<Budget>,
    /// The agent's own.
    pub own: Option<Budget>,
    /// Its cost guard.
    pub guard: Option<Guard>,
}

impl Terms {
    /// What applies to this agent.
    pub async fn of(tx: &Tx, agent: AgentId) -> Result<Self> {
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

    /// What applies to the organization as a whole. Its currency and months, and no agent's limits.
    pub async fn of_organization(tx: &Tx) -> Result<Self> {
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

    /// The prices that hold at this time.
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

/// The same of the month that begins at this instant in another time zone.
pub(super) fn moved(from: &TimeZone, to: &TimeZone, begins: Timestamp) -> (Timestamp, Timestamp) {
    // Its middle is in it, even if the rules of the time zone have changed since.
    span(to, day(from, begins.plus(Duration::from_hours(14 * 24))).first_of_month(), begins)
}

/// When this month and the next one begin; `at` where no one can say.
fn span(zone: &TimeZone, first: Date, at: Timestamp) -> (Timestamp, Timestamp) {
    let begins = |first: Date| {
        let begins = first.to_zoned(zone.clone());
        begins.map_or(at, |begins| Timestamp(begins.timestamp().as_millisecond()))
    };
    let next = first.last_of_month().tomorrow().unwrap_or(first);
    (begins(first), begins(next))
}

/// Whether calls of this agent's model need a lease.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn is_metered(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(Terms::of(tx, agent).await?.is_metered())
}

/// What models cost now, as a host is told.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn prices_now(tx: &Tx, agent: AgentId) -> Result<Vec<Price>> {
    Ok(Terms::of(tx, agent).await?.prices(tx, tx.now))
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
        let there = moved(&utc, &tokyo, june.0);
        assert_eq!(there.0.to_string(), "2026-05-31T15:00:00.000Z");
        assert_eq!(there.1.to_string(), "2026-06-30T15:00:00.000Z");
        assert_eq!(moved(&tokyo, &lima, there.0), moved(&utc, &lima, june.0));
        assert_eq!(moved(&lima, &utc, moved(&tokyo, &lima, there.0).0), june);
    }
}
