//! A transaction on a connection of its own. Nobody but [`Tx`](super::Tx) and what has no scope (the sealer, accounts, keys)
//! opens one.
//!
//! Lines of the audit log and commands for hosts are written by functions that neither wait nor fail. Their statements are kept,
//! and run right before the commit: [`Transaction::before_commit`].

use std::sync::{
    PoisonError,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, prelude::async_trait::async_trait,
};
use tokio::sync::Mutex;
use tracing::Instrument;

use super::connections::{Driver, Lent, parts};

/// A transaction that is open. Dropping it undoes everything.
pub struct Transaction {
    lent: Mutex<Lent>,
    backend: DbBackend,
    /// What is run right before the commit.
    last: std::sync::Mutex<Vec<Statement>>,
    /// What has to touch exactly one row, or nothing is committed.
    demand: Option<Statement>,
    /// What is done when it is committed.
    afterwards: std::sync::Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// Whether a statement was refused. PostgreSQL undoes such a transaction whatever is said at its end, without an error.
    is_refused: AtomicBool,
}

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

    /// Runs a statement when everything else is done, right before the commit. If it fails, nothing is committed.
    pub fn before_commit(&self, statement: Statement) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).push(statement);
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
        to_the_end(async move {
            for statement in last {
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

    /// Undoes everything now; a dropped transaction is undone a moment later.
    ///
    /// # Errors
    /// The database was lost; then nothing has happened either.
    pub async fn rollback(self) -> Result<(), DbErr> {
        let mut lent = self.lent.into_inner();
        lent.run("ROLLBACK").await?;
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
        self.noted(self.lent.lock().await.run(sql).await)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (sql, values) = parts(statement);
        self.noted(self.lent.lock().await.rows(&sql.into(), values).await)
    }
}

/// Does work that must not be given up in the middle, whether or not anybody still waits for it.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, DbErr>> + Send + 'static,
) -> Result<T, DbErr> {
    #[expect(clippy::disallowed_methods, reason = "a shutdown waits for the connection that it holds")]
    let working = tokio::spawn(work.in_current_span());
    working.await.unwrap_or_else(|failed| Err(DbErr::Custom(failed.to_string())))
}
