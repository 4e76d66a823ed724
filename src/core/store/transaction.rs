//! A transaction on its own connection. Only [`Tx`](super::Tx) and code without a scope (the sealer, accounts, keys)
//! opens one.
//!
//! Lines of the audit log and commands for hosts are written by functions that neither wait nor fail. Their statements
//! are collected and run just before the commit: [`Transaction::before_commit`].

use std::sync::{
    PoisonError,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, prelude::async_trait::async_trait,
};
use tokio::sync::{Mutex, MutexGuard};
use tracing::Instrument;

use super::connections::{Driver, Lent, parts};

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    lent: Mutex<Lent>,
    backend: DbBackend,
    /// Statements to run just before the commit.
    last: std::sync::Mutex<Vec<Statement>>,
    /// A statement that must affect exactly one row, or nothing is committed.
    demand: Option<Statement>,
    /// Work to do after the commit.
    afterwards: std::sync::Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// Whether a statement was refused. PostgreSQL rolls such a transaction back even on COMMIT, without an error.
    is_refused: AtomicBool,
}

/// A point in a transaction that it can return to.
pub(super) struct Mark {
    last: usize,
    afterwards: usize,
    is_refused: bool,
}

impl Transaction {
    pub(super) fn new(lent: Lent, backend: DbBackend) -> Self {
        let (last, afterwards) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let is_refused = AtomicBool::new(false);
        Self { lent: Mutex::new(lent), backend, last, demand: None, afterwards, is_refused }
    }

    /// The same, committed only if this statement, run last, affects exactly one row.
    #[must_use]
    pub(crate) fn demanding(self, statement: Option<Statement>) -> Self {
        Self { demand: statement, ..self }
    }

    /// Does this after the commit, even if the caller has gone. Also if the connection was lost during the commit,
    /// which may have succeeded.
    pub(crate) fn afterwards(&self, work: impl FnOnce() + Send + 'static) {
        self.afterwards.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
    }

    /// Runs a statement after everything else, just before the commit. If it fails, nothing is committed.
    pub fn before_commit(&self, statement: Statement) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).push(statement);
    }

    /// Commits. A commit that has started runs to its end, even if the caller has gone.
    ///
    /// # Errors
    /// The database refused it, now or earlier: then nothing has happened. The connection was lost: then the outcome is
    /// unknown.
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
        to_the_end(async move {
            for statement in last {
                lent.count();
                lent.execute(statement).await?;
            }
            let done = lent.run("COMMIT").await.map(|_| lent.is_done());
            if matches!(done, Ok(()) | Err(DbErr::Conn(_))) {
                for work in afterwards {
                    work();
                }
            }
            done
        })
        .await
    }

    /// Rolls back now; dropping does it a moment later.
    ///
    /// # Errors
    /// The connection was lost; the transaction is rolled back anyway.
    pub async fn rollback(self) -> Result<(), DbErr> {
        let mut lent = self.lent.into_inner();
        lent.run("ROLLBACK").await?;
        lent.is_done();
        Ok(())
    }

    /// Uses the connection itself. If that fails, the transaction and its connection are lost.
    pub(crate) async fn directly<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Driver) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let lent = self.lent.get_mut();
        let done = work(lent.driver()?).await?;
        lent.at_rest();
        Ok(done)
    }

    /// Marks this point: what follows may fail alone ([`Self::settle`]).
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) async fn mark(&self) -> Result<Mark, DbErr> {
        self.lent.lock().await.run("SAVEPOINT mark").await?;
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).len();
        let afterwards = self.afterwards.lock().unwrap_or_else(PoisonError::into_inner).len();
        Ok(Mark { last, afterwards, is_refused: self.is_refused.load(Ordering::Relaxed) })
    }

    /// Keeps what was done since the mark, or undoes it.
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) async fn settle(&self, mark: Mark, is_kept: bool) -> Result<(), DbErr> {
        let mut lent = self.lent.lock().await;
        if is_kept {
            return lent.run("RELEASE SAVEPOINT mark").await.map(drop);
        }
        lent.run("ROLLBACK TO SAVEPOINT mark; RELEASE SAVEPOINT mark").await?;
        self.last.lock().unwrap_or_else(PoisonError::into_inner).truncate(mark.last);
        self.afterwards.lock().unwrap_or_else(PoisonError::into_inner).truncate(mark.afterwards);
        self.is_refused.store(mark.is_refused, Ordering::Relaxed);
        Ok(())
    }

    /// The connection, for one statement, which is counted.
    async fn counted(&self) -> MutexGuard<'_, Lent> {
        let lent = self.lent.lock().await;
        lent.count();
        lent
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
        self.noted(self.counted().await.execute(statement).await)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.noted(self.counted().await.run(sql).await)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (sql, values) = parts(statement);
        self.noted(self.counted().await.rows(&sql.into(), values).await)
    }
}

/// Runs work that must not be abandoned in the middle, even if no one waits for it.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, DbErr>> + Send + 'static,
) -> Result<T, DbErr> {
    #[expect(clippy::disallowed_methods, reason = "a shutdown waits for the connection that it holds")]
    let working = tokio::spawn(work.in_current_span());
    working.await.unwrap_or_else(|failed| Err(DbErr::Custom(failed.to_string())))
}
