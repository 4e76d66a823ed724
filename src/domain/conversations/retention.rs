//! Transcripts are kept as long as their organization says: of a conversation in which nothing was said for so many days, and
//! in which nothing is open or still to be sent, the messages and files are removed. The conversation itself stays, with its
//! turns, what they cost and what was decided; its numbering goes on where it was.

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

/// Removes transcripts whose time is over, in every organization. Returns how many.
///
/// # Errors
/// The database is unreachable. What was removed by then stays so.
pub async fn forget_old(core: &Arc<Core>) -> Result<u64> {
    let mut forgotten = Tally::default();
    for over in retention_queries::expired(core, i64::from(ROWS)).await? {
        let org = over.organization_id;
        forgotten.add(org, remove_transcript(&Scope::system(core, org), over.id).await);
    }
    forgotten.close()
}

/// Removes a transcript, part by part. Returns whether it is gone.
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

/// What is left of a conversation.
enum Remaining {
    /// Messages that have to go, too.
    Some,
    /// Nothing.
    None,
    /// Everything: someone has said something meanwhile.
    All,
}

/// Removes the oldest messages of a conversation. Each time it says so in the audit log: what is removed stays so, even if the
/// rest never is.
async fn remove_oldest(scope: &Scope, id: ConversationId) -> Result<Remaining> {
    let tx = scope.begin().await?;
    // Nothing is said while the agent is held.
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

/// A title that a message gave goes with the first of them.
async fn forget_title(tx: &Tx, conversation: &conversations::Model) -> Result<()> {
    if conversation.titled_by_message {
        retention_queries::forget_title(tx, conversation.id).await?;
    }
    Ok(())
}

/// Returns how many messages are gone, and what they took.
async fn remove_messages(tx: &Tx, id: ConversationId) -> Result<(u64, i64)> {
    let Some(last) = retention_queries::last_of_oldest(tx, id, i64::from(ROWS)).await? else {
        return Ok((0, 0));
    };
    retention_queries::forget_answers(tx, id, last).await?;
    let bytes = retention_queries::bytes_until(tx, id, last, MESSAGE_OVERHEAD).await?;
    Ok((retention_queries::delete_messages(tx, id, last).await?, bytes))
}

/// Says that so many messages are left of a transcript, to whoever looks at it and in the audit log.
fn record_removal(tx: &Tx, conversation: &conversations::Model, left: i64) {
    rows::announce(tx, conversation.agent_id, conversation.id);
    let changes = json!({ "messages": [conversation.message_count, left] });
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Conversation, conversation.id.0);
    audit::record(tx, audit::Entry { operation: "forgetTranscript", op, kind, id, changes });
}
