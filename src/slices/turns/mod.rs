//! Turns: what an agent is given to do at a time, in one conversation.
//!
//! A message to an agent makes a QUEUED turn, or joins the one that its conversation has ([`queued`]). It is sent when the
//! agent runs and the conversation has no open turn ([`send`]): when it is written, when the turn before it ends, when the
//! agent has started or resumes. The host then asks what to say (`plans.rs`), which fixes the turn's messages: what is
//! written from then on belongs to the next turn. For the states see `state.rs`.
//!
//! Whoever changes turns holds the agent's row first ([`agents::standing`]), so that no message is written while the agent's
//! status changes, and no two replicas send the same turn. Permissions: `agent.output.view` reads, `agent.interact` cancels.
//!
//! `queue.rs`: making, sending, cancelling; `reports.rs`: what hosts report; `ending.rs`: what becomes of the turns of a launch
//! that has ended; `prompt.rs`: messages as parts of what is said.

mod ending;
mod entity;
pub mod graphql;
pub mod plans;
mod prompt;
mod queue;
pub mod reports;
mod state;

use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

pub use self::{
    ending::{abandon, lose},
    queue::{Cause, cancel, cancel_all, queued, reaches, resent, send, send_due, send_queued},
    reports::{answered, asked},
};
use self::{entity::turns, state::Happening};
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
fn announce(tx: &Tx, op: ChangeOp, conversation: ConversationId, id: TurnId) {
    let kind = RecordKind::Turn;
    tx.announce(Event { org: tx.scope.org, kind, id: id.0, op, of: Some(conversation.0) });
}

/// A turn of this agent.
async fn load(tx: &Tx, agent: AgentId, id: TurnId) -> Result<turns::Model> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    let found = found.filter(turns::Column::AgentId.eq(agent)).one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("turn", id))
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

/// Whether a turn is open: its host has it.
const fn is_open(state: TurnState) -> bool {
    matches!(state, TurnState::Running | TurnState::WaitingApproval | TurnState::WaitingLimit)
}

/// Applies the state table, if it allows this. Returns the turn as it is now, or none if it stays as it was.
async fn happen(tx: &Tx, turn: &turns::Model, happening: Happening) -> Result<Option<turns::Model>> {
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
