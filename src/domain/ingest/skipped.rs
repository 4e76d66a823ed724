//! Skipped messages, which could not be read. Each channel lists its newest [`HISTORY`], so that people can look for them
//! at the vendor.

use muster_channels::Skipped;

use super::queries::{list_skipped, trim_skipped};
use crate::{
    base::{
        bounds::HISTORY,
        enums::{ChangeOp, RecordKind},
        ids::ChannelId,
        problem::Result,
    },
    core::{Event, access::Scope},
};

/// Lists a skipped message, replacing its previous entry. Keeps only the newest, because a stranger can send any number
/// of unreadable mails.
pub(super) async fn record(scope: &Scope, channel: ChannelId, skipped: Skipped) -> Result<()> {
    let tx = scope.begin().await?;
    let Skipped { vendor_id, subject, reason } = skipped;
    list_skipped(&tx, channel, &vendor_id, (subject, reason.as_str())).await?;
    trim_skipped(&tx, channel, HISTORY).await?;
    tx.announce(Event::new(scope.org, ChangeOp::Updated, RecordKind::Channel, channel));
    tx.commit().await
}
