//! The service's recurring work: one table, and one loop for each line.
//!
//! A round takes no input and finds its work in the database, so it does not matter if one is missed or if two replicas
//! run it at once. To add one, write a function in its slice and a line in [`ROUNDS`].

mod kept;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, OptionFuture},
};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at},
};

pub use self::kept::{KEPT, Kept, sweep};
use crate::{
    base::problem::{Problem, Result},
    core::{
        Core,
        access::{decisions, rules},
        audit, keys,
        limits::{RateLimiter, SWEEP_EVERY},
        outbox, replicas, telemetry,
    },
    faces::edge::idempotency,
    fields::RECHECK,
    slices::{
        agents, approvals, asks, backups, channels, conversations, deliveries, hosts, notifications, orgs,
        people, spending, turns,
    },
};

/// A kind of recurring work.
pub struct Round {
    /// The name in the log.
    pub name: &'static str,
    /// The time between two rounds.
    pub every: Duration,
    /// Runs one round and returns how many things it did.
    pub run: for<'a> fn(&'a Arc<Core>) -> BoxFuture<'a, Result<u64>>,
}

/// The table.
pub const ROUNDS: &[Round] = &[
    Round {
        name: "policies.follow",
        every: Duration::from_millis(400),
        run: |core| rules::follow(core).boxed(),
    },
    Round { name: "replicas.report", every: replicas::LOOK, run: |core| replicas::report(core).boxed() },
    Round {
        name: "policies.write_decisions",
        every: Duration::from_secs(5),
        run: |core| decisions::flush(core).boxed(),
    },
    Round {
        name: "policies.forget_decisions",
        every: Duration::from_secs(3600),
        run: |core| decisions::prune(core).boxed(),
    },
    Round {
        name: "approvals.expire",
        every: Duration::from_secs(10),
        run: |core| approvals::expire_due(core).boxed(),
    },
    Round {
        name: "agents.end_late_starts",
        every: Duration::from_secs(5),
        run: |core| agents::end_late_starts(core).boxed(),
    },
    Round {
        name: "agents.start_due",
        every: Duration::from_secs(1),
        run: |core| agents::start_due(core).boxed(),
    },
    Round {
        name: "backups.schedule",
        every: Duration::from_secs(20),
        run: |core| backups::schedule_due(core).boxed(),
    },
    Round {
        name: "conversations.end_take_overs",
        every: Duration::from_secs(10),
        run: |core| conversations::end_abandoned(core).boxed(),
    },
    Round {
        name: "conversations.forget_transcripts",
        every: Duration::from_mins(10),
        run: |core| conversations::forget_old(core).boxed(),
    },
    Round {
        name: "conversations.count_stored",
        every: Duration::from_mins(1),
        run: |core| conversations::count_stored(core).boxed(),
    },
    Round {
        name: "organizations.let_go",
        every: Duration::from_secs(1),
        run: |core| orgs::let_go(core).boxed(),
    },
    Round {
        name: "turns.send_left",
        every: Duration::from_secs(30),
        run: |core| turns::send_left(core).boxed(),
    },
    Round {
        name: "turns.free_unsent",
        every: Duration::from_mins(10),
        run: |core| turns::free_unsent(core).boxed(),
    },
    Round {
        name: "spending.end_leases",
        every: Duration::from_secs(5),
        run: |core| spending::expire_due(core).boxed(),
    },
    Round {
        name: "spending.release",
        every: Duration::from_secs(1),
        run: |core| spending::release_due(core).boxed(),
    },
    Round { name: "keys.signing", every: keys::LOOK, run: |core| keys::keep(core).boxed() },
    Round {
        name: "search.merge",
        every: Duration::from_secs(3600),
        run: |core| conversations::merge_index(core).boxed(),
    },
    Round {
        name: "events.recheck",
        every: RECHECK,
        run: |core| {
            core.events.recheck();
            futures::future::ready(Ok(0)).boxed()
        },
    },
    Round {
        name: "approvals.remind",
        every: Duration::from_secs(10),
        run: |core| approvals::remind_due(core).boxed(),
    },
    Round {
        name: "notifications.collect",
        every: Duration::from_secs(2),
        run: |core| notifications::collect_due(core).boxed(),
    },
    Round { name: "mail.send", every: Duration::from_secs(2), run: |core| people::deliver_due(core).boxed() },
    Round {
        name: "deliveries.send",
        every: Duration::from_secs(1),
        run: |core| deliveries::send_due(core).boxed(),
    },
    Round {
        name: "deliveries.skip",
        every: Duration::from_secs(2),
        run: |core| deliveries::skip_closed(core).boxed(),
    },
    Round {
        name: "channels.check_again",
        every: Duration::from_mins(1),
        run: |core| channels::check_again(core).boxed(),
    },
    Round { name: "asks.send", every: Duration::from_secs(1), run: |core| asks::send_due(core).boxed() },
    Round { name: "hosts.look", every: hosts::LOOK, run: |core| hosts::look(core).boxed() },
    Round { name: "hosts.seen", every: hosts::SEEN, run: |core| hosts::seen(core).boxed() },
    Round {
        name: "hosts.offline",
        every: Duration::from_secs(2),
        run: |core| hosts::mark_offline(core).boxed(),
    },
    Round { name: "tables.sweep", every: Duration::from_mins(10), run: |core| kept::sweep(core).boxed() },
    Round {
        name: "audit.seal",
        every: Duration::from_millis(200),
        run: |core| async { audit::seal(core).await.map(|_| 0) }.boxed(),
    },
    Round {
        name: "audit.checkpoint",
        every: Duration::from_secs(5),
        run: |core| async { audit::checkpoint(core).await.map(|_| 0) }.boxed(),
    },
    Round { name: "audit.mend", every: Duration::from_mins(1), run: |core| audit::mend(core).boxed() },
    Round { name: "audit.retain", every: Duration::from_secs(3600), run: |core| audit::retain(core).boxed() },
    Round {
        name: "connections.trim",
        every: Duration::from_mins(1),
        run: |core| {
            core.db.trim();
            async { Ok(0) }.boxed()
        },
    },
    Round {
        name: "audit.write_refusals",
        every: Duration::from_secs(1),
        // Runs every second, so it reports nothing to the log.
        run: |core| async { audit::write_refusals(core, false).await.map(|_| 0) }.boxed(),
    },
    Round {
        name: "rate_limits.sweep",
        every: SWEEP_EVERY,
        run: |core| {
            core.limits.as_ref().map(RateLimiter::sweep);
            core.outbox.pace.sweep(&core.clock);
            futures::future::ready(Ok(0)).boxed()
        },
    },
    Round {
        name: "idempotency.remove_expired",
        every: idempotency::REMOVE_EVERY,
        run: |core| idempotency::remove_expired(core).boxed(),
    },
];

