//! Starting, stopping, pausing, resuming and restarting an agent. The new state and the command for its host are written in
//! one transaction.
//!
//! A restart is a stop, and the next launch as a row already: the service makes it as soon as the agent is down, whoever has
//! left meanwhile. Whoever stops the agent until then takes it back.

use muster_protocol::Command;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Set};
use serde_json::json;

use super::{
    entity::agents,
    launches, plans, reports, revisions,
    rows::{self, find, finish, living, load},
    standing::Standing,
    state::{Action, Step},
    status::explain,
};
use crate::{
    base::{
        enums::{AgentStatus, ChangeOp, OutboxKind, RecordKind, StatusReason},
        ids::{AgentId, ServerId},
        problem::Result,
    },
    core::{access::Scope, audit, outbox, store::Tx},
    slices::{orgs, turns},
};

/// Launches an agent (specification, operation 14). It is SPAWNING right away; the host does the rest.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_ALREADY_RUNNING`, `ORGANIZATION_STOPPED`.
pub async fn start(scope: &Scope, id: AgentId) -> Result<()> {
    act(scope, id, Action::Start, "startAgent").await
}

/// Stops an agent. One that was to be started again stays down.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_NOT_RUNNING`.
pub async fn stop(scope: &Scope, id: AgentId) -> Result<()> {
    act(scope, id, Action::Stop, "stopAgent").await
}

/// Pauses an agent. It stays in memory but takes no turns.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_NOT_RUNNING`.
pub async fn pause(scope: &Scope, id: AgentId) -> Result<()> {
    act(scope, id, Action::Pause, "pauseAgent").await
}

/// Resumes a paused agent.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_NOT_RUNNING`, `ORGANIZATION_STOPPED`.
pub async fn resume(scope: &Scope, id: AgentId) -> Result<()> {
    act(scope, id, Action::Resume, "resumeAgent").await
}

/// Restarts an agent: it is stopped, and launched as soon as it is down. One that is at rest is launched at once.
///
/// # Errors
/// `NOT_FOUND`, `ORGANIZATION_STOPPED`.
pub async fn restart(scope: &Scope, id: AgentId) -> Result<()> {
    let mut tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    let agent = load(&tx, id).await?;
    let was = agent.status;
    if was.is_at_rest() {
        let status = launch(&mut tx, agent).await?;
        let changes = json!({ "status": audit::from_to(was, status) });
        return finish(tx, (ChangeOp::Updated, "restartAgent"), id, changes).await;
    }
    // One that is stopping already has its STOP on the way.
    if was != AgentStatus::Stopping {
        outbox::overtake(&tx, id).await?;
    }
    let agent = step(&mut tx, agent, Action::Stop).await?;
    if !launches::want_next(&tx, &agent).await? {
        return Ok(());
    }
    let changes = json!({ "status": audit::from_to(was, agent.status), "starts_again": true });
    finish(tx, (ChangeOp::Updated, "restartAgent"), id, changes).await
}

/// Launches the agent that has stopped, if somebody wanted that. In an organization that was stopped meanwhile the host gets
/// the command with the release.
///
/// # Errors
/// The database is unreachable.
pub(super) async fn start_again(tx: &mut Tx, id: AgentId) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let was = agent.status;
    if was != AgentStatus::Stopped || !launches::is_next_wanted(tx, &Standing::of(&agent)).await? {
        return Ok(());
    }
    let status = step(tx, agent, Action::Start).await?.status;
    record(tx, "startAgain", id, json!({ "status": audit::from_to(was, status) }));
    Ok(())
}

/// Starts the agents of this server that waited for the confirmation of its host.
///
/// # Errors
/// The database is unreachable.
pub async fn start_confirmed(scope: &Scope, server: ServerId) -> Result<()> {
    let on_server = living(scope).filter(agents::Column::ServerId.eq(server));
    let ids = on_server.order_by_asc(agents::Column::Id).select_only().column(agents::Column::Id);
    let ids: Vec<AgentId> = ids.into_tuple().all(scope.core.db.read()).await?;
    for id in ids {
        let mut tx = scope.begin().await?;
        let waits = |agent: &agents::Model| {
            let reason = agent.status_reason == Some(StatusReason::HostNotConfirmed);
            agent.server_id == server && agent.status == AgentStatus::Error && reason
        };
        let Some(agent) = find(&tx, id).await?.filter(waits) else { continue };
        let was = agent.status;
        let status = step(&mut tx, agent, Action::Start).await?.status;
        record(&tx, "startAgain", id, json!({ "status": audit::from_to(was, status) }));
        tx.commit().await?;
    }
    Ok(())
}

