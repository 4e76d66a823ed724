//! Retention removes old lines from the start of a chain, up to a checkpoint, and leaves a signed tombstone in their
//! place. So the rest still verifies, and no one without the key can pass off a deletion as retention.
//!
//! Age is measured by the checkpoints: there are few, so the log itself need not be read. A clock that jumped would make
//! everything old at once. So nothing is removed while the checkpoints of all chains show a gap longer than
//! [`LONGEST_GAP`] within the time to keep, or just before it.
//!
//! Only signed times count: anyone who writes to the database could make recent lines look old. What removes lines, a
//! checkpoint or a tombstone, must bear a signature of ours.

use sea_orm::{ConnectionTrait, QueryResult};

use super::{
    database::STATED,
    seal::{begin_alone, sql, store},
    trust::{End, believed},
};
use crate::{
    base::{problem::Result, time::Timestamp},
    core::Core,
};

/// Lines removed per transaction.
const BATCH: i64 = 2_000;
const DAY: i64 = 86_400_000;
/// The longest gap between checkpoints that is put down to a quiet service, in milliseconds.
const LONGEST_GAP: i64 = 30 * DAY;

/// Removes lines older than the configured number of days. Returns the number of lines.
///
/// # Errors
/// The database can't be reached; lines already removed stay removed, and their tombstone stays.
pub async fn retain(core: &Core) -> Result<u64> {
    let days = core.config.audit.retention_days;
    if days == 0 || core.audit.key.is_none() {
        return Ok(0);
    }
    let now = core.clock.now();
    let kept = Timestamp(now.0 - i64::from(days) * DAY);
    for chain in due(core, (kept, now)).await? {
        tombstone(core, chain, (kept, now)).await?;
    }
    let mut removed = 0;
    for (chain, seq) in behind_tombstones(core).await? {
        removed += remove(core, chain, seq).await?;
    }
    Ok(removed)
}

/// The chains with checkpoints from before the time to keep; none if the clock can't be trusted.
async fn due(core: &Core, (kept, now): (Timestamp, Timestamp)) -> Result<Vec<i64>> {
    let old = "SELECT DISTINCT chain FROM audit_checkpoints WHERE at < $1 AND kind = 'CHECKPOINT'";
    let rows = core.db.all(old.to_owned(), vec![kept.0.into()]).await?;
    let chains: Vec<i64> = rows.iter().map(|row| row.try_get_by(0)).collect::<std::result::Result<_, _>>()?;
    let old = "SELECT MAX(at) FROM audit_checkpoints WHERE at < $1 AND kind = 'CHECKPOINT'";
    let Some(mut seen) = instant(core, old, vec![kept.0.into()]).await? else { return Ok(Vec::new()) };
    while seen < now.0 - LONGEST_GAP {
        let next = "SELECT MAX(at) FROM audit_checkpoints WHERE at > $1 AND at <= $2";
        let Some(next) = instant(core, next, vec![seen.into(), (seen + LONGEST_GAP).into()]).await? else {
            let after = Timestamp(seen);
            tracing::warn!(%after, "audit.retention_waits: the log has a gap of more than 30 days: did the clock jump?");
            return Ok(Vec::new());
        };
        seen = next;
    }
    Ok(chains)
}

async fn instant(core: &Core, sql: &str, values: Vec<sea_orm::Value>) -> Result<Option<i64>> {
    let row = core.db.one(sql.to_owned(), values).await?;
    Ok(row.map(|row| row.try_get_by(0)).transpose()?.flatten())
}

/// Signs a chain's tombstone, up to its last checkpoint before the first one to keep. Checkpoints dated in the future
/// keep nothing.
async fn tombstone(core: &Core, chain: i64, (kept, now): (Timestamp, Timestamp)) -> Result<()> {
    let Some(tx) = begin_alone(core).await? else { return Ok(()) };
    let last = format!(
        "SELECT {STATED} FROM audit_checkpoints WHERE chain = $1 AND kind = 'CHECKPOINT' AND at < $2 \
         AND seq < COALESCE((SELECT MIN(seq) FROM audit_checkpoints WHERE chain = $1 \
         AND kind = 'CHECKPOINT' AND at >= $2 AND at <= $3), $4) ORDER BY seq DESC LIMIT 1"
    );
    let values = vec![chain.into(), kept.0.into(), now.0.into(), i64::MAX.into()];
    let Some(row) = tx.query_one_raw(sql(core, &last, values)).await? else { return Ok(()) };
    let Some(End { seq, hash }) = vouched(core, chain, &row)? else { return Ok(()) };
    store(core, &tx, "TOMBSTONE", (chain, seq, &hash), now).await?;
    let older =
        "DELETE FROM audit_checkpoints WHERE chain = $1 AND (seq < $2 OR (seq = $2 AND kind = 'CHECKPOINT'))";
    tx.execute_raw(sql(core, older, vec![chain.into(), seq.into()])).await?;
    tx.commit().await?;
    tracing::info!(chain, seq, "audit.removed_up_to");
    Ok(())
}

/// The chains with lines behind their tombstone, from this round or an interrupted one.
async fn behind_tombstones(core: &Core) -> Result<Vec<(i64, i64)>> {
    let behind = format!(
        "SELECT {STATED}, chain FROM audit_checkpoints c WHERE c.kind = 'TOMBSTONE' AND EXISTS (SELECT 1 \
         FROM audit_log l WHERE COALESCE(l.organization_id, 0) = c.chain AND l.chain_seq <= c.seq)"
    );
    let mut behind_ours = Vec::new();
    for row in core.db.all(behind, vec![]).await? {
        let chain = row.try_get_by(6)?;
        behind_ours.extend(vouched(core, chain, &row)?.map(|end| (chain, end.seq)));
    }
    Ok(behind_ours)
}

/// What a statement is about, if we signed it, and with it its time. Nothing is removed because of another one.
fn vouched(core: &Core, chain: i64, row: &QueryResult) -> Result<Option<End>> {
    let belief = believed(chain, row, core.audit.trust.keys())?;
    Ok(belief
        .inspect_err(|why| tracing::error!(chain, why, "audit.retention_refused: a statement is not ours"))
        .ok())
}

/// Removes the lines up to a place, oldest first.
async fn remove(core: &Core, chain: i64, seq: i64) -> Result<u64> {
    let mut removed = 0;
    loop {
        let Some(tx) = begin_alone(core).await? else { return Ok(removed) };
        let query = format!(
            "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE COALESCE(organization_id, 0) = $1 \
             AND chain_seq <= $2 ORDER BY chain_seq LIMIT {BATCH})"
        );
        let now = tx.execute_raw(sql(core, &query, vec![chain.into(), seq.into()])).await?.rows_affected();
        tx.commit().await?;
        removed += now;
        if now < BATCH as u64 {
            return Ok(removed);
        }
    }
}
