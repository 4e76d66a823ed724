//! One resource limit: how much of one thing is held, by whom, and what is refused.

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

/// Bodies and answers of up to this many bytes are not counted: the number of connections bounds how many a flood has of them.
pub const SMALL: usize = 16 << 10;
/// An answer of up to this many bytes is never refused to a caller who has changed something, however much others hold: the caller
/// would not learn of the change.
pub const OWED: usize = 64 << 10;

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
    shares: Mutex<Shares>,
}

/// Who holds how much.
#[derive(Default)]
struct Shares {
    of: HashMap<Holder, usize>,
    /// Of tokens, channels and hosts together.
    of_organizations: HashMap<i64, usize>,
}

impl Shares {
    fn of(&self, holder: Holder) -> usize {
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

/// No one who holds nothing is remembered.
fn take_off<K: Eq + Hash>(amounts: &mut HashMap<K, usize>, key: &K, less: usize) {
    if let Some(amount) = amounts.get_mut(key) {
        *amount -= less;
        if *amount == 0 {
            amounts.remove(key);
        }
    }
}

impl Line {
    pub(super) fn new(name: &'static str, own: &'static str, most: Most) -> Arc<Self> {
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
    /// `RATE_LIMITED` if the holder reaches its maximum, or its organization its share; `UNAVAILABLE` if all together reach
    /// theirs.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Held> {
        let mut held = self.nothing(holder);
        held.grow(amount)?;
        Ok(held)
    }

    /// Takes `amount` for `holder`, if there is room at the moment: for what waits until there is, which is no refusal.
    #[must_use]
    pub fn take_free(self: &Arc<Self>, holder: Holder, amount: usize) -> Option<Held> {
        let mut held = self.nothing(holder);
        held.grow_free(amount).then_some(held)
    }

    fn nothing(self: &Arc<Self>, holder: Holder) -> Held {
        Held { line: Arc::clone(self), holder: self.keyed(holder), amount: 0 }
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
        let mut held = self.nothing(holder);
        held.add(&mut self.shares(), amount);
        held
    }

    /// Takes a piece of a stream. An event of moderate size is never lost because of what others hold.
    ///
    /// # Errors
    /// As [`Self::take`], for a large piece; for one of moderate size only if the holder itself reaches its maximum.
    pub fn piece(self: &Arc<Self>, holder: Holder, bytes: usize) -> Result<Option<Held>> {
        if bytes <= SMALL {
            Ok(None)
        } else if bytes <= OWED {
            let mut held = self.nothing(holder);
            held.grow_own(bytes)?;
            Ok(Some(held))
        } else {
            self.take(holder, bytes).map(Some)
        }
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock()
    }

    fn refuse(&self, full: Full) -> Problem {
        count_refusal(self.name);
        let what = self.name.replace('_', " ");
        let problem = match full {
            Full::Own(most) => {
                Problem::new(Code::RateLimited, format!("{} ({most}).", self.own)).with("maximum", most)
            }
            Full::Share => {
                let detail =
                    format!("The organization would hold more {what} than it leaves for others; try again.");
                Problem::new(Code::RateLimited, detail)
            }
            Full::Together => {
                let detail = format!("The service has reached its maximum of {what}; try again.");
                Problem::new(Code::Unavailable, detail)
            }
        };
        problem.with("limit", self.name).with("retry_after", 5)
    }
}

/// What is full.
#[derive(Clone, Copy)]
enum Full {
    /// The holder's maximum.
    Own(usize),
    /// What the holder's organization may take while it leaves as much for others.
    Share,
    /// The maximum of all together.
    Together,
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
        self.try_grow(more).map_err(|full| self.line.refuse(full))
    }

    /// Takes more, if there is room at the moment. Returns whether there is: who waits for it is not refused.
    pub fn grow_free(&mut self, more: usize) -> bool {
        self.try_grow(more).is_ok()
    }

    fn try_grow(&mut self, more: usize) -> std::result::Result<(), Full> {
        let line = Arc::clone(&self.line);
        // The lock makes the sums exact.
        let mut shares = line.shares();
        self.check_own(&shares, more)?;
        self.check_others(&shares, more)?;
        self.add(&mut shares, more);
        Ok(())
    }

    /// Takes more, however much others hold.
    fn grow_own(&mut self, more: usize) -> Result<()> {
        let line = Arc::clone(&self.line);
        let mut shares = line.shares();
        self.check_own(&shares, more).map_err(|full| line.refuse(full))?;
        self.add(&mut shares, more);
        Ok(())
    }

    /// Checks that the holder stays within its own maximum.
    fn check_own(&self, shares: &Shares, more: usize) -> std::result::Result<(), Full> {
        let line = &self.line;
        let most = if self.is_strangers() { line.most.anonymous } else { line.most.known };
        let others = shares.of(self.holder) - self.amount;
        let mine = self.amount.saturating_add(more);
        // A single body or answer is admitted regardless of its size, which other settings limit.
        let is_first = others == 0 && line.counts_bytes();
        if others.saturating_add(mine) > most && !is_first { Err(Full::Own(most)) } else { Ok(()) }
    }

    /// Checks that others leave room for more.
    fn check_others(&self, shares: &Shares, more: usize) -> std::result::Result<(), Full> {
        let line = &self.line;
        let of_strangers = line.strangers.load(Ordering::Relaxed).saturating_add(more);
        let total = line.total().saturating_add(more);
        if total > line.most.together || (self.is_strangers() && of_strangers > line.most.strangers) {
            return Err(Full::Together);
        }
        let Some(org) = self.holder.organization() else { return Ok(()) };
        // An organization holds no more than it leaves. Its first body or answer is admitted, as a holder's is.
        let held = shares.of_organization(org);
        if held > self.amount && held.saturating_add(more) > line.most.together - total {
            return Err(Full::Share);
        }
        Ok(())
    }

    fn add(&mut self, shares: &mut Shares, more: usize) {
        shares.add(self.holder, more);
        self.amount += more;
        self.line.total.fetch_add(more, Ordering::Relaxed);
        if self.is_strangers() {
            self.line.strangers.fetch_add(more, Ordering::Relaxed);
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
        let mut shares = self.line.shares();
        self.line.total.fetch_sub(less, Ordering::Relaxed);
        if self.is_strangers() {
            self.line.strangers.fetch_sub(less, Ordering::Relaxed);
        }
        shares.take_off(self.holder, less);
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

/// Bytes counted in the resource limits.
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
    fn what_waits_for_room_takes_it_when_there_is_some() {
        let line = line(1, 2, usize::MAX);
        let held = line.take_free(ADA, 2).unwrap();
        let mut waiting = line.take_free(ADA, 0).unwrap();
        assert!(!waiting.grow_free(1) && line.take_free(ADA, 1).is_none() && line.total() == 2);
        drop(held);
        assert!(waiting.grow_free(1) && line.total() == 1);
    }

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
        assert!((line.total(), line.shares().of.len()) == (0, 0), "nobody is remembered");
    }

    #[test]
    fn an_address_has_a_limit_of_its_own() {
        let line = line(1, 2, usize::MAX);
        let address = Holder::at(Some("192.0.2.1".parse().unwrap()));
        let _held = line.take(address, 1).ok();
        assert_eq!(line.take(address, 1).err().unwrap().code, Code::RateLimited);
    }

    #[test]
    fn the_total_is_bounded_and_one_may_hold_a_large_share() {
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
    fn an_organization_leaves_as_much_as_it_holds() {
        let line = line(25, 25, 100);
        let channel = |org, n| Holder::Channel(org, n);
        let first = line.take(channel(1, 1), 25).unwrap();
        let mut second = line.take(Holder::Server(1, 2), 20).unwrap();
        let refused = line.take(channel(1, 3), 6).err().unwrap();
        assert_eq!((refused.code, refused.retry_after()), (Code::RateLimited, Some(5)));
        assert_eq!(second.grow(6).err().unwrap().code, Code::RateLimited);
        second.grow(5).unwrap();
        // Others have the other half, and share it likewise.
        let _theirs = [line.take(channel(2, 4), 20).unwrap(), line.take(channel(2, 5), 5).unwrap()];
        assert_eq!(line.take(channel(2, 6), 1).err().unwrap().code, Code::RateLimited);
        let _person = line.take(ADA, 25).unwrap();
        drop((first, second));
        assert_eq!(line.shares().of_organizations.len(), 1, "nobody is remembered");
        assert!(line.take(channel(1, 3), 25).is_ok());
    }

    #[test]
    fn pieces_of_streams_have_their_holders_maximum() {
        let line = line(OWED, 2 * OWED, 3 * OWED);
        assert!(line.piece(ADA, SMALL).unwrap().is_none());
        let pieces = [line.piece(ADA, OWED).unwrap(), line.piece(ADA, OWED).unwrap()];
        assert_eq!(line.piece(ADA, SMALL + 1).err().unwrap().code, Code::RateLimited);
        // What others hold loses no event of moderate size.
        let _ben = [line.piece(BEN, OWED).unwrap(), line.piece(BEN, OWED).unwrap()];
        assert_eq!(line.total(), 4 * OWED);
        assert_eq!(line.piece(Holder::Person(3), OWED + 1).err().unwrap().code, Code::Unavailable);
        drop(pieces);
        assert!(line.piece(ADA, OWED).unwrap().is_some());
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
