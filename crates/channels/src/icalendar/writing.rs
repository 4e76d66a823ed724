//! New events, and changes of others' events, which keep every line that is not changed.

use jiff::{Span, Timestamp, ToSpan, civil::Date, tz::TimeZone};

use super::{Calendar, Property, unfold};
use crate::contract::Cause;

/// A time, or a whole day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Day(Date),
    Time(Timestamp),
}

impl At {
    /// Parses `2026-12-01T10:00:00+01:00` or `2026-12-24`.
    pub fn parse(text: &str) -> Result<Self, Cause> {
        let text = text.trim();
        let at = text.parse().map(Self::Time).or_else(|_| Date::strptime("%Y-%m-%d", text).map(Self::Day));
        at.map_err(|_| {
            format!("`{text}` is neither a time with its zone, such as 2026-12-01T10:00:00+01:00, nor a day.")
                .into()
        })
    }

    /// `DTSTART:20261201T090000Z`
    fn line(self, name: &str) -> String {
        match self {
            Self::Day(day) => format!("{name};VALUE=DATE:{}", day.strftime("%Y%m%d")),
            Self::Time(at) => format!("{name}:{}", at.strftime("%Y%m%dT%H%M%SZ")),
        }
    }

    fn after(self, span: Span) -> Option<Self> {
        match self {
            Self::Day(day) => day.checked_add(span).ok().map(Self::Day),
            // A duration may be in days, which an instant alone doesn't have.
            Self::Time(at) => {
                let end = at.to_zoned(TimeZone::UTC).checked_add(span).ok()?;
                Some(Self::Time(end.timestamp()))
            }
        }
    }

    /// Whether an event can last from here until `end`.
    pub fn is_before(self, end: Self) -> bool {
        match (self, end) {
            (Self::Day(start), Self::Day(end)) => start < end,
            (Self::Time(start), Self::Time(end)) => start < end,
            _ => false,
        }
    }
}

/// A new event.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub title: String,
    pub start: At,
    /// The first moment after it.
    pub end: At,
    pub place: Option<String>,
    pub description: Option<String>,
    /// Addresses.
    pub invited: Vec<String>,
}

/// A change of an event.
#[derive(Clone, Debug)]
pub enum Change {
    /// To another time. Without an end, it lasts as long as before.
    Move { start: At, end: Option<At> },
    /// The answer of the attendee with one of these addresses.
    Answer { partstat: Partstat, addresses: Vec<String> },
}

/// An answer to an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partstat {
    Accepted,
    Declined,
    Tentative,
}

impl Partstat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "ACCEPTED",
            Self::Declined => "DECLINED",
            Self::Tentative => "TENTATIVE",
        }
    }
}

/// A calendar object with one event, for the calendar `place`. `id` is the action's.
pub fn new_calendar(
    place: &str,
    id: &str,
    new: &NewEvent,
    organizer: Option<&str>,
    now: Timestamp,
) -> String {
    let mut lines = vec![
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//Muster//Muster//EN".to_owned(),
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{id}@muster"),
        format!("DTSTAMP:{}", now.strftime("%Y%m%dT%H%M%SZ")),
        new.start.line("DTSTART"),
        new.end.line("DTEND"),
        format!("SUMMARY:{}", escape(&new.title)),
    ];
    lines.extend(new.place.iter().map(|place| format!("LOCATION:{}", escape(place))));
    lines.extend(new.description.iter().map(|words| format!("DESCRIPTION:{}", escape(words))));
    // Only an event with an organizer has attendees.
    if let Some(organizer) = organizer.filter(|_| !new.invited.is_empty()) {
        lines.push(format!("ORGANIZER:mailto:{organizer}"));
        let invited = new
            .invited
            .iter()
            .map(|address| format!("ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:{address}"));
        lines.extend(invited);
    }
    lines.extend(["END:VEVENT".to_owned(), "END:VCALENDAR".to_owned()]);
    mark(&(lines.join("\n") + "\n"), place, id)
}

