//! What Telegram tells: <https://core.telegram.org/bots/api#update>.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::contract::{Content, Event, Inbound, Origin, Press, Proof, Refusal, RemoteFile, Thread};

/// Who we are.
pub struct Me {
    pub id: i64,
    pub username: Option<String>,
}

#[derive(Deserialize)]
struct Update {
    message: Option<Message>,
    callback_query: Option<CallbackQuery>,
}

#[derive(Deserialize)]
struct CallbackQuery {
    id: String,
    from: User,
    message: Option<Pressed>,
    data: Option<String>,
}

/// A message that may be too old to be told in full.
#[derive(Deserialize)]
struct Pressed {
    message_id: i64,
    chat: Chat,
}

#[derive(Deserialize)]
struct User {
    id: i64,
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
    from: Option<User>,
    sender_chat: Option<Chat>,
    chat: Chat,
    date: i64,
    reply_to_message: Option<Box<Answered>>,
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
    sticker: Option<File>,
    video: Option<File>,
    video_note: Option<File>,
    voice: Option<File>,
}

#[derive(Deserialize)]
struct Answered {
    message_id: i64,
    from: Option<User>,
}

/// Offsets and lengths are in UTF-16 code units.
#[derive(Deserialize)]
struct Entity {
    r#type: String,
    offset: usize,
    length: usize,
    user: Option<User>,
}

#[derive(Deserialize)]
struct File {
    file_id: String,
    file_name: Option<String>,
    mime_type: Option<String>,
    file_size: Option<u64>,
}

/// What an update says, if it is something for us.
pub fn decode(update: &Value, me: &Me) -> Result<Option<Event>, Refusal> {
    let update = Update::deserialize(update)
        .map_err(|error| Refusal::Malformed(format!("This is not an update of Telegram: {error}").into()))?;
    Ok(match update {
        Update { callback_query: Some(query), .. } => pressed(query, me),
        Update { message: Some(message), .. } => told(message, me),
        _ => None,
    })
}

/// A message's id in a chat of this kind. In private chats and basic groups each bot has numbers of its own, which begin at 1:
/// those of the channel's next bot are other messages.
pub fn id_of(bot: i64, (chat, kind): (i64, &str), number: i64) -> String {
    match kind {
        "private" | "group" => format!("{bot}/{chat}:{number}"),
        _ => format!("{chat}:{number}"),
    }
}

/// The number of a message with this id. `None`: it is another bot's. An id without a bot counts for all.
pub fn number_of(bot: i64, id: &str) -> Option<i64> {
    let (chat, number) = id.rsplit_once(':')?;
    let is_ours = chat.split_once('/').is_none_or(|(whose, _)| whose.parse() == Ok(bot));
    number.parse().ok().filter(|_| is_ours)
}

