//! The hits of a search.
//!
//! The list is resolved here and not by the executor, which would create a future for every field and every number of a
//! range: for a thousand hits that costs more than finding them.

use std::borrow::Cow;

use async_graphql::{
    ContextSelectionSet, Name, OutputType, Positioned, ScalarType, ServerResult, SimpleObject, Value,
    parser::types::Field, registry::Registry, resolver_utils::enum_value,
};

use crate::{
    base::{
        enums::{MessageKind, MessageRole},
        ids::{AgentId, ConversationId, MessageId},
        time::Timestamp,
    },
    read::merged,
};

/// The result of a search.
#[derive(SimpleObject)]
pub struct MessageSearch {
    /// The messages, oldest first.
    pub data: Hits,
    /// The number of messages found, at most 1,000.
    pub total: i64,
}

/// A message found by a search.
#[derive(SimpleObject)]
pub struct MessageHit {
    /// Its position in the conversation.
    pub seq: i64,
    /// Identifies the message.
    pub id: MessageId,
    /// The role of the author.
    pub role: MessageRole,
    /// The kind of content.
    pub kind: MessageKind,
    /// When it was written.
    pub created_at: Timestamp,
    /// The text around the first match.
    pub snippet: String,
    /// The positions of matches in the snippet, in characters: pairs of start and end, where end is exclusive.
    pub ranges: Vec<Vec<i64>>,
}

/// A page of messages found in all conversations.
#[derive(SimpleObject)]
pub struct MessagesFound {
    /// The messages, newest first. A page may hold fewer than `limit` while there are more.
    pub data: Vec<FoundMessage>,
    /// Where the next page begins. Null: there is none.
    pub next: Option<String>,
}

/// A message found in some conversation.
#[derive(SimpleObject)]
pub struct FoundMessage {
    /// The message.
    pub hit: MessageHit,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The conversation's short code.
    #[graphql(name = "ref")]
    pub reference: String,
    /// The conversation's title.
    pub title: Option<String>,
    /// The conversation's agent.
    pub agent_id: AgentId,
    /// The agent's name.
    pub agent_name: String,
}

impl MessageHit {
    fn value(&self, field: &str) -> Value {
        match field {
            "seq" => self.seq.into(),
            "id" => self.id.0.into(),
            "role" => enum_value(self.role),
            "kind" => enum_value(self.kind),
            "createdAt" => self.created_at.to_value(),
            "snippet" => self.snippet.as_str().into(),
            "ranges" => self.ranges.clone().into(),
            "__typename" => "MessageHit".into(),
            _ => Value::Null, // validation rejects unknown fields
        }
    }
}

/// The hits of a search.
pub struct Hits(pub Vec<MessageHit>);

impl OutputType for Hits {
    fn type_name() -> Cow<'static, str> {
        Vec::<MessageHit>::type_name()
    }

    fn qualified_type_name() -> String {
        Vec::<MessageHit>::qualified_type_name()
    }

    fn create_type_info(registry: &mut Registry) -> String {
        Vec::<MessageHit>::create_type_info(registry)
    }

    async fn resolve(&self, ctx: &ContextSelectionSet<'_>, _: &Positioned<Field>) -> ServerResult<Value> {
        // Fields left out by directives have been removed from the selection by now.
        let selected = merged([&ctx.item.node], &ctx.query_env.fragments, &|_| true);
        let fields = selected.iter().map(|(key, fields)| (Name::new(key), fields[0].node.name.node.as_str()));
        let fields: Vec<(Name, &str)> = fields.collect();
        let object = |hit: &MessageHit| {
            Value::Object(fields.iter().map(|(key, field)| (key.clone(), hit.value(field))).collect())
        };
        Ok(Value::List(self.0.iter().map(object).collect()))
    }
}
