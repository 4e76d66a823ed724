//! A transaction on a connection of its own. Nobody but [`Tx`](super::Tx) and what has no scope (the sealer, accounts, keys)
//! opens one.
//!
//! Each statement is a journey to the database, which costs more than what most statements do there. So rows that nobody reads
//! before the commit, as the lines of the audit log, go along with it: [`Transaction::insert_last`].

use std::{
    fmt::Write,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, Value, Values,
    prelude::async_trait::async_trait,
};
use tokio::sync::Mutex;
use tracing::Instrument;

use super::connections::{Driver, Lent, parts};

/// A transaction that is open. Dropping it undoes everything.
pub struct Transaction {
    lent: Mutex<Lent>,
    backend: DbBackend,
    /// What goes along with the commit.
    last: std::sync::Mutex<Vec<NewRows>>,
    /// What has to touch exactly one row, or nothing is committed.
    demand: Option<Statement>,
    /// What is done when it is committed.
    afterwards: std::sync::Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// Whether a statement was refused. PostgreSQL undoes such a transaction whatever is said at its end, without an error.
    is_refused: AtomicBool,
}

/// New rows, and the statement that takes one. It is the same in both dialects, or a procedure's call on PostgreSQL, which
/// spends less on it than on planning an INSERT.
#[derive(Clone, Debug)]
pub struct NewRows {
    /// What stands before a row's values in parentheses: `INSERT INTO t (a, b) VALUES`.
    pub sql: &'static str,
    /// The same for PostgreSQL: `CALL p`.
    pub postgres: &'static str,
    /// A value for each place: an integer, text, JSON, or nothing.
    pub values: Vec<Vec<Value>>,
}

/// A statement of SQLite, and the values of one row.
type NewRow<'a> = (&'static str, &'a [Value]);

impl NewRows {
    fn each(&self) -> impl Iterator<Item = NewRow<'_>> {
        self.values.iter().map(|row| (self.sql, row.as_slice()))
    }
}

/// How many rows SQLite is sent at once.
const TOGETHER: usize = 50;
/// Up to how many rows their statements stay prepared: more than that is rare, and another text for every number of rows.
const KEPT: usize = 4;

impl Transaction {
    pub(super) fn new(lent: Lent, backend: DbBackend) -> Self {
        let (last, afterwards) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let is_refused = AtomicBool::new(false);
        Self { lent: Mutex::new(lent), backend, last, demand: None, afterwards, is_refused }
    }

    /// The same, and it is only committed if the last statement, this one, touches exactly one row.
    #[must_use]
    pub(crate) fn demanding(self, statement: Option<Statement>) -> Self {
        Self { demand: statement, ..self }
    }

    /// Does this when everything is committed, even if whoever asked for it has gone. It is done as well where the connection
    /// was lost in the middle of the commit: it may have been made.
    pub(crate) fn afterwards(&self, work: impl FnOnce() + Send + 'static) {
        self.afterwards.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
    }

    /// Inserts rows, when everything else is done: nothing in the transaction sees them.
    pub fn insert_last(&self, rows: NewRows) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).push(rows);
    }

    /// Makes it so. What has begun to be committed is brought to its end, although who asked for it may have gone.
    ///
    /// # Errors
    /// The database refused, now or before: then nothing has happened. It was lost: then nobody knows.
    pub async fn commit(self) -> Result<(), DbErr> {
        if self.is_refused.into_inner() {
            return Err(DbErr::Custom("a statement of the transaction was refused".to_owned()));
        }
        let last = self.last.into_inner().unwrap_or_else(PoisonError::into_inner);
        let afterwards = self.afterwards.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut lent = self.lent.into_inner();
        if let Some(demand) = self.demand
            && lent.execute(demand).await?.rows_affected() != 1
        {
            return Err(DbErr::RecordNotUpdated);
        }
        let backend = self.backend;
        to_the_end(async move {
            let done = end(&mut lent, backend, &last).await;
            if matches!(done, Ok(()) | Err(DbErr::Conn(_))) {
                for work in afterwards {
                    work();
                }
            }
            done
        })
        .await
    }

    /// Undoes everything now; a dropped transaction is undone a moment later.
    ///
    /// # Errors
    /// The database was lost; then nothing has happened either.
    pub async fn rollback(self) -> Result<(), DbErr> {
        let mut lent = self.lent.into_inner();
        lent.run("ROLLBACK", "ROLLBACK").await?;
        lent.is_done();
        Ok(())
    }

    /// Does something with the connection itself. Where that fails, the transaction is lost, with its connection.
    pub(crate) async fn directly<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Driver) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let lent = self.lent.get_mut();
        let done = work(lent.driver()?).await?;
        lent.at_rest();
        Ok(done)
    }

    fn noted<T>(&self, done: Result<T, DbErr>) -> Result<T, DbErr> {
        if done.is_err() {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        done
    }
}

