//! Notifies hosts of changes to agents' settings, assignments and limits.

use muster_protocol::Command;
use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, sea_query::Expr};

use super::{
    entity::agents,
    revisions,
    rows::{announce, host_of, lock_agents, lock_all_agents, not_deleted},
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

/// Marks agents for synchronization and notifies the hosts of running ones. Every change of an agent's settings or
/// assignments ends with this call, so it also writes the agents' revisions, with a fixed number of statements for each
/// 200 agents.
pub async fn mark_for_sync(tx: &Tx, ids: &[AgentId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = lock_agents(tx, ids).await?;
    let marked = tx.scope.update::<agents::Entity>();
    let marked = marked.filter(agents::Column::Id.is_in(found.iter().map(|agent| agent.id)));
    let marked = marked.col_expr(agents::Column::SyncPending, Expr::value(true));
    let version = Expr::cust("sync_version + 1");
    let marked = marked.col_expr(agents::Column::SyncVersion, version);
    let marked = marked.col_expr(agents::Column::UpdatedAt, Expr::value(tx.now));
    marked.exec(tx.connection()).await?;
    revisions::record_revisions(tx, &found, None).await?;
    let notified = commands::pending_syncs(tx, ids).await?;
    for agent in found {
        let is_notified = notified.contains(&(agent.id.0, agent.launch_generation));
        let is_up =
            matches!(agent.status, AgentStatus::Spawning | AgentStatus::Running | AgentStatus::Paused);
        if is_up && !is_notified {
            commands::enqueue(tx, host_of(&agent), &Command::Sync);
        }
        announce(tx, agent.id);
    }
    Ok(())
}

/// Marks all running agents for synchronization and notifies their hosts.
pub async fn mark_all(tx: &Tx) -> Result<()> {
    let up = running(tx).into_tuple().all(tx.connection()).await?;
    mark_for_sync(tx, &up).await
}

/// Notifies hosts that the organization's budget, cost guard, currency or time zone has changed.
pub async fn mark_for_spending(tx: &Tx, terms: &TermsChanged) -> Result<()> {
    if terms.has_other_timezone() {
        // Late reports of stopped agents' calls would otherwise create months in the old time zone.
        lock_all_agents(tx).await?;
    }
    // Hosts learn whether calls need a lease. This locks their agents before anything else is written.
    mark_all(tx).await
}

/// Marks all running agents that inherit a model credential for synchronization and notifies their hosts.
pub async fn mark_inheriting(tx: &Tx) -> Result<()> {
    let up = running(tx).filter(agents::Column::CredentialChoice.eq(CredentialChoice::Inherit));
    let up = up.into_tuple().all(tx.connection()).await?;
    mark_for_sync(tx, &up).await
}

/// The ids of agents that a host runs.
pub(super) fn running(tx: &Tx) -> sea_orm::Select<agents::Entity> {
    let up = [AgentStatus::Spawning, AgentStatus::Running, AgentStatus::Paused];
    let found = not_deleted(&tx.scope).filter(agents::Column::Status.is_in(up));
    found.select_only().column(agents::Column::Id)
}
