//! Anthropic's messages API.

use agent_client_protocol::v1::schema::StopReason;
use serde_json::{Value, json};

use super::{Answer, Chunk, ModelRequest};
use crate::{
    history::Entry,
    turn::{TokenUsage, interrupted_outcome},
};

/// The API version.
pub const VERSION: &str = "2023-06-01";

pub fn body(request: &ModelRequest<'_>) -> Value {
    let mut messages = Vec::new();
    let mut entries = request.entries.iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            Entry::User(message) => add_block(&mut messages, "user", text_block(&message.text)),
            Entry::Thought(_) => {}
            Entry::Agent(message) => add_block(&mut messages, "assistant", text_block(&message.text)),
            Entry::Tool(first) => {
                let mut calls = vec![first];
                while let Some(Entry::Tool(next)) = entries.next_if(|entry| matches!(entry, Entry::Tool(_))) {
                    calls.push(next);
                }
                for call in &calls {
                    let tool_use =
                        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.input });
                    add_block(&mut messages, "assistant", tool_use);
                }
                for call in calls {
                    let outcome = call.result.clone().unwrap_or_else(interrupted_outcome);
                    let result = json!({
                        "type": "tool_result", "tool_use_id": call.id, "content": outcome.text, "is_error": outcome.failed,
                    });
                    add_block(&mut messages, "user", result);
                }
            }
        }
    }
    let mut body = json!({
        "model": request.model,
        "max_tokens": 8192,
        "system": request.system,
        "messages": messages,
        "stream": true,
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(
            |tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema }),
        );
        body["tools"] = tools.collect();
    }
    body
}

/// Empty texts are refused.
fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": if text.trim().is_empty() { "(nothing)" } else { text } })
}

/// Roles must alternate, so consecutive blocks of one role share a message.
fn add_block(messages: &mut Vec<Value>, role: &str, block: Value) {
    match messages
        .last_mut()
        .filter(|last| last["role"] == role)
        .and_then(|last| last["content"].as_array_mut())
    {
        Some(content) => content.push(block),
        None => messages.push(json!({ "role": role, "content": [block] })),
    }
}

pub fn apply_event(answer: &mut Answer, event: &Value) -> Vec<Chunk> {
    let index = event["index"].as_u64().unwrap_or_default();
    match event["type"].as_str() {
        Some("message_start") => {
            let usage = &event["message"]["usage"];
            let count = |name: &str| usage[name].as_u64().unwrap_or_default();
            answer.usage = usage.is_object().then(|| TokenUsage {
                input: count("input_tokens"),
                output: count("output_tokens"),
                cache_read: count("cache_read_input_tokens"),
                cache_write: count("cache_creation_input_tokens"),
            });
        }
        Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
            let name = event["content_block"]["name"].as_str().unwrap_or_default();
            answer.tool_requests.entry(index).or_default().name.push_str(name);
        }
        Some("content_block_delta") => return apply_delta(answer, index, &event["delta"]),
        Some("message_delta") => {
            // A cumulative count.
            if let (Some(usage), Some(output)) = (&mut answer.usage, event["usage"]["output_tokens"].as_u64())
            {
                usage.output = output;
            }
            answer.stop = match event["delta"]["stop_reason"].as_str() {
                Some("max_tokens" | "model_context_window_exceeded") => Some(StopReason::MaxTokens),
                Some("refusal") => Some(StopReason::Refusal),
                _ => None,
            };
        }
        Some("message_stop") => answer.complete = true,
        _ => {}
    }
    Vec::new()
}

fn apply_delta(answer: &mut Answer, index: u64, delta: &Value) -> Vec<Chunk> {
    if let Some(text) = delta["text"].as_str() {
        answer.text.push_str(text);
        return vec![Chunk::Text(text.to_owned())];
    }
    if let Some(text) = delta["thinking"].as_str() {
        answer.thought.push_str(text);
        return vec![Chunk::Thought(text.to_owned())];
    }
    if let Some(json) = delta["partial_json"].as_str() {
        answer.tool_requests.entry(index).or_default().input.push_str(json);
    }
    Vec::new()
}
