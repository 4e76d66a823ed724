//! Titles of conversations without a subject: the beginning of the first message. Only for conversations started in
//! Muster: others have a contact, and a title is sent as the subject of mails.

use muster_channels::{Dialect, Longest, Unit, render};

use super::{append::is_utterance, entity::conversations, tokenizer::text_of};
use crate::base::{
    bounds,
    enums::{MessageKind, TextFormat, Transport},
};

/// Whether the conversation gets its title from a message.
pub(super) fn takes_title(conversation: &conversations::Model) -> bool {
    conversation.transport == Transport::Internal && conversation.title.is_none()
}

/// The title from a message, if the message has text. Only reads the beginning of long messages.
pub(super) fn title_of(kind: MessageKind, content: &serde_json::Value) -> Option<String> {
    if !is_utterance(kind) {
        return None;
    }
    let text = text_of(kind, content);
    let text = &text[..text.floor_char_boundary(bounds::DETAIL)];
    if content["format"] == TextFormat::Plain.as_str() {
        return first_words(text);
    }
    let longest = Longest { count: bounds::DETAIL, unit: Unit::Characters };
    first_words(&render(text, Dialect::Plain, longest).first()?.text)
}

/// The first words, as many as fit, on one line.
fn first_words(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let text = words.collect::<Vec<_>>().join(" ");
    let Some((end, _)) = text.char_indices().nth(bounds::LABEL) else {
        return Some(text).filter(|text| !text.is_empty());
    };
    // Room for the ellipsis.
    let (last, _) = text[..end].char_indices().next_back()?;
    let cut = text[..end].rfind(' ').filter(|space| *space > last / 2).unwrap_or(last);
    Some(format!("{}…", text[..cut].trim_end()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn title_from(text: &str) -> Option<String> {
        title_of(MessageKind::Text, &json!({ "text": text, "format": "markdown" }))
    }

    #[test]
    fn a_title_is_the_first_words_without_markup() {
        assert_eq!(
            title_from("# **How** are the [beans](https://example.org) today?").unwrap(),
            "How are the beans (https://example.org/) today?"
        );
        assert_eq!(title_from("two\n\nlines").unwrap(), "two lines");
        let plain = json!({ "text": "2 * 3 * 4", "format": "plain" });
        assert_eq!(title_of(MessageKind::Text, &plain).unwrap(), "2 * 3 * 4");
    }

    #[test]
    fn a_long_title_is_cut_at_a_word() {
        let title = title_from(&"seven words that are somewhat longer ".repeat(9)).unwrap();
        assert_eq!(title, "seven words that are somewhat longer seven words that are…");
        for long in ["x".repeat(500), format!("a {}", "é".repeat(500)), "日本".repeat(200)] {
            let title = title_from(&long).unwrap();
            assert!(title.chars().count() == bounds::LABEL && title.ends_with('…'), "{title}");
        }
        assert_eq!(title_from(&"x".repeat(bounds::LABEL)).unwrap(), "x".repeat(bounds::LABEL));
    }

    #[test]
    fn what_says_nothing_gives_no_title() {
        assert_eq!((title_from(""), title_from(" \n "), title_from("\u{7}")), (None, None, None));
        assert_eq!(title_of(MessageKind::Event, &json!({ "text": "Ada took over." })), None);
    }
}
