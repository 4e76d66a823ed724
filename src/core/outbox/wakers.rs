//! What the senders of this process share: how they are woken, and how often they may send.

use tokio::sync::watch;

use super::{hosts::Hosts, lanes::Lanes, pace::Pace};

/// Wakes the senders of waiting entries: the worker, or the gateway.
#[derive(Clone, Default)]
pub struct Wakers {
    /// The worker's.
    pub(super) worker: watch::Sender<()>,
    /// The hosts' connections in this process.
    pub hosts: Hosts,
    /// The channels that this process sends to at the moment.
    pub lanes: Lanes,
    /// And those in which it asks people.
    pub asking: Lanes,
    /// How often those may send.
    pub pace: Pace,
}
