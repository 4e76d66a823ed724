//! Creating, sending and cancelling turns.

use muster_protocol::Command;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, NotSet, QueryFilter, QueryOrder, QuerySelect, Select, Set,
    sea_query::Expr,
};
use serde_json::json;

use super::{
    entity::turns,
    queries::{DUE, extend_reach, join_queued},
    rate_limited::{is_limited, settle_usage},
    rows::{announce, announce_end, find_waiting_turn, is_open, lock_turn, open_turns},
    state::is_final,
};
use crate::{
    base::{
        enums::{
            AgentStatus, ChangeOp, DecidedVia, MessageKind, MessageRole, MessageStatus, RecordKind,
            TurnCause, TurnCut, TurnLimit, TurnState,
        },
        ids::{AgentId, ConversationId, TokenId, TurnId, UserId},
        problem::{Code, Problem, Result},
    },
    core::{
        access::{Caller, Scope},
        audit,
        store::Tx,
    },
    domain::{
        agents::{self, LockedAgent},
        commands,
        conversations::{self, NewMessage},
        orgs,
    },
};

/// The cause of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub kind: TurnCause,
    pub user: Option<UserId>,
    pub token: Option<TokenId>,
}

impl Cause {
    /// The caller of the transaction.
    #[must_use]
    pub fn caller(tx: &Tx) -> Self {
        let request = &tx.scope.request;
        let kind = match (&request.caller, request.via) {
            (Caller::Person(_), DecidedVia::Graphql) => TurnCause::Panel,
            (Caller::LinkedChat(_), _) => TurnCause::Channel,
            (Caller::Person(_) | Caller::Token(_), _) => TurnCause::Api,
            (Caller::System | Caller::Anonymous, _) => TurnCause::System,
        };
        Self { kind, user: request.caller.user(), token: request.caller.token() }
    }

    /// An earlier decision.
    #[must_use]
    pub fn decision(user: Option<UserId>, token: Option<TokenId>) -> Self {
        let kind = match (user, token) {
            (Some(_), _) => TurnCause::Panel,
            (None, Some(_)) => TurnCause::Api,
            (None, None) => TurnCause::System,
        };
        Self { kind, user, token }
    }

    pub(super) fn of(turn: &turns::Model) -> Self {
        Self { kind: turn.cause, user: turn.caused_by_user_id, token: turn.caused_by_token_id }
    }
}

/// Returns the turn for the conversation's next message to the agent: the queued one, or a new one. `seqs`: the
/// positions of its first and last message, if they are known yet ([`extend_turn`]).
pub async fn queue_turn(
    tx: &Tx,
    agent: &LockedAgent,
    conversation: ConversationId,
    cause: Cause,
    seqs: Option<(i64, i64)>,
) -> Result<TurnId> {
    let (first, last) = seqs.unzip();
    if let Some(id) = join_queued(tx, conversation, (first, last)).await? {
        announce(tx, ChangeOp::Updated, conversation, id);
        return Ok(id);
    }
    let turn = turns::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        conversation_id: Set(conversation),
        agent_id: Set(agent.id),
        cause: Set(cause.kind),
        caused_by_user_id: Set(cause.user),
        caused_by_token_id: Set(cause.token),
        state: Set(TurnState::Queued),
        first_seq: Set(first),
        last_seq: Set(last),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    let id = turn.insert(tx.connection()).await?.id;
    announce(tx, ChangeOp::Created, conversation, id);
    Ok(id)
}

/// Extends a turn to these positions. Keeps `updated_at`, which decides about turns under a limit.
pub async fn extend_turn(
    tx: &Tx,
    conversation: ConversationId,
    turn: TurnId,
    seqs: (i64, i64),
) -> Result<()> {
    extend_reach(tx, turn, seqs).await?;
    announce(tx, ChangeOp::Updated, conversation, turn);
    Ok(())
}

