//! The columns of an agent about its model: the provider whose credential it inherits, and the provider's report of its
//! usage.

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use super::{
    entity::agents,
    rows::{announce, find},
    sync::running,
};
use crate::{
    base::{
        enums::{CredentialChoice, UsageStatus},
        ids::AgentId,
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
};

/// The provider that the agent names, if any.
pub(in crate::domain) fn provider(agent: &agents::Model) -> Option<&str> {
    non_empty(agent.model_credential_provider.as_deref())
}

fn non_empty(provider: Option<&str>) -> Option<&str> {
    provider.map(str::trim).filter(|provider| !provider.is_empty())
}

/// An agent that inherits a model credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InheritingAgent {
    pub agent: AgentId,
    /// The provider that it names.
    pub provider: Option<String>,
}

/// Locks the agent. `Some` if it inherits a model credential.
pub async fn inherits(tx: &Tx, id: AgentId) -> Result<Option<InheritingAgent>> {
    let agent = find(tx, id).await?.filter(|agent| agent.credential_choice == CredentialChoice::Inherit);
    Ok(agent.map(|agent| InheritingAgent { agent: id, provider: provider(&agent).map(ToOwned::to_owned) }))
}

/// The agents that a host runs and that inherit a model credential, by id.
pub async fn inheriting(tx: &Tx) -> Result<Vec<InheritingAgent>> {
    let found = running(tx).filter(agents::Column::CredentialChoice.eq(CredentialChoice::Inherit));
    let found = found.column(agents::Column::ModelCredentialProvider).order_by_asc(agents::Column::Id);
    let found: Vec<(AgentId, Option<String>)> = found.into_tuple().all(tx.connection()).await?;
    let inherits = |(agent, provider): (_, Option<String>)| InheritingAgent {
        agent,
        provider: non_empty(provider.as_deref()).map(ToOwned::to_owned),
    };
    Ok(found.into_iter().map(inherits).collect())
}

/// Stores the provider's report of the agent's usage.
pub async fn store_usage(
    tx: &Tx,
    id: AgentId,
    status: UsageStatus,
    resets_at: Option<Timestamp>,
) -> Result<()> {
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
