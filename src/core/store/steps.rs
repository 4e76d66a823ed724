//! The migrations: which steps a database lacks, and applying them once.
//!
//! A version refuses a database that a later version has migrated, or in which a step has a different checksum:
//! [`Db::mismatch`] is the one place that decides it. See `migrations/README.md`.

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::Context;
use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use serde::Serialize;
use sqlx::{
    Connection, Executor, PgConnection, SqliteConnection,
    migrate::{MigrateError, Migrator},
};

use super::{Db, Driver};

static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");
static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");

/// The advisory lock of a migration, so that replicas migrate one after another.
const LOCK: i64 = 0x006d_7573_7465_7231;
/// How many seconds a step waits for a table in use. Requests queue behind it for as long, so a long statement must not
/// become an outage.
const LOCK_SECONDS: u64 = 10;
/// PostgreSQL's error code for a lock timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The version of this program.
const OWN: &str = env!("CARGO_PKG_VERSION");

/// Notes this version as the one that applied the steps of which no version is known.
const NOTE: &str = "INSERT INTO step_versions (step, muster) SELECT version, $1 FROM _sqlx_migrations \
                    WHERE version NOT IN (SELECT step FROM step_versions)";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationStep {
    pub version: i64,
    pub name: String,
}

impl fmt::Display for MigrationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04} {}", self.version, self.name)
    }
}

/// Why this version can't use a database: it has other steps.
#[derive(Debug, thiserror::Error)]
#[error("{found}. {remedy}")]
pub struct StepMismatch {
    /// What is wrong, without a full stop.
    pub found: String,
    /// What to do about it.
    pub remedy: String,
}

impl StepMismatch {
    /// The database has a step that came after this version. `muster` applied it, if that is known.
    fn later(step: &MigrationStep, muster: Option<&str>) -> Self {
        let (by, start) = match muster {
            Some(muster) if muster != OWN => {
                (format!("Muster {muster}"), format!("Muster {muster} or later"))
            }
            _ => ("a later version".to_owned(), "that version".to_owned()),
        };
        Self {
            found: format!("{by} has migrated the database (step {step}), and this is Muster {OWN}"),
            remedy: format!("Start {start}, or restore a backup from before the upgrade."),
        }
    }

    /// These steps are not the ones of this version. `muster` applied the first, if that is known.
    fn changed(steps: &[MigrationStep], muster: Option<&str>) -> Self {
        let names: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let build = match muster {
            Some(muster) if muster != OWN => format!("Muster {muster}"),
            _ => "the build that migrated it".to_owned(),
        };
        Self {
            found: format!(
                "steps of the database are not those of this version, Muster {OWN}: {}",
                names.join(", ")
            ),
            remedy: format!("Start {build}, or use a new database: steps may change until 0.1.0."),
        }
    }

    /// A step was begun outside a transaction and did not finish.
    fn unfinished(step: &MigrationStep) -> Self {
        Self {
            found: format!("step {step} of the database was begun and not finished"),
            remedy: "Restore a backup from before the upgrade, or undo by hand what the step has done, delete its row in \
                     _sqlx_migrations, and run `muster migrate`."
                .to_owned(),
        }
    }
}

/// A step that a database has.
struct AppliedStep {
    name: String,
    checksum: Vec<u8>,
    is_finished: bool,
}

/// The steps that a database has, by number.
type AppliedSteps = BTreeMap<i64, AppliedStep>;

fn steps(backend: DbBackend) -> &'static Migrator {
    if backend == DbBackend::Postgres { &POSTGRES } else { &SQLITE }
}

/// The newest step that this version knows, the same for both databases.
#[must_use]
pub fn newest_step() -> i64 {
    SQLITE.iter().map(|step| step.version).max().unwrap_or(0)
}

/// The steps of this version that are not among these, in order.
fn missing(backend: DbBackend, applied: &AppliedSteps) -> Vec<MigrationStep> {
    let is_applied = |version: i64| applied.get(&version).is_some_and(|step| step.is_finished);
    let missing = steps(backend).iter().filter(|step| !is_applied(step.version));
    missing
        .map(|step| MigrationStep { version: step.version, name: step.description.clone().into_owned() })
        .collect()
}

