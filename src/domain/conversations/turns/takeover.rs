//! What becomes of turns while a person answers instead of the agent.
//!
//! From the take-over on nothing is sent in the conversation (`queue.rs` sees to it), and what runs is cancelled; if the
//! agent never got it, its messages wait for the next turn. What people write meanwhile collects in the turn that waits.
//! When the conversation is handed back, that turn is sent if someone waits for an answer. If not, it is held until
//! someone writes, and then tells the agent everything. What the take-over cut short is said again, unless the agent has
//! finished it all the same. What people say is not lost with a turn that the agent never gets: the next one tells it. Callers
//! hold the agent.

use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use super::{
    ending::end,
    entity::turns,
    queue::{Cause, hold, queued, request_cancel, send, uncancelled, unsend},
    rows::{announce, waiting},
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

/// A person answers from now on: what runs is cancelled, and what waits is not sent.
pub async fn yield_to_person(tx: &Tx, agent: &LockedAgent, conversation: ConversationId) -> Result<()> {
    let open = uncancelled(tx).filter(turns::Column::ConversationId.eq(conversation));
    for turn in open.all(tx.connection()).await? {
        let yielded = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
        yielded.col_expr(turns::Column::Yielded, Expr::value(true)).exec(tx.connection()).await?;
        request_cancel(tx, agent, &turn).await?;
    }
    // If its host asks what to say, it is refused; it is sent again when the conversation is handed back.
    match waiting(tx, conversation).await? {
        Some(turn) if turn.generation.is_some() => unsend(tx, &turn).await,
        _ => Ok(()),
    }
}

/// The agent answers again: at once if `unanswered`, else when someone writes. `last` is the turn of the last message.
pub async fn resume(
    tx: &Tx,
    agent: &LockedAgent,
    conversation: ConversationId,
    unanswered: bool,
    last: Option<TurnId>,
) -> Result<()> {
    let next = waiting(tx, conversation).await?;
    // Without the last message it has only what was said in the agent's place, for which no one waits.
    let has_last = next.as_ref().is_some_and(|next| last.is_none_or(|last| last == next.id));
    if let Some(next) = next {
        hold(tx, next.id, !(unanswered && has_last)).await?;
    }
    if !unanswered {
        return Ok(());
    }
    if let Some(last) = last.filter(|_| !has_last) {
        say_again(tx, agent, last).await?;
    }
    send(tx, agent, &[conversation]).await
}

/// Makes the messages of a turn that was cut short by the take-over, before the agent had said anything, a new turn.
async fn say_again(tx: &Tx, agent: &LockedAgent, id: TurnId) -> Result<()> {
    let cut = super::rows::load(tx, agent.id, id).await?;
    let (true, Some(first)) = (cut.yielded && cut.state != TurnState::Done, cut.first_seq) else {
        return Ok(());
    };
    let seqs = Some((first, cut.handed_seq.unwrap_or(first)));
    let next = queued(tx, agent, cut.conversation_id, Cause::of(&cut), seqs).await?;
    conversations::hand_on(tx, id, next, i64::MAX).await?;
    Ok(())
}

/// The agent has finished a turn although a person had taken over. If the conversation was handed back before, its messages
/// wait to be said again: they are not.
pub(super) async fn finished(tx: &Tx, turn: &turns::Model) -> Result<()> {
    let (Some(told), Some(again)) = (turn.handed_seq, waiting(tx, turn.conversation_id).await?) else {
        return Ok(());
    };
    if conversations::hand_on(tx, again.id, turn.id, told).await? == 0 {
        return Ok(());
    }
    // They were not this turn's when it began.
    conversations::settle(tx, turn.conversation_id, turn.id, MessageStatus::Delivered).await?;
    let rest = conversations::said(tx, again.id, i64::MAX).await?;
    let Some(first) = rest.first() else {
        let why = format!("Turn {} has answered its messages.", turn.id);
        return end(tx, &again, TurnState::Cancelled, Some(&why)).await;
    };
    let later = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(again.id));
    let later = later.col_expr(turns::Column::FirstSeq, Expr::value(first.seq));
    later.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, again.conversation_id, again.id);
    Ok(())
}

/// Whether the turn was cancelled because a person took over. What the agent asked in it stays open then.
pub async fn is_yielded(tx: &Tx, turn: TurnId) -> Result<bool> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    Ok(found.one(tx.connection()).await?.is_some_and(|turn| turn.yielded))
}
