//! What Slack tells: <https://docs.slack.dev/reference/events/message>, and taps on buttons.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    blocks::{self, file_name, is_shared},
    mrkdwn::{Reader, link, literal, unescaped},
};
use crate::{
    contract::{Content, Event, Inbound, OneLine, Origin, Press, Proof, Refusal, RemoteFile, Thread},
    quoted::{apart, name, own, quote},
};

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

/// Where messages are.
#[derive(Deserialize)]
struct Place {
    channel: String,
    #[serde(default)]
    channel_type: String,
}

#[derive(Deserialize)]
struct Message {
    ts: String,
    thread_ts: Option<String>,
    parent_user_id: Option<String>,
    subtype: Option<String>,
    user: Option<String>,
    bot_id: Option<String>,
    app_id: Option<String>,
    text: Option<String>,
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

/// Messages that only say what happened to a channel.
const SERVICE: [&str; 34] = [
    "assistant_app_thread",
    "bot_add",
    "bot_disable",
    "bot_enable",
    "bot_remove",
    "channel_archive",
    "channel_convert_to_private",
    "channel_convert_to_public",
    "channel_join",
    "channel_leave",
    "channel_name",
    "channel_posting_permissions",
    "channel_purpose",
    "channel_topic",
    "channel_unarchive",
    "file_comment",
    "file_mention",
    "group_archive",
    "group_join",
    "group_leave",
    "group_name",
    "group_purpose",
    "group_topic",
    "group_unarchive",
    "joiner_notification",
    "joiner_notification_for_inviter",
    "message_replied",
    "pinned_item",
    "reminder_add",
    "reply_broadcast",
    "tabbed_canvas_updated",
    "tombstone",
    "unpinned_item",
    "user_joined_shared_channel",
];
/// Messages whose kind says nothing beside what they have.
const KNOWN: [&str; 4] = ["bot_message", "file_share", "me_message", "thread_broadcast"];

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
    let event = &callback.event;
    let us = callback.authorizations.iter().take(20).filter_map(|one| one.user_id.as_deref());
    let us: Vec<_> = us.collect();
    let place = Place::deserialize(event).map_err(malformed)?;
    let said = |raw: &Value| said(raw, &place, &us, proof);
    let message = match event["subtype"].as_str() {
        Some("message_changed") if event["message"]["subtype"] != "tombstone" => changed(event, said)?,
        Some("message_changed" | "message_deleted") => deleted(&event["previous_message"], said),
        Some(service) if SERVICE.contains(&service) => None,
        _ => Some(said(event)?),
    };
    Ok(message.map(|message| Event::Message(Box::new(message))))
}

/// A later version of a message. Previews of its links and answers in its thread change it too, without being edits. Slack marks no
/// edits by which an app changes blocks: what people read tells them.
fn changed(
    event: &Value,
    said: impl Fn(&Value) -> Result<Inbound, Refusal>,
) -> Result<Option<Inbound>, Refusal> {
    let (now, before) = (&event["message"], &event["previous_message"]);
    let marked = now["edited"]["ts"].as_str().filter(|at| before["edited"]["ts"] != *at);
    let is_silent = marked.is_none() && is_of_app(now) && before.is_object();
    let silent = || event["event_ts"].as_str().or(event["ts"].as_str()).filter(|_| is_silent);
    let Some(at) = marked.or_else(silent) else { return Ok(None) };
    let words = |version: &Value| said(version).ok().map(|said| said.text);
    if is_silent && words(&without_previews(now)) == words(&without_previews(before)) {
        return Ok(None);
    }
    let mut version = said(now)?;
    if said(before).is_ok_and(|before| before.text == version.text) {
        return Ok(None);
    }
    // Edits add no files.
    if version.text.is_empty() && !version.files.is_empty() {
        version.text.push_str("[Only this message's files are left]");
    }
    version.files.clear();
    version.key = version.vendor_id.as_ref().map(|id| format!("{id}:{at}"));
    version.thread.refs.extend(version.vendor_id.clone());
    version.is_edit = true;
    Ok(Some(version))
}

/// A message without what Slack adds to it, and without files, which edits leave as they are.
fn without_previews(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(attachments) = message["attachments"].as_array_mut() {
        attachments.retain(|one| !blocks::is_preview(one) && one["is_msg_unfurl"] != true);
    }
    if let Some(fields) = message.as_object_mut() {
        fields.remove("files");
    }
    message
}

