//! Sends failed parts again by hand, and waiting parts sooner when their channel was edited.

use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use serde_json::json;

use super::{entity::deliveries, outcome::summarize, skipping::skip_waiting};
use crate::{
    base::{
        enums::{ChangeOp, DeliveryStatus, RecordKind},
        ids::{ChannelId, MessageId},
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, audit, queue, store::Tx},
    domain::{
        channels::{self, Edited},
        conversations,
    },
};

/// Sends the failed or skipped parts of a message again, except bounced ones. A part with an unknown outcome may arrive
/// twice: that is the caller's decision.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` if none of its parts failed, or its channel does not send.
pub async fn retry(scope: &Scope, message: MessageId) -> Result<()> {
    use deliveries::Column;
    let tx = scope.begin().await?;
    conversations::require_message(&tx, message).await?;
    let part = tx.scope.find::<deliveries::Entity>().filter(Column::MessageId.eq(message));
    if let Some(part) = part.one(tx.connection()).await?
        && channels::sends_out(&tx, part.channel_id).await? != Some(true)
    {
        let detail = "The channel is switched off, or does not send.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    let failed = [DeliveryStatus::Failed, DeliveryStatus::Skipped];
    let again = tx.scope.update::<deliveries::Entity>().filter(Column::MessageId.eq(message));
    let again = again
        .filter(Column::Status.is_in(failed))
        .filter(Column::Text.is_not_null())
        .col_expr(Column::Status, Expr::value(DeliveryStatus::Pending.as_str()))
        .col_expr(Column::Attempts, Expr::value(0))
        .col_expr(Column::AvailableAt, Expr::value(tx.now))
        .col_expr(Column::Code, Expr::value(None::<String>))
        .col_expr(Column::Error, Expr::value(None::<String>));
    let parts = again.exec(tx.connection()).await?.rows_affected;
    if parts == 0 {
        let detail = "Nothing of this message has failed, so there is nothing to send again.";
        return Err(Problem::new(Code::Conflict, detail));
    }
    summarize(&tx, message).await?;
    let (operation, op, changes) = ("retryDelivery", ChangeOp::Updated, json!({ "parts": parts }));
    let kind = RecordKind::Message;
    audit::record(&tx, audit::Entry { operation, op, kind, id: message.0, changes });
    queue::wake_after(&tx.scope.core, tx.connection());
    tx.commit().await
}

/// After an edit of a channel: tries its waiting parts now, or skips them if the channel no longer sends.
pub async fn on_channel_edited(tx: &Tx, edited: &Edited) -> Result<()> {
    if edited.is_new {
        try_now(tx, edited.channel).await?;
    }
    if !edited.is_open {
        skip_waiting(tx, edited.channel).await?;
    }
    Ok(())
}

/// Makes the waiting parts of a channel due now: the reason for their wait is outdated.
async fn try_now(tx: &Tx, channel: ChannelId) -> Result<()> {
    use deliveries::Column;
    let waiting = tx.scope.update::<deliveries::Entity>().filter(Column::ChannelId.eq(channel));
    let waiting = waiting
        .filter(Column::Status.eq(DeliveryStatus::Pending))
        .filter(Column::AvailableAt.gt(tx.now))
        .col_expr(Column::AvailableAt, Expr::value(tx.now));
    waiting.exec(tx.connection()).await?;
    queue::wake_after(&tx.scope.core, tx.connection());
    Ok(())
}
