//! Servers that stall while memory is held, and mailboxes that wait for memory. Uses the tests' clock.

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, BufReader, DuplexStream, duplex},
    time::sleep,
};

use super::*;
use crate::contract::MemoryGrant;

/// The length of a mail. It takes three times that, apart from a free allowance.
const LONG: usize = 200_000;
/// Maximum memory of a mail.
const TAKEN: usize = 3 * LONG;

impl Stream for DuplexStream {}

/// The memory shared by all organizations.
#[derive(Clone)]
struct Pool(Arc<Mutex<usize>>);

impl Pool {
    fn of(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(bytes)))
    }

    fn free(&self) -> usize {
        *self.0.lock().unwrap()
    }

    fn add(&self, bytes: usize) {
        *self.0.lock().unwrap() += bytes;
    }
}

impl MemoryBudget for Pool {
    fn open(&self) -> Box<dyn MemoryGrant> {
        Box::new(Part { pool: self.clone(), held: 0 })
    }
}

struct Part {
    pool: Pool,
    held: usize,
}

impl MemoryGrant for Part {
    fn grow(&mut self, bytes: usize) -> bool {
        let mut free = self.pool.0.lock().unwrap();
        let fits = *free >= bytes;
        if fits {
            *free -= bytes;
            self.held += bytes;
        }
        fits
    }

    fn shrink(&mut self, bytes: usize) {
        self.pool.add(bytes);
        self.held -= bytes;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pool.add(self.held);
    }
}

/// A mailbox whose server gives these answers to the first commands, and then is silent or gone.
#[expect(clippy::disallowed_methods, reason = "no service runs here")]
fn mailbox(room: &dyn MemoryBudget, answers: Vec<String>, stays: bool) -> Mailbox {
    let (ours, theirs) = duplex(4 << 20);
    tokio::spawn(async move {
        let mut stream = BufReader::new(theirs);
        for answer in answers {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let tag = line.split(' ').next().unwrap();
            stream.write_all(answer.replace("TAG", tag).as_bytes()).await.unwrap();
        }
        if stays {
            pending::<()>().await;
        }
    });
    Mailbox { stream: Box::new(ours), responses: ResponseReader::new(room), tags: 0, is_more: false }
}

/// A server's response with a mail, cut short. 19 bytes follow the mail.
fn mail(bytes: usize, without: usize) -> String {
    let mut answer =
        format!("* 1 FETCH (UID 5 BODY[] {{{bytes}}}\r\n{})\r\nTAG OK fetched\r\n", "x".repeat(bytes));
    answer.truncate(answer.len() - without);
    answer
}

#[tokio::test(start_paused = true)]
async fn a_stalled_server_releases_its_memory() {
    // Within the mail, at its end, and before the completion.
    for without in [LONG / 2, 19, 10] {
        let pool = Pool::of(2 * TAKEN);
        // Two organizations' servers stall. The third one's mail has to wait for their memory.
        let stalled = [(); 2].map(|()| mailbox(&pool, vec![mail(LONG, without)], true));
        let [one, two] = stalled.map(|mut stalled| async move {
            let failed = stalled.fetch(5, "", 40 << 20).await.unwrap_err();
            assert_eq!(failed.to_string(), "it sends a mail too slowly");
            assert!(!stalled.is_our_fault(&failed));
        });
        let third = async {
            sleep(Duration::from_secs(1)).await;
            assert!(pool.free() < TAKEN, "both hold memory: {}", pool.free());
            let begun = Instant::now();
            let mut third = mailbox(&pool, vec![mail(2 * LONG, 0)], true);
            let body = third.fetch(5, "", 2 * LONG as u64).await.unwrap().unwrap();
            assert_eq!(body.len(), 2 * LONG);
            assert!(begun.elapsed() < Duration::from_secs(11), "it waited for {:?}", begun.elapsed());
        };
        tokio::join!(one, two, third);
        assert_eq!(pool.free(), 2 * TAKEN);
    }
}

#[tokio::test(start_paused = true)]
async fn no_memory_is_held_during_the_next_command() {
    let pool = Pool::of(TAKEN);
    let mut mailbox = mailbox(&pool, vec![mail(LONG, 0)], true);
    drop(mailbox.fetch(5, "", LONG as u64).await.unwrap());
    assert!(pool.free() < TAKEN);
    let command = mailbox.run("UID STORE 5 +FLAGS.SILENT (\\Seen)", |_| {});
    let watched = async {
        sleep(Duration::from_secs(1)).await;
        pool.free()
    };
    tokio::select! {
        _ = command => panic!("nothing is answered"),
        free = watched => assert_eq!(free, TAKEN),
    }
}

/// Frees memory every 50 seconds, so that it takes longer than a server's limit.
async fn makes_room(pool: &Pool, bytes: usize) {
    loop {
        sleep(Duration::from_secs(50)).await;
        pool.add(bytes);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_memory_is_not_the_servers_time() {
    let (pool, begun) = (Pool::of(0), Instant::now());
    // Each of the three steps waits for memory.
    let length = 3 * (640 << 10);
    let mut mailbox = mailbox(&pool, vec![mail(length, 0)], true);
    let body = tokio::select! {
        body = mailbox.fetch(5, "", 0) => body.unwrap().unwrap(),
        () = makes_room(&pool, length) => unreachable!(),
    };
    assert_eq!(body.len(), length);
    assert!(begun.elapsed() > SILENCE, "it waited for {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn errors_after_waiting_for_memory_are_ours() {
    let garbage = "* 1 FETCH (X {100000}\r\n".to_owned() + &"x".repeat(100_000) + " garbage\r\n";
    for (answer, stays, expected, is_ours) in [
        (mail(LONG, LONG / 2), false, "the connection is lost", true),
        (mail(LONG, LONG / 2), true, "it sends a mail too slowly", true),
        (garbage, true, "its answer can't be understood", false),
    ] {
        let pool = Pool::of(0);
        let mut mailbox = mailbox(&pool, vec![answer], stays);
        let failed = tokio::select! {
            failed = mailbox.fetch(5, "", LONG as u64) => failed.unwrap_err(),
            () = makes_room(&pool, TAKEN) => unreachable!(),
        };
        assert_eq!((failed.to_string(), mailbox.is_our_fault(&failed)), (expected.to_owned(), is_ours));
    }
    let mut mailbox = mailbox(&Pool::of(0), vec![mail(LONG, 0)], true);
    let failed = mailbox.fetch(5, "", LONG as u64).await.unwrap_err();
    assert_eq!(failed.to_string(), "too many mails are being read at the moment");
    assert!(mailbox.is_our_fault(&failed));
}
