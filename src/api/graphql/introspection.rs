//! Introspection, answered from a cached text.
//!
//! The executor would traverse the schema for every query, at some hundred nanoseconds per value, and types refer to
//! each other endlessly: a short document may request gigabytes. So the executor runs once, for the whole schema. Its
//! answer is cached in pieces of JSON, and each query is answered by copying pieces, up to the size limit of a request.
//! Anonymous callers may introspect, so every query must be cheap.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use async_graphql::{
    Name, Positioned, Request, Value, Variables,
    indexmap::IndexMap,
    parser::types::{Field, SelectionSet},
};
use futures::FutureExt;

use super::{Document, render::write_value};
use crate::{
    base::problem::{Problem, Result},
    graphql::MusterSchema,
    read::{AnswerBudget, Fragments, argument, below, is_included, lead, merged},
};

/// The query for the whole schema. A type referred to as `Named` is itself in `types`; a type is wrapped at most five
/// times (`[[T!]!]!`).
const EVERYTHING: &str = "
{
  __schema {
    __typename description
    queryType { ...Named } mutationType { ...Named } subscriptionType { ...Named }
    types {
      __typename kind name description specifiedByURL isOneOf
      fields(includeDeprecated: true) {
        __typename name description isDeprecated deprecationReason
        args(includeDeprecated: true) { ...Input } type { ...Named }
      }
      inputFields(includeDeprecated: true) { ...Input }
      interfaces { ...Named }
      possibleTypes { ...Named }
      enumValues(includeDeprecated: true) { __typename name description isDeprecated deprecationReason }
      ofType { ...Named }
    }
    directives {
      __typename name description locations isRepeatable
      args(includeDeprecated: true) { ...Input }
    }
  }
}
fragment Input on __InputValue {
  __typename name description defaultValue isDeprecated deprecationReason type { ...Named }
}
fragment Named on __Type {
  __typename kind name
  ofType { __typename kind name ofType { __typename kind name ofType { __typename kind name ofType {
    __typename kind name ofType { __typename kind name }
  } } } }
}";

pub fn is_about_schema(field: &Field) -> bool {
    matches!(field.name.node.as_str(), "__schema" | "__type")
}

/// The schema as text, built on first use.
#[derive(Default)]
pub struct Introspection(OnceLock<CachedSchema>);

/// A document's introspection fields, with the fragments and variables that they use.
pub struct Questions<'a> {
    pub fields: &'a [Positioned<Field>],
    pub fragments: &'a Fragments,
    pub variables: &'a Variables,
}

impl Introspection {
    /// The answers as JSON, each with its response key.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX` beyond the size limit of a request.
    pub fn answer(
        &self,
        schema: &MusterSchema,
        questions: &Questions<'_>,
        share: &AnswerBudget,
    ) -> Result<Vec<(Name, Vec<u8>)>> {
        let kept = match self.0.get() {
            Some(kept) => kept,
            None => {
                let made = CachedSchema::execute_once(schema)?;
                self.0.get_or_init(|| made)
            }
        };
        let answers = questions.fields.iter().map(|field| {
            let mut out = Out { json: Vec::new(), share };
            let asked = questions.asked(std::iter::once(&field.node.selection_set.node));
            let about = match field.node.name.node.as_str() {
                "__schema" => Some(&kept.schema),
                _ => match questions.argument(&field.node, "name") {
                    Some(Value::String(name)) => kept.types.get(name.as_str()),
                    _ => None,
                },
            };
            match about {
                Some(node) => kept.write(node, &asked, false, &mut out)?,
                None => out.json.extend_from_slice(b"null"),
            }
            share.take_about_schema(out.json.len());
            Ok((field.node.response_key().node.clone(), out.json))
        });
        answers.collect()
    }
}

/// A selected field of an object, with the JSON that precedes its value.
struct Ask<'a> {
    lead: Box<[u8]>,
    name: &'a str,
    deprecated_too: bool,
    below: Vec<Ask<'a>>,
}

impl<'a> Questions<'a> {
    fn argument(&self, field: &Field, name: &str) -> Option<Value> {
        argument(field, name, self.variables)
    }

