//! The sealer: gives committed lines their place in the chain of their organization, and signs checkpoints.
//!
//! Changes are not slowed down by it: a line is written in the transaction of its change into a table where it waits, without a
//! place, and is put into the log a moment later, whoever wrote it, in the order of ids as far as they are committed. A
//! transaction that commits late gets a later place: gaps in ids are nothing, gaps in places are. One sealer works at a time:
//! SQLite has one writer, on PostgreSQL it holds an advisory lock. A line can be told to be changed from the moment it is
//! sealed on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
};

use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};
use serde::Serialize;

use super::{
    chain::{Content, GENESIS, columns, hash},
    statement::{sign, statement},
};
use crate::{
    app::App,
    clock::Timestamp,
    error::{Problem, Result},
    store::Transaction,
};

/// How many lines one transaction seals.
const BATCH: usize = 500;
/// After how many lines that have gone to the log it is cleared away where they waited.
const CLEAR: u64 = 2_000;
/// Whoever holds this lock of PostgreSQL seals.
const LOCK: i64 = 7_210_012;

/// Seals what has been committed, unless another process does so just now. Returns how many lines that were.
///
/// # Errors
/// The database is out of reach.
pub async fn seal(app: &App) -> Result<u64> {
    let sealed = seal_all(app, Others::Left).await?;
    clear(app, sealed).await?;
    Ok(sealed)
}

/// PostgreSQL keeps what was deleted until somebody clears it away, and every look at the lines that wait goes past it. Its own
/// vacuum comes once a minute.
async fn clear(app: &App, sealed: u64) -> Result<()> {
    let gone = app.audit.sealed.fetch_add(sealed, Ordering::Relaxed) + sealed;
    if app.db.backend() == DbBackend::Postgres && gone >= CLEAR {
        app.audit.sealed.store(0, Ordering::Relaxed);
        app.db.writer().execute_unprepared("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) audit_waiting").await?;
    }
    Ok(())
}

/// Seals what has been committed by now, after whoever does so just now: whoever reads the log next finds it there.
///
/// # Errors
/// The database is out of reach.
pub async fn settle(app: &App) -> Result<()> {
    seal_all(app, Others::Awaited).await.map(drop)
}

/// What a sealer does about another process that seals just now.
#[derive(Clone, Copy)]
enum Others {
    /// It leaves the lines to it.
    Left,
    /// It waits for its end.
    Awaited,
}

async fn seal_all(app: &App, others: Others) -> Result<u64> {
    let mut sealed = 0;
    while is_waiting(app).await? {
        let tx = match others {
            Others::Left => begin(app).await?,
            Others::Awaited => Some(begin_after_others(app).await?),
        };
        let Some(tx) = tx else { break };
        let now = seal_batch(app, tx).await?;
        sealed += now as u64;
        if now < BATCH {
            break;
        }
    }
    Ok(sealed)
}

async fn is_waiting(app: &App) -> Result<bool> {
    let waiting = "SELECT id FROM audit_lines WHERE chain_seq IS NULL LIMIT 1";
    Ok(app.db.one(waiting.to_owned(), vec![]).await?.is_some())
}

async fn seal_batch(app: &App, tx: Transaction) -> Result<usize> {
    fetch_left(app, &tx).await?;
    let waiting = format!("SELECT {} FROM audit_waiting ORDER BY id LIMIT {BATCH}", columns());
    let rows = tx.query_all_raw(sql(app, &waiting, vec![])).await?;
    let lines = rows.iter().map(Content::read).collect::<Result<Vec<_>>>()?;
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Ok(0) };
    let (sealed, range) = (lines.len(), [first.id.into(), last.id.into()]);
    let mut ends = ends(app, &tx, &lines).await?;
    let places: Vec<Place> = lines.into_iter().map(|line| place(line, &mut ends)).collect();
    put(app, &tx, &places).await?;
    let done = "DELETE FROM audit_waiting WHERE id IN (SELECT id FROM audit_log WHERE id BETWEEN $1 AND $2)";
    tx.execute_raw(sql(app, done, range.into())).await?;
    for (chain, (last, end)) in ends {
        let upsert = "INSERT INTO audit_chains (chain, last_seq, last_hash, checkpoint_seq, checkpoint_at) \
                      VALUES ($1, $2, $3, 0, $4) ON CONFLICT (chain) DO UPDATE \
                      SET last_seq = excluded.last_seq, last_hash = excluded.last_hash";
        let values = vec![chain.into(), last.into(), end.into(), app.clock.now().0.into()];
        tx.execute_raw(sql(app, upsert, values)).await?;
    }
    tx.commit().await?;
    Ok(sealed)
}

/// Lines that a version before step 0016 has written into the log itself, where it would have sealed them.
async fn fetch_left(app: &App, tx: &Transaction) -> Result<()> {
    let (columns, left) = (columns(), "FROM audit_log WHERE chain_seq IS NULL");
    let fetch = format!("INSERT INTO audit_waiting ({columns}) SELECT {columns} {left}");
    if tx.execute_raw(sql(app, &fetch, vec![])).await?.rows_affected() > 0 {
        let fetched = format!("DELETE {left} AND id IN (SELECT id FROM audit_waiting)");
        tx.execute_raw(sql(app, &fetched, vec![])).await?;
    }
    Ok(())
}

