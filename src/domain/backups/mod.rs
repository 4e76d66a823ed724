//! Backups of agents' homes. The files are on the agents' hosts; here is what there is, who wanted it, and how it went.
//!
//! - `schedule.rs`: which agents are due. `reports.rs`: what hosts say, and how many are kept.
//!
//! Everything about an agent's backups is decided while its row is held, and an index lets one at most be under way.
//! Permissions: `agent.view` reads, `agent.edit` makes, restores and deletes.

mod entity;
mod queries;
pub mod reports;
mod schedule;

use muster_protocol::Command;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, ModelTrait, NotSet, PaginatorTrait, QueryFilter, Set,
};
use serde_json::{Value, json};

use self::entity::agent_backups;
pub use self::schedule::schedule_due;
use crate::{
    base::{
        enums::{BackupCause, BackupState, ChangeOp, RecordKind},
        ids::{AgentId, BackupId, ServerId},
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, audit, store::Tx},
    domain::{
        agents::{self, LockedAgent, Moved},
        commands::{self, Host},
        orgs,
        versions::Author,
    },
};

/// What is said of those of an agent that has left their server.
const MOVED: &str = "The agent was moved to another server before the host had done this.";
/// What is said of those of a server that has another machine.
const REPLACED: &str = "The server's machine was replaced before it had done this.";
const BEGUN_AGAIN: &str = "The host began again before it had done this.";
/// What is said of those of an agent that was deleted.
const DELETED: &str = "The agent was deleted before its host had done this.";

/// Backs up an agent's home. It may run meanwhile.
///
/// # Errors
/// `NOT_FOUND`; `ORGANIZATION_STOPPED`; `AGENT_NOT_RUNNING` for an agent that was never started; `CONFLICT` while a backup of
/// it is under way.
pub async fn back_up(scope: &Scope, agent: AgentId) -> Result<BackupId> {
    let tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    let agent = held(&tx, agent).await?;
    if agent.generation == 0 {
        let detail = "The agent was never started, so it has no home to back up.";
        return Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()));
    }
    if is_under_way(&tx, agent.id).await? {
        return Err(Problem::new(Code::Conflict, "A backup of this agent is under way already."));
    }
    let id = begin(&tx, &agent, BackupCause::Person).await?;
    record(&tx, "backupAgent", agent.id, json!({ "backup": [Value::Null, id] }));
    tx.commit().await?;
    Ok(id)
}

/// Makes the home of a stopped agent what it was in a backup.
///
/// # Errors
/// `NOT_FOUND`; `ORGANIZATION_STOPPED`; `AGENT_ALREADY_RUNNING`; `CONFLICT` for a backup that is not complete or is on another
/// server, and while the agent is being restored already.
pub async fn restore(scope: &Scope, id: BackupId) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    let (agent, backup) = load(&tx, id).await?;
    if !agent.status.is_at_rest() {
        let detail = "Stop the agent first: its home is replaced.";
        return Err(Problem::new(Code::AgentAlreadyRunning, detail).with("status", agent.status.as_str()));
    }
    let sha256 = backup.sha256.clone().filter(|_| backup.state == BackupState::Done);
    let sha256 = sha256.ok_or_else(|| Problem::new(Code::Conflict, "This backup is not complete."))?;
    if backup.server_id != agent.server {
        let detail = "This backup is on another server, where the agent ran when it was made.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    if is_restoring(&tx, agent.id).await? {
        return Err(Problem::new(Code::Conflict, "The agent is being restored already."));
    }
    let mut backup = backup.into_active_model();
    backup.restore_state = Set(Some(BackupState::Pending));
    backup.restore_error = Set(None);
    backup.restored_at = Set(Some(tx.now));
    backup.update(tx.connection()).await?;
    commands::enqueue(&tx, agent.host(), &Command::Restore { backup_id: id.0, sha256 });
    agents::announce(&tx, agent.id);
    record(&tx, "restoreBackup", agent.id, json!({ "restored_from": [Value::Null, id] }));
    tx.commit().await
}

/// Deletes a backup, and its file on the host.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` while it is made or restored.
pub async fn delete(scope: &Scope, id: BackupId) -> Result<AgentId> {
    let tx = scope.begin().await?;
    let (agent, backup) = load(&tx, id).await?;
    let is_busy = backup.state == BackupState::Pending || backup.restore_state == Some(BackupState::Pending);
    if is_busy {
        return Err(Problem::new(Code::Conflict, "This backup is being made or restored."));
    }
    forget(&tx, &agent, backup).await?;
    agents::announce(&tx, agent.id);
    record(&tx, "deleteBackup", agent.id, json!({ "backup": [id, Value::Null] }));
    tx.commit().await?;
    Ok(agent.id)
}

/// Fails what waits for the host of the server that the agent has left: one backup at most is under way, so it would keep
/// the next one waiting. What that host reports about the agent counts no longer, so it is told now to remove the file of a backup
/// that it may have begun.
pub async fn agent_moved(tx: &Tx, moved: &Moved) -> Result<()> {
    let agent = &moved.agent;
    if !moved.has_other_server {
        return Ok(());
    }
    let pending = of_agent(tx, agent.id).filter(agent_backups::Column::State.eq(BackupState::Pending));
    for backup in pending.all(tx.connection()).await? {
        forget_file(tx, agent, &backup);
    }
    fail(tx, agent, MOVED).await
}

