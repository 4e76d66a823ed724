//! Versions: the past and present content of a skill. Agents' revisions name the versions of their skills, and a skill
//! can be reverted to an earlier one.
//!
//! The numbers of a skill's versions are 1, 2, 3, …. Old ones don't count against the plan's storage, so their total
//! size is limited.

use std::{collections::BTreeSet, sync::LazyLock};

use sea_orm::{ActiveModelTrait, ColumnTrait, NotSet, QueryFilter, QuerySelect, Set, sea_query::Expr};

use super::{
    UpdateSkillInput,
    entity::{skill_versions, skills},
    queries::delete_old_versions,
};
use crate::{
    base::{
        bounds,
        ids::SkillId,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, store::Tx},
    domain::versions::{Author, Content, as_edit, fields_of, read, settings},
};

/// How many bytes of versions are kept besides the newest, because each edit adds a whole text and could fill the disk.
const KEPT_BYTES: i64 = 4 << 20;

static SETTINGS: LazyLock<BTreeSet<String>> = LazyLock::new(fields_of::<UpdateSkillInput>);

/// Writes a version of the skill if it differs from the newest one. The caller has locked the skill, and passes its row
/// after the change.
pub(super) async fn record_version(tx: &Tx, skill: &skills::Model, reverts_to: Option<i64>) -> Result<()> {
    let content = Content::from_fields(settings(skill, &SETTINGS));
    let before = find_version(tx, skill.id, skill.version).await?;
    if before.as_ref().is_some_and(|before| before.content_hash == content.hash) {
        return Ok(());
    }
    let (number, author) = (skill.version + 1, Author::from_caller(tx));
    let row = skill_versions::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        skill_id: Set(skill.id),
        number: Set(number),
        changes: Set(content.changes_from(before.as_ref().map(|before| before.content.as_str()))),
        bytes: Set(content.bytes()),
        content_hash: Set(content.hash),
        content: Set(content.text),
        reverts_to: Set(reverts_to),
        author_kind: Set(author.kind),
        author_id: Set(author.id),
        author_name: Set(author.name),
        operation: Set(author.operation),
        reason: Set(author.reason),
        created_at: Set(tx.now),
    };
    row.insert(tx.connection()).await?;
    let raised = tx.scope.update::<skills::Entity>().filter(skills::Column::Id.eq(skill.id));
    raised.col_expr(skills::Column::Version, Expr::value(number)).exec(tx.connection()).await?;
    delete_old_versions(tx, skill.id, number, (bounds::HISTORY, KEPT_BYTES)).await
}

async fn find_version(tx: &Tx, skill: SkillId, number: i64) -> Result<Option<skill_versions::Model>> {
    let found = tx.scope.find::<skill_versions::Entity>();
    let found = found.filter(skill_versions::Column::SkillId.eq(skill));
    Ok(found.filter(skill_versions::Column::Number.eq(number)).one(tx.connection()).await?)
}

/// Reverts the skill to an earlier version, which becomes its newest one. Does nothing if they are the same.
///
/// # Errors
/// `NOT_FOUND`; the errors of an edit with the same values.
pub async fn revert(scope: &Scope, id: SkillId, to: i64, reason: String) -> Result<()> {
    let mut tx = scope.begin().await?;
    tx.reason = Some(reason);
    let Some(version) = find_version(&tx, id, to).await? else {
        return Err(version_not_found(&tx, id, to).await?);
    };
    let edit: UpdateSkillInput = as_edit(&read(&version.content)?)?;
    super::apply_edit(tx, id, edit, ("revertSkill", Some(to))).await
}

async fn version_not_found(tx: &Tx, id: SkillId, number: i64) -> Result<Problem> {
    let found = tx.scope.find::<skills::Entity>().select_only().column(skills::Column::Version);
    let found = found.filter(skills::Column::Id.eq(id)).into_tuple::<i64>().one(tx.connection()).await?;
    let Some(newest) = found else { return Ok(Problem::not_found("skill", id)) };
    let detail = format!("The skill has no version {number}. The newest is {newest}; only some are kept.");
    Ok(Problem::new(Code::NotFound, detail))
}
