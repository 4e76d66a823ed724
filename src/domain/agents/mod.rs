//! Agents: programs that the host of a server launches, in containers or as plain processes.
//!
//! This feature has the record, its states (`state.rs`), its lock (`locked.rs`), its assignments and its revisions. A
//! new agent is STOPPED; `launch` starts and stops it. Permissions: `agent.*`; an OPERATOR can do everything except
//! delete. Deleting an agent hides it and keeps its conversations. Every change of its settings or assignments writes a
//! revision (`revisions.rs`). `launch` also uses the rows, because it writes the columns about launches; no other
//! feature does.

pub mod assignments;
mod check;
mod edit;
pub(in crate::domain) mod entity;
mod events;
mod input;
mod instructions;
mod locked;
mod model;
mod queries;
pub mod reporter;
mod revert;
pub mod revisions;
pub(in crate::domain) mod rows;
pub mod session;
pub(in crate::domain) mod state;
mod status;
mod sync;

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, Set};
use serde_json::json;

pub use self::{
    edit::update,
    events::{Deleted, Edited, HasCredentials, Moved, Restored, SetAssignments},
    input::{CreateAgentInput, SetAgentsInput, UpdateAgentInput},
    instructions::instructions,
    locked::{
        ApprovalRules, LockedAgent, add_cost, clear_auth_failure, load_approval_rules, lock_agent,
        lock_agent_even_deleted, lock_present, session_limit, with_status,
    },
    model::{InheritingAgent, inheriting, inherits, store_usage},
    queries::{detail_sql, reason_sql},
    revert::revert,
    rows::{
        announce, announce_of_image, count_on_server, lock_all_agents, missing, record_backup, require_agent,
    },
    status::set_status_reason,
    sync::{mark_all, mark_for_spending, mark_for_sync, mark_inheriting},
};
use self::{
    entity::agents,
    rows::{finish, load, require_free_name},
};
pub(in crate::domain) use self::{
    model::provider,
    queries::{AWAY, HALTED},
};
use crate::{
    base::{
        enums::{AgentStatus, ChangeOp, RestartPolicy},
        ids::{AgentId, ImageId, ServerId},
        problem::{Code, Problem, Result, Violation},
    },
    core::{
        access::Scope,
        handlers::emit,
        store::{Tx, for_update},
    },
    domain::{
        orgs::{self, Limit},
        servers,
    },
};

/// Creates a stopped agent (specification, operation 13).
///
/// # Errors
/// `VALIDATION_FAILED` for a server or image that isn't the organization's, `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn create(scope: &Scope, new: CreateAgentInput, restarts: RestartPolicy) -> Result<AgentId> {
    let tx = scope.begin().await?;
    let image_id = require_server_and_image(&tx, new.server_id, new.image_id).await?;
    orgs::check_limit(&tx, Limit::Agents).await?;
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
        instructions: Set(new.instructions),
        status: Set(AgentStatus::Stopped),
        status_changed_at: Set(Some(tx.now)),
        model_override: Set(new.model_override),
        restart_policy: Set(restarts),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    }
    .insert(tx.connection())
    .await?;
    let id = agent.id;
    revisions::record_revisions(&tx, &[agent], None).await?;
    finish(tx, (ChangeOp::Created, "createAgent"), id, json!({ "name": name })).await?;
    Ok(id)
}

/// Deletes an agent that isn't running: hides it and frees its name.
///
/// # Errors
/// `NOT_FOUND`, `AGENT_ALREADY_RUNNING`.
pub async fn delete(scope: &Scope, id: AgentId) -> Result<()> {
    let tx = scope.begin().await?;
    let agent = load(&tx, id).await?;
    if !agent.status.is_at_rest() {
        return Err(Problem::new(Code::AgentAlreadyRunning, "Stop the agent first.")
            .with("status", agent.status.as_str()));
    }
    let (name, locked) = (agent.name.clone(), LockedAgent::from_row(&agent));
    let mut agent = agent.into_active_model();
    agent.archived_at = Set(Some(tx.now));
    agent.restart_at = Set(None);
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    emit(&tx, Deleted { agent: locked }).await?;
    finish(tx, (ChangeOp::Deleted, "deleteAgent"), id, json!({ "name": name })).await
}

/// Restores a deleted agent: it is stopped, and its channels are on again. Restoring it again does nothing.
///
/// # Errors
/// `NOT_FOUND`; `ARCHIVED` if its server has been deleted; `PLAN_LIMIT_REACHED`; `NAME_TAKEN` if another agent has its
/// name.
pub async fn restore(scope: &Scope, id: AgentId) -> Result<()> {
    let tx = scope.begin().await?;
    let any = || scope.find::<agents::Entity>().filter(agents::Column::Id.eq(id));
    let missing = || Problem::not_found("agent", id);
    let agent = any().one(tx.connection()).await?.ok_or_else(missing)?;
    if agent.archived_at.is_none() {
        return Ok(());
    }
    // Locking order: the server, the organization, the agent.
    if !servers::lock_existing(&tx, agent.server_id).await? {
        let detail = "The agent's server has been deleted. Create a new agent on another server.";
        return Err(Problem::new(Code::Archived, detail));
    }
    orgs::check_limit(&tx, Limit::Agents).await?;
    let agent = for_update(any()).one(tx.connection()).await?.ok_or_else(missing)?;
    if agent.archived_at.is_none() {
        return Ok(());
    }
    require_free_name(&tx, &agent.name, None).await?;
    let name = agent.name.clone();
    let mut agent = agent.into_active_model();
    agent.archived_at = Set(None);
    agent.status = Set(AgentStatus::Stopped);
    agent.status_changed_at = Set(Some(tx.now));
    agent.status_reason = Set(None);
    agent.status_detail = Set(None);
    agent.restart_at = Set(None);
    agent.updated_at = Set(tx.now);
    let agent = agent.update(tx.connection()).await?;
    emit(&tx, Restored { agent: id }).await?;
    // Its skills may have changed meanwhile.
    revisions::record_revisions(&tx, &[agent], None).await?;
    finish(tx, (ChangeOp::Updated, "restoreAgent"), id, json!({ "name": name })).await
}

/// Records the version of an agent's picture.
pub async fn set_avatar(tx: &Tx, id: AgentId, version: Option<i64>) -> Result<()> {
    let mut agent = load(tx, id).await?.into_active_model();
    agent.avatar_version = Set(version);
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}

/// Requires that the server and the image belong to the organization. Returns the image, or the default one.
async fn require_server_and_image(tx: &Tx, server: ServerId, image: Option<ImageId>) -> Result<ImageId> {
    let mut violations = Vec::new();
    if !servers::lock_existing(tx, server).await? {
        violations.push(Violation::unknown("/server_id", "server", server));
    }
    let image = match image {
        Some(image) if servers::image_is_usable(tx, image).await? => Some(image),
        Some(image) => {
            violations.push(Violation::unknown("/image_id", "image", image));
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
