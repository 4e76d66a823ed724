//! Events and tasks (RFC 5545, RFC 5546): of mails, and of calendars.
//!
//! - `mod.rs`: reads and describes them; `time_zones.rs`: their time zones; `recurrence.rs`: when they recur.
//! - `writing.rs`: new events, and changes of others' events.

mod recurrence;
mod time_zones;
mod writing;

use jiff::{
    Span, Timestamp, ToSpan,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use sha2::{Digest, Sha256};

use self::time_zones::TimeZones;
pub use self::{
    recurrence::Occurrence,
    writing::{At, Change, NewEvent, Partstat, apply, escape, new_calendar},
};
use crate::bounds;

/// The part of a calendar that is read, as anyone can send a long one.
pub fn readable_part(calendar: &str) -> &str {
    &calendar[..calendar.floor_char_boundary(256 << 10)]
}

/// The text of a calendar's first event or task, in a mail from this address. `None`: it has none.
pub fn describe_calendar(calendar: &str, from: &str) -> Option<String> {
    let calendar = Calendar::read(calendar, from);
    let first = calendar.events.first()?;
    Some(first.describe(&calendar, from, calendar.count - 1))
}

/// The events and tasks of a calendar.
#[derive(Default)]
pub struct Calendar {
    method: String,
    /// The first ones.
    pub events: Vec<Event>,
    /// The number of all.
    count: usize,
    zones: TimeZones,
}

impl Calendar {
    /// Reads a calendar that came from this address.
    pub fn read(calendar: &str, from: &str) -> Self {
        let mut read = Self::default();
        read.add_lines(&unfold(readable_part(calendar)), from);
        read
    }

    /// The text of an object of a calendar: an event, with its exceptions if it recurs. Empty: it has no event.
    pub fn describe(&self) -> String {
        let texts = self.events.iter().take(10).map(|event| event.describe(self, "", 0));
        let mut text = texts.collect::<Vec<_>>().join("\n\n");
        if self.count > 10 {
            text.push_str(&format!("\n({} more)", self.count - 10));
        }
        text
    }

    /// Names the state of an object in the calendar `place`: equal only if its times, words and answers are.
    pub fn fingerprint(&self, place: &str) -> String {
        let instant = |moment: &Option<Moment>| moment.as_ref()?.instant(&self.zones, &TimeZone::UTC);
        let instants = |moments: &[Moment]| {
            let all = moments.iter().map(|moment| moment.instant(&self.zones, &TimeZone::UTC));
            all.collect::<Vec<_>>()
        };
        let mut digest = Sha256::new();
        digest.update(format!("{place}\n"));
        for event in &self.events {
            let mut answers: Vec<_> =
                event.attendees.iter().map(|one| (one.address.to_lowercase(), one.status)).collect();
            answers.sort_unstable();
            let times = (instant(&event.begin), instant(&event.end), instant(&event.recurrence));
            let repeats = (&event.repeats, instants(&event.dates), instants(&event.except));
            let words = (&event.summary, &event.place, &event.words, event.is_cancelled());
            digest.update(format!("{times:?} {repeats:?} {words:?} {answers:?}\n"));
        }
        hex::encode(&digest.finalize()[..12])
    }

    /// Whether the last change was Muster's, in this calendar: an invitation by another agent bears that one's mark.
    pub fn is_ours(&self, place: &str) -> bool {
        self.events.first().is_some_and(|event| event.marker.fingerprint == self.fingerprint(place))
    }

    fn add_lines(&mut self, lines: &str, from: &str) {
        // The open components: `VCALENDAR`, `VEVENT`, `VALARM` …
        let mut within: Vec<&str> = Vec::new();
        for line in lines.lines().filter_map(Property::read) {
            match (&*line.name, within.last().copied()) {
                ("BEGIN", _) => {
                    if let Some(is_task) = is_task(line.value) {
                        self.count += 1;
                        self.events.truncate(bounds::LIST - 1);
                        self.events.push(Event { is_task, ..Event::default() });
                    }
                    if line.value.eq_ignore_ascii_case("VTIMEZONE") {
                        self.zones.begin_zone();
                    } else if is_zone_rule(line.value) {
                        self.zones.begin_rule();
                    }
                    within.push(line.value);
                }
                ("END", _) => drop(within.pop()),
                ("TZID", Some(part)) if part.eq_ignore_ascii_case("VTIMEZONE") => self.zones.name(line.value),
                (name, Some(part)) if is_zone_rule(part) => self.zones.add(name, line.value),
                ("METHOD", Some(_)) => self.method = line.value.to_ascii_uppercase(),
                (_, Some(part)) if is_task(part).is_some() => {
                    if let Some(event) = self.events.last_mut() {
                        event.add(&line, from);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a component is a zone's standard or summer time.
fn is_zone_rule(part: &str) -> bool {
    part.eq_ignore_ascii_case("STANDARD") || part.eq_ignore_ascii_case("DAYLIGHT")
}

/// Whether a component is a task. `None`: neither a task nor an event.
fn is_task(part: &str) -> Option<bool> {
    let is_task = part.eq_ignore_ascii_case("VTODO");
    (is_task || part.eq_ignore_ascii_case("VEVENT")).then_some(is_task)
}

/// Joins folded lines (3.1).
fn unfold(calendar: &str) -> String {
    calendar.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "")
}

/// `NAME;PARAM=value:value`
#[derive(Clone)]
struct Property<'a> {
    name: String,
    params: &'a str,
    value: &'a str,
}

impl<'a> Property<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut quoted = false;
        let colon = line.find(|c| {
            quoted ^= c == '"';
            c == ':' && !quoted
        })?;
        let (head, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        let (name, params) = head.split_once(';').unwrap_or((head, ""));
        Some(Self { name: name.trim().to_ascii_uppercase(), params, value: value.trim() })
    }

    fn param(&self, name: &str) -> Option<&'a str> {
        let mut quoted = false;
        let mut params = self.params.split(move |c| {
            quoted ^= c == '"';
            c == ';' && !quoted
        });
        params.find_map(|param| {
            let (key, value) = param.split_once('=')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim_matches('"'))
        })
    }

    /// The value without escapes.
    fn text(&self) -> String {
        let (mut text, mut escaped) = (String::new(), false);
        for c in self.value.chars().take(2_000) {
            match c {
                '\\' if !escaped => escaped = true,
                'n' | 'N' if escaped => {
                    text.push('\n');
                    escaped = false;
                }
                c => {
                    text.push(c);
                    escaped = false;
                }
            }
        }
        text.trim().to_owned()
    }

    fn address(&self) -> &'a str {
        address(self.value)
    }

    /// The moments of a list. Of periods, their starts.
    fn moments(&self) -> impl Iterator<Item = Moment> {
        let values =
            self.value.split(',').map(|value| value.split_once('/').map_or(value, |(start, _)| start));
        let values = values.map(|value| Property { value, ..self.clone() });
        values.filter_map(|line| Moment::read(&line))
    }

    /// `Ada <ada@a.test>`
    fn format_person(&self) -> String {
        let address = self.address();
        match self.param("CN").filter(|name| !name.eq_ignore_ascii_case(address)) {
            Some(name) => format!("{name} <{address}>"),
            None => address.to_owned(),
        }
    }
}

/// An event or a task.
#[derive(Default)]
pub struct Event {
    is_task: bool,
    pub uid: String,
    pub summary: String,
    begin: Option<Moment>,
    end: Option<Moment>,
    /// The start that this one replaces, of those that the event's rule gives.
    recurrence: Option<Moment>,
    /// The duration of an event without an end.
    lasts: Option<Span>,
    place: String,
    organizer: String,
    /// Its address, in lower case.
    pub organizer_address: String,
    repeats: String,
    /// Starts beside the repetition.
    dates: Vec<Moment>,
    /// Exceptions from the repetition.
    except: Vec<Moment>,
    /// A task's deadline.
    due: Option<Moment>,
    /// Comment on an invitation or a reply.
    comment: String,
    status: String,
    words: String,
    answer: Option<Reply>,
    /// The first ones.
    pub attendees: Vec<Attendee>,
    pub categories: Vec<String>,
    /// When its author changed it, by the author's clock.
    pub modified: Option<Timestamp>,
    /// Left by Muster's last change.
    pub marker: Marker,
}

/// Left in an event by Muster's last change of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// The id of the action.
    pub action: String,
    /// The [`Calendar::fingerprint`] afterwards.
    pub fingerprint: String,
}

