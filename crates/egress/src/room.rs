//! Memory for what agents send and models answer: a gate has so much of it, and all gates of a host together. A request waits
//! for room before it is read, so that no agent can fill the host's memory.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::bounds;

/// The memory of one gate, and of all gates of a host, in KiB: what agents could fill.
const OF_GATE: usize = 128 * 1024;
const OF_HOST: usize = 4 * OF_GATE;

/// The room of a gate.
#[derive(Clone, Debug)]
pub struct Room {
    gate: Arc<Semaphore>,
    host: Arc<Semaphore>,
}

/// A part of it, for as long as the value lives.
#[derive(Debug)]
pub struct Held {
    gate: OwnedSemaphorePermit,
    host: OwnedSemaphorePermit,
}

/// The room of a host.
pub fn of_host() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(OF_HOST))
}

impl Room {
    /// A gate's share of its host's room.
    pub fn new(host: Arc<Semaphore>) -> Self {
        Self { gate: Arc::new(Semaphore::new(OF_GATE)), host }
    }

    /// Waits for room for so many bytes. None if there was none in time.
    pub async fn take(&self, bytes: usize) -> Option<Held> {
        let some = permits(bytes);
        let taking = async {
            // The gate's own first: who waits for it holds nothing of the host's.
            let gate = Arc::clone(&self.gate).acquire_many_owned(some).await.ok()?;
            let host = Arc::clone(&self.host).acquire_many_owned(some).await.ok()?;
            Some(Held { gate, host })
        };
        timeout(bounds::WAIT, taking).await.ok().flatten()
    }

    /// Room for so many bytes, if there is some now.
    pub fn try_take(&self, bytes: usize) -> Option<Held> {
        let some = permits(bytes);
        let gate = Arc::clone(&self.gate).try_acquire_many_owned(some).ok()?;
        let host = Arc::clone(&self.host).try_acquire_many_owned(some).ok()?;
        Some(Held { gate, host })
    }
}

impl Held {
    /// Gives back what is not needed for so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let some = permits(bytes) as usize;
        for permit in [&mut self.gate, &mut self.host] {
            let unused = permit.num_permits().saturating_sub(some);
            drop(permit.split(unused));
        }
    }

    /// Takes more.
    pub fn add(&mut self, more: Self) {
        self.gate.merge(more.gate);
        self.host.merge(more.host);
    }
}

/// Bytes that hold their room until the last part of them is gone.
pub fn kept(text: String, held: Held) -> Bytes {
    struct Kept(String, #[expect(dead_code, reason = "held")] Held);
    impl AsRef<[u8]> for Kept {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Bytes::from_owner(Kept(text, held))
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_given_back_with_the_last_byte() {
        let room = Room::new(of_host());
        let mut all = room.take(OF_GATE * 1024).await.unwrap();
        assert!(room.try_take(1).is_none());
        all.shrink(2048);
        let bytes = kept("text".to_owned(), all);
        assert!(room.try_take((OF_GATE - 2) * 1024).is_some());
        assert!(room.try_take((OF_GATE - 1) * 1024).is_none());
        let part = bytes.slice(1..2);
        drop(bytes);
        assert!(room.try_take(OF_GATE * 1024).is_none());
        drop(part);
        assert!(room.try_take(OF_GATE * 1024).is_some());
    }

    #[tokio::test]
    async fn gates_share_the_room_of_their_host() {
        let host = of_host();
        let gates: Vec<Room> = (0..=OF_HOST / OF_GATE).map(|_| Room::new(Arc::clone(&host))).collect();
        let held: Vec<Option<Held>> = gates.iter().map(|gate| gate.try_take(OF_GATE * 1024)).collect();
        assert_eq!(held.iter().flatten().count(), OF_HOST / OF_GATE);
    }
}
