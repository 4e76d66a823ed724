//! Transcripts are kept as long as their organization says: of a conversation in which nothing was said for so many days, and
//! in which nothing is open or still to be sent, the messages and files are removed. The conversation itself stays, with its
//! turns, what they cost and what was decided; its numbering goes on where it was.

use std::sync::Arc;

use sea_orm::{DbBackend, Value};
use serde_json::json;

use super::{append::BESIDE, entity::conversations, rows, storage::of_readers};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{ConversationId, OrgId},
        problem::Result,
    },
    core::{Core, access::Scope, audit, store::Tx, tally::Tally},
    slices::agents,
};

/// How many conversations one round looks at, and how many messages a transaction removes: the oldest first.
const CONVERSATIONS: u64 = 500;
const MESSAGES: u64 = 500;

/// The conversations whose time is over. `$1` is the time. A decision that is on its way to the agent (SENT) is still open: it may
/// become a turn. Nothing more reaches an agent that was deleted, or is sent through a channel that a person switched off or that only
/// receives.
const OVER: &str = "SELECT c.organization_id, c.id FROM conversations c JOIN organizations o ON o.id = c.organization_id \
     JOIN agents a ON a.organization_id = c.organization_id AND a.id = c.agent_id \
     WHERE o.transcript_retention_days IS NOT NULL AND c.message_count > 0 \
     AND c.last_activity_at <= $1 - o.transcript_retention_days * 86400000 \
     AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.organization_id = c.organization_id AND t.conversation_id = c.id \
     AND t.ended_at IS NULL AND NOT t.held) \
     AND NOT EXISTS (SELECT 1 FROM approvals p WHERE p.organization_id = c.organization_id AND p.conversation_id = c.id \
     AND (p.status = 'PENDING' OR p.delivery = 'SENT' AND a.archived_at IS NULL)) \
     AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.organization_id = c.organization_id AND d.conversation_id = c.id \
     AND (d.status = 'SENDING' OR d.status = 'PENDING' AND a.archived_at IS NULL AND EXISTS (SELECT 1 FROM channels h \
     WHERE h.organization_id = d.organization_id AND h.id = d.channel_id \
     AND h.direction <> 'INBOUND' AND (h.is_active OR COALESCE(h.inactive_reason, '') <> 'MANUAL'))))";

/// Removes transcripts whose time is over, in every organization. Returns how many.
///
/// # Errors
/// The database is unreachable. What was removed by then stays so.
pub async fn forget_old(core: &Arc<Core>) -> Result<u64> {
    let sql = format!("{OVER} LIMIT {CONVERSATIONS}");
    let mut forgotten = Tally::default();
    for row in core.db.all(sql, vec![core.clock.now().into()]).await? {
        let (org, id): (OrgId, ConversationId) = (row.try_get_by(0)?, row.try_get_by(1)?);
        forgotten.add(org, forget_whole(&Scope::system(core, org), id).await);
    }
    forgotten.close()
}

/// Removes a transcript, part by part. Returns whether it is gone.
async fn forget_whole(scope: &Scope, id: ConversationId) -> Result<bool> {
    while !scope.core.tasks.stopping.is_cancelled() {
        match forget(scope, id).await? {
            Left::Some => {}
            Left::None => return Ok(true),
            Left::All => break,
        }
    }
    Ok(false)
}

/// What is left of a conversation.
enum Left {
    /// Messages that have to go, too.
    Some,
    /// Nothing.
    None,
    /// Everything: somebody has said something meanwhile.
    All,
}

