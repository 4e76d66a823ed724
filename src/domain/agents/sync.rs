//! Telling hosts that what an agent is, has or may do has changed.

use muster_protocol::Command;
use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, sea_query::Expr};

use super::{
    entity::agents,
    revisions,
    rows::{announce, host_of, living, lock_all_agents, lock_these},
};
use crate::{
    base::{
        enums::{AgentStatus, CredentialChoice},
        ids::AgentId,
        problem::Result,
    },
    core::store::Tx,
    domain::{commands, orgs::TermsChanged},
};

/// Marks agents for synchronization and tells the hosts of the running ones. Whoever changes what an agent is calls
/// this after the change, so it is also where the agents' revisions are written, a fixed number of statements for each
/// 200 agents.
pub async fn mark_for_sync(tx: &Tx, ids: &[AgentId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = lock_these(tx, ids).await?;
    let marked = tx.scope.update::<agents::Entity>();
    let marked = marked.filter(agents::Column::Id.is_in(found.iter().map(|agent| agent.id)));
    let marked = marked.col_expr(agents::Column::SyncPending, Expr::value(true));
    let version = Expr::cust("sync_version + 1");
    let marked = marked.col_expr(agents::Column::SyncVersion, version);
    let marked = marked.col_expr(agents::Column::UpdatedAt, Expr::value(tx.now));
    marked.exec(tx.connection()).await?;
    revisions::follow(tx, &found, None).await?;
    let told = commands::pending_syncs(tx, ids).await?;
    for agent in found {
        let is_told = told.contains(&(agent.id.0, agent.launch_generation));
        let is_up =
            matches!(agent.status, AgentStatus::Spawning | AgentStatus::Running | AgentStatus::Paused);
        if is_up && !is_told {
            commands::enqueue(tx, host_of(&agent), &Command::Sync);
        }
        announce(tx, agent.id);
    }
    Ok(())
}

/// Tells the hosts of all running agents that what they may do has changed.
pub async fn mark_all(tx: &Tx) -> Result<()> {
    let up = running(tx).into_tuple().all(tx.connection()).await?;
    mark_for_sync(tx, &up).await
}

/// The organization's budget, cost guard, currency or time zone has changed.
pub async fn mark_for_spending(tx: &Tx, terms: &TermsChanged) -> Result<()> {
    if terms.has_other_timezone() {
        // Calls of those that have stopped may still be reported, and would make months of the zone that was.
        lock_all_agents(tx).await?;
    }
    // Hosts learn whether calls need a lease. That holds their agents, before anything else is written.
    mark_all(tx).await
}

/// Tells the hosts of all running agents that inherit a model credential.
pub async fn mark_inheriting(tx: &Tx) -> Result<()> {
    let up = running(tx).filter(agents::Column::CredentialChoice.eq(CredentialChoice::Inherit));
    let up = up.into_tuple().all(tx.connection()).await?;
    mark_for_sync(tx, &up).await
}

/// The ids of agents that a host runs.
pub(super) fn running(tx: &Tx) -> sea_orm::Select<agents::Entity> {
    let up = [AgentStatus::Spawning, AgentStatus::Running, AgentStatus::Paused];
    let found = living(&tx.scope).filter(agents::Column::Status.is_in(up));
    found.select_only().column(agents::Column::Id)
}
