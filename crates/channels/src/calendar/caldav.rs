//! Calendars by CalDAV (RFC 4791), synchronized by RFC 6578 where the server has it. Calendars and events are named by
//! their addresses on the server.

use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use jiff::{Timestamp, ToSpan, tz::TimeZone};

use super::{Changed, Changes, Object, Seen};
use crate::{
    bounds,
    contract::{Choice, Failure, OneLine},
    dav::{DavClient, Multistatus, Resource},
    icalendar::{self, Calendar, Change, NewEvent, apply, new_calendar},
    network::parse_date,
};

const NAMESPACES: &str = "xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"";
const CONTENT: &str = "<d:prop><d:getetag/><c:calendar-data/></d:prop>";
const LISTED: &str = "<d:prop><d:getetag/><d:getcontentlength/></d:prop>";
const MEDIA_TYPE: &str = "text/calendar; charset=utf-8";

/// An account on a CalDAV server.
pub struct CalDav(DavClient);

impl CalDav {
    pub fn new(client: DavClient) -> Self {
        Self(client)
    }

    pub fn user(&self) -> &str {
        &self.0.user
    }

    /// The calendars of the account, or of the address.
    pub async fn calendars(&self) -> Result<Vec<Choice>, Failure> {
        let home = "c:calendar-home-set/d:href";
        let start = "<d:current-user-principal/><c:calendar-home-set/>";
        let start = self.0.propfind("", 0, start).await?;
        let found = match (first(&start, home), first(&start, "d:current-user-principal/d:href")) {
            (None, Some(principal)) => {
                first(&self.0.propfind(principal, 0, "<c:calendar-home-set/>").await?, home)
                    .map(str::to_owned)
            }
            (home, _) => home.map(str::to_owned),
        };
        let listed =
            self.0.propfind(&found.unwrap_or_default(), 1, "<d:resourcetype/><d:displayname/>").await?;
        let calendars = listed.resources.iter().filter(|resource| resource.has("d:resourcetype/c:calendar"));
        let choices = calendars.map(|resource| -> Result<Choice, Failure> {
            let id = self.path(resource)?;
            let name = resource.property("d:displayname").and_then(OneLine::title);
            Ok(Choice { name: name.map_or_else(|| id.clone(), |name| name.to_string()), id })
        });
        choices.take(bounds::LIST).collect()
    }

    /// The addresses by which the account is invited.
    pub async fn addresses(&self) -> Result<Vec<String>, Failure> {
        let principal = "d:current-user-principal/d:href";
        let start = self.0.propfind("", 0, "<d:current-user-principal/>").await?;
        let found = match first(&start, principal) {
            Some(principal) => self.0.propfind(principal, 0, "<c:calendar-user-address-set/>").await?,
            None => Multistatus::default(),
        };
        let hrefs = found.resources.iter().flat_map(|of| of.all("c:calendar-user-address-set/d:href"));
        let written = hrefs.filter_map(|href| href.strip_prefix("mailto:"));
        let own = Some(self.user()).filter(|user| user.contains('@'));
        Ok(own.into_iter().chain(written).map(str::to_lowercase).collect())
    }

    /// The time zone of a calendar's days.
    pub async fn time_zone(&self, calendar: &str) -> Result<TimeZone, Failure> {
        let found = self.0.propfind(calendar, 0, "<c:calendar-timezone/>").await?;
        let text = first(&found, "c:calendar-timezone").unwrap_or_default();
        let name = text.lines().find_map(|line| line.strip_prefix("TZID:"));
        Ok(name.and_then(|name| TimeZone::get(name.trim()).ok()).unwrap_or(TimeZone::UTC))
    }

    /// The position at which a calendar is now.
    pub async fn begin(&self, calendar: &str) -> Result<Seen, Failure> {
        let found = self.0.propfind(calendar, 0, "<d:sync-token/>").await?;
        let token = first(&found, "d:sync-token").map(str::to_owned);
        Ok(Seen { token, until: found.time })
    }

