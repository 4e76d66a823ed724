//! Retention removes old lines from the start of a chain, up to a checkpoint, and leaves a signed tombstone in their
//! place. So the rest still verifies, and no one without the key can pass off a deletion as retention.
//!
//! Age is measured by the checkpoints: there are few, so the log itself need not be read. A clock that jumped would
//! make everything old at once. So nothing is removed while the checkpoints of all chains show a gap longer than
//! [`LONGEST_GAP`] within the time to keep, or just before it.
//!
//! Only signed times count: an attacker who writes to the database could make recent lines look old. A checkpoint or
//! tombstone that removes lines must bear our signature.

use sea_orm::Value;

use super::{
    checkpoint_memory::{ChainEnd, believed},
    database::{STATED, StoredStatement},
    seal::{begin_alone, store},
};
use crate::{
    base::{
        bounds::ROWS,
        problem::Result,
        time::{DAY_MS, Timestamp},
    },
    core::{
        Core,
        store::sql::{InstallationSql, RunSql as _, RunWritingSql as _, installation_sql},
    },
};

/// The longest gap between checkpoints that is put down to a quiet service, in milliseconds: an attacker who sets the
/// clock must not get everything deleted.
const LONGEST_GAP: i64 = 30 * DAY_MS;

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
    let kept = Timestamp(now.0 - i64::from(days) * DAY_MS);
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
    let old = installation_sql!(
        "SELECT DISTINCT chain FROM audit_checkpoints WHERE at < $1 AND kind = 'CHECKPOINT'"
    );
    let chains = core.db.installation().column(old, [kept.into()]).await?;
    let old =
        installation_sql!("SELECT MAX(at) FROM audit_checkpoints WHERE at < $1 AND kind = 'CHECKPOINT'");
    let Some(mut seen) = instant(core, old, vec![kept.into()]).await? else { return Ok(Vec::new()) };
    while seen < now.0 - LONGEST_GAP {
        let next = installation_sql!("SELECT MAX(at) FROM audit_checkpoints WHERE at > $1 AND at <= $2");
        let Some(next) = instant(core, next, vec![seen.into(), (seen + LONGEST_GAP).into()]).await? else {
            let after = Timestamp(seen);
            tracing::warn!(%after, "audit.retention_waits: the log has a gap of more than 30 days: did the clock jump?");
            return Ok(Vec::new());
        };
        seen = next;
    }
    Ok(chains)
}

async fn instant(core: &Core, sql: InstallationSql, values: Vec<Value>) -> Result<Option<i64>> {
    Ok(core.db.installation().scalar(sql, values).await?.flatten())
}

/// Signs a chain's tombstone, up to its last checkpoint before the first one to keep. Checkpoints dated in the future
/// keep nothing.
async fn tombstone(core: &Core, chain: i64, (kept, now): (Timestamp, Timestamp)) -> Result<()> {
    let Some(tx) = begin_alone(core).await? else { return Ok(()) };
    let last = installation_sql!(
        STATED,
        "WHERE chain = $1 AND kind = 'CHECKPOINT' AND at < $2 \
         AND seq < COALESCE((SELECT MIN(seq) FROM audit_checkpoints WHERE chain = $1 \
         AND kind = 'CHECKPOINT' AND at >= $2 AND at <= $3), $4) ORDER BY seq DESC LIMIT 1"
    );
    let last = tx.one(last, [chain.into(), kept.into(), now.into(), i64::MAX.into()]).await?;
    let Some(ChainEnd { seq, hash }) = last.and_then(|last| vouched(core, last)) else { return Ok(()) };
    store(core, &tx, "TOMBSTONE", (chain, seq, &hash), now).await?;
    let older = installation_sql!(
        "DELETE FROM audit_checkpoints WHERE chain = $1 AND (seq < $2 OR (seq = $2 AND kind = 'CHECKPOINT'))"
    );
    tx.execute(older, [chain.into(), seq.into()]).await?;
    tx.commit().await?;
    tracing::info!(chain, seq, "audit.removed_up_to");
    Ok(())
}

/// The chains with lines behind their tombstone, from this round or an interrupted one.
async fn behind_tombstones(core: &Core) -> Result<Vec<(i64, i64)>> {
    let behind = installation_sql!(
        STATED,
        "WHERE c.kind = 'TOMBSTONE' AND EXISTS (SELECT 1 \
         FROM audit_log l WHERE COALESCE(l.organization_id, 0) = c.chain AND l.chain_seq <= c.seq)"
    );
    let behind: Vec<StoredStatement> = core.db.installation().all(behind, []).await?;
    let ours = |stated: StoredStatement| Some((stated.chain, vouched(core, stated)?.seq));
    Ok(behind.into_iter().filter_map(ours).collect())
}

/// The end that a statement vouches for, if we signed it, including its time. No other statement removes anything.
fn vouched(core: &Core, stated: StoredStatement) -> Option<ChainEnd> {
    let chain = stated.chain;
    believed(stated, core.audit.trust.keys())
        .inspect_err(|why| tracing::error!(chain, why, "audit.retention_refused: a statement is not ours"))
        .ok()
}

/// Removes the lines up to a place, oldest first.
async fn remove(core: &Core, chain: i64, seq: i64) -> Result<u64> {
    let mut removed = 0;
    loop {
        let Some(tx) = begin_alone(core).await? else { return Ok(removed) };
        let sql = installation_sql!(
            "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE COALESCE(organization_id, 0) = $1 \
             AND chain_seq <= $2 ORDER BY chain_seq LIMIT $3)"
        );
        let now = tx.execute(sql, [chain.into(), seq.into(), i64::from(ROWS).into()]).await?;
        tx.commit().await?;
        removed += now;
        if now < u64::from(ROWS) {
            return Ok(removed);
        }
    }
}
