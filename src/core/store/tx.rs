//! A transaction opened by a caller. Only a [`Tx`] writes audit lines, enqueues commands and announces changes, so that
//! all of this happens with the change or not at all.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;

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
}

/// A point in a transaction that it can return to.
pub struct Marked {
    mark: Mark,
    events: Vec<Event>,
}

impl Tx {
    pub(super) fn new(scope: Scope, connection: Transaction) -> Self {
        let now = scope.core.clock.now();
        Self { scope, now, reason: None, connection, events: Mutex::default() }
    }

    /// The connection for sea-orm's statements.
    #[must_use]
    pub fn connection(&self) -> &Transaction {
        &self.connection
    }

    /// Notifies subscribers after the commit: once per record, however often it changed.
    pub fn announce(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        match events.iter_mut().find(|told| (told.kind, told.id) == (event.kind, event.id)) {
            Some(told) => {
                told.of = told.of.or(event.of);
                if told.op != ChangeOp::Created || event.op == ChangeOp::Deleted {
                    told.op = event.op;
                }
            }
            None => events.push(event),
        }
    }

    /// Marks this point: what follows may fail alone.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn mark(&self) -> Result<Marked> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Marked { mark: self.connection.mark().await?, events })
    }

    /// Keeps what was done since the mark, or undoes it as if it had never begun.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn settle(&self, marked: Marked, is_kept: bool) -> Result<()> {
        self.connection.settle(marked.mark, is_kept).await?;
        if !is_kept {
            *self.events.lock().unwrap_or_else(PoisonError::into_inner) = marked.events;
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
        let Self { scope, connection, events, .. } = self;
        connection.afterwards(move || {
            // What the request has loaded may have changed; its response shows the new state.
            scope.request.changed();
            for event in events.into_inner().unwrap_or_else(PoisonError::into_inner) {
                scope.core.events.publish(event);
            }
        });
        Ok(connection.commit().await?)
    }
}
