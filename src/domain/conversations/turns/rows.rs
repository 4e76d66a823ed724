//! Rows of turns: finding them, changing their state, and announcing changes.

use muster_protocol::event::Usage;
use sea_orm::{ColumnTrait, QueryFilter, Select, UpdateMany, sea_query::Expr};

use super::{entity::turns, state::StateEvent};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, TurnState},
        ids::{AgentId, ConversationId, TurnId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        Event,
        handlers::{DomainEvent, emit},
        store::Tx,
        telemetry::metrics,
    },
    domain::agents::{self, LockedAgent},
};

/// A turn has ended.
#[derive(Debug)]
pub struct Ended {
    pub turn: TurnId,
    pub agent: AgentId,
    pub conversation: ConversationId,
}

impl DomainEvent for Ended {}

pub(super) fn announce(tx: &Tx, op: ChangeOp, conversation: ConversationId, id: TurnId) {
    tx.announce(Event::new(tx.scope.org, op, RecordKind::Turn, id).with_parent(conversation));
}

/// Announces that a turn has ended in this state, and counts it.
pub(super) async fn announce_end(tx: &Tx, turn: &turns::Model, state: TurnState) -> Result<()> {
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    if let Some(meters) = metrics::on() {
        tx.connection().after_commit(move || meters.turn_ended(state));
    }
    emit(tx, Ended { turn: turn.id, agent: turn.agent_id, conversation: turn.conversation_id }).await
}

/// Loads a turn of this agent.
pub(super) async fn load(tx: &Tx, agent: AgentId, id: TurnId) -> Result<turns::Model> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    let found = found.filter(turns::Column::AgentId.eq(agent)).one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("turn", id))
}

/// Locks a turn's agent and loads the turn. None: the agent was deleted.
pub(super) async fn lock_turn(tx: &Tx, id: TurnId) -> Result<Option<(LockedAgent, turns::Model)>> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    let found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("turn", id))?;
    let Some(agent) = agents::lock_agent(tx, found.agent_id).await? else { return Ok(None) };
    // The turn may have changed while another transaction held the lock.
    let turn = load(tx, agent.id, id).await?;
    Ok(Some((agent, turn)))
}

/// The state of a turn, if it exists.
pub async fn state_of(tx: &Tx, id: TurnId) -> Result<Option<TurnState>> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    Ok(found.one(tx.connection()).await?.map(|turn| turn.state))
}

/// The queued turn of this conversation. There is at most one.
pub(super) async fn find_waiting_turn(tx: &Tx, conversation: ConversationId) -> Result<Option<turns::Model>> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::ConversationId.eq(conversation));
    Ok(found.filter(Expr::cust("state = 'QUEUED'")).one(tx.connection()).await?)
}

/// Sets a turn's usage.
pub(super) fn set_usage(turn: UpdateMany<turns::Entity>, usage: &Usage) -> UpdateMany<turns::Entity> {
    use turns::Column;
    turn.col_expr(Column::InputTokens, Expr::value(usage.input))
        .col_expr(Column::OutputTokens, Expr::value(usage.output))
        .col_expr(Column::CacheReadTokens, Expr::value(usage.cache_read))
        .col_expr(Column::CacheWriteTokens, Expr::value(usage.cache_write))
        .col_expr(Column::CostMicro, Expr::value(usage.cost_micro))
}

/// Fails unless the turn belongs to this agent and conversation. Returns when it was created.
pub async fn require_turn(
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

/// The open turns ([`is_open`]). The literal states make the partial indexes apply.
pub(super) fn open_turns(tx: &Tx) -> Select<turns::Entity> {
    let open = tx.scope.find::<turns::Entity>();
    open.filter(Expr::cust("state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT')"))
}

/// The open turn of a conversation. There is at most one.
pub async fn find_open_turn(tx: &Tx, conversation: ConversationId) -> Result<Option<TurnId>> {
    let open = open_turns(tx).filter(turns::Column::ConversationId.eq(conversation));
    Ok(open.one(tx.connection()).await?.map(|turn| turn.id))
}

/// Whether a turn is open: its host has it.
pub(super) const fn is_open(state: TurnState) -> bool {
    matches!(state, TurnState::Running | TurnState::WaitingApproval | TurnState::WaitingLimit)
}

/// Changes the turn's state if the state table allows it. Returns the changed turn. None: no change.
pub(super) async fn transition(
    tx: &Tx,
    turn: &turns::Model,
    event: StateEvent,
) -> Result<Option<turns::Model>> {
    let Ok(state) = event.apply(turn.state) else { return Ok(None) };
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

/// Records that the agent waits for a person in this turn.
pub async fn mark_asked(tx: &Tx, turn: TurnId) -> Result<()> {
    transition_by_id(tx, turn, StateEvent::Asked).await
}

/// Records that the agent no longer waits for a person in this turn.
pub async fn mark_answered(tx: &Tx, turn: TurnId) -> Result<()> {
    transition_by_id(tx, turn, StateEvent::Answered).await
}

async fn transition_by_id(tx: &Tx, turn: TurnId, event: StateEvent) -> Result<()> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    if let Some(turn) = found.one(tx.connection()).await? {
        transition(tx, &turn, event).await?;
    }
    Ok(())
}
