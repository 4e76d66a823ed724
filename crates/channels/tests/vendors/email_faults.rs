//! Mailboxes whose server fails while it is read: no mail is lost. And what is held of mails at a time.

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
    Config, Cursor, EmailConfig, Event, Hold, Link, Reading, Room, Sink, Skipped, Stopped, open,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    dovecot::Dovecot,
    email::{channel, config, during, mail, server, texts},
    support::{Hand, Memory, Seen, Told, open_world},
};

/// What goes wrong with a command.
#[derive(Clone, Copy)]
struct Fault {
    /// How it begins.
    command: &'static str,
    /// What it is answered with. `None`: the connection ends.
    answer: Option<&'static str>,
    /// On how many connections, from the first.
    connections: usize,
}

/// An IMAP server with one mail, whose UID is 5. `done` notes what it is asked for.
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
            // Nothing comes after it.
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

/// What a command finds.
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

/// The mailbox was read up to the mail before.
fn read_up_to_four() -> Cursor {
    Cursor(r#"{"mailbox":"agent@127.0.0.1","validity":1,"uid":4}"#.to_owned())
}

/// What is handed over first, whatever the connection does before.
async fn first(told: &mut UnboundedReceiver<Told>) -> (Vec<Event>, Option<Cursor>) {
    loop {
        match told.recv().await.unwrap() {
            Told::Admitted(events, cursor) if !events.is_empty() => return (events, cursor),
            Told::Link(_) | Told::Admitted(..) => {}
            other @ Told::Skipped(_) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_mail_that_the_server_does_not_give_out_at_once_is_read_later() {
    for (command, answer, cursor) in [
        ("UID FETCH 5 ", Some("NO [UNAVAILABLE] Try again later."), Some(read_up_to_four())),
        ("UID FETCH 5 ", None, Some(read_up_to_four())),
        ("UID FETCH 5:", Some("NO [UNAVAILABLE] Try again later."), Some(read_up_to_four())),
        ("SELECT", None, Some(read_up_to_four())),
        ("UID SEARCH", Some("NO [LIMIT] Slow down."), None),
        ("UID SEARCH", None, None),
    ] {
        let port = imap(Some(Fault { command, answer, connections: 1 }), &Seen::default()).await;
        let mailbox = channel(Some(server(port, "secret")), None, &open_world(None));
        let (sink, mut told) = Hand::new(99);
        let (events, _) = during(&mailbox, cursor, &sink, first(&mut told)).await;
        assert!(!events.is_empty(), "{command} {answer:?}");
        assert_eq!(texts(&events), ("m5@a.test".into(), "five".into()));
    }
}

/// How many minutes have passed for the mailbox.
static PASSED: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp::now() + SignedDuration::from_mins(PASSED.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_mail_that_the_server_refuses_for_long_is_skipped_and_named() {
    let (command, answer) = ("UID FETCH 5 ", Some("NO [SERVERBUG] Internal error occurred."));
    let port = imap(Some(Fault { command, answer, connections: usize::MAX }), &Seen::default()).await;
    let mut world = open_world(None);
    world.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &world);
    let (sink, mut told) = Hand::new(99);
    during(&mailbox, Some(read_up_to_four()), &sink, async {
        loop {
            match told.recv().await.unwrap() {
                Told::Link(Link::Down(_)) => PASSED.store(16, Ordering::Relaxed),
                Told::Link(_) | Told::Admitted(..) => {}
                Told::Skipped(Skipped { vendor_id, reason, .. }) => {
                    assert_eq!(PASSED.load(Ordering::Relaxed), 16, "it is asked for again");
                    assert!(vendor_id == "5" && reason.as_str().contains("refuses"), "{reason}");
                    break;
                }
            }
        }
        // The next one is read from here.
        let Some(Told::Admitted(events, Some(cursor))) = told.recv().await else { panic!("it stands still") };
        assert!(events.is_empty() && cursor.0.ends_with("\"uid\":5}"), "{cursor:?}");
    })
    .await;
}

/// What becomes of a mail whose answer is always this one: how it is named, and where the mailbox is read on.
async fn skipped(
    answer: Option<&'static str>,
    cursor: Cursor,
    done: &Seen<&'static str>,
) -> (Skipped, Cursor) {
    let port = imap(Some(Fault { command: "UID FETCH 5 ", answer, connections: usize::MAX }), done).await;
    let mut world = open_world(None);
    world.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &world);
    let (sink, mut told) = Hand::new(99);
    during(&mailbox, Some(cursor), &sink, async {
        let mut named = None;
        loop {
            match (told.recv().await.unwrap(), &named) {
                (Told::Link(Link::Down(_)), _) => PASSED.store(16, Ordering::Relaxed),
                (Told::Skipped(skipped), _) => named = Some(skipped),
                (Told::Admitted(_, Some(cursor)), Some(named)) => return (named.clone(), cursor),
                _ => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_mail_that_fails_twice_is_skipped_whatever_fails() {
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
        (Some("OK done"), "The mail server gives it without its text.", 1),
    ] {
        PASSED.store(0, Ordering::Relaxed);
        let done = Seen::default();
        let (named, cursor) = skipped(answer, read_up_to_four(), &done).await;
        assert_eq!((&*named.vendor_id, named.reason.as_str()), ("5", why));
        assert!(cursor.0.ends_with("\"uid\":5}"), "{cursor:?}");
        assert_eq!(done.lock().unwrap().iter().filter(|done| **done == "asked").count(), asked, "{why}");
    }
}

/// Where the mailbox is read on after the process has ended as soon as an attempt was stored, which is before the mail is looked at.
async fn interrupted(port: u16, cursor: Cursor) -> Cursor {
    let mut world = open_world(None);
    world.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &world);
    let (sink, mut told) = Hand::new(99);
    during(&mailbox, Some(cursor), &sink, async {
        loop {
            match told.recv().await.unwrap() {
                Told::Admitted(events, Some(cursor)) if cursor.0.contains("tried") => {
                    assert!(events.is_empty());
                    return cursor;
                }
                Told::Link(_) => {}
                other => panic!("{other:?}"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_mail_whose_reading_was_cut_off_twice_is_read() {
    let port = imap(None, &Seen::default()).await;
    let mut cursor = read_up_to_four();
    for _ in 0..2 {
        cursor = interrupted(port, cursor).await;
    }
    // The third attempt is not made at once.
    PASSED.store(3, Ordering::Relaxed);
    let mut world = open_world(None);
    world.clock = clock;
    let mailbox = channel(Some(server(port, "secret")), None, &world);
    let (sink, mut told) = Hand::new(99);
    let (events, cursor) = during(&mailbox, Some(cursor), &sink, first(&mut told)).await;
    assert_eq!(texts(&events), ("m5@a.test".into(), "five".into()));
    assert!(cursor.unwrap().0.ends_with("\"uid\":5}"));
}

#[tokio::test]
async fn a_mail_that_ended_the_process_three_times_is_skipped() {
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
async fn nobody_stops_listening_between_an_attempt_and_its_commit() {
    let port = imap(None, &Seen::default()).await;
    let mailbox = channel(Some(server(port, "secret")), None, &open_world(None));
    let sink = Watching::default();
    during(&mailbox, Some(read_up_to_four()), &sink, async {
        while sink.seen.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Whoever stops it waits for this.
        drop(sink.turn.lock().await);
    })
    .await;
    let seen = sink.seen.lock().unwrap();
    assert_eq!(*seen, [(0, true, true), (1, false, true)], "(events, is an attempt, is being read)");
}

#[tokio::test]
async fn skipped_mails_are_written_down_at_a_rate() {
    let dovecot = Dovecot::start().await;
    for n in 0..4 {
        dovecot.deliver(&format!("m{n}"), "Subject: Without a sender\n\nhi\n");
    }
    let mailbox = channel(Some(server(dovecot.address.port(), "secret")), None, &open_world(None));
    let (sink, mut told) = Hand::new(99);
    let begun = Instant::now();
    during(&mailbox, None, &sink, async {
        let mut skipped = 0;
        while skipped < 4 {
            skipped += usize::from(matches!(told.recv().await.unwrap(), Told::Skipped(_)));
        }
    })
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(300), "a mailbox can hold any number of them");
}

/// A sink that notes what it is given, and whether that is being read.
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

/// Memory that there is only after a while.
struct Late;

impl Room for Late {
    fn open(&self) -> Box<dyn Hold> {
        Box::new(Waits(true))
    }
}

struct Waits(bool);

impl Hold for Waits {
    fn grow(&mut self, _: usize) -> bool {
        !std::mem::take(&mut self.0)
    }

    fn shrink(&mut self, _: usize) {}
}

#[tokio::test]
async fn waiting_for_memory_costs_a_mail_no_attempt() {
    // The server does not wait.
    let answer = Some("* 1 FETCH (UID 5 BODY[] {1000000}\r\n");
    let port =
        imap(Some(Fault { command: "UID FETCH 5 ", answer, connections: usize::MAX }), &Seen::default())
            .await;
    let mut world = open_world(None);
    world.clock = clock;
    let config = EmailConfig { room: Arc::new(Late), ..config(Some(server(port, "secret")), None) };
    let mailbox = open(Config::Email(Box::new(config)), &world);
    let (sink, mut told) = Hand::new(99);
    during(&mailbox, Some(read_up_to_four()), &sink, async {
        let mut failed = 0;
        while failed < 3 {
            match told.recv().await.unwrap() {
                Told::Link(Link::Down(_)) => failed += 1,
                Told::Link(Link::Up) => {}
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
    let mailbox = channel(Some(server(port, "secret")), None, &open_world(None));
    let mut cursor = read_up_to_four();
    for _ in 0..3 {
        // There is room for the attempt only.
        let (full, mut told) = Hand::new(1);
        assert!(mailbox.listen(Some(cursor.clone()), &full).await.is_err());
        while let Ok(said) = told.try_recv() {
            if let Told::Admitted(events, Some(kept)) = said
                && events.is_empty()
            {
                cursor = kept;
            }
        }
        assert!(!cursor.0.contains("tried"), "{cursor:?}");
    }
}

/// A sink that takes its time with a mail: until the other mailbox could ask for its own.
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
async fn no_more_mails_are_read_at_a_time_than_there_is_memory_for() {
    let sink = Slow(Seen::default());
    let world = open_world(None);
    // A mail takes three times its size, less what is not counted: there is room for one of them.
    let (room, long) = (Memory::of(500 << 10), "long ".repeat(40 << 10));
    let mailbox = async || {
        let port = imap_with(&mail("m5", &long), None, &sink.0).await;
        let config = EmailConfig { room: Arc::clone(&room), ..config(Some(server(port, "secret")), None) };
        open(Config::Email(Box::new(config)), &world)
    };
    let (one, other) = (mailbox().await, mailbox().await);
    let both = during(&other, Some(read_up_to_four()), &sink, sink.until("admitted", 2));
    during(&one, Some(read_up_to_four()), &sink, both).await;
    let done = sink.0.lock().unwrap();
    let done: Vec<_> = done.iter().filter(|done| !matches!(**done, "listed" | "asked")).collect();
    assert_eq!(done, [&"read", &"admitted", &"read", &"admitted"]);
}
