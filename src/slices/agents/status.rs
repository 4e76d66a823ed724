//! What an agent waits for, and why it failed: the reason of its status, and the deadline of a start.
//!
//! A reason that follows from other records (no host is connected, the organization is stopped) is computed when it is
//! read, so that a host that goes away does not write to all of its agents. Everything else is stored with the status.

use std::{sync::Arc, time::Duration};

use muster_protocol::Command;
use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use serde_json::json;

use super::{
    entity::agents,
    launches,
    queries::{self, AWAY, HALTED, LateStart},
    recovery::{self, End},
    rows::{announce, find, host_of},
};
use crate::{
    base::{
        enums::{AgentStatus, ChangeOp, RecordKind, StatusReason},
        ids::AgentId,
        plain::bounded,
        problem::Result,
    },
    core::{Core, access::Scope, audit, outbox, store::Tx, tally::Tally},
    slices::notifications,
};

/// The most that is kept of a detail, in bytes.
pub(super) const DETAIL_BYTES: usize = 8 * 1024;

/// The condition in SQL that somebody has restarted the agent `t`, and it is not down yet.
const RESTARTING: &str = "EXISTS (SELECT 1 FROM agent_launches l WHERE l.organization_id = t.organization_id \
     AND l.agent_id = t.id AND l.generation = t.launch_generation + 1)";

/// SQL for the reason of the status of the agent `t`.
pub(super) fn reason_sql() -> String {
    computed("'WAITING_FOR_HOST'", "'HOST_AWAY'", "'RESTARTING'", "'ORGANIZATION_STOPPED'", "t.status_reason")
}

/// SQL for the same in words.
pub(super) fn detail_sql() -> String {
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

/// The agent has failed: its status is ERROR, for this reason. Does nothing to a deleted agent.
///
/// # Errors
/// The database rejects a statement.
pub async fn fail(tx: &Tx, id: AgentId, reason: StatusReason, detail: Option<&str>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let end = End { reason, is_clean: false, at: tx.now };
    failed(tx, agent, end, detail).await
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

/// The same, of an agent that is held. It may be started again.
///
/// # Errors
/// The database rejects a statement.
pub(super) async fn failed(tx: &Tx, agent: agents::Model, end: End, detail: Option<&str>) -> Result<()> {
    let (id, reason) = (agent.id, end.reason);
    let (tried, restart_at) = recovery::after(&agent, end, tx.now);
    launches::ended(tx, (id, agent.launch_generation), tx.now, Some(reason), detail).await?;
    let mut agent = agent.into_active_model();
    agent.status = Set(AgentStatus::Error);
    agent.status_changed_at = Set(Some(tx.now));
    agent.status_reason = Set(Some(reason));
    agent.status_detail = Set(detail.map(|detail| bounded(detail, DETAIL_BYTES)));
    agent.started_at = Set(None);
    agent.container_id = Set(None);
    agent.running_model = Set(None);
    tried.store(&mut agent);
    agent.restart_at = Set(restart_at);
    // Clients of `/v1` see the reason only here.
    agent.last_action = Set(Some(reason.as_str().to_owned()));
    agent.last_action_at = Set(Some(tx.now));
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    // People need to know that it fails, and that it stays down. What is tried meanwhile is the service's.
    if restart_at.is_none() || tried.all() == 0 { notifications::agent_failed(tx, id).await } else { Ok(()) }
}

/// Ends starts that take too long, in every organization: the agent is ERROR, and its host is told to stop that
/// launch. While nobody could launch an agent (no host is connected, the organization is stopped), its clock is set
/// back. Returns how many ended.
///
/// # Errors
/// The database is unreachable. What has ended by then stays ended.
pub async fn end_late_starts(core: &Arc<Core>) -> Result<u64> {
    let mut ended = Tally::default();
    // Looking at them from half their time on sets a clock back rarely, and in time.
    let half = core.clock.now().minus(deadline(core) / 2);
    for start in queries::late_starts(core, half).await? {
        let scope = Scope::system(core, start.organization_id);
        ended.add(scope.org, end_if_late(&scope, &start).await);
    }
    ended.close()
}

/// Ends a start if it takes too long, or sets its clock back if nobody could launch the agent. Returns whether it ended.
async fn end_if_late(scope: &Scope, start: &LateStart) -> Result<bool> {
    let now = scope.core.clock.now();
    if start.waits == 1 {
        queries::set_clock_back(&scope.core, start, now).await?;
        return Ok(false);
    }
    let is_late = start.status_changed_at <= now.minus(deadline(&scope.core));
    Ok(is_late && end_late_start(scope, start.id).await?)
}

fn deadline(core: &Core) -> Duration {
    Duration::from_secs(core.config.agents.start_deadline_seconds)
}

async fn end_late_start(scope: &Scope, id: AgentId) -> Result<bool> {
    let tx = scope.begin().await?;
    let limit = deadline(&scope.core);
    let is_late = |agent: &agents::Model| {
        agent.status == AgentStatus::Spawning
            && agent.status_changed_at.is_some_and(|since| since <= tx.now.minus(limit))
    };
    // Others may have been faster.
    let Some(agent) = find(&tx, id).await?.filter(is_late) else { return Ok(false) };
    outbox::overtake(&tx, id).await?;
    outbox::enqueue(&tx, host_of(&agent), &Command::Stop);
    let detail = format!("It was not up {} seconds after its start.", limit.as_secs());
    let end = End { reason: StatusReason::StartTimeout, is_clean: false, at: tx.now };
    failed(&tx, agent, end, Some(&detail)).await?;
    let changes = json!({
        "status": audit::from_to(AgentStatus::Spawning, AgentStatus::Error),
        "status_reason": StatusReason::StartTimeout,
    });
    let (op, kind) = (ChangeOp::Updated, RecordKind::Agent);
    audit::record(&tx, audit::Entry { operation: "endLateStart", op, kind, id: id.0, changes });
    tx.commit().await?;
    Ok(true)
}
