//! One request: who asks, from where, and how.

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use async_graphql::ContextBase;
use sea_orm::Statement;

use super::{
    Core,
    access::Caller,
    store::{Precondition, Transaction},
};
use crate::base::{enums::DecidedVia, ids::OrgId, permission::Permission, problem::Result};

/// An idempotency key that a request holds.
pub trait HeldKey: Send + Sync {
    /// What has to touch the key's row in the transaction of the change, or nothing is committed.
    fn mark(&self) -> Statement;

    /// The answer has shown something for which this permission is needed.
    fn needs(&self, org: OrgId, permission: Permission);
}

/// One request, of whichever face.
pub struct Request {
    /// The service.
    pub core: Arc<Core>,
    /// Who asks.
    pub caller: Caller,
    /// The id that the response and the log carry.
    pub id: String,
    /// Where from.
    pub ip: Option<IpAddr>,
    /// What the client calls itself.
    pub user_agent: Option<String>,
    /// Through which face: what a decision is noted to have come through.
    pub via: DecidedVia,
    /// Whether the arguments were validated before execution, as REST does.
    pub validated: bool,
    /// The idempotency key that the request has come to hold: its transactions mark it.
    key: OnceLock<Arc<dyn HeldKey>>,
    /// What the first transaction has to find.
    precondition: OnceLock<Arc<dyn Precondition>>,
    /// How often what was read for the request has become old.
    changes: AtomicU64,
}

impl Request {
    /// A request of `caller`.
    #[must_use]
    pub fn new(core: &Arc<Core>, caller: Caller) -> Self {
        Self {
            core: Arc::clone(core),
            caller,
            id: String::new(),
            ip: None,
            user_agent: None,
            via: DecidedVia::System,
            validated: false,
            key: OnceLock::new(),
            precondition: OnceLock::new(),
            changes: AtomicU64::new(0),
        }
    }

    /// The service's own work, or the operator's.
    #[must_use]
    pub fn system(core: &Arc<Core>) -> Self {
        Self::new(core, Caller::System)
    }

    /// The service's own work for what a link in this request has shown: under the same idempotency key.
    #[must_use]
    pub fn on_behalf(&self) -> Self {
        Self { key: self.key.clone(), ..Self::system(&self.core) }
    }

    /// The request has come to hold an idempotency key.
    pub fn hold(&self, key: Arc<dyn HeldKey>) {
        // A request claims one key at most.
        let _ = self.key.set(key);
    }

    /// The idempotency key that the request holds.
    #[must_use]
    pub fn key(&self) -> Option<&Arc<dyn HeldKey>> {
        self.key.get()
    }

    /// The request is only good for a record in this state.
    pub fn demand(&self, precondition: Arc<dyn Precondition>) {
        // A request makes one demand at most.
        let _ = self.precondition.set(precondition);
    }

    /// What the first transaction has to find.
    #[must_use]
    pub fn precondition(&self) -> Option<&Arc<dyn Precondition>> {
        self.precondition.get()
    }

    /// Begins a transaction that may write. Its commit marks the idempotency key that the request holds.
    ///
    /// # Errors
    /// The database is out of reach.
    pub(crate) async fn begin(&self) -> Result<Transaction> {
        let mark = self.key().map(|key| key.mark());
        Ok(self.core.db.begin().await?.demanding(mark))
    }

    /// Something was written, or time has passed: what was read before may be old.
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Grows with each [`Self::changed`].
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

/// What resolvers call instead of digging in the context's untyped data.
pub trait ContextExt {
    /// The request.
    fn request(&self) -> &Arc<Request>;
}

impl<T> ContextExt for ContextBase<'_, T> {
    fn request(&self) -> &Arc<Request> {
        self.data_unchecked::<Arc<Request>>()
    }
}
