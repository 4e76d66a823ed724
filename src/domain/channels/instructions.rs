//! The instructions about a channel that an agent gets in the sessions of its conversations.

use sea_orm::{ColumnTrait, QueryFilter};

use super::{entity::channels, rows::connected};
use crate::{
    base::{ids::ChannelId, problem::Result},
    core::store::Tx,
};

/// The channel's instructions for the agent, with the channel's name. `None`: it has none, or it was deleted.
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