/// Fails what waits for the host of an agent that is being deleted: the agent can be restored, and would wait for it.
pub async fn agent_deleted(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    fail(tx, agent, DELETED).await
}

/// Fails what the machine of a server was to do, which another has replaced: it may have had the commands already, so no one
/// would do it any more.
pub async fn machine_replaced(tx: &Tx, server: ServerId) -> Result<()> {
    commands::expire_backups_of_server(tx, server).await?;
    fail_pending(tx, None, Some(server), REPLACED).await
}

/// The server's host begins again: what was to be done with homes fails, since its journal knows nothing of it.
pub async fn host_begins_again(tx: &Tx, server: ServerId) -> Result<()> {
    commands::expire_backups_of_server(tx, server).await?;
    fail_pending(tx, None, Some(server), BEGUN_AGAIN).await
}

async fn fail(tx: &Tx, agent: &LockedAgent, why: &str) -> Result<()> {
    commands::expire_backups_of_agent(tx, agent.id).await?;
    fail_pending(tx, Some(agent.id), None, why).await
}

/// Fails what is under way of an agent, or of all agents of a server.
async fn fail_pending(tx: &Tx, agent: Option<AgentId>, server: Option<ServerId>, why: &str) -> Result<()> {
    for agent in queries::fail_pending(tx, agent, server, why).await? {
        agents::announce(tx, agent);
    }
    Ok(())
}

/// Begins a backup.
async fn begin(tx: &Tx, agent: &LockedAgent, cause: BackupCause) -> Result<BackupId> {
    let author = Author::from_caller(tx);
    let backup = agent_backups::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        agent_id: Set(agent.id),
        server_id: Set(agent.server),
        cause: Set(cause),
        state: Set(BackupState::Pending),
        bytes: Set(None),
        sha256: Set(None),
        error: Set(None),
        author_kind: Set(author.kind),
        author_id: Set(author.id),
        author_name: Set(author.name),
        created_at: Set(tx.now),
        ended_at: Set(None),
        restore_state: Set(None),
        restore_error: Set(None),
        restored_at: Set(None),
    };
    let id = backup.insert(tx.connection()).await?.id;
    commands::enqueue(tx, agent.host(), &Command::Backup { backup_id: id.0 });
    agents::announce(tx, agent.id);
    Ok(id)
}

/// Removes a backup here, and its file there.
async fn forget(tx: &Tx, agent: &LockedAgent, backup: agent_backups::Model) -> Result<()> {
    if backup.state == BackupState::Done {
        forget_file(tx, agent, &backup);
    }
    backup.delete(tx.connection()).await?;
    Ok(())
}

/// Has its host remove a backup's file.
fn forget_file(tx: &Tx, agent: &LockedAgent, backup: &agent_backups::Model) {
    let host = Host { server: backup.server_id, agent: agent.id, generation: agent.generation };
    commands::enqueue(tx, host, &Command::Forget { backup_id: backup.id.0 });
}

/// A backup and its agent, held.
async fn load(tx: &Tx, id: BackupId) -> Result<(LockedAgent, agent_backups::Model)> {
    let missing = || Problem::not_found("backup", id);
    let found = || tx.scope.find::<agent_backups::Entity>().filter(agent_backups::Column::Id.eq(id));
    let of = found().one(tx.connection()).await?.ok_or_else(missing)?.agent_id;
    let agent = agents::lock_agent(tx, of).await?.ok_or_else(missing)?;
    // It may have changed until the agent was held.
    let backup = found().one(tx.connection()).await?.ok_or_else(missing)?;
    Ok((agent, backup))
}

async fn held(tx: &Tx, id: AgentId) -> Result<LockedAgent> {
    agents::lock_agent(tx, id).await?.ok_or_else(|| Problem::not_found("agent", id))
}

async fn is_under_way(tx: &Tx, agent: AgentId) -> Result<bool> {
    let found = of_agent(tx, agent).filter(agent_backups::Column::State.eq(BackupState::Pending));
    Ok(found.count(tx.connection()).await? > 0)
}

async fn is_restoring(tx: &Tx, agent: AgentId) -> Result<bool> {
    let found = of_agent(tx, agent).filter(agent_backups::Column::RestoreState.eq(BackupState::Pending));
    Ok(found.count(tx.connection()).await? > 0)
}

fn of_agent(tx: &Tx, agent: AgentId) -> sea_orm::Select<agent_backups::Entity> {
    tx.scope.find::<agent_backups::Entity>().filter(agent_backups::Column::AgentId.eq(agent))
}

fn record(tx: &Tx, operation: &'static str, agent: AgentId, changes: Value) {
    let (op, kind) = (ChangeOp::Updated, RecordKind::Agent);
    audit::record(tx, audit::Entry { operation, op, kind, id: agent.0, changes });
}
