//! What agents work with: credentials, MCP servers, skills. Each is assigned to agents as a whole list, and can be
//! archived and restored; the three slices share these operations.
//!
//! Archiving hides a thing from lists and from launches and keeps its assignments, so that restoring it gives
//! the assigned agents everything back. Agents that a change concerns are marked, and running ones told at once.

use std::fmt::Display;

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, sea_query::Expr};
use serde_json::{Value, json};

use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::AgentId,
        problem::{Code, Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        access::Scope,
        audit,
        store::{Link, TenantEntity, Tx, held, linked, relink},
    },
};

/// An entity that is assigned to agents.
pub trait Assignable: TenantEntity {
    /// Identifies a record.
    type Id: Copy + Display + Into<i64> + Into<sea_orm::Value> + Send + Sync;
    /// The join table.
    type Assignments: Link<Owner = Self::Id, Member = AgentId>;

    /// What the audit log calls it, and messages, with spaces.
    const KIND: RecordKind;
    /// The column of the id.
    const ID: Self::Column;
    /// The column of the name, which is unique among what is not archived.
    const NAME: Self::Column;
    /// The column that tells since when it is archived.
    const ARCHIVED_AT: Self::Column;
    /// The column that tells when the record last changed.
    const UPDATED_AT: Self::Column;

    /// The name of a row.
    fn name(row: &Self::Model) -> &str;

    /// Since when a row is archived.
    fn archived_at(row: &Self::Model) -> Option<Timestamp>;
}

/// The record, archived or not, locked until the transaction ends.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn load<E: Assignable>(tx: &Tx, id: E::Id) -> Result<E::Model> {
    let found = held(tx.scope.find::<E>().filter(E::ID.eq(id)));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found(&spoken::<E>(), id))
}

/// The record, to be changed.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`.
pub async fn load_active<E: Assignable>(tx: &Tx, id: E::Id) -> Result<E::Model> {
    let row = load::<E>(tx, id).await?;
    if E::archived_at(&row).is_some() {
        let detail = format!("The {} is archived; restore it before you change it.", spoken::<E>());
        return Err(Problem::new(Code::Archived, detail));
    }
    Ok(row)
}

/// Refuses a name that another record of the kind has.
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
        Err(Problem::name_taken(&spoken::<E>(), name))
    }
}

/// Makes `agents` the agents that a thing is assigned to; agents added and removed are told. An unknown id refuses
/// the whole.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `VALIDATION_FAILED` with the place of each unknown id.
pub async fn assign<E: Assignable>(
    scope: &Scope,
    id: E::Id,
    agents: &[AgentId],
    operation: &'static str,
) -> Result<()> {
    let mut tx = scope.begin().await?;
    load_active::<E>(&tx, id).await?;
    require_known("/agent_ids", agents, &super::missing(&tx, agents).await?, "agent")?;
    let change = relink::<E::Assignments>(&tx, id, agents).await?;
    if change.is_empty() {
        return Ok(());
    }
    touch::<E>(&tx, id).await?;
    super::mark_for_sync(&mut tx, &change.touched()).await?;
    record::<E>(
        &tx,
        (ChangeOp::Updated, operation),
        id,
        json!({ "added": change.added, "removed": change.removed }),
    );
    tx.commit().await
}

/// Every place of a list of ids that holds an unknown one.
pub fn unknown<T: Copy + PartialEq + Display>(
    pointer: &str,
    given: &[T],
    missing: &[T],
    kind: &str,
) -> impl Iterator<Item = Violation> {
    let places = given.iter().enumerate().filter(|(_, id)| missing.contains(id));
    places.map(move |(n, id)| Violation::unknown(format!("{pointer}/{n}"), kind, id))
}

/// Refuses a list of ids with unknown ones; every one is named.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn require_known<T: Copy + PartialEq + Display>(
    pointer: &str,
    given: &[T],
    missing: &[T],
    kind: &str,
) -> Result<()> {
    Problem::refuse(unknown(pointer, given, missing, kind).collect())
}

/// Archives a thing; again does nothing. Its assignments are kept.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn archive<E: Assignable>(scope: &Scope, id: E::Id, operation: &'static str) -> Result<()> {
    let tx = scope.begin().await?;
    let row = load::<E>(&tx, id).await?;
    if E::archived_at(&row).is_some() {
        return Ok(());
    }
    let now = tx.now;
    set_archived::<E>(tx, id, &row, Some(now), operation).await
}

/// Restores an archived thing; again does nothing.
///
/// # Errors
/// `NOT_FOUND`, `NAME_TAKEN` when another one took the name meanwhile.
pub async fn restore<E>(scope: &Scope, id: E::Id, operation: &'static str) -> Result<()>
where
    E: Assignable,
    E::Model: Sync,
{
    let tx = scope.begin().await?;
    let row = load::<E>(&tx, id).await?;
    if E::archived_at(&row).is_none() {
        return Ok(());
    }
    require_free_name::<E>(&tx, E::name(&row), Some(id)).await?;
    set_archived::<E>(tx, id, &row, None, operation).await
}

async fn set_archived<E: Assignable>(
    mut tx: Tx,
    id: E::Id,
    row: &E::Model,
    at: Option<Timestamp>,
    operation: &'static str,
) -> Result<()> {
    let change = tx.scope.update::<E>().filter(E::ID.eq(id));
    let change =
        change.col_expr(E::ARCHIVED_AT, Expr::value(at)).col_expr(E::UPDATED_AT, Expr::value(tx.now));
    change.exec(tx.connection()).await?;
    mark_assigned::<E>(&mut tx, id).await?;
    record::<E>(&tx, (ChangeOp::Updated, operation), id, json!({ "name": E::name(row) }));
    tx.commit().await
}

/// Marks the assigned agents as needing synchronization, and tells those that run.
///
/// # Errors
/// The database refused.
pub async fn mark_assigned<E: Assignable>(tx: &mut Tx, id: E::Id) -> Result<()> {
    let agents = linked::<E::Assignments>(tx, id).await?;
    super::mark_for_sync(tx, &agents).await
}

/// Says that the record has changed, although none of its own columns has.
///
/// # Errors
/// The database refused.
pub async fn touch<E: Assignable>(tx: &Tx, id: E::Id) -> Result<()> {
    let change = tx.scope.update::<E>().filter(E::ID.eq(id)).col_expr(E::UPDATED_AT, Expr::value(tx.now));
    change.exec(tx.connection()).await?;
    Ok(())
}

/// The audit line of a change to the record.
pub fn record<E: Assignable>(tx: &Tx, (op, operation): (ChangeOp, &'static str), id: E::Id, changes: Value) {
    audit::record(tx, audit::Entry { operation, op, kind: E::KIND, id: id.into(), changes });
}

fn spoken<E: Assignable>() -> String {
    E::KIND.noun().replace('_', " ")
}
