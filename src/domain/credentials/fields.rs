//! The fields of a credential, set as a complete list and matched by label.
//!
//! A label that already exists keeps its row: id, type, and value stay unless the new list changes them. Each value is
//! sealed for its own row ([`seal_context`]), so a new row is inserted before its value is sealed.

use std::collections::HashMap;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, Set};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::entity::credential_fields;
use crate::{
    base::{
        bounds,
        enums::FieldType,
        ids::{CredentialFieldId, CredentialId, OrgId},
        problem::{Problem, Result, Violation},
        secret::SecretText,
    },
    core::{sealing::SealContext, store::Tx},
    domain::credentials::CredentialFieldInput,
};

/// The labels of changed fields, never values.
#[derive(Debug, Default, Serialize)]
pub struct FieldChanges {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

impl FieldChanges {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The context that a field's value is sealed for.
#[must_use]
pub fn seal_context(org: OrgId, field: CredentialFieldId) -> SealContext<'static> {
    SealContext::new(org, "credential_fields", field.0, "value")
}

/// Replaces the fields of a credential.
///
/// # Errors
/// `VALIDATION_FAILED` for a duplicate label, or a value that is too large or doesn't match its type.
pub async fn replace_fields(
    tx: &Tx,
    credential: CredentialId,
    fields: Vec<CredentialFieldInput>,
) -> Result<FieldChanges> {
    let own = credential_fields::Column::CredentialId.eq(credential);
    let stored =
        tx.scope.find::<credential_fields::Entity>().filter(own.clone()).all(tx.connection()).await?;
    let mut stored: HashMap<String, _> = stored.into_iter().map(|row| (row.label.clone(), row)).collect();
    let fields = check_fields(tx, fields, &stored)?;
    let mut replaced = FieldChanges::default();
    let mut rows = Vec::with_capacity(fields.len());
    for (n, field) in (0_i64..).zip(fields) {
        let row = stored.remove(&field.label);
        let position = field.position.or(row.as_ref().map(|row| row.position)).unwrap_or(n);
        rows.push((row, position, field));
    }
    if !stored.is_empty() {
        let gone = credential_fields::Column::Id.is_in(stored.values().map(|row| row.id));
        let gone = tx.scope.delete::<credential_fields::Entity>().filter(own).filter(gone);
        gone.exec(tx.connection()).await?;
        replaced.removed = stored.into_keys().collect();
        replaced.removed.sort_unstable();
    }
    for (row, position, field) in rows {
        let label = field.label.clone();
        match row {
            Some(row) => {
                if update_field(tx, row, position, field).await? {
                    replaced.changed.push(label);
                }
            }
            None => {
                insert_field(tx, credential, position, field).await?;
                replaced.added.push(label);
            }
        }
    }
    Ok(replaced)
}

/// Whether the edit keeps a stored value. Without a list all are kept; with one, those whose label is listed without a
/// value.
pub async fn keeps_value(
    tx: &Tx,
    credential: CredentialId,
    edited: &MaybeUndefined<Vec<CredentialFieldInput>>,
) -> Result<bool> {
    let stored = tx.scope.find::<credential_fields::Entity>();
    let stored = stored.filter(credential_fields::Column::CredentialId.eq(credential));
    let stored = stored.filter(credential_fields::Column::ValueSealed.is_not_null());
    let is_kept = |row: &credential_fields::Model| match edited {
        MaybeUndefined::Value(fields) => {
            fields.iter().any(|field| field.label.trim() == row.label && field.value.is_undefined())
        }
        MaybeUndefined::Undefined | MaybeUndefined::Null => true,
    };
    Ok(stored.all(tx.connection()).await?.iter().any(is_kept))
}

/// Updates a field whose label is listed again. Returns whether anything changed.
async fn update_field(
    tx: &Tx,
    row: credential_fields::Model,
    position: i64,
    field: CredentialFieldInput,
) -> Result<bool> {
    let sealed = seal_value(tx, row.id, field.value);
    let mut row = row.into_active_model();
    if let Some(kind) = field.r#type {
        row.r#type.set_if_not_equals(kind);
    }
    row.position.set_if_not_equals(position);
    crate::domain::patch::patch(&mut row.value_sealed, sealed);
    let changed = row.is_changed();
    if changed {
        row.update(tx.connection()).await?;
    }
    Ok(changed)
}

