//! A chain in the database: verified, and exported as JSON Lines, a page at a time.
//!
//! Lines are sealed and removed all the time. Verification reads one snapshot of the database from start to end. An
//! export takes as long as its reader likes, so only its start uses a snapshot, and its pages are checked for gaps.

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::Value;

use super::{
    chain::{GENESIS, INSTANCE, Sealed},
    checkpoint_memory::{ChainEnd, contradicted, head},
    key::PublicKey,
    line::READ_COLUMNS,
    statement::{sign, statement, with_signature},
    verify::{KnownLine, Report, Verifier},
};
use crate::{
    base::{
        bounds::ROWS,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        store::sql::{InstallationSql, RunSql, installation_sql, row},
    },
};

/// Every chain: the instance's, each organization's, even without lines, and any other in the log's tables.
pub async fn chains(core: &Core) -> Result<Vec<i64>> {
    // 0 is the instance's.
    let sql = installation_sql!(
        "SELECT 0 UNION SELECT id FROM organizations UNION SELECT chain FROM audit_chains \
         UNION SELECT chain FROM audit_checkpoints UNION SELECT COALESCE(organization_id, 0) FROM audit_log ORDER BY 1"
    );
    core.db.installation().column(sql, []).await
}

/// Whether a chain is as it was sealed, and contains the lines known from elsewhere.
pub async fn verify(
    core: &Core,
    chain: i64,
    keys: &[PublicKey],
    known: impl IntoIterator<Item = KnownLine>,
) -> Result<Report> {
    let state = core.db.snapshot().await?;
    let mut verifier = Verifier::new(organization(chain), keys);
    let mut after = 0;
    for stated in statements(&state, chain, 0, i64::MAX).await? {
        if stated.is_tombstone() {
            after = stated.seq;
        }
        verifier.statement(&stated.said());
    }
    for known in known {
        verifier.expect(known);
    }
    loop {
        let rows = page(&state, chain, after, i64::MAX).await?;
        let is_last = rows.len() < ROWS as usize;
        for row in rows {
            after = row.line.seq;
            verifier.entry(row.line.value(), &row.prev_hash, &row.hash);
        }
        if is_last {
            break;
        }
    }
    // A row is written with the chain's first line.
    let last = head(&state, chain).await?.map_or(0, |end| end.seq.max(1));
    let sql =
        installation_sql!("SELECT COUNT(*) FROM audit_unsealed WHERE COALESCE(organization_id, 0) = $1");
    let unsealed: i64 = state.scalar(sql, [chain.into()]).await?.unwrap_or(0);
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
    for stated in statements(&state, chain, first - 1, first - 1).await? {
        if stated.is_tombstone() {
            write(&stated.said(), &mut begin);
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
            while let Some(stated) = said.next_if(|stated| stated.seq <= place) {
                write(&stated.said(), &mut out);
            }
        }
        Ok(Some((Bytes::from(out), (core, end))))
    });
    Ok(stream::StreamExt::chain(stream::once(async move { Ok(Bytes::from(begin)) }), pages))
}

/// Whether a page has every line that it should.
fn is_gapless(rows: &[Sealed], after: i64, last: i64) -> bool {
    let whole = (last - after).min(i64::from(ROWS));
    rows.len().cast_signed() as i64 == whole && rows.last().is_none_or(|row| row.line.seq == after + whole)
}

/// Fails if retention has removed lines after `after`: the export so far would not verify. Gaps without a signed
/// tombstone are exported as they are, so that verification of the export finds them.
async fn require_kept(core: &Core, chain: i64, after: i64) -> Result<()> {
    let newer = installation_sql!(
        "SELECT seq FROM audit_checkpoints WHERE chain = $1 AND kind = 'TOMBSTONE' AND seq > $2"
    );
    if core.db.installation().scalar::<i64>(newer, [chain.into(), after.into()]).await?.is_none() {
        return Ok(());
    }
    let detail = "Retention removed lines during the export. Export the log again.";
    Err(Problem::new(Code::Conflict, detail))
}

