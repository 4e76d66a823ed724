//! Deliveries: what agents, and people in their place, say through channels. Parts are [jobs](crate::core::queue).
//!
//! ```text
//! message ──▶ a row, in its transaction ──commit──▶ its channel's lane ──▶ parts ──▶ each sent once ──▶ settled
//! ```
//!
//! A message is rendered and split when it is sent: its row becomes one for each part, which keeps its text until it is sent.
//! Parts of one conversation are sent in the order of their messages; channels hold up no one but themselves. A row is claimed before the
//! call, so that what a crash leaves SENDING is known to be uncertain.
//!
//! States: PENDING; SENDING while someone has claimed it; SENT; FAILED with a code, until a person sends it again; SKIPPED if
//! its channel is switched off, goes the other way, or was deleted while it waited. A channel that lost its credentials keeps
//! what is PENDING.
//!
//! - `parts.rs`: what a message becomes; `sending.rs`: claims and calls; `verdict.rs`: what an answer means;
//!   `outcome.rs`: writing that down; `retry.rs`: by hand, or sooner; `skipping.rs`: in channels that send no more.

mod entity;
mod outcome;
mod parts;
mod queries;
mod retry;
mod sending;
mod skipping;
mod verdict;

use sea_orm::{ColumnTrait, QueryFilter, QuerySelect};

use self::entity::deliveries;
pub use self::{
    outcome::bounced,
    parts::plan,
    queries::{LEFT, PART_DUE, waiting},
    retry::{channel_edited, retry},
    sending::send_due,
    skipping::skip_closed,
};
use crate::{
    base::{
        ids::{ChannelId, ConversationId},
        problem::Result,
    },
    core::store::Tx,
};

/// The conversation of a part that the vendor knows by this id.
pub async fn conversation_of(tx: &Tx, channel: ChannelId, vendor_id: &str) -> Result<Option<ConversationId>> {
    let ours = tx.scope.find::<deliveries::Entity>().filter(deliveries::Column::ChannelId.eq(channel));
    let ours = ours.filter(deliveries::Column::VendorId.eq(vendor_id)).limit(1);
    let ours = ours.select_only().column(deliveries::Column::ConversationId);
    Ok(ours.into_tuple::<ConversationId>().one(tx.connection()).await?)
}
