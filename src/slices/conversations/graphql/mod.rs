//! Conversations in the GraphQL schema: `records.rs` has the records, `query.rs` the queries, `change.rs` the
//! mutations and subscriptions.

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
