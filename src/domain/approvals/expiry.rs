//! Expiry: an approval that no one decides in time fails closed.
//!
//! A periodic job ends overdue approvals in batches, so that it never blocks writers for long. Reads don't depend on
//! it: once its deadline has passed, an approval is shown as EXPIRED and can't be decided ([`overdue`]).

use std::sync::Arc;

use sea_orm::{
    ActiveValue::NotSet, ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, sea_query::Expr,
};

use super::{decide::apply_consequences, end::ApprovalEnd, entity::approvals, queries};
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

/// SQL on a row of approvals: `ended` if it is past its deadline and the job hasn't run yet, else `column`.
#[must_use]
pub fn overdue(ended: &str, column: &str) -> String {
    format!("CASE WHEN t.{PENDING} AND t.expires_at <= {NOW} THEN {ended} ELSE t.{column} END")
}

/// Ends the overdue approvals of every organization. Returns how many ended.
pub async fn expire_due(core: &Arc<Core>) -> Result<u64> {
    let mut ended = Tally::default();
    for org in queries::orgs_with_overdue(core).await? {
        ended.add(org, expire_all(&Scope::system(core, org)).await);
    }
    ended.close()
}

/// Ends the overdue approvals of one organization. Returns how many ended.
async fn expire_all(scope: &Scope) -> Result<u64> {
    let mut ended = 0;
    while let Some(now) = expire_batch(scope).await? {
        ended += now;
    }
    Ok(ended)
}

/// Ends the first overdue approvals of one agent, as the service, with their deadline as the end. Returns how many
/// ended. None: nothing is overdue.
async fn expire_batch(scope: &Scope) -> Result<Option<u64>> {
    let tx = scope.begin().await?;
    let due = || {
        let due = scope.find::<approvals::Entity>().filter(Expr::cust(PENDING));
        due.filter(approvals::Column::ExpiresAt.lte(tx.now)).order_by_asc(approvals::Column::ExpiresAt)
    };
    let Some(next) = due().one(tx.connection()).await? else { return Ok(None) };
    // One agent at a time, and locked first: see `agents::lock_agent`.
    let (agent, same) = match next.agent_id {
        Some(id) => (agents::lock_agent(&tx, id).await?, approvals::Column::AgentId.eq(id)),
        None => (None, approvals::Column::AgentId.is_null()),
    };
    let end = ApprovalEnd::new(ApprovalStatus::Expired, ApprovalOutcome::Expired);
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
        apply_consequences(&tx, approval, agent.as_ref(), "expireApproval", &end).await?;
    }
    tx.commit().await?;
    Ok(Some(ended.len() as u64))
}
