//! Optimistic locking of edits.
//!
//! A record's **revision** counts the edits by callers ([`raise`]). The table `edits` holds it, with the last editor
//! and the time. Writes by the service or a host do not count. An agent's revision is the number of its newest row in
//! `agent_revisions`. An edit may name the revision it was made from ([`Scope::if_revision`]): if there is a newer one,
//! the edit's own transaction refuses it before it changes anything, with the record locked.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::BoxFuture;
use serde_json::json;

use super::{
    locks::lock_record,
    queries::{Latest, count_edit, latest_edit},
};
use crate::{
    base::{
        enums::RecordKind,
        problem::{Code, Problem, Result},
    },
    core::{
        access::Scope,
        store::{Precondition, Tx},
    },
};

/// Counts an edit of this record by the transaction's caller. The record must be locked.
pub async fn raise(tx: &Tx, kind: RecordKind, id: impl Into<i64>) -> Result<()> {
    let caller = &tx.scope.request.caller;
    let actor = caller.user().map(|user| user.0).or(caller.token().map(|token| token.0));
    let name = actor.map(|_| caller.name().to_owned());
    count_edit(tx, (kind, id.into()), actor, name).await
}

impl Scope {
    /// The same scope, whose first transaction changes this record only if it still has this revision. `None`: any
    /// revision.
    #[must_use]
    pub fn if_revision(&self, kind: RecordKind, id: impl Into<i64>, revision: Option<i64>) -> Self {
        match revision {
            Some(revision) => {
                let id = id.into();
                self.with_precondition(Arc::new(Expected {
                    kind,
                    id,
                    revision,
                    is_checked: AtomicBool::new(false),
                }))
            }
            None => self.clone(),
        }
    }
}

/// The revision that an edit was made from.
struct Expected {
    kind: RecordKind,
    id: i64,
    revision: i64,
    is_checked: AtomicBool,
}

impl Expected {
    /// Locks the record until the transaction ends and returns its current revision.
    async fn lock_and_read(&self, tx: &Tx) -> Result<Latest> {
        lock_record(tx, self.kind, self.id).await?;
        let none = Latest { revision: 0, actor_id: None, actor_name: None, at: None };
        Ok(latest_edit(tx, self.kind, self.id).await?.unwrap_or(none))
    }
}

impl Precondition for Expected {
    fn check<'a>(&'a self, tx: &'a Tx) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // The edit's later transactions would find the revision that its first one made.
            if self.is_checked.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let latest = self.lock_and_read(tx).await?;
            if latest.revision == self.revision {
                return Ok(());
            }
            let who = latest.actor_name.as_deref().unwrap_or("Someone");
            let detail = format!(
                "{who} has changed this since you read it: you edited revision {}, and it has revision {} now. Nothing \
                 was changed. Look at `details.current`, then edit again.",
                self.revision, latest.revision
            );
            let problem = Problem::new(Code::Conflict, detail).with("revision", latest.revision);
            let by = latest.actor_id.map(|id| json!({ "id": id, "name": latest.actor_name }));
            let problem = problem.with("changed_by", json!(by)).with("changed_at", json!(latest.at));
            Err(problem.outdated())
        })
    }
}
