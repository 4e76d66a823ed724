//! Leases: the right to spend. Each call reserves from one before it is made, and settles after.
//!
//! What a call may use at most is reserved, so that calls at the same time can't spend together what only some of them may.
//! A lease that nobody has used yet admits a call that might use more than the lease has: the bound is far above what calls
//! really use, and a small rest would be of no use otherwise. Of such calls there is one at a time, whatever leases there are;
//! the others wait for its end.
//!
//! Whoever asks for another lease gives back what is left of those that pay for no call: an agent isn't refused because of what
//! it holds itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use muster_protocol::{
    Happening,
    spending::{Finished, Lease, LeaseAsked},
};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    bounds,
    outside::{Leased, Outside},
};

/// What a call may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Tokens: input, output and those written to a cache.
    pub tokens: i64,
    /// Money, in millionths; none: nobody knows the price.
    pub cost: Option<i64>,
}

/// Why nothing may be spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A budget is in money, and nobody knows what the model costs.
    NoPrice,
    /// Nothing is left, or the control plane is away.
    Spent(String),
}

/// The leases of a gate.
pub struct Purse {
    outside: Arc<dyn Outside>,
    state: Mutex<State>,
    /// Held by the call that asks for a lease. The others wait for its answer. What identifies the question stays the same until
    /// a lease has come, so one that was granted without reaching the host is not lost.
    asking: tokio::sync::Mutex<i64>,
    /// Held by the call that may use more than its lease has.
    alone: Arc<Semaphore>,
}

impl std::fmt::Debug for Purse {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Purse").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    held: Vec<Held>,
    refused: Option<(Instant, String)>,
    is_closed: bool,
}

struct Held {
    lease: Lease,
    /// What calls have taken, and those that are open may take: money and tokens.
    taken: (i64, i64),
    /// How many calls are open that it pays for.
    open: usize,
    is_fresh: bool,
    /// Another one has followed it.
    is_over: bool,
    last: Instant,
}

/// What was reserved for a call.
#[derive(Debug)]
pub struct Reserved {
    /// The lease.
    pub lease_id: i64,
    bound: Bound,
    /// Of a call that may use more than the lease has.
    alone: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn is_usable(&self, now: i64) -> bool {
        !self.is_over && self.lease.until > now
    }

    /// Whether so much is left, of money and of tokens.
    fn has(&self, cost: i64, tokens: i64) -> bool {
        let has = |granted: Option<i64>, taken: i64, more: i64| {
            granted.is_none_or(|granted| granted.saturating_sub(taken) >= more)
        };
        has(self.lease.cost_micro, self.taken.0, cost) && has(self.lease.tokens, self.taken.1, tokens)
    }
}

impl Purse {
    pub fn new(outside: Arc<dyn Outside>) -> Self {
        let (asking, alone) = (tokio::sync::Mutex::new(first_question()), Arc::new(Semaphore::new(1)));
        Self { outside, state: Mutex::default(), asking, alone }
    }

    /// Reserves what a call may use at most. Asks for another lease if the present one doesn't suffice. If that one doesn't
    /// either, the call is made when no other such call is under way.
    pub async fn reserve(&self, model: &str, bound: Bound) -> Result<Reserved, Refused> {
        if let Some(found) = self.lease(model, bound, &mut None).await? {
            return Ok(found);
        }
        let others = || {
            let words =
                "Another call that may use more than what is granted at once has not ended. Try again later.";
            Refused::Spent(words.to_owned())
        };
        let alone = timeout(bounds::THOUGHT, Arc::clone(&self.alone).acquire_owned()).await;
        let mut alone = alone.ok().and_then(Result::ok);
        if alone.is_none() {
            return Err(others());
        }
        let nothing = || Refused::Spent("Nothing is left to spend.".to_owned());
        self.lease(model, bound, &mut alone).await?.ok_or_else(nothing)
    }

