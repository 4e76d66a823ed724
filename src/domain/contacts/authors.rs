//! Authors of incoming messages: known contacts, and new ones.

use std::collections::HashMap;

use muster_channels::Origin;
use sea_orm::{ActiveModelTrait, NotSet, Set};

use super::{
    entity::{contacts, identities},
    queries::see_authors,
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, RecordKind, Transport},
        ids::{ChannelId, ContactId, IdentityId},
        plain::truncated,
        problem::Result,
        time::Timestamp,
    },
    core::{Event, store::Tx},
};

/// Returns the known contacts behind these origins, and marks them as seen now. An origin is known across all channels
/// of a vendor; that of a webhook, which makes up its ids, only in its own channel.
pub async fn find_seen(
    tx: &Tx,
    (channel, transport): (ChannelId, Transport),
    origins: &[String],
) -> Result<HashMap<String, (ContactId, IdentityId)>> {
    let authors = see_authors(tx, transport, channel, origins).await?;
    Ok(authors.into_iter().map(|author| (author.origin_id, (author.contact_id, author.id))).collect())
}

/// Creates a contact with this address.
///
/// # Errors
/// `CONFLICT`: another transaction has created it.
pub async fn create_contact(
    tx: &Tx,
    place: (ChannelId, Transport),
    origin: &Origin,
) -> Result<(ContactId, IdentityId)> {
    let name = origin.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let contact = insert_contact(tx, name.unwrap_or(&origin.id)).await?;
    let identity = insert_identity(tx, place, origin, contact).await?;
    Ok((contact, identity))
}

async fn insert_contact(tx: &Tx, name: &str) -> Result<ContactId> {
    let contact = contacts::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        name: Set(truncated(name, bounds::NAME)),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    let id = contact.insert(tx.connection()).await?.id;
    tx.announce(Event::new(tx.scope.org, ChangeOp::Created, RecordKind::Contact, id));
    Ok(id)
}

async fn insert_identity(
    tx: &Tx,
    (channel, transport): (ChannelId, Transport),
    origin: &Origin,
    contact: ContactId,
) -> Result<IdentityId> {
    let identity = identities::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        contact_id: Set(contact),
        channel_id: Set(Some(channel)),
        transport: Set(transport),
        origin_id: Set(origin.id.clone()),
        display_name: Set(origin.name.as_deref().map(|name| truncated(name, bounds::NAME))),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        last_seen_at: Set(Some::<Timestamp>(tx.now)),
        ..Default::default()
    };
    Ok(identity.insert(tx.connection()).await?.id)
}
