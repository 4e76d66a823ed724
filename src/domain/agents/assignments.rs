//! Operations that credentials, MCP servers and skills share: each is assigned to agents as a complete list, and can be
//! archived and restored.
//!
//! Archiving hides a record from lists and launches but keeps its assignments, so that restoring it gives the assigned
//! agents access again. Every change marks the affected agents for synchronization and notifies the hosts of running
//! ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use sea_orm::{
    ColumnTrait, EntityTrait, ModelTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::Expr,
};
use serde_json::{Value, json};

use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::AgentId,
        permission::Permission,
        problem::{Code, Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        Event,
        access::Scope,
        audit,
        store::{Link, TenantEntity, Tx, for_update, linked, relink},
    },
    domain::edits,
};

/// An entity that is assigned to agents.
pub trait Assignable: TenantEntity {
    type Id: Copy + Display + Into<i64> + Into<sea_orm::Value> + Send + Sync;
    type Assignments: Link<Owner = Self::Id, Member = AgentId>;

    /// The kind of record in the audit log; messages spell it with spaces.
    const KIND: RecordKind;
    const ID: Self::Column;
    /// The name column. Names are unique among records that aren't archived.
    const NAME: Self::Column;
    const ARCHIVED_AT: Self::Column;
    const UPDATED_AT: Self::Column;

    fn name(row: &Self::Model) -> &str;

    fn archived_at(row: &Self::Model) -> Option<Timestamp>;
}

/// Loads the record, archived or not, and locks it until the transaction ends.
pub async fn load<E: Assignable>(tx: &Tx, id: E::Id) -> Result<E::Model> {
    let found = for_update(tx.scope.find::<E>().filter(E::ID.eq(id)));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found(&kind_in_words::<E>(), id))
}

/// Loads and locks the record for a change.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`.
pub async fn load_active<E: Assignable>(tx: &Tx, id: E::Id) -> Result<E::Model> {
    let row = load::<E>(tx, id).await?;
    if E::archived_at(&row).is_some() {
        let detail = format!("The {} is archived. Restore it before changing it.", kind_in_words::<E>());
        return Err(Problem::new(Code::Archived, detail));
    }
    Ok(row)
}

/// Refuses a name that another record of this kind already has.
///
/// # Errors
/// `NAME_TAKEN`.
pub async fn require_free_name<E>(tx: &Tx, name: &str, except: Option<E::Id>) -> Result<()>
where
    E: Assignable,
    E::Model: Sync,
{
    let mut same = tx.scope.find::<E>().filter(E::NAME.eq(name)).filter(E::ARCHIVED_AT.is_null());
    if let Some(id) = except {
        same = same.filter(E::ID.ne(id));
    }
    if same.count(tx.connection()).await? == 0 {
        Ok(())
    } else {
        Err(Problem::name_taken(&kind_in_words::<E>(), name))
    }
}

/// Assigns a record to exactly these agents and notifies the agents added or removed. One unknown id fails the whole
/// call.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, or `VALIDATION_FAILED` with the position of each unknown id.
pub async fn assign<E: Assignable>(
    scope: &Scope,
    id: E::Id,
    agents: &[AgentId],
    operation: &'static str,
) -> Result<()> {
    assign_in::<E>(scope.begin().await?, id, agents, operation).await
}

/// [`assign`] in the caller's transaction, which it commits.
pub async fn assign_in<E: Assignable>(
    tx: Tx,
    id: E::Id,
    agents: &[AgentId],
    operation: &'static str,
) -> Result<()> {
    load_active::<E>(&tx, id).await?;
    require_known("/agent_ids", agents, &super::rows::missing(&tx, agents).await?, "agent")?;
    let change = relink::<E::Assignments>(&tx, id, agents).await?;
    if change.is_empty() {
        return Ok(());
    }
    count_edit::<E>(&tx, id).await?;
    super::sync::mark_for_sync(&tx, &change.touched()).await?;
    audit_change::<E>(
        &tx,
        (ChangeOp::Updated, operation),
        id,
        json!({ "added": change.added, "removed": change.removed }),
    );
    tx.commit().await
}

