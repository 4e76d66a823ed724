//! Starts, stops, pauses, resumes and restarts agents. The new state and the command for the host are written in one
//! transaction.
//!
//! A restart is a stop with a row for the next launch: the service starts the agent as soon as it is down, without
//! another request. Stopping the agent before that cancels the restart.
//!
//! An agent that has failed is restarted at the time in its row ([`start_due`]; `recovery.rs` has the rule).

use std::sync::Arc;

use async_graphql::SimpleObject;
use muster_protocol::Command;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Set};
use serde_json::{Value, json};

use super::{launches, plans, queries, recovery::RestartCounts, reports};
use crate::{
    base::{
        bounds::BATCH,
        enums::{AgentStatus, ChangeOp, CommandKind, RecordKind, StatusReason, TurnCut},
        ids::{AgentId, ServerId},
        problem::{Code, Problem, Result},
    },
    core::{Core, access::Scope, audit, job_counts::Tally, store::Tx},
    domain::{
        agents::{
            LockedAgent, announce,
            entity::agents,
            revisions,
            rows::{find, finish, load, not_deleted},
            set_status_reason,
            state::{Action, Transition},
        },
        approvals, commands,
        conversations::turns,
        orgs, servers,
    },
};

/// Launches an agent (specification, operation 14). It is SPAWNING at once; the host does the rest.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_ALREADY_RUNNING`, `ORGANIZATION_STOPPED`.
pub async fn start(scope: &Scope, id: AgentId) -> Result<()> {
    perform(scope, id, Action::Start, "startAgent").await
}

/// Stops an agent, and cancels its restart if one is planned.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_NOT_RUNNING`.
pub async fn stop(scope: &Scope, id: AgentId) -> Result<()> {
    perform(scope, id, Action::Stop, "stopAgent").await
}

/// Pauses an agent. It stays in memory but takes no turns.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_NOT_RUNNING`.
pub async fn pause(scope: &Scope, id: AgentId) -> Result<()> {
    perform(scope, id, Action::Pause, "pauseAgent").await
}

/// Resumes a paused agent.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_NOT_RUNNING`, `ORGANIZATION_STOPPED`.
pub async fn resume(scope: &Scope, id: AgentId) -> Result<()> {
    perform(scope, id, Action::Resume, "resumeAgent").await
}

/// Restarts an agent: it is stopped, and launched as soon as it is down. One that is at rest is launched at once.
///
/// # Errors
/// `NOT_FOUND`, `ORGANIZATION_STOPPED`.
pub async fn restart(scope: &Scope, id: AgentId) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    let agent = load(&tx, id).await?;
    let was = agent.status;
    if was.is_at_rest() {
        let status = Box::pin(launch_unless_withheld(&tx, agent)).await?;
        let changes = json!({ "status": audit::from_to(was, status) });
        return finish(tx, (ChangeOp::Updated, "restartAgent"), id, changes).await;
    }
    // For an agent that is STOPPING, the STOP is on its way.
    let mut ended = json!({});
    if was != AgentStatus::Stopping {
        ended = Box::pin(end_work(&tx, &LockedAgent::from_row(&agent), TurnCut::Restart)).await?;
    }
    let agent = apply_action(&tx, agent, Action::Stop, RestartCounts::default()).await?;
    if !launches::request_next(&tx, &agent).await? {
        return Ok(());
    }
    let mut changes = with_status(audit::from_to(was, agent.status), ended);
    changes["starts_again"] = true.into();
    finish(tx, (ChangeOp::Updated, "restartAgent"), id, changes).await
}

/// Launches a stopped agent whose next launch was requested. If the organization was stopped meanwhile, the host gets
/// the command with the release.
pub(super) async fn start_again(tx: &Tx, id: AgentId) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let was = agent.status;
    if was != AgentStatus::Stopped || !launches::is_next_requested(tx, &LockedAgent::from_row(&agent)).await?
    {
        return Ok(());
    }
    let status = apply_action(tx, agent, Action::Start, RestartCounts::default()).await?.status;
    record(tx, "startAgain", id, json!({ "status": audit::from_to(was, status) }));
    Ok(())
}

