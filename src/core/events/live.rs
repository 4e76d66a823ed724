//! Sends content to viewers while it arises.
//!
//! This is the one kind of news that carries content. It may be lost: viewers notice a hole in the positions. Each
//! viewer has a bounded queue. Between replicas each kind of content has a NOTIFY channel of its own, and is only sent
//! while another replica has announced a viewer.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    sync::{broadcast, mpsc},
    time::{Instant, MissedTickBehavior, interval},
};

use super::relay::{EVERY, LARGEST, SILENT};
use crate::{
    base::{bounds, ids::OrgId},
    core::Core,
};

/// How many pieces a viewer may fall behind. Everything watched holds this many slots, so that a viewer of many takes
/// little memory.
const BEHIND: usize = 256;

/// A piece of content.
pub trait Piece: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Identifies what is watched within its organization.
    type Of: Copy + Eq + Hash + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The channel's name in the database.
    const CHANNEL: &'static str;

    /// What the piece belongs to.
    fn key(&self) -> Key<Self>;

    /// The two halves of a piece that is too long for a message between replicas. `None` if it can't be split.
    fn halves(self) -> Option<(Self, Self)>;
}

/// What is watched.
pub type Key<P> = (OrgId, <P as Piece>::Of);

/// A message from one process to the others.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Message<P: Piece> {
    from: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    watched: Vec<Key<P>>,
    /// Whether each of `watched` has a new viewer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    are_new: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<P>,
}

enum Signal<P: Piece> {
    /// There is a new viewer.
    Viewer(Key<P>),
    Piece(Arc<P>),
}

type Rooms<P> = HashMap<Key<P>, broadcast::Sender<Arc<P>>>;

/// Distributes content of one kind to viewers.
pub struct Live<P: Piece> {
    rooms: Mutex<Rooms<P>>,
    /// What is watched on other replicas, and until when each announcement holds.
    elsewhere: Mutex<HashMap<Key<P>, Instant>>,
    arrivals: broadcast::Sender<Key<P>>,
    sender: mpsc::Sender<Signal<P>>,
    /// Taken by the relay.
    waiting: Mutex<Option<mpsc::Receiver<Signal<P>>>>,
}

impl<P: Piece> Default for Live<P> {
    fn default() -> Self {
        let (sender, waiting) = mpsc::channel(bounds::QUEUE);
        Self {
            rooms: Mutex::new(HashMap::new()),
            elsewhere: Mutex::new(HashMap::new()),
            arrivals: broadcast::Sender::new(bounds::QUEUE),
            sender,
            waiting: Mutex::new(Some(waiting)),
        }
    }
}

/// A viewer.
pub struct Watching<P: Piece> {
    /// `None` once it is dropped.
    pieces: Option<broadcast::Receiver<Arc<P>>>,
    live: Arc<Live<P>>,
    key: Key<P>,
}

/// New viewers, here and elsewhere.
pub struct Arrivals<P: Piece>(broadcast::Receiver<Key<P>>);

impl<P: Piece> Live<P> {
    #[must_use]
    pub fn watch(self: &Arc<Self>, org: OrgId, of: P::Of) -> Watching<P> {
        let key = (org, of);
        let pieces = self.rooms().entry(key).or_insert_with(|| broadcast::Sender::new(BEHIND)).subscribe();
        // Having no listeners is not an error.
        let _ = self.arrivals.send(key);
        let _ = self.sender.try_send(Signal::Viewer(key));
        Watching { pieces: Some(pieces), live: Arc::clone(self), key }
    }

