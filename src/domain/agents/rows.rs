//! The agents' rows: finding and locking them, and telling of changes. Everything else about agents, and what other features
//! do with them, stands on this; it knows no other feature.

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
        store::{Tx, held},
    },
    domain::commands::Host,
};

/// Tells subscribers that the agent has changed.
pub fn announce(tx: &Tx, id: AgentId) {
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Agent, id));
}

pub(in crate::domain) fn host_of(agent: &agents::Model) -> Host {
    Host { server: agent.server_id, agent: agent.id, generation: agent.launch_generation }
}

/// The ids that the organization doesn't have, or has deleted.
pub async fn missing(tx: &Tx, ids: &[AgentId]) -> Result<Vec<AgentId>> {
    let found =
        living(&tx.scope).filter(agents::Column::Id.is_in(ids.iter().copied())).all(tx.connection()).await?;
    Ok(ids.iter().copied().filter(|id| !found.iter().any(|agent| agent.id == *id)).collect())
}

/// Holds all agents, deleted ones as well, in the order in which everything else holds several.
pub async fn lock_all_agents(tx: &Tx) -> Result<()> {
    let all = held(tx.scope.find::<agents::Entity>().order_by_asc(agents::Column::Id));
    all.select_only().column(agents::Column::Id).into_tuple::<AgentId>().all(tx.connection()).await?;
    Ok(())
}

/// Holds these agents, in the same order.
pub(super) async fn lock_these(tx: &Tx, ids: &[AgentId]) -> Result<Vec<agents::Model>> {
    let found = living(&tx.scope).filter(agents::Column::Id.is_in(ids.iter().copied()));
    Ok(held(found.order_by_asc(agents::Column::Id)).all(tx.connection()).await?)
}

/// The agent's home was backed up, or why it was not. The agent says so where it has nothing more urgent to say.
pub async fn backed_up(tx: &Tx, id: AgentId, end: std::result::Result<Timestamp, &str>) -> Result<()> {
    let Some(agent) = find(tx, id).await? else { return Ok(()) };
    let says_nothing_else = matches!(agent.status_reason, None | Some(StatusReason::BackupFailed));
    let mut agent = agent.into_active_model();
    if says_nothing_else {
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
    Ok(living(&tx.scope).filter(agents::Column::ServerId.eq(server)).count(tx.connection()).await?)
}

/// Fails unless the organization has this agent. It may be deleted. Runs outside a transaction.
pub async fn require_agent(scope: &Scope, id: AgentId) -> Result<()> {
    let found = scope.find::<agents::Entity>().filter(agents::Column::Id.eq(id));
    match found.count(scope.core.db.read()).await? {
        0 => Err(Problem::not_found("agent", id)),
        _ => Ok(()),
    }
}

pub(in crate::domain) fn living(scope: &Scope) -> sea_orm::Select<agents::Entity> {
    scope.find::<agents::Entity>().filter(agents::Column::ArchivedAt.is_null())
}

/// Loads the agent and locks it until the transaction ends, so that of two actions only one can win.
pub(in crate::domain) async fn load(tx: &Tx, id: AgentId) -> Result<agents::Model> {
    find(tx, id).await?.ok_or_else(|| Problem::not_found("agent", id))
}

/// The same, for the service's own work: a deleted agent is nothing to tell anybody about.
pub(in crate::domain) async fn find(tx: &Tx, id: AgentId) -> Result<Option<agents::Model>> {
    Ok(held(living(&tx.scope).filter(agents::Column::Id.eq(id))).one(tx.connection()).await?)
}

/// The same, also of a deleted agent.
pub(super) async fn find_any(tx: &Tx, id: AgentId) -> Result<Option<agents::Model>> {
    let any = tx.scope.find::<agents::Entity>().filter(agents::Column::Id.eq(id));
    Ok(held(any).one(tx.connection()).await?)
}

pub(super) async fn require_free_name(tx: &Tx, name: &str, except: Option<AgentId>) -> Result<()> {
    let mut same = living(&tx.scope).filter(agents::Column::Name.eq(name));
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

/// Tells subscribers that the agents that run the image's model have changed: they show it.
pub async fn announce_of_image(tx: &Tx, image: ImageId) -> Result<()> {
    let found = living(&tx.scope).filter(agents::Column::ImageId.eq(image));
    let found = found.filter(agents::Column::ModelOverride.is_null());
    let found = found.select_only().column(agents::Column::Id).into_tuple();
    for id in found.all(tx.connection()).await? {
        announce(tx, id);
    }
    Ok(())
}
