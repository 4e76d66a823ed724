//! The sealer: gives committed lines their place in the chain of their organization, and signs checkpoints.
//!
//! Changes are not slowed down by it: a line is written in the transaction of its change into a table where it waits, as one value
//! and without a place, and is put into the log a moment later, whoever wrote it, in the order of ids as far as they are
//! committed. A transaction that commits late gets a later place: gaps in ids are nothing, gaps in places are. One sealer works
//! at a time: SQLite has one writer, on PostgreSQL it holds an advisory lock. A line can be told to be changed from the moment
//! it is sealed on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
    time::Duration,
};

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use super::{
    chain::{Content, GENESIS, Row, hash},
    statement::{sign, statement},
};
use crate::{
    base::{
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, store::Transaction},
};

/// How many lines one transaction seals. PostgreSQL keeps every version of a row that is replaced while a transaction runs, and
/// reads past them: with 500 the cheapest changes were slower by a twentieth.
const BATCH: usize = 100;
/// After how many lines that have gone to the log it is cleared away where they waited.
const CLEAR: u64 = 2_000;
/// How long somebody who waits for another process to seal pauses before they look again, and how often they look.
const PAUSE: Duration = Duration::from_millis(100);
const AWAITED: u32 = 100;
/// Whoever holds this lock of PostgreSQL seals.
const LOCK: i64 = 7_210_012;

/// Seals what has been committed, unless another process does so just now. Returns how many lines that were.
///
/// # Errors
/// The database is out of reach.
pub async fn seal(core: &Core) -> Result<u64> {
    let sealed = seal_all(core, Others::Left).await?;
    clear(core, sealed).await?;
    Ok(sealed)
}

/// PostgreSQL keeps what was deleted until somebody clears it away, and every look at the lines that wait goes past it. Its own
/// vacuum comes once a minute.
async fn clear(core: &Core, sealed: u64) -> Result<()> {
    let gone = core.audit.sealed.fetch_add(sealed, Ordering::Relaxed) + sealed;
    if core.db.backend() == DbBackend::Postgres && gone >= CLEAR {
        core.audit.sealed.store(0, Ordering::Relaxed);
        core.db.writer().execute_unprepared("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) audit_unsealed").await?;
    }
    Ok(())
}

/// Seals what has been committed by now, after whoever does so just now: whoever reads the log next finds it there.
///
/// # Errors
/// The database is out of reach.
pub async fn settle(core: &Core) -> Result<()> {
    seal_all(core, Others::Awaited).await.map(drop)
}

/// What a sealer does about another process that seals just now.
#[derive(Clone, Copy)]
pub(super) enum Others {
    /// It leaves the lines to it.
    Left,
    /// It waits for its end.
    Awaited,
}

async fn seal_all(core: &Core, others: Others) -> Result<u64> {
    let mut sealed = 0;
    while is_waiting(core).await? {
        let Some(tx) = begin(core, others).await? else { break };
        let now = seal_batch(core, tx).await?;
        sealed += now as u64;
        if now < BATCH {
            break;
        }
    }
    Ok(sealed)
}

async fn is_waiting(core: &Core) -> Result<bool> {
    let waiting = "SELECT id FROM audit_unsealed LIMIT 1";
    Ok(core.db.one(waiting.to_owned(), vec![]).await?.is_some())
}

async fn seal_batch(core: &Core, tx: Transaction) -> Result<usize> {
    let lines = take(core, &tx).await?;
    if lines.is_empty() {
        return Ok(0);
    }
    let contents = lines.iter().map(|(id, line)| Content::parse(*id, line)).collect::<Result<Vec<_>>>()?;
    let mut ends = ends(core, &tx, &contents).await?;
    let places = contents.into_iter().map(|content| place(content, &mut ends));
    let rows: Vec<String> = places.zip(&lines).map(|(place, line)| place.row(line)).collect();
    put(core, &tx, &rows).await?;
    for (chain, (last, end)) in ends {
        let upsert = "INSERT INTO audit_chains (chain, last_seq, last_hash, checkpoint_seq, checkpoint_at) \
                      VALUES ($1, $2, $3, 0, $4) ON CONFLICT (chain) DO UPDATE \
                      SET last_seq = excluded.last_seq, last_hash = excluded.last_hash";
        let values = vec![chain.into(), last.into(), end.into(), core.clock.now().0.into()];
        tx.execute_raw(sql(core, upsert, values)).await?;
    }
    tx.commit().await?;
    Ok(lines.len())
}

