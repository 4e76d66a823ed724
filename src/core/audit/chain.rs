//! A line as it is hashed, and how it hangs on the one before.
//!
//! `hash = SHA-256(hash of the line before ‖ the line as canonical JSON)`; before the first line stand 32 zero bytes.
//! Canonical: keys sorted, no white space, as RFC 8785 writes objects of strings and whole numbers; so that a few
//! lines in any language check an export.

use std::borrow::Cow;

use sea_orm::QueryResult;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::base::{
    problem::{Problem, Result},
    time::Timestamp,
};

/// What stands before the first line.
pub const GENESIS: [u8; 32] = [0; 32];

/// The chain of the instance itself.
pub const INSTANCE: i64 = 0;

/// The columns of a line's [`Content`] in the log, but for its id and its place.
pub const COLUMNS: &str = "organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, \
     credential_id, credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, \
     request_id, ip";

/// What a line says and where it stands. The fields are in the order of their names: written so, it is canonical.
///
/// Values of a vocabulary are texts here: a later version may have written one that this version does not know.
#[derive(Deserialize, Serialize)]
pub struct Content<'a> {
    actor_id: Option<i64>,
    #[serde(borrow)]
    actor_kind: Cow<'a, str>,
    actor_name: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "from_milliseconds")]
    at: Timestamp,
    #[serde(serialize_with = "sorted")]
    changes: Value,
    code: Option<Cow<'a, str>>,
    count: i64,
    credential_hint: Option<Cow<'a, str>>,
    credential_id: Option<i64>,
    credential_kind: Option<Cow<'a, str>>,
    decided_by: Option<Cow<'a, str>>,
    #[serde(skip_deserializing)]
    id: i64,
    ip: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "from_some_milliseconds")]
    last_at: Option<Timestamp>,
    operation: Cow<'a, str>,
    organization_id: Option<i64>,
    outcome: Cow<'a, str>,
    permission: Option<Cow<'a, str>>,
    request_id: Option<Cow<'a, str>>,
    /// Its place in the chain.
    #[serde(skip_deserializing)]
    pub seq: i64,
    target_id: Option<i64>,
    target_kind: Option<Cow<'a, str>>,
    #[serde(skip_deserializing, default = "version")]
    v: u8,
}

impl<'a> Content<'a> {
    /// A line that waits, as `line.rs` has written it. It has no place yet.
    ///
    /// # Errors
    /// It is no such line.
    pub fn parse(id: i64, line: &'a str) -> Result<Self> {
        let content: Self = serde_json::from_str(line).map_err(Problem::internal)?;
        Ok(Self { id, ..content })
    }

    /// Whose chain it belongs to: that of its organization, or of the instance.
    pub fn chain(&self) -> i64 {
        self.organization_id.unwrap_or(INSTANCE)
    }

    /// What is hashed.
    pub fn canonical(&self) -> Vec<u8> {
        written(self)
    }

    /// The same as a value.
    pub fn value(&self) -> Value {
        // It is an object of texts and numbers.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Content<'static> {
    /// Reads `id`, [`COLUMNS`] and `chain_seq`.
    ///
    /// # Errors
    /// The database gave something else.
    fn read(row: &QueryResult) -> Result<Self> {
        let text = |at: usize| row.try_get_by::<Option<String>, _>(at).map(|text| text.map(Cow::Owned));
        let required = |at: usize| row.try_get_by::<String, _>(at).map(Cow::Owned);
        let number = |at: usize| row.try_get_by::<Option<i64>, _>(at);
        Ok(Self {
            id: row.try_get_by(0)?,
            organization_id: number(1)?,
            at: row.try_get_by(2)?,
            last_at: row.try_get_by(3)?,
            count: row.try_get_by(4)?,
            actor_kind: required(5)?,
            actor_id: number(6)?,
            actor_name: text(7)?,
            credential_kind: text(8)?,
            credential_id: number(9)?,
            credential_hint: text(10)?,
            operation: required(11)?,
            permission: text(12)?,
            decided_by: text(13)?,
            outcome: required(14)?,
            code: text(15)?,
            target_kind: text(16)?,
            target_id: number(17)?,
            changes: row.try_get_by(18)?,
            request_id: text(19)?,
            ip: text(20)?,
            seq: row.try_get_by(21)?,
            v: version(),
        })
    }
}

/// A line of the log.
pub struct Row {
    /// What it says, and its place.
    pub content: Content<'static>,
    /// The hash of the line before.
    pub prev_hash: Vec<u8>,
    /// Its own.
    pub hash: Vec<u8>,
}

impl Row {
    /// What [`Self::read`] reads.
    pub fn columns() -> String {
        format!("id, {COLUMNS}, chain_seq, prev_hash, hash")
    }

