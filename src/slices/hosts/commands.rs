//! Commands on their way to a host: rows of the outbox, numbered for each server when they are first sent.
//!
//! The numbers have no gaps: a command that was numbered is sent until the host has it, even past its deadline, when the
//! host answers that it is too late. One that expires before that is never sent.

use muster_protocol::command::{Command, Order};
use sea_orm::QueryResult;

use super::{Ended, Link, hello, rows, write};
use crate::{
    base::{
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::store::Tx,
    slices::orgs::MAY_GO,
};

/// How many commands may wait for a host to acknowledge them.
pub const MOST_UNACKNOWLEDGED: i64 = 64;

/// Notes that the commands up to this number are in the host's journal.
///
/// # Errors
/// The connection is not the current one; the database can't be reached.
pub async fn received(link: &Link, through: i64) -> Result<(), Ended> {
    let tx = link.scope.begin().await?;
    let sql =
        "UPDATE servers SET command_ack = $4 WHERE organization_id = $1 AND id = $2 AND host_epoch = $3";
    if write(&tx, sql, link.values([through.into()])).await? != 1 {
        tx.rollback().await?;
        return Err(link.fenced().await);
    }
    hello::acknowledge(&tx, link.server, through).await?;
    Ok(tx.commit().await?)
}

/// The next commands to send, after the number `sent`. Those that have no number yet get one.
///
/// # Errors
/// The connection is not the current one; the database can't be reached.
pub async fn next(link: &Link, sent: i64, received: i64) -> Result<Vec<Order>, Ended> {
    let room = MOST_UNACKNOWLEDGED - (sent - received);
    if room <= 0 {
        return Ok(Vec::new());
    }
    let mut waiting = waiting(link, sent, room).await?;
    let first = waiting.iter().position(|order| order.seq == 0).unwrap_or(waiting.len());
    if first < waiting.len() {
        number(link, &mut waiting[first..]).await?;
    }
    Ok(waiting)
}

/// The commands that can be sent, in their order. A new one has the number 0. While the organization is stopped, what
/// was not sent before waits, unless it ends something.
async fn waiting(link: &Link, sent: i64, room: i64) -> Result<Vec<Order>> {
    let core = &link.scope.core;
    let sql = format!(
        "SELECT c.id, c.host_seq, c.agent_id, c.generation, c.payload, c.expires_at FROM outbox c \
         WHERE c.organization_id = $1 AND c.server_id = $2 AND c.acknowledged_at IS NULL \
         AND (c.host_seq > $3 OR (c.host_seq IS NULL AND c.expires_at > $4 AND {MAY_GO})) \
         ORDER BY CASE WHEN c.host_seq IS NULL THEN 1 ELSE 0 END, c.host_seq, c.id LIMIT {room}"
    );
    let now = core.clock.now();
    let values = vec![link.scope.org.into(), link.server.into(), sent.into(), now.into()];
    let found = core.db.all(sql, values).await?;
    found.iter().filter_map(|row| order(row).transpose()).collect()
}

/// A row as a command. `None`: a later version has written it, and has to send it.
fn order(row: &QueryResult) -> Result<Option<Order>> {
    let (id, seq): (i64, Option<i64>) = (row.try_get_by("id")?, row.try_get_by("host_seq")?);
    let command: Command = match serde_json::from_value(row.try_get_by("payload")?) {
        Ok(command) => command,
        Err(error) if seq.is_some() => return Err(Problem::internal(error)),
        Err(error) => {
            tracing::warn!(id, %error, "hosts.command_not_sent");
            return Ok(None);
        }
    };
    Ok(Some(Order {
        id,
        seq: seq.unwrap_or_default(),
        agent_id: row.try_get_by("agent_id")?,
        generation: row.try_get_by("generation")?,
        deadline: row.try_get_by::<Timestamp, _>("expires_at")?.0,
        command,
    }))
}

/// Numbers new commands.
async fn number(link: &Link, orders: &mut [Order]) -> Result<(), Ended> {
    let tx = link.scope.begin().await?;
    let sql = "UPDATE servers SET command_seq = command_seq + $4 WHERE organization_id = $1 AND id = $2 \
               AND host_epoch = $3 RETURNING command_seq";
    let count = orders.len().cast_signed() as i64;
    let Some(row) = rows(&tx, sql, link.values([count.into()])).await?.into_iter().next() else {
        tx.rollback().await?;
        return Err(link.fenced().await);
    };
    let before = row.try_get_by::<i64, _>("command_seq")? - count;
    for (seq, order) in (before + 1..).zip(orders) {
        order.seq = seq;
        assign(&tx, order).await?;
    }
    Ok(tx.commit().await?)
}

async fn assign(tx: &Tx, order: &Order) -> Result<()> {
    let sql = "UPDATE outbox SET host_seq = $1 WHERE organization_id = $2 AND id = $3 AND host_seq IS NULL \
               AND acknowledged_at IS NULL";
    if write(tx, sql, vec![order.seq.into(), tx.scope.org.into(), order.id.into()]).await? == 1 {
        return Ok(());
    }
    Err(Problem::internal(anyhow::anyhow!("command {} is gone or has a number", order.id)))
}
