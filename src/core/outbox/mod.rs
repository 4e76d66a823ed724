//! The outbox: what must leave the process, written in the transaction of the change that causes it, so that neither
//! exists without the other.
//!
//! A row holds ids and never a secret; its sender reads the rest when sending. There are two kinds of entries:
//! - **Claimed** work (mail) is taken by the worker of any replica, retried, and finally given up: `worker.rs`.
//! - **Commands** for a server's host are neither claimed nor given up. The gateway (`slices/hosts`) sends what is waiting
//!   for a server in the order of ids until the host acknowledges it. What has not been sent by its deadline is dropped;
//!   a STOP has none.
//!
//! Rows with the same `order_key` are sent in the order of their ids: an agent's commands share a key, and so do
//! the notifications of a person; other mails have none.
//! A commit wakes the sender: for mail the worker in its own process ([`wake`]), for a command the [connection](Hosts) of
//! the host, on whatever replica it is. The rounds cover what gets lost, and crashes.

mod hosts;
mod kinds;
mod lanes;
mod pace;
mod wakers;
mod worker;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use muster_protocol::Command;
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};
use serde_json::json;
use tokio::sync::watch;

pub use self::{
    hosts::{Hosts, Open, Woken},
    kinds::{About, Mail, Notice},
    lanes::{Lane, Lanes, OLDEST_DUE},
    pace::{Full, Pace, Room},
    wakers::Wakers,
    worker::{Claim, MAIL_DUE, Outcome, work},
};
use crate::{
    base::{
        enums::OutboxKind,
        ids::{AgentId, OrgId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        store::{Transaction, Tx},
    },
};

/// How long a command waits for its host.
const COMMAND_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The deadline of a command that is never too late.
const NEVER: Timestamp = Timestamp(i64::MAX);

/// The longest wait that needs a wake: after a longer one, a round is about to come anyhow.
const SHORT: Duration = Duration::from_secs(1);

/// The recipient of a command: a server's host, and the agent in question.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// The host's server.
    pub server: ServerId,
    /// The agent.
    pub agent: AgentId,
    /// The launch that the command belongs to; reports of an older launch are dropped.
    pub generation: i64,
}

/// Puts a command into the outbox when the transaction commits.
pub fn enqueue(tx: &Tx, to: Host, command: &Command) {
    let host = [tx.scope.org.0, to.server.0, to.agent.0, to.generation].map(Some);
    let (key, expires_at) = (format!("agent:{}", to.agent), deadline(tx.now, command));
    put(&tx.scope.core, tx.connection(), (command.into(), json!(command)), host, Some(key), expires_at);
}

/// When a command becomes useless. A STOP never does: a host that is away lets its agents run on, and no one could stop one whose
/// STOP was given up.
fn deadline(now: Timestamp, command: &Command) -> Timestamp {
    if *command == Command::Stop { NEVER } else { now.plus(COMMAND_LIFETIME) }
}

/// Puts a mail into the outbox when the transaction commits. After `expires_at` it is useless.
pub fn enqueue_mail(core: &Core, tx: &Transaction, mail: &Mail, expires_at: Timestamp) {
    put(core, tx, (OutboxKind::Mail, json!(mail)), [None; 4], mail.order_key(), expires_at);
}

fn put(
    core: &Core,
    tx: &Transaction,
    (kind, payload): (OutboxKind, serde_json::Value),
    host: [Option<i64>; 4],
    order_key: Option<String>,
    expires_at: Timestamp,
) {
    let sql = "INSERT INTO outbox (organization_id, server_id, agent_id, generation, kind, payload, order_key, \
               created_at, available_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let now = core.clock.now();
    let mut values: Vec<Value> = host.map(Value::from).into();
    values.extend([kind.into(), payload.into(), order_key.into()]);
    values.extend([now.into(), now.into(), expires_at.into()]);
    tx.before_commit(Statement::from_sql_and_values(core.db.backend(), sql, values));
    match host[1] {
        Some(server) => wake_host_after(core, tx, ServerId(server)),
        None => {
            let worker = core.outbox.worker.clone();
            tx.after_commit(move || worker.send_replace(()));
        }
    }
}

/// Wakes the connection of a server's host after the commit: there are commands for it, or its epoch is over.
pub fn wake_host(tx: &Tx, server: ServerId) {
    wake_host_after(&tx.scope.core, tx.connection(), server);
}

