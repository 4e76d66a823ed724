//! Conversations in the schema: `records.rs` holds the records, `hits.rs` what a search finds, `query.rs` what is read,
//! `change.rs` what is written and watched.

mod change;
mod hits;
mod query;
mod records;

pub use self::{
    change::{
        ConversationMutation, ConversationSubscription, PostMessageInput, StartConversationInput,
        UpdateConversationInput, UploadAttachmentInput,
    },
    hits::{Hits, MessageHit, MessageSearch},
    query::ConversationQuery,
    records::{Attachment, Conversation, LastMessage, Message, MessageDelivery},
};
