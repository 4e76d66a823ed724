//! Writing down what became of a part, of its message, and of its channel.

use muster_channels::Traits;
use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, sea_query::Expr};

use super::{entity::deliveries, verdict::Verdict};
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

/// What an attempt without an answer means.
pub(super) fn uncertain(part: &deliveries::Model, facts: &Traits, why: &str) -> Verdict {
    let lost = muster_channels::Failure::Unknown(why.into());
    super::verdict::judge(Err(lost), part.attempts, facts.idempotent_send, facts.reconciles)
}

/// Writes a verdict down. What another replica has claimed since stays as it is. `seen`: of the settings that it was sent with.
pub(super) async fn settle(
    scope: &Scope,
    part: &deliveries::Model,
    seen: Timestamp,
    verdict: Verdict,
) -> Result<()> {
    let tx = scope.begin().await?;
    if !write(&tx, part, &verdict).await? {
        return Ok(());
    }
    match verdict {
        Verdict::Sent(receipt) => {
            channels::record_reached(&tx, part.channel_id).await?;
            if let Some(target) = receipt.target {
                conversations::retarget(&tx, part.conversation_id, target).await?;
            }
        }
        Verdict::Moved(to) => conversations::retarget(&tx, part.conversation_id, to).await?,
        Verdict::Later { wait, is_for_all: true, .. } => {
            channels::delay_sending(&tx, part.channel_id, tx.now.plus(wait)).await?;
        }
        Verdict::Channel(reason, why) => {
            channels::switch_off(&tx, part.channel_id, seen, reason, &why).await?;
        }
        Verdict::Failed(code, why) => {
            // The channel first, as an edit of it locks them.
            note(&tx, part.channel_id, seen, (code, &why)).await?;
            fail_rest(&tx, part.message_id, part.part).await?;
        }
        Verdict::Unsent(..) => fail_rest(&tx, part.message_id, part.part).await?,
        Verdict::Later { counts: true, .. } => {
            channels::record_not_sent(&tx, part.channel_id, seen, None).await?;
        }
        Verdict::Later { .. } | Verdict::Ask(_) => {}
    }
    summarize(&tx, part.message_id).await?;
    tx.commit().await
}

/// What it says about a channel that a part has failed.
async fn note(tx: &Tx, id: ChannelId, seen: Timestamp, (code, why): (DeliveryCode, &str)) -> Result<()> {
    match code {
        DeliveryCode::GaveUp => channels::record_not_sent(tx, id, seen, Some(why)).await,
        // It was one attempt, and perhaps it was sent.
        DeliveryCode::UnknownOutcome => channels::record_not_sent(tx, id, seen, None).await,
        DeliveryCode::Refused | DeliveryCode::TargetGone => channels::record_reached(tx, id).await,
        // Other parts, or later.
        DeliveryCode::EarlierPart | DeliveryCode::Bounced => Ok(()),
    }
}

/// What a verdict makes of the row.
struct Row {
    status: DeliveryStatus,
    attempts: i64,
    available_at: Timestamp,
    code: Option<DeliveryCode>,
    error: Option<String>,
}

/// Returns whether the claim still held.
async fn write(tx: &Tx, part: &deliveries::Model, verdict: &Verdict) -> Result<bool> {
    use deliveries::Column;
    let waits = |status, error: Option<&String>| Row {
        status,
        attempts: part.attempts,
        available_at: tx.now,
        code: None,
        error: error.cloned(),
    };
    let (row, vendor_id) = match verdict {
        Verdict::Sent(receipt) => (waits(DeliveryStatus::Sent, None), receipt.vendor_id.clone()),
        Verdict::Failed(code, why) | Verdict::Unsent(code, why) => {
            (Row { code: Some(*code), ..waits(DeliveryStatus::Failed, Some(why)) }, None)
        }
        Verdict::Later { wait, counts, why, .. } => {
            let attempts = part.attempts - i64::from(!counts);
            let row = waits(DeliveryStatus::Pending, Some(why));
            (Row { attempts, available_at: tx.now.plus(*wait), ..row }, None)
        }
        Verdict::Channel(_, why) | Verdict::Ask(why) => {
            (Row { attempts: part.attempts - 1, ..waits(DeliveryStatus::Pending, Some(why)) }, None)
        }
        Verdict::Moved(_) => {
            (Row { attempts: part.attempts - 1, ..waits(DeliveryStatus::Pending, None) }, None)
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

/// Half a message is worse than none of its rest.
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

/// A part came back that the vendor had taken.
pub async fn bounced(tx: &Tx, channel: ChannelId, vendor_id: &str, why: &str) -> Result<()> {
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

/// Shows on the message what became of its parts.
pub(super) async fn summarize(tx: &Tx, message: MessageId) -> Result<()> {
    let parts = tx.scope.find::<deliveries::Entity>().filter(deliveries::Column::MessageId.eq(message));
    let parts = parts.order_by_asc(deliveries::Column::Part).all(tx.connection()).await?;
    if let Some(delivery) = summary(&parts) {
        conversations::record_delivery(tx, message, delivery).await?;
    }
    Ok(())
}

/// The delivery of a whole message: as far as its least part has come.
fn summary(parts: &[deliveries::Model]) -> Option<Delivery> {
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
