//! The service's recurring work: one table, and one loop for each line.
//!
//! A job takes no input and finds its work in the database, so it does not matter if one is missed or if two replicas
//! run it at once. Most have nothing to do most of the time: one statement a second polls for due work (`queries.rs`),
//! and wakes the jobs that have some. To add one, write a function in its feature and a line in [`PERIODIC_JOBS`].

mod queries;
mod retention;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, OptionFuture},
};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at},
};

pub use self::{
    queries::Due,
    retention::{RETENTION, TableRetention, sweep},
};
use crate::{
    api::middleware::idempotency,
    base::problem::{Problem, Result},
    core::{
        Core,
        access::{decisions, org_policies},
        audit, keys, queue,
        rate_limits::RateLimiter,
        replicas, telemetry,
    },
    domain::{
        approvals, backups, channels, chat_approvals,
        conversations::{self, turns},
        deliveries, emergency_stop, event_endpoints, hosts, launch, notifications, rights, spending,
    },
    resolvers::RECHECK,
};

/// A kind of recurring work.
pub struct PeriodicJob {
    /// The name in the log.
    pub name: &'static str,
    /// The longest time between two runs.
    pub every: Duration,
    /// Whether the poll (`queries.rs`) has found work for this job.
    due: Option<fn(&Core, &Due) -> bool>,
    /// Performs one run, and returns how many items it processed.
    pub run: Run,
}

type Run = for<'a> fn(&'a Arc<Core>) -> BoxFuture<'a, Result<u64>>;

impl PeriodicJob {
    /// A job that runs at a fixed interval.
    #[must_use]
    pub const fn every(name: &'static str, every: Duration, run: Run) -> Self {
        Self { name, every, due: None, run }
    }

    /// A job that runs when the poll has found work for it, and every minute in any case.
    #[must_use]
    pub const fn due(name: &'static str, due: fn(&Core, &Due) -> bool, run: Run) -> Self {
        Self { name, every: Duration::from_mins(1), due: Some(due), run }
    }
}

/// All periodic jobs.
pub const PERIODIC_JOBS: &[PeriodicJob] = &[
    PeriodicJob::due("policies.follow", Due::has_policies, |core| org_policies::follow(core).boxed()),
    PeriodicJob::every("replicas.report", Duration::from_secs(10), |core| {
        replicas::refresh_and_compare(core).boxed()
    }),
    PeriodicJob::every("policies.write_decisions", Duration::from_secs(5), |core| {
        decisions::flush(core).boxed()
    }),
    PeriodicJob::every("policies.forget_decisions", Duration::from_secs(3600), |core| {
        decisions::prune(core).boxed()
    }),
    PeriodicJob::due("approvals.expire", |_, due| due.overdue, |core| approvals::expire_due(core).boxed()),
    PeriodicJob::due(
        "agents.end_late_starts",
        |_, due| due.late_starts,
        |core| launch::end_late_starts(core).boxed(),
    ),
    PeriodicJob::due("agents.start_due", |_, due| due.restarts, |core| launch::start_due(core).boxed()),
    PeriodicJob::every("backups.schedule", Duration::from_secs(20), |core| {
        backups::schedule_due(core).boxed()
    }),
    PeriodicJob::every("conversations.end_take_overs", Duration::from_secs(10), |core| {
        conversations::end_abandoned(core).boxed()
    }),
    PeriodicJob::every("conversations.forget_transcripts", Duration::from_mins(10), |core| {
        conversations::forget_old(core).boxed()
    }),
    PeriodicJob::every("conversations.count_stored", Duration::from_mins(1), |core| {
        conversations::count_stored(core).boxed()
    }),
    PeriodicJob::due(
        "organizations.let_go",
        |_, due| due.letting_go,
        |core| emergency_stop::let_go(core).boxed(),
    ),
    PeriodicJob::every("erasures.carry_out", Duration::from_secs(10), |core| {
        rights::carry_out_due(core).boxed()
    }),
    PeriodicJob::every("turns.send_left", Duration::from_secs(30), |core| turns::send_left(core).boxed()),
    PeriodicJob::every("turns.free_unsent", Duration::from_mins(10), |core| turns::free_unsent(core).boxed()),
    PeriodicJob::due(
        "spending.end_leases",
        |_, due| due.leases_over,
        |core| spending::expire_due(core).boxed(),
    ),
    PeriodicJob::due(
        "spending.release",
        |_, due| due.limits_over,
        |core| spending::release_due(core).boxed(),
    ),
    PeriodicJob::every("keys.signing", Duration::from_secs(5), |core| keys::maintain_signing(core).boxed()),
    PeriodicJob::every("search.merge", Duration::from_secs(3600), |core| {
        conversations::merge_index(core).boxed()
    }),
    PeriodicJob::every("events.recheck", RECHECK, |core| {
        core.events.recheck();
        futures::future::ready(Ok(0)).boxed()
    }),
    PeriodicJob::due("approvals.remind", |_, due| due.to_remind, |core| approvals::remind_due(core).boxed()),
    PeriodicJob::due(
        "notifications.collect",
        |_, due| due.notifications,
        |core| notifications::collect_due(core).boxed(),
    ),
    PeriodicJob::due("mail.send", |_, due| due.mails, |core| notifications::deliver_due(core).boxed()),
    PeriodicJob::due("deliveries.send", |_, due| due.parts, |core| deliveries::send_due(core).boxed()),
    PeriodicJob::due("deliveries.skip", |_, due| due.left, |core| deliveries::skip_closed(core).boxed()),
    PeriodicJob::every("channels.check_again", Duration::from_mins(1), |core| {
        channels::check_again(core).boxed()
    }),
    PeriodicJob::every("channels.refresh_tokens", Duration::from_mins(1), |core| {
        channels::refresh_tokens(core).boxed()
    }),
    PeriodicJob::due("asks.send", |_, due| due.asks, |core| chat_approvals::send_due(core).boxed()),
    PeriodicJob::due("events.send", |_, due| due.events, |core| event_endpoints::send_due(core).boxed()),
    PeriodicJob::every("hosts.look", Duration::from_millis(800), |core| {
        hosts::wake_connections(core).boxed()
    }),
    PeriodicJob::every("hosts.seen", Duration::from_secs(15), |core| hosts::refresh_presence(core).boxed()),
    PeriodicJob::every("hosts.offline", Duration::from_secs(5), |core| hosts::mark_offline(core).boxed()),
    PeriodicJob::every("tables.sweep", Duration::from_mins(10), |core| retention::sweep(core).boxed()),
    PeriodicJob::due(
        "audit.seal",
        |_, due| due.unsealed,
        |core| async { audit::seal(core).await.map(|_| 0) }.boxed(),
    ),
    PeriodicJob::every("audit.checkpoint", Duration::from_secs(10), |core| {
        async { audit::checkpoint(core).await.map(|_| 0) }.boxed()
    }),
    PeriodicJob::every("audit.mend", Duration::from_mins(1), |core| audit::mend(core).boxed()),
    PeriodicJob::every("audit.retain", Duration::from_secs(3600), |core| audit::retain(core).boxed()),
    PeriodicJob::every("connections.trim", Duration::from_mins(1), |core| {
        core.db.trim();
        async { Ok(0) }.boxed()
    }),
    PeriodicJob::every("audit.write_refusals", Duration::from_secs(1), |core| {
        async { audit::write_refusals(core, false).await.map(|_| 0) }.boxed()
    }),
    PeriodicJob::every("rate_limits.sweep", Duration::from_secs(10), |core| {
        core.rate_limits.as_ref().map(RateLimiter::sweep);
        core.queue.send_limits.sweep(&core.clock);
        futures::future::ready(Ok(0)).boxed()
    }),
    PeriodicJob::every("idempotency.remove_expired", Duration::from_mins(10), |core| {
        idempotency::remove_expired(core).boxed()
    }),
];

