//! Contacts: people on the other side of channels, and their addresses (identities).
//!
//! A contact is created by its first message. Permissions: `contact.*`. A contact who took part in a
//! conversation can't be deleted, because the conversation names them.

mod authors;
mod entity;
mod queries;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, DbErr, IntoActiveModel, QueryFilter, Set, SqlErr};
use serde_json::json;

pub use self::authors::{create_contact, find_seen};
use self::entity::{contacts, identities};
pub(crate) use self::queries::is_reached;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ContactId,
        problem::{Code, Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        store::{Tx, for_update},
    },
    domain::{
        edits,
        patch::{patch, patch_required},
    },
};

/// Changes to a contact. Undefined keeps the value, null clears an optional one.
#[derive(Debug, Default)]
pub struct ContactEdit {
    pub name: MaybeUndefined<String>,
    /// For members of the organization.
    pub note: MaybeUndefined<String>,
}

/// Edits a contact. An edit that changes nothing does nothing.
pub async fn update(scope: &Scope, id: ContactId, edit: ContactEdit) -> Result<()> {
    let tx = scope.begin().await?;
    let before = load(&tx, id).await?;
    let mut contact = before.clone().into_active_model();
    patch_required(&mut contact.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch(&mut contact.note, edit.note);
    if !contact.is_changed() {
        return Ok(());
    }
    contact.updated_at = Set(tx.now);
    let changes = audit::changed(&before, &contact);
    contact.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Contact, id).await?;
    audit_and_commit(tx, (ChangeOp::Updated, "updateContact"), id, changes).await
}

/// Deletes a contact without conversations, including all addresses.
///
/// # Errors
/// `NOT_FOUND`, `IN_USE`.
pub async fn delete(scope: &Scope, id: ContactId) -> Result<()> {
    let tx = scope.begin().await?;
    let name = load(&tx, id).await?.name;
    let deleted = scope.delete::<contacts::Entity>().filter(contacts::Column::Id.eq(id));
    deleted.exec(tx.connection()).await.map_err(in_use_problem)?;
    audit_and_commit(tx, (ChangeOp::Deleted, "deleteContact"), id, json!({ "name": name })).await
}

/// Replaces a contact's name and addresses, and clears the rest. Returns the addresses. The rows stay, because
/// conversations name the contact.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn erase(tx: &Tx, id: ContactId, name: &str) -> Result<Vec<String>> {
    let mut contact = load(tx, id).await?.into_active_model();
    contact.name = Set(name.to_owned());
    contact.note = Set(None);
    contact.avatar_version = Set(None);
    contact.updated_at = Set(tx.now);
    contact.update(tx.connection()).await?;
    edits::raise(tx, RecordKind::Contact, id).await?;
    let found = tx.scope.find::<identities::Entity>().filter(identities::Column::ContactId.eq(id));
    let mut addresses = Vec::new();
    for identity in found.all(tx.connection()).await? {
        addresses.push(identity.origin_id.clone());
        let erased = format!("erased-{}", identity.id);
        let mut identity = identity.into_active_model();
        identity.origin_id = Set(erased);
        identity.display_name = Set(None);
        identity.updated_at = Set(tx.now);
        identity.update(tx.connection()).await?;
    }
    let entry = audit::Entry {
        operation: "eraseContact",
        op: ChangeOp::Updated,
        kind: RecordKind::Contact,
        id: id.0,
        changes: json!({}),
    };
    audit::record(tx, entry);
    Ok(addresses)
}

/// The foreign keys decide whether a contact is in use: by a conversation, or by a message through an address.
fn in_use_problem(error: DbErr) -> Problem {
    match error.sql_err() {
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => {
            Problem::new(Code::InUse, "The contact has conversations, so it can't be deleted.")
        }
        _ => error.into(),
    }
}

async fn load(tx: &Tx, id: ContactId) -> Result<contacts::Model> {
    let found = tx.scope.find::<contacts::Entity>().filter(contacts::Column::Id.eq(id));
    let found = for_update(found.filter(contacts::Column::ArchivedAt.is_null()));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("contact", id))
}

async fn audit_and_commit(
    tx: Tx,
    (op, operation): (ChangeOp, &'static str),
    id: ContactId,
    changes: serde_json::Value,
) -> Result<()> {
    audit::record(&tx, audit::Entry { operation, op, kind: RecordKind::Contact, id: id.0, changes });
    tx.commit().await
}
