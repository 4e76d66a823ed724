//! Resumes agents that may not call their model (`limits.rs`): after an allowance, when their time has come, or, after
//! a provider refused requests, once a single probing turn has succeeded.

use std::{sync::Arc, time::Duration};

use super::{
    budget::Terms,
    cost_guard, leases,
    limit_queries::{self, Wait},
    limits::{self, LimitsChanged},
    monthly_totals::{self, BudgetOwner},
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

/// How long a probing turn may take. Its host may disappear with it.
const PROBE: Duration = Duration::from_mins(2);

/// Resumes agents whose wait is due, in every organization. Returns how many.
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

/// Resumes an agent, or one of its turns as a probe. Returns whether it did.
async fn release(tx: &Tx, id: AgentId) -> Result<bool> {
    let Some(agent) = agents::lock_agent(tx, id).await? else {
        // The agent was deleted while its limit was written.
        limits::delete_wait(tx, id).await?;
        return Ok(false);
    };
    // Another replica may have been faster.
    let row =
        limit_queries::wait_of(tx, id).await?.filter(|row| row.until_at.is_some_and(|until| until <= tx.now));
    let Some(mut row) = row else { return Ok(false) };
    if !turns::has_waiting(tx, &agent).await? {
        limits::lift(tx, &agent).await?;
        return Ok(true);
    }
    if row.kind != LimitKind::Usage {
        return release_spender(tx, &agent, &row).await;
    }
    if !turns::takes_turns(&agent) || orgs::is_stopped(tx).await? {
        // Nothing can be sent now, so no turn can probe.
        limit_queries::postpone(tx, id, tx.now.plus(bounds::RECONCILE_INTERVAL), None).await?;
        return Ok(false);
    }
    if row.model_credential_id.is_some() {
        let Some(inherited) = model_credentials::inherited_by(tx, id).await? else {
            // The agent no longer inherits a credential.
            limits::lift(tx, &agent).await?;
            return Ok(true);
        };
        if row.model_credential_id != Some(inherited) {
            // The agent inherits another credential by now, whose limit counts.
            switch_credential(tx, id, inherited).await?;
            (row.model_credential_id, row.probing_at) = (Some(inherited), None);
        }
    }
    let is_first = match row.model_credential_id {
        None => true,
        Some(credential) => match model_credentials::limited_until(tx, credential).await? {
            None => {
                limits::lift(tx, &agent).await?;
                return Ok(true);
            }
            Some(until) if until > tx.now => {
                limit_queries::postpone(tx, id, until, row.probing_at).await?;
                return Ok(false);
            }
            Some(_) => model_credentials::claim_probe(tx, credential, tx.now.minus(PROBE)).await?,
        },
    };
    if !is_first {
        limit_queries::postpone(tx, id, tx.now.plus(bounds::RECONCILE_INTERVAL), row.probing_at).await?;
        return Ok(false);
    }
    limit_queries::postpone(tx, id, tx.now.plus(PROBE), Some(tx.now)).await?;
    Ok(turns::resume_turns(tx, &agent, Some(1)).await? > 0)
}

/// An edit has changed an agent's limits or its access to a model.
pub async fn agent_edited(tx: &Tx, edited: &Edited) -> Result<()> {
    if edited.has_other_limits {
        limits_changed(tx, &edited.agent).await?;
    }
    if edited.has_other_access {
        reconsider(tx, &edited.agent).await?;
    }
    Ok(())
}

/// An agent's limits have changed: people are asked again if nothing is left.
async fn limits_changed(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    emit(tx, LimitsChanged { agent: Some(agent.id) }).await?;
    match limit_queries::wait_of(tx, agent.id).await? {
        // The provider refuses requests regardless of the limits.
        Some(row) if row.kind == LimitKind::Usage => Ok(()),
        _ => reconsider(tx, agent).await,
    }
}

/// Resumes an agent, perhaps with another credential, unless nothing is left to spend.
async fn reconsider(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    match limit_queries::wait_of(tx, agent.id).await? {
        Some(row) if row.kind != LimitKind::Usage => {
            release_spender(tx, agent, &row).await?;
            Ok(())
        }
        _ => limits::lift(tx, agent).await,
    }
}

/// Resumes the agent after an allowance if it waits for this kind of limit and the allowance suffices.
pub(super) async fn release_if_waiting_for(tx: &Tx, agent: &LockedAgent, kind: LimitKind) -> Result<()> {
    if let Some(row) = limit_queries::wait_of(tx, agent.id).await?.filter(|row| row.kind == kind) {
        release_spender(tx, agent, &row).await?;
    }
    Ok(())
}

/// Resumes an agent if it has something to spend again. Otherwise extends its wait, so that it is not prompted in vain.
/// Returns whether it resumed.
async fn release_spender(tx: &Tx, agent: &LockedAgent, row: &Wait) -> Result<bool> {
    let terms = Terms::load(tx, agent.id).await?;
    let mut spent = leases::find_spent_limit(tx, agent, &terms).await?;
    if spent.as_ref().is_some_and(|spent| spent.owner == BudgetOwner::Organization) {
        // A concurrent allowance is either visible under this lock, or sees this agent's wait.
        monthly_totals::lock_organization(tx, &terms).await?;
        spent = leases::find_spent_limit(tx, agent, &terms).await?;
    }
    // Its next call handles a limit of another kind, or one that stops it: it notifies people and stops the agent.
    let same = spent.filter(|spent| spent.kind == row.kind && spent.action == CostGuardAction::Pause);
    let Some(spent) = same else {
        limits::lift(tx, agent).await?;
        return Ok(true);
    };
    // The earlier request was withdrawn if the limits were changed.
    cost_guard::notify_people(tx, agent, &terms, &spent).await?;
    extend_wait(tx, agent.id, row.until_at, (spent.until, &cost_guard::describe(&terms, &spent))).await?;
    Ok(false)
}

/// Sets when the agent checks again, and the reason shown to people. If the limits have changed since, it checks with
/// the next run.
async fn extend_wait(
    tx: &Tx,
    agent: AgentId,
    seen: Option<Timestamp>,
    changed: (Timestamp, &str),
) -> Result<()> {
    limit_queries::extend_wait(tx, agent, seen, changed).await?;
    agents::announce(tx, agent);
    Ok(())
}

async fn switch_credential(tx: &Tx, agent: AgentId, credential: ModelCredentialId) -> Result<()> {
    limit_queries::set_wait_credential(tx, agent, credential).await?;
    agents::announce(tx, agent);
    Ok(())
}
