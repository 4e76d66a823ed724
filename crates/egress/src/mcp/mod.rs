//! The agent's MCP servers. Each call of a tool is judged before it leaves.
//!
//! - `/mcp/<name>`: the server, and `/mcp/<name>/mcp` too: some clients add that to each address that ends otherwise.
//! - `/mcp/<name>/at/…`: the address that a server of the older transport asks its clients to use.
//! - `remote.rs`: servers over HTTP, with headers that the agent never sees.
//! - `stdio.rs`: programs that the host runs outside of the agent's sandbox, offered over HTTP.

mod remote;
mod stdio;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use muster_protocol::{
    is_too_deep,
    plan::{Crossing, McpServer, McpTransport},
};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::time::timeout;

pub use self::{remote::Endpoints, stdio::Servers};
use crate::{
    answers::{Answer, json as json_answer, refusal},
    encoding,
    fields::Fields,
    outside::{Asking, Verdict},
    room::{self, Held},
    rules::Rules,
    shared::Shared,
};

/// A header in which the host has the agent say which conversation a request belongs to. It stays at the gate.
pub const CONVERSATION: &str = "muster-conversation";

/// The longest message, in bytes.
const LONGEST: usize = 8 * 1024 * 1024;
/// How long the agent may take to send a message.
const SENDING: Duration = Duration::from_secs(60);
/// The kind of tool that tools of MCP servers are.
const TOOL_KIND: &str = "other";

/// The fields of a message, and those of a call of a tool. Nothing else may be read as one of them.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const CALL: [&str; 2] = ["name", "arguments"];
/// The method that calls a tool.
const CALLS: &str = "tools/call";
/// The longest name of a tool, in characters, and the longest input, in bytes, as it arrives and as it is sent: people have to
/// read them, and the control plane has to be asked.
const LONGEST_NAME: usize = 200;
const LONGEST_INPUT: usize = 512 * 1024;
/// How much memory a byte of JSON takes when it is understood, at most.
const GROWTH: usize = 40;

/// A request to an MCP server.
pub(crate) struct Message {
    method: Method,
    headers: HeaderMap,
    query: Option<String>,
    /// What is posted.
    body: Option<Posted>,
}

/// A message that is posted.
pub(crate) struct Posted {
    /// Its method; an answer has none.
    method: Option<String>,
    id: Option<Value>,
    /// The tool that it calls, if it does.
    call: Option<Called>,
    /// As it is sent: one line.
    bytes: Bytes,
}

/// A call of a tool.
struct Called {
    name: String,
    input: Value,
    _held: Held,
}

/// Why a message isn't taken.
type Refused = (StatusCode, &'static str);

const NO_ROOM: Refused =
    (StatusCode::SERVICE_UNAVAILABLE, "Too many large messages are under way. Try again later.");

/// Answers a request below `/mcp/`.
pub async fn answer(shared: &Arc<Shared>, rules: &Rules, rest: &str, request: Request<Incoming>) -> Answer {
    let (name, place) = rest.split_once('/').unwrap_or((rest, ""));
    let decoded = percent_decode_str(name).decode_utf8_lossy();
    let Some(server) = rules.mcp_servers.iter().find(|server| server.name == decoded) else {
        return refusal(StatusCode::NOT_FOUND, "This agent has no MCP server of this name.");
    };
    let is_older = matches!(server.transport, McpTransport::Sse { .. });
    let named = place.strip_prefix("at/").filter(|_| is_older);
    if named.is_none() && !matches!(place, "" | "mcp") {
        return refusal(StatusCode::NOT_FOUND, "This MCP server has one address alone.");
    }
    if !matches!(*request.method(), Method::GET | Method::POST | Method::DELETE) {
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "MCP servers are sent GET, POST and DELETE alone.");
    }
    let mut message = match Message::read(shared, request).await {
        Ok(message) => message,
        Err((status, words)) => return refusal(status, words),
    };
    if let Some(body) = &mut message.body
        && let Some(called) = body.call.take()
        && let Err(reason) = judged(shared, rules, server, &message.headers, called).await
    {
        return not_called(server, body.id.as_ref(), &reason);
    }
    match &server.transport {
        McpTransport::Stdio { .. } => stdio::answer(shared, server, message).await,
        McpTransport::Http { url, headers } => remote::answer(shared, message, url, headers).await,
        McpTransport::Sse { url, headers } => {
            let own = format!("/mcp/{name}/at");
            remote::older(shared, message, (url, &own), named, headers).await
        }
    }
}

impl Message {
    /// Reads a request, once there is memory for it. What is posted is passed on as it was understood, so that both sides read
    /// the same.
    async fn read(shared: &Shared, request: Request<Incoming>) -> Result<Self, Refused> {
        let (mut head, body) = request.into_parts();
        let query = head.uri.query().map(str::to_owned);
        if head.method != Method::POST {
            return Ok(Self { method: head.method, headers: head.headers, query, body: None });
        }
        let unread = |words| (StatusCode::UNSUPPORTED_MEDIA_TYPE, words);
        encoding::check_head(&head.headers).map_err(unread)?;
        let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(LONGEST);
        let too_long = (StatusCode::BAD_REQUEST, "The message is too long, or took too long.");
        if size > LONGEST {
            return Err(too_long);
        }
        // As it arrives, whole, and as it is sent, with the parts that are written again.
        let held = shared.room.take(4 * size).await.ok_or(NO_ROOM)?;
        let reading = timeout(SENDING, Limited::new(body, LONGEST).collect()).await;
        let bytes = reading.ok().and_then(Result::ok).ok_or(too_long)?.to_bytes();
        encoding::check_body(&bytes).map_err(unread)?;
        let body = Posted::read(shared, &bytes, held).await?;
        encoding::set(&mut head.headers);
        Ok(Self { method: head.method, headers: head.headers, query, body: Some(body) })
    }

