//! Bulk inserts: `COPY` on PostgreSQL, multi-row `INSERT` on SQLite.
//!
//! These bypass the features on purpose: a million rows through operations that check, audit and announce each one
//! would take an hour. They only write new rows, with the organization in each, and take ids from the same sequences as
//! everything else, so no one has to be locked out on PostgreSQL.

use std::{borrow::Cow, fmt::Write};

use anyhow::{Context, anyhow};
use sea_orm::{ConnectionTrait as _, DbBackend, TryGetable, Value};
use sqlx::{AssertSqlSafe, PgConnection, Sqlite, SqliteConnection};

use crate::{
    base::problem::Problem,
    core::store::{
        Db, Driver, Transaction,
        sql::{InstallationSql, RunSql as _, RunWritingSql, installation_sql},
    },
};

/// How many values one statement binds. SQLite's limit is 32,766.
const MAX_VALUES: usize = 30_000;

/// One value of a row.
#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    /// An integer, an id or an instant.
    Int(i64),
    /// A decimal.
    Float(f64),
    /// A flag.
    Bool(bool),
    /// Text, or JSON as text.
    Text(Cow<'static, str>),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&'static str> for Cell {
    fn from(value: &'static str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Rows of one table, waiting to be written.
#[derive(Debug)]
pub struct Sheet {
    table: &'static str,
    columns: &'static [&'static str],
    cells: Vec<Cell>,
}

impl Sheet {
    /// A sheet without rows.
    #[must_use]
    pub const fn new(table: &'static str, columns: &'static [&'static str]) -> Self {
        Self { table, columns, cells: Vec::new() }
    }

    /// Adds a row, with a cell for each column.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len(), "{}", self.table);
        self.cells.extend(row);
    }
}

/// A transaction for many rows.
pub struct Bulk(Transaction);

impl Bulk {
    pub async fn begin(db: &Db) -> anyhow::Result<Self> {
        Ok(Self(db.begin().await?))
    }

    /// Whether it is PostgreSQL.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        self.0.get_database_backend() == DbBackend::Postgres
    }

    /// Commits.
    ///
    /// # Errors
    /// The database refused; nothing of this transaction has happened.
    pub async fn commit(self) -> anyhow::Result<()> {
        Ok(self.0.commit().await?)
    }

    /// Reserves `count` new ids of a table.
    pub async fn ids(&mut self, table: &'static str, count: usize) -> anyhow::Result<Vec<i64>> {
        let count = i64::try_from(count)?;
        if self.is_postgres() {
            // Others may take ids in between; these are still ours.
            let sql = installation_sql!(
                "SELECT nextval(pg_get_serial_sequence($1, 'id')) FROM generate_series(1, $2)"
            );
            return self.column(sql, [table.into(), count.into()]).await;
        }
        // This transaction is the only writer.
        let sql = installation_sql!("SELECT seq FROM sqlite_sequence WHERE name = $1");
        let last: i64 = self.column(sql, [table.into()]).await?.first().copied().unwrap_or(0);
        Ok((last + 1..=last + count).collect())
    }

    /// Runs one statement with integers and texts for its `$1`, `$2`, …
    pub async fn run(
        &mut self,
        sql: InstallationSql,
        values: impl Into<Vec<Value>> + Send,
    ) -> anyhow::Result<()> {
        RunWritingSql::execute(&self.0, sql, values).await.map(drop).map_err(|problem| in_words(&problem))
    }

    /// The only column of a query.
    pub async fn column<T: TryGetable + Send>(
        &mut self,
        sql: InstallationSql,
        values: impl Into<Vec<Value>> + Send,
    ) -> anyhow::Result<Vec<T>> {
        self.0.column(sql, values).await.map_err(|problem| in_words(&problem))
    }

    /// Writes the rows of a sheet and empties it.
    ///
    /// # Errors
    /// The database refused a row.
    pub async fn write(&mut self, sheet: &mut Sheet) -> anyhow::Result<()> {
        if sheet.cells.is_empty() {
            return Ok(());
        }
        let cells = std::mem::take(&mut sheet.cells);
        let write = async |driver: &mut Driver| match driver {
            Driver::Sqlite(connection) => insert(connection, sheet, &cells).await,
            Driver::Postgres(connection) => copy(connection, sheet, &cells).await,
        };
        self.0.directly(write).await.with_context(|| sheet.table)
    }
}

/// A problem, as shown to the operator.
fn in_words(problem: &Problem) -> anyhow::Error {
    problem.cause().map_or_else(|| anyhow!("{problem}"), |cause| anyhow!("{cause:#}"))
}

type SqliteQuery<'q> = sqlx::query::Query<'q, Sqlite, sqlx::sqlite::SqliteArguments>;

fn bind_sqlite<'q>(query: SqliteQuery<'q>, cell: &Cell) -> SqliteQuery<'q> {
    match cell {
        Cell::Null => query.bind(None::<i64>),
        Cell::Int(value) => query.bind(*value),
        Cell::Float(value) => query.bind(*value),
        Cell::Bool(value) => query.bind(*value),
        Cell::Text(value) => query.bind(value.to_string()),
    }
}

async fn insert(connection: &mut SqliteConnection, sheet: &Sheet, cells: &[Cell]) -> anyhow::Result<()> {
    let width = sheet.columns.len();
    let row = format!("({})", vec!["?"; width].join(","));
    // Full statements have the same text, so they are prepared once.
    for part in cells.chunks(MAX_VALUES / width * width) {
        let rows = vec![row.as_str(); part.len() / width].join(",");
        let sql = format!("INSERT INTO {} ({}) VALUES {rows}", sheet.table, sheet.columns.join(","));
        let query = part.iter().fold(sqlx::query(AssertSqlSafe(sql)), bind_sqlite);
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

async fn copy(connection: &mut PgConnection, sheet: &Sheet, cells: &[Cell]) -> anyhow::Result<()> {
    let width = sheet.columns.len();
    let sql = format!("COPY {} ({}) FROM STDIN", sheet.table, sheet.columns.join(","));
    let mut copy = connection.copy_in_raw(&sql).await?;
    let mut out = String::new();
    for row in cells.chunks(width) {
        for (n, cell) in row.iter().enumerate() {
            if n > 0 {
                out.push('\t');
            }
            copy_text(cell, &mut out);
        }
        out.push('\n');
        if out.len() > 1 << 20 {
            copy.send(std::mem::take(&mut out).into_bytes()).await?;
        }
    }
    copy.send(out.into_bytes()).await?;
    let written = copy.finish().await?;
    if written == (cells.len() / width) as u64 {
        Ok(())
    } else {
        Err(anyhow!("{written} of {} rows were written", cells.len() / width))
    }
}

/// A cell in COPY's text format.
fn copy_text(cell: &Cell, out: &mut String) {
    // Writing to a string can't fail.
    let _ = match cell {
        Cell::Null => out.write_str("\\N"),
        Cell::Int(value) => write!(out, "{value}"),
        Cell::Float(value) => write!(out, "{value}"),
        Cell::Bool(value) => out.write_str(if *value { "t" } else { "f" }),
        Cell::Text(text) => {
            for c in text.chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    c => out.push(c),
                }
            }
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::{Cell, copy_text};

    #[test]
    fn copy_escapes_what_separates() {
        let mut out = String::new();
        copy_text(&Cell::from("a\tb\\N\nc".to_owned()), &mut out);
        assert_eq!(out, "a\\tb\\\\N\\nc");
    }
}
