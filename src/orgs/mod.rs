//! Organizations: the tenants, their settings and the limits of their plans.

mod check;
mod entity;
pub mod graphql;
mod limits;

use sea_orm::{ColumnTrait, QueryFilter};

use self::entity::organizations;
pub use self::{
    check::{check_cron, check_timezone, check_url},
    limits::{Limit, check_limit, lock, store_plans, value as limit},
};
use crate::{
    error::{Code, Problem, Result},
    ids::ImageId,
    store::Tx,
};

/// The image that an agent runs from if its creator names none.
///
/// # Errors
/// The database is out of reach.
pub async fn default_image(tx: &Tx) -> Result<Option<ImageId>> {
    let found = tx.scope.find::<organizations::Entity>().filter(organizations::Column::Id.eq(tx.scope.org));
    let organization = found.one(tx.connection()).await?;
    let gone = || Problem::new(Code::NotFound, "The organization is gone.");
    Ok(organization.ok_or_else(gone)?.default_image_id)
}