/// Wakes, after the commit, every host of the organization for which commands wait.
///
/// # Errors
/// The database is unreachable.
pub async fn wake_hosts(tx: &Tx) -> Result<()> {
    let sql = "SELECT DISTINCT server_id FROM outbox WHERE organization_id = $1 AND server_id IS NOT NULL \
               AND acknowledged_at IS NULL AND host_seq IS NULL";
    let backend = tx.scope.core.db.backend();
    let statement = Statement::from_sql_and_values(backend, sql, [tx.scope.org.into()]);
    for row in tx.connection().query_all_raw(statement).await? {
        wake_host(tx, row.try_get_by(0)?);
    }
    Ok(())
}

fn wake_host_after(core: &Core, tx: &Transaction, server: ServerId) {
    let (hosts, hub) = (core.outbox.hosts.clone(), Arc::clone(&core.events));
    tx.after_commit(move || {
        hosts.wake(server);
        hub.wake_host(server);
    });
}

/// Wakes, after the commit, the rounds of this process that work on what waits to be sent.
pub fn wake_after(tx: &Tx) {
    let worker = tx.scope.core.outbox.worker.clone();
    tx.connection().after_commit(move || {
        worker.send_replace(());
    });
}

/// Wakes this process's worker.
pub fn wake(core: &Core) {
    core.outbox.worker.send_replace(());
}

/// Wakes this process's worker after a wait that is shorter than the pause between its rounds.
pub fn wake_in(core: &Arc<Core>, wait: Duration) {
    if wait > SHORT {
        return;
    }
    let core_then = Arc::clone(core);
    core.tasks.spawn(async move {
        let waited = core_then.tasks.stopping.run_until_cancelled(tokio::time::sleep(wait)).await;
        if waited.is_some() {
            wake(&core_then);
        }
    });
}

/// Signals new entries for the worker.
#[must_use]
pub fn woken(core: &Core) -> watch::Receiver<()> {
    core.outbox.worker.subscribe()
}

/// How many rows of each kind are waiting, and since when the oldest has waited. It reads an index of waiting rows
/// only. Kinds of a later version are included.
///
/// # Errors
/// The database can't be reached.
pub async fn waiting(core: &Core) -> Result<Vec<(String, i64, Option<Timestamp>)>> {
    let sql =
        "SELECT kind, COUNT(*), MIN(created_at) FROM outbox WHERE acknowledged_at IS NULL GROUP BY kind";
    let rows = core.db.all(sql.to_owned(), vec![]).await?;
    let known = OutboxKind::ALL.iter().map(|kind| (kind.as_str().to_owned(), (0, None)));
    let mut waiting: BTreeMap<_, _> = known.collect();
    for row in rows {
        waiting.insert(row.try_get_by(0)?, (row.try_get_by(1)?, row.try_get_by(2)?));
    }
    Ok(waiting.into_iter().map(|(kind, (depth, oldest))| (kind, depth, oldest)).collect())
}

/// The launches of these agents that will be told to bring themselves up to date: they ask for what has changed after this
/// transaction, so nothing has to be said again. A command that is being sent right now doesn't count.
///
/// # Errors
/// The database is unreachable.
pub async fn syncs_to_come(tx: &Tx, agents: &[AgentId]) -> Result<HashSet<(AgentId, i64)>> {
    let db = &tx.scope.core.db;
    // Held, so that it can't be sent before this transaction has ended.
    let held = if db.backend() == DbBackend::Postgres { " FOR UPDATE SKIP LOCKED" } else { "" };
    let sql = format!(
        "SELECT agent_id, generation FROM outbox WHERE organization_id = $1 AND agent_id {} AND kind = 'SYNC' \
         AND acknowledged_at IS NULL AND host_seq IS NULL AND expires_at > $3{held}",
        db.is_among()
    );
    let ids: Vec<i64> = agents.iter().map(|agent| agent.0).collect();
    let values = [tx.scope.org.into(), db.keys(&ids), tx.now.into()];
    let statement = Statement::from_sql_and_values(db.backend(), sql, values);
    let found = tx.connection().query_all_raw(statement).await?;
    found.iter().map(|row| Ok((row.try_get_by(0)?, row.try_get_by(1)?))).collect()
}

