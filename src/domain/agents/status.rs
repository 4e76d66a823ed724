//! What an agent waits for, and why it failed: the reason of its status.
//!
//! A reason that follows from other records (no host is connected, the organization is stopped) is computed when it is
//! read, so that a host that goes away does not write to all of its agents. Everything else is stored with the status.

use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};

use super::rows::{announce, find};
use crate::{
    base::{bounds, enums::StatusReason, ids::AgentId, plain::bounded, problem::Result},
    core::store::Tx,
};

/// Stores what the agent waits for, or that it no longer waits, without changing its status. Does nothing to a
/// deleted agent.
pub async fn explain(tx: &Tx, id: AgentId, why: Option<(StatusReason, &str)>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let mut agent = agent.into_active_model();
    agent.status_reason.set_if_not_equals(why.map(|(reason, _)| reason));
    agent.status_detail.set_if_not_equals(why.map(|(_, detail)| bounded(detail, bounds::DETAIL)));
    if !agent.is_changed() {
        return Ok(());
    }
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}
