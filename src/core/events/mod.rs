//! Change notifications for subscribers: each to one organization, and across replicas.
//!
//! ```text
//! commit ─► Hub::publish ─► the organization's room ─► its subscribers
//!                │                    ▲
//!                └─► relay ─ NOTIFY ──┘ from every other replica (PostgreSQL)
//! ```
//!
//! News only carry ids; the records that a subscriber may see are read when the news arrive. Each organization has its
//! own [`Room`] and each subscriber a bounded queue in it, so a burst in one organization affects no other. A
//! subscriber who falls behind, and everyone after a gap between replicas, receives [`News::Resync`] and reads again,
//! so nothing goes stale unnoticed.
//!
//! - `shared_lookups.rs`: lookups that all subscribers of one event need, made once for all of them.
//! - `relay.rs`: from replica to replica.
//! - `live.rs`: the exception: content (`piece.rs`), for viewers who are present. `deltas.rs`: the text of messages that
//!   are being written; `logs.rs`: lines of agents' logs.

mod deltas;
mod event;
mod live;
mod logs;
mod piece;
mod relay;
mod shared_lookups;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

pub use self::{
    deltas::Delta,
    event::{Event, Publish, merged},
    live::{Arrivals, Live, Watching},
    logs::LogLines,
    relay::{relay, send_rest},
    shared_lookups::Memo,
};
use self::{
    relay::{Outgoing, OutgoingNews},
    shared_lookups::Memos,
};
use super::access::Caller;
use crate::base::{
    bounds,
    ids::{OrgId, ServerId},
};

/// An item that a subscriber receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A record has changed.
    Changed(Event),
    /// Something may have been missed: read everything again.
    Resync,
    /// No change, but the subscriber's rights must be checked again.
    Recheck,
}

/// Distributes news to subscribers.
#[derive(Default)]
pub struct Hub {
    /// The text of messages that are being written.
    pub deltas: Arc<Live<Delta>>,
    /// Lines of agents' logs.
    pub logs: Arc<Live<LogLines>>,
    rooms: Mutex<HashMap<OrgId, Arc<Room>>>,
    outgoing: Outgoing,
}

/// The subscribers of one organization.
struct Room {
    org: OrgId,
    news: broadcast::Sender<(u64, News)>,
    sent: AtomicU64,
    places: AtomicU64,
    callers: Mutex<HashMap<u64, Caller>>,
    memos: Memos,
}

/// A subscription to an organization. Dropping it unsubscribes.
pub struct Subscription {
    hub: Arc<Hub>,
    room: Arc<Room>,
    place: u64,
    news: broadcast::Receiver<(u64, News)>,
}

impl Publish for Hub {
    fn publish(&self, event: Event) {
        Self::publish(self, event);
    }
}

impl Hub {
    /// Notifies subscribers here and on every other replica.
    pub fn publish(&self, event: Event) {
        self.notify_here(event);
        self.outgoing.add(OutgoingNews::Event(event));
    }

    /// Wakes the host of a server that is connected to another replica.
    pub fn wake_host(&self, server: ServerId) {
        self.outgoing.add(OutgoingNews::Host(server));
    }

    #[must_use]
    pub fn subscribe(self: &Arc<Self>, org: OrgId, caller: &Caller) -> Subscription {
        let mut rooms = self.rooms();
        let room = Arc::clone(rooms.entry(org).or_insert_with(|| Arc::new(Room::new(org))));
        let place = room.places.fetch_add(1, Ordering::Relaxed);
        room.callers().insert(place, caller.clone());
        let news = room.news.subscribe();
        drop(rooms);
        Subscription { hub: Arc::clone(self), room, place, news }
    }

    /// Makes every subscription check its caller's rights again.
    pub fn recheck(&self) {
        self.notify_all(News::Recheck);
    }

    /// Notifies the subscribers in this process.
    fn notify_here(&self, event: Event) {
        let room = self.rooms().get(&event.org).cloned();
        if let Some(room) = room {
            room.send(News::Changed(event));
        }
    }

    /// Notifies all subscribers here that something may have been missed.
    fn resync(&self) {
        self.notify_all(News::Resync);
    }

