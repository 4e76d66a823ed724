//! Google Calendar (v3). Events become iCalendar, so that both kinds of calendars are read by the same code.
//! <https://developers.google.com/workspace/calendar/api/v3/reference>

use std::{fmt::Write as _, iter};

use http::{Method, header::IF_MATCH};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use super::{Changed, Changes, Object, Seen};
use crate::{
    bounds,
    contract::{Cause, Choice, Failure, OneLine, Scope},
    icalendar::{At, Calendar, Change, NewEvent, Partstat, escape},
    network::{HttpResponse, Network, VendorClient},
    oauth::TokenSource,
};

/// A Google account.
pub struct Google {
    vendor: VendorClient,
    base: Url,
    clock: fn() -> Timestamp,
    tokens: TokenSource,
}

/// A call's answer, other than a failure of the account or its limits.
struct Answer {
    status: u16,
    said: Value,
    time: Timestamp,
}

impl Answer {
    fn done(self) -> Result<Value, Failure> {
        let words = self.said["error"]["message"].as_str().unwrap_or("it gives no reason");
        let cause = Cause::from(format!("Google: {words} (status {})", self.status));
        match self.status {
            200..300 => Ok(self.said),
            404 | 410 => Err(Failure::TargetGone(cause)),
            412 => Err(Failure::NotSent("The event was changed at the same time.".into())),
            400..500 => Err(Failure::Refused(cause)),
            _ => Err(Failure::Unknown(cause)),
        }
    }
}

impl Google {
    pub fn new(network: &Network, tokens: TokenSource) -> Self {
        let (vendor, base) = (network.vendor.clone(), network.vendors.google_api.clone());
        Self { vendor, base, clock: network.clock, tokens }
    }

    pub async fn calendars(&self) -> Result<Vec<Choice>, Failure> {
        let query = [("maxResults", "100"), ("minAccessRole", "reader")];
        let listed = self.get(&["users", "me", "calendarList"], &query).await?.done()?;
        let choice = |calendar: &Value| {
            let id = calendar["id"].as_str()?.to_owned();
            let name = calendar["summaryOverride"].as_str().or_else(|| calendar["summary"].as_str());
            let name = name.and_then(OneLine::title);
            Some(Choice { name: name.map_or_else(|| id.clone(), |name| name.to_string()), id })
        };
        Ok(items(&listed).filter_map(choice).collect())
    }

    pub async fn time_zone(&self, calendar: &str) -> Result<TimeZone, Failure> {
        let found = self.get(&["calendars", calendar, "events"], &[("maxResults", "1")]).await?.done()?;
        let name = found["timeZone"].as_str().unwrap_or_default();
        Ok(TimeZone::get(name).unwrap_or(TimeZone::UTC))
    }

    /// The position at which a calendar is now, which is on the last page.
    pub async fn begin(&self, calendar: &str) -> Result<Seen, Failure> {
        let query = [("maxResults", "2500"), ("fields", "nextPageToken,nextSyncToken")];
        let changes = self.pages(calendar, &query, |_| false).await?;
        changes.map(|changes| changes.next).ok_or_else(expired)
    }

    pub async fn changes(&self, calendar: &str, seen: &Seen) -> Result<Changes, Failure> {
        if let Some(token) = &seen.token
            && let Some(changes) = self.pages(calendar, &[("syncToken", token.as_str())], |_| true).await?
        {
            return Ok(changes);
        }
        let is_new = |event: &Value| time(&event["updated"]).is_none_or(|updated| updated >= seen.until);
        let whole = self.pages(calendar, &[], is_new).await?.ok_or_else(expired)?;
        Ok(Changes { is_whole: true, ..whole })
    }

