//! One resource limit: the amounts held, by holder, and the refusals.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use super::Holder;
use crate::{
    base::problem::{Code, Problem, Result},
    core::telemetry::metrics,
};

/// Bodies and answers of up to this many bytes are not counted: the number of connections bounds how many there can be.
pub const SMALL: usize = 16 << 10;
/// After a change, an answer of up to this many bytes is never refused, regardless of other holders: the caller would
/// not learn of the change.
pub const OWED: usize = 64 << 10;

#[derive(Clone, Copy)]
pub(super) struct Maxima {
    /// The maximum for one address without a credential.
    pub anonymous: usize,
    /// The maximum for one caller.
    pub known: usize,
    /// The maximum for all addresses without a credential together.
    pub strangers: usize,
    /// The maximum for all holders together.
    pub together: usize,
}

/// Counts the amounts that callers hold of one resource, and refuses more than the maxima.
pub struct ResourceLimit {
    pub(super) name: &'static str,
    /// The message for a holder that has reached its maximum.
    own: &'static str,
    pub(super) most: Maxima,
    total: AtomicUsize,
    /// The part of the total held by addresses without a credential.
    strangers: AtomicUsize,
    shares: Mutex<Shares>,
}

/// How much each holder has.
#[derive(Default)]
struct Shares {
    of: HashMap<Holder, usize>,
    /// The sums over an organization's tokens, channels and hosts.
    of_organizations: HashMap<i64, usize>,
}

impl Shares {
    fn held_by(&self, holder: Holder) -> usize {
        self.of.get(&holder).copied().unwrap_or(0)
    }

    fn of_organization(&self, org: i64) -> usize {
        self.of_organizations.get(&org).copied().unwrap_or(0)
    }

    fn add(&mut self, holder: Holder, more: usize) {
        *self.of.entry(holder).or_default() += more;
        if let Some(org) = holder.organization() {
            *self.of_organizations.entry(org).or_default() += more;
        }
    }

    fn take_off(&mut self, holder: Holder, less: usize) {
        take_off(&mut self.of, &holder, less);
        if let Some(org) = holder.organization() {
            take_off(&mut self.of_organizations, &org, less);
        }
    }
}

/// Subtracts an amount, and forgets its holder at 0.
fn take_off<K: Eq + Hash>(amounts: &mut HashMap<K, usize>, key: &K, less: usize) {
    if let Some(amount) = amounts.get_mut(key) {
        *amount -= less;
        if *amount == 0 {
            amounts.remove(key);
        }
    }
}

impl ResourceLimit {
    pub(super) fn new(name: &'static str, own: &'static str, most: Maxima) -> Arc<Self> {
        let (total, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { name, own, most, total, strangers, shares: Mutex::default() })
    }