/// Jobs that a commit wakes at once, because it may have queued work for them.
const WOKEN: &[&str] = &["mail.send", "deliveries.send", "asks.send", "events.send"];

/// Runs a job. A panic is a failure like any other: the next run may succeed.
async fn caught(job: &PeriodicJob, core: &Arc<Core>) -> Result<u64> {
    let done = AssertUnwindSafe(async { (job.run)(core).await }).catch_unwind().await;
    done.unwrap_or_else(|_| Err(Problem::internal(anyhow::anyhow!("the job panicked"))))
}

/// Starts jobs. A job in progress is finished before the service ends.
pub fn start(core: &Arc<Core>, jobs: &'static [PeriodicJob]) {
    let (polls, polled) = watch::channel(Due::default());
    for (n, job) in (0..).zip(jobs) {
        // Staggered: if all jobs started at once, each would open a connection.
        let begins = Instant::now() + Duration::from_millis(10) * n;
        core.tasks.spawn(repeat(Arc::clone(core), job, begins, polled.clone()));
    }
    core.tasks.spawn(poll(Arc::clone(core), polls));
}

/// Polls all tables every second for due work, with one statement ([`Due`]), and wakes the jobs.
async fn poll(core: Arc<Core>, polls: watch::Sender<Due>) {
    let mut tick = interval_at(Instant::now(), queue::POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while core.tasks.stopping.run_until_cancelled(tick.tick()).await.is_some() {
        let polled = telemetry::job("jobs.poll", queries::poll(&core)).await;
        report(
            "jobs.poll",
            polled.map(|due| {
                polls.send_replace(due);
                0
            }),
        );
    }
}

/// Runs a job whenever its interval is over, or a commit or the poll has work for it.
async fn repeat(
    core: Arc<Core>,
    job: &'static PeriodicJob,
    begins: Instant,
    mut polled: watch::Receiver<Due>,
) {
    let mut woken = WOKEN.contains(&job.name).then(|| queue::woken(&core));
    let mut tick = interval_at(begins, job.every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = async {
            let woken = OptionFuture::from(woken.as_mut().map(watch::Receiver::changed));
            let due = OptionFuture::from(job.due.map(|is_due| found(&core, is_due, &mut polled)));
            tokio::select! { _ = tick.tick() => (), Some(_) = woken => (), Some(()) = due => () }
        };
        if core.tasks.stopping.run_until_cancelled(next).await.is_none() {
            return;
        }
        report(job.name, telemetry::job(job.name, caught(job, &core)).await);
    }
}

/// Waits until the poll has found work.
async fn found(core: &Core, is_due: fn(&Core, &Due) -> bool, polled: &mut watch::Receiver<Due>) {
    while polled.changed().await.is_ok() {
        if is_due(core, &polled.borrow_and_update()) {
            return;
        }
    }
    // Polling has ended.
    std::future::pending::<()>().await;
}

fn report(job: &'static str, done: Result<u64>) {
    match done {
        Ok(0) => {}
        Ok(done) => tracing::info!(job, done, "job.done"),
        Err(problem) => {
            let cause = problem.cause().map(|cause| format!("{cause:#}"));
            tracing::error!(job, %problem, cause, "job.failed");
        }
    }
}
