//! The organization's model credentials: keys for models, which agents inherit.
//!
//! An agent whose `credentialChoice` is INHERIT uses the default one of its provider ([`inherited`]). The secret is
//! sealed on arrival, and only the hosts of agents that use it get it; agents never do. Archiving deletes the secret.
//! Hosts report the provider's refusals: a usage limit (`domain/spending/usage.rs`), or a rejected key
//! ([`record_rejection`]). Reports are applied under an agent's lock, so an edit that affects agents locks them before
//! any credential. Permissions: `organization.view` reads, `organization.edit` changes.

mod entity;
mod input;
mod queries;

use async_graphql::MaybeUndefined;
use muster_protocol::{Secret, plan::ModelAccess};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, QueryOrder, Set,
    sea_query::Expr,
};
use secrecy::ExposeSecret;
use serde_json::json;

pub use self::input::{CreateModelCredentialInput, UpdateModelCredentialInput};
use self::{entity::model_credentials, queries::replace_default};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{AgentId, ModelCredentialId, OrgId},
        problem::{Code, Problem, Result, Violation},
        secret::SecretText,
        time::Timestamp,
    },
    core::{
        Event,
        access::Scope,
        audit,
        handlers::{DomainEvent, emit},
        sealing::SealContext,
        store::Tx,
    },
    domain::{
        agents, edits,
        locks::lock_record,
        orgs::{self, Limit},
        patch::{patch, patch_required},
    },
};

/// A provider rejects a credential.
#[derive(Debug)]
pub struct Rejected {
    pub credential: ModelCredentialId,
    pub name: String,
    /// The provider's message.
    pub detail: String,
}

impl DomainEvent for Rejected {}

/// A credential is no longer rejected: it has another secret, a call has succeeded, or it was archived.
#[derive(Debug)]
pub struct Accepted {
    pub credential: ModelCredentialId,
}

impl DomainEvent for Accepted {}

/// A provider accepts calls with a credential again, or no agent inherits it any longer.
#[derive(Debug)]
pub struct Released {
    pub credential: ModelCredentialId,
}

impl DomainEvent for Released {}

/// Creates a model credential.
///
/// # Errors
/// `VALIDATION_FAILED` for an invalid base URL, `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn create(scope: &Scope, new: CreateModelCredentialInput) -> Result<ModelCredentialId> {
    Problem::fail_if_any(
        new.base_url.iter().filter_map(|url| orgs::check_base_url("/base_url", url)).collect(),
    )?;
    let tx = scope.begin().await?;
    orgs::check_count(&tx, Limit::Credentials, scope.find::<model_credentials::Entity>()).await?;
    let name = new.name.trim().to_owned();
    require_free_name(&tx, &name, None).await?;
    let provider = folded(&new.provider);
    let replaced = if new.is_default {
        agents::lock_all_agents(&tx).await?;
        replace_default(&tx, &provider, None).await?
    } else {
        Vec::new()
    };
    let row = model_credentials::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name: Set(name.clone()),
        provider: Set(provider.clone()),
        base_url: Set(new.base_url),
        r#type: Set(new.r#type),
        is_default: Set(new.is_default),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    let id = row.insert(tx.connection()).await?.id;
    // The secret is sealed for its own row, so the row needs an id first.
    let sealed = tx.scope.update::<model_credentials::Entity>().filter(model_credentials::Column::Id.eq(id));
    let sealed = sealed
        .col_expr(model_credentials::Column::SecretSealed, Expr::value(seal_secret(&tx, id, &new.secret)));
    sealed.exec(tx.connection()).await?;
    if new.is_default {
        agents::mark_inheriting(&tx).await?;
    }
    for replaced in replaced {
        emit(&tx, Released { credential: replaced }).await?;
    }
    let changes = json!({ "name": name, "provider": provider, "is_default": new.is_default });
    record(&tx, (ChangeOp::Created, "createModelCredential"), id, changes);
    tx.commit().await?;
    Ok(id)
}

