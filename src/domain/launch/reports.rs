//! Reports of hosts about agents. Each function runs in a transaction that applies a batch of a host's events, about an
//! agent that is known to be on that host's server.
//!
//! Reports of a launch that is not the agent's current one are ignored, with one exception: the end of an earlier
//! launch still settles its turns and requests. Reports of a launch that never took place are ignored and logged.

use muster_protocol::event::{EndReason, Offer, RefusedReason};
use sea_orm::{ActiveModelTrait, IntoActiveModel, Set};
use serde_json::json;

use super::{
    failing::fail_locked,
    launches, plans, queries,
    recovery::AgentEnd,
    running::{clear_reason, start_again},
};
use crate::{
    base::{
        bounds,
        enums::{AgentStatus, CommandKind, StatusReason},
        ids::{AgentId, TurnId},
        plain::{self, truncated},
        problem::Result,
    },
    core::store::Tx,
    domain::{
        agents::{
            LockedAgent, announce,
            entity::agents,
            lock_agent_even_deleted,
            reporter::{Reporter, is_of_unknown_launch, lock_current},
            rows::find,
            set_status_reason,
            state::Report,
        },
        approvals,
        conversations::turns,
        model_credentials, orgs,
    },
};

/// Locks the agents of a batch, in locking order, so that no two transactions deadlock. `stores`: the batch brings
/// files, whose bytes are counted. Call it first in the transaction.
pub async fn lock_batch(tx: &Tx, agents: &[AgentId], stores: bool) -> Result<()> {
    if stores {
        orgs::lock(tx).await?;
    }
    let mut agents = agents.to_vec();
    agents.sort_unstable();
    agents.dedup();
    for agent in agents {
        // Costs of a deleted agent are still reported.
        lock_agent_even_deleted(tx, agent).await?;
    }
    Ok(())
}

/// The agent runs and takes turns: its waiting turns are sent.
pub async fn started(
    tx: &Tx,
    from: &Reporter,
    container_id: String,
    program: Option<String>,
    model: Option<String>,
) -> Result<()> {
    let Some(agent) = lock_row(tx, from).await? else { return Ok(()) };
    let Some(status) = Report::Started.apply(agent.status) else { return Ok(()) };
    if status != agent.status && plans::is_withheld(tx, &agent).await? {
        // The host has started it without asking for the plan.
        return plans::withhold(tx, &agent).await;
    }
    let (org, generation) = (tx.scope.org.0, from.generation);
    tracing::info!(org, agent = agent.id.0, generation, program, "agent.started");
    let (was, since) = (agent.status, agent.status_changed_at.unwrap_or(agent.created_at));
    let is_given = agent.sync_given == agent.sync_version;
    let mut row = agent.into_active_model();
    if status != was {
        row.status = Set(status);
        row.status_changed_at = Set(Some(tx.now));
        clear_reason(&mut row);
        row.started_at = Set(Some(from.time(tx, since)));
        launches::record_up(tx, from.agent, from.generation, from.time(tx, since)).await?;
    }
    row.container_id = Set(Some(truncated(&container_id, bounds::ID)));
    row.running_model = Set(model.map(|model| truncated(&model, bounds::ID)));
    if is_given {
        row.sync_pending = Set(false);
    }
    row.updated_at = Set(tx.now);
    let agent = LockedAgent::from_row(&row.update(tx.connection()).await?);
    announce(tx, agent.id);
    turns::send_due(tx, &agent).await
}

/// The agent's launch waits for its host's container engine.
pub async fn engine_away(tx: &Tx, from: &Reporter, detail: &str) -> Result<()> {
    match lock_row(tx, from).await? {
        Some(agent) if agent.status == AgentStatus::Spawning => {
            set_status_reason(tx, from.agent, Some((StatusReason::EngineAway, detail))).await
        }
        _ => Ok(()),
    }
}

