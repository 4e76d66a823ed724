//! The resource limits: what callers currently hold in this process's memory, with a limit for each of them and for all together.
//!
//! Rate limits (`limits.rs`) bound how often callers may ask. The resource limits bounds what they hold meanwhile: connections, sockets,
//! subscriptions, bodies being received, answers waiting to be sent. Each of these is a [`Line`]. Taking something from a line
//! yields a [`Held`]; dropping that gives it back, however the work ends. Small items ([`SMALL`]) are not counted: the number
//! of connections bounds them, and a normal request pays nothing.
//!
//! - `table.rs`: [`ENTRIES`], the table of all lines, which docs/operations.md repeats.
//! - `line.rs`: what one line counts and refuses.
//! - `connections.rs`: the places of connections, and how many there can be.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use tokio::sync::Semaphore;

use crate::base::{bounds, network::network};
use crate::{
    base::{ids::OrgId, problem::Result},
    core::{
        access::Caller,
        config::{Config, RequestLimits},
    },
};

mod connections;
mod line;
mod table;

pub use connections::{Place, descriptors};
pub use line::{Held, Line, OWED, SMALL, count_refusal};
pub use table::{ENTRIES, Entry};

use connections::{RESERVED_CONNECTIONS, most_connections};
use line::Most;

/// How many channels a process sends to at a time, and in how many it asks people: vendors that accept and say nothing hold them.
const LANES: usize = 256;

/// A kind of thing that callers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// WebSockets.
    Sockets,
    /// Connections of hosts.
    Hosts,
    /// Subscriptions of a caller.
    Subscriptions,
    /// Subscriptions to an organization.
    Watchers,
    /// Bytes of request bodies being received.
    Bodies,
    /// Bytes of answers waiting to be sent.
    Answers,
    /// Channels that are being sent to.
    Lanes,
    /// Channels in which people are being asked.
    Asking,
    /// Deliveries of vendors that wait for their commit.
    Arrivals,
    /// Bytes of mails being read.
    Mails,
}

/// A holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A person, with all of their sessions.
    Person(i64),
    /// A service token of an organization.
    Token(i64, i64),
    /// Everyone at an address without a credential.
    Address(IpAddr),
    /// An organization.
    Organization(i64),
    /// The host of a server of an organization.
    Server(i64, i64),
    /// The vendor of a channel of an organization.
    Channel(i64, i64),
}

impl Holder {
    /// The holder for a caller at this address.
    #[must_use]
    pub fn of(caller: &Caller, ip: Option<IpAddr>) -> Self {
        match caller {
            Caller::Person(person) => Self::Person(person.id.0),
            Caller::Chatting(person) => Self::Person(person.id.0),
            Caller::Token(token) => Self::Token(token.org.0, token.id.0),
            Caller::System | Caller::Anonymous => Self::at(ip),
        }
    }

    /// The organization whose share it is part of. A person may belong to several, and an address to all.
    const fn organization(self) -> Option<i64> {
        match self {
            Self::Token(org, _) | Self::Organization(org) | Self::Server(org, _) | Self::Channel(org, _) => {
                Some(org)
            }
            Self::Person(_) | Self::Address(_) => None,
        }
    }

    /// The holder for an address.
    #[must_use]
    pub fn at(ip: Option<IpAddr>) -> Self {
        Self::Address(ip.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), network))
    }
}

/// All lines.
pub struct ResourceLimits {
    /// The places of connections.
    pub connections: Arc<Semaphore>,
    /// The places left when all others are taken.
    pub reserve: Arc<Semaphore>,
    most_connections: usize,
    sockets: Arc<Line>,
    hosts: Arc<Line>,
    subscriptions: Arc<Line>,
    watchers: Arc<Line>,
    bodies: Arc<Line>,
    answers: Arc<Line>,
    lanes: Arc<Line>,
    asking: Arc<Line>,
    arrivals: Arc<Line>,
    mails: Arc<Line>,
}