/// Queued turns that were not sent to the agent's current launch.
pub(super) fn due_turns(tx: &Tx, agent: &LockedAgent) -> sea_orm::Select<turns::Entity> {
    let unsent = Condition::any()
        .add(turns::Column::Generation.is_null())
        .add(turns::Column::Generation.lt(agent.generation));
    let of_agent = tx.scope.find::<turns::Entity>().filter(turns::Column::AgentId.eq(agent.id));
    of_agent.filter(Expr::cust(DUE)).filter(unsent).order_by_asc(turns::Column::Id)
}

/// Sends the queued turns of these conversations, if the agent can take them now.
pub async fn send(tx: &Tx, agent: &LockedAgent, conversations: &[ConversationId]) -> Result<()> {
    if takes_turns(agent) {
        let these = turns::Column::ConversationId.is_in(conversations.iter().copied());
        let due = due_turns(tx, agent).filter(these);
        dispatch_free(tx, agent, due.all(tx.connection()).await?).await?;
    }
    Ok(())
}

/// Sends all turns that the agent can take now, after its start or when it resumes.
pub async fn send_due(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    if takes_turns(agent) && !orgs::is_stopped(tx).await? && !is_limited(tx, agent.id).await? {
        super::resume_turns(tx, agent, None).await?;
    }
    Ok(())
}

/// Sends turns, unless a limit keeps the agent from calling its model. Returns how many were sent.
async fn dispatch_free(tx: &Tx, agent: &LockedAgent, due: Vec<turns::Model>) -> Result<u64> {
    if due.is_empty() || is_limited(tx, agent.id).await? {
        return Ok(0);
    }
    let sent = due.len() as u64;
    dispatch_turns(tx, agent, due).await?;
    Ok(sent)
}

/// Sends at most `most` turns of the organization that their agents can take, and returns how many were sent. Used to
/// release a stopped organization.
pub async fn send_queued(tx: &Tx, most: u64) -> Result<u64> {
    let mut sent = 0;
    if orgs::is_stopped(tx).await? {
        return Ok(0);
    }
    for agent in agents::with_status(tx, AgentStatus::Running).await? {
        if sent == most {
            break;
        }
        if let Some(agent) = agents::lock_agent(tx, agent).await?
            && takes_turns(&agent)
        {
            let due = due_turns(tx, &agent).limit(most - sent).all(tx.connection()).await?;
            // Turns of an agent that may not call its model are skipped, so that they don't delay other agents.
            sent += dispatch_free(tx, &agent, due).await?;
        }
    }
    Ok(sent)
}

/// Cancels all open turns of the organization, and returns how many. Queued turns keep waiting. `with`: the caller's
/// action, if the conversations should mention it.
pub async fn cancel_all(tx: &Tx, with: Option<TurnCut>) -> Result<u64> {
    let agents = uncancelled(tx).select_only().column(turns::Column::AgentId).distinct();
    let agents = agents.order_by_asc(turns::Column::AgentId).into_tuple::<AgentId>();
    let mut cancelled = 0;
    for agent in agents.all(tx.connection()).await? {
        if let Some(agent) = agents::lock_agent(tx, agent).await? {
            cancelled += cancel_open(tx, &agent, with).await?;
        }
    }
    Ok(cancelled)
}

/// Cancels the agent's open turns, and returns how many. `with`: as for [`cancel_all`].
pub async fn cancel_open(tx: &Tx, agent: &LockedAgent, with: Option<TurnCut>) -> Result<u64> {
    let open = uncancelled(tx).filter(turns::Column::AgentId.eq(agent.id));
    let mut cancelled = 0;
    for turn in open.order_by_asc(turns::Column::Id).all(tx.connection()).await? {
        request_cancel(tx, agent, &turn).await?;
        if let Some(with) = with {
            record_cut(tx, &turn, with).await?;
        }
        cancelled += 1;
    }
    Ok(cancelled)
}

/// The open turns without a cancellation.
pub(super) fn uncancelled(tx: &Tx) -> Select<turns::Entity> {
    open_turns(tx).filter(turns::Column::CancelRequestedAt.is_null())
}

