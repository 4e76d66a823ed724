//! Tests of calendars against radicale, xandikos, and the fake Google. A person edits beside, with the caldav library.

use std::{
    future::ready,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    http::{Method, StatusCode, Uri},
};
use futures::FutureExt;
use jiff::{Timestamp, ToSpan};
use muster_channels::{
    ActionCall, CalendarAccount, CalendarConfig, Choice, Config, Cursor, Event, Failure, Inbound, Link,
    Network, Receipt, Transport, oauth::TokenSource, open,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    caldav::{CalDav, PASSWORD, USER},
    discord::{listen, outwait},
    fakes::{
        google_calendar::{EVENTS, Shared, TOKEN, google_calendar, invitation, refusal},
        serve,
    },
    peers::{json_lines, node, on_this_machine},
    support::{SinkCall, TestSink, open_network},
};

fn open_at(server: &CalDav, lead: Option<Duration>, pass: &str) -> Arc<dyn Transport> {
    calendars(caldav_account(server, pass), &[&*server.calendar], lead, &open_network(None))
}

fn caldav_account(server: &CalDav, pass: &str) -> CalendarAccount {
    CalendarAccount::CalDav { url: server.url.clone(), user: USER.to_owned(), pass: pass.into() }
}

fn calendars(
    account: CalendarAccount,
    chosen: &[&str],
    lead: Option<Duration>,
    network: &Network,
) -> Arc<dyn Transport> {
    let choice = |id: &&str| Choice { id: (*id).to_owned(), name: "Rota".to_owned() };
    let config = CalendarConfig {
        account,
        calendars: chosen.iter().map(choice).collect(),
        reminder_lead: lead,
        poll: Duration::from_millis(20),
    };
    open(Config::Calendar(Box::new(config)), network)
}

fn google(token: &'static str, lead: Option<Duration>, at: SocketAddr) -> Arc<dyn Transport> {
    calendars(google_account(token), &["rota"], lead, &open_network(Some(at)))
}

fn google_account(token: &'static str) -> CalendarAccount {
    let tokens: TokenSource = Arc::new(move || ready(Ok::<_, Failure>(SecretString::from(token))).boxed());
    CalendarAccount::Google(Some(tokens))
}

/// The next message. Panics if the vendor fails meanwhile.
async fn next(calls: &mut UnboundedReceiver<SinkCall>) -> Inbound {
    loop {
        match calls.recv().await.unwrap() {
            SinkCall::Admitted(mut events, _) => {
                if let Some(Event::Message(message)) = events.pop() {
                    return *message;
                }
            }
            SinkCall::Link(Link::Down(cause)) => panic!("{cause}"),
            _ => {}
        }
    }
}

/// The position once everything before it is stored.
async fn position(calls: &mut UnboundedReceiver<SinkCall>) -> Cursor {
    loop {
        if let SinkCall::Admitted(_, Some(cursor)) = calls.recv().await.unwrap() {
            return cursor;
        }
    }
}

/// Waits until the listener has read all calendars twice. No message may come meanwhile.
async fn quiet(calls: &mut UnboundedReceiver<SinkCall>) {
    let mut times = 0;
    while times < 2 {
        match calls.recv().await.unwrap() {
            SinkCall::Link(Link::Up) => times += 1,
            SinkCall::Admitted(events, _) => assert_eq!(events, []),
            other => panic!("{other:?}"),
        }
    }
}

async fn act(
    transport: &dyn Transport,
    id: &str,
    name: &str,
    target: &str,
    arguments: Value,
) -> Result<Receipt, Failure> {
    transport.act(&ActionCall { id, name, arguments: &arguments, target, received: &[] }).await
}

