//! Stores the result of an attempt on the part, its message, and its channel.

use muster_channels::Traits;
use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, sea_query::Expr};

use super::{
    attempt_result::{AttemptResult, Repeatable, interpret},
    entity::deliveries,
};
use crate::{
    base::{
        enums::{DeliveryCode, DeliveryStatus},
        ids::{ChannelId, MessageId},
        problem::Result,
        time::Timestamp,
    },
    core::{access::Scope, store::Tx},
    domain::{
        channels,
        conversations::{self, Delivery},
    },
};

/// The result of an attempt without an answer.
pub(super) fn result_without_answer(part: &deliveries::Model, facts: &Traits, why: &str) -> AttemptResult {
    let lost = muster_channels::Failure::Unknown(why.into());
    interpret(Err(lost), part.attempts, Repeatable::of(part.action.as_deref(), facts))
}

/// Stores the result of an attempt, unless another replica has claimed the part since. `seen`: `updated_at` of the
/// channel settings used.
pub(super) async fn store_result(
    scope: &Scope,
    part: &deliveries::Model,
    seen: Timestamp,
    result: AttemptResult,
) -> Result<()> {
    let tx = scope.begin().await?;
    if !update_part(&tx, part, &result).await? {
        return Ok(());
    }
    match result {
        AttemptResult::Sent(receipt) => {
            channels::record_reached(&tx, part.channel_id).await?;
            if let Some(target) = receipt.target {
                conversations::retarget(&tx, part.conversation_id, target).await?;
            }
        }
        AttemptResult::Moved(to) => conversations::retarget(&tx, part.conversation_id, to).await?,
        AttemptResult::Later { wait, is_for_all: true, .. } => {
            channels::delay_sending(&tx, part.channel_id, tx.now.plus(wait)).await?;
        }
        AttemptResult::Channel(reason, why) => {
            channels::switch_off(&tx, part.channel_id, seen, reason, &why).await?;
        }
        AttemptResult::Failed(code, why) => {
            // The channel before the parts: the order in which an edit of the channel locks them.
            record_on_channel(&tx, part.channel_id, seen, (code, &why)).await?;
            fail_rest(&tx, part.message_id, part.part).await?;
        }
        AttemptResult::Unsent(..) => fail_rest(&tx, part.message_id, part.part).await?,
        AttemptResult::Later { counts: true, .. } => {
            channels::record_not_sent(&tx, part.channel_id, seen, None).await?;
        }
        AttemptResult::Later { .. } | AttemptResult::Ask(_) => {}
    }
    summarize(&tx, part.message_id).await?;
    tx.commit().await
}

/// Records on the channel that a part has failed.
async fn record_on_channel(
    tx: &Tx,
    id: ChannelId,
    seen: Timestamp,
    (code, why): (DeliveryCode, &str),
) -> Result<()> {
    match code {
        DeliveryCode::GaveUp => channels::record_not_sent(tx, id, seen, Some(why)).await,
        // A single attempt, which may have succeeded.
        DeliveryCode::UnknownOutcome => channels::record_not_sent(tx, id, seen, None).await,
        DeliveryCode::Refused | DeliveryCode::TargetGone => channels::record_reached(tx, id).await,
        // These say nothing about the channel at this time.
        DeliveryCode::EarlierPart | DeliveryCode::Bounced => Ok(()),
    }
}

/// The new values of a part's row.
struct NewValues {
    status: DeliveryStatus,
    attempts: i64,
    available_at: Timestamp,
    code: Option<DeliveryCode>,
    error: Option<String>,
}

