//! Scheduled backups. An agent is due if its schedule has had a time since its last backup. So times that were missed,
//! because its host was not connected or the service did not run, are made up for by a single backup. While a backup
//! waits for its host, no other begins.
//!
//! All agents with the same schedule share its last time, so the job computes it once for each schedule, outside of
//! transactions.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{Timestamp as Instant, tz::TimeZone};
use serde_json::{Value, json};

use super::{
    begin_backup, is_under_way,
    queries::{ScheduledAgent, fail_late, scheduled_agent, scheduled_agents},
    record,
};
use crate::{
    base::{
        enums::{BackupCause, BackupSchedule},
        ids::AgentId,
        problem::Result,
        time::Timestamp,
    },
    core::{Core, access::Scope, job_counts::Tally, store::Tx},
    domain::{
        agents,
        orgs::{self, Limit},
    },
};

/// DAILY and WEEKLY, at an hour when most people sleep. WEEKLY is on Sundays.
const DAILY: &str = "0 3 * * *";
const WEEKLY: &str = "0 3 * * 0";
/// The error of a backup or restore that its host never reported.
const NO_ANSWER: &str = "The host did not answer within 30 days.";

/// Begins the due backups of every organization, and fails those whose host never answered. Returns how many.
pub async fn schedule_due(core: &Arc<Core>) -> Result<u64> {
    // An hour more than the command waits for its host.
    let late = core.clock.now().minus(Duration::from_hours(30 * 24 + 1));
    let (given_up, mut done) = (fail_late(core, late, NO_ANSWER).await?, Tally::default());
    let mut times: HashMap<Schedule, Option<Timestamp>> = HashMap::new();
    for agent in scheduled_agents(core).await? {
        let Some(schedule) = Schedule::from_row(&agent) else { continue };
        let last = match times.entry(schedule.clone()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                // Many schedules must not block other tasks.
                tokio::task::yield_now().await;
                *new.insert(schedule.last(core.clock.now()))
            }
        };
        let Some(last) = last else { continue };
        if is_due(&agent, last) {
            let scope = Scope::system(core, agent.organization_id);
            done.add(scope.org, back_up_if_due(&scope, agent.id, (&schedule, last)).await);
        }
    }
    Ok(given_up + done.close()?)
}

/// Begins a backup, unless another replica was faster, the schedule was edited, or the plan requires a longer interval.
async fn back_up_if_due(
    scope: &Scope,
    id: AgentId,
    (schedule, last): (&Schedule, Timestamp),
) -> Result<bool> {
    let tx = scope.begin().await?;
    let Some(agent) = agents::lock_agent(&tx, id).await? else { return Ok(false) };
    let Some(row) = scheduled_agent(&tx, id).await? else { return Ok(false) };
    let is_same = Schedule::from_row(&row).as_ref() == Some(schedule);
    if !is_same || is_under_way(&tx, id).await? || !is_due(&row, last) || is_too_soon(&tx, &row).await? {
        return Ok(false);
    }
    let backup = begin_backup(&tx, &agent, BackupCause::Schedule).await?;
    record(&tx, "backupAgent", id, json!({ "backup": [Value::Null, backup] }));
    tx.commit().await?;
    Ok(true)
}

/// Whether the plan requires a longer interval since the last backup. It may have changed since the schedule was set.
async fn is_too_soon(tx: &Tx, agent: &ScheduledAgent) -> Result<bool> {
    let Some(last) = agent.last_wanted_at else { return Ok(false) };
    let minutes = orgs::limit(tx, Limit::MinCronInterval).await?;
    Ok(last.plus(Duration::from_mins(minutes.unsigned_abs())) > tx.now)
}

/// Whether an agent has not been backed up since the last time of its schedule.
fn is_due(agent: &ScheduledAgent, last: Timestamp) -> bool {
    let others = [agent.last_backup_at, agent.last_wanted_at, agent.last_ended_at];
    last > others.into_iter().flatten().fold(agent.created_at, Timestamp::max)
}

/// A schedule: a cron line in a time zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Schedule {
    line: String,
    zone: String,
}

impl Schedule {
    /// The agent's schedule. `None`: it has none.
    fn from_row(agent: &ScheduledAgent) -> Option<Self> {
        let line = match agent.backup_schedule {
            BackupSchedule::Off => None,
            BackupSchedule::Inherit => agent.inherited_cron.clone(),
            BackupSchedule::Daily => Some(DAILY.to_owned()),
            BackupSchedule::Weekly => Some(WEEKLY.to_owned()),
            BackupSchedule::Cron => agent.own_cron.clone(),
        };
        Some(Self { line: line?, zone: agent.timezone.clone().unwrap_or_default() })
    }

    /// Its last time, at or before `now`.
    fn last(&self, now: Timestamp) -> Option<Timestamp> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron: Cron = parser.parse(&self.line).ok()?;
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        let now = Instant::from_millisecond(now.0).ok()?.to_zoned(zone);
        let last = cron.find_previous_occurrence(&now, true).ok()?;
        // A time that the clock skips in spring is found only by searching forwards, at the beginning of the next hour.
        let skipped = cron.find_next_occurrence(&last, false).ok().filter(|next| *next <= now);
        Some(Timestamp(skipped.unwrap_or(last).timestamp().as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<Instant>().unwrap().as_millisecond())
    }

    #[test]
    fn a_schedule_is_one_of_the_time_zone() {
        let last = |line: &str, zone: &str, now| {
            Schedule { line: line.to_owned(), zone: zone.to_owned() }.last(at(now)).unwrap()
        };
        assert_eq!(last(DAILY, "UTC", "2026-05-04T03:00:00Z"), at("2026-05-04T03:00:00Z"));
        assert_eq!(last(DAILY, "UTC", "2026-05-04T02:59:59Z"), at("2026-05-03T03:00:00Z"));
        assert_eq!(last(DAILY, "Europe/Vienna", "2026-05-04T02:59:59Z"), at("2026-05-04T01:00:00Z"));
        assert_eq!(last(WEEKLY, "UTC", "2026-05-09T23:00:00Z"), at("2026-05-03T03:00:00Z"));
        assert_eq!(last("*/15 * * * *", "nowhere", "2026-05-04T03:14:59Z"), at("2026-05-04T03:00:00Z"));
        assert_eq!(last("0 0 29 2 *", "UTC", "2026-05-04T00:00:00Z"), at("2024-02-29T00:00:00Z"));
        // In the night when the clock goes forward, half past two is skipped.
        let spring = last("30 2 * * *", "Europe/Vienna", "2026-03-29T12:00:00Z");
        assert!(spring >= at("2026-03-29T01:00:00Z") && spring < at("2026-03-29T12:00:00Z"), "{spring:?}");
    }
}