    /// How much is currently held.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes `amount` for `holder`.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the holder exceeds its maximum, or its organization its share; `UNAVAILABLE` if the total
    /// exceeds its maximum.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Held> {
        let mut held = self.empty(holder);
        held.grow(amount)?;
        Ok(held)
    }

    /// Takes `amount` for `holder` if there is room. Otherwise the caller waits, so no refusal is counted.
    #[must_use]
    pub fn take_free(self: &Arc<Self>, holder: Holder, amount: usize) -> Option<Held> {
        let mut held = self.empty(holder);
        held.grow_free(amount).then_some(held)
    }

    fn empty(self: &Arc<Self>, holder: Holder) -> Held {
        Held { limit: Arc::clone(self), holder: self.keyed(holder), amount: 0 }
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

    /// Takes `amount` for `holder` without a check, for work that can no longer be refused.
    #[must_use]
    pub fn take_unchecked(self: &Arc<Self>, holder: Holder, amount: usize) -> Held {
        let mut held = self.empty(holder);
        held.add(&mut self.shares(), amount);
        held
    }

    /// Takes a piece of a stream. An event of moderate size is never lost because of other holders.
    ///
    /// # Errors
    /// As [`Self::take`] for a large piece; for one of moderate size only if the holder itself exceeds its maximum.
    pub fn take_piece(self: &Arc<Self>, holder: Holder, bytes: usize) -> Result<Option<Held>> {
        if bytes <= SMALL {
            Ok(None)
        } else if bytes <= OWED {
            let mut held = self.empty(holder);
            held.grow_own(bytes)?;
            Ok(Some(held))
        } else {
            self.take(holder, bytes).map(Some)
        }
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock()
    }

    fn refusal(&self, exceeded: Exceeded) -> Problem {
        count_refusal(self.name);
        let what = self.name.replace('_', " ");
        let problem = match exceeded {
            Exceeded::Own(most) => {
                Problem::new(Code::RateLimited, format!("{} ({most}).", self.own)).with("maximum", most)
            }
            Exceeded::Share => {
                let detail =
                    format!("The organization would hold more {what} than it leaves for others; try again.");
                Problem::new(Code::RateLimited, detail)
            }
            Exceeded::Together => {
                let detail = format!("The service has reached its maximum of {what}; try again.");
                Problem::new(Code::Unavailable, detail)
            }
        };
        problem.with("limit", self.name).with("retry_after", 5)
    }
}

/// Which maximum would be exceeded.
#[derive(Clone, Copy)]
enum Exceeded {
    /// The holder's maximum.
    Own(usize),
    /// An organization's share: it may hold no more than it leaves free.
    Share,
    /// The maximum for all holders.
    Together,
}

pub fn count_refusal(limit: &'static str) {
    if let Some(meters) = metrics::on() {
        meters.limited(limit);
    }
}

/// An amount held. Dropping it gives it back.
pub struct Held {
    limit: Arc<ResourceLimit>,
    holder: Holder,
    amount: usize,
}

impl Held {
    /// Takes more.
    ///
    /// # Errors
    /// As [`ResourceLimit::take`]. The amount already held stays held.
    pub fn grow(&mut self, more: usize) -> Result<()> {
        self.try_grow(more).map_err(|exceeded| self.limit.refusal(exceeded))
    }

    /// Takes more if there is room, and returns whether there was. Counts no refusal.
    pub fn grow_free(&mut self, more: usize) -> bool {
        self.try_grow(more).is_ok()
    }

    fn try_grow(&mut self, more: usize) -> std::result::Result<(), Exceeded> {
        let limit = Arc::clone(&self.limit);
        // The lock makes the sums exact.
        let mut shares = limit.shares();
        self.check_own(&shares, more)?;
        self.check_others(&shares, more)?;
        self.add(&mut shares, more);
        Ok(())
    }

    /// Takes more, regardless of other holders.
    fn grow_own(&mut self, more: usize) -> Result<()> {
        let limit = Arc::clone(&self.limit);
        let mut shares = limit.shares();
        self.check_own(&shares, more).map_err(|exceeded| limit.refusal(exceeded))?;
        self.add(&mut shares, more);
        Ok(())
    }

    /// Checks that the holder stays within its own maximum.
    fn check_own(&self, shares: &Shares, more: usize) -> std::result::Result<(), Exceeded> {
        let limit = &self.limit;
        let most = if self.is_strangers() { limit.most.anonymous } else { limit.most.known };
        let others = shares.held_by(self.holder) - self.amount;
        let mine = self.amount.saturating_add(more);
        // A single body or answer is admitted regardless of its size, which other settings limit.
        let is_first = others == 0 && limit.counts_bytes();
        if others.saturating_add(mine) > most && !is_first { Err(Exceeded::Own(most)) } else { Ok(()) }
    }