    fn asked(&self, sets: impl IntoIterator<Item = &'a SelectionSet>) -> Vec<Ask<'a>> {
        let wanted = |directives: &[_]| is_included(directives, self.variables);
        let fields = merged(sets, self.fragments, &wanted).into_iter().enumerate();
        fields
            .map(|(n, (key, fields))| Ask {
                lead: lead(n == 0, key),
                name: fields[0].node.name.node.as_str(),
                deprecated_too: self.argument(&fields[0].node, "includeDeprecated")
                    == Some(Value::Boolean(true)),
                below: self.asked(below(&fields)),
            })
            .collect()
    }
}

/// A piece of the introspection result.
enum Node {
    /// A value, as JSON.
    Text(Box<[u8]>),
    List(Vec<Node>),
    Object {
        deprecated: bool,
        fields: Vec<(Name, Node)>,
    },
    /// A named type, stored once.
    Named(Name),
}

impl Node {
    fn from_value(value: Value) -> Self {
        match value {
            Value::List(items) => Self::List(items.into_iter().map(Self::from_value).collect()),
            Value::Object(fields) => match name_of(&fields) {
                Some(name) if !fields.contains_key("fields") => Self::Named(name),
                _ => Self::Object {
                    deprecated: fields.get("isDeprecated") == Some(&Value::Boolean(true)),
                    fields: fields.into_iter().map(|(name, value)| (name, Self::from_value(value))).collect(),
                },
            },
            value => {
                let mut json = Vec::new();
                write_value(&value, &mut json);
                Self::Text(json.into())
            }
        }
    }

    fn is_deprecated(&self) -> bool {
        matches!(self, Self::Object { deprecated: true, .. })
    }
}

fn name_of(fields: &IndexMap<Name, Value>) -> Option<Name> {
    match (fields.get("__typename"), fields.get("name")) {
        (Some(Value::String(of)), Some(Value::String(name))) if of == "__Type" => Some(Name::new(name)),
        _ => None,
    }
}

struct CachedSchema {
    schema: Node,
    types: HashMap<Name, Node>,
}

impl CachedSchema {
    fn execute_once(schema: &MusterSchema) -> Result<Self> {
        let parsed = async_graphql::parser::parse_query(EVERYTHING).map_err(Problem::internal)?;
        let mut request = Request::new("").data(Arc::new(Document::trusted(parsed.clone())));
        request.set_parsed_query(parsed);
        // Introspection awaits nothing.
        let response = schema.execute(request).now_or_never().unwrap_or_default();
        let unknown = || Problem::internal(anyhow::anyhow!("the schema returned no introspection result"));
        let Value::Object(mut roots) = response.data else { return Err(unknown()) };
        let Some(Value::Object(mut about)) = roots.shift_remove("__schema") else { return Err(unknown()) };
        let mut types = HashMap::new();
        if let Some(Value::List(listed)) = about.get_mut("types") {
            for ty in listed {
                let Value::Object(fields) = &*ty else { return Err(unknown()) };
                let reference =
                    fields.iter().filter(|(name, _)| matches!(name.as_str(), "__typename" | "name"));
                let reference = reference.map(|(name, value)| (name.clone(), value.clone())).collect();
                let name = name_of(fields).ok_or_else(unknown)?;
                types.insert(name, Node::from_value(std::mem::replace(ty, Value::Object(reference))));
            }
        }
        Ok(Self { schema: Node::from_value(Value::Object(about)), types })
    }

    fn write(&self, node: &Node, asked: &[Ask<'_>], deprecated_too: bool, out: &mut Out<'_>) -> Result<()> {
        match node {
            Node::Text(json) => out.json.extend_from_slice(json),
            Node::Named(name) => match self.types.get(name) {
                Some(ty) => self.write(ty, asked, deprecated_too, out)?,
                None => out.json.extend_from_slice(b"null"),
            },
            Node::List(items) => {
                out.json.push(b'[');
                let items = items.iter().filter(|item| deprecated_too || !item.is_deprecated());
                for (n, item) in items.enumerate() {
                    if n > 0 {
                        out.json.push(b',');
                    }
                    self.write(item, asked, deprecated_too, out)?;
                }
                out.json.push(b']');
            }
            Node::Object { fields, .. } => {
                if asked.is_empty() {
                    out.json.push(b'{');
                }
                for ask in asked {
                    out.check()?;
                    out.json.extend_from_slice(&ask.lead);
                    match fields.iter().find(|(name, _)| name.as_str() == ask.name) {
                        Some((_, node)) => self.write(node, &ask.below, ask.deprecated_too, out)?,
                        // A wrapped type only has a kind and the type it wraps.
                        None => out.json.extend_from_slice(b"null"),
                    }
                }
                out.json.push(b'}');
            }
        }
        Ok(())
    }
}

/// The output and its remaining budget.
struct Out<'a> {
    json: Vec<u8>,
    share: &'a AnswerBudget,
}

impl Out<'_> {
    fn check(&self) -> Result<()> {
        self.share.check_about_schema(self.json.len())
    }
}