#[async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.noted(self.lent.lock().await.execute(statement).await)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.noted(self.lent.lock().await.run(sql, sql).await)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (sql, values) = parts(statement);
        self.noted(self.lent.lock().await.rows(&sql.into(), values).await)
    }
}

/// Commits, with what goes along.
async fn end(lent: &mut Lent, backend: DbBackend, last: &[NewRows]) -> Result<(), DbErr> {
    // What metrics and traces are told holds no values.
    let told = "COMMIT";
    match (backend, last) {
        (_, []) => lent.run(told, told).await?,
        (DbBackend::Postgres, rows) => lent.run(told, &literal(rows)?).await?,
        (_, rows) => {
            let rows: Vec<_> = rows.iter().flat_map(NewRows::each).collect();
            let (most, rest) = rows.split_at(rows.len().saturating_sub(1) / TOGETHER * TOGETHER);
            for rows in most.chunks(TOGETHER) {
                lent.execute_as(told, bound(rows, ""), false).await?;
            }
            lent.execute_as(told, bound(rest, told), rest.len() <= KEPT).await?
        }
    };
    lent.is_done();
    Ok(())
}

/// Does work that must not be given up in the middle, whether or not anybody still waits for it.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, DbErr>> + Send + 'static,
) -> Result<T, DbErr> {
    #[expect(clippy::disallowed_methods, reason = "a shutdown waits for the connection that it holds")]
    let working = tokio::spawn(work.in_current_span());
    working.await.unwrap_or_else(|failed| Err(DbErr::Custom(failed.to_string())))
}

/// For SQLite: statements with their values, and what comes after them.
fn bound(rows: &[NewRow<'_>], end: &str) -> (Arc<str>, Values) {
    let (mut sql, mut values) = (String::new(), Vec::new());
    for (statement, row) in rows {
        let places = vec!["?"; row.len()].join(", ");
        let _ = write!(sql, "{statement} ({places}); ");
        values.extend_from_slice(row);
    }
    sql.push_str(end);
    (sql.into(), Values(values))
}

/// For PostgreSQL, which takes several statements at once only without values: they stand in the text.
fn literal(rows: &[NewRows]) -> Result<String, DbErr> {
    let mut sql = String::new();
    for rows in rows {
        for row in &rows.values {
            sql.push_str(rows.postgres);
            for (n, value) in row.iter().enumerate() {
                sql.push_str(if n == 0 { " (" } else { ", " });
                quote(&mut sql, value)?;
            }
            sql.push_str("); ");
        }
    }
    sql.push_str("COMMIT");
    Ok(sql)
}

/// Writes a value as PostgreSQL reads it.
fn quote(sql: &mut String, value: &Value) -> Result<(), DbErr> {
    match value {
        Value::BigInt(None) | Value::String(None) | Value::Json(None) => sql.push_str("NULL"),
        Value::BigInt(Some(number)) => {
            let _ = write!(sql, "{number}");
        }
        Value::String(Some(text)) => quote_text(sql, text)?,
        Value::Json(Some(json)) => quote_text(sql, &json.to_string())?,
        other => return Err(DbErr::Type(format!("{other:?} can't go along with a commit"))),
    }
    Ok(())
}

/// As libpq's `PQescapeLiteral` does it: right whatever `standard_conforming_strings` is.
fn quote_text(sql: &mut String, text: &str) -> Result<(), DbErr> {
    if text.contains('\0') {
        return Err(DbErr::Type("a text with a NUL character".to_owned()));
    }
    sql.push_str(if text.contains('\\') { " E'" } else { "'" });
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            sql.push(c);
        }
        sql.push(c);
    }
    sql.push('\'');
    Ok(())
}