/// Replaces an agent's assignments of this kind with `wanted`; assignments of archived records stay. The caller locks
/// the agent afterwards, and marks it. Returns the changes, if there are any.
///
/// # Errors
/// `VALIDATION_FAILED` naming archived and unknown records; `PERMISSION_DENIED` for a caller who may not assign, if
/// anything would change.
pub async fn replace_of_agent<E: Assignable>(
    tx: &Tx,
    agent: AgentId,
    wanted: &[E::Id],
    permission: Permission,
) -> Result<Option<Value>> {
    let wanted: BTreeMap<i64, E::Id> = wanted.iter().map(|id| ((*id).into(), *id)).collect();
    let present = tx.scope.find::<E::Assignments>().filter(E::Assignments::MEMBER.eq(agent));
    let present = present.select_only().column(E::Assignments::OWNER).into_tuple();
    let present: BTreeSet<i64> = present.all(tx.connection()).await?.into_iter().collect();
    // Always lock in the same order, so that two calls can't deadlock.
    let all: BTreeSet<i64> = present.iter().chain(wanted.keys()).copied().collect();
    let rows = tx.scope.find::<E>().filter(E::ID.is_in(all)).order_by_asc(E::ID);
    let rows = for_update(rows).all(tx.connection()).await?;
    let usable = usable_ids::<E>(&rows, wanted.keys())?;
    let added: Vec<i64> = wanted.keys().filter(|id| !present.contains(id)).copied().collect();
    let removed: Vec<i64> =
        present.into_iter().filter(|id| usable.contains(id) && !wanted.contains_key(id)).collect();
    if added.is_empty() && removed.is_empty() {
        return Ok(None);
    }
    tx.scope.require(permission)?;
    if !removed.is_empty() {
        let gone = tx.scope.delete::<E::Assignments>().filter(E::Assignments::MEMBER.eq(agent));
        gone.filter(E::Assignments::OWNER.is_in(removed.iter().copied())).exec(tx.connection()).await?;
    }
    if !added.is_empty() {
        let rows = added.iter().map(|id| E::Assignments::row(tx.scope.org, wanted[id], agent, tx.now));
        E::Assignments::insert_many(rows).exec_without_returning(tx.connection()).await?;
    }
    let changed = [added.as_slice(), removed.as_slice()].concat();
    let touched = tx.scope.update::<E>().filter(E::ID.is_in(changed.iter().copied()));
    touched.col_expr(E::UPDATED_AT, Expr::value(tx.now)).exec(tx.connection()).await?;
    for id in changed {
        tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, E::KIND, id));
    }
    Ok(Some(json!({ "added": added, "removed": removed })))
}

/// The ids of the rows that aren't archived.
///
/// # Errors
/// `VALIDATION_FAILED` for each of `wanted` that isn't among them.
fn usable_ids<'a, E: Assignable>(
    rows: &[E::Model],
    wanted: impl Iterator<Item = &'a i64>,
) -> Result<BTreeSet<i64>> {
    let id = |row: &E::Model| match row.get(E::ID) {
        sea_orm::Value::BigInt(Some(id)) => id,
        _ => 0,
    };
    let mut violations = Vec::new();
    for wanted in wanted {
        match rows.iter().find(|row| id(row) == *wanted) {
            Some(row) if E::archived_at(row).is_none() => {}
            Some(row) => {
                let detail =
                    format!("The {} `{}` is archived. Restore it first.", kind_in_words::<E>(), E::name(row));
                violations.push(Violation::parameter("revision", "ARCHIVED", detail));
            }
            None => {
                let detail = format!("There is no {} with id {wanted}.", kind_in_words::<E>());
                violations.push(Violation::parameter("revision", "NOT_FOUND", detail));
            }
        }
    }
    Problem::fail_if_any(violations)?;
    Ok(rows.iter().filter(|row| E::archived_at(row).is_none()).map(id).collect())
}

/// Returns a violation for every position in a list of ids that holds an unknown one.
pub fn unknown<T: Copy + PartialEq + Display>(
    pointer: &str,
    given: &[T],
    missing: &[T],
    kind: &str,
) -> impl Iterator<Item = Violation> {
    let unknown_ids = given.iter().enumerate().filter(|(_, id)| missing.contains(id));
    unknown_ids.map(move |(n, id)| Violation::unknown(format!("{pointer}/{n}"), kind, id))
}

