//! Telegram's updates: <https://core.telegram.org/bots/api#update>.

use std::{collections::HashSet, mem};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    context,
    entities::{Entity, to_markdown},
    notes::{self, Note},
    outgoing::DIRECT_PREFIX,
};
use crate::{
    contract::{ButtonPress, Content, Event, Inbound, OneLine, Origin, Proof, Refusal, RemoteFile, Thread},
    quoting::{escape_notes, join_paragraphs},
};

/// Updates with a message. Those of channels have no author, only a channel.
const MESSAGES: [&str; 4] = ["message", "edited_message", "channel_post", "edited_channel_post"];

/// Our identity.
pub struct BotIdentity {
    pub id: i64,
    pub username: Option<String>,
}

#[derive(Deserialize)]
struct CallbackQuery {
    id: String,
    from: User,
    message: Option<Pressed>,
    data: Option<String>,
}

/// A message, possibly too old to be included in full.
#[derive(Deserialize)]
struct Pressed {
    message_id: i64,
    chat: Chat,
}

#[derive(Deserialize)]
pub struct User {
    pub id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    last_name: Option<String>,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    r#type: String,
    title: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    message_id: i64,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    #[serde(default)]
    is_automatic_forward: bool,
    from: Option<User>,
    sender_chat: Option<Chat>,
    author_signature: Option<String>,
    chat: Chat,
    date: i64,
    media_group_id: Option<String>,
    direct_messages_topic: Option<DirectTopic>,
    reply_to_message: Option<Answered>,
    migrate_to_chat_id: Option<i64>,
    text: Option<String>,
    caption: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    #[serde(default)]
    caption_entities: Vec<Entity>,
    #[serde(default)]
    photo: Vec<File>,
    animation: Option<File>,
    audio: Option<File>,
    document: Option<File>,
    live_photo: Option<LivePhoto>,
    sticker: Option<Sticker>,
    video: Option<File>,
    video_note: Option<File>,
    voice: Option<File>,
}

#[derive(Deserialize)]
struct Answered {
    message_id: i64,
    from: Option<User>,
}

/// A person's direct messages with a channel.
#[derive(Deserialize)]
struct DirectTopic {
    topic_id: i64,
}

/// A short video, and its still picture.
#[derive(Deserialize)]
struct LivePhoto {
    #[serde(flatten)]
    file: File,
    #[serde(default)]
    photo: Vec<File>,
}

#[derive(Deserialize)]
struct Sticker {
    #[serde(flatten)]
    file: File,
    #[serde(default)]
    is_animated: bool,
    #[serde(default)]
    is_video: bool,
}

#[derive(Deserialize)]
struct File {
    file_id: String,
    file_name: Option<String>,
    mime_type: Option<String>,
    file_size: Option<u64>,
    title: Option<String>,
    performer: Option<String>,
}

/// An album is addressed to us if one of its parts mentions us.
pub fn address_albums(events: &mut [Event]) {
    let mut addressed = HashSet::new();
    for event in &*events {
        if let Event::Message(message) = event
            && message.is_addressed
        {
            addressed.extend(message.album.clone());
        }
    }
    for event in events {
        if let Event::Message(message) = event
            && message.album.as_ref().is_some_and(|album| addressed.contains(album))
        {
            message.is_addressed = true;
        }
    }
}

/// Decodes an update, if it is meant for us.
pub fn decode(update: &Value, me: &BotIdentity) -> Result<Option<Event>, Refusal> {
    let malformed = |error| Refusal::Malformed(format!("This is not an update of Telegram: {error}").into());
    if let Some(query) = update.get("callback_query") {
        return CallbackQuery::deserialize(query).map(|query| read_press(query, me)).map_err(malformed);
    }
    let Some((name, raw)) = MESSAGES.iter().find_map(|name| update.get(name).map(|raw| (*name, raw))) else {
        return Ok(None);
    };
    let message = Message::deserialize(raw).map_err(malformed)?;
    // The reply would have to be ephemeral as well, within 15 seconds; any other would reveal a private question to
    // all.
    if !raw["ephemeral_message_id"].is_null() {
        return Err(Refusal::Malformed(
            "Only its author and the bot see it, and Muster can't answer that way.".into(),
        ));
    }
    let edit = name.starts_with("edited").then(|| update["update_id"].to_string());
    Ok(decode_message(message, raw, edit, me))
}

/// A message's id in a chat of this kind. In private chats and basic groups, numbering is per bot and starts at 1: the
/// same number of another bot is another message.
pub fn id_of(bot: i64, (chat, kind): (i64, &str), number: i64) -> String {
    match kind {
        "private" | "group" => format!("{bot}/{chat}:{number}"),
        _ => format!("{chat}:{number}"),
    }
}

