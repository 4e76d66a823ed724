//! What the host does for a gate: it asks the control plane, and reports to it.

use std::io;

use futures::future::BoxFuture;
use muster_protocol::{
    Happening,
    plan::{Crossing, Limits, McpServer},
    spending::{Lease, LeaseAsked},
};

/// What the rules, or a person, say about a crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, by the rules.
    Allowed,
    /// A person has just allowed it.
    Approved,
    /// It may not.
    Refused {
        /// Why, for the agent to read.
        reason: String,
    },
    /// A person was asked, and has not answered within the time that clients wait.
    Asked,
}

/// Something to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// What crosses.
    pub crossing: Crossing,
    /// The conversation in which the agent does it, if it is known.
    pub conversation_id: Option<i64>,
    /// What people read about it, in one line.
    pub title: String,
}

/// What becomes of the question for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leased {
    /// This may be spent.
    Granted(Lease),
    /// Nothing may be spent now.
    Refused {
        /// Why, for the agent to read.
        reason: String,
    },
}

/// What a gate needs of its host.
pub trait Outside: Send + Sync + 'static {
    /// Judges a crossing, and waits for a person where one has to decide.
    fn judge(&self, asking: Asking) -> BoxFuture<'_, Verdict>;

    /// Asks for the right to spend on a model.
    fn lease(&self, asked: LeaseAsked) -> BoxFuture<'_, Leased>;

    /// Waits until the host has room for reports. What is reported of a call of a model is an event of its own, however little
    /// the call did, so none is made before.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Reports to the control plane. Doesn't wait.
    fn report(&self, happening: Happening);

    /// The time by the control plane's clock, in milliseconds since 1970.
    fn now(&self) -> i64;

    /// The program of an MCP server over stdio, ready to be spawned outside of the agent's sandbox, in one of its own, with
    /// the agent's limits.
    fn program(&self, server: &McpServer, limits: Limits) -> io::Result<tokio::process::Command>;
}