    fn notify_all(&self, news: News) {
        let rooms: Vec<_> = self.rooms().values().cloned().collect();
        for room in rooms {
            room.send(news);
        }
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<OrgId, Arc<Room>>> {
        self.rooms.lock()
    }
}

impl Room {
    fn new(org: OrgId) -> Self {
        Self {
            org,
            news: broadcast::Sender::new(bounds::QUEUE),
            sent: AtomicU64::new(0),
            places: AtomicU64::new(0),
            callers: Mutex::default(),
            memos: Memos::default(),
        }
    }

    fn send(&self, news: News) {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        // Having no subscribers is not an error.
        let _ = self.news.send((number, news));
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<u64, Caller>> {
        self.callers.lock()
    }
}

impl Subscription {
    /// The next news, with the memo shared by everyone who receives them. `None` when the hub is gone.
    pub async fn next(&mut self) -> Option<(News, Arc<Memo>)> {
        let (number, news) = match self.news.recv().await {
            Ok(numbered) => numbered,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                // A subscriber that reads everything again does not need the news still waiting.
                self.news = self.news.resubscribe();
                // A burst makes many fall behind at once: they share the memo of the latest event. Later events bring
                // memos of their own.
                let latest = self.room.sent.load(Ordering::Relaxed).saturating_sub(1);
                return Some((News::Resync, self.room.memos.get(latest)));
            }
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        Some((news, self.room.memos.get(number)))
    }

    /// The memo for subscribers that check again after this process's n-th invalidation of credentials.
    #[must_use]
    pub fn forgotten(&self, n: u64) -> Arc<Memo> {
        self.room.memos.get(u64::MAX - n)
    }

    /// Everyone currently subscribed to the organization.
    #[must_use]
    pub fn callers(&self) -> Vec<Caller> {
        self.room.callers().values().cloned().collect()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // The same lock order as in `subscribe`: first the rooms.
        let mut rooms = self.hub.rooms();
        let mut callers = self.room.callers();
        callers.remove(&self.place);
        if callers.is_empty() {
            rooms.remove(&self.room.org);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::enums::{ChangeOp, RecordKind};

    fn event(org: i64, id: i64) -> Event {
        Event::new(OrgId(org), ChangeOp::Updated, RecordKind::Agent, id)
    }

    #[tokio::test]
    async fn all_who_fall_behind_share_a_memo_that_no_later_event_has() {
        let hub = Arc::new(Hub::default());
        let mut behind: Vec<_> = (0..3).map(|_| hub.subscribe(OrgId(1), &Caller::System)).collect();
        for id in 0..2_000 {
            hub.publish(event(1, id));
        }
        let (_, first) = behind[0].next().await.unwrap();
        for subscription in &mut behind[1..] {
            let (news, memo) = subscription.next().await.unwrap();
            // If this test was held up, the first one's memo is too old to be shared.
            assert!(news == News::Resync && (Arc::ptr_eq(&memo, &first) || !first.is_fresh()));
        }
        hub.publish(event(1, 7));
        let (news, memo) = behind[0].next().await.unwrap();
        assert!(news == News::Changed(event(1, 7)) && !Arc::ptr_eq(&memo, &first));
    }

    #[tokio::test]
    async fn a_burst_reaches_no_other_organization_and_ends_nothing() {
        let hub = Arc::new(Hub::default());
        let mut ours = hub.subscribe(OrgId(1), &Caller::System);
        let mut theirs = hub.subscribe(OrgId(2), &Caller::System);
        for id in 0..10_000 {
            hub.publish(event(1, id));
        }
        hub.publish(event(2, 7));
        assert_eq!(theirs.next().await.unwrap().0, News::Changed(event(2, 7)));
        assert_eq!(ours.next().await.unwrap().0, News::Resync);
        hub.publish(event(1, 8));
        assert_eq!(ours.next().await.unwrap().0, News::Changed(event(1, 8)));
    }

    #[tokio::test]
    async fn a_room_is_kept_as_long_as_somebody_is_in_it() {
        let hub = Arc::new(Hub::default());
        let one = hub.subscribe(OrgId(1), &Caller::System);
        let two = hub.subscribe(OrgId(1), &Caller::Anonymous);
        assert_eq!((hub.rooms().len(), one.callers().len()), (1, 2));
        drop(one);
        assert_eq!((hub.rooms().len(), two.callers().len()), (1, 1));
        drop(two);
        assert_eq!(hub.rooms().len(), 0);
    }
}
