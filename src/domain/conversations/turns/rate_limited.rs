//! Turns of an agent that may not call its model at the moment: they wait, and go on by themselves.
//!
//! A turn that runs waits from the first call that is refused on. If the agent gives up, the turn has not ended: it is parked,
//! and sent again. What was not sent yet is not sent. Callers hold the agent.

use muster_protocol::{Command, event::Usage};
use sea_orm::{
    ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};

use super::{
    entity::turns,
    queue::{dispatch, due, takes_turns},
    rows::{announce, happen, spent},
    state::Happening,
    usage::{Measured, measured},
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

/// What keeps an agent from calling its model, and since when.
#[derive(Debug)]
pub struct LimitOf(pub AgentId);

impl Question for LimitOf {
    type Answer = Option<(LimitKind, Timestamp)>;
}

/// Whether the agent may not call its model: its turns wait.
pub(super) async fn is_limited(tx: &Tx, agent: AgentId) -> Result<bool> {
    Ok(ask(tx, LimitOf(agent)).await?.is_some())
}

/// A call of the agent's model was refused: its turns wait.
pub async fn limit(tx: &Tx, agent: AgentId) -> Result<()> {
    let running = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent));
    let running = running.filter(Expr::cust("state IN ('RUNNING', 'WAITING_LIMIT')"));
    for turn in running.order_by_asc(turns::Column::Id).all(tx.connection()).await? {
        happen(tx, &turn, Happening::Limited).await?;
        if turn.limited != Some(TurnLimit::Parked) && turn.cancel_requested_at.is_none() {
            mark(tx, turn.id, Some(TurnLimit::Refused)).await?;
        }
    }
    Ok(())
}

/// Whether anything of the agent waits: a turn that was begun, or one that was not.
pub async fn waits(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let begun = waiting(tx, agent.id).count(tx.connection()).await? > 0;
    Ok(begun || (takes_turns(agent) && due(tx, agent).count(tx.connection()).await? > 0))
}

fn waiting(tx: &Tx, agent: AgentId) -> sea_orm::Select<turns::Entity> {
    let waiting = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent));
    waiting.filter(Expr::cust("state = 'WAITING_LIMIT'")).order_by_asc(turns::Column::Id)
}

/// Lets turns of the agent go on, the oldest first: at most this many. Returns how many: none in a stopped organization, which
/// sends them after its release ([`super::send_left`]).
pub async fn go_on(tx: &Tx, agent: &LockedAgent, most: Option<u64>) -> Result<u64> {
    if !takes_turns(agent) || orgs::is_stopped(tx).await? {
        return Ok(0);
    }
    let begun = waiting(tx, agent.id).limit(most).all(tx.connection()).await?;
    for turn in &begun {
        if turn.limited == Some(TurnLimit::Parked) {
            send_again(tx, agent, turn).await?;
        } else {
            happen(tx, turn, Happening::Freed).await?;
        }
    }
    let gone = begun.len() as u64;
    let left = most.map(|most| most.saturating_sub(gone));
    let fresh = due(tx, agent).limit(left).all(tx.connection()).await?;
    let sent = fresh.len() as u64;
    dispatch(tx, agent, fresh).await?;
    Ok(gone + sent)
}

/// Whether the turn may have been sent again after it was parked. Until its host has it, a refused call may have been another
/// turn's.
pub(super) const fn is_sent_again(turn: &turns::Model) -> bool {
    matches!(turn.limited, Some(TurnLimit::Resumed | TurnLimit::Refused))
        && matches!(turn.state, TurnState::Running | TurnState::WaitingLimit)
}

/// Whether the agent ends a turn in this state because a call of its model was refused.
pub(super) async fn is_given_up(tx: &Tx, turn: &turns::Model, state: TurnState) -> Result<bool> {
    let is_refused = turn.limited == Some(TurnLimit::Refused) && turn.cancel_requested_at.is_none();
    match state {
        TurnState::Failed => Ok(is_refused),
        // Some agents end such a turn as if nothing were wrong. If others ran, it may have been their call, and this one is done.
        TurnState::Done if is_refused => ran_alone(tx, turn).await,
        _ => Ok(false),
    }
}

