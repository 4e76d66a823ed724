//! The reason of an agent's status: what it waits for, or why it failed.
//!
//! A reason that follows from other records (no host is connected, the organization is stopped) is computed on reading,
//! so that a lost connection doesn't write to all agents of the host. Other reasons are stored with the status.

use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};

use super::rows::{announce, find};
use crate::{
    base::{bounds, enums::StatusReason, ids::AgentId, plain::truncated, problem::Result},
    core::store::Tx,
};

/// Sets or clears the reason of the agent's status without changing the status. Does nothing to a deleted agent.
pub async fn set_status_reason(tx: &Tx, id: AgentId, why: Option<(StatusReason, &str)>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let mut agent = agent.into_active_model();
    agent.status_reason.set_if_not_equals(why.map(|(reason, _)| reason));
    agent.status_detail.set_if_not_equals(why.map(|(_, detail)| truncated(detail, bounds::DETAIL)));
    if !agent.is_changed() {
        return Ok(());
    }
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}
