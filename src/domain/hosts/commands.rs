//! Commands on their way to a host, numbered for each server when they are first sent.
//!
//! The numbers have no gaps: a command that was numbered is sent until the host has it, even past its deadline, when
//! the host answers that it is too late. One that expires before that is never sent.

use muster_protocol::command::{Command, CommandEnvelope};

use super::{
    Ended, Link,
    queries::{self, WaitingCommand},
};
use crate::{
    base::problem::{Problem, Result},
    core::store::Tx,
};

/// How many commands may wait for a host's acknowledgement, because a slow host must not fill the memory.
pub const MAX_UNACKNOWLEDGED: i64 = 64;

/// Records that the commands up to this number are in the host's journal.
///
/// # Errors
/// The connection is not the current one.
pub async fn acknowledge_commands(link: &Link, through: i64) -> Result<(), Ended> {
    let tx = link.scope.begin().await?;
    if !queries::store_received(&tx, link, through).await? {
        tx.rollback().await?;
        return Err(link.fencing_error().await);
    }
    queries::acknowledge(&tx, link.server, through).await?;
    Ok(tx.commit().await?)
}

/// The next commands to send, after the number `sent`. Commands without a number get one.
///
/// # Errors
/// The connection is not the current one.
pub async fn next_commands(link: &Link, sent: i64, received: i64) -> Result<Vec<CommandEnvelope>, Ended> {
    let room = MAX_UNACKNOWLEDGED - (sent - received);
    if room <= 0 {
        return Ok(Vec::new());
    }
    let mut waiting = load_waiting(link, sent, room).await?;
    let first = waiting.iter().position(|order| order.seq == 0).unwrap_or(waiting.len());
    if first < waiting.len() {
        number_new(link, &mut waiting[first..]).await?;
    }
    Ok(waiting)
}

/// The commands that can be sent, in their order. A new one has the number 0. While the organization is stopped, new
/// commands wait, except STOP, CANCEL and SYNC.
async fn load_waiting(link: &Link, sent: i64, room: i64) -> Result<Vec<CommandEnvelope>> {
    let found = queries::waiting(link, sent, room).await?;
    found.into_iter().filter_map(|row| parse_order(row).transpose()).collect()
}

/// Reads a row as a command. `None`: a later version has written it, and has to send it.
fn parse_order(row: WaitingCommand) -> Result<Option<CommandEnvelope>> {
    let (id, seq) = (row.id, row.host_seq);
    let command: Command = match serde_json::from_value(row.payload) {
        Ok(command) => command,
        Err(error) if seq.is_some() => return Err(Problem::internal(error)),
        Err(error) => {
            tracing::warn!(id, %error, "hosts.command_not_sent");
            return Ok(None);
        }
    };
    Ok(Some(CommandEnvelope {
        id,
        seq: seq.unwrap_or_default(),
        agent_id: row.agent_id,
        generation: row.generation,
        deadline: row.expires_at.0,
        command,
    }))
}

async fn number_new(link: &Link, orders: &mut [CommandEnvelope]) -> Result<(), Ended> {
    let tx = link.scope.begin().await?;
    let count = orders.len().cast_signed() as i64;
    let Some(last) = queries::reserve_numbers(&tx, link, count).await? else {
        tx.rollback().await?;
        return Err(link.fencing_error().await);
    };
    for (seq, order) in (last - count + 1..).zip(orders) {
        order.seq = seq;
        store_number(&tx, order).await?;
    }
    Ok(tx.commit().await?)
}

async fn store_number(tx: &Tx, order: &CommandEnvelope) -> Result<()> {
    if queries::number_command(tx, order.id, order.seq).await? {
        return Ok(());
    }
    Err(Problem::internal(anyhow::anyhow!("command {} is gone or has a number", order.id)))
}
