//! Turns the text of a message into tokens for the search index.
//!
//! Words are folded (`src/base/folding.rs`). A token consists of letters and digits (with vowel signs, in scripts that
//! have them), so it can't contain a space, a quote, or an operator of either query language.
//!
//! Scripts without spaces between words (Chinese, Japanese, Thai) are cut into single characters. Adjacent
//! tokens are therefore also indexed as pairs, so that a search for two characters finds them only side by
//! side.

use std::{
    collections::HashSet,
    ops::{ControlFlow, Range},
};

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::base::{
    bounds,
    enums::MessageKind,
    folding::{Folded, fold},
    ids::{AgentId, ConversationId, OrgId},
};

/// The maximum number of characters of a word in the index, since a sender could fill it with long words. Longer words
/// are compared when a hit is highlighted.
const TOKEN_CHARS: usize = 64;
/// The maximum number of distinct tokens of a message that can be found: the first ones. A sender could fill the index
/// with made-up words.
const TOKENS: usize = 10_000;
/// The maximum number of bytes of a message's tokens. `PostgreSQL` allows a megabyte, including the tokens for the
/// message's place.
const TOKEN_BYTES: usize = 1_000_000;

/// The token of every message of a conversation.
pub(super) fn conversation_token(id: ConversationId) -> String {
    format!("#{id}")
}

/// The token of every message of an organization.
pub(super) fn organization_token(id: OrgId) -> String {
    format!("#o{id}")
}

/// The token of every message of an agent's conversations.
pub(super) fn agent_token(id: AgentId) -> String {
    format!("#a{id}")
}

/// The tokens of a message besides its words: its organization, agent and conversation.
pub(crate) fn place_tokens(org: OrgId, agent: AgentId, conversation: ConversationId) -> [String; 3] {
    [organization_token(org), agent_token(agent), conversation_token(conversation)]
}

