//! Dates of mails (RFC 5322, 3.3 and 4.3), in programs' variants: also without seconds, weekday or zone, with two-digit
//! years, and with the zone names of RFC 822.

use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::Offset,
};

use crate::bounds;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Parses a date. `None`: invalid.
pub fn parse_date(written: &str) -> Option<Timestamp> {
    let beginning = written.get(..written.floor_char_boundary(bounds::NAME))?;
    let plain = strip_comments(beginning);
    if let Ok(moment) = plain.trim().parse() {
        return Some(moment);
    }
    let mut found = DateParts::default();
    for word in plain.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()) {
        found.add(word)?;
    }
    found.moment()
}

fn strip_comments(written: &str) -> String {
    let mut depth = 0_usize;
    let is_outside = |c: &char| {
        let was_inside = depth > 0;
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        !was_inside && depth == 0
    };
    written.chars().filter(is_outside).collect()
}

#[derive(Default)]
struct DateParts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    time: Option<Time>,
    /// Seconds east of UTC.
    zone: Option<i32>,
}

impl DateParts {
    /// Adds a word. `None`: the date is invalid.
    fn add(&mut self, word: &str) -> Option<()> {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if word.contains(':') && self.time.is_none() {
            // `08:00:00+01:00`
            let end = word.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.'));
            let (time, zone) = word.split_at(end.unwrap_or(word.len()));
            self.time = Some(parse_time(time)?);
            if !zone.is_empty() {
                self.zone = Some(parse_offset(zone)?);
            }
        } else if word.starts_with(['+', '-']) {
            self.zone = Some(parse_offset(word)?);
        } else if is_number && self.day.is_none() && word.len() <= 2 {
            self.day = word.parse().ok();
        } else if is_number {
            self.year = Some(parse_year(word)?);
        } else if let Ok(date) = word.parse::<Date>() {
            (self.year, self.month, self.day) = (Some(date.year()), Some(date.month()), Some(date.day()));
        } else if let Some(month) = parse_month(word) {
            self.month = Some(month);
        } else if word.contains('-') && self.month.is_none() {
            // `23-Nov-2026`
            for word in word.split('-').filter(|word| !word.is_empty()) {
                self.add(word)?;
            }
        } else if self.time.is_some() && self.zone.is_none() {
            self.zone = Some(parse_offset(word)?);
        }
        Some(())
    }

    fn moment(&self) -> Option<Timestamp> {
        let date = Date::new(self.year?, self.month?, self.day?).ok()?;
        let zone = Offset::from_seconds(self.zone.unwrap_or_default()).ok()?;
        zone.to_timestamp(date.to_datetime(self.time?)).ok()
    }
}

/// Two-digit years from 50 on belong to the last century; three digits count from 1900.
fn parse_year(digits: &str) -> Option<i16> {
    let year: i16 = digits.parse().ok()?;
    match digits.len() {
        0..=2 if year < 50 => Some(year + 2000),
        0..=3 => Some(year + 1900),
        4 => Some(year),
        _ => None,
    }
}

fn parse_month(word: &str) -> Option<i8> {
    let begin = word.get(..3)?.to_ascii_lowercase();
    MONTHS.iter().zip(1..).find(|(month, _)| **month == begin).map(|(_, number)| number)
}

/// `08:00`, `08:00:00`, `8:00:00.5`
fn parse_time(time: &str) -> Option<Time> {
    let mut parts = time.split(':').map(|part| part.split('.').next().unwrap_or_default().parse::<i8>());
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().unwrap_or(Ok(0)).ok()?;
    // A leap second has no value of its own.
    Time::new(hour, minute, if second == 60 { 59 } else { second }, 0).ok()
}

/// Seconds east of UTC: `+0100`, `GMT+1`, `EST`. Other names are unknown (4.3).
fn parse_offset(zone: &str) -> Option<i32> {
    let Some(sign) = zone.find(['+', '-']) else {
        let hours = match zone.to_ascii_uppercase().as_str() {
            "EDT" => -4,
            "EST" | "CDT" => -5,
            "CST" | "MDT" => -6,
            "MST" | "PDT" => -7,
            "PST" => -8,
            _ => 0,
        };
        return Some(hours * 3_600);
    };
    let (_, number) = zone.split_at(sign);
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let count: i32 = digits.parse().ok()?;
    let east = match digits.len() {
        1 | 2 => count * 3_600,
        3 | 4 => count / 100 * 3_600 + count % 100 * 60,
        _ => return None,
    };
    Some(if number.starts_with('-') { -east } else { east })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_programs_write_them() {
        for (written, expected) in [
            (" Mon, 23 Nov 2026 08:00:00 +0100\r\n", "2026-11-23T07:00:00Z"),
            ("23 Nov 26 08:00 EST", "2026-11-23T13:00:00Z"),
            ("Mon, 23 Nov 26 08:00 UT", "2026-11-23T08:00:00Z"),
            ("Mon,23 November 2026 8:00:30.25 -0330 (NST)", "2026-11-23T11:30:30Z"),
            ("(a (b) c) 23 Nov 2026 (x)\r\n 08:00:60 PDT", "2026-11-23T15:00:59Z"),
            ("Mon Nov 23 08:00:00 2026", "2026-11-23T08:00:00Z"),
            ("Mon Nov 23 08:00:00 PST 2026", "2026-11-23T16:00:00Z"),
            ("23-Nov-2026 08:00:00 +01:00", "2026-11-23T07:00:00Z"),
            ("Mon, 23 Nov 2026 08:00:00 GMT+0200", "2026-11-23T06:00:00Z"),
            ("Mon, 23 Nov 2026 08:00:00 +0000 GMT", "2026-11-23T08:00:00Z"),
            ("Mon, 23 Nov 2026 08:00:00 -0500 EST", "2026-11-23T13:00:00Z"),
            ("Mon, 23 Nov 2026 08:00:00", "2026-11-23T08:00:00Z"),
            ("2026-11-23T08:00:00+01:00", "2026-11-23T07:00:00Z"),
            ("2026-11-23 08:00:00 +0100", "2026-11-23T07:00:00Z"),
            ("Mon, 3 Jan 99 08:00 GMT", "1999-01-03T08:00:00Z"),
            ("Mon, 3 Jan 126 08:00 GMT", "2026-01-03T08:00:00Z"),
            ("29 Feb 2028 00:00 z", "2028-02-29T00:00:00Z"),
        ] {
            assert_eq!(
                parse_date(written).map(|moment| moment.to_string()).as_deref(),
                Some(expected),
                "{written:?}"
            );
        }
    }

    #[test]
    fn invalid_dates_are_none() {
        for written in [
            "",
            "yesterday",
            "Mon, 32 Nov 2026 25:61:00 +0000",
            "32 Nov 25:61",
            "29 Feb 2027 08:00 +0000",
            "23 Nov 2026 24:01 +0000",
            "23 Nov 2026",
            "23 2026 08:00",
            "23 Nov 2026 08:00 +9900",
            "23 Nov 2026 08:00 +00000",
            "23 Nov 20260 08:00",
            "23 Nov 99999999999999999999 08:00",
            "8:ä 23 Nov 2026",
            ":::",
            "-----",
            "+",
        ] {
            assert_eq!(parse_date(written), None, "{written:?}");
        }
    }
}
