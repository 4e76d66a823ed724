//! Reseals everything with the active sealing key, while others read and write it.
//!
//! Each value is changed by a compare-and-set on its old bytes: if someone edits the secret in the meantime, their edit
//! wins, and it was sealed with the active key. Resuming after an interruption needs no state: the first five bytes of
//! a value identify its key, and a value that is not under the active key is still to do.

use std::{sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, DbBackend, DbErr, QueryResult, Statement, Value};
use serde::Serialize;
use serde_json::json;

use super::{
    bot_tokens::bot_digests,
    columns::{Record, SEALED, SealedColumn},
    file::Change,
};
use crate::{
    base::{
        ids::OrgId,
        numerals::with_noun,
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        audit::Origin,
        sealing::{KeyRing, Locator, SealContext, SealError},
        store::Db,
    },
};

/// The job pauses after this many bytes, even of few values: one mail can be as long as thousands of secrets.
const BYTES: usize = 1 << 20;

/// How fast values are resealed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many values are read and written at a time. Long ones are moved one by one.
    pub batch: u64,
    /// How long to wait after a batch, to leave the database to others.
    pub rest: Duration,
}

/// The values moved since the last rest.
#[derive(Default)]
struct SinceRest {
    values: u64,
    bytes: usize,
}

impl SinceRest {
    /// Adds moved values. Returns whether it is time to rest; the count then restarts at zero.
    fn add(&mut self, pace: Pace, batch: &[FoundValue]) -> bool {
        self.values += batch.len() as u64;
        self.bytes += batch.iter().map(|found| found.sealed.len()).sum::<usize>();
        let is_due = self.values >= pace.batch || self.bytes >= BYTES;
        if is_due {
            *self = Self::default();
        }
        is_due
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { batch: 100, rest: Duration::from_millis(20) }
    }
}

/// The progress so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Values examined because they were under another key.
    pub seen: u64,
    /// Values now under the active key.
    pub moved: u64,
    /// Values that someone else changed in the meantime.
    pub changed: u64,
    /// Values that can't be opened: their key is missing, or they are not where they were sealed.
    pub broken: u64,
}

/// A value and its location.
struct FoundValue {
    organization: OrgId,
    record: Value,
    sealed: Vec<u8>,
    /// The transport of a bot's token.
    transport: String,
}

impl FoundValue {
    /// The context in which it was sealed, if its record has an id or a name.
    fn seal_context(&self, column: &SealedColumn) -> Option<SealContext<'_>> {
        let locator = match &self.record {
            Value::String(Some(name)) => Locator::Name(name),
            Value::BigInt(Some(id)) => Locator::Id(*id),
            _ => return None,
        };
        Some(column.seal_context(self.organization, locator))
    }
}

/// A value under the active key, and its digest if its column has one.
struct MovedValue {
    sealed: Vec<u8>,
    digest: Option<Vec<u8>>,
}

