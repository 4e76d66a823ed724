//! Connections: how many the process can serve, and the place that each of them holds.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ResourceLimits;
use crate::core::config::Config;

/// Connections beyond `limits.connections`, on which probes are answered and everyone else is asked to come back later, however
/// many connections a flood opens.
pub(super) const RESERVED_CONNECTIONS: usize = 32;

/// How many file descriptors the process needs for this many client connections.
#[must_use]
pub fn descriptors(config: &Config, connections: usize) -> usize {
    // Two pools, one for reading, one for writing, and a hundred for everything else.
    connections + RESERVED_CONNECTIONS + 2 * config.database.max_connections as usize + 100
}

/// The configured maximum, reduced to what the file descriptors allow after the database, files and probes.
pub(super) fn most_connections(config: &Config) -> usize {
    let wanted = config.limits.connections;
    let open = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let open = open.map_or(usize::MAX, |open| usize::try_from(open).unwrap_or(usize::MAX));
    let possible = open.saturating_sub(descriptors(config, 0)).max(1);
    if possible < wanted {
        tracing::warn!(wanted, possible, "serve.fewer_connections: `ulimit -n` does not allow more");
    }
    wanted.min(possible).min(Semaphore::MAX_PERMITS)
}

/// A connection's place, held by everything that works for the connection; by a socket as long as it is open.
#[derive(Clone, Debug)]
pub struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
    /// Whether it is one of the reserve, for probes only.
    pub reserved: bool,
}

impl Place {
    /// Waits for a place for the next connection. `None` if the resource limits is closed.
    pub async fn next(resource_limits: &ResourceLimits) -> Option<Self> {
        let (place, reserve) =
            (Arc::clone(&resource_limits.connections), Arc::clone(&resource_limits.reserve));
        let (permit, reserved) = tokio::select! {
            biased;
            permit = place.acquire_owned() => (permit, false),
            permit = reserve.acquire_owned() => (permit, true),
        };
        Some(Self { _permit: Arc::new(permit.ok()?), reserved })
    }
}
