//! Expiry: an approval that nobody decided in time fails closed.
//!
//! A reconciler without input, run on a tick; the reads and decisions of an organization run it for that
//! organization first when something is due, so that nobody ever sees an overdue approval as pending.

use std::sync::Arc;

use sea_orm::{ColumnTrait, ConnectionTrait, PaginatorTrait, QueryFilter, Statement, sea_query::Expr};

use super::{
    decide::{End, follow},
    entity::approvals,
};
use crate::{
    access::Scope,
    app::App,
    enums::{ApprovalOutcome, ApprovalStatus},
    error::Result,
    ids::OrgId,
};

/// Spelled out, so that the partial index over what is pending serves it.
const PENDING: &str = "status = 'PENDING'";

/// Ends what is overdue in every organization, each in a transaction of its own; says how many ended.
///
/// # Errors
/// The database is out of reach. What has ended until then stays so.
pub async fn expire_due(app: &Arc<App>) -> Result<u64> {
    let db = app.db.read();
    let sql = format!("SELECT DISTINCT organization_id FROM approvals WHERE {PENDING} AND expires_at <= $1");
    let now = [app.clock.now().0.into()];
    let due = Statement::from_sql_and_values(db.get_database_backend(), sql, now);
    let mut ended = 0;
    for row in db.query_all_raw(due).await? {
        let org = OrgId(row.try_get_by_index(0)?);
        ended += expire(&Scope::system(app, org)).await?;
    }
    Ok(ended)
}

/// Ends what is overdue in the scope's organization, in the name of the service.
///
/// # Errors
/// The database is out of reach.
pub async fn expire_overdue(scope: &Scope) -> Result<()> {
    let due = scope
        .find::<approvals::Entity>()
        .filter(Expr::cust(PENDING))
        .filter(approvals::Column::ExpiresAt.lte(scope.app.clock.now()));
    if due.count(scope.app.db.read()).await? > 0 {
        expire(&Scope::system(&scope.app, scope.org)).await?;
    }
    Ok(())
}

async fn expire(scope: &Scope) -> Result<u64> {
    let mut tx = scope.begin().await?;
    let end = End::new(ApprovalStatus::Expired, ApprovalOutcome::Expired);
    let ended = scope
        .update::<approvals::Entity>()
        .set(end.columns(&tx)?)
        .filter(Expr::cust(PENDING))
        .filter(approvals::Column::ExpiresAt.lte(tx.now))
        .exec_with_returning(tx.connection())
        .await?;
    for approval in &ended {
        follow(&mut tx, approval, "expireApproval", &end).await?;
    }
    tx.commit().await?;
    Ok(ended.len() as u64)
}