/// Applies a change in the calendar `place`. `id` is the action's.
///
/// # Errors
/// The event can't be changed so: the reason, for the agent.
pub fn apply(
    calendar: &str,
    place: &str,
    id: &str,
    change: &Change,
    now: Timestamp,
) -> Result<String, Cause> {
    let read = Calendar::read(calendar, "");
    let changed = match change {
        Change::Move { .. } if read.recurs() => {
            return Err("This event recurs. Only an event that takes place once can be moved.".into());
        }
        Change::Move { start, end } => {
            let end = match end {
                Some(end) => *end,
                None => read.end_from(*start).ok_or("The event has no time.")?,
            };
            if !start.is_before(end) {
                return Err("The event must end after its start, and both are times or both are days.".into());
            }
            move_to(calendar, *start, end)
        }
        Change::Answer { partstat, addresses } => {
            let is_invited = |address: &str| addresses.iter().any(|own| own.eq_ignore_ascii_case(address));
            let mut all = read.events.iter().flat_map(|event| &event.attendees);
            if !all.any(|one| is_invited(&one.address)) {
                return Err("This account is not among the invited people.".into());
            }
            answer(calendar, *partstat, is_invited)
        }
    };
    let stamp = format!("DTSTAMP:{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let set_stamp =
        |line: &Property<'_>| if line.name == "DTSTAMP" { Edit::Replace(stamp.clone()) } else { Edit::Keep };
    let stamped = rewrite(&changed, set_stamp, &[]);
    Ok(mark(&stamped, place, id))
}

impl Calendar {
    /// The end of an event that is moved to this start.
    pub fn end_from(&self, start: At) -> Option<At> {
        let event = self.events.first()?;
        let begin = event.begin.as_ref()?;
        let lasts = match (&event.end, event.lasts) {
            (Some(end), _) if begin.time.is_none() => end.day - begin.day,
            (Some(end), _) => {
                let instant = |moment: &super::Moment| moment.instant(&self.zones, &TimeZone::UTC);
                let seconds = instant(end)?.as_second() - instant(begin)?.as_second();
                Span::new().try_seconds(seconds).ok()?
            }
            (None, Some(lasts)) => lasts,
            (None, None) if begin.time.is_none() => 1.day(),
            (None, None) => 1.hour(),
        };
        start.after(lasts)
    }
}

fn move_to(calendar: &str, start: At, end: At) -> String {
    let edit = |line: &Property<'_>| match &*line.name {
        "DTSTART" | "DTEND" | "DURATION" => Edit::Drop,
        "SEQUENCE" => {
            let next = line.value.parse::<i64>().unwrap_or_default().saturating_add(1);
            Edit::Replace(format!("SEQUENCE:{next}"))
        }
        _ => Edit::Keep,
    };
    rewrite(calendar, edit, &[start.line("DTSTART"), end.line("DTEND")])
}

fn answer(calendar: &str, partstat: Partstat, is_own: impl Fn(&str) -> bool) -> String {
    let edit = |line: &Property<'_>| {
        if line.name != "ATTENDEE" || !is_own(line.address()) {
            return Edit::Keep;
        }
        let kept = line.params.split(';').filter(|param| {
            let name = param.split('=').next().unwrap_or_default().to_ascii_uppercase();
            !matches!(&*name, "" | "PARTSTAT" | "RSVP")
        });
        let params: String = kept.map(|param| format!(";{param}")).collect();
        Edit::Replace(format!("ATTENDEE{params};PARTSTAT={}:{}", partstat.as_str(), line.value))
    };
    rewrite(calendar, edit, &[])
}

/// Leaves the [`Marker`](super::Marker), by which our change is recognized when it comes back, and a repetition of the
/// action.
fn mark(calendar: &str, place: &str, id: &str) -> String {
    let state = Calendar::read(calendar, "").fingerprint(place);
    let added = [format!("X-MUSTER-ACTION:{id}"), format!("X-MUSTER-STATE:{state}")];
    let is_ours = |line: &Property<'_>| line.name.starts_with("X-MUSTER-");
    rewrite(calendar, |line| if is_ours(line) { Edit::Drop } else { Edit::Keep }, &added)
}

/// The edit of a line.
enum Edit {
    Keep,
    Drop,
    Replace(String),
}

/// Rewrites the lines of each event, and appends `added` to each.
fn rewrite(calendar: &str, edit: impl Fn(&Property<'_>) -> Edit, added: &[String]) -> String {
    let mut written = String::new();
    let mut within: Vec<String> = Vec::new();
    for line in unfold(calendar).lines() {
        let read = Property::read(line);
        let is_of_event = within.last().is_some_and(|part| part == "VEVENT");
        match &read {
            Some(begin) if begin.name == "BEGIN" => within.push(begin.value.to_ascii_uppercase()),
            Some(end) if end.name == "END" => {
                if is_of_event {
                    for line in added {
                        fold(&mut written, line);
                    }
                }
                within.pop();
            }
            Some(property) if is_of_event => match edit(property) {
                Edit::Keep => {}
                Edit::Drop => continue,
                Edit::Replace(replacement) => {
                    fold(&mut written, &replacement);
                    continue;
                }
            },
            _ => {}
        }
        fold(&mut written, line);
    }
    written
}

/// Appends a line in pieces of at most 75 bytes (3.1).
fn fold(to: &mut String, line: &str) {
    let mut rest = line;
    loop {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(73));
        to.push_str(piece);
        to.push_str("\r\n");
        if after.is_empty() {
            return;
        }
        to.push(' ');
        rest = after;
    }
}

