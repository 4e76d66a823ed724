//! The connections of hosts in this process, and how they are woken.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::base::ids::ServerId;

/// The connections of hosts. Cheap to clone. A server has two for a moment, when its host has connected again.
#[derive(Clone, Default)]
pub struct HostConnections(Arc<Mutex<HashMap<ServerId, Vec<Wake>>>>);

struct Wake {
    epoch: i64,
    sender: watch::Sender<()>,
}

/// A connection's entry in [`HostConnections`]. Dropping it removes the entry.
pub struct HostConnection {
    hosts: HostConnections,
    server: ServerId,
    epoch: i64,
    wakes: watch::Receiver<()>,
}

/// Receives the wake-ups of a connection.
pub struct WakeUps(watch::Receiver<()>);

impl HostConnections {
    #[must_use]
    pub fn open(&self, server: ServerId, epoch: i64) -> HostConnection {
        let (sender, wakes) = watch::channel(());
        self.all().entry(server).or_default().push(Wake { epoch, sender });
        HostConnection { hosts: self.clone(), server, epoch, wakes }
    }

    /// Makes a server's connections check whether they are still current, and look for commands.
    pub fn wake(&self, server: ServerId) {
        for open in self.all().get(&server).into_iter().flatten() {
            open.sender.send_replace(());
        }
    }

    /// The connections: server and epoch.
    #[must_use]
    pub fn connected(&self) -> Vec<(ServerId, i64)> {
        let all = self.all();
        all.iter().flat_map(|(server, open)| open.iter().map(|open| (*server, open.epoch))).collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ServerId, Vec<Wake>>> {
        self.0.lock()
    }
}

impl HostConnection {
    /// Receives every future wake-up.
    #[must_use]
    pub fn woken(&self) -> WakeUps {
        WakeUps(self.wakes.clone())
    }
}

impl WakeUps {
    /// Waits until the connection is woken.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The entry is gone, and so is the connection.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for HostConnection {
    fn drop(&mut self) {
        let mut all = self.hosts.all();
        if let Some(open) = all.get_mut(&self.server) {
            open.retain(|open| open.epoch != self.epoch);
            if open.is_empty() {
                all.remove(&self.server);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn each_connection_of_a_server_is_woken_and_no_other() {
        let hosts = HostConnections::default();
        let places = [(1, 4), (1, 5), (2, 1)].map(|(server, epoch)| hosts.open(ServerId(server), epoch));
        let [mut old, mut new, mut other] = places.each_ref().map(HostConnection::woken);
        hosts.wake(ServerId(1));
        hosts.wake(ServerId(3));
        assert!(old.next().now_or_never().is_some() && new.next().now_or_never().is_some());
        assert!(new.next().now_or_never().is_none() && other.next().now_or_never().is_none());
        let [old, new, other] = places;
        drop((old, other));
        assert_eq!(hosts.connected(), [(ServerId(1), 5)]);
        drop(new);
        assert!(hosts.all().is_empty());
    }
}
