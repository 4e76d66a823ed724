//! Work beside requests, for which a shutdown waits.

use std::time::Duration;

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// What runs beside the requests of a process.
#[derive(Default)]
pub struct Tasks {
    tracker: TaskTracker,
    /// Cancelled when the service begins to shut down.
    pub stopping: CancellationToken,
}

impl Tasks {
    /// Starts work that a shutdown waits for.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(work);
    }

    /// A shutdown waits for as long as the token lives: for work that the HTTP server has spawned.
    pub fn working(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Says that it is time to stop, and waits for what was begun, but no longer than `grace`.
    pub async fn finish(&self, grace: Duration) {
        self.stopping.cancel();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            tracing::warn!("shutdown.work_left_unfinished");
        }
    }
}