    /// Takes from what there is, or asks for more. `alone` is used up by a call that may use more than its lease has.
    async fn lease(
        &self,
        model: &str,
        bound: Bound,
        alone: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Reserved>, Refused> {
        if let Some(found) = self.take(bound, alone)? {
            return Ok(Some(found));
        }
        let mut question = self.asking.lock().await;
        if let Some(found) = self.take(bound, alone)? {
            return Ok(Some(found));
        }
        // One that nobody has used is as good as another.
        if self.has_fresh() {
            return Ok(None);
        }
        // A refusal holds for a short while.
        if let Some((at, reason)) = &self.state.lock().refused
            && at.elapsed() < Duration::from_secs(2)
        {
            return Err(Refused::Spent(reason.clone()));
        }
        let asked = LeaseAsked { model: model.to_owned(), question: *question, finished: self.finish() };
        match self.outside.lease(asked).await {
            Leased::Granted(lease) => {
                *question = question.wrapping_add(1);
                self.follow(lease);
            }
            Leased::Refused { reason } => {
                self.state.lock().refused = Some((Instant::now(), reason.clone()));
                self.give_back();
                return Err(Refused::Spent(reason));
            }
        }
        self.take(bound, alone)
    }

    /// A call is over. What it has not used can be used by others.
    pub fn settle(&self, reserved: Reserved, used: Bound) {
        // The next one may begin when this one is settled.
        let Reserved { lease_id, bound, alone: _alone } = reserved;
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

    /// Gives back leases that are over, and those that nobody uses.
    pub fn give_back(&self) {
        let now = self.outside.now();
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
            self.outside.report(Happening::LeaseReturned { lease_id });
        }
    }

    /// More may have been allowed: the next call asks again.
    pub fn ask_again(&self) {
        self.state.lock().refused = None;
    }

    /// The launch is over: everything is given back as soon as no call is open.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.give_back();
    }

    fn has_fresh(&self) -> bool {
        let now = self.outside.now();
        self.state.lock().held.iter().any(|held| held.is_fresh && held.is_usable(now) && held.has(1, 1))
    }

    fn take(
        &self,
        bound: Bound,
        alone: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Option<Reserved>, Refused> {
        let now = self.outside.now();
        let mut state = self.state.lock();
        for held in state.held.iter_mut().filter(|held| held.is_usable(now)) {
            let cost = match (held.lease.cost_micro, bound.cost) {
                (Some(_), None) => return Err(Refused::NoPrice),
                (None, _) => 0,
                (Some(_), Some(cost)) => cost,
            };
            let covers = held.has(cost, bound.tokens);
            if !(covers || held.is_fresh && alone.is_some() && held.has(1, 1)) {
                continue;
            }
            let (money, tokens) = held.taken;
            held.taken = (money.saturating_add(cost), tokens.saturating_add(bound.tokens));
            (held.is_fresh, held.open, held.last) = (false, held.open + 1, Instant::now());
            let bound = Bound { cost: Some(cost), ..bound };
            let alone = if covers { None } else { alone.take() };
            return Ok(Some(Reserved { lease_id: held.lease.id, bound, alone }));
        }
        Ok(None)
    }

    /// Takes nothing more from leases that pay for no call at the moment, and says what was taken.
    fn finish(&self) -> Vec<Finished> {
        let mut state = self.state.lock();
        let unused = state.held.iter_mut().filter(|held| held.open == 0);
        let finished = unused.map(|held| {
            held.is_over = true;
            let (cost_micro, tokens) = held.taken;
            Finished { lease_id: held.lease.id, cost_micro, tokens }
        });
        finished.collect()
    }

    /// A new lease follows those that did not suffice.
    fn follow(&self, lease: Lease) {
        let mut state = self.state.lock();
        state.refused = None;
        state.held.iter_mut().for_each(|held| held.is_over = true);
        let (taken, open, is_fresh, is_over, last) = ((0, 0), 0, true, false, Instant::now());
        state.held.push(Held { lease, taken, open, is_fresh, is_over, last });
        drop(state);
        self.give_back();
    }
}

/// What identifies the first question. Random, so that no gate of the agent gets what an earlier one was granted.
fn first_question() -> i64 {
    let mut bytes = [0; 8];
    // Without randomness, the leases of an earlier gate are most likely over.
    let _ = getrandom::fill(&mut bytes);
    i64::from_le_bytes(bytes)
}
