//! Services of the host for a gate: decisions and leases of the control plane, and reports to it.

use std::io;

use futures::future::BoxFuture;
use muster_protocol::{
    HostEvent,
    plan::{Crossing, Limits, McpServer},
    spending::{Lease, LeaseAsked},
};

/// Decision on a crossing, by the rules or by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrossingDecision {
    /// Allowed by the rules.
    Allowed,
    /// Just allowed by a person.
    Approved,
    Refused {
        /// The reason, for the agent.
        reason: String,
    },
    /// A person was asked, and has not answered in time.
    Asked,
}

/// A crossing to judge.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossingRequest {
    pub crossing: Crossing,
    /// Its conversation, if known.
    pub conversation_id: Option<i64>,
    /// One line for people.
    pub title: String,
}

/// Answer to a lease request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    Granted(Lease),
    /// Nothing may be spent now.
    Refused {
        /// The reason, for the agent.
        reason: String,
    },
}

/// The host's services for a gate.
pub trait HostServices: Send + Sync + 'static {
    /// Judges a crossing, waiting for a person if one has to decide.
    fn judge(&self, asking: CrossingRequest) -> BoxFuture<'_, CrossingDecision>;

    /// Requests a lease for a model.
    fn lease(&self, asked: LeaseAsked) -> BoxFuture<'_, LeaseOutcome>;

    /// Waits until the host can take reports. Every model call is reported as an event of its own, so no call starts
    /// earlier.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Reports to the control plane, without waiting.
    fn report(&self, event: HostEvent);

    /// The control plane's time, in milliseconds since 1970.
    fn now(&self) -> i64;

    /// The command of an MCP server over stdio, ready to spawn outside of the agent's sandbox, in its own sandbox, with
    /// the agent's limits.
    fn program(&self, server: &McpServer, limits: Limits) -> io::Result<tokio::process::Command>;
}
