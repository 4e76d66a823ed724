//! Stores the result of an attempt on the event and its endpoint, and switches off an endpoint that can't go on.
//!
//! An event that failed eight times is given up, so that those after it are sent, but only if the endpoint has accepted
//! something lately: otherwise the endpoint fails and not the event, and an outage must lose nothing.

use std::time::Duration;

use muster_channels::Failure;
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde_json::json;

use super::{
    entity::{
        event_deliveries::{Column, Entity, Model},
        event_endpoints,
    },
    letter, queries, record,
    sending::Receiver,
};
use crate::{
    base::{
        enums::{ChangeOp, EventDeliveryStatus, InactiveReason, RecordKind},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Event, audit,
        queue::{Outcome, backoff},
        store::Tx,
    },
};

/// How long an endpoint accepts nothing until this counts as an outage: then its first answer makes all that wait due. For
/// a shorter time, an event that always fails would use up its attempts.
const OUTAGE: Duration = Duration::from_mins(1);

/// Stores the result of an attempt, unless another replica has claimed the event since. The endpoint is locked before the
/// event, as an edit locks them.
pub(super) async fn store_result(
    to: &Receiver,
    event: &Model,
    sent: std::result::Result<(), Failure>,
) -> Result<Outcome> {
    let tx = to.scope.begin().await?;
    let outcome = match sent {
        Ok(()) => {
            let had_failed = queries::record_reached(&tx, to.endpoint.id).await?;
            if !settle(&tx, event, (EventDeliveryStatus::Sent, tx.now, None)).await? {
                return Ok(Outcome::Obsolete);
            }
            if had_failed && to.endpoint.failing_since.is_some_and(|since| since <= tx.now.minus(OUTAGE)) {
                queries::hasten(&tx, to.endpoint.id).await?;
            }
            Outcome::Done
        }
        Err(failure) => {
            let Some(since) = queries::record_failure(&tx, to.endpoint.id).await? else {
                return Ok(Outcome::Obsolete);
            };
            let (why, retry_at) = (failure.to_string(), retry_time(&tx, event, &failure, since));
            let next = match retry_at {
                Some(at) => (EventDeliveryStatus::Pending, at, Some(why.clone())),
                None => (EventDeliveryStatus::Failed, tx.now, Some(why.clone())),
            };
            if !settle(&tx, event, next).await? {
                return Ok(Outcome::Obsolete);
            }
            if let Some(reason) = reason_to_stop(&tx, &failure, since) {
                switch_off(&tx, &to.endpoint, reason, &why).await?;
            }
            if retry_at.is_some() { Outcome::Later(why) } else { Outcome::GivenUp(why) }
        }
    };
    tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::EventEndpoint, to.endpoint.id));
    tx.commit().await?;
    Ok(outcome)
}

/// When to try again. `None`: only if a person asks for it. `since`: since when the endpoint accepts nothing.
fn retry_time(tx: &Tx, event: &Model, failure: &Failure, since: Timestamp) -> Option<Timestamp> {
    let wait = match failure {
        Failure::Refused(_) | Failure::TargetGone(_) | Failure::TargetMoved { .. } => return None,
        Failure::RateLimited { wait, .. } => backoff::asked_for(*wait),
        _ => Duration::ZERO,
    };
    let is_outage = since <= tx.now.minus(backoff::LONGEST)
        || matches!(failure, Failure::Gone(_) | Failure::RateLimited { .. });
    let own = backoff::after(event.attempts).or(is_outage.then_some(backoff::LONGEST))?;
    Some(tx.now.plus(own.max(wait)))
}

/// Why the endpoint must be switched off after this failure, if so.
fn reason_to_stop(tx: &Tx, failure: &Failure, since: Timestamp) -> Option<InactiveReason> {
    match failure {
        Failure::Gone(_) => Some(InactiveReason::Gone),
        _ => (since <= tx.now.minus(backoff::FAILING)).then_some(InactiveReason::DeliveryFailing),
    }
}

/// Stores the new state of a claimed event. Returns whether the claim was still valid.
async fn settle(
    tx: &Tx,
    event: &Model,
    (status, available_at, error): (EventDeliveryStatus, Timestamp, Option<String>),
) -> Result<bool> {
    let sent_at = (status == EventDeliveryStatus::Sent).then_some(tx.now);
    let settled = tx.scope.update::<Entity>().filter(Column::Id.eq(event.id));
    let settled = settled
        .filter(Column::Status.eq(EventDeliveryStatus::Pending))
        .filter(Column::Attempts.eq(event.attempts))
        .filter(Column::AvailableAt.eq(event.available_at))
        .col_expr(Column::Status, Expr::value(status.as_str()))
        .col_expr(Column::AvailableAt, Expr::value(available_at))
        .col_expr(Column::Error, Expr::value(error))
        .col_expr(Column::SentAt, Expr::value(sent_at));
    Ok(settled.exec(tx.connection()).await?.rows_affected == 1)
}

/// Switches off an endpoint, unless it was edited since it was read, and mails the people who can switch it on again. Its
/// events wait.
async fn switch_off(
    tx: &Tx,
    endpoint: &event_endpoints::Model,
    reason: InactiveReason,
    why: &str,
) -> Result<()> {
    use event_endpoints::Column;
    let off = tx.scope.update::<event_endpoints::Entity>().filter(Column::Id.eq(endpoint.id));
    let off = off
        .filter(Column::IsActive.eq(true))
        .filter(Column::UpdatedAt.eq(endpoint.updated_at))
        .col_expr(Column::IsActive, Expr::value(false))
        .col_expr(Column::InactiveReason, Expr::value(reason.as_str()))
        .col_expr(Column::InactiveDetail, Expr::value(why))
        .col_expr(Column::UpdatedAt, Expr::value(tx.now));
    if off.exec(tx.connection()).await?.rows_affected == 0 {
        return Ok(());
    }
    queries::hold(tx, endpoint.id).await?;
    let changes = json!({ "is_active": audit::from_to(true, false), "inactive_reason": reason });
    record(tx, (ChangeOp::Updated, "switchOffEventEndpoint"), endpoint.id, changes);
    letter::notify_people(tx, endpoint.id).await
}
