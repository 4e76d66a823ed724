//! SQL of conversations.

use std::collections::HashMap;

use crate::{
    base::{
        enums::DeliveryStatus,
        ids::{ChannelId, ConversationId, IdentityId, MessageId, OrgId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

/// SQL: the message `m` is more than a step of the agent's work.
macro_rules! to_read {
    () => {
        "m.kind NOT IN ('THINKING', 'TOOL_CALL', 'TOOL_RESULT')"
    };
}

/// SQL: the reader has not read the conversation `t` to its end, and more than steps of work follows. False for a service
/// token.
macro_rules! unread {
    ($now:literal, $viewer:literal) => {
        concat!(
            "(t.message_count > 0 AND t.last_activity_at > ",
            $now,
            " - 2592000000 AND t.last_activity_at >= COALESCE((SELECT m.created_at FROM members m \
             WHERE m.organization_id = t.organization_id AND m.user_id = ",
            $viewer,
            "), 9223372036854775807) AND t.last_seq > COALESCE((SELECT r.seq FROM conversation_reads r \
             WHERE r.organization_id = t.organization_id AND r.conversation_id = t.id AND r.user_id = ",
            $viewer,
            "), 0) AND EXISTS (SELECT 1 FROM messages m WHERE m.organization_id = t.organization_id \
             AND m.conversation_id = t.id AND m.seq > COALESCE((SELECT r.seq FROM conversation_reads r \
             WHERE r.organization_id = t.organization_id AND r.conversation_id = t.id AND r.user_id = ",
            $viewer,
            "), 0) AND m.created_at > ",
            $now,
            " - 2592000000 AND m.created_at >= (SELECT n.created_at FROM members n \
             WHERE n.organization_id = t.organization_id AND n.user_id = ",
            $viewer,
            ") AND ",
            to_read!(),
            "))"
        )
    };
}

/// SQL: the delivery of the message `m` failed in the last seven days.
macro_rules! failed {
    ($now:literal) => {
        concat!("m.delivery_status = 'FAILED' AND m.created_at > ", $now, " - 604800000")
    };
}

/// SQL: the conversation `t` has a message whose delivery failed in the last seven days.
macro_rules! undelivered {
    ($org:literal, $now:literal) => {
        concat!(
            "t.id IN (SELECT m.conversation_id FROM messages m WHERE m.organization_id = ",
            $org,
            " AND ",
            failed!($now),
            ")"
        )
    };
}

/// `unread!` for lists of conversations.
pub const UNREAD: &str = unread!(":now", ":viewer");
/// `undelivered!` for lists of conversations.
pub const UNDELIVERED: &str = undelivered!("$1", ":now");
/// `failed!` at `$1`.
pub const FAILED: &str = failed!("$1");

/// SQL: the seq up to which the caller has read the conversation. Null for a service token.
pub const READ_SEQ: &str = "(CASE WHEN CAST(:viewer AS BIGINT) IS NOT NULL THEN COALESCE((SELECT r.seq \
    FROM conversation_reads r WHERE r.organization_id = t.organization_id AND r.conversation_id = t.id \
    AND r.user_id = :viewer), 0) END)";

/// SQL: the number of unread messages, at most a thousand so that lists stay fast, without steps of work. Null for a
/// service token.
#[must_use]
pub fn unread_sql() -> String {
    let to_read = to_read!();
    format!(
        "(CASE WHEN CAST(:viewer AS BIGINT) IS NULL THEN NULL WHEN {UNREAD} THEN (SELECT COUNT(*) FROM \
         (SELECT m.created_at FROM messages m WHERE m.organization_id = t.organization_id AND m.conversation_id = t.id \
         AND m.seq > {READ_SEQ} AND {to_read} ORDER BY m.seq DESC LIMIT 1000) m \
         WHERE m.created_at > :now - 2592000000 AND m.created_at >= (SELECT n.created_at FROM members n \
         WHERE n.organization_id = t.organization_id AND n.user_id = :viewer)) ELSE 0 END)"
    )
}

/// SQL on the conversation `t`: whether the reader watches it. Null for a service token.
pub const WATCHING: &str = "CASE WHEN CAST(:viewer AS BIGINT) IS NULL THEN NULL ELSE EXISTS (SELECT 1 FROM conversation_watches w \
     WHERE w.organization_id = t.organization_id AND w.conversation_id = t.id AND w.user_id = :viewer) END";

/// The number of conversations that the caller has not read to the end. 0 for a service token.
pub async fn count_unread(scope: &Scope) -> Result<i64> {
    let sql =
        sql!("SELECT COUNT(*) FROM conversations t WHERE t.organization_id = $org AND ", unread!("$2", "$3"));
    let values = [scope.core.clock.now().into(), scope.request.caller.user().into()];
    Ok(scope.scalar(sql, values).await?.unwrap_or(0))
}

/// The number of messages of the last seven days whose delivery failed.
pub async fn count_failed(scope: &Scope) -> Result<i64> {
    let sql = sql!("SELECT COUNT(*) FROM messages m WHERE m.organization_id = $org AND ", failed!("$2"));
    Ok(scope.scalar(sql, [scope.core.clock.now().into()]).await?.unwrap_or(0))
}

/// The number of conversations with a failed delivery in the last seven days.
pub async fn count_undelivered(scope: &Scope) -> Result<i64> {
    let sql = sql!(
        "SELECT COUNT(*) FROM conversations t WHERE t.organization_id = $org AND ",
        undelivered!("$org", "$2")
    );
    Ok(scope.scalar(sql, [scope.core.clock.now().into()]).await?.unwrap_or(0))
}

/// SQL: the address of the last sender in a conversation before a position.
macro_rules! last_writer {
    ($conversation:literal, $before:literal) => {
        concat!(
            "(SELECT i.origin_id FROM messages m JOIN identities i ON i.organization_id = m.organization_id \
             AND i.id = m.via_identity_id WHERE m.organization_id = ",
            $conversation,
            ".organization_id AND m.conversation_id = ",
            $conversation,
            ".id AND m.seq < ",
            $before,
            " ORDER BY m.seq DESC LIMIT 1)"
        )
    };
}

/// SQL: the [target](super::DeliveryTarget::target) of a delivery `d` in its conversation `v`.
pub const TARGET: &str = concat!(
    "COALESCE(CASE WHEN v.transport = 'EMAIL' THEN ",
    last_writer!(
        "v",
        "(SELECT s.seq FROM messages s WHERE s.organization_id = v.organization_id AND s.id = d.message_id)"
    ),
    " END, v.target)"
);

row! {
    /// The parties of a conversation, and its last sender.
    pub(super) struct Speakers {
        channel_id: i64,
        channel_name: String,
        agent_id: i64,
        agent_name: String,
        contact_id: Option<i64>,
        contact_name: Option<String>,
        origin: Option<String>,
    }
}

/// The parties of a conversation, and the last sender before this position. `None` if the conversation has no channel.
pub(super) async fn speakers(
    scope: &Scope,
    conversation: ConversationId,
    before: i64,
) -> Result<Option<Speakers>> {
    let sql = sql!(
        "SELECT h.id AS channel_id, h.name AS channel_name, a.id AS agent_id, a.name AS agent_name, \
         p.id AS contact_id, p.name AS contact_name, ",
        last_writer!("c", "$3"),
        " AS origin FROM conversations c \
         JOIN channels h ON h.organization_id = c.organization_id AND h.id = c.channel_id \
         JOIN agents a ON a.organization_id = c.organization_id AND a.id = c.agent_id \
         LEFT JOIN contacts p ON p.organization_id = c.organization_id AND p.id = c.contact_id \
         AND p.archived_at IS NULL WHERE c.organization_id = $org AND c.id = $2"
    );
    scope.one(sql, [conversation.into(), before.into()]).await
}

row! {
    struct MailSender {
        message: MessageId,
        address: String,
    }
}

/// The senders' addresses of those messages that are mails.
pub(super) async fn sender_addresses(tx: &Tx, messages: Vec<i64>) -> Result<HashMap<MessageId, String>> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = sql!(
        "SELECT m.id AS message, i.origin_id AS address FROM messages m JOIN identities i \
         ON i.organization_id = m.organization_id AND i.id = m.via_identity_id \
         WHERE m.organization_id = $org AND m.id = ANY($2) AND i.transport = 'EMAIL'"
    );
    let found: Vec<MailSender> = tx.all(sql, [tx.scope.core.db.keys(&messages)]).await?;
    Ok(found.into_iter().map(|from| (from.message, from.address)).collect())
}

/// Whether another author wrote one of the 1,000 messages before this one. Without a bound, each turn of a long
/// conversation with one author would read all of it.
pub(super) async fn has_another_author(
    tx: &Tx,
    conversation: ConversationId,
    message: MessageId,
) -> Result<bool> {
    let sql = sql!(
        "SELECT CAST(1 AS BIGINT) FROM messages m JOIN messages o ON o.organization_id = m.organization_id \
         AND o.conversation_id = m.conversation_id AND o.seq < m.seq AND o.seq >= m.seq - 1000 AND o.role = 'USER' \
         AND o.author_name IS NOT NULL AND (o.author_name <> m.author_name \
         OR COALESCE(o.via_identity_id, 0) <> COALESCE(m.via_identity_id, 0) \
         OR COALESCE(o.author_user_id, 0) <> COALESCE(m.author_user_id, 0)) \
         WHERE m.organization_id = $org AND m.conversation_id = $2 AND m.id = $3 LIMIT 1"
    );
    Ok(tx.scalar::<i64>(sql, [conversation.into(), message.into()]).await?.is_some())
}

row! {
    /// The vendor's id of a message or of a part of one.
    pub(super) struct VendorId {
        vendor_id: String,
        /// 0 for an incoming message.
        part: i64,
    }
}

/// The vendor's ids of at most `most` messages before this one, newest first.
pub(super) async fn earlier_vendor_ids(
    scope: &Scope,
    conversation: ConversationId,
    before: MessageId,
    most: i64,
) -> Result<Vec<VendorId>> {
    let sql = sql!(
        "SELECT vendor_id, part FROM (SELECT m.vendor_id, m.id AS message, CAST(0 AS BIGINT) AS part FROM messages m \
         WHERE m.organization_id = $org AND m.conversation_id = $2 AND m.id < $3 AND m.vendor_id IS NOT NULL \
         UNION ALL SELECT d.vendor_id, d.message_id, d.part FROM deliveries d \
         WHERE d.organization_id = $org AND d.conversation_id = $2 AND d.message_id < $3 AND d.vendor_id IS NOT NULL) v \
         ORDER BY message DESC, part DESC LIMIT $4"
    );
    scope.all(sql, [conversation.into(), before.into(), most.into()]).await
}

row! {
    /// The delivery of an action.
    pub(super) struct ActionDelivery {
        id: i64,
        status: DeliveryStatus,
        error: Option<String>,
        vendor_id: Option<String>,
    }
}

/// The delivery of the action that a message shows. `None`: the message is gone.
pub(super) async fn action_delivery(scope: &Scope, message: MessageId) -> Result<Option<ActionDelivery>> {
    let sql = sql!(
        "SELECT id, status, error, vendor_id FROM deliveries WHERE organization_id = $org AND message_id = $2"
    );
    scope.one(sql, [message.into()]).await
}

/// Returns the keys that messages of the channel have already.
pub(super) async fn stored_keys(tx: &Tx, channel: ChannelId, keys: &[String]) -> Result<Vec<String>> {
    let sql = sql!(
        "SELECT dedupe_key FROM messages WHERE organization_id = $org AND dedupe_key = ANY($2) AND via_channel_id = $3"
    );
    tx.column(sql, [tx.scope.core.db.keys(keys), channel.into()]).await
}

row! {
    /// The number of an identity's messages with a turn.
    pub(super) struct AnsweredCounts {
        /// In the conversation.
        here: i64,
        /// In the whole channel.
        anywhere: i64,
    }
}

/// Counts an identity's messages with a turn in a channel since then.
pub(super) async fn count_answered(
    tx: &Tx,
    (identity, channel, conversation): (IdentityId, ChannelId, ConversationId),
    since: Timestamp,
) -> Result<Option<AnsweredCounts>> {
    let sql = sql!(
        "SELECT COUNT(CASE WHEN conversation_id = $4 THEN 1 END) AS here, COUNT(*) AS anywhere FROM messages \
         WHERE organization_id = $org AND via_identity_id = $2 AND via_channel_id = $3 AND created_at > $5 \
         AND role = 'USER' AND turn_id IS NOT NULL"
    );
    tx.one(sql, [identity.into(), channel.into(), conversation.into(), since.into()]).await
}

/// Whether the channel has received a message with this vendor id.
pub(super) async fn has_vendor_id(scope: &Scope, channel: ChannelId, vendor_id: &str) -> Result<bool> {
    let sql = sql!(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE organization_id = $org AND via_channel_id = $2 AND vendor_id = $3)"
    );
    Ok(scope.scalar(sql, [channel.into(), vendor_id.into()]).await?.unwrap_or(false))
}

/// Whether the channel has a conversation with one of these keys of threads.
pub(super) async fn has_thread(scope: &Scope, channel: ChannelId, keys: [String; 2]) -> Result<bool> {
    let sql = sql!(
        "SELECT EXISTS (SELECT 1 FROM conversations WHERE organization_id = $org AND channel_id = $2 \
         AND thread_key IN ($3, $4))"
    );
    let [key, root] = keys;
    Ok(scope.scalar(sql, [channel.into(), key.into(), root.into()]).await?.unwrap_or(false))
}

/// Whether the channel has received a message of this album.
pub(super) async fn has_album(scope: &Scope, channel: ChannelId, album: &str) -> Result<bool> {
    let sql = sql!(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE organization_id = $org AND via_channel_id = $2 AND album = $3)"
    );
    Ok(scope.scalar(sql, [channel.into(), album.into()]).await?.unwrap_or(false))
}

