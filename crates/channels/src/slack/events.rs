//! Slack's events: <https://docs.slack.dev/reference/events/message>, and clicks on buttons.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    blocks::{self, file_name, is_shared},
    mrkdwn::{Reader, escape_literal, format_link, unescape},
};
use crate::{
    contract::{ButtonPress, Content, Event, Inbound, OneLine, Origin, Proof, Refusal, RemoteFile, Thread},
    quoting::{bracket_name, escape_notes, join_paragraphs, quote},
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

#[derive(Deserialize)]
struct MessageChannel {
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
struct BlockActions {
    trigger_id: Option<String>,
    user: Id,
    channel: Id,
    message: Option<ActionMessage>,
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
struct ActionMessage {
    ts: String,
    thread_ts: Option<String>,
}

#[derive(Deserialize)]
struct Action {
    value: Option<String>,
    action_ts: Option<String>,
}

/// Service messages about a channel.
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
/// Subtypes of ordinary messages.
const ORDINARY: [&str; 4] = ["bot_message", "file_share", "me_message", "thread_broadcast"];

/// Decodes a payload, if it is meant for us.
pub fn decode(payload: &Value, proof: Proof) -> Result<Option<Event>, Refusal> {
    match payload["type"].as_str() {
        Some("event_callback") => {
            let callback = Callback::deserialize(payload).map_err(malformed)?;
            match callback.event["type"].as_str() {
                Some("message" | "app_mention") => read_event(&callback, proof),
                _ => Ok(None),
            }
        }
        Some("block_actions") => {
            BlockActions::deserialize(payload).map(|actions| read_press(actions, proof)).map_err(malformed)
        }
        Some(_) => Ok(None),
        None => Err(Refusal::Malformed("This is not an event of Slack.".into())),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn malformed(error: serde_json::Error) -> Refusal {
    Refusal::Malformed(format!("This is not an event of Slack: {error}").into())
}

fn read_event(callback: &Callback, proof: Proof) -> Result<Option<Event>, Refusal> {
    let event = &callback.event;
    let us = callback.authorizations.iter().take(20).filter_map(|one| one.user_id.as_deref());
    let us: Vec<_> = us.collect();
    let channel = MessageChannel::deserialize(event).map_err(malformed)?;
    let read = |raw: &Value| read_message(raw, &channel, &us, proof);
    let message = match event["subtype"].as_str() {
        Some("message_changed") if event["message"]["subtype"] != "tombstone" => read_edit(event, read)?,
        Some("message_changed" | "message_deleted") => read_deletion(&event["previous_message"], read),
        Some(service) if SERVICE.contains(&service) => None,
        _ => Some(read(event)?),
    };
    Ok(message.map(|message| Event::Message(Box::new(message))))
}

/// A later version of a message. Link previews and thread replies also change a message, without being edits. Slack
/// doesn't mark edits of blocks by apps: their visible text tells them apart.
fn read_edit(
    event: &Value,
    read: impl Fn(&Value) -> Result<Inbound, Refusal>,
) -> Result<Option<Inbound>, Refusal> {
    let (now, before) = (&event["message"], &event["previous_message"]);
    let marked = now["edited"]["ts"].as_str().filter(|at| before["edited"]["ts"] != *at);
    let is_silent = marked.is_none() && is_of_app(now) && before.is_object();
    let silent = || event["event_ts"].as_str().or(event["ts"].as_str()).filter(|_| is_silent);
    let Some(at) = marked.or_else(silent) else { return Ok(None) };
    let words = |version: &Value| read(version).ok().map(|message| message.text);
    if is_silent && words(&without_previews(now)) == words(&without_previews(before)) {
        return Ok(None);
    }
    let mut version = read(now)?;
    if read(before).is_ok_and(|before| before.text == version.text) {
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

/// A message without Slack's additions, and without files, which edits don't change.
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

/// The deletion of a message.
fn read_deletion(before: &Value, read: impl Fn(&Value) -> Result<Inbound, Refusal>) -> Option<Inbound> {
    // Undecodable messages were never shown, so their deletion doesn't matter.
    let mut gone = read(before).ok()?;
    gone.text.clear();
    gone.files.clear();
    gone.key = gone.vendor_id.as_ref().map(|id| format!("{id}:deleted"));
    gone.thread.refs.extend(gone.vendor_id.clone());
    gone.is_edit = true;
    Some(gone)
}

/// Decodes a message from its raw form.
fn read_message(raw: &Value, place: &MessageChannel, us: &[&str], proof: Proof) -> Result<Inbound, Refusal> {
    let message = Message::deserialize(raw).map_err(malformed)?;
    let mut reader = Reader::new(us);
    let of_app = is_of_app(raw);
    let (files, notes) = read_files(raw);
    let text = message_text(raw, &message, of_app, &mut reader);
    let text = join_paragraphs(&[&text, &notes]);
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
        // A reply begins a thread.
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
        at: parse_ts(&message.ts),
        source: None,
    })
}

fn is_of_app(raw: &Value) -> bool {
    raw["bot_id"].is_string() || raw["subtype"] == "bot_message"
}

/// The author's name, where Slack includes it: for apps, and for people of other workspaces.
fn author_name(raw: &Value) -> Option<OneLine> {
    let (app, user) = (&raw["bot_profile"], &raw["user_profile"]);
    let names = [&raw["username"], &app["name"], &user["display_name"], &user["real_name"]];
    let mut names = names.iter().filter_map(|name| name.as_str());
    names.find_map(|name| OneLine::name(&unescape(name)))
}

/// The visible text of a message. People's `text` is complete; apps write it for notifications, and may say more, or
/// everything, in blocks and attachments.
fn message_text(raw: &Value, message: &Message, of_app: bool, reader: &mut Reader<'_>) -> String {
    let text = reader.read(message.text.as_deref().unwrap_or_default());
    let is_own = |block: &&Value| of_app || text.is_empty() || block["type"] != "rich_text";
    let blocks = raw["blocks"].as_array().into_iter().flatten().filter(is_own).cloned().collect();
    let blocks = blocks::read(&Value::Array(blocks), reader);
    let said = escape_notes(&blocks::merge_blocks(text, blocks));
    let attached = blocks::read_attachments(&raw["attachments"], of_app, reader);
    // People comment on shared content, often with a word of it.
    let said =
        if of_app { blocks::merge_texts(said, attached) } else { join_paragraphs(&[&said, &attached]) };
    match message.subtype.as_deref() {
        Some("huddle_thread" | "sh_room_created" | "sh_room_shared") => {
            join_paragraphs(&[&said, "[A huddle began here]"])
        }
        Some(kind) if said.is_empty() && raw["files"].is_null() && !ORDINARY.contains(&kind) => {
            format!("[A message of a kind that Muster does not know: {}]", bracket_name(kind))
        }
        _ => said,
    }
}

fn read_press(actions: BlockActions, proof: Proof) -> Option<Event> {
    let message = actions.message?;
    let action = actions.actions.into_iter().next()?;
    let channel = actions.channel.id;
    let is_private = channel.starts_with('D');
    Some(Event::Pressed(ButtonPress {
        key: format!("press:{}:{}", message.ts, actions.trigger_id.or(action.action_ts)?),
        proof,
        is_private,
        target: message.thread_ts.map_or_else(|| channel.clone(), |thread| format!("{channel}/{thread}")),
        vendor_id: Some(format!("{channel}:{}", message.ts)),
        value: action.value?,
        reply_to: actions.user.id.clone(),
        origin: Origin { id: actions.user.id, place: (!is_private).then_some(channel), name: None },
    }))
}

/// The files of a message and of its shared messages, and notes about the others.
fn read_files(raw: &Value) -> (Vec<RemoteFile>, String) {
    let shared = raw["attachments"].as_array().into_iter().flatten().filter(|one| is_shared(one));
    let all = std::iter::once(raw)
        .chain(shared)
        .flat_map(|message| message["files"].as_array().into_iter().flatten());
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for file in all {
        notes.extend(describe_transcription(file));
        if let Some(note) = describe_placeholder(file) {
            notes.push(note);
        } else {
            notes.extend(describe_mail(file).or_else(|| describe_file(file)));
            files.push(remote_file(file));
        }
    }
    let notes: Vec<_> = notes.iter().map(String::as_str).collect();
    (files, join_paragraphs(&notes))
}

/// Slack's transcription of a voice or video clip, or its beginning.
fn describe_transcription(file: &Value) -> Option<String> {
    let preview = &file["transcription"]["preview"];
    let words = preview["content"].as_str().map(str::trim).filter(|words| !words.is_empty())?;
    let words = words.replace('[', "(").replace(']', ")").lines().collect::<Vec<_>>().join(" ");
    let more = if preview["has_more"] == true { " …" } else { "" };
    Some(format!("[Slack's transcription of a clip came with this message: {words}{more}]"))
}

/// The text of a mail forwarded to Slack. Its file is the HTML.
fn describe_mail(file: &Value) -> Option<String> {
    if file["mode"] != "email" && file["filetype"] != "email" {
        return None;
    }
    let text = |value: &Value| bracket_name(&unescape(value.as_str().unwrap_or_default()));
    let list = |field: &str, said: &dyn Fn(&Value) -> String| {
        let all = file[field].as_array().into_iter().flatten().map(said);
        all.filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let sender = |one: &Value| {
        let said = format_link(&text(&one["name"]), &text(&one["address"]));
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
    Some(quote(
        head.trim_end_matches([':', ' ']),
        &escape_literal(&words.unwrap_or_default().replace("\r\n", "\n")),
    ))
}

/// The author's title and description of a file. Slack derives a title from the name.
fn describe_file(file: &Value) -> Option<String> {
    let text = |field: &str| bracket_name(file[field].as_str().unwrap_or_default());
    let (called, title, seen) = (file_name(file), text("title"), text("alt_txt"));
    let is_named = called == title || called.rsplit_once('.').is_some_and(|(stem, _)| stem == title);
    let said = [if is_named { "" } else { &title }, &seen];
    let said = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ");
    (!said.is_empty()).then(|| format!("[A file came with this message: {called}, {said}]"))
}

/// A note about a file entry that is not a file.
fn describe_placeholder(file: &Value) -> Option<String> {
    let text = |field: &str| file[field].as_str().unwrap_or_default();
    let called = |what: &str, address: &str| {
        let title = bracket_name(if text("title").is_empty() { text("name") } else { text("title") });
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

/// A file. Without permission, Slack omits the address; the file is kept, so that its absence can be reported.
fn remote_file(file: &Value) -> RemoteFile {
    let text = |field: &str| file[field].as_str().map(str::to_owned);
    RemoteFile {
        name: text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| file_name(file)),
        media_type: text("mimetype").unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: file["size"].as_u64(),
        content: Content::There(text("url_private_download").unwrap_or_default()),
    }
}

/// A `ts` begins with seconds.
fn parse_ts(ts: &str) -> Timestamp {
    let seconds = ts.split('.').next().and_then(|seconds| seconds.parse().ok());
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
