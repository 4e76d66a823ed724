//! What an agent is told about a channel in the sessions of its conversations.

use sea_orm::{ColumnTrait, QueryFilter};

use super::{entity::channels, rows::connected};
use crate::{
    base::{ids::ChannelId, problem::Result},
    core::store::Tx,
};

/// What people have written for the agent about this channel, with the channel's name. `None`: nothing, or it was deleted.
pub async fn instructions(tx: &Tx, id: ChannelId) -> Result<Option<String>> {
    let found = connected(&tx.scope).filter(channels::Column::Id.eq(id)).one(tx.connection()).await?;
    Ok(found.and_then(|channel| {
        let text = channel.instructions?;
        let (name, transport) = (channel.name, channel.transport);
        Some(format!(
            "In this conversation people write to you through the channel “{name}” ({transport}). About this channel:\n{text}"
        ))
    }))
}
