//! Calls a model over HTTP, and reads its answer as it arrives.

use agent_client_protocol::Error;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{Response, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};

use super::{Answer, Piece, Question, anthropic, openai};
use crate::{
    bounds::{HEAD, LARGEST},
    outbound::Http,
    settings::{Access, Provider},
    turn::Stop,
};

/// The events of an answer.
pub type Events = BoxStream<'static, Result<Sse, sse_stream::Error>>;

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Connection(reqwest::Error),
    #[error("it is longer than {LARGEST} bytes")]
    TooLong,
}

/// Asks the model.
pub async fn stream(http: &Http, access: &Access, question: &Question<'_>) -> Result<Events, Stop> {
    let (path, body) = match access.provider {
        Provider::OpenAi => ("chat/completions", openai::body(question)),
        Provider::Anthropic => ("v1/messages", anthropic::body(question)),
    };
    let http = http
        .client()
        .map_err(|error| failed(format!("The system's certificates can't be read: {error}"), None))?;
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
        failed(format!("The model can't be reached: {}", causes(&error.without_url())), None)
    })?;
    if response.status().is_success() {
        Ok(SseStream::from_bytes_stream(bounded(response)).boxed())
    } else {
        Err(refused(response).await)
    }
}

fn bounded(response: Response) -> impl Stream<Item = Result<bytes::Bytes, Broken>> + Send {
    let mut read = 0;
    response.bytes_stream().map_err(|error| Broken::Connection(error.without_url())).and_then(move |bytes| {
        read += bytes.len();
        std::future::ready(if read > LARGEST { Err(Broken::TooLong) } else { Ok(bytes) })
    })
}

/// The data of the next event. None at the end.
pub async fn next(events: &mut Events) -> Result<Option<Value>, Stop> {
    while let Some(event) = events.next().await {
        let event = event
            .map_err(|error| failed(format!("The model's answer broke off: {}", causes(&error)), None))?;
        match event.data.as_deref().map(str::trim) {
            None | Some("") => {}
            Some("[DONE]") => return Ok(None),
            Some(data) => {
                let error = |error| failed(format!("The model's answer is invalid JSON: {error}"), None);
                return serde_json::from_str(data).map(Some).map_err(error);
            }
        }
    }
    Ok(None)
}

/// Adds an event to the answer. Returns what the client should see.
pub fn absorb(provider: Provider, answer: &mut Answer, event: &Value) -> Result<Vec<Piece>, Stop> {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        return Err(failed(format!("The model failed: {}", reason(error)), None));
    }
    Ok(match provider {
        Provider::OpenAi => openai::absorb(answer, event),
        Provider::Anthropic => anthropic::absorb(answer, event),
    })
}

/// The turn has failed, for a reason that people should read. `data` is for programs.
pub fn failed(message: String, data: Option<Value>) -> Stop {
    let mut error = Error::internal_error();
    error.message = message;
    error.data = data;
    Stop::Failed(error)
}

async fn refused(response: Response) -> Stop {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut body = Vec::new();
    let mut bytes = bounded(response).boxed();
    while let Some(Ok(more)) = bytes.next().await {
        body.extend_from_slice(&more);
        if body.len() > HEAD {
            break;
        }
    }
    body.truncate(HEAD);
    let why = match serde_json::from_slice::<Value>(&body) {
        Ok(body) => reason(body.get("error").unwrap_or(&body)),
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
    failed(message, Some(json!({ "status": status.as_u16(), "retryAfter": after })))
}

/// What an error of a model's service says.
fn reason(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).or(error.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

/// An error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