/// The launches of these agents about which the host of this server was sent commands: it is where they ran, wherever the agents
/// are now. A FORGET says nothing about that, since it goes to wherever a backup's file is. A week after the last of a launch's
/// commands was acknowledged, this is no longer known.
///
/// # Errors
/// The database is unreachable.
pub async fn launches_of(tx: &Tx, server: ServerId, agents: &[i64]) -> Result<HashSet<(i64, i64)>> {
    let db = &tx.scope.core.db;
    let sql = format!(
        "SELECT DISTINCT agent_id, generation FROM outbox WHERE organization_id = $1 AND agent_id {} AND server_id = $3 \
         AND host_seq IS NOT NULL AND kind <> 'FORGET'",
        db.is_among()
    );
    let found = tx.rows(&sql, vec![tx.scope.org.into(), db.keys(agents), server.into()]).await?;
    found.iter().map(|row| Ok((row.try_get_by(0)?, row.try_get_by(1)?))).collect()
}

/// Makes every command that waits for the agent useless, because the agent is being stopped: a launch that waits while
/// its organization is stopped must not follow the stop that overtakes it. Its backups have nothing to do with that.
///
/// # Errors
/// The database refused.
pub async fn overtake(tx: &Tx, agent: AgentId) -> Result<()> {
    expire(tx, agent, "kind NOT IN ('BACKUP', 'RESTORE', 'FORGET')").await
}

/// Makes the backups and restores that wait for the agent's host useless, because the agent leaves it.
///
/// # Errors
/// The database refused.
pub async fn leave_home(tx: &Tx, agent: AgentId) -> Result<()> {
    expire(tx, agent, "kind IN ('BACKUP', 'RESTORE')").await
}

/// Makes the backups and restores that wait for a server's host useless, because another machine has no homes and no backups.
///
/// # Errors
/// The database refused.
pub async fn leave_machine(tx: &Tx, server: ServerId) -> Result<()> {
    let sql = "UPDATE outbox SET expires_at = $3 WHERE organization_id = $1 AND server_id = $2 \
               AND acknowledged_at IS NULL AND kind IN ('BACKUP', 'RESTORE')";
    tx.run(sql, vec![tx.scope.org.into(), server.into(), tx.now.into()]).await?;
    Ok(())
}

/// Nothing is deleted: the gateway may be about to send it.
async fn expire(tx: &Tx, agent: AgentId, which: &str) -> Result<()> {
    let sql = format!(
        "UPDATE outbox SET expires_at = $3 WHERE order_key = $1 AND organization_id = $2 AND acknowledged_at IS NULL \
         AND {which}"
    );
    tx.run(&sql, vec![format!("agent:{agent}").into(), tx.scope.org.into(), tx.now.into()]).await?;
    Ok(())
}

/// The condition that a command was not sent before its deadline, which is `$1`: no host will ever get it.
const UNSENT: &str = "acknowledged_at IS NULL AND host_seq IS NULL AND expires_at <= $1";

/// At most `most` commands of this kind that were not sent before their deadline, from the id `after` on: their ids,
/// organizations and agents.
///
/// # Errors
/// The database can't be reached.
pub async fn unsent(
    core: &Core,
    kind: OutboxKind,
    after: i64,
    most: usize,
) -> Result<Vec<(i64, OrgId, AgentId)>> {
    let sql = format!(
        "SELECT id, organization_id, agent_id FROM outbox WHERE {UNSENT} AND kind = $2 AND id > $3 \
         ORDER BY id LIMIT {most}"
    );
    let found = core.db.all(sql, vec![core.clock.now().into(), kind.into(), after.into()]).await?;
    found.iter().map(|row| Ok((row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?))).collect()
}

/// Drops a command that was not sent before its deadline. Returns the launch it belongs to, and what it said; or none, if it
/// was sent after all.
///
/// # Errors
/// The database refused.
pub async fn drop_unsent(tx: &Tx, id: i64) -> Result<Option<(Option<i64>, serde_json::Value)>> {
    let sql = format!(
        "DELETE FROM outbox WHERE {UNSENT} AND organization_id = $2 AND id = $3 RETURNING generation, payload"
    );
    let dropped = tx.rows(&sql, vec![tx.now.into(), tx.scope.org.into(), id.into()]).await?;
    dropped.first().map(|row| Ok((row.try_get_by(0)?, row.try_get_by(1)?))).transpose()
}

/// Drops the commands for a server that is being deleted: no host will ever take them.
///
/// # Errors
/// The database refused.
pub async fn forget_server(tx: &Tx, server: ServerId) -> Result<()> {
    let sql = "DELETE FROM outbox WHERE organization_id = $1 AND server_id = $2";
    let values = [tx.scope.org.into(), server.into()];
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    tx.connection().execute_raw(statement).await?;
    Ok(())
}
