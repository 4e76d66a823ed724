//! When events take place. Rules are expanded in local time, which is why an hour stays the same over the year.

use std::collections::HashSet;

use jiff::{
    Timestamp, ToSpan,
    civil::DateTime,
    tz::{Offset, TimeZone},
};
use rrule::RRuleSet;

use super::{Calendar, Event};
use crate::bounds;

/// One time at which an event takes place.
pub struct Occurrence<'a> {
    pub event: &'a Event,
    /// The start that the event's rule gives: it stays the same when this one is moved.
    pub recurrence: Timestamp,
    pub start: Timestamp,
}

impl Calendar {
    /// The times at which the events of an object start, after `from` and not after `to`. Days, and times without a
    /// known zone, are those of `local`.
    pub fn occurrences(&self, local: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<Occurrence<'_>> {
        let moved = self.events.iter().filter_map(|event| {
            let recurrence = event.recurrence.as_ref()?.instant(&self.zones, local)?;
            Some((&*event.uid, recurrence))
        });
        let moved: HashSet<_> = moved.collect();
        let mut found = Vec::new();
        for event in &self.events {
            let starts = event.starts(self, local, from, to);
            let own = event.recurrence.as_ref().and_then(|moment| moment.instant(&self.zones, local));
            let starts = starts.into_iter().map(|start| (own.unwrap_or(start), start));
            let is_wanted = |(recurrence, start): &(Timestamp, Timestamp)| {
                let is_replaced = own.is_none() && moved.contains(&(&*event.uid, *recurrence));
                !is_replaced && *start > from && *start <= to
            };
            let occurrences = starts.filter(is_wanted);
            found.extend(occurrences.map(|(recurrence, start)| Occurrence { event, recurrence, start }));
            found.truncate(1_000);
        }
        found.retain(|occurrence| !occurrence.event.is_cancelled() && !occurrence.event.is_task);
        found
    }

    /// Whether one of the events recurs.
    pub fn recurs(&self) -> bool {
        let recurs = |event: &Event| !event.repeats.is_empty() || !event.dates.is_empty();
        self.events.len() > 1 || self.events.iter().any(recurs)
    }
}

