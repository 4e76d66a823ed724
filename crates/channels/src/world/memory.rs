//! How much of what strangers send a process holds at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So much memory, for all channels of a process.
#[derive(Clone, Debug)]
pub struct Memory {
    free: Arc<Semaphore>,
    kib: u32,
}

impl Memory {
    /// So many KiB.
    pub fn new(kib: u32) -> Self {
        Self { free: Arc::new(Semaphore::new(kib as usize)), kib }
    }

    /// Waits until so many bytes are free, and holds them until it is dropped. Nothing takes more than all, so each has its turn.
    pub(crate) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).min(self.kib);
        Arc::clone(&self.free).acquire_many_owned(kib).await.ok()
    }
}
