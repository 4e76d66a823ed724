//! The records of conversations, messages, and attachments.

use std::sync::LazyLock;

use async_graphql::Json;

use crate::{
    base::{
        enums::{
            ConversationStatus, DeliveryCode, DeliveryStatus, MessageKind, MessageRole, MessageStatus,
            RecordKind, Transport,
        },
        ids::{
            AgentId, AttachmentId, ChannelId, ContactId, ConversationId, IdentityId, MessageId, OrgId,
            TurnId, UserId,
        },
        permission::Permission,
        time::Timestamp,
    },
    domain::conversations::{READ_SEQ, WATCHING, unread_sql},
    graphql::{
        agents::{Agent, AgentSummary},
        channels::Channel,
        contacts::Contact,
        turns::Turn,
    },
    read::{Many, Record, Spec},
};

/// SQL for the name of the conversation's contact. `t` is the conversation.
const CONTACT_NAME: &str =
    "(SELECT n.name FROM contacts n WHERE n.organization_id = t.organization_id AND n.id = t.contact_id)";
/// SQL for the name of the conversation's channel. `t` is the conversation.
const CHANNEL_NAME: &str =
    "(SELECT n.name FROM channels n WHERE n.organization_id = t.organization_id AND n.id = t.channel_id)";
/// SQL for the name of the person who has taken the conversation over.
const HOLDER_NAME: &str = "(SELECT u.name FROM users u WHERE u.id = t.taken_over_by)";
const PENDING_APPROVALS: &str = "(SELECT COUNT(*) FROM approvals p WHERE p.organization_id = t.organization_id AND p.conversation_id = t.id AND p.status = 'PENDING' AND (p.expires_at IS NULL OR p.expires_at > :now))";

pub struct Conversation;

impl Record for Conversation {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Conversation", "conversations t", "A conversation between an agent and a person.")
                .permission(Permission::AgentOutputView)
                .viewer_can(|scope| scope.permissions_json(&["conversation", "agent"]))
                .column::<ConversationId>("id", "Identifies the conversation.")
                .column::<OrgId>("organization_id", "The organization that the conversation belongs to.")
                .revision(RecordKind::Conversation)
                .column::<String>("ref", "A short code for people: eight characters.")
                .column::<Option<String>>("title", "The subject.")
                .column::<ConversationStatus>("status", "The lifecycle state.")
                .column::<AgentId>("agent_id", "The agent.")
                .one::<AgentSummary>("agent", "t.agent_id", "A short form of the agent.")
                .column::<Option<ContactId>>("contact_id", "The contact who is talking to the agent.")
                .sql::<Option<String>>(
                    "contact_name",
                    CONTACT_NAME,
                    "The contact's name. Visible to anyone who may read the conversation.",
                )
                .column::<Option<ChannelId>>("channel_id", "The channel it uses.")
                .sql::<Option<String>>("channel_name", CHANNEL_NAME, "The channel's name.")
                .column::<Transport>("transport", "The channel's transport. INTERNAL is the panel.")
                .column::<Option<String>>("model", "The model last seen in it.")
                .column::<i64>("message_count", "The number of messages.")
                .column::<i64>("last_seq", "The seq of the last message, or 0 if there are no messages.")
                .embedded::<LastMessage>(
                    "last_message",
                    "(t.last_message_seq IS NOT NULL)",
                    "A summary of the last message.",
                )
                .sql::<i64>(
                    "pending_approvals",
                    PENDING_APPROVALS,
                    "The number of decisions its agent is waiting for.",
                )
                .sql::<Option<i64>>(
                    "read_seq",
                    READ_SEQ,
                    "The seq up to which the caller has read it. Null for a service token.",
                )
                .sql::<Option<i64>>(
                    "unread",
                    unread_sql(),
                    "The number of messages that the caller has not read, without thoughts and tool calls: at most 1000, since the caller joined and of the last 30 days. Null for a service token.",
                )
                .sql::<Option<bool>>(
                    "watching",
                    WATCHING,
                    "Whether the caller is notified of approvals in it. Null for a service token.",
                )
                .column::<Option<i64>>("context_tokens", "The number of tokens in its context.")
                .column::<Option<UserId>>("taken_over_by", "The person who answers instead of the agent.")
                .sql::<Option<String>>(
                    "taken_over_by_name",
                    HOLDER_NAME,
                    "The name of the person who answers instead of the agent.",
                )
                .column::<Option<Timestamp>>("taken_over_at", "When that person took over.")
                .column::<Timestamp>("opened_at", "When it began.")
                .column::<Timestamp>("last_activity_at", "When the last activity took place.")
                .column::<Option<Timestamp>>("resolved_at", "When it was resolved.")
                .column::<Option<Timestamp>>("archived_at", "When it was archived.")
                .column::<Timestamp>("created_at", "When it was created.")
                .column::<Timestamp>("updated_at", "When it was last updated.")
                .one::<Agent>("agent_details", "t.agent_id", "The agent's full record.")
                .one::<Channel>("channel", "t.channel_id", "The channel it uses.")
                .one::<Contact>("contact", "t.contact_id", "The contact who is talking to the agent.")
                .many::<Turn>(
                    "open_turns",
                    Many {
                        by: "t.conversation_id",
                        filter: "t.ended_at IS NULL AND NOT t.held",
                        ..Many::default()
                    },
                    "The running turn and the waiting one. `turns` lists all.",
                )
        });
        &SPEC
    }
}

