//! Finds and locks agents' rows, and announces changes. The rest of this feature and other features build on it; it
//! depends on none of them.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Set,
};

use super::entity::agents;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, StatusReason},
        ids::{AgentId, ImageId, ServerId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        Event,
        access::Scope,
        audit,
        store::{Tx, for_update},
    },
    domain::commands::Host,
};

/// Announces a change of the agent to subscribers.
pub fn announce(tx: &Tx, id: AgentId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Agent, id));
}

pub(in crate::domain) fn host_of(agent: &agents::Model) -> Host {
    Host { server: agent.server_id, agent: agent.id, generation: agent.launch_generation }
}

/// Those of these ids that the organization doesn't have, or has deleted.
pub async fn missing(tx: &Tx, ids: &[AgentId]) -> Result<Vec<AgentId>> {
    let found = not_deleted(&tx.scope)
        .filter(agents::Column::Id.is_in(ids.iter().copied()))
        .all(tx.connection())
        .await?;
    Ok(ids.iter().copied().filter(|id| !found.iter().any(|agent| agent.id == *id)).collect())
}

/// Locks all agents including deleted ones, in locking order.
pub async fn lock_all_agents(tx: &Tx) -> Result<()> {
    let all = for_update(tx.scope.find::<agents::Entity>().order_by_asc(agents::Column::Id));
    all.select_only().column(agents::Column::Id).into_tuple::<AgentId>().all(tx.connection()).await?;
    Ok(())
}

/// Locks these agents, in locking order. Deleted ones are left out.
pub(super) async fn lock_agents(tx: &Tx, ids: &[AgentId]) -> Result<Vec<agents::Model>> {
    let found = not_deleted(&tx.scope).filter(agents::Column::Id.is_in(ids.iter().copied()));
    Ok(for_update(found.order_by_asc(agents::Column::Id)).all(tx.connection()).await?)
}

/// Records that the agent's home was backed up, or why the backup failed. A more urgent status reason stays.
pub async fn record_backup(tx: &Tx, id: AgentId, end: std::result::Result<Timestamp, &str>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let may_replace_reason = matches!(agent.status_reason, None | Some(StatusReason::BackupFailed));
    let mut agent = agent.into_active_model();
    if may_replace_reason {
        agent.status_reason = Set(end.err().map(|_| StatusReason::BackupFailed));
        agent.status_detail = Set(end.err().map(ToOwned::to_owned));
    }
    if let Ok(at) = end {
        agent.last_backup_at = Set(Some(at));
    }
    agent.updated_at = Set(tx.now);
    agent.update(tx.connection()).await?;
    Ok(())
}

/// Counts the agents on a server.
pub async fn count_on_server(tx: &Tx, server: ServerId) -> Result<u64> {
    Ok(not_deleted(&tx.scope).filter(agents::Column::ServerId.eq(server)).count(tx.connection()).await?)
}

/// Fails unless the organization has this agent, even if it is deleted. Runs outside a transaction.
pub async fn require_agent(scope: &Scope, id: AgentId) -> Result<()> {
    let found = scope.find::<agents::Entity>().filter(agents::Column::Id.eq(id));
    match found.count(scope.core.db.read()).await? {
        0 => Err(Problem::not_found("agent", id)),
        _ => Ok(()),
    }
}

pub(in crate::domain) fn not_deleted(scope: &Scope) -> sea_orm::Select<agents::Entity> {
    scope.find::<agents::Entity>().filter(agents::Column::ArchivedAt.is_null())
}

/// Loads the agent and locks it until the transaction ends, so that only one of two concurrent actions wins.
pub(in crate::domain) async fn load(tx: &Tx, id: AgentId) -> Result<agents::Model> {
    find(tx, id).await?.ok_or_else(|| Problem::not_found("agent", id))
}

/// [`load`] for the service's own work, where a deleted agent is not an error.
pub(in crate::domain) async fn find(tx: &Tx, id: AgentId) -> Result<Option<agents::Model>> {
    Ok(for_update(not_deleted(&tx.scope).filter(agents::Column::Id.eq(id))).one(tx.connection()).await?)
}

/// [`find`], including a deleted agent.
pub(super) async fn find_any(tx: &Tx, id: AgentId) -> Result<Option<agents::Model>> {
    let any = tx.scope.find::<agents::Entity>().filter(agents::Column::Id.eq(id));
    Ok(for_update(any).one(tx.connection()).await?)
}

pub(super) async fn require_free_name(tx: &Tx, name: &str, except: Option<AgentId>) -> Result<()> {
    let mut same = not_deleted(&tx.scope).filter(agents::Column::Name.eq(name));
    if let Some(id) = except {
        same = same.filter(agents::Column::Id.ne(id));
    }
    if same.count(tx.connection()).await? == 0 { Ok(()) } else { Err(Problem::name_taken("agent", name)) }
}

pub(in crate::domain) async fn finish(
    tx: Tx,
    (op, operation): (ChangeOp, &'static str),
    id: AgentId,
    changes: serde_json::Value,
) -> Result<()> {
    audit::record(&tx, audit::Entry { operation, op, kind: RecordKind::Agent, id: id.0, changes });
    tx.commit().await
}

/// Announces a change of the agents that use the image's default model, since their records show it.
pub async fn announce_of_image(tx: &Tx, image: ImageId) -> Result<()> {
    let found = not_deleted(&tx.scope).filter(agents::Column::ImageId.eq(image));
    let found = found.filter(agents::Column::ModelOverride.is_null());
    let found = found.select_only().column(agents::Column::Id).into_tuple();
    for id in found.all(tx.connection()).await? {
        announce(tx, id);
    }
    Ok(())
}
