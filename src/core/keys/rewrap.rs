//! Moves what is sealed to the active sealing key, while others read and write it.
//!
//! Each value is changed by a compare-and-set on its old bytes: whoever edited the secret in the meantime has won,
//! and has sealed it with the active key. Nothing has to be remembered for going on after an interruption, since
//! the first five bytes of a value tell its key: what is not under the active one is still to do.

use std::{sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};
use serde::Serialize;
use serde_json::json;

use super::{
    columns::{Record, SEALED, SealedColumn},
    file::Change,
};
use crate::{
    base::{
        ids::OrgId,
        numerals::counted,
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        audit::Origin,
        sealing::{KeyRing, Locator},
    },
};

/// How fast values are moved.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many are read and written at a time.
    pub batch: u64,
    /// How long to wait between two batches, for others to have the database.
    pub rest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { batch: 100, rest: Duration::from_millis(20) }
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Values that were looked at because they were under another key.
    pub seen: u64,
    /// Those that are under the active key now.
    pub moved: u64,
    /// Those that somebody else changed in the meantime.
    pub changed: u64,
    /// Those that do not open: their key is gone, or they are not where they were sealed.
    pub broken: u64,
}

/// Where a value stands.
struct Found {
    organization: i64,
    record: Value,
    sealed: Vec<u8>,
}

/// Moves every sealed value to the active key of the ring in force; `told` hears of the progress after each batch.
///
/// # Errors
/// The database is out of reach. What was moved is moved; the next call goes on.
pub async fn rewrap(
    core: &Arc<Core>,
    pace: Pace,
    mut told: impl FnMut(&SealedColumn, Progress),
) -> Result<Progress> {
    let mut all = Progress::default();
    loop {
        let ring = core.keys.current();
        let mut round = Progress::default();
        for column in SEALED {
            walk(core, &ring, column, pace, &mut round, |now| told(column, add(all, now))).await?;
        }
        let broken = round.broken;
        all = Progress { broken, ..add(all, round) };
        // What came in during the round under an older key is found in the next one.
        if round.moved + round.changed == 0 {
            if all.seen > 0 {
                let (active, changes) = (ring.active_id(), json!(all));
                let target = ("sealing key", Some(active.into()));
                Origin::operator(core).record_after("rewrapSecrets", target, changes).await?;
            }
            return Ok(all);
        }
    }
}

fn add(a: Progress, b: Progress) -> Progress {
    Progress {
        seen: a.seen + b.seen,
        moved: a.moved + b.moved,
        changed: a.changed + b.changed,
        broken: a.broken + b.broken,
    }
}

async fn walk(
    core: &Arc<Core>,
    ring: &KeyRing,
    column: &SealedColumn,
    pace: Pace,
    done: &mut Progress,
    mut told: impl FnMut(Progress),
) -> Result<()> {
    let mut after = None;
    loop {
        let batch = read(core, ring, column, after.as_ref(), pace.batch).await?;
        let Some(last) = batch.last() else { return Ok(()) };
        after = Some((last.organization, last.record.clone()));
        write(core, ring, column, &batch, done).await?;
        told(*done);
        tokio::time::sleep(pace.rest).await;
    }
}

/// The next values that are not under the active key.
async fn read(
    core: &Core,
    ring: &KeyRing,
    column: &SealedColumn,
    after: Option<&(i64, Value)>,
    limit: u64,
) -> Result<Vec<Found>> {
    let SealedColumn { table, column: name, organization, record } = *column;
    let key = record.column();
    let mut values: Vec<Value> = vec![KeyRing::begins(ring.active_id()).to_vec().into()];
    let beyond = match after {
        Some((organization_id, id)) => {
            values.extend([(*organization_id).into(), id.clone()]);
            format!("AND ({organization}, {key}) > ($2, $3)")
        }
        None => String::new(),
    };
    // A value of no bytes is a secret that was destroyed.
    let sql = format!(
        "SELECT {organization}, {key}, {name} FROM {table} WHERE length({name}) > 0 AND substr({name}, 1, 5) <> $1 \
         {beyond} ORDER BY {organization}, {key} LIMIT {limit}"
    );
    let rows = core.db.all(sql, values).await?;
    rows.iter().map(|row| found(row, record)).collect()
}

fn found(row: &QueryResult, record: Record) -> Result<Found> {
    let record = match record {
        Record::Id(_) => row.try_get_by::<i64, _>(1)?.into(),
        Record::Name(_) => row.try_get_by::<String, _>(1)?.into(),
    };
    Ok(Found { organization: row.try_get_by(0)?, record, sealed: row.try_get_by(2)? })
}

