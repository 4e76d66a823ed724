//! Text from untrusted sources: rules for names and reasons, and how they are stored and shown.

/// Whether a character acts instead of being shown: control characters (which terminals obey), other line endings, and
/// marks that change the direction of the following text.
#[must_use]
pub fn is_control_or_bidi(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a text is a single line of visible characters.
#[must_use]
pub fn is_line(text: &str) -> bool {
    !text.contains(is_control_or_bidi)
}

/// Whether a text can be a name that appears in mails: a single line without a link.
#[must_use]
pub fn is_name(text: &str) -> bool {
    is_line(text) && !text.contains("://")
}

/// The rule that [`is_name`] checks.
pub const NAME_RULE: &str = "A name is one line without control characters, and without `://`.";

/// The text without the characters that a terminal would obey.
#[must_use]
pub fn without_controls(text: &str) -> String {
    text.chars()
        .map(|letter| if is_control_or_bidi(letter) { char::REPLACEMENT_CHARACTER } else { letter })
        .collect()
}

/// A text of several lines without the characters that a terminal would obey. Line breaks stay.
#[must_use]
pub fn lines_without_controls(text: &str) -> String {
    text.split('\n').map(without_controls).collect::<Vec<_>>().join("\n")
}

/// The text on one line: characters that a terminal would obey become spaces, and several spaces one.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || is_control_or_bidi(letter));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The text within HTML: as content, or as a quoted value.
#[must_use]
pub fn html_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Whether a character is invisible, or changes how others are displayed.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    if matches!(letter, '\n' | '\t' | '\r') {
        return false;
    }
    is_control_or_bidi(letter)
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0e}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// The text within this many bytes, without NUL, which PostgreSQL can't keep. A shortened text ends with an ellipsis.
#[must_use]
pub fn truncated(text: &str, most: usize) -> String {
    let text = text.replace('\0', "\u{fffd}");
    if text.len() <= most {
        return text;
    }
    format!("{}…", &text[..text.floor_char_boundary(most - '…'.len_utf8())])
}

/// A foreign text on one line, within this many bytes.
#[must_use]
pub fn truncated_line(text: &str, most: usize) -> String {
    truncated(&one_line(text), most)
}

/// The value without NUL, which PostgreSQL keeps neither in text nor in JSON.
#[must_use]
pub fn without_nul(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    let clean = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nul).collect()),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (clean(key), without_nul(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_is_no_part_of_a_line() {
        for good in ["", "Élise O'Neill", "a: b // c", "日本 👩‍💻", "tel:+49"] {
            assert!(is_line(good) && is_name(good) && without_controls(good) == good, "{good}");
        }
        for bad in
            ["a\nb", "\u{1b}[31mred", "a\tb", "a\u{7f}", "a\u{9b}", "a\u{2028}b", "a\u{202e}b", "a\u{2066}"]
        {
            assert!(!is_line(bad) && !is_name(bad) && is_line(&without_controls(bad)), "{bad:?}");
        }
        assert!(is_line("see http://example.com") && !is_name("see http://example.com"));
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(truncated("Grüße", 20), "Grüße");
        assert_eq!(truncated("a\0b", 20), "a\u{fffd}b");
        let cut = truncated(&"ü".repeat(100), 20);
        assert!(cut.len() <= 20 && cut.ends_with("ü…"), "{cut}");
        assert_eq!(truncated_line("a\n b", 20), "a b");
    }

    #[test]
    fn several_lines_become_one() {
        assert_eq!(one_line(" a\n\u{1b}[31mred\u{202e}  b\t"), "a [31mred b");
    }

    #[test]
    fn nul_goes_from_texts_and_keys_at_any_depth() {
        let value = serde_json::json!({ "a\0": [{ "b": "c\0d" }], "n": 1 });
        let expected = serde_json::json!({ "a\u{fffd}": [{ "b": "c\u{fffd}d" }], "n": 1 });
        assert_eq!(without_nul(value), expected);
    }
}