row! {
    /// The first and the last place between two instants, and the chain's end.
    struct Places {
        first: Option<i64>,
        last: Option<i64>,
        ends: Option<i64>,
    }
}

/// The first and last place of an export; for an empty export, the place after the end, and the end. Lines behind the
/// tombstone are about to be removed.
async fn range(
    state: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<(i64, i64)> {
    let sql = installation_sql!(
        "SELECT MIN(CASE WHEN at >= $1 THEN chain_seq END) AS first, \
         MAX(CASE WHEN at < $2 THEN chain_seq END) AS last, MAX(chain_seq) AS ends \
         FROM audit_log WHERE COALESCE(organization_id, 0) = $3 AND chain_seq > \
         (SELECT COALESCE(MAX(seq), 0) FROM audit_checkpoints WHERE chain = $3 AND kind = 'TOMBSTONE')"
    );
    let (from, to) = (from.map_or(i64::MIN, |at| at.0), to.map_or(i64::MAX, |at| at.0));
    let found = state.one(sql, [from.into(), to.into(), chain.into()]).await?;
    let Some(Places { first, last, ends }) = found else { return Ok((1, 0)) };
    let end = ends.unwrap_or_default();
    match (first, last) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Ok((end + 1, end)),
    }
}

/// The header of an export, signed if the statements before and after its last line agree with it, and with this
/// process's memory from before the snapshot.
async fn header(
    core: &Core,
    state: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    (first, last): (i64, i64),
    known: Option<ChainEnd>,
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
    if let Some(why) = contradicted(core, state, chain, ChainEnd { seq: last, hash: end }, known).await? {
        tracing::error!(chain, why, "audit.export_unsigned: the log does not continue what was signed");
        return Ok(header);
    }
    let signature = sign(key, &header);
    Ok(with_signature(header, &signature))
}

/// The lines after one place, up to another.
pub(super) async fn page(
    runner: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    after: i64,
    last: i64,
) -> Result<Vec<Sealed>> {
    let sql = installation_sql!(
        "SELECT id, ",
        READ_COLUMNS,
        ", chain_seq, prev_hash, hash FROM audit_log \
         WHERE COALESCE(organization_id, 0) = $1 AND chain_seq > $2 AND chain_seq <= $3 ORDER BY chain_seq LIMIT $4"
    );
    runner.all(sql, [chain.into(), after.into(), last.into(), i64::from(ROWS).into()]).await
}

/// The signed statements about places, in order.
async fn statements(
    runner: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    first: i64,
    last: i64,
) -> Result<Vec<StoredStatement>> {
    let sql =
        installation_sql!(STATED, "WHERE chain = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq, kind DESC");
    runner.all(sql, [chain.into(), first.into(), last.into()]).await
}

/// The rows of [`StoredStatement`]s.
pub(super) const STATED: &str =
    "SELECT chain, kind, seq, hash, at, key_id, signature FROM audit_checkpoints c ";

row! {
    /// A statement about a chain up to a place.
    pub(super) struct StoredStatement {
        chain: i64,
        kind: String,
        seq: i64,
        hash: Vec<u8>,
        at: Timestamp,
        key_id: String,
        signature: Vec<u8>,
    }
}

impl StoredStatement {
    fn is_tombstone(&self) -> bool {
        self.kind == "TOMBSTONE"
    }

    /// The kind, as statements say it.
    pub fn word(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// The statement with its signature, valid or not.
    pub fn said(&self) -> Value {
        let said = statement(&self.word(), self.chain, self.seq, &self.hash, self.at, &self.key_id);
        with_signature(said, &self.signature)
    }
}

fn organization(chain: i64) -> Option<i64> {
    (chain != INSTANCE).then_some(chain)
}

fn write(line: &Value, out: &mut Vec<u8>) {
    // Writing to memory can't fail.
    let _ = serde_json::to_writer(&mut *out, line);
    out.push(b'\n');
}
