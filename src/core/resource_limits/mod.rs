//! The resource limits: how much callers may hold in this process's memory, each of them and all together.
//!
//! Rate limits (`rate_limits.rs`) bound how often callers may ask. Resource limits bound the resources that they hold
//! meanwhile: connections, sockets, subscriptions, bodies being received, answers waiting to be sent. Each has a
//! [`ResourceLimit`]. Taking from it yields a [`Held`]; dropping that gives the amount back, however the work ends.
//! Small items ([`SMALL`]) are not counted: the number of connections bounds them, and a normal request pays nothing.
//!
//! - `table.rs`: [`ENTRIES`], the table of all limits, which docs/limits.md repeats.
//! - `limit.rs`: one limit, which counts and refuses.
//! - `connections.rs`: how many connections there can be, and the permit of each.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use tokio::sync::Semaphore;

use crate::{
    base::{bounds, ids::OrgId, network::client_network, problem::Result},
    core::{
        access::Caller,
        config::{Config, RequestLimits},
    },
};

mod connections;
mod limit;
mod table;

pub use connections::{ConnectionPermit, descriptors};
pub use limit::{Held, OWED, ResourceLimit, SMALL, count_refusal};
pub use table::{ENTRIES, Entry};

use connections::{RESERVED_CONNECTIONS, most_connections};
use limit::Maxima;

/// How many channels a process sends to at a time, in how many it asks people, and how many event endpoints it sends to.
/// A vendor that accepts a connection and never answers holds one.
const LANES: usize = 256;

/// Something that callers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
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
    /// Channels to which messages are being sent.
    Lanes,
    /// Channels in which people are being asked.
    Asking,
    /// Endpoints to which events are being sent.
    Events,
    /// Deliveries from vendors that wait for their commit.
    Arrivals,
    /// Bytes of mails being read.
    Mails,
}

/// The party that an amount is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A person, with all of their sessions.
    Person(i64),
    /// A service token of an organization.
    Token(i64, i64),
    /// Everyone at an address without a credential.
    Address(IpAddr),
    Organization(i64),
    /// The host of a server of an organization.
    Server(i64, i64),
    /// The vendor of a channel of an organization.
    Channel(i64, i64),
}

impl Holder {
    #[must_use]
    pub fn of(caller: &Caller, ip: Option<IpAddr>) -> Self {
        match caller {
            Caller::Person(person) => Self::Person(person.id.0),
            Caller::LinkedChat(person) => Self::Person(person.id.0),
            Caller::Token(token) => Self::Token(token.org.0, token.id.0),
            Caller::System | Caller::Anonymous => Self::at(ip),
        }
    }

    /// The organization whose share this holder counts toward. A person may belong to several, and an address to all.
    const fn organization(self) -> Option<i64> {
        match self {
            Self::Token(org, _) | Self::Organization(org) | Self::Server(org, _) | Self::Channel(org, _) => {
                Some(org)
            }
            Self::Person(_) | Self::Address(_) => None,
        }
    }

    #[must_use]
    pub fn at(ip: Option<IpAddr>) -> Self {
        Self::Address(ip.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), client_network))
    }
}

pub struct ResourceLimits {
    pub connections: Arc<Semaphore>,
    /// For probes, when all other connections are taken.
    pub reserve: Arc<Semaphore>,
    most_connections: usize,
    sockets: Arc<ResourceLimit>,
    hosts: Arc<ResourceLimit>,
    subscriptions: Arc<ResourceLimit>,
    watchers: Arc<ResourceLimit>,
    bodies: Arc<ResourceLimit>,
    answers: Arc<ResourceLimit>,
    lanes: Arc<ResourceLimit>,
    asking: Arc<ResourceLimit>,
    events: Arc<ResourceLimit>,
    arrivals: Arc<ResourceLimit>,
    mails: Arc<ResourceLimit>,
}

