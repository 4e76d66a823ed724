//! The order in which transactions lock records, so that they can't deadlock.
//!
//! ```text
//! organization ─► agents, by id ─► records of an agent, or inherited by all ─► `stored_bytes` (by triggers)
//! ```
//!
//! A change first locks the rows it counts or selects from, then the record. Decisions about an agent's work are made
//! under the lock of its row ([`agents::lock_agent`](super::agents::lock_agent)). Notices of incoming messages lock a
//! conversation without its agent, last of all (`ingest/writer.rs`).

use sea_orm::{ConnectionTrait, DbBackend, Value};

use super::queries;
use crate::{
    base::{
        enums::RecordKind,
        problem::{Problem, Result},
    },
    core::store::{
        Tx,
        sql::{OrgSql, RunSql as _},
    },
};

/// Locks an editable record until the transaction ends, after every row that a change of it may lock first. Does
/// nothing on SQLite, which has a single writer.
pub async fn lock_record(tx: &Tx, kind: RecordKind, id: i64) -> Result<()> {
    if tx.connection().get_database_backend() != DbBackend::Postgres {
        return Ok(());
    }
    match kind {
        RecordKind::Organization => return lock(tx, queries::ORGANIZATION, []).await,
        RecordKind::Agent | RecordKind::Channel => lock(tx, queries::ORGANIZATION, []).await?,
        // Agents inherit it, and their hosts report on it.
        RecordKind::ModelCredential => {
            lock(tx, queries::ORGANIZATION, []).await?;
            lock(tx, queries::ALL_AGENTS, []).await?;
        }
        RecordKind::Approval => lock(tx, queries::AGENT_OF_APPROVAL, [id.into()]).await?,
        RecordKind::Conversation => lock(tx, queries::AGENT_OF_CONVERSATION, [id.into()]).await?,
        _ => {}
    }
    let record =
        queries::record(kind).ok_or_else(|| Problem::internal(anyhow::anyhow!("{kind} can't be locked")))?;
    lock(tx, record, [id.into()]).await
}

async fn lock<const N: usize>(tx: &Tx, rows: OrgSql, values: [Value; N]) -> Result<()> {
    tx.query(rows, values.into()).await?;
    Ok(())
}
