//! News from replica to replica, by PostgreSQL's LISTEN and NOTIFY.
//!
//! After a commit its events wait for the next batch: NOTIFY inside the change's transaction would let one commit at a time
//! through. A process sends one batch at a time and numbers them, and says every two seconds where it is. So whoever listens
//! knows when a batch is missing, when a process has gone silent, and when their own connection was lost: then everybody here
//! is told to read again.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sqlx::postgres::PgListener;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};

use super::{Event, Hub};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
    },
    core::{Core, sealing::random_bytes},
};

/// The channel's name in the database.
const CHANNEL: &str = "muster_events";
/// The largest message, in bytes; PostgreSQL takes 8,000.
const LARGEST: usize = 7_500;
/// How often a process says where it is.
const EVERY: Duration = Duration::from_secs(2);
/// After how long a process that has not said goodbye counts as gone silent.
const SILENT: Duration = Duration::from_secs(6);
/// How long to wait before a lost connection is made again.
const AGAIN: Duration = Duration::from_secs(1);
/// How many events may wait to be sent.
const WAITING: usize = 10_000;

/// An event on its way: organization, kind, what happened, id, and what it is part of.
type Sent = (OrgId, RecordKind, ChangeOp, i64, Option<i64>);

/// What a process tells the others.
#[derive(Debug, Serialize, Deserialize)]
struct Message {
    /// Which process: random.
    from: u64,
    /// How many batches it has sent, this one included.
    batch: u64,
    /// The events of this batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<Sent>,
    /// The process ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    bye: bool,
}

/// Events on their way to other replicas, where somebody relays them.
#[derive(Default)]
pub(super) struct Outgoing {
    sender: OnceLock<mpsc::Sender<Event>>,
    /// How many there was no room for: a batch that is left out, for those who listen.
    lost: AtomicU64,
}

impl Outgoing {
    pub fn add(&self, event: Event) {
        if let Some(sender) = self.sender.get()
            && sender.try_send(event).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Relays news between this process and the other replicas until the service stops. Nothing to do on SQLite, which has one
/// process.
pub async fn relay(core: Arc<Core>) {
    let Some(options) = core.db.postgres() else { return };
    let (sender, events) = mpsc::channel(WAITING);
    let _ = core.events.outgoing.sender.set(sender);
    let from = u64::from_be_bytes(random_bytes());
    let stopping = core.tasks.stopping.clone();
    let work = async { tokio::join!(listen(&core, options, from), send(&core, from, events)) };
    // Neither ends by itself.
    let _ = stopping.run_until_cancelled(Box::pin(work)).await;
    let bye = Message { from, batch: 0, events: Vec::new(), bye: true };
    // Whoever does not hear it takes this process for silent, and reads again.
    let _ = timeout(AGAIN, notify(&core, &bye)).await;
}

/// Sends what has happened here.
async fn send(core: &Core, from: u64, mut events: mpsc::Receiver<Event>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut message = Message { from, batch: 0, events: Vec::new(), bye: false };
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            _ = events.recv_many(&mut waiting, WAITING) => {}
            _ = tick.tick() => {}
        }
        if core.events.outgoing.lost.swap(0, Ordering::Relaxed) > 0 {
            message.batch += 1;
        }
        for batch in batches(&waiting) {
            message.events = batch;
            message.batch += u64::from(!message.events.is_empty());
            // A batch that can't be sent is one that is left out: the next one tells.
            if let Err(error) = notify(core, &message).await {
                tracing::warn!(%error, "events.not_sent");
            }
        }
        waiting.clear();
    }
}

/// The events in messages that are small enough; one without events if there are none.
fn batches(events: &[Event]) -> Vec<Vec<Sent>> {
    /// More than one event of the longest names and numbers takes.
    const LONGEST: usize = 100;
    if events.is_empty() {
        return vec![Vec::new()];
    }
    let told = |event: &Event| (event.org, event.kind, event.op, event.id, event.of);
    events.chunks(LARGEST / LONGEST).map(|batch| batch.iter().map(told).collect()).collect()
}

