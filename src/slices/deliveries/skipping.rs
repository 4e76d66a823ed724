//! What waits in channels that send no more. In a deleted one, what somebody was sending who died has failed: nobody knows
//! whether it was sent.

use std::{collections::BTreeSet, sync::Arc};

use sea_orm::{
    ColumnTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{CaseStatement, Expr},
};

use super::{entity::deliveries, settling::summarize};
use crate::{
    base::{
        enums::{DeliveryCode, DeliveryStatus},
        ids::{ChannelId, DeliveryId, MessageId},
        problem::Result,
    },
    core::{Core, access::Scope, store::Tx},
};

/// How many parts are skipped in one transaction.
const PORTION: u64 = 100;

/// Skips what waits in a channel that a person has closed. When it is open again, people can send it by hand, so its text stays.
///
/// # Errors
/// The database is unreachable.
pub async fn skip_waiting(tx: &Tx, channel: ChannelId) -> Result<()> {
    let sql = "UPDATE deliveries SET status = 'SKIPPED', error = 'The channel was switched off, or does not send any more.' \
               WHERE organization_id = $1 AND channel_id = $2 AND status = 'PENDING' RETURNING message_id";
    let mut messages = BTreeSet::new();
    for row in tx.rows(sql, vec![tx.scope.org.into(), channel.into()]).await? {
        messages.insert(row.try_get_by::<i64, _>(0)?);
    }
    for message in messages {
        summarize(tx, MessageId(message)).await?;
    }
    Ok(())
}

/// Skips what waits in deleted channels. Returns how many parts that were.
///
/// # Errors
/// The database is unreachable; what was skipped stays skipped.
pub async fn skip_deleted(core: &Arc<Core>) -> Result<u64> {
    let sql = "SELECT d.organization_id, d.channel_id FROM deliveries d \
               JOIN channels c ON c.organization_id = d.organization_id AND c.id = d.channel_id \
               WHERE c.archived_at IS NOT NULL AND d.status IN ('PENDING', 'SENDING') \
               AND (d.status = 'PENDING' OR d.available_at <= $1) LIMIT 1";
    let mut skipped = 0;
    while !core.tasks.stopping.is_cancelled() {
        let Some(row) = core.db.one(sql.to_owned(), vec![core.clock.now().into()]).await? else { break };
        let scope = Scope::system(core, row.try_get_by(0)?);
        let portion = skip(&scope, row.try_get_by(1)?).await?;
        if portion == 0 {
            break;
        }
        skipped += portion;
    }
    Ok(skipped)
}

/// Skips a portion of what waits in a channel. Nobody can send it again, so its text goes.
async fn skip(scope: &Scope, channel: ChannelId) -> Result<u64> {
    use deliveries::Column;
    let tx = scope.begin().await?;
    let is_left = Column::Status
        .eq(DeliveryStatus::Pending)
        .or(Column::Status.eq(DeliveryStatus::Sending).and(Column::AvailableAt.lte(tx.now)));
    let left = tx.scope.find::<deliveries::Entity>().filter(Column::ChannelId.eq(channel));
    let left = left.filter(is_left.clone()).order_by_asc(Column::Id).limit(PORTION);
    let left = left.select_only().columns([Column::Id, Column::MessageId]);
    let parts = left.into_tuple::<(DeliveryId, MessageId)>().all(tx.connection()).await?;
    let (ids, messages): (Vec<_>, BTreeSet<_>) = parts.iter().map(|(id, message)| (id.0, message.0)).unzip();
    let ended = |pending: Option<&str>, sending: &str| {
        CaseStatement::new().case(Column::Status.eq(DeliveryStatus::Pending), pending).finally(sending)
    };
    let skipped = tx.scope.update::<deliveries::Entity>().filter(Column::Id.is_in(ids)).filter(is_left);
    let skipped = skipped
        .col_expr(
            Column::Status,
            ended(Some(DeliveryStatus::Skipped.as_str()), DeliveryStatus::Failed.as_str()).into(),
        )
        .col_expr(Column::Code, ended(None, DeliveryCode::UnknownOutcome.as_str()).into())
        .col_expr(Column::Error, Expr::value("The channel was deleted."))
        .col_expr(Column::Text, Expr::value(None::<String>))
        .col_expr(Column::Plain, Expr::value(None::<String>))
        .exec(tx.connection())
        .await?
        .rows_affected;
    for message in messages {
        summarize(&tx, MessageId(message)).await?;
    }
    tx.commit().await?;
    Ok(skipped)
}