impl Db {
    /// Brings the database's tables up to date. Replicas that start at once do it only once.
    ///
    /// # Errors
    /// The database has other steps ([`StepMismatch`]), or a step fails.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        let applied = self.applied().await?;
        if let Some(mismatch) = self.mismatch_of(&applied).await? {
            return Err(mismatch.into());
        }
        // A crash between the last step and its note leaves the step without one.
        if missing(self.backend(), &applied).is_empty() && self.applied_by(newest_step()).await?.is_some() {
            return Ok(());
        }
        // A separate connection, so that its settings and the lock end with it.
        let done = match self.connect().await? {
            Driver::Postgres(connection) => migrate_postgres(connection).await,
            Driver::Sqlite(connection) => migrate_sqlite(connection).await,
        };
        done.map_err(|error| self.step_failed(error))
    }

    /// Explains a failed step to the operator, if there is more to say than the database does.
    fn step_failed(&self, error: anyhow::Error) -> anyhow::Error {
        let explained = match error.downcast_ref::<MigrateError>() {
            Some(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
                self.explained(error)
            }
            _ => None,
        };
        let error = explained.map_or(error, anyhow::Error::from);
        error.context("migrating the database")
    }

    /// The steps that the database lacks, in order.
    pub async fn pending(&self) -> Result<Vec<MigrationStep>, DbErr> {
        Ok(missing(self.backend(), &self.applied().await?))
    }

    /// Why this version can't use the database's steps, if so. Missing steps are no reason.
    pub async fn mismatch(&self) -> Result<Option<StepMismatch>, DbErr> {
        self.mismatch_of(&self.applied().await?).await
    }

    async fn mismatch_of(&self, applied: &AppliedSteps) -> Result<Option<StepMismatch>, DbErr> {
        let named = |version: i64, step: &AppliedStep| MigrationStep { version, name: step.name.clone() };
        if let Some((version, step)) = applied.last_key_value()
            && *version > newest_step()
        {
            let muster = self.applied_by(*version).await?;
            return Ok(Some(StepMismatch::later(&named(*version, step), muster.as_deref())));
        }
        if let Some((version, step)) = applied.iter().find(|(_, step)| !step.is_finished) {
            return Ok(Some(StepMismatch::unfinished(&named(*version, step))));
        }
        let own: BTreeMap<i64, &[u8]> =
            steps(self.backend()).iter().map(|step| (step.version, &*step.checksum)).collect();
        let is_changed =
            |version: &i64, step: &AppliedStep| own.get(version) != Some(&step.checksum.as_slice());
        let changed: Vec<MigrationStep> = applied
            .iter()
            .filter(|&(version, step)| is_changed(version, step))
            .map(|(version, step)| named(*version, step))
            .collect();
        let Some(first) = changed.first() else { return Ok(None) };
        let muster = self.applied_by(first.version).await?;
        Ok(Some(StepMismatch::changed(&changed, muster.as_deref())))
    }

    /// The version of Muster that applied a step, if the database says so.
    async fn applied_by(&self, step: i64) -> Result<Option<String>, DbErr> {
        let sql = "SELECT muster FROM step_versions WHERE step = $1";
        let asked = Statement::from_sql_and_values(self.backend(), sql, [step.into()]);
        match self.read().query_one_raw(asked).await {
            Ok(row) => row.map(|row| row.try_get_by("muster")).transpose(),
            // The database is from before this table, or from a version that has none.
            Err(DbErr::Query(_)) => self.ping().await.map(|()| None),
            Err(error) => Err(error),
        }
    }

    /// Whether no step was ever applied: the database has no Muster tables.
    pub async fn is_blank(&self) -> Result<bool, DbErr> {
        Ok(self.applied().await?.is_empty())
    }

    /// The steps that the database has.
    async fn applied(&self) -> Result<AppliedSteps, DbErr> {
        let sql = "SELECT version, description, checksum, success FROM _sqlx_migrations";
        let rows = self.read().query_all_raw(Statement::from_string(self.backend(), sql)).await;
        match rows {
            Ok(rows) => rows
                .iter()
                .map(|row| {
                    let step = AppliedStep {
                        name: row.try_get_by("description")?,
                        checksum: row.try_get_by("checksum")?,
                        is_finished: row.try_get_by("success")?,
                    };
                    Ok((row.try_get_by("version")?, step))
                })
                .collect(),
            // A database that was never migrated does not have the table.
            Err(DbErr::Query(_)) => self.ping().await.map(|()| AppliedSteps::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether every step that this version knows has been applied.
    pub async fn is_migrated(&self) -> Result<bool, DbErr> {
        Ok(self.pending().await?.is_empty())
    }
}

async fn migrate_postgres(mut connection: PgConnection) -> anyhow::Result<()> {
    // Limits of write connections that a step may exceed.
    let unbounded = "SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0";
    sqlx::raw_sql(unbounded).execute(&mut connection).await?;
    let lock = connection.execute(sqlx::query("SELECT pg_advisory_lock($1)").bind(LOCK));
    tokio::time::timeout(Duration::from_mins(10), lock)
        .await
        .context("another replica is still migrating")??;
    let timeout = sqlx::query("SELECT set_config('lock_timeout', $1, false)");
    connection.execute(timeout.bind(format!("{LOCK_SECONDS}s"))).await?;
    let done = match POSTGRES.run(&mut connection).await {
        Ok(()) => {
            sqlx::query(NOTE).bind(OWN).execute(&mut connection).await.map(drop).map_err(anyhow::Error::from)
        }
        Err(error) => Err(explain_lock(error)),
    };
    // An error while closing would hide that of a step.
    let _ = connection.close().await;
    done
}

async fn migrate_sqlite(mut connection: SqliteConnection) -> anyhow::Result<()> {
    let done = match SQLITE.run(&mut connection).await {
        Ok(()) => {
            sqlx::query(NOTE).bind(OWN).execute(&mut connection).await.map(drop).map_err(anyhow::Error::from)
        }
        Err(error) => Err(anyhow::Error::from(error)),
    };
    let _ = connection.close().await;
    done
}

/// Tells the operator what to do about a step that could not lock its table.
fn explain_lock(error: MigrateError) -> anyhow::Error {
    let timed_out = |error: &sqlx::Error| {
        error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .is_some_and(|code| code == LOCK_NOT_AVAILABLE)
    };
    match error {
        MigrateError::ExecuteMigration(error, step) if timed_out(&error) => anyhow::anyhow!(
            "step {step} could not lock a table within {LOCK_SECONDS} seconds, because something else is using it. The step has \
             changed nothing, and the running version continues. Try again, or end the long statement (see pg_stat_activity)"
        ),
        other => other.into(),
    }
}
