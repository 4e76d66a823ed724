//! Hosts' reports about turns. Reports of an earlier launch are ignored: the end of the launch has decided about its
//! turns.

use muster_protocol::event::{TurnEnd, TurnOutcome, Usage};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use super::{
    ending::requeue,
    entity::turns,
    queue::settle_untold,
    rows::{self, announce, announce_end, load, transition},
    state::StateEvent,
    usage::{has_measured, load_measured_usage},
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, MessageStatus, TurnState},
        ids::{ConversationId, TurnId},
        plain::truncated,
        problem::Result,
    },
    core::{
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{
        agents::{
            self, LockedAgent,
            reporter::{Reporter, lock_current, lock_live},
        },
        conversations,
    },
};

/// An agent has received a turn's messages.
#[derive(Debug)]
pub struct Started {
    pub turn: TurnId,
}

impl DomainEvent for Started {}

/// An agent's model accepts its credential again.
#[derive(Debug)]
pub struct Authorized {
    pub agent: LockedAgent,
}

impl DomainEvent for Authorized {}

/// Sets or removes the session that the conversation's next turn resumes.
///
/// # Errors
/// `NOT_FOUND`: the conversation isn't the agent's.
pub async fn session(
    tx: &Tx,
    from: &Reporter,
    conversation: ConversationId,
    session: Option<String>,
) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    conversations::require_agent(tx, conversation, agent.id).await?;
    let session = session.map(|session| truncated(&session, bounds::ID));
    conversations::remember_session(tx, conversation, session).await
}

/// Marks a turn's messages as delivered. The host reports this before it prompts the agent, so that an unreported turn
/// can be given to the next launch.
///
/// # Errors
/// `NOT_FOUND`: the turn isn't the agent's.
pub async fn turn_started(tx: &Tx, from: &Reporter, turn: TurnId) -> Result<()> {
    let Some(agent) = lock_live(tx, from).await? else { return Ok(()) };
    let turn = load(tx, agent.id, turn).await?;
    if turn.started_at.is_some() || StateEvent::Started.apply(turn.state).is_err() {
        return Ok(());
    }
    transition(tx, &turn, StateEvent::Started).await?;
    let started = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let started = started.col_expr(turns::Column::StartedAt, Expr::value(from.time(tx, turn.created_at)));
    let started = started.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
    started.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    conversations::settle_messages(tx, turn.conversation_id, turn.id, MessageStatus::Delivered).await?;
    emit(tx, Started { turn: turn.id }).await
}

/// Ends a turn: adds up its usage, and sends the conversation's next turn.
///
/// # Errors
/// `NOT_FOUND`: the turn isn't the agent's.
pub async fn turn_ended(tx: &Tx, from: &Reporter, end: TurnEnd) -> Result<()> {
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    let turn = load(tx, agent.id, TurnId(end.turn_id)).await?;
    let event = match end.outcome {
        TurnOutcome::Done => StateEvent::Done,
        TurnOutcome::Failed => StateEvent::Failed,
        TurnOutcome::Cancelled => StateEvent::Cancelled,
    };
    let Ok(state) = event.apply(turn.state) else { return Ok(()) };
    if state == TurnState::Cancelled && turn.yielded && turn.started_at.is_none() {
        // The agent doesn't know these messages, so its next turn contains them.
        requeue(tx, &turn, "A person took over before the agent began.").await?;
        return super::send(tx, &agent, &[turn.conversation_id]).await;
    }
    if super::rate_limited::is_given_up(tx, &turn, state).await? {
        return super::rate_limited::park(tx, &agent, &turn).await;
    }
    let known = load_measured_usage(tx, turn.id).await?;
    let told = bounded_usage(end.usage);
    let usage = known.as_ref().map_or(told, |measured| measured.usage);
    let measured_model = known.as_ref().map(|measured| measured.model.clone());
    let model = end.model.as_deref().map(|model| truncated(model, bounds::ID));
    let context = end.context_tokens.map(|tokens| tokens.max(0));
    let model = measured_model.or(model);
    write_end(tx, from, &turn, state, (&end, &usage, model.clone())).await?;
    if turn.started_at.is_none() {
        match state {
            TurnState::Cancelled => settle_untold(tx, &agent, &turn, MessageStatus::Cancelled).await?,
            TurnState::Failed => settle_untold(tx, &agent, &turn, MessageStatus::Failed).await?,
            _ => {
                let status = MessageStatus::Delivered;
                conversations::settle_messages(tx, turn.conversation_id, turn.id, status).await?;
            }
        }
    }
    if state == TurnState::Failed {
        let text = end
            .error
            .as_deref()
            .map_or_else(|| "The agent gave no reason.".into(), |error| truncated(error, bounds::DETAIL));
        conversations::append_error(tx, turn.conversation_id, Some(turn.id), "FAILED", &text).await?;
    }
    super::trace::export(tx, &turn, state).await?;
    conversations::record_measurement(tx, turn.conversation_id, model, context).await?;
    if context.is_some() && agents::session::is_full(agents::session_limit(tx, agent.id).await?, context) {
        conversations::remember_session(tx, turn.conversation_id, None).await?;
    }
    // Measured calls are added up already, even those whose turn is unknown.
    if known.is_none() && !has_measured(tx, agent.id, turn.started_at).await? {
        agents::add_cost(tx, &agent, usage.tokens(), usage.cost_micro.unwrap_or(0)).await?;
        let counted = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
        counted.col_expr(turns::Column::Unmeasured, Expr::value(true)).exec(tx.connection()).await?;
    }
    if state == TurnState::Done && agent.auth_failed {
        agents::clear_auth_failure(tx, &agent).await?;
        emit(tx, Authorized { agent: agent.clone() }).await?;
    }
    if state == TurnState::Done && turn.yielded {
        super::takeover::settle_finished(tx, &turn).await?;
    }
    super::send(tx, &agent, &[turn.conversation_id]).await
}

async fn write_end(
    tx: &Tx,
    from: &Reporter,
    turn: &turns::Model,
    state: TurnState,
    (end, usage, model): (&TurnEnd, &Usage, Option<String>),
) -> Result<()> {
    use turns::Column;
    let error = end.error.as_deref().filter(|_| state != TurnState::Done);
    let error = error.map(|error| truncated(error, bounds::DETAIL));
    let ended = tx.scope.update::<turns::Entity>().filter(Column::Id.eq(turn.id));
    let ended = rows::set_usage(ended, usage)
        .col_expr(Column::State, Expr::value(state.as_str()))
        .col_expr(Column::Limited, Expr::value(None::<String>))
        .col_expr(Column::Error, Expr::value(error))
        .col_expr(Column::Model, Expr::value(model))
        .col_expr(Column::EndedAt, Expr::value(from.time(tx, turn.started_at.unwrap_or(turn.created_at))))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now));
    ended.exec(tx.connection()).await?;
    announce_end(tx, turn, state).await
}

/// Bounds the usage that a host reports.
fn bounded_usage(usage: Usage) -> Usage {
    let sane = |number: Option<i64>| number.map(|number| number.clamp(0, bounds::AMOUNT));
    Usage {
        input: sane(usage.input),
        output: sane(usage.output),
        cache_read: sane(usage.cache_read),
        cache_write: sane(usage.cache_write),
        cost_micro: sane(usage.cost_micro),
    }
}
