//! Merges a message's text with its blocks and attachments, which often repeat it.

use crate::quoting::join_paragraphs;

/// The visible text of a message: Slack shows the blocks. Text missing from the blocks is kept.
pub fn merge_blocks(text: String, blocks: String) -> String {
    let is_all_in_blocks = comparable_words(&blocks, false).contains(&comparable_words(&text, false));
    if is_all_in_blocks && !blocks.is_empty() { blocks } else { merge_texts(text, blocks) }
}

/// Both texts, or one if it contains all words of the other contiguously, with the same strikethroughs and signs.
pub fn merge_texts(one: String, other: String) -> String {
    let (words, others) = (comparable_words(&one, true), comparable_words(&other, true));
    if words.contains(&others) {
        one
    } else if others.contains(&words) {
        other
    } else {
        join_paragraphs(&[&one, &other])
    }
}

/// The words of a text with a space around each, without marks that have several notations. `is_exact` distinguishes
/// struck words and negative numbers.
fn comparable_words(text: &str, is_exact: bool) -> String {
    let is_between = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '*' | '_' | '~' | '`' | '\\' | '>' | '•' | '|' | '[' | ']' | '(' | ')' | '“' | '”' | '"'
            )
    };
    let mut joined = " ".to_owned();
    for (nth, part) in text.split("~~").enumerate() {
        let is_struck = is_exact && nth % 2 == 1;
        for word in part.split(is_between) {
            let bare = word.trim_matches(['.', ',', ':', ';', '!', '?', '-']);
            if bare.is_empty() {
                continue;
            }
            if is_struck {
                joined.push('~');
            }
            if is_exact && word.starts_with('-') {
                joined.push('-');
            }
            joined.push_str(bare);
            joined.push(' ');
        }
    }
    joined
}
