//! The sealer gives committed lines their place in their organization's chain, and signs checkpoints.
//!
//! It does not slow changes down: a change's transaction writes the line to a waiting table, without a place. One of
//! the processes moves it to the log a moment later, in the order of ids among the lines committed by then. A
//! transaction that commits late gets a later place: gaps in ids mean nothing, gaps in places do. Only one sealer works
//! at a time: SQLite has one writer, and on PostgreSQL it holds an advisory lock. Tampering is detectable once a line
//! is sealed.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use sea_orm::{DbBackend, Value};
use serde_json::json;

use super::{
    chain::{GENESIS, hash},
    checkpoint_memory::{ChainEnd, ChainHead, HEADS, believe, continued, head, newest},
    database::{STATED, StoredStatement},
    line::{AuditLine, COLUMNS, READ_COLUMNS},
    personal::Origin,
    statement::{mistrust, sign, statement},
};
use crate::{
    base::{
        bounds::BATCH,
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core, Event,
        store::{
            Transaction,
            sql::{RunSql as _, RunWritingSql as _, installation_sql, row},
        },
    },
};

/// The PostgreSQL advisory lock that a sealer holds.
const LOCK: i64 = 7_210_012;

/// The id after which to look.
///
/// PostgreSQL keeps deleted rows for as long as an older snapshot exists: hours, during a backup. A scan from the start
/// would read past all of them, every second. So the sealer starts after the lines that were sealed a while ago. A
/// transaction that was slow to commit may have written a line with a lower id; to find it, the sealer also scans from
/// the start: every ten seconds while there are new lines, and otherwise with its run every minute.
#[derive(Default)]
pub(super) struct Floor(Mutex<Floors>);

#[derive(Default)]
struct Floors {
    now: i64,
    next: i64,
    looked_at_all: Option<Timestamp>,
}

impl Floor {
    fn now(&self) -> i64 {
        self.0.lock().now
    }

    /// Whether a scan from the start is due.
    fn is_old(&self, now: Timestamp) -> bool {
        let looked = self.0.lock().looked_at_all;
        // A clock may be set back.
        looked.is_none_or(|at| at.0.abs_diff(now.0) >= 10_000)
    }

    /// Records that a scan from the start begins, and the newest line of the log at this time.
    fn raise(&self, newest: i64, now: Timestamp) {
        let mut floors = self.0.lock();
        *floors = Floors { now: floors.next, next: newest, looked_at_all: Some(now) };
    }
}

/// Seals committed lines, unless another process is doing so. Returns the number of lines.
///
/// While a transaction runs, PostgreSQL keeps every version of a replaced row and reads past them all: with 500 lines
/// per transaction instead of [`BATCH`], the cheapest changes were 5% slower.
pub async fn seal(core: &Core) -> Result<u64> {
    let (mut after, mut sealed) = (begin_look(core).await?, 0);
    while is_waiting(core, after).await? {
        let Some(tx) = begin_alone(core).await? else { break };
        let lines = seal_batch(core, tx, after).await?;
        sealed += lines.len() as u64;
        match lines.last() {
            Some(last) if lines.len() == BATCH as usize => after = last.id,
            _ => break,
        }
    }
    Ok(sealed)
}

/// The id after which to look.
async fn begin_look(core: &Core) -> Result<i64> {
    let (floor, now) = (&core.audit.floor, core.clock.now());
    if !floor.is_old(now) {
        return Ok(floor.now());
    }
    let newest = installation_sql!("SELECT COALESCE(MAX(id), 0) FROM audit_log");
    floor.raise(core.db.installation().scalar(newest, []).await?.unwrap_or(0), now);
    Ok(0)
}

/// The lines after the id `$2` that are to be sealed.
pub const UNSEALED: &str = "audit_unsealed WHERE id > $2";

/// The id after which new lines are looked for.
#[must_use]
pub fn floor(core: &Core) -> i64 {
    core.audit.floor.now()
}

async fn is_waiting(core: &Core, after: i64) -> Result<bool> {
    let waiting = installation_sql!("SELECT id FROM audit_unsealed WHERE id > $1 ORDER BY id LIMIT 1");
    Ok(core.db.installation().scalar::<i64>(waiting, [after.into()]).await?.is_some())
}