impl ResourceLimits {
    /// Limits under which nothing is held yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let limits = &config.limits;
        let most_connections = most_connections(config);
        // Without a credential, all callers together take a quarter: the rest remains for known callers.
        let bytes = |together: usize| Most {
            anonymous: together / 8,
            known: together / 8,
            strangers: together / 4,
            together,
        };
        Self {
            connections: Arc::new(Semaphore::new(most_connections)),
            reserve: Arc::new(Semaphore::new(RESERVED_CONNECTIONS)),
            most_connections,
            sockets: Line::new(
                "sockets",
                "You have reached your maximum of open WebSockets",
                sockets(limits),
            ),
            hosts: Line::new(
                "hosts",
                "This server's host has reached its maximum of connections",
                // The current one, and older ones that are being closed.
                each(8),
            ),
            subscriptions: Line::new(
                "subscriptions",
                "You have reached your maximum of open subscriptions",
                each(limits.subscriptions_per_caller),
            ),
            watchers: Line::new(
                "watchers",
                "The organization has reached its maximum of open subscriptions",
                each(limits.subscriptions_per_organization),
            ),
            bodies: Line::new(
                "body_bytes",
                "Your requests in progress have too many bytes in total",
                bytes(limits.bodies_bytes),
            ),
            answers: Line::new(
                "answer_bytes",
                "Too many bytes of answers are waiting for you to read them",
                bytes(limits.answers_bytes),
            ),
            lanes: Line::new("lanes", "The organization sends to its maximum of channels", places(LANES)),
            asking: Line::new("asking", "The organization asks in its maximum of channels", places(LANES)),
            arrivals: Line::new(
                "arrivals",
                "The organization has reached its maximum of waiting deliveries",
                places(bounds::QUEUE),
            ),
            mails: Line::new(
                "mail_bytes",
                "Too many bytes of the channel's mails are being read",
                // Two of the largest, each counted three times.
                bytes(256 << 20),
            ),
        }
    }

    /// The line of this kind.
    #[must_use]
    pub fn line(&self, what: What) -> &Arc<Line> {
        match what {
            What::Sockets => &self.sockets,
            What::Hosts => &self.hosts,
            What::Subscriptions => &self.subscriptions,
            What::Watchers => &self.watchers,
            What::Bodies => &self.bodies,
            What::Answers => &self.answers,
            What::Lanes => &self.lanes,
            What::Asking => &self.asking,
            What::Arrivals => &self.arrivals,
            What::Mails => &self.mails,
        }
    }

    /// Takes a subscription of a caller to an organization.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the caller, or the whole organization, has reached its maximum.
    pub fn subscription(&self, holder: Holder, org: OrgId) -> Result<[Held; 2]> {
        Ok([self.subscriptions.take(holder, 1)?, self.watchers.take(Holder::Organization(org.0), 1)?])
    }

    /// By name: how much is held, and the maximum for all together.
    #[must_use]
    pub fn totals(&self) -> Vec<(&'static str, usize, Option<usize>)> {
        let connections = self.most_connections - self.connections.available_permits();
        let lines = [
            &self.sockets,
            &self.hosts,
            &self.subscriptions,
            &self.watchers,
            &self.bodies,
            &self.answers,
            &self.lanes,
            &self.asking,
            &self.arrivals,
            &self.mails,
        ];
        let lines = lines.into_iter().map(|line| {
            (line.name, line.total(), (line.most.together < usize::MAX).then_some(line.most.together))
        });
        [("connections", connections, Some(self.most_connections))].into_iter().chain(lines).collect()
    }
}

fn sockets(limits: &RequestLimits) -> Most {
    Most { anonymous: limits.sockets_anonymous, ..each(limits.sockets_per_caller) }
}

fn each(known: usize) -> Most {
    Most { anonymous: 0, known, strangers: usize::MAX, together: usize::MAX }
}

/// Places of work, of which one organization may take a quarter: its vendors and receivers decide how long each is held.
const fn places(together: usize) -> Most {
    Most { anonymous: 0, known: together / 4, strangers: usize::MAX, together }
}

/// Marks an answer whose bytes are already in the resource limits, or shared by everyone.
#[derive(Clone, Copy, Debug)]
pub struct Settled;
