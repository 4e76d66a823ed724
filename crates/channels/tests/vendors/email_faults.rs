//! Tests of failing mail servers, which must not lose mails, and of the memory limit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use muster_channels::{
    Config, Cursor, EmailConfig, Event, Link, MemoryBudget, MemoryGrant, Reading, Sink, Skipped, Stopped,
    open,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    dovecot::Dovecot,
    email::{channel, config, during, mail, server, texts},
    support::{Memory, Seen, SinkCall, TestSink, open_network},
};

/// A fault of the server.
#[derive(Clone, Copy)]
struct Fault {
    /// The beginning of the command.
    command: &'static str,
    /// `None` closes the connection.
    answer: Option<&'static str>,
    /// The number of faulty connections, from the first.
    connections: usize,
}

/// An IMAP server with one mail of UID 5. `done` records its fetches.
async fn imap(fault: Option<Fault>, done: &Seen<&'static str>) -> u16 {
    imap_with(&mail("m5", "five"), fault, done).await
}

async fn imap_with(mail: &str, fault: Option<Fault>, done: &Seen<&'static str>) -> u16 {
    let mail: Arc<str> = mail.replace('\n', "\r\n").into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let done = Arc::clone(done);
    tokio::spawn(async move {
        let mut connection = 0;
        while let Ok((stream, _)) = listener.accept().await {
            connection += 1;
            let fault = fault.filter(|fault| connection <= fault.connections);
            tokio::spawn(speak(stream, Arc::clone(&mail), fault, Arc::clone(&done)));
        }
    });
    port
}

