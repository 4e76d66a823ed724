//! The versions of a file in the database.

use std::collections::BTreeMap;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, NotSet, QueryFilter, QueryOrder, QuerySelect, Set,
};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::entity::policy_versions::{ActiveModel, Column, Entity, Model};
use crate::{
    base::{
        enums::PolicyAuthor,
        ids::{OrgId, PolicyVersionId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::{Caller, Scope},
        audit::Origin,
        policy::{Policy, changed_lines, listed, org_file},
        store::{Db, Tx},
    },
};

/// The version of a file that is not there.
pub const NO_FILE: &str = "none";

/// How many changed lines an audit line repeats; the versions have all of them.
const AUDITED_LINES: usize = 200;

/// Identifies a text.
#[must_use]
pub fn version_of(text: Option<&str>) -> String {
    let Some(text) = text else { return NO_FILE.to_owned() };
    hex::encode(&Sha256::digest(text)[..8])
}

/// What the audit log says of a text that takes the place of another: an object with both versions and the changed lines.
pub(super) fn difference(before: Option<&str>, after: Option<&str>) -> serde_json::Value {
    let mut lines = changed_lines(before.unwrap_or(""), after.unwrap_or(""));
    lines.truncate(AUDITED_LINES);
    json!({ "from": version_of(before), "to": version_of(after), "lines": lines })
}

/// Who gives a file its text, and why.
#[derive(Clone, Debug)]
pub(super) struct Author {
    pub kind: PolicyAuthor,
    pub id: Option<i64>,
    pub name: Option<String>,
    pub reason: Option<String>,
    pub reverts_to: Option<PolicyVersionId>,
}

impl Author {
    /// The caller of a request.
    pub fn caller(scope: &Scope, reason: &str) -> Self {
        let caller = &scope.request.caller;
        let kind = if matches!(caller, Caller::System) { PolicyAuthor::Operator } else { PolicyAuthor::User };
        Self {
            kind,
            id: caller.user().map(|user| user.0),
            name: Some(caller.name().to_owned()),
            reason: Some(reason.to_owned()),
            reverts_to: None,
        }
    }

    /// Whoever edited the file.
    pub fn file() -> Self {
        Self { kind: PolicyAuthor::File, id: None, name: None, reason: None, reverts_to: None }
    }
}

/// A version, for the operator.
#[derive(Clone, Debug, Serialize)]
pub struct Version {
    /// Identifies the version.
    pub id: PolicyVersionId,
    /// The file, from the policy folder on.
    pub file: String,
    /// Identifies the text.
    pub version: String,
    /// When it came to be.
    pub at: Timestamp,
    /// Who made it.
    pub author_kind: PolicyAuthor,
    /// That person's name.
    pub author_name: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The earlier version whose text it is again.
    pub reverts_to: Option<PolicyVersionId>,
    /// The text; none if the file was removed.
    pub text: Option<String>,
}

impl From<Model> for Version {
    fn from(row: Model) -> Self {
        Self {
            id: row.id,
            file: row.file,
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

/// The policy that is published: what the newest versions of all files come to. Each file that no version tells of is
/// that of the program, or not there.
///
/// # Errors
/// The database is out of reach; the texts are not good together.
pub async fn published(db: &Db) -> Result<Policy> {
    let sql = "SELECT organization_id, file, text FROM policy_versions WHERE text IS NOT NULL AND id IN \
               (SELECT MAX(id) FROM policy_versions GROUP BY organization_id, file)";
    let (mut operators, mut orgs) = (BTreeMap::<String, String>::new(), Vec::new());
    for row in db.all(sql.to_owned(), vec![]).await? {
        let (org, file): (Option<i64>, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        let text: String = row.try_get_by_index(2)?;
        match org {
            Some(org) => orgs.push((OrgId(org), text)),
            None => drop(operators.insert(file, text)),
        }
    }
    let operators =
        operators.remove("policy.csv").map(|policy| (policy, operators.remove("expectations.csv")));
    Policy::published(operators, orgs).map_err(|problems| {
        let detail = format!("The published policy is not good: {}", listed(&problems));
        Problem::new(Code::Conflict, detail)
    })
}

/// The versions of an organization's own file, the newest first.
///
/// # Errors
/// The database is out of reach.
pub async fn history(scope: &Scope, limit: u64) -> Result<Vec<Version>> {
    let rows =
        scope.find::<Entity>().order_by_desc(Column::Id).limit(limit).all(scope.core.db.read()).await?;
    Ok(rows.into_iter().map(Version::from).collect())
}

/// What identifies a text that is named by it, or by the number of a version.
///
/// # Errors
/// `NOT_FOUND` for a number that this organization's file never had.
pub async fn version_named(scope: &Scope, name: &str) -> Result<String> {
    let name = name.trim();
    // Both are digits at times; then the length tells.
    let Some(id) = name.parse().ok().filter(|_| name.len() < version_of(Some("")).len()) else {
        return Ok(name.to_owned());
    };
    let tx = scope.begin().await?;
    let version = load(&tx, PolicyVersionId(id)).await?.version;
    tx.rollback().await?;
    Ok(version)
}

/// The versions of the operator's own files, the newest first.
///
/// # Errors
/// The database is out of reach.
pub async fn operator_history(core: &Core, limit: u64) -> Result<Vec<Version>> {
    let rows = operators().order_by_desc(Column::Id).limit(limit).all(core.db.read()).await?;
    Ok(rows.into_iter().map(Version::from).collect())
}

/// The newest version of the organization's own file.
pub(super) async fn newest(tx: &Tx) -> Result<Option<Model>> {
    let rows = tx.scope.find::<Entity>().order_by_desc(Column::Id);
    Ok(rows.one(tx.connection()).await?)
}

/// Whether a text was a version of the organization's own file after another one was: after `row`, or if that is not known
/// after the last that has the text of `earlier`.
pub(super) async fn follows(
    tx: &Tx,
    version: &str,
    earlier: &str,
    row: Option<PolicyVersionId>,
) -> Result<bool> {
    let last = async |version: &str| -> Result<Option<PolicyVersionId>> {
        let rows = tx.scope.find::<Entity>().filter(Column::Version.eq(version)).order_by_desc(Column::Id);
        Ok(rows.one(tx.connection()).await?.map(|row| row.id))
    };
    let since = match row {
        Some(row) => Some(row),
        None => last(earlier).await?,
    };
    // None is earlier than any.
    Ok(last(version).await? > since)
}

/// Whether a text, or there being none, was ever a version of the organization's own file.
pub(super) async fn was(tx: &Tx, version: &str) -> Result<bool> {
    if version == NO_FILE {
        return Ok(true);
    }
    let row = tx.scope.find::<Entity>().filter(Column::Version.eq(version)).one(tx.connection()).await?;
    Ok(row.is_some())
}

/// One version of the organization's own file.
pub(super) async fn load(tx: &Tx, id: PolicyVersionId) -> Result<Model> {
    let row = tx.scope.find::<Entity>().filter(Column::Id.eq(id)).one(tx.connection()).await?;
    row.ok_or_else(|| Problem::not_found("policy version", id))
}

/// Adds a version of the organization's own file.
pub(super) async fn add(tx: &Tx, text: Option<String>, author: Author) -> Result<Model> {
    let org = tx.scope.org;
    let row = row(Some(org), org_file(org), text, author, tx.now);
    Ok(row.insert(tx.connection()).await?)
}

/// The newest version of one of the operator's own files.
#[expect(clippy::disallowed_methods, reason = "the operator's files belong to no organization")]
fn operators() -> sea_orm::Select<Entity> {
    Entity::find().filter(Column::OrganizationId.is_null())
}

/// Notes the text of one of the operator's own files, if it is not the newest one.
pub(super) async fn note_operators(core: &Core, file: &str, text: Option<String>) -> Result<bool> {
    let newest = newest_of_operators(core, file).await?;
    // What is found at the beginning was not edited.
    let operation = newest.is_some().then_some("policyFileEdited");
    write_operators(core, file, (newest, text), Author::file(), operation).await
}

async fn newest_of_operators(core: &Core, file: &str) -> Result<Option<Model>> {
    let newest = operators().filter(Column::File.eq(file)).order_by_desc(Column::Id);
    Ok(newest.one(core.db.read()).await?)
}

/// Adds the version, if it is not the newest one, and its line to the log of the instance.
async fn write_operators(
    core: &Core,
    file: &str,
    (newest, text): (Option<Model>, Option<String>),
    author: Author,
    operation: Option<&'static str>,
) -> Result<bool> {
    let before = newest.and_then(|newest| newest.text);
    if version_of(before.as_deref()) == version_of(text.as_deref()) {
        return Ok(false);
    }
    let mut changes = difference(before.as_deref(), text.as_deref());
    changes["file"] = file.into();
    changes["reason"] = author.reason.clone().into();
    match author.reverts_to {
        Some(reverted) => changes["reverts_to"] = reverted.0.into(),
        None => changes["author"] = "file".into(),
    }
    let tx = core.db.begin().await?;
    let row = row(None, file.to_owned(), text, author, core.clock.now()).insert(&tx).await?;
    if let Some(operation) = operation {
        Origin::operator(core).record(&tx, operation, ("policy", Some(row.id.0)), changes);
    }
    tx.commit().await?;
    Ok(true)
}

/// Whose file a version is, an organization's or (none) the operator's, and which.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn owner_of(core: &Core, id: PolicyVersionId) -> Result<(Option<OrgId>, String)> {
    let sql = "SELECT organization_id, file FROM policy_versions WHERE id = $1";
    let row = core.db.one(sql.to_owned(), vec![id.0.into()]).await?;
    let row = row.ok_or_else(|| Problem::new(Code::NotFound, format!("There is no policy version {id}.")))?;
    Ok((row.try_get_by_index::<Option<i64>>(0)?.map(OrgId), row.try_get_by_index(1)?))
}

/// One version of the operator's own files.
pub(super) async fn load_operators(core: &Core, id: PolicyVersionId) -> Result<Model> {
    let row = operators().filter(Column::Id.eq(id)).one(core.db.read()).await?;
    row.ok_or_else(|| {
        Problem::new(Code::NotFound, format!("There is no version {id} of the operator's files."))
    })
}

/// Adds a version of one of the operator's own files that was made an earlier one again.
pub(super) async fn add_operators(
    core: &Core,
    file: &str,
    text: Option<String>,
    author: Author,
) -> Result<bool> {
    let newest = newest_of_operators(core, file).await?;
    write_operators(core, file, (newest, text), author, Some("revertPolicy")).await
}

fn row(org: Option<OrgId>, file: String, text: Option<String>, author: Author, at: Timestamp) -> ActiveModel {
    ActiveModel {
        id: NotSet,
        organization_id: Set(org),
        file: Set(file),
        version: Set(version_of(text.as_deref())),
        text: Set(text),
        author_kind: Set(author.kind),
        author_id: Set(author.id),
        author_name: Set(author.name),
        reason: Set(author.reason),
        reverts_to: Set(author.reverts_to),
        at: Set(at),
    }
}

/// The sum of the newest versions' numbers, and the newest.
pub(super) type Mark = (i64, i64);

/// Tells cheaply whether there is news, however many versions there are. Both numbers, because a transaction that was begun
/// earlier may be committed later.
pub(super) async fn mark(core: &Core) -> Result<Mark> {
    let sql = "SELECT CAST(COALESCE(SUM(id), 0) AS BIGINT), COALESCE(MAX(id), 0) \
               FROM (SELECT id FROM policy_versions ORDER BY id DESC LIMIT 100) newest";
    match core.db.one(sql.to_owned(), vec![]).await? {
        Some(row) => Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)),
        None => Ok((0, 0)),
    }
}

/// The newest version of every organization's own file: whose it is, its number, and what identifies its text.
pub(super) async fn known(db: &Db) -> Result<Vec<(OrgId, PolicyVersionId, String)>> {
    let sql = "SELECT organization_id, id, version FROM policy_versions WHERE id IN \
               (SELECT MAX(id) FROM policy_versions WHERE organization_id IS NOT NULL GROUP BY organization_id)";
    let mut newest = Vec::new();
    for row in db.all(sql.to_owned(), vec![]).await? {
        let id = PolicyVersionId(row.try_get_by_index(1)?);
        newest.push((OrgId(row.try_get_by_index(0)?), id, row.try_get_by_index(2)?));
    }
    Ok(newest)
}
