//! Memory budget for agents' requests and models' answers, per gate and for all gates of a host. A request waits for
//! memory before it is read, so no agent can fill the host's memory.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::bounds;

/// Budgets of one gate and of all gates of a host, in KiB: agents could fill the memory.
const OF_GATE: usize = 128 * 1024;
const OF_HOST: usize = 4 * OF_GATE;

/// The budget of a gate.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    gate: Arc<Semaphore>,
    host: Arc<Semaphore>,
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub struct MemoryReservation {
    gate: OwnedSemaphorePermit,
    host: OwnedSemaphorePermit,
}

pub fn of_host() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(OF_HOST))
}

impl MemoryBudget {
    /// A gate's share of its host's budget.
    pub fn new(host: Arc<Semaphore>) -> Self {
        Self { gate: Arc::new(Semaphore::new(OF_GATE)), host }
    }

    /// Waits for this many bytes. `None` on a timeout.
    pub async fn take(&self, bytes: usize) -> Option<MemoryReservation> {
        let some = permits(bytes);
        let taking = async {
            // The gate's own share first, so that a waiting gate holds nothing of the host's.
            let gate = Arc::clone(&self.gate).acquire_many_owned(some).await.ok()?;
            let host = Arc::clone(&self.host).acquire_many_owned(some).await.ok()?;
            Some(MemoryReservation { gate, host })
        };
        timeout(bounds::WAIT, taking).await.ok().flatten()
    }

    /// Reserves bytes if they are free now.
    pub fn try_take(&self, bytes: usize) -> Option<MemoryReservation> {
        let some = permits(bytes);
        let gate = Arc::clone(&self.gate).try_acquire_many_owned(some).ok()?;
        let host = Arc::clone(&self.host).try_acquire_many_owned(some).ok()?;
        Some(MemoryReservation { gate, host })
    }
}

impl MemoryReservation {
    /// Releases all but this many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let some = permits(bytes) as usize;
        for permit in [&mut self.gate, &mut self.host] {
            let unused = permit.num_permits().saturating_sub(some);
            drop(permit.split(unused));
        }
    }

    /// Merges another reservation.
    pub fn add(&mut self, more: Self) {
        self.gate.merge(more.gate);
        self.host.merge(more.host);
    }
}

/// Bytes that hold their reservation until their last clone is dropped.
pub fn into_bytes(text: String, held: MemoryReservation) -> Bytes {
    struct HeldText(String, #[expect(dead_code, reason = "held")] MemoryReservation);
    impl AsRef<[u8]> for HeldText {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Bytes::from_owner(HeldText(text, held))
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_given_back_with_the_last_byte() {
        let memory = MemoryBudget::new(of_host());
        let mut all = memory.take(OF_GATE * 1024).await.unwrap();
        assert!(memory.try_take(1).is_none());
        all.shrink(2048);
        let bytes = into_bytes("text".to_owned(), all);
        assert!(memory.try_take((OF_GATE - 2) * 1024).is_some());
        assert!(memory.try_take((OF_GATE - 1) * 1024).is_none());
        let part = bytes.slice(1..2);
        drop(bytes);
        assert!(memory.try_take(OF_GATE * 1024).is_none());
        drop(part);
        assert!(memory.try_take(OF_GATE * 1024).is_some());
    }

    #[tokio::test]
    async fn gates_share_the_room_of_their_host() {
        let host = of_host();
        let gates: Vec<MemoryBudget> =
            (0..=OF_HOST / OF_GATE).map(|_| MemoryBudget::new(Arc::clone(&host))).collect();
        let held: Vec<Option<MemoryReservation>> =
            gates.iter().map(|gate| gate.try_take(OF_GATE * 1024)).collect();
        assert_eq!(held.iter().flatten().count(), OF_HOST / OF_GATE);
    }
}