/// Refuses a list that contains unknown ids, naming all of them.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn require_known<T: Copy + PartialEq + Display>(
    pointer: &str,
    given: &[T],
    missing: &[T],
    kind: &str,
) -> Result<()> {
    Problem::fail_if_any(unknown(pointer, given, missing, kind).collect())
}

/// Archives a record and keeps its assignments. Archiving it again does nothing.
pub async fn archive<E: Assignable>(scope: &Scope, id: E::Id, operation: &'static str) -> Result<()> {
    let tx = scope.begin().await?;
    let row = load::<E>(&tx, id).await?;
    if E::archived_at(&row).is_some() {
        return Ok(());
    }
    let now = tx.now;
    set_archived::<E>(tx, id, &row, Some(now), operation).await
}

/// Restores an archived record. Restoring it again does nothing.
///
/// # Errors
/// `NOT_FOUND`, or `NAME_TAKEN` if another record took the name in the meantime.
pub async fn restore<E>(scope: &Scope, id: E::Id, operation: &'static str) -> Result<()>
where
    E: Assignable,
    E::Model: Sync,
{
    restore_in::<E>(scope.begin().await?, id, operation).await
}

/// [`restore`] in the caller's transaction, which it commits.
pub async fn restore_in<E>(tx: Tx, id: E::Id, operation: &'static str) -> Result<()>
where
    E: Assignable,
    E::Model: Sync,
{
    let row = load::<E>(&tx, id).await?;
    if E::archived_at(&row).is_none() {
        return Ok(());
    }
    require_free_name::<E>(&tx, E::name(&row), Some(id)).await?;
    set_archived::<E>(tx, id, &row, None, operation).await
}

async fn set_archived<E: Assignable>(
    tx: Tx,
    id: E::Id,
    row: &E::Model,
    at: Option<Timestamp>,
    operation: &'static str,
) -> Result<()> {
    let change = tx.scope.update::<E>().filter(E::ID.eq(id));
    let change =
        change.col_expr(E::ARCHIVED_AT, Expr::value(at)).col_expr(E::UPDATED_AT, Expr::value(tx.now));
    change.exec(tx.connection()).await?;
    edits::raise(&tx, E::KIND, id).await?;
    mark_assigned::<E>(&tx, id).await?;
    audit_change::<E>(&tx, (ChangeOp::Updated, operation), id, json!({ "name": E::name(row) }));
    tx.commit().await
}

/// Locks the assigned agents, before rows that are locked after agents. The caller has locked the record, so they stay
/// assigned.
pub async fn lock_assigned<E: Assignable>(tx: &Tx, id: E::Id) -> Result<()> {
    let agents = linked::<E::Assignments>(tx, id).await?;
    super::rows::lock_agents(tx, &agents).await?;
    Ok(())
}

/// Marks the assigned agents for synchronization and notifies the hosts of running ones.
pub async fn mark_assigned<E: Assignable>(tx: &Tx, id: E::Id) -> Result<()> {
    let agents = linked::<E::Assignments>(tx, id).await?;
    super::sync::mark_for_sync(tx, &agents).await
}

/// Counts an edit that changed no other column of the record.
pub async fn count_edit<E: Assignable>(tx: &Tx, id: E::Id) -> Result<()> {
    let change = tx.scope.update::<E>().filter(E::ID.eq(id)).col_expr(E::UPDATED_AT, Expr::value(tx.now));
    change.exec(tx.connection()).await?;
    edits::raise(tx, E::KIND, id).await
}

pub fn audit_change<E: Assignable>(
    tx: &Tx,
    (op, operation): (ChangeOp, &'static str),
    id: E::Id,
    changes: Value,
) {
    audit::record(tx, audit::Entry { operation, op, kind: E::KIND, id: id.into(), changes });
}

fn kind_in_words<E: Assignable>() -> String {
    E::KIND.noun().replace('_', " ")
}
