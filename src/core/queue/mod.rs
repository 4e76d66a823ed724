//! The queue: work that is written in the transaction of the change that causes it, so that neither exists without the
//! other, and done afterwards: mails, deliveries through channels, approvals in chats, events to endpoints.
//!
//! Each kind of [`Job`] has a table of its own. A row waits until it is due, is claimed, run, and settled:
//!
//! - **Order.** Rows with the same order key are run one after the other; rows with other keys do not wait for them.
//! - **Lanes.** Jobs that can hold each other up, such as those of one channel, have a lane: one task of a process that
//!   runs the lane's due jobs, so that a vendor that hangs does not hold up others. Replicas share lanes.
//! - **Claims.** A claim is one conditional UPDATE that raises the attempts and postpones the row for the lease: the
//!   longest run plus [`CLAIM_MARGIN`]. If the replica dies, the row is due again.
//! - **Retries.** A failed job waits, longer each time ([`backoff`]), until it is given up.
//! - **Waking.** A commit wakes the queue of its own process ([`wake_after`]). A poll of all tables every second finds
//!   the rest, and the jobs of crashed processes.

pub mod backoff;
mod lanes;
mod send_limit;

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::sync::watch;

pub use self::{
    lanes::{LaneKey, OLDEST_DUE, Queue},
    send_limit::{LimitReached, SendLimits, SendPermit},
};
use super::{
    Core,
    resource_limits::Resource,
    store::{Transaction, sql::row},
    telemetry::metrics,
};
use crate::base::{problem::Result, time::Timestamp};

/// How much longer than a run its claim lasts: time to record the outcome.
pub const CLAIM_MARGIN: Duration = Duration::from_secs(30);

/// The maximum number of jobs of a lane that run at a time.
pub const MAX_CONCURRENT: i64 = 4;

/// The interval of the poll: a longer wait needs no wake.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Work of one kind, each a row of the kind's table.
pub trait Job: Sized + Send + 'static {
    /// Its name in metrics and the log.
    const KIND: &'static str;
    /// Names a lane.
    type Key: Clone + Send + Sync + 'static;
    /// The state that a lane's jobs share.
    type Lane: Send + Sync;
    /// A permit within a vendor's limits, held during a run.
    type Permit: Send;

    /// The id of its row, for the log.
    fn id(&self) -> i64;

    /// Opens a lane. `None` if it is closed at the moment.
    fn open(core: &Arc<Core>, key: &Self::Key) -> impl Future<Output = Result<Option<Self::Lane>>> + Send;

    /// The due jobs of a lane, each the first of its order key: as many as may run at a time.
    fn due(lane: &Self::Lane) -> impl Future<Output = Result<Vec<Self>>> + Send;

    /// Gets a permit for a job, or makes the job wait for one.
    fn admit(&self, lane: &Self::Lane) -> impl Future<Output = Result<Admission<Self::Permit>>> + Send;

    /// Claims a job, runs it, and records the outcome. `None` if another replica has claimed it.
    fn run(
        self,
        lane: &Self::Lane,
        permit: Self::Permit,
    ) -> impl Future<Output = Result<Option<Outcome>>> + Send;
}

/// Whether a job may run now.
#[derive(Debug)]
pub enum Admission<R> {
    /// With this permit.
    Run(R),
    /// A limit is reached, and the job was postponed.
    Wait(LimitReached),
    /// It is settled.
    Settled,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Sent.
    Done,
    /// No longer needed.
    Obsolete,
    /// Not sent, but a retry may succeed; with the reason.
    Later(String),
    /// Not to be tried again; with the reason.
    GivenUp(String),
    /// This version can't read it, but another may; with the reason.
    Unreadable(String),
}

impl Outcome {
    const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Obsolete => "obsolete",
            Self::Later(_) => "later",
            Self::GivenUp(_) => "given_up",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// The work done in a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worked {
    /// How many jobs were done.
    pub done: u64,
    /// The shortest wait of the jobs that got no permit.
    pub wait: Option<Duration>,
}

