//! What each report of a host means. The work is done by the slices that own the records.

use muster_protocol::{Event, Happening, event::EndReason};
use sea_orm::Value;

use super::write;
use crate::{
    base::{
        enums::AgentStatus,
        ids::{AgentId, ServerId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    slices::agents,
};

/// Who reports: the host of this server, about this launch of this agent.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// The agent.
    pub agent: AgentId,
    /// The server that it runs on.
    pub server: ServerId,
    /// Its launch, which is the current one.
    pub generation: i64,
    /// When it happened, by the host's clock, but not in the future.
    pub at: Timestamp,
}

/// Applies a report about the current launch of an agent of this server.
///
/// # Errors
/// It can't be applied. Everything that it did is undone, and it is left out.
pub async fn apply(tx: &mut Tx, server: ServerId, event: &Event) -> Result<()> {
    let from = Reporter {
        agent: AgentId(event.agent_id),
        server,
        generation: event.generation,
        at: Timestamp(event.at).min(tx.now),
    };
    match &event.what {
        Happening::Started { container_id, .. } => {
            let status = AgentStatus::Running;
            move_to(tx, &from, status, Some(container_id.clone())).await
        }
        Happening::Ended { reason, .. } => {
            let is_well = *reason == EndReason::Stopped;
            move_to(tx, &from, if is_well { AgentStatus::Stopped } else { AgentStatus::Error }, None).await
        }
        _ => Ok(()),
    }
}

async fn move_to(tx: &Tx, from: &Reporter, to: AgentStatus, container: Option<String>) -> Result<()> {
    let sql = "UPDATE agents SET status = $1, container_id = $2, status_changed_at = $3 WHERE organization_id = $4 \
               AND id = $5 AND launch_generation = $6";
    let mut values: Vec<Value> = vec![to.into(), container.into(), from.at.into()];
    values.extend([tx.scope.org.into(), from.agent.into(), from.generation.into()]);
    write(tx, sql, values).await?;
    agents::announce(tx, from.agent);
    Ok(())
}