async fn notify(core: &Core, message: &Message) -> anyhow::Result<()> {
    let text = serde_json::to_string(message)?;
    core.db.execute("SELECT pg_notify($1, $2)", vec![CHANNEL.into(), text.into()]).await?;
    Ok(())
}

/// Hears what has happened elsewhere.
async fn listen(core: &Core, options: sqlx::postgres::PgConnectOptions, own: u64) {
    loop {
        if let Err(error) = hear(core, options.clone(), own).await {
            tracing::warn!(%error, "events.not_heard");
        }
        core.events.resync();
        sleep(AGAIN).await;
    }
}

/// Listens on one connection, for as long as it lasts.
async fn hear(core: &Core, options: sqlx::postgres::PgConnectOptions, own: u64) -> Result<(), sqlx::Error> {
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1).connect_with(options).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(CHANNEL).await?;
    // What came before is not known.
    core.events.resync();
    let mut others = Others::default();
    loop {
        match timeout(EVERY, listener.try_recv()).await {
            Ok(Ok(Some(heard))) => {
                let Ok(message) = serde_json::from_str::<Message>(heard.payload()) else {
                    // Of a version that speaks otherwise.
                    core.events.resync();
                    continue;
                };
                if message.from != own {
                    take(&core.events, &mut others, message);
                }
            }
            // The connection was lost.
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }
        if others.are_silent(Instant::now()) {
            core.events.resync();
        }
    }
}

fn take(hub: &Hub, others: &mut Others, message: Message) {
    if others.has_gap(&message, Instant::now()) {
        hub.resync();
    }
    for (org, kind, op, id, of) in message.events {
        hub.tell(Event { org, kind, id, op, of });
    }
}

/// Where the other processes are.
#[derive(Default)]
struct Others(HashMap<u64, (u64, Instant)>);

impl Others {
    /// Whether something was left out before this message.
    fn has_gap(&mut self, message: &Message, now: Instant) -> bool {
        if message.bye {
            self.0.remove(&message.from);
            return false;
        }
        let sent = message.batch - u64::from(!message.events.is_empty());
        let before = self.0.insert(message.from, (message.batch, now));
        before.is_some_and(|(known, _)| known != sent)
    }

    /// Whether one has gone silent; each is told of once.
    fn are_silent(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, (_, heard)| now.duration_since(*heard) < SILENT);
        self.0.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(batch: u64, events: usize) -> Message {
        let event = (OrgId(1), RecordKind::Agent, ChangeOp::Updated, 7, None);
        Message { from: 1, batch, events: vec![event; events], bye: false }
    }

    #[test]
    fn a_message_of_the_longest_events_is_small_enough() {
        let longest = i64::MAX;
        let kind = *RecordKind::ALL.iter().max_by_key(|kind| kind.as_str().len()).unwrap();
        let event =
            Event { org: OrgId(longest), kind, id: longest, op: ChangeOp::Created, of: Some(longest) };
        let batches = batches(&vec![event; 1000]);
        assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 1000);
        for events in batches {
            let message = Message { from: u64::MAX, batch: u64::MAX, events, bye: false };
            assert!(serde_json::to_string(&message).unwrap().len() <= LARGEST);
        }
    }

    #[test]
    fn a_gap_is_a_batch_that_is_left_out_or_a_process_that_falls_silent() {
        let (mut others, mut now) = (Others::default(), Instant::now());
        assert!(!others.has_gap(&message(3, 2), now), "what came before somebody listened is no gap");
        assert!(!others.has_gap(&message(3, 0), now) && !others.has_gap(&message(4, 1), now));
        assert!(others.has_gap(&message(6, 1), now), "batch 5 is missing");
        assert!(others.has_gap(&message(7, 0), now), "it has sent one that was not heard");
        assert!(!others.are_silent(now));
        now += SILENT;
        assert!(others.are_silent(now) && !others.are_silent(now));
        assert!(!others.has_gap(&message(9, 1), now));
        assert!(!others.has_gap(&Message { bye: true, ..message(9, 0) }, now));
        assert!(!others.are_silent(now + SILENT), "it has said goodbye");
    }
}
