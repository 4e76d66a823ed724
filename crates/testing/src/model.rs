//! A fake model with the APIs documented by OpenAI and Anthropic. The user's last message controls its answer.
//!
//! | Last message of the user | Answer |
//! |---|---|
//! | `USE tool {json}`, in one or several lines | calls the tools with these name endings, then repeats their results |
//! | `ALWAYS tool {json}` | calls the tool repeatedly |
//! | `STATUS 429 7` | this status, and `Retry-After: 7` if given |
//! | `BREAK` | breaks off after the first word |
//! | `HOLD` | one word, and then nothing |
//! | `THINK text` | a thought first |
//! | `LONG` | stops at the token limit |
//! | `OVERLOADED` | fails in the middle |
//! | anything else | repeats the message word by word |
//!
//! A conversation with a tool name or call id that some service refuses is answered with 400.
//!
//! A test can decide the answers itself: [`Model::deciding`].
//!
//! Each answer costs 11 input tokens, 3 of them from a cache, and 7 output tokens.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

/// The model's server. It runs until it is dropped.
pub struct Model {
    /// `http://127.0.0.1:PORT`. OpenAI's API is below `/v1`.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: AbortHandle,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Model {
    /// Starts the server on a free loopback port.
    pub async fn start() -> Self {
        Self::deciding(act).await
    }

    /// Like [`Model::start`], with answers by `decide`.
    pub async fn deciding(decide: fn(&Seen) -> Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let router = Router::new().fallback(answer).with_state((asked.clone(), decide));
        #[expect(clippy::disallowed_methods, reason = "it belongs to no service")]
        let serving = tokio::task::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, asked, serving: serving.abort_handle() }
    }

    /// The received requests, oldest first.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// An answer.
pub enum Act {
    Say(String),
    Think(String),
    Use(Vec<(String, String)>),
    Status(u16, Option<String>),
    Break,
    Hold,
    Long,
    Overloaded,
}

/// The relevant parts of a conversation.
pub struct Seen {
    /// The user's last message.
    pub said: String,
    /// The results of tools since then, oldest first.
    pub results: Vec<String>,
    /// The names of the offered tools.
    pub tools: Vec<String>,
}

type Shared = (Arc<Mutex<Vec<Asked>>>, fn(&Seen) -> Act);

async fn answer(State((asked, decide)): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 * 1024 * 1024).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    asked.lock().unwrap().push(Asked { path: path.clone(), headers: parts.headers, body: body.clone() });
    let openai = match path.as_str() {
        "/v1/chat/completions" => true,
        "/v1/messages" => false,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    if !accepts(&body) {
        let error =
            json!({ "error": { "type": "invalid_request_error", "message": "a tool call is not valid" } });
        return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response();
    }
    let act = decide(&seen(&body));
    if let Act::Status(status, after) = act {
        let error = json!({ "error": { "type": "made_up", "message": format!("told to answer {status}") } });
        let status = StatusCode::from_u16(status).unwrap();
        let mut response = (status, axum::Json(error)).into_response();
        if let Some(after) = after {
            response.headers_mut().insert("retry-after", after.parse().unwrap());
        }
        return response;
    }
    let hold = matches!(act, Act::Hold);
    let events = if openai { openai_events(act) } else { anthropic_events(act) };
    let said = stream::iter(events).map(|event| Ok::<_, Infallible>(Bytes::from(event)));
    let body = if hold { Body::from_stream(said.chain(stream::pending())) } else { Body::from_stream(said) };
    ([("content-type", "text/event-stream")], body).into_response()
}

/// Whether all services accept the names and ids of tool calls, and each result has a call's id.
fn accepts(body: &Value) -> bool {
    let messages: Vec<&Value> = list(&body["messages"]).collect();
    let blocks: Vec<&Value> = messages.iter().flat_map(|message| list(&message["content"])).collect();
    let openai = messages.iter().flat_map(|message| list(&message["tool_calls"]));
    let openai = openai.map(|call| (&call["id"], &call["function"]["name"]));
    let anthropic = blocks.iter().filter(|block| block["type"] == "tool_use");
    let anthropic = anthropic.map(|block| (&block["id"], &block["name"]));
    let calls: Vec<(&Value, &Value)> = openai.chain(anthropic).collect();
    let results = messages.iter().map(|message| &message["tool_call_id"]);
    let results = results.chain(blocks.iter().map(|block| &block["tool_use_id"]));
    calls.iter().all(|&(id, name)| is_plain(id, 40) && is_plain(name, 64))
        && results.filter(|id| !id.is_null()).all(|result| calls.iter().any(|&(id, _)| id == result))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a value is a nonempty string of at most `longest` letters, digits, `_` and `-`.
fn is_plain(value: &Value, longest: usize) -> bool {
    value.as_str().is_some_and(|text| {
        (1..=longest).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    })
}

/// The text of a message, from a string or blocks.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match &block["content"] {
                Value::Null => block["text"].as_str().unwrap_or_default().to_owned(),
                content => text(content),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn seen(body: &Value) -> Seen {
    let none = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&none);
    let is_result =
        |message: &Value| message["role"] == "tool" || message["content"][0]["type"] == "tool_result";
    let is_user = |message: &Value| message["role"] == "user" && !is_result(message);
    let last = messages.iter().rposition(is_user);
    let said = last.map(|last| text(&messages[last]["content"])).unwrap_or_default();
    let since = messages.iter().skip(last.map_or(0, |last| last + 1));
    let results = since.filter(|message| is_result(message)).map(|result| text(&result["content"]));
    let tools = body["tools"].as_array().unwrap_or(&none).iter();
    let tools = tools.filter_map(|tool| tool["function"]["name"].as_str().or(tool["name"].as_str()));
    Seen { said, results: results.collect(), tools: tools.map(str::to_owned).collect() }
}