/// Begins a transaction as the only process that works on the log. `None` while another process does.
pub(super) async fn begin_alone(core: &Core) -> Result<Option<Transaction>> {
    let tx = core.db.begin().await?;
    if core.db.backend() != DbBackend::Postgres {
        return Ok(Some(tx));
    }
    let lock = installation_sql!("SELECT pg_try_advisory_xact_lock($1)");
    if tx.scalar(lock, [LOCK.into()]).await?.unwrap_or(false) {
        return Ok(Some(tx));
    }
    tx.rollback().await?;
    Ok(None)
}

async fn seal_batch(core: &Core, tx: Transaction, after: i64) -> Result<Vec<AuditLine>> {
    let mut lines = claim_batch(&tx, after).await?;
    if lines.is_empty() {
        return Ok(lines);
    }
    let mut heads = chain_heads(core, &tx, &lines).await?;
    let places: Vec<serde_json::Value> =
        lines.iter_mut().map(|line| assign_place(line, &mut heads)).collect();
    move_to_log(core, &tx, places.into()).await?;
    for (chain, (last, head)) in heads {
        let upsert = installation_sql!(
            "INSERT INTO audit_chains (chain, last_seq, last_hash, checkpoint_seq, checkpoint_at) \
             VALUES ($1, $2, $3, 0, $4) ON CONFLICT (chain) DO UPDATE \
             SET last_seq = excluded.last_seq, last_hash = excluded.last_hash"
        );
        tx.execute(upsert, [chain.into(), last.into(), head.into(), core.clock.now().into()]).await?;
    }
    tx.commit().await?;
    notify_subscribers(core, &lines);
    Ok(lines)
}

/// Notifies each organization's subscribers of its newest entry. Entries are only visible once they are sealed, unlike
/// the changes that they describe.
fn notify_subscribers(core: &Core, sealed: &[AuditLine]) {
    let newest: BTreeMap<OrgId, i64> =
        sealed.iter().filter_map(|line| Some((OrgId(line.organization_id?), line.id))).collect();
    for (org, id) in newest {
        core.events.publish(Event::new(org, ChangeOp::Created, RecordKind::AuditEntry, id));
    }
}

/// The next lines to seal, ordered by id.
async fn claim_batch(tx: &Transaction, after: i64) -> Result<Vec<AuditLine>> {
    let first = installation_sql!(
        "SELECT id, ",
        READ_COLUMNS,
        ", CAST(0 AS BIGINT) AS chain_seq FROM audit_unsealed WHERE id > $1 ORDER BY id LIMIT $2"
    );
    tx.all(first, [after.into(), i64::from(BATCH).into()]).await
}

/// The last place of each chain, and its hash.
type Heads = BTreeMap<i64, (i64, Vec<u8>)>;

/// The ends of these lines' chains.
async fn chain_heads(core: &Core, tx: &Transaction, lines: &[AuditLine]) -> Result<Heads> {
    let chains: BTreeSet<i64> = lines.iter().map(AuditLine::chain).collect();
    let chains: Vec<i64> = chains.into_iter().collect();
    let known = installation_sql!(HEADS, "WHERE chain = ANY($1)");
    let heads = tx.all(known, [core.db.keys(&chains)]).await?.into_iter();
    Ok(heads.map(|ChainHead { chain, seq, hash }| (chain, (seq, hash))).collect())
}

/// Gives a line the next place of its chain. Returns the values that seal it.
fn assign_place(line: &mut AuditLine, heads: &mut Heads) -> serde_json::Value {
    let (last, head) = heads.entry(line.chain()).or_insert_with(|| (0, GENESIS.to_vec()));
    *last += 1;
    line.seq = *last;
    let own = hash(head, &line.canonical()).to_vec();
    let place =
        json!({ "id": line.id, "seq": line.seq, "prev": hex::encode(&head), "hash": hex::encode(&own) });
    *head = own;
    place
}