/// The distinct words of a text, folded (without case and accents) and in order of first appearance, followed
/// by the pairs of adjacent ones.
#[must_use]
pub fn tokens(text: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mut tokens = Vec::new();
    let mut bytes = 0;
    let mut before: Option<(String, usize)> = None;
    words(text, |token, range| {
        let token = indexed(token);
        let mut add = |token: &str| {
            if bytes + token.len() <= TOKEN_BYTES && known.insert(token.to_owned()) {
                bytes += token.len();
                tokens.push(token.to_owned());
            }
        };
        add(token);
        if let Some((left, end)) = &before
            && *end == range.start
        {
            add(&format!("{left}{token}"));
        }
        before = Some((token.to_owned(), range.end));
        if tokens.len() < TOKENS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    tokens
}

/// The part of a word that the index stores.
pub(super) fn indexed(word: &str) -> &str {
    word.char_indices().nth(TOKEN_CHARS).map_or(word, |(end, _)| &word[..end])
}

/// Whether longer words may have the same token as this one.
pub(super) fn is_shared(word: &str) -> bool {
    word.chars().nth(TOKEN_CHARS - 1).is_some()
}

/// Calls `found` with each complete token of the text and the byte range it was folded from, until it breaks.
pub(super) fn words(text: &str, mut found: impl FnMut(&str, Range<usize>) -> ControlFlow<()>) {
    let text = &text[..text.floor_char_boundary(bounds::MESSAGE)];
    let mut token = Token::default();
    for (start, word) in text.unicode_word_indices() {
        for (at, c) in word.char_indices() {
            let range = start + at..start + at + c.len_utf8();
            fold(c, |folded| match folded {
                Folded::Letter(letter) => token.push(letter, &range),
                Folded::Silent => token.extend(&range),
                Folded::Other(_) => token.flush(&mut found),
            });
        }
        token.flush(&mut found);
        if token.stopped {
            break;
        }
    }
}

/// A token being built.
#[derive(Default)]
struct Token {
    text: String,
    range: Range<usize>,
    stopped: bool,
}

impl Token {
    fn push(&mut self, c: char, from: &Range<usize>) {
        if self.text.is_empty() {
            self.range = from.clone();
        }
        self.range.end = from.end;
        self.text.push(c);
    }

    fn extend(&mut self, from: &Range<usize>) {
        if !self.text.is_empty() {
            self.range.end = from.end;
        }
    }

    fn flush(&mut self, found: &mut impl FnMut(&str, Range<usize>) -> ControlFlow<()>) {
        if !self.text.is_empty() && !self.stopped {
            self.stopped = found(&self.text, self.range.clone()).is_break();
        }
        self.text.clear();
    }
}

/// The text of a message, for reading and for search.
#[must_use]
pub fn text_of(kind: MessageKind, content: &Value) -> String {
    let keys: &[&str] = match kind {
        MessageKind::Text | MessageKind::Thinking => &["text"],
        MessageKind::ToolCall => &["tool", "input"],
        MessageKind::ToolResult => &["output"],
        MessageKind::File => &["caption", "text", "filename"],
        MessageKind::Voice => &["transcript", "text"],
        MessageKind::Approval => &["title", "text"],
        MessageKind::Event => &["text", "event"],
        MessageKind::Error => &["code", "text"],
    };
    let mut text = String::new();
    for key in keys {
        if let Some(value) = content.get(key) {
            collect(value, &mut text);
        }
    }
    text
}

/// Appends every text and number in `value`, in order. Keys don't count as text.
fn collect(value: &Value, out: &mut String) {
    let mut push = |text: &str| {
        if !out.is_empty() && !text.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    };
    match value {
        Value::String(text) => push(text),
        Value::Number(number) => push(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, out)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn case_accents_and_forms_are_folded() {
        assert_eq!(tokens("Ärger CAFÉ cafe\u{301} Straße ﬁn ②"), ["arger", "cafe", "strasse", "fin", "2"]);
        assert_eq!(tokens("Σίσυφος ΣΊΣΥΦΟΣ"), ["σισυφοσ"]);
        assert_eq!(tokens("Łódź İstanbul ısı"), ["lodz", "istanbul", "isi"]);
    }

    #[test]
    fn other_characters_separate_tokens() {
        assert_eq!(
            tokens("a.b@c.example, snake_case can't 1,234"),
            ["a", "b", "c", "example", "snake", "case", "can", "t", "1", "234"]
        );
        assert!(tokens("\" ' * ( ) AND: # - \0 …").iter().all(|token| token == "and"));
    }

    #[test]
    fn scripts_without_spaces_are_found_in_pairs() {
        assert_eq!(tokens("東京 都"), ["東", "京", "東京", "都"]);
        assert_ne!(tokens("हिन्दी"), tokens("हान्दा"));
    }

    #[test]
    fn a_token_has_a_maximum_length() {
        let long = tokens(&"x".repeat(10_000));
        assert_eq!(long, ["x".repeat(64)]);
        assert!(tokens(&(0..50_000).map(|n| format!("w{n} ")).collect::<String>()).len() <= 10_001);
        let touching =
            |n: u32| char::from_u32(0x4e00 + n % 20_000).map(|c| format!("{c}{}", "カ".repeat(TOKEN_CHARS)));
        let touching = tokens(&(0..10_000).filter_map(touching).collect::<String>());
        assert!(touching.iter().map(String::len).sum::<usize>() > 900_000, "as many as there may be");
        assert!(touching.iter().map(String::len).sum::<usize>() <= 1_000_000);
    }

    #[test]
    fn the_text_of_a_message_is_what_people_read() {
        let call = json!({"tool": "search", "call_id": "c1", "input": {"query": "blue", "limit": 3}});
        assert_eq!(text_of(MessageKind::ToolCall, &call), "search\nblue\n3");
        assert_eq!(text_of(MessageKind::Text, &json!({"text": "Hello", "format": "plain"})), "Hello");
        assert_eq!(text_of(MessageKind::Approval, &json!({"approval_id": 7})), "");
    }
}
