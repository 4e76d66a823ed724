//! Turns that wait although nothing will happen that sends them: their hosts could not take them, or never heard of them.

use std::{sync::Arc, time::Duration};

use sea_orm::{ColumnTrait, QueryFilter};

use super::{
    entity::turns,
    queries::{LeftAgent, left_agents},
    queue::{end_cancelled, send_due, unsend},
    rate_limited::{is_sent_again, park_again},
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

/// Makes a turn that its host could not carry out wait again. It is sent when the agent starts or resumes, with the next
/// message, or after a while ([`send_left`]).
pub async fn resent(tx: &Tx, agent: &LockedAgent, id: TurnId) -> Result<()> {
    let found = tx.scope.find::<turns::Entity>().filter(turns::Column::Id.eq(id));
    let found = found.filter(turns::Column::AgentId.eq(agent.id)).one(tx.connection()).await?;
    let Some(turn) = found else { return Ok(()) };
    match turn.state {
        TurnState::Queued => unsend(tx, &turn).await,
        _ if is_sent_again(&turn) && turn.cancel_requested_at.is_some() => {
            end_cancelled(tx, agent, &turn).await
        }
        _ if is_sent_again(&turn) => park_again(tx, &turn).await,
        _ => Ok(()),
    }
}

/// Sends what waits for no good reason, in every organization: a host could not take it at the time, as while the
/// organization was stopped, and nothing has happened since that would send it. Returns how many agents got something.
///
/// # Errors
/// The database is unreachable. What was sent by then stays sent.
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

/// Makes turns wait again whose command was not sent within its lifetime, because their host was away, and drops these
/// commands. Returns how many.
///
/// # Errors
/// The database is unreachable. What was done by then stays done.
pub async fn free_unsent(core: &Arc<Core>) -> Result<u64> {
    let (mut last, mut freed) = (0, Tally::default());
    loop {
        let found = commands::unsent(core, CommandKind::Turn, last, BATCH.into()).await?;
        for command in &found {
            last = command.id;
            let org = command.organization_id;
            freed.add(org, free(core, (org, command.agent_id), last).await);
        }
        if found.len() < BATCH as usize {
            return freed.close();
        }
    }
}

async fn free(core: &Arc<Core>, (org, agent): (OrgId, AgentId), command: i64) -> Result<u64> {
    let tx = Scope::system(core, org).begin().await?;
    let agent = agents::lock_agent(&tx, agent).await?;
    // It may have been sent meanwhile.
    let dropped = commands::drop_unsent(&tx, command).await?;
    if let (Some(dropped), Some(agent)) = (dropped, agent)
        && dropped.generation == agent.generation
        && let Some(turn) = dropped.payload["turn_id"].as_i64()
    {
        resent(&tx, &agent, TurnId(turn)).await?;
    }
    tx.commit().await?;
    Ok(1)
}
