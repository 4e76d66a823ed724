//! The migrations: which a database lacks, what they do to a version that still serves, and running them once.
//!
//! While a new version is rolled out the old one serves on, so a step only adds ([`breaking`] finds what does not; such a
//! step says `-- contract: <why nobody needs it any more>`, is named `contract_<what>`, and belongs to a later release). See
//! `migrations/README.md`.
//!
//! So a version also starts where a later one has migrated, unless a step that it does not know has such a name: whoever goes
//! back, or restarts an older replica in the middle of an upgrade, needs that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
    time::Duration,
};

use anyhow::{Context, bail};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use serde::Serialize;
use sqlx::{
    Connection, Executor, PgConnection,
    migrate::{MigrateError, Migrator},
};

use super::{Db, Driver};

static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| lenient(sqlx::migrate!("migrations/postgres")));
static SQLITE: LazyLock<Migrator> = LazyLock::new(|| lenient(sqlx::migrate!("migrations/sqlite")));

/// The advisory lock of those who migrate one database, of whatever replica.
const LOCK: i64 = 0x006d_7573_7465_7231;
/// How long one replica waits for another that migrates.
const PATIENCE: Duration = Duration::from_secs(600);
/// How many seconds a step waits for a table that requests are using. It fails then, and nothing has happened: requests
/// that queue behind a waiting step would wait as long.
const LOCK_SECONDS: u64 = 10;
/// What PostgreSQL calls it.
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// What marks a step, or a statement of one, that takes something away.
pub const MARK: &str = "-- contract:";
/// How the name of such a step begins, which is all that an older version sees of it.
pub const CONTRACT: &str = "contract";

/// A step that a database lacks.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Its number.
    pub version: i64,
    /// Its name.
    pub name: String,
    /// Whether the version before can go on serving while it is applied and afterwards.
    pub safe_while_serving: bool,
    /// What it takes away.
    pub takes_away: Vec<String>,
}

