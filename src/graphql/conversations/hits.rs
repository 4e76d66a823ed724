//! The hits of a search.
//!
//! The list is resolved here and not by the executor, which would create a future for every field and every number of a
//! range: for a thousand hits that would cost more than the search.

use std::borrow::Cow;

use async_graphql::{
    ContextSelectionSet, Name, OutputType, Positioned, ScalarType, ServerResult, SimpleObject, Value,
    parser::types::Field, registry::Registry, resolver_utils::enum_value,
};

use crate::{domain::conversations::search::MessageHit, read::merged};

/// The result of a search.
#[derive(SimpleObject)]
pub struct MessageSearch {
    /// The messages, oldest first.
    pub data: Hits,
    /// The number of messages found, at most 1,000.
    pub total: i64,
}

fn value(hit: &MessageHit, field: &str) -> Value {
    match field {
        "seq" => hit.seq.into(),
        "id" => hit.id.0.into(),
        "role" => enum_value(hit.role),
        "kind" => enum_value(hit.kind),
        "createdAt" => hit.created_at.to_value(),
        "snippet" => hit.snippet.as_str().into(),
        "ranges" => hit.ranges.clone().into(),
        "__typename" => "MessageHit".into(),
        _ => Value::Null, // validation rejects unknown fields
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
            Value::Object(fields.iter().map(|(key, field)| (key.clone(), value(hit, field))).collect())
        };
        Ok(Value::List(self.0.iter().map(object).collect()))
    }
}