    /// Checks that others leave room for more.
    fn check_others(&self, shares: &Shares, more: usize) -> std::result::Result<(), Exceeded> {
        let limit = &self.limit;
        let of_strangers = limit.strangers.load(Ordering::Relaxed).saturating_add(more);
        let total = limit.total().saturating_add(more);
        if total > limit.most.together || (self.is_strangers() && of_strangers > limit.most.strangers) {
            return Err(Exceeded::Together);
        }
        let Some(org) = self.holder.organization() else { return Ok(()) };
        // An organization holds no more than it leaves free. Its first body or answer is admitted, as a holder's is.
        let held = shares.of_organization(org);
        if held > self.amount && held.saturating_add(more) > limit.most.together - total {
            return Err(Exceeded::Share);
        }
        Ok(())
    }

    fn add(&mut self, shares: &mut Shares, more: usize) {
        shares.add(self.holder, more);
        self.amount += more;
        self.limit.total.fetch_add(more, Ordering::Relaxed);
        if self.is_strangers() {
            self.limit.strangers.fetch_add(more, Ordering::Relaxed);
        }
    }

    const fn is_strangers(&self) -> bool {
        matches!(self.holder, Holder::Address(_))
    }

    /// Gives a part back.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.amount);
        if less == 0 {
            return;
        }
        self.amount -= less;
        let mut shares = self.limit.shares();
        self.limit.total.fetch_sub(less, Ordering::Relaxed);
        if self.is_strangers() {
            self.limit.strangers.fetch_sub(less, Ordering::Relaxed);
        }
        shares.take_off(self.holder, less);
    }

    #[must_use]
    pub fn holder(&self) -> Holder {
        self.holder
    }

    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Ties `bytes` to this: the amount is held until their last copy is dropped.
    #[must_use]
    pub fn with_bytes(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _held: Arc::clone(self) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(self.amount);
    }
}

struct CountedBytes {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn limit(anonymous: usize, known: usize, together: usize) -> Arc<ResourceLimit> {
        let strangers = together / 2;
        ResourceLimit::new(
            "things",
            "You have reached your maximum of things",
            Maxima { anonymous, known, strangers, together },
        )
    }

    const ADA: Holder = Holder::Person(1);
    const BEN: Holder = Holder::Person(2);

    #[test]
    fn what_waits_for_room_takes_it_when_there_is_some() {
        let limit = limit(1, 2, usize::MAX);
        let held = limit.take_free(ADA, 2).unwrap();
        let mut waiting = limit.take_free(ADA, 0).unwrap();
        assert!(!waiting.grow_free(1) && limit.take_free(ADA, 1).is_none() && limit.total() == 2);
        drop(held);
        assert!(waiting.grow_free(1) && limit.total() == 1);
    }

    #[test]
    fn what_is_dropped_can_be_taken_again() {
        let limit = limit(1, 2, usize::MAX);
        let (one, two) = (limit.take(ADA, 1).ok(), limit.take(ADA, 1).ok());
        assert!(one.is_some() && two.is_some() && limit.total() == 2);
        let refused = limit.take(ADA, 1).err().unwrap();
        assert_eq!((refused.code, refused.retry_after()), (Code::RateLimited, Some(5)));
        assert!(limit.take(BEN, 1).is_ok(), "others are not affected");
        drop(limit.take_unchecked(ADA, 1));
        assert_eq!(limit.total(), 2);
        drop(one);
        assert!(limit.take(ADA, 1).is_ok());
        drop(two);
        assert!((limit.total(), limit.shares().of.len()) == (0, 0), "no holder is remembered");
    }

    #[test]
    fn an_address_has_a_limit_of_its_own() {
        let limit = limit(1, 2, usize::MAX);
        let address = Holder::at(Some("192.0.2.1".parse().unwrap()));
        let _held = limit.take(address, 1).ok();
        assert_eq!(limit.take(address, 1).err().unwrap().code, Code::RateLimited);
    }

