//! Images: what agents run from. Archiving an image doesn't affect the agents that use it.

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, Set};
use serde_json::json;

use super::entity::images;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ImageId,
        problem::{Code, Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        store::{Tx, held, patch, patch_required},
    },
    slices::{
        orgs::{self, Limit},
        servers::{CreateImageInput, UpdateImageInput},
    },
};

/// Creates an image.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn create_image(scope: &Scope, new: CreateImageInput) -> Result<ImageId> {
    let tx = scope.begin().await?;
    let id = add_image(&tx, new).await?;
    tx.commit().await?;
    Ok(id)
}

/// [`create_image`] inside the caller's transaction.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn add_image(tx: &Tx, new: CreateImageInput) -> Result<ImageId> {
    orgs::check_limit(tx, Limit::Images, tx.scope.find::<images::Entity>()).await?;
    let name = new.name.trim().to_owned();
    require_free_name(tx, &name, None).await?;
    let image = images::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        name: Set(name.clone()),
        reference: Set(new.reference.trim().to_owned()),
        description: Set(new.description),
        digest: Set(None),
        default_model: Set(new.default_model),
        created_by: Set(tx.scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        archived_at: Set(None),
    }
    .insert(tx.connection())
    .await?;
    record(tx, (ChangeOp::Created, "createImage"), image.id, json!({ "name": name }));
    Ok(image.id)
}

/// Edits an image. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `ARCHIVED`, `NAME_TAKEN`.
pub async fn update_image(scope: &Scope, id: ImageId, edit: UpdateImageInput) -> Result<()> {
    let tx = scope.begin().await?;
    let image = load(&tx, id).await?;
    if image.archived_at.is_some() {
        return Err(Problem::new(Code::Archived, "The image is archived. Create a new one instead."));
    }
    let mut image = image.into_active_model();
    if let MaybeUndefined::Value(name) = &edit.name {
        require_free_name(&tx, name.trim(), Some(id)).await?;
    }
    patch_required(&mut image.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch_required(&mut image.reference, edit.reference.map_value(|text| text.trim().to_owned()));
    patch(&mut image.description, edit.description);
    patch(&mut image.default_model, edit.default_model);
    if !image.is_changed() {
        return Ok(());
    }
    image.updated_at = Set(tx.now);
    let changed = audit::changed(&image);
    let model_changes = image.default_model.is_set();
    image.update(tx.connection()).await?;
    if model_changes {
        crate::slices::agents::announce_of_image(&tx, id).await?;
    }
    record(&tx, (ChangeOp::Updated, "updateImage"), id, changed);
    tx.commit().await
}

/// Archives an image: it is no longer offered. Archiving it again does nothing.
///
/// # Errors
/// `NOT_FOUND`; `IN_USE` for the organization's default image.
pub async fn archive_image(scope: &Scope, id: ImageId) -> Result<()> {
    let tx = scope.begin().await?;
    let image = load(&tx, id).await?;
    if image.archived_at.is_some() {
        return Ok(());
    }
    if orgs::default_image(&tx).await? == Some(id) {
        return Err(Problem::new(
            Code::InUse,
            "The image is the organization's default. Choose another default first.",
        ));
    }
    let mut image = image.into_active_model();
    image.archived_at = Set(Some(tx.now));
    image.updated_at = Set(tx.now);
    image.update(tx.connection()).await?;
    record(&tx, (ChangeOp::Updated, "archiveImage"), id, json!({}));
    tx.commit().await
}

/// Whether the organization has this image and it isn't archived.
///
/// # Errors
/// The database is unreachable.
pub async fn image_is_usable(tx: &Tx, id: ImageId) -> Result<bool> {
    let found = tx
        .scope
        .find::<images::Entity>()
        .filter(images::Column::Id.eq(id))
        .filter(images::Column::ArchivedAt.is_null());
    Ok(found.count(tx.connection()).await? > 0)
}

/// An image's reference, and the model of agents that don't choose one. An archived image is still used by its agents.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn image_of(tx: &Tx, id: ImageId) -> Result<(String, Option<String>)> {
    let found = tx.scope.find::<images::Entity>().filter(images::Column::Id.eq(id));
    let found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("image", id))?;
    Ok((found.reference, found.default_model))
}

async fn load(tx: &Tx, id: ImageId) -> Result<images::Model> {
    let found = held(tx.scope.find::<images::Entity>().filter(images::Column::Id.eq(id)));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("image", id))
}

async fn require_free_name(tx: &Tx, name: &str, except: Option<ImageId>) -> Result<()> {
    let mut same = tx
        .scope
        .find::<images::Entity>()
        .filter(images::Column::Name.eq(name))
        .filter(images::Column::ArchivedAt.is_null());
    if let Some(id) = except {
        same = same.filter(images::Column::Id.ne(id));
    }
    if same.count(tx.connection()).await? == 0 { Ok(()) } else { Err(Problem::name_taken("image", name)) }
}

fn record(tx: &Tx, (op, operation): (ChangeOp, &'static str), id: ImageId, changes: serde_json::Value) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::Image, id: id.0, changes });
}
