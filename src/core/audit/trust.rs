//! What the service believes of what stands in the database before it signs.
//!
//! Anyone who can write to the database but has no keys can forge everything in it except signatures. So the service signs
//! only what continues what it signed last: it verifies that statement, hashes the lines since then again, and compares
//! the result with the end that it is about to sign. The cost is in proportion to the new lines.
//!
//! Statements can also be deleted. A process remembers the last one that it signed for each chain, and refuses a chain
//! that has lost it. Across restarts, `muster audit verify --at-least` notices that. Lines that were not signed yet can be
//! replaced together with everything after them: nothing in the database can prevent that.

use std::{
    cmp::Ordering,
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sea_orm::{ConnectionTrait, QueryResult, Value};

use super::{
    chain::{GENESIS, hash},
    database::{STATED, all, page, stated},
    key::{AuditKey, PublicKey},
    seal::{begin_alone, sql},
    statement::mistrust,
};
use crate::{
    base::{problem::Result, time::Timestamp},
    core::{Core, sealing::KeyFile, store::Db},
};

/// How long a refused chain is left alone: it stays as it is, and looking at it costs more with every new line.
const REST: Duration = Duration::from_mins(10);

/// By how much the clocks of two replicas may differ.
const SKEW: Duration = Duration::from_mins(1);

/// A line that ends a chain, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Its place.
    pub seq: i64,
    /// Its hash.
    pub hash: Vec<u8>,
}

impl End {
    /// Reads `last_seq` and `last_hash`, of which the first is in this column.
    pub fn read(row: &QueryResult, column: usize) -> Result<Self> {
        Ok(Self { seq: row.try_get_by(column)?, hash: row.try_get_by(column + 1)? })
    }
}

/// What was signed last, or why a chain can't be believed.
type Belief = std::result::Result<End, String>;

/// What this process knows that no one can change in the database.
pub(super) struct Trust {
    keys: Vec<PublicKey>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// What this process signed last, by chain.
    signed: HashMap<i64, End>,
    /// The refused chains, and when they were refused.
    refused: HashMap<i64, Timestamp>,
}

impl Trust {
    /// Trusts the keys of the key file.
    pub fn new(keys: &KeyFile) -> Self {
        Self { keys: AuditKey::known(keys), memory: Mutex::default() }
    }

    /// The keys whose signatures count.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The number of chains for which nothing is signed.
    pub fn refused(&self) -> usize {
        self.memory().refused.len()
    }

    /// Whether a chain was refused recently.
    pub fn rests(&self, chain: i64, now: Timestamp) -> bool {
        let memory = self.memory();
        memory.refused.get(&chain).is_some_and(|at| u128::from(at.0.abs_diff(now.0)) < REST.as_millis())
    }

    /// Records what was signed.
    pub fn remember(&self, chain: i64, end: End) {
        let mut memory = self.memory();
        memory.refused.remove(&chain);
        memory.signed.insert(chain, end);
    }

    /// Records that nothing was signed, and says why.
    pub fn refuse(&self, chain: i64, now: Timestamp, why: &str) {
        self.memory().refused.insert(chain, now);
        tracing::error!(chain, why, "audit.refused: the log does not continue what was signed");
    }

    /// Keeps only the refusals of these chains: the others have been signed since, by whomever.
    pub fn refuses_only(&self, chains: &[i64]) {
        self.memory().refused.retain(|chain, _| chains.contains(chain));
    }

