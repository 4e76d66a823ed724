//! Fake vendors that follow the vendors' documentation. The tests of `muster-channels` use them with the leading client
//! libraries and with our transports; those of the control plane run the transports against them.

pub mod discord;
pub mod drive;
pub mod github;
pub mod google_calendar;
pub mod slack;
pub mod telegram;

use std::net::SocketAddr;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Uri, header::CONTENT_TYPE},
};
use serde_json::{Map, Value};
use tokio::net::TcpListener;

/// Starts a server that runs until the test ends.
pub async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// The fields of a request from JSON, a form, multipart data or the query. In forms, a value written as a JSON list or
/// object is parsed; any other is a string.
pub async fn asked(uri: &Uri, headers: &HeaderMap, body: Bytes) -> Value {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap()).unwrap_or_default();
    let mut fields = pairs(uri.query().unwrap_or_default().as_bytes());
    match kind {
        json if json.starts_with("application/json") && !body.is_empty() => {
            return serde_json::from_slice(&body).unwrap();
        }
        parts if parts.starts_with("multipart/form-data") => fields.extend(parts_of(parts, body).await),
        _ => fields.extend(pairs(&body)),
    }
    Value::Object(fields)
}

fn pairs(form: &[u8]) -> Map<String, Value> {
    url::form_urlencoded::parse(form).map(|(name, value)| (name.into_owned(), read(&value))).collect()
}

/// A file becomes the string `<name>: <content>`.
async fn parts_of(kind: &str, body: Bytes) -> Map<String, Value> {
    let mut parts = multer::Multipart::new(
        Body::from(body).into_data_stream(),
        multer::parse_boundary(kind).expect("parts have a boundary"),
    );
    let mut fields = Map::new();
    while let Some(part) = parts.next_field().await.unwrap() {
        let (name, file) = (part.name().unwrap().to_owned(), part.file_name().map(str::to_owned));
        let text = part.text().await.unwrap();
        let value = file.map_or_else(|| read(&text), |file| format!("{file}: {text}").into());
        fields.insert(name, value);
    }
    fields
}

fn read(text: &str) -> Value {
    let is_structure = text.starts_with(['{', '[']);
    let value = serde_json::from_str(text).ok().filter(|_| is_structure);
    value.unwrap_or_else(|| text.into())
}

/// A number or a string of digits.
pub fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}
