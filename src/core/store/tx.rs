//! A transaction opened as somebody. Only a [`Tx`] writes audit, enqueues commands and announces changes, so
//! that all of it happens with the change or not at all.

use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;

use super::Transaction;
use crate::{
    base::{enums::ChangeOp, problem::Result, time::Timestamp},
    core::{Event, access::Scope},
};

/// What a request demands of a record before it changes it.
pub trait Precondition: Send + Sync {
    /// Looks, inside the transaction of the change, before anything else is done there.
    fn check<'a>(&'a self, tx: &'a Tx) -> BoxFuture<'a, Result<()>>;
}

/// A transaction of one scope. Dropping it without [`Tx::commit`] undoes everything.
pub struct Tx {
    /// Who writes, and where.
    pub scope: Scope,
    /// When: one instant for everything that the transaction writes.
    pub now: Timestamp,
    connection: Transaction,
    events: Mutex<Vec<Event>>,
}

impl Tx {
    pub(super) fn new(scope: Scope, connection: Transaction) -> Self {
        let now = scope.core.clock.now();
        Self { scope, now, connection, events: Mutex::default() }
    }

    /// What sea-orm's statements run on.
    #[must_use]
    pub fn connection(&self) -> &Transaction {
        &self.connection
    }

    /// Tells subscribers, once the change is committed: of each record once, whatever was done to it.
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

    /// Undoes everything now; a dropped transaction is undone a moment later.
    ///
    /// # Errors
    /// The database was lost; then nothing has happened either.
    pub async fn rollback(self) -> Result<()> {
        Ok(self.connection.rollback().await?)
    }

    /// Makes it so. What has begun to be committed is announced, although who asked for it may have gone.
    ///
    /// # Errors
    /// The database refused: then nothing has happened. It was lost: then nobody knows.
    pub async fn commit(self) -> Result<()> {
        let Self { scope, connection, events, .. } = self;
        connection.afterwards(move || {
            // What the request has loaded may be changed now; its answer shows the new state.
            scope.request.changed();
            for event in events.into_inner().unwrap_or_else(PoisonError::into_inner) {
                scope.core.events.publish(event);
            }
        });
        Ok(connection.commit().await?)
    }
}
