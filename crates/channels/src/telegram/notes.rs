//! Notes about a message's content other than text and files: <https://core.telegram.org/bots/api#message>. Fields are
//! read one by one and may have any type: Telegram adds some each year, and an unexpected one must not cost the
//! message.

use serde::Deserialize;
use serde_json::Value;

use super::{
    entities::{Entity, to_markdown},
    updates::BotIdentity,
};
use crate::quoting::{bracket_name, code_block, join_paragraphs};

/// A bracketed note about a content.
pub struct Note {
    what: String,
    details: String,
    /// A code block below the note, with the original data.
    data: String,
}

type Describe = fn(&Value) -> String;

/// Fields that become notes: name, title, and details. A message has at most a few of them.
const FIELDS: [(&str, &str, Describe); 17] = [
    ("checklist", "A checklist", checklist),
    ("chat_shared", "A chat", chat),
    ("contact", "A contact", contact),
    ("dice", "A die", dice),
    ("game", "A game", titled),
    ("gift", "A gift", gift),
    ("giveaway", "A giveaway", prizes),
    ("giveaway_winners", "The winners of a giveaway", prizes),
    ("invoice", "An invoice", |invoice| join_list(&[titled(invoice), amount(invoice)])),
    ("location", "A location", location),
    ("paid_media", "Paid media", paid),
    ("passport_data", "Passport data", |_| "Muster does not read it".to_owned()),
    ("poll", "A poll", poll),
    ("refunded_payment", "A refund", amount),
    ("story", "A story", |story| join_list(&[owner(&story["chat"]), "bots can't see it".to_owned()])),
    ("successful_payment", "A payment", |paid| {
        join_list(&[amount(paid), field_text(paid, "invoice_payload")])
    }),
    ("unique_gift", "A gift", |gift| field_text(&gift["gift"], "name")),
];

/// Names of files in a quote.
const FILE_FIELDS: [(&str, &str); 9] = [
    ("animation", "An animation"),
    ("audio", "An audio file"),
    ("document", "A file"),
    ("live_photo", "A live photo"),
    ("photo", "A photo"),
    ("sticker", "A sticker"),
    ("video", "A video"),
    ("video_note", "A video message"),
    ("voice", "A voice message"),
];

/// Service fields about a chat, and fields that accompany other content.
const SERVICE_FIELDS: [&str; 68] = [
    "boost_added",
    "business_connection_id",
    "channel_chat_created",
    "chat",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "direct_messages_topic",
    "external_reply",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "forward_from",
    "forward_from_chat",
    "forward_origin",
    "from",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "guest_bot_caller_chat",
    "guest_bot_caller_user",
    "left_chat_member",
    "left_chat_participant",
    "link_preview_options",
    "managed_bot_created",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_member",
    "new_chat_members",
    "new_chat_participant",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "pinned_message",
    "poll_option_added",
    "poll_option_deleted",
    "proximity_alert_triggered",
    "quote",
    "reply_markup",
    "reply_to_message",
    "reply_to_story",
    "sender_business_bot",
    "sender_chat",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_info",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "via_bot",
    "voice_chat_ended",
    "voice_chat_started",
    "write_access_allowed",
];

impl Note {
    fn new(what: impl Into<String>, details: String) -> Self {
        Self { what: what.into(), details, data: String::new() }
    }

    /// The note inside its own message.
    pub fn in_message(&self) -> String {
        self.write(" came with this message")
    }

    /// The note inside a quote.
    pub fn in_quote(&self) -> String {
        self.write("")
    }

    fn write(&self, came: &str) -> String {
        let Self { what, details, data } = self;
        let details = if details.is_empty() { String::new() } else { format!(": {details}") };
        let data = if data.is_empty() { String::new() } else { code_block(data, "") };
        join_paragraphs(&[&format!("[{what}{came}{details}]"), &data])
    }
}

