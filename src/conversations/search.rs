//! Words: how the text of a message becomes tokens, and how a question finds them again.
//!
//! Folding is done here and nowhere else, so that SQLite and PostgreSQL find the same. A token is letters and digits
//! (with the vowel signs of scripts that have them): it can't hold a space, a quote or an operator of either query
//! language.

use std::collections::HashSet;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::{enums::MessageKind, ids::ConversationId};

/// The most characters of a token that count.
const TOKEN_CHARS: usize = 64;
/// The most different tokens of a message that can be found: those that come first.
const TOKENS: usize = 10_000;
/// The most bytes of a message's text that are looked at: `PostgreSQL` takes a megabyte of tokens at most.
const TEXT_BYTES: usize = 512 * 1024;

/// The token that a search for messages of one conversation begins with.
pub(crate) fn conversation_token(id: ConversationId) -> String {
    format!("#{id}")
}

/// The different words of a text, folded: without case and accents, in the order of their first appearance.
#[must_use]
pub fn tokens(text: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mut tokens = Vec::new();
    words(text, |token, _| {
        if tokens.len() < TOKENS && !known.contains(token) {
            known.insert(token.to_owned());
            tokens.push(token.to_owned());
        }
    });
    tokens
}

/// Calls `found` with each token of the text and the bytes of the text that it was folded from.
pub(super) fn words(text: &str, mut found: impl FnMut(&str, std::ops::Range<usize>)) {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES)];
    let mut token = Token::default();
    for (start, word) in text.unicode_word_indices() {
        for (at, c) in word.char_indices() {
            let range = start + at..start + at + c.len_utf8();
            fold(c, |folded| match folded {
                Folded::Part(part) => token.push(part, &range),
                Folded::Silent => token.extend(&range),
                Folded::Gap => token.flush(&mut found),
            });
        }
        token.flush(&mut found);
    }
}

/// A token in the making.
#[derive(Default)]
struct Token {
    text: String,
    chars: usize,
    range: std::ops::Range<usize>,
}

impl Token {
    fn push(&mut self, c: char, from: &std::ops::Range<usize>) {
        if self.chars == 0 {
            self.range = from.clone();
        }
        self.range.end = from.end;
        self.chars += 1;
        if self.chars <= TOKEN_CHARS {
            self.text.push(c);
        }
    }

    fn extend(&mut self, from: &std::ops::Range<usize>) {
        if self.chars > 0 {
            self.range.end = from.end;
        }
    }

    fn flush(&mut self, found: &mut impl FnMut(&str, std::ops::Range<usize>)) {
        if self.chars > 0 {
            found(&self.text, self.range.clone());
            self.text.clear();
            self.chars = 0;
        }
    }
}

/// What one character of a text means to a token.
enum Folded {
    /// A letter or digit of it.
    Part(char),
    /// An accent: it belongs to the letter before and says nothing.
    Silent,
    /// Its end.
    Gap,
}

fn fold(c: char, mut emit: impl FnMut(Folded)) {
    for decomposed in std::iter::once(c).nfkd() {
        for lower in decomposed.to_lowercase() {
            // Letters that decomposition leaves whole, as people without them on their keyboard write them.
            let plain = match lower {
                'ß' => "ss",
                'æ' => "ae",
                'œ' => "oe",
                'ø' => "o",
                'đ' | 'ð' => "d",
                'ł' => "l",
                'þ' => "th",
                'ı' => "i",
                'ς' => "σ",
                _ if is_accent(lower) => {
                    emit(Folded::Silent);
                    continue;
                }
                _ if lower.is_alphanumeric() || unicode_normalization::char::is_combining_mark(lower) => {
                    emit(Folded::Part(lower));
                    continue;
                }
                _ => {
                    emit(Folded::Gap);
                    continue;
                }
            };
            plain.chars().for_each(|c| emit(Folded::Part(c)));
        }
    }
}

/// Marks that tell how a letter sounds, not which one it is. The vowel signs of Indic scripts and the voiced
/// marks of kana are not among them: without those, words would become other words.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{200c}'..='\u{200d}' | '\u{ad}')
}

/// What there is to read, and to find, in a message.
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

/// Every text and number in `value`, in its order; names of keys are no text.
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
