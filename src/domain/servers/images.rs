//! Images that agents run from. Archiving an image doesn't affect the agents that use it.

use async_graphql::MaybeUndefined;
use muster_protocol::profile::Profile;
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, Set};
use serde_json::json;

use super::{ImageChanged, entity::images};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ImageId,
        problem::{Code, Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        handlers::emit,
        store::{Tx, for_update},
    },
    domain::{
        edits,
        orgs::{self, Limit},
        patch::{patch, patch_required},
        servers::{CreateImageInput, UpdateImageInput},
    },
};

/// The name and reference of a new organization's default image.
const FIRST_IMAGE: (&str, &str) = ("default", "muster/agent");

/// Creates an image.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, `NAME_TAKEN`; `VALIDATION_FAILED` for a profile that doesn't exist.
pub async fn create_image(scope: &Scope, new: CreateImageInput) -> Result<ImageId> {
    let tx = scope.begin().await?;
    let id = add_image(&tx, new).await?;
    tx.commit().await?;
    Ok(id)
}

/// Creates the default image of a new organization, so that it can have agents right away.
pub async fn add_first_image(tx: &Tx) -> Result<()> {
    let (name, reference) = FIRST_IMAGE;
    let image = CreateImageInput {
        name: name.to_owned(),
        reference: reference.to_owned(),
        description: None,
        default_model: None,
        profile: None,
    };
    let image = add_image(tx, image).await?;
    orgs::set_default_image(tx, image).await
}

/// [`create_image`] inside the caller's transaction.
async fn add_image(tx: &Tx, new: CreateImageInput) -> Result<ImageId> {
    orgs::check_limit(tx, Limit::Images).await?;
    let name = new.name.trim().to_owned();
    require_free_name(tx, &name, None).await?;
    require_profile(&tx.scope, new.profile.as_deref())?;
    let image = images::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        name_folded: NotSet,
        name: Set(name.clone()),
        reference: Set(new.reference.trim().to_owned()),
        description: Set(new.description),
        digest: Set(None),
        default_model: Set(new.default_model),
        profile: Set(new.profile),
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
/// `NOT_FOUND`, `ARCHIVED`, `NAME_TAKEN`; `VALIDATION_FAILED` for a profile that doesn't exist.
pub async fn update_image(scope: &Scope, id: ImageId, edit: UpdateImageInput) -> Result<()> {
    let tx = scope.begin().await?;
    let image = load(&tx, id).await?;
    if image.archived_at.is_some() {
        return Err(Problem::new(Code::Archived, "The image is archived. Restore it before changing it."));
    }
    let before = image.clone();
    let mut image = image.into_active_model();
    if let MaybeUndefined::Value(name) = &edit.name {
        require_free_name(&tx, name.trim(), Some(id)).await?;
    }
    if let MaybeUndefined::Value(profile) = &edit.profile {
        require_profile(scope, Some(profile))?;
    }
    patch_required(&mut image.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch_required(&mut image.reference, edit.reference.map_value(|text| text.trim().to_owned()));
    patch(&mut image.description, edit.description);
    patch(&mut image.default_model, edit.default_model);
    patch(&mut image.profile, edit.profile);
    if !image.is_changed() {
        return Ok(());
    }
    image.updated_at = Set(tx.now);
    let changed = audit::changed(&before, &image);
    let launch_changes = image.default_model.is_set() || image.profile.is_set();
    image.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Image, id).await?;
    if launch_changes {
        emit(&tx, ImageChanged { image: id }).await?;
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
    set_archived(tx, image, true, "archiveImage").await
}

/// Restores an archived image. Restoring it again does nothing.
///
/// # Errors
/// `NOT_FOUND`, or `NAME_TAKEN` if another image took the name in the meantime.
pub async fn restore_image(scope: &Scope, id: ImageId) -> Result<()> {
    let tx = scope.begin().await?;
    let image = load(&tx, id).await?;
    if image.archived_at.is_none() {
        return Ok(());
    }
    // No limit is checked, because archived images count too.
    require_free_name(&tx, &image.name, Some(id)).await?;
    set_archived(tx, image, false, "unarchiveImage").await
}

async fn set_archived(
    tx: Tx,
    image: images::Model,
    is_archived: bool,
    operation: &'static str,
) -> Result<()> {
    let (id, name) = (image.id, image.name.clone());
    let mut image = image.into_active_model();
    image.archived_at = Set(is_archived.then_some(tx.now));
    image.updated_at = Set(tx.now);
    image.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Image, id).await?;
    record(&tx, (ChangeOp::Updated, operation), id, json!({ "name": name }));
    tx.commit().await
}

/// The values of an image that agents are launched with.
pub struct LaunchedImage {
    pub reference: String,
    /// The digest that it must have, if its record names one.
    pub digest: Option<String>,
    /// The model of agents that don't choose one.
    pub default_model: Option<String>,
    /// How its program is wired.
    pub profile: Option<Profile>,
}

/// The values that agents with this image are launched with. Its agents use it even if it is archived.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` if its profile no longer exists.
pub async fn image_of(tx: &Tx, id: ImageId) -> Result<LaunchedImage> {
    let found = tx.scope.find::<images::Entity>().filter(images::Column::Id.eq(id));
    let found = found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("image", id))?;
    let gone = |name: &str| {
        let detail =
            format!("The image's profile {name} no longer exists. Choose another one for the image.");
        Problem::new(Code::Conflict, detail)
    };
    let wiring = |name: &str| {
        let entry = tx.scope.core.profiles.get(name).ok_or_else(|| gone(name))?;
        Ok::<_, Problem>(entry.wiring.clone())
    };
    let profile = found.profile.as_deref().map(wiring).transpose()?;
    let (reference, digest, default_model) = (found.reference, found.digest, found.default_model);
    Ok(LaunchedImage { reference, digest, default_model, profile })
}

fn require_profile(scope: &Scope, name: Option<&str>) -> Result<()> {
    let Some(name) = name.filter(|name| scope.core.profiles.get(name).is_none()) else { return Ok(()) };
    let detail = format!("The profile {name:?} does not exist. `profiles` lists them.");
    Err(Problem::invalid_at("/profile", "NOT_FOUND", detail))
}

async fn load(tx: &Tx, id: ImageId) -> Result<images::Model> {
    let found = for_update(tx.scope.find::<images::Entity>().filter(images::Column::Id.eq(id)));
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
