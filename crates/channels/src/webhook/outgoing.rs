//! Outgoing requests, and their responses.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, USER_AGENT},
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::{
    bounds,
    contract::{Attachment, Failure, NamedId, Part, Participants, Receipt, Scope},
    network::HttpResponse,
    signature::{self, Key, SignedFields},
};

#[derive(Serialize)]
struct Envelope<'a> {
    r#type: &'static str,
    timestamp: Timestamp,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    message: Message<'a>,
    conversation: Conversation<'a>,
    channel: Option<&'a NamedId>,
    agent: Option<&'a NamedId>,
    contact: Option<Contact<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    text: &'a str,
    speaker: Option<&'a str>,
    reply_to: Option<&'a str>,
    attachments: Vec<File<'a>>,
}

#[derive(Serialize)]
struct Conversation<'a> {
    id: Option<i64>,
    r#ref: &'a str,
    thread: &'a str,
    title: Option<&'a str>,
}

#[derive(Serialize)]
struct Contact<'a> {
    #[serde(flatten)]
    contact: &'a NamedId,
    origin_id: Option<&'a str>,
}

#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    media_type: &'a str,
    content_base64: String,
}

/// The body of a message.
pub fn write_body(part: &Part<'_>) -> Vec<u8> {
    let data = Data {
        message: Message {
            id: part.id,
            text: &part.text.text,
            speaker: part.speaker,
            reply_to: part.reply_to,
            attachments: part.files.iter().map(file).collect(),
        },
        conversation: Conversation {
            id: part.scene.map(|scene| scene.conversation),
            r#ref: part.conversation,
            thread: part.target,
            title: part.title,
        },
        channel: part.scene.map(|scene| &scene.channel),
        agent: part.scene.map(|scene| &scene.agent),
        contact: part.scene.and_then(contact),
    };
    let envelope = Envelope { r#type: "message.created", timestamp: part.written_at, data };
    match serde_json::to_vec(&envelope) {
        Ok(body) => body,
        Err(error) => unreachable!("texts and numbers are JSON: {error}"),
    }
}

fn file(file: &Attachment) -> File<'_> {
    let content_base64 = BASE64_STANDARD.encode(&file.content);
    File { name: &file.name, media_type: &file.media_type, content_base64 }
}

fn contact(scene: &Participants) -> Option<Contact<'_>> {
    let contact = scene.contact.as_ref()?;
    Some(Contact { contact, origin_id: scene.origin.as_deref() })
}

/// The headers of a message: its id, the time of this attempt, and a signature per key.
pub fn write_headers(
    id: &str,
    keys: &[Key],
    signature_header: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Result<HeaderMap, Failure> {
    let timestamp = now.as_second().to_string();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("Muster"));
    headers.insert("webhook-id", header_value(id)?);
    headers.insert("webhook-timestamp", header_value(&timestamp)?);
    if let Some(first) = keys.first() {
        let signed = SignedFields { id, timestamp: &timestamp };
        headers.insert("webhook-signature", header_value(&signature::sign(keys, signed, body))?);
        if let Some(name) = signature_header {
            let name = HeaderName::try_from(name)
                .map_err(|_| unusable_request("signature_header is not a valid header name"))?;
            headers.insert(name, header_value(&signature::sign_body(first, body))?);
        }
    }
    Ok(headers)
}

fn header_value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::try_from(text).map_err(|_| unusable_request("an id can't be a header"))
}

fn unusable_request(why: &str) -> Failure {
    Failure::Refused(format!("The request can't be made: {why}.").into())
}

/// Maps a response to a result. Receivers deduplicate by `webhook-id`, so anything temporary is retried.
pub fn read_response(answer: &HttpResponse, now: Timestamp) -> Result<Receipt, Failure> {
    let status = answer.status;
    if status.is_success() {
        return Ok(Receipt { vendor_id: receiver_id(&answer.body), target: None });
    }
    let cause = format!("The receiver answered with status {}.", status.as_u16()).into();
    Err(match status {
        StatusCode::GONE => Failure::Gone(cause),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let wait = answer.retry_after(now).unwrap_or(bounds::RETRY);
            Failure::RateLimited { wait, scope: Scope::Channel, cause }
        }
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY => Failure::Refused(cause),
        _ => Failure::NotSent(cause),
    })
}

/// The receiver's own message id, if the response is `{"id": "…"}`.
fn receiver_id(body: &[u8]) -> Option<String> {
    let answer: Value = muster_json::from_slice(body).ok()?;
    let id = answer.get("id")?.as_str()?;
    // PostgreSQL can't store NUL.
    let is_id = !id.is_empty() && id.len() <= 200 && !id.contains(char::is_control);
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn an_unusable_vendor_id_does_not_fail_a_delivery() {
        for (body, expected) in [
            (r#"{"id":"a-1"}"#, Some("a-1")),
            (r#"{"id":"a\u0000"}"#, None),
            (r#"{"id":""}"#, None),
            (r#"{"id":1}"#, None),
            ("taken", None),
        ] {
            let answer = HttpResponse {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: Bytes::from_static(body.as_bytes()),
            };
            let receipt = read_response(&answer, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(receipt.vendor_id.as_deref(), expected, "{body}");
        }
    }
}
