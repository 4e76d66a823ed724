//! A message of a client. It is passed on as it was understood, so that both sides read the same.

use bytes::Bytes;
use muster_protocol::is_too_deep;
use serde_json::{Value, json};

use super::lines::Line;
use crate::{
    encoding,
    fields::Fields,
    room::{self, Held},
    shared::Shared,
};

/// The fields of a message, and those of a call of a tool. Nothing else may be read as one of them.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const CALL: [&str; 2] = ["name", "arguments"];
/// What a call may have beside its name and its arguments, which is not judged: the name under which its progress is reported.
const BESIDE: &str = "_meta";
const PROGRESS: &str = "progressToken";
/// The method that calls a tool.
const CALLS: &str = "tools/call";
/// The longest input of a tool, in bytes, as it arrives and as it is sent: an agent could have people read, and the control plane
/// keep, anything.
const LONGEST_INPUT: usize = 512 * 1024;
const NO_ROOM: &str = "Too many large messages are under way. Try again later.";

/// A message.
pub struct Message {
    /// Its method; an answer has none.
    pub method: Option<String>,
    pub id: Option<Value>,
    /// The request that a cancellation is about.
    pub cancels: Option<Value>,
    /// The tool that it calls, if it does.
    pub call: Option<Called>,
    /// As it is sent: one line.
    pub bytes: Bytes,
}

/// A call of a tool.
pub struct Called {
    pub name: String,
    pub input: Value,
    _held: Held,
}

/// Why a message isn't taken, and its id, if it has one that can be read.
pub struct Refused {
    pub id: Option<Value>,
    pub why: &'static str,
}

impl Message {
    pub async fn read(shared: &Shared, Line { bytes, mut held }: Line) -> Result<Self, Refused> {
        let bad = |why| Refused { id: None, why };
        encoding::check_body(&bytes).map_err(bad)?;
        let is_list = bytes.trim_ascii_start().starts_with(b"[");
        let no_batch = "Send one message at a time: the protocol no longer has batches.";
        let mut fields = Fields::read(&bytes).ok_or(bad(if is_list {
            no_batch
        } else {
            "The message is not a JSON object, or has too many fields."
        }))?;
        let id = fields.value("id").filter(|id| !(id.is_array() || id.is_object()));
        let bad = |why| Refused { id: id.clone(), why };
        let misspelt = "A field of this message could be read as another one. Write it as the protocol does.";
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
            return Err(bad("The id is neither a text nor a number."));
        }
        let (mut call, mut cancels) = (None, None);
        if let Some(mut params) = fields.within("params") {
            if params.misspells(&CALL) {
                return Err(bad(misspelt));
            }
            if is_call(method.as_deref()) {
                call = Some(Called::read(shared, &mut params).await.map_err(bad)?);
            }
            cancels =
                params.value("requestId").filter(|_| method.as_deref() == Some("notifications/cancelled"));
            fields.set("params", params.write(0));
        } else if is_call(method.as_deref()) {
            return Err(bad("A call of a tool has its name and its arguments in `params`."));
        }
        if call.is_some() && id.as_ref().is_none_or(Value::is_null) {
            return Err(bad("A call of a tool has an id."));
        }
        let text = fields.write(bytes.len());
        held.shrink(text.len());
        Ok(Self { method, id, cancels, call, bytes: room::kept(text, held) })
    }

    /// The id of a request: what has to be answered.
    pub fn request(&self) -> Option<&Value> {
        self.id.as_ref().filter(|id| self.method.is_some() && !id.is_null())
    }
}

/// Whether a message calls a tool, for readers that are not strict either.
fn is_call(method: Option<&str>) -> bool {
    method.is_some_and(|method| method.trim().eq_ignore_ascii_case(CALLS))
}

impl Called {
    async fn read(shared: &Shared, params: &mut Fields<'_>) -> Result<Self, &'static str> {
        let name = params.text("name").filter(|name| (1..=200).contains(&name.chars().count()));
        let name = name.ok_or("A call names its tool, in 200 characters at most.")?;
        let raw = params.raw("arguments").unwrap_or("null");
        let too_long = "The arguments of a call have 512 KiB at most.";
        if raw.len() > LONGEST_INPUT {
            return Err(too_long);
        }
        // So much memory can JSON take when it is understood.
        let held = shared.room.take(40 * raw.len()).await.ok_or(NO_ROOM)?;
        let input = match muster_json::from_str(raw) {
            Ok(Value::Null) => json!({}),
            Ok(input @ Value::Object(_)) => input,
            _ => return Err("The arguments of a call are an object."),
        };
        if is_too_deep(&input) {
            return Err("The arguments of a call are nested at most 64 levels deep.");
        }
        // Numbers can become longer: 1e15 is written as 1000000000000000.0.
        let text = input.to_string();
        if text.len() > LONGEST_INPUT {
            return Err(too_long);
        }
        // A task would be called now and answered later, to a request that was not judged.
        params.leave(&[CALL[0], CALL[1], BESIDE]);
        let progress = params.within(BESIDE).and_then(|beside| beside.value(PROGRESS));
        match progress.filter(|token| token.is_number() || token.is_string()) {
            Some(token) => params.set(BESIDE, json!({ (PROGRESS): token }).to_string()),
            None => params.leave(&CALL),
        }
        params.set("name", Value::from(name.as_str()).to_string());
        if params.has("arguments") {
            params.set("arguments", text);
        }
        Ok(Self { name, input, _held: held })
    }
}