    /// Reads all pages. `None`: the position is no longer known, or is another account's.
    async fn pages(
        &self,
        calendar: &str,
        query: &[(&str, &str)],
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Result<Option<Changes>, Failure> {
        let mut changes = Changes::default();
        let mut page: Option<String> = None;
        loop {
            let mut query = query.to_vec();
            query.extend(page.as_deref().map(|page| ("pageToken", page)));
            let answer = self.get(&["calendars", calendar, "events"], &query).await?;
            if matches!(answer.status, 400 | 410) {
                return Ok(None);
            }
            let time = answer.time;
            let said = answer.done()?;
            for event in items(&said) {
                changes.add(event, is_wanted(event));
            }
            if let Some(token) = said["nextSyncToken"].as_str() {
                changes.next = Seen { token: Some(token.to_owned()), until: time };
            }
            page = said["nextPageToken"].as_str().map(str::to_owned);
            if page.is_none() {
                // Without a position, everything would count as new.
                return if changes.next.token.is_some() { Ok(Some(changes)) } else { Err(expired()) };
            }
        }
    }

    /// The events that begin around this time, each of a series apart.
    pub async fn around(
        &self,
        calendar: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<Changed>, Failure> {
        // Google counts whole seconds, and refuses a range without any.
        let to = to.checked_add(1.second()).unwrap_or(to);
        let (from, to) = (from.to_string(), to.to_string());
        let query =
            [("timeMin", &*from), ("timeMax", &*to), ("singleEvents", "true"), ("maxResults", "1000")];
        let found = self.get(&["calendars", calendar, "events"], &query).await?.done()?;
        let is_declined =
            |event: &&Value| event["attendees"].as_array().is_some_and(|all| all.iter().any(declines));
        let objects = items(&found).filter(|event| !is_declined(event)).filter_map(read);
        Ok(objects.map(Object::into_changed).collect())
    }

    /// Returns the event's id.
    pub async fn create(&self, calendar: &str, id: &str, new: &NewEvent) -> Result<String, Failure> {
        let own = hex::encode(&Sha256::digest(id)[..16]);
        let invited = |address: &String| json!({"email": address, "responseStatus": "needsAction"});
        let mut event = json!({
            "id": own, "summary": new.title, "start": moment(new.start), "end": moment(new.end),
            "location": new.place, "description": new.description,
            "attendees": new.invited.iter().map(invited).collect::<Vec<_>>(),
        });
        mark(&mut event, calendar, id);
        let query = [("sendUpdates", "none")];
        let answer =
            self.call(Method::POST, &["calendars", calendar, "events"], &query, Some((&event, None))).await?;
        // It was created before.
        if answer.status != 409 {
            answer.done()?;
        }
        Ok(own)
    }

    pub async fn change(
        &self,
        calendar: &str,
        event: &str,
        id: &str,
        change: &Change,
    ) -> Result<(), Failure> {
        let path = ["calendars", calendar, "events", event];
        let mut found = self.get(&path, &[]).await?.done()?;
        if found["extendedProperties"]["private"]["musterAction"] == id {
            return Ok(());
        }
        edit(&mut found, change).map_err(Failure::Refused)?;
        mark(&mut found, calendar, id);
        let fields: &[&str] = match change {
            Change::Move { .. } => &["start", "end"],
            Change::Answer { .. } => &["attendees"],
        };
        let changed = fields.iter().chain(&["extendedProperties"]);
        let patch: Value = changed.map(|field| ((*field).to_owned(), found[*field].clone())).collect();
        let version = found["etag"].as_str();
        self.call(Method::PATCH, &path, &[("sendUpdates", "none")], Some((&patch, version)))
            .await?
            .done()
            .map(drop)
    }

    async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, Failure> {
        self.call(Method::GET, path, query, None).await
    }

    async fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<(&Value, Option<&str>)>,
    ) -> Result<Answer, Failure> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["calendar", "v3"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let token = (self.tokens)().await?;
        let mut request = self.vendor.http.request(method, url).bearer_auth(token.expose_secret());
        if let Some((body, version)) = body {
            request = request.json(body);
            request = if let Some(version) = version { request.header(IF_MATCH, version) } else { request };
        }
        let answer = self.vendor.call("Google", request, bounds::ANSWER).await?;
        self.read_answer(&answer)
    }

    fn read_answer(&self, answer: &HttpResponse) -> Result<Answer, Failure> {
        let said: Value = muster_json::from_slice(&answer.body).unwrap_or_default();
        let now = (self.clock)();
        let reason = said["error"]["errors"][0]["reason"].as_str().unwrap_or_default();
        match (answer.status.as_u16(), reason) {
            (401, _) => Err(Failure::Credentials("Google no longer accepts the authorization.".into())),
            (429, _) | (403, "rateLimitExceeded" | "userRateLimitExceeded" | "quotaExceeded") => {
                let wait = answer.retry_after(now).unwrap_or(bounds::RETRY);
                let cause = "Google takes no more calls at the moment.".into();
                Err(Failure::RateLimited { wait, scope: Scope::Channel, cause })
            }
            (status, _) => Ok(Answer { status, said, time: answer.date().unwrap_or(now) }),
        }
    }
}

impl Changes {
    /// Adds an event of a page.
    fn add(&mut self, event: &Value, is_wanted: bool) {
        let Some(object) = read(event) else { return };
        let is_removed = event["status"] == "cancelled" && event["recurringEventId"].is_null();
        if is_removed {
            self.removed.push(object.event);
            return;
        }
        self.present.push(object.event.clone());
        if is_wanted {
            self.changed.push(object.into_changed());
        }
    }
}

impl Object {
    fn into_changed(self) -> Changed {
        Changed { event: self.event, version: self.version, text: Some(self.text) }
    }
}

fn expired() -> Failure {
    Failure::NotSent("Google does not tell the state of the calendar.".into())
}

fn items(page: &Value) -> impl Iterator<Item = &Value> {
    page["items"].as_array().into_iter().flatten()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn declines(attendee: &Value) -> bool {
    attendee["self"] == true && attendee["responseStatus"] == "declined"
}

fn moment(at: At) -> Value {
    match at {
        At::Day(day) => json!({"date": day.to_string(), "dateTime": null, "timeZone": null}),
        At::Time(at) => json!({"dateTime": at.to_string(), "date": null}),
    }
}

/// Applies a change.
fn edit(event: &mut Value, change: &Change) -> Result<(), Cause> {
    match change {
        Change::Move { .. } if !event["recurrence"].is_null() || !event["recurringEventId"].is_null() => {
            Err("This event recurs. Only an event that takes place once can be moved.".into())
        }
        Change::Move { start, end } => {
            let end = match end {
                Some(end) => *end,
                None => Calendar::read(&to_icalendar(event), "")
                    .end_from(*start)
                    .ok_or("The event has no time.")?,
            };
            if !start.is_before(end) {
                return Err("The event must end after its start, and both are times or both are days.".into());
            }
            (event["start"], event["end"]) = (moment(*start), moment(end));
            Ok(())
        }
        Change::Answer { partstat, addresses } => {
            let is_own = |attendee: &&mut Value| {
                let email = attendee["email"].as_str().unwrap_or_default();
                attendee["self"] == true || addresses.iter().any(|own| own.eq_ignore_ascii_case(email))
            };
            let mut all = event["attendees"].as_array_mut().into_iter().flatten();
            let own = all.find(is_own).ok_or("This account is not among the invited people.")?;
            own["responseStatus"] = match partstat {
                Partstat::Accepted => "accepted",
                Partstat::Declined => "declined",
                Partstat::Tentative => "tentative",
            }
            .into();
            Ok(())
        }
    }
}

/// Leaves the [`Marker`](crate::icalendar::Marker).
fn mark(event: &mut Value, calendar: &str, id: &str) {
    let state = Calendar::read(&to_icalendar(event), "").fingerprint(calendar);
    event["extendedProperties"]["private"]["musterAction"] = id.into();
    event["extendedProperties"]["private"]["musterState"] = state.into();
}

/// `None`: it is something else than an event.
fn read(event: &Value) -> Option<Object> {
    let id = event["id"].as_str()?;
    let series = event["recurringEventId"].as_str().unwrap_or(id);
    let version = event["etag"].as_str().unwrap_or_default();
    let version = if series == id { version.to_owned() } else { format!("{id} {version}") };
    Some(Object { event: series.to_owned(), version, text: to_icalendar(event) })
}

/// The same event as a calendar object.
pub fn to_icalendar(event: &Value) -> String {
    let mut text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\n".to_owned();
    let private = &event["extendedProperties"]["private"];
    for (name, value) in [
        ("UID", &event["iCalUID"]),
        ("SUMMARY", &event["summary"]),
        ("LOCATION", &event["location"]),
        ("DESCRIPTION", &event["description"]),
        ("STATUS", &event["status"]),
        ("X-MUSTER-ACTION", &private["musterAction"]),
        ("X-MUSTER-STATE", &private["musterState"]),
    ] {
        if let Some(value) = value.as_str() {
            let _ = writeln!(text, "{name}:{}", escape(value));
        }
    }
    let moments = [("DTSTART", "start"), ("DTEND", "end"), ("RECURRENCE-ID", "originalStartTime")];
    for (name, field) in moments {
        if let Some(line) = moment_line(name, &event[field]) {
            let _ = writeln!(text, "{line}");
        }
    }
    for line in event["recurrence"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(text, "{}", line.replace(['\r', '\n'], " "));
    }
    let invited = event["attendees"].as_array().into_iter().flatten().map(|one| ("ATTENDEE", one));
    let people = iter::once(("ORGANIZER", &event["organizer"])).chain(invited);
    for line in people.filter_map(|(name, person)| person_line(name, person)) {
        let _ = writeln!(text, "{line}");
    }
    text + "END:VEVENT\nEND:VCALENDAR\n"
}

fn moment_line(name: &str, moment: &Value) -> Option<String> {
    if let Some(day) = moment["date"].as_str() {
        return Some(format!("{name};VALUE=DATE:{}", day.replace('-', "").replace(['\r', '\n'], "")));
    }
    let at = time(&moment["dateTime"])?;
    let zone = moment["timeZone"].as_str().and_then(|name| Some((name, TimeZone::get(name).ok()?)));
    Some(match zone {
        Some((zone, known)) if zone != "UTC" => {
            format!("{name};TZID={zone}:{}", known.to_datetime(at).strftime("%Y%m%dT%H%M%S"))
        }
        _ => format!("{name}:{}", at.strftime("%Y%m%dT%H%M%SZ")),
    })
}

fn person_line(name: &str, person: &Value) -> Option<String> {
    let plain = |text: &str| text.replace(['\r', '\n', '"'], " ");
    let email = plain(person["email"].as_str()?);
    let common =
        person["displayName"].as_str().map(|name| format!(";CN=\"{}\"", plain(name))).unwrap_or_default();
    let status = person["responseStatus"].as_str().map(|status| match status {
        "accepted" => ";PARTSTAT=ACCEPTED",
        "declined" => ";PARTSTAT=DECLINED",
        "tentative" => ";PARTSTAT=TENTATIVE",
        _ => ";PARTSTAT=NEEDS-ACTION",
    });
    Some(format!("{name}{common}{}:mailto:{email}", status.unwrap_or_default()))
}
