//! Reports of hosts about backups, and retention. A report counts regardless of the agent's current launch.

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Set};

use super::{delete_backup, delete_file, entity::agent_backups, of_agent, queries::retention};
use crate::{
    base::{
        bounds,
        enums::BackupState,
        ids::{AgentId, BackupId},
        plain::truncated_line,
        problem::Result,
    },
    core::store::Tx,
    domain::agents::{self, LockedAgent, reporter::Reporter},
};

/// The result of a backup, as its host reports it.
#[derive(Clone, Debug)]
pub struct BackedUp {
    /// The size of the file.
    pub bytes: Option<i64>,
    /// Its SHA-256, in hexadecimal.
    pub sha256: Option<String>,
    pub error: Option<String>,
}

/// A backup is complete or has failed. Deletes old ones.
pub async fn backed_up(tx: &Tx, from: &Reporter, id: BackupId, end: BackedUp) -> Result<()> {
    let Some(agent) = agents::lock_agent(tx, from.agent).await? else { return Ok(()) };
    let found = of_agent(tx, agent.id).filter(agent_backups::Column::Id.eq(id));
    let found = found.filter(agent_backups::Column::ServerId.eq(from.server)).one(tx.connection()).await?;
    let Some(backup) = found else { return Ok(()) };
    if backup.state != BackupState::Pending {
        if backup.state == BackupState::Failed && end.error.is_none() {
            // It was given up meanwhile, so its file is useless.
            delete_file(tx, &agent, &backup);
        }
        return Ok(());
    }
    let at = from.time(tx, backup.created_at);
    let sha256 = end.sha256.filter(|sha256| is_digest(sha256) && end.error.is_none());
    let mut backup = backup.into_active_model();
    backup.ended_at = Set(Some(at));
    if sha256.is_some() {
        backup.state = Set(BackupState::Done);
        backup.bytes = Set(end.bytes.map(|bytes| bytes.max(0)));
        backup.sha256 = Set(sha256);
        agents::record_backup(tx, agent.id, Ok(at)).await?;
    } else {
        let error = readable_error(end.error.as_deref().unwrap_or("The host gave no digest of the file."));
        tracing::warn!(org = tx.scope.org.0, agent = agent.id.0, backup = id.0, error, "backup.failed");
        agents::record_backup(tx, agent.id, Err(&error)).await?;
        backup.state = Set(BackupState::Failed);
        backup.error = Set(Some(error));
    }
    backup.update(tx.connection()).await?;
    delete_old(tx, &agent).await?;
    agents::announce(tx, agent.id);
    Ok(())
}

/// A restore is complete or has failed.
pub async fn restored(tx: &Tx, from: &Reporter, id: BackupId, error: Option<String>) -> Result<()> {
    let found = of_agent(tx, from.agent).filter(agent_backups::Column::Id.eq(id));
    let found = found.filter(agent_backups::Column::RestoreState.eq(BackupState::Pending));
    let found = found.filter(agent_backups::Column::ServerId.eq(from.server)).one(tx.connection()).await?;
    let Some(backup) = found else { return Ok(()) };
    let at = from.time(tx, backup.restored_at.unwrap_or(backup.created_at));
    let mut backup = backup.into_active_model();
    backup.restore_state = Set(Some(if error.is_none() { BackupState::Done } else { BackupState::Failed }));
    backup.restore_error = Set(error.as_deref().map(readable_error));
    backup.restored_at = Set(Some(at));
    backup.update(tx.connection()).await?;
    agents::announce(tx, from.agent);
    Ok(())
}

fn readable_error(text: &str) -> String {
    truncated_line(text, bounds::REASON)
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Deletes the complete backups beyond the agent's retention, and all failed ones but the newest 20.
async fn delete_old(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    let mut old = newest_in_state(tx, agent.id, BackupState::Failed).offset(20).all(tx.connection()).await?;
    if let Some(kept) = retained_count(tx, agent.id).await? {
        let done = newest_in_state(tx, agent.id, BackupState::Done).offset(kept);
        old.extend(done.all(tx.connection()).await?);
    }
    for backup in old {
        // One that is being restored is deleted later.
        if backup.restore_state != Some(BackupState::Pending) {
            delete_backup(tx, agent, backup).await?;
        }
    }
    Ok(())
}

fn newest_in_state(tx: &Tx, agent: AgentId, state: BackupState) -> sea_orm::Select<agent_backups::Entity> {
    let found = of_agent(tx, agent).filter(agent_backups::Column::State.eq(state));
    found.order_by_desc(agent_backups::Column::Id).limit(u64::from(bounds::BATCH))
}

/// How many complete backups of the agent are kept: by default, seven. None: all.
async fn retained_count(tx: &Tx, agent: AgentId) -> Result<Option<u64>> {
    let Some(retention) = retention(tx, agent).await? else { return Ok(None) };
    let kept = retention.backups.unwrap_or(7).max(1).unsigned_abs();
    Ok((!retention.is_frozen).then_some(kept))
}
