//! Time zones defined by a calendar (RFC 5545, 3.6.5): only it tells the meaning of names such as `Customized Time
//! Zone` and `1`.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time, Weekday},
    tz::{self, Offset},
};

use crate::bounds;

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Monday),
    ("TU", Weekday::Tuesday),
    ("WE", Weekday::Wednesday),
    ("TH", Weekday::Thursday),
    ("FR", Weekday::Friday),
    ("SA", Weekday::Saturday),
    ("SU", Weekday::Sunday),
];

#[derive(Default)]
pub struct TimeZones(Vec<TimeZone>);

impl TimeZones {
    pub fn begin_zone(&mut self) {
        self.0.truncate(bounds::LIST - 1);
        self.0.push(TimeZone::default());
    }

    /// Begins the current zone's standard or summer time.
    pub fn begin_rule(&mut self) {
        if let Some(zone) = self.0.last_mut() {
            zone.is_unclear |= zone.rules.len() >= bounds::LIST;
            zone.rules.truncate(bounds::LIST - 1);
            zone.rules.push(Rule::default());
        }
    }

    /// Names the current zone.
    pub fn name(&mut self, name: &str) {
        if let Some(zone) = self.0.last_mut() {
            name.clone_into(&mut zone.name);
        }
    }

    /// Adds a property to the current zone's rule.
    pub fn add(&mut self, name: &str, value: &str) {
        let Some(zone) = self.0.last_mut() else { return };
        let Some(rule) = zone.rules.last_mut() else { return };
        let is_clear = match name {
            "DTSTART" => parse_moment(value).map(|begin| rule.begin = Some(begin)),
            "RDATE" => rule.add_begins(value),
            "TZOFFSETTO" => parse_offset(value).map(|east| rule.east = Some(east)),
            "RRULE" => Yearly::read(value).map(|yearly| rule.yearly = Some(yearly)),
            "EXDATE" | "EXRULE" => None,
            _ => Some(()),
        };
        zone.is_unclear |= is_clear.is_none();
    }

    /// A zone's UTC offset at a local time: `UTC+05:45`. `None`: undefined.
    pub fn offset_at(&self, name: &str, at: DateTime) -> Option<String> {
        let zone = self.0.iter().find(|zone| zone.name == name)?;
        Some(format_offset(zone.minutes_east(at)?))
    }

    /// The instant of a local time. A zone that is neither a usual one nor defined by the calendar counts as `local`.
    pub fn instant(&self, name: &str, at: DateTime, local: &tz::TimeZone) -> Option<Timestamp> {
        let usual = if name.is_empty() { None } else { tz::TimeZone::get(name).ok() };
        let defined = self.0.iter().find(|zone| usual.is_none() && zone.name == name);
        if let Some(minutes) = defined.and_then(|zone| zone.minutes_east(at)) {
            return Offset::from_seconds(minutes * 60).ok()?.to_timestamp(at).ok();
        }
        usual.as_ref().unwrap_or(local).to_timestamp(at).ok()
    }
}

#[derive(Default)]
struct TimeZone {
    name: String,
    rules: Vec<Rule>,
    /// Whether its transitions are unknown.
    is_unclear: bool,
}

impl TimeZone {
    /// Minutes east of UTC.
    fn minutes_east(&self, at: DateTime) -> Option<i32> {
        let first = self.rules.first()?.east?;
        if self.rules.iter().all(|rule| rule.east == Some(first)) {
            return Some(first);
        }
        if self.is_unclear {
            return None;
        }
        let begun = self.rules.iter().filter_map(|rule| Some((rule.last_begin(at)?, rule.east)));
        begun.max_by_key(|(begin, _)| *begin)?.1
    }
}

#[derive(Default)]
struct Rule {
    begin: Option<DateTime>,
    /// Further single transitions.
    begins: Vec<DateTime>,
    /// In minutes.
    east: Option<i32>,
    yearly: Option<Yearly>,
}

impl Rule {
    /// `None`: too many or invalid.
    fn add_begins(&mut self, values: &str) -> Option<()> {
        for value in values.split(',') {
            self.begins.push(parse_moment(value).filter(|_| self.begins.len() < bounds::LIST)?);
        }
        Some(())
    }

