//! Subscriptions: from changes to what a subscriber may see of them.
//!
//! A subscription outlives the moment in which it was permitted. So its right is asked again with every change,
//! whenever this process forgets a credential or a membership, and every few seconds besides (expiry, and what
//! other replicas have revoked). The first "no" is told, and ends it.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use tokio::{
    sync::{broadcast, watch},
    time::{Interval, MissedTickBehavior, interval},
};

use super::context::authorize_again;
use crate::{
    base::{
        ids::OrgId,
        permission::Permission,
        problem::{Code, Problem, Result},
    },
    core::{
        Event, Request,
        access::{Permit, Scope, still_good},
        ledger::{Held, Holder},
    },
};

/// How often the right to watch is asked for again while nothing happens.
pub const RECHECK: Duration = Duration::from_secs(5);

/// The changes that `pick` takes, each with a scope made anew. Ends when the subscriber is no longer a member, has
/// lost the permission, or holds a token that has ended; and when the service shuts down.
///
/// A subscriber who is too slow to follow is told so and may ask again; nothing is left out in silence.
pub fn watch<T: Send + 'static>(
    scope: &Scope,
    permission: Permission,
    pick: impl Fn(Event) -> Option<T> + Send + 'static,
) -> BoxStream<'static, Result<(Scope, T)>> {
    let holder = Holder::of(&scope.request.caller, scope.request.ip);
    let held = match scope.core.ledger.subscription(holder, scope.org) {
        Ok(held) => held,
        Err(problem) => return stream::once(async { Err(problem) }).boxed(),
    };
    let mut recheck = interval(RECHECK);
    recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watcher = Watcher {
        request: Arc::clone(&scope.request),
        org: scope.org,
        operation: scope.operation.clone().unwrap_or_default(),
        permit: Permit::InOrganization { permission, confirmed_email: false },
        changes: scope.core.events.subscribe(),
        invalidated: scope.core.access.cache.invalidated(),
        recheck,
        pick,
        _held: held,
    };
    stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        let next = watcher.next().await?;
        let go_on = next.is_ok();
        Some((next, go_on.then_some(watcher)))
    })
    .boxed()
}

struct Watcher<P> {
    request: Arc<Request>,
    org: OrgId,
    operation: Arc<str>,
    permit: Permit,
    changes: broadcast::Receiver<Event>,
    invalidated: watch::Receiver<()>,
    recheck: Interval,
    pick: P,
    _held: [Held; 2],
}

impl<P> Watcher<P> {
    /// The next change that is picked; none at the end.
    async fn next<T>(&mut self) -> Option<Result<(Scope, T)>>
    where
        P: Fn(Event) -> Option<T>,
    {
        let stopping = self.request.core.tasks.stopping.clone();
        loop {
            let change = tokio::select! {
                () = stopping.cancelled() => return None,
                change = self.changes.recv() => Some(change),
                _ = self.recheck.tick() => None,
                _ = self.invalidated.changed() => None,
            };
            let picked = match change {
                None => None,
                Some(Ok(event)) => match (self.pick)(event) {
                    Some(picked) => Some(picked),
                    None => continue,
                },
                Some(Err(broadcast::error::RecvError::Lagged(missed))) => return Some(Err(too_slow(missed))),
                Some(Err(broadcast::error::RecvError::Closed)) => return None,
            };
            match (self.admit().await, picked) {
                (Ok(scope), Some(picked)) => return Some(Ok((scope, picked))),
                (Ok(_), None) => {}
                (Err(problem), _) => return Some(Err(problem)),
            }
        }
    }

    /// A scope as of now. What the loaders know is from the change before.
    async fn admit(&mut self) -> Result<Scope> {
        self.request.changed();
        still_good(&self.request.core, &self.request.caller).await?;
        authorize_again(&self.request, &self.operation, self.permit, self.org).await
    }
}

fn too_slow(missed: u64) -> Problem {
    let detail = format!(
        "Changes came faster than they were taken, and {missed} of them are lost; read the records again."
    );
    Problem::new(Code::Conflict, detail)
}
