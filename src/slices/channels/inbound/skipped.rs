//! Skipped messages: those that can't be read. The newest [`KEPT`] of a channel are listed, so that people can look for
//! them at the vendor.

use muster_channels::Skipped;
use sea_orm::Value;

use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ChannelId,
        problem::Result,
    },
    core::{Event, access::Scope},
};

/// How many are listed: a stranger can send as many unreadable mails as they like.
const KEPT: usize = 100;

/// Lists a skipped message. One that is skipped again replaces itself.
pub(super) async fn record(scope: &Scope, channel: ChannelId, skipped: Skipped) -> Result<()> {
    let tx = scope.begin().await?;
    let sql = "INSERT INTO channel_skips (organization_id, channel_id, vendor_id, subject, reason, skipped_at) \
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (organization_id, channel_id, vendor_id) \
               DO UPDATE SET subject = excluded.subject, reason = excluded.reason, skipped_at = excluded.skipped_at";
    let Skipped { vendor_id, subject, reason } = skipped;
    let key: [Value; 2] = [scope.org.into(), channel.into()];
    let row: [Value; 4] = [vendor_id.into(), subject.into(), reason.as_str().into(), tx.now.into()];
    tx.run(sql, key.iter().cloned().chain(row).collect()).await?;
    let sql = format!(
        "DELETE FROM channel_skips WHERE organization_id = $1 AND channel_id = $2 AND vendor_id IN \
         (SELECT vendor_id FROM channel_skips WHERE organization_id = $1 AND channel_id = $2 \
         ORDER BY skipped_at DESC, vendor_id DESC LIMIT 1000 OFFSET {KEPT})"
    );
    tx.run(&sql, key.to_vec()).await?;
    tx.announce(Event::new(scope.org, ChangeOp::Updated, RecordKind::Channel, channel));
    tx.commit().await
}
