//! Synchronization of the chosen calendars, and reminders.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    convert::Infallible,
};

use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Account, Calendars, NO_CALENDAR, Object, Seen};
use crate::{
    backoff::Backoff,
    bounds,
    contract::{Choice, Cursor, Event, Failure, Inbound, Link, OneLine, Origin, Proof, Sink, Thread},
    icalendar::{self, Calendar, Occurrence},
    quoting::escape_notes,
};

/// The position of a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Position {
    calendars: BTreeMap<String, Seen>,
    /// The events that came in, with their versions: the latest ones. Only their removal comes in.
    events: BTreeMap<String, Known>,
    /// Counts what came in.
    count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    version: String,
    title: String,
    /// The author's id.
    origin: String,
    /// [`Position::count`] at that time.
    nth: u64,
}

impl Position {
    fn cursor(&self) -> Option<Cursor> {
        serde_json::to_string(self).ok().map(Cursor)
    }

    fn note(&mut self, target: String, version: String, message: &Inbound) {
        self.count += 1;
        let title = message.thread.title.as_deref().unwrap_or_default().to_owned();
        let known = Known { version, title, origin: message.origin.id.clone(), nth: self.count };
        self.events.insert(target, known);
        if self.events.len() > bounds::LIST
            && let Some(oldest) = self.events.iter().min_by_key(|(_, known)| known.nth)
        {
            let oldest = oldest.0.clone();
            self.events.remove(&oldest);
        }
    }
}

struct Listener<'a> {
    calendars: &'a Calendars,
    account: &'a Account,
    sink: &'a dyn Sink,
    position: Position,
    /// The zones of calendars.
    zones: HashMap<String, TimeZone>,
    /// The account's addresses, once they are known.
    addresses: Option<Vec<String>>,
    /// When reminders were last searched for in each calendar.
    searched: HashMap<String, Timestamp>,
    /// The reminders that came in, with the starts of their events.
    reminded: BTreeSet<(Timestamp, String)>,
    /// The sink takes no more.
    is_stopped: bool,
}

/// Listens until dropped, or until the account ends.
pub async fn listen(
    calendars: &Calendars,
    cursor: Option<Cursor>,
    sink: &dyn Sink,
) -> Result<Infallible, Failure> {
    let position = cursor.and_then(|cursor| muster_json::from_str(&cursor.0).ok()).unwrap_or_default();
    let account = calendars.account()?;
    let mut listener = Listener {
        calendars,
        account,
        sink,
        position,
        zones: HashMap::new(),
        addresses: None,
        searched: HashMap::new(),
        reminded: BTreeSet::new(),
        is_stopped: false,
    };
    let mut backoff = Backoff::new();
    loop {
        match listener.poll().await {
            Ok(()) => {
                backoff.reset();
                let is_idle = calendars.config.calendars.is_empty();
                sink.link(if is_idle { Link::Down(NO_CALENDAR.into()) } else { Link::Up });
                tokio::time::sleep(calendars.config.poll).await;
            }
            Err(failure @ (Failure::Credentials(_) | Failure::NotPublic(_))) => return Err(failure),
            Err(failure) if listener.is_stopped => return Err(failure),
            Err(failure) => {
                sink.link(Link::Down(failure.to_string().into()));
                let wait = if let Failure::RateLimited { wait, .. } = failure { Some(wait) } else { None };
                backoff.wait(wait).await;
            }
        }
    }
}

