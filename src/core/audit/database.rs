//! A chain in the database: verified, and exported as JSON Lines, a page at a time.
//!
//! Lines are sealed and removed all the time. Verification reads one snapshot of the database from start to end. An
//! export takes as long as its reader likes, so only its start uses a snapshot, and its pages are checked for gaps.

use bytes::Bytes;
use futures::{Stream, stream};
use sea_orm::{ConnectionTrait, QueryResult, Statement};
use serde_json::Value;

use super::{
    chain::{GENESIS, INSTANCE, Sealed},
    key::PublicKey,
    statement::{sign, statement, with_signature},
    trust::{End, contradicted},
    verify::{Known, Report, Verifier},
};
use crate::{
    base::{
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::Core,
};

/// How many lines are in memory at a time.
const PAGE: usize = 500;

/// Every chain: the instance's, each organization's, even without lines, and whatever else is in the log's tables.
///
/// # Errors
/// The database can't be reached.
pub async fn chains(core: &Core) -> Result<Vec<i64>> {
    let known = format!(
        "SELECT {INSTANCE} UNION SELECT id FROM organizations UNION SELECT chain FROM audit_chains \
         UNION SELECT chain FROM audit_checkpoints UNION SELECT COALESCE(organization_id, 0) FROM audit_log ORDER BY 1"
    );
    let rows = core.db.all(known, vec![]).await?;
    Ok(rows.iter().map(|row| row.try_get_by(0)).collect::<std::result::Result<_, _>>()?)
}

/// Whether a chain is as it was sealed, and contains the lines known from elsewhere.
///
/// # Errors
/// The database can't be reached.
pub async fn verify(
    core: &Core,
    chain: i64,
    keys: &[PublicKey],
    known: impl IntoIterator<Item = Known>,
) -> Result<Report> {
    let state = core.db.snapshot().await?;
    let mut verifier = Verifier::new(organization(chain), keys);
    let mut after = 0;
    for (seq, kind, said) in statements(&state, chain, 0, i64::MAX).await? {
        if kind == "TOMBSTONE" {
            after = seq;
        }
        verifier.statement(&said);
    }
    for known in known {
        verifier.expect(known);
    }
    loop {
        let rows = page(&state, chain, after, i64::MAX).await?;
        let is_last = rows.len() < PAGE;
        for row in rows {
            after = row.line.seq;
            verifier.entry(row.line.value(), &row.prev_hash, &row.hash);
        }
        if is_last {
            break;
        }
    }
    let last = all(&state, "SELECT last_seq FROM audit_chains WHERE chain = $1", &[chain]).await?;
    let last: Option<i64> = last.first().map(|row| row.try_get_by(0)).transpose()?;
    // A row is written with the chain's first line.
    let last = last.map_or(0, |last| last.max(1));
    let unsealed = format!("SELECT COUNT(*) FROM audit_unsealed WHERE {}", of(chain));
    let unsealed = all(&state, &unsealed, &[]).await?;
    let unsealed: i64 = unsealed.first().map_or(Ok(0), |row| row.try_get_by(0))?;
    state.rollback().await?;
    Ok(verifier.finish(Some(last), unsealed.unsigned_abs()))
}

/// The sealed lines of a chain between two instants as JSON Lines: a signed header, the entries, and the checkpoints
/// where they were made. The header vouches for every line up to the last.
///
/// # Errors
/// The database can't be reached. The stream ends with an error if retention removes lines that it has not read yet.
pub async fn export(
    core: std::sync::Arc<Core>,
    chain: i64,
    (from, to): (Option<Timestamp>, Option<Timestamp>),
) -> Result<impl Stream<Item = Result<Bytes>> + Send> {
    let known = core.audit.trust.signed(chain);
    let state = core.db.snapshot().await?;
    let (first, last) = range(&state, chain, from, to).await?;
    let header = header(&core, &state, chain, (first, last), known).await?;
    let mut begin = Vec::new();
    write(&header, &mut begin);
    for (seq, kind, said) in statements(&state, chain, first - 1, first - 1).await? {
        if kind == "TOMBSTONE" && seq == first - 1 {
            write(&said, &mut begin);
        }
    }
    state.rollback().await?;
    let pages = stream::try_unfold((core, first - 1), move |(core, after)| async move {
        if after >= last {
            return Ok(None);
        }
        let rows = page(core.db.read(), chain, after, last).await?;
        if !is_gapless(&rows, after, last) {
            require_kept(&core, chain, after).await?;
        }
        let Some(end) = rows.last().map(|row| row.line.seq) else { return Ok(None) };
        let mut said = statements(core.db.read(), chain, after + 1, end).await?.into_iter().peekable();
        let mut out = Vec::with_capacity(rows.len() * 700);
        for row in rows {
            let place = row.line.seq;
            write(&row.exported(), &mut out);
            while let Some((_, _, said)) = said.next_if(|(seq, ..)| *seq <= place) {
                write(&said, &mut out);
            }
        }
        Ok(Some((Bytes::from(out), (core, end))))
    });
    Ok(stream::StreamExt::chain(stream::once(async move { Ok(Bytes::from(begin)) }), pages))
}

/// Whether a page has every line that it should.
fn is_gapless(rows: &[Sealed], after: i64, last: i64) -> bool {
    let whole = (last - after).min(PAGE.cast_signed() as i64);
    rows.len().cast_signed() as i64 == whole && rows.last().is_none_or(|row| row.line.seq == after + whole)
}

/// Fails if retention has removed lines after `after`: what was written so far would not verify. Gaps that no one
/// signed for are exported as they are, so that anyone who verifies the export finds them.
async fn require_kept(core: &Core, chain: i64, after: i64) -> Result<()> {
    let newer = "SELECT 1 FROM audit_checkpoints WHERE chain = $1 AND kind = 'TOMBSTONE' AND seq > $2";
    if all(core.db.read(), newer, &[chain, after]).await?.is_empty() {
        return Ok(());
    }
    let detail = "Retention removed lines during the export. Export the log again.";
    Err(Problem::new(Code::Conflict, detail))
}

/// The first and last place of an export; for an empty export, the place after the end, and the end. Lines behind the
/// tombstone are about to be removed.
async fn range(
    state: &impl ConnectionTrait,
    chain: i64,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<(i64, i64)> {
    let query = format!(
        "SELECT MIN(CASE WHEN at >= $1 THEN chain_seq END), MAX(CASE WHEN at < $2 THEN chain_seq END), \
         MAX(chain_seq) FROM audit_log WHERE {} AND chain_seq > \
         (SELECT COALESCE(MAX(seq), 0) FROM audit_checkpoints WHERE chain = $3 AND kind = 'TOMBSTONE')",
        of(chain)
    );
    let (from, to) = (from.map_or(i64::MIN, |at| at.0), to.map_or(i64::MAX, |at| at.0));
    let rows = all(state, &query, &[from, to, chain]).await?;
    let Some(row) = rows.first() else { return Ok((1, 0)) };
    let (first, last, end): (Option<i64>, Option<i64>, Option<i64>) =
        (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
    let end = end.unwrap_or_default();
    match (first, last) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Ok((end + 1, end)),
    }
}

/// The header of an export, signed if what was signed before and after its last line agrees with it, and with what this
/// process knew before the snapshot.
async fn header(
    core: &Core,
    state: &impl ConnectionTrait,
    chain: i64,
    (first, last): (i64, i64),
    known: Option<End>,
) -> Result<Value> {
    let hash = |row: Option<&Sealed>| row.map_or(GENESIS.to_vec(), |row| row.hash.clone());
    let ends = page(state, chain, last - 1, last).await?;
    let end = hash(ends.first());
    let begins = page(state, chain, first - 1, first).await?;
    let before = begins.first().map_or_else(|| end.clone(), |row| row.prev_hash.clone());
    let key = core.audit.key.as_ref();
    let id = key.map_or("", |key| key.public().id());
    let mut header = statement("export", chain, last, &end, core.clock.now(), id);
    header["from_seq"] = first.into();
    header["from_hash"] = hex::encode(&before).into();
    let Some(key) = key else { return Ok(header) };
    if let Some(why) = contradicted(core, state, chain, End { seq: last, hash: end }, known).await? {
        tracing::error!(chain, why, "audit.export_unsigned: the log does not continue what was signed");
        return Ok(header);
    }
    let signature = sign(key, &header);
    Ok(with_signature(header, &signature))
}

/// The lines after one place, up to another.
pub(super) async fn page(
    db: &impl ConnectionTrait,
    chain: i64,
    after: i64,
    last: i64,
) -> Result<Vec<Sealed>> {
    let query = format!(
        "SELECT {} FROM audit_log WHERE COALESCE(organization_id, 0) = $1 AND chain_seq > $2 AND chain_seq <= $3 \
         ORDER BY chain_seq LIMIT {PAGE}",
        Sealed::read_columns()
    );
    all(db, &query, &[chain, after, last]).await?.iter().map(Sealed::read).collect()
}

/// The signed statements about places, in order.
async fn statements(
    db: &impl ConnectionTrait,
    chain: i64,
    first: i64,
    last: i64,
) -> Result<Vec<(i64, String, Value)>> {
    let query = format!(
        "SELECT {STATED} FROM audit_checkpoints WHERE chain = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq, kind DESC"
    );
    all(db, &query, &[chain, first, last]).await?.iter().map(|row| stated(chain, row)).collect()
}

/// The columns that [`stated`] reads.
pub(super) const STATED: &str = "kind, seq, hash, at, key_id, signature";

/// A statement about a chain: its place, its kind, and the statement with its signature, whatever that is worth.
pub(super) fn stated(chain: i64, row: &QueryResult) -> Result<(i64, String, Value)> {
    let (kind, seq): (String, i64) = (row.try_get_by(0)?, row.try_get_by(1)?);
    let (hash, at): (Vec<u8>, Timestamp) = (row.try_get_by(2)?, row.try_get_by(3)?);
    let (key, signature): (String, Vec<u8>) = (row.try_get_by(4)?, row.try_get_by(5)?);
    let said = statement(&kind.to_ascii_lowercase(), chain, seq, &hash, at, &key);
    Ok((seq, kind, with_signature(said, &signature)))
}

/// The rows of a statement.
pub(super) async fn all(db: &impl ConnectionTrait, sql: &str, values: &[i64]) -> Result<Vec<QueryResult>> {
    let values = values.iter().map(|value| (*value).into());
    Ok(db.query_all_raw(Statement::from_sql_and_values(db.get_database_backend(), sql, values)).await?)
}

fn organization(chain: i64) -> Option<i64> {
    (chain != INSTANCE).then_some(chain)
}

/// The lines of a chain, as a condition that the indexes by organization serve.
pub(super) fn of(chain: i64) -> String {
    organization(chain).map_or("organization_id IS NULL".to_owned(), |org| format!("organization_id = {org}"))
}

fn write(line: &Value, out: &mut Vec<u8>) {
    // Writing to memory can't fail.
    let _ = serde_json::to_writer(&mut *out, line);
    out.push(b'\n');
}
