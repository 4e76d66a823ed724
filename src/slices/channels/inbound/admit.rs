//! What is written for a message that came in: its contact and address, then its conversation, message and turn.

use muster_channels::{Origin, Proof};
use sea_orm::{ActiveModelTrait, ColumnTrait, NotSet, QueryFilter, Set, sea_query::Expr};
use serde::Serialize;

use super::{Arrived, Ignored};
use crate::{
    base::{
        ids::{ContactId, ConversationId, IdentityId, MessageId},
        plain::bounded,
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    slices::{
        agents,
        channels::entity::{channels, contacts, identities},
        conversations::{self, Incoming},
    },
};

/// The longest name of a contact, in bytes.
const NAME_BYTES: usize = 200;

/// Where a message is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Admitted {
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The message.
    pub message_id: MessageId,
}

/// Stores a message. The agent is held first, as everywhere, so what is found is still true when it is written.
pub(super) async fn admit(tx: &mut Tx, arrived: &Arrived) -> Result<std::result::Result<Admitted, Ignored>> {
    let Some(agent) = agents::standing(tx, arrived.agent).await? else { return Ok(Err(Ignored::Inactive)) };
    if !is_open(tx, arrived).await? {
        return Ok(Err(Ignored::Inactive));
    }
    let message = &*arrived.message;
    if let Some(key) = &message.key
        && conversations::is_stored(tx, arrived.channel, key).await?
    {
        return Ok(Err(Ignored::Duplicate));
    }
    let (contact, identity) = known(tx, arrived, &message.origin).await?;
    let incoming = Incoming {
        channel: arrived.channel,
        transport: arrived.transport,
        contact,
        identity,
        author: message.origin.name.clone(),
        key: message.key.clone(),
        vendor_id: message.vendor_id.clone(),
        thread: &message.thread,
        text: message.text.clone(),
        files: &arrived.files,
        is_answered: arrived.is_answered,
        is_automatic: message.is_automatic,
        is_unproven: message.proof == Proof::None,
    };
    let (conversation_id, message_id) = conversations::receive(tx, &agent, incoming).await?;
    Ok(Ok(Admitted { conversation_id, message_id }))
}

/// Notes that something came in, unless the channel was switched off or deleted since the message was judged.
async fn is_open(tx: &Tx, arrived: &Arrived) -> Result<bool> {
    use channels::Column;
    let seen = tx.scope.update::<channels::Entity>().filter(Column::Id.eq(arrived.channel));
    let seen = seen.filter(Column::ArchivedAt.is_null()).filter(Column::IsActive.eq(true));
    let seen = seen.col_expr(Column::LastActivityAt, Expr::value(tx.now)).exec(tx.connection()).await?;
    Ok(seen.rows_affected > 0)
}

/// The contact behind an address, and the address: known, or new.
async fn known(tx: &Tx, arrived: &Arrived, origin: &Origin) -> Result<(ContactId, IdentityId)> {
    let found = tx.scope.find::<identities::Entity>();
    let found = found.filter(identities::Column::Transport.eq(arrived.transport));
    let found = found.filter(identities::Column::OriginId.eq(&origin.id)).one(tx.connection()).await?;
    if let Some(identity) = found {
        let seen = tx.scope.update::<identities::Entity>().filter(identities::Column::Id.eq(identity.id));
        seen.col_expr(identities::Column::LastSeenAt, Expr::value(tx.now)).exec(tx.connection()).await?;
        return Ok((identity.contact_id, identity.id));
    }
    let name = origin.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let contact = new_contact(tx, name.unwrap_or(&origin.id)).await?;
    let identity = new_identity(tx, arrived, origin, contact).await?;
    Ok((contact, identity))
}

async fn new_contact(tx: &Tx, name: &str) -> Result<ContactId> {
    let contact = contacts::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        name: Set(bounded(name, NAME_BYTES)),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    Ok(contact.insert(tx.connection()).await?.id)
}

async fn new_identity(tx: &Tx, arrived: &Arrived, origin: &Origin, contact: ContactId) -> Result<IdentityId> {
    let identity = identities::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        contact_id: Set(contact),
        channel_id: Set(Some(arrived.channel)),
        transport: Set(arrived.transport),
        origin_id: Set(origin.id.clone()),
        display_name: Set(origin.name.as_deref().map(|name| bounded(name, NAME_BYTES))),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        last_seen_at: Set(Some::<Timestamp>(tx.now)),
        ..Default::default()
    };
    Ok(identity.insert(tx.connection()).await?.id)
}