/// Reseals every value with the active key of the current ring; `report` receives the progress after each batch.
///
/// # Errors
/// The database can't be reached. Values already resealed stay so; the next call continues.
pub async fn rewrap(
    core: &Arc<Core>,
    pace: Pace,
    mut report: impl FnMut(&SealedColumn, Progress),
) -> Result<Progress> {
    let mut all = Progress::default();
    loop {
        let ring = core.sealing.current();
        let mut round = Progress::default();
        for column in SEALED {
            walk(core, &ring, column, pace, &mut round, |now| report(column, add(all, now))).await?;
        }
        let broken = round.broken;
        all = Progress { broken, ..add(all, round) };
        // Values that arrived under an older key during this pass are found by the next one.
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
    mut report: impl FnMut(Progress),
) -> Result<()> {
    let (mut after, mut since) = (None, SinceRest::default());
    loop {
        let batch = read(core, ring, column, after.as_ref(), pace.batch).await?;
        let Some(last) = batch.last() else { return Ok(()) };
        after = Some((last.organization, last.record.clone()));
        write(core, ring, column, &batch, done).await?;
        report(*done);
        if since.add(pace, &batch) {
            tokio::time::sleep(pace.rest).await;
        }
    }
}

/// The next values that are not under the active key.
async fn read(
    core: &Core,
    ring: &KeyRing,
    column: &SealedColumn,
    after: Option<&(OrgId, Value)>,
    limit: u64,
) -> Result<Vec<FoundValue>> {
    let SealedColumn { column: name, organization, record, is_long, .. } = *column;
    let limit = if is_long { 1 } else { limit };
    let key = record.column();
    let mut values: Vec<Value> = vec![KeyRing::begins(ring.active_id()).to_vec().into()];
    let beyond = match after {
        Some((organization_id, id)) => {
            values.extend([(*organization_id).into(), id.clone()]);
            format!("AND ({organization}, {key}) > ($2, $3)")
        }
        None => String::new(),
    };
    let which =
        format!("AND substr({name}, 1, 5) <> $1 {beyond} ORDER BY {organization}, {key} LIMIT {limit}");
    Ok(find(&core.db, column, &which, values).await?)
}

/// Opens one value of a column with the keys of a ring. `None` if it has no value.
pub async fn open_one(
    db: &Db,
    ring: &KeyRing,
    column: &SealedColumn,
) -> Result<Option<Result<(), SealError>>, DbErr> {
    let found = find(db, column, "LIMIT 1", vec![]).await?;
    let opened =
        |found: &FoundValue| Some(ring.open_bytes(&found.sealed, &found.seal_context(column)?).map(drop));
    Ok(found.first().and_then(opened))
}

async fn find(
    db: &Db,
    column: &SealedColumn,
    which: &str,
    values: Vec<Value>,
) -> Result<Vec<FoundValue>, DbErr> {
    let SealedColumn { table, column: name, organization, record, digest, .. } = *column;
    let (key, transport) = (record.column(), digest.map_or("''", |digest| digest.transport));
    // A value of zero bytes is a destroyed secret.
    let sql = format!(
        "SELECT {organization} AS organization, {key} AS record, {name} AS sealed, {transport} AS transport FROM {table} \
         WHERE length({name}) > 0 {which}"
    );
    db.all(sql, values).await?.iter().map(|row| found(row, record)).collect()
}

fn found(row: &QueryResult, record: Record) -> Result<FoundValue, DbErr> {
    let record = match record {
        Record::Id(_) => row.try_get_by::<i64, _>("record")?.into(),
        Record::Name(_) => row.try_get_by::<String, _>("record")?.into(),
    };
    Ok(FoundValue {
        organization: row.try_get_by("organization")?,
        record,
        sealed: row.try_get_by("sealed")?,
        transport: row.try_get_by("transport")?,
    })
}

async fn write(
    core: &Core,
    ring: &KeyRing,
    column: &SealedColumn,
    batch: &[FoundValue],
    done: &mut Progress,
) -> Result<()> {
    let moved: Vec<(&FoundValue, Option<MovedValue>)> =
        batch.iter().map(|found| (found, moved(ring, column, found))).collect();
    if core.db.backend() == DbBackend::Sqlite {
        // One write to disk for all of them. It blocks other writers, but only briefly.
        let tx = core.db.begin().await?;
        let mut written = Progress::default();
        replace_value(&tx, column, moved, &mut written).await?;
        tx.commit().await?;
        *done = add(*done, written);
        return Ok(());
    }
    // One by one: a transaction that locks several rows could deadlock with another.
    replace_value(core.db.writer(), column, moved, done).await
}

async fn replace_value(
    db: &impl ConnectionTrait,
    column: &SealedColumn,
    moved: Vec<(&FoundValue, Option<MovedValue>)>,
    done: &mut Progress,
) -> Result<()> {
    let SealedColumn { table, column: name, organization, record, digest, .. } = column;
    let key = record.column();
    // If two channels have the same bot despite the check, only one of them keeps the digest, so that a third is still
    // refused.
    let digest = digest.map_or_else(String::new, |digest| {
        let hash = digest.column;
        format!(
            ", {hash} = (SELECT $5 WHERE NOT EXISTS \
             (SELECT 1 FROM {table} other WHERE other.{hash} = $5 AND other.{key} <> $3))"
        )
    });
    let sql = format!(
        "UPDATE {table} SET {name} = $1{digest} WHERE {organization} = $2 AND {key} = $3 AND {name} = $4"
    );
    for (found, value) in moved {
        done.seen += 1;
        let Some(MovedValue { sealed, digest }) = value else {
            done.broken += 1;
            continue;
        };
        let mut values: Vec<Value> =
            vec![sealed.into(), found.organization.into(), found.record.clone(), found.sealed.clone().into()];
        values.extend(digest.map(Value::from));
        let statement = Statement::from_sql_and_values(db.get_database_backend(), &sql, values);
        match db.execute_raw(statement).await?.rows_affected() {
            0 => done.changed += 1,
            _ => done.moved += 1,
        }
    }
    Ok(())
}

fn moved(ring: &KeyRing, column: &SealedColumn, found: &FoundValue) -> Option<MovedValue> {
    let place = found.seal_context(column)?;
    match resealed(ring, column, found, &place) {
        Ok(moved) => moved,
        Err(error) => {
            let (table, name) = (column.table, column.column);
            tracing::error!(table, column = name, record = ?place.record, %error, "keys.sealed_value_does_not_open");
            None
        }
    }
}

fn resealed(
    ring: &KeyRing,
    column: &SealedColumn,
    found: &FoundValue,
    place: &SealContext<'_>,
) -> std::result::Result<Option<MovedValue>, SealError> {
    let Some(sealed) = ring.rewrap(&found.sealed, place)? else { return Ok(None) };
    if column.digest.is_none() {
        return Ok(Some(MovedValue { sealed, digest: None }));
    }
    let token = ring.open(&sealed, place)?;
    let digest = bot_digests(ring, &found.transport, &token).into_iter().next();
    Ok(Some(MovedValue { sealed, digest }))
}

/// How many values are wrapped with the key `id`, by column; columns without any are left out.
pub async fn in_use(core: &Core, id: u32) -> Result<Vec<(&'static SealedColumn, i64)>> {
    let mut used = Vec::new();
    for column in SEALED {
        let sql = format!(
            "SELECT COUNT(*) AS count FROM {0} WHERE substr({1}, 1, 5) = $1",
            column.table, column.column
        );
        let begins: Value = KeyRing::begins(id).to_vec().into();
        // Through the writer, so that the latest commits count.
        let row = core
            .db
            .writer()
            .query_one_raw(Statement::from_sql_and_values(core.db.backend(), sql, [begins]))
            .await?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get_by("count"))?;
        if count > 0 {
            used.push((column, count));
        }
    }
    Ok(used)
}

