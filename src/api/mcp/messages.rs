//! Checks a request before the protocol library sees it: it must be a JSON-RPC message, or a short batch of them, from
//! a client that accepts JSON. The library is stricter than the protocol, and words its errors differently.

use http::{HeaderMap, HeaderName, header};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::{RawValue, Value};

/// The maximum number of values in a request. The library reads them into trees of some hundred bytes for each, several
/// times: a megabyte of `[],[],…` would take a hundred.
const MAX_VALUES: usize = 10_000;
/// The maximum number of messages in a batch: each may have a result of 8 MiB, and they are answered at once, so that a
/// caller could fill the memory.
pub const MAX_MESSAGES: usize = 10;
/// The only version of the protocol with batches, which is also the default if a request names no version.
const WITH_BATCHES: &str = "2025-03-26";
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

#[derive(Debug)]
pub enum Sent<'a> {
    /// The body is a message.
    One,
    /// These messages.
    Batch(Vec<&'a RawValue>),
}

/// Why a body is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("The body is not valid JSON.")]
    Json,
    /// It is a batch, in a version of the protocol without batches.
    #[error("Send one message for each request: only version {WITH_BATCHES} of the protocol has batches.")]
    Batch,
    /// It is an empty or too large batch.
    #[error("A batch has 1 to {MAX_MESSAGES} messages.")]
    Size,
    #[error("The request has more than {MAX_VALUES} values.")]
    Large,
    /// It is a request without an id to match its answer.
    #[error("The id of a request must be a string or an integer. Leave it out in a notification.")]
    Id,
    /// It is another JSON value.
    #[error("The body is not a JSON-RPC 2.0 message of the protocol.")]
    Message,
}

impl Invalid {
    pub fn code(self) -> i32 {
        match self {
            Self::Json => -32700,
            Self::Batch | Self::Size | Self::Large | Self::Id | Self::Message => -32600,
        }
    }
}

/// Reads a body as one message or several.
pub fn read<'a>(body: &'a [u8], headers: &HeaderMap) -> Result<Sent<'a>, Invalid> {
    if values(body) > MAX_VALUES {
        let is_json = muster_json::from_slice::<IgnoredAny>(body).is_ok();
        return Err(if is_json { Invalid::Large } else { Invalid::Json });
    }
    if !body.trim_ascii_start().starts_with(b"[") {
        return check(body).map(|()| Sent::One);
    }
    let messages: Vec<&RawValue> = muster_json::from_slice(body).map_err(|_| Invalid::Json)?;
    if headers.get(VERSION).is_some_and(|version| version != WITH_BATCHES) {
        return Err(Invalid::Batch);
    }
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return Err(Invalid::Size);
    }
    messages.iter().try_for_each(|message| check(message.get().as_bytes()))?;
    Ok(Sent::Batch(messages))
}

/// An upper bound of the number of values: one more than the commas and opening brackets outside of strings.
fn values(json: &[u8]) -> usize {
    let (mut count, mut is_text) = (1, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => _ = bytes.next(),
            b',' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether this is a valid message, apart from its method.
fn check(message: &[u8]) -> Result<(), Invalid> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(default, borrow, deserialize_with = "present")]
        id: Option<&'a RawValue>,
    }
    if message.trim_ascii_start().starts_with(b"[") {
        return Err(Invalid::Message);
    }
    let envelope: Envelope<'_> = muster_json::from_slice(message)
        .map_err(|error| if error.is_data() { Invalid::Message } else { Invalid::Json })?;
    let is_id = |id: &RawValue| match muster_json::from_str(id.get()) {
        Ok(Value::String(_)) => true,
        Ok(Value::Number(number)) => number.is_i64(),
        _ => false,
    };
    if envelope.id.is_none_or(is_id) { Ok(()) } else { Err(Invalid::Id) }
}

/// A value that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// Whether a client accepts JSON: the most specific range decides, and a client without `Accept` accepts everything.
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
    fn a_body_is_one_message_or_a_short_batch() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let batch = |count: usize| format!("[{}]", vec![ping; count].join(","));
        let message = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        for (body, expected) in [
            (ping.to_owned(), Ok(1)),
            (message(r#""a""#), Ok(1)),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(), Ok(1)),
            (message("null"), Err(Invalid::Id)),
            (message("1.5"), Err(Invalid::Id)),
            (message("[1]"), Err(Invalid::Id)),
            (message("18446744073709551615"), Err(Invalid::Id)),
            (format!(" {}", batch(1)), Ok(1)),
            (batch(MAX_MESSAGES), Ok(MAX_MESSAGES)),
            (batch(MAX_MESSAGES + 1), Err(Invalid::Size)),
            ("[]".to_owned(), Err(Invalid::Size)),
            (format!("[{ping},7]"), Err(Invalid::Message)),
            (format!("[{ping},[{ping}]]"), Err(Invalid::Message)),
            (format!("[{ping},{}]", message("null")), Err(Invalid::Id)),
            (format!("[{ping},{{]"), Err(Invalid::Json)),
            ("[".to_owned(), Err(Invalid::Json)),
            ("7".to_owned(), Err(Invalid::Message)),
            (String::new(), Err(Invalid::Json)),
            ("{".to_owned(), Err(Invalid::Json)),
            (format!("\u{feff}{ping}"), Err(Invalid::Json)),
            (format!("[{}]", vec!["[]"; MAX_VALUES].join(",")), Err(Invalid::Large)),
            (format!("[{}", vec!["[]"; MAX_VALUES].join(",")), Err(Invalid::Json)),
        ] {
            let read = read(body.as_bytes(), &HeaderMap::new()).map(|sent| match sent {
                Sent::One => 1,
                Sent::Batch(messages) => messages.len(),
            });
            assert_eq!(read, expected, "{body:.200}");
        }
    }

    #[test]
    fn one_version_has_batches() {
        for (version, is_taken) in
            [("2025-03-26", true), ("2025-06-18", false), ("2024-11-05", false), ("", false)]
        {
            let headers = [(VERSION, version.parse().unwrap())].into_iter().collect();
            let read = read(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, &headers);
            assert_eq!(read.is_ok(), is_taken, "{version}");
        }
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (json, count) in [
            ("7", 1),
            (r#"{"a":1,"b":[2,{}]}"#, 5),
            (r#"["a,[{\",[",2]"#, 3),
            (r#"["\\",[]]"#, 4),
            (r#"["unfinished,[,"#, 2),
            ("", 1),
        ] {
            assert!(
                (count..=count + 1).contains(&values(json.as_bytes())),
                "{json}: {}",
                values(json.as_bytes())
            );
        }
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"text":"{}"}}}}"#,
            "[,".repeat(100_000)
        );
        assert!(
            matches!(read(text.as_bytes(), &HeaderMap::new()), Ok(Sent::One)),
            "a long text is one value"
        );
    }
}