/// A text as a value (3.3.11).
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.trim().chars().filter(|c| *c == '\n' || !c.is_control()) {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\\' | ';' | ',' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icalendar::Marker;

    const NOW: &str = "2026-11-30T09:00:00Z";

    fn new() -> NewEvent {
        NewEvent {
            title: "Tea, and\ncake".to_owned(),
            start: At::parse("2026-12-01T10:00:00+01:00").unwrap(),
            end: At::parse("2026-12-01T11:30:00+01:00").unwrap(),
            place: Some("ä".repeat(100)),
            description: None,
            invited: vec!["bo@b.test".to_owned()],
        }
    }

    #[test]
    fn a_new_event_reads_as_written_and_is_ours() {
        let text = new_calendar("/rota/", "a1", &new(), Some("me@a.test"), NOW.parse().unwrap());
        assert!(text.lines().all(|line| line.len() <= 75), "{text}");
        let read = Calendar::read(&text, "");
        let event = &read.events[0];
        assert_eq!((event.uid.as_str(), event.summary.as_str()), ("a1@muster", "Tea, and\ncake"));
        assert_eq!(event.marker, Marker { action: "a1".to_owned(), fingerprint: read.fingerprint("/rota/") });
        // In the calendar of an invited agent it is new.
        assert!(read.is_ours("/rota/") && !read.is_ours("/bo/"));
        let described = read.describe();
        assert!(described.contains("When: 2026-12-01 09:00 to 10:30 (UTC)"), "{described}");
        assert!(described.contains("Invited: bo@b.test has not decided"), "{described}");
    }

    #[test]
    fn a_change_keeps_other_lines_and_ends_when_people_change_it() {
        let theirs = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:7\nDTSTAMP:20261101T000000Z\nSEQUENCE:4\nX-OTHER:kept\n\
                      DTSTART;TZID=Europe/Berlin:20261201T100000\nDURATION:PT1H30M\nORGANIZER:mailto:bo@b.test\n\
                      ATTENDEE;CN=\"Lo, Me\";RSVP=TRUE;PARTSTAT=NEEDS-ACTION:mailto:Me@a.test\nBEGIN:VALARM\n\
                      TRIGGER:-PT5M\nDURATION:PT1M\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n";
        let start = At::parse("2026-12-02T10:00:00Z").unwrap();
        let now = NOW.parse().unwrap();
        let moved = apply(theirs, "/rota/", "a2", &Change::Move { start, end: None }, now).unwrap();
        for line in [
            "SEQUENCE:5",
            "X-OTHER:kept",
            "DTSTART:20261202T100000Z",
            "DTEND:20261202T113000Z",
            "DURATION:PT1M",
        ] {
            assert!(moved.lines().any(|other| other == line), "{line}: {moved}");
        }
        assert!(Calendar::read(&moved, "").is_ours("/rota/"));
        for (ours, changed) in [
            ("T113000Z", "T120000Z"),
            ("X-OTHER:kept", "DESCRIPTION:Bring cake"),
            ("X-OTHER:kept", "RRULE:FREQ=DAILY"),
            ("X-OTHER:kept", "EXDATE:20261202T100000Z"),
        ] {
            assert!(!Calendar::read(&moved.replace(ours, changed), "").is_ours("/rota/"), "{changed}");
        }
        let of_days = theirs.replace("PT1H30M", "P1D");
        let moved = apply(&of_days, "/rota/", "a2", &Change::Move { start, end: None }, now).unwrap();
        assert!(moved.contains("DTEND:20261203T100000Z"), "{moved}");

        let addresses = vec!["me@a.test".to_owned()];
        let accepted = Change::Answer { partstat: Partstat::Accepted, addresses };
        let answered = apply(theirs, "/rota/", "a3", &accepted, now).unwrap();
        assert!(
            unfold(&answered).contains("ATTENDEE;CN=\"Lo, Me\";PARTSTAT=ACCEPTED:mailto:Me@a.test\n"),
            "{answered}"
        );
        let stranger =
            Change::Answer { partstat: Partstat::Accepted, addresses: vec!["cy@c.test".to_owned()] };
        assert!(apply(theirs, "/rota/", "a4", &stranger, now).is_err());
        let recurring = theirs.replace("SEQUENCE:4", "RRULE:FREQ=DAILY");
        assert!(apply(&recurring, "/rota/", "a5", &Change::Move { start, end: None }, now).is_err());
        let day = At::parse("2026-12-24").unwrap();
        assert!(apply(theirs, "/rota/", "a6", &Change::Move { start: day, end: Some(start) }, now).is_err());
    }
}