    /// What this process signed last. Anyone who compares it with the database takes it before a snapshot: the snapshot then
    /// contains everything up to it.
    pub fn signed(&self, chain: i64) -> Option<End> {
        self.memory().signed.get(&chain).cloned()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was signed last in a chain, if its end may be signed. Otherwise the chain is refused.
pub(super) async fn believe(
    core: &Core,
    state: &impl ConnectionTrait,
    chain: i64,
    end: &End,
) -> Result<Option<End>> {
    let trust = &core.audit.trust;
    let mut belief = continued(state, trust.keys(), chain, end, i64::MAX).await?;
    // Only the round that asks this signs, so memory is not newer than its snapshot.
    if let Ok(signed) = &belief
        && let Some(known) = trust.signed(chain)
        && let Some(why) = forgotten(state, chain, &known, signed).await?
    {
        belief = Err(why);
    }
    Ok(belief.map_err(|why| trust.refuse(chain, core.clock.now(), &why)).ok())
}

/// What contradicts an export that ends at this line. The lines must lead to it from the statement before, and from it to the
/// next one, or to the chain's end; and the newest statement must be one that a process can believe that signed `known` last.
pub(super) async fn contradicted(
    core: &Core,
    state: &impl ConnectionTrait,
    chain: i64,
    end: End,
    known: Option<End>,
) -> Result<Option<String>> {
    let keys = core.audit.trust.keys();
    if let Err(why) = continued(state, keys, chain, &end, end.seq).await? {
        return Ok(Some(why));
    }
    let newest = match newest(state, keys, chain, i64::MAX).await? {
        Ok(newest) => newest,
        Err(why) => return Ok(Some(why)),
    };
    if let Some(known) = known
        && let Some(why) = forgotten(state, chain, &known, &newest).await?
    {
        return Ok(Some(why));
    }
    if end.seq == 0 && newest.seq > 0 {
        return emptied(state, chain, &newest).await;
    }
    match next(state, keys, chain, &end).await? {
        Ok(next) => broken(state, chain, &end, &next).await,
        Err(why) => Ok(Some(why)),
    }
}

/// Why a statement can't be the newest for a process that signed `known` last; `None` if it can. Another process may have
/// signed after it: then the line that this one signed must still be there, unless retention has removed it.
async fn forgotten(
    db: &impl ConnectionTrait,
    chain: i64,
    known: &End,
    newest: &End,
) -> Result<Option<String>> {
    let is_there = match newest.seq.cmp(&known.seq) {
        Ordering::Less => false,
        Ordering::Equal => newest.hash == known.hash,
        Ordering::Greater => {
            let line = page(db, chain, known.seq - 1, known.seq).await?;
            line.first().is_none_or(|line| line.hash == known.hash)
        }
    };
    Ok((!is_there).then(|| format!("the checkpoint at {} is gone", known.seq)))
}

/// Why a log without lines, though there were some, can't be believed; `None` if retention has removed them all.
async fn emptied(db: &impl ConnectionTrait, chain: i64, newest: &End) -> Result<Option<String>> {
    let removed = "SELECT 1 FROM audit_checkpoints k JOIN audit_chains c ON c.chain = k.chain AND c.last_seq = k.seq \
                   WHERE k.chain = $1 AND k.seq = $2 AND k.kind = 'TOMBSTONE'";
    let is_removed = !all(db, removed, &[chain, newest.seq]).await?.is_empty();
    Ok((!is_removed).then(|| "its lines are missing".to_owned()))
}

/// The first statement about lines at a place or after it; without one, the chain's end.
async fn next(db: &impl ConnectionTrait, keys: &[PublicKey], chain: i64, from: &End) -> Result<Belief> {
    let query = format!(
        "SELECT {STATED} FROM audit_checkpoints WHERE chain = $1 AND seq >= $2 ORDER BY seq, kind LIMIT 1"
    );
    if let Some(row) = all(db, &query, &[chain, from.seq]).await?.first() {
        return believed(chain, row, keys);
    }
    Ok(Ok(head(db, chain).await?.unwrap_or_else(|| from.clone())))
}

/// The end of a chain; `None` without a line.
pub(super) async fn head(db: &impl ConnectionTrait, chain: i64) -> Result<Option<End>> {
    let head = "SELECT last_seq, last_hash FROM audit_chains WHERE chain = $1";
    all(db, head, &[chain]).await?.first().map(|row| End::read(row, 0)).transpose()
}

/// Corrects the rows of chains that claim more checkpoints, or later ones, than there are: they would suppress checkpoints.
/// Returns the number of rows.
///
/// # Errors
/// The database can't be reached.
pub async fn mend(core: &Core) -> Result<u64> {
    let wrong = "SELECT c.chain, COALESCE(k.seq, 0), COALESCE(k.at, $1), c.checkpoint_seq, c.checkpoint_at \
                 FROM audit_chains c LEFT JOIN audit_checkpoints k \
                 ON k.id = (SELECT n.id FROM audit_checkpoints n WHERE n.chain = c.chain AND n.seq <= c.last_seq \
                 ORDER BY n.seq DESC, n.kind LIMIT 1) \
                 WHERE c.checkpoint_seq <> COALESCE(k.seq, 0) OR c.checkpoint_at > COALESCE(k.at, $2) OR c.checkpoint_at > $2";
    let now = core.clock.now();
    let values: Vec<Value> = vec![now.0.into(), now.plus(SKEW).0.into()];
    if core.db.one(wrong.to_owned(), values.clone()).await?.is_none() {
        return Ok(0);
    }
    let Some(tx) = begin_alone(core).await? else { return Ok(0) };
    let rows = tx.query_all_raw(sql(core, wrong, values)).await?;
    for row in &rows {
        let (chain, seq, at): (i64, i64, i64) = (row.try_get_by(0)?, row.try_get_by(1)?, row.try_get_by(2)?);
        let mended = "UPDATE audit_chains SET checkpoint_seq = $1, checkpoint_at = $2 WHERE chain = $3";
        tx.execute_raw(sql(core, mended, vec![seq.into(), at.min(now.0).into(), chain.into()])).await?;
        let (claimed, claimed_at): (i64, i64) = (row.try_get_by(3)?, row.try_get_by(4)?);
        if claimed != seq || (seq > 0 && claimed_at > at) {
            tracing::error!(
                chain,
                seq,
                "audit.row_mended: its row in audit_chains claimed other checkpoints"
            );
        } else {
            tracing::warn!(
                chain,
                seq,
                "audit.row_mended: its time is in the future, so a clock was set back"
            );
        }
    }
    tx.commit().await?;
    Ok(rows.len() as u64)
}

/// Why chains in the database can't be believed, by chain: those for which the service refuses to sign.
///
/// # Errors
/// The database can't be reached.
pub async fn doubts(db: &Db, keys: &KeyFile) -> Result<Vec<(i64, String)>> {
    let keys = AuditKey::known(keys);
    let state = db.snapshot().await?;
    let mut doubts = Vec::new();
    for row in all(&state, "SELECT chain, last_seq, last_hash FROM audit_chains ORDER BY chain", &[]).await? {
        let (chain, end) = (row.try_get_by(0)?, End::read(&row, 1)?);
        if let Err(why) = continued(&state, &keys, chain, &end, i64::MAX).await? {
            doubts.push((chain, why));
        }
    }
    state.rollback().await?;
    Ok(doubts)
}

/// What was signed last among the lines up to a place, if the lines since then lead to `end`.
pub(super) async fn continued(
    db: &impl ConnectionTrait,
    keys: &[PublicKey],
    chain: i64,
    end: &End,
    up_to: i64,
) -> Result<Belief> {
    let signed = match newest(db, keys, chain, up_to).await? {
        Ok(signed) => signed,
        Err(why) => return Ok(Err(why)),
    };
    let broken = broken(db, chain, &signed, end).await?;
    Ok(broken.map_or(Ok(signed), Err))
}

/// The newest statement about a chain's lines up to a place; its beginning if there is none.
pub(super) async fn newest(
    db: &impl ConnectionTrait,
    keys: &[PublicKey],
    chain: i64,
    up_to: i64,
) -> Result<Belief> {
    let query = format!(
        "SELECT {STATED} FROM audit_checkpoints WHERE chain = $1 AND seq <= $2 ORDER BY seq DESC, kind LIMIT 1"
    );
    let rows = all(db, &query, &[chain, up_to]).await?;
    let Some(row) = rows.first() else { return Ok(Ok(End { seq: 0, hash: GENESIS.to_vec() })) };
    believed(chain, row, keys)
}

/// What a statement is about, if we signed it.
pub(super) fn believed(chain: i64, row: &QueryResult, keys: &[PublicKey]) -> Result<Belief> {
    let (seq, kind, said) = stated(chain, row)?;
    Ok(match mistrust(&said, keys) {
        Some(why) => Err(format!("the {} at {seq}: {why}", kind.to_ascii_lowercase())),
        None => Ok(End { seq, hash: row.try_get_by(2)? }),
    })
}

/// Hashes the lines from one place to another again. Returns what is wrong with them.
async fn broken(db: &impl ConnectionTrait, chain: i64, signed: &End, end: &End) -> Result<Option<String>> {
    if end.seq < signed.seq {
        return Ok(Some(format!("it ends at {}, and was signed up to {}", end.seq, signed.seq)));
    }
    let mut last = signed.clone();
    while last.seq < end.seq {
        let rows = page(db, chain, last.seq, end.seq).await?;
        let next = last.seq + 1;
        if rows.is_empty() {
            return Ok(Some(format!("line {next} is missing")));
        }
        for row in rows {
            let next = last.seq + 1;
            let own = hash(&last.hash, &row.line.canonical());
            if row.line.seq != next {
                return Ok(Some(format!("line {next} is missing")));
            }
            if row.prev_hash != last.hash || row.hash != own {
                return Ok(Some(format!("line {next} is not as it was sealed")));
            }
            last = End { seq: next, hash: own.to_vec() };
        }
    }
    Ok((last != *end).then(|| format!("line {} is not the end that audit_chains has", end.seq)))
}
