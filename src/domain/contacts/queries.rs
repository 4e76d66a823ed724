//! SQL of contacts.

use sea_orm::Value;

use crate::{
    base::{
        enums::Transport,
        ids::{ChannelId, ContactId, IdentityId},
        problem::Result,
    },
    core::store::{
        Tx,
        sql::{RunSql as _, row, sql},
    },
};

/// SQL: whether a contact has a channel that is not deleted, or never had an address. A contact first seen on a deleted
/// channel may write through another one.
macro_rules! is_reached {
    ($org:literal, $contact:literal) => {
        concat!(
            "(NOT EXISTS (SELECT 1 FROM identities i WHERE i.organization_id = ",
            $org,
            " AND i.contact_id = ",
            $contact,
            ") OR EXISTS (SELECT 1 FROM identities i WHERE i.organization_id = ",
            $org,
            " AND i.contact_id = ",
            $contact,
            " AND NOT EXISTS (SELECT 1 FROM channels c WHERE c.organization_id = ",
            $org,
            " AND c.id = i.channel_id AND c.archived_at IS NOT NULL)) \
             OR EXISTS (SELECT 1 FROM conversations v WHERE v.organization_id = ",
            $org,
            " AND v.contact_id = ",
            $contact,
            " AND v.channel_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM channels c WHERE c.organization_id = ",
            $org,
            " AND c.id = v.channel_id AND c.archived_at IS NOT NULL)))"
        )
    };
}

pub(crate) use is_reached;

row! {
    /// The contact behind an origin.
    pub(super) struct Author {
        origin_id: String,
        contact_id: ContactId,
        id: IdentityId,
    }
}

/// Marks the identities of these origins as seen now, and returns them: those of any channel of the vendor, but those
/// of a webhook, which makes up its ids, only of this channel.
pub(super) async fn see_authors(
    tx: &Tx,
    transport: Transport,
    channel: ChannelId,
    origins: &[String],
) -> Result<Vec<Author>> {
    const SEEN: &str =
        "UPDATE identities SET last_seen_at = $4 WHERE organization_id = $org AND origin_id = ANY($2) ";
    const AUTHOR: &str = " RETURNING origin_id, contact_id, id";
    // Each repeats the condition of its partial index, which would not be used otherwise.
    let (sql, within): (_, Value) = match transport {
        Transport::Webhook => {
            (sql!(SEEN, "AND transport = 'WEBHOOK' AND channel_id = $3", AUTHOR), channel.into())
        }
        vendor => (sql!(SEEN, "AND transport <> 'WEBHOOK' AND transport = $3", AUTHOR), vendor.into()),
    };
    tx.all(sql, [tx.scope.core.db.keys(origins), within, tx.now.into()]).await
}
