//! The ledger: what callers hold at a time in this process's memory, how much each of them may, and all of them together.
//!
//! Rate limits (`limits.rs`) bound how often somebody asks. The ledger bounds what is held meanwhile: connections, sockets,
//! subscriptions, bodies that arrive, answers that wait to be sent. Each is one [`Line`]. Whoever takes something from a
//! line gets a [`Held`] and gives it back by dropping it, however the work ends. What is [`SMALL`] is not entered: the number
//! of connections bounds it, and a normal request pays nothing.
//!
//! [`ENTRIES`] is the table of all lines; docs/operations.md repeats it.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::network::network;
use crate::{
    base::{
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::{
        access::Caller,
        config::{Config, Limits},
        telemetry::metrics,
    },
};

/// Bodies and answers up to so many bytes are not entered.
pub const SMALL: usize = 16 << 10;
/// Answers up to so many bytes are given to whoever has changed something, whatever they hold: they would not know of it.
pub const OWED: usize = 64 << 10;
/// Connections beyond `limits.connections`, on which probes are answered and everybody else is told to come back.
const RESERVED_CONNECTIONS: usize = 32;
/// Descriptors for everything that is neither a connection of a client nor one to the database.
const OTHER_DESCRIPTORS: usize = 100;
/// One holder may have this part of the bytes that all of them may have together.
const PART: usize = 8;
/// And all who come without a credential this part, so that those who are known have the rest.
const PART_OF_STRANGERS: usize = 4;
/// After how many seconds to come back.
const COME_BACK: i64 = 5;

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// WebSockets.
    Sockets,
    /// Subscriptions of a caller.
    Subscriptions,
    /// Subscriptions to an organization.
    Watchers,
    /// Bytes of request bodies under way.
    Bodies,
    /// Bytes of answers that wait to be sent.
    Answers,
}

/// What the documentation says of a line.
pub struct Entry {
    /// Its name: in metrics, and in the details of a refusal.
    pub name: &'static str,
    /// What is counted.
    pub about: &'static str,
    /// How much an address without a credential may hold.
    pub anonymous: &'static str,
    /// How much a caller may hold.
    pub known: &'static str,
    /// How much all may hold together.
    pub together: &'static str,
    /// What happens beyond.
    pub beyond: &'static str,
}

/// Every line, and the two limits of the same kind that are kept where the work is done. In braces stand settings, of which the
/// documentation shows the default.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "connections",
        about: "Connections, sockets included, for as long as they live",
        anonymous: "",
        known: "",
        together: "{limits.connections}, or what `ulimit -n` leaves room for",
        beyond: "32 more, on which probes are answered and everybody else hears 503; then they wait",
    },
    Entry {
        name: "sockets",
        about: "WebSockets",
        anonymous: "{limits.sockets_anonymous}; closed unless a credential comes within {limits.socket_init_seconds} s",
        known: "{limits.sockets_per_caller}",
        together: "as connections",
        beyond: "429, or the socket is closed (4403; 4408 without a credential in time)",
    },
    Entry {
        name: "subscriptions",
        about: "Subscriptions that are open",
        anonymous: "0",
        known: "{limits.subscriptions_per_caller}",
        together: "",
        beyond: "429, as an error of that operation",
    },
    Entry {
        name: "watchers",
        about: "The same, by organization",
        anonymous: "",
        known: "",
        together: "{limits.subscriptions_per_organization} to each organization",
        beyond: "the same",
    },
    Entry {
        name: "body_bytes",
        about: "Bytes of request bodies under way, where one is larger than 16 KiB",
        anonymous: "a body of {limits.anonymous_body_bytes}; all addresses together a quarter",
        known: "an eighth, or one body; all tokens of an organization together",
        together: "{limits.bodies_bytes}",
        beyond: "413; 429; 503 where all together hold too much",
    },
    Entry {
        name: "answer_bytes",
        about: "Bytes of answers that wait to be sent, where one is larger than 16 KiB",
        anonymous: "an eighth, or one answer; all addresses together a quarter",
        known: "an eighth, or one answer; all tokens of an organization together",
        together: "{limits.answers_bytes}",
        beyond: "429; 503. After a change 503, and only where the answer is larger than 64 KiB: the change stands. A connection that takes less than 64 KiB in {limits.write_timeout_seconds} s while more waits is closed",
    },
    Entry {
        name: "schema_bytes",
        about: "What one request asks about the schema itself (`src/read/room.rs`)",
        anonymous: "2 MiB, in a batch of 3 operations",
        known: "2 MiB, in a batch of {limits.graphql_batch}",
        together: "",
        beyond: "`QUERY_TOO_COMPLEX`",
    },
    Entry {
        name: "documents",
        about: "Bytes of parsed documents that are kept (`src/faces/graphql/documents.rs`)",
        anonymous: "0",
        known: "",
        together: "{limits.document_cache_bytes}",
        beyond: "those that nobody has sent for longest are dropped",
    },
];