/// Edits a model credential. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `NAME_TAKEN`; `VALIDATION_FAILED` for an invalid base URL, or one that changes without a
/// secret.
pub async fn update(scope: &Scope, id: ModelCredentialId, edit: UpdateModelCredentialInput) -> Result<()> {
    let tx = scope.begin().await?;
    let credential = load(&tx, id).await?;
    if credential.archived_at.is_some() {
        return Err(Problem::new(Code::Archived, "The model credential is archived. Create a new one."));
    }
    check_edit(&credential, &edit)?;
    if let MaybeUndefined::Value(name) = &edit.name {
        require_free_name(&tx, name.trim(), Some(id)).await?;
    }
    let is_renewed = edit.secret.is_value();
    let mut row = credential.clone().into_active_model();
    patch_required(&mut row.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch_required(&mut row.provider, edit.provider.map_value(|provider| folded(&provider)));
    patch(&mut row.base_url, edit.base_url);
    patch_required(&mut row.r#type, edit.r#type);
    patch_required(&mut row.is_default, edit.is_default);
    if let MaybeUndefined::Value(secret) = &edit.secret {
        row.secret_sealed = Set(Some(seal_secret(&tx, id, secret)));
        row.auth_failed_at.set_if_not_equals(None);
        row.limited_until.set_if_not_equals(None);
        row.limit_detail.set_if_not_equals(None);
        row.probing_at.set_if_not_equals(None);
    }
    if !row.is_changed() {
        return Ok(());
    }
    let is_default = *row.is_default.as_ref();
    let replaced =
        if is_default { replace_default(&tx, row.provider.as_ref(), Some(id)).await? } else { Vec::new() };
    row.updated_at = Set(tx.now);
    let mut changes = audit::changed(&credential, &row);
    if is_renewed {
        changes["secret"] = json!("changed");
    }
    row.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::ModelCredential, id).await?;
    agents::mark_inheriting(&tx).await?;
    if is_renewed {
        emit(&tx, Accepted { credential: id }).await?;
    }
    if is_renewed || (credential.is_default && !is_default) {
        emit(&tx, Released { credential: id }).await?;
    }
    for replaced in replaced {
        emit(&tx, Released { credential: replaced }).await?;
    }
    record(&tx, (ChangeOp::Updated, "updateModelCredential"), id, changes);
    tx.commit().await
}

/// Requires a new secret with a new provider or base URL: if the stored one went elsewhere, an editor could learn it.
fn check_edit(credential: &model_credentials::Model, edit: &UpdateModelCredentialInput) -> Result<()> {
    let mut violations = Vec::new();
    if let MaybeUndefined::Value(url) = &edit.base_url {
        violations.extend(orgs::check_base_url("/base_url", url));
    }
    let url = match &edit.base_url {
        MaybeUndefined::Undefined => credential.base_url.as_ref(),
        MaybeUndefined::Null => None,
        MaybeUndefined::Value(url) => Some(url),
    };
    let is_redirected = url != credential.base_url.as_ref()
        || edit.provider.value().is_some_and(|provider| folded(provider) != credential.provider);
    if is_redirected && edit.secret.is_undefined() {
        let detail = "`secret` is required when the provider or the base URL changes: a stored secret is only used with those it was set for.";
        violations.push(Violation::at("/secret", "REQUIRED", detail));
    }
    Problem::fail_if_any(violations)
}

/// Archives a model credential and deletes its secret. Archiving it again does nothing.
pub async fn archive(scope: &Scope, id: ModelCredentialId) -> Result<()> {
    let tx = scope.begin().await?;
    let credential = load(&tx, id).await?;
    if credential.archived_at.is_some() {
        return Ok(());
    }
    let name = credential.name.clone();
    let mut row = credential.clone().into_active_model();
    row.archived_at = Set(Some(tx.now));
    row.secret_sealed = Set(None);
    row.is_default = Set(false);
    row.limited_until = Set(None);
    row.limit_detail = Set(None);
    row.probing_at = Set(None);
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::ModelCredential, id).await?;
    agents::mark_inheriting(&tx).await?;
    emit(&tx, Accepted { credential: id }).await?;
    emit(&tx, Released { credential: id }).await?;
    record(&tx, (ChangeOp::Updated, "archiveModelCredential"), id, json!({ "name": name }));
    tx.commit().await
}

