//! Retention: old lines are removed from the beginning of a chain, up to a checkpoint, and a signed tombstone stays in their
//! place. So what is left still verifies, and nobody can pass off a deletion as retention without the key.

use sea_orm::ConnectionTrait;

use super::{
    chain::GENESIS,
    database::{chains, of},
    seal::{Others, begin, sql, store},
};
use crate::{app::App, clock::Timestamp, error::Result};

/// How many lines one transaction removes.
const BATCH: i64 = 2_000;

/// Removes what is older than the settings' number of days. Returns how many lines that were.
///
/// # Errors
/// The database is out of reach; what was removed until then stays removed, with its tombstone.
pub async fn retain(app: &App) -> Result<u64> {
    let days = app.config.audit.retention_days;
    if days == 0 || app.audit.key.is_none() {
        return Ok(0);
    }
    let before = Timestamp(app.clock.now().0 - i64::from(days) * 86_400_000);
    let mut removed = 0;
    for chain in chains(app).await? {
        if let Some(seq) = tombstone(app, chain, before).await? {
            removed += remove(app, chain, seq).await?;
        }
    }
    Ok(removed)
}

/// Signs the tombstone of a chain: the place up to which lines are to go. None where nothing is old enough.
async fn tombstone(app: &App, chain: i64, before: Timestamp) -> Result<Option<i64>> {
    let Some(tx) = begin(app, Others::Left).await? else { return Ok(None) };
    let query = format!(
        "SELECT MIN(CASE WHEN at >= $1 THEN chain_seq END), MIN(chain_seq), MAX(chain_seq) FROM audit_log \
         WHERE {} AND chain_seq IS NOT NULL",
        of(chain)
    );
    let Some(row) = tx.query_one_raw(sql(app, &query, vec![before.0.into()])).await? else { return Ok(None) };
    let (kept, first, last): (Option<i64>, Option<i64>, Option<i64>) =
        (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
    let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
    let kept = kept.unwrap_or(last + 1);
    let query = "SELECT kind, seq, hash FROM audit_checkpoints WHERE chain = $1 AND seq < $2 ORDER BY seq DESC, kind DESC LIMIT 1";
    let Some(row) = tx.query_one_raw(sql(app, query, vec![chain.into(), kept.into()])).await? else {
        return Ok(None);
    };
    let (kind, seq, end): (String, i64, Vec<u8>) =
        (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
    if seq < first || end == GENESIS {
        return Ok(None);
    }
    if kind != "TOMBSTONE" {
        store(app, &tx, "TOMBSTONE", (chain, seq, &end), app.clock.now()).await?;
    }
    let older =
        "DELETE FROM audit_checkpoints WHERE chain = $1 AND (seq < $2 OR (seq = $2 AND kind = 'CHECKPOINT'))";
    tx.execute_raw(sql(app, older, vec![chain.into(), seq.into()])).await?;
    tx.commit().await?;
    tracing::info!(chain, seq, "audit.removed_up_to");
    Ok(Some(seq))
}

/// Removes the lines up to a place. One that is interrupted goes on the next time: they are behind the tombstone.
async fn remove(app: &App, chain: i64, seq: i64) -> Result<u64> {
    let mut removed = 0;
    loop {
        let Some(tx) = begin(app, Others::Left).await? else { return Ok(removed) };
        let query = format!(
            "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE {} AND chain_seq <= $1 LIMIT {BATCH})",
            of(chain)
        );
        let now = tx.execute_raw(sql(app, &query, vec![seq.into()])).await?.rows_affected();
        tx.commit().await?;
        removed += now;
        if now < BATCH as u64 {
            return Ok(removed);
        }
    }
}