row! {
    pub(super) struct Album {
        /// Its first message.
        id: MessageId,
        /// The length of the keys of its parts, as JSON.
        length: i64,
    }
}

pub(super) async fn newest_album(tx: &Tx, conversation: ConversationId) -> Result<Option<Album>> {
    let sql = sql!(
        "SELECT id, CAST(LENGTH(CAST(album_keys AS TEXT)) AS BIGINT) AS length FROM messages \
         WHERE organization_id = $org AND conversation_id = $2 AND album IS NOT NULL ORDER BY seq DESC LIMIT 1"
    );
    tx.one(sql, [conversation.into()]).await
}

/// Stores a mail as it arrived.
pub(super) async fn insert_source(
    tx: &Tx,
    message: MessageId,
    sealed: Vec<u8>,
    notes: &str,
    bytes: i64,
) -> Result<()> {
    let sql = sql!(
        "INSERT INTO message_sources (organization_id, message_id, source_sealed, notes, size_bytes, created_at) \
         VALUES ($org, $2, $3, $4, $5, $6)"
    );
    tx.execute(sql, [message.into(), sealed.into(), notes.into(), bytes.into(), tx.now.into()]).await?;
    Ok(())
}

pub(super) async fn delete_source(tx: &Tx, message: MessageId) -> Result<()> {
    let sql = sql!("DELETE FROM message_sources WHERE organization_id = $org AND message_id = $2");
    tx.execute(sql, [message.into()]).await?;
    Ok(())
}