pub fn collect_notes(message: &Value) -> Vec<Note> {
    let mut kinds: Vec<_> = FIELDS
        .iter()
        .filter_map(|(field, what, describe)| read_note(message, field, what, *describe))
        .collect();
    // A place also has a location, and a game its pictures.
    if let Some(venue) = read_note(message, "venue", "A place", venue) {
        kinds.retain(|kind| kind.what != "A location");
        kinds.push(venue);
    }
    if let Some(shared) = message["users_shared"]["users"].as_array() {
        let users =
            shared.iter().map(|user| with_id(&person(user, "user_id"), &user["user_id"])).collect::<Vec<_>>();
        kinds.push(Note::new("People", join_list(&users)));
    }
    if let Some(sent) = message.get("web_app_data").filter(|sent| !sent.is_null()) {
        let button = field_text(sent, "button_text");
        let details = if button.is_empty() { button } else { format!("sent by the button “{button}”") };
        // For programs.
        let data = sent["data"].as_str().unwrap_or_default().to_owned();
        kinds.push(Note { data, ..Note::new("Data of a web app", details) });
    }
    // Animated stickers can't be shown everywhere.
    if let Some(emoji) = message["sticker"]["emoji"].as_str() {
        kinds.push(Note::new("A sticker", bracket_name(emoji)));
    }
    kinds
}

/// A note about an unknown field of a message without any other content.
pub fn unknown_note(message: &Value) -> Option<Note> {
    let fields = message.as_object()?.iter();
    let mut unknown = fields.filter(|(field, value)| {
        value.is_object() && !SERVICE_FIELDS.contains(&field.as_str()) && !field.ends_with("_topic_created")
    });
    let (field, _) = unknown.next()?;
    let what = format!("Something that Muster does not know ({})", bracket_name(&field.replace('_', " ")));
    Some(Note::new(what, String::new()))
}

/// The content of another person's message for a quote: notes, and names of files.
pub fn describe_content(message: &Value) -> Vec<String> {
    describe_files(message).into_iter().chain(collect_notes(message).iter().map(Note::in_quote)).collect()
}

/// The names of the files of another person's message.
pub fn describe_files(message: &Value) -> Vec<String> {
    let is_there =
        |field: &str| !matches!(&message[field], Value::Null) && message[field] != Value::Array(Vec::new());
    let file = |(field, what): &(&str, &str)| {
        // An animation is also sent as a document; a sticker is named by its emoji.
        let is_twice = (*field == "document" && is_there("animation"))
            || (*field == "sticker" && message["sticker"]["emoji"].is_string());
        let (file, file_name) = (&message[*field], field_text(&message[*field], "file_name"));
        let details = if file_name.is_empty() {
            track_title(&field_text(file, "performer"), &field_text(file, "title"))
        } else {
            file_name
        };
        (is_there(field) && !is_twice).then(|| Note::new(*what, details).in_quote())
    };
    FILE_FIELDS.iter().filter_map(file).collect()
}

/// A track's title.
pub fn track_title(performer: &str, title: &str) -> String {
    let said: Vec<_> = [performer, title].into_iter().filter(|said| !said.is_empty()).collect();
    said.join(" – ")
}

fn read_note(message: &Value, field: &str, what: &str, describe: Describe) -> Option<Note> {
    let value = message.get(field).filter(|value| !value.is_null())?;
    Some(Note::new(what, describe(value)))
}

/// A text with its marks, or without if they are malformed.
pub fn marked_text(value: &Value, text: &str, entities: &str) -> String {
    let Some(text) = value[text].as_str() else { return String::new() };
    let entities = Vec::<Entity>::deserialize(&value[entities]).unwrap_or_default();
    // Mentions of us by others stay.
    to_markdown(text, &entities, &BotIdentity { id: 0, username: None }).0
}

/// A field's text, on one line.
fn field_text(value: &Value, field: &str) -> String {
    value[field].as_str().map(bracket_line).unwrap_or_default()
}