/// Takes the first lines out of those that wait: their ids, and what they say.
async fn take(core: &Core, tx: &Transaction) -> Result<Vec<(i64, String)>> {
    let first = format!("SELECT id FROM audit_unsealed ORDER BY id LIMIT {BATCH}");
    let take =
        format!("DELETE FROM audit_unsealed WHERE id IN ({first}) RETURNING id, CAST(line AS TEXT) AS line");
    let rows = tx.query_all_raw(sql(core, &take, vec![])).await?;
    let line = |row: &QueryResult| Ok((row.try_get_by(0)?, row.try_get_by(1)?));
    let mut lines = rows.iter().map(line).collect::<Result<Vec<_>>>()?;
    lines.sort_unstable_by_key(|(id, _)| *id);
    Ok(lines)
}

/// A transaction of the one who seals; none while another process does, unless that is awaited: then nobody waits with a
/// connection, of which there are few.
///
/// # Errors
/// `UNAVAILABLE` if the other one does not end.
pub(super) async fn begin(core: &Core, others: Others) -> Result<Option<Transaction>> {
    for _ in 0..AWAITED {
        let tx = core.db.begin().await?;
        if core.db.backend() != DbBackend::Postgres {
            return Ok(Some(tx));
        }
        let lock = sql(core, "SELECT pg_try_advisory_xact_lock($1)", vec![LOCK.into()]);
        let row = tx.query_one_raw(lock).await?;
        if row.is_some_and(|row| row.try_get_by(0).unwrap_or_default()) {
            return Ok(Some(tx));
        }
        tx.rollback().await?;
        if matches!(others, Others::Left) {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Problem::new(
        Code::Unavailable,
        "Another process works on the audit log, and does not end; try again.",
    ))
}

/// The last place and its hash, by chain.
type Ends = BTreeMap<i64, (i64, Vec<u8>)>;

/// Where the chains of these lines end.
async fn ends(core: &Core, tx: &Transaction, lines: &[Content<'_>]) -> Result<Ends> {
    let chains: BTreeSet<i64> = lines.iter().map(Content::chain).collect();
    let chains: Vec<String> = chains.iter().map(i64::to_string).collect();
    let known =
        format!("SELECT chain, last_seq, last_hash FROM audit_chains WHERE chain IN ({})", chains.join(","));
    let rows = tx.query_all_raw(sql(core, &known, vec![])).await?;
    rows.iter().map(|row| Ok((row.try_get_by(0)?, (row.try_get_by(1)?, row.try_get_by(2)?)))).collect()
}

/// What a line is sealed with.
struct Place {
    seq: i64,
    /// The hash of the line before.
    prev: Vec<u8>,
    own: Vec<u8>,
}

/// The next place of its chain for a line.
fn place(mut line: Content<'_>, ends: &mut Ends) -> Place {
    let (last, end) = ends.entry(line.chain()).or_insert_with(|| (0, GENESIS.to_vec()));
    *last += 1;
    line.seq = *last;
    let own = hash(end, &line.canonical()).to_vec();
    Place { seq: *last, prev: std::mem::replace(end, own.clone()), own }
}

impl Place {
    /// A line that stands here as a row of the log: a JSON object with the names of the columns. The line is one already.
    fn row(&self, (id, line): &(i64, String)) -> String {
        let Self { seq, prev, own } = self;
        let (prev, own, said) = (hex::encode(prev), hex::encode(own), &line[1..]);
        format!(r#"{{"id":{id},"chain_seq":{seq},"prev_hash":"\\x{prev}","hash":"\\x{own}",{said}"#)
    }
}

/// Puts rows into the log. The statement's text does not depend on their number: it is prepared once.
async fn put(core: &Core, tx: &Transaction, rows: &[String]) -> Result<()> {
    let all = Row::columns();
    let select = match core.db.backend() {
        DbBackend::Postgres => {
            format!("SELECT {all} FROM json_populate_recordset(CAST(NULL AS audit_log), $1::json)")
        }
        _ => {
            let read = |name| match name {
                "changes" => "value -> 'changes'".to_owned(),
                "prev_hash" | "hash" => format!("unhex(substr(value ->> '{name}', 3))"),
                name => format!("value ->> '{name}'"),
            };
            let columns: Vec<String> = all.split(", ").map(read).collect();
            format!("SELECT {} FROM json_each($1)", columns.join(", "))
        }
    };
    let insert = format!("INSERT INTO audit_log ({all}) {select}");
    let rows = format!("[{}]", rows.join(","));
    tx.execute_raw(sql(core, &insert, vec![rows.into()])).await?;
    Ok(())
}

/// Signs a checkpoint for every chain that has grown by the settings' number of lines since the last one, or has grown at
/// all and waited for the settings' time. `only`: for this chain, however little it has grown.
///
/// # Errors
/// The database is out of reach.
pub async fn checkpoint(core: &Core, only: Option<i64>) -> Result<u64> {
    let Some(key) = &core.audit.key else { return Ok(0) };
    // Who asks for one chain wants it signed now; the others come round again.
    let others = if only.is_some() { Others::Awaited } else { Others::Left };
    let grown = "SELECT 1 FROM audit_chains WHERE last_seq > checkpoint_seq LIMIT 1";
    if core.db.one(grown.to_owned(), vec![]).await?.is_none() {
        return Ok(0);
    }
    let Some(tx) = begin(core, others).await? else { return Ok(0) };
    let now = core.clock.now();
    let settings = &core.config.audit;
    let (due, values): (&str, Vec<Value>) = match only {
        Some(chain) => ("chain = $1", vec![chain.into()]),
        None => {
            let before = now.0 - i64::from(settings.checkpoint_minutes) * 60_000;
            let rows = i64::from(settings.checkpoint_lines);
            ("(last_seq - checkpoint_seq >= $1 OR checkpoint_at <= $2)", vec![rows.into(), before.into()])
        }
    };
    let grown = format!(
        "SELECT chain, last_seq, last_hash FROM audit_chains WHERE last_seq > checkpoint_seq AND {due}"
    );
    let rows = tx.query_all_raw(sql(core, &grown, values)).await?;
    for row in &rows {
        let (chain, seq, end): (i64, i64, Vec<u8>) =
            (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
        store(core, &tx, "CHECKPOINT", (chain, seq, &end), now).await?;
        let noted = "UPDATE audit_chains SET checkpoint_seq = $1, checkpoint_at = $2 WHERE chain = $3";
        tx.execute_raw(sql(core, noted, vec![seq.into(), now.0.into(), chain.into()])).await?;
        // A log that is kept elsewhere vouches for the chain's length where the database no longer can.
        tracing::info!(chain, seq, hash = hex::encode(&end), key = key.public().id(), "audit.checkpoint");
    }
    tx.commit().await?;
    Ok(rows.len() as u64)
}

/// Signs and stores a statement.
pub(super) async fn store(
    core: &Core,
    tx: &Transaction,
    kind: &str,
    (chain, seq, end): (i64, i64, &[u8]),
    at: Timestamp,
) -> Result<()> {
    let Some(key) = &core.audit.key else { return Ok(()) };
    let said = statement(&kind.to_ascii_lowercase(), chain, seq, end, at, key.public().id());
    let insert = "INSERT INTO audit_checkpoints (chain, kind, seq, hash, at, key_id, signature) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let values = vec![
        chain.into(),
        kind.to_owned().into(),
        seq.into(),
        end.to_vec().into(),
        at.0.into(),
        key.public().id().to_owned().into(),
        sign(key, &said).to_vec().into(),
    ];
    tx.execute_raw(sql(core, insert, values)).await?;
    Ok(())
}

/// How many committed lines wait to be sealed, as far as that is worth counting, and since when a chain has grown without a
/// checkpoint.
///
/// # Errors
/// The database is out of reach.
pub async fn lag(core: &Core) -> Result<(i64, Option<Timestamp>)> {
    let query = "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM audit_unsealed LIMIT 100000) AS waiting), \
                 (SELECT MIN(checkpoint_at) FROM audit_chains WHERE last_seq > checkpoint_seq)";
    let row = core.db.one(query.to_owned(), vec![]).await?;
    let row = row.ok_or_else(|| Problem::internal(anyhow::anyhow!("counting answered nothing")))?;
    Ok((row.try_get_by(0)?, row.try_get_by(1)?))
}

pub(super) fn sql(core: &Core, text: &str, values: Vec<Value>) -> Statement {
    Statement::from_sql_and_values(core.db.backend(), text, values)
}
