//! Anthropic's messages.

use agent_client_protocol::v1::schema::StopReason;
use serde_json::{Value, json};

use super::{Answer, Piece, Question};
use crate::{
    history::Entry,
    turn::{Spent, interrupted},
};

/// The version of the interface.
pub const VERSION: &str = "2023-06-01";

/// The body of a request.
pub fn body(question: &Question<'_>) -> Value {
    let mut messages = Vec::new();
    let mut entries = question.entries.iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            Entry::User(said) => add(&mut messages, "user", text(&said.text)),
            Entry::Thought(_) => {}
            Entry::Agent(said) => add(&mut messages, "assistant", text(&said.text)),
            Entry::Tool(first) => {
                let mut calls = vec![first];
                while let Some(Entry::Tool(next)) = entries.next_if(|entry| matches!(entry, Entry::Tool(_))) {
                    calls.push(next);
                }
                for call in &calls {
                    let wanted =
                        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.input });
                    add(&mut messages, "assistant", wanted);
                }
                for call in calls {
                    let outcome = call.result.clone().unwrap_or_else(interrupted);
                    let result = json!({
                        "type": "tool_result", "tool_use_id": call.id, "content": outcome.text, "is_error": outcome.failed,
                    });
                    add(&mut messages, "user", result);
                }
            }
        }
    }
    let mut body = json!({
        "model": question.model,
        "max_tokens": 8192,
        "system": question.system,
        "messages": messages,
        "stream": true,
    });
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(
            |tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema }),
        );
        body["tools"] = tools.collect();
    }
    body
}

/// A text must not be empty.
fn text(text: &str) -> Value {
    json!({ "type": "text", "text": if text.trim().is_empty() { "(nothing)" } else { text } })
}

/// Roles take turns: what the same one says next goes into its message.
fn add(messages: &mut Vec<Value>, role: &str, block: Value) {
    match messages
        .last_mut()
        .filter(|last| last["role"] == role)
        .and_then(|last| last["content"].as_array_mut())
    {
        Some(content) => content.push(block),
        None => messages.push(json!({ "role": role, "content": [block] })),
    }
}

/// Adds an event to the answer.
pub fn absorb(answer: &mut Answer, event: &Value) -> Vec<Piece> {
    let index = event["index"].as_u64().unwrap_or_default();
    match event["type"].as_str() {
        Some("message_start") => {
            let usage = &event["message"]["usage"];
            let count = |name: &str| usage[name].as_u64().unwrap_or_default();
            answer.spent = usage.is_object().then(|| Spent {
                input: count("input_tokens"),
                output: count("output_tokens"),
                cache_read: count("cache_read_input_tokens"),
                cache_write: count("cache_creation_input_tokens"),
            });
        }
        Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
            let name = event["content_block"]["name"].as_str().unwrap_or_default();
            answer.wanted.entry(index).or_default().name.push_str(name);
        }
        Some("content_block_delta") => return delta(answer, index, &event["delta"]),
        Some("message_delta") => {
            // The count so far, not another one.
            if let (Some(spent), Some(output)) = (&mut answer.spent, event["usage"]["output_tokens"].as_u64())
            {
                spent.output = output;
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

fn delta(answer: &mut Answer, index: u64, delta: &Value) -> Vec<Piece> {
    if let Some(text) = delta["text"].as_str() {
        answer.text.push_str(text);
        return vec![Piece::Text(text.to_owned())];
    }
    if let Some(text) = delta["thinking"].as_str() {
        answer.thought.push_str(text);
        return vec![Piece::Thought(text.to_owned())];
    }
    if let Some(json) = delta["partial_json"].as_str() {
        answer.wanted.entry(index).or_default().input.push_str(json);
    }
    Vec::new()
}
