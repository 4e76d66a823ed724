//! Connections: how many the process can serve, and the permit that each of them holds.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ResourceLimits;
use crate::core::config::Config;

/// Connections beyond `limits.connections`, so that probes are answered during a flood. All other requests on them are
/// asked to come back later.
pub(super) const RESERVED_CONNECTIONS: usize = 32;

/// The file descriptors that the process needs for this many client connections.
#[must_use]
pub fn descriptors(config: &Config, connections: usize) -> usize {
    // Two pools, one for reading, one for writing, and a hundred for everything else.
    connections + RESERVED_CONNECTIONS + 2 * config.database.max_connections as usize + 100
}

/// The configured maximum, or fewer if the database, files and probes leave too few file descriptors.
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

/// The permit of a connection, held by everything that works for it; by a socket as long as it is open.
#[derive(Clone, Debug)]
pub struct ConnectionPermit {
    _permit: Arc<OwnedSemaphorePermit>,
    /// Whether it comes from the reserve for probes.
    pub reserved: bool,
}

impl ConnectionPermit {
    /// Waits for a permit for the next connection. `None` if the semaphores are closed.
    pub async fn acquire(resource_limits: &ResourceLimits) -> Option<Self> {
        let (normal, reserve) =
            (Arc::clone(&resource_limits.connections), Arc::clone(&resource_limits.reserve));
        let (permit, reserved) = tokio::select! {
            biased;
            permit = normal.acquire_owned() => (permit, false),
            permit = reserve.acquire_owned() => (permit, true),
        };
        Some(Self { _permit: Arc::new(permit.ok()?), reserved })
    }
}
