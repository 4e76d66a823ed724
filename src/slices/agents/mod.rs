//! Agents: containers launched on a server.
//!
//! For the states see `state.rs`. A new agent is STOPPED; starting it writes the new state and the command for
//! the host in one transaction. Permissions: `agent.*`; an OPERATOR can do everything except delete. Commands
//! go to hosts through the outbox. Deleting hides an agent and keeps its conversations. Every change of what an agent
//! is leaves a revision (`revisions.rs`).

pub mod assignments;
mod check;
mod edit;
mod entity;
pub mod graphql;
mod input;
pub mod plans;
mod record;
pub mod reports;
mod revert;
pub mod revisions;
pub mod session;
mod standing;
mod state;
mod status;

use muster_protocol::Command;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, QueryOrder, Set,
    sea_query::Expr,
};
use serde_json::json;

pub use self::{
    edit::update,
    input::{CreateAgentInput, SetAgentsInput, UpdateAgentInput},
    record::announce_of_image,
    revert::revert,
    standing::{Limits, Standing, authorized, limits, present, session_limit, spent, standing, with_status},
    status::{end_late_starts, explain, fail},
};
use self::{
    entity::agents,
    state::{Action, Step},
};
use crate::{
    base::{
        enums::{AgentStatus, ChangeOp, OutboxKind, RecordKind},
        ids::{AgentId, ImageId, ServerId},
        problem::{Code, Problem, Result, Violation},
    },
    core::{
        Event,
        access::Scope,
        audit,
        outbox::{self, Host},
        store::{Tx, held},
    },
    slices::{
        orgs::{self, Limit},
        servers, turns,
    },
};

/// Creates a stopped agent (specification, operation 13).
///
/// # Errors
/// `VALIDATION_FAILED` for a server or image that isn't the organization's, `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn create(scope: &Scope, new: CreateAgentInput) -> Result<AgentId> {
    let tx = scope.begin().await?;
    let image_id = require_home(&tx, new.server_id, new.image_id).await?;
    orgs::check_limit(&tx, Limit::Agents, living(scope)).await?;
    let name = new.name.trim().to_owned();
    require_free_name(&tx, &name, None).await?;
    let agent = agents::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        server_id: Set(new.server_id),
        image_id: Set(image_id),
        name: Set(name.clone()),
        description: Set(new.description),
        role: Set(new.role),
        status: Set(AgentStatus::Stopped),
        status_changed_at: Set(Some(tx.now)),
        model_override: Set(new.model_override),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    }
    .insert(tx.connection())
    .await?;
    let id = agent.id;
    revisions::follow(&tx, &[agent], None).await?;
    finish(tx, (ChangeOp::Created, "createAgent"), id, json!({ "name": name })).await?;
    Ok(id)
}

/// Launches an agent (specification, operation 14). It is SPAWNING right away; the host does the rest.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_ALREADY_RUNNING`, `ORGANIZATION_STOPPED`.
pub async fn start(scope: &Scope, id: AgentId) -> Result<()> {
    act(scope, id, Action::Start, "startAgent").await
}

/// Stops an agent.
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