/// Stops an agent by the service itself, in the caller's transaction, and says why until it is started again: its turns are
/// cancelled first. Does nothing to one that is at rest.
///
/// # Errors
/// The database is unreachable.
pub async fn stop_in(
    tx: &mut Tx,
    id: AgentId,
    operation: &'static str,
    (reason, detail): (StatusReason, &str),
) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let was = agent.status;
    if was.is_at_rest() {
        return Ok(());
    }
    let standing = Standing::of(&agent);
    if was == AgentStatus::Stopping {
        launches::want_no_next(tx, &standing).await?;
        return Ok(());
    }
    outbox::overtake(tx, id).await?;
    turns::cancel_open(tx, &standing).await?;
    let status = step(tx, agent, Action::Stop).await?.status;
    explain(tx, id, Some((reason, detail))).await?;
    record(tx, operation, id, json!({ "status": audit::from_to(was, status) }));
    Ok(())
}

async fn act(scope: &Scope, id: AgentId, action: Action, operation: &'static str) -> Result<()> {
    let mut tx = scope.begin().await?;
    if matches!(action, Action::Start | Action::Resume) {
        orgs::require_going(&tx).await?;
    }
    let agent = load(&tx, id).await?;
    let (was, standing) = (agent.status, Standing::of(&agent));
    let changes = if action.apply(was)? == Step::Stay {
        if action != Action::Stop || !launches::want_no_next(&tx, &standing).await? {
            return Ok(());
        }
        json!({ "starts_again": false })
    } else {
        if action == Action::Stop {
            outbox::overtake(&tx, id).await?;
        }
        let status = match action {
            Action::Start => launch(&mut tx, agent).await?,
            _ => step(&mut tx, agent, action).await?.status,
        };
        json!({ "status": audit::from_to(was, status) })
    };
    finish(tx, (ChangeOp::Updated, operation), id, changes).await
}

/// Launches an agent that is at rest, unless it has to wait for the confirmation of its host. Returns its status.
async fn launch(tx: &mut Tx, agent: agents::Model) -> Result<AgentStatus> {
    if plans::is_withheld(tx, &agent).await? {
        plans::wait(tx, agent.id).await?;
        return Ok(AgentStatus::Error);
    }
    Ok(step(tx, agent, Action::Start).await?.status)
}

/// Makes the step of the table, if it is one, and gives the host its command.
///
/// # Errors
/// The state does not allow the action.
async fn step(tx: &mut Tx, agent: agents::Model, action: Action) -> Result<Standing> {
    let Step::Move(status, command) = action.apply(agent.status)? else { return Ok(Standing::of(&agent)) };
    let is_launch = command == Command::Launch;
    let generation = agent.launch_generation + i64::from(is_launch);
    let revision = if is_launch { Some(revision(tx, &agent).await?) } else { agent.launched_revision };
    let mut agent = agent.into_active_model();
    if is_launch {
        agent.started_at = Set(None);
        agent.container_id = Set(None);
    }
    if matches!(command, Command::Launch | Command::Stop) {
        rows::clear_reason(&mut agent);
    }
    agent.status = Set(status);
    agent.status_changed_at = Set(Some(tx.now));
    agent.launch_generation = Set(generation);
    agent.launched_revision = Set(revision);
    agent.last_action = Set(Some(OutboxKind::from(&command).as_str().to_owned()));
    agent.last_action_at = Set(Some(tx.now));
    agent.updated_at = Set(tx.now);
    let agent = Standing::of(&agent.update(tx.connection()).await?);
    outbox::enqueue(tx, agent.host(), &command);
    match action {
        // Normally the last launch was settled when its end was reported.
        Action::Start => {
            launches::began(tx, &agent).await?;
            reports::settle(tx, &agent, agent.generation - 1, "it was started again").await?;
        }
        Action::Resume => turns::send_due(tx, &agent).await?,
        Action::Stop | Action::Pause => {}
    }
    Ok(agent)
}

/// The revision to launch with. An agent that was made in bulk gets its first one now.
async fn revision(tx: &Tx, agent: &agents::Model) -> Result<i64> {
    if agent.revision > 0 {
        return Ok(agent.revision);
    }
    revisions::follow(tx, std::slice::from_ref(agent), None).await?;
    revisions::current(tx, agent.id).await
}

fn record(tx: &Tx, operation: &'static str, id: AgentId, changes: serde_json::Value) {
    audit::record(
        tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Agent, id: id.0, changes },
    );
}
