//! Assigning, snoozing and reminding. None of these decides an approval, restricts anyone or moves the expiry.

use std::{sync::Arc, time::Duration};

use sea_orm::{
    ColumnTrait, Condition, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Set, sea_query::Expr,
};
use serde_json::json;

use super::{entity::approvals, queries, rows::load, state::TransitionError};
use crate::{
    base::{
        bounds::BATCH,
        enums::{ApprovalStatus, ChangeOp, RecordKind},
        ids::{ApprovalId, UserId},
        problem::{Problem, Result, Violation},
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        audit,
        events::Event,
        handlers::{DomainEvent, emit},
        job_counts::Tally,
        store::Tx,
    },
    domain::people,
};

/// An approval was assigned to a member.
#[derive(Debug)]
pub struct Assigned {
    pub approval: ApprovalId,
    pub to: UserId,
}

impl DomainEvent for Assigned {}

/// A person snoozed an approval.
#[derive(Debug)]
pub struct Snoozed {
    pub approval: ApprovalId,
    pub by: UserId,
}

impl DomainEvent for Snoozed {}

/// An approval is about to expire.
#[derive(Debug)]
pub struct Expiring {
    pub approval: ApprovalId,
}

impl DomainEvent for Expiring {}

/// The most and the least time that may be left at the reminder, which otherwise comes when a tenth of the approval's
/// lifetime is left.
const REMINDER: [Duration; 2] = [Duration::from_hours(1), Duration::from_mins(10)];

/// Assigns an approval to the member who should decide it, or to no one. The assignee is notified.
///
/// # Errors
/// `NOT_FOUND`; `APPROVAL_NOT_PENDING`; `VALIDATION_FAILED` for a person who isn't a member.
pub async fn assign(scope: &Scope, id: ApprovalId, to: Option<UserId>) -> Result<()> {
    let tx = scope.begin().await?;
    // Locks the member first, as a departure does: if the member leaves at the same time, either this call is refused
    // or the departure clears the assignment.
    if let Some(user) = to
        && !people::lock_member(&tx, user).await?
    {
        let detail = format!("No member has the id {user}.");
        return Err(Problem::invalid(vec![Violation::parameter("user_id", "NOT_FOUND", detail)]));
    }
    let approval = load_pending(&tx, id).await?;
    if approval.assignee_id == to {
        return Ok(());
    }
    let row = approvals::ActiveModel { assignee_id: Set(to), updated_at: Set(tx.now), ..Default::default() };
    let still = approvals::Column::Status.eq(ApprovalStatus::Pending);
    let rows =
        scope.update::<approvals::Entity>().set(row).filter(approvals::Column::Id.eq(id)).filter(still);
    if rows.exec(tx.connection()).await?.rows_affected == 0 {
        return Err(TransitionError::NotPending(load(&tx, id).await?.status).into());
    }
    record(&tx, "assignApproval", id, json!({ "assignee_id": audit::from_to(approval.assignee_id, to) }));
    if let Some(to) = to {
        emit(&tx, Assigned { approval: id, to }).await?;
    }
    tx.commit().await
}

/// Unassigns a member who has left the organization.
pub async fn forget_assignee(tx: &Tx, user: UserId) -> Result<()> {
    let row = approvals::ActiveModel { assignee_id: Set(None), ..Default::default() };
    let rows = tx.scope.update::<approvals::Entity>().set(row).filter(approvals::Column::AssigneeId.eq(user));
    for approval in rows.exec_with_returning(tx.connection()).await? {
        if approval.status == ApprovalStatus::Pending {
            record(
                tx,
                "unassignApproval",
                approval.id,
                json!({ "assignee_id": [Some(user), None::<UserId>] }),
            );
        }
    }
    Ok(())
}

/// Hides an approval from the caller until a time; without a time, shows it again.
///
/// # Errors
/// `NOT_FOUND`; `APPROVAL_NOT_PENDING`; `PERMISSION_DENIED` for a service token; `VALIDATION_FAILED` for a time in the
/// past or too late.
pub async fn snooze(scope: &Scope, id: ApprovalId, until: Option<Timestamp>) -> Result<()> {
    let person = scope.person()?.id;
    let tx = scope.begin().await?;
    let approval = load_pending(&tx, id).await?;
    match until {
        None => queries::delete_snooze(&tx, id, person).await?,
        Some(until) => {
            check_snooze(until, tx.now, approval.expires_at)?;
            queries::add_snooze(&tx, id, person, until).await?;
            emit(&tx, Snoozed { approval: id, by: person }).await?;
        }
    }
    // A snooze is private to the caller.
    tx.announce(Event::new(scope.org, ChangeOp::Updated, RecordKind::Approval, id).only(person));
    tx.commit().await
}

