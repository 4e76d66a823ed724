//! Failed launches, and the deadline of a start.

use std::{sync::Arc, time::Duration};

use muster_protocol::Command;
use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use serde_json::json;

use super::{
    launches,
    queries::{self, LateStart},
    recovery::{self, AgentEnd},
};
use crate::{
    base::{
        bounds,
        enums::{AgentStatus, ChangeOp, RecordKind, StatusReason},
        ids::AgentId,
        plain::truncated,
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        audit,
        handlers::{DomainEvent, emit},
        job_counts::Tally,
        store::Tx,
    },
    domain::{
        agents::{
            announce,
            entity::agents,
            rows::{find, host_of},
        },
        commands,
    },
};

/// An agent has failed for the first time, or stays down. People are notified.
#[derive(Debug)]
pub struct Failed {
    pub agent: AgentId,
}

impl DomainEvent for Failed {}

/// Sets the agent's status to ERROR, for this reason. Does nothing to a deleted agent.
pub async fn fail(tx: &Tx, id: AgentId, reason: StatusReason, detail: Option<&str>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let end = AgentEnd { reason, is_clean: false, at: tx.now };
    fail_locked(tx, agent, end, detail).await
}

/// [`fail`] for an agent that the caller has locked. It may be restarted automatically.
pub(super) async fn fail_locked(
    tx: &Tx,
    agent: agents::Model,
    end: AgentEnd,
    detail: Option<&str>,
) -> Result<()> {
    let (id, reason) = (agent.id, end.reason);
    let (tried, restart_at) = recovery::plan_restart(&agent, end, tx.now);
    launches::record_end(tx, (id, agent.launch_generation), tx.now, Some(reason), detail).await?;
    let mut agent = agent.into_active_model();
    agent.status = Set(AgentStatus::Error);
    agent.status_changed_at = Set(Some(tx.now));
    agent.status_reason = Set(Some(reason));
    agent.status_detail = Set(detail.map(|detail| truncated(detail, bounds::DETAIL)));
    agent.started_at = Set(None);
    agent.container_id = Set(None);
    agent.running_model = Set(None);
    tried.store(&mut agent);
    agent.restart_at = Set(restart_at);
    // Clients of `/v1` find the reason only here.
    agent.last_action = Set(Some(reason.as_str().to_owned()));
    agent.last_action_at = Set(Some(tx.now));
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    // People learn of the first failure and of the last one, not of the restarts in between.
    if restart_at.is_none() || tried.all() == 0 { emit(tx, Failed { agent: id }).await } else { Ok(()) }
}

/// Ends starts that take too long, in every organization: the agent is ERROR, and its host gets a STOP for that launch.
/// While an agent can't be launched (no host is connected, the organization is stopped), its deadline is postponed.
/// Returns how many ended.
pub async fn end_late_starts(core: &Arc<Core>) -> Result<u64> {
    let mut ended = Tally::default();
    for start in queries::late_starts(core, half_deadline(core)).await? {
        let scope = Scope::system(core, start.organization_id);
        ended.add(scope.org, end_if_late(&scope, &start).await);
    }
    ended.close()
}

/// Ends a start if it takes too long, or postpones its deadline if the agent can't be launched. Returns whether it
/// ended.
async fn end_if_late(scope: &Scope, start: &LateStart) -> Result<bool> {
    let now = scope.core.clock.now();
    if start.waits == 1 {
        queries::postpone_deadline(&scope.core, start, now).await?;
        return Ok(false);
    }
    let is_late = start.status_changed_at <= now.minus(start_deadline(&scope.core));
    Ok(is_late && end_late_start(scope, start.id).await?)
}

/// Starts from before this moment have taken half of their time. Looking from then on postpones
/// a deadline rarely, and early enough.
pub fn half_deadline(core: &Core) -> Timestamp {
    core.clock.now().minus(start_deadline(core) / 2)
}

fn start_deadline(core: &Core) -> Duration {
    Duration::from_secs(core.config.agents.start_deadline_seconds)
}

async fn end_late_start(scope: &Scope, id: AgentId) -> Result<bool> {
    let tx = scope.begin().await?;
    let limit = start_deadline(&scope.core);
    let is_late = |agent: &agents::Model| {
        agent.status == AgentStatus::Spawning
            && agent.status_changed_at.is_some_and(|since| since <= tx.now.minus(limit))
    };
    // Another replica may have been faster.
    let Some(agent) = find(&tx, id).await?.filter(is_late) else { return Ok(false) };
    commands::expire_of_agent(&tx, id).await?;
    commands::enqueue(&tx, host_of(&agent), &Command::Stop);
    let detail = format!("It did not come up within {} seconds.", limit.as_secs());
    let end = AgentEnd { reason: StatusReason::StartTimeout, is_clean: false, at: tx.now };
    fail_locked(&tx, agent, end, Some(&detail)).await?;
    let changes = json!({
        "status": audit::from_to(AgentStatus::Spawning, AgentStatus::Error),
        "status_reason": StatusReason::StartTimeout,
    });
    let (op, kind) = (ChangeOp::Updated, RecordKind::Agent);
    audit::record(&tx, audit::Entry { operation: "endLateStart", op, kind, id: id.0, changes });
    tx.commit().await?;
    Ok(true)
}
