//! Relays change events and wake-ups between replicas, with PostgreSQL's LISTEN and NOTIFY.
//!
//! Events are sent in batches after their commit: a NOTIFY inside the transaction would serialize commits. A process
//! sends one batch at a time, numbers its batches, and announces its position every two seconds. So a listener notices
//! when a batch is missing, when a process has gone silent, and when its own connection was lost. It then makes all
//! subscribers of its own process read again.
//!
//! A batch also names servers whose hosts must be woken, whichever replica they are connected to. The same connection
//! receives content for present viewers (`live.rs`), on channels of its own.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Delta, Event, LogLines, live, piece::Piece as _};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, RecordKind},
        ids::{OrgId, ServerId, UserId},
    },
    core::{Core, sealing::random_bytes},
};

/// The channel's name in the database.
const CHANNEL: &str = "muster_events";
/// The largest message, in bytes; PostgreSQL accepts 8,000.
pub(super) const LARGEST: usize = 7_500;
/// How often a process announces its position, and what is watched there.
pub(super) const EVERY: Duration = Duration::from_secs(2);
/// How long a process may send nothing, not even a goodbye, before it counts as dead or unreachable.
pub(super) const SILENT: Duration = Duration::from_secs(6);
/// How many events may wait to be sent while the database is slow or away.
const WAITING: usize = 10_000;

/// An event on the wire: organization, kind, operation, id, parent record, and the only person to notify.
type Sent = (OrgId, RecordKind, ChangeOp, i64, Option<i64>, Option<UserId>);

/// A message from one process to the others.
#[derive(Debug, Serialize, Deserialize)]
struct Message {
    /// The process: a random number.
    from: u64,
    /// How many batches it has sent, including this one.
    batch: u64,
    /// The events in this batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<Sent>,
    /// The servers whose hosts must be woken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<ServerId>,
    /// The process is shutting down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    bye: bool,
}

impl Message {
    /// Whether it counts as a batch.
    fn is_batch(&self) -> bool {
        !self.events.is_empty() || !self.hosts.is_empty()
    }
}

/// News for the other processes.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutgoingNews {
    /// A change.
    Event(Event),
    /// The host of this server must be woken.
    Host(ServerId),
}

/// The news waiting to be relayed.
pub(super) struct Outgoing {
    sender: mpsc::Sender<OutgoingNews>,
    /// Taken by the relay.
    waiting: Mutex<Option<mpsc::Receiver<OutgoingNews>>>,
    /// How many messages did not fit into the queue. A skipped batch number reveals the loss to listeners.
    lost: AtomicU64,
}

impl Default for Outgoing {
    fn default() -> Self {
        let (sender, waiting) = mpsc::channel(WAITING);
        Self { sender, waiting: Mutex::new(Some(waiting)), lost: AtomicU64::new(0) }
    }
}

