//! Signed statements about a chain, as JSON objects: `checkpoint` (the chain up to this line), `tombstone` (removed up
//! to this line) and `export` (the lines from one place to another).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    chain::{INSTANCE, canonical},
    key::{AuditKey, PublicKey},
};
use crate::base::time::Timestamp;

/// A statement that is not signed yet.
#[must_use]
pub fn statement(kind: &str, chain: i64, seq: i64, hash: &[u8], at: Timestamp, key: &str) -> Value {
    let organization = (chain != INSTANCE).then_some(chain);
    json!({
        "v": 1, "type": kind, "organization_id": organization, "seq": seq, "hash": hex::encode(hash), "at": at, "key": key,
    })
}

/// The signed bytes: the statement as canonical JSON, after a prefix that no other signature of ours uses.
fn signed_bytes(statement: &Value) -> Vec<u8> {
    [b"muster audit statement\n".as_slice(), &canonical(statement)].concat()
}

#[must_use]
pub fn sign(key: &AuditKey, statement: &Value) -> [u8; 64] {
    key.sign(&signed_bytes(statement))
}

/// The statement with its signature, as exported.
#[must_use]
pub fn with_signature(mut statement: Value, signature: &[u8]) -> Value {
    statement["signature"] = STANDARD.encode(signature).into();
    statement
}

/// Why a statement can't be trusted; `None` if it can.
pub(super) fn mistrust(statement: &Value, keys: &[PublicKey]) -> Option<String> {
    let mut content = statement.clone();
    let signature = content.as_object_mut().and_then(|fields| fields.remove("signature"));
    let signature = signature.as_ref().and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    let Some(signature) = signature else { return Some("it is not signed".to_owned()) };
    let named = statement["key"].as_str().unwrap_or_default();
    let Some(key) = keys.iter().find(|key| key.id() == named) else {
        return Some(format!("it is signed by the unknown key {named:?}: pass its public half with --key"));
    };
    (!key.verifies(&signed_bytes(&content), &signature)).then(|| "its signature is wrong".to_owned())
}
