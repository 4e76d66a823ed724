//! Expiry: an approval that no one decides in time fails closed.
//!
//! A periodic job ends what is overdue, a few at a time so that it never blocks writers for long. Reads don't
//! depend on it: from the moment its deadline passes, an approval is shown as EXPIRED and can't be decided
//! ([`overdue`]).

use std::sync::Arc;

use sea_orm::{
    ActiveValue::NotSet, ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, sea_query::Expr,
};

use super::{decide::follow, end::End, entity::approvals, queries};
use crate::{
    base::{
        bounds::BATCH,
        enums::{ApprovalOutcome, ApprovalStatus},
        problem::Result,
    },
    core::{Core, access::Scope, job_counts::Tally},
    domain::agents,
    read::NOW,
};

/// A literal, so that the partial index on pending approvals applies.
const PENDING: &str = "status = 'PENDING'";

/// SQL on a row of approvals: `ended` if it is past its deadline but the job hasn't run yet, else `column`.
#[must_use]
pub fn overdue(ended: &str, column: &str) -> String {
    format!("CASE WHEN t.{PENDING} AND t.expires_at <= {NOW} THEN {ended} ELSE t.{column} END")
}

/// Ends what is overdue in every organization. Returns how many ended.
///
/// # Errors
/// The database is unreachable. What has ended by then stays ended.
pub async fn expire_due(core: &Arc<Core>) -> Result<u64> {
    let mut ended = Tally::default();
    for org in queries::orgs_with_overdue(core).await? {
        ended.add(org, expire_whole(&Scope::system(core, org)).await);
    }
    ended.close()
}

/// Ends what is overdue in one organization. Returns how many ended.
async fn expire_whole(scope: &Scope) -> Result<u64> {
    let mut ended = 0;
    while let Some(now) = expire(scope).await? {
        ended += now;
    }
    Ok(ended)
}

/// Ends the first overdue approvals of one agent in the scope's organization, as the service, and returns how many. They ended
/// when their deadline passed. None: nothing is overdue.
async fn expire(scope: &Scope) -> Result<Option<u64>> {
    let tx = scope.begin().await?;
    let due = || {
        let due = scope.find::<approvals::Entity>().filter(Expr::cust(PENDING));
        due.filter(approvals::Column::ExpiresAt.lte(tx.now)).order_by_asc(approvals::Column::ExpiresAt)
    };
    let Some(next) = due().one(tx.connection()).await? else { return Ok(None) };
    // One agent at a time, and held first: see `agents::lock_agent`.
    let (agent, same) = match next.agent_id {
        Some(id) => (agents::lock_agent(&tx, id).await?, approvals::Column::AgentId.eq(id)),
        None => (None, approvals::Column::AgentId.is_null()),
    };
    let end = End::new(ApprovalStatus::Expired, ApprovalOutcome::Expired);
    let first =
        due().filter(same).select_only().column(approvals::Column::Id).limit(u64::from(BATCH)).into_query();
    let ended = scope
        .update::<approvals::Entity>()
        .set(approvals::ActiveModel { resolved_at: NotSet, ..end.columns(&tx)? })
        .col_expr(approvals::Column::ResolvedAt, Expr::col(approvals::Column::ExpiresAt))
        .filter(approvals::Column::Id.in_subquery(first))
        .filter(Expr::cust(PENDING))
        .exec_with_returning(tx.connection())
        .await?;
    for approval in &ended {
        follow(&tx, approval, agent.as_ref(), "expireApproval", &end).await?;
    }
    tx.commit().await?;
    Ok(Some(ended.len() as u64))
}