/// A step that only a later version has is looked at here, not by sqlx.
fn lenient(mut steps: Migrator) -> Migrator {
    steps.set_ignore_missing(true);
    steps
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
    /// Brings the database's tables to what this version needs. Replicas that start at once do it once.
    ///
    /// # Errors
    /// A step fails, or a step of a later version has taken something away.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        let later = self.later().await?;
        if let Some((version, name)) = later.iter().find(|(_, name)| takes_away(name)) {
            bail!(
                "a later version has migrated the database, and its step {version:04} ({name}) has taken away what this version \
                 needs: start that version, or restore a backup from before it"
            );
        }
        if let Some((newest, _)) = later.last() {
            tracing::warn!(
                newest,
                "store.database_is_of_a_later_version; it has only added, so this one serves"
            );
        }
        // A connection of its own, so that what is set on it ends with it, and the lock as well.
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

    /// Why the steps were not made: in words where there are any, for who has to do something about it.
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

    /// The steps that the database lacks, in their order.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn pending(&self) -> Result<Vec<Step>, DbErr> {
        let applied = self.applied().await?;
        let lacking = steps(self.backend()).iter().filter(|step| !applied.contains_key(&step.version));
        Ok(lacking
            .map(|step| {
                let takes_away: Vec<String> = breaking(step.sql.as_str())
                    .into_iter()
                    .map(|(line, what)| format!("line {line}: {what}"))
                    .collect();
                Step {
                    version: step.version,
                    name: step.description.clone().into_owned(),
                    safe_while_serving: takes_away.is_empty() && !step.sql.as_str().contains(MARK),
                    takes_away,
                }
            })
            .collect())
    }

    /// The steps that were applied and that only a later version knows: their numbers and names, in their order.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn later(&self) -> Result<Vec<(i64, String)>, DbErr> {
        let known: BTreeSet<i64> = steps(self.backend()).iter().map(|step| step.version).collect();
        let applied = self.applied().await?;
        Ok(applied.into_iter().filter(|(version, _)| !known.contains(version)).collect())
    }

    /// Whether no step was ever applied: the database has no tables of Muster.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn is_blank(&self) -> Result<bool, DbErr> {
        Ok(self.applied().await?.is_empty())
    }

    /// The numbers and the names of the steps that were applied.
    async fn applied(&self) -> Result<BTreeMap<i64, String>, DbErr> {
        let sql = "SELECT version, description FROM _sqlx_migrations WHERE success";
        let rows = self.read().query_all_raw(Statement::from_string(self.backend(), sql)).await;
        match rows {
            Ok(rows) => rows.iter().map(|row| Ok((row.try_get_by(0)?, row.try_get_by(1)?))).collect(),
            // A database that was never migrated has no such table.
            Err(DbErr::Query(_)) => self.ping().await.map(|()| BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether every step that this version knows has been applied.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn is_migrated(&self) -> Result<bool, DbErr> {
        let applied = self.applied().await?;
        Ok(steps(self.backend()).iter().all(|step| applied.contains_key(&step.version)))
    }
}

async fn migrate_postgres(mut connection: PgConnection) -> anyhow::Result<()> {
    // What write connections end after seconds may take minutes here.
    let unbounded = "SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0";
    sqlx::raw_sql(unbounded).execute(&mut connection).await?;
    let lock = connection.execute(sqlx::query("SELECT pg_advisory_lock($1)").bind(LOCK));
    tokio::time::timeout(PATIENCE, lock).await.context("another replica migrates, and does not end")??;
    let timeout = sqlx::query("SELECT set_config('lock_timeout', $1, false)");
    connection.execute(timeout.bind(format!("{LOCK_SECONDS}s"))).await?;
    let done = POSTGRES.run(&mut connection).await;
    // Errors of closing would hide that of a step.
    let _ = connection.close().await;
    done.map_err(told)
}

/// Whether the step of this name needs every version before the one before it to be gone.
#[must_use]
pub fn takes_away(name: &str) -> bool {
    name.split([' ', '_']).next() == Some(CONTRACT)
}

/// The error of a step, for who has to do something about it.
fn told(error: MigrateError) -> anyhow::Error {
    let waited = |error: &sqlx::Error| {
        error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .is_some_and(|code| code == LOCK_NOT_AVAILABLE)
    };
    match error {
        MigrateError::ExecuteMigration(error, step) if waited(&error) => anyhow::anyhow!(
            "step {step} could not have a table within {LOCK_SECONDS} seconds, because something else uses it. Nothing of \
             the step was done, and the version that serves goes on: start again, or end the long statement \
             (pg_stat_activity shows it)"
        ),
        other => other.into(),
    }
}

/// What in a step would break a version that does not know it: the line, and what it does. A statement that is preceded by
/// [`MARK`] is left out, and a view that the step makes anew.
#[must_use]
pub fn breaking(sql: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let (mut line, mut began, mut statement, mut marked) = (1, 0, String::new(), false);
    for text in sql.lines() {
        let (code, comment) = text.split_once("--").map_or((text, ""), |(code, comment)| (code, comment));
        marked |= format!("--{comment}").starts_with(MARK);
        if !code.trim().is_empty() {
            if statement.trim().is_empty() {
                began = line;
            }
            statement.push_str(code);
            statement.push(' ');
        }
        if code.trim_end().ends_with(';') {
            if !marked && !makes_anew(sql, &statement) {
                found.extend(breaks(&statement).map(|what| (began, what)));
            }
            statement.clear();
            marked = false;
        }
        line += 1;
    }
    found
}

/// Whether the view that this statement drops is there again when the step is done.
fn makes_anew(step: &str, statement: &str) -> bool {
    let name = statement.trim().trim_end_matches(';').strip_prefix("DROP VIEW ");
    name.is_some_and(|name| step.lines().any(|line| line == format!("CREATE VIEW {} AS", name.trim())))
}

fn breaks(statement: &str) -> Option<&'static str> {
    let words: Vec<String> = statement
        .to_ascii_uppercase()
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    let text = format!(" {} ", words.join(" "));
    let has = |part: &str| text.contains(&format!(" {part} "));
    let begins = |part: &str| text.starts_with(&format!(" {part} "));
    if begins("DROP TABLE") || begins("DROP VIEW") {
        Some("drops a table")
    } else if begins("ALTER TABLE") && has("DROP COLUMN") {
        Some("drops a column")
    } else if begins("ALTER TABLE") && has("RENAME") {
        Some("renames")
    } else if begins("ALTER TABLE") && has("SET NOT NULL") {
        Some("makes a column NOT NULL")
    } else if begins("ALTER TABLE") && has("ALTER COLUMN") && has("TYPE") {
        Some("changes a column's type")
    } else if begins("ALTER TABLE") && has("ADD COLUMN") && has("NOT NULL") && !has("DEFAULT") {
        Some("adds a column that is NOT NULL and has no default")
    } else if begins("DELETE FROM") || begins("TRUNCATE") {
        Some("deletes rows")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_away_is_found_unless_it_says_why() {
        for (sql, what) in [
            ("DROP TABLE agents;", "drops a table"),
            ("ALTER TABLE agents\n    DROP COLUMN name;", "drops a column"),
            ("alter table agents rename column a to b;", "renames"),
            ("ALTER TABLE agents RENAME TO bots;", "renames"),
            ("ALTER TABLE agents ALTER COLUMN a SET NOT NULL;", "makes a column NOT NULL"),
            ("ALTER TABLE agents ALTER COLUMN a TYPE TEXT;", "changes a column's type"),
            (
                "ALTER TABLE agents ADD COLUMN a TEXT NOT NULL;",
                "adds a column that is NOT NULL and has no default",
            ),
            ("DELETE FROM agents WHERE id > 7;", "deletes rows"),
            ("DROP VIEW agents;", "drops a table"),
            ("DROP VIEW agents;\nCREATE VIEW agents2 AS\nSELECT 1;", "drops a table"),
        ] {
            assert_eq!(breaking(&format!("-- A step.\n\n{sql}\n")), [(3, what)], "{sql}");
            assert_eq!(breaking(&format!("{MARK} nobody reads it since 0.2\n{sql}\n")), [], "{sql}");
            let other = format!("{MARK} nobody reads it\nDROP TABLE old;\n{sql}");
            assert_eq!(breaking(&other), [(3, what)], "the mark is of one statement");
        }
        assert_eq!(breaking("DROP VIEW agents;\nCREATE VIEW agents AS\nSELECT 1;"), []);
    }

    #[test]
    fn what_adds_is_let_through() {
        let sql = "CREATE TABLE renamed (a TEXT NOT NULL); -- DROP TABLE is a comment;\n\
                   ALTER TABLE agents ADD COLUMN a TEXT;\nALTER TABLE agents ADD COLUMN b TEXT NOT NULL DEFAULT '';\n\
                   CREATE INDEX agents_type ON agents (a);\nDROP INDEX agents_old;\n";
        assert_eq!(breaking(sql), []);
    }
}