async fn insert_field(
    tx: &Tx,
    credential: CredentialId,
    position: i64,
    field: CredentialFieldInput,
) -> Result<()> {
    let row = credential_fields::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        credential_id: Set(credential),
        label: Set(field.label),
        r#type: Set(field.r#type.unwrap_or(FieldType::Secret)),
        position: Set(position),
        value_sealed: Set(None),
    }
    .insert(tx.connection())
    .await?;
    if let MaybeUndefined::Value(sealed) = seal_value(tx, row.id, field.value) {
        let mut row = row.into_active_model();
        row.value_sealed = Set(Some(sealed));
        row.update(tx.connection()).await?;
    }
    Ok(())
}

fn seal_value(tx: &Tx, id: CredentialFieldId, value: MaybeUndefined<SecretText>) -> MaybeUndefined<Vec<u8>> {
    value.map_value(|secret| tx.scope.core.sealing.seal(&secret.0, &seal_context(tx.scope.org, id)))
}

/// Trims the labels and checks that each is unique and each value matches its type.
fn check_fields(
    tx: &Tx,
    mut fields: Vec<CredentialFieldInput>,
    stored: &HashMap<String, credential_fields::Model>,
) -> Result<Vec<CredentialFieldInput>> {
    let mut violations = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (n, field) in fields.iter_mut().enumerate() {
        field.label = field.label.trim().to_owned();
        if !seen.insert(field.label.clone()) {
            let detail = format!("The label `{}` appears more than once.", field.label);
            violations.push(Violation::at(format!("/fields/{n}/label"), "DUPLICATE", detail));
        }
        let row = stored.get(&field.label);
        let kind = field.r#type.or(row.map(|row| row.r#type)).unwrap_or(FieldType::Secret);
        if let Some(row) = row.filter(|row| row.r#type != kind && field.value.is_undefined())
            && !stored_fits(tx, row, kind)?
        {
            let detail =
                format!("The stored value is not a valid `{kind}`. Send a new `value` with the type.");
            violations.push(Violation::at(format!("/fields/{n}/type"), "NOT_ALLOWED", detail));
        }
        if let MaybeUndefined::Value(value) = &field.value
            && let Some((code, detail)) = value_error(kind, value.0.expose_secret())
        {
            violations.push(Violation::at(format!("/fields/{n}/value"), code, detail));
        }
    }
    Problem::fail_if_any(violations)?;
    Ok(fields)
}

/// Whether the stored value is still valid when its type changes. Opens it only for types that have a format.
fn stored_fits(tx: &Tx, row: &credential_fields::Model, kind: FieldType) -> Result<bool> {
    if matches!(kind, FieldType::Text | FieldType::Secret | FieldType::Multiline) {
        return Ok(true);
    }
    let Some(sealed) = &row.value_sealed else { return Ok(true) };
    let value =
        tx.scope.core.sealing.open(sealed, &seal_context(tx.scope.org, row.id)).map_err(Problem::internal)?;
    Ok(value_error(kind, value.expose_secret()).is_none())
}

/// The code and detail of an invalid value. The detail never repeats the value.
fn value_error(kind: FieldType, value: &str) -> Option<(&'static str, &'static str)> {
    if value.len() > bounds::TEXT {
        return Some(("TOO_LONG", "The value must be at most 64 KiB."));
    }
    let (good, detail) = match kind {
        FieldType::Text | FieldType::Secret | FieldType::Multiline => return None,
        FieldType::Url => (url::Url::parse(value).is_ok(), "The value is not a valid URL."),
        FieldType::Number => {
            (value.trim().parse::<f64>().is_ok_and(f64::is_finite), "The value is not a number.")
        }
        FieldType::Boolean => (matches!(value, "true" | "false"), "The value must be `true` or `false`."),
        FieldType::Json => {
            (muster_json::from_str::<serde::de::IgnoredAny>(value).is_ok(), "The value is not valid JSON.")
        }
    };
    (!good).then_some(("NOT_ALLOWED", detail))
}
