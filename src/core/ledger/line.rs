//! One line of the ledger: how much of one thing is held, by whom, and what is refused.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;

use super::Holder;
use crate::{
    base::problem::{Code, Problem, Result},
    core::telemetry::metrics,
};

/// Bodies and answers of up to this many bytes are not counted.
pub const SMALL: usize = 16 << 10;
/// An answer of up to this many bytes is never refused to a caller who has changed something, or the caller would not learn
/// of the change.
pub const OWED: usize = 64 << 10;
/// The `Retry-After` of a refusal, in seconds.
const COME_BACK: i64 = 5;

/// The maxima of a line.
#[derive(Clone, Copy)]
pub(super) struct Most {
    /// For one address without a credential.
    pub anonymous: usize,
    /// For one caller.
    pub known: usize,
    /// For all addresses without a credential.
    pub strangers: usize,
    /// For all of them together.
    pub together: usize,
}

/// One kind of thing that callers hold.
pub struct Line {
    pub(super) name: &'static str,
    /// The message for a holder that has reached its maximum.
    own: &'static str,
    pub(super) most: Most,
    total: AtomicUsize,
    /// The part of the total held by addresses without a credential.
    strangers: AtomicUsize,
    by: Mutex<HashMap<Holder, usize>>,
}

impl Line {
    pub(super) fn new(name: &'static str, own: &'static str, most: Most) -> Arc<Self> {
        let (total, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { name, own, most, total, strangers, by: Mutex::default() })
    }

