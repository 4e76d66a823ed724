//! Conversations in the GraphQL schema: `records.rs` has the records, `hits.rs` the hits of a search, `query.rs` the
//! queries, `change.rs` the mutations and subscriptions.

mod change;
mod hits;
mod query;
mod records;

pub use self::{
    change::{
        ConversationMutation, ConversationSubscription, PostMessageInput, StartConversationInput,
        UpdateConversationInput, UploadAttachmentInput,
    },
    hits::{FoundMessage, Hits, MessageHit, MessageSearch, MessagesFound},
    query::ConversationQuery,
    records::{Attachment, Conversation, LastMessage, Message, MessageDelivery},
};