/// Whether the agent had no other turn when a call was refused last. If it had, no one knows in which of them that was. Those
/// that had ended by then, or wait because they were given up, have not changed since.
async fn ran_alone(tx: &Tx, turn: &turns::Model) -> Result<bool> {
    use turns::Column;
    let is_open = Expr::cust("(ended_at IS NULL AND (limited IS NULL OR limited <> 'PARKED'))");
    let others = tx.scope.find::<turns::Entity>().filter(Column::AgentId.eq(turn.agent_id));
    let others = others.filter(Column::Id.ne(turn.id)).filter(Column::State.ne(TurnState::Queued));
    let others = others.filter(Condition::any().add(is_open).add(Column::UpdatedAt.gte(turn.updated_at)));
    Ok(others.count(tx.connection()).await? == 0)
}

/// The agent has given up a turn because of a limit. It waits, and is sent again.
pub(super) async fn park(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    happen(tx, turn, Happening::Limited).await?;
    mark(tx, turn.id, Some(TurnLimit::Parked)).await?;
    if is_limited(tx, agent.id).await? {
        return Ok(());
    }
    // More has been allowed since the call was refused.
    go_on(tx, agent, None).await?;
    Ok(())
}

/// A parked turn was sent again, and did not reach the agent: it waits as before.
pub(super) async fn park_again(tx: &Tx, turn: &turns::Model) -> Result<()> {
    happen(tx, turn, Happening::Limited).await?;
    mark(tx, turn.id, Some(TurnLimit::Parked)).await
}

/// Sends a parked turn to the agent's present launch. Its messages are the same.
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

async fn mark(tx: &Tx, turn: TurnId, limited: Option<TurnLimit>) -> Result<()> {
    let marked = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    let limited = limited.map(|limited| limited.as_str().to_owned());
    let marked = marked.col_expr(turns::Column::Limited, Expr::value(limited));
    marked.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    Ok(())
}

/// A call of a model was measured in this turn. One that has passed ends its wait; one that is reported after the turn's end is
/// added to what it has spent, and takes the place of what the agent said.
pub async fn remeasured(tx: &Tx, agent: &LockedAgent, turn: TurnId, has_passed: bool) -> Result<()> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(turn));
    let Some(turn) = found.one(tx.connection()).await? else { return Ok(()) };
    if turn.ended_at.is_some() {
        return measured_late(tx, agent, &turn).await;
    }
    if has_passed && turn.limited == Some(TurnLimit::Refused) {
        mark(tx, turn.id, None).await?;
        happen(tx, &turn, Happening::Freed).await?;
    }
    Ok(())
}

/// A call was measured after the turn's end.
async fn measured_late(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    if turn.unmeasured {
        // What the agent said was counted at the turn's end.
        let said = Usage {
            input: turn.input_tokens,
            output: turn.output_tokens,
            cache_read: turn.cache_read_tokens,
            cache_write: turn.cache_write_tokens,
            cost_micro: turn.cost_micro,
        };
        agents::add_cost(tx, agent, -said.tokens(), -said.cost_micro.unwrap_or(0)).await?;
    }
    settle_spent(tx, turn).await
}

/// What the host has measured is what the turn has spent.
pub(super) async fn settle_spent(tx: &Tx, turn: &turns::Model) -> Result<()> {
    use turns::Column;
    let Some(Measured { usage, .. }) = measured(tx, turn.id).await? else {
        return Ok(());
    };
    let settled = tx.scope.update::<turns::Entity>().filter(Column::Id.eq(turn.id));
    let settled = spent(settled, &usage)
        .col_expr(Column::Unmeasured, Expr::value(false))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now));
    settled.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(())
}

/// Whether the turn is this agent's.
pub async fn is_of(tx: &Tx, turn: TurnId, agent: AgentId) -> Result<bool> {
    let found = tx.scope.find::<turns::Entity>();
    let own = Condition::all().add(turns::Column::Id.eq(turn)).add(turns::Column::AgentId.eq(agent));
    Ok(found.filter(own).count(tx.connection()).await? > 0)
}
