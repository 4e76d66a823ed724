//! The key for the agent's model, its own or one that it inherits.

use muster_protocol::{Secret, plan::ModelAccess};
use secrecy::ExposeSecret;

use crate::{
    base::{
        enums::CredentialChoice,
        problem::{Problem, Result},
    },
    core::{sealing::SealContext, store::Tx},
    domain::{
        agents::{entity::agents, provider},
        model_credentials,
    },
};

/// Access to the agent's model: its own, the one it inherits, or none.
pub(super) async fn open_access(tx: &Tx, agent: &agents::Model) -> Result<Option<ModelAccess>> {
    match agent.credential_choice {
        CredentialChoice::None => Ok(None),
        CredentialChoice::Inherit => model_credentials::inherited(tx, provider(agent)).await,
        CredentialChoice::Own => open_own(tx, agent),
    }
}

fn open_own(tx: &Tx, agent: &agents::Model) -> Result<Option<ModelAccess>> {
    let Some(sealed) = &agent.model_credential_sealed else { return Ok(None) };
    let context = SealContext::new(tx.scope.org, "agents", agent.id.0, "model_credential");
    let key = tx.scope.core.sealing.open(sealed, &context).map_err(Problem::internal)?;
    Ok(Some(ModelAccess {
        credential_id: None,
        provider: agent.model_credential_provider.clone().unwrap_or_default(),
        base_url: agent.model_credential_base_url.clone(),
        key: Secret::from(key.expose_secret().to_owned()),
    }))
}
