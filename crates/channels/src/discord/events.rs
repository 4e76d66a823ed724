//! Discord's messages, and taps on buttons: <https://discord.com/developers/docs/resources/message>.

use std::{fmt, iter};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::{content, text::to_markdown};
use crate::{
    contract::{ButtonPress, Content, Event, Inbound, OneLine, Origin, Proof, Refusal, RemoteFile, Thread},
    quoting::{bracket_name, escape_notes, join_paragraphs, quote},
};

/// Written messages: ordinary, replies, and what apps answer to commands. Others are service messages.
const WRITTEN: [u64; 4] = [0, 19, 20, 23];

/// An id, which Discord writes as a string. It begins with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snowflake(pub u64);

impl Snowflake {
    pub fn of(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    /// Milliseconds since 2015, above 22 bits.
    fn time(self) -> Timestamp {
        let since_2015 = i64::try_from(self.0 >> 22).unwrap_or_default();
        Timestamp::from_millisecond(1_420_070_400_000 + since_2015).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Snowflake {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl fmt::Display for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A direct chat, a channel of a server, or a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chat {
    is_private: bool,
    /// The channel; of a thread, the one that it is in.
    place: Option<String>,
    title: Option<OneLine>,
    /// The bot's roles there.
    roles: Vec<Snowflake>,
}

impl Chat {
    /// Whether an event says by itself that its chat is direct.
    pub fn is_direct(event: &Value) -> bool {
        event["channel_type"] == 1
    }

    pub fn direct() -> Self {
        Self { is_private: true, ..Self::default() }
    }

    /// From Discord's descriptions of the channel, and of the bot as a member of its server.
    pub fn read(channel: &Value, member: &Value) -> Self {
        let place = match channel["type"].as_u64() {
            Some(1) => return Self::direct(),
            // Threads.
            Some(10..=12) => &channel["parent_id"],
            _ => &channel["id"],
        };
        Self {
            is_private: false,
            place: place.as_str().map(str::to_owned),
            title: channel["name"].as_str().and_then(OneLine::title),
            roles: Vec::deserialize(&member["roles"]).unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
pub struct User {
    pub id: Snowflake,
    #[serde(default)]
    username: String,
    global_name: Option<String>,
    #[serde(default)]
    bot: bool,
}

impl User {
    pub fn name(&self) -> &str {
        self.global_name.as_deref().unwrap_or(&self.username)
    }
}

#[derive(Deserialize)]
struct Member {
    nick: Option<String>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct Message {
    id: Snowflake,
    channel_id: Snowflake,
    #[serde(default)]
    r#type: u64,
    author: User,
    webhook_id: Option<Snowflake>,
    member: Option<Member>,
    edited_timestamp: Option<String>,
    #[serde(default)]
    mentions: Vec<User>,
    #[serde(default)]
    mention_roles: Vec<Snowflake>,
    message_reference: Option<Reference>,
}

impl Message {
    fn is_reply(&self) -> bool {
        self.r#type == 19
    }
}

#[derive(Deserialize)]
struct Reference {
    message_id: Option<Snowflake>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    content_type: Option<String>,
    size: Option<u64>,
    url: String,
}

#[derive(Deserialize)]
struct Interaction {
    id: Snowflake,
    application_id: Snowflake,
    r#type: u64,
    token: String,
    channel_id: Option<Snowflake>,
    context: Option<u64>,
    user: Option<User>,
    member: Option<Member>,
    message: Option<Pressed>,
    data: Option<Component>,
}

impl Interaction {
    /// Whether it is a tap that can be answered.
    fn is_tap(&self) -> bool {
        self.r#type == 3 && is_segment(&self.token)
    }
}

#[derive(Deserialize)]
struct Pressed {
    id: Snowflake,
}

#[derive(Deserialize)]
struct Component {
    custom_id: Option<String>,
}

/// Decodes an event, if it is meant for us.
pub fn decode(name: &str, event: &Value, me: Snowflake, chat: &Chat) -> Result<Option<Event>, Refusal> {
    let malformed = |error| Refusal::Malformed(format!("This is not an event of Discord: {error}").into());
    match name {
        "MESSAGE_CREATE" | "MESSAGE_UPDATE" => {
            let message = Message::deserialize(event).map_err(malformed)?;
            read_message(&message, event, name == "MESSAGE_UPDATE", (me, chat))
        }
        "INTERACTION_CREATE" => Interaction::deserialize(event).map(read_press).map_err(malformed),
        _ => Ok(None),
    }
}

/// The path of the immediate response to a tap.
pub fn tap_response(event: &Value) -> Option<String> {
    let tap = Interaction::deserialize(event).ok()?;
    tap.is_tap().then(|| format!("interactions/{}/{}/callback", tap.id, tap.token))
}

/// Whether a token is one segment of a path.
fn is_segment(token: &str) -> bool {
    !token.starts_with('.') && token.bytes().all(|byte| byte.is_ascii_graphic() && !b"/\\?#%".contains(&byte))
}

fn read_press(tap: Interaction) -> Option<Event> {
    if !tap.is_tap() {
        return None;
    }
    let user = tap.user.or_else(|| tap.member.and_then(|member| member.user))?;
    let channel = tap.channel_id?;
    // A direct chat with the bot.
    let is_private = tap.context == Some(1);
    Some(Event::Pressed(ButtonPress {
        key: format!("press:{}", tap.id),
        origin: Origin {
            name: OneLine::name(user.name()),
            id: user.id.to_string(),
            place: (!is_private).then(|| channel.to_string()),
        },
        proof: Proof::Vendor,
        is_private,
        target: channel.to_string(),
        vendor_id: tap.message.map(|message| message.id.to_string()),
        value: tap.data?.custom_id?,
        reply_to: format!("{}/{}", tap.application_id, tap.token),
    }))
}

fn read_message(
    message: &Message,
    raw: &Value,
    is_edit: bool,
    (me, chat): (Snowflake, &Chat),
) -> Result<Option<Event>, Refusal> {
    // A preview that is added to a message is also an update.
    let edit = message.edited_timestamp.as_deref().filter(|_| is_edit);
    if !WRITTEN.contains(&message.r#type) || (is_edit && edit.is_none()) {
        return Ok(None);
    }
    let of_app = message.author.bot || message.webhook_id.is_some();
    let ours: Vec<Snowflake> = iter::once(me).chain(chat.roles.iter().copied()).collect();
    let mut named = message.mentions.iter().map(|user| user.id).chain(message.mention_roles.iter().copied());
    let is_named = named.any(|id| ours.contains(&id));
    let mut text = compose_text(raw, &ours, of_app);
    // Edits add no files.
    let files = read_files(raw);
    if is_edit && text.is_empty() && !files.is_empty() {
        text.push_str("[Only this message's files are left]");
    }
    let answers_us = Snowflake::of(&raw["referenced_message"]["author"]["id"]) == Some(me);
    let is_addressed = chat.is_private || is_named || answers_us;
    if text.is_empty() && files.is_empty() && !is_named {
        let nothing = "This Discord message has nothing that can be carried.";
        return if is_addressed { Err(Refusal::Malformed(nothing.into())) } else { Ok(None) };
    }
    let (id, target) = (message.id.to_string(), message.channel_id.to_string());
    let answered = message.message_reference.as_ref().and_then(|reference| reference.message_id);
    let answers = answered.filter(|_| message.is_reply()).map(|id| id.to_string());
    Ok(Some(Event::Message(Box::new(Inbound {
        key: Some(edit.map_or_else(|| id.clone(), |at| format!("{id}:{at}"))),
        thread: Thread {
            key: target.clone(),
            // A later version belongs to the first one's conversation.
            refs: is_edit.then(|| id.clone()).into_iter().chain(answers.clone()).collect(),
            readers: Vec::new(),
            target,
            title: chat.title.clone(),
            is_private: chat.is_private,
        },
        vendor_id: Some(id),
        album: None,
        is_edit,
        answers,
        origin: origin(message, chat),
        authors: vec![message.author.id.to_string()],
        is_automatic: of_app,
        proof: Proof::Vendor,
        is_addressed,
        labels: Vec::new(),
        context: if message.is_reply() { context(raw, me) } else { String::new() },
        text,
        files: if is_edit { Vec::new() } else { files },
        at: message.id.time(),
        source: None,
    }))))
}

fn origin(message: &Message, chat: &Chat) -> Origin {
    let nick = message.member.as_ref().and_then(|member| member.nick.as_deref());
    Origin {
        id: message.author.id.to_string(),
        place: chat.place.clone(),
        name: OneLine::name(nick.unwrap_or(message.author.name())),
    }
}

/// The text, what the message shows beside it, and a forwarded message.
fn compose_text(raw: &Value, ours: &[Snowflake], of_app: bool) -> String {
    let said = escape_notes(&join_paragraphs(&[&words(raw, ours), &content::app_text(raw, of_app)]));
    let forwarded = snapshots(raw).map(|part| {
        let said =
            join_paragraphs(&[&words(part, &[]), &content::app_text(part, true), &content::notes(part)]);
        quote("Forwarded from another chat", &said)
    });
    let forwarded = forwarded.collect::<Vec<_>>().join("\n\n");
    join_paragraphs(&[&said, &content::notes(raw), &forwarded])
}

/// The text of a message, without mentions of `ours`.
fn words(raw: &Value, ours: &[Snowflake]) -> String {
    let mentions = Vec::<User>::deserialize(&raw["mentions"]).unwrap_or_default();
    to_markdown(raw["content"].as_str().unwrap_or_default(), ours, &mentions)
}

/// The forwarded messages in a message.
fn snapshots(raw: &Value) -> impl Iterator<Item = &Value> {
    raw["message_snapshots"].as_array().into_iter().flatten().map(|snapshot| &snapshot["message"])
}

/// The replied-to text, unless it is ours.
fn context(raw: &Value, me: Snowflake) -> String {
    let answered = &raw["referenced_message"];
    let Ok(author) = User::deserialize(&answered["author"]) else { return String::new() };
    if author.id == me {
        return String::new();
    }
    let said = [words(answered, &[]), content::app_text(answered, author.bot), content::notes(answered)];
    let said = join_paragraphs(&said.each_ref().map(String::as_str));
    quote(&format!("In answer to what {} wrote", bracket_name(author.name())), &said)
}

/// The files of a message and of a forwarded one.
fn read_files(raw: &Value) -> Vec<RemoteFile> {
    let all = iter::once(raw).chain(snapshots(raw));
    let all = all.flat_map(|message| message["attachments"].as_array().into_iter().flatten());
    all.filter_map(|file| File::deserialize(file).ok())
        .map(|file| RemoteFile {
            name: file.filename,
            media_type: file.content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size: file.size,
            content: Content::There(file.url),
        })
        .collect()
}

#[cfg(test)]
mod tests;
