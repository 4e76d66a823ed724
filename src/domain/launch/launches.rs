//! A record of each launch of an agent, for finding the reason of a failure. A launch begins with a start of the agent,
//! is up once its host reports so, and ends once. After a restart, the record of the next launch exists until the agent
//! is down.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, NotSet, PaginatorTrait, QueryFilter, Set, sea_query::Expr,
};

use super::entity::agent_launches;
use crate::{
    base::{bounds, enums::StatusReason, ids::AgentId, plain::truncated, problem::Result, time::Timestamp},
    core::store::Tx,
    domain::{agents::LockedAgent, versions::Author},
};

/// Requests the agent's next launch, which starts when the current one has ended. False: it was already requested.
pub(super) async fn request_next(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    if is_next_requested(tx, agent).await? {
        return Ok(false);
    }
    insert_launch(tx, agent, agent.generation + 1).await?;
    Ok(true)
}

/// Cancels the request for the agent's next launch. False: there was none.
pub(super) async fn cancel_next(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let next = tx.scope.delete::<agent_launches::Entity>().filter(is_next_of(agent));
    Ok(next.exec(tx.connection()).await?.rows_affected > 0)
}

/// Whether the agent's next launch was requested.
pub(super) async fn is_next_requested(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let next = tx.scope.find::<agent_launches::Entity>().filter(is_next_of(agent));
    Ok(next.count(tx.connection()).await? > 0)
}

fn is_next_of(agent: &LockedAgent) -> Condition {
    use agent_launches::Column;
    Condition::all().add(Column::AgentId.eq(agent.id)).add(Column::Generation.eq(agent.generation + 1))
}

/// Records that the agent's current launch begins, started by the person who requested it, else by the caller.
pub(super) async fn record_start(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    use agent_launches::Column;
    let requested = open_launch(tx, agent.id, agent.generation)
        .col_expr(Column::Revision, Expr::value(agent.revision.unwrap_or_default()))
        .col_expr(Column::StartedAt, Expr::value(tx.now));
    if requested.exec(tx.connection()).await?.rows_affected == 0 {
        insert_launch(tx, agent, agent.generation).await?;
    }
    let old = tx.scope.delete::<agent_launches::Entity>().filter(Column::AgentId.eq(agent.id));
    // Keep the newest 50.
    let old = old.filter(Column::Generation.lte(agent.generation - 50));
    old.exec(tx.connection()).await?;
    Ok(())
}

async fn insert_launch(tx: &Tx, agent: &LockedAgent, generation: i64) -> Result<()> {
    let author = Author::from_caller(tx);
    let launch = agent_launches::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        agent_id: Set(agent.id),
        generation: Set(generation),
        revision: Set(agent.revision.unwrap_or_default()),
        started_by_kind: Set(author.kind),
        started_by_id: Set(author.id),
        started_by_name: Set(author.name),
        started_at: Set(tx.now),
        up_at: Set(None),
        ended_at: Set(None),
        reason: Set(None),
        detail: Set(None),
    };
    launch.insert(tx.connection()).await?;
    Ok(())
}

/// Records that the launch is up, unless it was before.
pub(super) async fn record_up(tx: &Tx, agent: AgentId, generation: i64, at: Timestamp) -> Result<()> {
    use agent_launches::Column;
    let up = open_launch(tx, agent, generation)
        .filter(Column::UpAt.is_null())
        .col_expr(Column::UpAt, Expr::value(at));
    up.exec(tx.connection()).await?;
    Ok(())
}

/// Records the end of the launch, unless it has ended before. `reason`: why it failed. `detail`: the same in words.
pub(super) async fn record_end(
    tx: &Tx,
    (agent, generation): (AgentId, i64),
    at: Timestamp,
    reason: Option<StatusReason>,
    detail: Option<&str>,
) -> Result<()> {
    use agent_launches::Column;
    let ended = open_launch(tx, agent, generation)
        .col_expr(Column::EndedAt, Expr::value(at))
        .col_expr(Column::Reason, Expr::value(reason.map(StatusReason::as_str)))
        .col_expr(Column::Detail, Expr::value(detail.map(|detail| truncated(detail, bounds::DETAIL))));
    ended.exec(tx.connection()).await?;
    Ok(())
}

/// An update of the launch, unless it has ended.
fn open_launch(tx: &Tx, agent: AgentId, generation: i64) -> sea_orm::UpdateMany<agent_launches::Entity> {
    let launch = tx.scope.update::<agent_launches::Entity>();
    let launch = launch.filter(agent_launches::Column::AgentId.eq(agent));
    let launch = launch.filter(agent_launches::Column::Generation.eq(generation));
    launch.filter(agent_launches::Column::EndedAt.is_null())
}
