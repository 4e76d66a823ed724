//! A transaction opened by a caller. Only a [`Tx`] writes audit lines, enqueues commands and announces changes, so that
//! all of this happens with the change or not at all.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use super::{Transaction, transaction::Mark};
use crate::{
    base::{enums::ChangeOp, problem::Result, time::Timestamp},
    core::{Event, access::Scope},
};

/// What a request requires of a record before it changes it.
pub trait Precondition: Send + Sync {
    /// Checks it inside the change's transaction, before anything else happens there.
    fn check<'a>(&'a self, tx: &'a Tx) -> BoxFuture<'a, Result<()>>;
}

/// A transaction of one scope. Dropping it without [`Tx::commit`] rolls it back.
pub struct Tx {
    /// Who writes, and where.
    pub scope: Scope,
    /// One instant for everything that the transaction writes.
    pub now: Timestamp,
    /// Why, if the caller says so. Versions of records keep it.
    pub reason: Option<String>,
    connection: Transaction,
    events: Mutex<Vec<Event>>,
    later: Mutex<Vec<Later>>,
}

/// Something to do after the commit.
type Later = Box<dyn FnOnce() + Send>;

/// A point in a transaction that it can return to.
pub struct Marked {
    mark: Mark,
    events: Vec<Event>,
    later: usize,
}

impl Tx {
    pub(super) fn new(scope: Scope, connection: Transaction) -> Self {
        let now = scope.core.clock.now();
        Self { scope, now, reason: None, connection, events: Mutex::default(), later: Mutex::default() }
    }

    /// The connection for sea-orm's statements.
    #[must_use]
    pub fn connection(&self) -> &Transaction {
        &self.connection
    }

    /// Runs one writing statement, and returns the number of rows affected. It names the organization itself.
    ///
    /// # Errors
    /// The database refused it.
    pub async fn run(&self, sql: &str, values: Vec<Value>) -> Result<u64> {
        let statement = Statement::from_sql_and_values(self.scope.core.db.backend(), sql, values);
        Ok(self.connection.execute_raw(statement).await?.rows_affected())
    }

    /// The rows of one statement. It names the organization itself.
    ///
    /// # Errors
    /// The database refused it.
    pub async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<QueryResult>> {
        let statement = Statement::from_sql_and_values(self.scope.core.db.backend(), sql, values);
        Ok(self.connection.query_all_raw(statement).await?)
    }

    /// Locks a record until the transaction ends. SQLite has a single writer anyway.
    ///
    /// Locks first what the change may lock before the record, as every other transaction does: the organization before
    /// what is counted or chosen in it, and the agent before what belongs to it, and before `stored_bytes`, which triggers write;
    /// all agents before a model credential, which they inherit, and of which their hosts report. Otherwise they could wait for
    /// each other.
    ///
    /// # Errors
    /// The database is unreachable.
    pub async fn hold(&self, table: &str, id: i64) -> Result<()> {
        if self.connection.get_database_backend() != DbBackend::Postgres {
            return Ok(());
        }
        let organization = "SELECT 1 FROM organizations WHERE id = $1 AND id = $2";
        let record = format!("SELECT 1 FROM {table} WHERE organization_id = $1 AND id = $2");
        match table {
            "organizations" => return self.lock(organization, id).await,
            "agents" | "channels" => self.lock(organization, self.scope.org.0).await?,
            "model_credentials" => {
                let agents =
                    "SELECT 1 FROM agents WHERE organization_id = $1 AND organization_id = $2 ORDER BY id";
                self.lock(organization, self.scope.org.0).await?;
                self.lock(agents, self.scope.org.0).await?;
            }
            "approvals" | "conversations" => {
                let agent = format!(
                    "SELECT 1 FROM agents WHERE organization_id = $1 AND id = (SELECT agent_id FROM {table} \
                     WHERE organization_id = $1 AND id = $2)"
                );
                self.lock(&agent, id).await?;
            }
            _ => {}
        }
        self.lock(&record, id).await
    }

    /// NO KEY, so that rows which only refer to the record can still be written.
    async fn lock(&self, select: &str, id: i64) -> Result<()> {
        let sql = format!("{select} FOR NO KEY UPDATE");
        self.rows(&sql, vec![self.scope.org.into(), id.into()]).await?;
        Ok(())
    }

    /// Notifies subscribers after the commit: once per record, however often it changed.
    pub fn announce(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |told: &&mut Event| (told.kind, told.id, told.only) == (event.kind, event.id, event.only);
        match events.iter_mut().find(same) {
            Some(told) => {
                told.of = told.of.or(event.of);
                if told.op != ChangeOp::Created || event.op == ChangeOp::Deleted {
                    told.op = event.op;
                }
            }
            None => events.push(event),
        }
    }

    /// Does this after the commit, or never: only what may be lost, such as telling a collector of traces.
    pub fn later(&self, what: impl FnOnce() + Send + 'static) {
        self.later.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(what));
    }

    /// Marks this point: what follows may fail alone.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn mark(&self) -> Result<Marked> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let later = self.later.lock().unwrap_or_else(PoisonError::into_inner).len();
        Ok(Marked { mark: self.connection.mark().await?, events, later })
    }

    /// Keeps what was done since the mark, or undoes it as if it had never begun.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn settle(&self, marked: Marked, is_kept: bool) -> Result<()> {
        self.connection.settle(marked.mark, is_kept).await?;
        if !is_kept {
            *self.events.lock().unwrap_or_else(PoisonError::into_inner) = marked.events;
            self.later.lock().unwrap_or_else(PoisonError::into_inner).truncate(marked.later);
        }
        Ok(())
    }

    /// Rolls back now; dropping does it a moment later.
    ///
    /// # Errors
    /// The connection was lost; the transaction is rolled back anyway.
    pub async fn rollback(self) -> Result<()> {
        Ok(self.connection.rollback().await?)
    }

    /// Commits. Once the commit has started, the changes are announced even if the caller has gone.
    ///
    /// # Errors
    /// The database refused it: then nothing has happened. The connection was lost: then the outcome is unknown.
    pub async fn commit(self) -> Result<()> {
        let Self { scope, connection, events, later, .. } = self;
        connection.afterwards(move || {
            // What the request has loaded may have changed; its response shows the new state.
            scope.request.changed();
            for event in events.into_inner().unwrap_or_else(PoisonError::into_inner) {
                scope.core.events.publish(event);
            }
            for what in later.into_inner().unwrap_or_else(PoisonError::into_inner) {
                what();
            }
        });
        Ok(connection.commit().await?)
    }
}
