//! Leases: the right to spend. Each call reserves from a lease before it starts, and settles afterwards.
//!
//! The maximal usage is reserved, so that parallel calls can't spend an amount that only suffices for some. An unused
//! lease admits a call that might exceed it, since the maximum is far above the usual usage, and small remainders would
//! be useless otherwise. Only one such call runs at a time, whichever lease it uses; the others wait for its end.
//!
//! A request for another lease returns the remainder of all leases without open calls, so an agent is never refused
//! because of its own unused leases.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use muster_protocol::{
    HostEvent,
    spending::{Finished, Lease, LeaseAsked},
};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    bounds,
    host_services::{HostServices, LeaseOutcome},
};

/// The maximal usage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Tokens: input, output and cache writes.
    pub tokens: i64,
    /// Cost in millionths; `None`: unknown price.
    pub cost: Option<i64>,
}

/// Why nothing may be spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The budget is in money, and the model has no price.
    NoPrice,
    /// Nothing is left, or the control plane is unreachable.
    Spent(String),
}

/// The leases of a gate.
pub struct LeasePool {
    services: Arc<dyn HostServices>,
    state: Mutex<State>,
    /// Held by the call that requests a lease; others wait for the result. The question's number changes only after a
    /// lease has arrived, so a lease granted without reaching the host is not lost.
    question_number: tokio::sync::Mutex<i64>,
    /// Held by the call that may exceed its lease.
    exclusive: Arc<Semaphore>,
}

impl std::fmt::Debug for LeasePool {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("LeasePool").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    held: Vec<HeldLease>,
    refused: Option<(Instant, String)>,
    is_closed: bool,
}

struct HeldLease {
    lease: Lease,
    /// Money and tokens used or reserved by calls.
    taken: (i64, i64),
    /// Open calls.
    open: usize,
    is_fresh: bool,
    /// Replaced by another lease.
    is_over: bool,
    last: Instant,
}

/// A call's reservation.
#[derive(Debug)]
pub struct Reserved {
    pub lease_id: i64,
    bound: Bound,
    /// Held if the call may exceed the lease.
    exclusive: Option<OwnedSemaphorePermit>,
}

impl HeldLease {
    fn is_usable(&self, now: i64) -> bool {
        !self.is_over && self.lease.until > now
    }

    /// Whether this much money and this many tokens are left.
    fn has(&self, cost: i64, tokens: i64) -> bool {
        let has = |granted: Option<i64>, taken: i64, more: i64| {
            granted.is_none_or(|granted| granted.saturating_sub(taken) >= more)
        };
        has(self.lease.cost_micro, self.taken.0, cost) && has(self.lease.tokens, self.taken.1, tokens)
    }
}

impl LeasePool {
    pub fn new(services: Arc<dyn HostServices>) -> Self {
        let (question_number, exclusive) =
            (tokio::sync::Mutex::new(first_question()), Arc::new(Semaphore::new(1)));
        Self { services, state: Mutex::default(), question_number, exclusive }
    }

    /// Reserves the maximal usage. Requests another lease if the current one doesn't suffice. If that one doesn't
    /// either, the call runs while no other such call does.
    pub async fn reserve(&self, model: &str, bound: Bound) -> Result<Reserved, ReserveError> {
        if let Some(found) = self.acquire_lease(model, bound, &mut None).await? {
            return Ok(found);
        }
        let others = || {
            let words = "Another call that may exceed its lease is still running. Try again later.";
            ReserveError::Spent(words.to_owned())
        };
        let exclusive = timeout(bounds::THOUGHT, Arc::clone(&self.exclusive).acquire_owned()).await;
        let mut exclusive = exclusive.ok().and_then(Result::ok);
        if exclusive.is_none() {
            return Err(others());
        }
        let nothing = || ReserveError::Spent("Nothing is left to spend.".to_owned());
        self.acquire_lease(model, bound, &mut exclusive).await?.ok_or_else(nothing)
    }

