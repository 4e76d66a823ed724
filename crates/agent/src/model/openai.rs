//! OpenAI's chat completions API, including the extensions of compatible services.

use agent_client_protocol::v1::schema::StopReason;
use serde_json::{Value, json};

use super::{Answer, Chunk, ModelRequest};
use crate::{
    history::{Call, Entry},
    turn::{TokenUsage, interrupted_outcome},
};

pub fn body(request: &ModelRequest<'_>) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": request.system })];
    let mut entries = request.entries.iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            Entry::User(message) => messages.push(json!({ "role": "user", "content": message.text })),
            Entry::Thought(_) => {}
            Entry::Agent(message) => {
                messages.push(json!({ "role": "assistant", "content": message.text }));
            }
            Entry::Tool(first) => {
                let mut calls = vec![first];
                while let Some(Entry::Tool(next)) = entries.next_if(|entry| matches!(entry, Entry::Tool(_))) {
                    calls.push(next);
                }
                // Calls belong to the assistant's preceding message, if there is one.
                let tool_calls = Value::from(calls.iter().map(|call| tool_call(call)).collect::<Vec<_>>());
                match messages.last_mut() {
                    Some(last) if last["role"] == "assistant" => last["tool_calls"] = tool_calls,
                    _ => messages
                        .push(json!({ "role": "assistant", "content": null, "tool_calls": tool_calls })),
                }
                for call in calls {
                    let text = call.result.clone().unwrap_or_else(interrupted_outcome).text;
                    messages.push(json!({ "role": "tool", "tool_call_id": call.id, "content": text }));
                }
            }
        }
    }
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let function =
                json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema });
            json!({ "type": "function", "function": function })
        });
        body["tools"] = tools.collect();
    }
    body
}

fn tool_call(call: &Call) -> Value {
    let function = json!({ "name": call.name, "arguments": call.input.to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

pub fn apply_event(answer: &mut Answer, chunk: &Value) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let choice = &chunk["choices"][0];
    let delta = &choice["delta"];
    // Services with visible thoughts use one of these names.
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = delta[name].as_str().filter(|text| !text.is_empty()) {
            answer.thought.push_str(text);
            chunks.push(Chunk::Thought(text.to_owned()));
            break;
        }
    }
    if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
        answer.text.push_str(text);
        chunks.push(Chunk::Text(text.to_owned()));
    }
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let tool_request =
            answer.tool_requests.entry(call["index"].as_u64().unwrap_or_default()).or_default();
        tool_request.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        tool_request.input.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
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
        answer.usage = Some(TokenUsage {
            input: read.saturating_sub(cached),
            output: chunk["usage"]["completion_tokens"].as_u64().unwrap_or_default(),
            cache_read: cached,
            cache_write: 0,
        });
    }
    chunks
}