const PREVIEW: &str =
    "The beginning of the text. Null if the caller may not read messages (`agent.output.view`).";

pub struct LastMessage;

impl Record for LastMessage {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("LastMessage", "conversations t", "The last message of a conversation.")
                .sql::<i64>("seq", "t.last_message_seq", "Its position in the conversation.")
                .sql::<MessageRole>("role", "t.last_message_role", "The role of its author.")
                .sql::<MessageKind>("kind", "t.last_message_kind", "The kind of content.")
                .sql::<Option<String>>("preview", "t.last_message_preview", PREVIEW)
                .needs(Permission::AgentOutputView)
                .sql::<Timestamp>("created_at", "t.last_message_created_at", "When it was written.")
        });
        &SPEC
    }
}

pub struct Message;

impl Record for Message {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Message", "messages t", "A message in a conversation.")
                .permission(Permission::AgentOutputView)
                .column::<MessageId>("id", "Identifies the message.")
                .column::<ConversationId>("conversation_id", "The conversation it belongs to.")
                .column::<i64>(
                    "seq",
                    "Its position in the conversation, starting at 1. Used as the cursor for paging.",
                )
                .column::<MessageRole>("role", "The role of the author.")
                .column::<MessageKind>("kind", "The kind of content.")
                .column::<Option<ChannelId>>("via_channel_id", "The channel it came in or went out through.")
                .column::<Option<IdentityId>>("via_identity_id", "The address on that channel.")
                .column::<Option<UserId>>("author_user_id", "The member who wrote it.")
                .column::<Option<String>>("author_name", "The author's display name.")
                .sql::<bool>(
                    "is_unproven",
                    "t.unproven",
                    "Whether its sender is not verified: a mail whose sender the receiving server did not prove.",
                )
                .column::<MessageStatus>("status", "Whether it has reached the agent or the conversation.")
                .embedded::<MessageDelivery>(
                    "delivery",
                    "(t.delivery_status IS NOT NULL)",
                    "Its delivery through a channel. Null if it isn't sent outside.",
                )
                .column::<Json<serde_json::Value>>("content", CONTENT)
                .many::<Attachment>(
                    "attachments",
                    Many { by: "t.message_id", order: "t.position, t.id", ..Many::default() },
                    "The attached files.",
                )
                .column::<Timestamp>("created_at", "When it was written.")
                .one::<Conversation>("conversation", "t.conversation_id", "The conversation.")
                .column::<Option<TurnId>>("turn_id", "The turn that it causes or belongs to.")
                .one::<Turn>("turn", "t.turn_id", "The turn that it causes or belongs to.")
                .column::<Option<String>>(
                    "host_key",
                    "The agent's host's key of the message. The text sent by `messageDeltas` has the same key.",
                )
        });
        &SPEC
    }
}

const CONTENT: &str = "The content, by kind. TEXT: {text, format: markdown or plain}; THINKING: {text}; TOOL_CALL: {tool, call_id, input}; TOOL_RESULT: {call_id, output, is_error}; FILE: {caption}; VOICE: {transcript}; APPROVAL: {approval_id}; EVENT: {event, text}, with conversation_id of a CHANNEL_MESSAGE and {action, arguments} of an ACTION; ERROR: {code, text}.";

/// Why the first part of the message that failed did.
const DELIVERY_CODE: &str = "(SELECT d.code FROM deliveries d WHERE d.organization_id = t.organization_id \
    AND d.message_id = t.id AND d.code IS NOT NULL ORDER BY d.part LIMIT 1)";

pub struct MessageDelivery;

impl Record for MessageDelivery {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("MessageDelivery", "messages t", "A message's delivery through a channel.")
                .sql::<DeliveryStatus>("status", "t.delivery_status", "The state of the delivery.")
                .sql::<i64>("attempts", "t.delivery_attempts", "The number of attempts.")
                .sql::<Option<String>>("error", "t.delivery_error", "Why the last attempt failed.")
                .sql::<Option<DeliveryCode>>("code", DELIVERY_CODE, "Why it failed for good.")
                .sql::<Option<Timestamp>>("sent_at", "t.delivery_sent_at", "When the vendor accepted it.")
        });
        &SPEC
    }
}

pub struct Attachment;

impl Record for Attachment {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            Spec::new("Attachment", "attachments t", "A file attached to a message.")
                .permission(Permission::AgentOutputView)
                .column::<AttachmentId>("id", "Identifies the attachment.")
                .column::<String>("filename", "The file's name.")
                .column::<String>("mime_type", "The file's media type, as given by the sender.")
                .column::<i64>("size_bytes", "The size in bytes.")
                .sql::<String>(
                    "url",
                    "'/v1/org/' || t.organization_id || '/attachment/' || t.id",
                    "The download path, relative to the base URL.",
                )
                .column::<Option<AgentId>>("uploaded_by_agent_id", "The agent that sent it, if any.")
        });
        &SPEC
    }
}
