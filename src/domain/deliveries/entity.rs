//! Database rows for deliveries. Private to this feature.

/// Parts of messages that are sent through channels, and actions.
pub mod deliveries {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{DeliveryCode, DeliveryStatus, TextFormat},
        ids::{ChannelId, ConversationId, DeliveryId, MessageId, OrgId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "deliveries")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: DeliveryId,
        pub channel_id: ChannelId,
        pub conversation_id: ConversationId,
        pub message_id: MessageId,
        /// Counts from 1 within the message.
        pub part: i64,
        pub status: DeliveryStatus,
        /// The format of `text` while the row is a whole message, which is split into parts when it is sent. Null for a
        /// part.
        pub draft: Option<TextFormat>,
        /// The action that the row performs at the vendor, instead of sending a message.
        pub action: Option<String>,
        /// In the vendor's dialect; the arguments of an action. Null once it is sent.
        pub text: Option<String>,
        /// The text without the dialect's markup.
        pub plain: Option<String>,
        /// The index of the message's first file in this part, from 0.
        pub first_file: i64,
        /// The number of files in this part.
        pub files: i64,
        pub attempts: i64,
        /// The earliest time of the next attempt; while it is being sent, the end of the sender's lease.
        pub available_at: Timestamp,
        /// Why it failed permanently.
        pub code: Option<DeliveryCode>,
        /// Why the last attempt failed.
        pub error: Option<String>,
        /// The vendor's id of the sent message.
        pub vendor_id: Option<String>,
        pub created_at: Timestamp,
        pub sent_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!();
}
