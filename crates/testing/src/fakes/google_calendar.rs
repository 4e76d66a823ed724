//! A fake Google Calendar: <https://developers.google.com/workspace/calendar/api/v3/reference>. The account is
//! `me@a.test`, its calendar `rota`.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, Method, StatusCode, Uri,
        header::{AUTHORIZATION, DATE, IF_MATCH},
    },
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{asked, serve};

/// The access token of the account.
pub const TOKEN: &str = "ya29.canary";
/// The path of the calendar's events.
pub const EVENTS: &str = "calendar/v3/calendars/rota/events";

#[derive(Default)]
pub struct Fake {
    /// Answers that replace the next regular ones.
    pub answers: VecDeque<(u16, Value)>,
    /// The received requests, with the fields of their queries or bodies.
    pub asked: Vec<(String, Value)>,
    pub events: BTreeMap<String, Value>,
    /// The number of the last change of each event.
    changed: BTreeMap<String, u64>,
    changes: u64,
    /// Earlier positions are forgotten.
    pub forgotten: u64,
    /// Requests that begin so take effect, but get no answer.
    pub hangs: Option<&'static str>,
}

pub type Shared = Arc<Mutex<Fake>>;

pub async fn google_calendar() -> (SocketAddr, Shared) {
    let fake = Shared::default();
    let address = serve(Router::new().fallback(answer).with_state(Arc::clone(&fake))).await;
    (address, fake)
}

/// An error response.
pub fn refusal(status: u16, reason: &str) -> (u16, Value) {
    let error = json!({"domain": "calendar", "reason": reason, "message": reason});
    (status, json!({"error": {"code": status, "message": reason, "errors": [error]}}))
}

/// Ada's event, to which the account is invited.
pub fn invitation(id: &str, title: &str, start: &str, end: &str) -> Value {
    json!({"id": id, "iCalUID": format!("{id}@google.com"), "summary": title, "status": "confirmed",
        "organizer": {"email": "ada@a.test", "displayName": "Ada"}, "creator": {"email": "ada@a.test"},
        "start": {"dateTime": start, "timeZone": "Europe/Berlin"},
        "end": {"dateTime": end, "timeZone": "Europe/Berlin"},
        "attendees": [{"email": "ada@a.test", "organizer": true, "responseStatus": "accepted"},
            {"email": "me@a.test", "self": true, "responseStatus": "needsAction"}]})
}

impl Fake {
    /// Stores a new state of an event.
    pub fn put(&mut self, mut event: Value) -> Value {
        let id = event["id"].as_str().unwrap().to_owned();
        self.changes += 1;
        event["kind"] = json!("calendar#event");
        event["etag"] = json!(format!("\"{}\"", self.changes));
        event["updated"] = json!(format!("2026-11-30T10:00:{:02}.000Z", self.changes.min(59)));
        self.changed.insert(id.clone(), self.changes);
        self.events.insert(id, event.clone());
        event
    }

    /// Ada changes fields of an event.
    pub fn change(&mut self, id: &str, fields: &Value) {
        let mut event = self.events[id].clone();
        merge(&mut event, fields);
        self.put(event);
    }

    /// Forgets the positions so far.
    pub fn forget(&mut self) {
        self.forgotten = self.changes + 1;
        self.changes += 1;
    }

    /// The bodies of requests with this method and path.
    pub fn bodies(&self, which: &str) -> Vec<Value> {
        self.asked.iter().filter(|(asked, _)| asked == which).map(|(_, body)| body.clone()).collect()
    }

