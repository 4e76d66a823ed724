//! Deliveries: sends the messages of agents, and of people writing for them, through channels, and performs agents'
//! actions there. Parts are [jobs](crate::core::queue), as are actions.
//!
//! ```text
//! message ──▶ a row, in its transaction ──commit──▶ its channel's lane ──▶ parts ──▶ each sent once ──▶ settled
//! ```
//!
//! A message is rendered and split when it is sent: its row becomes one for each part, which keeps its text until it is
//! sent. Parts of one conversation are sent in the order of their messages; channels don't delay each other. A row is
//! claimed before the call, so that a row left SENDING by a crash is known to be uncertain.
//!
//! States: PENDING; SENDING while a sender has claimed it; SENT; FAILED with a code, until a person sends it again;
//! SKIPPED if its channel was switched off, made inbound, or deleted while it waited. A channel that lost its
//! credentials keeps its PENDING parts.
//!
//! - `parts.rs`: splits messages; `sending.rs`: claims and sends parts; `attempt_result.rs`: interprets the vendor's
//!   answer; `outcome.rs`: stores the result; `retry.rs`: sends again, by hand or after an edit of the channel;
//!   `skipping.rs`: skips parts in channels that no longer send; `testing.rs`: sends a channel's test message, which is no
//!   delivery.

mod attempt_result;
mod entity;
mod outcome;
mod parts;
mod queries;
mod retry;
mod sending;
mod skipping;
mod testing;

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};

use self::entity::deliveries;
pub use self::{
    outcome::record_bounce,
    parts::plan,
    queries::{LEFT, PART_DUE, waiting},
    retry::{on_channel_edited, retry},
    sending::send_due,
    skipping::skip_closed,
    testing::test_channel,
};
use crate::{
    base::{
        ids::{ChannelId, ConversationId},
        problem::Result,
    },
    core::store::Tx,
};

/// The conversation of the part with this id at the vendor.
pub async fn conversation_of(tx: &Tx, channel: ChannelId, vendor_id: &str) -> Result<Option<ConversationId>> {
    let ours = tx.scope.find::<deliveries::Entity>().filter(deliveries::Column::ChannelId.eq(channel));
    let ours = ours.filter(deliveries::Column::VendorId.eq(vendor_id)).limit(1);
    let ours = ours.select_only().column(deliveries::Column::ConversationId);
    Ok(ours.into_tuple::<ConversationId>().one(tx.connection()).await?)
}
