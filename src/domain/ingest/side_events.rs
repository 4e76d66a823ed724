//! Events other than messages: a bounced message of ours, a chat with a new id.

use muster_channels::Event;

use crate::{
    base::{ids::ChannelId, problem::Result},
    core::store::Tx,
    domain::{channels, conversations, deliveries},
};

/// Records an event. Messages are stored in `messages.rs`, and `chat_replies.rs` has already handled taps.
pub(super) async fn record_side_event(tx: &Tx, channel: ChannelId, event: &Event) -> Result<()> {
    match event {
        Event::Bounced(bounce) => {
            deliveries::record_bounce(tx, channel, &bounce.vendor_id, bounce.cause.as_str()).await
        }
        Event::Moved { from, to } => {
            channels::move_origin(tx, channel, from, to).await?;
            conversations::move_targets(tx, channel, from, to).await
        }
        Event::Message(_) | Event::Pressed(_) => Ok(()),
    }
}
