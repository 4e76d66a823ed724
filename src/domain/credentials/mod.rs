//! Credentials: named sets of secrets, and the agents and members who may use them.
//!
//! A credential is active or archived; archiving keeps the assignments. Values are sealed on arrival and never returned
//! by the API: records only show whether there is one, and the audit log that it changed. Only the hosts of agents that
//! may use a credential get its values (`export.rs`), and report when they use them (`uses.rs`). Permissions:
//! `credential.*`. A change notifies the hosts of its running agents.

mod destinations;
mod entity;
mod export;
mod fields;
mod input;
mod queries;
mod uses;

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, QueryFilter, QuerySelect, Set};
use serde_json::{Value, json};

use self::entity::{credential_members, credentials};
pub use self::{
    destinations::names_mcp_server,
    export::{OpenedCredential, given_by_name, has_any, open_for_agent, readable_by},
    fields::seal_context,
    input::{CreateCredentialInput, CredentialFieldInput, SetMembersInput, UpdateCredentialInput},
    queries::mark_given,
    uses::record_use,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{AgentId, CredentialId, UserId},
        json::texts,
        permission::Permission,
        problem::{Code, Problem, Result},
    },
    core::{
        Event,
        access::{Caller, Scope},
        audit,
        store::{Tx, relink},
    },
    domain::{
        agents::assignments,
        edits, network,
        orgs::{self, Limit},
        patch::{patch, patch_required},
        people,
    },
};

/// Creates a credential that no one may use yet (specification, operation 20). Only a person can allow agents to read
/// it.
///
/// # Errors
/// `VALIDATION_FAILED` for an invalid destination, label, or value; `PLAN_LIMIT_REACHED`, `NAME_TAKEN`,
/// `PERMISSION_DENIED`.
pub async fn create(scope: &Scope, new: CreateCredentialInput, agent_may_read: bool) -> Result<CredentialId> {
    let destinations = destinations::normalize(new.destinations.unwrap_or_default())?;
    if agent_may_read {
        require_person(scope)?;
    }
    let tx = scope.begin().await?;
    orgs::check_limit(&tx, Limit::Credentials).await?;
    let name = new.name.trim().to_owned();
    assignments::require_free_name::<credentials::Entity>(&tx, &name, None).await?;
    let credential = credentials::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name_folded: NotSet,
        name: Set(name.clone()),
        description: Set(new.description),
        kind: Set(new.kind),
        destinations: Set(json!(destinations)),
        agent_may_read_at: Set(agent_may_read.then_some(tx.now)),
        agent_may_read_by: Set(scope.request.caller.user().filter(|_| agent_may_read)),
        agent_may_read_by_name: Set(agent_may_read.then(|| scope.request.caller.name().to_owned())),
        last_used_at: Set(None),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        archived_at: Set(None),
    }
    .insert(tx.connection())
    .await?;
    let fields = fields::replace_fields(&tx, credential.id, new.fields).await?;
    let changes = json!({
        "name": name, "kind": new.kind, "fields": fields, "agent_may_read": agent_may_read,
    });
    assignments::audit_change::<credentials::Entity>(
        &tx,
        (ChangeOp::Created, "createCredential"),
        credential.id,
        changes,
    );
    tx.commit().await?;
    Ok(credential.id)
}

/// Edits a credential (specification, operation 21) and notifies its agents' hosts. An edit that changes nothing does
/// nothing.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `NAME_TAKEN`, `VALIDATION_FAILED` for an invalid destination, label, or value;
/// `PERMISSION_DENIED` if only a person may make the change.
pub async fn update(
    scope: &Scope,
    id: CredentialId,
    edit: UpdateCredentialInput,
    agent_may_read: Option<bool>,
) -> Result<()> {
    let tx = scope.begin().await?;
    let before = assignments::load_active::<credentials::Entity>(&tx, id).await?;
    let mut credential = before.clone().into_active_model();
    if let MaybeUndefined::Value(name) = &edit.name {
        assignments::require_free_name::<credentials::Entity>(&tx, name.trim(), Some(id)).await?;
    }
    patch_required(&mut credential.name, edit.name.map_value(|name| name.trim().to_owned()));
    if credential.name.is_set() && is_token(scope) {
        require_values_for_name(&tx, &before, &edit.fields).await?;
    }
    patch(&mut credential.description, edit.description);
    patch_required(&mut credential.kind, edit.kind);
    if let MaybeUndefined::Value(destinations) = edit.destinations {
        let destinations = destinations::normalize(destinations)?;
        if is_token(scope) {
            require_values_for_destinations(&tx, &before, &destinations, &edit.fields).await?;
        }
        credential.destinations.set_if_not_equals(json!(destinations));
    }
    if let Some(may_read) = agent_may_read {
        let is_open = credential.agent_may_read_at.as_ref().is_some();
        if may_read && !is_open {
            require_person(scope)?;
        }
        if may_read != is_open {
            let caller = &scope.request.caller;
            credential.agent_may_read_at = Set(may_read.then_some(tx.now));
            credential.agent_may_read_by = Set(caller.user().filter(|_| may_read));
            credential.agent_may_read_by_name = Set(may_read.then(|| caller.name().to_owned()));
        }
    }
    let fields = match edit.fields {
        MaybeUndefined::Value(fields) => fields::replace_fields(&tx, id, fields).await?,
        MaybeUndefined::Undefined | MaybeUndefined::Null => fields::FieldChanges::default(),
    };
    if !credential.is_changed() && fields.is_empty() {
        return Ok(());
    }
    let mut changes = audit::changed(&before, &credential);
    if !fields.is_empty() {
        changes["fields"] = json!(fields);
    }
    credential.updated_at = Set(tx.now);
    credential.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Credential, id).await?;
    assignments::mark_assigned::<credentials::Entity>(&tx, id).await?;
    assignments::audit_change::<credentials::Entity>(
        &tx,
        (ChangeOp::Updated, "updateCredential"),
        id,
        changes,
    );
    tx.commit().await
}

