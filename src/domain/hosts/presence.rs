//! Jobs about connections: wake superseded ones and those with commands, refresh the presence of the others, and mark
//! servers OFFLINE whose host is lost.

use std::{sync::Arc, time::Duration};

use super::{
    Link, handshake,
    queries::{self, SilenceLimits},
};
use crate::{
    base::{ids::ServerId, problem::Result},
    core::{Core, access::Scope, job_counts::Tally},
};

/// How long a host may be silent before it is lost: its network has failed, or its replica has died.
pub const SILENT: Duration = Duration::from_secs(45);

/// Wakes the connections of this process that are superseded, or have commands to send.
pub async fn wake_connections(core: &Arc<Core>) -> Result<u64> {
    let connected = core.hosts.connected();
    if connected.is_empty() {
        return Ok(0);
    }
    let ids: Vec<i64> = connected.iter().map(|(server, _)| server.0).collect();
    for server in queries::watched(core, &ids).await? {
        let is_over = |(id, epoch): &(ServerId, i64)| *id == server.id && *epoch != server.host_epoch;
        if server.has_commands || connected.iter().any(is_over) {
            core.hosts.wake(server.id);
        }
    }
    Ok(0)
}

/// Refreshes `last_seen_at` of the hosts that are connected to this process. Servers that were marked OFFLINE
/// meanwhile, because this machine slept or a clock was set, are ONLINE again. Returns how many were.
pub async fn refresh_presence(core: &Arc<Core>) -> Result<u64> {
    let connected = core.hosts.connected();
    let ids: Vec<i64> = connected.iter().map(|(server, _)| server.0).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    // The replica's id identifies its connections, so the epochs aren't needed.
    queries::update_last_seen(core, &ids).await?;
    let mut back = Tally::default();
    for found in queries::offline(core, &ids).await? {
        let (org, server, epoch) = (found.organization_id, found.id, found.host_epoch);
        if connected.contains(&(server, epoch)) {
            back.add(org, mark_online(&Scope::system(core, org), server, epoch).await);
        }
    }
    back.close()
}

async fn mark_online(scope: &Scope, server: ServerId, epoch: i64) -> Result<bool> {
    let tx = scope.begin().await?;
    // If the connection ends at this moment, the server goes OFFLINE by its silence.
    let is_back = queries::mark_online(&tx, server, epoch).await?;
    if is_back {
        handshake::announce(&tx, server);
    }
    tx.commit().await?;
    Ok(is_back)
}

/// Records the end of a connection. The host may be back in a moment. If the database is unreachable, the server goes
/// OFFLINE by its silence.
pub async fn record_disconnect(link: &Link) -> Result<()> {
    queries::store_end(link).await
}

/// Marks servers OFFLINE whose host has been disconnected for five seconds, or silent for [`SILENT`]. Returns how many.
pub async fn mark_offline(core: &Arc<Core>) -> Result<u64> {
    let now = core.clock.now();
    let limits = SilenceLimits { silent: now.minus(SILENT), away: now.minus(Duration::from_secs(5)) };
    let mut marked = Tally::default();
    for server in queries::gone(core, limits).await? {
        let scope = Scope::system(core, server.organization_id);
        marked.add(scope.org, mark_if_gone(&scope, server.id, limits).await);
    }
    marked.close()
}

async fn mark_if_gone(scope: &Scope, server: ServerId, limits: SilenceLimits) -> Result<bool> {
    let tx = scope.begin().await?;
    // It may be back.
    let is_gone = queries::mark_offline(&tx, server, limits).await?;
    if is_gone {
        handshake::announce(&tx, server);
    }
    tx.commit().await?;
    Ok(is_gone)
}