/// Performs the due restarts of every organization that is not stopped. Returns how many.
pub async fn start_due(core: &Arc<Core>) -> Result<u64> {
    let mut started = Tally::default();
    for due in queries::due_restarts(core).await? {
        let scope = Scope::system(core, due.organization_id);
        started.add(scope.org, start_if_due(&scope, due.id).await);
    }
    started.close()
}

/// Restarts the agent, unless another replica was faster or the restart was cancelled.
async fn start_if_due(scope: &Scope, id: AgentId) -> Result<bool> {
    let tx = scope.begin().await?;
    match orgs::require_going(&tx).await {
        Err(problem) if problem.code == Code::OrganizationStopped => return Ok(false),
        going => going?,
    }
    let is_due = |agent: &agents::Model| {
        agent.status == AgentStatus::Error && agent.restart_at.is_some_and(|at| at <= tx.now)
    };
    let Some(agent) = find(&tx, id).await?.filter(is_due) else { return Ok(false) };
    let (was, tries) = (agent.status, RestartCounts::from_row(&agent).and_one(agent.status_reason));
    let status = apply_action(&tx, agent, Action::Start, tries).await?.status;
    record(&tx, "startAgain", id, json!({ "status": audit::from_to(was, status), "attempt": tries.all() }));
    tx.commit().await?;
    Ok(true)
}

/// The result of starting all agents of a server.
#[derive(Default, SimpleObject)]
pub struct StartedAgents {
    /// The agents that are being launched, by id.
    pub started: Vec<AgentId>,
    /// The agents that may not start.
    pub skipped: Vec<SkippedAgent>,
    /// How many more agents may start: one call starts 100. Call again for the rest.
    pub left: i64,
}

/// An agent that was not started with the others of its server.
#[derive(SimpleObject)]
pub struct SkippedAgent {
    /// Identifies the agent.
    pub id: AgentId,
    /// The name.
    pub name: String,
    /// Its state.
    pub status: AgentStatus,
    /// Why it was not started.
    pub reason: String,
}

/// Launches the agents of a server that are at rest, the first hundred by id.
///
/// # Errors
/// `NOT_FOUND`, `ORGANIZATION_STOPPED`. Agents started before the error stay started.
pub async fn start_all(scope: &Scope, server: ServerId) -> Result<StartedAgents> {
    let (mut done, may_start) = find_startable(scope, server).await?;
    let (now, later) = may_start.split_at(may_start.len().min(BATCH as usize));
    done.left = i64::try_from(later.len()).map_err(Problem::internal)?;
    // Other transactions wait for the locks of these agents, so each batch is small.
    for ids in now.chunks(25) {
        Box::pin(start_these(scope, server, ids, &mut done)).await?;
    }
    Ok(done)
}

/// Divides the agents of a server into those that may start, by id, and skipped ones. Locks no agent.
async fn find_startable(scope: &Scope, server: ServerId) -> Result<(StartedAgents, Vec<AgentId>)> {
    use agents::Column::{Id, Name, ServerId, Status, StatusDetail, StatusReason};
    let tx = scope.begin().await?;
    require_server_in_operation(&tx, server).await?;
    let is_unconfirmed = servers::is_unconfirmed(&tx, server).await?;
    let all = not_deleted(scope).filter(ServerId.eq(server)).order_by_asc(Id).select_only();
    let all = all.columns([Id, Name, Status, StatusReason, StatusDetail]).into_tuple::<AgentState>();
    let (mut done, mut may_start) = (StartedAgents::default(), Vec::new());
    for (id, name, status, why, detail) in all.all(tx.connection()).await? {
        match reason_not_to_start(status, (why, detail), is_unconfirmed) {
            Some(reason) => done.skipped.push(SkippedAgent { id, name, status, reason }),
            None => may_start.push(id),
        }
    }
    tx.rollback().await?;
    Ok((done, may_start))
}

