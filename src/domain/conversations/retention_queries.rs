//! SQL of the retention of transcripts.

use sea_orm::Value;

use crate::{
    base::{
        ids::{ConversationId, OrgId},
        problem::Result,
    },
    core::{
        Core,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

/// SQL: the conversations whose retention period has ended, and in which nothing is open. A decision on its way to the
/// agent (SENT) is open: it may become a turn. Decisions and deliveries of a deleted agent are not open, nor are
/// deliveries through a channel that a person switched off or that only receives.
macro_rules! expired {
    ($now:literal) => {
        concat!(
            "SELECT c.organization_id, c.id FROM conversations c JOIN organizations o ON o.id = c.organization_id \
             JOIN agents a ON a.organization_id = c.organization_id AND a.id = c.agent_id \
             WHERE o.transcript_retention_days IS NOT NULL AND c.message_count > 0 \
             AND c.last_activity_at <= ",
            $now,
            " - o.transcript_retention_days * 86400000 \
             AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.organization_id = c.organization_id AND t.conversation_id = c.id \
             AND t.ended_at IS NULL AND NOT t.held) \
             AND NOT EXISTS (SELECT 1 FROM approvals p WHERE p.organization_id = c.organization_id AND p.conversation_id = c.id \
             AND (p.status = 'PENDING' OR p.delivery = 'SENT' AND a.archived_at IS NULL)) \
             AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.organization_id = c.organization_id AND d.conversation_id = c.id \
             AND (d.status = 'SENDING' OR d.status = 'PENDING' AND a.archived_at IS NULL AND EXISTS (SELECT 1 FROM channels h \
             WHERE h.organization_id = d.organization_id AND h.id = d.channel_id \
             AND h.direction <> 'INBOUND' AND (h.is_active OR COALESCE(h.inactive_reason, '') <> 'MANUAL'))))"
        )
    };
}

row! {
    pub struct ExpiredTranscript {
        organization_id: OrgId,
        id: ConversationId,
    }
}

/// At most `most` conversations of all organizations whose transcript has expired.
pub async fn expired(core: &Core, most: i64) -> Result<Vec<ExpiredTranscript>> {
    let sql = every_org_sql!(expired!("$1"), " LIMIT $2");
    core.db.every_org().all(sql, [core.clock.now().into(), most.into()]).await
}

/// Whether the conversation's transcript has expired.
pub async fn is_over(tx: &Tx, id: ConversationId) -> Result<bool> {
    let sql = sql!(expired!("$3"), " AND c.organization_id = $org AND c.id = $2");
    Ok(tx.one::<ExpiredTranscript>(sql, [id.into(), tx.now.into()]).await?.is_some())
}

/// Sets a conversation's number of messages, and subtracts `bytes` from its storage.
pub async fn shrink(tx: &Tx, id: ConversationId, left: i64, bytes: i64) -> Result<()> {
    let sql = sql!(
        "UPDATE conversations SET message_count = $3, stored_bytes = stored_bytes - $4 \
         WHERE organization_id = $org AND id = $2"
    );
    tx.execute(sql, [id.into(), left.into(), bytes.into()]).await?;
    Ok(())
}

/// Clears the summary of a conversation without messages, and sets its storage to `bytes`.
pub async fn clear_summary(tx: &Tx, id: ConversationId, bytes: i64) -> Result<()> {
    let sql = sql!(
        "UPDATE conversations SET message_count = 0, stored_bytes = $3, last_message_seq = NULL, last_message_role = NULL, \
         last_message_kind = NULL, last_message_preview = NULL, last_message_created_at = NULL \
         WHERE organization_id = $org AND id = $2"
    );
    tx.execute(sql, [id.into(), bytes.into()]).await?;
    Ok(())
}

pub async fn forget_title(tx: &Tx, id: ConversationId) -> Result<()> {
    let sql = sql!(
        "UPDATE conversations SET title = NULL, title_folded = NULL, titled_by_message = FALSE \
         WHERE organization_id = $org AND id = $2"
    );
    tx.execute(sql, [id.into()]).await?;
    Ok(())
}

/// The position of the last of a conversation's `most` oldest messages.
pub async fn last_of_oldest(tx: &Tx, id: ConversationId, most: i64) -> Result<Option<i64>> {
    let sql = sql!(
        "SELECT MAX(seq) FROM (SELECT seq FROM messages WHERE organization_id = $org AND conversation_id = $2 \
         ORDER BY seq LIMIT $3) oldest"
    );
    Ok(tx.scalar::<Option<i64>>(sql, [id.into(), most.into()]).await?.flatten())
}

/// Unlinks approvals from answers among the messages up to `last`.
pub async fn forget_answers(tx: &Tx, id: ConversationId, last: i64) -> Result<()> {
    let sql = sql!(
        "UPDATE approvals SET answer_message_id = NULL WHERE organization_id = $org AND conversation_id = $2 \
         AND answer_message_id IN (SELECT m.id FROM messages m WHERE m.organization_id = $org \
         AND m.conversation_id = $2 AND m.seq <= $3)"
    );
    tx.execute(sql, [id.into(), last.into()]).await?;
    Ok(())
}

/// The storage of a conversation's messages up to `last`: their content, twice if it is sent, and `beside` for each.
pub async fn bytes_until(tx: &Tx, id: ConversationId, last: i64, beside: i64) -> Result<i64> {
    let sql = sql!(
        "SELECT COALESCE(CAST(SUM($4 + octet_length(CAST(m.content AS TEXT)) \
         * CASE WHEN m.delivery_status IS NULL THEN 1 ELSE 2 END) AS BIGINT), 0) FROM messages m \
         WHERE m.organization_id = $org AND m.conversation_id = $2 AND m.seq <= $3"
    );
    let values: [Value; 3] = [id.into(), last.into(), beside.into()];
    Ok(tx.scalar(sql, values).await?.unwrap_or(0))
}

/// Removes a conversation's messages up to `last`. Returns how many.
pub async fn delete_messages(tx: &Tx, id: ConversationId, last: i64) -> Result<u64> {
    let sql =
        sql!("DELETE FROM messages WHERE organization_id = $org AND conversation_id = $2 AND seq <= $3");
    tx.execute(sql, [id.into(), last.into()]).await
}