/// Returns whether the sender still held its claim.
async fn update_part(tx: &Tx, part: &deliveries::Model, result: &AttemptResult) -> Result<bool> {
    use deliveries::Column;
    let values = |status, error: Option<&String>| NewValues {
        status,
        attempts: part.attempts,
        available_at: tx.now,
        code: None,
        error: error.cloned(),
    };
    let (row, vendor_id) = match result {
        AttemptResult::Sent(receipt) => (values(DeliveryStatus::Sent, None), receipt.vendor_id.clone()),
        AttemptResult::Failed(code, why) | AttemptResult::Unsent(code, why) => {
            (NewValues { code: Some(*code), ..values(DeliveryStatus::Failed, Some(why)) }, None)
        }
        AttemptResult::Later { wait, counts, why, .. } => {
            let attempts = part.attempts - i64::from(!counts);
            let row = values(DeliveryStatus::Pending, Some(why));
            (NewValues { attempts, available_at: tx.now.plus(*wait), ..row }, None)
        }
        AttemptResult::Channel(_, why) | AttemptResult::Ask(why) => {
            (NewValues { attempts: part.attempts - 1, ..values(DeliveryStatus::Pending, Some(why)) }, None)
        }
        AttemptResult::Moved(_) => {
            (NewValues { attempts: part.attempts - 1, ..values(DeliveryStatus::Pending, None) }, None)
        }
    };
    let is_sent = row.status == DeliveryStatus::Sent;
    let mut settled = tx
        .scope
        .update::<deliveries::Entity>()
        .filter(Column::Id.eq(part.id))
        .filter(Column::Status.eq(DeliveryStatus::Sending))
        .filter(Column::Attempts.eq(part.attempts))
        .col_expr(Column::Status, Expr::value(row.status.as_str()))
        .col_expr(Column::Attempts, Expr::value(row.attempts))
        .col_expr(Column::AvailableAt, Expr::value(row.available_at))
        .col_expr(Column::Code, Expr::value(row.code.map(DeliveryCode::as_str)))
        .col_expr(Column::Error, Expr::value(row.error))
        .col_expr(Column::VendorId, Expr::value(vendor_id));
    if is_sent {
        settled = settled
            .col_expr(Column::SentAt, Expr::value(tx.now))
            .col_expr(Column::Text, Expr::value(None::<String>))
            .col_expr(Column::Plain, Expr::value(None::<String>));
    }
    Ok(settled.exec(tx.connection()).await?.rows_affected == 1)
}

/// Fails the parts after a failed one: the rest of a message without its middle would mislead.
pub(super) async fn fail_rest(tx: &Tx, message: MessageId, part: i64) -> Result<()> {
    use deliveries::Column;
    let rest = tx.scope.update::<deliveries::Entity>().filter(Column::MessageId.eq(message));
    let rest = rest.filter(Column::Part.gt(part)).filter(Column::Status.eq(DeliveryStatus::Pending));
    rest.col_expr(Column::Status, Expr::value(DeliveryStatus::Failed.as_str()))
        .col_expr(Column::Code, Expr::value(DeliveryCode::EarlierPart.as_str()))
        .exec(tx.connection())
        .await?;
    Ok(())
}

/// Marks a part as failed that the vendor had accepted and then returned.
pub async fn record_bounce(tx: &Tx, channel: ChannelId, vendor_id: &str, why: &str) -> Result<()> {
    use deliveries::Column;
    let part = tx.scope.update::<deliveries::Entity>().filter(Column::ChannelId.eq(channel));
    let part = part
        .filter(Column::VendorId.eq(vendor_id))
        .col_expr(Column::Status, Expr::value(DeliveryStatus::Failed.as_str()))
        .col_expr(Column::Code, Expr::value(DeliveryCode::Bounced.as_str()))
        .col_expr(Column::Error, Expr::value(why));
    for part in part.exec_with_returning(tx.connection()).await? {
        summarize(tx, part.message_id).await?;
    }
    Ok(())
}

/// Updates a message's delivery from its parts.
pub(super) async fn summarize(tx: &Tx, message: MessageId) -> Result<()> {
    let parts = tx.scope.find::<deliveries::Entity>().filter(deliveries::Column::MessageId.eq(message));
    let parts = parts.order_by_asc(deliveries::Column::Part).all(tx.connection()).await?;
    if let Some(delivery) = summarize_parts(&parts) {
        conversations::record_delivery(tx, message, delivery).await?;
    }
    Ok(())
}

/// The delivery of a whole message has the status of its least advanced part.
fn summarize_parts(parts: &[deliveries::Model]) -> Option<Delivery> {
    use DeliveryStatus::{Failed, Pending, Sending, Sent, Skipped};
    let has = |status| parts.iter().any(|part| part.status == status);
    let status = [Failed, Sending, Pending, Skipped].into_iter().find(|status| has(*status)).unwrap_or(Sent);
    let failing = parts.iter().find(|part| part.error.is_some());
    Some(Delivery {
        status,
        attempts: parts.iter().map(|part| part.attempts).max()?,
        error: failing.and_then(|part| part.error.clone()),
        sent_at: if status == Sent { parts.iter().filter_map(|part| part.sent_at).max() } else { None },
    })
}