/// Id, name, status, and the reason of the status.
type AgentState = (AgentId, String, AgentStatus, Option<StatusReason>, Option<String>);

/// Launches these agents in one transaction, unless they have changed meanwhile.
async fn start_these(
    scope: &Scope,
    server: ServerId,
    ids: &[AgentId],
    done: &mut StartedAgents,
) -> Result<()> {
    let tx = scope.begin().await?;
    require_server_in_operation(&tx, server).await?;
    for id in ids.iter().copied() {
        let Some(agent) = find(&tx, id).await?.filter(|agent| agent.server_id == server) else { continue };
        let (was, name) = (agent.status, agent.name.clone());
        let why = (agent.status_reason, agent.status_detail.clone());
        if let Some(reason) = reason_not_to_start(was, why, false) {
            done.skipped.push(SkippedAgent { id, name, status: was, reason });
            continue;
        }
        let status = Box::pin(launch_unless_withheld(&tx, agent)).await?;
        record(&tx, "startAgents", id, json!({ "status": audit::from_to(was, status) }));
        if status == AgentStatus::Spawning {
            done.started.push(id);
        } else {
            done.skipped.push(SkippedAgent { id, name, status, reason: NOT_CONFIRMED.to_owned() });
        }
    }
    tx.commit().await
}

/// Locks the server and the organization, which come before agents in locking order.
async fn require_server_in_operation(tx: &Tx, server: ServerId) -> Result<()> {
    if !servers::lock_existing(tx, server).await? {
        return Err(Problem::not_found("server", server));
    }
    orgs::require_going(tx).await
}

const NOT_CONFIRMED: &str = "Its host has to be confirmed first.";

/// Why an agent with this status is not started with the others of its server. `None`: it may start.
fn reason_not_to_start(
    status: AgentStatus,
    (why, detail): (Option<StatusReason>, Option<String>),
    is_unconfirmed: bool,
) -> Option<String> {
    match why {
        _ if !status.is_at_rest() => Some(format!("It is {status}.")),
        Some(StatusReason::LimitReached) => {
            Some(detail.unwrap_or_else(|| "Nothing is left to spend.".to_owned()))
        }
        // It starts when the host is confirmed.
        Some(StatusReason::HostNotConfirmed) if is_unconfirmed => Some(NOT_CONFIRMED.to_owned()),
        _ => None,
    }
}

/// Confirms host number `join` of this server, and starts the agents that waited for the confirmation. If the host is
/// already confirmed, it only starts the agents.
pub async fn confirm_host(scope: &Scope, server: ServerId, join: i64) -> Result<()> {
    servers::confirm_host(scope, server, join).await?;
    // In later transactions: whether a host is confirmed is read under the agent's lock, so the server must not be
    // locked here.
    start_confirmed(scope, server).await
}

/// Starts the agents of this server that waited for the confirmation of its host.
async fn start_confirmed(scope: &Scope, server: ServerId) -> Result<()> {
    let on_server = not_deleted(scope).filter(agents::Column::ServerId.eq(server));
    let ids = on_server.order_by_asc(agents::Column::Id).select_only().column(agents::Column::Id);
    let ids: Vec<AgentId> = ids.into_tuple().all(scope.core.db.read()).await?;
    for id in ids {
        let tx = scope.begin().await?;
        match orgs::require_going(&tx).await {
            Err(problem) if problem.code == Code::OrganizationStopped => return Ok(()),
            going => going?,
        }
        let waits = |agent: &agents::Model| agent.server_id == server && is_withheld(agent);
        let Some(agent) = find(&tx, id).await?.filter(waits) else { continue };
        let was = agent.status;
        let status = apply_action(&tx, agent, Action::Start, RestartCounts::default()).await?.status;
        record(&tx, "startAgain", id, json!({ "status": audit::from_to(was, status) }));
        tx.commit().await?;
    }
    Ok(())
}

