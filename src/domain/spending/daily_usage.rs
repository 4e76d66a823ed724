//! Usage by day, and by agent, model, channel or cause.
//!
//! By agent and model, tokens and costs are what hosts measured, and what agents reported of turns in which nothing was
//! measured. By channel and cause they are the turns' own: a call that can't be attributed to a turn is missing.

use std::{collections::BTreeMap, iter};

use async_graphql::SimpleObject;
use jiff::{Timestamp as Instant, ToSpan as _, civil::Date, tz::TimeZone};

use super::{
    budget::{day, zone_of},
    daily_usage_queries::{self, UsageSum},
    queries,
};
use crate::{
    base::{
        column::Decimal,
        enums::UsageGrouping,
        permission::Permission,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::access::Scope,
};

/// The maximum number of days in an answer, as for policy simulations: every turn of these days is read, so many
/// requests for years would keep the database from other work.
const DAYS: i32 = 90;

/// The use by turns and model calls in a day, of one agent, model, channel or cause.
#[derive(SimpleObject)]
pub struct DailyUsage {
    /// The day in the organization's time zone, such as `2026-06-01`.
    pub day: String,
    /// The id of the agent or the channel, the model, or the cause. Null: no model was reported, or no channel was
    /// used. `other`: all but the 200 with the most records.
    pub key: Option<String>,
    /// The name of the agent or the channel. Null otherwise, and if the caller may not see channels.
    pub label: Option<String>,
    /// The number of turns that began.
    pub turns: i64,
    /// How many have an unknown cost, which `costMicro` does not contain: model calls, or turns if nothing was
    /// measured or the usage is grouped by channel or cause.
    pub unpriced: i64,
    /// Tokens read, except cached ones.
    pub input_tokens: Decimal,
    /// Tokens written.
    pub output_tokens: Decimal,
    /// Tokens read from a cache.
    pub cache_read_tokens: Decimal,
    /// Tokens written to a cache.
    pub cache_write_tokens: Decimal,
    /// The cost, in millionths of the currency.
    pub cost_micro: Decimal,
}

/// A period in which the time zone's offset does not change.
pub(super) struct Period {
    pub from: Timestamp,
    pub until: Timestamp,
    /// In milliseconds, east of UTC.
    pub offset: i64,
}

/// The usage by day and `by`, oldest first. By default that of the last 30 days.
pub async fn daily_usage(
    scope: &Scope,
    by: UsageGrouping,
    since: Option<&str>,
    before: Option<&str>,
) -> Result<Vec<DailyUsage>> {
    let place = queries::currency_and_zone(scope).await?;
    let zone = zone_of(&place.timezone);
    let (since, before) = parse_days(since, before, day(&zone, scope.core.clock.now()))?;
    let mut sums = Sums::default();
    for period in periods(&zone, since, before)? {
        for sum in daily_usage_queries::of_turns(scope, by, &period).await? {
            let day = day_of_number(&sum.day);
            sums.add(day, sum);
        }
    }
    for sum in daily_usage_queries::of_model_days(scope, by, (since, before)).await? {
        sums.add(sum.day.clone(), sum);
    }
    let shows_labels = by != UsageGrouping::Channel || scope.may(Permission::AgentView);
    Ok(sums.0.into_iter().map(|((day, key), sum)| shown(day, key, sum, shows_labels)).collect())
}

/// The sums by day and key.
#[derive(Default)]
struct Sums(BTreeMap<(String, String), UsageSum>);

impl Sums {
    fn add(&mut self, day: String, more: UsageSum) {
        let sum = self.0.entry((day, more.key)).or_default();
        sum.label = more.label.or_else(|| sum.label.take());
        sum.turns += more.turns;
        sum.unpriced += more.unpriced;
        sum.input_tokens += more.input_tokens;
        sum.output_tokens += more.output_tokens;
        sum.cache_read_tokens += more.cache_read_tokens;
        sum.cache_write_tokens += more.cache_write_tokens;
        sum.cost_micro += more.cost_micro;
    }
}

fn shown(day: String, key: String, sum: UsageSum, shows_labels: bool) -> DailyUsage {
    DailyUsage {
        day,
        label: sum.label.filter(|_| shows_labels && key != daily_usage_queries::OTHERS),
        key: (!key.is_empty()).then_some(key),
        turns: sum.turns,
        unpriced: sum.unpriced,
        input_tokens: Decimal(sum.input_tokens),
        output_tokens: Decimal(sum.output_tokens),
        cache_read_tokens: Decimal(sum.cache_read_tokens),
        cache_write_tokens: Decimal(sum.cache_write_tokens),
        cost_micro: Decimal(sum.cost_micro),
    }
}

/// The first day, and the one after the last.
fn parse_days(since: Option<&str>, before: Option<&str>, today: Date) -> Result<(Date, Date)> {
    let before = match before {
        Some(before) => parse_day("before", before)?,
        None => today.saturating_add(1.day()),
    };
    let since = match since {
        Some(since) => parse_day("since", since)?,
        None => before.saturating_sub(30.days()),
    };
    match since.until(before).map_or(0, |days| days.get_days()) {
        1..=DAYS => Ok((since, before)),
        ..1 => {
            let detail = "`since` must be earlier than `before`.";
            Err(Problem::invalid_parameter("since", "NOT_ALLOWED", detail))
        }
        _ => {
            let detail = format!("At most {DAYS} days can be read at once.");
            Err(Problem::invalid_parameter("since", "TOO_LARGE", detail))
        }
    }
}

fn parse_day(name: &str, text: &str) -> Result<Date> {
    text.parse().map_err(|_| not_a_day(name, text))
}

fn not_a_day(name: &str, text: &str) -> Problem {
    let detail = format!("`{text}` is not a day. Write it like `2026-06-01`.");
    Problem::invalid_parameter(name, "WRONG_TYPE", detail)
}

/// The days in parts between changes of the time zone's offset.
fn periods(zone: &TimeZone, since: Date, before: Date) -> Result<Vec<Period>> {
    let begin = |name: &str, day: Date| {
        let begin = day.to_zoned(zone.clone()).map(|begin| begin.timestamp());
        begin.map_err(|_| not_a_day(name, &day.to_string()))
    };
    let (from, until) = (begin("since", since)?, begin("before", before)?);
    let changes = zone.following(from).map(|change| change.timestamp()).take_while(|at| *at < until);
    let starts: Vec<Instant> = iter::once(from).chain(changes).collect();
    let ends = starts.iter().skip(1).copied().chain([until]);
    let period = |(from, until): (&Instant, Instant)| Period {
        from: Timestamp(from.as_millisecond()),
        until: Timestamp(until.as_millisecond()),
        offset: i64::from(zone.to_offset(*from).seconds()) * 1000,
    };
    Ok(starts.iter().zip(ends).map(period).collect())
}

/// The day of a number of days since 1970.
fn day_of_number(number: &str) -> String {
    let days = number.parse::<i64>().unwrap_or_default();
    jiff::civil::date(1970, 1, 1).saturating_add(days.days()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_split_where_the_clocks_change() {
        let (since, before) = ("2026-10-24".parse().unwrap(), "2026-10-27".parse().unwrap());
        let found = periods(&zone_of("Europe/Berlin"), since, before).unwrap();
        let found: Vec<_> =
            found.iter().map(|part| (part.from.to_string(), part.until.to_string(), part.offset)).collect();
        let (begin, change, end) =
            ("2026-10-23T22:00:00.000Z", "2026-10-25T01:00:00.000Z", "2026-10-26T23:00:00.000Z");
        let expected = [(begin, change, 7_200_000), (change, end, 3_600_000)];
        let expected = expected.map(|(from, until, offset)| (from.to_owned(), until.to_owned(), offset));
        assert_eq!(found, expected);
        assert_eq!(periods(&zone_of("UTC"), since, before).unwrap().len(), 1);
        assert!(periods(&TimeZone::UTC, since, Date::MAX).is_err(), "no instant begins that day");
    }

    #[test]
    fn days_have_a_default_and_a_maximum() {
        let today: Date = "2026-06-15".parse().unwrap();
        let days = |since, before| {
            let found = parse_days(since, before, today);
            found.map(|(since, before)| (since.to_string(), before.to_string()))
        };
        let expected = |since: &str, before: &str| (since.to_owned(), before.to_owned());
        assert_eq!(days(None, None).unwrap(), expected("2026-05-17", "2026-06-16"));
        assert_eq!(days(None, Some("2026-03-01")).unwrap(), expected("2026-01-30", "2026-03-01"));
        assert!(days(Some("2026-01-01"), Some("2026-04-01")).is_ok());
        for (since, before) in [
            ("2026-01-01", "2026-04-02"),
            ("2026-04-02", "2026-04-02"),
            ("2026-04-02", "2026-04-01"),
            ("2026-02-30", "2026-03-01"),
            ("0000000001", "2026-03-01"),
        ] {
            assert!(days(Some(since), Some(before)).is_err(), "{since} {before}");
        }
    }
}
