//! The messages that a turn gives to the agent.

use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use super::{
    entity::turns,
    prompt,
    queue::{Cause, queue_turn},
    rate_limited::is_resent,
    rows::{announce, is_open, load, open_turns, transition},
    state::StateEvent,
};
use crate::{
    base::{
        enums::{ChangeOp, TurnState},
        ids::{ConversationId, TurnId},
        problem::{Code, Problem, Result},
    },
    core::store::Tx,
    domain::{
        agents::LockedAgent,
        conversations::{self, PromptMessage, Thread},
        orgs,
    },
};

/// The content of a turn's prompt.
pub struct Briefing {
    pub id: ConversationId,
    pub conversation: Thread,
    pub said: Vec<PromptMessage>,
    /// Whether the agent had to give up the turn because of a limit.
    pub is_again: bool,
}

/// Returns the turn's prompt. The first call fixes its messages; a repeated one returns the same.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` for a turn that has ended or was cancelled after it was sent again, while its conversation
/// has another open turn, and while a person answers instead of the agent; `ORGANIZATION_STOPPED`.
pub async fn brief(tx: &Tx, agent: &LockedAgent, turn: TurnId) -> Result<Briefing> {
    let generation = agent.generation;
    let turn = load(tx, agent.id, turn).await?;
    let thread = conversations::load_thread(tx, turn.conversation_id).await?;
    let through = match turn.state {
        TurnState::Queued => {
            if orgs::is_stopped(tx).await? {
                return Err(Problem::new(Code::OrganizationStopped, "The organization is stopped."));
            }
            require_alone(tx, &turn).await?;
            if thread.is_taken_over || turn.held {
                return Err(Problem::new(Code::Conflict, "A person answers instead of the agent."));
            }
            thread.last_seq
        }
        // The cancellation may have reached the host before the turn, and was ignored. The refusal ends the turn.
        _ if is_resent(&turn) && turn.cancel_requested_at.is_some() => {
            return Err(Problem::new(Code::Conflict, "The turn is being cancelled."));
        }
        state if is_open(state) && turn.generation == Some(generation) => turn.handed_seq.unwrap_or(0),
        state => {
            let detail = format!("The turn is {state}.");
            return Err(Problem::new(Code::Conflict, detail).with("state", state.as_str()));
        }
    };
    let mut said = conversations::load_messages_for_agent(tx, turn.id, through).await?;
    let mut handed = through;
    if turn.state == TurnState::Queued {
        let fitting = prompt::fitting(&said);
        let rest = said.split_off(fitting);
        if let Some(next) = rest.first() {
            handed = next.seq - 1;
        }
        hand_to_host(tx, &turn, generation, handed).await?;
        if let Some(next) = rest.first() {
            let last = rest.last().map_or(next.seq, |message| message.seq);
            let seqs = Some((next.seq, last));
            let later = queue_turn(tx, agent, turn.conversation_id, Cause::of(&turn), seqs).await?;
            for message in &rest {
                conversations::assign_to_turn(tx, message.message, later).await?;
            }
        }
    }
    let is_again = is_resent(&turn) && turn.started_at.is_some();
    Ok(Briefing { id: turn.conversation_id, conversation: thread, said, is_again })
}

/// Refuses a second open turn in the conversation.
async fn require_alone(tx: &Tx, turn: &turns::Model) -> Result<()> {
    let open = open_turns(tx).filter(turns::Column::ConversationId.eq(turn.conversation_id));
    match open.one(tx.connection()).await? {
        None => Ok(()),
        Some(open) => {
            let detail = format!("Turn {} of the conversation has not ended yet.", open.id);
            Err(Problem::new(Code::Conflict, detail).with("turn_id", open.id.0))
        }
    }
}

/// Records that the host has the turn.
async fn hand_to_host(tx: &Tx, turn: &turns::Model, generation: i64, handed: i64) -> Result<()> {
    transition(tx, turn, StateEvent::Given).await?;
    let given = tx.scope.update::<turns::Entity>().filter(turns::Column::Id.eq(turn.id));
    let given = given
        .col_expr(turns::Column::Generation, Expr::value(generation))
        .col_expr(turns::Column::HandedSeq, Expr::value(handed));
    given.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, turn.conversation_id, turn.id);
    Ok(())
}
