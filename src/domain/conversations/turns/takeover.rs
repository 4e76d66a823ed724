//! Turns while a person answers instead of the agent.
//!
//! From the take-over on, no turn is sent in the conversation (`queue.rs`), and the running one is cancelled; if the
//! agent never got it, its messages wait for the next turn. Messages written meanwhile collect in the queued turn. When
//! the conversation is handed back, that turn is sent if a message waits for an answer. Otherwise it is held until
//! someone writes, and then gives the agent everything. Messages of the cancelled turn are sent again, unless the agent
//! finished it after all. A person's answers in a turn that the agent never gets move to the next one. Callers must
//! have locked the agent.

use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use super::{
    ending::end_turn,
    entity::turns,
    queue::{Cause, queue_turn, request_cancel, send, set_held, uncancelled, unsend},
    rows::{announce, find_waiting_turn},
};
use crate::{
    base::{
        enums::{ChangeOp, MessageStatus, TurnState},
        ids::{ConversationId, TurnId},
        problem::Result,
    },
    core::store::Tx,
    domain::{agents::LockedAgent, conversations},
};

/// Cancels the conversation's running turn and withholds the queued one, because a person answers now.
pub async fn yield_to_person(tx: &Tx, agent: &LockedAgent, conversation: ConversationId) -> Result<()> {
    let open = uncancelled(tx).filter(turns::Column::ConversationId.eq(conversation));
    for turn in open.all(tx.connection()).await? {
        let yielded = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
        yielded.col_expr(turns::Column::Yielded, Expr::value(true)).exec(tx.connection()).await?;
        request_cancel(tx, agent, &turn).await?;
    }
    // A host that already got the command is refused the prompt. The turn is sent again at the hand-back.
    match find_waiting_turn(tx, conversation).await? {
        Some(turn) if turn.generation.is_some() => unsend(tx, &turn).await,
        _ => Ok(()),
    }
}

/// Lets the agent answer again: at once if `unanswered`, otherwise when someone writes. `last`: the turn of the last
/// message.
pub async fn resume(
    tx: &Tx,
    agent: &LockedAgent,
    conversation: ConversationId,
    unanswered: bool,
    last: Option<TurnId>,
) -> Result<()> {
    let next = find_waiting_turn(tx, conversation).await?;
    // Without the last message the queued turn has only the person's answers, which need no reply.
    let has_last = next.as_ref().is_some_and(|next| last.is_none_or(|last| last == next.id));
    if let Some(next) = next {
        set_held(tx, next.id, !(unanswered && has_last)).await?;
    }
    if !unanswered {
        return Ok(());
    }
    if let Some(last) = last.filter(|_| !has_last) {
        requeue_cut_turn(tx, agent, last).await?;
    }
    send(tx, agent, &[conversation]).await
}

/// Queues the messages of a turn again that the take-over cancelled before the agent answered.
async fn requeue_cut_turn(tx: &Tx, agent: &LockedAgent, id: TurnId) -> Result<()> {
    let cut = super::rows::load(tx, agent.id, id).await?;
    let (true, Some(first)) = (cut.yielded && cut.state != TurnState::Done, cut.first_seq) else {
        return Ok(());
    };
    let seqs = Some((first, cut.handed_seq.unwrap_or(first)));
    let next = queue_turn(tx, agent, cut.conversation_id, Cause::of(&cut), seqs).await?;
    conversations::move_messages(tx, id, next, i64::MAX).await?;
    Ok(())
}

/// Settles a turn that the agent finished despite a take-over. If a hand-back has queued its messages again, they
/// return to this turn, because the agent has answered them.
pub(super) async fn settle_finished(tx: &Tx, turn: &turns::Model) -> Result<()> {
    let (Some(told), Some(again)) = (turn.handed_seq, find_waiting_turn(tx, turn.conversation_id).await?)
    else {
        return Ok(());
    };
    if conversations::move_messages(tx, again.id, turn.id, told).await? == 0 {
        return Ok(());
    }
    // This turn did not contain these messages when it began.
    conversations::settle_messages(tx, turn.conversation_id, turn.id, MessageStatus::Delivered).await?;
    let rest = conversations::load_messages_for_agent(tx, again.id, i64::MAX).await?;
    let Some(first) = rest.first() else {
        let why = format!("Turn {} has answered its messages.", turn.id);
        return end_turn(tx, &again, TurnState::Cancelled, Some(&why)).await;
    };
    let later = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(again.id));
    let later = later.col_expr(turns::Column::FirstSeq, Expr::value(first.seq));
    later.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, again.conversation_id, again.id);
    Ok(())
}

/// Whether the turn was cancelled because a person took over. The agent's questions in such a turn stay open.
pub async fn is_yielded(tx: &Tx, turn: TurnId) -> Result<bool> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    Ok(found.one(tx.connection()).await?.is_some_and(|turn| turn.yielded))
}
