//! The load of servers' machines over time: averages and maxima of five minutes, kept for 14 days (`jobs/retention.rs`).
//!
//! A connection sums up its readings, and stores a period with the first reading after it: a host costs one small write
//! for each. The readings of a period in which the connection ends are not stored.

use async_graphql::SimpleObject;
use muster_protocol::frame::Load;

use super::load_history_queries;
use crate::{
    base::{
        ids::ServerId,
        problem::{Problem, Result},
        time::{DAY_MS, Timestamp},
    },
    core::{access::Scope, store::Tx},
};

const PERIOD_MS: i64 = 300_000;

/// The load of a server's machine in a period.
#[derive(Debug, SimpleObject)]
pub struct ServerLoad {
    /// The beginning of the period.
    pub since: Timestamp,
    /// The end of the period.
    pub before: Timestamp,
    /// The average processor usage, in per cent. Null, like the others: not measured.
    pub cpu_average: Option<f64>,
    /// The highest processor usage, in per cent.
    pub cpu_maximum: Option<f64>,
    /// The average memory usage, in per cent.
    pub memory_average: Option<f64>,
    /// The highest memory usage, in per cent.
    pub memory_maximum: Option<f64>,
    /// The average of the load over 1 minute.
    pub load_average: Option<f64>,
    /// The highest load over 1 minute.
    pub load_maximum: Option<f64>,
}

/// The sum and the maximum of a measure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measure {
    count: u32,
    sum: f64,
    maximum: f64,
}

impl Measure {
    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        self.count += 1;
        self.sum += value;
        self.maximum = self.maximum.max(value);
    }

    pub(super) fn average(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }

    pub(super) fn maximum(self) -> Option<f64> {
        (self.count > 0).then_some(self.maximum)
    }
}

/// The readings of a period.
#[derive(Debug, PartialEq)]
pub(super) struct PeriodLoad {
    pub begins: Timestamp,
    /// Processors, memory, and the load over 1 minute.
    pub measures: [Measure; 3],
}

/// Adds a reading to the current period. Returns the period before it, if the reading begins a new one.
pub(super) fn add_reading(
    current: &mut Option<PeriodLoad>,
    now: Timestamp,
    load: &Load,
) -> Option<PeriodLoad> {
    let begins = Timestamp(floor(now.0, PERIOD_MS));
    let closed = current.take_if(|period| period.begins != begins);
    let period = current.get_or_insert_with(|| PeriodLoad { begins, measures: Default::default() });
    let values = [load.cpu_pct, load.ram_pct, load.load.map(|[minute, ..]| minute)];
    for (measure, value) in period.measures.iter_mut().zip(values) {
        measure.add(value);
    }
    closed
}

/// The load of a server over time, oldest first. By default that of the last day.
///
/// # Errors
/// `NOT_FOUND`; `VALIDATION_FAILED` for more than 14 days.
pub async fn load_history(
    scope: &Scope,
    server: ServerId,
    since: Option<Timestamp>,
    before: Option<Timestamp>,
) -> Result<Vec<ServerLoad>> {
    let before = before.unwrap_or_else(|| scope.core.clock.now());
    let since = since.unwrap_or(Timestamp(before.0.saturating_sub(DAY_MS)));
    let step = step_of(since, before)?;
    load_history_queries::existing(scope, server)
        .await?
        .ok_or_else(|| Problem::not_found("server", server))?;
    let since = Timestamp(floor(since.0, step));
    let rows = load_history_queries::load_between(scope, server, (since, before), step).await?;
    let shown = rows.into_iter().map(|row| ServerLoad {
        since: row.period_at,
        before: Timestamp(row.period_at.0 + step),
        cpu_average: row.cpu_avg,
        cpu_maximum: row.cpu_max,
        memory_average: row.ram_avg,
        memory_maximum: row.ram_max,
        load_average: row.load_avg,
        load_maximum: row.load_max,
    });
    Ok(shown.collect())
}

/// Deletes the history of a deleted server.
pub async fn delete_load_history(tx: &Tx, server: ServerId) -> Result<()> {
    load_history_queries::delete_of(tx, server).await
}

/// The length of the periods in an answer, in milliseconds: five minutes for each day or part of one, so an answer has
/// 300 points at most. It covers no more than the 14 days for which rows are kept.
fn step_of(since: Timestamp, before: Timestamp) -> Result<i64> {
    match before.0.saturating_sub(since.0) {
        ..1 => {
            let detail = "`since` must be earlier than `before`.";
            Err(Problem::invalid_parameter("since", "NOT_ALLOWED", detail))
        }
        range if range <= 14 * DAY_MS => Ok(((range - 1) / DAY_MS + 1) * PERIOD_MS),
        _ => {
            let detail = "At most 14 days can be read at once.";
            Err(Problem::invalid_parameter("since", "TOO_LARGE", detail))
        }
    }
}

/// The largest multiple of `step` that is not above `at`.
fn floor(at: i64, step: i64) -> i64 {
    at - at.rem_euclid(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(cpu_pct: Option<f64>, minute: f64) -> Load {
        Load { cpu_pct, ram_pct: None, load: Some([minute, 0.0, 0.0]), uptime_seconds: None }
    }

    #[test]
    fn a_period_is_closed_once_by_the_first_reading_after_it() {
        let mut current = None;
        let mut add = |at: i64, cpu, minute| add_reading(&mut current, Timestamp(at), &reading(cpu, minute));
        assert_eq!(add(PERIOD_MS, Some(10.0), 1.0), None);
        assert_eq!(add(2 * PERIOD_MS - 1, Some(40.0), 4.0), None);
        assert_eq!(add(2 * PERIOD_MS - 1, None, 1.0), None);
        let closed = add(5 * PERIOD_MS + 7, Some(1.0), 1.0).unwrap();
        assert_eq!(closed.begins, Timestamp(PERIOD_MS));
        let [cpu, ram, load] = closed.measures.map(|measure| (measure.average(), measure.maximum()));
        assert_eq!((cpu, ram, load), ((Some(25.0), Some(40.0)), (None, None), (Some(2.0), Some(4.0))));
        assert_eq!(add(5 * PERIOD_MS + 8, None, 1.0), None);
        assert_eq!(add(6 * PERIOD_MS, None, 1.0).unwrap().begins, Timestamp(5 * PERIOD_MS));
    }

    #[test]
    fn an_answer_has_few_points_of_at_most_14_days() {
        let step = |range: i64| step_of(Timestamp(0), Timestamp(range)).ok();
        assert_eq!(step(1), Some(PERIOD_MS));
        assert_eq!(step(DAY_MS), Some(PERIOD_MS));
        assert_eq!(step(7 * DAY_MS), Some(7 * PERIOD_MS));
        assert_eq!(step(14 * DAY_MS), Some(14 * PERIOD_MS));
        assert_eq!([14 * DAY_MS + 1, 0, -1].map(step), [None; 3]);
        assert!(step_of(Timestamp(i64::MIN), Timestamp(i64::MAX)).is_err());
    }
}
