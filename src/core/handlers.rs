//! Events and questions from a feature to the features above it, in the same transaction and under the same locks.
//!
//! A feature only calls features below it. For those above, it declares a [`DomainEvent`] or a [`Question`] beside the
//! code that needs it. The layer above the features lists the handlers, in the order in which they run.

use std::any::type_name;

use futures::future::BoxFuture;
use http::Extensions;

use super::store::Tx;
use crate::base::problem::{Problem, Result};

/// An event of a record. All of its handlers run before the transaction continues, and each of them can fail it.
pub trait DomainEvent: Send + Sync + 'static {}

/// A question that only a feature above can answer. It has one answerer.
pub trait Question: Send + Sync + 'static {
    type Answer: Send + 'static;
}

/// Handles an event.
pub type Handler<E> = for<'a> fn(&'a Tx, &'a E) -> BoxFuture<'a, Result<()>>;

pub type Answerer<Q> = for<'a> fn(&'a Tx, &'a Q) -> BoxFuture<'a, Result<<Q as Question>::Answer>>;

/// The handlers of all events and questions, by type, as [`Core`](super::Core) keeps them.
#[derive(Debug, Default)]
pub struct Handlers(pub Extensions);

impl Handlers {
    /// Adds a handler. Those of an event run in the order in which they were added.
    pub fn on<E: DomainEvent>(&mut self, handler: Handler<E>) {
        self.0.get_or_insert_default::<Vec<Handler<E>>>().push(handler);
    }

    /// Sets the answerer of a question.
    pub fn answer<Q: Question>(&mut self, answerer: Answerer<Q>) {
        self.0.insert(answerer);
    }
}

/// Runs all handlers of an event.
///
/// # Errors
/// The first error of a handler; `INTERNAL` if the event has none.
pub async fn emit<E: DomainEvent>(tx: &Tx, event: E) -> Result<()> {
    for handle in find::<Vec<Handler<E>>>(tx, type_name::<E>())? {
        handle(tx, &event).await?;
    }
    Ok(())
}

/// Asks a question.
///
/// # Errors
/// The answerer's error.
pub async fn ask<Q: Question>(tx: &Tx, question: Q) -> Result<Q::Answer> {
    find::<Answerer<Q>>(tx, type_name::<Q>())?(tx, &question).await
}

fn find<'a, T: Send + Sync + 'static>(tx: &'a Tx, subject: &str) -> Result<&'a T> {
    let found = tx.scope.core.handlers.get::<T>();
    found.ok_or_else(|| Problem::internal(anyhow::anyhow!("nothing handles {subject}")))
}
