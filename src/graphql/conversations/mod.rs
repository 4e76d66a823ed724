//! Conversations in the GraphQL schema: `records.rs` has the records, `hits.rs` the hits of a search, `query.rs` the
//! queries (`list.rs`: filters and orders of conversations, `page.rs`: pages of messages), `change.rs` the mutations
//! and subscriptions.

mod change;
mod hits;
mod list;
mod page;
mod query;
mod records;

pub use self::{
    change::{ConversationMutation, ConversationSubscription},
    hits::{Hits, MessageSearch},
    query::ConversationQuery,
    records::{Attachment, Conversation, Message},
};