/// Access to a model for an agent that inherits it: the provider's default credential. An agent that names no provider
/// gets the default credential if there is only one.
pub async fn inherited(tx: &Tx, provider: Option<&str>) -> Result<Option<ModelAccess>> {
    let Some(chosen) = find_default(tx, provider).await? else { return Ok(None) };
    let Some(sealed) = &chosen.secret_sealed else { return Ok(None) };
    let secret = tx.scope.core.sealing.open(sealed, &seal_context(tx.scope.org, chosen.id));
    let secret = secret.map_err(Problem::internal)?;
    Ok(Some(ModelAccess {
        credential_id: Some(chosen.id.0),
        provider: chosen.provider.clone(),
        base_url: chosen.base_url.clone(),
        key: Secret::from(secret.expose_secret().to_owned()),
    }))
}

/// The id of the credential that [`inherited`] opens.
async fn default_of(tx: &Tx, provider: Option<&str>) -> Result<Option<ModelCredentialId>> {
    Ok(find_default(tx, provider).await?.map(|chosen| chosen.id))
}

async fn find_default(tx: &Tx, provider: Option<&str>) -> Result<Option<model_credentials::Model>> {
    let mut defaults = tx
        .scope
        .find::<model_credentials::Entity>()
        .filter(model_credentials::Column::IsDefault.eq(true))
        .filter(model_credentials::Column::ArchivedAt.is_null())
        .order_by_asc(model_credentials::Column::Id)
        .all(tx.connection())
        .await?;
    let wanted = provider.map(folded);
    let position = match &wanted {
        Some(provider) => defaults.iter().position(|one| one.provider == *provider),
        None => (defaults.len() == 1).then_some(0),
    };
    Ok(position.map(|position| defaults.swap_remove(position)))
}

/// Locks the agent, and finds the model credential that it inherits.
pub async fn inherited_by(tx: &Tx, agent: AgentId) -> Result<Option<ModelCredentialId>> {
    match agents::inherits(tx, agent).await? {
        Some(inherits) => default_of(tx, inherits.provider.as_deref()).await,
        None => Ok(None),
    }
}

/// The running agents that inherit this credential, by id.
pub async fn inheriting(tx: &Tx, credential: ModelCredentialId) -> Result<Vec<AgentId>> {
    let mut inheriting = Vec::new();
    for inherits in agents::inheriting(tx).await? {
        if default_of(tx, inherits.provider.as_deref()).await? == Some(credential) {
            inheriting.push(inherits.agent);
        }
    }
    Ok(inheriting)
}

/// Records that the provider refuses calls with this credential until a time.
pub async fn record_limit(tx: &Tx, id: ModelCredentialId, until: Timestamp, detail: &str) -> Result<()> {
    let changed = update_active(tx, id)
        .col_expr(model_credentials::Column::LimitedUntil, Expr::value(until))
        .col_expr(model_credentials::Column::LimitDetail, Expr::value(detail))
        .col_expr(model_credentials::Column::ProbingAt, Expr::value(None::<Timestamp>));
    if changed.exec(tx.connection()).await?.rows_affected > 0 {
        announce(tx, ChangeOp::Updated, id);
    }
    Ok(())
}

/// Until when the provider refuses calls with this credential. `None`: it accepts them.
pub async fn limited_until(tx: &Tx, id: ModelCredentialId) -> Result<Option<Timestamp>> {
    let found = tx.scope.find::<model_credentials::Entity>().filter(model_credentials::Column::Id.eq(id));
    Ok(found.one(tx.connection()).await?.and_then(|credential| credential.limited_until))
}

/// Claims the probe: a single turn that shows whether calls succeed again. False: another was sent after `before`.
pub async fn claim_probe(tx: &Tx, id: ModelCredentialId, before: Timestamp) -> Result<bool> {
    let untried = sea_orm::Condition::any()
        .add(model_credentials::Column::ProbingAt.is_null())
        .add(model_credentials::Column::ProbingAt.lte(before));
    let taken = update_active(tx, id)
        .filter(untried)
        .col_expr(model_credentials::Column::ProbingAt, Expr::value(tx.now));
    Ok(taken.exec(tx.connection()).await?.rows_affected > 0)
}