/// A time that is this many minutes away, as the person's client writes it.
fn soon(minutes: i64) -> String {
    let at = Timestamp::now().checked_add(minutes.minutes()).unwrap();
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

async fn syncs(name: &str) {
    let server = CalDav::start(name).await;
    let calendar = open_at(&server, None, PASSWORD);
    assert_eq!(calendar.probe().await.unwrap().warnings, Vec::<String>::new());
    server.add("old", "Old", "2026-11-01T10:00:00+00:00", "2026-11-01T11:00:00+00:00", &[]).await;
    let (sink, mut calls) = TestSink::new(99);
    let cursor = listen(&*calendar, None, &sink, async {
        let first = position(&mut calls).await;
        server.add("e1", "Tea", "2026-12-01T10:00:00+00:00", "2026-12-01T11:00:00+00:00", &[USER]).await;
        let invited = next(&mut calls).await;
        assert_eq!(
            (invited.origin.id.as_str(), invited.origin.place.as_deref()),
            ("ada@a.test", Some(&*server.calendar))
        );
        let expected = "[Calendar: an event]\nTea\nWhen: 2026-12-01 10:00 to 11:00 (UTC)\n\
                        Organizer: ada@a.test\nInvited: me@a.test has not decided";
        assert_eq!((invited.text.as_str(), invited.thread.title.as_deref()), (expected, Some("Tea")));
        server
            .person(&[
                "move",
                &server.calendar,
                "e1",
                "2026-12-02T10:00:00+00:00",
                "2026-12-02T11:00:00+00:00",
            ])
            .await;
        let moved = next(&mut calls).await;
        assert!(moved.text.contains("When: 2026-12-02 10:00") && moved.thread == invited.thread, "{moved:?}");
        server.person(&["remove", &server.calendar, "e1"]).await;
        let removed = next(&mut calls).await;
        assert_eq!(removed.text, "[Calendar: an event was removed]\nTea");
        assert_eq!((removed.thread.key, removed.origin.id.as_str()), (invited.thread.key, "ada@a.test"));
        // Nothing more came, so the position is that after all of it.
        let _ = position(&mut calls).await;
        first
    })
    .await;
    // A server that has forgotten the position: what changed since comes, and nothing from before.
    let mut lost: Value = serde_json::from_str(&cursor.0).unwrap();
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    lost["calendars"][&server.calendar] = json!({"token": "lost", "until": now.to_string()});
    // radicale says when it was stored, whatever its author's clock said.
    let old = ("2020-01-01T10:00:00+00:00".to_owned(), "2020-01-01T11:00:00+00:00".to_owned());
    let (start, end) = if name == "radicale" { old } else { (soon(60), soon(120)) };
    server.add("e2", "Cake", &start, &end, &[]).await;
    let (sink, mut calls) = TestSink::new(99);
    let found = listen(&*calendar, Some(Cursor(lost.to_string())), &sink, next(&mut calls)).await;
    // Without an organizer, it is of the calendar.
    assert_eq!((found.thread.title.as_deref(), found.origin.id.as_str()), (Some("Cake"), &*server.calendar));
    acts(&server).await;
}

async fn acts(server: &CalDav) {
    let calendar = open_at(server, None, PASSWORD);
    let (sink, mut calls) = TestSink::new(99);
    listen(&*calendar, None, &sink, async {
        position(&mut calls).await;
        server.add("e3", "Plan", "2026-12-04T10:00:00+00:00", "2026-12-04T11:00:00+00:00", &[USER]).await;
        let plan = next(&mut calls).await.thread.target;
        let tea = json!({"title": "Walk", "start": "2026-12-05T10:00:00+01:00", "end": "2026-12-05T11:00:00+01:00"});
        let made = act(&*calendar, "d-1", "create_event", &plan, tea.clone()).await.unwrap();
        assert_eq!(act(&*calendar, "d-1", "create_event", &plan, tea).await.unwrap(), made);
        let later = json!({"start": "2026-12-06T10:00:00+01:00"});
        let walk = format!("{} {}", server.calendar, made.vendor_id.unwrap());
        act(&*calendar, "d-2", "move_event", &walk, later.clone()).await.unwrap();
        // A person moves it once more: a repetition of the action leaves that alone.
        server.person(&["move", &server.calendar, "d-1@muster", "2026-12-07T10:00:00+00:00", "2026-12-07T11:00:00+00:00"]).await;
        act(&*calendar, "d-2", "move_event", &walk, later).await.unwrap();
        act(&*calendar, "d-3", "answer_invitation", &plan, json!({"answer": "accept"})).await.unwrap();
        // Only what the person did comes in.
        let seen = next(&mut calls).await;
        assert!(seen.text.contains("Walk\nWhen: 2026-12-07 10:00"), "{}", seen.text);
        let read = server.person(&["read", &server.calendar]).await;
        let of = |uid: &str| read.iter().filter(|event| event["uid"] == uid).collect::<Vec<_>>();
        assert_eq!(of("d-1@muster").len(), 1);
        assert_eq!(of("e3")[0]["answers"][USER], "ACCEPTED");
        quiet(&mut calls).await;
    })
    .await;
}

#[tokio::test]
async fn radicale_is_synchronized() {
    syncs("radicale").await;
}

#[tokio::test]
async fn xandikos_is_synchronized() {
    syncs("xandikos").await;
}

#[tokio::test]
async fn reminders_come_once_for_each_start() {
    let server = CalDav::start("radicale").await;
    let calendar = open_at(&server, Some(Duration::from_mins(15)), PASSWORD);
    server.add("e1", "Tea", &soon(10), &soon(20), &[]).await;
    server.add("e2", "Later", &soon(60), &soon(70), &[]).await;
    let (sink, mut calls) = TestSink::new(99);
    let (cursor, first) = listen(&*calendar, None, &sink, async {
        let cursor = position(&mut calls).await;
        let first = next(&mut calls).await;
        quiet(&mut calls).await;
        (cursor, first)
    })
    .await;
    assert!(first.text.starts_with("[Calendar: a reminder]\nTea begins at "), "{}", first.text);
    // After a restart it comes again, under the same key.
    let (sink, mut calls) = TestSink::new(99);
    listen(&*calendar, Some(cursor), &sink, async {
        assert_eq!(next(&mut calls).await.key, first.key);
        server.person(&["move", &server.calendar, "e1", &soon(12), &soon(20)]).await;
        let moved = [next(&mut calls).await, next(&mut calls).await];
        let reminder = moved.iter().find(|message| message.text.contains("a reminder")).unwrap();
        assert!(reminder.key != first.key && reminder.thread.key == first.thread.key);
    })
    .await;
}

#[tokio::test]
async fn days_begin_in_the_calendars_zone_wherever_the_server_is() {
    let server = CalDav::start("radicale").await;
    server.person(&["zone", &server.calendar, "Asia/Tokyo"]).await;
    server.add("e1", "Holiday", "2026-12-01", "2026-12-02", &[]).await;
    let mut network = open_network(None);
    network.clock = || "2026-11-30T14:50:00Z".parse().unwrap();
    let account = caldav_account(&server, PASSWORD);
    let calendar = calendars(account, &[&*server.calendar], Some(Duration::from_mins(15)), &network);
    let (sink, mut calls) = TestSink::new(99);
    let reminder = listen(&*calendar, None, &sink, next(&mut calls)).await;
    let expected = "[Calendar: a reminder]\nHoliday begins at 2026-12-01 00:00 (Asia/Tokyo).";
    assert!(reminder.text.starts_with(expected), "{}", reminder.text);
}

/// A server with events of these lengths.
async fn server_of_long_events(lengths: &'static [usize]) -> SocketAddr {
    let answer = move |method: Method, uri: Uri, asked: String| async move {
        let event = |n: usize| format!("/rota/{n}.ics");
        let found = |href: &str, properties: &str| {
            format!(
                "<d:response><d:href>{href}</d:href><d:propstat><d:prop>{properties}</d:prop>\
                 <d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
            )
        };
        let properties = |n: usize| {
            if method.as_str() == "PROPFIND" {
                return format!("<d:getcontentlength>{}</d:getcontentlength>", lengths[n]);
            }
            if asked.contains("sync-collection") {
                return "<d:getetag>1</d:getetag>".to_owned();
            }
            let filling = "a".repeat(lengths[n]);
            format!(
                "<c:calendar-data>BEGIN:VCALENDAR\nBEGIN:VEVENT\nX-A:{filling}\nEND:VEVENT</c:calendar-data>"
            )
        };
        let is_asked = |n: &usize| {
            uri.path() == event(*n) || asked.contains(&event(*n)) || asked.contains("sync-collection")
        };
        let mut answer = found("/rota/", "<d:sync-token>1</d:sync-token>");
        answer.extend((0..lengths.len()).filter(is_asked).map(|n| found(&event(n), &properties(n))));
        let namespaces = "xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"";
        let answer =
            format!("<d:multistatus {namespaces}>{answer}<d:sync-token>2</d:sync-token></d:multistatus>");
        (StatusCode::MULTI_STATUS, answer)
    };
    serve(Router::new().fallback(answer)).await
}

#[tokio::test]
async fn long_events_hold_up_no_others() {
    // Together they are longer than an answer may be, and the first one is so by itself.
    let address = server_of_long_events(&[9_000_000, 3_000_000, 3_000_000, 3_000_000]).await;
    let url = format!("http://{address}/");
    let account = CalendarAccount::CalDav { url, user: USER.to_owned(), pass: PASSWORD.into() };
    let calendar = calendars(account, &["/rota/"], None, &open_network(None));
    let (sink, mut calls) = TestSink::new(99);
    let events = listen(&*calendar, None, &sink, async {
        loop {
            match calls.recv().await.unwrap() {
                SinkCall::Admitted(events, None) => break events,
                SinkCall::Link(Link::Down(cause)) => panic!("{cause}"),
                _ => {}
            }
        }
    })
    .await;
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn wrong_passwords_and_open_connections_are_refused() {
    let server = CalDav::start("radicale").await;
    let wrong = open_at(&server, None, "wrong");
    assert!(matches!(wrong.probe().await, Err(Failure::Credentials(_))));
    let ended = wrong.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(ended, Err(Failure::Credentials(_))), "{ended:?}");
    // No network is listed: the password would be readable on the way.
    let account =
        |url: &str| CalendarAccount::CalDav { url: url.to_owned(), user: USER.to_owned(), pass: "x".into() };
    for url in ["http://192.0.2.1/", "http://localhost/", &server.url] {
        let config = CalendarConfig {
            account: account(url),
            calendars: vec![],
            reminder_lead: None,
            poll: Duration::ZERO,
        };
        let network = crate::support::network(&[], crate::support::Names::default(), None);
        let refused = open(Config::Calendar(Box::new(config)), &network).probe().await;
        assert!(refused.is_err(), "{url}: {refused:?}");
    }
}

#[tokio::test]
async fn google_is_synchronized_over_pages_and_lost_positions() {
    let (address, fake) = google_calendar().await;
    let calendar = google(TOKEN, None, address);
    let event = |id: &str, title: &str| {
        invitation(id, title, "2026-12-01T10:00:00+01:00", "2026-12-01T11:00:00+01:00")
    };
    let put = |fake: &Shared, id: &str, title: &str| fake.lock().unwrap().put(event(id, title));
    put(&fake, "old00", "Old");
    assert_eq!(calendar.choices(None).await.unwrap()[0].name, "Rota");
    let (sink, mut calls) = TestSink::new(99);
    let cursor = listen(&*calendar, None, &sink, async {
        let first = position(&mut calls).await;
        for n in 0..5 {
            put(&fake, &format!("new0{n}"), &format!("Event {n}"));
        }
        let mut titles = Vec::new();
        while titles.len() < 5 {
            match calls.recv().await.unwrap() {
                SinkCall::Admitted(events, _) => titles.extend(events.into_iter().map(|event| match event {
                    Event::Message(message) => message.thread.title.unwrap().to_string(),
                    other => panic!("{other:?}"),
                })),
                SinkCall::Link(Link::Down(cause)) => panic!("{cause}"),
                _ => {}
            }
        }
        titles.sort();
        assert_eq!(titles, (0..5).map(|n| format!("Event {n}")).collect::<Vec<_>>());
        fake.lock().unwrap().forget();
        fake.lock().unwrap().change("new01", &json!({"summary": "Changed"}));
        assert_eq!(next(&mut calls).await.thread.title.as_deref(), Some("Changed"));
        fake.lock().unwrap().change("new02", &json!({"status": "cancelled"}));
        assert_eq!(next(&mut calls).await.text, "[Calendar: an event was removed]\nEvent 2");
        first
    })
    .await;
    // Another account's position.
    let mut lost: Value = serde_json::from_str(&cursor.0).unwrap();
    lost["calendars"]["rota"]["token"] = json!("another");
    let (sink, mut calls) = TestSink::new(99);
    listen(&*calendar, Some(Cursor(lost.to_string())), &sink, next(&mut calls)).await;
}

#[tokio::test]
async fn a_failing_calendar_does_not_hold_up_the_others() {
    let (address, fake) = google_calendar().await;
    fake.lock().unwrap().answers.push_back(refusal(500, "backendError"));
    let network = open_network(Some(address));
    let calendar = calendars(google_account(TOKEN), &["failing", "rota"], None, &network);
    let (sink, mut calls) = TestSink::new(99);
    let first = listen(&*calendar, None, &sink, calls.recv()).await;
    assert!(matches!(first, Some(SinkCall::Admitted(_, Some(_)))), "{first:?}");
}

#[tokio::test]
async fn a_reminder_may_come_as_its_event_begins() {
    static NOW: AtomicI64 = AtomicI64::new(0);
    let begin = "2026-12-01T10:00:00Z".parse::<Timestamp>().unwrap().as_second();
    NOW.store(begin - 30, Ordering::Relaxed);
    let (address, fake) = google_calendar().await;
    let (start, end) = ("2026-12-01T10:00:00+00:00", "2026-12-01T11:00:00+00:00");
    fake.lock().unwrap().put(invitation("tea00", "Tea", start, end));
    let mut network = open_network(Some(address));
    network.clock = || Timestamp::from_second(NOW.load(Ordering::Relaxed)).unwrap();
    let calendar = calendars(google_account(TOKEN), &["rota"], Some(Duration::ZERO), &network);
    let (sink, mut calls) = TestSink::new(99);
    listen(&*calendar, None, &sink, async {
        quiet(&mut calls).await;
        // Half a minute later: calendars are read once a minute.
        NOW.store(begin + 30, Ordering::Relaxed);
        let reminder = next(&mut calls).await;
        assert!(
            reminder.text.contains("Tea begins at 2026-12-01 11:00 (Europe/Berlin)"),
            "{}",
            reminder.text
        );
        quiet(&mut calls).await;
    })
    .await;
}

#[tokio::test]
async fn actions_at_google_take_effect_once_and_notify_no_one() {
    let (address, fake) = google_calendar().await;
    let calendar = google(TOKEN, None, address);
    fake.lock().unwrap().put(invitation(
        "plan0",
        "Plan",
        "2026-12-01T10:00:00+01:00",
        "2026-12-01T11:00:00+01:00",
    ));
    let (sink, mut calls) = TestSink::new(99);
    listen(&*calendar, None, &sink, async {
        position(&mut calls).await;
        let tea = json!({"title": "Tea", "start": "2026-12-05T10:00:00+01:00", "end": "2026-12-05T11:00:00+01:00",
            "invite": ["bo@b.test"]});
        let made = act(&*calendar, "d-1", "create_event", "rota plan0", tea.clone()).await.unwrap();
        assert_eq!(act(&*calendar, "d-1", "create_event", "rota plan0", tea).await.unwrap(), made);
        let target = format!("rota {}", made.vendor_id.unwrap());
        let later = json!({"start": "2026-12-06T10:00:00+01:00"});
        for _ in 0..2 {
            act(&*calendar, "d-2", "move_event", &target, later.clone()).await.unwrap();
            act(&*calendar, "d-3", "answer_invitation", "rota plan0", json!({"answer": "decline"})).await.unwrap();
        }
        let elsewhere = act(&*calendar, "d-4", "move_event", "other plan0", later).await;
        assert!(matches!(elsewhere, Err(Failure::Refused(_))), "{elsewhere:?}");
        // Only what a person changes comes in.
        let moved = target.strip_prefix("rota ").unwrap();
        fake.lock().unwrap().change(moved, &json!({"summary": "Tea and cake"}));
        assert_eq!(next(&mut calls).await.thread.title.as_deref(), Some("Tea and cake"));
    })
    .await;
    let fake = fake.lock().unwrap();
    let events: Vec<_> = fake.events.values().collect();
    assert_eq!(events.len(), 2);
    let tea = events.iter().find(|event| event["summary"] == "Tea and cake").unwrap();
    assert_eq!(
        (&tea["start"]["dateTime"], &tea["end"]["dateTime"]),
        (&json!("2026-12-06T09:00:00Z"), &json!("2026-12-06T10:00:00Z"))
    );
    assert_eq!(fake.events["plan0"]["attendees"][1]["responseStatus"], "declined");
    let writes = fake.asked.iter().filter(|(asked, _)| asked.starts_with("PATCH"));
    assert_eq!(writes.count(), 2, "repetitions write nothing");
}

#[tokio::test]
async fn google_reminds_unless_the_account_declined() {
    let (address, fake) = google_calendar().await;
    let calendar = google(TOKEN, Some(Duration::from_mins(15)), address);
    let mut declined = invitation("declined", "Declined", &soon(5), &soon(9));
    declined["attendees"][1]["responseStatus"] = json!("declined");
    fake.lock().unwrap().put(declined);
    fake.lock().unwrap().put(invitation("soon00", "Soon", &soon(10), &soon(20)));
    fake.lock().unwrap().put(invitation("later0", "Later", &soon(30), &soon(40)));
    let (sink, mut calls) = TestSink::new(99);
    let first = listen(&*calendar, None, &sink, async {
        let first = next(&mut calls).await;
        quiet(&mut calls).await;
        first
    })
    .await;
    assert!(first.text.contains("Soon begins at"), "{}", first.text);
}

#[tokio::test]
async fn google_may_refuse_limit_and_hang() {
    let (address, fake) = google_calendar().await;
    let revoked = google("another", None, address);
    assert!(matches!(revoked.probe().await, Err(Failure::Credentials(_))));
    let ended = revoked.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(ended, Err(Failure::Credentials(_))), "{ended:?}");
    let calendar = google(TOKEN, None, address);
    for (status, reason) in [(429, "rateLimitExceeded"), (403, "userRateLimitExceeded")] {
        fake.lock().unwrap().answers.push_back(refusal(status, reason));
        assert!(matches!(calendar.probe().await, Err(Failure::RateLimited { .. })));
    }
    fake.lock().unwrap().answers.push_back(refusal(403, "forbiddenForNonOrganizer"));
    let move_event = json!({"start": "2026-12-06T10:00:00+01:00"});
    let refused = act(&*calendar, "d-1", "move_event", "rota plan0", move_event.clone()).await;
    assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    fake.lock().unwrap().put(invitation(
        "plan0",
        "Plan",
        "2026-12-01T10:00:00+01:00",
        "2026-12-01T11:00:00+01:00",
    ));
    fake.lock().unwrap().hangs = Some("PATCH");
    let hanging = outwait(act(&*calendar, "d-1", "move_event", "rota plan0", move_event.clone()), || {
        !fake.lock().unwrap().bodies(&format!("PATCH {EVENTS}/plan0")).is_empty()
    });
    assert!(matches!(hanging.await, Err(Failure::Unknown(_))));
    // It took effect: the repetition finds that.
    fake.lock().unwrap().hangs = None;
    act(&*calendar, "d-1", "move_event", "rota plan0", move_event).await.unwrap();
    assert_eq!(fake.lock().unwrap().bodies(&format!("PATCH {EVENTS}/plan0")).len(), 1);
}