/// A one-line text that can't close the brackets around it.
fn bracket_line(text: &str) -> String {
    text.trim().lines().map(|line| line.replace('[', "(").replace(']', ")")).collect::<Vec<_>>().join(" ")
}

fn join_list(said: &[String]) -> String {
    said.iter().filter(|said| !said.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn titled(value: &Value) -> String {
    join_list(&[field_text(value, "title"), field_text(value, "description")])
}

/// A person's name, username or id.
pub fn person(user: &Value, id: &str) -> String {
    let names = [field_text(user, "first_name"), field_text(user, "last_name")];
    let shown =
        names.iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ");
    let username =
        user["username"].as_str().map(|name| format!("@{}", bracket_line(name))).unwrap_or_default();
    let id = if user[id].is_number() { user[id].to_string() } else { String::new() };
    match (shown.is_empty(), username.is_empty()) {
        (false, _) => shown,
        (true, false) => username,
        (true, true) => id,
    }
}

/// A chat's owner: the title of a group or channel, or the person.
fn owner(chat: &Value) -> String {
    let title = field_text(chat, "title");
    if title.is_empty() { person(chat, "id") } else { title }
}

fn checklist(checklist: &Value) -> String {
    let task = |task: &Value| {
        let is_done = task["completion_date"].as_i64().is_some_and(|at| at > 0);
        format!(
            "{} {}",
            if is_done { "☑" } else { "☐" },
            bracket_line(&marked_text(task, "text", "text_entities"))
        )
    };
    let tasks: Vec<_> = checklist["tasks"].as_array().into_iter().flatten().map(task).collect();
    format!("{}: {}", bracket_line(&marked_text(checklist, "title", "title_entities")), join_list(&tasks))
}

fn chat(shared: &Value) -> String {
    with_id(&field_text(shared, "title"), &shared["chat_id"])
}

/// A name with the requested id.
fn with_id(name: &str, id: &Value) -> String {
    let id = id.to_string();
    if name.is_empty() || name == id { id } else { format!("{name} ({id})") }
}

fn gift(given: &Value) -> String {
    let gift = &given["gift"];
    let price =
        gift["star_count"].as_i64().map(|stars| format!("worth {stars} Telegram Stars")).unwrap_or_default();
    join_list(&[
        bracket_line(&marked_text(given, "text", "entities")),
        field_text(&gift["sticker"], "emoji"),
        price,
    ])
}

fn contact(contact: &Value) -> String {
    join_list(&[person(contact, "user_id"), field_text(contact, "phone_number")])
}

fn dice(dice: &Value) -> String {
    format!("{} {}", field_text(dice, "emoji"), dice["value"])
}

fn prizes(giveaway: &Value) -> String {
    let winners: Vec<_> =
        giveaway["winners"].as_array().into_iter().flatten().map(|user| person(user, "id")).collect();
    let count = giveaway["winner_count"].as_i64().map(|count| format!("{count} winners")).unwrap_or_default();
    let stars = giveaway["prize_star_count"]
        .as_i64()
        .map(|stars| format!("{stars} Telegram Stars"))
        .unwrap_or_default();
    join_list(&[count, field_text(giveaway, "prize_description"), stars, join_list(&winners)])
}

/// Telegram counts in a currency's smallest unit, whose size differs.
fn amount(paid: &Value) -> String {
    let currency = field_text(paid, "currency");
    match (paid["total_amount"].as_i64(), currency.as_str()) {
        (Some(amount), "XTR") => format!("{amount} Telegram Stars"),
        (Some(amount), _) => format!("{amount} in the smallest unit of {currency}"),
        (None, _) => String::new(),
    }
}

fn location(location: &Value) -> String {
    let (latitude, longitude) = (&location["latitude"], &location["longitude"]);
    let near = location["horizontal_accuracy"].as_f64().map(|metres| format!(" (within {metres} m)"));
    let live = if location["live_period"].is_number() { ", live: where it began" } else { "" };
    format!("{latitude}, {longitude}{}{live}", near.unwrap_or_default())
}

fn venue(venue: &Value) -> String {
    join_list(&[field_text(venue, "title"), field_text(venue, "address"), location(&venue["location"])])
}

fn paid(media: &Value) -> String {
    let count = media["paid_media"].as_array().map_or(0, Vec::len);
    format!("{count} for {} Telegram Stars, not kept", media["star_count"])
}

fn poll(poll: &Value) -> String {
    let options = poll["options"].as_array().into_iter().flatten();
    let options: Vec<_> = options
        .map(|option| format!("“{}”", bracket_line(&marked_text(option, "text", "text_entities"))))
        .collect();
    let asked = format!(
        "“{}” ({})",
        bracket_line(&marked_text(poll, "question", "question_entities")),
        join_list(&options)
    );
    join_list(&[asked, bracket_line(&marked_text(poll, "description", "description_entities"))])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notes_of(message: &Value) -> Vec<String> {
        collect_notes(message).iter().map(Note::in_message).collect()
    }

    #[test]
    fn each_kind_has_a_note() {
        for (message, expected) in [
            (
                json!({"location": {"latitude": 52.5, "longitude": 13.25}}),
                "[A location came with this message: 52.5, 13.25]",
            ),
            (
                json!({"location": {"latitude": 52.5, "longitude": 13.25, "horizontal_accuracy": 20.0, "live_period": 900}}),
                "[A location came with this message: 52.5, 13.25 (within 20 m), live: where it began]",
            ),
            (
                json!({"location": {"latitude": 1.5, "longitude": 2.5},
                    "venue": {"title": "Café", "address": "Main Street 1", "location": {"latitude": 1.5, "longitude": 2.5}}}),
                "[A place came with this message: Café, Main Street 1, 1.5, 2.5]",
            ),
            (
                json!({"contact": {"phone_number": "+491234", "first_name": "Ada", "last_name": "L"}}),
                "[A contact came with this message: Ada L, +491234]",
            ),
            (
                json!({"poll": {"question": "Tea]?", "options": [{"text": "Yes"}, {"text": "No"}]}}),
                "[A poll came with this message: “Tea)?” (“Yes”, “No”)]",
            ),
            (json!({"dice": {"emoji": "🎲", "value": 4}}), "[A die came with this message: 🎲 4]"),
            (
                json!({"game": {"title": "Snake", "description": "Eat", "photo": []}}),
                "[A game came with this message: Snake, Eat]",
            ),
            (
                json!({"invoice": {"title": "Tea", "description": "Green", "currency": "EUR", "total_amount": 450}}),
                "[An invoice came with this message: Tea, Green, 450 in the smallest unit of EUR]",
            ),
            (
                json!({"successful_payment": {"currency": "XTR", "total_amount": 5, "invoice_payload": "o-7"}}),
                "[A payment came with this message: 5 Telegram Stars, o-7]",
            ),
            (
                json!({"story": {"chat": {"title": "News"}, "id": 1}}),
                "[A story came with this message: News, bots can't see it]",
            ),
            (
                json!({"story": {"chat": {"id": 5, "first_name": "Eva", "last_name": "Q", "username": "eva"}, "id": 1}}),
                "[A story came with this message: Eva Q, bots can't see it]",
            ),
            (
                json!({"story": {"chat": {"id": 5, "username": "eva"}, "id": 1}}),
                "[A story came with this message: @eva, bots can't see it]",
            ),
            (
                json!({"paid_media": {"star_count": 3, "paid_media": [{"type": "preview"}]}}),
                "[Paid media came with this message: 1 for 3 Telegram Stars, not kept]",
            ),
            (
                json!({"checklist": {"title": "Move", "tasks": [{"id": 1, "text": "Pack"}, {"id": 2, "text": "Call", "completion_date": 9}]}}),
                "[A checklist came with this message: Move: ☐ Pack, ☑ Call]",
            ),
            (
                json!({"checklist": {"title": "Old plan", "title_entities": [{"type": "strikethrough", "offset": 0, "length": 3}],
                    "tasks": [{"id": 1, "text": "Pack", "text_entities": [{"type": "strikethrough", "offset": 0, "length": 4}]}]}}),
                "[A checklist came with this message: ~~Old~~ plan: ☐ ~~Pack~~]",
            ),
            (
                json!({"gift": {"gift": {"star_count": 25}, "text": "For you", "entities": [{"type": "strikethrough", "offset": 0, "length": 3}]}}),
                "[A gift came with this message: ~~For~~ you, worth 25 Telegram Stars]",
            ),
            (
                json!({"users_shared": {"request_id": 1, "users": [{"user_id": 5, "first_name": "Ada"}, {"user_id": 6}]}}),
                "[People came with this message: Ada (5), 6]",
            ),
            (json!({"chat_shared": {"request_id": 1, "chat_id": -5}}), "[A chat came with this message: -5]"),
            (
                json!({"chat_shared": {"chat_id": -5, "title": "Ops"}}),
                "[A chat came with this message: Ops (-5)]",
            ),
            (
                json!({"gift": {"gift": {"sticker": {"emoji": "🎂"}, "star_count": 25}}}),
                "[A gift came with this message: 🎂, worth 25 Telegram Stars]",
            ),
            (
                json!({"giveaway": {"winner_count": 2, "prize_description": "Tea"}}),
                "[A giveaway came with this message: 2 winners, Tea]",
            ),
            (
                json!({"web_app_data": {"data": "{\"a\":\n [1, \"```\"]}", "button_text": "Send"}}),
                "[Data of a web app came with this message: sent by the button “Send”]\n\n````\n{\"a\":\n [1, \"```\"]}\n````",
            ),
            (json!({"sticker": {"emoji": "😀"}}), "[A sticker came with this message: 😀]"),
        ] {
            assert_eq!(notes_of(&message), [expected], "{message}");
        }
    }

    #[test]
    fn malformed_fields_cost_no_message() {
        for (field, ..) in FIELDS {
            for odd in
                [json!(5), json!("x"), json!([]), json!({}), json!({"users": 5, "tasks": {}, "options": [5]})]
            {
                assert_eq!(notes_of(&json!({field: odd})).len(), 1, "{field}");
            }
        }
        assert_eq!(notes_of(&json!({"users_shared": 5, "venue": null, "sticker": []})), [""; 0]);
    }

    #[test]
    fn new_kinds_have_a_note_and_service_messages_none() {
        let note_of = |message: &Value| unknown_note(message).map(|note| note.in_message());
        let message = json!({"message_id": 1, "chat": {}, "from": {}, "holo_gram": {"a": 1}});
        assert_eq!(
            note_of(&message).as_deref(),
            Some("[Something that Muster does not know (holo gram) came with this message]")
        );
        for service in SERVICE_FIELDS {
            assert_eq!(note_of(&json!({"message_id": 1, service: {}})), None);
        }
    }

    #[test]
    fn a_quote_names_files() {
        let message =
            json!({"animation": {"file_name": "a.mp4"}, "document": {"file_name": "a.mp4"}, "photo": []});
        assert_eq!(describe_content(&message), ["[An animation: a.mp4]"]);
        assert_eq!(describe_content(&json!({"photo": [{"file_id": "x"}]})), ["[A photo]"]);
        assert_eq!(
            describe_content(&json!({"audio": {"title": "Blue", "performer": "Ada"}})),
            ["[An audio file: Ada – Blue]"]
        );
        assert_eq!(
            describe_content(&json!({"sticker": {"emoji": "😀"}, "dice": {"emoji": "🎲", "value": 2}})),
            ["[A die: 🎲 2]", "[A sticker: 😀]"]
        );
    }
}