row! {
    pub(super) struct SealedSource {
        source_sealed: Vec<u8>,
        notes: String,
    }
}

/// The mail as it arrived, if it is stored.
pub(super) async fn sealed_source(scope: &Scope, message: MessageId) -> Result<Option<SealedSource>> {
    let sql = sql!(
        "SELECT source_sealed, notes FROM message_sources WHERE organization_id = $org AND message_id = $2"
    );
    scope.one(sql, [message.into()]).await
}

row! {
    /// A message whose original mail is stored.
    pub(super) struct StoredSource {
        organization_id: OrgId,
        conversation_id: ConversationId,
        message_id: MessageId,
    }
}

/// At most `most` messages with a stored mail, after a place, of all organizations or within the given bounds.
pub(super) async fn list_sources(
    core: &Core,
    (after_org, after): (OrgId, MessageId),
    (org, channel, conversation): (Option<OrgId>, Option<ChannelId>, Option<ConversationId>),
    messages: &[MessageId],
    most: i64,
) -> Result<Vec<StoredSource>> {
    const KEPT: &str = "SELECT s.organization_id, m.conversation_id, s.message_id FROM message_sources s \
         JOIN messages m ON m.organization_id = s.organization_id AND m.id = s.message_id \
         WHERE (s.organization_id, s.message_id) > ($1, $2) \
         AND (CAST($3 AS BIGINT) IS NULL OR s.organization_id = $3) \
         AND (CAST($4 AS BIGINT) IS NULL OR m.via_channel_id = $4) \
         AND (CAST($5 AS BIGINT) IS NULL OR m.conversation_id = $5)";
    const NEXT: &str = " ORDER BY s.organization_id, s.message_id LIMIT $6";
    let mut values =
        vec![after_org.into(), after.into(), org.into(), channel.into(), conversation.into(), most.into()];
    let sql = if messages.is_empty() {
        every_org_sql!(KEPT, NEXT)
    } else {
        let messages: Vec<i64> = messages.iter().map(|message| message.0).collect();
        values.push(core.db.keys(&messages));
        every_org_sql!(KEPT, " AND s.message_id = ANY($7)", NEXT)
    };
    core.db.every_org().all(sql, values).await
}

