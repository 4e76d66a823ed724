//! The versions of an organization's own rules in the database.

use sea_orm::{ActiveModelTrait, ColumnTrait, NotSet, QueryFilter, QueryOrder, QuerySelect, Set};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    entity::policy_versions::{ActiveModel, Column, Entity, Model},
    queries::version_text,
};
use crate::{
    base::{
        enums::PolicyAuthor,
        ids::{OrgId, PolicyVersionId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        access::{Caller, Scope},
        policy::changed_lines,
        store::{Db, Tx},
    },
};

/// The version of having no rules.
pub const NONE: &str = "none";

/// Identifies a text.
#[must_use]
pub fn version_of(text: Option<&str>) -> String {
    let Some(text) = text else { return NONE.to_owned() };
    hex::encode(&Sha256::digest(text)[..8])
}

/// The audit entry for replacing a text: an object with both versions and the changed lines.
pub(super) fn difference(before: Option<&str>, after: Option<&str>) -> serde_json::Value {
    let mut lines = changed_lines(before.unwrap_or(""), after.unwrap_or(""));
    // The versions contain the complete texts.
    lines.truncate(200);
    json!({ "from": version_of(before), "to": version_of(after), "lines": lines })
}

/// The author of a version, and the reason for it.
#[derive(Clone, Debug)]
pub(super) struct Author {
    pub kind: PolicyAuthor,
    pub id: Option<i64>,
    pub name: String,
    pub reason: String,
    pub reverts_to: Option<PolicyVersionId>,
}

impl Author {
    pub fn from_caller(scope: &Scope, reason: &str) -> Self {
        let caller = &scope.request.caller;
        let kind = if matches!(caller, Caller::System) { PolicyAuthor::Operator } else { PolicyAuthor::User };
        let (id, name) = (caller.user().map(|user| user.0), caller.name().to_owned());
        Self { kind, id, name, reason: reason.to_owned(), reverts_to: None }
    }
}

/// A version in the operator's output.
#[derive(Clone, Debug, Serialize)]
pub struct Version {
    pub id: PolicyVersionId,
    /// Identifies the text.
    pub version: String,
    pub at: Timestamp,
    pub author_kind: PolicyAuthor,
    /// The author's name at the time.
    pub author_name: Option<String>,
    pub reason: String,
    /// The earlier version whose text it restores.
    pub reverts_to: Option<PolicyVersionId>,
    /// The text. None if the organization has no rules of its own.
    pub text: Option<String>,
}

impl From<Model> for Version {
    fn from(row: Model) -> Self {
        Self {
            id: row.id,
            version: row.version,
            at: row.at,
            author_kind: row.author_kind,
            author_name: row.author_name,
            reason: row.reason,
            reverts_to: row.reverts_to,
            text: row.text,
        }
    }
}

/// The versions of an organization's own rules, newest first.
pub async fn history(scope: &Scope, limit: u64) -> Result<Vec<Version>> {
    let rows =
        scope.find::<Entity>().order_by_desc(Column::Id).limit(limit).all(scope.core.db.read()).await?;
    Ok(rows.into_iter().map(Version::from).collect())
}

/// Resolves a version number or a content hash to the content hash.
///
/// # Errors
/// `NOT_FOUND` for a version number that this organization never had.
pub async fn resolve_version(scope: &Scope, name: &str) -> Result<String> {
    let name = name.trim();
    // A hash can consist of digits only, so the length decides.
    match name.parse().ok().filter(|_| name.len() < version_of(Some("")).len()) {
        Some(id) => Ok(load(scope, PolicyVersionId(id)).await?.version),
        None => Ok(name.to_owned()),
    }
}

/// A version's organization and text.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn text_of(db: &Db, id: PolicyVersionId) -> Result<(OrgId, Option<String>)> {
    let found = version_text(db, id).await?;
    let gone = || Problem::new(Code::NotFound, format!("There is no policy version {id}."));
    let found = found.ok_or_else(gone)?;
    Ok((found.organization_id, found.text))
}

/// The newest version of the organization's own rules.
pub async fn newest(scope: &Scope) -> Result<Option<Version>> {
    Ok(history(scope, 1).await?.pop())
}

/// [`newest`], as the transaction sees it.
pub(super) async fn newest_in(tx: &Tx) -> Result<Option<Model>> {
    Ok(tx.scope.find::<Entity>().order_by_desc(Column::Id).one(tx.connection()).await?)
}

/// One version of the organization's own rules.
pub(super) async fn load(scope: &Scope, id: PolicyVersionId) -> Result<Model> {
    let row = scope.find::<Entity>().filter(Column::Id.eq(id)).one(scope.core.db.read()).await?;
    row.ok_or_else(|| Problem::not_found("policy version", id))
}

/// Adds a version of the organization's own rules.
pub(super) async fn add(tx: &Tx, text: Option<String>, author: Author) -> Result<Model> {
    let row = ActiveModel {
        id: NotSet,
        organization_id: Set(tx.scope.org),
        version: Set(version_of(text.as_deref())),
        text: Set(text),
        author_kind: Set(author.kind),
        author_id: Set(author.id),
        author_name: Set(Some(author.name)),
        reason: Set(author.reason),
        reverts_to: Set(author.reverts_to),
        at: Set(tx.now),
    };
    Ok(row.insert(tx.connection()).await?)
}
