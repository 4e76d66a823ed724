//! What waits in channels that send no more: people have closed them. What somebody was sending there who died has failed: nobody
//! knows whether it was sent.

use std::{collections::BTreeSet, sync::Arc};

use sea_orm::{DbBackend, QueryResult};

use super::settling::{fail_rest, summarize};
use crate::{
    base::{
        ids::{ChannelId, MessageId},
        problem::Result,
    },
    core::{Core, access::Scope, store::Tx},
};

/// How many parts are skipped in one transaction.
const PORTION: u64 = 100;

/// What nobody is sending, of parts `d`. `$1` is the time. The list of literals makes the partial index apply.
const LEFT: &str = "d.status IN ('PENDING', 'SENDING') AND (d.status = 'PENDING' OR d.available_at <= $1)";

/// Why nothing is sent through a channel any more.
struct Closed {
    /// The condition in SQL that it is so, of the channel `c` and its part `d`.
    is: &'static str,
    /// The same in words.
    why: &'static str,
    /// What else is set on its parts.
    also: &'static str,
    /// Whether what waits there is still sent one day.
    waits: bool,
}

/// Nobody can send it again, so its text goes.
const DELETED: Closed = Closed {
    is: "c.archived_at IS NOT NULL",
    why: "The channel was deleted.",
    also: ", text = NULL, plain = NULL",
    waits: false,
};

/// The opposite of `is_open` of channels. When it is open again, people can send it by hand, so its text stays.
const OFF: Closed = Closed {
    is: "c.archived_at IS NULL AND (c.direction = 'INBOUND' OR NOT c.is_active AND c.inactive_reason = 'MANUAL')",
    why: "The channel was switched off, or no longer sends.",
    also: "",
    waits: false,
};

/// The channel's agent was deleted. What waits does so until the agent is restored, or its transcript is over; what was being
/// sent is settled, with the rest of its message.
const ORPHANED: Closed = Closed {
    is: "c.archived_at IS NULL AND NOT c.is_active AND c.inactive_reason = 'AGENT_ARCHIVED' AND d.status = 'SENDING'",
    why: "The agent was deleted.",
    also: "",
    waits: true,
};

/// Skips what waits in a channel that a person closes. What is being sent at this moment is left to [`skip_closed`], in case it
/// has to wait again.
///
/// # Errors
/// The database is unreachable.
pub async fn skip_waiting(tx: &Tx, channel: ChannelId) -> Result<()> {
    let sql = "UPDATE deliveries SET status = 'SKIPPED', error = $3 \
               WHERE organization_id = $1 AND channel_id = $2 AND status = 'PENDING' RETURNING message_id";
    let skipped = tx.rows(sql, vec![tx.scope.org.into(), channel.into(), OFF.why.into()]).await?;
    show(tx, &skipped).await
}

/// Skips what waits in channels that were deleted, or that people have closed, and settles what was being sent there, or for a
/// deleted agent. Returns how many parts that were.
///
/// # Errors
/// The database is unreachable; what was skipped stays skipped.
pub async fn skip_closed(core: &Arc<Core>) -> Result<u64> {
    let sql = format!(
        "SELECT d.organization_id, d.channel_id, CASE WHEN {} THEN 0 WHEN {} THEN 1 ELSE 2 END FROM deliveries d \
         JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id \
         WHERE {LEFT} AND ({} OR {} OR {}) LIMIT 1",
        DELETED.is, OFF.is, DELETED.is, OFF.is, ORPHANED.is
    );
    let mut skipped = 0;
    while !core.tasks.stopping.is_cancelled() {
        let Some(row) = core.db.one(sql.clone(), vec![core.clock.now().into()]).await? else { break };
        let scope = Scope::system(core, row.try_get_by(0)?);
        let closed = match row.try_get_by::<i32, _>(2)? {
            0 => &DELETED,
            1 => &OFF,
            _ => &ORPHANED,
        };
        let portion = skip(&scope, row.try_get_by(1)?, closed).await?;
        if portion == 0 {
            break;
        }
        skipped += portion;
    }
    Ok(skipped)
}

/// Skips a portion of what waits in a channel, if it is still closed for this reason. Parts that somebody else holds, such as an
/// edit of the channel, are left to the next round: whoever it is may want others that are held here.
async fn skip(scope: &Scope, channel: ChannelId, closed: &Closed) -> Result<u64> {
    let tx = scope.begin().await?;
    let is_postgres = scope.core.db.backend() == DbBackend::Postgres;
    let held = if is_postgres { " FOR NO KEY UPDATE OF d SKIP LOCKED" } else { "" };
    let Closed { is, why, also, waits } = closed;
    let sql = format!(
        "UPDATE deliveries SET status = CASE status WHEN 'PENDING' THEN 'SKIPPED' ELSE 'FAILED' END, \
         code = CASE status WHEN 'PENDING' THEN NULL ELSE 'unknown_outcome' END, error = $4{also} \
         WHERE organization_id = $2 AND id IN (SELECT d.id FROM deliveries d \
         JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id \
         WHERE d.organization_id = $2 AND d.channel_id = $3 AND {LEFT} AND {is} ORDER BY d.id LIMIT {PORTION}{held}) \
         RETURNING message_id, part"
    );
    let values = vec![tx.now.into(), scope.org.into(), channel.into(), (*why).into()];
    let skipped = tx.rows(&sql, values).await?;
    if *waits {
        for part in &skipped {
            fail_rest(&tx, part.try_get_by(0)?, part.try_get_by(1)?).await?;
        }
    }
    show(&tx, &skipped).await?;
    tx.commit().await?;
    Ok(skipped.len() as u64)
}

/// Shows it on the messages of these parts, which are their first column.
async fn show(tx: &Tx, parts: &[QueryResult]) -> Result<()> {
    let mut messages = BTreeSet::new();
    for part in parts {
        messages.insert(part.try_get_by::<i64, _>(0)?);
    }
    for message in messages {
        summarize(tx, MessageId(message)).await?;
    }
    Ok(())
}