/// The agent has ended, or never began. Its open turns are interrupted and its requests withdrawn; decisions that have
/// not reached it wait as turns.
pub async fn ended(
    tx: &Tx,
    from: &Reporter,
    reason: EndReason,
    code: Option<i32>,
    signal: Option<i32>,
    detail: Option<String>,
) -> Result<()> {
    let Some(agent) = find(tx, from.agent).await? else { return Ok(()) };
    let present = LockedAgent::from_row(&agent);
    let why = reason_in_words(reason, code, signal);
    if is_of_unknown_launch(tx, &present, from) {
        return Ok(());
    }
    let said = detail.as_deref().map(str::trim).filter(|detail| !detail.is_empty());
    let said = said.map_or_else(|| why.clone(), |said| format!("{why}\n{said}"));
    let is_wanted = from.generation == present.generation && agent.status != AgentStatus::Stopping;
    let failure = reason_of(reason).filter(|_| is_wanted);
    // By the host's clock; nothing else of the launch is compared with it.
    let at = from.time(tx, agent.created_at);
    launches::record_end(tx, (from.agent, from.generation), at, failure, Some(&said)).await?;
    if from.generation == present.generation
        && let Some(status) = Report::Ended(reason).apply(agent.status)
    {
        let (org, generation) = (tx.scope.org.0, from.generation);
        tracing::info!(org, agent = agent.id.0, generation, ?reason, code, signal, "agent.ended");
        match failure.filter(|_| status == AgentStatus::Error) {
            Some(reason) => {
                let is_clean = reason == StatusReason::Exited && code == Some(0);
                fail_locked(tx, agent, AgentEnd { reason, is_clean, at }, Some(&said)).await?;
            }
            None => set_ended(tx, agent, status).await?,
        }
    }
    settle_launches(tx, &present, from.generation, &why).await?;
    Box::pin(start_again(tx, from.agent)).await
}

/// Sets the status of an agent that has ended without a failure.
async fn set_ended(tx: &Tx, agent: agents::Model, status: AgentStatus) -> Result<()> {
    let id = agent.id;
    let mut row = agent.into_active_model();
    row.status = Set(status);
    row.status_changed_at = Set(Some(tx.now));
    row.started_at = Set(None);
    row.container_id = Set(None);
    row.running_model = Set(None);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}

const fn reason_of(reason: EndReason) -> Option<StatusReason> {
    Some(match reason {
        EndReason::Stopped => return None,
        EndReason::Exited => StatusReason::Exited,
        EndReason::Killed => StatusReason::Killed,
        EndReason::OutOfMemory => StatusReason::OutOfMemory,
        EndReason::ShimLost => StatusReason::ShimLost,
        EndReason::ImageNotFound => StatusReason::ImageNotFound,
        EndReason::SpawnFailed => StatusReason::SpawnFailed,
        EndReason::NoProtocol => StatusReason::NoProtocol,
        EndReason::LineTooLong => StatusReason::LineTooLong,
        EndReason::DiskFull => StatusReason::DiskFull,
    })
}

/// Settles the turns and requests of the agent's launches up to `generation`.
pub(super) async fn settle_launches(tx: &Tx, agent: &LockedAgent, generation: i64, why: &str) -> Result<()> {
    turns::end_lost(tx, agent, generation, why).await?;
    approvals::settle_ended_launches(tx, agent.id, generation).await
}

/// The agent's skills, MCP servers and credentials are as in its host's last plan.
pub async fn synced(tx: &Tx, from: &Reporter) -> Result<()> {
    let Some(agent) = lock_row(tx, from).await? else { return Ok(()) };
    // Something has changed since the host asked, and another command is on its way; or the organization is stopped,
    // and the release brings the rest.
    if agent.sync_given != agent.sync_version || !agent.sync_pending {
        return Ok(());
    }
    let had_failed = agent.status_reason == Some(StatusReason::SyncFailed);
    let mut row = agent.into_active_model();
    if had_failed {
        row.status_reason = Set(None);
        row.status_detail = Set(None);
    }
    row.sync_pending = Set(false);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    announce(tx, from.agent);
    Ok(())
}

/// The launch lacks something that only a new launch provides.
pub async fn lacks(tx: &Tx, from: &Reporter, what: &str) -> Result<()> {
    let Some(agent) = lock_row(tx, from).await? else { return Ok(()) };
    let mut row = agent.into_active_model();
    row.launch_lacks.set_if_not_equals(Some(truncated(what, bounds::DETAIL)));
    if row.is_changed() {
        row.updated_at = Set(tx.now);
        row.update(tx.connection()).await?;
        announce(tx, from.agent);
    }
    Ok(())
}

/// The models and modes that the agent's sessions offer.
pub async fn offered(tx: &Tx, from: &Reporter, models: Vec<Offer>, modes: Vec<Offer>) -> Result<()> {
    let Some(agent) = lock_row(tx, from).await? else { return Ok(()) };
    let mut row = agent.into_active_model();
    row.offered_models.set_if_not_equals(Some(choices(models)));
    row.offered_modes.set_if_not_equals(Some(choices(modes)));
    if row.is_changed() {
        row.updated_at = Set(tx.now);
        row.update(tx.connection()).await?;
        announce(tx, from.agent);
    }
    Ok(())
}

