//! Counts what was allowed and refused, so that a candidate policy can be simulated on real calls.
//!
//! A request adds one to a counter in memory; the counters are sharded so that requests don't wait for each other. A
//! round moves them to the table `decisions`, one row per day; a crash loses the last few seconds of counts. Of a
//! request only the operation's name is kept.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use sea_orm::Value;

use crate::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
        problem::Result,
    },
    core::{
        Core,
        access::{Caller, Membership},
    },
};

/// How a permission check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Allowed.
    Allowed,
    /// Refused by the policy.
    Refused,
    /// Refused because the service token was not issued with it; no policy changes that.
    NotIssued,
}

impl Outcome {
    /// As stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "ALLOWED",
            Self::Refused => "REFUSED",
            Self::NotIssued => "NOT_ISSUED",
        }
    }
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    org: i64,
    /// 0 for a person.
    token: i64,
    /// `None` for a service token.
    role: Option<Role>,
    /// The root field.
    operation: Arc<str>,
    permission: Permission,
    outcome: Outcome,
}

/// Few enough to empty quickly, and enough that two cores rarely meet.
const SHARDS: usize = 16;
/// The most distinct keys in a shard between two flushes; anything beyond is not counted, and a warning says so.
const MAX_KEYS: usize = 4_096;
/// Rows per statement.
const BATCH: usize = 200;

/// The counters.
pub struct Decisions {
    shards: [Mutex<HashMap<Key, i64>>; SHARDS],
    dropped: AtomicU64,
}

impl Default for Decisions {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::new(HashMap::new())), dropped: AtomicU64::new(0) }
    }
}

impl Decisions {
    /// Counts a decision about a call of the root field `operation`.
    pub fn count(
        &self,
        caller: &Caller,
        membership: &Membership,
        org: OrgId,
        operation: Arc<str>,
        permission: Permission,
    ) {
        let (role, token, outcome) = match caller {
            Caller::Anonymous | Caller::System => return,
            Caller::Person(_) | Caller::Chatting(_) => {
                let allowed = membership.permissions.contains(permission);
                (membership.role, 0, if allowed { Outcome::Allowed } else { Outcome::Refused })
            }
            Caller::Token(token) if !token.permissions.contains(permission) => {
                (None, token.id.0, Outcome::NotIssued)
            }
            Caller::Token(token) => {
                let allowed = membership.permissions.contains(permission);
                (None, token.id.0, if allowed { Outcome::Allowed } else { Outcome::Refused })
            }
        };
        self.add(Key { org: org.0, token, role, operation, permission, outcome });
    }

    fn add(&self, key: Key) {
        let mut shard = self.shards[own_shard()].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = shard.get_mut(&key) {
            *count += 1;
        } else if shard.len() < MAX_KEYS {
            shard.insert(key, 1);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes out all counts.
    fn take(&self) -> Vec<(Key, i64)> {
        let take = |shard: &Mutex<HashMap<Key, i64>>| {
            std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.shards.iter().flat_map(take).collect()
    }

    fn put_back(&self, counts: &[(Key, i64)]) {
        let mut shard = self.shards[own_shard()].lock().unwrap_or_else(PoisonError::into_inner);
        for (key, count) in counts {
            *shard.entry(key.clone()).or_default() += count;
        }
    }
}

/// This thread's shard; threads rarely share one.
fn own_shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    OWN.with(Cell::get)
}

/// One day's count, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The organization.
    pub org: OrgId,
    /// The role; `None` for a service token.
    pub role: Option<Role>,
    /// The service token; 0 for a person.
    pub token: i64,
    /// The root field.
    pub operation: String,
    /// The permission it needed.
    pub permission: Permission,
    /// The decision.
    pub outcome: Outcome,
    /// The number of calls.
    pub count: i64,
}

const DAY: i64 = 86_400_000;

/// Moves the counters to the database. Returns 0: this runs all the time, and the log should not report it.
///
/// # Errors
/// The database can't be reached; the counters keep what they have.
pub async fn flush(core: &Core) -> Result<u64> {
    let counts = merged(core.access.decisions.take());
    let dropped = core.access.decisions.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        tracing::warn!(dropped, "decisions.not_counted");
    }
    let day = core.clock.now().0.div_euclid(DAY);
    let mut written = 0;
    for batch in counts.chunks(BATCH) {
        if let Err(problem) = write(core, day, batch).await {
            core.access.decisions.put_back(&counts[written..]);
            return Err(problem);
        }
        written += batch.len();
    }
    // Runs all the time, so the log does not report it.
    Ok(0)
}