/// Checks that the sealing key `id` may be removed.
///
/// # Errors
/// `IN_USE` while anything is wrapped with it, or if it is the active key; `NOT_FOUND`.
pub async fn require_unused(core: &Core, ring: &KeyRing, id: u32) -> Result<()> {
    if ring.active_id() == id {
        return Err(Problem::new(Code::InUse, format!("Key {id} is the active key: rotate first.")));
    }
    if !ring.ids().any(|known| known == id) {
        return Err(Problem::new(Code::NotFound, format!("The key file has no sealing key {id}.")));
    }
    let used = in_use(core, id).await?;
    if used.is_empty() {
        return Ok(());
    }
    let total: i64 = used.iter().map(|(_, count)| count).sum();
    let wheres: Vec<String> =
        used.iter().map(|(column, count)| format!("{}.{}: {count}", column.table, column.column)).collect();
    let detail = format!(
        "Key {id} still seals {} ({}). Run `muster key rewrap` first.",
        with_noun(total, "value"),
        wheres.join(", ")
    );
    Err(Problem::new(Code::InUse, detail))
}

/// Removes the sealing key `id` from the key file.
///
/// # Errors
/// See [`require_unused`].
pub async fn retire(core: &Core, id: u32) -> Result<()> {
    let mut change = Change::begin(core).await?;
    require_unused(core, change.file.ring(), id).await?;
    change.file.retire_sealing(id);
    change.save()?;
    let target = ("sealing key", Some(id.into()));
    Origin::operator(core).record_after("retireSealingKey", target, json!({ "id": id })).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_get_the_database_after_so_many_values_or_bytes() {
        let found = |bytes: usize| FoundValue {
            organization: OrgId(1),
            record: 1_i64.into(),
            sealed: vec![0; bytes],
            transport: String::new(),
        };
        let rests = |lengths: &[usize]| {
            let (pace, mut since) = (Pace { batch: 3, rest: Duration::ZERO }, SinceRest::default());
            lengths.iter().map(|bytes| since.add(pace, &[found(*bytes)])).collect::<Vec<_>>()
        };
        assert_eq!(rests(&[10, 10, 10, 10, 10]), [false, false, true, false, false]);
        assert_eq!(rests(&[BYTES, 10, BYTES - 10, 10]), [true, false, true, false]);
    }
}