/// Moves lines into the log, with their places. The SQL does not depend on their number, so both statements stay
/// prepared.
async fn move_to_log(core: &Core, tx: &Transaction, places: serde_json::Value) -> Result<()> {
    macro_rules! move_by {
        ($places:literal) => {
            [
                installation_sql!(
                    "INSERT INTO audit_log (id, ",
                    COLUMNS,
                    ", chain_seq, prev_hash, hash) SELECT line.id, ",
                    COLUMNS,
                    ", place.seq, place.prev, place.hash FROM ",
                    $places,
                    " JOIN audit_unsealed line ON line.id = place.id"
                ),
                installation_sql!(
                    "DELETE FROM audit_unsealed WHERE id IN (SELECT place.id FROM ",
                    $places,
                    ")"
                ),
            ]
        };
    }
    let statements = match core.db.backend() {
        DbBackend::Postgres => move_by!(
            "(SELECT id, seq, decode(prev, 'hex') AS prev, decode(hash, 'hex') AS hash \
             FROM jsonb_to_recordset($1) AS given(id BIGINT, seq BIGINT, prev TEXT, hash TEXT)) AS place"
        ),
        _ => move_by!(
            "(SELECT value ->> 'id' AS id, value ->> 'seq' AS seq, unhex(value ->> 'prev') AS prev, \
             unhex(value ->> 'hash') AS hash FROM json_each($1)) AS place"
        ),
    };
    for statement in statements {
        tx.execute(statement, [places.clone().into()]).await?;
    }
    Ok(())
}

/// Signs a checkpoint for every chain that has grown by the configured number of lines since the last one, or has grown
/// at all and waited for the configured time, if it continues the last signed statement. Returns the number of
/// checkpoints.
pub async fn checkpoint(core: &Core) -> Result<u64> {
    let Some(key) = &core.audit.key else { return Ok(0) };
    let now = core.clock.now();
    let believed = believed_ends(core, now).await?;
    // Usually none is due, and the check must not block writers.
    if believed.is_empty() {
        return Ok(0);
    }
    let Some(tx) = begin_alone(core).await? else { return Ok(0) };
    let mut signed = Vec::new();
    for DueChain { chain, signed: last, end } in believed {
        // Another process may have signed in the meantime.
        if newest(&tx, core.audit.trust.keys(), chain, i64::MAX).await?.as_ref() != Ok(&last) {
            continue;
        }
        sign_end(core, &tx, chain, &end, now).await?;
        signed.push((chain, end));
    }
    tx.commit().await?;
    let count = signed.len() as u64;
    for (chain, end) in signed {
        // A log kept elsewhere vouches for the chain's length when the database no longer can.
        let (seq, hash) = (end.seq, hex::encode(&end.hash));
        tracing::info!(chain, seq, hash, key = key.public().id(), "audit.checkpoint");
        core.audit.trust.remember(chain, end);
    }
    Ok(count)
}

/// A chain that is due for a checkpoint, and continues the last signed statement.
struct DueChain {
    chain: i64,
    /// The last signed end.
    signed: ChainEnd,
    /// The end to sign now.
    end: ChainEnd,
}

/// The due chains that continue their last signed statement. Reading their lines blocks no writer.
async fn believed_ends(core: &Core, now: Timestamp) -> Result<Vec<DueChain>> {
    let settings = &core.config.audit;
    let before = now.0 - i64::from(settings.checkpoint_minutes) * 60_000;
    let due = installation_sql!(
        HEADS,
        "WHERE last_seq > checkpoint_seq AND (last_seq - checkpoint_seq >= $1 OR checkpoint_at <= $2)"
    );
    let values: [Value; 2] = [i64::from(settings.checkpoint_lines).into(), before.into()];
    let mut believed = Vec::new();
    let chains: Vec<ChainHead> = core.db.installation().all(due, values.clone()).await?;
    let chains: Vec<i64> = chains.iter().map(|head| head.chain).collect();
    core.audit.trust.refuses_only(&chains);
    if chains.is_empty() {
        return Ok(believed);
    }
    let state = core.db.snapshot().await?;
    for ChainHead { chain, seq, hash } in state.all(due, values).await? {
        let end = ChainEnd { seq, hash };
        if core.audit.trust.rests(chain, now) {
            continue;
        }
        if let Some(signed) = believe(core, &state, chain, &end).await? {
            believed.push(DueChain { chain, signed, end });
        }
    }
    state.rollback().await?;
    Ok(believed)
}

