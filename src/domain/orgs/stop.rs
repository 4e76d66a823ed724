//! The stop of a whole organization, as stored in its row. `emergency_stop` implements a stop and a release.

use std::time::Duration;

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, Set, sea_query::Expr};
use serde::Serialize;

use super::{
    entity::organizations,
    queries::{self, Stop},
    rows::load,
};
use crate::{
    base::{
        ids::OrgId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::{Caller, Scope},
        store::Tx,
    },
};

/// The time between two batches of queued turns after a release: model providers would refuse all of them at once.
const PAUSE: Duration = Duration::from_secs(1);

/// Records that the caller stops the organization. False: it is already stopped.
pub async fn set_stopped(tx: &Tx, reason: &str) -> Result<bool> {
    super::lock(tx).await?;
    let organization = load(tx).await?;
    if organization.stopped_at.is_some() {
        return Ok(false);
    }
    let caller = &tx.scope.request.caller;
    let mut organization = organization.into_active_model();
    organization.stopped_at = Set(Some(tx.now));
    organization.stopped_by = Set(caller.user());
    organization.stopped_by_name = Set(Some(caller_name(caller)));
    organization.stop_reason = Set(Some(reason.to_owned()));
    organization.letting_go_at = Set(None);
    organization.updated_at = Set(tx.now);
    organization.update(tx.connection()).await?;
    Ok(true)
}

/// The stop of an organization, in the operator's output.
#[derive(Clone, Debug, Serialize)]
pub struct Stopped {
    /// The name of the member, service token or operator.
    pub by: String,
    pub at: Timestamp,
    pub reason: String,
}

/// The organization's stop, if it is stopped.
pub async fn stopped(scope: &Scope) -> Result<Option<Stopped>> {
    Ok(queries::stop(scope).await?.and_then(Stopped::from_row))
}

impl Stopped {
    fn from_row(row: Stop) -> Option<Self> {
        let (by, reason) = (row.stopped_by_name.unwrap_or_default(), row.stop_reason.unwrap_or_default());
        Some(Self { by, at: row.stopped_at?, reason })
    }
}

/// Records the release of the organization. Returns the time of the stop, if it was stopped.
pub async fn set_released(tx: &Tx) -> Result<Option<Timestamp>> {
    super::lock(tx).await?;
    let organization = load(tx).await?;
    let Some(since) = organization.stopped_at else { return Ok(None) };
    let mut organization = organization.into_active_model();
    organization.stopped_at = Set(None);
    organization.stopped_by = Set(None);
    organization.stopped_by_name = Set(None);
    organization.stop_reason = Set(None);
    organization.letting_go_at = Set(Some(tx.now.minus(PAUSE)));
    organization.updated_at = Set(tx.now);
    organization.update(tx.connection()).await?;
    Ok(Some(since))
}

/// Refuses to start anything in a stopped organization. The organization can't be stopped before the transaction ends.
/// Call this before locking an agent.
///
/// # Errors
/// `ORGANIZATION_STOPPED`, naming who stopped it and since when.
pub async fn require_going(tx: &Tx) -> Result<()> {
    let stopped = queries::lock_stop(tx).await?.and_then(Stopped::from_row);
    let Some(Stopped { by, at, reason }) = stopped else { return Ok(()) };
    let detail = format!("{by} stopped the whole organization at {at}. Nothing starts until it is released.");
    let problem = Problem::new(Code::OrganizationStopped, detail).with("stopped_by", by);
    Err(problem.with("stopped_at", at.to_string()).with("reason", reason))
}

/// The released organizations whose next batch of queued turns is due.
pub async fn letting_go(core: &Core) -> Result<Vec<OrgId>> {
    queries::letting_go(core, core.clock.now().minus(PAUSE)).await
}

/// Claims the next batch. Only one of several replicas gets it.
pub async fn claim_batch(tx: &Tx) -> Result<bool> {
    use organizations::Column::{LettingGoAt, StoppedAt};
    let taken = ours(tx).col_expr(LettingGoAt, Expr::value(tx.now));
    let taken = taken.filter(LettingGoAt.lte(tx.now.minus(PAUSE))).filter(StoppedAt.is_null());
    Ok(taken.exec(tx.connection()).await?.rows_affected > 0)
}

/// Records that no queued turns are left from the stop.
pub async fn end_letting_go(tx: &Tx) -> Result<()> {
    let done = ours(tx).col_expr(organizations::Column::LettingGoAt, Expr::value(None::<Timestamp>));
    done.exec(tx.connection()).await?;
    Ok(())
}

fn ours(tx: &Tx) -> sea_orm::UpdateMany<organizations::Entity> {
    tx.scope.update::<organizations::Entity>().filter(organizations::Column::Id.eq(tx.scope.org))
}

fn caller_name(caller: &Caller) -> String {
    match caller {
        Caller::System => "The operator".to_owned(),
        caller => caller.name().to_owned(),
    }
}
