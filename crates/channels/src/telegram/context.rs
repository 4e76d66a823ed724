//! Quoted context of a message: replies and forwards.

use serde_json::Value;

use super::{
    notes::{self, marked_text, person},
    updates::BotIdentity,
};
use crate::quoting::{bracket_name, join_paragraphs, quote};

/// Whether a message is a reply. Each message of a topic refers to the topic's beginning, which says nothing.
pub fn is_answer(message: &Value) -> bool {
    let answered = &message["reply_to_message"];
    answered.is_object() && answered["forum_topic_created"].is_null()
}

/// The replied-to text. Our own message is left out, as part of the conversation, unless the author quotes a part of
/// it.
pub fn context(message: &Value, me: &BotIdentity) -> String {
    let elsewhere = &message["external_reply"];
    if is_answer(message) {
        return reply_in_chat(message, &message["reply_to_message"], me);
    }
    if elsewhere.is_object() {
        let part = quoted_part(message, elsewhere);
        let said = if part.is_empty() { join_owned(&notes::describe_content(elsewhere)) } else { part };
        let is_here = !elsewhere["chat"]["id"].is_null() && elsewhere["chat"]["id"] == message["chat"]["id"];
        let place = if is_here { "in another topic" } else { "in another chat" };
        return quote(
            &format!("In answer to what {} wrote {place}", origin_name(&elsewhere["origin"])),
            &said,
        );
    }
    let story = &message["reply_to_story"]["chat"];
    if story.is_object() {
        return format!("[In answer to a story of {}]", chat_title(story));
    }
    String::new()
}

/// The replied-to text in this chat.
fn reply_in_chat(message: &Value, answered: &Value, me: &BotIdentity) -> String {
    let is_ours = answered["from"]["id"].as_i64() == Some(me.id);
    let whose =
        if is_ours { "your message".to_owned() } else { format!("what {} wrote", author_name(answered)) };
    let part = quoted_part(message, answered);
    let part = if part.is_empty() { quoted_item(answered, message).unwrap_or_default() } else { part };
    let as_passed_on = |said: String| quote_forwarded(answered, &said).unwrap_or(said);
    match (part.is_empty(), is_ours) {
        (false, _) => quote(&format!("In answer to a part of {whose}"), &as_passed_on(part)),
        (true, true) => String::new(),
        (true, false) => {
            let said = message_content(answered);
            let unknown = || notes::unknown_note(answered).map(|kind| kind.in_quote()).unwrap_or_default();
            let said = if said.is_empty() { unknown() } else { said };
            quote(&format!("In answer to {whose}"), &as_passed_on(said))
        }
    }
}

/// The text quoted by the author, and its files.
fn quoted_part(message: &Value, answered: &Value) -> String {
    let chosen = marked_text(&message["quote"], "text", "entities");
    if chosen.is_empty() {
        chosen
    } else {
        join_paragraphs(&[&chosen, &join_owned(&notes::describe_files(answered))])
    }
}

/// The replied-to task of a checklist, or option of a poll.
fn quoted_item(answered: &Value, message: &Value) -> Option<String> {
    let of = |list: &Value, field: &str, id: &Value| {
        let is_it = |item: &&Value| !id.is_null() && item[field] == *id;
        list.as_array()?.iter().find(is_it).map(|item| marked_text(item, "text", "text_entities"))
    };
    of(&answered["checklist"]["tasks"], "id", &message["reply_to_checklist_task_id"])
        .or_else(|| of(&answered["poll"]["options"], "persistent_id", &message["reply_to_poll_option_id"]))
}

/// Quotes forwarded text. `None`: not forwarded. Telegram's copies of channel posts in the channel's group are the
/// channel's own.
pub fn quote_forwarded(message: &Value, said: &str) -> Option<String> {
    if message["is_automatic_forward"] == true {
        return None;
    }
    let origin = &message["forward_origin"];
    let whose = if origin.is_object() { origin_name(origin) } else { legacy_origin_name(message)? };
    Some(quote(&format!("Forwarded from {whose}"), said))
}

fn message_content(message: &Value) -> String {
    let text = marked_text(message, "text", "entities");
    let text = if text.is_empty() { marked_text(message, "caption", "caption_entities") } else { text };
    join_paragraphs(&[&text, &join_owned(&notes::describe_content(message))])
}

fn join_owned(said: &[String]) -> String {
    join_paragraphs(&said.iter().map(String::as_str).collect::<Vec<_>>())
}

fn author_name(message: &Value) -> String {
    let (chat, user) = (&message["sender_chat"], &message["from"]);
    if chat.is_object() {
        signed_name(chat, &message["author_signature"])
    } else {
        known_name(&person(user, "id"))
    }
}

/// <https://core.telegram.org/bots/api#messageorigin>
fn origin_name(origin: &Value) -> String {
    let signature = &origin["author_signature"];
    match origin["type"].as_str() {
        Some("user") => known_name(&person(&origin["sender_user"], "id")),
        Some("hidden_user") => known_name(origin["sender_user_name"].as_str().unwrap_or_default()),
        Some("chat") => signed_name(&origin["sender_chat"], signature),
        Some("channel") => signed_name(&origin["chat"], signature),
        _ => known_name(""),
    }
}

/// Fields from before Bot API 7.0, still sent by self-hosted servers.
fn legacy_origin_name(message: &Value) -> Option<String> {
    let (user, chat) = (&message["forward_from"], &message["forward_from_chat"]);
    match message["forward_sender_name"].as_str() {
        _ if chat.is_object() => Some(signed_name(chat, &message["forward_signature"])),
        _ if user.is_object() => Some(known_name(&person(user, "id"))),
        Some(name) => Some(known_name(name)),
        None => None,
    }
}

fn signed_name(chat: &Value, signature: &Value) -> String {
    match signature.as_str() {
        Some(author) => format!("{} ({})", known_name(author), chat_title(chat)),
        None => chat_title(chat),
    }
}

fn chat_title(chat: &Value) -> String {
    let title = chat["title"].as_str().map(str::to_owned);
    known_name(&title.unwrap_or_else(|| person(chat, "id")))
}

fn known_name(shown: &str) -> String {
    let shown = bracket_name(shown);
    if shown.is_empty() { "someone".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn context_of(message: &Value) -> String {
        context(message, &BotIdentity { id: 7, username: Some("muster_bot".to_owned()) })
    }

    #[test]
    fn a_replied_message_is_quoted_with_its_author() {
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
            // Our own message is known.
            (json!({"reply_to_message": {"from": {"id": 7, "first_name": "M"}, "text": "5 or 6"}}), ""),
            (
                json!({"reply_to_message": {"from": {"id": 7, "first_name": "M"}, "text": "5 or 6"}, "quote": {"text": "6"}}),
                "[In answer to a part of your message]\n> 6",
            ),
            // Each message of a topic refers to its beginning.
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
    fn a_forwarded_message_names_its_author() {
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
            assert_eq!(quote_forwarded(&message, "Transfer it\nback"), Some(expected), "{message}");
        }
        assert_eq!(quote_forwarded(&json!({}), "hello"), None);
        let copied = json!({"is_automatic_forward": true, "forward_origin": {"type": "channel", "chat": {"title": "News"}}});
        assert_eq!(quote_forwarded(&copied, "hello"), None);
    }
}
