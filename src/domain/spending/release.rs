//! How agents go on that may not call their model (`limits.rs`): when more is allowed, when the time has come, or, after a provider
//! took no more, once a turn that is sent alone has passed.

use std::{sync::Arc, time::Duration};

use super::{
    budget::Terms,
    cost_guard, leases,
    limit_queries::{self, Wait},
    limits::{self, LimitsChanged},
    monthly_totals::{self, Of},
};
use crate::{
    base::{
        bounds,
        enums::{CostGuardAction, LimitKind},
        ids::{AgentId, ModelCredentialId},
        problem::Result,
        time::Timestamp,
    },
    core::{Core, access::Scope, handlers::emit, job_counts::Tally, store::Tx},
    domain::{
        agents::{self, Edited, LockedAgent},
        conversations::turns,
        model_credentials, orgs,
    },
};

/// How long a turn that is sent alone is given to pass: its host may go away with it.
const PROBE: Duration = Duration::from_mins(2);

/// Lets agents whose time has come go on, in every organization. Returns how many.
///
/// # Errors
/// The database is unreachable. Who went on by then goes on.
pub async fn release_due(core: &Arc<Core>) -> Result<u64> {
    let mut released = Tally::default();
    for due in limit_queries::due_agents(core, i64::from(bounds::ROWS)).await? {
        let scope = Scope::system(core, due.organization_id);
        released.add(scope.org, release_one(&scope, due.agent_id).await);
    }
    released.close()
}

async fn release_one(scope: &Scope, id: AgentId) -> Result<bool> {
    let tx = scope.begin().await?;
    let is_released = release(&tx, id).await?;
    tx.commit().await?;
    Ok(is_released)
}

/// Lets one agent go on, or one of its turns. Returns whether it did.
async fn release(tx: &Tx, id: AgentId) -> Result<bool> {
    let Some(agent) = agents::lock_agent(tx, id).await? else {
        // It was deleted while its limit was written.
        limits::forget(tx, id).await?;
        return Ok(false);
    };
    // Others may have been faster.
    let row =
        limit_queries::wait_of(tx, id).await?.filter(|row| row.until_at.is_some_and(|until| until <= tx.now));
    let Some(mut row) = row else { return Ok(false) };
    if !turns::waits(tx, &agent).await? {
        limits::eased(tx, &agent).await?;
        return Ok(true);
    }
    if row.kind != LimitKind::Usage {
        return release_spender(tx, &agent, &row).await;
    }
    if !turns::takes_turns(&agent) || orgs::is_stopped(tx).await? {
        // Nothing is sent now, so nothing is tried, and no one waits for the end of it.
        limit_queries::put_off(tx, id, tx.now.plus(bounds::LOOK), None).await?;
        return Ok(false);
    }
    if row.model_credential_id.is_some() {
        let Some(inherited) = model_credentials::inherited_by(tx, id).await? else {
            // It no longer waits for one either.
            limits::eased(tx, &agent).await?;
            return Ok(true);
        };
        if row.model_credential_id != Some(inherited) {
            // It has another one by now. What the provider has said of that one counts.
            wait_for_other(tx, id, inherited).await?;
            (row.model_credential_id, row.probing_at) = (Some(inherited), None);
        }
    }
    let is_first = match row.model_credential_id {
        None => true,
        Some(credential) => match model_credentials::limited_until(tx, credential).await? {
            None => {
                limits::eased(tx, &agent).await?;
                return Ok(true);
            }
            Some(until) if until > tx.now => {
                limit_queries::put_off(tx, id, until, row.probing_at).await?;
                return Ok(false);
            }
            Some(_) => model_credentials::claim_probe(tx, credential, tx.now.minus(PROBE)).await?,
        },
    };
    if !is_first {
        limit_queries::put_off(tx, id, tx.now.plus(bounds::LOOK), row.probing_at).await?;
        return Ok(false);
    }
    limit_queries::put_off(tx, id, tx.now.plus(PROBE), Some(tx.now)).await?;
    Ok(turns::go_on(tx, &agent, Some(1)).await? > 0)
}

/// An edit has changed what an agent may spend, or its access to a model.
pub async fn agent_edited(tx: &Tx, edited: &Edited) -> Result<()> {
    if edited.has_other_limits {
        changed(tx, &edited.agent).await?;
    }
    if edited.has_other_access {
        reconsider(tx, &edited.agent).await?;
    }
    Ok(())
}

/// What an agent may spend has changed: people are asked again if nothing is left.
async fn changed(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    emit(tx, LimitsChanged { agent: Some(agent.id) }).await?;
    match limit_queries::wait_of(tx, agent.id).await? {
        // Its provider takes no more, whatever it may spend.
        Some(row) if row.kind == LimitKind::Usage => Ok(()),
        _ => reconsider(tx, agent).await,
    }
}

/// An agent goes on, with another credential perhaps, unless there is nothing for it to spend.
async fn reconsider(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    match limit_queries::wait_of(tx, agent.id).await? {
        Some(row) if row.kind != LimitKind::Usage => {
            release_spender(tx, agent, &row).await?;
            Ok(())
        }
        _ => limits::eased(tx, agent).await,
    }
}

/// More of this kind is allowed: the agent goes on if it waits for it and it is enough.
pub(super) async fn allowed(tx: &Tx, agent: &LockedAgent, kind: LimitKind) -> Result<()> {
    if let Some(row) = limit_queries::wait_of(tx, agent.id).await?.filter(|row| row.kind == kind) {
        release_spender(tx, agent, &row).await?;
    }
    Ok(())
}

/// Lets an agent go on for which there is something to spend again. It is not prompted in vain if what came back, or was
/// allowed, was not for it. Returns whether it goes on.
async fn release_spender(tx: &Tx, agent: &LockedAgent, row: &Wait) -> Result<bool> {
    let terms = Terms::of(tx, agent.id).await?;
    let mut spent = leases::spent(tx, agent, &terms).await?;
    if spent.as_ref().is_some_and(|spent| spent.of == Of::Organization) {
        // Someone may be allowing more: either that is seen now, or this agent's wait is seen there.
        months::hold(tx, &terms).await?;
        spent = leases::spent(tx, agent, &terms).await?;
    }
    // What it does not wait for, or what stops it, is up to its next call: then people are notified, and it is stopped.
    let same = spent.filter(|spent| spent.kind == row.kind && spent.action == CostGuardAction::Pause);
    let Some(spent) = same else {
        limits::eased(tx, agent).await?;
        return Ok(true);
    };
    // They are no longer asked if the limits were changed.
    cost_guard::tell(tx, agent, &terms, &spent).await?;
    wait_on(tx, agent.id, row.until_at, (spent.until, &cost_guard::words(&terms, &spent))).await?;
    Ok(false)
}

/// The agent looks again at this time, and people read why; or with the next run, if someone has changed since what it may spend.
async fn wait_on(tx: &Tx, agent: AgentId, seen: Option<Timestamp>, changed: (Timestamp, &str)) -> Result<()> {
    limit_queries::wait_on(tx, agent, seen, changed).await?;
    agents::announce(tx, agent);
    Ok(())
}

/// The agent waits for another model credential from now on.
async fn wait_for_other(tx: &Tx, agent: AgentId, credential: ModelCredentialId) -> Result<()> {
    limit_queries::wait_for(tx, agent, credential).await?;
    agents::announce(tx, agent);
    Ok(())
}
