//! Decides whether the database's log can be believed before the service signs it.
//!
//! An attacker who can write to the database but has no keys can forge everything in it except signatures. So the
//! service only signs what continues its last signed statement: it verifies that statement, rehashes the lines since
//! then, and compares the result with the end that it is about to sign. The cost is in proportion to the new lines.
//!
//! Statements can also be deleted. A process remembers the last one that it signed for each chain, and refuses a chain
//! that has lost it. Across restarts, `muster audit verify --at-least` notices that. Lines that were not signed yet can
//! be replaced together with everything after them: nothing in the database can prevent that.

use std::{cmp::Ordering, collections::HashMap};

use parking_lot::{Mutex, MutexGuard};
use sea_orm::Value;

use super::{
    chain::{GENESIS, hash},
    database::{STATED, StoredStatement, page},
    key::{AuditKey, PublicKey},
    seal::{begin_alone, note_checkpoint},
    statement::mistrust,
};
use crate::{
    base::{bounds, problem::Result, time::Timestamp},
    core::{
        Core,
        sealing::KeyFile,
        store::{
            Db,
            sql::{InstallationSql, RunSql, installation_sql, row},
        },
    },
};

row! {
    /// A line that ends a chain, or a part of it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct ChainEnd {
        seq: i64,
        hash: Vec<u8>,
    }
}

row! {
    /// A chain, and the line that ends it.
    pub(super) struct ChainHead {
        chain: i64,
        seq: i64,
        hash: Vec<u8>,
    }
}

/// The rows of [`ChainHead`]s.
pub(super) const HEADS: &str = "SELECT chain, last_seq AS seq, last_hash AS hash FROM audit_chains ";

/// The last signed end, or why the chain can't be believed.
type Belief = std::result::Result<ChainEnd, String>;

/// This process's own memory, which no one can change through the database.
pub(super) struct Trust {
    keys: Vec<PublicKey>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The last end that this process signed, by chain.
    signed: HashMap<i64, ChainEnd>,
    /// The refused chains, and when they were refused.
    refused: HashMap<i64, Timestamp>,
}

impl Trust {
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

    /// Whether a chain was refused in the last ten minutes. Until then it is not checked again, because the check costs
    /// more with every new line.
    pub fn rests(&self, chain: i64, now: Timestamp) -> bool {
        let memory = self.memory();
        memory.refused.get(&chain).is_some_and(|at| at.0.abs_diff(now.0) < 600_000)
    }

    /// Records a signed end.
    pub fn remember(&self, chain: i64, end: ChainEnd) {
        let mut memory = self.memory();
        memory.refused.remove(&chain);
        memory.signed.insert(chain, end);
    }

    /// Refuses to sign a chain, and logs the reason.
    pub fn refuse(&self, chain: i64, now: Timestamp, why: &str) {
        self.memory().refused.insert(chain, now);
        tracing::error!(chain, why, "audit.refused: the log does not continue what was signed");
    }

    /// Keeps only the refusals of these chains: the others have been signed since.
    pub fn refuses_only(&self, chains: &[i64]) {
        self.memory().refused.retain(|chain, _| chains.contains(chain));
    }