/// Records a successful call with this credential: it is neither limited nor rejected.
pub async fn record_success(tx: &Tx, id: ModelCredentialId) -> Result<()> {
    let marked = sea_orm::Condition::any()
        .add(model_credentials::Column::LimitedUntil.is_not_null())
        .add(model_credentials::Column::AuthFailedAt.is_not_null());
    let found = tx.scope.find::<model_credentials::Entity>().filter(model_credentials::Column::Id.eq(id));
    let Some(found) = found.filter(marked).one(tx.connection()).await? else { return Ok(()) };
    let changed = update_active(tx, id)
        .col_expr(model_credentials::Column::LimitedUntil, Expr::value(None::<Timestamp>))
        .col_expr(model_credentials::Column::LimitDetail, Expr::value(None::<String>))
        .col_expr(model_credentials::Column::ProbingAt, Expr::value(None::<Timestamp>))
        .col_expr(model_credentials::Column::AuthFailedAt, Expr::value(None::<Timestamp>));
    changed.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, id);
    if found.auth_failed_at.is_some() {
        emit(tx, Accepted { credential: id }).await?;
    }
    if found.limited_until.is_some() {
        emit(tx, Released { credential: id }).await?;
    }
    Ok(())
}

/// Records that the provider rejects this credential. People are asked once for another.
pub async fn record_rejection(tx: &Tx, id: ModelCredentialId, detail: &str) -> Result<()> {
    let found = tx.scope.find::<model_credentials::Entity>().filter(model_credentials::Column::Id.eq(id));
    let found = found.filter(model_credentials::Column::ArchivedAt.is_null());
    let Some(found) = found.one(tx.connection()).await? else { return Ok(()) };
    let changed =
        update_active(tx, id).col_expr(model_credentials::Column::AuthFailedAt, Expr::value(tx.now));
    changed.exec(tx.connection()).await?;
    announce(tx, ChangeOp::Updated, id);
    emit(tx, Rejected { credential: id, name: found.name, detail: detail.to_owned() }).await
}

fn update_active(tx: &Tx, id: ModelCredentialId) -> sea_orm::UpdateMany<model_credentials::Entity> {
    let changed = tx.scope.update::<model_credentials::Entity>();
    let changed = changed.filter(model_credentials::Column::Id.eq(id));
    changed.filter(model_credentials::Column::ArchivedAt.is_null())
}

/// The context that a secret is sealed for.
fn seal_context(org: OrgId, id: ModelCredentialId) -> SealContext<'static> {
    SealContext::new(org, "model_credentials", id.0, "secret")
}

fn seal_secret(tx: &Tx, id: ModelCredentialId, secret: &SecretText) -> Vec<u8> {
    tx.scope.core.sealing.seal(&secret.0, &seal_context(tx.scope.org, id))
}

fn folded(provider: &str) -> String {
    provider.trim().to_lowercase()
}

/// Loads the credential and locks it, after the organization and its agents.
async fn load(tx: &Tx, id: ModelCredentialId) -> Result<model_credentials::Model> {
    lock_record(tx, RecordKind::ModelCredential, id.0).await?;
    let found = tx.scope.find::<model_credentials::Entity>().filter(model_credentials::Column::Id.eq(id));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("model credential", id))
}

async fn require_free_name(tx: &Tx, name: &str, except: Option<ModelCredentialId>) -> Result<()> {
    let mut same = tx
        .scope
        .find::<model_credentials::Entity>()
        .filter(model_credentials::Column::Name.eq(name))
        .filter(model_credentials::Column::ArchivedAt.is_null());
    if let Some(id) = except {
        same = same.filter(model_credentials::Column::Id.ne(id));
    }
    let is_free = same.count(tx.connection()).await? == 0;
    if is_free { Ok(()) } else { Err(Problem::name_taken("model credential", name)) }
}

fn announce(tx: &Tx, op: ChangeOp, id: ModelCredentialId) {
    tx.announce(Event::new(tx.scope.org, op, RecordKind::ModelCredential, id));
}

fn record(
    tx: &Tx,
    (op, operation): (ChangeOp, &'static str),
    id: ModelCredentialId,
    changes: serde_json::Value,
) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::ModelCredential, id: id.0, changes });
}
