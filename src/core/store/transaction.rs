//! A transaction on its own connection. Only [`Tx`](super::Tx) and code without a scope (the sealer, accounts, keys)
//! opens one.
//!
//! It has one list of statements that run just before its commit, and one list of work that follows it. Lines of the
//! audit log and commands for hosts are written by functions that neither wait nor fail: their statements go onto the
//! first list ([`Transaction::before_commit`]). Subscribers are notified and senders woken by the second
//! ([`Transaction::announce`], [`Transaction::after_commit`]). Returning to a [`Savepoint`] drops the entries that were
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

use super::connections::{ConnectionLease, Driver, parts};
use crate::{
    base::enums::{ChangeOp, RecordKind},
    core::events::{Event, Publish, merged},
};

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    lease: Mutex<ConnectionLease>,
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
enum BeforeCommit {
    Run(Statement),
    /// It must affect exactly one row, or nothing is committed.
    Mark(Mark),
}

/// Makes a statement from the kinds and ids of the created records.
type Mark = Box<dyn FnOnce(&[(RecordKind, i64)]) -> Statement + Send>;

/// Work to do after the commit.
enum AfterCommit {
    /// Notifies subscribers, after all other work.
    Announce(Event, Arc<dyn Publish>),
    Run(Box<dyn FnOnce() + Send>),
}

/// A point in a transaction that it can return to.
pub struct Savepoint {
    before: usize,
    after: usize,
    is_refused: bool,
}

impl Transaction {
    pub(super) fn new(lease: ConnectionLease, backend: DbBackend) -> Self {
        Self {
            lease: Mutex::new(lease),
            backend,
            hooks: parking_lot::Mutex::default(),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Runs a statement just before the commit. If it fails, nothing is committed.
    pub(in crate::core) fn before_commit(&self, statement: Statement) {
        self.hooks().before.push(BeforeCommit::Run(statement));
    }

    /// Runs a statement just before the commit, made from the kinds and ids of the created records. Unless it affects exactly
    /// one row, nothing is committed.
    pub(in crate::core) fn require_mark(
        &self,
        mark: impl FnOnce(&[(RecordKind, i64)]) -> Statement + Send + 'static,
    ) {
        self.hooks().before.push(BeforeCommit::Mark(Box::new(mark)));
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
        let mut lease = self.lease.into_inner();
        run_detached(async move {
            for work in before {
                let (statement, must_affect_one_row) = match work {
                    BeforeCommit::Run(statement) => (statement, false),
                    BeforeCommit::Mark(mark) => (mark(&created_records(&after)), true),
                };
                lease.count();
                let affected = lease.execute(statement).await?.rows_affected();
                if must_affect_one_row && affected != 1 {
                    return Err(DbErr::RecordNotUpdated);
                }
            }
            let done = lease.run("COMMIT").await.map(|_| lease.mark_transaction_ended());
            if matches!(done, Ok(()) | Err(DbErr::Conn(_))) {
                run_after_commit(after);
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
        let mut lease = self.lease.into_inner();
        lease.run("ROLLBACK").await?;
        lease.mark_transaction_ended();
        Ok(())
    }

    /// Uses the connection itself. If that fails, the transaction and its connection are lost.
    pub(crate) async fn directly<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Driver) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let lease = self.lease.get_mut();
        let done = work(lease.driver()?).await?;
        lease.mark_statement_ended();
        Ok(done)
    }

    /// Sets a savepoint: later statements may fail without the earlier ones ([`Self::close_savepoint`]).
    pub(super) async fn savepoint(&self) -> Result<Savepoint, DbErr> {
        self.lease.lock().await.run("SAVEPOINT point").await?;
        let is_refused = self.is_refused.load(Ordering::Relaxed);
        let hooks = self.hooks();
        Ok(Savepoint { before: hooks.before.len(), after: hooks.after.len(), is_refused })
    }

    /// Keeps the changes since the savepoint, or undoes them.
    pub(super) async fn close_savepoint(&self, savepoint: Savepoint, is_kept: bool) -> Result<(), DbErr> {
        let mut lease = self.lease.lock().await;
        if is_kept {
            return lease.run("RELEASE SAVEPOINT point").await.map(drop);
        }
        lease.run("ROLLBACK TO SAVEPOINT point; RELEASE SAVEPOINT point").await?;
        let mut hooks = self.hooks();
        hooks.before.truncate(savepoint.before);
        hooks.after.truncate(savepoint.after);
        self.is_refused.store(savepoint.is_refused, Ordering::Relaxed);
        Ok(())
    }

    /// Locks the connection for one statement, and counts the statement.
    async fn counted(&self) -> MutexGuard<'_, ConnectionLease> {
        let lease = self.lease.lock().await;
        lease.count();
        lease
    }

    fn hooks(&self) -> parking_lot::MutexGuard<'_, Hooks> {
        self.hooks.lock()
    }

    /// Records a refused statement.
    fn record_failure<T>(&self, done: Result<T, DbErr>) -> Result<T, DbErr> {
        if done.is_err() {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        done
    }
}

/// The announced records that were created.
fn created_records(after: &[AfterCommit]) -> Vec<(RecordKind, i64)> {
    let created = after.iter().filter_map(|work| match work {
        AfterCommit::Announce(event, _) if event.op == ChangeOp::Created => Some((event.kind, event.id)),
        AfterCommit::Announce(..) | AfterCommit::Run(_) => None,
    });
    created.collect()
}

#[async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        self.backend
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.record_failure(self.counted().await.execute(statement).await)
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.record_failure(self.counted().await.run(sql).await)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let (sql, values) = parts(statement);
        self.record_failure(self.counted().await.rows(&sql.into(), values).await)
    }
}

/// Does the work after a commit. Subscribers are notified last, so that they find it done.
fn run_after_commit(after: Vec<AfterCommit>) {
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
async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, DbErr>> + Send + 'static,
) -> Result<T, DbErr> {
    #[expect(clippy::disallowed_methods, reason = "a shutdown waits for the connection that it holds")]
    let working = tokio::spawn(work.in_current_span());
    working.await.unwrap_or_else(|failed| Err(DbErr::Custom(failed.to_string())))
}
