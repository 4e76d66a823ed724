//! Editing without losing each other's changes.
//!
//! A record's **revision** counts how often a caller has edited it ([`raise`]), in the table `edits`, which also says who
//! did last, and when. What the service or a host writes does not count. An agent's revision is the number of the newest
//! of its own revisions. An edit may name the revision it was made from ([`Scope::if_revision`]): if there is a newer one,
//! it is refused before it has done anything, in its own transaction, while no one else can change the record.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::BoxFuture;
use sea_orm::{ConnectionTrait, Statement};
use serde_json::{Value, json};

use super::locks::lock_record;
use crate::{
    base::{
        enums::{ActorKind, RecordKind},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        access::Scope,
        store::{Precondition, Tx},
    },
};

/// Counts an edit of this record by the transaction's caller. The record is locked.
///
/// # Errors
/// The database is unreachable.
pub async fn raise(tx: &Tx, kind: RecordKind, id: impl Into<i64>) -> Result<()> {
    let caller = &tx.scope.request.caller;
    let actor = caller.user().map(|user| user.0).or(caller.token().map(|token| token.0));
    let name = actor.map(|_| caller.name().to_owned());
    let sql = "INSERT INTO edits (organization_id, kind, record_id, revision, actor_id, actor_name, at) \
               VALUES ($1, $2, $3, 1, $4, $5, $6) ON CONFLICT (organization_id, kind, record_id) DO UPDATE \
               SET revision = edits.revision + 1, actor_id = excluded.actor_id, actor_name = excluded.actor_name, \
               at = excluded.at";
    let values =
        [tx.scope.org.into(), kind.noun().into(), id.into().into(), actor.into(), name.into(), tx.now.into()];
    let raised = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    tx.connection().execute_raw(raised).await?;
    Ok(())
}

impl Scope {
    /// The same scope, whose first transaction changes this record only if it still has this revision. None: whatever
    /// revision it has.
    #[must_use]
    pub fn if_revision(&self, kind: RecordKind, id: impl Into<i64>, revision: Option<i64>) -> Self {
        match revision {
            Some(revision) => {
                let id = id.into();
                self.expecting(Arc::new(Expected { kind, id, revision, is_checked: AtomicBool::new(false) }))
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

/// A revision, and who made it.
struct Latest {
    revision: i64,
    by: Value,
    at: Option<Timestamp>,
}

impl Expected {
    /// The record's present revision. The record is locked until the transaction ends.
    async fn latest(&self, tx: &Tx) -> Result<Latest> {
        let (backend, connection) = (tx.scope.core.db.backend(), tx.connection());
        let ids = [tx.scope.org.into(), self.id.into()];
        lock_record(tx, self.kind, self.id).await?;
        let mut sql = String::new();
        let _ = match self.kind {
            RecordKind::Agent => write!(
                sql,
                "SELECT a.revision, CASE WHEN r.author_kind = '{}' THEN NULL ELSE r.author_id END, r.author_name, \
                 r.created_at FROM agents a LEFT JOIN agent_revisions r ON r.organization_id = a.organization_id \
                 AND r.agent_id = a.id AND r.number = a.revision WHERE a.organization_id = $1 AND a.id = $2",
                ActorKind::System
            ),
            kind => write!(
                sql,
                "SELECT revision, actor_id, actor_name, at FROM edits \
                 WHERE organization_id = $1 AND record_id = $2 AND kind = '{}'",
                kind.noun()
            ),
        };
        let Some(row) = connection.query_one_raw(Statement::from_sql_and_values(backend, sql, ids)).await?
        else {
            return Ok(Latest { revision: 0, by: Value::Null, at: None });
        };
        let (id, name): (Option<i64>, Option<String>) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
        let by = id.map_or(Value::Null, |id| json!({ "id": id, "name": name }));
        Ok(Latest { revision: row.try_get_by_index(0)?, by, at: row.try_get_by_index(3)? })
    }
}

impl Precondition for Expected {
    fn check<'a>(&'a self, tx: &'a Tx) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // If an edit runs several transactions, only the first one checks.
            if self.is_checked.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let latest = self.latest(tx).await?;
            if latest.revision == self.revision {
                return Ok(());
            }
            let who = latest.by["name"].as_str().unwrap_or("Someone");
            let detail = format!(
                "{who} has changed this since you read it: you edited revision {}, and it has revision {} now. Nothing \
                 was changed. Look at `details.current`, then edit again.",
                self.revision, latest.revision
            );
            let problem = Problem::new(Code::Conflict, detail).with("revision", latest.revision);
            let problem = problem.with("changed_by", latest.by).with("changed_at", json!(latest.at));
            Err(problem.outdated())
        })
    }
}