/// One statement must not touch a row twice.
fn merged(counts: Vec<(Key, i64)>) -> Vec<(Key, i64)> {
    let mut merged: HashMap<Key, i64> = HashMap::with_capacity(counts.len());
    for (key, count) in counts {
        *merged.entry(key).or_default() += count;
    }
    merged.into_iter().collect()
}

async fn write(core: &Core, day: i64, counts: &[(Key, i64)]) -> Result<()> {
    let (mut values, mut rows): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for (key, count) in counts {
        let at = values.len();
        let subject = key.role.map_or("service_token", Role::as_str);
        values.extend::<[Value; 8]>([
            key.org.into(),
            day.into(),
            subject.into(),
            key.token.into(),
            key.operation.as_ref().into(),
            key.permission.as_str().into(),
            key.outcome.as_str().into(),
            (*count).into(),
        ]);
        let places: Vec<String> = (at + 1..=at + 8).map(|place| format!("${place}")).collect();
        rows.push(format!("({})", places.join(", ")));
    }
    let sql = format!(
        "INSERT INTO decisions (organization_id, day, subject, token_id, operation, permission, outcome, count) \
         VALUES {} ON CONFLICT (organization_id, day, subject, token_id, operation, outcome) \
         DO UPDATE SET count = decisions.count + excluded.count",
        rows.join(", ")
    );
    core.db.execute(&sql, values).await?;
    Ok(())
}

/// Deletes days older than the settings keep them.
///
/// # Errors
/// The database can't be reached.
pub async fn prune(core: &Arc<Core>) -> Result<u64> {
    let kept = Duration::from_secs(core.config.policy.decisions_kept_days * 86_400);
    let first = core.clock.now().minus(kept).0.div_euclid(DAY);
    Ok(core.db.sweep("decisions", "day < $1", first).await?)
}

/// What was decided in the last days, including today, in one organization or in all.
pub async fn recorded(core: &Core, org: Option<OrgId>, days: i64) -> Result<Vec<Decision>> {
    let first = core.clock.now().0.div_euclid(DAY) - days + 1;
    let only = if org.is_some() { " AND organization_id = $2" } else { "" };
    let sql = format!(
        "SELECT organization_id, subject, token_id, operation, permission, outcome, CAST(SUM(count) AS BIGINT) \
         FROM decisions WHERE day >= $1{only} \
         GROUP BY organization_id, subject, token_id, operation, permission, outcome"
    );
    let values: Vec<Value> =
        [Some(first.into()), org.map(|org| org.0.into())].into_iter().flatten().collect();
    let mut found = Vec::new();
    for row in core.db.all(sql, values).await? {
        let (subject, permission): (String, String) = (row.try_get_by_index(1)?, row.try_get_by_index(4)?);
        // A permission that this version does not know can't be simulated.
        let Ok(permission) = permission.parse() else { continue };
        let outcome: String = row.try_get_by_index(5)?;
        found.push(Decision {
            org: OrgId(row.try_get_by_index(0)?),
            role: subject.parse().ok(),
            token: row.try_get_by_index(2)?,
            operation: row.try_get_by_index(3)?,
            permission,
            outcome: match outcome.as_str() {
                "ALLOWED" => Outcome::Allowed,
                "REFUSED" => Outcome::Refused,
                _ => Outcome::NotIssued,
            },
            count: row.try_get_by_index(6)?,
        });
    }
    Ok(found)
}
