//! What becomes of turns when the agent's launch ends, or the agent is deleted.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, sea_query::Expr};

use super::{
    entity::turns,
    queue::{never_told, reaches},
    rate_limited::settle_spent,
    rows::{announce, happen, waiting},
    state::Happening,
};
use crate::{
    base::{
        enums::{ChangeOp, MessageStatus, TurnState},
        ids::AgentId,
        problem::Result,
    },
    core::store::Tx,
    domain::{agents::LockedAgent, conversations},
};

/// Ends the open turns of the agent's launches up to `generation`, because of `reason`, a short text. What the agent has
/// begun is INTERRUPTED and says so in its conversation; what it has not got yet waits for the next launch.
pub async fn lose(tx: &Tx, agent: &LockedAgent, generation: i64, reason: &str) -> Result<()> {
    let lost = tx
        .scope
        .find::<turns::Entity>()
        .filter(turns::Column::AgentId.eq(agent.id))
        .filter(turns::Column::EndedAt.is_null())
        .filter(turns::Column::State.ne(TurnState::Queued))
        // The launch has given these up already. They wait for the next one.
        .filter(Expr::cust("(limited IS NULL OR limited <> 'PARKED')"))
        .filter(turns::Column::Generation.lte(generation))
        .order_by_asc(turns::Column::Id);
    for turn in lost.all(tx.connection()).await? {
        match (turn.started_at.is_some(), turn.cancel_requested_at.filter(|_| !turn.yielded)) {
            (true, _) => interrupt(tx, &turn, reason).await?,
            (false, Some(_)) => {
                end(tx, &turn, TurnState::Cancelled, None).await?;
                never_told(tx, agent, &turn, MessageStatus::Cancelled).await?;
            }
            (false, None) => give_back(tx, &turn, "The agent ended before it began.").await?,
        }
    }
    Ok(())
}

async fn interrupt(tx: &Tx, turn: &turns::Model, reason: &str) -> Result<()> {
    let Ok(state) = Happening::Lost.apply(turn.state) else { return Ok(()) };
    let error = format!("The agent ended before it had finished: {reason}.");
    end(tx, turn, state, Some(&error)).await?;
    conversations::append_error(tx, turn.conversation_id, Some(turn.id), "INTERRUPTED", &error).await?;
    Ok(())
}

/// The agent never got it, because of `why`, so nothing happens twice if it waits again.
pub(super) async fn give_back(tx: &Tx, turn: &turns::Model, why: &str) -> Result<()> {
    if let Some(waiting) = waiting(tx, turn.conversation_id).await? {
        // Only one turn may wait, so the later one takes its messages.
        conversations::hand_on(tx, turn.id, waiting.id, i64::MAX).await?;
        if let Some(first) = turn.first_seq {
            reaches(tx, turn.conversation_id, waiting.id, (first, first)).await?;
        }
        let error = format!("{why} Turn {} has its messages.", waiting.id);
        return end(tx, turn, TurnState::Cancelled, Some(&error)).await;
    }
    if happen(tx, turn, Happening::GivenBack).await?.is_some() {
        let none = || Expr::value(None::<i64>);
        let back = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
        let back = back.col_expr(turns::Column::Generation, none());
        let back = back.col_expr(turns::Column::CancelRequestedAt, none());
        let back = back.col_expr(turns::Column::CutBy, Expr::value(None::<String>));
        let back = back.col_expr(turns::Column::Cut, Expr::value(None::<String>));
        // If a limit was reached, then by another turn.
        let back = back.col_expr(turns::Column::Limited, Expr::value(None::<String>));
        let back = back.col_expr(turns::Column::Yielded, Expr::value(false));
        back.col_expr(turns::Column::HandedSeq, none()).exec(tx.connection()).await?;
    }
    Ok(())
}

/// Cancels what waits for an agent that is being deleted.
pub async fn abandon(tx: &Tx, agent: AgentId) -> Result<()> {
    let waiting = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent));
    for turn in waiting.filter(turns::Column::EndedAt.is_null()).all(tx.connection()).await? {
        end(tx, &turn, TurnState::Cancelled, Some("The agent was deleted.")).await?;
        conversations::settle(tx, turn.conversation_id, turn.id, MessageStatus::Cancelled).await?;
    }
    Ok(())
}

/// Ends a turn that its host doesn't end.
pub(super) async fn end(tx: &Tx, turn: &turns::Model, state: TurnState, error: Option<&str>) -> Result<()> {
    let ended = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let ended = ended
        .col_expr(turns::Column::State, Expr::value(state.as_str()))
        .col_expr(turns::Column::Error, Expr::value(error.map(str::to_owned)))
        .col_expr(turns::Column::EndedAt, Expr::value(tx.now))
        .col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
    ended.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    settle_spent(tx, turn).await
}
