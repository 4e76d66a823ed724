//! Counts allowed and refused calls, so that a candidate policy can be simulated on them.
//!
//! Each request increments an in-memory counter; the counters are sharded to avoid contention. A periodic job adds them
//! to the table `decisions`, one row per key and day, so a crash loses only the last few seconds of counts. Of the
//! request itself, only the operation's name is stored.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sea_orm::DbBackend;
use serde_json::json;

use crate::{
    base::{
        bounds,
        ids::OrgId,
        permission::{Permission, Role},
        problem::Result,
        time::DAY_MS,
    },
    core::{
        Core,
        access::{Caller, Membership},
        store::sql::{RunSql as _, RunWritingSql as _, every_org_sql, row},
    },
};

/// How a permission check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Allowed,
    /// Refused by the policy.
    Refused,
    /// Refused because the service token was issued without this permission, which no policy can change.
    NotIssued,
}

impl Outcome {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "ALLOWED",
            Self::Refused => "REFUSED",
            Self::NotIssued => "NOT_ISSUED",
        }
    }
}

/// Calls with the same key are counted together.
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

/// The maximum number of distinct keys in a shard. It bounds memory while the database is unreachable: calls with
/// further keys are not counted, and a warning is logged.
const MAX_KEYS: usize = 4_096;

pub struct Decisions {
    /// Few enough to drain quickly, and enough that two cores rarely contend for one.
    shards: [Mutex<HashMap<Key, i64>>; 16],
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
            Caller::Person(_) | Caller::LinkedChat(_) => {
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
        let mut shard = self.shards[own_number() % self.shards.len()].lock();
        if let Some(count) = shard.get_mut(&key) {
            *count += 1;
        } else if shard.len() < MAX_KEYS {
            shard.insert(key, 1);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Drains the counts of all shards.
    fn take_counts(&self) -> Vec<(Key, i64)> {
        let take = |shard: &Mutex<HashMap<Key, i64>>| std::mem::take(&mut *shard.lock());
        self.shards.iter().flat_map(take).collect()
    }

    fn put_back(&self, counts: &[(Key, i64)]) {
        let mut shard = self.shards[own_number() % self.shards.len()].lock();
        for (key, count) in counts {
            *shard.entry(key.clone()).or_default() += count;
        }
    }
}

/// This thread's number, which chooses its shard; threads rarely share one.
fn own_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    OWN.with(Cell::get)
}

/// One day's count, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub org: OrgId,
    /// The role; `None` for a service token.
    pub role: Option<Role>,
    /// The service token; 0 for a person.
    pub token: i64,
    /// The root field.
    pub operation: String,
    pub permission: Permission,
    pub outcome: Outcome,
    pub count: i64,
}

/// Moves the counters to the database. Returns 0, so that the log does not report each run.
///
/// # Errors
/// The database can't be reached; the counters keep their values.
pub async fn flush(core: &Core) -> Result<u64> {
    let counts = merged(core.access.decisions.take_counts());
    let dropped = core.access.decisions.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        tracing::warn!(dropped, "decisions.not_counted");
    }
    let day = core.clock.now().0.div_euclid(DAY_MS);
    let mut written = 0;
    for batch in counts.chunks(bounds::ROWS as usize) {
        if let Err(problem) = write(core, day, batch).await {
            core.access.decisions.put_back(&counts[written..]);
            return Err(problem);
        }
        written += batch.len();
    }
    Ok(0)
}

/// Sums the shards' counts by key: an upsert must not touch a row twice.
fn merged(counts: Vec<(Key, i64)>) -> Vec<(Key, i64)> {
    let mut merged: HashMap<Key, i64> = HashMap::with_capacity(counts.len());
    for (key, count) in counts {
        *merged.entry(key).or_default() += count;
    }
    merged.into_iter().collect()
}

async fn write(core: &Core, day: i64, counts: &[(Key, i64)]) -> Result<()> {
    const INSERT: &str = "INSERT INTO decisions \
         (day, organization_id, subject, token_id, operation, permission, outcome, count) ";
    const ADD: &str = " WHERE TRUE ON CONFLICT (organization_id, day, subject, token_id, operation, outcome) \
         DO UPDATE SET count = decisions.count + excluded.count";
    let row = |(key, count): &(Key, i64)| {
        let subject = key.role.map_or("service_token", Role::as_str);
        json!({
            "org": key.org, "subject": subject, "token": key.token, "operation": &*key.operation,
            "permission": key.permission.as_str(), "outcome": key.outcome.as_str(), "count": count,
        })
    };
    let sql = match core.db.backend() {
        DbBackend::Postgres => every_org_sql!(
            INSERT,
            "SELECT $1, org, subject, token, operation, permission, outcome, count FROM jsonb_to_recordset($2) \
             AS given(org BIGINT, subject TEXT, token BIGINT, operation TEXT, permission TEXT, outcome TEXT, count BIGINT)",
            ADD
        ),
        _ => every_org_sql!(
            INSERT,
            "SELECT $1, value ->> 'org', value ->> 'subject', value ->> 'token', value ->> 'operation', \
             value ->> 'permission', value ->> 'outcome', value ->> 'count' FROM json_each($2)",
            ADD
        ),
    };
    let rows: serde_json::Value = counts.iter().map(row).collect();
    core.db.every_org().execute(sql, [day.into(), rows.into()]).await?;
    Ok(())
}

/// Deletes days past the configured retention.
pub async fn prune(core: &Arc<Core>) -> Result<u64> {
    let kept = Duration::from_secs(core.config.policy.decisions_kept_days * 86_400);
    let first = core.clock.now().minus(kept).0.div_euclid(DAY_MS);
    Ok(core.db.sweep("decisions", "day < $1", first).await?)
}

row! {
    /// The summed calls of one key.
    struct CountedCalls {
        organization_id: OrgId,
        subject: String,
        token_id: i64,
        operation: String,
        permission: String,
        outcome: String,
        count: i64,
    }
}

/// The decisions of the last days, including today, in one organization or in all.
pub async fn recorded(core: &Core, org: Option<OrgId>, days: i64) -> Result<Vec<Decision>> {
    const SUM: &str = "SELECT organization_id, subject, token_id, operation, permission, outcome, \
         CAST(SUM(count) AS BIGINT) AS count FROM decisions WHERE day >= $1";
    const BY: &str = " GROUP BY organization_id, subject, token_id, operation, permission, outcome";
    let first = core.clock.now().0.div_euclid(DAY_MS) - days + 1;
    let runner = core.db.every_org();
    let counted: Vec<CountedCalls> = match org {
        Some(org) => {
            let sql = every_org_sql!(SUM, " AND organization_id = $2", BY);
            runner.all(sql, [first.into(), org.into()]).await?
        }
        None => runner.all(every_org_sql!(SUM, BY), [first.into()]).await?,
    };
    // A permission that this version does not know can't be simulated.
    Ok(counted.into_iter().filter_map(CountedCalls::decision).collect())
}

impl CountedCalls {
    fn decision(self) -> Option<Decision> {
        Some(Decision {
            permission: self.permission.parse().ok()?,
            org: self.organization_id,
            role: self.subject.parse().ok(),
            token: self.token_id,
            operation: self.operation,
            outcome: match self.outcome.as_str() {
                "ALLOWED" => Outcome::Allowed,
                "REFUSED" => Outcome::Refused,
                _ => Outcome::NotIssued,
            },
            count: self.count,
        })
    }
}