/// Stops an agent on behalf of the service, in the caller's transaction: cancels its turns and sets the status reason,
/// which stays until the next start. For an agent at rest, only cancels a planned start.
pub async fn stop_in(
    tx: &Tx,
    id: AgentId,
    operation: &'static str,
    (reason, detail): (StatusReason, &str),
) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let was = agent.status;
    if was.is_at_rest() {
        if cancel_start(tx, agent).await? {
            record(tx, operation, id, json!({ "starts_again": false }));
        }
        return Ok(());
    }
    let standing = LockedAgent::from_row(&agent);
    if was == AgentStatus::Stopping {
        launches::cancel_next(tx, &standing).await?;
        return Ok(());
    }
    commands::expire_of_agent(tx, id).await?;
    turns::cancel_open(tx, &standing, Some(TurnCut::Agent)).await?;
    let status = apply_action(tx, agent, Action::Stop, RestartCounts::default()).await?.status;
    set_status_reason(tx, id, Some((reason, detail))).await?;
    record(tx, operation, id, json!({ "status": audit::from_to(was, status) }));
    Ok(())
}

async fn perform(scope: &Scope, id: AgentId, action: Action, operation: &'static str) -> Result<()> {
    let tx = scope.begin().await?;
    if matches!(action, Action::Start | Action::Resume) {
        orgs::require_going(&tx).await?;
    }
    let agent = load(&tx, id).await?;
    let (was, standing, tried) =
        (agent.status, LockedAgent::from_row(&agent), RestartCounts::from_row(&agent));
    let changes = if action == Action::Stop && waits_to_start(&agent) {
        cancel_start(&tx, agent).await?;
        json!({ "starts_again": false })
    } else if action.apply(was)? == Transition::Stay {
        if action != Action::Stop || !launches::cancel_next(&tx, &standing).await? {
            return Ok(());
        }
        json!({ "starts_again": false })
    } else {
        let ended = match action {
            Action::Stop => Box::pin(end_work(&tx, &standing, TurnCut::Agent)).await?,
            Action::Start | Action::Pause | Action::Resume => json!({}),
        };
        // A start or stop by a person resets the count of restarts.
        let tried = if action == Action::Stop { RestartCounts::default() } else { tried };
        let status = match action {
            Action::Start => Box::pin(launch_unless_withheld(&tx, agent)).await?,
            _ => apply_action(&tx, agent, action, tried).await?.status,
        };
        with_status(audit::from_to(was, status), ended)
    };
    finish(tx, (ChangeOp::Updated, operation), id, changes).await
}

/// Ends the agent's open turns, which name the stop as the reason, and counts the approvals that the stop withdraws.
async fn end_work(tx: &Tx, agent: &LockedAgent, with: TurnCut) -> Result<Value> {
    commands::expire_of_agent(tx, agent.id).await?;
    let requests = approvals::count_waiting(tx, agent).await?;
    let turns = turns::cut_open(tx, agent, with).await?;
    let ended = [("ended_turns", turns), ("withdrawn_approvals", requests)].into_iter();
    Ok(ended.filter(|(_, count)| *count > 0).map(|(what, count)| (what.to_owned(), json!(count))).collect())
}

/// Adds the change of the status to an audit entry.
fn with_status(status: Value, mut ended: Value) -> Value {
    ended["status"] = status;
    ended
}

/// Whether an agent at rest will start without a person: after a failure, or once its host is confirmed.
fn waits_to_start(agent: &agents::Model) -> bool {
    agent.restart_at.is_some() || is_withheld(agent)
}

fn is_withheld(agent: &agents::Model) -> bool {
    agent.status == AgentStatus::Error && agent.status_reason == Some(StatusReason::HostNotConfirmed)
}

