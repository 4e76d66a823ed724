//! Skills: written know-how, stored in an agent's volume as `<name>/SKILL.md`.
//!
//! A skill is active or archived; archiving keeps the assignments. An edit that changes something, or is forced, marks
//! the assigned agents for synchronization and notifies the hosts of running ones. Permissions: `skill.*`.

mod entity;
mod input;
mod queries;
mod versions;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, QueryOrder, Set};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::entity::{skill_agents, skills};
pub use self::{
    input::{CreateSkillInput, UpdateSkillInput},
    versions::revert,
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, RecordKind},
        ids::{AgentId, SkillId},
        permission::Permission,
        problem::{Problem, Result},
    },
    core::{access::Scope, audit, store::Tx},
    domain::{
        agents::assignments,
        edits,
        orgs::{self, Limit},
        patch::{patch, patch_required},
    },
    resolvers::bounds::is_folder,
};

/// Creates a skill. No agent has it yet.
///
/// # Errors
/// `VALIDATION_FAILED` for a name that can't be a folder name, `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn create(scope: &Scope, new: CreateSkillInput) -> Result<SkillId> {
    let name = folder_name(&new.name)?;
    let tx = scope.begin().await?;
    orgs::check_limit(&tx, Limit::Skills).await?;
    assignments::require_free_name::<skills::Entity>(&tx, &name, None).await?;
    let skill = skills::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name_folded: NotSet,
        name: Set(name.clone()),
        description: Set(new.description),
        content_hash: Set(content_hash(&new.content)),
        version: Set(0),
        content: Set(new.content),
        model: Set(new.model),
        effort: Set(new.effort),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        archived_at: Set(None),
    }
    .insert(tx.connection())
    .await?;
    orgs::check_stored(&tx, length(&skill.content)).await?;
    versions::record_version(&tx, &skill, None).await?;
    assignments::audit_change::<skills::Entity>(
        &tx,
        (ChangeOp::Created, "createSkill"),
        skill.id,
        json!({ "name": name }),
    );
    tx.commit().await?;
    Ok(skill.id)
}

/// Edits a skill (specification, operation 26). Marks the assigned agents if anything changes or the edit is
/// forced.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `NAME_TAKEN`, `PLAN_LIMIT_REACHED`, `VALIDATION_FAILED` for a name that can't be a
/// folder name.
pub async fn update(
    scope: &Scope,
    id: SkillId,
    edit: UpdateSkillInput,
    reason: Option<String>,
) -> Result<()> {
    let mut tx = scope.begin().await?;
    tx.reason = reason;
    apply_edit(tx, id, edit, ("updateSkill", None)).await
}