    pub async fn changes(&self, calendar: &str, seen: &Seen) -> Result<Changes, Failure> {
        if let Some(token) = &seen.token {
            let token = quick_xml::escape::escape(token.as_str());
            let body = format!(
                "<d:sync-collection {NAMESPACES}><d:sync-token>{token}</d:sync-token><d:sync-level>1</d:sync-level>\
                 {LISTED}</d:sync-collection>"
            );
            // A server that no longer knows the position refuses it.
            if let Some(changed) = self.0.report(calendar, 0, body).await? {
                return self.read_changes(calendar, &changed);
            }
        }
        self.list(calendar, seen).await
    }

    fn read_changes(&self, calendar: &str, answer: &Multistatus) -> Result<Changes, Failure> {
        let mut changes = Changes::until(Seen { token: answer.sync_token.clone(), until: answer.time });
        for resource in &answer.resources {
            let event = self.path(resource)?;
            match resource.status {
                Some(404) => changes.removed.push(event),
                // That of the calendar says that there is more.
                _ if is_event(calendar, &event) && is_readable(resource) => {
                    changes.changed.push(changed_event(event, resource));
                }
                _ => {}
            }
        }
        Ok(changes)
    }

    /// The changes since then, by all events.
    async fn list(&self, calendar: &str, seen: &Seen) -> Result<Changes, Failure> {
        let properties = "<d:getetag/><d:getcontentlength/><d:getlastmodified/><d:sync-token/>";
        let listed = self.0.propfind(calendar, 1, properties).await?;
        let own = listed.resources.iter().find_map(|resource| resource.property("d:sync-token"));
        let mut changes = Changes::until(Seen { token: own.map(str::to_owned), until: listed.time });
        changes.is_whole = true;
        let mut is_dated = true;
        for resource in &listed.resources {
            let event = self.path(resource)?;
            if !is_event(calendar, &event) {
                continue;
            }
            changes.present.push(event.clone());
            let modified = resource.property("d:getlastmodified").and_then(parse_date);
            is_dated &= modified.is_some();
            if is_readable(resource) && modified.is_none_or(|modified| modified >= seen.until) {
                changes.changed.push(changed_event(event, resource));
            }
        }
        // Authors' clocks may be wrong.
        changes.since = if is_dated { None } else { seen.until.checked_sub(1.hour()).ok() };
        Ok(changes)
    }

    pub async fn fetch(&self, calendar: &str, changed: &[Changed]) -> Result<Vec<Object>, Failure> {
        let (mut objects, mut waiting) = (Vec::new(), vec![changed]);
        while let Some(some) = waiting.pop() {
            let found = self.fetch_at_once(calendar, some).await;
            // Perhaps the answer is too long.
            let is_unread = matches!(found, Err(Failure::NotSent(_)));
            match some {
                [one] if is_unread => {
                    let asked = self.0.propfind(&one.event, 0, "<d:getcontentlength/>").await?;
                    if asked.resources.iter().all(is_readable) {
                        return found;
                    }
                }
                _ if is_unread => {
                    let (first, others) = some.split_at(some.len() / 2);
                    waiting.extend([others, first]);
                }
                _ => objects.extend(found?),
            }
        }
        Ok(objects)
    }

    async fn fetch_at_once(&self, calendar: &str, changed: &[Changed]) -> Result<Vec<Object>, Failure> {
        let hrefs = changed.iter().map(|one| quick_xml::escape::escape(one.event.as_str()));
        let hrefs: String = hrefs.map(|href| format!("<d:href>{href}</d:href>")).collect();
        let body = format!("<c:calendar-multiget {NAMESPACES}>{CONTENT}{hrefs}</c:calendar-multiget>");
        let mut objects = Vec::new();
        for resource in &self.ask(calendar, body).await?.resources {
            if let Some(text) = resource.property("c:calendar-data") {
                let Changed { event, version, .. } = changed_event(self.path(resource)?, resource);
                let text = icalendar::readable_part(text).to_owned();
                objects.push(Object { event, version, text });
            }
        }
        Ok(objects)
    }