    /// The last end that this process signed. To compare it with the database, read it before taking a snapshot: the
    /// snapshot then contains everything up to it.
    pub fn signed(&self, chain: i64) -> Option<ChainEnd> {
        self.memory().signed.get(&chain).cloned()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}

/// The last signed end of a chain, if its current end may be signed. Otherwise the chain is refused.
pub(super) async fn believe(
    core: &Core,
    state: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    end: &ChainEnd,
) -> Result<Option<ChainEnd>> {
    let trust = &core.audit.trust;
    let mut belief = continued(state, trust.keys(), chain, end, i64::MAX).await?;
    // Only the calling job signs, so the memory is not newer than its snapshot.
    if let Ok(signed) = &belief
        && let Some(known) = trust.signed(chain)
        && let Some(why) = forgotten(state, chain, &known, signed).await?
    {
        belief = Err(why);
    }
    Ok(belief.map_err(|why| trust.refuse(chain, core.clock.now(), &why)).ok())
}

/// Why an export that ends at this line can't be believed; `None` if it can. The lines must lead to it from the
/// statement before, and from it to the next one, or to the chain's end; and the newest statement must be credible to a
/// process that signed `known` last.
pub(super) async fn contradicted(
    core: &Core,
    state: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    end: ChainEnd,
    known: Option<ChainEnd>,
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

/// Why a statement can't be the newest for a process that signed `known` last; `None` if it can. Another process may
/// have signed after it: then the line that this one signed must still be there, unless retention has removed it.
async fn forgotten(
    runner: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    known: &ChainEnd,
    newest: &ChainEnd,
) -> Result<Option<String>> {
    let is_there = match newest.seq.cmp(&known.seq) {
        Ordering::Less => false,
        Ordering::Equal => newest.hash == known.hash,
        Ordering::Greater => {
            let line = page(runner, chain, known.seq - 1, known.seq).await?;
            line.first().is_none_or(|line| line.hash == known.hash)
        }
    };
    Ok((!is_there).then(|| format!("the checkpoint at {} is gone", known.seq)))
}

/// Why a log without lines, though there were some, can't be believed; `None` if retention has removed them all.
async fn emptied(
    runner: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    newest: &ChainEnd,
) -> Result<Option<String>> {
    let removed = installation_sql!(
        "SELECT k.seq FROM audit_checkpoints k JOIN audit_chains c ON c.chain = k.chain AND c.last_seq = k.seq \
         WHERE k.chain = $1 AND k.seq = $2 AND k.kind = 'TOMBSTONE'"
    );
    let removed: Option<i64> = runner.scalar(removed, [chain.into(), newest.seq.into()]).await?;
    Ok(removed.is_none().then(|| "its lines are missing".to_owned()))
}

/// The first statement about lines at a place or after it; without one, the chain's end.
async fn next(
    runner: &impl RunSql<Sql = InstallationSql>,
    keys: &[PublicKey],
    chain: i64,
    from: &ChainEnd,
) -> Result<Belief> {
    let sql = installation_sql!(STATED, "WHERE chain = $1 AND seq >= $2 ORDER BY seq, kind LIMIT 1");
    if let Some(stated) = runner.one(sql, [chain.into(), from.seq.into()]).await? {
        return Ok(believed(stated, keys));
    }
    Ok(Ok(head(runner, chain).await?.unwrap_or_else(|| from.clone())))
}

/// The end of a chain; `None` without a line.
pub(super) async fn head(
    runner: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
) -> Result<Option<ChainEnd>> {
    runner.one(installation_sql!(HEADS, "WHERE chain = $1"), [chain.into()]).await
}

row! {
    /// A chain whose row does not match its checkpoints.
    struct WrongChainRow {
        chain: i64,
        seq: i64,
        at: Timestamp,
        claimed: i64,
        claimed_at: Timestamp,
    }
}

/// Corrects the rows of chains that claim more checkpoints, or later ones, than there are: they would suppress
/// checkpoints. Returns the number of rows.
pub async fn mend(core: &Core) -> Result<u64> {
    let wrong = installation_sql!(
        "SELECT c.chain AS chain, COALESCE(k.seq, 0) AS seq, COALESCE(k.at, $1) AS at, \
         c.checkpoint_seq AS claimed, c.checkpoint_at AS claimed_at \
         FROM audit_chains c LEFT JOIN audit_checkpoints k \
         ON k.id = (SELECT n.id FROM audit_checkpoints n WHERE n.chain = c.chain AND n.seq <= c.last_seq \
         ORDER BY n.seq DESC, n.kind LIMIT 1) \
         WHERE c.checkpoint_seq <> COALESCE(k.seq, 0) OR c.checkpoint_at > COALESCE(k.at, $2) OR c.checkpoint_at > $2"
    );
    let now = core.clock.now();
    let values: [Value; 2] = [now.into(), now.plus(bounds::CLOCK_SKEW).into()];
    if core.db.installation().one::<WrongChainRow>(wrong, values.clone()).await?.is_none() {
        return Ok(0);
    }
    let Some(tx) = begin_alone(core).await? else { return Ok(0) };
    let rows: Vec<WrongChainRow> = tx.all(wrong, values).await?;
    for &WrongChainRow { chain, seq, at, claimed, claimed_at } in &rows {
        note_checkpoint(&tx, chain, seq, at.min(now)).await?;
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

/// The chains that the service refuses to sign, each with the reason.
pub async fn doubts(db: &Db, keys: &KeyFile) -> Result<Vec<(i64, String)>> {
    let keys = AuditKey::known(keys);
    let state = db.snapshot().await?;
    let mut doubts = Vec::new();
    for ChainHead { chain, seq, hash } in state.all(installation_sql!(HEADS, "ORDER BY chain"), []).await? {
        if let Err(why) = continued(&state, &keys, chain, &ChainEnd { seq, hash }, i64::MAX).await? {
            doubts.push((chain, why));
        }
    }
    state.rollback().await?;
    Ok(doubts)
}

/// The last signed end up to a place, if the lines since then lead to `end`.
pub(super) async fn continued(
    runner: &impl RunSql<Sql = InstallationSql>,
    keys: &[PublicKey],
    chain: i64,
    end: &ChainEnd,
    up_to: i64,
) -> Result<Belief> {
    let signed = match newest(runner, keys, chain, up_to).await? {
        Ok(signed) => signed,
        Err(why) => return Ok(Err(why)),
    };
    let broken = broken(runner, chain, &signed, end).await?;
    Ok(broken.map_or(Ok(signed), Err))
}

/// The newest statement about a chain's lines up to a place; its beginning if there is none.
pub(super) async fn newest(
    runner: &impl RunSql<Sql = InstallationSql>,
    keys: &[PublicKey],
    chain: i64,
    up_to: i64,
) -> Result<Belief> {
    let sql = installation_sql!(STATED, "WHERE chain = $1 AND seq <= $2 ORDER BY seq DESC, kind LIMIT 1");
    let found = runner.one(sql, [chain.into(), up_to.into()]).await?;
    Ok(found.map_or(Ok(ChainEnd { seq: 0, hash: GENESIS.to_vec() }), |stated| believed(stated, keys)))
}

/// The end that a statement vouches for, if we signed it.
pub(super) fn believed(stated: StoredStatement, keys: &[PublicKey]) -> Belief {
    match mistrust(&stated.said(), keys) {
        Some(why) => Err(format!("the {} at {}: {why}", stated.word(), stated.seq)),
        None => Ok(ChainEnd { seq: stated.seq, hash: stated.hash }),
    }
}

/// Rehashes the lines between two places. Returns the first fault.
async fn broken(
    runner: &impl RunSql<Sql = InstallationSql>,
    chain: i64,
    signed: &ChainEnd,
    end: &ChainEnd,
) -> Result<Option<String>> {
    if end.seq < signed.seq {
        return Ok(Some(format!("it ends at {}, and was signed up to {}", end.seq, signed.seq)));
    }
    let mut last = signed.clone();
    while last.seq < end.seq {
        let rows = page(runner, chain, last.seq, end.seq).await?;
        let next = last.seq + 1;
        if rows.is_empty() {
            return Ok(Some(format!("line {next} is missing")));
        }
        for mut row in rows {
            let next = last.seq + 1;
            let own = hash(&last.hash, &row.line.canonical());
            if row.line.seq != next {
                return Ok(Some(format!("line {next} is missing")));
            }
            if row.prev_hash != last.hash || row.hash != own {
                return Ok(Some(format!("line {next} is not as it was sealed")));
            }
            last = ChainEnd { seq: next, hash: own.to_vec() };
        }
    }
    Ok((last != *end).then(|| format!("line {} is not the end that audit_chains has", end.seq)))
}
