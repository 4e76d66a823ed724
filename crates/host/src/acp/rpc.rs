//! JSON-RPC, one message per line.

use agent_client_protocol_schema::v1::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use crate::bounds::NAME;

/// A line of an agent.
#[derive(Debug)]
pub enum Incoming<'a> {
    Request {
        /// The agent's id of the request.
        id: Value,
        method: String,
        params: &'a str,
    },
    Notification {
        method: String,
        params: &'a str,
    },
    Response {
        /// The host's id of the request.
        id: String,
        answer: Result<&'a str, Failure>,
    },
    /// Anything else.
    Garbage,
}

/// An error response of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Option<Value>,
}

impl Failure {
    /// Whether the agent has no access to its model.
    pub fn is_auth_required(&self) -> bool {
        self.code == i64::from(i32::from(ErrorCode::AuthRequired))
    }

    /// The text for people.
    pub fn text(&self) -> String {
        let detail = match &self.data {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Object(fields)) => ["details", "message", "error"]
                .iter()
                .find_map(|name| fields.get(*name)?.as_str().map(str::to_owned)),
            _ => None,
        };
        let message =
            if self.message.is_empty() { "The agent answered with an error" } else { &self.message };
        match detail {
            Some(detail) if !message.contains(&detail) => super::short(&format!("{message}: {detail}"), 2000),
            _ => super::short(message, 2000),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Failure>,
}

/// Parses a line.
pub fn read(line: &[u8]) -> Incoming<'_> {
    let Ok(envelope) = muster_json::from_slice::<Envelope<'_>>(line) else { return Incoming::Garbage };
    let params = envelope.params.map_or("null", RawValue::get);
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) if name(&id).is_some() => Incoming::Request { id, method, params },
        (Some(method), None) => Incoming::Notification { method, params },
        (None, Some(Value::String(id))) => {
            let result = envelope.result.map_or("null", RawValue::get);
            Incoming::Response { id, answer: envelope.error.map_or(Ok(result), Err) }
        }
        _ => Incoming::Garbage,
    }
}

/// A textual key for an agent's id; 5 and "5" differ.
pub fn name(id: &Value) -> Option<String> {
    match id {
        Value::Number(_) | Value::String(_) => Some(id.to_string()).filter(|text| text.len() <= NAME),
        _ => None,
    }
}

pub fn request(id: &str, method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub fn notification(method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

pub fn response(id: &Value, result: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

pub fn error(id: &Value, code: ErrorCode, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": i32::from(code), "message": message } })
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_recognized() {
        for line in
            ["", "hello", "[]", "{}", "{\"id\":null}", "{\"id\":1}", "{\"method\":\"x\",\"id\":[1]}", "\u{0}"]
        {
            assert!(matches!(read(line.as_bytes()), Incoming::Garbage), "{line}");
        }
        assert!(matches!(
            read(br#"{"id":"1.7","result":null}"#),
            Incoming::Response { answer: Ok("null"), .. }
        ));
        assert!(matches!(read(br#"{"method":"x"}"#), Incoming::Notification { params: "null", .. }));
        let long = format!(r#"{{"method":"x","id":"{}"}}"#, "y".repeat(200));
        assert!(matches!(read(long.as_bytes()), Incoming::Garbage));
    }

    #[test]
    fn a_number_and_a_string_are_different_names() {
        assert_ne!(name(&json!(5)), name(&json!("5")));
    }

    #[test]
    fn an_error_reads_as_one_sentence() {
        let failure = |data| Failure { code: 1, message: "Internal error".to_owned(), data };
        assert_eq!(failure(None).text(), "Internal error");
        assert_eq!(failure(Some(json!({"details": "no model"}))).text(), "Internal error: no model");
    }
}
