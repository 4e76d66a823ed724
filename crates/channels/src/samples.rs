//! Readable form of a decoded sample for its expected file: empty fields are left out.

use serde_json::{Map, Value, json};

use crate::contract::{Content, Event, Inbound, Refusal};

pub fn summarize(decoded: &Result<Option<Event>, Refusal>) -> Value {
    match decoded {
        Ok(None) => json!("nothing"),
        Ok(Some(Event::Message(message))) => summarize_message(message),
        Ok(Some(Event::Moved { from, to })) => json!({ "moved": [from, to] }),
        Ok(Some(Event::Pressed(press))) => json!({ "pressed": press.value, "by": press.origin.id }),
        Ok(Some(Event::Bounced(bounce))) => json!({ "bounced": bounce.vendor_id }),
        Err(refusal) => json!({ "refused": refusal.to_string() }),
    }
}

fn summarize_message(message: &Inbound) -> Value {
    let mut shown = Map::new();
    let mut show = |name: &str, value: Value| {
        if !matches!(&value, Value::Null | Value::Bool(false)) && value != json!("") && value != json!([]) {
            shown.insert(name.to_owned(), value);
        }
    };
    let file = |file: &crate::contract::RemoteFile| match &file.content {
        Content::Here(bytes) => json!([file.name, file.media_type, format!("{} bytes", bytes.len())]),
        Content::There(place) => json!([file.name, file.media_type, place]),
    };
    let lines = |text: &str| json!(text.lines().collect::<Vec<_>>());
    show("key", json!(message.key));
    show("from", json!([message.origin.id, message.origin.name.as_deref()]));
    show("place", json!(message.origin.place));
    show("thread", json!(message.thread.key));
    show("answers", json!(message.answers));
    show("album", json!(message.album));
    show("is_edit", json!(message.is_edit));
    show("is_automatic", json!(message.is_automatic));
    show("is_not_for_us", json!(!message.is_addressed));
    show("context", lines(&message.context));
    show("text", lines(&message.text));
    show("files", message.files.iter().map(file).collect());
    Value::Object(shown)
}
