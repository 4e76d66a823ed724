//! Words of others that a message stands in a relation to: what it answers, and what it passes on.

use serde_json::Value;

use super::{
    kinds::{self, person, words},
    updates::Me,
};
use crate::quoted::{apart, name, quote};

/// Whether a message answers one. Each message of a topic points at the topic's beginning, which says nothing.
pub fn is_answer(message: &Value) -> bool {
    let answered = &message["reply_to_message"];
    answered.is_object() && answered["forum_topic_created"].is_null()
}

/// What a message answers. Not what we said ourselves, which the conversation has, unless its author points out a part of that.
pub fn context(message: &Value, me: &Me) -> String {
    let elsewhere = &message["external_reply"];
    if is_answer(message) {
        return here(message, &message["reply_to_message"], me);
    }
    if elsewhere.is_object() {
        let part = part_of(message, elsewhere);
        let said = if part.is_empty() { apart_of(&kinds::quoted(elsewhere)) } else { part };
        let is_here = !elsewhere["chat"]["id"].is_null() && elsewhere["chat"]["id"] == message["chat"]["id"];
        let place = if is_here { "in another topic" } else { "in another chat" };
        return quote(&format!("In answer to what {} wrote {place}", from(&elsewhere["origin"])), &said);
    }
    let story = &message["reply_to_story"]["chat"];
    if story.is_object() {
        return format!("[In answer to a story of {}]", titled(story));
    }
    String::new()
}

/// The answered words of this chat.
fn here(message: &Value, answered: &Value, me: &Me) -> String {
    let is_ours = answered["from"]["id"].as_i64() == Some(me.id);
    let whose = if is_ours { "your message".to_owned() } else { format!("what {} wrote", author(answered)) };
    let part = part_of(message, answered);
    let part = if part.is_empty() { one_of(answered, message).unwrap_or_default() } else { part };
    let as_passed_on = |said: String| forwarded(answered, &said).unwrap_or(said);
    match (part.is_empty(), is_ours) {
        (false, _) => quote(&format!("In answer to a part of {whose}"), &as_passed_on(part)),
        (true, true) => String::new(),
        (true, false) => {
            let said = all_of(answered);
            let unknown = || kinds::unknown(answered).map(|kind| kind.shown()).unwrap_or_default();
            let said = if said.is_empty() { unknown() } else { said };
            quote(&format!("In answer to {whose}"), &as_passed_on(said))
        }
    }
}

/// The words that the author chose, and the files that they stand beside.
fn part_of(message: &Value, answered: &Value) -> String {
    let chosen = words(&message["quote"], "text", "entities");
    if chosen.is_empty() { chosen } else { apart(&[&chosen, &apart_of(&kinds::files(answered))]) }
}

/// The task of a checklist, or the option of a poll, that a message answers.
fn one_of(answered: &Value, message: &Value) -> Option<String> {
    let of = |list: &Value, field: &str, id: &Value| {
        let is_it = |item: &&Value| !id.is_null() && item[field] == *id;
        list.as_array()?.iter().find(is_it).map(|item| words(item, "text", "text_entities"))
    };
    of(&answered["checklist"]["tasks"], "id", &message["reply_to_checklist_task_id"])
        .or_else(|| of(&answered["poll"]["options"], "persistent_id", &message["reply_to_poll_option_id"]))
}

/// Forwarded words, as those of their author. `None`: they are not forwarded. What Telegram copies into a channel's group is the
/// channel's own.
pub fn forwarded(message: &Value, said: &str) -> Option<String> {
    if message["is_automatic_forward"] == true {
        return None;
    }
    let origin = &message["forward_origin"];
    let whose = if origin.is_object() { from(origin) } else { from_old(message)? };
    Some(quote(&format!("Forwarded from {whose}"), said))
}

fn all_of(message: &Value) -> String {
    let text = words(message, "text", "entities");
    let text = if text.is_empty() { words(message, "caption", "caption_entities") } else { text };
    apart(&[&text, &apart_of(&kinds::quoted(message))])
}