impl Listener<'_> {
    /// Reads all calendars. One that can't be read does not hold up the others.
    async fn poll(&mut self) -> Result<(), Failure> {
        if self.addresses.is_none() {
            self.addresses = Some(self.account.addresses().await?);
        }
        let (calendars, mut failed) = (self.calendars, Ok(()));
        for calendar in &calendars.config.calendars {
            let read = async {
                self.sync(calendar).await?;
                self.remind(calendar).await
            };
            let read = read.await;
            // What concerns the whole account.
            let ends = matches!(
                read,
                Err(Failure::Credentials(_) | Failure::NotPublic(_) | Failure::RateLimited { .. })
            );
            if ends || self.is_stopped {
                return read;
            }
            failed = failed.and(read);
        }
        failed
    }

    async fn sync(&mut self, calendar: &Choice) -> Result<(), Failure> {
        let before = self.position.clone();
        match self.position.calendars.get(&calendar.id).cloned() {
            // What was there before the channel is not new.
            None => {
                let now = self.account.begin(&calendar.id).await?;
                self.position.calendars.insert(calendar.id.clone(), now);
            }
            Some(seen) => self.take_changes(calendar, &seen).await?,
        }
        let tokens =
            |position: &Position| position.calendars.get(&calendar.id).map(|seen| seen.token.clone());
        // The time alone only narrows a later search.
        if tokens(&before) != tokens(&self.position) || before.count != self.position.count {
            self.admit(Vec::new(), true).await?;
        }
        Ok(())
    }

    async fn take_changes(&mut self, calendar: &Choice, seen: &Seen) -> Result<(), Failure> {
        let mut changes = self.account.changes(&calendar.id, seen).await?;
        let target = |event: &str| format!("{} {event}", calendar.id);
        changes.changed.retain(|one| {
            self.position.events.get(&target(&one.event)).is_none_or(|known| known.version != one.version)
        });
        for some in changes.changed.chunks(bounds::LIST / 2) {
            let objects = self.account.fetch(&calendar.id, some).await?;
            let mut messages = Vec::new();
            for object in &objects {
                let read = Calendar::read(&object.text, "");
                let modified = read.events.iter().filter_map(|event| event.modified).max();
                if modified.is_some_and(|modified| changes.since.is_some_and(|since| modified < since)) {
                    continue;
                }
                let known = self.position.events.get(&target(&object.event));
                let Some(message) = change(calendar, object, &read, known) else { continue };
                self.position.note(target(&object.event), object.version.clone(), &message);
                if !read.is_ours(&calendar.id) {
                    messages.push(message);
                }
            }
            self.admit(messages, false).await?;
        }
        if changes.is_whole {
            let present: BTreeSet<_> = changes.present.iter().map(|event| target(event)).collect();
            let own = self.position.events.keys().filter_map(|known| {
                let event = known.strip_prefix(&*calendar.id)?.strip_prefix(' ')?;
                (!present.contains(known)).then(|| event.to_owned())
            });
            changes.removed.extend(own);
        }
        let removed = changes.removed.iter().filter_map(|event| {
            let known = self.position.events.remove(&target(event))?;
            self.position.count += 1;
            Some(removal(calendar, event, &known))
        });
        let removed = removed.collect();
        self.admit(removed, false).await?;
        self.position.calendars.insert(calendar.id.clone(), changes.next);
        Ok(())
    }

    /// Takes the reminders that are due. Those of before a restart come again, and are known by their keys.
    async fn remind(&mut self, calendar: &Choice) -> Result<(), Failure> {
        let Some(lead) = self.calendars.config.reminder_lead else { return Ok(()) };
        let now = (self.calendars.clock)();
        let Ok(until) = now.checked_add(lead) else { return Ok(()) };
        let zone = match self.zones.get(&calendar.id) {
            Some(known) => known.clone(),
            None => {
                let zone = self.account.time_zone(&calendar.id).await?;
                self.zones.insert(calendar.id.clone(), zone.clone());
                zone
            }
        };
        // A start may fall between two searches, if it is sooner than the next one.
        let from = self.searched.get(&calendar.id).map_or(now, |searched| now.min(*searched));
        self.reminded.retain(|(start, _)| *start >= from);
        for some in self.account.around(&calendar.id, from, until).await?.chunks(bounds::LIST / 2) {
            for object in self.account.fetch(&calendar.id, some).await? {
                self.remind_of(calendar, &object, &zone, (from, until)).await?;
            }
        }
        self.searched.insert(calendar.id.clone(), now);
        Ok(())
    }

    async fn remind_of(
        &mut self,
        calendar: &Choice,
        object: &Object,
        zone: &TimeZone,
        (from, until): (Timestamp, Timestamp),
    ) -> Result<(), Failure> {
        let read = Calendar::read(&object.text, "");
        let mut due = Vec::new();
        for occurrence in read.occurrences(zone, from, until) {
            // An attacker's long event could recur many times: the next search finds the others.
            if due.len() == bounds::LIST {
                break;
            }
            let declines = occurrence.event.attendees.iter().any(|one| {
                let mut own = self.addresses.iter().flatten();
                one.declines() && own.any(|own| own.eq_ignore_ascii_case(&one.address))
            });
            let Some(message) = reminder(calendar, object, &read, &occurrence, zone) else { continue };
            let key = (occurrence.start, message.key.clone().unwrap_or_default());
            if !declines && self.reminded.insert(key) {
                due.push(message);
            }
        }
        self.admit(due, false).await
    }

    /// Stores messages. The position only moves on once all messages before it are stored.
    async fn admit(&mut self, messages: Vec<Inbound>, moves_on: bool) -> Result<(), Failure> {
        if messages.is_empty() && !moves_on {
            return Ok(());
        }
        let at = (self.calendars.clock)();
        let event = |message| Event::Message(Box::new(Inbound { at, ..message }));
        let events = messages.into_iter().map(event).collect();
        let cursor = if moves_on { self.position.cursor() } else { None };
        let admitted = self.sink.admit(events, cursor).await;
        self.is_stopped = admitted.is_err();
        admitted.map_err(|stopped| Failure::NotSent(stopped.to_string().into()))
    }
}