fn is_token(scope: &Scope) -> bool {
    matches!(scope.request.caller, Caller::Token(_))
}

/// Refuses a service token's new destination for stored values, unless a person has allowed its host. An MCP server at
/// the destination gets the values, so a token that could choose it freely could read values that it doesn't know.
async fn require_values_for_destinations(
    tx: &Tx,
    before: &credentials::Model,
    destinations: &[String],
    fields: &MaybeUndefined<Vec<CredentialFieldInput>>,
) -> Result<()> {
    let known = texts(&before.destinations);
    let added: Vec<&String> = destinations.iter().filter(|new| !known.contains(new)).collect();
    if added.is_empty() || !fields::keeps_value(tx, before.id, fields).await? {
        return Ok(());
    }
    let allowed = network::allowed(tx).await?;
    for destination in added {
        let address = destinations::address(destination);
        if address.as_ref().is_some_and(|address| network::reaches(&allowed, address)) {
            continue;
        }
        let otherwise = if address.is_some() { ", or after a person has allowed the host" } else { "" };
        let detail =
            format!("A service token can add {destination} only together with the values{otherwise}.");
        return Err(tx.scope.refused(Problem::new(Code::PermissionDenied, detail)));
    }
    Ok(())
}

/// Refuses a service token's new name for stored values that MCP servers get by the credential's name, because the
/// token's own server may list that name.
async fn require_values_for_name(
    tx: &Tx,
    before: &credentials::Model,
    fields: &MaybeUndefined<Vec<CredentialFieldInput>>,
) -> Result<()> {
    let is_for_server = |text: &String| destinations::mcp_server(text).is_some();
    let is_by_name =
        before.agent_may_read_at.is_some() || texts(&before.destinations).iter().any(is_for_server);
    if !is_by_name || !fields::keeps_value(tx, before.id, fields).await? {
        return Ok(());
    }
    let detail = format!("A service token can rename {} only together with the values.", before.name);
    Err(tx.scope.refused(Problem::new(Code::PermissionDenied, detail)))
}

/// Refuses service tokens: only a person or the operator can allow agents to read a secret.
fn require_person(scope: &Scope) -> Result<()> {
    if is_token(scope) {
        let detail = "Only a person can allow agents to read a credential, not a service token.";
        return Err(scope.refused(Problem::new(Code::PermissionDenied, detail)));
    }
    Ok(())
}

/// Sets the complete list of agents that may use a credential (specification, operation 22).
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `VALIDATION_FAILED` for an unknown agent, in which case nothing changes.
pub async fn set_agents(scope: &Scope, id: CredentialId, agents: &[AgentId]) -> Result<()> {
    assignments::assign::<credentials::Entity>(scope, id, agents, "setCredentialAgents").await
}

/// Sets the complete list of members who may use a credential.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `VALIDATION_FAILED` for a person who isn't a member, in which case nothing changes.
pub async fn set_members(scope: &Scope, id: CredentialId, users: &[UserId]) -> Result<()> {
    let tx = scope.begin().await?;
    assignments::load_active::<credentials::Entity>(&tx, id).await?;
    assignments::require_known("/user_ids", users, &people::missing(&tx, users).await?, "member")?;
    let change = relink::<credential_members::Entity>(&tx, id, users).await?;
    if change.is_empty() {
        return Ok(());
    }
    assignments::count_edit::<credentials::Entity>(&tx, id).await?;
    let changes = json!({ "added": change.added, "removed": change.removed });
    assignments::audit_change::<credentials::Entity>(
        &tx,
        (ChangeOp::Updated, "setCredentialMembers"),
        id,
        changes,
    );
    tx.commit().await
}

/// Announces changes of the credentials of a member who is about to leave the organization.
pub async fn forget_member(tx: &Tx, user: UserId) -> Result<()> {
    let shared = tx.scope.find::<credential_members::Entity>();
    let shared = shared.filter(credential_members::Column::UserId.eq(user)).select_only();
    let shared = shared.column(credential_members::Column::CredentialId).into_tuple::<CredentialId>();
    for id in shared.all(tx.connection()).await? {
        tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Credential, id));
    }
    Ok(())
}

/// Sets an agent's credentials; archived ones stay assigned. Returns the changes, if there are any.
pub async fn set_of_agent(tx: &Tx, agent: AgentId, wanted: &[CredentialId]) -> Result<Option<Value>> {
    assignments::replace_of_agent::<credentials::Entity>(tx, agent, wanted, Permission::CredentialEdit).await
}

/// Archives a credential. Its agents lose it.
pub async fn archive(scope: &Scope, id: CredentialId) -> Result<()> {
    assignments::archive::<credentials::Entity>(scope, id, "archiveCredential").await
}

/// Restores a credential. Its agents regain it.
///
/// # Errors
/// `NOT_FOUND`, `NAME_TAKEN`.
pub async fn restore(scope: &Scope, id: CredentialId) -> Result<()> {
    assignments::restore::<credentials::Entity>(scope, id, "unarchiveCredential").await
}