/// Cancels the planned start of an agent at rest. Returns whether there was one.
pub(super) async fn cancel_start(tx: &Tx, agent: agents::Model) -> Result<bool> {
    let id = agent.id;
    if !waits_to_start(&agent) {
        return Ok(false);
    }
    let was_withheld = is_withheld(&agent);
    let mut agent = agent.into_active_model();
    if was_withheld {
        agent.status = Set(AgentStatus::Stopped);
        agent.status_changed_at = Set(Some(tx.now));
        clear_reason(&mut agent);
    }
    agent.restart_at = Set(None);
    RestartCounts::default().store(&mut agent);
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    Ok(true)
}

/// Clears the status reason, except that of a failed backup.
pub(super) fn clear_reason(agent: &mut agents::ActiveModel) {
    if agent.status_reason.as_ref() != &Some(StatusReason::BackupFailed) {
        agent.status_reason = Set(None);
        agent.status_detail = Set(None);
    }
}

/// Launches an agent at rest, unless it must wait for the confirmation of its host. Returns its status.
async fn launch_unless_withheld(tx: &Tx, agent: agents::Model) -> Result<AgentStatus> {
    if plans::is_withheld(tx, &agent).await? {
        plans::fail_until_confirmed(tx, agent.id).await?;
        return Ok(AgentStatus::Error);
    }
    Ok(apply_action(tx, agent, Action::Start, RestartCounts::default()).await?.status)
}

/// Performs the transition and enqueues the host's command, unless the agent is already in that state. `tries`: the
/// number of consecutive restarts to store.
///
/// # Errors
/// The state does not allow the action.
async fn apply_action(
    tx: &Tx,
    agent: agents::Model,
    action: Action,
    tries: RestartCounts,
) -> Result<LockedAgent> {
    let Transition::Move(status, command) = action.apply(agent.status)? else {
        return Ok(LockedAgent::from_row(&agent));
    };
    let is_launch = command == Command::Launch;
    let generation = agent.launch_generation + i64::from(is_launch);
    let revision =
        if is_launch { Some(revision_to_launch(tx, &agent).await?) } else { agent.launched_revision };
    let mut agent = agent.into_active_model();
    if is_launch {
        agent.started_at = Set(None);
        agent.container_id = Set(None);
    }
    if matches!(command, Command::Launch | Command::Stop) {
        clear_reason(&mut agent);
    }
    tries.store(&mut agent);
    agent.restart_at = Set(None);
    agent.status = Set(status);
    agent.status_changed_at = Set(Some(tx.now));
    agent.launch_generation = Set(generation);
    agent.launched_revision = Set(revision);
    agent.last_action = Set(Some(CommandKind::from(&command).as_str().to_owned()));
    agent.last_action_at = Set(Some(tx.now));
    agent.updated_at = Set(tx.now);
    let agent = LockedAgent::from_row(&agent.update(tx.connection()).await?);
    commands::enqueue(tx, agent.host(), &command);
    match action {
        // Normally, the previous launch was settled when its end was reported.
        Action::Start => {
            launches::record_start(tx, &agent).await?;
            reports::settle_launches(tx, &agent, agent.generation - 1, "it was started again").await?;
        }
        Action::Resume => turns::send_due(tx, &agent).await?,
        Action::Stop | Action::Pause => {}
    }
    Ok(agent)
}

/// The revision to launch with. An agent that was created in bulk gets its first one here.
async fn revision_to_launch(tx: &Tx, agent: &agents::Model) -> Result<i64> {
    if agent.revision > 0 {
        return Ok(agent.revision);
    }
    revisions::record_revisions(tx, std::slice::from_ref(agent), None).await?;
    revisions::current(tx, agent.id).await
}

fn record(tx: &Tx, operation: &'static str, id: AgentId, changes: Value) {
    audit::record(
        tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Agent, id: id.0, changes },
    );
}