fn apart_of(said: &[String]) -> String {
    apart(&said.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Who wrote a message.
fn author(message: &Value) -> String {
    let (chat, user) = (&message["sender_chat"], &message["from"]);
    if chat.is_object() { signed(chat, &message["author_signature"]) } else { someone(&person(user, "id")) }
}

/// <https://core.telegram.org/bots/api#messageorigin>
fn from(origin: &Value) -> String {
    let signature = &origin["author_signature"];
    match origin["type"].as_str() {
        Some("user") => someone(&person(&origin["sender_user"], "id")),
        Some("hidden_user") => someone(origin["sender_user_name"].as_str().unwrap_or_default()),
        Some("chat") => signed(&origin["sender_chat"], signature),
        Some("channel") => signed(&origin["chat"], signature),
        _ => someone(""),
    }
}

/// As Telegram said it before Bot API 7.0; its fields are still sent by servers that people run themselves.
fn from_old(message: &Value) -> Option<String> {
    let (user, chat) = (&message["forward_from"], &message["forward_from_chat"]);
    match message["forward_sender_name"].as_str() {
        _ if chat.is_object() => Some(signed(chat, &message["forward_signature"])),
        _ if user.is_object() => Some(someone(&person(user, "id"))),
        Some(name) => Some(someone(name)),
        None => None,
    }
}

fn signed(chat: &Value, signature: &Value) -> String {
    match signature.as_str() {
        Some(author) => format!("{} ({})", someone(author), titled(chat)),
        None => titled(chat),
    }
}

fn titled(chat: &Value) -> String {
    let title = chat["title"].as_str().map(str::to_owned);
    someone(&title.unwrap_or_else(|| person(chat, "id")))
}

fn someone(shown: &str) -> String {
    let shown = name(shown);
    if shown.is_empty() { "someone".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn context_of(message: &Value) -> String {
        context(message, &Me { id: 7, username: Some("muster_bot".to_owned()) })
    }

    #[test]
    fn what_is_answered_stands_above_with_its_author() {
        let bob = json!({"id": 6, "is_bot": false, "first_name": "Bob", "last_name": "B"});
        for (message, expected) in [
            (
                json!({"reply_to_message": {"message_id": 2, "from": bob, "text": "It costs 5\nor 6"}}),
                "[In answer to what Bob B wrote]\n> It costs 5\n> or 6",
            ),
            (
                json!({"reply_to_message": {"from": bob, "text": "It costs 5 or 6"}, "quote": {"text": "or 6", "position": 11}}),
                "[In answer to a part of what Bob B wrote]\n> or 6",
            ),
            (
                json!({"reply_to_message": {"from": bob, "caption": "look", "photo": [{"file_id": "x"}]}}),
                "[In answer to what Bob B wrote]\n> look\n>\n> [A photo]",
            ),
            (
                json!({"reply_to_message": {"from": bob, "document": {"file_id": "x", "file_name": "a.pdf"}}}),
                "[In answer to what Bob B wrote]\n> [A file: a.pdf]",
            ),
            (
                json!({"reply_to_message": {"from": bob, "text": "ask @muster_bot",
                    "entities": [{"type": "mention", "offset": 4, "length": 11}]}}),
                "[In answer to what Bob B wrote]\n> ask @muster_bot",
            ),
            (
                json!({"reply_to_message": {"from": {"id": 1_087_968_824, "first_name": "Group"},
                    "sender_chat": {"id": -100, "title": "Team"}, "text": "hi"}}),
                "[In answer to what Team wrote]\n> hi",
            ),
            (
                json!({"reply_to_message": {"from": bob, "checklist": {"title": "Move", "tasks": [{"id": 1, "text": "Pack"},
                    {"id": 2, "text": "Call"}]}}, "reply_to_checklist_task_id": 2}),
                "[In answer to a part of what Bob B wrote]\n> Call",
            ),
            (
                json!({"reply_to_message": {"from": bob, "poll": {"question": "Tea?", "options": [
                    {"persistent_id": "a", "text": "Green"}]}}, "reply_to_poll_option_id": "a"}),
                "[In answer to a part of what Bob B wrote]\n> Green",
            ),
            (
                json!({"reply_to_message": {"from": bob, "text": "Pay 900",
                    "forward_origin": {"type": "hidden_user", "sender_user_name": "Eve"}}}),
                "[In answer to what Bob B wrote]\n> [Forwarded from Eve]\n> > Pay 900",
            ),
            (
                json!({"reply_to_message": {"from": bob, "text": "Pay 900 now", "document": {"file_name": "a.pdf"},
                    "forward_origin": {"type": "hidden_user", "sender_user_name": "Eve"}}, "quote": {"text": "Pay 900"}}),
                "[In answer to a part of what Bob B wrote]\n> [Forwarded from Eve]\n> > Pay 900\n> >\n> > [A file: a.pdf]",
            ),
            (
                json!({"reply_to_message": {"from": bob, "rich_message": {"blocks": []}}}),
                "[In answer to what Bob B wrote]\n> [Something that Muster does not know (rich message)]",
            ),
            (
                json!({"reply_to_message": {"from": bob, "new_chat_title": "T"}}),
                "[In answer to what Bob B wrote]",
            ),
            // Ours is known.
            (json!({"reply_to_message": {"from": {"id": 7, "first_name": "M"}, "text": "5 or 6"}}), ""),
            (
                json!({"reply_to_message": {"from": {"id": 7, "first_name": "M"}, "text": "5 or 6"}, "quote": {"text": "6"}}),
                "[In answer to a part of your message]\n> 6",
            ),
            // Each message of a topic answers its beginning.
            (json!({"reply_to_message": {"from": bob, "forum_topic_created": {"name": "Orders"}}}), ""),
            (
                json!({"external_reply": {"origin": {"type": "channel", "chat": {"title": "News"}}, "photo": [{}]}}),
                "[In answer to what News wrote in another chat]\n> [A photo]",
            ),
            (
                json!({"chat": {"id": -5}, "external_reply": {"chat": {"id": -5}, "origin": {"type": "user", "sender_user": bob},
                    "photo": [{}]}, "quote": {"text": "look"}}),
                "[In answer to what Bob B wrote in another topic]\n> look\n>\n> [A photo]",
            ),
            (
                json!({"external_reply": {"origin": {"type": "hidden_user", "sender_user_name": "Eve"}}, "quote": {"text": "so"}}),
                "[In answer to what Eve wrote in another chat]\n> so",
            ),
            (
                json!({"reply_to_story": {"chat": {"id": 6, "first_name": "Bob"}, "id": 1}}),
                "[In answer to a story of Bob]",
            ),
            (json!({"text": "hello"}), ""),
        ] {
            assert_eq!(context_of(&message), expected, "{message}");
        }
    }

    #[test]
    fn what_is_passed_on_has_its_author() {
        for (message, whose) in [
            (
                json!({"forward_origin": {"type": "user", "sender_user": {"id": 6, "first_name": "Bob"}}}),
                "Bob",
            ),
            (json!({"forward_origin": {"type": "hidden_user", "sender_user_name": "Eve]\nAda"}}), "Eve) Ada"),
            (
                json!({"forward_origin": {"type": "chat", "sender_chat": {"title": "Team"}, "author_signature": "Bob"}}),
                "Bob (Team)",
            ),
            (
                json!({"forward_origin": {"type": "channel", "chat": {"title": "News"}, "message_id": 3}}),
                "News",
            ),
            (json!({"forward_origin": {"type": "of the future"}}), "someone"),
            (json!({"forward_from": {"id": 6, "first_name": "Bob"}, "forward_date": 1}), "Bob"),
            (json!({"forward_sender_name": "Eve"}), "Eve"),
            (json!({"forward_from_chat": {"title": "News"}, "forward_signature": "Bob"}), "Bob (News)"),
        ] {
            let expected = format!("[Forwarded from {whose}]\n> Transfer it\n> back");
            assert_eq!(forwarded(&message, "Transfer it\nback"), Some(expected), "{message}");
        }
        assert_eq!(forwarded(&json!({}), "hello"), None);
        let copied = json!({"is_automatic_forward": true, "forward_origin": {"type": "channel", "chat": {"title": "News"}}});
        assert_eq!(forwarded(&copied, "hello"), None);
    }
}