async fn act(scope: &Scope, id: AgentId, action: Action, operation: &'static str) -> Result<()> {
    let mut tx = scope.begin().await?;
    if matches!(action, Action::Start | Action::Resume) {
        orgs::require_going(&tx).await?;
    }
    let agent = load(&tx, id).await?;
    let Step::Move(status, command) = action.apply(agent.status)? else { return Ok(()) };
    let was = agent.status;
    let generation = agent.launch_generation + i64::from(command == Command::Launch);
    let revision = if command == Command::Launch { launched(&tx, &agent).await? } else { 0 };
    let mut agent = agent.into_active_model();
    if command == Command::Launch {
        agent.launched_revision = Set(Some(revision));
        agent.started_at = Set(None);
        agent.container_id = Set(None);
    }
    if matches!(command, Command::Launch | Command::Stop) {
        agent.status_reason = Set(None);
        agent.status_detail = Set(None);
    }
    if command == Command::Stop {
        outbox::overtake(&tx, id).await?;
    }
    agent.status = Set(status);
    agent.status_changed_at = Set(Some(tx.now));
    agent.launch_generation = Set(generation);
    agent.last_action = Set(Some(OutboxKind::from(&command).as_str().to_owned()));
    agent.last_action_at = Set(Some(tx.now));
    agent.updated_at = Set(tx.now);
    let agent = Standing::of(&agent.update(tx.connection()).await?);
    outbox::enqueue(&tx, agent.host(), &command);
    match action {
        // Normally the last launch was settled when its end was reported.
        Action::Start => {
            reports::settle(&mut tx, &agent, agent.generation - 1, "it was started again").await?;
        }
        Action::Resume => turns::send_due(&tx, &agent).await?,
        Action::Stop | Action::Pause => {}
    }
    finish(tx, (ChangeOp::Updated, operation), id, json!({ "status": [was, status] })).await
}

/// The revision to launch with. An agent that was made in bulk gets its first one now.
async fn launched(tx: &Tx, agent: &agents::Model) -> Result<i64> {
    if agent.revision > 0 {
        return Ok(agent.revision);
    }
    revisions::follow(tx, std::slice::from_ref(agent), None).await?;
    revisions::current(tx, agent.id).await
}

/// Deletes an agent that isn't running: hides it and frees its name.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_ALREADY_RUNNING`.
pub async fn delete(scope: &Scope, id: AgentId) -> Result<()> {
    let tx = scope.begin().await?;
    let agent = load(&tx, id).await?;
    if !matches!(agent.status, AgentStatus::Stopped | AgentStatus::Error) {
        return Err(Problem::new(Code::AgentAlreadyRunning, "Stop the agent first.")
            .with("status", agent.status.as_str()));
    }
    let name = agent.name.clone();
    let mut agent = agent.into_active_model();
    agent.archived_at = Set(Some(tx.now));
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    crate::slices::channels::deactivate_for_archived_agent(&tx, id).await?;
    turns::abandon(&tx, id).await?;
    finish(tx, (ChangeOp::Deleted, "deleteAgent"), id, json!({ "name": name })).await
}

/// Records the version of an agent's picture.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn set_avatar(tx: &mut Tx, id: AgentId, version: Option<i64>) -> Result<()> {
    let mut agent = load(tx, id).await?.into_active_model();
    agent.avatar_version = Set(version);
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}