/// The conversations with running turns that were not cancelled.
pub(super) async fn with_running_turns(tx: &Tx) -> Result<Vec<ConversationId>> {
    let sql = sql!(
        "SELECT DISTINCT conversation_id FROM turns WHERE organization_id = $org AND cancel_requested_at IS NULL \
         AND state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT') ORDER BY conversation_id"
    );
    tx.column(sql, []).await
}

/// Whether the agent waits for a decision in a conversation.
pub(super) async fn awaits_decision(tx: &Tx, conversation: ConversationId) -> Result<bool> {
    let sql = sql!(
        "SELECT EXISTS (SELECT 1 FROM approvals WHERE organization_id = $org AND conversation_id = $2 \
         AND status = 'PENDING')"
    );
    Ok(tx.scalar(sql, [conversation.into()]).await?.unwrap_or(false))
}

row! {
    /// A conversation that a person has taken over.
    pub(super) struct TakenOver {
        organization_id: OrgId,
        id: ConversationId,
        /// The holder's. `None` if the holder can't sign in to the organization.
        role: Option<String>,
        last_word_at: Option<Timestamp>,
    }
}

const TAKEN_OVER: &str = "SELECT c.organization_id, c.id, (SELECT m.role FROM members m JOIN users u ON u.id = m.user_id \
     WHERE m.organization_id = c.organization_id AND m.user_id = c.taken_over_by AND u.disabled_at IS NULL) AS role, \
     c.last_word_at FROM conversations c";

