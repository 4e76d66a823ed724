//! Conversations in the schema: `records.rs` holds the records, `query.rs` what is read, `change.rs` what is written and
//! watched.

mod change;
mod query;
mod records;

pub use self::{
    change::{
        ConversationMutation, ConversationSubscription, PostMessageInput, StartConversationInput,
        UpdateConversationInput, UploadAttachmentInput,
    },
    query::{ConversationQuery, MessageHit, MessageSearch},
    records::{Attachment, Conversation, LastMessage, Message, MessageDelivery},
};