/// An invited person.
#[derive(Debug)]
pub struct Attendee {
    pub address: String,
    /// `Bo <bo@b.test> accepts`
    words: String,
    /// `accepts`
    status: &'static str,
}

impl Attendee {
    pub fn declines(&self) -> bool {
        self.status == DECLINES
    }
}

/// An invitee's reply.
struct Reply {
    who: String,
    /// Whether the mail's sender replies.
    is_sender: bool,
    /// `PARTSTAT`
    what: &'static str,
    /// The delegates.
    sent: String,
}

impl Reply {
    fn read(line: &Property<'_>, from: &str) -> Self {
        let what = match line.param("PARTSTAT").unwrap_or_default().to_ascii_uppercase().as_str() {
            "ACCEPTED" => "accepts",
            "DECLINED" => DECLINES,
            "TENTATIVE" => "accepts tentatively",
            "DELEGATED" => DELEGATES,
            _ => UNDECIDED,
        };
        let sent = line.param("DELEGATED-TO").filter(|_| what == DELEGATES).unwrap_or_default();
        let sent: Vec<_> =
            sent.split(',').take(10).map(|one| address(one.trim_matches([' ', '"']))).collect();
        let is_sender = line.address().eq_ignore_ascii_case(from);
        Self { who: line.format_person(), is_sender, what, sent: sent.join(", ") }
    }

