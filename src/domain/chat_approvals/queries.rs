//! SQL of approvals in chats.

use super::entity::approval_asks::Model;
use crate::{
    base::{
        ids::{AgentId, ApprovalId, ChannelId, UserId},
        permission::Role,
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        queue::{Depth, LaneKey, OLDEST_DUE},
        store::{
            Tx,
            sql::{OrgSql, RunSql, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
    domain::people::REACHABLE,
};

/// Adds a message for each chat that these people have linked. Returns how many.
pub(super) async fn ask_linked(tx: &Tx, approval: ApprovalId, people: &[UserId]) -> Result<u64> {
    let sql = sql!(
        "INSERT INTO approval_asks (organization_id, approval_id, channel_id, user_id, target, state, attempts, available_at, created_at) \
         SELECT l.organization_id, a.id, l.channel_id, l.user_id, l.target, 'TO_ASK', 0, $4, $4 FROM channel_links l \
         JOIN channels c ON c.organization_id = l.organization_id AND c.id = l.channel_id \
         JOIN approvals a ON a.organization_id = l.organization_id AND a.id = $3 \
         WHERE l.organization_id = $org AND a.kind IN ('ACTION', 'QUESTION') AND a.status = 'PENDING' \
         AND c.archived_at IS NULL AND c.direction = 'BIDIRECTIONAL' AND l.user_id = ANY($2) \
         ON CONFLICT (organization_id, approval_id, channel_id, user_id) DO NOTHING"
    );
    let people: Vec<i64> = people.iter().map(|user| user.0).collect();
    tx.execute(sql, [tx.scope.core.db.keys(&people), approval.into(), tx.now.into()]).await
}

/// Marks the messages about an approval to be closed. Returns how many.
pub(super) async fn close_asks(tx: &Tx, approval: ApprovalId) -> Result<u64> {
    let sql = sql!(
        "UPDATE approval_asks SET available_at = CASE WHEN state = 'ASKED' THEN $3 ELSE available_at END, attempts = 0, \
         state = 'TO_CLOSE' WHERE organization_id = $org AND approval_id = $2 AND state IN ('TO_ASK', 'ASKED')"
    );
    tx.execute(sql, [approval.into(), tx.now.into()]).await
}

/// Stores a member's code for a channel, replacing an earlier one.
pub(super) async fn put_code(
    tx: &Tx,
    channel: ChannelId,
    person: UserId,
    hash: Vec<u8>,
    expires_at: Timestamp,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO channel_link_codes (organization_id, channel_id, user_id, code_hash, tries, expires_at) \
         VALUES ($org, $2, $3, $4, 0, $5) ON CONFLICT (organization_id, channel_id, user_id) \
         DO UPDATE SET code_hash = excluded.code_hash, tries = 0, expires_at = excluded.expires_at"
    );
    tx.execute(sql, [channel.into(), person.into(), hash.into(), expires_at.into()]).await?;
    Ok(())
}

/// Whether the channel has open codes.
pub(super) async fn has_codes(scope: &Scope, channel: ChannelId) -> Result<bool> {
    let sql = sql!(
        "SELECT user_id FROM channel_link_codes WHERE organization_id = $org AND channel_id = $2 LIMIT 1"
    );
    Ok(scope.scalar::<UserId>(sql, [channel.into()]).await?.is_some())
}

/// Deletes a valid code. Returns its member.
pub(super) async fn take_code(tx: &Tx, channel: ChannelId, hash: Vec<u8>) -> Result<Option<UserId>> {
    let sql = sql!(
        "DELETE FROM channel_link_codes WHERE organization_id = $org AND channel_id = $2 AND code_hash = $3 \
         AND expires_at > $4 RETURNING user_id"
    );
    tx.scalar(sql, [channel.into(), hash.into(), tx.now.into()]).await
}

/// Counts a wrong code on each of the channel's codes with fewer than `most` wrong tries. Returns how many codes.
pub(super) async fn count_wrong_code(tx: &Tx, channel: ChannelId, most: i64) -> Result<u64> {
    let sql = sql!(
        "UPDATE channel_link_codes SET tries = tries + 1 WHERE organization_id = $org AND channel_id = $2 AND tries < $3"
    );
    tx.execute(sql, [channel.into(), most.into()]).await
}

/// Deletes all codes for a channel.
pub(super) async fn delete_codes(tx: &Tx, channel: ChannelId) -> Result<()> {
    let sql = sql!("DELETE FROM channel_link_codes WHERE organization_id = $org AND channel_id = $2");
    tx.execute(sql, [channel.into()]).await?;
    Ok(())
}

/// Links a chat of a person.
pub(super) async fn insert_link(
    tx: &Tx,
    channel: ChannelId,
    person: UserId,
    (origin, origin_name): (&str, Option<String>),
    target: &str,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO channel_links (organization_id, channel_id, user_id, origin_id, origin_name, target, created_at) \
         VALUES ($org, $2, $3, $4, $5, $6, $7)"
    );
    let values =
        [channel.into(), person.into(), origin.into(), origin_name.into(), target.into(), tx.now.into()];
    tx.execute(sql, values).await?;
    Ok(())
}

/// Deletes a person's link in a channel. Returns how many there were.
pub(super) async fn delete_link(tx: &Tx, channel: ChannelId, person: UserId) -> Result<u64> {
    let sql =
        sql!("DELETE FROM channel_links WHERE organization_id = $org AND channel_id = $2 AND user_id = $3");
    tx.execute(sql, [channel.into(), person.into()]).await
}

/// Deletes the links in a channel that a new one replaces: the person's, and the origin's.
pub(super) async fn delete_replaced_links(
    tx: &Tx,
    channel: ChannelId,
    person: UserId,
    origin: &str,
) -> Result<()> {
    let sql = sql!(
        "DELETE FROM channel_links WHERE organization_id = $org AND channel_id = $2 AND (user_id = $3 OR origin_id = $4)"
    );
    tx.execute(sql, [channel.into(), person.into(), origin.into()]).await?;
    Ok(())
}

/// Deletes all links of a channel.
pub(super) async fn delete_links(tx: &Tx, channel: ChannelId) -> Result<()> {
    let sql = sql!("DELETE FROM channel_links WHERE organization_id = $org AND channel_id = $2");
    tx.execute(sql, [channel.into()]).await?;
    Ok(())
}

row! {
    /// A linked chat.
    #[derive(Clone, Debug)]
    pub struct Linked {
        channel: ChannelId,
        /// The vendor's id of the person.
        origin: String,
        origin_name: Option<String>,
        /// When it was linked.
        at: Timestamp,
    }
}

/// The chats that a person has linked.
pub(super) async fn links_of(scope: &Scope, person: UserId) -> Result<Vec<Linked>> {
    let sql = sql!(
        "SELECT channel_id AS channel, origin_id AS origin, origin_name, created_at AS at FROM channel_links \
         WHERE organization_id = $org AND user_id = $2 ORDER BY channel_id"
    );
    scope.all(sql, [person.into()]).await
}

row! {
    /// A person who has linked a chat.
    pub(super) struct LinkedPerson {
        id: UserId,
        email: String,
    }
}

/// The people whose accounts are enabled and who have linked a chat of the channel.
pub(super) async fn linked_people(tx: &Tx, channel: ChannelId) -> Result<Vec<LinkedPerson>> {
    let sql = sql!(
        "SELECT u.id, u.email FROM channel_links l JOIN users u ON u.id = l.user_id \
         WHERE l.organization_id = $org AND l.channel_id = $2 AND u.disabled_at IS NULL ORDER BY u.id"
    );
    tx.all(sql, [channel.into()]).await
}

/// Deletes the messages of a channel.
pub(super) async fn delete_asks(tx: &Tx, channel: ChannelId) -> Result<()> {
    let sql = sql!("DELETE FROM approval_asks WHERE organization_id = $org AND channel_id = $2");
    tx.execute(sql, [channel.into()]).await?;
    Ok(())
}

/// Moves a person's unsent messages of a channel to another chat.
pub(super) async fn move_asks(tx: &Tx, channel: ChannelId, person: UserId, target: &str) -> Result<()> {
    let sql = sql!(
        "UPDATE approval_asks SET target = $4 \
         WHERE organization_id = $org AND channel_id = $2 AND user_id = $3 AND state = 'TO_ASK'"
    );
    tx.execute(sql, [channel.into(), person.into(), target.into()]).await?;
    Ok(())
}

row! {
    /// A member with a linked chat.
    pub(super) struct Linker {
        id: UserId,
        name: String,
        role: Role,
    }
}

/// A condition on the link `l` follows.
const LINKER: &str = "SELECT u.id, u.name, m.role FROM channel_links l \
     JOIN members m ON m.organization_id = l.organization_id AND m.user_id = l.user_id \
     JOIN users u ON u.id = l.user_id JOIN organizations o ON o.id = l.organization_id \
     WHERE l.organization_id = $org AND l.channel_id = $2 AND ";

/// The reachable member who has linked this vendor id.
pub(super) async fn linker_of_origin(
    runner: &impl RunSql<Sql = OrgSql>,
    channel: ChannelId,
    origin: &str,
) -> Result<Option<Linker>> {
    runner.one(sql!(LINKER, "l.origin_id = $3 AND ", REACHABLE), [channel.into(), origin.into()]).await
}

/// The member, if reachable and with a linked chat of the channel.
pub(super) async fn linker(scope: &Scope, channel: ChannelId, person: UserId) -> Result<Option<Linker>> {
    scope.one(sql!(LINKER, "l.user_id = $3 AND ", REACHABLE), [channel.into(), person.into()]).await
}

/// The messages due at `$1` in channels that send.
pub const ASK_DUE: &str = "approval_asks a \
     JOIN channels c ON c.organization_id = a.organization_id AND c.id = a.channel_id \
     WHERE a.state IN ('TO_ASK', 'TO_CLOSE') AND a.available_at <= $1 AND c.is_active \
     AND c.direction = 'BIDIRECTIONAL' AND (c.send_after IS NULL OR c.send_after <= $1)";

/// The channels of all organizations with due messages.
pub(super) async fn due_channels(core: &Core) -> Result<Vec<LaneKey>> {
    let sql = every_org_sql!(
        OLDEST_DUE[0],
        "SELECT a.organization_id, a.channel_id AS lane_id, a.available_at FROM ",
        ASK_DUE,
        OLDEST_DUE[1]
    );
    core.db.every_org().all(sql, [core.clock.now().into()]).await
}

/// The number of messages to be sent or closed.
pub async fn waiting(core: &Core) -> Result<Option<Depth>> {
    let sql = every_org_sql!(
        "SELECT 'APPROVAL' AS kind, COUNT(organization_id) AS depth, MIN(created_at) AS oldest FROM approval_asks \
         WHERE state IN ('TO_ASK', 'TO_CLOSE')"
    );
    core.db.every_org().one(sql, []).await
}

/// Records a sent message, unless another replica has claimed the row since.
pub(super) async fn record_asked(
    tx: &Tx,
    row: &Model,
    vendor_id: Option<String>,
    digest: Option<String>,
) -> Result<()> {
    let sql = sql!(
        "UPDATE approval_asks SET state = CASE WHEN state = 'TO_ASK' THEN 'ASKED' ELSE state END, vendor_id = $4, \
         digest = $5, attempts = 0, available_at = $6, target = $7 \
         WHERE organization_id = $org AND id = $2 AND available_at = $3"
    );
    let (claimed, target) = (row.available_at, row.target.as_str());
    let values =
        [row.id.into(), claimed.into(), vendor_id.into(), digest.into(), tx.now.into(), target.into()];
    tx.execute(sql, values).await?;
    Ok(())
}

row! {
    /// The organization's and agent's data for a message.
    pub(super) struct AskSettings {
        chat_risk_limit: i64,
        agent_name: Option<String>,
    }
}

/// Reads the data for a message about this agent. `None` if the organization does not exist.
pub(super) async fn ask_settings(scope: &Scope, agent: Option<AgentId>) -> Result<Option<AskSettings>> {
    let sql = sql!(
        "SELECT o.chat_risk_limit, g.name AS agent_name FROM organizations o \
         LEFT JOIN agents g ON g.organization_id = o.id AND g.id = $2 WHERE o.id = $org"
    );
    scope.one(sql, [agent.into()]).await
}