/// The default answer.
fn act(Seen { said, results, tools }: &Seen) -> Act {
    let wanted = |line: &str| {
        let (name, input) = line.split_once(' ').unwrap_or((line, "{}"));
        let full = tools.iter().find(|tool| tool.ends_with(name)).map_or(name, |tool| tool);
        (full.to_owned(), input.to_owned())
    };
    // A host can add lines before the message.
    let last = said.lines().last().unwrap_or_default();
    let (word, rest) = last.split_once(' ').unwrap_or((last, ""));
    match word {
        "ALWAYS" => Act::Use(vec![wanted(rest)]),
        "USE" if results.is_empty() => {
            Act::Use(said.lines().filter_map(|line| line.strip_prefix("USE ")).map(wanted).collect())
        }
        "USE" => Act::Say(format!("The tools said: {}", results.join(" and "))),
        "STATUS" => {
            let (status, after) =
                rest.split_once(' ').map_or((rest, None), |(status, after)| (status, Some(after)));
            Act::Status(status.parse().unwrap(), after.map(str::to_owned))
        }
        "BREAK" => Act::Break,
        "HOLD" => Act::Hold,
        "LONG" => Act::Long,
        "OVERLOADED" => Act::Overloaded,
        "THINK" => Act::Think(rest.to_owned()),
        _ => Act::Say(said.clone()),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Splits JSON into two chunks, as models stream it.
fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.len() / 2);
    [first, second]
}

fn openai_events(act: Act) -> Vec<String> {
    let event = |data: Value| format!("data: {data}\n\n");
    let chunk = |delta: Value, reason: Value| {
        event(json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        }))
    };
    let say = |text: &str| {
        words(text).map(|word| chunk(json!({ "content": word }), Value::Null)).collect::<Vec<_>>()
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    let mut reason = "stop";
    match act {
        Act::Say(text) => events.extend(say(&text)),
        Act::Think(text) => {
            events.push(chunk(json!({ "reasoning_content": text }), Value::Null));
            events.extend(say("I have thought."));
        }
        Act::Use(calls) => {
            reason = "tool_calls";
            for (index, (name, input)) in calls.into_iter().enumerate() {
                let function = json!({ "name": name, "arguments": "" });
                let call = json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function });
                events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
                for half in halves(&input) {
                    let call = json!({ "index": index, "function": { "arguments": half } });
                    events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
                }
            }
        }
        Act::Break | Act::Hold => {
            events.extend(say("One"));
            return events;
        }
        Act::Overloaded => {
            events.push(event(json!({ "error": { "message": "overloaded", "type": "server_error" } })));
            return events;
        }
        Act::Long => {
            reason = "length";
            events.extend(say("Too long"));
        }
        Act::Status(..) => {}
    }
    events.push(chunk(json!({}), json!(reason)));
    let usage = json!({
        "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "prompt_tokens_details": { "cached_tokens": 3 },
    });
    events
        .push(event(json!({ "id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage })));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn anthropic_events(act: Act) -> Vec<String> {
    let event = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let usage = json!({
        "input_tokens": 8, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3,
    });
    let message = json!({ "id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage });
    let mut events =
        vec![event(json!({ "type": "message_start", "message": message })), event(json!({ "type": "ping" }))];
    let block = |index: usize, block: Value, deltas: Vec<Value>| {
        let start = json!({ "type": "content_block_start", "index": index, "content_block": block });
        let deltas = deltas
            .into_iter()
            .map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        let stop = json!({ "type": "content_block_stop", "index": index });
        [start].into_iter().chain(deltas).chain([stop]).map(event).collect::<Vec<_>>()
    };
    let say = |index: usize, text: &str| {
        let deltas = words(text).map(|word| json!({ "type": "text_delta", "text": word })).collect();
        block(index, json!({ "type": "text", "text": "" }), deltas)
    };
    let mut reason = "end_turn";
    match act {
        Act::Say(text) => events.extend(say(0, &text)),
        Act::Think(text) => {
            let deltas = vec![
                json!({ "type": "thinking_delta", "thinking": text }),
                json!({ "type": "signature_delta", "signature": "s" }),
            ];
            events.extend(block(0, json!({ "type": "thinking", "thinking": "" }), deltas));
            events.extend(say(1, "I have thought."));
        }
        Act::Use(calls) => {
            reason = "tool_use";
            for (index, (name, input)) in calls.into_iter().enumerate() {
                let start =
                    json!({ "type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {} });
                let deltas =
                    halves(&input).map(|half| json!({ "type": "input_json_delta", "partial_json": half }));
                events.extend(block(index, start, deltas.to_vec()));
            }
        }
        Act::Break | Act::Hold => {
            events.extend(say(0, "One"));
            return events;
        }
        Act::Overloaded => {
            let error = json!({ "type": "overloaded_error", "message": "overloaded" });
            events.push(event(json!({ "type": "error", "error": error })));
            return events;
        }
        Act::Long => {
            reason = "max_tokens";
            events.extend(say(0, "Too long"));
        }
        Act::Status(..) => {}
    }
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    events.push(event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } })));
    events.push(event(json!({ "type": "message_stop" })));
    events
}
