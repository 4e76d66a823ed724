//! Which model credential an agent inherits, as far as its row says, and what the model's provider says about its usage.

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

/// The provider that the agent names, if it does.
pub(in crate::domain) fn provider(agent: &agents::Model) -> Option<&str> {
    named(agent.model_credential_provider.as_deref())
}

fn named(provider: Option<&str>) -> Option<&str> {
    provider.map(str::trim).filter(|provider| !provider.is_empty())
}

/// The agent inherits a model credential, of this provider if it names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherits {
    pub agent: AgentId,
    pub provider: Option<String>,
}

/// Whether the agent, which is held for it, inherits a model credential.
pub async fn inherits(tx: &Tx, id: AgentId) -> Result<Option<Inherits>> {
    let agent = find(tx, id).await?.filter(|agent| agent.credential_choice == CredentialChoice::Inherit);
    Ok(agent.map(|agent| Inherits { agent: id, provider: provider(&agent).map(ToOwned::to_owned) }))
}

/// The agents that a host runs and that inherit a model credential, by id.
pub async fn inheriting(tx: &Tx) -> Result<Vec<Inherits>> {
    let found = running(tx).filter(agents::Column::CredentialChoice.eq(CredentialChoice::Inherit));
    let found = found.column(agents::Column::ModelCredentialProvider).order_by_asc(agents::Column::Id);
    let found: Vec<(AgentId, Option<String>)> = found.into_tuple().all(tx.connection()).await?;
    let of = |(agent, provider): (_, Option<String>)| Inherits {
        agent,
        provider: named(provider.as_deref()).map(ToOwned::to_owned),
    };
    Ok(found.into_iter().map(of).collect())
}

/// What the provider says about the agent's usage.
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