/// Who holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A person, whatever they sign in with.
    Person(i64),
    /// A service token of an organization.
    Token(i64, i64),
    /// Whoever comes from an address without a credential.
    Address(IpAddr),
    /// An organization.
    Organization(i64),
}

impl Holder {
    /// The holder that a caller from this address is.
    #[must_use]
    pub fn of(caller: &Caller, ip: Option<IpAddr>) -> Self {
        match caller {
            Caller::Person(person) => Self::Person(person.id.0),
            Caller::Token(token) => Self::Token(token.org.0, token.id.0),
            Caller::System | Caller::Anonymous => Self::at(ip),
        }
    }

    /// Whoever comes from this address.
    #[must_use]
    pub fn at(ip: Option<IpAddr>) -> Self {
        Self::Address(ip.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), network))
    }
}

/// All lines.
pub struct Ledger {
    /// A connection's place.
    pub connections: Arc<Semaphore>,
    /// A place where all others are taken.
    pub reserve: Arc<Semaphore>,
    most_connections: usize,
    sockets: Arc<Line>,
    subscriptions: Arc<Line>,
    watchers: Arc<Line>,
    bodies: Arc<Line>,
    answers: Arc<Line>,
}

impl Ledger {
    /// Nothing is held yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let limits = &config.limits;
        let most_connections = most_connections(config);
        let bytes = |together: usize| Most {
            anonymous: together / PART,
            known: together / PART,
            strangers: together / PART_OF_STRANGERS,
            together,
        };
        Self {
            connections: Arc::new(Semaphore::new(most_connections)),
            reserve: Arc::new(Semaphore::new(RESERVED_CONNECTIONS)),
            most_connections,
            sockets: Line::new("sockets", "You have as many WebSockets open as you may", sockets(limits)),
            subscriptions: Line::new(
                "subscriptions",
                "You have as many subscriptions open as you may",
                each(limits.subscriptions_per_caller),
            ),
            watchers: Line::new(
                "watchers",
                "The organization has as many subscriptions open as it may",
                each(limits.subscriptions_per_organization),
            ),
            bodies: Line::new(
                "body_bytes",
                "Too many bytes of your requests are under way at a time",
                bytes(limits.bodies_bytes),
            ),
            answers: Line::new(
                "answer_bytes",
                "Too many bytes of your answers wait to be taken",
                bytes(limits.answers_bytes),
            ),
        }
    }

    /// One line.
    #[must_use]
    pub fn line(&self, what: What) -> &Arc<Line> {
        match what {
            What::Sockets => &self.sockets,
            What::Subscriptions => &self.subscriptions,
            What::Watchers => &self.watchers,
            What::Bodies => &self.bodies,
            What::Answers => &self.answers,
        }
    }

    /// A subscription of a caller to an organization.
    ///
    /// # Errors
    /// `RATE_LIMITED` where the caller, or all of the organization together, have as many as they may.
    pub fn subscription(&self, holder: Holder, org: OrgId) -> Result<[Held; 2]> {
        Ok([self.subscriptions.take(holder, 1)?, self.watchers.take(Holder::Organization(org.0), 1)?])
    }

    /// How much of everything is held, and the most of it, by name.
    #[must_use]
    pub fn totals(&self) -> Vec<(&'static str, usize, Option<usize>)> {
        let connections = self.most_connections - self.connections.available_permits();
        let lines = [&self.sockets, &self.subscriptions, &self.watchers, &self.bodies, &self.answers];
        let lines = lines.into_iter().map(|line| {
            (line.name, line.total(), (line.most.together < usize::MAX).then_some(line.most.together))
        });
        [("connections", connections, Some(self.most_connections))].into_iter().chain(lines).collect()
    }
}

/// How many descriptors the process needs for so many connections of clients.
#[must_use]
pub fn descriptors(config: &Config, connections: usize) -> usize {
    // One kind of connection to read with, one to write with.
    connections + RESERVED_CONNECTIONS + 2 * config.database.max_connections as usize + OTHER_DESCRIPTORS
}

/// As many as the settings say, but no more than there are descriptors for: what is left stays for the database, for files
/// and for probes.
fn most_connections(config: &Config) -> usize {
    let wanted = config.limits.connections;
    let open = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let open = open.map_or(usize::MAX, |open| usize::try_from(open).unwrap_or(usize::MAX));
    let possible = open.saturating_sub(descriptors(config, 0)).max(1);
    if possible < wanted {
        tracing::warn!(wanted, possible, "serve.fewer_connections: `ulimit -n` leaves room for no more");
    }
    wanted.min(possible).min(Semaphore::MAX_PERMITS)
}

fn sockets(limits: &Limits) -> Most {
    Most { anonymous: limits.sockets_anonymous, ..each(limits.sockets_per_caller) }
}

fn each(known: usize) -> Most {
    Most { anonymous: 0, known, strangers: usize::MAX, together: usize::MAX }
}

/// How much may be held.
#[derive(Clone, Copy)]
struct Most {
    /// By one address without a credential.
    anonymous: usize,
    /// By one caller.
    known: usize,
    /// By all addresses without a credential.
    strangers: usize,
    /// By all of them.
    together: usize,
}