    fn judge(&mut self, method: &Method, path: &str, asked: &Value, version: Option<&str>) -> (u16, Value) {
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        let event = path.strip_prefix(EVENTS).map(|rest| rest.trim_start_matches('/'));
        match (method.as_str(), event) {
            ("GET", None) if path == "calendar/v3/users/me/calendarList" => {
                let calendar = json!({"kind": "calendar#calendarListEntry", "id": "rota", "summary": "Rota",
                    "accessRole": "owner", "timeZone": "Europe/Berlin"});
                (200, json!({"kind": "calendar#calendarList", "items": [calendar]}))
            }
            ("GET", Some("")) => self.list(asked),
            ("POST", Some("")) => {
                let id = asked["id"].as_str().unwrap_or_default();
                let is_valid = id.len() >= 5 && id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='v'));
                if !is_valid {
                    return refusal(400, "invalid");
                }
                if self.events.contains_key(id) {
                    return refusal(409, "duplicate");
                }
                let mut event = json!({"status": "confirmed", "iCalUID": format!("{id}@google.com"),
                    "organizer": {"email": "me@a.test", "self": true}, "creator": {"email": "me@a.test", "self": true}});
                merge(&mut event, asked);
                (200, self.put(event))
            }
            ("GET", Some(id)) if self.events.contains_key(id) => (200, self.events[id].clone()),
            ("PATCH", Some(id)) if self.events.contains_key(id) => {
                let mut event = self.events[id].clone();
                if version.is_some_and(|version| event["etag"] != version) {
                    return refusal(412, "conditionNotMet");
                }
                merge(&mut event, asked);
                (200, self.put(event))
            }
            ("DELETE", Some(id)) if self.events.contains_key(id) => {
                self.change(id, &json!({"status": "cancelled"}));
                (204, Value::Null)
            }
            _ => refusal(404, "notFound"),
        }
    }

    /// A page of two events.
    fn list(&self, asked: &Value) -> (u16, Value) {
        let text = |name: &str| asked[name].as_str();
        let since = text("syncToken").map(|token| token.trim_start_matches("s-").parse::<u64>());
        if since.as_ref().is_some_and(Result::is_err) {
            return refusal(400, "invalid");
        }
        let since = since.and_then(Result::ok);
        let range = text("timeMin").zip(text("timeMax"));
        if range.is_some_and(|(from, to)| instant(from) >= instant(to)) {
            return refusal(400, "timeRangeEmpty");
        }
        if since.is_some_and(|since| since < self.forgotten) {
            return refusal(410, "fullSyncRequired");
        }
        let is_wanted = |event: &&Value| {
            let at = |field: &str| event[field]["dateTime"].as_str().map(instant);
            let is_changed = self.changed[event["id"].as_str().unwrap()] > since.unwrap_or_default();
            let is_there = since.is_some() || event["status"] != "cancelled";
            let is_after =
                text("timeMin").is_none_or(|from| at("end").is_some_and(|end| end > instant(from)));
            let is_before =
                text("timeMax").is_none_or(|to| at("start").is_some_and(|start| start < instant(to)));
            is_changed && is_there && is_after && is_before
        };
        let all: Vec<&Value> = self.events.values().filter(is_wanted).collect();
        let from: usize = text("pageToken").map_or(0, |token| token.parse().unwrap());
        let mut page = json!({"kind": "calendar#events", "summary": "Rota", "timeZone": "Europe/Berlin"});
        page["items"] = all.iter().skip(from).take(2).map(|event| (*event).clone()).collect();
        if all.len() > from + 2 {
            page["nextPageToken"] = json!((from + 2).to_string());
        } else {
            page["nextSyncToken"] = json!(format!("s-{}", self.changes));
        }
        (200, page)
    }
}

/// Seconds of a time, as far as tests compare them: all have the same form.
fn instant(text: &str) -> i64 {
    let digits = |from: usize, to: usize| text[from..to].parse::<i64>().unwrap();
    let (year, month, day) = (digits(0, 4), digits(5, 7), digits(8, 10));
    // Days since the beginning of a year in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let seconds = days * 86_400 + digits(11, 13) * 3600 + digits(14, 16) * 60 + digits(17, 19);
    let zone = &text[text.rfind(['+', '-', 'Z']).unwrap()..];
    if zone == "Z" {
        return seconds;
    }
    let offset = zone[1..3].parse::<i64>().unwrap() * 3600 + zone[4..6].parse::<i64>().unwrap() * 60;
    if zone.starts_with('+') { seconds - offset } else { seconds + offset }
}

/// RFC 7396, as Google patches.
fn merge(into: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            if let Some(into) = into.as_object_mut() {
                into.remove(name);
            }
        } else {
            if !into.is_object() {
                *into = json!({});
            }
            merge(&mut into[name], value);
        }
    }
}

async fn answer(
    State(fake): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let token = headers.get(AUTHORIZATION).map(|token| token.to_str().unwrap().to_owned());
    if token != Some(format!("Bearer {TOKEN}")) {
        return respond(refusal(401, "authError"), 0);
    }
    let path = uri.path().trim_start_matches('/').to_owned();
    let asked = asked(&uri, &headers, body).await;
    let version = headers.get(IF_MATCH).map(|version| version.to_str().unwrap().to_owned());
    let request = format!("{method} {path}");
    let (answer, changes, hangs) = {
        let mut fake = fake.lock().unwrap();
        fake.asked.push((request.clone(), asked.clone()));
        let answer = fake.judge(&method, &path, &asked, version.as_deref());
        (answer, fake.changes, fake.hangs)
    };
    if hangs.is_some_and(|begin| request.starts_with(begin)) {
        pending::<()>().await;
    }
    respond(answer, changes)
}

/// Each change takes a second of the server's time.
fn respond((status, said): (u16, Value), changes: u64) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let time = [(DATE, format!("Mon, 30 Nov 2026 10:00:{:02} GMT", changes.min(59)))];
    if said.is_null() { (status, time).into_response() } else { (status, time, Json(said)).into_response() }
}