impl ResourceLimits {
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let limits = &config.limits;
        let most_connections = most_connections(config);
        // All callers without a credential together get a quarter; the rest remains for known callers.
        let bytes = |together: usize| Maxima {
            anonymous: together / 8,
            known: together / 8,
            strangers: together / 4,
            together,
        };
        Self {
            connections: Arc::new(Semaphore::new(most_connections)),
            reserve: Arc::new(Semaphore::new(RESERVED_CONNECTIONS)),
            most_connections,
            sockets: ResourceLimit::new(
                "sockets",
                "You have reached your maximum of open WebSockets",
                sockets(limits),
            ),
            hosts: ResourceLimit::new(
                "hosts",
                "This server's host has reached its maximum of connections",
                // The current one, and older ones that are being closed.
                each(8),
            ),
            subscriptions: ResourceLimit::new(
                "subscriptions",
                "You have reached your maximum of open subscriptions",
                each(limits.subscriptions_per_caller),
            ),
            watchers: ResourceLimit::new(
                "watchers",
                "The organization has reached its maximum of open subscriptions",
                each(limits.subscriptions_per_organization),
            ),
            bodies: ResourceLimit::new(
                "body_bytes",
                "Your requests in progress have too many bytes in total",
                bytes(limits.bodies_bytes),
            ),
            answers: ResourceLimit::new(
                "answer_bytes",
                "Too many bytes of answers are waiting for you to read them",
                bytes(limits.answers_bytes),
            ),
            lanes: ResourceLimit::new(
                "lanes",
                "The organization sends to its maximum of channels",
                places(LANES),
            ),
            asking: ResourceLimit::new(
                "asking",
                "The organization asks in its maximum of channels",
                places(LANES),
            ),
            events: ResourceLimit::new(
                "event_lanes",
                "The organization sends to its maximum of event endpoints",
                places(LANES),
            ),
            arrivals: ResourceLimit::new(
                "arrivals",
                "The organization has reached its maximum of waiting deliveries",
                places(bounds::QUEUE),
            ),
            mails: ResourceLimit::new(
                "mail_bytes",
                "Too many bytes of the channel's mails are being read",
                // Two of the largest, each counted three times.
                bytes(256 << 20),
            ),
        }
    }

    #[must_use]
    pub fn limit(&self, resource: Resource) -> &Arc<ResourceLimit> {
        match resource {
            Resource::Sockets => &self.sockets,
            Resource::Hosts => &self.hosts,
            Resource::Subscriptions => &self.subscriptions,
            Resource::Watchers => &self.watchers,
            Resource::Bodies => &self.bodies,
            Resource::Answers => &self.answers,
            Resource::Lanes => &self.lanes,
            Resource::Asking => &self.asking,
            Resource::Events => &self.events,
            Resource::Arrivals => &self.arrivals,
            Resource::Mails => &self.mails,
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
        let limits = [
            &self.sockets,
            &self.hosts,
            &self.subscriptions,
            &self.watchers,
            &self.bodies,
            &self.answers,
            &self.lanes,
            &self.asking,
            &self.events,
            &self.arrivals,
            &self.mails,
        ];
        let limits = limits.into_iter().map(|limit| {
            (limit.name, limit.total(), (limit.most.together < usize::MAX).then_some(limit.most.together))
        });
        [("connections", connections, Some(self.most_connections))].into_iter().chain(limits).collect()
    }
}

fn sockets(limits: &RequestLimits) -> Maxima {
    Maxima { anonymous: limits.sockets_anonymous, ..each(limits.sockets_per_caller) }
}

fn each(known: usize) -> Maxima {
    Maxima { anonymous: 0, known, strangers: usize::MAX, together: usize::MAX }
}

/// Slots for work, of which one organization may take a quarter: its vendors and receivers decide how long each is
/// held.
const fn places(together: usize) -> Maxima {
    Maxima { anonymous: 0, known: together / 4, strangers: usize::MAX, together }
}

/// Marks an answer whose bytes are already counted, or shared by everyone.
#[derive(Clone, Copy, Debug)]
pub struct AlreadyCounted;
