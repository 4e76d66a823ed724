//! Backups of agents' homes. The files are on the agents' hosts; the rows have the author, the state and the result.
//!
//! - `schedule.rs`: scheduled backups. `reports.rs`: reports of hosts, and retention.
//!
//! Everything about an agent's backups is decided under the lock of its row, and an index allows only one pending
//! backup of an agent. Permissions: `agent.view` reads, `agent.edit` creates, restores and deletes.

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

/// The error of a pending backup or restore whose agent has left the server.
const MOVED: &str = "The agent was moved to another server before the host finished.";
/// The same for a server that has another machine.
const REPLACED: &str = "The server's machine was replaced before it finished.";
const REJOINED: &str = "The host rejoined before it finished.";
/// The same for a deleted agent.
const DELETED: &str = "The agent was deleted before its host finished.";

/// Backs up an agent's home. It may run meanwhile.
///
/// # Errors
/// `NOT_FOUND`; `ORGANIZATION_STOPPED`; `AGENT_NOT_RUNNING` for an agent that was never started; `CONFLICT` while
/// another backup of it is pending.
pub async fn back_up(scope: &Scope, agent: AgentId) -> Result<BackupId> {
    let tx = scope.begin().await?;
    orgs::require_going(&tx).await?;
    let agent = lock_agent(&tx, agent).await?;
    if agent.generation == 0 {
        let detail = "The agent was never started, so it has no home to back up.";
        return Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()));
    }
    if is_under_way(&tx, agent.id).await? {
        return Err(Problem::new(Code::Conflict, "A backup of this agent is already in progress."));
    }
    let id = begin_backup(&tx, &agent, BackupCause::Person).await?;
    record(&tx, "backupAgent", agent.id, json!({ "backup": [Value::Null, id] }));
    tx.commit().await?;
    Ok(id)
}

/// Restores the home of a stopped agent from a backup.
///
/// # Errors
/// `NOT_FOUND`; `ORGANIZATION_STOPPED`; `AGENT_ALREADY_RUNNING`; `CONFLICT` for a backup that is not complete or is on
/// another server, or while the agent is already being restored.
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
        return Err(Problem::new(Code::Conflict, "The agent is already being restored."));
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
/// `NOT_FOUND`; `CONFLICT` while it is being made or restored.
pub async fn delete(scope: &Scope, id: BackupId) -> Result<AgentId> {
    let tx = scope.begin().await?;
    let (agent, backup) = load(&tx, id).await?;
    let is_busy = backup.state == BackupState::Pending || backup.restore_state == Some(BackupState::Pending);
    if is_busy {
        return Err(Problem::new(Code::Conflict, "This backup is being made or restored."));
    }
    delete_backup(&tx, &agent, backup).await?;
    agents::announce(&tx, agent.id);
    record(&tx, "deleteBackup", agent.id, json!({ "backup": [id, Value::Null] }));
    tx.commit().await?;
    Ok(agent.id)
}

/// Fails the pending backups and restores on the server that the agent has left; a pending backup would block the next
/// one. Later reports of that host about the agent don't count, so it gets the command to delete the file of a backup
/// that it may have begun.
pub async fn agent_moved(tx: &Tx, moved: &Moved) -> Result<()> {
    let agent = &moved.agent;
    if !moved.has_other_server {
        return Ok(());
    }
    let pending = of_agent(tx, agent.id).filter(agent_backups::Column::State.eq(BackupState::Pending));
    for backup in pending.all(tx.connection()).await? {
        delete_file(tx, agent, &backup);
    }
    fail_of_agent(tx, agent, MOVED).await
}

/// Fails the pending backups and restores of an agent that is being deleted, because they would block new ones after
/// its restoration.
pub async fn agent_deleted(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    fail_of_agent(tx, agent, DELETED).await
}

/// Fails the pending backups and restores of a machine that was replaced. It may have received the commands, so they
/// are not sent to the new one.
pub async fn machine_replaced(tx: &Tx, server: ServerId) -> Result<()> {
    commands::expire_backups_of_server(tx, server).await?;
    fail_pending(tx, None, Some(server), REPLACED).await
}

/// Fails the pending backups and restores of a host that rejoins, because its journal has lost them.
pub async fn host_begins_again(tx: &Tx, server: ServerId) -> Result<()> {
    commands::expire_backups_of_server(tx, server).await?;
    fail_pending(tx, None, Some(server), REJOINED).await
}

async fn fail_of_agent(tx: &Tx, agent: &LockedAgent, why: &str) -> Result<()> {
    commands::expire_backups_of_agent(tx, agent.id).await?;
    fail_pending(tx, Some(agent.id), None, why).await
}

/// Fails the pending backups and restores of an agent, or of all agents on a server.
async fn fail_pending(tx: &Tx, agent: Option<AgentId>, server: Option<ServerId>, why: &str) -> Result<()> {
    for agent in queries::fail_pending(tx, agent, server, why).await? {
        agents::announce(tx, agent);
    }
    Ok(())
}

async fn begin_backup(tx: &Tx, agent: &LockedAgent, cause: BackupCause) -> Result<BackupId> {
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

/// Deletes a backup, and its file on the host.
async fn delete_backup(tx: &Tx, agent: &LockedAgent, backup: agent_backups::Model) -> Result<()> {
    if backup.state == BackupState::Done {
        delete_file(tx, agent, &backup);
    }
    backup.delete(tx.connection()).await?;
    Ok(())
}

/// Sends the host the command to delete a backup's file.
fn delete_file(tx: &Tx, agent: &LockedAgent, backup: &agent_backups::Model) {
    let host = Host { server: backup.server_id, agent: agent.id, generation: agent.generation };
    commands::enqueue(tx, host, &Command::Forget { backup_id: backup.id.0 });
}

/// Loads a backup, and locks its agent.
async fn load(tx: &Tx, id: BackupId) -> Result<(LockedAgent, agent_backups::Model)> {
    let missing = || Problem::not_found("backup", id);
    let found = || tx.scope.find::<agent_backups::Entity>().filter(agent_backups::Column::Id.eq(id));
    let agent = found().one(tx.connection()).await?.ok_or_else(missing)?.agent_id;
    let agent = agents::lock_agent(tx, agent).await?.ok_or_else(missing)?;
    // It may have changed before the agent was locked.
    let backup = found().one(tx.connection()).await?.ok_or_else(missing)?;
    Ok((agent, backup))
}

async fn lock_agent(tx: &Tx, id: AgentId) -> Result<LockedAgent> {
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
