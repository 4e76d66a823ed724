//! What hosts say about backups, and how many are kept. A report counts in whatever launch the agent is meanwhile.

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Set};

use super::{entity::agent_backups, forget, forget_file, of_agent, queries::retention};
use crate::{
    base::{
        bounds,
        enums::BackupState,
        ids::{AgentId, BackupId},
        plain::{self, bounded},
        problem::Result,
    },
    core::store::Tx,
    domain::agents::{self, LockedAgent, reporter::Reporter},
};

/// How a host's backup ended.
#[derive(Clone, Debug)]
pub struct BackedUp {
    /// The size of the file.
    pub bytes: Option<i64>,
    /// Its SHA-256, in hexadecimal.
    pub sha256: Option<String>,
    pub error: Option<String>,
}

/// A backup is complete, or failed. Older ones go.
pub async fn backed_up(tx: &Tx, from: &Reporter, id: BackupId, end: BackedUp) -> Result<()> {
    let Some(agent) = agents::lock_agent(tx, from.agent).await? else { return Ok(()) };
    let found = of_agent(tx, agent.id).filter(agent_backups::Column::Id.eq(id));
    let found = found.filter(agent_backups::Column::ServerId.eq(from.server)).one(tx.connection()).await?;
    let Some(backup) = found else { return Ok(()) };
    if backup.state != BackupState::Pending {
        if backup.state == BackupState::Failed && end.error.is_none() {
            // It was given up meanwhile, and its file is of no use.
            forget_file(tx, &agent, &backup);
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
        let error = words(end.error.as_deref().unwrap_or("The host gave no digest of the file."));
        tracing::warn!(agent = agent.id.0, backup = id.0, error, "backup.failed");
        agents::record_backup(tx, agent.id, Err(&error)).await?;
        backup.state = Set(BackupState::Failed);
        backup.error = Set(Some(error));
    }
    backup.update(tx.connection()).await?;
    trim(tx, &agent).await?;
    agents::announce(tx, agent.id);
    Ok(())
}

/// A home is as in the backup, or could not be restored.
pub async fn restored(tx: &Tx, from: &Reporter, id: BackupId, error: Option<String>) -> Result<()> {
    let found = of_agent(tx, from.agent).filter(agent_backups::Column::Id.eq(id));
    let found = found.filter(agent_backups::Column::RestoreState.eq(BackupState::Pending));
    let found = found.filter(agent_backups::Column::ServerId.eq(from.server)).one(tx.connection()).await?;
    let Some(backup) = found else { return Ok(()) };
    let at = from.time(tx, backup.restored_at.unwrap_or(backup.created_at));
    let mut backup = backup.into_active_model();
    backup.restore_state = Set(Some(if error.is_none() { BackupState::Done } else { BackupState::Failed }));
    backup.restore_error = Set(error.as_deref().map(words));
    backup.restored_at = Set(Some(at));
    backup.update(tx.connection()).await?;
    agents::announce(tx, from.agent);
    Ok(())
}

fn words(text: &str) -> String {
    bounded(&plain::one_line(text), bounds::REASON)
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes what is more than the agent keeps, and all but the newest 20 that failed.
async fn trim(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    let mut old = newest(tx, agent.id, BackupState::Failed).offset(20).all(tx.connection()).await?;
    if let Some(kept) = kept(tx, agent.id).await? {
        let done = newest(tx, agent.id, BackupState::Done).offset(kept);
        old.extend(done.all(tx.connection()).await?);
    }
    for backup in old {
        // What is being restored is needed a moment longer.
        if backup.restore_state != Some(BackupState::Pending) {
            forget(tx, agent, backup).await?;
        }
    }
    Ok(())
}

fn newest(tx: &Tx, agent: AgentId, state: BackupState) -> sea_orm::Select<agent_backups::Entity> {
    let found = of_agent(tx, agent).filter(agent_backups::Column::State.eq(state));
    found.order_by_desc(agent_backups::Column::Id).limit(u64::from(bounds::BATCH))
}

/// How many complete ones the agent keeps: seven, unless it or its organization says. None: all.
async fn kept(tx: &Tx, agent: AgentId) -> Result<Option<u64>> {
    let Some(retention) = retention(tx, agent).await? else { return Ok(None) };
    let kept = retention.backups.unwrap_or(7).max(1).unsigned_abs();
    Ok((!retention.is_frozen).then_some(kept))
}
