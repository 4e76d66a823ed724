//! The organizations' rows, and their values for other features.

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, Set};
use secrecy::SecretString;

use super::entity::organizations;
use crate::{
    base::{
        ids::ImageId,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, sealing::SealContext, store::Tx},
};

/// The image for agents created without one.
pub async fn default_image(tx: &Tx) -> Result<Option<ImageId>> {
    Ok(load(tx).await?.default_image_id)
}

/// Sets the image for agents created without one.
pub async fn set_default_image(tx: &Tx, image: ImageId) -> Result<()> {
    let mut organization = load(tx).await?.into_active_model();
    organization.default_image_id = Set(Some(image));
    organization.update(tx.connection()).await?;
    Ok(())
}

/// Records the version of the organization's picture.
pub async fn set_avatar(tx: &Tx, version: Option<i64>) -> Result<()> {
    let mut organization = load(tx).await?.into_active_model();
    organization.avatar_version = Set(version);
    organization.updated_at = Set(tx.now);
    organization.update(tx.connection()).await?;
    Ok(())
}

/// The load of a server above which an alert is raised. `None`: no alert.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlertThresholds {
    /// Memory in use, in percent.
    pub ram_pct: Option<f64>,
    /// Processors in use, in percent.
    pub cpu_pct: Option<f64>,
    /// The load average over a minute, per processor.
    pub load_factor: Option<f64>,
}

pub async fn alert_thresholds(tx: &Tx) -> Result<AlertThresholds> {
    let organization = load(tx).await?;
    Ok(AlertThresholds {
        ram_pct: organization.server_alert_ram_pct.map(|pct| pct as f64),
        cpu_pct: organization.server_alert_cpu_pct.map(|pct| pct as f64),
        load_factor: organization.server_alert_load_factor,
    })
}

/// The number of tokens in the context at which the organization's agents start a new session.
pub async fn session_limit(tx: &Tx) -> Result<Option<i64>> {
    Ok(load(tx).await?.session_reset_tokens)
}

/// The client ID and secret of the organization's own application at Google. `None`: it has none.
pub async fn oauth_client(scope: &Scope) -> Result<Option<(String, SecretString)>> {
    let own = scope.find::<organizations::Entity>().filter(organizations::Column::Id.eq(scope.org));
    let Some(own) = own.one(scope.core.db.read()).await? else { return Ok(None) };
    let Some((id, sealed)) = own.provider_oauth_client_id.zip(own.provider_oauth_secret_sealed) else {
        return Ok(None);
    };
    let place = SealContext::new(scope.org, "organizations", scope.org.0, "provider_oauth_secret");
    let secret = scope.core.sealing.open(&sealed, &place).map_err(Problem::internal)?;
    Ok(Some((id, secret)))
}

pub(super) async fn load(tx: &Tx) -> Result<organizations::Model> {
    let found = tx.scope.find::<organizations::Entity>().filter(organizations::Column::Id.eq(tx.scope.org));
    let gone = || Problem::new(Code::NotFound, "The organization no longer exists.");
    found.one(tx.connection()).await?.ok_or_else(gone)
}

/// Whether the organization is stopped. Operations that must not start anything during a stop use
/// [`require_going`](super::require_going).
pub async fn is_stopped(tx: &Tx) -> Result<bool> {
    Ok(load(tx).await?.stopped_at.is_some())
}
