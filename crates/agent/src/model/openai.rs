//! OpenAI's chat completions, as OpenAI and the many who imitate it document them.

use agent_client_protocol::v1::schema::StopReason;
use serde_json::{Value, json};

use super::{Answer, Piece, Question};
use crate::{
    history::{Call, Entry},
    turn::{Spent, interrupted},
};

/// The body of a request.
pub fn body(question: &Question<'_>) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": question.system })];
    let mut entries = question.entries.iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            Entry::User(said) => messages.push(json!({ "role": "user", "content": said.text })),
            Entry::Thought(_) => {}
            Entry::Agent(said) => {
                messages.push(json!({ "role": "assistant", "content": said.text }));
            }
            Entry::Tool(first) => {
                let mut calls = vec![first];
                while let Some(Entry::Tool(next)) = entries.next_if(|entry| matches!(entry, Entry::Tool(_))) {
                    calls.push(next);
                }
                // The calls belong to what was said just before, if anything was.
                let wanted = Value::from(calls.iter().map(|call| wanted(call)).collect::<Vec<_>>());
                match messages.last_mut() {
                    Some(last) if last["role"] == "assistant" => last["tool_calls"] = wanted,
                    _ => messages.push(json!({ "role": "assistant", "content": null, "tool_calls": wanted })),
                }
                for call in calls {
                    let text = call.result.clone().unwrap_or_else(interrupted).text;
                    messages.push(json!({ "role": "tool", "tool_call_id": call.id, "content": text }));
                }
            }
        }
    }
    let mut body = json!({
        "model": question.model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(|tool| {
            let function =
                json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema });
            json!({ "type": "function", "function": function })
        });
        body["tools"] = tools.collect();
    }
    body
}

fn wanted(call: &Call) -> Value {
    let function = json!({ "name": call.name, "arguments": call.input.to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// Adds a chunk to the answer.
pub fn absorb(answer: &mut Answer, chunk: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let choice = &chunk["choices"][0];
    let delta = &choice["delta"];
    // Services that show thoughts have agreed on one of these names.
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = delta[name].as_str().filter(|text| !text.is_empty()) {
            answer.thought.push_str(text);
            pieces.push(Piece::Thought(text.to_owned()));
            break;
        }
    }
    if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
        answer.text.push_str(text);
        pieces.push(Piece::Text(text.to_owned()));
    }
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let wanted = answer.wanted.entry(call["index"].as_u64().unwrap_or_default()).or_default();
        wanted.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        wanted.input.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        answer.complete = true;
        answer.stop = match reason {
            "length" => Some(StopReason::MaxTokens),
            "content_filter" => Some(StopReason::Refusal),
            _ => None,
        };
    }
    if let Some(read) = chunk["usage"]["prompt_tokens"].as_u64() {
        let cached = chunk["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or_default();
        answer.spent = Some(Spent {
            input: read.saturating_sub(cached),
            output: chunk["usage"]["completion_tokens"].as_u64().unwrap_or_default(),
            cache_read: cached,
            cache_write: 0,
        });
    }
    pieces
}
