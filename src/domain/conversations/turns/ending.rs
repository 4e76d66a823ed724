//! Turns at the end of an agent's launch, and after the agent was deleted.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, sea_query::Expr};

use super::{
    entity::turns,
    queue::{extend_turn, settle_untold},
    rate_limited::settle_usage,
    rows::{announce_end, find_waiting_turn, transition},
    state::StateEvent,
};
use crate::{
    base::{
        enums::{MessageStatus, TurnState},
        ids::AgentId,
        problem::Result,
    },
    core::store::Tx,
    domain::{agents::LockedAgent, conversations},
};

/// Ends the open turns of the agent's launches up to `generation`, because of `reason`, a short text. Turns that the
/// agent has begun become INTERRUPTED, with an error in their conversation. The others wait for the next launch.
pub async fn end_lost(tx: &Tx, agent: &LockedAgent, generation: i64, reason: &str) -> Result<()> {
    let lost = tx
        .scope
        .find::<turns::Entity>()
        .filter(turns::Column::AgentId.eq(agent.id))
        .filter(turns::Column::EndedAt.is_null())
        .filter(turns::Column::State.ne(TurnState::Queued))
        // Parked turns wait for the next launch anyway.
        .filter(Expr::cust("(limited IS NULL OR limited <> 'PARKED')"))
        .filter(turns::Column::Generation.lte(generation))
        .order_by_asc(turns::Column::Id);
    for turn in lost.all(tx.connection()).await? {
        match (turn.started_at.is_some(), turn.cancel_requested_at.filter(|_| !turn.yielded)) {
            (true, _) => interrupt(tx, &turn, reason).await?,
            (false, Some(_)) => {
                end_turn(tx, &turn, TurnState::Cancelled, None).await?;
                settle_untold(tx, agent, &turn, MessageStatus::Cancelled).await?;
            }
            (false, None) => requeue(tx, &turn, "The agent ended before it began.").await?,
        }
    }
    Ok(())
}

async fn interrupt(tx: &Tx, turn: &turns::Model, reason: &str) -> Result<()> {
    let Ok(state) = StateEvent::Lost.apply(turn.state) else { return Ok(()) };
    let error = format!("The agent ended before it had finished: {reason}.");
    end_turn(tx, turn, state, Some(&error)).await?;
    conversations::append_error(tx, turn.conversation_id, Some(turn.id), "INTERRUPTED", &error).await?;
    Ok(())
}

/// Queues a turn again that the agent never got, because of `why`. No work can be done twice.
pub(super) async fn requeue(tx: &Tx, turn: &turns::Model, why: &str) -> Result<()> {
    if let Some(waiting) = find_waiting_turn(tx, turn.conversation_id).await? {
        // A conversation has at most one queued turn, so the later one takes the messages.
        conversations::move_messages(tx, turn.id, waiting.id, i64::MAX).await?;
        if let Some(first) = turn.first_seq {
            extend_turn(tx, turn.conversation_id, waiting.id, (first, first)).await?;
        }
        let error = format!("{why} Turn {} has its messages.", waiting.id);
        return end_turn(tx, turn, TurnState::Cancelled, Some(&error)).await;
    }
    if transition(tx, turn, StateEvent::GivenBack).await?.is_some() {
        let none = || Expr::value(None::<i64>);
        let back = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
        let back = back.col_expr(turns::Column::Generation, none());
        let back = back.col_expr(turns::Column::CancelRequestedAt, none());
        let back = back.col_expr(turns::Column::CutBy, Expr::value(None::<String>));
        let back = back.col_expr(turns::Column::Cut, Expr::value(None::<String>));
        // Another turn reached the limit, if any.
        let back = back.col_expr(turns::Column::Limited, Expr::value(None::<String>));
        let back = back.col_expr(turns::Column::Yielded, Expr::value(false));
        back.col_expr(turns::Column::HandedSeq, none()).exec(tx.connection()).await?;
    }
    Ok(())
}

/// Cancels the open turns of an agent that is being deleted.
pub async fn cancel_for_deleted_agent(tx: &Tx, agent: AgentId) -> Result<()> {
    let waiting = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent));
    for turn in waiting.filter(turns::Column::EndedAt.is_null()).all(tx.connection()).await? {
        end_turn(tx, &turn, TurnState::Cancelled, Some("The agent was deleted.")).await?;
        conversations::settle_messages(tx, turn.conversation_id, turn.id, MessageStatus::Cancelled).await?;
    }
    Ok(())
}

/// Ends a turn without a report of its host.
pub(super) async fn end_turn(
    tx: &Tx,
    turn: &turns::Model,
    state: TurnState,
    error: Option<&str>,
) -> Result<()> {
    let ended = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let ended = ended
        .col_expr(turns::Column::State, Expr::value(state.as_str()))
        .col_expr(turns::Column::Error, Expr::value(error.map(str::to_owned)))
        .col_expr(turns::Column::EndedAt, Expr::value(tx.now))
        .col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
    ended.exec(tx.connection()).await?;
    announce_end(tx, turn, state).await?;
    settle_usage(tx, turn).await
}