/// Decodes the message about an event that is new.
#[cfg(test)]
pub fn decode(text: &str) -> Option<Inbound> {
    let calendar = Choice { id: "rota".to_owned(), name: "Rota".to_owned() };
    let object = Object { event: "7".to_owned(), version: "1".to_owned(), text: text.to_owned() };
    change(&calendar, &object, &Calendar::read(text, ""), None)
}

/// The message about a new or changed event, of which this is known. `None`: it is something else.
fn change(calendar: &Choice, object: &Object, read: &Calendar, known: Option<&Known>) -> Option<Inbound> {
    let words = escape_notes(&read.describe());
    let (event, version) = (&object.event, &object.version);
    let mut message = message(calendar, event, read, format!("{} {event} {version}", calendar.id), words)?;
    // Of a cancelled recurrence, Google tells only the time.
    let is_bare = |first: &icalendar::Event| first.is_cancelled() && first.organizer_address.is_empty();
    if let Some(known) = known.filter(|_| read.events.first().is_some_and(is_bare)) {
        message.origin.name = message.origin.name.filter(|_| known.origin == calendar.id);
        message.origin.id.clone_from(&known.origin);
        message.authors = vec![known.origin.clone()];
        message.thread.title = message.thread.title.or_else(|| OneLine::title(&known.title));
    }
    Some(message)
}

fn reminder(
    calendar: &Choice,
    object: &Object,
    read: &Calendar,
    occurrence: &Occurrence<'_>,
    zone: &TimeZone,
) -> Option<Inbound> {
    let Occurrence { event, recurrence, start } = occurrence;
    let key = format!("reminder {} {} {recurrence} {start}", calendar.id, event.uid);
    let title = if event.summary.is_empty() { "An event" } else { &event.summary };
    let at = start.to_zoned(zone.clone());
    let head = format!("[Calendar: a reminder]\n{title} begins at {}.", at.strftime("%Y-%m-%d %H:%M (%Q)"));
    let words = format!("{}\n\n{}", escape_notes(&head), escape_notes(&read.describe()));
    message(calendar, &object.event, read, key, words)
}

fn removal(calendar: &Choice, event: &str, known: &Known) -> Inbound {
    let title = OneLine::title(&known.title);
    let words = escape_notes(&format!("[Calendar: an event was removed]\n{}", known.title));
    let key = format!("{} {event} {} removed", calendar.id, known.version);
    inbound(calendar, event, (known.origin.clone(), None), title, key, words)
}

fn message(calendar: &Choice, event: &str, read: &Calendar, key: String, words: String) -> Option<Inbound> {
    let first = read.events.first()?;
    let title = OneLine::title(&first.summary);
    // Without an organizer, a person with access to the calendar made it.
    let organizer = Some(&*first.organizer_address).filter(|address| !address.is_empty());
    // The position holds those of many events.
    let shortened = |address: &str| address[..address.floor_char_boundary(bounds::NAME)].to_owned();
    let origin = organizer.map_or_else(|| calendar.id.clone(), shortened);
    let name = if organizer.is_none() { OneLine::name(&calendar.name) } else { None };
    let mut message = inbound(calendar, event, (origin, name), title, key, words);
    let labels = read.events.iter().flat_map(|event| event.categories.iter().cloned());
    message.labels = labels.take(bounds::LIST).collect();
    Some(message)
}

