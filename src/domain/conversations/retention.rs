//! Retention of transcripts. After the organization's number of days without a message, a conversation with nothing
//! open or unsent loses its messages and files. The conversation stays, with its turns, costs and decisions, and its
//! numbering continues.

use std::sync::Arc;

use serde_json::json;

use super::{
    append::MESSAGE_OVERHEAD, entity::conversations, retention_queries, rows, storage::readers_bytes,
};
use crate::{
    base::{
        bounds::ROWS,
        enums::{ChangeOp, RecordKind},
        ids::ConversationId,
        problem::Result,
    },
    core::{Core, access::Scope, audit, job_counts::Tally, store::Tx},
    domain::agents,
};

/// Removes expired transcripts in every organization. Returns how many.
pub async fn forget_old(core: &Arc<Core>) -> Result<u64> {
    let mut removed = Tally::default();
    for expired in retention_queries::expired(core, i64::from(ROWS)).await? {
        let org = expired.organization_id;
        removed.add(org, remove_transcript(&Scope::system(core, org), expired.id).await);
    }
    removed.close()
}

/// Removes a transcript in parts. Returns whether all of it is gone.
async fn remove_transcript(scope: &Scope, id: ConversationId) -> Result<bool> {
    while !scope.core.tasks.stopping.is_cancelled() {
        match remove_oldest(scope, id).await? {
            Remaining::Some => {}
            Remaining::None => return Ok(true),
            Remaining::All => break,
        }
    }
    Ok(false)
}

/// The rest of a transcript.
enum Remaining {
    /// Messages that must be removed, too.
    Some,
    None,
    /// Everything: someone has written in the meantime.
    All,
}

/// Removes the oldest messages of a conversation, with an entry in the audit log each time, because the rest may never
/// follow.
async fn remove_oldest(scope: &Scope, id: ConversationId) -> Result<Remaining> {
    let tx = scope.begin().await?;
    // No message is written while the agent is locked.
    let agent = super::agent_of(&tx, id).await?;
    agents::lock_agent(&tx, agent).await?;
    let conversation = rows::load(&tx, id).await?;
    if !retention_queries::is_over(&tx, id).await? {
        return Ok(Remaining::All);
    }
    forget_title(&tx, &conversation).await?;
    let (gone, bytes) = remove_messages(&tx, id).await?;
    let left = conversation.message_count - gone.cast_signed();
    if left > 0 && gone > 0 {
        retention_queries::shrink(&tx, id, left, bytes).await?;
        record_removal(&tx, &conversation, left);
        tx.commit().await?;
        return Ok(Remaining::Some);
    }
    retention_queries::clear_summary(&tx, id, readers_bytes(&conversation.readers)).await?;
    record_removal(&tx, &conversation, 0);
    tx.commit().await?;
    Ok(Remaining::None)
}

/// A title from a message is removed with the first messages.
async fn forget_title(tx: &Tx, conversation: &conversations::Model) -> Result<()> {
    if conversation.titled_by_message {
        retention_queries::forget_title(tx, conversation.id).await?;
    }
    Ok(())
}

/// Returns the number of removed messages, and their storage.
async fn remove_messages(tx: &Tx, id: ConversationId) -> Result<(u64, i64)> {
    let Some(last) = retention_queries::last_of_oldest(tx, id, i64::from(ROWS)).await? else {
        return Ok((0, 0));
    };
    retention_queries::forget_answers(tx, id, last).await?;
    let bytes = retention_queries::bytes_until(tx, id, last, MESSAGE_OVERHEAD).await?;
    Ok((retention_queries::delete_messages(tx, id, last).await?, bytes))
}

/// Announces the remaining number of messages to subscribers, and records it in the audit log.
fn record_removal(tx: &Tx, conversation: &conversations::Model, left: i64) {
    rows::announce(tx, conversation.agent_id, conversation.id);
    let changes = json!({ "messages": [conversation.message_count, left] });
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Conversation, conversation.id.0);
    audit::record(tx, audit::Entry { operation: "forgetTranscript", op, kind, id, changes });
}
