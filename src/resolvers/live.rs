//! Subscriptions: turns events into the news that a subscriber may see.
//!
//! A subscription outlives the moment it was permitted. So its permission is checked again on every event,
//! whenever this process drops a cached credential or membership, and every few seconds (for expiry, and
//! revocations on other replicas). Each check is made once for all subscribers. The first refusal is sent and
//! ends the subscription. Changed permissions are a change of the organization's record, which shows them.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, future, stream, stream::BoxStream};
use tokio::sync::watch;

use super::context::{admit, authorize_again};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        permission::{Permission, PermissionSet},
        problem::{Code, Problem, Result},
    },
    core::{
        Event, News,
        access::{Permit, Scope, authn::require_valid, load_memberships},
        events::{Memo, Subscription},
        resource_limits::{Held, Holder},
    },
};

/// How often permission is checked again while nothing happens: users who lost access receive nothing after that.
pub const RECHECK: Duration = Duration::from_secs(5);

/// The changed records of `kind` that `pick` accepts: the id of each, with the subscriber's current scope. Ends
/// when the subscriber is no longer a member, has lost the permission, or has an expired or revoked token, and
/// when the service shuts down.
///
/// If changes may have been missed, the subscriber gets a `CONFLICT` error and the subscription continues.
pub fn subscribe_to_kind(
    scope: &Scope,
    permission: Permission,
    kind: RecordKind,
    pick: impl Fn(&Event) -> bool + Send + Sync + 'static,
) -> Result<BoxStream<'static, Result<(Scope, i64)>>> {
    let permit = Permit::InOrganization { permission, confirmed_email: false };
    let is_wanted = move |event: &Event| event.kind == kind && pick(event);
    let events = subscribe(scope, permit, is_wanted)?;
    let ids = events.map(|item| match item? {
        (scope, Some(event)) => Ok((scope, event.id)),
        (_, None) => Err(missed()),
    });
    Ok(ids.boxed())
}

/// Events, each with the subscriber's current scope. `None` if changes may have been missed.
pub type Changes = BoxStream<'static, Result<(Scope, Option<Event>)>>;

/// The organization's events from now on that `is_wanted` accepts, for as long as the subscriber meets `permit`.
pub fn subscribe(
    scope: &Scope,
    permit: Permit,
    is_wanted: impl Fn(&Event) -> bool + Send + Sync + 'static,
) -> Result<Changes> {
    let holder = Holder::of(&scope.request.caller, scope.request.ip);
    let held = scope.core.resource_limits.subscription(holder, scope.org)?;
    let watcher = Watcher {
        scope: scope.clone(),
        operation: scope.operation.clone().unwrap_or_default(),
        permit,
        permissions: scope.membership.permissions,
        news: scope.core.events.subscribe(scope.org, &scope.request.caller),
        invalidated: scope.core.access.cache.invalidated(),
        is_wanted,
        _held: held,
    };
    let news = stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        let next = watcher.next().await?;
        let go_on = next.is_ok();
        Some((next, go_on.then_some(watcher)))
    });
    Ok(news.boxed())
}

/// The items of `source`, for as long as the subscriber has `permission`. The permission is not checked for each item,
/// but as often as for a subscription in which nothing happens.
pub fn while_permitted<T: Send + 'static>(
    scope: &Scope,
    permission: Permission,
    source: impl Stream<Item = T> + Send + 'static,
) -> Result<BoxStream<'static, Result<T>>> {
    let permit = Permit::InOrganization { permission, confirmed_email: false };
    let refusals =
        subscribe(scope, permit, |_| false)?.filter_map(async |item| item.err().map(|why| Some(Err(why))));
    // When there is nothing more to check, there is nothing more to show.
    let refusals = refusals.chain(stream::once(async { None }));
    let items = stream::select(refusals, source.map(|item| Some(Ok(item))))
        .take_while(|item| future::ready(item.is_some()))
        .filter_map(future::ready);
    Ok(items.boxed())
}

struct Watcher<P> {
    scope: Scope,
    operation: Arc<str>,
    permit: Permit,
    /// The subscriber's permissions, as last announced.
    permissions: PermissionSet,
    news: Subscription,
    invalidated: watch::Receiver<u64>,
    is_wanted: P,
    _held: [Held; 2],
}

impl<P: Fn(&Event) -> bool + Sync> Watcher<P> {
    /// The next wanted event, or none if changes may have been missed. `None` at the end.
    async fn next(&mut self) -> Option<Result<(Scope, Option<Event>)>> {
        let stopping = self.scope.core.tasks.stopping.clone();
        loop {
            let (news, memo) = tokio::select! {
                () = stopping.cancelled() => return None,
                next = self.news.next() => next?,
                _ = self.invalidated.changed() => {
                    let times = *self.invalidated.borrow_and_update();
                    (News::Recheck, self.news.forgotten(times))
                }
            };
            if let News::Changed(event) = &news
                && !(self.is_mine(event) && (self.is_wanted)(event))
            {
                continue;
            }
            match (self.admit(memo).await, news) {
                (Ok(scope), News::Recheck) => {
                    if let Some(event) = self.note_permissions(&scope)
                        && (self.is_wanted)(&event)
                    {
                        return Some(Ok((scope, Some(event))));
                    }
                }
                (Ok(scope), News::Changed(event)) => return Some(Ok((scope, Some(event)))),
                (Ok(scope), News::Resync) => return Some(Ok((scope, None))),
                (Err(problem), _) => return Some(Err(problem)),
            }
        }
    }

    /// The change of the organization's record if the subscriber's permissions have changed.
    fn note_permissions(&mut self, scope: &Scope) -> Option<Event> {
        let permissions = scope.membership.permissions;
        let before = std::mem::replace(&mut self.permissions, permissions);
        let changed = || Event::new(scope.org, ChangeOp::Updated, RecordKind::Organization, scope.org);
        (before != permissions).then(changed)
    }

    /// Whether the event is for everyone, or for this subscriber.
    fn is_mine(&self, event: &Event) -> bool {
        event.only.is_none() || event.only == self.scope.request.caller.user()
    }

    /// A fresh scope, because the loaders hold data from before the change.
    async fn admit(&self, memo: Arc<Memo>) -> Result<Scope> {
        let (request, org) = (&self.scope.request, self.scope.org);
        request.changed();
        request.caller.require_current(request.core.clock.now())?;
        let all = async { load_memberships(&request.core, org, &self.news.callers()).await };
        let Some(membership) = memo.membership(&request.caller, all).await? else {
            // Finds out why, or whether it was a mistake.
            require_valid(&request.core, &request.caller).await?;
            request.core.access.cache.invalidate_member(&request.caller, org);
            return authorize_again(request, &self.operation, self.permit, org).await;
        };
        let scope = Scope::new(request, org, membership, self.scope.operation.clone());
        admit(&scope, self.permit)?;
        Ok(scope.with_memo(memo))
    }
}

fn missed() -> Problem {
    Problem::new(Code::Conflict, "Changes may have been missed. Read the records again.")
}