    /// Of several replies the sender's counts, else a decided one.
    fn weight(&self) -> (bool, bool) {
        (self.is_sender, self.what != UNDECIDED)
    }

    fn describe(&self, from: &str) -> String {
        let Self { who, is_sender, what, sent } = self;
        let mut words = format!("{who} {what}");
        if !sent.is_empty() {
            words.extend([": ", sent]);
        }
        if !is_sender && !from.is_empty() {
            words.extend([", sent by ", from]);
        }
        words
    }
}

const UNDECIDED: &str = "has not decided";
const DELEGATES: &str = "sends someone else";
const DECLINES: &str = "declines";

/// `mailto:ada@a.test`
fn address(value: &str) -> &str {
    value.split_once(':').map_or(value, |(_, address)| address)
}

impl Event {
    fn add(&mut self, line: &Property<'_>, from: &str) {
        match &*line.name {
            "SUMMARY" => self.summary = line.text(),
            "DTSTART" => self.begin = Moment::read(line),
            "DTEND" => self.end = Moment::read(line),
            "DURATION" => self.lasts = line.value.parse().ok(),
            "LOCATION" => self.place = line.text(),
            "UID" => self.uid = line.text(),
            "RECURRENCE-ID" => self.recurrence = Moment::read(line),
            "CATEGORIES" => {
                let room = bounds::LIST.saturating_sub(self.categories.len());
                self.categories.extend(line.text().split(',').take(room).map(|one| one.trim().to_owned()));
            }
            "DTSTAMP" | "LAST-MODIFIED" => {
                let at = Moment::read(line).and_then(|at| at.instant(&TimeZones::default(), &TimeZone::UTC));
                self.modified = self.modified.max(at);
            }
            "X-MUSTER-ACTION" => self.marker.action = line.text(),
            "X-MUSTER-STATE" => self.marker.fingerprint = line.text(),
            "ORGANIZER" => {
                self.organizer = line.format_person();
                self.organizer_address = line.address().to_lowercase();
            }
            "RRULE" => self.repeats = line.text(),
            "EXDATE" => self.except.extend(line.moments()),
            "RDATE" => self.dates.extend(line.moments()),
            "DUE" => self.due = Moment::read(line),
            "COMMENT" if !self.comment.is_empty() => self.comment.extend(["\n", &line.text()]),
            "COMMENT" => self.comment = line.text(),
            "STATUS" => self.status = line.value.to_ascii_uppercase(),
            "DESCRIPTION" => self.words = line.text(),
            "ATTENDEE" => {
                let answer = Reply::read(line, from);
                if self.attendees.len() < bounds::LIST {
                    let (address, words) = (line.address().to_owned(), answer.describe(from));
                    self.attendees.push(Attendee { address, words, status: answer.what });
                }
                if self.answer.as_ref().is_none_or(|known| known.weight() < answer.weight()) {
                    self.answer = Some(answer);
                }
            }
            _ => {}
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.status == "CANCELLED"
    }

    fn describe(&self, calendar: &Calendar, from: &str, others: usize) -> String {
        let zones = &calendar.zones;
        let what = match &*calendar.method {
            "CANCEL" if self.is_task => "Calendar: a task is cancelled",
            _ if self.is_task => "Calendar: a task",
            "CANCEL" => "Calendar: an event is cancelled",
            "REPLY" => "Calendar: an answer to an invitation",
            "COUNTER" => "Calendar: another time is proposed",
            "REQUEST" => "Calendar: an invitation",
            _ if self.is_cancelled() => "Calendar: an event is cancelled",
            _ => "Calendar: an event",
        };
        let mut words = format!("[{what}]");
        let when = self.begin.as_ref().map(|begin| {
            let end = self.lasts.and_then(|lasts| begin.after(lasts));
            let end = self.end.as_ref().or(end.as_ref()).map(|end| end.with_offset(zones));
            begin.with_offset(zones).format_until(end.as_ref())
        });
        let at = |moment: &Moment| moment.with_offset(zones).format_until(None);
        let except: Vec<_> = self.except.iter().take(bounds::LIST).map(at).collect();
        let mut except = except.join(", ");
        if let Some(more) = self.except.len().checked_sub(bounds::LIST).filter(|more| *more > 0) {
            except.extend([" and ", &more.to_string(), " more"]);
        }
        let due = self.due.as_ref().map(at);
        let is_reply = calendar.method == "REPLY";
        let answer = self.answer.as_ref().filter(|_| is_reply).map(|answer| answer.describe(from));
        let own = self.begin.as_ref().map(at);
        let instead = self.recurrence.as_ref().map(at).filter(|instead| own.as_ref() != Some(instead));
        // Mails have the answers of their senders only.
        let invited: &[Attendee] = if calendar.method.is_empty() { &self.attendees } else { &[] };
        let invited = invited.iter().map(|one| &*one.words).collect::<Vec<_>>().join(", ");
        for (label, value) in [
            ("", Some(&self.summary)),
            ("", answer.as_ref()),
            ("When: ", when.as_ref()),
            ("Instead of: ", instead.as_ref()),
            ("Due: ", due.as_ref()),
            ("Repeats: ", Some(&self.repeats)),
            ("Except: ", Some(&except)),
            ("Where: ", Some(&self.place)),
            ("Organizer: ", Some(&self.organizer)),
            ("Invited: ", Some(&invited)),
            ("Comment: ", Some(&self.comment)),
            ("\n", Some(&self.words)),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                words.extend(["\n", label, value]);
            }
        }
        if others > 0 {
            words.extend(["\n(", &others.to_string(), " more in the file)"]);
        }
        words
    }
}

