//! The access of agents to their models: whose credential they use, and what its provider says about it.

use muster_protocol::{Secret, plan::ModelAccess};
use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use secrecy::ExposeSecret;

use super::{
    entity::agents,
    rows::{announce, find},
    sync::running,
};
use crate::{
    base::{
        enums::{CredentialChoice, UsageStatus},
        ids::{AgentId, ModelCredentialId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{sealing::SealContext, store::Tx},
    slices::model_credentials,
};

/// Access to the agent's model: its own, the one it inherits, or none.
///
/// # Errors
/// The database is unreachable; a secret can't be opened.
pub(super) async fn access(tx: &Tx, agent: &agents::Model) -> Result<Option<ModelAccess>> {
    match agent.credential_choice {
        CredentialChoice::None => Ok(None),
        CredentialChoice::Inherit => model_credentials::inherited(tx, provider(agent)).await,
        CredentialChoice::Own => own(tx, agent),
    }
}

fn own(tx: &Tx, agent: &agents::Model) -> Result<Option<ModelAccess>> {
    let Some(sealed) = &agent.model_credential_sealed else { return Ok(None) };
    let place = SealContext::new(tx.scope.org, "agents", agent.id.0, "model_credential");
    let key = tx.scope.core.keys.open(sealed, &place).map_err(Problem::internal)?;
    Ok(Some(ModelAccess {
        credential_id: None,
        provider: agent.model_credential_provider.clone().unwrap_or_default(),
        base_url: agent.model_credential_base_url.clone(),
        key: Secret::from(key.expose_secret().to_owned()),
    }))
}

/// The provider whose default the agent inherits, if it names one.
fn provider(agent: &agents::Model) -> Option<&str> {
    agent.model_credential_provider.as_deref().map(str::trim).filter(|provider| !provider.is_empty())
}

/// The organization's model credential that the agent inherits.
///
/// # Errors
/// The database is unreachable.
pub async fn inherited_credential(tx: &Tx, id: AgentId) -> Result<Option<ModelCredentialId>> {
    match find(tx, id).await? {
        Some(agent) if agent.credential_choice == CredentialChoice::Inherit => {
            model_credentials::default_of(tx, provider(&agent)).await
        }
        _ => Ok(None),
    }
}

/// The agents that a host runs and that inherit this credential.
///
/// # Errors
/// The database is unreachable.
pub async fn inheriting(tx: &Tx, credential: ModelCredentialId) -> Result<Vec<AgentId>> {
    let found = running(tx).filter(agents::Column::CredentialChoice.eq(CredentialChoice::Inherit));
    let found = found.column(agents::Column::ModelCredentialProvider).order_by_asc(agents::Column::Id);
    let found: Vec<(AgentId, Option<String>)> = found.into_tuple().all(tx.connection()).await?;
    let mut inheriting = Vec::new();
    for (agent, provider) in found {
        let provider = provider.as_deref().map(str::trim).filter(|provider| !provider.is_empty());
        if model_credentials::default_of(tx, provider).await? == Some(credential) {
            inheriting.push(agent);
        }
    }
    Ok(inheriting)
}

/// What the provider says about the agent's usage.
///
/// # Errors
/// The database is unreachable.
pub async fn usage(tx: &Tx, id: AgentId, status: UsageStatus, resets_at: Option<Timestamp>) -> Result<()> {
    let changed = tx.scope.update::<agents::Entity>().filter(agents::Column::Id.eq(id));
    let changed = changed
        .col_expr(agents::Column::UsageStatus, Expr::value(status.as_str()))
        .col_expr(agents::Column::UsageResetsAt, Expr::value(resets_at))
        .col_expr(agents::Column::UsageUpdatedAt, Expr::value(tx.now))
        .col_expr(agents::Column::UpdatedAt, Expr::value(tx.now));
    changed.exec(tx.connection()).await?;
    announce(tx, id);
    Ok(())
}