impl Outgoing {
    pub fn add(&self, news: OutgoingNews) {
        if self.sender.try_send(news).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_receiver(&self) -> Option<mpsc::Receiver<OutgoingNews>> {
        self.waiting.lock().take()
    }
}

/// Relays news between this process and the other replicas: receives news until the service stops, and sends news until
/// the last request has finished. Does nothing on SQLite, where there is only one process.
pub async fn relay(core: Arc<Core>) {
    // Taken on SQLite too, so that nothing accumulates.
    let Some(events) = core.events.outgoing.take_receiver() else { return };
    if core.db.servers().is_none() {
        return;
    }
    let from = u64::from_be_bytes(random_bytes());
    let listening = core.tasks.stopping.run_until_cancelled(Box::pin(listen(&core, from)));
    tokio::join!(
        listening,
        send(&core, from, events),
        live::send(&core, &core.events.deltas, from),
        live::send(&core, &core.events.logs, from),
    );
}

/// Sends the news of a process without a relay: a command that changes something and ends.
pub async fn send_rest(core: &Core) {
    let Some(mut events) = core.events.outgoing.take_receiver() else { return };
    if events.is_empty() || core.db.servers().is_none() {
        return;
    }
    let mut waiting = Vec::new();
    events.recv_many(&mut waiting, WAITING).await;
    for (events, hosts) in batches(&waiting) {
        // Each message poses as a separate process that says goodbye at once, so that listeners see no gap.
        let message =
            Message { from: u64::from_be_bytes(random_bytes()), batch: 1, events, hosts, bye: true };
        if let Err(error) = notify(core, &message).await {
            tracing::warn!(%error, "events.not_sent");
        }
    }
}

/// Sends this process's events, and a goodbye at the end.
async fn send(core: &Core, from: u64, mut events: mpsc::Receiver<OutgoingNews>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut message = Message { from, batch: 0, events: Vec::new(), hosts: Vec::new(), bye: false };
    let (mut waiting, mut is_last) = (Vec::new(), false);
    while !is_last {
        tokio::select! {
            biased;
            _ = events.recv_many(&mut waiting, WAITING) => {}
            () = core.tasks.ending.cancelled() => is_last = true,
            _ = tick.tick() => {}
        }
        if core.events.outgoing.lost.swap(0, Ordering::Relaxed) > 0 {
            message.batch += 1;
        }
        for batch in batches(&waiting) {
            (message.events, message.hosts) = batch;
            message.batch += u64::from(message.is_batch());
            // A failed batch is not sent again: the number of the next one reveals the gap.
            if let Err(error) = notify(core, &message).await {
                tracing::warn!(%error, "events.not_sent");
            }
        }
        waiting.clear();
    }
    // A listener that misses the goodbye, or a batch before it, reads again.
    let bye = Message { events: Vec::new(), hosts: Vec::new(), bye: true, ..message };
    let _ = timeout(bounds::RETRY, notify(core, &bye)).await;
}

/// Splits news into messages small enough for NOTIFY. Without news, returns one empty message, which announces the
/// position.
fn batches(news: &[OutgoingNews]) -> Vec<(Vec<Sent>, Vec<ServerId>)> {
    if news.is_empty() {
        return vec![Default::default()];
    }
    let split = |batch: &[OutgoingNews]| {
        let (mut events, mut hosts) = (Vec::new(), Vec::new());
        for news in batch {
            match news {
                OutgoingNews::Event(event) => {
                    events.push((event.org, event.kind, event.op, event.id, event.of, event.only));
                }
                OutgoingNews::Host(server) => hosts.push(*server),
            }
        }
        (events, hosts)
    };
    // No event takes 120 bytes.
    news.chunks(LARGEST / 120).map(split).collect()
}

async fn notify(core: &Core, message: &Message) -> anyhow::Result<()> {
    let text = serde_json::to_string(message)?;
    Ok(core.db.notify(CHANNEL, text).await?)
}

/// Receives the other processes' events.
async fn listen(core: &Core, own: u64) {
    loop {
        if let Err(error) = listen_once(core, own).await {
            tracing::warn!(%error, "events.not_heard");
        }
        core.events.resync();
        sleep(bounds::RETRY).await;
    }
}

/// Listens on one connection for as long as it lasts.
async fn listen_once(core: &Core, own: u64) -> Result<(), sqlx::Error> {
    let Some(servers) = core.db.servers() else { return Ok(()) };
    let channels = [CHANNEL, Delta::CHANNEL, LogLines::CHANNEL];
    let connecting = timeout(SILENT, servers.listen(&channels));
    let (mut listener, replaced) = connecting.await.map_err(|_| sqlx::Error::PoolTimedOut)??;
    let is_replaced = || replaced.as_ref().is_some_and(CancellationToken::is_cancelled);
    // Earlier messages were missed.
    core.events.resync();
    let mut peers = Peers::new(Instant::now());
    // A connection that does not deliver our own messages is dead, even if it looks alive.
    let mut heard_own = Instant::now();
    while heard_own.elapsed() < SILENT && !is_replaced() {
        let wait = EVERY.min(SILENT.saturating_sub(heard_own.elapsed()));
        match timeout(wait, listener.try_recv()).await {
            Ok(Ok(Some(heard))) if heard.channel() == Delta::CHANNEL => {
                core.events.deltas.receive(heard.payload(), own);
            }
            Ok(Ok(Some(heard))) if heard.channel() == LogLines::CHANNEL => {
                core.events.logs.receive(heard.payload(), own);
            }
            Ok(Ok(Some(heard))) => {
                let Ok(message) = muster_json::from_str::<Message>(heard.payload()) else {
                    // From a version with another format.
                    core.events.resync();
                    continue;
                };
                if message.from == own {
                    heard_own = Instant::now();
                } else {
                    handle_message(core, &mut peers, message);
                }
            }
            // The connection was lost.
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }
        if peers.are_silent(Instant::now()) {
            core.events.resync();
        }
    }
    Ok(())
}

fn handle_message(core: &Core, peers: &mut Peers, message: Message) {
    let hub = &core.events;
    if peers.has_gap(&message, Instant::now()) {
        hub.resync();
    }
    for (org, kind, op, id, of, only) in message.events {
        hub.notify_here(Event { org, kind, id, op, of, only });
    }
    for server in message.hosts {
        core.hosts.wake(server);
    }
}

/// The positions of the other processes.
struct Peers {
    /// When we began to listen.
    since: Instant,
    known: HashMap<u64, Peer>,
}

struct Peer {
    batch: u64,
    heard: Instant,
    is_silent: bool,
}

impl Peers {
    fn new(since: Instant) -> Self {
        Self { since, known: HashMap::new() }
    }