    /// Every future viewer.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals<P> {
        Arrivals(self.arrivals.subscribe())
    }

    /// Whether anyone watches, here or elsewhere.
    #[must_use]
    pub fn is_watched(&self, org: OrgId, of: P::Of) -> bool {
        self.rooms().contains_key(&(org, of)) || self.is_watched_elsewhere((org, of))
    }

    /// All that is watched in an organization, here or elsewhere. An item may occur twice.
    #[must_use]
    pub fn watched_in(&self, org: OrgId) -> Vec<P::Of> {
        let now = Instant::now();
        let mut watched: Vec<Key<P>> = self.rooms().keys().copied().collect();
        let elsewhere = self.elsewhere.lock();
        watched.extend(elsewhere.iter().filter(|(_, until)| **until > now).map(|(key, _)| *key));
        watched.into_iter().filter(|(of_org, _)| *of_org == org).map(|(_, of)| of).collect()
    }

    /// Sends a piece to all viewers.
    pub fn publish(&self, piece: P) {
        let (key, piece) = (piece.key(), Arc::new(piece));
        self.show(&piece);
        if self.is_watched_elsewhere(key) {
            // Dropped if the queue is full.
            let _ = self.sender.try_send(Signal::Piece(piece));
        }
    }

    fn show(&self, piece: &Arc<P>) {
        if let Some(room) = self.rooms().get(&piece.key()) {
            let _ = room.send(Arc::clone(piece));
        }
    }

    fn is_watched_elsewhere(&self, key: Key<P>) -> bool {
        let mut elsewhere = self.elsewhere.lock();
        match elsewhere.get(&key) {
            Some(until) if *until > Instant::now() => true,
            Some(_) => {
                elsewhere.remove(&key);
                false
            }
            None => false,
        }
    }

    /// Handles a message from another process.
    pub(super) fn receive(&self, text: &str, own: u64) {
        let Ok(message) = muster_json::from_str::<Message<P>>(text) else { return };
        if message.from == own {
            return;
        }
        if !message.watched.is_empty() {
            let mut elsewhere = self.elsewhere.lock();
            let now = Instant::now();
            elsewhere.retain(|_, until| *until > now);
            elsewhere.extend(message.watched.iter().map(|key| (*key, now + SILENT)));
        }
        if message.are_new {
            for key in message.watched {
                let _ = self.arrivals.send(key);
            }
        }
        for piece in message.pieces {
            self.show(&Arc::new(piece));
        }
    }

    fn watched(&self) -> Vec<Key<P>> {
        self.rooms().keys().copied().collect()
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms<P>> {
        self.rooms.lock()
    }
}

