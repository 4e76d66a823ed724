//! Database rows for deliveries. Private to this feature.

/// Parts of messages that are sent through channels.
pub mod deliveries {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{DeliveryCode, DeliveryStatus, TextFormat},
        ids::{ChannelId, ConversationId, DeliveryId, MessageId, OrgId},
        time::Timestamp,
    };

    /// A row of `deliveries`.
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
        /// How the text is written while it is the whole message, which becomes parts when it is sent. Null for a part.
        pub draft: Option<TextFormat>,
        /// As the vendor's dialect writes it. Null once it is sent.
        pub text: Option<String>,
        /// Without the dialect's marks.
        pub plain: Option<String>,
        /// The first of the message's files that goes with it, counted from 0.
        pub first_file: i64,
        /// How many go with it.
        pub files: i64,
        pub attempts: i64,
        /// Not to be sent before; while it is being sent, the end of the sender's lease.
        pub available_at: Timestamp,
        /// Why it failed for good.
        pub code: Option<DeliveryCode>,
        /// Why the last attempt failed.
        pub error: Option<String>,
        /// Its id at the vendor.
        pub vendor_id: Option<String>,
        pub created_at: Timestamp,
        pub sent_at: Option<Timestamp>,
    }

    crate::core::store::tenant_entity!();
}