fn inbound(
    calendar: &Choice,
    event: &str,
    (origin, name): (String, Option<OneLine>),
    title: Option<OneLine>,
    key: String,
    text: String,
) -> Inbound {
    // Mostly short enough to be stored: the calendar's address is left out of the event's.
    let own = event.strip_prefix(&*calendar.id).filter(|name| !name.starts_with('/'));
    let target = format!("{} {}", calendar.id, own.unwrap_or(event));
    Inbound {
        key: Some(shorten(key)),
        vendor_id: None,
        album: None,
        is_edit: false,
        answers: None,
        authors: vec![origin.clone()],
        origin: Origin { id: origin, place: Some(calendar.id.clone()), name },
        is_automatic: false,
        // Anyone can send an invitation in another's name.
        proof: Proof::None,
        thread: Thread {
            key: shorten(target.clone()),
            refs: Vec::new(),
            readers: Vec::new(),
            target,
            title,
            is_private: false,
        },
        is_addressed: true,
        labels: Vec::new(),
        context: String::new(),
        text,
        files: Vec::new(),
        at: Timestamp::UNIX_EPOCH,
        source: None,
    }
}

/// A key that is stored whole: the ends of longer ones are cut off, and then an event's versions would look the same.
fn shorten(key: String) -> String {
    if key.len() <= bounds::NAME { key } else { hex::encode(&Sha256::digest(key)[..]) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::calendar::to_icalendar;

    fn known(title: &str) -> Known {
        let (version, title, origin) = ("1".to_owned(), title.to_owned(), "ada@a.test".to_owned());
        Known { version, title, origin, nth: 1 }
    }

    fn rota() -> Choice {
        Choice { id: "rota".to_owned(), name: "Rota".to_owned() }
    }

    #[test]
    fn a_cancelled_recurrence_is_of_its_events_author() {
        let event = json!({ "id": "7_1", "recurringEventId": "7", "status": "cancelled",
            "originalStartTime": { "dateTime": "2026-12-01T10:00:00Z" } });
        let text = to_icalendar(&event);
        let read = Calendar::read(&text, "");
        let object = Object { event: "7".to_owned(), version: "2".to_owned(), text };
        let message = change(&rota(), &object, &read, Some(&known("Tea"))).unwrap();
        assert_eq!(
            (message.origin.id.as_str(), &*message.authors),
            ("ada@a.test", &["ada@a.test".to_owned()][..])
        );
        assert_eq!((message.origin.name, message.thread.title.as_deref()), (None, Some("Tea")));
    }

    #[test]
    fn versions_at_long_addresses_differ() {
        let calendar = Choice { id: format!("/{}/", "a".repeat(200)), name: "Rota".to_owned() };
        let name = format!("{}.ics", "b".repeat(90));
        let text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\n";
        let changed = |version: &str| {
            let event = format!("{}{name}", calendar.id);
            let object = Object { event, version: version.to_owned(), text: text.to_owned() };
            change(&calendar, &object, &Calendar::read(text, ""), None).unwrap()
        };
        let (one, other) = (changed("1"), changed("2"));
        assert_eq!(one.thread, other.thread);
        assert_eq!(one.thread.target, format!("{} {name}", calendar.id));
        assert!(one.key != other.key && one.key.unwrap().len() <= bounds::NAME);
    }

    #[test]
    fn a_removed_events_title_is_no_note() {
        let removed = removal(&rota(), "7", &known("[Forwarded from Bo] pay"));
        assert_eq!(removed.text, "[Calendar: an event was removed]\n\\[Forwarded from Bo] pay");
    }

    /// A sample is an object of a CalDAV server, or an event of Google.
    #[test]
    fn samples() {
        muster_samples::check("calendar", |bytes| {
            let decoded = match muster_json::from_slice::<Value>(bytes) {
                Ok(event) => decode(&to_icalendar(&event)),
                Err(_) => decode(std::str::from_utf8(bytes).unwrap()),
            };
            crate::samples::summarize(&Ok(decoded.map(|message| Event::Message(Box::new(message)))))
        });
    }
}