/// The taken-over conversations of all organizations, those with the longest silence first.
pub(super) async fn list_taken_over(core: &Core) -> Result<Vec<TakenOver>> {
    let sql = every_org_sql!(TAKEN_OVER, " WHERE c.taken_over_by IS NOT NULL ORDER BY c.last_word_at");
    core.db.every_org().all(sql, []).await
}

/// `None`: the conversation is gone.
pub(super) async fn load_taken_over(tx: &Tx, id: ConversationId) -> Result<Option<TakenOver>> {
    tx.one(sql!(TAKEN_OVER, " WHERE c.organization_id = $org AND c.id = $2"), [id.into()]).await
}

/// Makes a member watch a conversation. Returns whether that is new.
pub(super) async fn insert_watch(tx: &Tx, id: ConversationId, user: UserId) -> Result<bool> {
    let sql = sql!(
        "INSERT INTO conversation_watches (organization_id, conversation_id, user_id, created_at) \
         VALUES ($org, $2, $3, $4) ON CONFLICT DO NOTHING"
    );
    Ok(tx.execute(sql, [id.into(), user.into(), tx.now.into()]).await? > 0)
}

/// Ends a member's watch. Returns whether there was one.
pub(super) async fn delete_watch(tx: &Tx, id: ConversationId, user: UserId) -> Result<bool> {
    let sql = sql!(
        "DELETE FROM conversation_watches WHERE organization_id = $org AND conversation_id = $2 AND user_id = $3"
    );
    Ok(tx.execute(sql, [id.into(), user.into()]).await? > 0)
}
