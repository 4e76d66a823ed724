//! Background work that a shutdown waits for.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::base::{bounds, ids::OrgId};

/// Runs work on the blocking pool, limited by `permits`. The permit moves along, so an abandoned request still holds it
/// until its work is done.
///
/// # Errors
/// The work panicked, or the process is ending.
pub async fn blocking<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<T> {
    let permit = Arc::clone(permits).acquire_owned().await?;
    let worked = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    Ok(worked.await?)
}

/// Runs CPU work whose duration depends on a tenant's text: on the blocking pool, on at most half of the processors,
/// and one piece at a time for each organization, so that others wait for one piece of its work and not for all.
pub struct CpuPool {
    permits: Arc<Semaphore>,
    by_org: Mutex<HashMap<OrgId, Weak<Semaphore>>>,
}

/// An organization's slot in the [`CpuPool`].
pub struct CpuSlot {
    _permit: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Default for CpuPool {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self { permits: Arc::new(Semaphore::new((processors / 2).max(1))), by_org: Mutex::default() }
    }
}

impl CpuPool {
    /// Waits until no other work of the organization is running, and then for a processor. Measure the work's time from
    /// then on.
    ///
    /// # Errors
    /// The process is ending.
    pub async fn slot(&self, org: OrgId) -> anyhow::Result<CpuSlot> {
        let own = self.semaphore_of(org).acquire_owned().await?;
        let permit = Arc::clone(&self.permits).acquire_owned().await?;
        Ok(CpuSlot { _permit: permit, _own: own })
    }

    /// An organization's own semaphore. Those that no one holds are dropped.
    fn semaphore_of(&self, org: OrgId) -> Arc<Semaphore> {
        let mut by_org = self.by_org.lock();
        if let Some(own) = by_org.get(&org).and_then(Weak::upgrade) {
            return own;
        }
        by_org.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(1));
        by_org.insert(org, Arc::downgrade(&own));
        own
    }
}

impl CpuSlot {
    /// Runs the work now. The slot is held until the work is done, even if its caller has gone.
    ///
    /// # Errors
    /// As [`blocking`].
    pub async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let worked = tokio::task::spawn_blocking(move || {
            let _slot = self;
            work()
        });
        Ok(worked.await?)
    }
}

/// A process's background work.
#[derive(Default)]
pub struct Tasks {
    tracker: TaskTracker,
    /// Cancelled when the service starts to shut down.
    pub stopping: CancellationToken,
    last: TaskTracker,
    /// Cancelled when everything else has finished.
    pub ending: CancellationToken,
}

impl Tasks {
    /// Starts work that a shutdown waits for.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(work);
    }

    /// Starts work that continues until everything else has finished.
    pub fn spawn_last(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.last.spawn(work);
    }

    /// A shutdown waits while the token lives: for work that the HTTP server has spawned.
    pub fn hold_shutdown(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Signals the shutdown, and waits for work in progress, but no longer than `grace`.
    pub async fn finish(&self, grace: Duration) {
        self.stopping.cancel();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            tracing::warn!("shutdown.work_left_unfinished");
        }
        self.ending.cancel();
        self.last.close();
        if tokio::time::timeout(bounds::BRIEF_WAIT, self.last.wait()).await.is_err() {
            tracing::warn!("shutdown.work_left_unfinished");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_is_free_when_there_is_a_processor() {
        let pool = CpuPool { permits: Arc::new(Semaphore::new(1)), by_org: Mutex::default() };
        let first = pool.slot(OrgId(1)).await.unwrap();
        let other = pool.slot(OrgId(2));
        tokio::pin!(other);
        assert!(futures::poll!(&mut other).is_pending(), "the processor is taken");
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let mut work = Box::pin(first.run(move || ends.recv().is_ok()));
        assert!(futures::poll!(&mut work).is_pending() && futures::poll!(&mut other).is_pending());
        // No one waits for the work now, but it continues.
        drop(work);
        assert!(futures::poll!(&mut other).is_pending());
        drop(end);
        other.await.unwrap();
    }
}
