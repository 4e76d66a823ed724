//! One request: who is asking, from where, and how.

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use sea_orm::Statement;

use super::{
    Core,
    access::{Caller, Jar},
    request_notes::RequestNotes,
    store::{Precondition, Transaction},
};
use crate::base::{
    enums::{DecidedVia, RecordKind},
    ids::OrgId,
    permission::Permission,
    problem::{Code, Problem, Result},
};

/// An idempotency key held by a request.
pub trait HeldKey: Send + Sync {
    /// The statement that must touch the key's row in the transaction of the change; otherwise nothing is committed. It
    /// stores the created records.
    fn mark(&self, created: &[(RecordKind, i64)]) -> Statement;

    /// Records that the response contains something that requires this permission.
    fn needs(&self, org: OrgId, permission: Permission);
}

/// A request from any interface.
pub struct Request {
    pub core: Arc<Core>,
    pub caller: Caller,
    /// The id in the response and the log.
    pub id: String,
    pub ip: Option<IpAddr>,
    pub user_agent: Option<String>,
    /// The interface it came through, recorded with decisions.
    pub via: DecidedVia,
    /// The browser's cookie jar, as far as the answer can change it.
    pub jar: Jar,
    /// Whether the caller has signed out: in this operation, or in an earlier one of the same batch or socket.
    pub signed_out: Arc<AtomicBool>,
    /// Whether the arguments were validated before execution, as REST does.
    pub validated: bool,
    /// What the log line says about it.
    pub notes: RequestNotes,
    /// The idempotency key that the request holds; its transactions mark it.
    key: OnceLock<Arc<dyn HeldKey>>,
    /// The precondition of the first transaction.
    precondition: OnceLock<Arc<dyn Precondition>>,
    /// How often the data read for the request has become outdated.
    changes: AtomicU64,
}

impl Request {
    /// A request by `caller`.
    #[must_use]
    pub fn new(core: &Arc<Core>, caller: Caller) -> Self {
        Self {
            core: Arc::clone(core),
            caller,
            id: String::new(),
            ip: None,
            user_agent: None,
            via: DecidedVia::System,
            jar: Jar::default(),
            signed_out: Arc::default(),
            validated: false,
            notes: RequestNotes::default(),
            key: OnceLock::new(),
            precondition: OnceLock::new(),
            changes: AtomicU64::new(0),
        }
    }

    /// For the service's own work, or the operator's.
    #[must_use]
    pub fn system(core: &Arc<Core>) -> Self {
        Self::new(core, Caller::System)
    }

    /// The service's own work, authorized by a link in this request, under the same idempotency key.
    #[must_use]
    pub fn on_behalf(&self) -> Self {
        Self { key: self.key.clone(), ..Self::system(&self.core) }
    }

    /// Refuses the anonymous caller, and one who has signed out meanwhile.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`.
    pub fn require_identity(&self) -> Result<()> {
        if self.signed_out.load(Ordering::Relaxed) {
            let detail = "You signed out before this, in the same request. Send it with another credential.";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        self.caller.require_identity()
    }

    /// Records that the caller has signed out. Nothing that follows runs as them.
    pub fn sign_out(&self) {
        self.signed_out.store(true, Ordering::Relaxed);
    }

    /// Sets the idempotency key that the request holds.
    pub fn set_key(&self, key: Arc<dyn HeldKey>) {
        // A request claims at most one key.
        let _ = self.key.set(key);
    }

    /// The idempotency key that the request holds.
    #[must_use]
    pub fn key(&self) -> Option<&Arc<dyn HeldKey>> {
        self.key.get()
    }

    /// Makes the request depend on the state of a record.
    pub fn set_precondition(&self, precondition: Arc<dyn Precondition>) {
        // A request has at most one precondition.
        let _ = self.precondition.set(precondition);
    }

    /// The precondition of the first transaction.
    #[must_use]
    pub fn precondition(&self) -> Option<&Arc<dyn Precondition>> {
        self.precondition.get()
    }

    /// Begins a transaction that may write. Its commit marks the idempotency key that the request holds.
    pub(crate) async fn begin(&self) -> Result<Transaction> {
        let transaction = self.core.db.begin().await?;
        if let Some(key) = self.key() {
            let key = Arc::clone(key);
            transaction.require_mark(move |created| key.mark(created));
        }
        Ok(transaction)
    }

    /// Records that something was written, or that time has passed, so that data read before may be outdated.
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of calls of [`Self::changed`].
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}