/// Requires that a snooze ends ten minutes before the expiry at the latest, or within 30 days if there is none.
fn check_snooze(until: Timestamp, now: Timestamp, expires_at: Option<Timestamp>) -> Result<()> {
    let latest =
        expires_at.map_or(now.plus(Duration::from_hours(30 * 24)), |at| at.minus(Duration::from_mins(10)));
    let (code, detail) = match expires_at {
        _ if until <= now => {
            ("TOO_SMALL", "`until` is in the past. Send null to show the approval again.".to_owned())
        }
        _ if until <= latest => return Ok(()),
        Some(at) if latest <= now => (
            "TOO_LARGE",
            format!("The approval expires at {at}. In its last ten minutes it can't be snoozed: decide now."),
        ),
        Some(at) => (
            "TOO_LARGE",
            format!(
                "The approval expires at {at}. It can be snoozed until ten minutes before that: {latest}."
            ),
        ),
        None => ("TOO_LARGE", "An approval can be snoozed for at most 30 days.".to_owned()),
    };
    Err(Problem::invalid_parameter("until", code, detail))
}

/// When to remind people of an approval. One that lives for less than 20 minutes has no reminder, because people were
/// notified of it recently.
pub(super) fn reminder_time(now: Timestamp, expires_at: Option<Timestamp>) -> Option<Timestamp> {
    let expires_at = expires_at.filter(|at| *at >= now.plus(Duration::from_mins(20)))?;
    let life = Duration::from_millis(u64::try_from(expires_at.0 - now.0).ok()?);
    let [earliest, latest] = REMINDER;
    Some(expires_at.minus((life / 10).clamp(latest, earliest)))
}

/// Reminds people of approvals that are about to expire. Returns the number of approvals.
pub async fn remind_due(core: &Arc<Core>) -> Result<u64> {
    let mut reminded = Tally::default();
    for org in queries::orgs_to_remind(core).await? {
        reminded.add(org, remind_of_all(&Scope::system(core, org)).await);
    }
    reminded.close()
}

/// Reminds people of all approvals of an organization that are about to expire, a batch at a time. Returns their
/// number.
async fn remind_of_all(scope: &Scope) -> Result<u64> {
    let mut reminded = 0;
    loop {
        let now = remind_batch(scope).await?;
        reminded += now;
        if now < u64::from(BATCH) {
            return Ok(reminded);
        }
    }
}

/// Reminds people of the next batch of an organization's approvals. The transaction that clears `remind_at` emits the
/// reminder.
async fn remind_batch(scope: &Scope) -> Result<u64> {
    let tx = scope.begin().await?;
    // The literal status makes the partial index apply.
    let due = || {
        Condition::all().add(Expr::cust("status = 'PENDING'")).add(approvals::Column::RemindAt.lte(tx.now))
    };
    let first = scope
        .find::<approvals::Entity>()
        .filter(due())
        .order_by_asc(approvals::Column::RemindAt)
        .select_only()
        .column(approvals::Column::Id)
        .limit(u64::from(BATCH))
        .into_query();
    let found = scope
        .update::<approvals::Entity>()
        .col_expr(approvals::Column::RemindAt, Expr::value(None::<i64>))
        .filter(approvals::Column::Id.in_subquery(first))
        .filter(due())
        .exec_with_returning(tx.connection())
        .await?;
    for approval in &found {
        emit(&tx, Expiring { approval: approval.id }).await?;
    }
    tx.commit().await?;
    Ok(found.len() as u64)
}

/// Loads an approval that must be pending.
async fn load_pending(tx: &Tx, id: ApprovalId) -> Result<approvals::Model> {
    let approval = load(tx, id).await?;
    match approval.status {
        ApprovalStatus::Pending => Ok(approval),
        status => Err(TransitionError::NotPending(status).into()),
    }
}

fn record(tx: &Tx, operation: &'static str, id: ApprovalId, changes: serde_json::Value) {
    let (op, kind) = (ChangeOp::Updated, RecordKind::Approval);
    audit::record(tx, audit::Entry { operation, op, kind, id: id.0, changes });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reminder_leaves_a_tenth_and_at_least_ten_minutes() {
        let minutes = |minutes: i64| Timestamp(minutes * 60_000);
        let left =
            |life: i64| reminder_time(minutes(5), Some(minutes(5 + life))).map(|at| 5 + life - at.0 / 60_000);
        let lives = [19, 20, 60, 240, 600, 24 * 60].map(left);
        assert_eq!(lives, [None, Some(10), Some(10), Some(24), Some(60), Some(60)]);
        assert_eq!(reminder_time(minutes(5), None), None);
    }

    #[test]
    fn a_snooze_ends_ten_minutes_before_the_expiry() {
        let minutes = |minutes: i64| Timestamp(minutes * 60_000);
        let refused = |until, expires_at: Option<i64>| {
            check_snooze(minutes(until), minutes(0), expires_at.map(minutes))
                .err()
                .map(|problem| problem.detail)
        };
        assert_eq!(refused(50, Some(60)), None);
        assert_eq!(refused(30 * 24 * 60, None), None);
        assert!(refused(51, Some(60)).unwrap().contains("1970-01-01T00:50:00.000Z"));
        assert!(refused(5, Some(10)).unwrap().contains("decide now"));
        assert!(refused(0, Some(60)).unwrap().contains("past"));
        assert!(refused(30 * 24 * 60 + 1, None).unwrap().contains("30 days"));
    }
}
