//! Rows of conversations, messages, attachments, as the migrations lay them out. Private to this slice.

/// Threads between an agent and a contact. message_count, last_seq and last_message_* are written in the
/// transaction that inserts a message, so that a list reads one row each.
pub mod conversations {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{ConversationStatus, MessageKind, MessageRole, Transport},
        ids::{AgentId, ChannelId, ContactId, ConversationId, OrgId},
        time::Timestamp,
    };

    /// A row of `conversations`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "conversations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ConversationId,
        /// Eight Crockford base32 characters in upper case.
        pub r#ref: String,
        pub title: Option<String>,
        pub status: ConversationStatus,
        pub agent_id: AgentId,
        pub contact_id: Option<ContactId>,
        pub channel_id: Option<ChannelId>,
        pub transport: Transport,
        /// The model last observed.
        pub model: Option<String>,
        pub message_count: i64,
        pub last_seq: i64,
        pub last_message_seq: Option<i64>,
        pub last_message_role: Option<MessageRole>,
        pub last_message_kind: Option<MessageKind>,
        pub last_message_preview: Option<String>,
        pub last_message_created_at: Option<Timestamp>,
        pub context_tokens: Option<i64>,
        pub opened_at: Timestamp,
        pub last_activity_at: Timestamp,
        pub resolved_at: Option<Timestamp>,
        pub archived_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// What was said. The unique index on seq is what pages of messages walk, whatever the length of the
/// history.
pub mod messages {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{DeliveryStatus, MessageKind, MessageRole, MessageStatus},
        ids::{ChannelId, ConversationId, IdentityId, MessageId, OrgId, UserId},
        time::Timestamp,
    };

    /// A row of `messages`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "messages")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: MessageId,
        pub conversation_id: ConversationId,
        /// Counts from 1 inside the conversation.
        pub seq: i64,
        pub role: MessageRole,
        pub kind: MessageKind,
        pub via_channel_id: Option<ChannelId>,
        pub via_identity_id: Option<IdentityId>,
        pub author_user_id: Option<UserId>,
        pub author_name: Option<String>,
        pub status: MessageStatus,
        /// Null: no leg to the outside.
        pub delivery_status: Option<DeliveryStatus>,
        pub delivery_attempts: i64,
        pub delivery_error: Option<String>,
        pub delivery_sent_at: Option<Timestamp>,
        /// By kind: {text, format}, {tool, call_id, input}, …
        pub content: Json,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// Files sent along with messages; the bytes are in attachment_blobs.
pub mod attachments {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{AgentId, AttachmentId, MessageId, OrgId, UserId},
        time::Timestamp,
    };

    /// A row of `attachments`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "attachments")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AttachmentId,
        /// Null from upload until the message is posted.
        pub message_id: Option<MessageId>,
        pub filename: String,
        pub mime_type: String,
        pub size_bytes: i64,
        pub sha256: Vec<u8>,
        pub uploaded_by_agent_id: Option<AgentId>,
        pub uploaded_by_user_id: Option<UserId>,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// The bytes of attachments, apart so that no list ever reads them.
pub mod attachment_blobs {
    use sea_orm::entity::prelude::*;

    use crate::base::ids::{AttachmentId, OrgId};

    /// A row of `attachment_blobs`.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "attachment_blobs")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub attachment_id: AttachmentId,
        pub content: Vec<u8>,
    }

    crate::core::store::tenant_entity!();
}