    /// Whether anything is missing before this message.
    fn has_gap(&mut self, message: &Message, now: Instant) -> bool {
        let sent = message.batch.saturating_sub(u64::from(message.is_batch()));
        let peer = Peer { batch: message.batch, heard: now, is_silent: false };
        let before = if message.bye {
            self.known.remove(&message.from)
        } else {
            self.known.insert(message.from, peer)
        };
        // A process that was running when we began to listen has announced itself within `SILENT`; a later one starts
        // at batch 0.
        before.map_or(sent > 0 && now.duration_since(self.since) > SILENT, |before| before.batch != sent)
    }

    /// Whether a process has gone silent; reports each one once. Its position is kept for an hour, because it may come
    /// back.
    fn are_silent(&mut self, now: Instant) -> bool {
        self.known.retain(|_, peer| now.duration_since(peer.heard) < Duration::from_hours(1));
        let silent = self.known.values_mut().filter(|peer| !peer.is_silent);
        let silent = silent.filter(|peer| now.duration_since(peer.heard) >= SILENT);
        silent.map(|peer| peer.is_silent = true).count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(batch: u64, events: usize) -> Message {
        let event = (OrgId(1), RecordKind::Agent, ChangeOp::Updated, 7, None, None);
        Message { from: 1, batch, events: vec![event; events], hosts: Vec::new(), bye: false }
    }

    #[test]
    fn a_message_of_the_longest_events_is_small_enough() {
        let longest = i64::MAX;
        let kind = *RecordKind::ALL.iter().max_by_key(|kind| kind.as_str().len()).unwrap();
        let event = Event {
            org: OrgId(longest),
            kind,
            id: longest,
            op: ChangeOp::Created,
            of: Some(longest),
            only: Some(UserId(longest)),
        };
        let batches = batches(
            &[vec![OutgoingNews::Event(event); 1000], vec![OutgoingNews::Host(ServerId(longest)); 500]]
                .concat(),
        );
        assert_eq!(batches.iter().map(|(events, hosts)| events.len() + hosts.len()).sum::<usize>(), 1500);
        for (events, hosts) in batches {
            let message = Message { from: u64::MAX, batch: u64::MAX, events, hosts, bye: false };
            assert!(serde_json::to_string(&message).unwrap().len() <= LARGEST);
        }
    }

    #[test]
    fn a_gap_is_a_missing_batch_or_a_silent_process() {
        let mut now = Instant::now();
        let mut peers = Peers::new(now);
        assert!(!peers.has_gap(&message(3, 2), now), "batches from before we listened are not a gap");
        assert!(!peers.has_gap(&message(3, 0), now) && !peers.has_gap(&message(4, 1), now));
        assert!(peers.has_gap(&message(6, 1), now), "batch 5 is missing");
        assert!(peers.has_gap(&message(7, 0), now), "it sent a batch that we did not receive");
        assert!(!peers.are_silent(now));
        now += SILENT;
        assert!(peers.are_silent(now) && !peers.are_silent(now));
        assert!(peers.has_gap(&message(9, 1), now), "it is back, and batch 8 is missing");
        assert!(!peers.has_gap(&Message { bye: true, ..message(9, 0) }, now));
        assert!(!peers.are_silent(now + SILENT), "it has said goodbye");
        now += SILENT;
        assert!(!peers.has_gap(&message(1, 1), now), "a new process");
        assert!(peers.has_gap(&Message { bye: true, ..message(2, 0) }, now), "batch 2 is missing");
        assert!(peers.has_gap(&message(2, 1), now), "nothing was heard of its first batch");
    }
}
