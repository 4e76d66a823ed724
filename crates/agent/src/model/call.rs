//! Model requests over HTTP, with streamed answers.

use agent_client_protocol::Error;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{Response, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};

use super::{Answer, Chunk, ModelRequest, anthropic, openai};
use crate::{
    bounds::{HEAD, LARGEST},
    outbound::Http,
    settings::{Access, Provider},
    turn::Stop,
};

pub type Events = BoxStream<'static, Result<Sse, sse_stream::Error>>;

#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("{0}")]
    Connection(reqwest::Error),
    #[error("it is longer than {LARGEST} bytes")]
    TooLong,
}

pub async fn open_stream(http: &Http, access: &Access, request: &ModelRequest<'_>) -> Result<Events, Stop> {
    let (path, body) = match access.provider {
        Provider::OpenAi => ("chat/completions", openai::body(request)),
        Provider::Anthropic => ("v1/messages", anthropic::body(request)),
    };
    let http = http
        .client()
        .map_err(|error| failure(format!("The system's certificates can't be read: {error}"), None))?;
    let mut request = http.post(format!("{}/{path}", access.base_url)).json(&body);
    match (access.provider, &access.key) {
        (Provider::OpenAi, Some(key)) => request = request.bearer_auth(key),
        (Provider::OpenAi, None) => {}
        (Provider::Anthropic, key) => {
            request = request.header("anthropic-version", anthropic::VERSION);
            if let Some(key) = key {
                request = request.header("x-api-key", key);
            }
        }
    }
    let response = request.send().await.map_err(|error| {
        failure(format!("The model can't be reached: {}", describe_error(&error.without_url())), None)
    })?;
    if response.status().is_success() {
        Ok(SseStream::from_bytes_stream(limit_size(response)).boxed())
    } else {
        Err(read_refusal(response).await)
    }
}

fn limit_size(response: Response) -> impl Stream<Item = Result<bytes::Bytes, StreamError>> + Send {
    let mut read = 0;
    response.bytes_stream().map_err(|error| StreamError::Connection(error.without_url())).and_then(
        move |bytes| {
            read += bytes.len();
            std::future::ready(if read > LARGEST { Err(StreamError::TooLong) } else { Ok(bytes) })
        },
    )
}

/// The next event's data. None at the end.
pub async fn next_event(events: &mut Events) -> Result<Option<Value>, Stop> {
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| {
            failure(format!("The model's answer broke off: {}", describe_error(&error)), None)
        })?;
        match event.data.as_deref().map(str::trim) {
            None | Some("") => {}
            Some("[DONE]") => return Ok(None),
            Some(data) => {
                let error = |error| failure(format!("The model's answer is invalid JSON: {error}"), None);
                return serde_json::from_str(data).map(Some).map_err(error);
            }
        }
    }
    Ok(None)
}

/// Adds an event to the answer, and returns the chunks for the client.
pub fn apply_event(provider: Provider, answer: &mut Answer, event: &Value) -> Result<Vec<Chunk>, Stop> {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        return Err(failure(format!("The model failed: {}", error_message(error)), None));
    }
    Ok(match provider {
        Provider::OpenAi => openai::apply_event(answer, event),
        Provider::Anthropic => anthropic::apply_event(answer, event),
    })
}

/// A failure of the turn. People read `message`; programs read `data`.
pub fn failure(message: String, data: Option<Value>) -> Stop {
    let mut error = Error::internal_error();
    error.message = message;
    error.data = data;
    Stop::Failed(error)
}

async fn read_refusal(response: Response) -> Stop {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body = Vec::new();
    let mut bytes = limit_size(response).boxed();
    while let Some(Ok(more)) = bytes.next().await {
        body.extend_from_slice(&more);
        if body.len() > HEAD {
            break;
        }
    }
    body.truncate(HEAD);
    let why = match serde_json::from_slice::<Value>(&body) {
        Ok(body) => error_message(body.get("error").unwrap_or(&body)),
        Err(_) => String::from_utf8_lossy(&body).trim().chars().take(500).collect(),
    };
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
        let mut error = Error::auth_required();
        error.message = format!("The model's service refuses the key ({status}): {why}");
        return Stop::Failed(error);
    }
    let mut message = format!("The model's service answers {status}: {why}");
    match &after {
        Some(after) if after.bytes().all(|byte| byte.is_ascii_digit()) => {
            message.push_str(&format!(" Try again in {after} seconds."));
        }
        Some(after) => message.push_str(&format!(" Try again at {after}.")),
        None => {}
    }
    failure(message, Some(json!({ "status": status.as_u16(), "retryAfter": after })))
}

fn error_message(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).or(error.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

/// The message of an error and its sources.
fn describe_error(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
