//! One stop for a whole organization, for when its agents do harm and no one has time to find out which.
//!
//! From the transaction of the stop on, no agent starts or resumes ([`require_going`]), no turn is sent
//! ([`super::is_stopped`]), and commands wait in the outbox, except those that end something or tell a host of the stop
//! ([`super::MAY_GO`]). Running turns are cancelled; agents stay up, and their hosts let nothing of theirs out. Releasing lets everything go on, queued turns at most [`TURNS`] a second.
//! Permissions: `organization.stop`, and `organization.release`, which fewer people have.

use std::{sync::Arc, time::Duration};

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, Set, sea_query::Expr};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    entity::organizations,
    queries::{self, Stop},
    rows::load,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, TurnCut},
        plain,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::{Caller, Scope},
        audit, outbox,
        store::Tx,
        tally::Tally,
    },
    slices::{agents, turns},
};

/// How many queued turns are sent in each [`PAUSE`] after a release.
const TURNS: u64 = 5;
/// The time between two lots of queued turns.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest reason, in characters.
const LONGEST: usize = 1000;

/// Stops the organization. Stopping it again changes nothing. Returns whether this call stopped it.
///
/// # Errors
/// `VALIDATION_FAILED` for a reason that is blank, too long or has several lines.
pub async fn stop(scope: &Scope, reason: &str) -> Result<bool> {
    let reason = reason.trim();
    if reason.is_empty() || !plain::is_line(reason) || reason.chars().count() > LONGEST {
        let detail = "A reason is required: a single line of at most 1,000 characters.";
        return Err(Problem::invalid_parameter("reason", "REQUIRED", detail));
    }
    let mut tx = scope.begin().await?;
    super::lock(&tx).await?;
    let organization = load(&tx).await?;
    if organization.stopped_at.is_some() {
        return Ok(false);
    }
    let mut organization = organization.into_active_model();
    organization.stopped_at = Set(Some(tx.now));
    organization.stopped_by = Set(scope.request.caller.user());
    organization.stopped_by_name = Set(Some(who(&scope.request.caller)));
    organization.stop_reason = Set(Some(reason.to_owned()));
    organization.letting_go_at = Set(None);
    organization.updated_at = Set(tx.now);
    organization.update(tx.connection()).await?;
    agents::mark_all(&mut tx).await?;
    let cancelled = turns::cancel_all(&mut tx, Some(TurnCut::Organization)).await?;
    record(&tx, "stopOrganization", json!({ "reason": reason, "cancelled_turns": cancelled }));
    tx.commit().await?;
    Ok(true)
}

/// Who stopped the organization, as the operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Stopped {
    /// The name of who stopped it.
    pub by: String,
    /// Since when.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// Who stopped the organization, if it is stopped.
///
/// # Errors
/// The database is unreachable.
pub async fn stopped(scope: &Scope) -> Result<Option<Stopped>> {
    Ok(queries::stop(scope).await?.and_then(Stopped::of))
}

impl Stopped {
    fn of(row: Stop) -> Option<Self> {
        let (by, reason) = (row.stopped_by_name.unwrap_or_default(), row.stop_reason.unwrap_or_default());
        Some(Self { by, at: row.stopped_at?, reason })
    }
}

/// Releases the organization: what waits goes on. Returns whether it was stopped.
///
/// # Errors
/// The database is unreachable.
pub async fn release(scope: &Scope, reason: Option<&str>) -> Result<bool> {
    let mut tx = scope.begin().await?;
    super::lock(&tx).await?;
    let organization = load(&tx).await?;
    let Some(since) = organization.stopped_at else { return Ok(false) };
    let stopped_by = organization.stopped_by_name.clone();
    let mut organization = organization.into_active_model();
    organization.stopped_at = Set(None);
    organization.stopped_by = Set(None);
    organization.stopped_by_name = Set(None);
    organization.stop_reason = Set(None);
    organization.letting_go_at = Set(Some(tx.now.minus(PAUSE)));
    organization.updated_at = Set(tx.now);
    organization.update(tx.connection()).await?;
    turns::waited_for_release(&tx, since).await?;
    let changes = json!({ "stopped_at": since, "stopped_by": stopped_by, "reason": reason });
    record(&tx, "releaseOrganization", changes);
    agents::mark_all(&mut tx).await?;
    // Commands have waited for this.
    outbox::wake_hosts(&tx).await?;
    tx.commit().await?;
    Ok(true)
}

/// Refuses to start anything in a stopped organization. The organization can't be stopped before the transaction
/// ends. Call it before locking an agent.
///
/// # Errors
/// `ORGANIZATION_STOPPED`, naming who stopped it and since when.
pub async fn require_going(tx: &Tx) -> Result<()> {
    let stopped = queries::stop_held(tx).await?.and_then(Stopped::of);
    let Some(Stopped { by, at, reason }) = stopped else { return Ok(()) };
    let detail = format!("{by} stopped the whole organization at {at}. Nothing starts until it is released.");
    let problem = Problem::new(Code::OrganizationStopped, detail).with("stopped_by", by);
    Err(problem.with("stopped_at", at.to_string()).with("reason", reason))
}

/// Sends queued turns of released organizations, a few of each. Returns how many.
///
/// # Errors
/// The database is unreachable. What was sent by then stays sent.
pub async fn let_go(core: &Arc<Core>) -> Result<u64> {
    let mut sent = Tally::default();
    for org in queries::letting_go(core, core.clock.now().minus(PAUSE)).await? {
        sent.add(org, let_some_go(&Scope::system(core, org)).await);
    }
    sent.close()
}

async fn let_some_go(scope: &Scope) -> Result<u64> {
    use organizations::Column::{Id, LettingGoAt, StoppedAt};
    let tx = scope.begin().await?;
    let ours = || scope.update::<organizations::Entity>().filter(Id.eq(scope.org));
    // Of several replicas only one takes this turn.
    let taken = ours().col_expr(LettingGoAt, Expr::value(tx.now));
    let taken = taken.filter(LettingGoAt.lte(tx.now.minus(PAUSE))).filter(StoppedAt.is_null());
    if taken.exec(tx.connection()).await?.rows_affected == 0 {
        return Ok(0);
    }
    let sent = turns::send_queued(&tx, TURNS).await?;
    if sent < TURNS {
        let done = ours().col_expr(LettingGoAt, Expr::value(Option::<Timestamp>::None));
        done.exec(tx.connection()).await?;
    }
    tx.commit().await?;
    Ok(sent)
}

/// The operator has no name of their own.
fn who(caller: &Caller) -> String {
    match caller {
        Caller::System => "The operator".to_owned(),
        caller => caller.name().to_owned(),
    }
}

fn record(tx: &Tx, operation: &'static str, changes: Value) {
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Organization, tx.scope.org.0);
    audit::record(tx, audit::Entry { operation, op, kind, id, changes });
}
