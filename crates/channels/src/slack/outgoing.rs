//! Sending, and finding sent messages: each carries its delivery's id as metadata. Reactions.

use serde_json::{Value, json};

use super::api::Api;
use crate::{
    contract::{ActionCall, Attachment, Failure, Part, Receipt},
    reaction::Reaction,
};

/// Event type of our metadata.
const METADATA_EVENT: &str = "muster_message";

/// Sends a text or one file.
pub async fn send(api: &Api, part: &Part<'_>) -> Result<Receipt, Failure> {
    match (part.files, part.replaces) {
        ([], None) => {
            api.call_json("chat.postMessage", &message_payload(part)?).await.map(|sent| read_receipt(&sent))
        }
        ([], Some(_)) => {
            api.call_json("chat.update", &message_payload(part)?).await.map(|sent| read_receipt(&sent))
        }
        ([file], None) => upload_file(api, part, file).await,
        _ => Err(Failure::Refused("Slack takes one file a message.".into())),
    }
}

/// Finds the part among the messages since it was written.
pub async fn find_sent(api: &Api, part: &Part<'_>) -> Result<Option<Receipt>, Failure> {
    let (channel, thread) = split_target(part.target);
    let oldest = part.written_at.as_second().to_string();
    let mut fields =
        vec![("channel", channel), ("oldest", &oldest), ("include_all_metadata", "1"), ("limit", "200")];
    let method = if let Some(thread) = thread {
        fields.push(("ts", thread));
        "conversations.replies"
    } else {
        "conversations.history"
    };
    let found = api.call_form(method, &fields).await?;
    let ours = |message: &&Value| {
        let metadata = &message["metadata"];
        metadata["event_type"] == METADATA_EVENT && metadata["event_payload"]["id"] == part.id
    };
    let message = found["messages"].as_array().into_iter().flatten().find(ours);
    Ok(message.and_then(|message| message["ts"].as_str()).map(|ts| receipt_of(channel, ts)))
}

/// Shows a typing indicator in a thread for two minutes or until the next message. Channels and direct chats have none.
pub async fn show_typing(api: &Api, target: &str) -> Result<(), Failure> {
    let (channel, Some(thread)) = split_target(target) else { return Ok(()) };
    // Otherwise Slack shows its own messages in turn.
    let status = json!({"channel_id": channel, "thread_ts": thread, "status": "is writing…", "loading_messages": ["Writing…"]});
    api.call_json("assistant.threads.setStatus", &status).await.map(drop)
}

/// Puts an emoji on a message. The message has each emoji of ours once.
pub async fn react(api: &Api, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
    let reaction = Reaction::read(call.arguments).map_err(Failure::Refused)?;
    let message = reaction.message(call)?;
    let none = || Failure::Refused("The message is not one of Slack's.".into());
    let (channel, timestamp) = message.rsplit_once(':').ok_or_else(none)?;
    let name = reaction.emoji.trim_matches(':');
    let parameters = json!({"channel": channel, "timestamp": timestamp, "name": name});
    match api.call_json("reactions.add", &parameters).await {
        Ok(_) => Ok(Receipt::default()),
        Err(Failure::Refused(cause)) if cause.as_str() == "Slack: already_reacted" => Ok(Receipt::default()),
        Err(Failure::Refused(cause)) if cause.as_str() == "Slack: invalid_name" => {
            let why = format!("Slack has no emoji \"{name}\". Give its name, such as thumbsup.");
            Err(Failure::Refused(why.into()))
        }
        Err(failure) => Err(failure),
    }
}

/// Splits a target into channel and thread.
pub fn split_target(target: &str) -> (&str, Option<&str>) {
    match target.split_once('/') {
        Some((channel, thread)) => (channel, Some(thread)),
        None => (target, None),
    }
}

fn message_payload(part: &Part<'_>) -> Result<Value, Failure> {
    let (channel, thread) = split_target(part.target);
    let mut message = json!({
        "channel": channel,
        "text": part.text.text,
        "metadata": {"event_type": METADATA_EVENT, "event_payload": {"id": part.id}},
    });
    if let Some(replaced) = part.replaces {
        message["ts"] = replaced.rsplit_once(':').map(|(_, ts)| ts).into();
        // Without `blocks`, an edit keeps those of the message.
        message["blocks"] = json!([]);
    } else {
        message["unfurl_links"] = false.into();
        message["unfurl_media"] = false.into();
        message["thread_ts"] = thread.into();
    }
    if !part.buttons.is_empty() {
        message["blocks"] = button_blocks(part)?;
    }
    Ok(message)
}

fn button_blocks(part: &Part<'_>) -> Result<Value, Failure> {
    // Slack's limit for a section's text.
    if part.text.text.chars().count() > 3000 {
        return Err(Failure::Refused("The text is too long for a message with buttons.".into()));
    }
    let buttons = part.buttons.iter().enumerate().map(|(nth, button)| {
        let label = json!({"type": "plain_text", "text": button.label});
        json!({"type": "button", "action_id": format!("choice-{nth}"), "text": label, "value": button.value})
    });
    Ok(json!([
        {"type": "section", "text": {"type": "mrkdwn", "text": part.text.text}},
        {"type": "actions", "elements": buttons.collect::<Vec<_>>()},
    ]))
}

/// Three calls, of which only the last one has a visible effect.
async fn upload_file(api: &Api, part: &Part<'_>, file: &Attachment) -> Result<Receipt, Failure> {
    let unseen = |failure| match failure {
        Failure::Unknown(cause) => Failure::NotSent(cause),
        other => other,
    };
    let length = file.content.len().to_string();
    let wish = [("filename", file.name.as_str()), ("length", &length)];
    let place_for_it = api.call_form("files.getUploadURLExternal", &wish).await.map_err(unseen)?;
    let to = place_for_it["upload_url"].as_str().unwrap_or_default();
    api.upload(to, file.content.clone()).await.map_err(unseen)?;
    let (channel, thread) = split_target(part.target);
    let mut shown =
        json!({"files": [{"id": place_for_it["file_id"], "title": file.name}], "channel_id": channel});
    if let Some(thread) = thread {
        shown["thread_ts"] = thread.into();
    }
    api.call_json("files.completeUploadExternal", &shown).await?;
    Ok(Receipt { vendor_id: None, target: None })
}

fn read_receipt(sent: &Value) -> Receipt {
    match (sent["channel"].as_str(), sent["ts"].as_str()) {
        (Some(channel), Some(ts)) => receipt_of(channel, ts),
        _ => Receipt { vendor_id: None, target: None },
    }
}

fn receipt_of(channel: &str, ts: &str) -> Receipt {
    Receipt { vendor_id: Some(format!("{channel}:{ts}")), target: None }
}
