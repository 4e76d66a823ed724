//! Which replicas are serving, and whether they all have the same policy folder.
//!
//! The operator deploys the folders, so two replicas may decide differently while one lacks the latest files. Each
//! replica writes its folder's hash to a row of its own and reads the others' rows; the log, `/health` and `muster
//! doctor` report those that differ.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sea_orm::QueryResult;

use crate::{
    base::{problem::Result, time::Timestamp},
    core::{Core, sealing::random_bytes, store::Db},
};

/// How often a replica reads the others' rows.
pub const LOOK: Duration = Duration::from_secs(10);
/// When its own row is old; a changed folder is written at once.
const OLD: Duration = Duration::from_secs(8);
/// How long without a refresh until a replica counts as dead.
const DEAD: Duration = Duration::from_secs(30);

/// This replica, and those with a different policy folder.
pub struct Replicas {
    id: String,
    /// When the row was last refreshed, and with which hash.
    refreshed: Mutex<Option<(Timestamp, String)>>,
    differing: Mutex<Vec<Replica>>,
}

impl Default for Replicas {
    fn default() -> Self {
        Self {
            id: hex::encode(random_bytes::<4>()),
            refreshed: Mutex::default(),
            differing: Mutex::default(),
        }
    }
}

impl Replicas {
    /// This replica's name.
    #[must_use]
    pub fn own_id(&self) -> &str {
        &self.id
    }

    /// The replicas that had a different policy folder at the last look.
    #[must_use]
    pub fn differing(&self) -> Vec<Replica> {
        self.differing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the row was refreshed recently with this hash.
    fn is_fresh(&self, now: Timestamp, folder: &str) -> bool {
        let refreshed = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
        refreshed.as_ref().is_some_and(|(at, of)| of == folder && now < at.plus(OLD))
    }

    fn note(&self, differing: Vec<Replica>) {
        let names = |replicas: &[Replica]| replicas.iter().map(Replica::to_string).collect::<Vec<_>>();
        let mut noted = self.differing.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, now) = (names(&noted), names(&differing));
        if before != now && now.is_empty() {
            tracing::info!("policy.folders_agree");
        } else if before != now {
            tracing::warn!(replicas = now.join(", "), "policy.folders_differ");
        }
        *noted = differing;
    }
}

/// A serving replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its name: random, chosen at start.
    pub id: String,
    /// The machine, and the address it listens on.
    pub address: String,
    /// Identifies the content of its policy folder.
    pub policy_folder: String,
}

impl std::fmt::Display for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.id, self.address)
    }
}

/// Refreshes this replica's row and notes which replicas have a different folder.
///
/// # Errors
/// The database can't be reached.
pub async fn report(core: &Arc<Core>) -> Result<u64> {
    let (own, folder, now) = (&core.replicas, core.policy.status().folder, core.clock.now());
    if !own.is_fresh(now, &folder) {
        refresh(core, now, &folder).await?;
        *own.refreshed.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, folder.clone()));
    }
    let others = live(&core.db, now).await?.into_iter();
    own.note(others.filter(|it| it.policy_folder != folder).collect());
    Ok(0)
}

async fn refresh(core: &Core, now: Timestamp, folder: &str) -> Result<()> {
    let sql = "INSERT INTO replicas (id, address, started_at, seen_at, policy_folder) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, policy_folder = excluded.policy_folder";
    let id = core.replicas.id.as_str();
    let values = vec![id.into(), address(core).into(), core.started_at.into(), now.into(), folder.into()];
    core.db.execute(sql, values).await?;
    Ok(())
}

/// The serving replicas, including this one.
///
/// # Errors
/// The database can't be reached.
pub async fn live(db: &Db, now: Timestamp) -> Result<Vec<Replica>> {
    let sql = "SELECT id, address, policy_folder FROM replicas WHERE seen_at > $1 ORDER BY id";
    let read = |row: &QueryResult| -> Result<Replica> {
        Ok(Replica { id: row.try_get_by(0)?, address: row.try_get_by(1)?, policy_folder: row.try_get_by(2)? })
    };
    db.all(sql.to_owned(), vec![now.minus(DEAD).into()]).await?.iter().map(read).collect()
}

/// Deletes this replica's row, so that no one waits for it.
///
/// # Errors
/// The database can't be reached; the row then expires by its age.
pub async fn leave(core: &Core) -> Result<()> {
    if core.replicas.refreshed.lock().unwrap_or_else(PoisonError::into_inner).take().is_none() {
        return Ok(());
    }
    let id = core.replicas.id.as_str();
    core.db.execute("DELETE FROM replicas WHERE id = $1", vec![id.into()]).await?;
    Ok(())
}

fn address(core: &Core) -> String {
    let machine = rustix::system::uname();
    format!("{} {}", machine.nodename().to_string_lossy(), core.config.listen)
}