/// A message that is gone.
fn deleted(before: &Value, said: impl Fn(&Value) -> Result<Inbound, Refusal>) -> Option<Inbound> {
    // Messages that were not carried are not missed.
    let mut gone = said(before).ok()?;
    gone.text.clear();
    gone.files.clear();
    gone.key = gone.vendor_id.as_ref().map(|id| format!("{id}:deleted"));
    gone.thread.refs.extend(gone.vendor_id.clone());
    gone.is_edit = true;
    Some(gone)
}

/// A message. `raw` is it as it came.
fn said(raw: &Value, place: &Place, us: &[&str], proof: Proof) -> Result<Inbound, Refusal> {
    let message = Message::deserialize(raw).map_err(malformed)?;
    let mut reader = Reader::new(us);
    let of_app = is_of_app(raw);
    let (files, notes) = files(raw);
    let text = text(raw, &message, of_app, &mut reader);
    let text = apart(&[&text, &notes]);
    let is_named = reader.is_named;
    let authors: Vec<_> = [message.user, message.bot_id, message.app_id].into_iter().flatten().collect();
    let Some(author) = authors.first().cloned() else {
        return Err(Refusal::Malformed("Slack does not say who wrote this message.".into()));
    };
    if text.is_empty() && files.is_empty() && !is_named {
        return Err(Refusal::Malformed("This Slack message has nothing that can be carried.".into()));
    }
    let channel = &place.channel;
    let is_private = place.channel_type == "im" || channel.starts_with('D');
    let is_reply = message.parent_user_id.as_deref().is_some_and(|parent| us.contains(&parent));
    let target = match &message.thread_ts {
        Some(thread) => format!("{channel}/{thread}"),
        None if is_private => channel.clone(),
        // An answer to it begins a thread.
        None => format!("{channel}/{}", message.ts),
    };
    let id = format!("{channel}:{}", message.ts);
    Ok(Inbound {
        key: Some(id.clone()),
        vendor_id: Some(id),
        album: None,
        is_edit: false,
        answers: message.thread_ts.as_ref().map(|thread| format!("{channel}:{thread}")),
        origin: Origin { id: author, place: (!is_private).then(|| channel.clone()), name: author_name(raw) },
        authors,
        is_automatic: of_app,
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
        context: String::new(),
        text,
        files,
        at: at(&message.ts),
        source: None,
    })
}

/// Whether an app wrote it.
fn is_of_app(raw: &Value) -> bool {
    raw["bot_id"].is_string() || raw["subtype"] == "bot_message"
}

/// The author's name, where Slack says it: of apps, and of people of other workspaces.
fn author_name(raw: &Value) -> Option<OneLine> {
    let (app, user) = (&raw["bot_profile"], &raw["user_profile"]);
    let names = [&raw["username"], &app["name"], &user["display_name"], &user["real_name"]];
    let mut names = names.iter().filter_map(|name| name.as_str());
    names.find_map(|name| OneLine::name(&unescaped(name)))
}

