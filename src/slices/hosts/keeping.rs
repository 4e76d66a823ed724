//! The rounds: connections look whether they are still in force, say that they are there, and go OFFLINE when they are
//! not.

use std::{sync::Arc, time::Duration};

use sea_orm::{QueryResult, Value};

use super::{Link, hello, write};
use crate::{
    base::{
        enums::ServerStatus,
        ids::{OrgId, ServerId},
        problem::Result,
    },
    core::{Core, access::Scope, tally::Tally},
    slices::orgs::MAY_GO,
};

/// How often the connections of this process are compared with the database, in case nobody has woken them.
pub const LOOK: Duration = Duration::from_millis(800);
/// How often this process says which hosts are connected to it.
pub const SEEN: Duration = Duration::from_secs(15);
/// How long a host may be away before its server is OFFLINE.
const AWAY: Duration = Duration::from_secs(5);
/// How long nobody may have heard of a host, because its replica has died.
const SILENT: Duration = Duration::from_secs(45);

/// Wakes the connections of this process that are over, or have commands to send.
///
/// # Errors
/// The database can't be reached.
pub async fn look(core: &Arc<Core>) -> Result<u64> {
    let connected = core.outbox.hosts.connected();
    if connected.is_empty() {
        return Ok(0);
    }
    let ids: Vec<i64> = connected.iter().map(|(server, _)| server.0).collect();
    let sql = format!(
        "SELECT s.id, s.host_epoch, EXISTS (SELECT 1 FROM outbox c WHERE c.organization_id = s.organization_id \
         AND c.server_id = s.id AND c.acknowledged_at IS NULL AND c.host_seq IS NULL AND c.expires_at > $1 \
         AND {MAY_GO}) FROM servers s WHERE s.id {}",
        core.db.is_among()
    );
    for row in core.db.all(sql, vec![core.clock.now().into(), core.db.keys(&ids)]).await? {
        let (server, epoch, has_commands): (ServerId, i64, bool) =
            (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
        if has_commands || connected.iter().any(|(of, is)| *of == server && *is != epoch) {
            core.outbox.hosts.wake(server);
        }
    }
    Ok(0)
}

/// Notes that the hosts that are connected to this process are there. Their servers are ONLINE again if they were marked
/// OFFLINE meanwhile, because this machine slept or a clock was set. Returns how many were.
///
/// # Errors
/// The database can't be reached.
pub async fn seen(core: &Arc<Core>) -> Result<u64> {
    let connected = core.outbox.hosts.connected();
    let ids: Vec<i64> = connected.iter().map(|(server, _)| server.0).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    // The replica stands for the epochs: another one's connection has its own name there.
    let among = core.db.is_among();
    let sql = format!("UPDATE servers SET last_seen_at = $1 WHERE id {among} AND host_replica = $3");
    let values = vec![core.clock.now().into(), core.db.keys(&ids), core.replicas.own_id().into()];
    core.db.execute(&sql, values).await?;
    let sql = format!("SELECT organization_id, id, host_epoch FROM servers WHERE status = $1 AND id {among}");
    let mut back = Tally::default();
    for row in &core.db.all(sql, vec![ServerStatus::Offline.into(), core.db.keys(&ids)]).await? {
        let (org, server, epoch): (OrgId, ServerId, i64) =
            (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
        if connected.contains(&(server, epoch)) {
            back.add(org, mark_online(&Scope::system(core, org), server, epoch).await);
        }
    }
    back.close()
}

async fn mark_online(scope: &Scope, server: ServerId, epoch: i64) -> Result<bool> {
    let tx = scope.begin().await?;
    // Should the connection end at this moment, the server goes OFFLINE by its silence.
    let sql = "UPDATE servers SET status = 'ONLINE', host_replica = $4, last_seen_at = $5 \
               WHERE organization_id = $1 AND id = $2 AND host_epoch = $3 AND status = 'OFFLINE'";
    let own = scope.core.replicas.own_id().into();
    let values = vec![scope.org.into(), server.into(), epoch.into(), own, tx.now.into()];
    let is_back = write(&tx, sql, values).await? == 1;
    if is_back {
        hello::announce(&tx, server);
    }
    tx.commit().await?;
    Ok(is_back)
}

/// Notes that a connection has ended. The host may be back in a moment.
///
/// # Errors
/// The database can't be reached; then the server goes OFFLINE by its silence.
pub async fn leave(link: &Link) -> Result<()> {
    let sql = "UPDATE servers SET host_replica = NULL, last_seen_at = $4 WHERE organization_id = $1 AND id = $2 \
               AND host_epoch = $3";
    let core = &link.scope.core;
    core.db.execute(sql, link.values([core.clock.now().into()])).await?;
    Ok(())
}

/// The condition that a server's host is gone. Servers that never had one keep the status they were given.
const GONE: &str = "status IN ('ONLINE', 'DEGRADED') AND host_epoch > 0 \
                    AND (last_seen_at < $1 OR (host_replica IS NULL AND last_seen_at < $2))";

/// Marks servers whose host is gone. Returns how many.
///
/// # Errors
/// The database can't be reached.
pub async fn mark_offline(core: &Arc<Core>) -> Result<u64> {
    let now = core.clock.now();
    let limits = || [now.minus(SILENT).into(), now.minus(AWAY).into()];
    let sql = format!("SELECT organization_id, id FROM servers WHERE {GONE}");
    let gone = core.db.all(sql, limits().into()).await?;
    let read =
        |row: &QueryResult| -> Result<(OrgId, ServerId)> { Ok((row.try_get_by(0)?, row.try_get_by(1)?)) };
    let mut marked = Tally::default();
    for row in &gone {
        let (org, server) = read(row)?;
        marked.add(org, mark(&Scope::system(core, org), server, limits()).await);
    }
    marked.close()
}

async fn mark(scope: &Scope, server: ServerId, limits: [Value; 2]) -> Result<bool> {
    let tx = scope.begin().await?;
    let sql = format!(
        "UPDATE servers SET status = 'OFFLINE', host_replica = NULL WHERE {GONE} AND organization_id = $3 AND id = $4"
    );
    let values = limits.into_iter().chain([scope.org.into(), server.into()]).collect();
    // It may be back.
    let is_gone = write(&tx, &sql, values).await? == 1;
    if is_gone {
        hello::announce(&tx, server);
    }
    tx.commit().await?;
    Ok(is_gone)
}