/// A day, or a time of it in a zone.
#[derive(Clone)]
struct Moment {
    day: Date,
    /// `10:30`
    time: Option<String>,
    zone: String,
}

impl Moment {
    /// `20261201`, `20261201T103000`, `20261201T103000Z`
    fn read(line: &Property<'_>) -> Option<Self> {
        let (day, time) =
            line.value.split_once('T').map_or((line.value, None), |(day, time)| (day, Some(time)));
        let day = Date::strptime("%Y%m%d", day).ok()?;
        let clock = time.and_then(|time| Some(format!("{}:{}", time.get(..2)?, time.get(2..4)?)));
        let zone = match time {
            Some(time) if time.ends_with('Z') => "UTC".to_owned(),
            Some(_) => line.param("TZID").unwrap_or_default().to_owned(),
            None => String::new(),
        };
        Some(Self { day, time: clock, zone })
    }

    /// `None`: an invalid time.
    fn local(&self) -> Option<DateTime> {
        let time =
            self.time.as_ref().map_or(Some(Time::midnight()), |time| Time::strptime("%H:%M", time).ok());
        Some(self.day.to_datetime(time?))
    }

    /// The instant. Days, and times without a known zone, are those of `local`.
    fn instant(&self, zones: &TimeZones, local: &TimeZone) -> Option<Timestamp> {
        zones.instant(&self.zone, self.local()?, local)
    }