async fn speak(stream: TcpStream, mail: Arc<str>, fault: Option<Fault>, done: Seen<&'static str>) {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"* OK hi\r\n").await.unwrap();
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
            return;
        }
        let (tag, command) = line.trim_end().split_once(' ').unwrap();
        if command.starts_with("UID FETCH 5:") {
            done.lock().unwrap().push("listed");
        } else if command.starts_with("UID FETCH 5 ") {
            done.lock().unwrap().push("asked");
        }
        let fault = fault.filter(|fault| command.starts_with(fault.command));
        let answer = match fault {
            Some(Fault { answer: None, .. }) => return,
            // The connection closes after this answer.
            Some(Fault { answer: Some(answer), .. }) if answer.starts_with('*') => {
                _ = stream.write_all(answer.as_bytes()).await;
                return;
            }
            Some(Fault { answer: Some(answer), .. }) => format!("{tag} {answer}\r\n"),
            None => format!("{}{tag} OK done\r\n", data(command, &mail)),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The data for a command.
fn data(command: &str, mail: &str) -> String {
    let length = mail.len();
    if command.starts_with("CAPABILITY") {
        "* CAPABILITY IMAP4rev1\r\n".to_owned()
    } else if command.starts_with("SELECT") {
        "* 1 EXISTS\r\n* OK [UIDVALIDITY 1] ok\r\n* OK [UIDNEXT 6] ok\r\n".to_owned()
    } else if command.starts_with("UID SEARCH") {
        "* SEARCH 5\r\n".to_owned()
    } else if command.starts_with("UID FETCH 5 ") {
        format!("* 1 FETCH (UID 5 BODY[] {{{length}}}\r\n{mail})\r\n")
    } else if command.starts_with("UID FETCH") {
        let arrived = "01-Jan-2099 00:00:00 +0000";
        format!("* 1 FETCH (UID 5 RFC822.SIZE {length} FLAGS () INTERNALDATE \"{arrived}\")\r\n")
    } else {
        String::new()
    }
}

/// The position before the mail.
fn read_up_to_four() -> Cursor {
    Cursor(r#"{"mailbox":"agent@127.0.0.1","validity":1,"uid":4}"#.to_owned())
}

/// The first events, after any changes of the connection.
async fn first(calls: &mut UnboundedReceiver<SinkCall>) -> (Vec<Event>, Option<Cursor>) {
    loop {
        match calls.recv().await.unwrap() {
            SinkCall::Admitted(events, cursor) if !events.is_empty() => return (events, cursor),
            SinkCall::Link(_) | SinkCall::Admitted(..) => {}
            other @ SinkCall::Skipped(_) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_temporarily_unavailable_mail_is_read_later() {
    for (command, answer, cursor) in [
        ("UID FETCH 5 ", Some("NO [UNAVAILABLE] Try again later."), Some(read_up_to_four())),
        ("UID FETCH 5 ", None, Some(read_up_to_four())),
        ("UID FETCH 5:", Some("NO [UNAVAILABLE] Try again later."), Some(read_up_to_four())),
        ("SELECT", None, Some(read_up_to_four())),
        ("UID SEARCH", Some("NO [LIMIT] Slow down."), None),
        ("UID SEARCH", None, None),
    ] {
        let port = imap(Some(Fault { command, answer, connections: 1 }), &Seen::default()).await;
        let mailbox = channel(Some(server(port, "secret")), None, &open_network(None));
        let (sink, mut calls) = TestSink::new(99);
        let (events, _) = during(&mailbox, cursor, &sink, first(&mut calls)).await;
        assert!(!events.is_empty(), "{command} {answer:?}");
        assert_eq!(texts(&events), ("m5@a.test".into(), "five".into()));
    }
}

/// The minutes by which the mailbox's clock is ahead.
static PASSED: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp::now() + SignedDuration::from_mins(PASSED.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_mail_refused_for_long_is_skipped_and_reported() {
    let (command, answer) = ("UID FETCH 5 ", Some("NO [SERVERBUG] Internal error occurred."));
    let port = imap(Some(Fault { command, answer, connections: usize::MAX }), &Seen::default()).await;
    let mut network = open_network(None);
    network.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &network);
    let (sink, mut calls) = TestSink::new(99);
    during(&mailbox, Some(read_up_to_four()), &sink, async {
        loop {
            match calls.recv().await.unwrap() {
                SinkCall::Link(Link::Down(_)) => PASSED.store(16, Ordering::Relaxed),
                SinkCall::Link(_) | SinkCall::Admitted(..) => {}
                SinkCall::Skipped(Skipped { vendor_id, reason, .. }) => {
                    assert_eq!(PASSED.load(Ordering::Relaxed), 16, "it is asked for again");
                    assert!(vendor_id == "5" && reason.as_str().contains("refuses"), "{reason}");
                    break;
                }
            }
        }
        // Reading continues after the skipped mail.
        let Some(SinkCall::Admitted(events, Some(cursor))) = calls.recv().await else {
            panic!("it stands still")
        };
        assert!(events.is_empty() && cursor.0.ends_with("\"uid\":5}"), "{cursor:?}");
    })
    .await;
}

/// The report of a mail with always the same answer, and the next position.
async fn skipped(
    answer: Option<&'static str>,
    cursor: Cursor,
    done: &Seen<&'static str>,
) -> (Skipped, Cursor) {
    let port = imap(Some(Fault { command: "UID FETCH 5 ", answer, connections: usize::MAX }), done).await;
    let mut network = open_network(None);
    network.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &network);
    let (sink, mut calls) = TestSink::new(99);
    during(&mailbox, Some(cursor), &sink, async {
        let mut named = None;
        loop {
            match (calls.recv().await.unwrap(), &named) {
                (SinkCall::Link(Link::Down(_)), _) => PASSED.store(16, Ordering::Relaxed),
                (SinkCall::Skipped(skipped), _) => named = Some(skipped),
                (SinkCall::Admitted(_, Some(cursor)), Some(named)) => return (named.clone(), cursor),
                _ => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_mail_that_fails_twice_is_skipped() {
    for (answer, why, asked) in [
        (None, "The mail server fails: the connection is lost.", 2),
        (
            Some("* 1 FETCH (UID 5 BODY[] {1000}\r\nshort"),
            "The mail server fails: the connection is lost.",
            2,
        ),
        (Some("* 1 FETCH garbage\r\n"), "The mail server fails: its answer can't be understood.", 2),
        (Some("* 1 FETCH (UID 5 BODY[] {99999999}\r\n"), "The mail server fails: its answer is too long.", 2),
        (
            Some("* 1 FETCH (((((((((((((((((((((((((((((((((((((((((("),
            "The mail server fails: its answer is nested too deeply.",
            2,
        ),
        (Some("OK done"), "The mail server returns it without its text.", 1),
    ] {
        PASSED.store(0, Ordering::Relaxed);
        let done = Seen::default();
        let (named, cursor) = skipped(answer, read_up_to_four(), &done).await;
        assert_eq!((&*named.vendor_id, named.reason.as_str()), ("5", why));
        assert!(cursor.0.ends_with("\"uid\":5}"), "{cursor:?}");
        assert_eq!(done.lock().unwrap().iter().filter(|done| **done == "asked").count(), asked, "{why}");
    }
}

/// The stored position after a crash between the storage of an attempt and the reading of the mail.
async fn interrupted(port: u16, cursor: Cursor) -> Cursor {
    let mut network = open_network(None);
    network.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &network);
    let (sink, mut calls) = TestSink::new(99);
    during(&mailbox, Some(cursor), &sink, async {
        loop {
            match calls.recv().await.unwrap() {
                SinkCall::Admitted(events, Some(cursor)) if cursor.0.contains("tried") => {
                    assert!(events.is_empty());
                    return cursor;
                }
                SinkCall::Link(_) => {}
                other => panic!("{other:?}"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_mail_is_read_after_two_crashes() {
    let port = imap(None, &Seen::default()).await;
    let mut cursor = read_up_to_four();
    for _ in 0..2 {
        cursor = interrupted(port, cursor).await;
    }
    // The third attempt is delayed.
    PASSED.store(3, Ordering::Relaxed);
    let mut network = open_network(None);
    network.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &network);
    let (sink, mut calls) = TestSink::new(99);
    let (events, cursor) = during(&mailbox, Some(cursor), &sink, first(&mut calls)).await;
    assert_eq!(texts(&events), ("m5@a.test".into(), "five".into()));
    assert!(cursor.unwrap().0.ends_with("\"uid\":5}"));
}

#[tokio::test]
async fn a_mail_is_skipped_after_three_crashes() {
    let done = Seen::default();
    let port = imap(None, &done).await;
    let mut cursor = read_up_to_four();
    for minutes in [0, 0, 3] {
        PASSED.store(minutes, Ordering::Relaxed);
        cursor = interrupted(port, cursor).await;
    }
    let asked = done.lock().unwrap().len();
    let (named, cursor) = skipped(None, cursor, &done).await;
    assert_eq!((&*named.vendor_id, named.subject.as_deref()), ("5", Some("A question")));
    assert_eq!(named.reason.as_str(), "Reading it ended the service.");
    assert!(cursor.0.ends_with("\"uid\":5}") && asked > 0, "{cursor:?}");
}

#[tokio::test]
async fn listening_is_not_stopped_between_attempt_and_commit() {
    let port = imap(None, &Seen::default()).await;
    let mailbox = channel(Some(server(port, "secret")), None, &open_network(None));
    let sink = Watching::default();
    during(&mailbox, Some(read_up_to_four()), &sink, async {
        while sink.seen.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // A stop waits for this lock.
        drop(sink.turn.lock().await);
    })
    .await;
    let seen = sink.seen.lock().unwrap();
    assert_eq!(*seen, [(0, true, true), (1, false, true)], "(events, is an attempt, is being read)");
}

#[tokio::test]
async fn reports_of_skipped_mails_are_rate_limited() {
    let dovecot = Dovecot::start().await;
    for n in 0..4 {
        dovecot.deliver(&format!("m{n}"), "Subject: Without a sender\n\nhi\n");
    }
    let mailbox = channel(Some(server(dovecot.address.port(), "secret")), None, &open_network(None));
    let (sink, mut calls) = TestSink::new(99);
    let begun = Instant::now();
    during(&mailbox, None, &sink, async {
        let mut skipped = 0;
        while skipped < 4 {
            skipped += usize::from(matches!(calls.recv().await.unwrap(), SinkCall::Skipped(_)));
        }
    })
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(300), "a mailbox can hold any number of them");
}

/// A sink that records its calls and the state of the reading lock.
#[derive(Default)]
struct Watching {
    turn: Arc<tokio::sync::Mutex<()>>,
    seen: Seen<(usize, bool, bool)>,
}

impl Sink for Watching {
    fn admit(&self, events: Vec<Event>, cursor: Option<Cursor>) -> BoxFuture<'_, Result<(), Stopped>> {
        let is_attempt = cursor.is_some_and(|cursor| cursor.0.contains("tried"));
        self.seen.lock().unwrap().push((events.len(), is_attempt, self.turn.try_lock().is_err()));
        Box::pin(async { Ok(()) })
    }

    fn reading(&self) -> BoxFuture<'_, Reading> {
        Box::pin(Arc::clone(&self.turn).lock_owned())
    }

    fn link(&self, _: Link) {}

    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()> {
        panic!("{skipped:?}");
    }
}

/// A memory budget that refuses the first request.
struct Late;

impl MemoryBudget for Late {
    fn open(&self) -> Box<dyn MemoryGrant> {
        Box::new(Waits(true))
    }
}

struct Waits(bool);

impl MemoryGrant for Waits {
    fn grow(&mut self, _: usize) -> bool {
        !std::mem::take(&mut self.0)
    }

    fn shrink(&mut self, _: usize) {}
}

#[tokio::test]
async fn waiting_for_memory_is_no_attempt() {
    // The server closes the connection early.
    let answer = Some("* 1 FETCH (UID 5 BODY[] {1000000}\r\n");
    let port =
        imap(Some(Fault { command: "UID FETCH 5 ", answer, connections: usize::MAX }), &Seen::default())
            .await;
    let mut network = open_network(None);
    network.clock = clock;
    let config = EmailConfig { memory: Arc::new(Late), ..config(Some(server(port, "secret")), None) };
    let mailbox = open(Config::Email(Box::new(config)), &network);
    let (sink, mut calls) = TestSink::new(99);
    during(&mailbox, Some(read_up_to_four()), &sink, async {
        let mut failed = 0;
        while failed < 3 {
            match calls.recv().await.unwrap() {
                SinkCall::Link(Link::Down(_)) => failed += 1,
                SinkCall::Link(Link::Up) => {}
                other => panic!("{other:?}"),
            }
            PASSED.store(16, Ordering::Relaxed);
        }
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_could_not_be_stored_is_tried_again() {
    let port = imap(None, &Seen::default()).await;
    let mailbox = channel(Some(server(port, "secret")), None, &open_network(None));
    let mut cursor = read_up_to_four();
    for _ in 0..3 {
        // The sink stores only the attempt.
        let (full, mut calls) = TestSink::new(1);
        assert!(mailbox.listen(Some(cursor.clone()), &full).await.is_err());
        while let Ok(call) = calls.try_recv() {
            if let SinkCall::Admitted(events, Some(kept)) = call
                && events.is_empty()
            {
                cursor = kept;
            }
        }
        assert!(!cursor.0.contains("tried"), "{cursor:?}");
    }
}

/// A slow sink: the other mailbox has time to request its mail.
struct Slow(Seen<&'static str>);

impl Slow {
    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|done| **done == what).count()
    }

    async fn until(&self, what: &str, count: usize) {
        while self.count(what) < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Sink for Slow {
    fn admit(&self, events: Vec<Event>, _: Option<Cursor>) -> BoxFuture<'_, Result<(), Stopped>> {
        Box::pin(async move {
            if events.is_empty() {
                return Ok(());
            }
            self.0.lock().unwrap().push("read");
            self.until("asked", 2).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            self.0.lock().unwrap().push("admitted");
            Ok(())
        })
    }

    fn reading(&self) -> BoxFuture<'_, Reading> {
        Box::pin(Arc::<tokio::sync::Mutex<()>>::default().lock_owned())
    }

    fn link(&self, _: Link) {}

    fn skipped(&self, skipped: Skipped) -> BoxFuture<'_, ()> {
        panic!("{skipped:?}");
    }
}

#[tokio::test]
async fn parallel_reads_are_limited_by_memory() {
    let sink = Slow(Seen::default());
    let network = open_network(None);
    // The budget suffices for one mail, which takes up to three times its size.
    let (memory, long) = (Memory::of(500 << 10), "long ".repeat(40 << 10));
    let mailbox = async || {
        let port = imap_with(&mail("m5", &long), None, &sink.0).await;
        let config =
            EmailConfig { memory: Arc::clone(&memory), ..config(Some(server(port, "secret")), None) };
        open(Config::Email(Box::new(config)), &network)
    };
    let (one, other) = (mailbox().await, mailbox().await);
    let both = during(&other, Some(read_up_to_four()), &sink, sink.until("admitted", 2));
    during(&one, Some(read_up_to_four()), &sink, both).await;
    let done = sink.0.lock().unwrap();
    let done: Vec<_> = done.iter().filter(|done| !matches!(**done, "listed" | "asked")).collect();
    assert_eq!(done, [&"read", &"admitted", &"read", &"admitted"]);
}
