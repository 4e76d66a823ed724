//! A line as it is hashed, and how it hangs on the one before.
//!
//! `hash = SHA-256(hash of the line before ‖ the line as canonical JSON)`; before the first line stand 32 zero bytes.
//! Canonical: keys sorted, no white space, as RFC 8785 writes objects of strings and whole numbers; so that a few
//! lines in any language check an export.

use sea_orm::QueryResult;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::line::COLUMNS;
use crate::{clock::Timestamp, error::Result};

/// What stands before the first line.
pub const GENESIS: [u8; 32] = [0; 32];

/// The chain of the instance itself.
pub const INSTANCE: i64 = 0;

/// What a [`Content`] is read from, in this order.
pub fn columns() -> String {
    format!("id, {COLUMNS}")
}

/// What a line says, wherever it stands.
pub struct Content {
    /// Which line.
    pub id: i64,
    /// Its organization; 0 for the instance's own.
    pub chain: i64,
    fields: Map<String, Value>,
}

impl Content {
    /// Reads [`columns`].
    ///
    /// # Errors
    /// The database gave something else.
    pub fn read(row: &QueryResult) -> Result<Self> {
        let text = |at: usize| row.try_get_by::<Option<String>, _>(at);
        let number = |at: usize| row.try_get_by::<Option<i64>, _>(at);
        let (id, org): (i64, Option<i64>) = (row.try_get_by(0)?, number(1)?);
        let fields = json!({
            "v": 1,
            "id": id,
            "organization_id": org,
            "at": row.try_get_by::<Timestamp, _>(2)?,
            "last_at": row.try_get_by::<Option<Timestamp>, _>(3)?,
            "count": row.try_get_by::<i64, _>(4)?,
            "actor_kind": text(5)?,
            "actor_id": number(6)?,
            "actor_name": text(7)?,
            "credential_kind": text(8)?,
            "credential_id": number(9)?,
            "credential_hint": text(10)?,
            "operation": text(11)?,
            "permission": text(12)?,
            "decided_by": text(13)?,
            "outcome": text(14)?,
            "code": text(15)?,
            "target_kind": text(16)?,
            "target_id": number(17)?,
            "changes": row.try_get_by::<Value, _>(18)?,
            "request_id": text(19)?,
            "ip": text(20)?,
        });
        let Value::Object(fields) = fields else { unreachable!("an object was written") };
        Ok(Self { id, chain: org.unwrap_or(INSTANCE), fields })
    }

    /// What is hashed at this place of the chain.
    #[must_use]
    pub fn at(mut self, seq: i64) -> Value {
        self.fields.insert("seq".to_owned(), seq.into());
        Value::Object(self.fields)
    }
}

/// A line at its place.
pub struct Row {
    /// What it says.
    pub content: Content,
    /// Its place.
    pub seq: i64,
    /// The hash of the line before.
    pub prev_hash: Vec<u8>,
    /// Its own.
    pub hash: Vec<u8>,
}

impl Row {
    /// Reads [`columns`], and behind them the columns `chain_seq`, `prev_hash` and `hash`.
    ///
    /// # Errors
    /// The database gave something else.
    pub fn read(row: &QueryResult) -> Result<Self> {
        let bytes = |at: usize| row.try_get_by::<Option<Vec<u8>>, _>(at);
        Ok(Self {
            content: Content::read(row)?,
            seq: row.try_get_by(21)?,
            prev_hash: bytes(22)?.unwrap_or_default(),
            hash: bytes(23)?.unwrap_or_default(),
        })
    }

    /// The line of an export.
    #[must_use]
    pub fn exported(self) -> Value {
        let mut line = self.content.at(self.seq);
        line["type"] = "entry".into();
        line["prev_hash"] = hex::encode(&self.prev_hash).into();
        line["hash"] = hex::encode(&self.hash).into();
        line
    }
}

/// The hash of a line that comes after `prev`.
#[must_use]
pub fn hash(prev: &[u8], content: &Value) -> [u8; 32] {
    Sha256::new().chain_update(prev).chain_update(canonical(content)).finalize().into()
}

/// The one way to write a value.
#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (n, (name, value)) in sorted.into_iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                scalar(name, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        value => scalar(value, out),
    }
}

fn scalar(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing strings, numbers and booleans to memory can't fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let one: Value = serde_json::from_str(r#"{"b": [1, {"d": "é\n", "c": null}], "a": 1.5}"#).unwrap();
        assert_eq!(canonical(&one), r#"{"a":1.5,"b":[1,{"c":null,"d":"é\n"}]}"#.as_bytes());
        assert_ne!(hash(&GENESIS, &one), hash(&[1; 32], &one));
        assert_ne!(hash(&GENESIS, &one), hash(&GENESIS, &json!({})));
    }
}
