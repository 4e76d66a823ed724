//! Checks whether a server or an image is usable.

use sea_orm::{ColumnTrait, PaginatorTrait, QueryFilter, QuerySelect, Select, sea_query::LockType};

use super::entity::{images, servers};
use crate::{
    base::{
        ids::{ImageId, ServerId},
        problem::Result,
    },
    core::{access::Scope, store::Tx},
};

/// Whether the organization has this server. If so, locks it against deletion until the transaction ends.
pub async fn lock_existing(tx: &Tx, id: ServerId) -> Result<bool> {
    let found = not_deleted(&tx.scope).filter(servers::Column::Id.eq(id)).lock(LockType::KeyShare);
    Ok(found.one(tx.connection()).await?.is_some())
}

/// Whether the organization has this image and it isn't archived.
pub async fn image_is_usable(tx: &Tx, id: ImageId) -> Result<bool> {
    let found = tx
        .scope
        .find::<images::Entity>()
        .filter(images::Column::Id.eq(id))
        .filter(images::Column::ArchivedAt.is_null());
    Ok(found.count(tx.connection()).await? > 0)
}

pub(super) fn not_deleted(scope: &Scope) -> Select<servers::Entity> {
    scope.find::<servers::Entity>().filter(servers::Column::ArchivedAt.is_null())
}
