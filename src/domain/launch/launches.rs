//! Launches: how each start of an agent went, for those who look for the reason of a failure. A launch begins when someone
//! starts the agent, is up when its host says so, and ends once. The one after the present launch is there if someone has
//! restarted the agent, until it is down.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, NotSet, PaginatorTrait, QueryFilter, Set, sea_query::Expr,
};

use super::entity::agent_launches;
use crate::{
    base::{bounds, enums::StatusReason, ids::AgentId, plain::bounded, problem::Result, time::Timestamp},
    core::store::Tx,
    domain::{agents::LockedAgent, versions::Author},
};

/// The caller wants the agent's next launch, as soon as the present one is over. False: someone already does.
pub(super) async fn want_next(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    if is_next_wanted(tx, agent).await? {
        return Ok(false);
    }
    insert(tx, agent, agent.generation + 1).await?;
    Ok(true)
}

/// Takes back that someone wants the agent's next launch. False: no one did.
pub(super) async fn want_no_next(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let next = tx.scope.delete::<agent_launches::Entity>().filter(next_of(agent));
    Ok(next.exec(tx.connection()).await?.rows_affected > 0)
}

/// Whether someone wants the agent's next launch.
pub(super) async fn is_next_wanted(tx: &Tx, agent: &LockedAgent) -> Result<bool> {
    let next = tx.scope.find::<agent_launches::Entity>().filter(next_of(agent));
    Ok(next.count(tx.connection()).await? > 0)
}

fn next_of(agent: &LockedAgent) -> Condition {
    use agent_launches::Column;
    Condition::all().add(Column::AgentId.eq(agent.id)).add(Column::Generation.eq(agent.generation + 1))
}

/// The agent's present launch begins. It was started by the person who wanted it before, else by the caller.
pub(super) async fn began(tx: &Tx, agent: &LockedAgent) -> Result<()> {
    use agent_launches::Column;
    let wanted = of(tx, agent.id, agent.generation)
        .col_expr(Column::Revision, Expr::value(agent.revision.unwrap_or_default()))
        .col_expr(Column::StartedAt, Expr::value(tx.now));
    if wanted.exec(tx.connection()).await?.rows_affected == 0 {
        insert(tx, agent, agent.generation).await?;
    }
    let old = tx.scope.delete::<agent_launches::Entity>().filter(Column::AgentId.eq(agent.id));
    // The newest are kept.
    let old = old.filter(Column::Generation.lte(agent.generation - 50));
    old.exec(tx.connection()).await?;
    Ok(())
}

async fn insert(tx: &Tx, agent: &LockedAgent, generation: i64) -> Result<()> {
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

/// The launch is up. What was up before stays so.
pub(super) async fn is_up(tx: &Tx, agent: AgentId, generation: i64, at: Timestamp) -> Result<()> {
    use agent_launches::Column;
    let up = of(tx, agent, generation).filter(Column::UpAt.is_null()).col_expr(Column::UpAt, Expr::value(at));
    up.exec(tx.connection()).await?;
    Ok(())
}

/// The launch has ended: why, if it failed, and in words. What has ended stays as it is.
pub(super) async fn ended(
    tx: &Tx,
    (agent, generation): (AgentId, i64),
    at: Timestamp,
    reason: Option<StatusReason>,
    detail: Option<&str>,
) -> Result<()> {
    use agent_launches::Column;
    let ended = of(tx, agent, generation)
        .col_expr(Column::EndedAt, Expr::value(at))
        .col_expr(Column::Reason, Expr::value(reason.map(StatusReason::as_str)))
        .col_expr(Column::Detail, Expr::value(detail.map(|detail| bounded(detail, bounds::DETAIL))));
    ended.exec(tx.connection()).await?;
    Ok(())
}

/// The launch, unless it has ended.
fn of(tx: &Tx, agent: AgentId, generation: i64) -> sea_orm::UpdateMany<agent_launches::Entity> {
    let launch = tx.scope.update::<agent_launches::Entity>();
    let launch = launch.filter(agent_launches::Column::AgentId.eq(agent));
    let launch = launch.filter(agent_launches::Column::Generation.eq(generation));
    launch.filter(agent_launches::Column::EndedAt.is_null())
}
