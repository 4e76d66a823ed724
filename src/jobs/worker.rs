//! What the service does beside its requests, again and again: one table, one loop for each line.
//!
//! A round takes no input and finds its work in the database, so that a round which was missed, or done by two replicas
//! at once, costs nothing. A new one is a function of its slice and a line in [`ROUNDS`].

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    app::App,
    approvals, audit, conversations,
    edge::{
        idempotency,
        limits::{Limits, SWEEP_EVERY},
    },
    error::Result,
    keys, mail, policies, telemetry,
};

/// A kind of recurring work.
pub struct Round {
    /// What it does, as the log names it.
    pub name: &'static str,
    /// How long from one to the next.
    pub every: Duration,
    /// One round; answers how many things it has done.
    pub run: for<'a> fn(&'a Arc<App>) -> BoxFuture<'a, Result<u64>>,
}

/// The table.
pub const ROUNDS: &[Round] = &[
    Round {
        name: "policies.sync",
        every: Duration::from_millis(400),
        run: |app| policies::sync(app).boxed(),
    },
    Round {
        name: "policies.remove_leftovers",
        every: Duration::from_mins(10),
        run: |app| policies::sweep(app).boxed(),
    },
    Round {
        name: "policies.write_decisions",
        every: Duration::from_secs(5),
        run: |app| policies::flush_decisions(app).boxed(),
    },
    Round {
        name: "policies.forget_decisions",
        every: Duration::from_secs(3600),
        run: |app| policies::prune_decisions(app).boxed(),
    },
    Round {
        name: "approvals.expire",
        every: Duration::from_secs(10),
        run: |app| approvals::expire_due(app).boxed(),
    },
    Round { name: "keys.signing", every: keys::LOOK, run: |app| keys::keep(app).boxed() },
    Round {
        name: "search.merge",
        every: Duration::from_secs(3600),
        run: |app| conversations::merge_index(app).boxed(),
    },
    Round { name: "mail.send", every: Duration::from_secs(2), run: |app| mail::deliver_due(app).boxed() },
    Round { name: "tables.sweep", every: Duration::from_mins(10), run: |app| super::sweep(app).boxed() },
    Round {
        name: "audit.seal",
        every: Duration::from_millis(200),
        run: |app| async { audit::seal(app).await.map(|_| 0) }.boxed(),
    },
    Round {
        name: "audit.checkpoint",
        every: Duration::from_secs(5),
        run: |app| async { audit::checkpoint(app, None).await.map(|_| 0) }.boxed(),
    },
    Round { name: "audit.retain", every: Duration::from_secs(3600), run: |app| audit::retain(app).boxed() },
    Round {
        name: "connections.trim",
        every: Duration::from_mins(1),
        run: |app| {
            app.db.trim();
            async { Ok(0) }.boxed()
        },
    },
    Round {
        name: "audit.write_refusals",
        every: Duration::from_secs(1),
        // Every second; the log does not need to tell.
        run: |app| async { audit::write_refusals(app, false).await.map(|_| 0) }.boxed(),
    },
    Round {
        name: "rate_limits.sweep",
        every: SWEEP_EVERY,
        run: |app| {
            app.limits.as_ref().map(Limits::sweep);
            futures::future::ready(Ok(0)).boxed()
        },
    },
    Round {
        name: "idempotency.remove_expired",
        every: idempotency::REMOVE_EVERY,
        run: |app| idempotency::remove_expired(app).boxed(),
    },
];

/// How long after one round the next begins when the service starts: together they would open a connection each.
const APART: Duration = Duration::from_millis(10);

/// Starts every round. A round that has begun is finished before the service ends.
pub fn start(app: &Arc<App>) {
    for (n, round) in (0..).zip(ROUNDS) {
        let (worker, stopping) = (Arc::clone(app), app.stopping.clone());
        app.spawn(async move {
            let mut tick = interval_at(Instant::now() + APART * n, round.every);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while stopping.run_until_cancelled(tick.tick()).await.is_some() {
                match telemetry::round(round.name, (round.run)(&worker)).await {
                    Ok(0) => {}
                    Ok(done) => tracing::info!(round = round.name, done, "round.done"),
                    Err(problem) => tracing::error!(round = round.name, %problem, "round.failed"),
                }
            }
        });
    }
}
