//! What a request must be before the protocol library sees it: one JSON-RPC message, from a client that reads JSON. The library
//! refuses more than the protocol does, and with other words.

use http::{HeaderMap, header};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, Value};

/// Why a body is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is not JSON.
    #[error("The body is not valid JSON.")]
    Json,
    /// It is a list of messages.
    #[error("Send one message for each request: batches are not supported.")]
    Batch,
    /// It asks, and no answer could be told to be its own.
    #[error("The id of a request must be a string or an integer. Leave it out in a notification.")]
    Id,
    /// It is another JSON value.
    #[error("The body is not a JSON-RPC 2.0 message of the protocol.")]
    Message,
}

impl Invalid {
    /// The code of JSON-RPC.
    pub fn code(self) -> i32 {
        match self {
            Self::Json => -32700,
            Self::Batch | Self::Id | Self::Message => -32600,
        }
    }
}

/// Whether a body is one message, as far as can be seen without its method.
pub fn check(body: &[u8]) -> Result<(), Invalid> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(default, borrow, deserialize_with = "there")]
        id: Option<&'a RawValue>,
    }
    let text = body.trim_ascii_start();
    if text.starts_with(b"[") {
        let is_json = muster_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        return Err(if is_json { Invalid::Batch } else { Invalid::Json });
    }
    let envelope: Envelope<'_> = muster_json::from_slice(body)
        .map_err(|error| if error.is_data() { Invalid::Message } else { Invalid::Json })?;
    let is_id = |id: &RawValue| match muster_json::from_str(id.get()) {
        Ok(Value::String(_)) => true,
        Ok(Value::Number(number)) => number.is_i64(),
        _ => false,
    };
    if envelope.id.is_none_or(is_id) { Ok(()) } else { Err(Invalid::Id) }
}

/// A value that is there, even if it is null.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// Whether a client takes JSON: the range that names it most closely decides, and a client that says nothing takes everything.
pub fn takes_json(headers: &HeaderMap) -> bool {
    let mut ranges = headers
        .get_all(header::ACCEPT)
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .map(|range| range.trim().to_ascii_lowercase())
        .filter(|range| !range.is_empty())
        .peekable();
    if ranges.peek().is_none() {
        return true;
    }
    let closest = ranges
        .filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let closeness = match parts.next()? {
                "application/json" => 2,
                "application/*" => 1,
                "*/*" => 0,
                _ => return None,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok());
            Some((closeness, weight.is_none_or(|weight| weight > 0.0)))
        })
        .max();
    closest.is_some_and(|(_, is_taken)| is_taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_taken_unless_the_client_says_otherwise() {
        let takes = |accept: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            takes_json(&headers)
        };
        for accept in [
            &[][..],
            &[""],
            &["*/*"],
            &["application/json"],
            &["Application/JSON"],
            &["application/*"],
            &["application/json;charset=utf-8"],
            &["application/json, text/event-stream"],
            &["text/event-stream, application/json;q=0.1"],
            &["text/event-stream", "*/*;q=0.1"],
            &["text/event-stream,*/*;q=0,application/json"],
            &["application/json;q=wrong"],
        ] {
            assert!(takes(accept), "{accept:?}");
        }
        for accept in [
            &["text/event-stream"][..],
            &["text/html, image/*"],
            &["application/json;q=0"],
            &["application/json; q=0.0, */*"],
            &["*/*;q=0"],
        ] {
            assert!(!takes(accept), "{accept:?}");
        }
    }

    #[test]
    fn a_body_is_one_message() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Ok(())),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, Ok(())),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Ok(())),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Err(Invalid::Id)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Err(Invalid::Id)),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Err(Invalid::Id)),
            (r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Err(Invalid::Batch)),
            ("[]", Err(Invalid::Batch)),
            ("[", Err(Invalid::Json)),
            ("7", Err(Invalid::Message)),
            ("", Err(Invalid::Json)),
            ("{", Err(Invalid::Json)),
        ] {
            assert_eq!(check(body.as_bytes()), expected, "{body}");
        }
    }
}
