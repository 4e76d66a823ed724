//! Streams the text of messages to viewers while it is written.
//!
//! Deltas are the one kind of news that carries content, so that text appears as it is written. They may be lost: a
//! viewer that sees a hole in the offsets reads the message. Each viewer has a bounded queue. Between replicas they
//! have a NOTIFY channel of their own, and are only sent while another replica has announced a viewer of the
//! conversation.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{broadcast, mpsc},
    time::{Instant, MissedTickBehavior, interval},
};

use super::relay::{EVERY, LARGEST, SILENT};
use crate::{
    base::{
        bounds,
        ids::{ConversationId, OrgId},
    },
    core::Core,
};

/// The channel's name in the database.
pub(super) const CHANNEL: &str = "muster_deltas";
/// How many deltas a viewer may fall behind. Each watched conversation holds this many slots, so that a viewer of many
/// takes little memory.
const BEHIND: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub org: OrgId,
    pub conversation: ConversationId,
    /// Identifies the message within the launch of its agent.
    pub message: String,
    pub thinking: bool,
    /// Where the text begins in the message, in UTF-8 bytes.
    pub offset: i64,
    pub text: String,
}

/// A message from one process to the others.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Message {
    from: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    watched: Vec<ConversationId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deltas: Vec<Delta>,
}

enum DeltaSignal {
    /// A conversation has its first viewer.
    Watched,
    Delta(Arc<Delta>),
}

type Key = (OrgId, ConversationId);

/// Distributes deltas to viewers.
pub struct Deltas {
    rooms: Mutex<HashMap<Key, broadcast::Sender<Arc<Delta>>>>,
    /// The conversations watched on other replicas, and until when each announcement holds.
    elsewhere: Mutex<HashMap<ConversationId, Instant>>,
    sender: mpsc::Sender<DeltaSignal>,
    /// Taken by the relay.
    waiting: Mutex<Option<mpsc::Receiver<DeltaSignal>>>,
}

impl Default for Deltas {
    fn default() -> Self {
        let (sender, waiting) = mpsc::channel(bounds::QUEUE);
        Self {
            rooms: Mutex::default(),
            elsewhere: Mutex::default(),
            sender,
            waiting: Mutex::new(Some(waiting)),
        }
    }
}

/// A viewer of a conversation.
pub struct Watching {
    /// `None` once it is dropped.
    deltas: Option<broadcast::Receiver<Arc<Delta>>>,
    hub: Arc<super::Hub>,
    key: Key,
}

impl Deltas {
    /// Whether anyone watches the conversation, here or elsewhere.
    #[must_use]
    pub fn are_watched(&self, org: OrgId, conversation: ConversationId) -> bool {
        self.rooms().contains_key(&(org, conversation)) || self.are_watched_elsewhere(conversation)
    }

    /// Sends a delta to all viewers.
    pub fn publish(&self, delta: Delta) {
        let delta = Arc::new(delta);
        self.show(&delta);
        if self.are_watched_elsewhere(delta.conversation) {
            // Dropped if the queue is full.
            let _ = self.sender.try_send(DeltaSignal::Delta(delta));
        }
    }

    fn show(&self, delta: &Arc<Delta>) {
        if let Some(room) = self.rooms().get(&(delta.org, delta.conversation)) {
            let _ = room.send(Arc::clone(delta));
        }
    }

    fn are_watched_elsewhere(&self, conversation: ConversationId) -> bool {
        let mut elsewhere = self.elsewhere.lock();
        match elsewhere.get(&conversation) {
            Some(until) if *until > Instant::now() => true,
            Some(_) => {
                elsewhere.remove(&conversation);
                false
            }
            None => false,
        }
    }

    /// Handles a message from another process.
    pub(super) fn receive(&self, text: &str, own: u64) {
        let Ok(message) = muster_json::from_str::<Message>(text) else { return };
        if message.from == own {
            return;
        }
        if !message.watched.is_empty() {
            let mut elsewhere = self.elsewhere.lock();
            let now = Instant::now();
            elsewhere.retain(|_, until| *until > now);
            elsewhere.extend(message.watched.into_iter().map(|conversation| (conversation, now + SILENT)));
        }
        for delta in message.deltas {
            self.show(&Arc::new(delta));
        }
    }

