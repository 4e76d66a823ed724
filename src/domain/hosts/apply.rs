//! Dispatches each report of a host to the feature that owns the record.

use muster_protocol::{Event, HostEvent, event::Content};

use crate::{
    base::{
        ids::{AgentId, ApprovalId, BackupId, ConversationId, LeaseId, ModelCredentialId, ServerId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    domain::{
        agents::reporter::Reporter,
        approvals::reports as approvals,
        backups::reports as backups,
        conversations::{reports as conversations, turns::reports as turns},
        credentials,
        launch::reports as launch,
        mcp_servers, network, spending,
    },
};

/// Locks the agents of a batch. Call it first in the batch's transaction.
pub(super) async fn lock_batch(tx: &Tx, agents: &[AgentId], events: &[Event]) -> Result<()> {
    let stores = events.iter().any(
        |event| matches!(&event.what, HostEvent::Message(message) if matches!(message.content, Content::File { .. })),
    );
    launch::lock_batch(tx, agents, stores).await
}

/// Refuses the request in a report that can't be applied, because no person will see it.
pub async fn refuse_skipped(tx: &Tx, server: ServerId, event: &Event) -> Result<()> {
    let HostEvent::Asked(request) = &event.what else { return Ok(()) };
    let (agent, generation, at) = (AgentId(event.agent_id), event.generation, Timestamp(event.at));
    approvals::refuse_skipped(tx, &Reporter { agent, server, generation, at }, &request.request).await
}

/// Whether a report of a launch that ran on this server counts even if the agent has moved since: costs do.
pub(super) fn counts_late(event: &Event) -> bool {
    matches!(event.what, HostEvent::ModelCalled(_) | HostEvent::LeaseReturned { .. })
}

/// Whether a report is about a model's key or its costs. Only a confirmed host has such a key.
pub(super) fn concerns_spending(event: &Event) -> bool {
    use HostEvent::{
        Asked, AuthRequired, BackedUp, CredentialsUsed, Delivered, Ended, EngineAway, Lacks, LeaseReturned,
        Limited, McpServer, McpTested, McpTools, Message, ModelCalled, NotWaiting, Offered, Refused,
        Restored, Session, Started, Synced, TurnEnded, TurnStarted, Unreached, Withdrawn,
    };
    match event.what {
        ModelCalled(_) | LeaseReturned { .. } | Limited { .. } | AuthRequired { .. } => true,
        Started { .. }
        | EngineAway { .. }
        | Ended { .. }
        | Synced
        | Lacks { .. }
        | Session { .. }
        | Offered { .. }
        | TurnStarted { .. }
        | Message(_)
        | TurnEnded(_)
        | Asked(_)
        | Withdrawn { .. }
        | Delivered { .. }
        | NotWaiting { .. }
        | Unreached { .. }
        | CredentialsUsed { .. }
        | McpServer(_)
        | McpTools(_)
        | McpTested(_)
        | BackedUp { .. }
        | Restored { .. }
        | Refused { .. } => false,
    }
}

/// Applies reports about agents of this server: one, or several messages, which are stored together.
///
/// # Errors
/// They can't be applied. The caller must undo their changes.
pub async fn apply(tx: &Tx, server: ServerId, events: &[&Event]) -> Result<()> {
    let mut messages = Vec::new();
    for event in events {
        let (agent, generation, at) = (AgentId(event.agent_id), event.generation, Timestamp(event.at));
        let from = &Reporter { agent, server, generation, at };
        match event.what.clone() {
            HostEvent::Message(message) => messages.push((*from, message)),
            HostEvent::Started { container_id, program, model } => {
                launch::started(tx, from, container_id, program, model).await?;
            }
            HostEvent::EngineAway { detail } => launch::engine_away(tx, from, &detail).await?,
            HostEvent::Ended { reason, code, signal, detail } => {
                launch::ended(tx, from, reason, code, signal, detail).await?;
            }
            HostEvent::Synced => launch::synced(tx, from).await?,
            HostEvent::Lacks { what } => launch::lacks(tx, from, &what).await?,
            HostEvent::AuthRequired { detail } => launch::auth_required(tx, from, detail).await?,
            HostEvent::Refused { command_id, reason } => {
                launch::refused(tx, from, command_id, reason).await?;
            }
            HostEvent::Offered { models, modes } => launch::offered(tx, from, models, modes).await?,
            HostEvent::Session { conversation_id, session } => {
                turns::session(tx, from, ConversationId(conversation_id), session).await?;
            }
            HostEvent::TurnStarted { turn_id } => turns::turn_started(tx, from, TurnId(turn_id)).await?,
            HostEvent::TurnEnded(end) => turns::turn_ended(tx, from, end).await?,
            HostEvent::Asked(request) => approvals::asked(tx, from, request).await?,
            HostEvent::Withdrawn { request } => approvals::withdrawn(tx, from, request).await?,
            HostEvent::Delivered { approval_id, without_text } => {
                approvals::delivered(tx, from, ApprovalId(approval_id), without_text).await?;
            }
            HostEvent::NotWaiting { approval_id } => {
                approvals::not_waiting(tx, from, ApprovalId(approval_id)).await?;
            }
            HostEvent::ModelCalled(call) => spending::record_call(tx, from, call).await?,
            HostEvent::LeaseReturned { lease_id } => {
                spending::return_lease(tx, from, LeaseId(lease_id)).await?;
            }
            HostEvent::Limited { credential_id, model, until, detail } => {
                let (credential, until) = (credential_id.map(ModelCredentialId), until.map(Timestamp));
                spending::usage::record_refusal(tx, from, credential, (&model, &detail), until).await?;
            }
            HostEvent::Unreached { destination, reason, count } => {
                network::record_unreached(tx, from, destination, reason, count).await?;
            }
            HostEvent::CredentialsUsed { credential_ids } => {
                credentials::record_use(tx, from, &credential_ids).await?;
            }
            HostEvent::McpServer(report) => mcp_servers::reports::reported(tx, from, report).await?,
            HostEvent::McpTools(report) => mcp_servers::tools::reported(tx, from, report).await?,
            HostEvent::McpTested(test) => mcp_servers::tools::tested(tx, from, test).await?,
            HostEvent::BackedUp { backup_id, bytes, sha256, error } => {
                let end = backups::BackedUp { bytes, sha256, error };
                backups::backed_up(tx, from, BackupId(backup_id), end).await?;
            }
            HostEvent::Restored { backup_id, error } => {
                backups::restored(tx, from, BackupId(backup_id), error).await?;
            }
        }
    }
    conversations::messages(tx, messages).await
}
