//! What comes in beside messages: a message of ours that came back, a chat with a new id.

use muster_channels::Event;

use crate::{
    base::{ids::ChannelId, problem::Result},
    core::store::Tx,
    domain::{channels, conversations, deliveries},
};

/// Writes it down. Messages are stored elsewhere; taps were heard before.
pub(super) async fn note(tx: &Tx, channel: ChannelId, event: &Event) -> Result<()> {
    match event {
        Event::Bounced(bounce) => {
            deliveries::bounced(tx, channel, &bounce.vendor_id, bounce.cause.as_str()).await
        }
        Event::Moved { from, to } => {
            channels::move_origin(tx, channel, from, to).await?;
            conversations::move_targets(tx, channel, from, to).await
        }
        Event::Message(_) | Event::Pressed(_) => Ok(()),
    }
}