/// The number of a message with this id. `None`: another bot's. An id without a bot fits all.
pub fn number_of(bot: i64, id: &str) -> Option<i64> {
    let (chat, number) = id.rsplit_once(':')?;
    let is_ours = chat.split_once('/').is_none_or(|(whose, _)| whose.parse() == Ok(bot));
    number.parse().ok().filter(|_| is_ours)
}

fn read_press(query: CallbackQuery, me: &BotIdentity) -> Option<Event> {
    let message = query.message?;
    let chat = message.chat;
    Some(Event::Pressed(ButtonPress {
        key: format!("press:{}", query.id),
        origin: origin(Some(&query.from), None, None, &chat),
        proof: Proof::Vendor,
        is_private: chat.r#type == "private",
        target: chat.id.to_string(),
        vendor_id: Some(id_of(me.id, (chat.id, &chat.r#type), message.message_id)),
        value: query.data?,
        reply_to: query.id,
    }))
}

/// `raw` is the whole message, `edit` the update of a later version.
fn decode_message(
    mut message: Message,
    raw: &Value,
    edit: Option<String>,
    me: &BotIdentity,
) -> Option<Event> {
    if let Some(to) = message.migrate_to_chat_id {
        return Some(Event::Moved { from: message.chat.id.to_string(), to: to.to_string() });
    }
    if !context::is_answer(raw) {
        message.reply_to_message = None;
    }
    // A live location is updated every few seconds.
    if edit.is_some() && raw["location"]["live_period"].is_number() {
        return None;
    }
    // In forwarded text, mentions of us stay and don't address us.
    let is_forwarded = context::quote_forwarded(raw, "").is_some();
    let reader = if is_forwarded { &BotIdentity { id: 0, username: None } } else { me };
    let (words, is_named) = take_words(&mut message, reader);
    let words = escape_notes(&words);
    let files = take_files(&mut message, raw);
    let mut notes = notes::collect_notes(raw);
    if raw["text"].is_null() && files.is_empty() && notes.is_empty() {
        notes.extend(notes::unknown_note(raw));
    }
    let context = context::context(raw, me);
    let is_pointed_at = is_named && !context.is_empty();
    if words.is_empty() && files.is_empty() && notes.is_empty() && !is_pointed_at {
        return None;
    }
    let chat = &message.chat;
    let answers_us = |answered: &Answered| answered.from.as_ref().is_some_and(|from| from.id == me.id);
    let is_private = chat.r#type == "private";
    let is_reply = message.reply_to_message.as_ref().is_some_and(answers_us);
    let target = match (&message.direct_messages_topic, message.message_thread_id) {
        (Some(topic), _) => format!("{}/{DIRECT_PREFIX}{}", chat.id, topic.topic_id),
        (None, Some(topic)) if message.is_topic_message => format!("{}/{topic}", chat.id),
        _ => chat.id.to_string(),
    };
    let message_id = |number| id_of(me.id, (chat.id, &chat.r#type), number);
    let id = message_id(message.message_id);
    let answers = message.reply_to_message.as_ref().map(|answered| message_id(answered.message_id));
    let is_edit = edit.is_some();
    let signature = message.author_signature.as_deref();
    let album = message.media_group_id.as_ref().map(|album| format!("{}:{album}", chat.id));
    Some(Event::Message(Box::new(Inbound {
        key: Some(edit.map_or_else(|| id.clone(), |update| format!("{id}:{update}"))),
        thread: Thread {
            readers: Vec::new(),
            key: target.clone(),
            // A later version belongs to the first one's conversation.
            refs: is_edit.then(|| id.clone()).into_iter().chain(answers.clone()).collect(),
            target,
            title: chat.title.as_deref().and_then(OneLine::title),
            is_private,
        },
        vendor_id: Some(id),
        album,
        is_edit,
        answers,
        origin: origin(message.from.as_ref(), message.sender_chat.as_ref(), signature, chat),
        authors: message.from.iter().map(|from| from.id.to_string()).collect(),
        is_automatic: is_automatic(&message),
        proof: Proof::Vendor,
        is_addressed: is_private || is_reply || is_named,
        labels: Vec::new(),
        context,
        text: compose_text(raw, &words, &notes),
        files,
        at: Timestamp::from_second(message.date).unwrap_or_default(),
        source: None,
    })))
}

/// The text, or the caption of files.
fn take_words(message: &mut Message, me: &BotIdentity) -> (String, bool) {
    let (text, entities) = match (mem::take(&mut message.text), mem::take(&mut message.caption)) {
        (Some(text), _) => (text, &message.entities),
        (None, caption) => (caption.unwrap_or_default(), &message.caption_entities),
    };
    to_markdown(&text, entities, me)
}

/// The author's own or forwarded text, and notes about other content.
fn compose_text(raw: &Value, words: &str, notes: &[Note]) -> String {
    let notes: Vec<_> = notes.iter().map(Note::in_message).collect();
    let said = [&[words], &notes.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat();
    let said = join_paragraphs(&said);
    context::quote_forwarded(raw, &said).unwrap_or(said)
}

/// Whether a program wrote it. A person who writes as a chat counts as a person, though Telegram names its own bot as
/// the author. A channel's post copied into its group counts as automatic: it was written for others.
fn is_automatic(message: &Message) -> bool {
    match &message.sender_chat {
        Some(_) => message.is_automatic_forward,
        None => message.from.as_ref().is_none_or(|from| from.is_bot),
    }
}

/// The author. A person who writes as a chat has the chat's id.
fn origin(from: Option<&User>, sender_chat: Option<&Chat>, signature: Option<&str>, chat: &Chat) -> Origin {
    let name = |user: &User| {
        let last = user.last_name.as_deref().unwrap_or_default();
        format!("{} {last}", user.first_name).trim().to_owned()
    };
    let signed = |title: &Option<String>| match (title, signature) {
        (Some(title), Some(author)) => Some(format!("{author} ({title})")),
        (title, _) => title.clone(),
    };
    let signed = |title| signed(title).as_deref().and_then(OneLine::name);
    let place = (chat.r#type != "private").then(|| chat.id.to_string());
    match (sender_chat, from) {
        (Some(sender), _) => Origin { id: sender.id.to_string(), place, name: signed(&sender.title) },
        (None, Some(user)) => Origin { id: user.id.to_string(), place, name: OneLine::name(&name(user)) },
        (None, None) => Origin { id: chat.id.to_string(), place, name: signed(&chat.title) },
    }
}

fn take_files(message: &mut Message, raw: &Value) -> Vec<RemoteFile> {
    let (live, mut still) = message.live_photo.take().map(|live| (live.file, live.photo)).unzip();
    let photo = message.photo.pop().or_else(|| still.as_mut().and_then(Vec::pop));
    let photo = photo.map(|photo| remote_file(photo, "photo.jpg", "image/jpeg"));
    // An animation is also sent as a document.
    let document = message.document.take().filter(|_| message.animation.is_none());
    let others = [
        (document, "document", "application/octet-stream"),
        (message.animation.take(), "animation.mp4", "video/mp4"),
        (message.audio.take().map(name_track), "audio.mp3", "audio/mpeg"),
        (live, "live photo.mp4", "video/mp4"),
        (message.video.take(), "video.mp4", "video/mp4"),
        (message.video_note.take(), "video.mp4", "video/mp4"),
        (message.voice.take(), "voice.ogg", "audio/ogg"),
    ];
    let others = others.into_iter().filter_map(|(file, name, kind)| Some(remote_file(file?, name, kind)));
    let sticker = message.sticker.take().map(|sticker| match (sticker.is_animated, sticker.is_video) {
        (true, _) => remote_file(sticker.file, "sticker.tgs", "application/x-tgsticker"),
        (_, true) => remote_file(sticker.file, "sticker.webm", "video/webm"),
        _ => remote_file(sticker.file, "sticker.webp", "image/webp"),
    });
    // It may hold more than a name and a number.
    let card = raw["contact"]["vcard"].as_str().filter(|card| !card.is_empty()).map(|card| RemoteFile {
        name: "contact.vcf".to_owned(),
        media_type: "text/vcard".to_owned(),
        size: Some(card.len() as u64),
        content: Content::Here(Bytes::copy_from_slice(card.as_bytes())),
    });
    photo.into_iter().chain(others).chain(sticker).chain(card).collect()
}

/// Names a piece of music after its track.
fn name_track(mut file: File) -> File {
    let trimmed = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    let track = notes::track_title(&trimmed(&file.performer), &trimmed(&file.title));
    if file.file_name.is_none() && !track.is_empty() {
        let end = match file.mime_type.as_deref() {
            Some("audio/mp4" | "audio/x-m4a") => "m4a",
            Some("audio/ogg") => "ogg",
            Some("audio/flac" | "audio/x-flac") => "flac",
            Some("audio/wav" | "audio/x-wav") => "wav",
            _ => "mp3",
        };
        file.file_name = Some(format!("{track}.{end}"));
    }
    file
}

fn remote_file(file: File, name: &str, media_type: &str) -> RemoteFile {
    RemoteFile {
        name: file.file_name.unwrap_or_else(|| name.to_owned()),
        media_type: file.mime_type.unwrap_or_else(|| media_type.to_owned()),
        size: file.file_size,
        content: Content::There(file.file_id),
    }
}

#[cfg(test)]
mod tests;
