//! Turns of an agent that may not call its model at the moment: they wait, and resume by themselves.
//!
//! A running turn waits from its first refused call on. If the agent gives up, the turn does not end: it is parked and
//! sent again. Queued turns are not sent. Callers must have locked the agent.

use muster_protocol::{Command, event::Usage};
use sea_orm::{
    ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};

use super::{
    entity::turns,
    queue::{dispatch_turns, due_turns, takes_turns},
    rows::{announce, set_usage, transition},
    state::StateEvent,
    usage::{Measured, load_measured_usage},
};
use crate::{
    base::{
        enums::{ChangeOp, LimitKind, TurnLimit, TurnState},
        ids::{AgentId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        handlers::{Question, ask},
        store::Tx,
    },
    domain::{
        agents::{self, LockedAgent},
        commands, orgs,
    },
};

/// Asks for the limit that keeps an agent from calling its model, and for its start.
#[derive(Debug)]
pub struct LimitOf(pub AgentId);

impl Question for LimitOf {
    type Answer = Option<(LimitKind, Timestamp)>;
}

/// Whether a limit keeps the agent from calling its model.
pub(super) async fn is_limited(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(ask(tx, LimitOf(agent)).await?.is_some())
}

/// Makes the agent's running turns wait after a refused model call.
pub async fn limit_turns(tx: &Tx, agent: AgentId) -> Result<()> {
    let running = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent));
    let running = running.filter(Expr::cust("state IN ('RUNNING', 'WAITING_LIMIT')"));
    for turn in running.order_by_asc(turns::Column::Id).all(tx.connection()).await? {
        transition(tx, &turn, StateEvent::Limited).await?;
        if turn.limited != Some(TurnLimit::Parked) && turn.cancel_requested_at.is_none() {
            set_limit(tx, turn.id, Some(TurnLimit::Refused)).await?;
        }
    }
    Ok(())
}

/// Whether the agent has a turn that waits for the limit or that could be sent.
pub async fn has_waiting(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let begun = waiting_turns(tx, agent.id).count(tx.connection()).await? > 0;
    Ok(begun || (takes_turns(agent) && due_turns(tx, agent).count(tx.connection()).await? > 0))
}

fn waiting_turns(tx: &Tx, agent: AgentId) -> sea_orm::Select<turns::Entity> {
    let waiting = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent));
    waiting.filter(Expr::cust("state = 'WAITING_LIMIT'")).order_by_asc(turns::Column::Id)
}

/// Resumes at most `most` turns of the agent, oldest first, and returns how many: none in a stopped organization, whose
/// turns are sent after its release ([`super::send_left`]).
pub async fn resume_turns(tx: &Tx, agent: &LockedAgent, most: Option<u64>) -> Result<u64> {
    if !takes_turns(agent) || orgs::is_stopped(tx).await? {
        return Ok(0);
    }
    let begun = waiting_turns(tx, agent.id).limit(most).all(tx.connection()).await?;
    for turn in &begun {
        if turn.limited == Some(TurnLimit::Parked) {
            send_again(tx, agent, turn).await?;
        } else {
            transition(tx, turn, StateEvent::Freed).await?;
        }
    }
    let gone = begun.len() as u64;
    let left = most.map(|most| most.saturating_sub(gone));
    let fresh = due_turns(tx, agent).limit(left).all(tx.connection()).await?;
    let sent = fresh.len() as u64;
    dispatch_turns(tx, agent, fresh).await?;
    Ok(gone + sent)
}

/// Whether the turn may have been sent again after it was parked. Until its host has it, a refused call may belong to
/// another turn.
pub(super) const fn is_resent(turn: &turns::Model) -> bool {
    matches!(turn.limited, Some(TurnLimit::Resumed | TurnLimit::Refused))
        && matches!(turn.state, TurnState::Running | TurnState::WaitingLimit)
}

/// Whether an end in this state means that the agent gave up after a refused model call.
pub(super) async fn is_given_up(tx: &Tx, turn: &turns::Model, state: TurnState) -> Result<bool> {
    let is_refused = turn.limited == Some(TurnLimit::Refused) && turn.cancel_requested_at.is_none();
    match state {
        TurnState::Failed => Ok(is_refused),
        // Some agents report such a turn as done. If other turns ran, the refused call may be theirs, and this turn is
        // done.
        TurnState::Done if is_refused => ran_alone(tx, turn).await,
        _ => Ok(false),
    }
}