    #[test]
    fn the_total_is_bounded_and_one_may_hold_a_large_share() {
        let limit = limit(25, 25, 100);
        let mut large = limit.take(ADA, 60).unwrap();
        assert_eq!(large.grow(41).err().unwrap().code, Code::Unavailable);
        assert_eq!(limit.take(ADA, 10).err().unwrap().code, Code::RateLimited);
        let _other = limit.take(BEN, 40).unwrap();
        assert_eq!(limit.take(Holder::Person(3), 1).err().unwrap().code, Code::Unavailable);
        drop(large);
        assert_eq!(limit.total(), 40);
        assert!(limit.take(ADA, 10).is_ok());
    }

    #[test]
    fn those_who_are_known_have_room_that_strangers_can_not_take() {
        let limit = limit(25, 25, 100);
        let at = |n: u32| Holder::at(Some(IpAddr::V4(n.into())));
        let held: Vec<_> = (0..2).map(|n| limit.take(at(n), 25).unwrap()).collect();
        assert_eq!(limit.take(at(2), 1).err().unwrap().code, Code::Unavailable);
        let _known = limit.take(ADA, 25).unwrap();
        // The tokens of an organization share one holder's part.
        let _token = limit.take(Holder::Token(1, 1), 25).unwrap();
        assert_eq!(limit.take(Holder::Token(1, 2), 1).err().unwrap().code, Code::RateLimited);
        drop(held);
        assert!(limit.take(at(2), 25).is_ok());
    }

    #[test]
    fn an_organization_leaves_as_much_as_it_holds() {
        let limit = limit(25, 25, 100);
        let channel = |org, n| Holder::Channel(org, n);
        let first = limit.take(channel(1, 1), 25).unwrap();
        let mut second = limit.take(Holder::Server(1, 2), 20).unwrap();
        let refused = limit.take(channel(1, 3), 6).err().unwrap();
        assert_eq!((refused.code, refused.retry_after()), (Code::RateLimited, Some(5)));
        assert_eq!(second.grow(6).err().unwrap().code, Code::RateLimited);
        second.grow(5).unwrap();
        // Others have the other half, and share it likewise.
        let _theirs = [limit.take(channel(2, 4), 20).unwrap(), limit.take(channel(2, 5), 5).unwrap()];
        assert_eq!(limit.take(channel(2, 6), 1).err().unwrap().code, Code::RateLimited);
        let _person = limit.take(ADA, 25).unwrap();
        drop((first, second));
        assert_eq!(limit.shares().of_organizations.len(), 1, "no holder is remembered");
        assert!(limit.take(channel(1, 3), 25).is_ok());
    }

    #[test]
    fn pieces_of_streams_have_their_holders_maximum() {
        let limit = limit(OWED, 2 * OWED, 3 * OWED);
        assert!(limit.take_piece(ADA, SMALL).unwrap().is_none());
        let pieces = [limit.take_piece(ADA, OWED).unwrap(), limit.take_piece(ADA, OWED).unwrap()];
        assert_eq!(limit.take_piece(ADA, SMALL + 1).err().unwrap().code, Code::RateLimited);
        // Other holders cause no loss of events of moderate size.
        let _ben = [limit.take_piece(BEN, OWED).unwrap(), limit.take_piece(BEN, OWED).unwrap()];
        assert_eq!(limit.total(), 4 * OWED);
        assert_eq!(limit.take_piece(Holder::Person(3), OWED + 1).err().unwrap().code, Code::Unavailable);
        drop(pieces);
        assert!(limit.take_piece(ADA, OWED).unwrap().is_some());
    }

    #[test]
    fn bytes_are_held_until_the_last_copy_is_gone() {
        let limit = limit(100, 100, 200);
        let held = Arc::new(limit.take(ADA, 5).unwrap());
        let bytes = held.with_bytes(Bytes::from_static(b"hello"));
        drop(held);
        let part = bytes.slice(1..3);
        drop(bytes);
        assert_eq!((&part[..], limit.total()), (&b"el"[..], 5));
        drop(part);
        assert_eq!(limit.total(), 0);
    }
}
