//! Refusals of providers: too much was used. A refusal concerns the credential of the request: either the
//! organization's, and with it every agent that inherits it, or the agent's own.

use std::time::Duration;

use crate::{
    base::{
        bounds,
        enums::{LimitKind, UsageStatus},
        ids::{AgentId, ModelCredentialId},
        plain::truncated_line,
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    domain::{
        agents::{
            self,
            reporter::{Reporter, lock_live},
        },
        conversations::turns,
        model_credentials,
        spending::{
            budget::Terms,
            limit_queries::{self, Limit},
            limits, monthly_totals,
        },
    },
};

/// The provider has refused a call because too much was used. The agent's turns wait until `until`.
pub async fn record_refusal(
    tx: &Tx,
    from: &Reporter,
    credential: Option<ModelCredentialId>,
    (model, detail): (&str, &str),
    until: Option<Timestamp>,
) -> Result<()> {
    let Some(agent) = lock_live(tx, from).await? else { return Ok(()) };
    // The time is the host's claim, and all agents that inherit the credential wait for it: after a day, one turn is
    // tried in any case.
    let until = until
        .unwrap_or(tx.now.plus(Duration::from_mins(1)))
        .clamp(tx.now.plus(Duration::from_secs(1)), tx.now.plus(Duration::from_hours(24)));
    let said = truncated_line(detail, bounds::REASON);
    let model = truncated_line(model, bounds::NAME);
    let reason = format!("The provider of {model} accepts no more requests for now: {said}");
    let inherited = model_credentials::inherited_by(tx, agent.id).await?;
    if credential != inherited {
        return wait_for_current_credential(tx, agent.id, inherited, (&reason, until)).await;
    }
    if let Some(credential) = credential {
        // Before the limits of agents that it doesn't hold: a lease of one of them might wait for another's.
        monthly_totals::lock_organization(tx, &Terms::load(tx, agent.id).await?).await?;
        model_credentials::record_limit(tx, credential, until, &said).await?;
    }
    let limit = Limit { kind: LimitKind::Usage, reason: &reason, until, credential };
    agents::store_usage(tx, agent.id, UsageStatus::Rejected, Some(until)).await?;
    turns::limit_turns(tx, agent.id).await?;
    // The others that inherit it can't know yet. Their rows are written without holding the agents, which a host's report must
    // not do, and always in the same order.
    let mut concerned = match credential {
        Some(credential) => model_credentials::inheriting(tx, credential).await?,
        None => Vec::new(),
    };
    concerned.push(agent.id);
    concerned.sort_unstable();
    concerned.dedup();
    for concerned in concerned {
        if concerned == agent.id || !limits::is_limited(tx, concerned).await? {
            limits::set_wait(tx, concerned, &limit).await?;
        }
    }
    Ok(())
}

/// The call used a credential that the agent no longer has: a host can only report about its agents' credentials. Turns
/// resume as soon as the credential that the agent inherits now works. The state of an agent's own key is unknown, so
/// one turn probes soon.
async fn wait_for_current_credential(
    tx: &Tx,
    agent: AgentId,
    inherited: Option<ModelCredentialId>,
    (reason, until): (&str, Timestamp),
) -> Result<()> {
    let until = if inherited.is_some() { tx.now } else { until.min(tx.now.plus(Duration::from_mins(1))) };
    turns::limit_turns(tx, agent).await?;
    limits::set_wait(tx, agent, &Limit { kind: LimitKind::Usage, reason, until, credential: inherited }).await
}

/// Makes agents that wait for this credential check again with the next run: it works again, or no agent inherits it
/// now.
pub async fn recheck_credential(tx: &Tx, credential: ModelCredentialId) -> Result<()> {
    limit_queries::look_for_credential_again(tx, credential).await
}