/// Whether the agent takes turns at the moment.
pub const fn takes_turns(agent: &LockedAgent) -> bool {
    matches!(agent.status, AgentStatus::Running)
}

pub(super) async fn dispatch_turns(tx: &Tx, agent: &LockedAgent, due: Vec<turns::Model>) -> Result<()> {
    // In this order, because only the last condition reads the database. With full storage the agent's messages would be
    // lost, so turns wait until there is room.
    if due.is_empty() || tx.scope.core.full.has(tx.scope.org) || orgs::is_stopped(tx).await? {
        return Ok(());
    }
    for turn in due {
        let sent = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
        let sent = sent.col_expr(turns::Column::Generation, Expr::value(agent.generation));
        let sent = sent.col_expr(turns::Column::AgentRevision, Expr::value(agent.revision));
        let sent = sent.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
        sent.exec(tx.connection()).await?;
        commands::enqueue(tx, agent.host(), &Command::Turn { turn_id: turn.id.0 });
        announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    }
    Ok(())
}

/// Sets whether a queued turn is held until someone writes.
pub(super) async fn set_held(tx: &Tx, waiting: TurnId, held: bool) -> Result<()> {
    let changed = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(waiting));
    changed.col_expr(turns::Column::Held, Expr::value(held)).exec(tx.connection()).await?;
    Ok(())
}

/// Marks a queued turn as not sent.
pub(super) async fn unsend(tx: &Tx, turn: &turns::Model) -> Result<()> {
    let back = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let back = back.col_expr(turns::Column::Generation, Expr::value(None::<i64>));
    back.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(())
}

/// Cancels a turn: a queued one at once, an open one as soon as its host has stopped it. Does nothing to a turn that
/// has ended.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` for a held turn, which only passes a person's answers on to the agent.
pub async fn cancel(scope: &Scope, id: TurnId) -> Result<()> {
    let tx = scope.begin().await?;
    let Some((agent, turn)) = lock_turn(&tx, id).await? else { return Ok(()) };
    if is_final(turn.state) || turn.cancel_requested_at.is_some() {
        return Ok(());
    }
    if is_open(turn.state) {
        request_cancel(&tx, &agent, &turn).await?;
    } else if turn.held {
        // Another turn would have to pass the answers on instead.
        let detail = "The turn only passes a person's answers on to the agent, together with the next message. \
                      The agent does nothing before that.";
        return Err(Problem::new(Code::Conflict, detail).with("state", turn.state.as_str()));
    } else {
        end_cancelled(&tx, &agent, &turn).await?;
    }
    record_cut(&tx, &turn, TurnCut::Turn).await?;
    let (operation, changes) = ("cancelTurn", json!({ "state": turn.state }));
    audit::record(
        &tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Turn, id: id.0, changes },
    );
    tx.commit().await
}

