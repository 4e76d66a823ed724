//! Conversations, messages and attachments as records.

use std::sync::LazyLock;

use async_graphql::Json;

use crate::{
    base::{
        enums::{ConversationStatus, DeliveryStatus, MessageKind, MessageRole, MessageStatus, Transport},
        ids::{
            AgentId, AttachmentId, ChannelId, ContactId, ConversationId, IdentityId, MessageId, OrgId, UserId,
        },
        permission::Permission,
        time::Timestamp,
    },
    read::{Many, Record, Spec},
    slices::{
        agents::graphql::{Agent, AgentSummary},
        channels::{contacts::graphql::Contact, graphql::Channel},
    },
};

/// The name of the conversation's contact: `t` is the conversation.
const CONTACT_NAME: &str =
    "(SELECT n.name FROM contacts n WHERE n.organization_id = t.organization_id AND n.id = t.contact_id)";
/// The name of the conversation's channel: `t` is the conversation.
const CHANNEL_NAME: &str =
    "(SELECT n.name FROM channels n WHERE n.organization_id = t.organization_id AND n.id = t.channel_id)";
const PENDING_APPROVALS: &str = "(SELECT COUNT(*) FROM approvals p WHERE p.organization_id = t.organization_id AND p.conversation_id = t.id AND p.status = 'PENDING' AND (p.expires_at IS NULL OR p.expires_at > :now))";

/// A thread between an agent and somebody.
pub struct Conversation;

impl Record for Conversation {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Conversation", "conversations t", "A thread between an agent and somebody.")
                .permission(Permission::AgentOutputView)
                .viewer_can(|scope| scope.can(&["conversation", "agent"]))
                .column::<ConversationId>("id", "Identifies the conversation.")
                .column::<OrgId>("organization_id", "The organization that the conversation belongs to.")
                .column::<String>("ref", "An opaque reference, for people: eight characters.")
                .column::<Option<String>>("title", "What it is about.")
                .column::<ConversationStatus>("status", "The lifecycle state.")
                .column::<AgentId>("agent_id", "The agent.")
                .one::<AgentSummary>("agent", "t.agent_id", "The agent in a few words.")
                .column::<Option<ContactId>>("contact_id", "Who talks to the agent from outside.")
                .sql::<Option<String>>(
                    "contact_name",
                    CONTACT_NAME,
                    "Their name: whoever may read the conversation may read it.",
                )
                .column::<Option<ChannelId>>("channel_id", "The channel that it goes through.")
                .sql::<Option<String>>("channel_name", CHANNEL_NAME, "The channel's name.")
                .column::<Transport>("transport", "The channel's transport; INTERNAL for the panel.")
                .column::<Option<String>>("model", "The model last observed.")
                .column::<i64>("message_count", "How many messages it has.")
                .column::<i64>("last_seq", "The seq of its last message; 0 if there is none.")
                .embedded::<LastMessage>(
                    "last_message",
                    "(t.last_message_seq IS NOT NULL)",
                    "Its last message in a few words.",
                )
                .sql::<i64>("pending_approvals", PENDING_APPROVALS, "How many decisions its agent waits for.")
                .column::<Option<i64>>("context_tokens", "How many tokens its context holds.")
                .column::<Timestamp>("opened_at", "When it began.")
                .column::<Timestamp>("last_activity_at", "When something last happened in it.")
                .column::<Option<Timestamp>>("resolved_at", "When it was settled.")
                .column::<Option<Timestamp>>("archived_at", "When it was put away.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When its record last changed.")
                .one::<Agent>("agent_details", "t.agent_id", "The agent's whole record.")
                .one::<Channel>("channel", "t.channel_id", "The channel that it goes through.")
                .one::<Contact>("contact", "t.contact_id", "Who talks to the agent from outside.")
        });
        &SPEC
    }
}

const PREVIEW: &str = "How it begins; null for a caller who may not read messages (agent.output.view).";