    fn watched(&self) -> Vec<ConversationId> {
        self.rooms().keys().map(|(_, conversation)| *conversation).collect()
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<Key, broadcast::Sender<Arc<Delta>>>> {
        self.rooms.lock()
    }
}

impl super::Hub {
    #[must_use]
    pub fn watch_deltas(self: &Arc<Self>, org: OrgId, conversation: ConversationId) -> Watching {
        let key = (org, conversation);
        let mut rooms = self.deltas.rooms();
        let is_first = !rooms.contains_key(&key);
        let deltas = rooms.entry(key).or_insert_with(|| broadcast::Sender::new(BEHIND)).subscribe();
        drop(rooms);
        if is_first {
            let _ = self.deltas.sender.try_send(DeltaSignal::Watched);
        }
        Watching { deltas: Some(deltas), hub: Arc::clone(self), key }
    }
}

impl Watching {
    /// The next delta. Some are left out for a viewer that is too slow. `None` when the hub is gone.
    pub async fn next(&mut self) -> Option<Arc<Delta>> {
        let deltas = self.deltas.as_mut()?;
        loop {
            match deltas.recv().await {
                Ok(delta) => return Some(delta),
                Err(broadcast::error::RecvError::Lagged(_)) => *deltas = deltas.resubscribe(),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut rooms = self.hub.deltas.rooms();
        // Dropped while the rooms are locked, so that the second of two viewers leaving at once removes the room.
        drop(self.deltas.take());
        if rooms.get(&self.key).is_some_and(|room| room.receiver_count() == 0) {
            rooms.remove(&self.key);
        }
    }
}

/// Sends this process's deltas, and the conversations watched here.
pub(super) async fn send(core: &Core, from: u64) {
    let waiting = core.events.deltas.waiting.lock().take();
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
        let watched = if is_tick || signals.iter().any(|signal| matches!(signal, DeltaSignal::Watched)) {
            core.events.deltas.watched()
        } else {
            Vec::new()
        };
        let deltas = signals.drain(..).filter_map(|signal| match signal {
            DeltaSignal::Delta(delta) => Some(delta),
            DeltaSignal::Watched => None,
        });
        // This many fit into a message.
        let watched = watched.chunks(300);
        let watched = watched.map(|part| Message { from, watched: part.to_vec(), deltas: Vec::new() });
        for text in
            watched.filter_map(|message| serde_json::to_string(&message).ok()).chain(packed(from, deltas))
        {
            if let Err(error) = core.db.notify(CHANNEL, text).await {
                tracing::debug!(%error, "deltas.not_sent");
                break;
            }
        }
    }
}

/// Packs deltas into messages that are small enough.
fn packed(from: u64, deltas: impl Iterator<Item = Arc<Delta>>) -> Vec<String> {
    let mut messages = Vec::new();
    let (mut pack, mut bytes) = (Message { from, ..Message::default() }, 0);
    let mut pieces: VecDeque<Delta> = deltas.map(|delta| (*delta).clone()).collect();
    while let Some(piece) = pieces.pop_front() {
        let size = serde_json::to_string(&piece).map_or(usize::MAX, |text| text.len() + 1);
        if size > LARGEST - 60 {
            let Some((first, second)) = halves(piece) else { continue };
            pieces.push_front(second);
            pieces.push_front(first);
            continue;
        }
        if bytes + size > LARGEST - 60 {
            messages.extend(serde_json::to_string(&pack).ok());
            (pack.deltas, bytes) = (Vec::new(), 0);
        }
        bytes += size;
        pack.deltas.push(piece);
    }
    if !pack.deltas.is_empty() {
        messages.extend(serde_json::to_string(&pack).ok());
    }
    messages
}

/// The two halves of a delta whose text is too long; `None` if the text isn't what makes it long.
fn halves(delta: Delta) -> Option<(Delta, Delta)> {
    let middle = (delta.text.len() / 2..delta.text.len()).find(|at| delta.text.is_char_boundary(*at))?;
    if middle == 0 {
        return None;
    }
    let second = Delta {
        offset: delta.offset.saturating_add(middle.cast_signed() as i64),
        text: delta.text[middle..].to_owned(),
        message: delta.message.clone(),
        ..delta
    };
    Some((Delta { text: delta.text[..middle].to_owned(), ..delta }, second))
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use futures::FutureExt;

    use super::*;
    use crate::core::events::Hub;

    fn delta(conversation: i64, offset: i64, text: &str) -> Delta {
        let (org, conversation) = (OrgId(1), ConversationId(conversation));
        Delta { org, conversation, message: "1.2".to_owned(), thinking: false, offset, text: text.to_owned() }
    }

    #[tokio::test]
    async fn viewers_get_their_conversations_text_and_slow_ones_miss_some() {
        let hub = Arc::new(Hub::default());
        let mut viewer = hub.watch_deltas(OrgId(1), ConversationId(5));
        let mut stranger = hub.watch_deltas(OrgId(2), ConversationId(5));
        hub.deltas.publish(delta(5, 0, "a"));
        hub.deltas.publish(delta(6, 0, "b"));
        assert_eq!(viewer.next().await.unwrap().text, "a");
        assert!(viewer.next().now_or_never().is_none() && stranger.next().now_or_never().is_none());
        for offset in 0..10_000 {
            hub.deltas.publish(delta(5, offset, "x"));
        }
        hub.deltas.publish(delta(5, 0, "after"));
        let mut heard = 0;
        while viewer.next().now_or_never().is_some() {
            heard += 1;
        }
        assert!(heard <= BEHIND, "{heard}");
        drop((viewer, stranger));
        assert!(hub.deltas.rooms().is_empty() && !hub.deltas.are_watched(OrgId(1), ConversationId(5)));
    }

    #[test]
    fn two_viewers_who_leave_at_once_leave_no_room_behind() {
        let hub = Arc::new(Hub::default());
        let together = Barrier::new(2);
        for _ in 0..2_000 {
            let viewers = [(); 2].map(|()| hub.watch_deltas(OrgId(1), ConversationId(5)));
            thread::scope(|scope| {
                for viewer in viewers {
                    let together = &together;
                    scope.spawn(move || {
                        together.wait();
                        drop(viewer);
                    });
                }
            });
            assert!(hub.deltas.rooms().is_empty());
        }
    }

    #[test]
    fn what_is_watched_elsewhere_is_sent_there_in_small_pieces() {
        let hub = Arc::new(Hub::default());
        hub.deltas.publish(delta(5, 0, "unseen"));
        let said =
            serde_json::to_string(&Message { from: 2, watched: vec![ConversationId(5)], deltas: vec![] });
        hub.deltas.receive(said.as_ref().unwrap(), 2);
        assert!(!hub.deltas.are_watched(OrgId(1), ConversationId(5)), "it has said so itself");
        hub.deltas.receive(&said.unwrap(), 1);
        assert!(hub.deltas.are_watched(OrgId(1), ConversationId(5)));
        let texts = ["\u{1}".repeat(4096), "é".repeat(2048), "plain".to_owned()];
        for text in &texts {
            hub.deltas.publish(delta(5, 0, text));
        }
        let mut waiting = hub.deltas.waiting.lock().take().unwrap();
        let mut published = Vec::new();
        while let Ok(next) = waiting.try_recv() {
            if let DeltaSignal::Delta(delta) = next {
                published.push(delta);
            }
        }
        let messages = packed(u64::MAX, published.into_iter());
        assert!(messages.len() > 1 && messages.iter().all(|text| text.len() <= LARGEST));
        let other = Arc::new(Hub::default());
        let mut viewer = other.watch_deltas(OrgId(1), ConversationId(5));
        for message in &messages {
            other.deltas.receive(message, 1);
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
}
