//! SQL of deliveries.

use sea_orm::{DbErr, FromQueryResult as _, QueryResult};

use super::{entity::deliveries, skipping::Closed};
use crate::{
    base::{
        ids::{ChannelId, MessageId, OrgId},
        problem::Result,
    },
    core::{
        Core,
        access::Scope,
        queue::{Depth, LaneKey, OLDEST_DUE},
        store::{
            Tx,
            sql::{Row, RunSql as _, every_org_sql, row, sql, text},
        },
    },
    domain::conversations::TARGET,
};

/// The part `d` is the first unsent part of its conversation.
const FIRST: &str = "NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.organization_id = d.organization_id \
     AND e.conversation_id = d.conversation_id AND (e.message_id, e.part) < (d.message_id, d.part) \
     AND e.status IN ('PENDING', 'SENDING'))";

/// The parts that are due at `$1` in channels that send, each the first of its conversation.
pub const PART_DUE: &str = text!(
    "deliveries d JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id \
     WHERE d.status IN ('PENDING', 'SENDING') AND d.available_at <= $1 AND c.is_active AND c.direction <> 'INBOUND' \
     AND (c.send_after IS NULL OR c.send_after <= $1) AND ",
    FIRST
)
.postgres;

/// The channels of all organizations with due parts.
pub(super) async fn due_channels(core: &Core) -> Result<Vec<LaneKey>> {
    let due = every_org_sql!(
        OLDEST_DUE[0],
        "SELECT d.organization_id, d.channel_id AS lane_id, d.available_at FROM ",
        PART_DUE,
        OLDEST_DUE[1]
    );
    core.db.every_org().all(due, [core.clock.now().into()]).await
}

/// A due part: the first of its conversation.
pub struct DuePart {
    pub(super) part: deliveries::Model,
    /// Empty if the conversation has none: then the attempt fails.
    pub(super) target: String,
}

impl Row for DuePart {
    fn read(row: &QueryResult) -> std::result::Result<Self, DbErr> {
        Ok(Self { part: deliveries::Model::from_query_result(row, "")?, target: row.try_get("", "target")? })
    }
}

/// The due parts of a channel, at most `most`: to be sent, or abandoned by a sender that died.
pub(super) async fn due_parts(scope: &Scope, channel: ChannelId, most: i64) -> Result<Vec<DuePart>> {
    let due = sql!(
        "SELECT d.*, COALESCE(",
        TARGET,
        ", '') AS target FROM deliveries d \
         JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id \
         JOIN conversations v ON v.organization_id = d.organization_id AND v.id = d.conversation_id \
         WHERE d.organization_id = $org AND d.channel_id = $2 AND d.status IN ('PENDING', 'SENDING') \
         AND d.available_at <= $3 AND c.is_active AND c.direction <> 'INBOUND' \
         AND (c.send_after IS NULL OR c.send_after <= $3) AND ",
        FIRST,
        " ORDER BY d.available_at, d.id LIMIT $4"
    );
    scope.all(due, [channel.into(), scope.core.clock.now().into(), most.into()]).await
}

/// The number of waiting parts.
pub async fn waiting(core: &Core) -> Result<Option<Depth>> {
    let sql = every_org_sql!(
        "SELECT 'DELIVERY' AS kind, COUNT(organization_id) AS depth, MIN(created_at) AS oldest FROM deliveries \
         WHERE status IN ('PENDING', 'SENDING')"
    );
    core.db.every_org().one(sql, []).await
}

/// Skips the waiting parts of a channel. Returns their messages.
pub(super) async fn skip_pending(tx: &Tx, channel: ChannelId, why: &str) -> Result<Vec<MessageId>> {
    let skip = sql!(
        "UPDATE deliveries SET status = 'SKIPPED', error = $3 \
         WHERE organization_id = $org AND channel_id = $2 AND status = 'PENDING' RETURNING message_id"
    );
    tx.column(skip, [channel.into(), why.into()]).await
}

/// No process is sending the part `d`. The list of literals makes the partial index apply.
macro_rules! left {
    ($now:literal) => {
        concat!(
            "d.status IN ('PENDING', 'SENDING') AND (d.status = 'PENDING' OR d.available_at <= ",
            $now,
            ")"
        )
    };
}

/// [`Closed::Deleted`] for the channel `c` and its part `d`. The next two constants correspond to the other variants.
const DELETED: &str = "c.archived_at IS NOT NULL";
/// The opposite of `is_open` of channels.
const OFF: &str =
    "c.archived_at IS NULL AND (c.direction = 'INBOUND' OR NOT c.is_active AND c.inactive_reason = 'MANUAL')";
/// Excludes waiting parts, which stay until the agent is restored.
const ORPHANED: &str = "c.archived_at IS NULL AND NOT c.is_active AND c.inactive_reason = 'AGENT_ARCHIVED' AND d.status = 'SENDING'";

row! {
    /// A channel that no longer sends, with parts left in it.
    pub(super) struct ClosedChannel {
        organization_id: OrgId,
        channel_id: ChannelId,
        /// 0: deleted, 1: off, 2: orphaned.
        reason: i32,
    }
}

/// The parts left at `$1` in channels that no longer send.
pub const LEFT: &str = text!(
    "deliveries d JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id WHERE ",
    left!("$1"),
    " AND (",
    DELETED,
    " OR ",
    OFF,
    " OR ",
    ORPHANED,
    ")"
)
.postgres;

/// Finds a channel of any organization that no longer sends and has parts left.
pub(super) async fn closed_channel(core: &Core) -> Result<Option<ClosedChannel>> {
    let closed = every_org_sql!(
        "SELECT d.organization_id, d.channel_id, CASE WHEN ",
        DELETED,
        " THEN 0 WHEN ",
        OFF,
        " THEN 1 ELSE 2 END AS reason FROM ",
        LEFT,
        " LIMIT 1"
    );
    core.db.every_org().one(closed, [core.clock.now().into()]).await
}

row! {
    /// A part that was skipped or failed.
    pub(super) struct SkippedPart {
        message_id: MessageId,
        part: i64,
    }
}

/// Skips the waiting parts in a channel closed for this reason, and fails those that were being sent. `also` sets more
/// columns.
macro_rules! skip {
    ($closed:expr, $also:expr) => {
        sql!(
            "UPDATE deliveries SET status = CASE status WHEN 'PENDING' THEN 'SKIPPED' ELSE 'FAILED' END, \
             code = CASE status WHEN 'PENDING' THEN NULL ELSE 'unknown_outcome' END, error = $4",
            $also,
            " WHERE organization_id = $org AND id IN (SELECT d.id FROM deliveries d \
             JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id \
             WHERE d.organization_id = $org AND d.channel_id = $3 AND ",
            left!("$2"),
            " AND ",
            $closed,
            " ORDER BY d.id LIMIT $5 FOR NO KEY UPDATE OF d SKIP LOCKED) RETURNING message_id, part"
        )
    };
}

/// Skips up to `most` parts left in a channel, if it is still closed for this reason. On PostgreSQL, omits locked rows.
pub(super) async fn skip_left(
    tx: &Tx,
    channel: ChannelId,
    closed: Closed,
    most: i64,
) -> Result<Vec<SkippedPart>> {
    let skip = match closed {
        // It can never be sent again, so its text is removed.
        Closed::Deleted => skip!(DELETED, ", text = NULL, plain = NULL"),
        Closed::Off => skip!(OFF, ""),
        Closed::Orphaned => skip!(ORPHANED, ""),
    };
    tx.all(skip, [tx.now.into(), channel.into(), closed.why().into(), most.into()]).await
}
