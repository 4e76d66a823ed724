//! A message of a client. It is forwarded as it was parsed, so both sides read the same.

use bytes::Bytes;
use muster_protocol::is_too_deep;
use serde_json::{Value, json};

use super::{lines::MessageLine, tools::LONGEST_NAME};
use crate::{
    encoding,
    fields::Fields,
    memory::{self, MemoryReservation},
    shared::Shared,
};

/// The fields of a message, and those of a tool call. No other name may resemble them.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const CALL: [&str; 2] = ["name", "arguments"];
/// An allowed, unjudged field of a call: its progress token.
const BESIDE: &str = "_meta";
const PROGRESS: &str = "progressToken";
/// The method of a tool call.
const CALLS: &str = "tools/call";
/// The longest tool input in bytes, as received and as sent: otherwise an agent could make people read, and the control
/// plane store, anything.
const LONGEST_INPUT: usize = 512 * 1024;
const NO_ROOM: &str = "Too many large messages are under way. Try again later.";

pub struct Message {
    /// `None` for a response.
    pub method: Option<String>,
    pub id: Option<Value>,
    /// The request to cancel, in a cancellation.
    pub cancels: Option<Value>,
    /// The tool call, if it is one.
    pub call: Option<CalledTool>,
    /// The message to send, on one line.
    pub bytes: Bytes,
}

pub struct CalledTool {
    pub name: String,
    pub input: Value,
    _held: MemoryReservation,
}

/// An unacceptable message, and its id, if readable.
pub struct Rejection {
    pub id: Option<Value>,
    pub why: &'static str,
}

impl Message {
    pub async fn read(
        shared: &Shared,
        MessageLine { bytes, mut held }: MessageLine,
    ) -> Result<Self, Rejection> {
        let bad = |why| Rejection { id: None, why };
        encoding::check_body(&bytes).map_err(bad)?;
        let is_list = bytes.trim_ascii_start().starts_with(b"[");
        let no_batch = "Send one message at a time: the protocol no longer has batches.";
        let mut fields = Fields::read(&bytes).ok_or(bad(if is_list {
            no_batch
        } else {
            "The message is not a JSON object, or has too many fields."
        }))?;
        let id = fields.value("id").filter(|id| !(id.is_array() || id.is_object()));
        let bad = |why| Rejection { id: id.clone(), why };
        let misspelt = "A field name of this message is ambiguous. Use the protocol's spelling.";
        if fields.misspells(&ENVELOPE) {
            return Err(bad(misspelt));
        }
        let method = fields.has("method").then(|| fields.text("method"));
        let method = method.map(|method| method.ok_or(bad("The method must be a string."))).transpose()?;
        if method.as_deref().is_some_and(|method| method.chars().any(char::is_control)) {
            // A reader that ends texts at a NUL would read another method.
            return Err(bad("The method must not have control characters."));
        }
        if fields.has("id") && id.is_none() {
            return Err(bad("The id must be a string or a number."));
        }
        let (mut call, mut cancels) = (None, None);
        if let Some(mut params) = fields.within("params") {
            if params.misspells(&CALL) {
                return Err(bad(misspelt));
            }
            if is_call(method.as_deref()) {
                call = Some(CalledTool::read(shared, &mut params).await.map_err(bad)?);
            }
            cancels =
                params.value("requestId").filter(|_| method.as_deref() == Some("notifications/cancelled"));
            fields.set("params", params.write(0));
        } else if is_call(method.as_deref()) {
            return Err(bad("A tool call must have its name and arguments in `params`."));
        }
        if call.is_some() && id.as_ref().is_none_or(Value::is_null) {
            return Err(bad("A tool call must have an id."));
        }
        let text = fields.write(bytes.len());
        held.shrink(text.len());
        Ok(Self { method, id, cancels, call, bytes: memory::into_bytes(text, held) })
    }

    /// The id, if the message is a request.
    pub fn request(&self) -> Option<&Value> {
        self.id.as_ref().filter(|id| self.method.is_some() && !id.is_null())
    }
}

/// Whether even a lenient reader would see a tool call.
fn is_call(method: Option<&str>) -> bool {
    method.is_some_and(|method| method.trim().eq_ignore_ascii_case(CALLS))
}

impl CalledTool {
    async fn read(shared: &Shared, params: &mut Fields<'_>) -> Result<Self, &'static str> {
        let name = params.text("name").filter(|name| (1..=LONGEST_NAME).contains(&name.chars().count()));
        let name = name.ok_or("A tool call must name its tool, in at most 200 characters.")?;
        let raw = params.raw("arguments").unwrap_or("null");
        let too_long = "The arguments of a tool call may have at most 512 KiB.";
        if raw.len() > LONGEST_INPUT {
            return Err(too_long);
        }
        // An upper bound for parsed JSON.
        let held = shared.memory.take(40 * raw.len()).await.ok_or(NO_ROOM)?;
        let input = match muster_json::from_str(raw) {
            Ok(Value::Null) => json!({}),
            Ok(input @ Value::Object(_)) => input,
            _ => return Err("The arguments of a tool call must be an object."),
        };
        if is_too_deep(&input) {
            return Err("The arguments of a tool call may be nested at most 64 levels deep.");
        }
        // Numbers can become longer: 1e15 is written as 1000000000000000.0.
        let text = input.to_string();
        if text.len() > LONGEST_INPUT {
            return Err(too_long);
        }
        // A task would start now, and answer a later request that was not judged.
        params.retain(&[CALL[0], CALL[1], BESIDE]);
        let progress = params.within(BESIDE).and_then(|beside| beside.value(PROGRESS));
        match progress.filter(|token| token.is_number() || token.is_string()) {
            Some(token) => params.set(BESIDE, json!({ (PROGRESS): token }).to_string()),
            None => params.retain(&CALL),
        }
        params.set("name", Value::from(name.as_str()).to_string());
        if params.has("arguments") {
            params.set("arguments", text);
        }
        Ok(Self { name, input, _held: held })
    }
}
