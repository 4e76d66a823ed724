//! What Slack tells: <https://docs.slack.dev/reference/events/message>, and taps on buttons.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::mrkdwn;
use crate::contract::{Content, Event, Inbound, Origin, Press, Proof, Refusal, RemoteFile, Thread};

#[derive(Deserialize)]
struct Callback {
    event: Value,
    #[serde(default)]
    authorizations: Vec<Authorization>,
}

#[derive(Deserialize)]
struct Authorization {
    user_id: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    channel: String,
    #[serde(default)]
    channel_type: String,
    ts: String,
    thread_ts: Option<String>,
    parent_user_id: Option<String>,
    subtype: Option<String>,
    user: Option<String>,
    bot_id: Option<String>,
    app_id: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    name: Option<String>,
    mimetype: Option<String>,
    size: Option<u64>,
    url_private_download: Option<String>,
}

#[derive(Deserialize)]
struct Tapped {
    trigger_id: Option<String>,
    user: Id,
    channel: Id,
    message: Option<TappedMessage>,
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
struct TappedMessage {
    ts: String,
    thread_ts: Option<String>,
}

#[derive(Deserialize)]
struct Action {
    value: Option<String>,
    action_ts: Option<String>,
}

/// How many users of ours are looked for in a text. Slack names one.
const AUTHORIZATIONS: usize = 20;

/// What a payload says, if it is something for us.
pub fn decode(payload: &Value, proof: Proof) -> Result<Option<Event>, Refusal> {
    match payload["type"].as_str() {
        Some("event_callback") => {
            let callback = Callback::deserialize(payload).map_err(malformed)?;
            match callback.event["type"].as_str() {
                Some("message" | "app_mention") => message(&callback, proof),
                _ => Ok(None),
            }
        }
        Some("block_actions") => {
            Tapped::deserialize(payload).map(|tapped| pressed(tapped, proof)).map_err(malformed)
        }
        Some(_) => Ok(None),
        None => Err(Refusal::Malformed("This is not an event of Slack.".into())),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn malformed(error: serde_json::Error) -> Refusal {
    Refusal::Malformed(format!("This is not an event of Slack: {error}").into())
}

fn message(callback: &Callback, proof: Proof) -> Result<Option<Event>, Refusal> {
    // Messages that were changed or deleted, people who joined, and the like.
    let kind = callback.event["subtype"].as_str();
    if !matches!(kind, None | Some("bot_message" | "file_share" | "me_message" | "thread_broadcast")) {
        return Ok(None);
    }
    let message = Message::deserialize(&callback.event).map_err(malformed)?;
    let us = callback.authorizations.iter().take(AUTHORIZATIONS).filter_map(|one| one.user_id.as_deref());
    let us: Vec<_> = us.collect();
    let (text, is_named) = mrkdwn::read(&message.text, &us);
    let files: Vec<_> = message.files.into_iter().map(remote).collect();
    let authors: Vec<_> =
        [message.user, message.bot_id.clone(), message.app_id].into_iter().flatten().collect();
    let Some(author) = authors.first().cloned() else { return Ok(None) };
    if text.is_empty() && files.is_empty() && !is_named {
        return Ok(None);
    }
    let is_private = message.channel_type == "im" || message.channel.starts_with('D');
    let is_reply = message.parent_user_id.as_deref().is_some_and(|parent| us.contains(&parent));
    let target = match &message.thread_ts {
        Some(thread) => format!("{}/{thread}", message.channel),
        None if is_private => message.channel.clone(),
        // An answer to it begins a thread.
        None => format!("{}/{}", message.channel, message.ts),
    };
    let id = format!("{}:{}", message.channel, message.ts);
    Ok(Some(Event::Message(Box::new(Inbound {
        key: Some(id.clone()),
        vendor_id: Some(id),
        answers: message.thread_ts.as_ref().map(|thread| format!("{}:{thread}", message.channel)),
        origin: Origin { id: author, place: (!is_private).then(|| message.channel.clone()), name: None },
        authors,
        is_automatic: message.bot_id.is_some() || message.subtype.as_deref() == Some("bot_message"),
        proof,
        thread: Thread {
            key: target.clone(),
            refs: Vec::new(),
            readers: Vec::new(),
            target,
            title: None,
            is_private,
        },
        is_addressed: is_private || is_named || is_reply,
        labels: Vec::new(),
        text,
        files,
        at: at(&message.ts),
    }))))
}

fn pressed(tapped: Tapped, proof: Proof) -> Option<Event> {
    let message = tapped.message?;
    let action = tapped.actions.into_iter().next()?;
    let channel = tapped.channel.id;
    let is_private = channel.starts_with('D');
    Some(Event::Pressed(Press {
        key: format!("press:{}:{}", message.ts, tapped.trigger_id.or(action.action_ts)?),
        proof,
        is_private,
        target: message.thread_ts.map_or_else(|| channel.clone(), |thread| format!("{channel}/{thread}")),
        vendor_id: Some(format!("{channel}:{}", message.ts)),
        value: action.value?,
        reply_to: tapped.user.id.clone(),
        origin: Origin { id: tapped.user.id, place: (!is_private).then_some(channel), name: None },
    }))
}

/// Slack gives no address for a file that the app may not read. It is kept all the same: that it can't be read is then said.
fn remote(file: File) -> RemoteFile {
    RemoteFile {
        name: file.name.unwrap_or_else(|| "file".to_owned()),
        media_type: file.mimetype.unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: file.size,
        content: Content::There(file.url_private_download.unwrap_or_default()),
    }
}

/// A `ts` begins with seconds.
fn at(ts: &str) -> Timestamp {
    let seconds = ts.split('.').next().and_then(|seconds| seconds.parse().ok());
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(event: &Value) -> Option<Inbound> {
        let payload =
            json!({"type": "event_callback", "event": event, "authorizations": [{"user_id": "UBOT"}]});
        match decode(&payload, Proof::Vendor).unwrap() {
            Some(Event::Message(inbound)) => Some(*inbound),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mention_is_the_same_however_it_comes() {
        let event = |kind| json!({"type": kind, "user": "U1", "text": "<@UBOT> hi", "ts": "1700000000.000100", "channel": "C1"});
        let (message, mention) = (of(&event("message")).unwrap(), of(&event("app_mention")).unwrap());
        assert_eq!(message, mention);
        assert!(message.is_addressed);
        assert_eq!((message.text.as_str(), message.thread.target.as_str()), ("hi", "C1/1700000000.000100"));
        assert_eq!(message.origin.place.as_deref(), Some("C1"));
    }

    #[test]
    fn what_is_for_us() {
        let said = |more: Value| {
            let mut event =
                json!({"type": "message", "user": "U1", "text": "hi", "ts": "1.2", "channel": "C1"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            of(&event)
        };
        assert!(!said(json!({})).unwrap().is_addressed);
        let direct = said(json!({"channel": "D1", "channel_type": "im"})).unwrap();
        assert!(direct.is_addressed && direct.thread.is_private && direct.thread.target == "D1");
        let reply = said(json!({"thread_ts": "1.0", "parent_user_id": "UBOT"})).unwrap();
        assert!(reply.is_addressed);
        assert_eq!(reply.answers.as_deref(), Some("C1:1.0"));
        let bot = said(json!({"bot_id": "B1", "app_id": "A1", "subtype": "bot_message"})).unwrap();
        assert!(bot.is_automatic);
        assert_eq!(bot.authors, ["U1", "B1", "A1"]);
        let only_a_file = said(json!({"text": "", "files": [{"id": "F1", "name": "a.pdf"}]})).unwrap();
        let [file] = &only_a_file.files[..] else { panic!("{only_a_file:?}") };
        assert_eq!((file.name.as_str(), &file.content), ("a.pdf", &Content::There(String::new())));
        for subtype in ["message_changed", "message_deleted", "channel_join"] {
            assert_eq!(said(json!({"subtype": subtype})), None);
        }
    }
}
