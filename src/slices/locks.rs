//! The order in which transactions lock records, so that no two wait for each other.
//!
//! ```text
//! organization ─► agents, by id ─► what belongs to an agent, or is inherited by all ─► `stored_bytes` (by triggers)
//! ```
//!
//! A change locks what it counts in, or chooses from, before the record. What agents do is decided under the lock of the
//! agent's row ([`agents::lock_agent`](super::agents::lock_agent)).

use sea_orm::{ConnectionTrait, DbBackend};

use crate::{
    base::{
        enums::RecordKind,
        problem::{Problem, Result},
    },
    core::store::Tx,
};

/// The table of an editable record.
const fn table(kind: RecordKind) -> Option<&'static str> {
    Some(match kind {
        RecordKind::Agent => "agents",
        RecordKind::Approval => "approvals",
        RecordKind::Channel => "channels",
        RecordKind::Contact => "contacts",
        RecordKind::Conversation => "conversations",
        RecordKind::Credential => "credentials",
        RecordKind::Image => "images",
        RecordKind::McpServer => "mcp_servers",
        RecordKind::ModelCredential => "model_credentials",
        RecordKind::Server => "servers",
        RecordKind::ServiceToken => "service_tokens",
        RecordKind::Skill => "skills",
        _ => return None,
    })
}

/// Locks an editable record until the transaction ends, after everything that a change of it may lock before it. SQLite
/// has a single writer anyway.
///
/// # Errors
/// The database is unreachable.
pub async fn lock_record(tx: &Tx, kind: RecordKind, id: i64) -> Result<()> {
    if tx.connection().get_database_backend() != DbBackend::Postgres {
        return Ok(());
    }
    match kind {
        RecordKind::Organization => return lock_organization(tx).await,
        RecordKind::Agent | RecordKind::Channel => lock_organization(tx).await?,
        // Agents inherit it, and their hosts report of it.
        RecordKind::ModelCredential => {
            lock_organization(tx).await?;
            lock(
                tx,
                "agents WHERE organization_id = $1 AND organization_id = $2 ORDER BY id",
                tx.scope.org.0,
            )
            .await?;
        }
        RecordKind::Approval => lock_agent_of(tx, "approvals", id).await?,
        RecordKind::Conversation => lock_agent_of(tx, "conversations", id).await?,
        _ => {}
    }
    let table = table(kind).ok_or_else(|| Problem::internal(anyhow::anyhow!("{kind} can't be locked")))?;
    lock(tx, &format!("{table} WHERE organization_id = $1 AND id = $2"), id).await
}

async fn lock_organization(tx: &Tx) -> Result<()> {
    lock(tx, "organizations WHERE id = $1 AND id = $2", tx.scope.org.0).await
}

async fn lock_agent_of(tx: &Tx, table: &str, id: i64) -> Result<()> {
    let agent = format!("SELECT agent_id FROM {table} WHERE organization_id = $1 AND id = $2");
    lock(tx, &format!("agents WHERE organization_id = $1 AND id = ({agent})"), id).await
}

/// NO KEY, so that rows which only refer to the record can still be written.
async fn lock(tx: &Tx, rows: &str, id: i64) -> Result<()> {
    let sql = format!("SELECT 1 FROM {rows} FOR NO KEY UPDATE");
    tx.rows(&sql, vec![tx.scope.org.into(), id.into()]).await?;
    Ok(())
}
