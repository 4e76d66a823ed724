//! What an agent waits for, and why it failed: the reason of its status.
//!
//! A reason that follows from other records (no host is connected, the organization is stopped) is computed when it is
//! read, so that a host that goes away does not write to all of its agents. Everything else is stored with the status.

use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};

use super::{
    queries::{AWAY, HALTED},
    rows::{announce, find},
};
use crate::{
    base::{enums::StatusReason, ids::AgentId, plain::bounded, problem::Result},
    core::store::Tx,
};

/// The most that is kept of a detail, in bytes.
pub(in crate::slices) const DETAIL_BYTES: usize = 8 * 1024;

/// The condition in SQL that somebody has restarted the agent `t`, and it is not down yet.
const RESTARTING: &str = "EXISTS (SELECT 1 FROM agent_launches l WHERE l.organization_id = t.organization_id \
     AND l.agent_id = t.id AND l.generation = t.launch_generation + 1)";

/// SQL for the reason of the status of the agent `t`.
#[must_use]
pub fn reason_sql() -> String {
    computed("'WAITING_FOR_HOST'", "'HOST_AWAY'", "'RESTARTING'", "'ORGANIZATION_STOPPED'", "t.status_reason")
}

/// SQL for the same in words.
#[must_use]
pub fn detail_sql() -> String {
    computed(
        "'No host is connected to its server.'",
        "'The host of its server is not connected.'",
        "'It starts again as soon as it is down.'",
        "'The organization is stopped.'",
        "t.status_detail",
    )
}

fn computed(waiting: &str, away: &str, restarting: &str, halted: &str, stored: &str) -> String {
    format!(
        "CASE WHEN t.status IN ('STOPPED', 'ERROR') THEN {stored} \
         WHEN {AWAY} THEN CASE t.status WHEN 'SPAWNING' THEN {waiting} ELSE {away} END \
         WHEN t.status = 'STOPPING' THEN CASE WHEN {RESTARTING} THEN {restarting} ELSE {stored} END \
         WHEN {HALTED} THEN {halted} ELSE {stored} END"
    )
}

/// Stores what the agent waits for, or that it no longer waits, without changing its status. Does nothing to a
/// deleted agent.
///
/// # Errors
/// The database rejects a statement.
pub async fn explain(tx: &Tx, id: AgentId, why: Option<(StatusReason, &str)>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let mut agent = agent.into_active_model();
    agent.status_reason.set_if_not_equals(why.map(|(reason, _)| reason));
    agent.status_detail.set_if_not_equals(why.map(|(_, detail)| bounded(detail, DETAIL_BYTES)));
    if !agent.is_changed() {
        return Ok(());
    }
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}
