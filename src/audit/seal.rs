//! The sealer: gives committed lines their place in the chain of their organization, and signs checkpoints.
//!
//! Changes are not slowed down by it: a line is written in the transaction of its change without a place, and is sealed a
//! moment later, whoever wrote it, in the order of ids as far as they are committed. A transaction that commits late gets a
//! later place: gaps in ids are nothing, gaps in places are. One sealer works at a time: SQLite has one writer, on PostgreSQL
//! it holds an advisory lock. A line can be told to be changed from the moment it is sealed on.

use std::{collections::BTreeMap, fmt::Write};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, Statement, Value};

use super::{
    chain::{COLUMNS, GENESIS, Row, hash},
    statement::{sign, statement},
};
use crate::{app::App, clock::Timestamp, error::Result};

/// How many lines one transaction seals.
const BATCH: usize = 500;
/// How many one statement does.
const STATEMENT: usize = 100;
/// Whoever holds this lock of PostgreSQL seals.
const LOCK: i64 = 7_210_012;

/// Seals what has been committed. Returns how many lines that were.
///
/// # Errors
/// The database is out of reach.
pub async fn seal(app: &App) -> Result<u64> {
    let mut sealed = 0;
    loop {
        let now = seal_batch(app).await?;
        sealed += now as u64;
        if now < BATCH {
            return Ok(sealed);
        }
    }
}

async fn seal_batch(app: &App) -> Result<usize> {
    let waiting = "SELECT id FROM audit_log WHERE chain_seq IS NULL LIMIT 1";
    if app.db.one(waiting.to_owned(), vec![]).await?.is_none() {
        return Ok(0);
    }
    let Some(tx) = begin(app).await? else { return Ok(0) };
    let waiting =
        format!("SELECT {COLUMNS} FROM audit_log WHERE chain_seq IS NULL ORDER BY id LIMIT {BATCH}");
    let rows = tx.query_all_raw(sql(app, &waiting, vec![])).await?;
    let rows = rows.iter().map(Row::read).collect::<Result<Vec<_>>>()?;
    if rows.is_empty() {
        return Ok(0);
    }
    let mut ends = ends(app, &tx, &rows).await?;
    let mut places = Vec::with_capacity(rows.len());
    for row in &rows {
        let (last, prev) = ends.entry(row.chain).or_insert_with(|| (0, GENESIS.to_vec()));
        let seq = *last + 1;
        let own = hash(prev, &row.content(seq)).to_vec();
        places.push((row.id, seq, std::mem::replace(prev, own.clone()), own));
        *last = seq;
    }
    for places in places.chunks(STATEMENT) {
        place(app, &tx, places).await?;
    }
    for (chain, (last, end)) in ends {
        let upsert = "INSERT INTO audit_chains (chain, last_seq, last_hash, checkpoint_seq, checkpoint_at) \
                      VALUES ($1, $2, $3, 0, $4) ON CONFLICT (chain) DO UPDATE \
                      SET last_seq = excluded.last_seq, last_hash = excluded.last_hash";
        let values = vec![chain.into(), last.into(), end.into(), app.clock.now().0.into()];
        tx.execute_raw(sql(app, upsert, values)).await?;
    }
    tx.commit().await?;
    Ok(rows.len())
}

/// A transaction of the one who seals; none while another process does.
pub(super) async fn begin(app: &App) -> Result<Option<DatabaseTransaction>> {
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

type Ends = BTreeMap<i64, (i64, Vec<u8>)>;

/// Where the chains of these lines end.
async fn ends(app: &App, tx: &DatabaseTransaction, rows: &[Row]) -> Result<Ends> {
    let chains: std::collections::BTreeSet<i64> = rows.iter().map(|row| row.chain).collect();
    let chains: Vec<String> = chains.iter().map(i64::to_string).collect();
    let known =
        format!("SELECT chain, last_seq, last_hash FROM audit_chains WHERE chain IN ({})", chains.join(","));
    let rows = tx.query_all_raw(sql(app, &known, vec![])).await?;
    rows.iter().map(|row| Ok((row.try_get_by(0)?, (row.try_get_by(1)?, row.try_get_by(2)?)))).collect()
}

async fn place(app: &App, tx: &DatabaseTransaction, places: &[(i64, i64, Vec<u8>, Vec<u8>)]) -> Result<()> {
    let mut rows = String::new();
    let mut values: Vec<Value> = Vec::with_capacity(places.len() * 4);
    for (n, (id, seq, prev, own)) in places.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let at = n * 4;
        let _ = write!(rows, "{comma}(${},${},${},${})", at + 1, at + 2, at + 3, at + 4);
        values.extend([(*id).into(), (*seq).into(), prev.clone().into(), own.clone().into()]);
    }
    let update = format!(
        "UPDATE audit_log SET chain_seq = v.column2, prev_hash = v.column3, hash = v.column4 \
         FROM (VALUES {rows}) AS v WHERE audit_log.id = v.column1 AND audit_log.chain_seq IS NULL"
    );
    tx.execute_raw(sql(app, &update, values)).await?;
    Ok(())
}

/// Signs a checkpoint for every chain that has grown by the settings' number of lines since the last one, or has grown at
/// all and waited for the settings' time. `only`: for this chain, however little it has grown.
///
/// # Errors
/// The database is out of reach.
pub async fn checkpoint(app: &App, only: Option<i64>) -> Result<u64> {
    let Some(key) = &app.audit.key else { return Ok(0) };
    let Some(tx) = begin(app).await? else { return Ok(0) };
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
    tx: &DatabaseTransaction,
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