/// Edits a skill in the caller's transaction, which it commits. `reverts_to` is the version that the edit restores.
async fn apply_edit(
    tx: Tx,
    id: SkillId,
    edit: UpdateSkillInput,
    (operation, reverts_to): (&'static str, Option<i64>),
) -> Result<()> {
    let name = match edit.name {
        MaybeUndefined::Value(name) => MaybeUndefined::Value(folder_name(&name)?),
        unchanged => unchanged,
    };
    let before = assignments::load_active::<skills::Entity>(&tx, id).await?;
    let mut skill = before.clone().into_active_model();
    if let MaybeUndefined::Value(name) = &name {
        assignments::require_free_name::<skills::Entity>(&tx, name, Some(id)).await?;
    }
    patch_required(&mut skill.name, name);
    patch(&mut skill.description, edit.description);
    if let MaybeUndefined::Value(content) = &edit.content {
        skill.content_hash.set_if_not_equals(content_hash(content));
    }
    patch_required(&mut skill.content, edit.content);
    let added = length(skill.content.as_ref()) - length(&before.content);
    patch(&mut skill.model, edit.model);
    patch(&mut skill.effort, edit.effort);
    let mut changes = json!({ "force": edit.force.unwrap_or_default() });
    if skill.is_changed() {
        if skill.content.is_set() {
            // Locking order: the organization, the agents, and the sum of stored bytes, which the row's trigger writes.
            // Storing a picture or a file of an agent keeps the same order, so that the two can't deadlock.
            orgs::lock(&tx).await?;
            assignments::lock_assigned::<skills::Entity>(&tx, id).await?;
        }
        skill.updated_at = Set(tx.now);
        changes = audited_changes(&before, &skill);
        let skill = skill.update(tx.connection()).await?;
        edits::raise(&tx, RecordKind::Skill, id).await?;
        orgs::check_stored(&tx, added).await?;
        versions::record_version(&tx, &skill, reverts_to).await?;
    } else if !edit.force.unwrap_or_default() {
        return Ok(());
    }
    assignments::mark_assigned::<skills::Entity>(&tx, id).await?;
    if let Some(version) = reverts_to {
        changes["reverts_to"] = json!(version);
    }
    if let Some(reason) = &tx.reason {
        changes["reason"] = json!(reason);
    }
    assignments::audit_change::<skills::Entity>(&tx, (ChangeOp::Updated, operation), id, changes);
    tx.commit().await
}

/// Sets the complete list of agents that have a skill.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `VALIDATION_FAILED` for an unknown agent, in which case nothing changes.
pub async fn set_agents(scope: &Scope, id: SkillId, agents: &[AgentId]) -> Result<()> {
    assignments::assign::<skills::Entity>(scope, id, agents, "setSkillAgents").await
}

/// Sets an agent's skills; archived ones stay assigned. Returns the changes, if there are any.
pub async fn set_of_agent(tx: &Tx, agent: AgentId, wanted: &[SkillId]) -> Result<Option<Value>> {
    assignments::replace_of_agent::<skills::Entity>(tx, agent, wanted, Permission::SkillEdit).await
}

/// Archives a skill. Its agents lose it.
pub async fn archive(scope: &Scope, id: SkillId) -> Result<()> {
    assignments::archive::<skills::Entity>(scope, id, "archiveSkill").await
}

/// Restores a skill. Its agents regain it.
///
/// # Errors
/// `NOT_FOUND`, `NAME_TAKEN`.
pub async fn restore(scope: &Scope, id: SkillId) -> Result<()> {
    assignments::restore::<skills::Entity>(scope, id, "unarchiveSkill").await
}

/// A skill of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedSkill {
    /// Also the name of its folder.
    pub name: String,
    /// When to use it.
    pub description: Option<String>,
    pub content: String,
    /// The newest of its versions.
    pub version: i64,
}

/// The agent's skills that aren't archived, in order of their ids.
pub async fn of_agent(tx: &Tx, agent: AgentId) -> Result<Vec<AssignedSkill>> {
    let links = tx.scope.find::<skill_agents::Entity>().filter(skill_agents::Column::AgentId.eq(agent));
    let links = links.all(tx.connection()).await?;
    let found = tx
        .scope
        .find::<skills::Entity>()
        .filter(skills::Column::Id.is_in(links.iter().map(|link| link.skill_id)))
        .filter(skills::Column::ArchivedAt.is_null())
        .order_by_asc(skills::Column::Id);
    let found = found.all(tx.connection()).await?.into_iter();
    let known = found.map(|skill| AssignedSkill {
        name: skill.name,
        description: skill.description,
        content: skill.content,
        version: skill.version,
    });
    Ok(known.collect())
}

/// An edit's changes for the audit log, with the hash of the content instead of the content, which may be long.
fn audited_changes(before: &skills::Model, skill: &skills::ActiveModel) -> serde_json::Value {
    let mut changes = audit::changed(before, skill);
    if let (Some(changes), Some(hash)) = (changes.as_object_mut(), skill.content_hash.try_as_ref())
        && changes.remove("content").is_some()
    {
        changes.insert("content_hash".to_owned(), audit::from_to(&before.content_hash, hash));
    }
    changes
}

fn length(content: &str) -> i64 {
    content.len().cast_signed() as i64
}

/// SHA-256, in hexadecimal.
fn content_hash(content: &str) -> String {
    hex::encode(Sha256::digest(content.as_bytes()))
}

/// Trims the name and requires that it is a valid folder name.
fn folder_name(name: &str) -> Result<String> {
    let refuse = |code, detail: &str| Err(Problem::invalid_at("/name", code, detail));
    if !is_folder(name) {
        return refuse(
            "NOT_ALLOWED",
            "The name is also a folder name: it can't contain slashes or start with a dot.",
        );
    }
    let name = name.trim();
    if name.len() > bounds::FILE_NAME {
        return refuse("TOO_LONG", "The name is also a folder name: it must be at most 240 bytes long.");
    }
    Ok(name.to_owned())
}