/// Marks agents for synchronization and tells the hosts of the running ones. Whoever changes what an agent is calls
/// this after the change, so it is also where the agents' revisions are written, a fixed number of statements for each
/// 200 agents.
///
/// # Errors
/// The database rejects a statement.
pub async fn mark_for_sync(tx: &mut Tx, ids: &[AgentId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = living(&tx.scope).filter(agents::Column::Id.is_in(ids.iter().copied()));
    // Always lock in the same order, so that two calls can't deadlock.
    let found = found.order_by_asc(agents::Column::Id);
    let found = held(found).all(tx.connection()).await?;
    let marked = tx.scope.update::<agents::Entity>();
    let marked = marked.filter(agents::Column::Id.is_in(found.iter().map(|agent| agent.id)));
    let marked = marked.col_expr(agents::Column::SyncPending, Expr::value(true));
    let version = Expr::cust("sync_version + 1");
    let marked = marked.col_expr(agents::Column::SyncVersion, version);
    let marked = marked.col_expr(agents::Column::UpdatedAt, Expr::value(tx.now));
    marked.exec(tx.connection()).await?;
    revisions::follow(tx, &found, None).await?;
    for agent in found {
        if matches!(agent.status, AgentStatus::Spawning | AgentStatus::Running | AgentStatus::Paused) {
            outbox::enqueue(tx, host_of(&agent), &Command::Sync);
        }
        announce(tx, agent.id);
    }
    Ok(())
}

/// Tells subscribers that the agent has changed.
pub fn announce(tx: &Tx, id: AgentId) {
    tx.announce(Event {
        org: tx.scope.org,
        kind: RecordKind::Agent,
        id: id.0,
        op: ChangeOp::Updated,
        of: None,
    });
}

fn host_of(agent: &agents::Model) -> Host {
    Host { server: agent.server_id, agent: agent.id, generation: agent.launch_generation }
}

/// The ids that the organization doesn't have, or has deleted.
///
/// # Errors
/// The database is unreachable.
pub async fn missing(tx: &Tx, ids: &[AgentId]) -> Result<Vec<AgentId>> {
    let found =
        living(&tx.scope).filter(agents::Column::Id.is_in(ids.iter().copied())).all(tx.connection()).await?;
    Ok(ids.iter().copied().filter(|id| !found.iter().any(|agent| agent.id == *id)).collect())
}

/// Whether the agent exists. If so, it can't be deleted before the transaction ends.
///
/// # Errors
/// The database is unreachable.
pub async fn hold(tx: &Tx, id: AgentId) -> Result<bool> {
    Ok(held(living(&tx.scope).filter(agents::Column::Id.eq(id))).one(tx.connection()).await?.is_some())
}

/// Counts the agents on a server.
///
/// # Errors
/// The database is unreachable.
pub async fn count_on_server(tx: &Tx, server: ServerId) -> Result<u64> {
    Ok(living(&tx.scope).filter(agents::Column::ServerId.eq(server)).count(tx.connection()).await?)
}

fn living(scope: &Scope) -> sea_orm::Select<agents::Entity> {
    scope.find::<agents::Entity>().filter(agents::Column::ArchivedAt.is_null())
}

/// Loads the agent and locks it until the transaction ends, so that of two actions only one can win.
async fn load(tx: &Tx, id: AgentId) -> Result<agents::Model> {
    find(tx, id).await?.ok_or_else(|| Problem::not_found("agent", id))
}

/// The same, for the service's own work: a deleted agent is nothing to tell anybody about.
async fn find(tx: &Tx, id: AgentId) -> Result<Option<agents::Model>> {
    Ok(held(living(&tx.scope).filter(agents::Column::Id.eq(id))).one(tx.connection()).await?)
}

/// The image to run from. Both it and the server must belong to the organization.
async fn require_home(tx: &Tx, server: ServerId, image: Option<ImageId>) -> Result<ImageId> {
    let mut violations = Vec::new();
    if !servers::hold(tx, server).await? {
        violations.push(Violation::at("/server_id", "NOT_FOUND", format!("There is no server {server}.")));
    }
    let image = match image {
        Some(image) if servers::image_is_usable(tx, image).await? => Some(image),
        Some(image) => {
            violations.push(Violation::at("/image_id", "NOT_FOUND", format!("There is no image {image}.")));
            None
        }
        None => orgs::default_image(tx).await?,
    };
    match image {
        Some(image) if violations.is_empty() => Ok(image),
        Some(_) => Err(Problem::invalid(violations)),
        None => {
            if violations.is_empty() {
                let detail = "`image_id` is required: the organization has no default image.";
                violations.push(Violation::at("/image_id", "REQUIRED", detail));
            }
            Err(Problem::invalid(violations))
        }
    }
}

async fn require_free_name(tx: &Tx, name: &str, except: Option<AgentId>) -> Result<()> {
    let mut same = living(&tx.scope).filter(agents::Column::Name.eq(name));
    if let Some(id) = except {
        same = same.filter(agents::Column::Id.ne(id));
    }
    if same.count(tx.connection()).await? == 0 { Ok(()) } else { Err(Problem::name_taken("agent", name)) }
}

async fn finish(
    tx: Tx,
    (op, operation): (ChangeOp, &'static str),
    id: AgentId,
    changes: serde_json::Value,
) -> Result<()> {
    audit::record(&tx, audit::Entry { operation, op, kind: RecordKind::Agent, id: id.0, changes });
    tx.commit().await
}