    /// Adds the zone's UTC offset, if the calendar defines it.
    fn with_offset(&self, zones: &TimeZones) -> Self {
        let offset = self.local().and_then(|at| zones.offset_at(&self.zone, at));
        let zone = match offset {
            Some(offset) if offset != self.zone => format!("{}, {offset}", self.zone),
            _ => self.zone.clone(),
        };
        Self { zone, ..self.clone() }
    }

    /// The moment after a duration, if there is one.
    fn after(&self, lasts: Span) -> Option<Self> {
        let end = self.local()?.checked_add(lasts).ok().filter(|_| lasts.is_positive())?;
        let time = self.time.as_ref().map(|_| end.strftime("%H:%M").to_string());
        Some(Self { day: end.date(), time, zone: self.zone.clone() })
    }

    /// The period up to `end`. The last day of a whole-day event precedes its end.
    fn format_until(&self, end: Option<&Self>) -> String {
        let zone = |zone: &str| if zone.is_empty() { String::new() } else { format!(" ({zone})") };
        let Some(time) = &self.time else {
            let last = end.and_then(|end| end.day.checked_sub(1.day()).ok()).filter(|last| *last > self.day);
            return last.map_or_else(|| self.day.to_string(), |last| format!("{} to {last}", self.day));
        };
        let until = end.and_then(|end| Some((end, end.time.as_ref()?))).map(|(end, until)| {
            let day = if end.day == self.day { String::new() } else { format!("{} ", end.day) };
            let own = if end.zone == self.zone { String::new() } else { zone(&self.zone) };
            format!("{own} to {day}{until}{}", zone(&end.zone))
        });
        format!("{} {time}{}", self.day, until.unwrap_or_else(|| zone(&self.zone)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(method: &str, lines: &str) -> String {
        let calendar =
            format!("BEGIN:VCALENDAR\nMETHOD:{method}\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n");
        describe_calendar(&calendar.replace('\n', "\r\n"), "bo@b.test").unwrap()
    }

    #[test]
    fn times_are_shown_as_written() {
        for (lines, expected) in [
            ("DTSTART:20261201T100000Z\nDTEND:20261201T113000Z", "2026-12-01 10:00 to 11:30 (UTC)"),
            (
                "DTSTART;TZID=Europe/Berlin:20261201T100000\nDTEND;TZID=Europe/Berlin:20261202T090000",
                "2026-12-01 10:00 to 2026-12-02 09:00 (Europe/Berlin)",
            ),
            (
                "DTSTART;TZID=\"W. Europe Standard Time\":20261201T100000",
                "2026-12-01 10:00 (W. Europe Standard Time)",
            ),
            ("DTSTART:20261201T100000", "2026-12-01 10:00"),
            ("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261225", "2026-12-24"),
            ("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227", "2026-12-24 to 2026-12-26"),
            ("DURATION:PT1H30M\nDTSTART:20261201T233000Z", "2026-12-01 23:30 to 2026-12-02 01:00 (UTC)"),
            (
                "DTSTART;TZID=Europe/Berlin:20261201T100000\nDURATION:P1D",
                "2026-12-01 10:00 to 2026-12-02 10:00 (Europe/Berlin)",
            ),
            ("DTSTART;VALUE=DATE:20261224\nDURATION:P1W", "2026-12-24 to 2026-12-30"),
            ("DTSTART;VALUE=DATE:20261224\nDURATION:P1D", "2026-12-24"),
            ("DTSTART:20261201T100000Z\nDURATION:-PT1H", "2026-12-01 10:00 (UTC)"),
            ("DTSTART:20261201T100000Z\nDURATION:P99999999D", "2026-12-01 10:00 (UTC)"),
            ("DTSTART:20261201T100000Z\nDURATION:an hour", "2026-12-01 10:00 (UTC)"),
            (
                "DTSTART;TZID=Asia/Tokyo:20261201T220000\nDTEND:20261201T140000Z",
                "2026-12-01 22:00 (Asia/Tokyo) to 14:00 (UTC)",
            ),
        ] {
            assert_eq!(
                event("REQUEST", lines),
                format!("[Calendar: an invitation]\nWhen: {expected}"),
                "{lines}"
            );
        }
    }

    #[test]
    fn zones_of_the_calendar_show_their_offset() {
        let zone = "BEGIN:VTIMEZONE\nTZID:Customized Time Zone\nBEGIN:STANDARD\nDTSTART:16010101T030000\nTZOFFSETTO:+0100\n\
                    RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\nBEGIN:DAYLIGHT\nDTSTART:16010101T020000\n\
                    TZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\n";
        let event = "BEGIN:VEVENT\nDTSTART;TZID=\"Customized Time Zone\":20261024T220000\nDURATION:PT5H30M\n\
                     EXDATE;TZID=Customized Time Zone:20261201T100000\nEND:VEVENT\n";
        // The zone may follow its event.
        for calendar in [format!("{zone}{event}"), format!("{event}{zone}")] {
            assert_eq!(
                describe_calendar(&format!("BEGIN:VCALENDAR\n{calendar}END:VCALENDAR"), "bo@b.test").unwrap(),
                "[Calendar: an event]\n\
                 When: 2026-10-24 22:00 (Customized Time Zone, UTC+02:00) to 2026-10-25 03:30 (Customized Time Zone, UTC+01:00)\n\
                 Except: 2026-12-01 10:00 (Customized Time Zone, UTC+01:00)"
            );
        }
    }

    #[test]
    fn methods_are_described() {
        for (method, lines, expected) in [
            ("CANCEL", "SUMMARY:Tea", "[Calendar: an event is cancelled]\nTea"),
            (
                "REPLY",
                "SUMMARY:Tea\nATTENDEE;PARTSTAT=DECLINED;CN=Bo:mailto:bo@b.test",
                "[Calendar: an answer to an invitation]\nTea\nBo <bo@b.test> declines",
            ),
            // The replying person, and the sender.
            (
                "REPLY",
                "ATTENDEE;PARTSTAT=ACCEPTED:mailto:cy@c.test\nATTENDEE;PARTSTAT=TENTATIVE:MAILTO:BO@b.test",
                "[Calendar: an answer to an invitation]\nBO@b.test accepts tentatively",
            ),
            (
                "REPLY",
                "ATTENDEE;PARTSTAT=DELEGATED;DELEGATED-TO=\"mailto:ev@e.test\",\"MAILTO:fy@f.test\";CN=Bo:mailto:bo@b.test\n\
                 ATTENDEE;PARTSTAT=ACCEPTED;DELEGATED-FROM=\"mailto:bo@b.test\":mailto:ev@e.test",
                "[Calendar: an answer to an invitation]\nBo <bo@b.test> sends someone else: ev@e.test, fy@f.test",
            ),
            (
                "REPLY",
                "ATTENDEE;PARTSTAT=DELEGATED:mailto:cy@c.test",
                "[Calendar: an answer to an invitation]\ncy@c.test sends someone else, sent by bo@b.test",
            ),
            (
                "REPLY",
                "ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:di@d.test\nATTENDEE;PARTSTAT=DECLINED;CN=Cy:mailto:cy@c.test",
                "[Calendar: an answer to an invitation]\nCy <cy@c.test> declines, sent by bo@b.test",
            ),
            (
                "COUNTER",
                "SUMMARY:Tea\nDTSTART:20261201T150000Z\nCOMMENT:Could we do\n  it later?\nCOMMENT:Please",
                "[Calendar: another time is proposed]\nTea\nWhen: 2026-12-01 15:00 (UTC)\nComment: Could we do it later?\nPlease",
            ),
            (
                "REQUEST",
                "SUMMARY:Tea\nRRULE:FREQ=DAILY\nEXDATE;TZID=Asia/Tokyo:20261202T100000,20261203T100000\nEXDATE;VALUE=DATE:20261224,x",
                "[Calendar: an invitation]\nTea\nRepeats: FREQ=DAILY\n\
                 Except: 2026-12-02 10:00 (Asia/Tokyo), 2026-12-03 10:00 (Asia/Tokyo), 2026-12-24",
            ),
            (
                "REQUEST",
                &format!("EXDATE:20261224T100000Z{}", ",x,20261225T100000Z".repeat(1_000)),
                &format!(
                    "[Calendar: an invitation]\nExcept: 2026-12-24 10:00 (UTC){} and 901 more",
                    ", 2026-12-25 10:00 (UTC)".repeat(99)
                ),
            ),
            ("PUBLISH", "SUMMARY:Tea\nSTATUS:CANCELLED", "[Calendar: an event is cancelled]\nTea"),
            (
                "REQUEST",
                "SUMMARY:Tea\\, and\\n  cake\nLOCATION:Ro\n om 5\nORGANIZER;CN=\"Lo, Ada\":MAILTO:ada@a.test\nRRULE:FREQ=WEEKLY\n\
                 DESCRIPTION:Bring \\;\nBEGIN:VALARM\nDESCRIPTION:ring\nEND:VALARM",
                "[Calendar: an invitation]\nTea, and\n  cake\nRepeats: FREQ=WEEKLY\nWhere: Room 5\n\
                 Organizer: Lo, Ada <ada@a.test>\n\nBring ;",
            ),
            (
                "REQUEST",
                "SUMMARY:One\nEND:VEVENT\nBEGIN:VEVENT\nSUMMARY:Two",
                "[Calendar: an invitation]\nOne\n(1 more in the file)",
            ),
        ] {
            assert_eq!(event(method, lines), expected, "{lines}");
        }
        let task = "BEGIN:VCALENDAR\nMETHOD:PUBLISH\nBEGIN:VTODO\nSUMMARY:Pay the bill\nDUE;VALUE=DATE:20261130\nEND:VTODO\n";
        assert_eq!(describe_calendar(task, "").unwrap(), "[Calendar: a task]\nPay the bill\nDue: 2026-11-30");
        let cancelled = task.replace("PUBLISH", "CANCEL");
        assert!(describe_calendar(&cancelled, "").unwrap().starts_with("[Calendar: a task is cancelled]"));
        for nothing in ["", "hello", "BEGIN:VCALENDAR\nBEGIN:VFREEBUSY\nSUMMARY:x\nEND:VFREEBUSY"] {
            assert_eq!(describe_calendar(nothing, ""), None, "{nothing:?}");
        }
    }
}
