//! How a line is hashed and chained to the previous one.
//!
//! `hash = SHA-256(hash of the previous line ‖ the line as canonical JSON)`; the first line follows 32 zero bytes.
//! Canonical means sorted keys and no white space, as RFC 8785 writes objects of strings and whole numbers, so that a
//! few lines of code in any language can verify an export.

use sea_orm::{DbErr, QueryResult};
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::line::AuditLine;
use crate::core::store::sql::Row;

/// The previous hash of the first line.
pub const GENESIS: [u8; 32] = [0; 32];

/// The chain of the instance itself.
pub const INSTANCE: i64 = 0;

/// A line with its place in the chain.
pub(super) struct Sealed {
    pub line: AuditLine,
    /// The hash of the previous line.
    pub prev_hash: Vec<u8>,
    pub hash: Vec<u8>,
}

impl Row for Sealed {
    fn read(row: &QueryResult) -> Result<Self, DbErr> {
        let (prev_hash, hash) = (row.try_get_by("prev_hash")?, row.try_get_by("hash")?);
        Ok(Self { line: AuditLine::read(row)?, prev_hash, hash })
    }
}

impl Sealed {
    #[must_use]
    pub fn exported(&self) -> Value {
        let mut line = self.line.value();
        line["type"] = "entry".into();
        line["prev_hash"] = hex::encode(&self.prev_hash).into();
        line["hash"] = hex::encode(&self.hash).into();
        line
    }
}

/// The hash of a line in its canonical form, following `prev`.
#[must_use]
pub fn hash(prev: &[u8], canonical: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(prev).chain_update(canonical).finalize().into()
}

#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    canonical_bytes(&Sorted(value))
}

/// The JSON of a value whose fields are already sorted.
pub(super) fn canonical_bytes(what: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    // Writing objects, texts and numbers to memory can't fail.
    let _ = serde_json::to_writer(&mut out, what);
    out
}

/// Serializes a value with sorted object keys.
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

/// For a field of a canonical struct.
pub(super) fn sorted<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    Sorted(value).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let one: Value = muster_json::from_str(r#"{"b": [1, {"d": "é\n", "c": null}], "a": 1.5}"#).unwrap();
        assert_eq!(canonical(&one), r#"{"a":1.5,"b":[1,{"c":null,"d":"é\n"}]}"#.as_bytes());
        let hashed = |prev: &[u8], value: &Value| hash(prev, &canonical(value));
        assert_ne!(hashed(&GENESIS, &one), hashed(&[1; 32], &one));
        assert_ne!(hashed(&GENESIS, &one), hashed(&GENESIS, &json!({})));
    }
}
