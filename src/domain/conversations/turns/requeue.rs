//! Turns that no event will send: their hosts could not take them or never got their commands.

use std::{sync::Arc, time::Duration};

use sea_orm::{ColumnTrait, QueryFilter};

use super::{
    entity::turns,
    queries::{LeftAgent, left_agents},
    queue::{end_cancelled, send_due, unsend},
    rate_limited::{is_resent, repark},
};
use crate::{
    base::{
        bounds::BATCH,
        enums::{CommandKind, TurnState},
        ids::{AgentId, OrgId, TurnId},
        problem::Result,
    },
    core::{Core, access::Scope, job_counts::Tally, store::Tx},
    domain::{
        agents::{self, LockedAgent},
        commands,
    },
};

/// Queues a turn again that its host could not take. It is sent when the agent starts or resumes, with the next
/// message, or after a while ([`send_left`]).
pub async fn requeue_unsent(tx: &Tx, agent: &LockedAgent, id: TurnId) -> Result<()> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    let found = found.filter(turns::Column::AgentId.eq(agent.id)).one(tx.connection()).await?;
    let Some(turn) = found else { return Ok(()) };
    match turn.state {
        TurnState::Queued => unsend(tx, &turn).await,
        _ if is_resent(&turn) && turn.cancel_requested_at.is_some() => end_cancelled(tx, agent, &turn).await,
        _ if is_resent(&turn) => repark(tx, &turn).await,
        _ => Ok(()),
    }
}

/// Sends the turns of all organizations that could be sent but wait: a host could not take them at the time, as while
/// the organization was stopped, and no event has sent them since. Returns the number of agents that got turns.
pub async fn send_left(core: &Arc<Core>) -> Result<u64> {
    let mut last = LeftAgent { organization_id: OrgId(0), agent_id: AgentId(0) };
    let (before, mut sent) = (core.clock.now().minus(Duration::from_secs(30)), Tally::default());
    loop {
        let found = left_agents(core, before, last, u64::from(BATCH)).await?;
        for left in &found {
            last = *left;
            sent.add(last.organization_id, send_to(core, last).await);
        }
        if found.len() < BATCH as usize {
            return sent.close();
        }
    }
}

async fn send_to(core: &Arc<Core>, left: LeftAgent) -> Result<u64> {
    let tx = Scope::system(core, left.organization_id).begin().await?;
    if let Some(agent) = agents::lock_agent(&tx, left.agent_id).await? {
        send_due(&tx, &agent).await?;
    }
    tx.commit().await?;
    Ok(1)
}

/// Drops the turn commands that expired because their host was away, and queues their turns again. Returns how many.
pub async fn free_unsent(core: &Arc<Core>) -> Result<u64> {
    let (mut last, mut freed) = (0, Tally::default());
    loop {
        let found = commands::unsent(core, CommandKind::Turn, last, BATCH.into()).await?;
        for command in &found {
            last = command.id;
            let org = command.organization_id;
            freed.add(org, free_one(core, (org, command.agent_id), last).await);
        }
        if found.len() < BATCH as usize {
            return freed.close();
        }
    }
}

async fn free_one(core: &Arc<Core>, (org, agent): (OrgId, AgentId), command: i64) -> Result<u64> {
    let tx = Scope::system(core, org).begin().await?;
    let agent = agents::lock_agent(&tx, agent).await?;
    // The command may have been sent in the meantime.
    let dropped = commands::drop_unsent(&tx, command).await?;
    if let (Some(dropped), Some(agent)) = (dropped, agent)
        && dropped.generation == agent.generation
        && let Some(turn) = dropped.payload["turn_id"].as_i64()
    {
        requeue_unsent(&tx, &agent, TurnId(turn)).await?;
    }
    tx.commit().await?;
    Ok(1)
}
