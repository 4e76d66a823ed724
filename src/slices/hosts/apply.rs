//! What each report of a host means. The work is done by the slices that own the records.

use muster_protocol::{Event, Happening, event::Content};

use crate::{
    base::{
        ids::{AgentId, ApprovalId, ConversationId, ServerId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    slices::{
        agents::reports::{self as agents, Reporter},
        approvals::reports as approvals,
        conversations::reports as conversations,
        turns::reports as turns,
    },
};

/// Holds the agents of this server that a batch is about. Call it first in the batch's transaction.
///
/// # Errors
/// The database is unreachable.
pub(super) async fn hold(tx: &Tx, of: &[AgentId], events: &[Event]) -> Result<()> {
    let stores = events.iter().any(
        |event| matches!(&event.what, Happening::Message(message) if matches!(message.content, Content::File { .. })),
    );
    agents::hold(tx, of, stores).await
}

/// Applies a report about an agent of this server.
///
/// # Errors
/// It can't be applied. Everything that it did is undone, and it is left out.
pub async fn apply(tx: &mut Tx, server: ServerId, event: &Event) -> Result<()> {
    let (agent, generation, at) = (AgentId(event.agent_id), event.generation, Timestamp(event.at));
    let from = &Reporter { agent, server, generation, at };
    match event.what.clone() {
        Happening::Started { container_id, program, model } => {
            agents::started(tx, from, container_id, program, model).await
        }
        Happening::Ended { reason, code, signal, detail } => {
            agents::ended(tx, from, reason, code, signal, detail).await
        }
        Happening::Synced => agents::synced(tx, from).await,
        Happening::AuthRequired { detail } => agents::auth_required(tx, from, detail).await,
        Happening::Refused { command_id, reason } => agents::refused(tx, from, command_id, reason).await,
        Happening::Session { conversation_id, session } => {
            turns::session(tx, from, ConversationId(conversation_id), session).await
        }
        Happening::TurnStarted { turn_id } => turns::turn_started(tx, from, TurnId(turn_id)).await,
        Happening::TurnEnded(end) => turns::turn_ended(tx, from, end).await,
        Happening::Message(message) => conversations::message(tx, from, message).await,
        Happening::Asked(request) => approvals::asked(tx, from, request).await,
        Happening::Withdrawn { request } => approvals::withdrawn(tx, from, request).await,
        Happening::Delivered { approval_id } => approvals::delivered(tx, from, ApprovalId(approval_id)).await,
        Happening::NotWaiting { approval_id } => {
            approvals::not_waiting(tx, from, ApprovalId(approval_id)).await
        }
    }
}