    /// Reserves from a lease, or requests one. `exclusive` is consumed by a call that may exceed its lease.
    async fn acquire_lease(
        &self,
        model: &str,
        bound: Bound,
        exclusive: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Reserved>, ReserveError> {
        if let Some(found) = self.take(bound, exclusive)? {
            return Ok(Some(found));
        }
        let mut question = self.question_number.lock().await;
        if let Some(found) = self.take(bound, exclusive)? {
            return Ok(Some(found));
        }
        // Another lease would be no larger than the unused one.
        if self.has_fresh() {
            return Ok(None);
        }
        // A refusal is cached for a short while.
        if let Some((at, reason)) = &self.state.lock().refused
            && at.elapsed() < Duration::from_secs(2)
        {
            return Err(ReserveError::Spent(reason.clone()));
        }
        let asked = LeaseAsked { model: model.to_owned(), question: *question, finished: self.finish_idle() };
        match self.services.lease(asked).await {
            LeaseOutcome::Granted(lease) => {
                *question = question.wrapping_add(1);
                self.add_lease(lease);
            }
            LeaseOutcome::Refused { reason } => {
                self.state.lock().refused = Some((Instant::now(), reason.clone()));
                self.give_back();
                return Err(ReserveError::Spent(reason));
            }
        }
        self.take(bound, exclusive)
    }

    /// Settles a call. Its unused remainder becomes available to others.
    pub fn settle(&self, reserved: Reserved, used: Bound) {
        // The next exclusive call may start after this settlement.
        let Reserved { lease_id, bound, exclusive: _exclusive } = reserved;
        let mut state = self.state.lock();
        let Some(held) = state.held.iter_mut().find(|held| held.lease.id == lease_id) else { return };
        held.open = held.open.saturating_sub(1);
        held.last = Instant::now();
        let settle = |taken: &mut i64, bound: i64, used: i64| {
            *taken = taken.saturating_sub(bound).saturating_add(used);
        };
        settle(&mut held.taken.0, bound.cost.unwrap_or(0), used.cost.or(bound.cost).unwrap_or(0));
        settle(&mut held.taken.1, bound.tokens, used.tokens);
        drop(state);
        self.give_back();
    }

    /// Returns finished leases and unused ones.
    pub fn give_back(&self) {
        let now = self.services.now();
        let mut state = self.state.lock();
        let is_closed = state.is_closed;
        let mut returned = Vec::new();
        state.held.retain(|held| {
            let is_idle = held.last.elapsed() >= bounds::WAIT || held.lease.until <= now;
            let stays = held.open > 0 || !(is_closed || held.is_over || is_idle);
            if !stays {
                returned.push(held.lease.id);
            }
            stays
        });
        drop(state);
        for lease_id in returned {
            self.services.report(HostEvent::LeaseReturned { lease_id });
        }
    }

    /// Lets the next call ask again: the budget may have been raised.
    pub fn forget_refusal(&self) {
        self.state.lock().refused = None;
    }

    /// Returns all leases as soon as no call is open, because the launch has ended.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.give_back();
    }

    fn has_fresh(&self) -> bool {
        let now = self.services.now();
        self.state.lock().held.iter().any(|held| held.is_fresh && held.is_usable(now) && held.has(1, 1))
    }

    fn take(
        &self,
        bound: Bound,
        exclusive: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Reserved>, ReserveError> {
        let now = self.services.now();
        let mut state = self.state.lock();
        for held in state.held.iter_mut().filter(|held| held.is_usable(now)) {
            let cost = match (held.lease.cost_micro, bound.cost) {
                (Some(_), None) => return Err(ReserveError::NoPrice),
                (None, _) => 0,
                (Some(_), Some(cost)) => cost,
            };
            let covers = held.has(cost, bound.tokens);
            if !(covers || held.is_fresh && exclusive.is_some() && held.has(1, 1)) {
                continue;
            }
            let (money, tokens) = held.taken;
            held.taken = (money.saturating_add(cost), tokens.saturating_add(bound.tokens));
            (held.is_fresh, held.open, held.last) = (false, held.open + 1, Instant::now());
            let bound = Bound { cost: Some(cost), ..bound };
            let exclusive = if covers { None } else { exclusive.take() };
            return Ok(Some(Reserved { lease_id: held.lease.id, bound, exclusive }));
        }
        Ok(None)
    }

    /// Ends leases without open calls, and returns their usage.
    fn finish_idle(&self) -> Vec<Finished> {
        let mut state = self.state.lock();
        let unused = state.held.iter_mut().filter(|held| held.open == 0);
        let finished = unused.map(|held| {
            held.is_over = true;
            let (cost_micro, tokens) = held.taken;
            Finished { lease_id: held.lease.id, cost_micro, tokens }
        });
        finished.collect()
    }

    /// Adds a new lease, and marks the insufficient ones as finished.
    fn add_lease(&self, lease: Lease) {
        let mut state = self.state.lock();
        state.refused = None;
        state.held.iter_mut().for_each(|held| held.is_over = true);
        let (taken, open, is_fresh, is_over, last) = ((0, 0), 0, true, false, Instant::now());
        state.held.push(HeldLease { lease, taken, open, is_fresh, is_over, last });
        drop(state);
        self.give_back();
    }
}

/// The first question's number. Random, so that no gate gets a lease granted to an earlier one.
fn first_question() -> i64 {
    let mut bytes = [0; 8];
    // Without randomness, leases of an earlier gate are most likely finished.
    let _ = getrandom::fill(&mut bytes);
    i64::from_le_bytes(bytes)
}
