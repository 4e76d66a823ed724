//! Detects changes that need a new launch: of the access to the model, the environment, the files, the limits, and the
//! profile with its model. A running agent keeps the values of its launch; its record says which of them have changed
//! since.
//!
//! The host asks for a plan when it launches the agent and again after every change, so comparing digests is enough.
//! The digests are sealed, because a short secret could be guessed from its digest.

use muster_protocol::plan::LaunchPlan;
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    base::problem::{Problem, Result},
    core::{sealing::SealContext, store::Tx},
    domain::agents::{announce, entity::agents},
};

/// Digests of the parts of a plan that only a launch applies.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LaunchDigests {
    generation: i64,
    model_access: Vec<u8>,
    environment: Vec<u8>,
    files: Vec<u8>,
    network: Vec<u8>,
    limits: Vec<u8>,
    model: Vec<u8>,
    profile: Vec<u8>,
}

impl LaunchDigests {
    fn from_plan(generation: i64, plan: &LaunchPlan) -> Result<Self> {
        Ok(Self {
            generation,
            model_access: digest(&plan.model_access)?,
            environment: digest(&plan.environment)?,
            files: digest(&plan.files)?,
            network: digest(&plan.network.privileged)?,
            limits: digest(&plan.limits)?,
            model: digest(&plan.model)?,
            profile: digest(&plan.profile.as_ref().map(|profile| (profile, &plan.model)))?,
        })
    }

    /// The changes since the launch, in words. A model that the agent's sessions offer needs no launch.
    fn describe_changes(&self, now: &Self, is_offered: bool) -> Option<String> {
        let is_profile = self.profile != now.profile;
        let is_model = self.model != now.model && !is_offered && !is_profile;
        let parts = [
            (self.model_access != now.model_access, "Its access to the model has changed."),
            (self.environment != now.environment, "The credentials in its environment have changed."),
            (self.files != now.files, "The credentials in its files have changed."),
            (self.network != now.network, "Whether it has a network of its own has changed."),
            (self.limits != now.limits, "Its memory or processor limits have changed."),
            (is_profile, "Its profile or the model in it has changed."),
            (is_model, "Its model has changed, and its sessions don't offer the new one."),
        ];
        let changes: Vec<&str> =
            parts.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, text)| text).collect();
        (!changes.is_empty()).then(|| changes.join(" "))
    }
}

/// Whether the agent's sessions offer this model.
fn is_offered(agent: &agents::Model, model: Option<&str>) -> bool {
    let offered = agent.offered_models.as_ref().and_then(|offered| offered.as_array());
    offered.is_some_and(|offered| offered.iter().any(|choice| choice["id"].as_str() == model))
}

fn digest(part: &impl Serialize) -> Result<Vec<u8>> {
    Ok(Sha256::digest(serde_json::to_vec(part).map_err(Problem::internal)?).to_vec())
}

/// Stores the digests of a new launch, or the changes since the launch.
pub async fn store_changes(tx: &Tx, agent: &agents::Model, plan: &LaunchPlan) -> Result<()> {
    let now = LaunchDigests::from_plan(agent.launch_generation, plan)?;
    let context = SealContext::new(tx.scope.org, "agents", agent.id.0, "launched_with");
    let keys = &tx.scope.core.sealing;
    let before = agent.launched_with_sealed.as_ref().and_then(|sealed| keys.open(sealed, &context).ok());
    let before = before.and_then(|text| muster_json::from_str::<LaunchDigests>(text.expose_secret()).ok());
    let changed = tx.scope.update::<agents::Entity>().filter(agents::Column::Id.eq(agent.id));
    let changed = match before.filter(|before| before.generation == now.generation) {
        Some(before) => {
            let reason = before.describe_changes(&now, is_offered(agent, plan.model.as_deref()));
            if reason == agent.restart_reason {
                return Ok(());
            }
            announce(tx, agent.id);
            changed.col_expr(agents::Column::RestartReason, Expr::value(reason))
        }
        None => {
            let text = SecretString::from(serde_json::to_string(&now).map_err(Problem::internal)?);
            changed
                .col_expr(agents::Column::LaunchedWithSealed, Expr::value(keys.seal(&text, &context)))
                .col_expr(agents::Column::RestartReason, Expr::value(None::<String>))
                .col_expr(agents::Column::LaunchLacks, Expr::value(None::<String>))
        }
    };
    changed.exec(tx.connection()).await?;
    Ok(())
}
