//! Retrying turns that failed.

use serde_json::json;

use super::{
    queue::{Cause, queue_turn, send},
    rows::{announce, lock_turn},
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, TurnState},
        ids::TurnId,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, audit},
    domain::conversations,
};

/// Sends the messages of a FAILED or INTERRUPTED turn again, with the conversation's next turn, and returns that turn.
/// The messages move to it, so a turn is retried once. They reopen a resolved conversation, as new ones do.
///
/// # Errors
/// `NOT_FOUND`; `ARCHIVED`, also if the agent was deleted; `CONFLICT` for a turn in another state or without messages,
/// and while a person answers instead of the agent.
pub async fn retry(scope: &Scope, id: TurnId) -> Result<TurnId> {
    let tx = scope.begin().await?;
    let Some((agent, turn)) = lock_turn(&tx, id).await? else {
        return Err(Problem::new(Code::Archived, "The conversation's agent has been deleted."));
    };
    if !matches!(turn.state, TurnState::Failed | TurnState::Interrupted) {
        let detail = format!("The turn is {}. Only FAILED and INTERRUPTED turns can be retried.", turn.state);
        return Err(Problem::new(Code::Conflict, detail).with("state", turn.state.as_str()));
    }
    let thread = conversations::load_thread(&tx, turn.conversation_id).await?;
    if thread.is_archived {
        return Err(Problem::new(Code::Archived, "The conversation is archived. Reopen it before retrying."));
    }
    if thread.is_taken_over {
        return Err(Problem::new(Code::Conflict, "A person answers instead of the agent."));
    }
    let said = conversations::load_messages_for_agent(&tx, id, i64::MAX).await?;
    let (Some(first), Some(last)) = (said.first(), said.last()) else {
        return Err(Problem::new(Code::Conflict, "The turn has no messages: another turn has them."));
    };
    let seqs = Some((first.seq, last.seq));
    conversations::reopen(&tx, turn.conversation_id).await?;
    let next = queue_turn(&tx, &agent, turn.conversation_id, Cause::caller(&tx), seqs).await?;
    conversations::resend_messages(&tx, turn.conversation_id, id, next).await?;
    announce(&tx, ChangeOp::Updated, turn.conversation_id, id);
    send(&tx, &agent, &[turn.conversation_id]).await?;
    let (operation, changes) = ("retryTurn", json!({ "state": turn.state, "retried_by": next }));
    audit::record(
        &tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Turn, id: id.0, changes },
    );
    tx.commit().await?;
    Ok(next)
}
