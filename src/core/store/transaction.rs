//! A transaction on its own connection. Only [`Tx`](super::Tx) and code without a scope (the sealer, accounts, keys)
//! opens one.
//!
//! It has one list of statements that run just before its commit, and one list of work that follows it. Lines of the
//! audit log and commands for hosts are written by functions that neither wait nor fail: their statements go onto the
//! first list ([`Transaction::before_commit`]). Subscribers are notified and senders woken by the second
//! ([`Transaction::announce`], [`Transaction::after_commit`]). Returning to a [`Mark`] drops the entries that were
//! added since.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement, prelude::async_trait::async_trait,
};
use tokio::sync::{Mutex, MutexGuard};
use tracing::Instrument;

use super::connections::{Driver, Lent, parts};
use crate::core::events::{Event, Publish, merged};

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    lent: Mutex<Lent>,
    backend: DbBackend,
    hooks: parking_lot::Mutex<Hooks>,
    /// Whether a statement was refused. PostgreSQL rolls such a transaction back even on COMMIT, without an error.
    is_refused: AtomicBool,
}

/// The work around the commit, in the order of registration.
#[derive(Default)]
struct Hooks {
    before: Vec<BeforeCommit>,
    after: Vec<AfterCommit>,
}

/// A statement to run just before the commit.
struct BeforeCommit {
    statement: Statement,
    /// Whether it must affect exactly one row, or nothing is committed.
    is_demand: bool,
}

/// Work to do after the commit.
enum AfterCommit {
    /// Notifies subscribers, after all other work.
    Announce(Event, Arc<dyn Publish>),
    Run(Box<dyn FnOnce() + Send>),
}

/// A point in a transaction that it can return to.
pub struct Mark {
    before: usize,
    after: usize,
    is_refused: bool,
}

impl Transaction {
    pub(super) fn new(lent: Lent, backend: DbBackend) -> Self {
        Self {
            lent: Mutex::new(lent),
            backend,
            hooks: parking_lot::Mutex::default(),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Runs a statement just before the commit. If it fails, nothing is committed.
    pub(in crate::core) fn before_commit(&self, statement: Statement) {
        self.hooks().before.push(BeforeCommit { statement, is_demand: false });
    }

    /// Runs a statement just before the commit. Unless it affects exactly one row, nothing is committed.
    pub(crate) fn demand(&self, statement: Statement) {
        self.hooks().before.push(BeforeCommit { statement, is_demand: true });
    }

    /// Does this work after the commit, even if the caller has gone. A connection lost during the commit doesn't
    /// prevent it, because the commit may have succeeded.
    pub(crate) fn after_commit(&self, work: impl FnOnce() + Send + 'static) {
        self.hooks().after.push(AfterCommit::Run(Box::new(work)));
    }

    /// Notifies subscribers after the commit, once per record.
    pub(crate) fn announce(&self, publisher: Arc<dyn Publish>, event: Event) {
        self.hooks().after.push(AfterCommit::Announce(event, publisher));
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
        let Hooks { before, after } = self.hooks.into_inner();
        let mut lent = self.lent.into_inner();
        to_the_end(async move {
            for BeforeCommit { statement, is_demand } in before {
                lent.count();
                let affected = lent.execute(statement).await?.rows_affected();
                if is_demand && affected != 1 {
                    return Err(DbErr::RecordNotUpdated);
                }
            }
            let done = lent.run("COMMIT").await.map(|_| lent.is_done());
            if matches!(done, Ok(()) | Err(DbErr::Conn(_))) {
                follow(after);
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

    /// Marks this point: later statements may fail without the earlier ones ([`Self::close_mark`]).
    pub(super) async fn mark(&self) -> Result<Mark, DbErr> {
        self.lent.lock().await.run("SAVEPOINT mark").await?;
        let is_refused = self.is_refused.load(Ordering::Relaxed);
        let hooks = self.hooks();
        Ok(Mark { before: hooks.before.len(), after: hooks.after.len(), is_refused })
    }

    /// Keeps the changes since the mark, or undoes them.
    pub(super) async fn close_mark(&self, mark: Mark, is_kept: bool) -> Result<(), DbErr> {
        let mut lent = self.lent.lock().await;
        if is_kept {
            return lent.run("RELEASE SAVEPOINT mark").await.map(drop);
        }
        lent.run("ROLLBACK TO SAVEPOINT mark; RELEASE SAVEPOINT mark").await?;
        let mut hooks = self.hooks();
        hooks.before.truncate(mark.before);
        hooks.after.truncate(mark.after);
        self.is_refused.store(mark.is_refused, Ordering::Relaxed);
        Ok(())
    }

    /// Locks the connection for one statement, and counts the statement.
    async fn counted(&self) -> MutexGuard<'_, Lent> {
        let lent = self.lent.lock().await;
        lent.count();
        lent
    }

    fn hooks(&self) -> parking_lot::MutexGuard<'_, Hooks> {
        self.hooks.lock()
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

/// Does the work after a commit. Subscribers are notified last, so that they find it done.
fn follow(after: Vec<AfterCommit>) {
    let (mut events, mut publisher) = (Vec::new(), None);
    for work in after {
        match work {
            AfterCommit::Announce(event, to) => {
                events.push(event);
                publisher = Some(to);
            }
            AfterCommit::Run(work) => work(),
        }
    }
    let Some(publisher) = publisher else { return };
    for event in merged(events) {
        publisher.publish(event);
    }
}

/// Runs work that must not be abandoned in the middle, even if its caller has gone.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, DbErr>> + Send + 'static,
) -> Result<T, DbErr> {
    #[expect(clippy::disallowed_methods, reason = "a shutdown waits for the connection that it holds")]
    let working = tokio::spawn(work.in_current_span());
    working.await.unwrap_or_else(|failed| Err(DbErr::Custom(failed.to_string())))
}
