//! The migrations: which steps a database lacks, and applying them once.
//!
//! A version refuses a database that a later version has migrated, and sqlx refuses one in which a step has a different
//! checksum. See `migrations/README.md`.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, bail};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use serde::Serialize;
use sqlx::{
    Connection, Executor, PgConnection,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationStep {
    pub version: i64,
    pub name: String,
}

fn steps(backend: DbBackend) -> &'static Migrator {
    if backend == DbBackend::Postgres { &POSTGRES } else { &SQLITE }
}

/// The newest step that this version knows.
#[must_use]
pub fn newest(backend: DbBackend) -> i64 {
    steps(backend).iter().map(|step| step.version).max().unwrap_or(0)
}

impl Db {
    /// Brings the database's tables up to date. Replicas that start at once do it only once.
    ///
    /// # Errors
    /// A later version has migrated the database, or a step fails.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        if let Some(MigrationStep { version, name }) = self.later().await? {
            bail!(
                "a later version has migrated the database (step {version:04} {name}): start that version, or restore a backup \
                 from before it"
            );
        }
        // A separate connection, so that its settings and the lock end with it.
        let done = match self.connect().await? {
            Driver::Postgres(connection) => migrate_postgres(connection).await,
            Driver::Sqlite(mut connection) => {
                let done = SQLITE.run(&mut connection).await;
                let _ = connection.close().await;
                Ok(done?)
            }
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
        let applied = self.applied().await?;
        let lacking = steps(self.backend()).iter().filter(|step| !applied.contains_key(&step.version));
        Ok(lacking
            .map(|step| MigrationStep { version: step.version, name: step.description.clone().into_owned() })
            .collect())
    }

    /// The database's newest step, if this version does not know it.
    pub async fn later(&self) -> Result<Option<MigrationStep>, DbErr> {
        let last = self.applied().await?.pop_last().filter(|(version, _)| *version > newest(self.backend()));
        Ok(last.map(|(version, name)| MigrationStep { version, name }))
    }

    /// Whether no step was ever applied: the database has no Muster tables.
    pub async fn is_blank(&self) -> Result<bool, DbErr> {
        Ok(self.applied().await?.is_empty())
    }

    /// The numbers and names of the applied steps.
    async fn applied(&self) -> Result<BTreeMap<i64, String>, DbErr> {
        let sql = "SELECT version, description FROM _sqlx_migrations WHERE success";
        let rows = self.read().query_all_raw(Statement::from_string(self.backend(), sql)).await;
        match rows {
            Ok(rows) => rows
                .iter()
                .map(|row| Ok((row.try_get_by("version")?, row.try_get_by("description")?)))
                .collect(),
            // A database that was never migrated does not have the table.
            Err(DbErr::Query(_)) => self.ping().await.map(|()| BTreeMap::new()),
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
    let done = POSTGRES.run(&mut connection).await;
    // An error while closing would hide that of a step.
    let _ = connection.close().await;
    done.map_err(explain_lock)
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