    /// How much is currently held.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes `amount` for `holder`.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the holder reaches its maximum; `UNAVAILABLE` if all together reach theirs.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Held> {
        let mut held = Held { line: Arc::clone(self), holder: self.keyed(holder), amount: 0 };
        held.grow(amount)?;
        Ok(held)
    }

    /// The holder to charge. Bytes of service tokens are charged to their organization, which could create more tokens.
    fn keyed(&self, holder: Holder) -> Holder {
        match holder {
            Holder::Token(org, _) if self.counts_bytes() => Holder::Organization(org),
            holder => holder,
        }
    }

    fn counts_bytes(&self) -> bool {
        self.most.together < usize::MAX
    }

    /// Takes `amount` for `holder` without a check: for what can no longer be refused.
    #[must_use]
    pub fn enter(self: &Arc<Self>, holder: Holder, amount: usize) -> Held {
        let holder = self.keyed(holder);
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        *by.entry(holder).or_default() += amount;
        self.add(holder, amount);
        drop(by);
        Held { line: Arc::clone(self), holder, amount }
    }

    /// Takes a piece of a stream. An event of moderate size is never lost because others are waiting.
    ///
    /// # Errors
    /// As [`Self::take`], for a large piece.
    pub fn piece(self: &Arc<Self>, holder: Holder, bytes: usize) -> Result<Option<Held>> {
        if bytes <= SMALL {
            Ok(None)
        } else if bytes <= OWED {
            Ok(Some(self.enter(holder, bytes)))
        } else {
            self.take(holder, bytes).map(Some)
        }
    }

    fn add(&self, holder: Holder, amount: usize) {
        self.total.fetch_add(amount, Ordering::Relaxed);
        if matches!(holder, Holder::Address(_)) {
            self.strangers.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn refuse(&self, own: Option<usize>) -> Problem {
        count_refusal(self.name);
        let problem = match own {
            Some(most) => {
                Problem::new(Code::RateLimited, format!("{} ({most}).", self.own)).with("maximum", most)
            }
            None => {
                let what = self.name.replace('_', " ");
                let detail = format!("The service has reached its maximum of {what}; try again.");
                Problem::new(Code::Unavailable, detail)
            }
        };
        problem.with("limit", self.name).with("retry_after", COME_BACK)
    }
}

/// Counts a refusal in the metrics.
pub fn count_refusal(line: &'static str) {
    if let Some(meters) = metrics::on() {
        meters.limited(line);
    }
}

/// Something held. Dropping it gives it back.
pub struct Held {
    line: Arc<Line>,
    holder: Holder,
    amount: usize,
}

impl Held {
    /// Takes more.
    ///
    /// # Errors
    /// As [`Line::take`]. What was already held stays held.
    pub fn grow(&mut self, more: usize) -> Result<()> {
        let line = &self.line;
        let is_stranger = matches!(self.holder, Holder::Address(_));
        let most = if is_stranger { line.most.anonymous } else { line.most.known };
        let mut by = line.by.lock().unwrap_or_else(PoisonError::into_inner);
        let others = by.get(&self.holder).copied().unwrap_or(0) - self.amount;
        let mine = self.amount.saturating_add(more);
        // A single body or answer is admitted whatever its size, which other settings limit.
        let is_first = others == 0 && line.counts_bytes();
        if others.saturating_add(mine) > most && !is_first {
            return Err(line.refuse(Some(most)));
        }
        // Under the lock, so that the sum is exact.
        let of_strangers = line.strangers.load(Ordering::Relaxed).saturating_add(more);
        if line.total().saturating_add(more) > line.most.together
            || (is_stranger && of_strangers > line.most.strangers)
        {
            return Err(line.refuse(None));
        }
        line.add(self.holder, more);
        by.insert(self.holder, others + mine);
        drop(by);
        self.amount = mine;
        Ok(())
    }

    /// Gives a part back.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.amount);
        if less == 0 {
            return;
        }
        self.amount -= less;
        let mut by = self.line.by.lock().unwrap_or_else(PoisonError::into_inner);
        self.line.total.fetch_sub(less, Ordering::Relaxed);
        if matches!(self.holder, Holder::Address(_)) {
            self.line.strangers.fetch_sub(less, Ordering::Relaxed);
        }
        if let Some(held) = by.get_mut(&self.holder) {
            *held -= less;
            if *held == 0 {
                by.remove(&self.holder);
            }
        }
    }

    /// The holder.
    #[must_use]
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// The amount.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// `bytes`, which keep this held until their last copy is dropped.
    #[must_use]
    pub fn with_bytes(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Entered { bytes, _held: Arc::clone(self) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(self.amount);
    }
}

/// Bytes counted in the ledger.
struct Entered {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Entered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn line(anonymous: usize, known: usize, together: usize) -> Arc<Line> {
        let strangers = together / 2;
        Line::new(
            "things",
            "You have reached your maximum of things",
            Most { anonymous, known, strangers, together },
        )
    }

    const ADA: Holder = Holder::Person(1);
    const BEN: Holder = Holder::Person(2);

    #[test]
    fn what_is_dropped_can_be_taken_again() {
        let line = line(1, 2, usize::MAX);
        let (one, two) = (line.take(ADA, 1).ok(), line.take(ADA, 1).ok());
        assert!(one.is_some() && two.is_some() && line.total() == 2);
        let refused = line.take(ADA, 1).err().unwrap();
        assert_eq!((refused.code, refused.retry_after()), (Code::RateLimited, Some(5)));
        assert!(line.take(BEN, 1).is_ok(), "others are not affected");
        drop(line.enter(ADA, 1));
        assert_eq!(line.total(), 2);
        drop(one);
        assert!(line.take(ADA, 1).is_ok());
        drop(two);
        assert!((line.total(), line.by.lock().unwrap().len()) == (0, 0), "nobody is remembered");
    }

    #[test]
    fn an_address_has_a_limit_of_its_own() {
        let line = line(1, 2, usize::MAX);
        let address = Holder::at(Some("192.0.2.1".parse().unwrap()));
        let _held = line.take(address, 1).ok();
        assert_eq!(line.take(address, 1).err().unwrap().code, Code::RateLimited);
    }

    #[test]
    fn all_together_hold_no_more_than_the_total_and_one_may_take_what_is_large() {
        let line = line(25, 25, 100);
        let mut large = line.take(ADA, 60).unwrap();
        assert_eq!(large.grow(41).err().unwrap().code, Code::Unavailable);
        assert_eq!(line.take(ADA, 10).err().unwrap().code, Code::RateLimited);
        let _other = line.take(BEN, 40).unwrap();
        assert_eq!(line.take(Holder::Person(3), 1).err().unwrap().code, Code::Unavailable);
        drop(large);
        assert_eq!(line.total(), 40);
        assert!(line.take(ADA, 10).is_ok());
    }

    #[test]
    fn those_who_are_known_have_room_that_strangers_can_not_take() {
        let line = line(25, 25, 100);
        let at = |n: u32| Holder::at(Some(IpAddr::V4(n.into())));
        let held: Vec<_> = (0..2).map(|n| line.take(at(n), 25).unwrap()).collect();
        assert_eq!(line.take(at(2), 1).err().unwrap().code, Code::Unavailable);
        let _known = line.take(ADA, 25).unwrap();
        // The tokens of an organization share one holder's part.
        let _token = line.take(Holder::Token(1, 1), 25).unwrap();
        assert_eq!(line.take(Holder::Token(1, 2), 1).err().unwrap().code, Code::RateLimited);
        drop(held);
        assert!(line.take(at(2), 25).is_ok());
    }

    #[test]
    fn bytes_are_held_until_the_last_copy_is_gone() {
        let line = line(100, 100, 200);
        let held = Arc::new(line.take(ADA, 5).unwrap());
        let bytes = held.with_bytes(Bytes::from_static(b"hello"));
        drop(held);
        let part = bytes.slice(1..3);
        drop(bytes);
        assert_eq!((&part[..], line.total()), (&b"el"[..], 5));
        drop(part);
        assert_eq!(line.total(), 0);
    }
}