    /// The last transition to this rule.
    fn last_begin(&self, at: DateTime) -> Option<DateTime> {
        let begin = self.begin.filter(|begin| *begin <= at)?;
        let begin = self.begins.iter().copied().filter(|begin| *begin <= at).fold(begin, DateTime::max);
        let Some(yearly) = &self.yearly else { return Some(begin) };
        let last = yearly.until.map_or(at, |until| until.min(at));
        let in_year = |year| Some(yearly.day(year, begin.date())?.to_datetime(begin.time()));
        let found = [last.year(), last.year() - 1].into_iter().filter_map(in_year).find(|day| *day <= last);
        found.filter(|day| *day > begin).or(Some(begin))
    }
}

/// `FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU`
#[derive(Default)]
struct Yearly {
    month: Option<i8>,
    /// The nth weekday of the month, counted from the end if negative.
    weekday: Option<(i8, Weekday)>,
    days: Vec<i8>,
    until: Option<DateTime>,
}

impl Yearly {
    /// `None`: not supported.
    fn read(rule: &str) -> Option<Self> {
        let mut yearly = Self::default();
        for part in rule.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            match &*name.to_ascii_uppercase() {
                "FREQ" if value.eq_ignore_ascii_case("YEARLY") => {}
                "INTERVAL" if value == "1" => {}
                "WKST" => {}
                "BYMONTH" => yearly.month = Some(value.parse().ok()?),
                "BYDAY" => {
                    let (number, day) = value.split_at_checked(value.len().checked_sub(2)?)?;
                    let known = WEEKDAYS.iter().find(|(name, _)| name.eq_ignore_ascii_case(day))?;
                    let number = if number.is_empty() { 0 } else { number.parse().ok()? };
                    yearly.weekday = Some((number, known.1));
                }
                "BYMONTHDAY" => {
                    let days = value.split(',').take(31).map(|day| day.parse().ok());
                    yearly.days = days.collect::<Option<_>>()?;
                }
                "UNTIL" => yearly.until = Some(parse_moment(value)?),
                _ => return None,
            }
        }
        Some(yearly)
    }

    /// The transition's day in a year.
    fn day(&self, year: i16, begin: Date) -> Option<Date> {
        let first = Date::new(year, self.month.unwrap_or_else(|| begin.month()), 1).ok()?;
        let length = first.days_in_month();
        let is_day = |day: &Date| match (&self.weekday, &*self.days) {
            (None, []) => day.day() == begin.day(),
            (weekday, days) => {
                let is_weekday = weekday.is_none_or(|(number, weekday)| {
                    let nth = if number < 0 { (day.day() - length) / 7 - 1 } else { (day.day() - 1) / 7 + 1 };
                    day.weekday() == weekday && (number == 0 || number == nth)
                });
                let from_end = day.day() - length - 1;
                is_weekday && (days.is_empty() || days.contains(&day.day()) || days.contains(&from_end))
            }
        };
        (1..=length).filter_map(|day| Date::new(year, first.month(), day).ok()).find(is_day)
    }
}

/// `16010101T030000`, `20261025T010000Z`, `20261025`
fn parse_moment(value: &str) -> Option<DateTime> {
    let value = value.trim_end_matches('Z');
    let (day, time) = value.split_once('T').unwrap_or((value, "000000"));
    let day = Date::strptime("%Y%m%d", day).ok()?;
    Some(day.to_datetime(Time::strptime("%H%M%S", time).ok()?))
}

/// `+0545` and `-033000`, in minutes.
fn parse_offset(value: &str) -> Option<i32> {
    let (sign, digits) = value.split_at_checked(1)?;
    let number = |from: usize| digits.get(from..from + 2)?.parse::<u8>().ok().map(i32::from);
    let minutes = number(0)? * 60 + number(2)?;
    match sign {
        "+" => Some(minutes),
        "-" => Some(-minutes),
        _ => None,
    }
}