/// A transaction of the one who seals; none while another process does.
pub(super) async fn begin(app: &App) -> Result<Option<Transaction>> {
    let tx = app.db.begin().await?;
    if app.db.backend() == DbBackend::Postgres {
        let lock = sql(app, "SELECT pg_try_advisory_xact_lock($1)", vec![LOCK.into()]);
        let row = tx.query_one_raw(lock).await?;
        if !row.is_some_and(|row| row.try_get_by::<bool, _>(0).unwrap_or_default()) {
            return Ok(None);
        }
    }
    Ok(Some(tx))
}

/// The same, when the other process is done.
async fn begin_after_others(app: &App) -> Result<Transaction> {
    let tx = app.db.begin().await?;
    if app.db.backend() == DbBackend::Postgres {
        tx.execute_raw(sql(app, "SELECT pg_advisory_xact_lock($1)", vec![LOCK.into()])).await?;
    }
    Ok(tx)
}

/// The last place and its hash, by chain.
type Ends = BTreeMap<i64, (i64, Vec<u8>)>;

/// Where the chains of these lines end.
async fn ends(app: &App, tx: &Transaction, lines: &[Content]) -> Result<Ends> {
    let chains: BTreeSet<i64> = lines.iter().map(|line| line.chain).collect();
    let chains: Vec<String> = chains.iter().map(i64::to_string).collect();
    let known =
        format!("SELECT chain, last_seq, last_hash FROM audit_chains WHERE chain IN ({})", chains.join(","));
    let rows = tx.query_all_raw(sql(app, &known, vec![])).await?;
    rows.iter().map(|row| Ok((row.try_get_by(0)?, (row.try_get_by(1)?, row.try_get_by(2)?)))).collect()
}

/// A line, and what it is sealed with.
#[derive(Serialize)]
struct Place {
    line: i64,
    seq: i64,
    /// The hash of the line before, and its own, in hexadecimal.
    prev: String,
    own: String,
}

/// The next place of its chain for a line.
fn place(line: Content, ends: &mut Ends) -> Place {
    let (id, chain) = (line.id, line.chain);
    let (last, end) = ends.entry(chain).or_insert_with(|| (0, GENESIS.to_vec()));
    *last += 1;
    let own = hash(end, &line.at(*last)).to_vec();
    let place = Place { line: id, seq: *last, prev: hex::encode(&*end), own: hex::encode(&own) };
    *end = own;
    place
}

/// Puts lines that wait into the log. The statement's text does not depend on their number: it is prepared once. (To SQLite a
/// CROSS JOIN says which side comes first; the other way round it would read the places for each line anew.)
async fn put(app: &App, tx: &Transaction, places: &[Place]) -> Result<()> {
    let of = match app.db.backend() {
        DbBackend::Postgres => {
            "SELECT line, seq, decode(prev, 'hex') AS prev, decode(own, 'hex') AS own \
             FROM jsonb_to_recordset($1::jsonb) AS r (line BIGINT, seq BIGINT, prev TEXT, own TEXT)"
        }
        _ => {
            "SELECT value ->> 'line' AS line, value ->> 'seq' AS seq, unhex(value ->> 'prev') AS prev, \
             unhex(value ->> 'own') AS own FROM json_each($1)"
        }
    };
    let columns = columns();
    let insert = format!(
        "INSERT INTO audit_log ({columns}, chain_seq, prev_hash, hash) \
         SELECT {columns}, v.seq, v.prev, v.own FROM ({of}) AS v CROSS JOIN audit_waiting WHERE id = v.line"
    );
    let places = serde_json::to_string(places).map_err(Problem::internal)?;
    tx.execute_raw(sql(app, &insert, vec![places.into()])).await?;
    Ok(())
}

/// Signs a checkpoint for every chain that has grown by the settings' number of lines since the last one, or has grown at
/// all and waited for the settings' time. `only`: for this chain, however little it has grown.
///
/// # Errors
/// The database is out of reach.
pub async fn checkpoint(app: &App, only: Option<i64>) -> Result<u64> {
    let Some(key) = &app.audit.key else { return Ok(0) };
    // Who asks for one chain wants it signed now; the others come round again.
    let tx = match only {
        Some(_) => begin_after_others(app).await?,
        None => match begin(app).await? {
            Some(tx) => tx,
            None => return Ok(0),
        },
    };
    let now = app.clock.now();
    let settings = &app.config.audit;
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
    let rows = tx.query_all_raw(sql(app, &grown, values)).await?;
    for row in &rows {
        let (chain, seq, end): (i64, i64, Vec<u8>) =
            (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
        store(app, &tx, "CHECKPOINT", (chain, seq, &end), now).await?;
        let noted = "UPDATE audit_chains SET checkpoint_seq = $1, checkpoint_at = $2 WHERE chain = $3";
        tx.execute_raw(sql(app, noted, vec![seq.into(), now.0.into(), chain.into()])).await?;
        // A log that is kept elsewhere vouches for the chain's length where the database no longer can.
        tracing::info!(chain, seq, hash = hex::encode(&end), key = key.public().id(), "audit.checkpoint");
    }
    tx.commit().await?;
    Ok(rows.len() as u64)
}

/// Signs and stores a statement.
pub(super) async fn store(
    app: &App,
    tx: &Transaction,
    kind: &str,
    (chain, seq, end): (i64, i64, &[u8]),
    at: Timestamp,
) -> Result<()> {
    let Some(key) = &app.audit.key else { return Ok(()) };
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
    tx.execute_raw(sql(app, insert, values)).await?;
    Ok(())
}

pub(super) fn sql(app: &App, text: &str, values: Vec<Value>) -> Statement {
    Statement::from_sql_and_values(app.db.backend(), text, values)
}