    fn bytes(&self) -> Bytes {
        self.body.as_ref().map(|body| body.bytes.clone()).unwrap_or_default()
    }
}

impl Posted {
    async fn read(shared: &Shared, bytes: &[u8], mut held: Held) -> Result<Self, Refused> {
        let bad = |words| (StatusCode::BAD_REQUEST, words);
        let is_list = bytes.trim_ascii_start().starts_with(b"[");
        let no_batch = "Send one message at a time: the protocol no longer has batches.";
        let mut fields = Fields::read(bytes).ok_or(bad(if is_list {
            no_batch
        } else {
            "The message is no JSON object, or has too many fields."
        }))?;
        let misspelt =
            bad("A field of this message could be read as another one. Write it as the protocol does.");
        if fields.misspells(&ENVELOPE) {
            return Err(misspelt);
        }
        let method = fields.has("method").then(|| fields.text("method"));
        let method = method.map(|method| method.ok_or(bad("The method must be a string."))).transpose()?;
        if method.as_deref().is_some_and(|method| method.chars().any(char::is_control)) {
            // A reader that ends texts at a NUL would read another method.
            return Err(bad("The method must not have control characters."));
        }
        let id = fields.has("id").then(|| fields.value("id").filter(|id| !(id.is_array() || id.is_object())));
        let id = id.map(|id| id.ok_or(bad("The id is neither a text nor a number."))).transpose()?;
        let mut call = None;
        if let Some(mut params) = fields.within("params") {
            if params.misspells(&CALL) {
                return Err(misspelt);
            }
            if is_call(method.as_deref()) {
                call = Some(Called::read(shared, &mut params).await?);
            }
            fields.set("params", params.write(0));
        } else if is_call(method.as_deref()) {
            return Err(bad("A call of a tool has its name and its arguments in `params`."));
        }
        let text = fields.write(bytes.len());
        held.shrink(text.len());
        Ok(Self { method, id, call, bytes: room::kept(text, held) })
    }
}

/// Whether a message calls a tool, for readers that are not strict either.
fn is_call(method: Option<&str>) -> bool {
    method.is_some_and(|method| method.trim().eq_ignore_ascii_case(CALLS))
}

impl Called {
    async fn read(shared: &Shared, params: &mut Fields<'_>) -> Result<Self, Refused> {
        let bad = |words| (StatusCode::BAD_REQUEST, words);
        let name = params.text("name").filter(|name| (1..=LONGEST_NAME).contains(&name.chars().count()));
        let name = name.ok_or(bad("A call names its tool, in 200 characters at most."))?;
        let raw = params.raw("arguments").unwrap_or("null");
        let too_long = bad("The arguments of a call have 512 KiB at most.");
        if raw.len() > LONGEST_INPUT {
            return Err(too_long);
        }
        let held = shared.room.take(GROWTH * raw.len()).await.ok_or(NO_ROOM)?;
        let input = match serde_json::from_str(raw) {
            Ok(Value::Null) => json!({}),
            Ok(input @ Value::Object(_)) => input,
            _ => return Err(bad("The arguments of a call are an object.")),
        };
        if is_too_deep(&input) {
            return Err(bad("The arguments of a call are nested at most 64 levels deep."));
        }
        // Numbers can become longer: 1e15 is written as 1000000000000000.0.
        let text = input.to_string();
        if text.len() > LONGEST_INPUT {
            return Err(too_long);
        }
        params.set("name", Value::from(name.as_str()).to_string());
        if params.has("arguments") {
            params.set("arguments", text);
        }
        Ok(Self { name, input, _held: held })
    }
}

/// Whether a call of a tool may leave.
async fn judged(
    shared: &Shared,
    rules: &Rules,
    server: &McpServer,
    headers: &HeaderMap,
    called: Called,
) -> Result<(), String> {
    for group in [server.name.as_str(), TOOL_KIND] {
        if rules.is_disabled(group) {
            return Err(format!("The tool group {group:?} is switched off for this agent."));
        }
    }
    let Called { name, input, _held: held } = called;
    let tool = format!("{}.{name}", server.name);
    let title = format!("Use {tool}");
    let crossing = Crossing { tool, tool_kind: TOOL_KIND.to_owned(), input };
    let conversation_id =
        headers.get(CONVERSATION).and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
    let verdict = shared.outside.judge(Asking { crossing, conversation_id, title }).await;
    drop(held);
    match verdict {
        Verdict::Allowed | Verdict::Approved => Ok(()),
        Verdict::Refused { reason } => Err(format!("The call was not made. {reason}")),
        Verdict::Asked => {
            Err("Asked. Nobody has answered yet, and the call was not made. End your turn now: the \
                               answer comes as the next message of this conversation. Don't ask again."
                .to_owned())
        }
    }
}

/// The result of a call that was not made: an error of the tool, which the model reads.
fn not_called(server: &McpServer, id: Option<&Value>, reason: &str) -> Answer {
    let Some(id) = id.filter(|id| !id.is_null()) else {
        return refusal(StatusCode::FORBIDDEN, reason);
    };
    if matches!(server.transport, McpTransport::Sse { .. }) {
        // Results travel on another connection there.
        return refusal(StatusCode::FORBIDDEN, reason);
    }
    let result = json!({ "content": [{ "type": "text", "text": reason }], "isError": true });
    json_answer(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