/// The last message of a conversation, as its list shows it.
pub struct LastMessage;

impl Record for LastMessage {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("LastMessage", "conversations t", "The last message of a conversation.")
                .sql::<i64>("seq", "t.last_message_seq", "Its place in the conversation.")
                .sql::<MessageRole>("role", "t.last_message_role", "Who spoke.")
                .sql::<MessageKind>("kind", "t.last_message_kind", "What it holds.")
                .sql::<Option<String>>("preview", "t.last_message_preview", PREVIEW)
                .needs(Permission::AgentOutputView)
                .sql::<Timestamp>("created_at", "t.last_message_created_at", "When it was written.")
        });
        &SPEC
    }
}

/// Something said in a conversation.
pub struct Message;

impl Record for Message {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Message", "messages t", "Something said in a conversation.")
                .permission(Permission::AgentOutputView)
                .column::<MessageId>("id", "Identifies the message.")
                .column::<ConversationId>("conversation_id", "The conversation that it belongs to.")
                .column::<i64>("seq", "Its place in the conversation, counted from 1: the cursor of pages.")
                .column::<MessageRole>("role", "Who speaks.")
                .column::<MessageKind>("kind", "What it holds.")
                .column::<Option<ChannelId>>("via_channel_id", "The channel that it came or went through.")
                .column::<Option<IdentityId>>("via_identity_id", "The address on that channel.")
                .column::<Option<UserId>>("author_user_id", "The member who wrote it.")
                .column::<Option<String>>("author_name", "The author's name, as it is shown.")
                .column::<MessageStatus>("status", "Whether it reached the agent or the conversation.")
                .embedded::<MessageDelivery>(
                    "delivery",
                    "(t.delivery_status IS NOT NULL)",
                    "Its way to the outside; null where it has none.",
                )
                .column::<Json<serde_json::Value>>("content", CONTENT)
                .many::<Attachment>(
                    "attachments",
                    Many { by: "t.message_id", ..Many::default() },
                    "The files that came along.",
                )
                .column::<Timestamp>("created_at", "When it was written.")
                .one::<Conversation>("conversation", "t.conversation_id", "The conversation.")
        });
        &SPEC
    }
}

const CONTENT: &str = "What was said, by kind. TEXT: {text, format: markdown or plain}; THINKING: {text}; TOOL_CALL: {tool, call_id, input}; TOOL_RESULT: {call_id, output, is_error}; FILE: {caption}; VOICE: {transcript}; APPROVAL: {approval_id}; EVENT: {event, text}; ERROR: {code, text}.";

/// A message's way to the outside.
pub struct MessageDelivery;

impl Record for MessageDelivery {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("MessageDelivery", "messages t", "A message's way to the outside.")
                .sql::<DeliveryStatus>("status", "t.delivery_status", "How far it got.")
                .sql::<i64>("attempts", "t.delivery_attempts", "How often it was tried.")
                .sql::<Option<String>>("error", "t.delivery_error", "Why the last try failed.")
                .sql::<Option<Timestamp>>("sent_at", "t.delivery_sent_at", "When the vendor took it.")
        });
        &SPEC
    }
}

/// A file sent along with a message.
pub struct Attachment;

impl Record for Attachment {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Attachment", "attachments t", "A file sent along with a message.")
                .permission(Permission::AgentOutputView)
                .column::<AttachmentId>("id", "Identifies the attachment.")
                .column::<String>("filename", "The file's name.")
                .column::<String>("mime_type", "The file's type, as its sender named it.")
                .column::<i64>("size_bytes", "How long it is, in bytes.")
                .sql::<String>(
                    "url",
                    "'/v1/org/' || t.organization_id || '/attachment/' || t.id",
                    "Where it is downloaded: a path relative to the base.",
                )
                .column::<Option<AgentId>>("uploaded_by_agent_id", "The agent that sent it, if one did.")
        });
        &SPEC
    }
}