impl Event {
    /// Its starts, of which some may be earlier or later.
    fn starts(
        &self,
        calendar: &Calendar,
        local: &TimeZone,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<Timestamp> {
        let zones = &calendar.zones;
        let Some(begin) = &self.begin else { return Vec::new() };
        let to_instant = |at: DateTime| zones.instant(&begin.zone, at, local);
        let all = |moments: &[super::Moment]| {
            moments.iter().filter_map(|moment| moment.instant(zones, local)).collect::<Vec<_>>()
        };
        let except: HashSet<_> = all(&self.except).into_iter().collect();
        let last = self.last_start(calendar, local).unwrap_or(Timestamp::MAX);
        let recurring = begin.local().and_then(|begin| expand(begin, &self.repeats, from, to));
        let recurring = recurring.unwrap_or_else(|| begin.local().into_iter().collect());
        let mut starts: Vec<_> = recurring.into_iter().filter_map(to_instant).collect();
        starts.retain(|start| *start <= last);
        starts.extend(all(&self.dates));
        starts.retain(|start| !except.contains(start));
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// The end of the repetition.
    fn last_start(&self, calendar: &Calendar, local: &TimeZone) -> Option<Timestamp> {
        let value = self.repeats.split(';').find_map(|part| part.strip_prefix("UNTIL="))?;
        let begin = self.begin.as_ref()?;
        let params = format!("TZID={}", begin.zone);
        // Some programs write a day although the event has times: it is the last one.
        let is_day = begin.time.is_some() && !value.contains('T');
        let value = if is_day { format!("{value}T235900") } else { value.to_owned() };
        let until = super::Property { name: String::new(), params: &params, value: &value };
        super::Moment::read(&until)?.instant(&calendar.zones, local)
    }
}

/// The local starts that a rule gives around this time. `None`: no rule, or one that is not expanded.
fn expand(begin: DateTime, rule: &str, from: Timestamp, to: Timestamp) -> Option<Vec<DateTime>> {
    let parts = || rule.split(';').filter(|part| !part.is_empty() && !part.starts_with("UNTIL="));
    let value = |name: &str| parts().find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    match value("FREQ")? {
        // An attacker's rule from the year 1 would be tried on 700,000 days, again each minute.
        "DAILY" if begin.year() < 1900 => return None,
        "DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY" => {}
        _ => return None,
    }
    // An attacker's rule could have thousands of times a day.
    let times =
        ["BYHOUR", "BYMINUTE", "BYSECOND"].map(|name| value(name).map_or(1, |all| all.split(',').count()));
    if times.iter().product::<usize>() > bounds::LIST {
        return None;
    }
    let rule = parts().collect::<Vec<_>>().join(";");
    let set: RRuleSet = format!("DTSTART:{}Z\nRRULE:{rule}", begin.strftime("%Y%m%dT%H%M%S")).parse().ok()?;
    let set = set.limit();
    // No zone is farther away from UTC.
    let (from, to) = (from.checked_sub(24.hours()).ok()?, to.checked_add(24.hours()).ok()?);
    // An attacker's rule could begin in the year 1.
    let starts =
        set.into_iter().take(10_000).filter_map(|start| Timestamp::from_second(start.timestamp()).ok());
    let starts = starts.skip_while(|start| *start < from).take_while(|start| *start <= to);
    Some(starts.take(1_000).map(|start| Offset::UTC.to_datetime(start)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(lines: &str, from: &str, to: &str) -> Vec<String> {
        let text = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n");
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let calendar = Calendar::read(&text, "");
        let local = TimeZone::get("Europe/Berlin").unwrap();
        let found = calendar.occurrences(&local, from, to);
        found.iter().map(|found| format!("{} {}", found.recurrence, found.start)).collect()
    }

    fn twice(start: &str) -> String {
        format!("{start} {start}")
    }

    #[test]
    fn an_hour_stays_the_same_over_the_year() {
        let weekly = "DTSTART;TZID=Europe/Berlin:20261012T100000\nRRULE:FREQ=WEEKLY;UNTIL=20261102T090000Z\n\
                      EXDATE:20261019T080000Z";
        let found = starts(weekly, "2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z");
        // Summer time ends on the 25th.
        let expected = ["2026-10-12T08:00:00Z", "2026-10-26T09:00:00Z", "2026-11-02T09:00:00Z"];
        assert_eq!(found, expected.map(twice));
        assert_eq!(starts(weekly, "2026-10-26T09:00:00Z", "2026-11-02T08:59:00Z"), Vec::<String>::new());
    }

    #[test]
    fn whole_days_begin_where_the_calendar_is() {
        let daily = "DTSTART;VALUE=DATE:20261130\nRRULE:FREQ=DAILY;COUNT=2\nRDATE;VALUE=DATE:20261224";
        let found = starts(daily, "2026-11-01T00:00:00Z", "2027-01-01T00:00:00Z");
        let expected = ["2026-11-29T23:00:00Z", "2026-11-30T23:00:00Z", "2026-12-23T23:00:00Z"];
        assert_eq!(found, expected.map(twice));
    }

    #[test]
    fn last_days_and_periods_are_read() {
        let daily = "DTSTART;TZID=Europe/Berlin:20261201T100000\nRRULE:FREQ=DAILY;UNTIL=20261202\n\
                     RDATE;VALUE=PERIOD:20261224T100000Z/PT1H";
        let found = starts(daily, "2026-11-01T00:00:00Z", "2027-01-01T00:00:00Z");
        let expected = ["2026-12-01T09:00:00Z", "2026-12-02T09:00:00Z", "2026-12-24T10:00:00Z"];
        assert_eq!(found, expected.map(twice));
    }

    #[test]
    fn a_moved_recurrence_replaces_its_own() {
        let moved = "DTSTART:20261201T100000Z\nRRULE:FREQ=DAILY;COUNT=3\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\n\
                     RECURRENCE-ID:20261202T100000Z\nDTSTART:20261202T150000Z\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\n\
                     RECURRENCE-ID:20261203T100000Z\nDTSTART:20261203T100000Z\nSTATUS:CANCELLED";
        let found = starts(moved, "2026-12-01T00:00:00Z", "2026-12-31T00:00:00Z");
        let expected =
            ["2026-12-01T10:00:00Z 2026-12-01T10:00:00Z", "2026-12-02T10:00:00Z 2026-12-02T15:00:00Z"];
        assert_eq!(found, expected);
    }

    #[test]
    fn hostile_rules_end() {
        for (rule, expected) in [
            ("FREQ=SECONDLY", 1),
            ("FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11;BYMINUTE=0,1,2,3,4,5,6,7,8,9", 1),
            ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", 0),
            ("nothing", 1),
        ] {
            let lines = format!("DTSTART:20261201T100000Z\nRRULE:{rule}");
            let found = starts(&lines, "2026-12-01T00:00:00Z", "2027-01-30T00:00:00Z");
            assert_eq!(found.len(), expected, "{rule}");
        }
        let ancient = "DTSTART:00010101T100000Z\nRRULE:FREQ=DAILY";
        assert_eq!(starts(ancient, "2026-12-01T00:00:00Z", "2027-01-30T00:00:00Z").len(), 0);
        let rare = "DTSTART:00010101T100000Z\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29";
        assert_eq!(starts(rare, "2028-01-01T00:00:00Z", "2028-12-31T00:00:00Z").len(), 0);
        let yearly = "DTSTART;VALUE=DATE:16041224\nRRULE:FREQ=YEARLY";
        assert_eq!(starts(yearly, "2026-12-01T00:00:00Z", "2027-01-30T00:00:00Z").len(), 1);
    }
}
