//! The worker: sends whatever is waiting, except commands for hosts.
//!
//! Any number of replicas look for due rows. To take a row, a replica raises its number of attempts and postpones it by
//! [`LEASE`], in one statement that only one replica can win; if that replica dies, the row is due again. A row is
//! deleted when it is done, obsolete or given up; after a failure it waits, longer each time. Sending and deleting are
//! two steps: a replica that dies in between sends twice.

use std::time::Duration;

use sea_orm::QueryResult;
use serde::de::DeserializeOwned;
use serde_json::Value as Payload;
use tokio::time::timeout;

use super::wake;
use crate::{
    base::{enums::OutboxKind, problem::Result, time::Timestamp},
    core::{Core, sealing::random_bytes, telemetry::metrics},
};

/// How long a replica has for one row.
const LEASE: Duration = Duration::from_mins(2);
/// How long a failed row waits at most, by its number of attempts.
const WAITS: [Duration; 6] = [
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(1),
];
/// How many rows are read at a time.
const BATCH: u64 = 20;

/// Mails that are due at `$1`.
pub const MAIL_DUE: &str = "outbox WHERE acknowledged_at IS NULL AND kind = 'MAIL' AND available_at <= $1";

/// Work that a replica has claimed.
#[derive(Clone, Debug)]
pub struct Claim<W> {
    /// The id of the row.
    pub id: i64,
    /// What to do.
    pub work: W,
    /// When the row was written.
    pub created_at: Timestamp,
    expires_at: Timestamp,
    /// How many attempts there were before.
    attempts: i64,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Sent.
    Done,
    /// No longer needed.
    Over,
    /// Not sent, but a retry may succeed; with the reason.
    Later(String),
    /// Can't ever be sent; with the reason.
    Never(String),
    /// This version can't read it, but another may; with the reason.
    Unreadable(String),
}

impl Outcome {
    const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Over => "over",
            Self::Later(_) => "put_off",
            Self::Never(_) => "given_up",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Claims the due rows of one kind, one after another, and passes them to `handle`. Returns the number done.
///
/// # Errors
/// The database can't be reached; claimed rows are due again when their lease ends.
pub async fn work<W: DeserializeOwned, F: Future<Output = Result<Outcome>>>(
    core: &Core,
    kind: OutboxKind,
    handle: impl Fn(Claim<W>) -> F,
) -> Result<u64> {
    let (mut done, mut gone) = (0, 0);
    for row in due(core, kind).await? {
        if !claim(core, &row).await? {
            continue;
        }
        let outcome = attempt(core, &row, &handle).await;
        told(kind, row.id, &outcome);
        done += u64::from(outcome == Outcome::Done);
        gone += u64::from(settle(core, &row, &outcome).await?);
    }
    if gone > 0 {
        // There may be more due than were read, or rows that waited for these.
        wake(core);
    }
    Ok(done)
}

async fn due(core: &Core, kind: OutboxKind) -> Result<Vec<Claim<Payload>>> {
    let sql = format!(
        "SELECT id, payload, created_at, expires_at, attempts FROM outbox due \
         WHERE acknowledged_at IS NULL AND kind = $1 AND available_at <= $2 AND NOT EXISTS (SELECT 1 FROM outbox earlier \
         WHERE earlier.order_key = due.order_key AND earlier.id < due.id AND earlier.acknowledged_at IS NULL) \
         ORDER BY available_at, id LIMIT {BATCH}"
    );
    let rows = core.db.all(sql, vec![kind.into(), core.clock.now().into()]).await?;
    rows.iter().map(read).collect()
}

fn read(row: &QueryResult) -> Result<Claim<Payload>> {
    Ok(Claim {
        id: row.try_get_by(0)?,
        work: row.try_get_by(1)?,
        created_at: row.try_get_by(2)?,
        expires_at: row.try_get_by(3)?,
        attempts: row.try_get_by(4)?,
    })
}

/// Claims a row, unless another replica was faster.
async fn claim(core: &Core, row: &Claim<Payload>) -> Result<bool> {
    let sql = "UPDATE outbox SET attempts = attempts + 1, available_at = $1 WHERE id = $2 AND attempts = $3";
    let until = core.clock.now().plus(LEASE);
    Ok(core.db.execute(sql, vec![until.into(), row.id.into(), row.attempts.into()]).await? == 1)
}

async fn attempt<W: DeserializeOwned, F: Future<Output = Result<Outcome>>>(
    core: &Core,
    row: &Claim<Payload>,
    handle: impl Fn(Claim<W>) -> F,
) -> Outcome {
    if row.expires_at <= core.clock.now() {
        return Outcome::Never("it expired before it could be sent".to_owned());
    }
    let claimed = match W::deserialize(&row.work) {
        Ok(work) => {
            let Claim { id, created_at, expires_at, attempts, .. } = *row;
            Claim { id, work, created_at, expires_at, attempts }
        }
        Err(error) => return Outcome::Unreadable(error.to_string()),
    };
    // Half the lease: a task that takes longer than the whole lease would send twice.
    match timeout(LEASE / 2, handle(claimed)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(problem)) => Outcome::Later(problem.to_string()),
        Err(_) => Outcome::Later("no answer in time".to_owned()),
    }
}

fn told(kind: OutboxKind, id: i64, outcome: &Outcome) {
    if let Some(meters) = metrics::on() {
        meters.attempted(kind.as_str(), outcome.name());
    }
    if let Outcome::Later(why) | Outcome::Never(why) | Outcome::Unreadable(why) = outcome {
        tracing::warn!(id, kind = kind.as_str(), outcome = outcome.name(), why, "outbox.not_sent");
    }
}

/// Records the outcome of an attempt. Returns whether the row is gone.
async fn settle(core: &Core, row: &Claim<Payload>, outcome: &Outcome) -> Result<bool> {
    if matches!(outcome, Outcome::Done | Outcome::Over | Outcome::Never(_)) {
        core.db.execute("DELETE FROM outbox WHERE id = $1", vec![row.id.into()]).await?;
        return Ok(true);
    }
    // Unless the lease has run out and another replica has the row.
    let sql = "UPDATE outbox SET available_at = $1 WHERE id = $2 AND attempts = $3";
    let [part] = random_bytes();
    let at = core.clock.now().plus(wait(row.attempts, part));
    core.db.execute(sql, vec![at.into(), row.id.into(), (row.attempts + 1).into()]).await?;
    Ok(false)
}

/// How long a row waits after so many attempts: up to a fifth less, by `part`, so that rows that failed together are
/// not retried together.
fn wait(attempts: i64, part: u8) -> Duration {
    let longest = WAITS[usize::try_from(attempts).unwrap_or(usize::MAX).min(WAITS.len() - 1)];
    longest.saturating_sub(longest / 5 * u32::from(part) / 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_back_off_with_jitter() {
        let [first, second, sixth, last] = [0, 1, 5, i64::MAX].map(|attempts| wait(attempts, 0).as_secs());
        assert_eq!([first, second, sixth, last], [15, 60, 3600, 3600]);
        let waits: Vec<_> = (0..=u8::MAX).map(|part| wait(0, part)).collect();
        assert!(waits.windows(2).all(|pair| pair[0] > pair[1]));
        assert!(waits[255] > Duration::from_secs(12));
    }
}
