//! The serving replicas, and whether all of them have the same policy folder.
//!
//! The operator deploys the folders, so two replicas may decide differently while one lacks the latest files. Each
//! replica writes its folder's hash to a row of its own and reads the others' rows; the log, `/health` and `muster
//! doctor` report those that differ.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use crate::{
    base::{problem::Result, time::Timestamp},
    core::{
        Core,
        sealing::random_bytes,
        store::{
            Db,
            sql::{RunSql as _, RunWritingSql as _, installation_sql, row},
        },
    },
};

/// A replica without a refresh for this long counts as dead: it, or its network, has failed.
const DEAD: Duration = Duration::from_secs(30);

/// This replica, and those with a different policy folder.
pub struct Replicas {
    id: String,
    /// Whether it has a row.
    has_row: AtomicBool,
    differing: Mutex<Vec<Replica>>,
}

impl Default for Replicas {
    fn default() -> Self {
        Self {
            id: hex::encode(random_bytes::<4>()),
            has_row: AtomicBool::default(),
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

    /// The replicas that had a different policy folder at the last comparison.
    #[must_use]
    pub fn differing(&self) -> Vec<Replica> {
        self.differing.lock().clone()
    }

    fn set_differing(&self, differing: Vec<Replica>) {
        let names = |replicas: &[Replica]| replicas.iter().map(Replica::to_string).collect::<Vec<_>>();
        let mut noted = self.differing.lock();
        let (before, now) = (names(&noted), names(&differing));
        if before != now && now.is_empty() {
            tracing::info!("policy.folders_agree");
        } else if before != now {
            tracing::warn!(replicas = now.join(", "), "policy.folders_differ");
        }
        *noted = differing;
    }
}

row! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Replica {
        /// Its name: random, chosen at start.
        id: String,
        /// The machine, and the address it listens on.
        address: String,
        /// Identifies the content of its policy folder.
        policy_folder: String,
    }
}

impl std::fmt::Display for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.id, self.address)
    }
}

/// Refreshes this replica's row and records which replicas have a different folder.
pub async fn refresh_and_compare(core: &Arc<Core>) -> Result<u64> {
    let (own, folder, now) = (&core.replicas, core.policy.status().folder, core.clock.now());
    refresh(core, now, &folder).await?;
    own.has_row.store(true, Ordering::Relaxed);
    let others = live(&core.db, now).await?.into_iter();
    own.set_differing(others.filter(|it| it.policy_folder != folder).collect());
    Ok(0)
}

async fn refresh(core: &Core, now: Timestamp, folder: &str) -> Result<()> {
    let sql = installation_sql!(
        "INSERT INTO replicas (id, address, started_at, seen_at, policy_folder) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, policy_folder = excluded.policy_folder"
    );
    let id = core.replicas.id.as_str();
    let values = [id.into(), address(core).into(), core.started_at.into(), now.into(), folder.into()];
    core.db.installation().execute(sql, values).await?;
    Ok(())
}

/// The serving replicas, including this one.
pub async fn live(db: &Db, now: Timestamp) -> Result<Vec<Replica>> {
    let sql =
        installation_sql!("SELECT id, address, policy_folder FROM replicas WHERE seen_at > $1 ORDER BY id");
    db.installation().all(sql, [now.minus(DEAD).into()]).await
}

/// Deletes this replica's row, so that no one waits for it.
///
/// # Errors
/// The database can't be reached; the row then expires by its age.
pub async fn delete_row(core: &Core) -> Result<()> {
    if !core.replicas.has_row.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    let sql = installation_sql!("DELETE FROM replicas WHERE id = $1");
    core.db.installation().execute(sql, [core.replicas.id.as_str().into()]).await?;
    Ok(())
}

fn address(core: &Core) -> String {
    let machine = rustix::system::uname();
    format!("{} {}", machine.nodename().to_string_lossy(), core.config.listen)
}