/// Offers as they are stored. An offer whose id can't be stored unchanged can't be chosen, and is left out.
fn choices(offers: Vec<Offer>) -> serde_json::Value {
    let is_fine = |offer: &Offer| {
        !offer.id.trim().is_empty() && offer.id.len() <= bounds::ID && plain::is_line(&offer.id)
    };
    let readable = |text: &str, most| truncated(&plain::without_controls(text), most);
    let offers = offers.into_iter().filter(is_fine).take(bounds::LIST).map(|offer| {
        json!({
            "id": offer.id, "name": readable(&offer.name, bounds::ID), "current": offer.current,
            "description": offer.description.map(|text| readable(&text, bounds::REASON)),
        })
    });
    offers.collect()
}

/// The agent has no valid access to its model. Repeated reports raise one approval.
pub async fn auth_required(tx: &Tx, from: &Reporter, detail: String) -> Result<()> {
    let agent = lock_row(tx, from).await?.filter(|agent| !agent.status.is_at_rest());
    let Some(agent) = agent else { return Ok(()) };
    let mut row = agent.into_active_model();
    row.auth_failed_at = Set(Some(tx.now));
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    let detail = truncated(&detail, bounds::DETAIL);
    set_status_reason(tx, from.agent, Some((StatusReason::AuthRequired, &detail))).await?;
    announce(tx, from.agent);
    // Several agents may inherit the credential, but people are asked only once.
    match model_credentials::inherited_by(tx, from.agent).await? {
        Some(credential) => model_credentials::record_rejection(tx, credential, &detail).await,
        None => approvals::request_model_access(tx, from.agent, detail).await,
    }
}

/// A command had no effect. If it was a turn, it waits again.
pub async fn refused(tx: &Tx, from: &Reporter, command_id: i64, reason: RefusedReason) -> Result<()> {
    tracing::warn!(
        org = tx.scope.org.0,
        agent = from.agent.0,
        server = from.server.0,
        command = command_id,
        ?reason,
        "command.refused"
    );
    let Some(agent) = lock_current(tx, from).await? else { return Ok(()) };
    if let Some(turn) = turn_of(tx, &agent, command_id).await? {
        turns::requeue_unsent(tx, &agent, turn).await?;
    }
    Ok(())
}

async fn turn_of(tx: &Tx, agent: &LockedAgent, command: i64) -> Result<Option<TurnId>> {
    let payload = queries::command_payload(tx, agent.id, (command, CommandKind::Turn)).await?;
    Ok(payload.and_then(|payload| payload["turn_id"].as_i64()).map(TurnId))
}

/// Locks the agent's row. `None` unless the report is about its current launch.
async fn lock_row(tx: &Tx, from: &Reporter) -> Result<Option<agents::Model>> {
    let agent = find(tx, from.agent).await?;
    Ok(agent.filter(|agent| {
        let agent = LockedAgent::from_row(agent);
        !is_of_unknown_launch(tx, &agent, from) && agent.generation == from.generation
    }))
}

/// The reason of an end, in words that follow "because" or a colon.
fn reason_in_words(reason: EndReason, code: Option<i32>, signal: Option<i32>) -> String {
    let why = match reason {
        EndReason::Stopped => "it was stopped",
        EndReason::Exited => "its program ended by itself",
        EndReason::Killed => "its program was killed",
        EndReason::OutOfMemory => "it ran out of memory",
        EndReason::ShimLost => "its process is gone and left no record",
        EndReason::ImageNotFound => "its image was not found on the host",
        EndReason::SpawnFailed => "its program could not be started",
        EndReason::NoProtocol => "its program does not speak the Agent Client Protocol",
        EndReason::LineTooLong => "its program wrote a line that is too long",
        EndReason::DiskFull => "the host's disk is full",
    };
    match (code, signal) {
        (Some(code), _) => format!("{why} (code {code})"),
        (None, Some(signal)) => format!("{why} (signal {signal})"),
        (None, None) => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_explained() {
        assert_eq!(reason_in_words(EndReason::Exited, Some(3), None), "its program ended by itself (code 3)");
        assert_eq!(reason_in_words(EndReason::Killed, None, Some(9)), "its program was killed (signal 9)");
        assert_eq!(
            reason_in_words(EndReason::ShimLost, None, None),
            "its process is gone and left no record"
        );
    }
}