impl<P: Piece> Watching<P> {
    /// The next piece. Some are left out for a viewer that is too slow. `None` when the hub is gone.
    pub async fn next(&mut self) -> Option<Arc<P>> {
        let pieces = self.pieces.as_mut()?;
        loop {
            match pieces.recv().await {
                Ok(piece) => return Some(piece),
                Err(broadcast::error::RecvError::Lagged(_)) => *pieces = pieces.resubscribe(),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl<P: Piece> Drop for Watching<P> {
    fn drop(&mut self) {
        let mut rooms = self.live.rooms();
        // Dropped while the rooms are locked, so that the second of two viewers leaving at once removes the room.
        drop(self.pieces.take());
        if rooms.get(&self.key).is_some_and(|room| room.receiver_count() == 0) {
            rooms.remove(&self.key);
        }
    }
}

impl<P: Piece> Arrivals<P> {
    /// The next viewer in this organization. `None` if some may have been missed.
    pub async fn next(&mut self, org: OrgId) -> Option<P::Of> {
        loop {
            match self.0.recv().await {
                Ok((of_org, of)) if of_org == org => return Some(of),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return None,
                // The hub is gone, and so is everyone else.
                Err(broadcast::error::RecvError::Closed) => std::future::pending::<()>().await,
            }
        }
    }
}

/// Sends this process's pieces, and what is watched here.
pub(super) async fn send<P: Piece>(core: &Core, live: &Live<P>, from: u64) {
    let waiting = live.waiting.lock().take();
    let Some(mut waiting) = waiting else { return };
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut signals = Vec::new();
    loop {
        let is_tick = tokio::select! {
            () = core.tasks.stopping.cancelled() => return,
            _ = tick.tick() => true,
            _ = waiting.recv_many(&mut signals, bounds::QUEUE) => false,
        };
        let (mut new, mut pieces) = (Vec::new(), Vec::new());
        for signal in signals.drain(..) {
            match signal {
                Signal::Viewer(key) => new.push(key),
                Signal::Piece(piece) => pieces.push((*piece).clone()),
            }
        }
        let all = if is_tick { live.watched() } else { Vec::new() };
        let messages = [announced::<P>(from, &new, true), announced::<P>(from, &all, false)].concat();
        for text in messages.into_iter().chain(packed(from, pieces)) {
            if let Err(error) = core.db.notify(P::CHANNEL, text).await {
                tracing::debug!(%error, "live.not_sent");
                break;
            }
        }
    }
}

/// The messages that announce what is watched.
fn announced<P: Piece>(from: u64, watched: &[Key<P>], are_new: bool) -> Vec<String> {
    // This many fit into a message.
    let parts = watched.chunks(150);
    let messages =
        parts.map(|part| Message::<P> { from, watched: part.to_vec(), are_new, pieces: Vec::new() });
    messages.filter_map(|message| serde_json::to_string(&message).ok()).collect()
}

/// Packs pieces into messages that are small enough.
fn packed<P: Piece>(from: u64, pieces: Vec<P>) -> Vec<String> {
    let mut messages = Vec::new();
    let mut pack = Message::<P> { from, watched: Vec::new(), are_new: false, pieces: Vec::new() };
    let (mut bytes, mut pieces) = (0, VecDeque::from(pieces));
    while let Some(piece) = pieces.pop_front() {
        let size = serde_json::to_string(&piece).map_or(usize::MAX, |text| text.len() + 1);
        if size > LARGEST - 60 {
            let Some((first, second)) = piece.halves() else { continue };
            pieces.push_front(second);
            pieces.push_front(first);
            continue;
        }
        if bytes + size > LARGEST - 60 {
            messages.extend(serde_json::to_string(&pack).ok());
            (pack.pieces, bytes) = (Vec::new(), 0);
        }
        bytes += size;
        pack.pieces.push(piece);
    }
    if !pack.pieces.is_empty() {
        messages.extend(serde_json::to_string(&pack).ok());
    }
    messages
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use futures::FutureExt;

    use super::*;
    use crate::{
        base::ids::{AgentId, ConversationId},
        core::events::{Delta, LogLines},
    };

    fn delta(conversation: i64, offset: i64, text: &str) -> Delta {
        let (org, conversation) = (OrgId(1), ConversationId(conversation));
        Delta { org, conversation, message: "1.2".to_owned(), thinking: false, offset, text: text.to_owned() }
    }

    #[tokio::test]
    async fn viewers_get_their_conversations_text_and_slow_ones_miss_some() {
        let deltas = Arc::new(Live::<Delta>::default());
        let mut viewer = deltas.watch(OrgId(1), ConversationId(5));
        let mut stranger = deltas.watch(OrgId(2), ConversationId(5));
        deltas.publish(delta(5, 0, "a"));
        deltas.publish(delta(6, 0, "b"));
        assert_eq!(viewer.next().await.unwrap().text, "a");
        assert!(viewer.next().now_or_never().is_none() && stranger.next().now_or_never().is_none());
        for offset in 0..10_000 {
            deltas.publish(delta(5, offset, "x"));
        }
        deltas.publish(delta(5, 0, "after"));
        let mut heard = 0;
        while viewer.next().now_or_never().is_some() {
            heard += 1;
        }
        assert!(heard <= BEHIND, "{heard}");
        drop((viewer, stranger));
        assert!(deltas.rooms().is_empty() && !deltas.is_watched(OrgId(1), ConversationId(5)));
    }

    #[test]
    fn two_viewers_who_leave_at_once_leave_no_room_behind() {
        let deltas = Arc::new(Live::<Delta>::default());
        let together = Barrier::new(2);
        for _ in 0..2_000 {
            let viewers = [(); 2].map(|()| deltas.watch(OrgId(1), ConversationId(5)));
            thread::scope(|scope| {
                for viewer in viewers {
                    let together = &together;
                    scope.spawn(move || {
                        together.wait();
                        drop(viewer);
                    });
                }
            });
            assert!(deltas.rooms().is_empty());
        }
    }

    /// What a replica says about its viewers.
    fn announcement<P: Piece>(watched: &[Key<P>], are_new: bool) -> String {
        announced::<P>(2, watched, are_new).remove(0)
    }

    /// The messages to other replicas so far.
    fn sent<P: Piece>(live: &Live<P>) -> Vec<String> {
        let mut waiting = live.waiting.lock().take().unwrap();
        let mut published = Vec::new();
        while let Ok(next) = waiting.try_recv() {
            if let Signal::Piece(piece) = next {
                published.push((*piece).clone());
            }
        }
        packed(u64::MAX, published)
    }

    #[test]
    fn what_is_watched_elsewhere_is_sent_there_in_small_pieces() {
        let deltas = Arc::new(Live::<Delta>::default());
        deltas.publish(delta(5, 0, "unseen"));
        let said = announcement::<Delta>(&[(OrgId(1), ConversationId(5))], false);
        deltas.receive(&said, 2);
        assert!(!deltas.is_watched(OrgId(1), ConversationId(5)), "it has said so itself");
        deltas.receive(&said, 1);
        assert!(deltas.is_watched(OrgId(1), ConversationId(5)));
        assert!(!deltas.is_watched(OrgId(2), ConversationId(5)));
        let texts = ["\u{1}".repeat(4096), "é".repeat(2048), "plain".to_owned()];
        for text in &texts {
            deltas.publish(delta(5, 0, text));
        }
        let messages = sent(&deltas);
        assert!(messages.len() > 1 && messages.iter().all(|text| text.len() <= LARGEST));
        let other = Arc::new(Live::<Delta>::default());
        let mut viewer = other.watch(OrgId(1), ConversationId(5));
        for message in &messages {
            other.receive(message, 1);
        }
        let (mut heard, mut at) = (String::new(), 0);
        while let Some(Some(delta)) = viewer.next().now_or_never() {
            if delta.offset == 0 {
                at = 0;
            }
            assert_eq!(delta.offset, at, "no text is missing");
            at += i64::try_from(delta.text.len()).unwrap();
            heard.push_str(&delta.text);
        }
        assert_eq!(heard, texts.concat());
    }

    #[tokio::test]
    async fn each_viewer_of_a_log_is_announced_and_batches_keep_positions() {
        use muster_protocol::frame::{LogLine, LogSource};

        let logs = Arc::new(Live::<LogLines>::default());
        let mut arrivals = logs.arrivals();
        let (org, agent) = (OrgId(1), AgentId(7));
        let _here = [logs.watch(OrgId(2), AgentId(8)), logs.watch(org, agent), logs.watch(org, agent)];
        assert_eq!((arrivals.next(org).await, arrivals.next(org).await), (Some(agent), Some(agent)));
        let key = (org, AgentId(9));
        logs.receive(&announcement::<LogLines>(&[key], false), 1);
        logs.receive(&announcement::<LogLines>(&[key], true), 1);
        assert_eq!(arrivals.next(org).await, Some(AgentId(9)));
        assert!(arrivals.next(org).now_or_never().is_none(), "a repetition announces no one");
        let mut watched = logs.watched_in(org);
        watched.sort_unstable();
        assert_eq!(watched, [agent, AgentId(9)]);
        let line = |text: String| LogLine { time: 1, source: LogSource::Stderr, text };
        let lines: Vec<LogLine> = (0..7).map(|n| line(format!("{n}{}", "\"".repeat(2047)))).collect();
        let batch = LogLines { org, agent: AgentId(9), begun_at: 4, position: 11, lines };
        logs.publish(batch.clone());
        logs.publish(LogLines { position: 18, lines: vec![line("\u{1}".repeat(4096))], ..batch.clone() });
        let messages = sent(&logs);
        assert!(messages.len() > 1 && messages.iter().all(|text| text.len() <= LARGEST));
        let other = Arc::new(Live::<LogLines>::default());
        let mut viewer = other.watch(org, AgentId(9));
        for message in &messages {
            other.receive(message, 1);
        }
        let mut heard = Vec::new();
        while let Some(Some(part)) = viewer.next().now_or_never() {
            assert_eq!(part.position, 11 + i64::try_from(heard.len()).unwrap(), "no line is missing");
            heard.extend(part.lines.clone());
        }
        assert_eq!(heard, batch.lines, "a line that fits no message is a gap");
    }
}