/// Asks the turn's host to cancel it. A parked turn, which no host has, ends at once.
pub(super) async fn request_cancel(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    if turn.limited == Some(TurnLimit::Parked) {
        return end_cancelled(tx, agent, turn).await;
    }
    let asked = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let asked = asked.col_expr(turns::Column::CancelRequestedAt, Expr::value(tx.now));
    asked.col_expr(turns::Column::UpdatedAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    commands::enqueue(tx, agent.host(), &Command::Cancel { turn_id: turn.id.0 });
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(())
}

/// Ends a turn that no host has.
pub(super) async fn end_cancelled(tx: &Tx, agent: &LockedAgent, turn: &turns::Model) -> Result<()> {
    let cancelled = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let cancelled = cancelled
        .col_expr(turns::Column::State, Expr::value(TurnState::Cancelled.as_str()))
        .col_expr(turns::Column::Limited, Expr::value(None::<String>))
        .col_expr(turns::Column::CancelRequestedAt, Expr::value(tx.now))
        .col_expr(turns::Column::EndedAt, Expr::value(tx.now))
        .col_expr(turns::Column::UpdatedAt, Expr::value(tx.now));
    cancelled.exec(tx.connection()).await?;
    announce_end(tx, turn, TurnState::Cancelled).await?;
    settle_usage(tx, turn).await?;
    settle_untold(tx, agent, turn, MessageStatus::Cancelled).await
}

/// Sets the messages of a turn that has ended to `status`. If the agent never got the turn, a person's answers in it
/// move to the next turn: the queued one, or a new one that is held until someone writes.
pub(super) async fn settle_untold(
    tx: &Tx,
    agent: &LockedAgent,
    turn: &turns::Model,
    status: MessageStatus,
) -> Result<()> {
    let conversation = turn.conversation_id;
    conversations::settle_messages(tx, conversation, turn.id, status).await?;
    if turn.started_at.is_some() {
        return Ok(());
    }
    let said = conversations::load_messages_by_person(tx, turn.id).await?;
    let (Some((_, first)), Some((_, last))) = (said.first(), said.last()) else { return Ok(()) };
    let next = if let Some(next) = find_waiting_turn(tx, conversation).await? {
        extend_turn(tx, conversation, next.id, (*first, *last)).await?;
        next.id
    } else {
        let next = queue_turn(tx, agent, conversation, Cause::of(turn), Some((*first, *last))).await?;
        set_held(tx, next, true).await?;
        next
    };
    for (message, _) in said {
        conversations::assign_to_turn(tx, message, next).await?;
    }
    Ok(())
}

/// Records the caller, who stops or restarts the agent, in the turns that the agent has begun. Returns how many.
pub async fn cut_open(tx: &Tx, agent: &LockedAgent, with: TurnCut) -> Result<u64> {
    let begun = uncancelled(tx).filter(turns::Column::AgentId.eq(agent.id)).order_by_asc(turns::Column::Id);
    // Parked turns are sent again to the next launch.
    let begun = begun.filter(Expr::cust("(limited IS NULL OR limited <> 'PARKED')"));
    let begun = begun.all(tx.connection()).await?;
    for turn in &begun {
        record_cut(tx, turn, with).await?;
    }
    Ok(begun.len() as u64)
}

/// Records the caller, who ends a turn, in its row and its conversation. Only the first one counts. The service gives
/// its reasons elsewhere.
async fn record_cut(tx: &Tx, turn: &turns::Model, with: TurnCut) -> Result<()> {
    let Some(by) = cutter_name(&tx.scope.request.caller, with).filter(|_| turn.cut.is_none()) else {
        return Ok(());
    };
    let named = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let named = named.col_expr(turns::Column::CutBy, Expr::value(by.as_str()));
    let named = named.col_expr(turns::Column::Cut, Expr::value(with.as_str()));
    named.col_expr(turns::Column::CutAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    let (event, did) = match with {
        TurnCut::Turn => ("TURN_CANCELLED", "cancelled the turn"),
        TurnCut::Agent => ("AGENT_STOPPED", "stopped the agent"),
        TurnCut::Restart => ("AGENT_RESTARTED", "restarted the agent"),
        TurnCut::Organization => ("ORGANIZATION_STOPPED", "stopped all agents"),
    };
    let content = json!({ "event": event, "text": format!("{by} {did}.") });
    let caller = &tx.scope.request.caller;
    let new = NewMessage {
        author_user: caller.user(),
        author_name: caller.user().map(|_| caller.name().to_owned()),
        ..NewMessage::new(turn.conversation_id, MessageRole::System, MessageKind::Event, content)
    };
    conversations::append(tx, new).await?;
    Ok(())
}

/// The name of the person who ends a turn. The system stops organizations on behalf of the operator; otherwise it acts
/// by itself.
fn cutter_name(caller: &Caller, with: TurnCut) -> Option<String> {
    match caller {
        Caller::System if with == TurnCut::Organization => Some("The operator".to_owned()),
        Caller::System | Caller::Anonymous => None,
        caller => Some(caller.name().to_owned()),
    }
}