async fn write(
    core: &Core,
    ring: &KeyRing,
    column: &SealedColumn,
    batch: &[Found],
    done: &mut Progress,
) -> Result<()> {
    let moved: Vec<(&Found, Option<Vec<u8>>)> =
        batch.iter().map(|found| (found, moved(ring, column, found))).collect();
    if core.db.backend() == DbBackend::Sqlite {
        // One write to the disk for all of them. Nobody else can write meanwhile, so it is over at once.
        let tx = core.db.begin().await?;
        let mut written = Progress::default();
        put(&tx, column, moved, &mut written).await?;
        tx.commit().await?;
        *done = add(*done, written);
        return Ok(());
    }
    // Each for itself: a transaction that held several rows could wait for one that waits for it.
    put(core.db.writer(), column, moved, done).await
}

async fn put(
    db: &impl ConnectionTrait,
    column: &SealedColumn,
    moved: Vec<(&Found, Option<Vec<u8>>)>,
    done: &mut Progress,
) -> Result<()> {
    let SealedColumn { table, column: name, organization, record } = column;
    let sql = format!(
        "UPDATE {table} SET {name} = $1 WHERE {organization} = $2 AND {} = $3 AND {name} = $4",
        record.column()
    );
    for (found, value) in moved {
        done.seen += 1;
        let Some(value) = value else {
            done.broken += 1;
            continue;
        };
        let values =
            [value.into(), found.organization.into(), found.record.clone(), found.sealed.clone().into()];
        let statement = Statement::from_sql_and_values(db.get_database_backend(), &sql, values);
        match db.execute_raw(statement).await?.rows_affected() {
            0 => done.changed += 1,
            _ => done.moved += 1,
        }
    }
    Ok(())
}

fn moved(ring: &KeyRing, column: &SealedColumn, found: &Found) -> Option<Vec<u8>> {
    let locator = match &found.record {
        Value::String(Some(name)) => Locator::Name(name),
        Value::BigInt(Some(id)) => Locator::Id(*id),
        _ => return None,
    };
    let place = column.place(OrgId(found.organization), locator);
    match ring.rewrap(&found.sealed, &place) {
        Ok(value) => value,
        Err(error) => {
            let (table, name) = (column.table, column.column);
            tracing::error!(table, column = name, record = ?locator, %error, "keys.sealed_value_does_not_open");
            None
        }
    }
}

/// How many values are wrapped with the key `id`, by column; columns without any are left out.
///
/// # Errors
/// The database is out of reach.
pub async fn in_use(core: &Core, id: u32) -> Result<Vec<(&'static SealedColumn, i64)>> {
    let mut used = Vec::new();
    for column in SEALED {
        let sql =
            format!("SELECT COUNT(*) FROM {0} WHERE substr({1}, 1, 5) = $1", column.table, column.column);
        let begins: Value = KeyRing::begins(id).to_vec().into();
        // Through the writer: what was committed a moment ago counts.
        let row = core
            .db
            .writer()
            .query_one_raw(Statement::from_sql_and_values(core.db.backend(), sql, [begins]))
            .await?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get_by(0))?;
        if count > 0 {
            used.push((column, count));
        }
    }
    Ok(used)
}

/// Takes the sealing key `id` out of the key file.
///
/// # Errors
/// `IN_USE` while anything is wrapped with it, or when it is the active one; `NOT_FOUND`.
pub async fn retire(core: &Core, id: u32) -> Result<()> {
    let mut change = Change::begin(core).await?;
    let file = &mut change.file;
    if file.ring().active_id() == id {
        return Err(Problem::new(Code::InUse, format!("Key {id} is the active one: rotate first.")));
    }
    if !file.ring().ids().any(|known| known == id) {
        return Err(Problem::new(Code::NotFound, format!("There is no sealing key {id} in the key file.")));
    }
    let used = in_use(core, id).await?;
    if !used.is_empty() {
        let total: i64 = used.iter().map(|(_, count)| count).sum();
        let wheres: Vec<String> = used
            .iter()
            .map(|(column, count)| format!("{}.{}: {count}", column.table, column.column))
            .collect();
        let detail = format!(
            "Key {id} still seals {} ({}). Run `muster key rewrap` first.",
            counted(total, "value"),
            wheres.join(", ")
        );
        return Err(Problem::new(Code::InUse, detail));
    }
    file.retire_sealing(id);
    change.save()?;
    let target = ("sealing key", Some(id.into()));
    Origin::operator(core).record_after("retireSealingKey", target, json!({ "id": id })).await
}