    /// The objects with an event around this time.
    pub async fn around(
        &self,
        calendar: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<Changed>, Failure> {
        // The server may take days, and times without a zone, for UTC's. No zone is farther away.
        let from = from.checked_sub(24.hours()).unwrap_or(from);
        let to = to.checked_add(24.hours()).unwrap_or(to);
        let [from, to] = [from, to].map(|at| at.strftime("%Y%m%dT%H%M%SZ").to_string());
        let body = format!(
            "<c:calendar-query {NAMESPACES}>{LISTED}<c:filter><c:comp-filter name=\"VCALENDAR\">\
             <c:comp-filter name=\"VEVENT\"><c:time-range start=\"{from}\" end=\"{to}\"/></c:comp-filter>\
             </c:comp-filter></c:filter></c:calendar-query>"
        );
        let found = self.ask(calendar, body).await?;
        let readable = found.resources.iter().filter(|resource| is_readable(resource));
        readable.map(|resource| self.path(resource).map(|event| changed_event(event, resource))).collect()
    }

    async fn ask(&self, calendar: &str, body: String) -> Result<Multistatus, Failure> {
        let refused = || Failure::Refused("The server does not speak CalDAV.".into());
        self.0.report(calendar, 1, body).await?.ok_or_else(refused)
    }

    /// Returns the event's address.
    pub async fn create(&self, calendar: &str, id: &str, new: &NewEvent) -> Result<String, Failure> {
        let addresses = if new.invited.is_empty() { Vec::new() } else { self.addresses().await? };
        let organizer = addresses.first().map(String::as_str);
        if organizer.is_none() && !new.invited.is_empty() {
            return Err(Failure::Refused("This account has no address to invite people from.".into()));
        }
        let event = format!("{}/{id}.ics", calendar.trim_end_matches('/'));
        let content = new_calendar(calendar, id, new, organizer, self.0.now());
        let answer = self.0.put(&event, (IF_NONE_MATCH, "*"), MEDIA_TYPE, content).await?;
        // It was created before.
        if answer.status.as_u16() != 412 {
            self.0.done(&answer)?;
        }
        Ok(event)
    }

    pub async fn change(
        &self,
        calendar: &str,
        event: &str,
        id: &str,
        change: &Change,
    ) -> Result<(), Failure> {
        let event = if event.starts_with('/') { event.to_owned() } else { format!("{calendar}{event}") };
        let found = self.0.get(&event).await?;
        let text = String::from_utf8_lossy(&found.body);
        if Calendar::read(&text, "").events.iter().any(|event| event.marker.action == id) {
            return Ok(());
        }
        let content = apply(&text, calendar, id, change, self.0.now()).map_err(Failure::Refused)?;
        let version = found.headers.get(ETAG).and_then(|version| version.to_str().ok()).unwrap_or("*");
        let answer = self.0.put(&event, (IF_MATCH, version), MEDIA_TYPE, content).await?;
        if answer.status.as_u16() == 412 {
            return Err(Failure::NotSent("The event was changed at the same time.".into()));
        }
        self.0.done(&answer).map(drop)
    }

    fn path(&self, resource: &Resource) -> Result<String, Failure> {
        Ok(self.0.resolve(&resource.href)?.path().to_owned())
    }
}

fn first<'a>(found: &'a Multistatus, property: &str) -> Option<&'a str> {
    found.resources.iter().find_map(|resource| resource.property(property))
}

fn is_event(calendar: &str, path: &str) -> bool {
    path.trim_end_matches('/') != calendar.trim_end_matches('/') && !path.ends_with('/')
}

/// Whether the server's answer can hold it: an attacker's invitation could be too long.
fn is_readable(resource: &Resource) -> bool {
    let length = resource.property("d:getcontentlength").and_then(|length| length.parse::<u64>().ok());
    length.is_none_or(|length| length <= 4 << 20)
}

fn changed_event(event: String, resource: &Resource) -> Changed {
    let version = resource.property("d:getetag").unwrap_or_default().to_owned();
    Changed { event, version, text: None }
}
