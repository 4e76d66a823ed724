//! The parts that versions of all records share: canonical content and its hash, the difference, and the author.
//!
//! A feature that keeps versions has a table for them, and writes a row in the transaction of a change if the content's
//! hash differs from the newest version's. The names and values in the content are those of the record's update input,
//! so that a revert is an ordinary edit. Content never contains secrets.

use std::collections::{BTreeMap, BTreeSet};

use async_graphql::{
    InputType, Pos,
    registry::{MetaType, Registry},
};
use sea_orm::{EntityTrait, Iden, Iterable, ModelTrait};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    base::{
        bounds,
        enums::ActorKind,
        problem::{Problem, Result},
        spelling::camel_case,
    },
    core::store::Tx,
};

/// The content of a record at a point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// A JSON object without spaces, whose keys are sorted at every depth.
    pub text: String,
    /// SHA-256 of the text, in hexadecimal.
    pub hash: String,
    value: Value,
}

impl Content {
    #[must_use]
    pub fn from_fields(fields: Map<String, Value>) -> Self {
        let value = sort_keys(Value::Object(fields));
        let text = value.to_string();
        Self { hash: hex::encode(Sha256::digest(&text)), text, value }
    }

    /// The length of the text in bytes.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.text.len().cast_signed() as i64
    }

    /// The difference from the previous content: field → `[before, after]`. Empty without previous content. A missing field
    /// is null, as every field is in content that is older than it. Long values appear as their length and hash.
    #[must_use]
    pub fn changes_from(&self, before: Option<&str>) -> Value {
        let before = before.and_then(|before| muster_json::from_str::<Map<String, Value>>(before).ok());
        let (Some(before), Some(after)) = (before, self.value.as_object()) else { return json!({}) };
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let pairs = names.into_iter().map(|name| (name, value_of(&before, name), value_of(after, name)));
        pairs
            .filter(|(_, before, after)| before != after)
            .map(|(name, before, after)| (name.clone(), json!([summarize(before), summarize(after)])))
            .collect()
    }
}

fn sort_keys(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> =
                fields.into_iter().map(|(name, value)| (name, sort_keys(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sort_keys).collect(),
        value => value,
    }
}

fn value_of<'a>(content: &'a Map<String, Value>, name: &str) -> &'a Value {
    content.get(name).unwrap_or(&Value::Null)
}

fn summarize(value: &Value) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.len() <= bounds::REASON {
        return value.clone();
    }
    json!({ "bytes": text.len(), "sha256": hex::encode(Sha256::digest(&text)) })
}

/// The fields of an input object, as the schema spells them.
#[must_use]
pub fn fields_of<I: InputType>() -> BTreeSet<String> {
    let mut registry = Registry::default();
    I::create_type_info(&mut registry);
    match registry.types.get(I::type_name().as_ref()) {
        Some(MetaType::InputObject { input_fields, .. }) => input_fields.keys().cloned().collect(),
        _ => BTreeSet::new(),
    }
}

/// The columns of a row with these names, as the schema spells and shows them.
pub fn settings<M: ModelTrait>(row: &M, names: &BTreeSet<String>) -> Map<String, Value> {
    <M::Entity as EntityTrait>::Column::iter()
        .map(|column| (camel_case(&column.to_string()), column))
        .filter(|(name, _)| names.contains(name))
        .map(|(name, column)| (name, to_json(row.get(column))))
        .collect()
}

/// Only the types that settings have; a sealed value becomes null.
fn to_json(value: sea_orm::Value) -> Value {
    match value {
        sea_orm::Value::Bool(value) => value.into(),
        sea_orm::Value::BigInt(value) => value.into(),
        sea_orm::Value::Double(value) => value.into(),
        sea_orm::Value::String(value) => value.into(),
        sea_orm::Value::Json(value) => value.map_or(Value::Null, |value| *value),
        _ => Value::Null,
    }
}

/// Parses stored content into its fields.
pub fn read(text: &str) -> Result<Map<String, Value>> {
    muster_json::from_str(text).map_err(Problem::internal)
}

/// Converts content to the edit that restores it. Drops fields that the input object doesn't have.
///
/// # Errors
/// A later version wrote values that this one doesn't know.
pub fn as_edit<I: InputType>(content: &Map<String, Value>) -> Result<I> {
    let names = fields_of::<I>();
    let fields = content.iter().filter(|(name, _)| names.contains(*name));
    let fields: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    let fields = async_graphql::Value::from_json(Value::Object(fields)).map_err(Problem::internal)?;
    I::parse(Some(fields)).map_err(|wrong| {
        let wrong = wrong.into_server_error(Pos::default()).message;
        Problem::internal(anyhow::anyhow!("the content of a version can't be read: {wrong}"))
    })
}

/// The author of a version, and the reason for it.
#[derive(Clone, Debug)]
pub struct Author {
    pub kind: ActorKind,
    /// The user or service token. `None`: the service.
    pub id: Option<i64>,
    /// The actor's name at the time.
    pub name: String,
    /// The root field that was called.
    pub operation: Option<String>,
    /// The reason that the caller gave.
    pub reason: Option<String>,
}

impl Author {
    #[must_use]
    pub fn from_caller(tx: &Tx) -> Self {
        let caller = &tx.scope.request.caller;
        Self {
            kind: caller.kind(),
            id: caller.user().map(|user| user.0).or(caller.token().map(|token| token.0)),
            name: caller.name().to_owned(),
            operation: tx.scope.operation.as_deref().map(str::to_owned),
            reason: tx.reason.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(value: Value) -> Content {
        let Value::Object(fields) = value else { panic!("{value}") };
        Content::from_fields(fields)
    }

    #[test]
    fn the_order_of_keys_changes_nothing_and_everything_else_does() {
        let one = content(json!({ "b": [1, { "y": 1.0, "x": null }], "a": "ä" }));
        let other = content(json!({ "a": "ä", "b": [1, { "x": null, "y": 1.0 }] }));
        assert_eq!(one, other);
        let text = r#"{"a":"ä","b":[1,{"x":null,"y":1.0}]}"#;
        assert_eq!((one.text.as_str(), one.bytes()), (text, 37));
        assert_eq!(one.hash, hex::encode(Sha256::digest(text)));
        assert_ne!(one.hash, content(json!({ "a": "ä", "b": [{ "x": null, "y": 1.0 }, 1] })).hash);
    }

    #[test]
    fn a_difference_names_what_changed_came_and_went() {
        let before = json!({ "kept": [1], "changed": 1, "gone": true, "older": null }).to_string();
        let after = content(json!({ "kept": [1], "changed": 2, "new": "x", "newer": null }));
        assert_eq!(
            after.changes_from(Some(before.as_str())),
            json!({ "changed": [1, 2], "gone": [true, null], "new": [null, "x"] })
        );
        assert_eq!(after.changes_from(None), json!({}));
    }

    #[test]
    fn a_difference_has_bounds() {
        let long = "a".repeat(500_000);
        let changes = content(json!({ "text": long })).changes_from(Some(r#"{"text":"short"}"#));
        let hash = hex::encode(Sha256::digest(&long));
        assert_eq!(changes, json!({ "text": ["short", { "bytes": 500_000, "sha256": hash }] }));
    }
}
