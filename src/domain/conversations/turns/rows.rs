//! The turns' rows: finding them, moving them through the state table, and telling of it.

use muster_protocol::event::Usage;
use sea_orm::{ColumnTrait, QueryFilter, Select, UpdateMany, sea_query::Expr};

use super::{entity::turns, state::Happening};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, TurnState},
        ids::{AgentId, ConversationId, TurnId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{Event, store::Tx},
};

/// Tells subscribers about a turn.
pub(super) fn announce(tx: &Tx, op: ChangeOp, conversation: ConversationId, id: TurnId) {
    tx.announce(Event::new(tx.scope.org, op, RecordKind::Turn, id).with_parent(conversation));
}

/// A turn of this agent.
pub(super) async fn load(tx: &Tx, agent: AgentId, id: TurnId) -> Result<turns::Model> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    let found = found.filter(turns::Column::AgentId.eq(agent)).one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("turn", id))
}

/// How a turn stands, if there is such a one.
pub async fn state_of(tx: &Tx, id: TurnId) -> Result<Option<TurnState>> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    Ok(found.one(tx.connection()).await?.map(|turn| turn.state))
}

/// The turn of this conversation that waits. There is never a second.
pub(super) async fn waiting(tx: &Tx, conversation: ConversationId) -> Result<Option<turns::Model>> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::ConversationId.eq(conversation));
    Ok(found.filter(Expr::cust("state = 'QUEUED'")).one(tx.connection()).await?)
}

/// Writes what a turn has spent.
pub(super) fn spent(turn: UpdateMany<turns::Entity>, usage: &Usage) -> UpdateMany<turns::Entity> {
    use turns::Column;
    turn.col_expr(Column::InputTokens, Expr::value(usage.input))
        .col_expr(Column::OutputTokens, Expr::value(usage.output))
        .col_expr(Column::CacheReadTokens, Expr::value(usage.cache_read))
        .col_expr(Column::CacheWriteTokens, Expr::value(usage.cache_write))
        .col_expr(Column::CostMicro, Expr::value(usage.cost_micro))
}

/// Fails unless the turn is this agent's, in this conversation. Returns when it was made.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn require_of(
    tx: &Tx,
    id: TurnId,
    agent: AgentId,
    conversation: ConversationId,
) -> Result<Timestamp> {
    let turn = load(tx, agent, id).await?;
    if turn.conversation_id == conversation {
        Ok(turn.created_at)
    } else {
        Err(Problem::not_found("turn", id))
    }
}

/// The turns that are open, as [`is_open`] has it. The literal states make the partial indexes apply.
pub(super) fn open(tx: &Tx) -> Select<turns::Entity> {
    let open = tx.scope.find::<turns::Entity>();
    open.filter(Expr::cust("state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT')"))
}

/// Whether a turn is open: its host has it.
pub(super) const fn is_open(state: TurnState) -> bool {
    matches!(state, TurnState::Running | TurnState::WaitingApproval | TurnState::WaitingLimit)
}

/// Applies the state table, if it allows this. Returns the turn as it is now, or none if it stays as it was.
pub(super) async fn happen(
    tx: &Tx,
    turn: &turns::Model,
    happening: Happening,
) -> Result<Option<turns::Model>> {
    let Ok(state) = happening.apply(turn.state) else { return Ok(None) };
    if state == turn.state {
        return Ok(None);
    }
    let changed = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let changed = changed.col_expr(turns::Column::State, Expr::value(state.as_str()));
    let changed = changed.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
    changed.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(Some(turns::Model { state, ..turn.clone() }))
}

/// The agent asks a person in this turn, and waits.
pub async fn asked(tx: &Tx, turn: TurnId) -> Result<()> {
    move_on(tx, turn, Happening::Asked).await
}

/// The agent no longer waits for anyone in this turn.
pub async fn answered(tx: &Tx, turn: TurnId) -> Result<()> {
    move_on(tx, turn, Happening::Answered).await
}

async fn move_on(tx: &Tx, turn: TurnId, happening: Happening) -> Result<()> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    if let Some(turn) = found.one(tx.connection()).await? {
        happen(tx, &turn, happening).await?;
    }
    Ok(())
}