fn pressed(query: CallbackQuery, me: &Me) -> Option<Event> {
    let message = query.message?;
    let chat = message.chat;
    Some(Event::Pressed(Press {
        key: format!("press:{}", query.id),
        origin: origin(Some(&query.from), None, &chat),
        proof: Proof::Vendor,
        is_private: chat.r#type == "private",
        target: chat.id.to_string(),
        vendor_id: Some(id_of(me.id, (chat.id, &chat.r#type), message.message_id)),
        value: query.data?,
        reply_to: query.id,
    }))
}

fn told(mut message: Message, me: &Me) -> Option<Event> {
    let chat = &message.chat;
    if let Some(to) = message.migrate_to_chat_id {
        return Some(Event::Moved { from: chat.id.to_string(), to: to.to_string() });
    }
    let files = files(&mut message);
    let (text, entities) = match (message.text.take(), message.caption.take()) {
        (Some(text), _) => (text, &message.entities),
        (None, caption) => (caption.unwrap_or_default(), &message.caption_entities),
    };
    if text.is_empty() && files.is_empty() {
        return None;
    }
    let chat = &message.chat;
    let (text, is_named) = without_us(&text, entities, me);
    let answers_us = |answered: &Answered| answered.from.as_ref().is_some_and(|from| from.id == me.id);
    let is_private = chat.r#type == "private";
    let is_reply = message.reply_to_message.as_deref().is_some_and(answers_us);
    let target = match message.message_thread_id {
        Some(topic) if message.is_topic_message => format!("{}/{topic}", chat.id),
        _ => chat.id.to_string(),
    };
    let named = |number| id_of(me.id, (chat.id, &chat.r#type), number);
    let id = named(message.message_id);
    let refs = message.reply_to_message.iter().map(|answered| named(answered.message_id));
    Some(Event::Message(Box::new(Inbound {
        key: Some(id.clone()),
        vendor_id: Some(id),
        answers: refs.clone().next(),
        origin: origin(message.from.as_ref(), message.sender_chat.as_ref(), chat),
        authors: message.from.iter().map(|from| from.id.to_string()).collect(),
        is_automatic: message.from.as_ref().is_none_or(|from| from.is_bot),
        proof: Proof::Vendor,
        thread: Thread {
            readers: Vec::new(),
            key: target.clone(),
            refs: refs.collect(),
            target,
            title: chat.title.clone(),
            is_private,
        },
        is_addressed: is_private || is_reply || is_named,
        labels: Vec::new(),
        text,
        files,
        at: Timestamp::from_second(message.date).unwrap_or_default(),
    })))
}

/// Who wrote something. Who writes in the name of a chat has that chat's id.
fn origin(from: Option<&User>, sender_chat: Option<&Chat>, chat: &Chat) -> Origin {
    let name = |user: &User| {
        let last = user.last_name.as_deref().unwrap_or_default();
        format!("{} {last}", user.first_name).trim().to_owned()
    };
    let place = (chat.r#type != "private").then(|| chat.id.to_string());
    match (sender_chat, from) {
        (Some(sender), _) => Origin { id: sender.id.to_string(), place, name: sender.title.clone() },
        (None, Some(user)) => Origin { id: user.id.to_string(), place, name: Some(name(user)) },
        (None, None) => Origin { id: chat.id.to_string(), place, name: chat.title.clone() },
    }
}

/// The text without what names us, and whether something does.
fn without_us(text: &str, entities: &[Entity], me: &Me) -> (String, bool) {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut rest = String::new();
    let (mut from, mut is_named) = (0, false);
    for entity in entities {
        let end = entity.offset.saturating_add(entity.length);
        let Some(marked) = units.get(entity.offset..end) else { continue };
        let marked = String::from_utf16_lossy(marked);
        let at_us = |name: &str| me.username.as_deref().is_some_and(|us| us.eq_ignore_ascii_case(name));
        let (names_us, keep) = match entity.r#type.as_str() {
            "mention" => (marked.strip_prefix('@').is_some_and(at_us), ""),
            "text_mention" => (entity.user.as_ref().is_some_and(|user| user.id == me.id), ""),
            "bot_command" => match marked.split_once('@') {
                Some((command, name)) => (at_us(name), command),
                None => (true, marked.as_str()),
            },
            _ => continue,
        };
        if names_us && entity.offset >= from {
            rest.push_str(&String::from_utf16_lossy(&units[from..entity.offset]));
            rest.push_str(keep);
            from = end;
            is_named = true;
        }
    }
    rest.push_str(&String::from_utf16_lossy(&units[from..]));
    (rest.trim().to_owned(), is_named)
}

fn files(message: &mut Message) -> Vec<RemoteFile> {
    let photo = message.photo.pop().map(|photo| named(photo, "photo.jpg", "image/jpeg"));
    // An animation is told as a document too.
    let document = message.document.take().filter(|_| message.animation.is_none());
    let others = [
        (document, "document", "application/octet-stream"),
        (message.animation.take(), "animation.mp4", "video/mp4"),
        (message.audio.take(), "audio.mp3", "audio/mpeg"),
        (message.video.take(), "video.mp4", "video/mp4"),
        (message.video_note.take(), "video.mp4", "video/mp4"),
        (message.voice.take(), "voice.ogg", "audio/ogg"),
        (message.sticker.take(), "sticker.webp", "image/webp"),
    ];
    let others = others.into_iter().filter_map(|(file, name, kind)| Some(named(file?, name, kind)));
    photo.into_iter().chain(others).collect()
}

fn named(file: File, name: &str, media_type: &str) -> RemoteFile {
    RemoteFile {
        name: file.file_name.unwrap_or_else(|| name.to_owned()),
        media_type: file.mime_type.unwrap_or_else(|| media_type.to_owned()),
        size: file.file_size,
        content: Content::There(file.file_id),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inbound(message: &Value) -> Inbound {
        let me = Me { id: 7, username: Some("muster_bot".to_owned()) };
        match decode(&json!({"update_id": 1, "message": message}), &me) {
            Ok(Some(Event::Message(inbound))) => *inbound,
            other => panic!("{other:?}"),
        }
    }

    fn group(text: &str, more: &Value) -> Value {
        let mut message = json!({"message_id": 3, "date": 1_700_000_000, "text": text,
            "from": {"id": 5, "is_bot": false, "first_name": "Ada", "last_name": "L"},
            "chat": {"id": -100, "type": "supergroup", "title": "Team"}});
        for (key, value) in more.as_object().unwrap() {
            message[key] = value.clone();
        }
        message
    }

    #[test]
    fn in_a_group_only_what_names_us_is_for_us() {
        assert!(!inbound(&group("hello", &json!({}))).is_addressed);
        let named = json!({"entities": [{"type": "mention", "offset": 3, "length": 11}]});
        let named = inbound(&group("😀 @Muster_Bot hello", &named));
        assert!(named.is_addressed);
        assert_eq!(named.text, "😀  hello");
        let other = json!({"entities": [{"type": "mention", "offset": 0, "length": 6}]});
        assert!(!inbound(&group("@other hello", &other)).is_addressed);
        let reply = json!({"reply_to_message": {"message_id": 2, "from": {"id": 7, "is_bot": true, "first_name": "M"}}});
        let reply = inbound(&group("yes", &reply));
        assert!(reply.is_addressed);
        assert_eq!(reply.thread.refs, ["-100:2"]);
        assert_eq!(reply.answers.as_deref(), Some("-100:2"));
        let command = json!({"entities": [{"type": "bot_command", "offset": 0, "length": 18}]});
        assert_eq!(inbound(&group("/status@muster_bot now", &command)).text, "/status now");
    }

    #[test]
    fn who_and_where() {
        let told = inbound(&group("hello", &json!({"message_thread_id": 9, "is_topic_message": true})));
        assert_eq!(
            told.origin,
            Origin { id: "5".into(), place: Some("-100".into()), name: Some("Ada L".into()) }
        );
        assert_eq!(told.thread.target, "-100/9");
        assert_eq!((told.key.as_deref(), told.thread.is_private), (Some("-100:3"), false));
    }

    #[test]
    fn what_each_bot_numbers_for_itself_has_the_bot_in_its_name() {
        for (kind, chat, named) in
            [("private", 5, "7/5"), ("group", -9, "7/-9"), ("supergroup", -100, "-100")]
        {
            let more = json!({"chat": {"id": chat, "type": kind}, "reply_to_message": {"message_id": 2}});
            let told = inbound(&group("yes", &more));
            let (own, answered) = (format!("{named}:3"), format!("{named}:2"));
            assert_eq!((told.key.as_ref(), told.vendor_id.as_ref()), (Some(&own), Some(&own)), "{kind}");
            assert_eq!(told.answers.as_ref(), Some(&answered), "{kind}");
            assert_eq!(told.thread.refs, [answered], "{kind}");
            assert_eq!(number_of(7, &own), Some(3), "{kind}");
        }
        assert_eq!((number_of(9, "7/5:3"), number_of(9, "-100:3")), (None, Some(3)));
    }

    #[test]
    fn what_is_not_for_us_is_nothing() {
        let me = Me { id: 7, username: None };
        let service = json!({"update_id": 1, "message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"},
            "new_chat_members": []}});
        assert_eq!(decode(&service, &me), Ok(None));
        assert_eq!(decode(&json!({"update_id": 1, "poll": {}}), &me), Ok(None));
        assert!(matches!(decode(&json!({"message": 5}), &me), Err(Refusal::Malformed(_))));
        let moved = group("", &json!({"migrate_to_chat_id": -1009}));
        let expected = Event::Moved { from: "-100".into(), to: "-1009".into() };
        assert_eq!(decode(&json!({"message": moved}), &me), Ok(Some(expected)));
    }

    #[test]
    fn files_come_with_their_caption() {
        let photo = json!({"text": null, "caption": "look", "photo": [{"file_id": "small"}, {"file_id": "large", "file_size": 9}]});
        let told = inbound(&group("", &photo));
        assert_eq!((told.text.as_str(), told.files.len()), ("look", 1));
        assert_eq!(told.files[0].content, Content::There("large".into()));
    }
}