/// Removes the oldest messages of a conversation. Each time it says so in the audit log: what is removed stays so, even if the
/// rest never is.
async fn forget(scope: &Scope, id: ConversationId) -> Result<Left> {
    let tx = scope.begin().await?;
    // Nothing is said while the agent is held.
    let agent = super::agent_of(&tx, id).await?;
    agents::lock_agent(&tx, agent).await?;
    let conversation = rows::load(&tx, id).await?;
    let due = format!("{OVER} AND c.organization_id = $2 AND c.id = $3");
    if tx.rows(&due, vec![tx.now.into(), scope.org.into(), id.into()]).await?.is_empty() {
        return Ok(Left::All);
    }
    forget_title(&tx, &conversation).await?;
    let (gone, bytes) = remove(&tx, id).await?;
    let left = conversation.message_count - gone.cast_signed();
    let nothing = "UPDATE conversations SET message_count = 0, stored_bytes = $3, last_message_seq = NULL, last_message_role = NULL, \
                   last_message_kind = NULL, last_message_preview = NULL, last_message_created_at = NULL \
                   WHERE organization_id = $1 AND id = $2";
    let fewer = "UPDATE conversations SET message_count = $3, stored_bytes = stored_bytes - $4 \
                 WHERE organization_id = $1 AND id = $2";
    if left > 0 && gone > 0 {
        tx.run(fewer, vec![scope.org.into(), id.into(), left.into(), bytes.into()]).await?;
        tell(&tx, &conversation, left);
        tx.commit().await?;
        return Ok(Left::Some);
    }
    let kept = of_readers(&conversation.readers);
    tx.run(nothing, vec![scope.org.into(), id.into(), kept.into()]).await?;
    tell(&tx, &conversation, 0);
    tx.commit().await?;
    Ok(Left::None)
}

/// A title that a message gave goes with the first of them.
async fn forget_title(tx: &Tx, conversation: &conversations::Model) -> Result<()> {
    if !conversation.titled_by_message {
        return Ok(());
    }
    let sql = "UPDATE conversations SET title = NULL, title_folded = NULL, titled_by_message = FALSE \
               WHERE organization_id = $1 AND id = $2";
    tx.run(sql, vec![tx.scope.org.into(), conversation.id.into()]).await?;
    Ok(())
}

/// Returns how many messages are gone, and what they took.
async fn remove(tx: &Tx, id: ConversationId) -> Result<(u64, i64)> {
    let of = |rest: &[Value]| -> Vec<Value> {
        [tx.scope.org.into(), id.into()].into_iter().chain(rest.iter().cloned()).collect()
    };
    let last = format!(
        "SELECT MAX(seq) FROM (SELECT seq FROM messages WHERE organization_id = $1 AND conversation_id = $2 \
         ORDER BY seq LIMIT {MESSAGES}) oldest"
    );
    let last = tx.rows(&last, of(&[])).await?;
    let last: Option<i64> = last.first().map(|row| row.try_get_by(0)).transpose()?.flatten();
    let Some(last) = last else { return Ok((0, 0)) };
    let answers = "UPDATE approvals SET answer_message_id = NULL WHERE organization_id = $1 AND conversation_id = $2 \
                   AND answer_message_id IN (SELECT m.id FROM messages m WHERE m.organization_id = $1 \
                   AND m.conversation_id = $2 AND m.seq <= $3)";
    tx.run(answers, of(&[last.into()])).await?;
    let is_postgres = tx.scope.core.db.backend() == DbBackend::Postgres;
    let length =
        if is_postgres { "octet_length(CAST(m.content AS TEXT))" } else { "length(CAST(m.content AS BLOB))" };
    let twice = "CASE WHEN m.delivery_status IS NULL THEN 1 ELSE 2 END";
    let bytes = format!(
        "SELECT COALESCE(CAST(SUM({BESIDE} + {length} * {twice}) AS BIGINT), 0) FROM messages m \
         WHERE m.organization_id = $1 AND m.conversation_id = $2 AND m.seq <= $3"
    );
    let bytes = tx.rows(&bytes, of(&[last.into()])).await?;
    let bytes = bytes.first().map_or(Ok(0), |row| row.try_get_by(0))?;
    let gone = "DELETE FROM messages WHERE organization_id = $1 AND conversation_id = $2 AND seq <= $3";
    Ok((tx.run(gone, of(&[last.into()])).await?, bytes))
}

/// Says that so many messages are left of a transcript, to whoever looks at it and in the audit log.
fn tell(tx: &Tx, conversation: &conversations::Model, left: i64) {
    rows::announce(tx, conversation.agent_id, conversation.id);
    let changes = json!({ "messages": [conversation.message_count, left] });
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Conversation, conversation.id.0);
    audit::record(tx, audit::Entry { operation: "forgetTranscript", op, kind, id, changes });
}