fn format_offset(east: i32) -> String {
    let (sign, minutes) = (if east < 0 { '-' } else { '+' }, east.abs());
    if minutes == 0 { "UTC".to_owned() } else { format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(rules: &[&[(&str, &str)]]) -> TimeZones {
        let mut zones = TimeZones::default();
        zones.begin_zone();
        zones.name("Z");
        for rule in rules {
            zones.begin_rule();
            rule.iter().for_each(|(name, value)| zones.add(name, value));
        }
        zones
    }

    #[test]
    fn a_zone_has_the_offset_of_its_date() {
        let exchange: &[&[_]] = &[
            &[
                ("DTSTART", "16010101T030000"),
                ("TZOFFSETTO", "+0100"),
                ("RRULE", "FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10"),
            ],
            &[
                ("DTSTART", "16010101T020000"),
                ("TZOFFSETTO", "+0200"),
                ("RRULE", "FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3"),
            ],
        ];
        // Rules for certain years, by days of the month, and with an end.
        let america: &[&[_]] = &[
            &[
                ("DTSTART", "19671029T020000"),
                ("TZOFFSETTO", "-0500"),
                ("RRULE", "FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU;UNTIL=20061029T060000Z"),
            ],
            &[
                ("DTSTART", "20071104T020000"),
                ("TZOFFSETTO", "-0500"),
                ("RRULE", "FREQ=YEARLY;BYMONTH=11;BYDAY=1SU"),
            ],
            &[
                ("DTSTART", "20070311T020000"),
                ("TZOFFSETTO", "-0400"),
                ("RRULE", "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=8,9,10,11,12,13,14;BYDAY=SU"),
            ],
        ];
        let once: &[&[_]] = &[
            &[("DTSTART", "19700101T000000"), ("TZOFFSETTO", "-0330")],
            &[
                ("DTSTART", "20260601T000000"),
                ("TZOFFSETTO", "+0000"),
                ("RDATE", "20260701T000000,20260601T000000"),
            ],
            &[("DTSTART", "20260615T000000"), ("TZOFFSETTO", "-0030")],
        ];
        let only: &[&[_]] = &[&[("TZOFFSETTO", "+0545"), ("RRULE", "FREQ=WEEKLY")]];
        let unclear: &[&[_]] = &[
            &[("DTSTART", "19700101T000000"), ("TZOFFSETTO", "+0100"), ("RRULE", "FREQ=WEEKLY")],
            &[("DTSTART", "19700101T000000"), ("TZOFFSETTO", "+0200")],
        ];
        for (rules, at, expected) in [
            (exchange, "2026-12-01T10:00", Some("UTC+01:00")),
            (exchange, "2026-03-29T01:59", Some("UTC+01:00")),
            (exchange, "2026-03-29T02:00", Some("UTC+02:00")),
            (exchange, "2026-10-25T02:59", Some("UTC+02:00")),
            (exchange, "2026-10-25T03:00", Some("UTC+01:00")),
            (exchange, "1500-10-25T03:00", None),
            (america, "2006-12-01T10:00", Some("UTC-05:00")),
            (america, "2026-03-08T02:00", Some("UTC-04:00")),
            (america, "2026-03-08T01:00", Some("UTC-05:00")),
            (america, "2026-11-01T02:00", Some("UTC-05:00")),
            (once, "2026-05-31T10:00", Some("UTC-03:30")),
            (once, "2026-06-01T00:00", Some("UTC")),
            (once, "2026-06-30T00:00", Some("UTC-00:30")),
            (once, "2026-07-01T00:00", Some("UTC")),
            (only, "2026-12-01T10:00", Some("UTC+05:45")),
            (unclear, "2026-12-01T10:00", None),
            (&[], "2026-12-01T10:00", None),
        ] {
            let found = zones(rules).offset_at("Z", at.parse().unwrap());
            assert_eq!(found.as_deref(), expected, "{at}");
        }
        assert_eq!(zones(once).offset_at("Y", "2026-06-01T00:00".parse().unwrap()), None);
    }

    #[test]
    fn a_zone_with_too_many_rules_is_unknown() {
        let rule: &[_] = &[("DTSTART", "19700101T000000"), ("TZOFFSETTO", "+0100")];
        let other: &[_] = &[("DTSTART", "19700101T000000"), ("TZOFFSETTO", "+0200")];
        let rules: Vec<_> = std::iter::once(other).chain(std::iter::repeat_n(rule, 1_000)).collect();
        assert_eq!(zones(&rules).offset_at("Z", "2026-12-01T10:00".parse().unwrap()), None);
        for wrong in ["", "+", "+05", "0545", "+05:45", "+ü45"] {
            assert_eq!(parse_offset(wrong), None, "{wrong}");
        }
    }
}