    /// Reads [`Self::columns`].
    ///
    /// # Errors
    /// The database gave something else.
    pub fn read(row: &QueryResult) -> Result<Self> {
        let bytes = |at: usize| row.try_get_by::<Option<Vec<u8>>, _>(at);
        Ok(Self {
            content: Content::read(row)?,
            prev_hash: bytes(22)?.unwrap_or_default(),
            hash: bytes(23)?.unwrap_or_default(),
        })
    }

    /// The line of an export.
    #[must_use]
    pub fn exported(&self) -> Value {
        let mut line = self.content.value();
        line["type"] = "entry".into();
        line["prev_hash"] = hex::encode(&self.prev_hash).into();
        line["hash"] = hex::encode(&self.hash).into();
        line
    }
}

/// The hash of a line, in its canonical form, that comes after `prev`.
#[must_use]
pub fn hash(prev: &[u8], canonical: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(prev).chain_update(canonical).finalize().into()
}

/// The one way to write a value.
#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    written(&Sorted(value))
}

fn written(what: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    // Writing objects, texts and numbers to memory can't fail.
    let _ = serde_json::to_writer(&mut out, what);
    out
}

/// A value whose objects are written with sorted keys.
struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name, Sorted(value))).collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                serializer.collect_map(fields)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            value => value.serialize(serializer),
        }
    }
}

fn sorted<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    Sorted(value).serialize(serializer)
}

fn from_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    i64::deserialize(deserializer).map(Timestamp)
}

fn from_some_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(Timestamp))
}

/// The version of what is hashed.
const fn version() -> u8 {
    1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let one: Value = serde_json::from_str(r#"{"b": [1, {"d": "é\n", "c": null}], "a": 1.5}"#).unwrap();
        assert_eq!(canonical(&one), r#"{"a":1.5,"b":[1,{"c":null,"d":"é\n"}]}"#.as_bytes());
        let hashed = |prev: &[u8], value: &Value| hash(prev, &canonical(value));
        assert_ne!(hashed(&GENESIS, &one), hashed(&[1; 32], &one));
        assert_ne!(hashed(&GENESIS, &one), hashed(&GENESIS, &json!({})));
    }

    #[test]
    fn a_line_is_written_as_its_value_would_be() {
        let line = r#"{"organization_id":3,"at":1000,"last_at":2000,"count":2,"actor_kind":"USER","actor_name":"\"Ada\" é",
            "operation":"updateSkill","outcome":"ALLOWED","changes":{"b":[{"d":1,"c":2}],"a":null},"later":true}"#;
        let content = Content { seq: 5, ..Content::parse(7, line).unwrap() };
        assert_eq!(content.canonical(), canonical(&content.value()));
        let value = content.value();
        assert_eq!((&value["id"], &value["seq"], &value["v"]), (&json!(7), &json!(5), &json!(1)));
        assert_eq!(value["at"], "1970-01-01T00:00:01.000Z");
        assert_eq!(value["last_at"], "1970-01-01T00:00:02.000Z");
        assert_eq!(value.as_object().unwrap().len(), 23);
        assert_eq!((content.chain(), value["ip"].is_null()), (3, true));
    }
}
