//! Database rows for conversations, messages, and attachments. Private to this feature.

/// Conversations between an agent and a contact. message_count, last_seq, and last_message_* are written in the
/// transaction that inserts a message, so that a list reads only one row per conversation.
pub mod conversations {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{ConversationStatus, MessageKind, MessageRole, Transport},
        ids::{AgentId, ChannelId, ContactId, ConversationId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "conversations")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: ConversationId,
        /// Eight characters of Crockford's base32, in upper case.
        pub r#ref: String,
        pub title: Option<String>,
        /// Written with the title.
        pub title_folded: Option<String>,
        /// Whether the title comes from a message.
        pub titled_by_message: bool,
        /// The person who started it in the panel.
        pub created_by: Option<UserId>,
        pub status: ConversationStatus,
        pub agent_id: AgentId,
        pub contact_id: Option<ContactId>,
        pub channel_id: Option<ChannelId>,
        pub transport: Transport,
        /// The last model used in it.
        pub model: Option<String>,
        pub message_count: i64,
        pub last_seq: i64,
        /// The bytes of its messages and readers.
        pub stored_bytes: i64,
        pub last_message_seq: Option<i64>,
        pub last_message_role: Option<MessageRole>,
        pub last_message_kind: Option<MessageKind>,
        pub last_message_preview: Option<String>,
        pub last_message_created_at: Option<Timestamp>,
        pub context_tokens: Option<i64>,
        /// Identifies it within the channel.
        pub thread_key: Option<String>,
        /// The address for answers, as the transport writes it.
        pub target: Option<String>,
        /// The recipients of its mails.
        pub readers: Json,
        /// The agent's name for its session.
        pub session: Option<String>,
        /// The person who answers instead of the agent.
        pub taken_over_by: Option<UserId>,
        pub taken_over_at: Option<Timestamp>,
        /// When that person took over or last wrote.
        pub last_word_at: Option<Timestamp>,
        pub opened_at: Timestamp,
        pub last_activity_at: Timestamp,
        pub resolved_at: Option<Timestamp>,
        pub archived_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    crate::core::store::tenant_entity!(title_folded = folding::name(title));
}

/// How far people have read. Only ever moved forward.
pub mod conversation_reads {
    use sea_orm::entity::prelude::*;

    use crate::base::ids::{ConversationId, OrgId, UserId};

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "conversation_reads")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub conversation_id: ConversationId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub user_id: UserId,
        pub seq: i64,
    }

    crate::core::store::tenant_entity!();
}

/// Messages. Paging walks the unique index on seq, however long the history is.
pub mod messages {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        enums::{DeliveryStatus, MessageKind, MessageRole, MessageStatus},
        ids::{ChannelId, ConversationId, IdentityId, MessageId, OrgId, TurnId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "messages")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: MessageId,
        pub conversation_id: ConversationId,
        /// Counts from 1 within the conversation.
        pub seq: i64,
        /// The turn it causes or belongs to.
        pub turn_id: Option<TurnId>,
        /// The host's key.
        pub host_key: Option<String>,
        pub role: MessageRole,
        pub kind: MessageKind,
        pub via_channel_id: Option<ChannelId>,
        pub via_identity_id: Option<IdentityId>,
        /// Unique in its channel.
        pub dedupe_key: Option<String>,
        /// For an incoming message.
        pub vendor_id: Option<String>,
        /// The vendor's id of the album that it is a part of. Later parts join its first message.
        pub album: Option<String>,
        /// The keys of the parts that joined.
        pub album_keys: Json,
        /// The sender of an incoming message is not proven.
        pub unproven: bool,
        pub author_user_id: Option<UserId>,
        pub author_name: Option<String>,
        pub status: MessageStatus,
        /// Null if it isn't sent through a channel.
        pub delivery_status: Option<DeliveryStatus>,
        pub delivery_attempts: i64,
        pub delivery_error: Option<String>,
        pub delivery_sent_at: Option<Timestamp>,
        /// The shape depends on the kind: {text, format}, {tool, call_id, input}, …
        pub content: Json,
        pub created_at: Timestamp,
    }

    crate::core::store::tenant_entity!();
}

/// Files attached to messages. Their bytes are in attachment_blobs.
pub mod attachments {
    use sea_orm::entity::prelude::*;

    use crate::base::{
        ids::{AgentId, AttachmentId, MessageId, OrgId, UserId},
        time::Timestamp,
    };

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "attachments")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub organization_id: OrgId,
        #[sea_orm(primary_key)]
        pub id: AttachmentId,
        /// Null from the upload until the message is posted.
        pub message_id: Option<MessageId>,
        /// Its position among the files of its message.
        pub position: i64,
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

/// The bytes of attachments, kept apart so that no list ever reads them.
pub mod attachment_blobs {
    use sea_orm::entity::prelude::*;

    use crate::base::ids::{AttachmentId, OrgId};

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