/// Rounds that a commit starts early: those that work on what the outbox holds.
const WOKEN: &[&str] = &["mail.send", "deliveries.send", "asks.send"];

/// The gap between the first rounds at start: all at once would open a connection each.
const APART: Duration = Duration::from_millis(10);

/// Runs a round. A panic is a failure like any other: the next round may succeed.
async fn caught(round: &Round, core: &Arc<Core>) -> Result<u64> {
    let done = AssertUnwindSafe(async { (round.run)(core).await }).catch_unwind().await;
    done.unwrap_or_else(|_| Err(Problem::internal(anyhow::anyhow!("the round panicked"))))
}

/// Starts rounds. A round in progress is finished before the service ends.
pub fn start(core: &Arc<Core>, rounds: &'static [Round]) {
    for (n, round) in (0..).zip(rounds) {
        let (worker, stopping) = (Arc::clone(core), core.tasks.stopping.clone());
        let mut woken = WOKEN.contains(&round.name).then(|| outbox::woken(core));
        core.tasks.spawn(async move {
            let mut tick = interval_at(Instant::now() + APART * n, round.every);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut next = async || {
                let woken = OptionFuture::from(woken.as_mut().map(watch::Receiver::changed));
                tokio::select! { _ = tick.tick() => (), Some(_) = woken => () }
            };
            while stopping.run_until_cancelled(next()).await.is_some() {
                match telemetry::round(round.name, caught(round, &worker)).await {
                    Ok(0) => {}
                    Ok(done) => tracing::info!(round = round.name, done, "round.done"),
                    Err(problem) => {
                        let cause = problem.cause().map(|cause| format!("{cause:#}"));
                        tracing::error!(round = round.name, %problem, cause, "round.failed");
                    }
                }
            }
        });
    }
}