/// Whether the agent had no other turn at the last refused call. Otherwise the call's turn is unknown. Turns that had
/// ended or were parked by then have not changed since.
async fn ran_alone(tx: &Tx, turn: &turns::Model) -> Result<bool> {
    use turns::Column;
    let is_open = Expr::cust("(ended_at IS NULL AND (limited IS NULL OR limited <> 'PARKED'))");
    let others = tx.scope.find::<turns::Entity>().filter(Column::AgentId.eq(turn.agent_id));
    let others = others.filter(Column::Id.ne(turn.id)).filter(Column::State.ne(TurnState::Queued));
    let others = others.filter(Condition::any().add(is_open).add(Column::UpdatedAt.gte(turn.updated_at)));
    Ok(others.count(tx.connection()).await? == 0)
}

/// Parks a turn that the agent has given up because of a limit. It is sent again.
pub(super) async fn park(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    transition(tx, turn, StateEvent::Limited).await?;
    set_limit(tx, turn.id, Some(TurnLimit::Parked)).await?;
    if is_limited(tx, agent.id).await? {
        return Ok(());
    }
    // The limit was raised after the call was refused.
    resume_turns(tx, agent, None).await?;
    Ok(())
}

/// Parks a turn again that was sent but did not reach the agent.
pub(super) async fn repark(tx: &Tx, turn: &turns::Model) -> Result<()> {
    transition(tx, turn, StateEvent::Limited).await?;
    set_limit(tx, turn.id, Some(TurnLimit::Parked)).await
}

/// Sends a parked turn, with the same messages, to the agent's current launch.
async fn send_again(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    let sent = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let sent = sent
        .col_expr(turns::Column::State, Expr::value(TurnState::Running.as_str()))
        .col_expr(turns::Column::Limited, Expr::value(TurnLimit::Resumed.as_str()))
        .col_expr(turns::Column::Generation, Expr::value(agent.generation))
        .col_expr(turns::Column::AgentRevision, Expr::value(agent.revision))
        .col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
    sent.exec(tx.connection()).await?;
    commands::enqueue(tx, agent.host(), &Command::Turn { turn_id: turn.id.0 });
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(())
}

async fn set_limit(tx: &Tx, turn: TurnId, limited: Option<TurnLimit>) -> Result<()> {
    let marked = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    let limited = limited.map(|limited| limited.as_str().to_owned());
    let marked = marked.col_expr(turns::Column::Limited, Expr::value(limited));
    marked.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    Ok(())
}

/// Applies a measured model call to its turn. A successful call ends the turn's wait. A call reported after the turn's
/// end is added to its usage, and replaces the agent's own claim.
pub async fn apply_measurement(tx: &Tx, agent: &LockedAgent, turn: TurnId, has_passed: bool) -> Result<()> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    let Some(turn) = found.one(tx.connection()).await? else { return Ok(()) };
    if turn.ended_at.is_some() {
        return measured_late(tx, agent, &turn).await;
    }
    if has_passed && turn.limited == Some(TurnLimit::Refused) {
        set_limit(tx, turn.id, None).await?;
        transition(tx, &turn, StateEvent::Freed).await?;
    }
    Ok(())
}

async fn measured_late(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    if turn.unmeasured {
        // The agent's claim was counted at the turn's end.
        let said = Usage {
            input: turn.input_tokens,
            output: turn.output_tokens,
            cache_read: turn.cache_read_tokens,
            cache_write: turn.cache_write_tokens,
            cost_micro: turn.cost_micro,
        };
        agents::add_cost(tx, agent, -said.tokens(), -said.cost_micro.unwrap_or(0)).await?;
    }
    settle_usage(tx, turn).await
}

/// Replaces the turn's usage by the measured one.
pub(super) async fn settle_usage(tx: &Tx, turn: &turns::Model) -> Result<()> {
    use turns::Column;
    let Some(Measured { usage, .. }) = load_measured_usage(tx, turn.id).await? else {
        return Ok(());
    };
    let settled = tx.scope.update::<turns::Entity>().filter(Column::Id.eq(turn.id));
    let settled = set_usage(settled, &usage)
        .col_expr(Column::Unmeasured, Expr::value(false))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now));
    settled.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(())
}

/// Whether the turn belongs to the agent.
pub async fn belongs_to(tx: &Tx, turn: TurnId, agent: AgentId) -> Result<bool> {
    let found = tx.scope.find::<turns::Entity>();
    let own = Condition::all().add(turns::Column::Id.eq(turn)).add(turns::Column::AgentId.eq(agent));
    Ok(found.filter(own).count(tx.connection()).await? > 0)
}