/// Signs the end of a chain that does not continue the last signed statement, so that later lines are signed again. It
/// is for an operator who has secured the evidence: verification still reports the break. Returns the place.
///
/// # Errors
/// `NOT_FOUND` without a line; `CONFLICT` if there is nothing to resume, or a statement of ours stands at the chain's
/// end or after it. Foreign statements there are removed.
pub async fn resume(core: &Core, chain: i64) -> Result<i64> {
    let conflict = |detail: String| Problem::new(Code::Conflict, detail);
    let Some(tx) = begin_alone(core).await? else {
        return Err(conflict("Another process works on the log. Try again.".to_owned()));
    };
    let end = head(&tx, chain).await?.ok_or_else(|| Problem::new(Code::NotFound, "The log has no line."))?;
    if continued(&tx, core.audit.trust.keys(), chain, &end, i64::MAX).await?.is_ok() {
        let detail = "The log continues what was signed. A service that refuses it all the same remembers a checkpoint that \
                      is gone: restart it.";
        return Err(conflict(detail.to_owned()));
    }
    let removed = remove_foreign(core, &tx, chain, &end).await?;
    sign_end(core, &tx, chain, &end, core.clock.now()).await?;
    let changes = json!({ "seq": end.seq, "hash": hex::encode(&end.hash), "removed": removed });
    Origin::operator(core).record(&tx, "resumeAuditLog", ("audit log", Some(chain)), changes);
    tx.commit().await?;
    Ok(end.seq)
}

/// Removes foreign statements at or after a chain's end, which would block our own. Returns how many.
async fn remove_foreign(core: &Core, tx: &Transaction, chain: i64, end: &ChainEnd) -> Result<u64> {
    let behind = installation_sql!(STATED, "WHERE chain = $1 AND seq >= $2");
    for stated in tx.all::<StoredStatement>(behind, [chain.into(), end.seq.into()]).await? {
        let (said, StoredStatement { seq, kind, .. }) = (stated.said(), stated);
        if mistrust(&said, core.audit.trust.keys()).is_none() {
            let detail = format!("There is a checkpoint at {seq}, and the log ends at {}.", end.seq);
            return Err(Problem::new(Code::Conflict, detail));
        }
        tracing::error!(chain, seq, kind, statement = %said, "audit.statement_removed: it is not ours");
    }
    let remove = installation_sql!("DELETE FROM audit_checkpoints WHERE chain = $1 AND seq >= $2");
    tx.execute(remove, [chain.into(), end.seq.into()]).await
}

/// Signs a checkpoint, and records it in the chain's row.
async fn sign_end(core: &Core, tx: &Transaction, chain: i64, end: &ChainEnd, now: Timestamp) -> Result<()> {
    store(core, tx, "CHECKPOINT", (chain, end.seq, &end.hash), now).await?;
    note_checkpoint(tx, chain, end.seq, now).await
}

/// Records the newest checkpoint in a chain's row.
pub(super) async fn note_checkpoint(tx: &Transaction, chain: i64, seq: i64, at: Timestamp) -> Result<()> {
    let sql =
        installation_sql!("UPDATE audit_chains SET checkpoint_seq = $1, checkpoint_at = $2 WHERE chain = $3");
    tx.execute(sql, [seq.into(), at.into(), chain.into()]).await?;
    Ok(())
}

/// Signs and stores a statement.
pub(super) async fn store(
    core: &Core,
    tx: &Transaction,
    kind: &str,
    (chain, seq, head): (i64, i64, &[u8]),
    at: Timestamp,
) -> Result<()> {
    let Some(key) = &core.audit.key else { return Ok(()) };
    let said = statement(&kind.to_ascii_lowercase(), chain, seq, head, at, key.public().id());
    let insert = installation_sql!(
        "INSERT INTO audit_checkpoints (chain, kind, seq, hash, at, key_id, signature) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
    );
    let values = [
        chain.into(),
        kind.into(),
        seq.into(),
        head.to_vec().into(),
        at.into(),
        key.public().id().into(),
        sign(key, &said).to_vec().into(),
    ];
    tx.execute(insert, values).await?;
    Ok(())
}

row! {
    /// The work that waits for the sealer.
    pub struct Lag {
        /// How many committed lines are waiting to be sealed, up to a limit.
        unsealed: i64,
        /// Since when a chain has grown without a checkpoint.
        unsigned_since: Option<Timestamp>,
    }
}

/// How much is still to be sealed and signed.
pub async fn lag(core: &Core) -> Result<Lag> {
    let sql = installation_sql!(
        "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM audit_unsealed WHERE id > $1 ORDER BY id LIMIT 100000) AS waiting) \
         AS unsealed, (SELECT MIN(checkpoint_at) FROM audit_chains WHERE last_seq > checkpoint_seq) AS unsigned_since"
    );
    let lag = core.db.installation().one(sql, [core.audit.floor.now().into()]).await?;
    lag.ok_or_else(|| Problem::internal(anyhow::anyhow!("counting answered nothing")))
}