#[tokio::test]
async fn googles_client_accepts_the_fake() {
    let (address, fake) = google_calendar().await;
    for (id, title) in [("a0000", "One"), ("b0000", "Two"), ("c0000", "Three")] {
        fake.lock().unwrap().put(invitation(
            id,
            title,
            "2026-12-01T13:00:00+01:00",
            "2026-12-01T14:00:00+01:00",
        ));
    }
    let mut client = on_this_machine(node("channels", "google_calendar.mjs"));
    client.args([&format!("http://{address}/"), TOKEN]);
    let expected = [
        json!({"calendars": [["rota", "Rota"]]}),
        json!({"events": [["a0000", "One"], ["b0000", "Two"], ["c0000", "Three"]]}),
        json!({"made": "0123456789abcdef", "status": "confirmed"}),
        json!({"refused": 409}),
        json!({"refused": 412}),
        json!({"changed": [["0123456789abcdef", "2026-12-01T11:00:00Z"]]}),
        json!({"around": ["0123456789abcdef"]}),
        json!({"removed": [["0123456789abcdef", "cancelled"]]}),
        json!({"refused": 410}),
        json!({"refused": 401}),
    ];
    fake.lock().unwrap().forgotten = 1;
    assert_eq!(json_lines(client, "").await, expected);
}