/// Runs the due jobs of a lane until none is left.
///
/// # Errors
/// The database can't be reached; claimed jobs are due again when their lease ends.
pub async fn work<J: Job>(core: &Arc<Core>, key: &J::Key) -> Result<Worked> {
    let mut worked = Worked::default();
    while !core.tasks.stopping.is_cancelled() {
        let Some(lane) = J::open(core, key).await? else { break };
        let due = J::due(&lane).await?;
        if due.is_empty() {
            break;
        }
        let mut runs = Vec::new();
        for job in due {
            match job.admit(&lane).await? {
                Admission::Run(permit) => runs.push(attempt(job, &lane, permit)),
                Admission::Wait(reached) => {
                    worked.wait = worked.wait.into_iter().chain([reached.wait]).min();
                    if reached.is_for_all {
                        break;
                    }
                }
                Admission::Settled => {}
            }
        }
        for is_done in join_all(runs).await {
            worked.done += u64::from(is_done?);
        }
    }
    Ok(worked)
}

/// Runs a job. Returns whether it is done.
async fn attempt<J: Job>(job: J, lane: &J::Lane, permit: J::Permit) -> Result<bool> {
    let id = job.id();
    let Some(outcome) = job.run(lane, permit).await? else { return Ok(false) };
    log_outcome(J::KIND, id, &outcome);
    Ok(outcome == Outcome::Done)
}

fn log_outcome(kind: &'static str, id: i64, outcome: &Outcome) {
    if let Some(meters) = metrics::on() {
        meters.attempted(kind, outcome.name());
    }
    if let Outcome::Later(why) | Outcome::GivenUp(why) | Outcome::Unreadable(why) = outcome {
        tracing::warn!(kind, id, outcome = outcome.name(), why, "queue.not_done");
    }
}

/// Starts a task for each of these lanes that has none in this process. `resource` bounds each organization's share.
pub fn start<J: Job<Key = LaneKey>>(core: &Arc<Core>, resource: Resource, due: Vec<LaneKey>) {
    for key in due {
        let Some(held) = core.queue.lanes.enter(core.resource_limits.limit(resource), J::KIND, key) else {
            continue;
        };
        let task = Arc::clone(core);
        core.tasks.spawn(async move {
            let worked = work::<J>(&task, &key).await;
            drop(held);
            match worked {
                Ok(worked) => {
                    if let Some(wait) = worked.wait {
                        wake_in(&task, wait);
                    }
                    // Jobs that arrived while the lane was being left would wait for the next poll.
                    wake(&task);
                }
                Err(problem) => {
                    let (org, lane) = (key.organization_id.0, key.lane_id);
                    tracing::error!(org, lane, kind = J::KIND, %problem, "queue.lane_failed");
                }
            }
        });
    }
}

row! {
    /// How many jobs of a kind wait.
    #[derive(Clone, Debug)]
    pub struct Depth {
        kind: String,
        depth: i64,
        /// Since when the oldest has waited.
        oldest: Option<Timestamp>,
    }
}

/// Wakes this process's queue after the commit.
pub fn wake_after(core: &Core, tx: &Transaction) {
    let wake = core.queue.wake.clone();
    tx.after_commit(move || {
        wake.send_replace(());
    });
}

/// Wakes this process's queue.
pub fn wake(core: &Core) {
    core.queue.wake.send_replace(());
}

/// Wakes this process's queue after a wait, if that is no longer than the interval of the poll.
fn wake_in(core: &Arc<Core>, wait: Duration) {
    if wait > POLL_INTERVAL {
        return;
    }
    let core_then = Arc::clone(core);
    core.tasks.spawn(async move {
        let waited = core_then.tasks.stopping.run_until_cancelled(tokio::time::sleep(wait)).await;
        if waited.is_some() {
            wake(&core_then);
        }
    });
}

/// Signals that jobs may be due.
#[must_use]
pub fn woken(core: &Core) -> watch::Receiver<()> {
    core.queue.wake.subscribe()
}