/// One kind of thing that is held.
pub struct Line {
    name: &'static str,
    /// What a holder hears who has as much as it may.
    own: &'static str,
    most: Most,
    total: AtomicUsize,
    /// What addresses without a credential have of the total.
    strangers: AtomicUsize,
    by: Mutex<HashMap<Holder, usize>>,
}

impl Line {
    fn new(name: &'static str, own: &'static str, most: Most) -> Arc<Self> {
        let (total, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { name, own, most, total, strangers, by: Mutex::default() })
    }

    /// How much is held of it now.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes so much for `holder`.
    ///
    /// # Errors
    /// `RATE_LIMITED` where the holder has as much as it may; `UNAVAILABLE` where all together have.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Result<Held> {
        let mut held = Held { line: Arc::clone(self), holder: self.keyed(holder), amount: 0 };
        held.grow(amount)?;
        Ok(held)
    }

    /// Whom something is entered for: bytes of tokens for their organization, which could make more of them.
    fn keyed(&self, holder: Holder) -> Holder {
        match holder {
            Holder::Token(org, _) if self.counts_bytes() => Holder::Organization(org),
            holder => holder,
        }
    }

    fn counts_bytes(&self) -> bool {
        self.most.together < usize::MAX
    }

    /// Enters so much for `holder`, whatever is held: for what can't be refused any more.
    #[must_use]
    pub fn enter(self: &Arc<Self>, holder: Holder, amount: usize) -> Held {
        let holder = self.keyed(holder);
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        *by.entry(holder).or_default() += amount;
        self.add(holder, amount);
        drop(by);
        Held { line: Arc::clone(self), holder, amount }
    }

    /// Enters a piece of what streams. An event that is not large is not lost because others wait.
    ///
    /// # Errors
    /// As [`Self::take`], for a large one.
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
                let detail = format!("The service holds as many {what} as it may at a time; try again.");
                Problem::new(Code::Unavailable, detail)
            }
        };
        problem.with("limit", self.name).with("retry_after", COME_BACK)
    }
}

/// Tells the metrics that something was refused.
pub fn count_refusal(line: &'static str) {
    if let Some(meters) = metrics::on() {
        meters.limited(line);
    }
}

/// What somebody holds. Dropping it gives it back.
pub struct Held {
    line: Arc<Line>,
    holder: Holder,
    amount: usize,
}

impl Held {
    /// Takes so much more.
    ///
    /// # Errors
    /// As [`Line::take`]. What was held before still is.
    pub fn grow(&mut self, more: usize) -> Result<()> {
        let line = &self.line;
        let is_stranger = matches!(self.holder, Holder::Address(_));
        let most = if is_stranger { line.most.anonymous } else { line.most.known };
        let mut by = line.by.lock().unwrap_or_else(PoisonError::into_inner);
        let others = by.get(&self.holder).copied().unwrap_or(0) - self.amount;
        let mine = self.amount.saturating_add(more);
        // Of bytes, one body or answer is let in whatever its size: the settings bound that.
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

    /// Who holds it.
    #[must_use]
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// How much it is.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// `bytes`, for as long as anybody has them.
    #[must_use]
    pub fn with_bytes(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Entered { bytes, _held: Arc::clone(self) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut by = self.line.by.lock().unwrap_or_else(PoisonError::into_inner);
        self.line.total.fetch_sub(self.amount, Ordering::Relaxed);
        if matches!(self.holder, Holder::Address(_)) {
            self.line.strangers.fetch_sub(self.amount, Ordering::Relaxed);
        }
        if let Some(held) = by.get_mut(&self.holder) {
            *held -= self.amount;
            if *held == 0 {
                by.remove(&self.holder);
            }
        }
    }
}

/// Bytes that stand in the ledger.
struct Entered {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Entered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Marks an answer whose bytes stand in the ledger already, or are kept for everybody.
#[derive(Clone, Copy, Debug)]
pub struct Settled;

/// A connection's place: whatever works for the connection holds on to it, a socket for as long as it lives.
#[derive(Clone, Debug)]
pub struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
    /// Whether it is one of the reserve: for probes alone.
    pub reserved: bool,
}

impl Place {
    /// A place for the next connection; waits where there is none. None if nobody gives any out.
    pub async fn next(ledger: &Ledger) -> Option<Self> {
        let (place, reserve) = (Arc::clone(&ledger.connections), Arc::clone(&ledger.reserve));
        let (permit, reserved) = tokio::select! {
            biased;
            permit = place.acquire_owned() => (permit, false),
            permit = reserve.acquire_owned() => (permit, true),
        };
        Some(Self { _permit: Arc::new(permit.ok()?), reserved })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(anonymous: usize, known: usize, together: usize) -> Arc<Line> {
        let strangers = together / 2;
        Line::new(
            "things",
            "You have as many things as you may",
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
        assert!(line.take(BEN, 1).is_ok(), "others are not concerned");
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
        // Tokens of one organization share what one of them may have.
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
