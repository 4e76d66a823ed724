//! Background work that a shutdown waits for.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// How long the last work may take after everything else has finished.
const LAST: Duration = Duration::from_secs(2);

/// Runs work on the blocking pool, as much at a time as there are permits. The permit moves along, so an abandoned request still
/// holds it until its work is done.
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

    /// Starts work that goes on until everything else has finished.
    pub fn spawn_last(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.last.spawn(work);
    }

    /// A shutdown waits while the token lives: for work that the HTTP server has spawned.
    pub fn working(&self) -> TaskTrackerToken {
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
        if tokio::time::timeout(LAST, self.last.wait()).await.is_err() {
            tracing::warn!("shutdown.work_left_unfinished");
        }
    }
}