/// What people see of a message. Its `text` is all of what they write themselves; apps write it for notifications, and may say
/// more, or all, in blocks and attachments.
fn text(raw: &Value, message: &Message, of_app: bool, reader: &mut Reader<'_>) -> String {
    let text = reader.read(message.text.as_deref().unwrap_or_default());
    let is_own = |block: &&Value| of_app || text.is_empty() || block["type"] != "rich_text";
    let blocks = raw["blocks"].as_array().into_iter().flatten().filter(is_own).cloned().collect();
    let blocks = blocks::text(&Value::Array(blocks), reader);
    let said = own(&blocks::seen(text, blocks));
    let attached = blocks::attachments(&raw["attachments"], of_app, reader);
    // People comment on what they share, often with a word of it.
    let said = if of_app { blocks::fuller(said, attached) } else { apart(&[&said, &attached]) };
    match message.subtype.as_deref() {
        Some("huddle_thread" | "sh_room_created" | "sh_room_shared") => {
            apart(&[&said, "[A huddle began here]"])
        }
        Some(kind) if said.is_empty() && raw["files"].is_null() && !KNOWN.contains(&kind) => {
            format!("[A message of a kind that Muster does not know: {}]", name(kind))
        }
        _ => said,
    }
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

/// The files of a message and of those that it shares; and, in words, those that can't be read as files.
fn files(raw: &Value) -> (Vec<RemoteFile>, String) {
    let shared = raw["attachments"].as_array().into_iter().flatten().filter(|one| is_shared(one));
    let all = std::iter::once(raw)
        .chain(shared)
        .flat_map(|message| message["files"].as_array().into_iter().flatten());
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for file in all {
        notes.extend(heard(file));
        if let Some(note) = note(file) {
            notes.push(note);
        } else {
            notes.extend(mail(file).or_else(|| described(file)));
            files.push(remote(file));
        }
    }
    let notes: Vec<_> = notes.iter().map(String::as_str).collect();
    (files, apart(&notes))
}

/// What Slack heard in a voice or video clip, or its beginning.
fn heard(file: &Value) -> Option<String> {
    let preview = &file["transcription"]["preview"];
    let words = preview["content"].as_str().map(str::trim).filter(|words| !words.is_empty())?;
    let words = words.replace('[', "(").replace(']', ")").lines().collect::<Vec<_>>().join(" ");
    let more = if preview["has_more"] == true { " …" } else { "" };
    Some(format!("[Slack's transcription of a clip came with this message: {words}{more}]"))
}

/// A mail that was forwarded to Slack, in words. Its file is its HTML.
fn mail(file: &Value) -> Option<String> {
    if file["mode"] != "email" && file["filetype"] != "email" {
        return None;
    }
    let text = |value: &Value| name(&unescaped(value.as_str().unwrap_or_default()));
    let list = |field: &str, said: &dyn Fn(&Value) -> String| {
        let all = file[field].as_array().into_iter().flatten().map(said);
        all.filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let sender = |one: &Value| {
        let said = link(&text(&one["name"]), &text(&one["address"]));
        if said.is_empty() { text(&one["original"]) } else { said }
    };
    let words = [&file["plain_text"], &file["preview_plain_text"]];
    let words = words.into_iter().filter_map(Value::as_str).find(|words| !words.trim().is_empty());
    let (subject, title) = (text(&file["subject"]), text(&file["title"]));
    let said = [
        ("", if subject.is_empty() { title } else { subject }),
        ("from ", list("from", &sender)),
        ("with ", list("attachments", &|one| text(&one["filename"]))),
    ];
    let said = said.iter().filter(|(_, said)| !said.is_empty()).map(|(role, said)| format!("{role}{said}"));
    let head = format!("A mail came with this message: {}", said.collect::<Vec<_>>().join(", "));
    Some(quote(head.trim_end_matches([':', ' ']), &literal(&words.unwrap_or_default().replace("\r\n", "\n"))))
}

/// What its author says of a file beside its name. Slack makes a title of the name.
fn described(file: &Value) -> Option<String> {
    let text = |field: &str| name(file[field].as_str().unwrap_or_default());
    let (called, title, seen) = (file_name(file), text("title"), text("alt_txt"));
    let is_named = called == title || called.rsplit_once('.').is_some_and(|(stem, _)| stem == title);
    let said = [if is_named { "" } else { &title }, &seen];
    let said = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ");
    (!said.is_empty()).then(|| format!("[A file came with this message: {called}, {said}]"))
}

/// What stands for something that Slack tells as a file, but that is none.
fn note(file: &Value) -> Option<String> {
    let text = |field: &str| file[field].as_str().unwrap_or_default();
    let called = |what: &str, address: &str| {
        let title = name(if text("title").is_empty() { text("name") } else { text("title") });
        let place = if text(address).is_empty() { String::new() } else { format!(" ({})", text(address)) };
        Some(format!("[{what} came with this message: {title}{place}]"))
    };
    match (text("mode"), text("filetype"), text("mimetype")) {
        ("tombstone", ..) => Some("[This message had a file, which was deleted in Slack]".to_owned()),
        ("hidden_by_limit", ..) => Some(
            "[A file came with this message that Slack hides because of the workspace's plan]".to_owned(),
        ),
        ("quip" | "canvas", ..) | (_, "quip" | "canvas", _) | (_, _, "application/vnd.slack-docs") => {
            called("A canvas", "permalink")
        }
        ("list", ..) | (_, "list", _) | (_, _, "application/vnd.slack-list") => called("A list", "permalink"),
        ("external", ..) => called("A file of another service", "url_private"),
        _ if file["is_external"] == true => called("A file of another service", "url_private"),
        _ => None,
    }
}

/// Slack gives no address for a file that the app may not read. It is kept all the same: that it can't be read is then said.
fn remote(file: &Value) -> RemoteFile {
    let text = |field: &str| file[field].as_str().map(str::to_owned);
    RemoteFile {
        name: text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| file_name(file)),
        media_type: text("mimetype").unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: file["size"].as_u64(),
        content: Content::There(text("url_private_download").unwrap_or_default()),
    }
}

/// A `ts` begins with seconds.
fn at(ts: &str) -> Timestamp {
    let seconds = ts.split('.').next().and_then(|seconds| seconds.parse().ok());
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
