//! Skipped messages: those that can't be read. The newest [`KEPT`] of a channel are listed, so that people can look for
//! them at the vendor.

use muster_channels::Skipped;

use super::queries::{list_skipped, trim_skipped};
use crate::{
    base::{
        bounds::KEPT,
        enums::{ChangeOp, RecordKind},
        ids::ChannelId,
        problem::Result,
    },
    core::{Event, access::Scope},
};

/// Lists a skipped message. One that is skipped again replaces itself. A stranger can send as many unreadable mails as they like:
/// all but the newest are forgotten.
pub(super) async fn record(scope: &Scope, channel: ChannelId, skipped: Skipped) -> Result<()> {
    let tx = scope.begin().await?;
    let Skipped { vendor_id, subject, reason } = skipped;
    list_skipped(&tx, channel, &vendor_id, (subject, reason.as_str())).await?;
    trim_skipped(&tx, channel, KEPT).await?;
    tx.announce(Event::new(scope.org, ChangeOp::Updated, RecordKind::Channel, channel));
    tx.commit().await
}
