//! A transaction opened by a caller. Only a [`Tx`] writes audit lines, enqueues commands and announces changes, so that
//! all of this happens with the change or not at all.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Savepoint, Transaction};
use crate::{
    base::{problem::Result, time::Timestamp},
    core::{Event, access::Scope},
};

/// A request's requirement on a record before it changes it.
pub trait Precondition: Send + Sync {
    /// Checks it inside the change's transaction, before anything else happens there.
    fn check<'a>(&'a self, tx: &'a Tx) -> BoxFuture<'a, Result<()>>;
}

/// A transaction of one scope. Dropping it without [`Tx::commit`] rolls it back.
pub struct Tx {
    /// The caller and the organization.
    pub scope: Scope,
    /// One instant for everything that the transaction writes.
    pub now: Timestamp,
    /// The reason, if the caller gave one. Versions of records keep it.
    pub reason: Option<String>,
    connection: Transaction,
}

impl Tx {
    pub(super) fn new(scope: Scope, connection: Transaction) -> Self {
        let now = scope.core.clock.now();
        Self { scope, now, reason: None, connection }
    }

    /// The connection for sea-orm's statements.
    #[must_use]
    pub fn connection(&self) -> &Transaction {
        &self.connection
    }

    /// Notifies subscribers after the commit, once per record.
    pub fn announce(&self, event: Event) {
        self.connection.announce(Arc::clone(&self.scope.core.events) as _, event);
    }

    /// Sets a savepoint: later statements may fail without the earlier ones.
    pub async fn savepoint(&self) -> Result<Savepoint> {
        Ok(self.connection.savepoint().await?)
    }

    /// Keeps the changes since the savepoint, or undoes them completely.
    pub async fn close_savepoint(&self, savepoint: Savepoint, is_kept: bool) -> Result<()> {
        Ok(self.connection.close_savepoint(savepoint, is_kept).await?)
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
        let Self { scope, connection, .. } = self;
        // Records that the request has loaded may have changed; its response shows the new state.
        connection.after_commit(move || scope.request.changed());
        Ok(connection.commit().await?)
    }
}
