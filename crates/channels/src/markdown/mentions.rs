//! Nobody calls everybody: an invisible sign goes between the `@` and the word that would notify a whole room.
//!
//! In code nothing is changed, since vendors don't look for mentions there.

use std::borrow::Cow;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Words that call everybody at Slack, Discord, Matrix, Telegram's bots and others.
const EVERYBODY: [&str; 7] = ["everyone", "here", "channel", "all", "room", "group", "team"];
/// Invisible, no width, no place to break a line.
const JOINER: char = '\u{2060}';

/// A text that calls nobody.
pub fn neutral(text: &str) -> Cow<'_, str> {
    let mut changed = String::new();
    let mut from = 0;
    for (at, sign) in text.match_indices(['@', '!']) {
        let after = at + sign.len();
        let calls = match sign {
            "@" => calls_everybody(&text[after..]),
            // Slack's own form: <!channel>.
            _ => text[..at].ends_with('<'),
        };
        if calls {
            changed.push_str(&text[from..after]);
            changed.push(JOINER);
            from = after;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    changed.push_str(&text[from..]);
    Cow::Owned(changed)
}

fn calls_everybody(after: &str) -> bool {
    let word: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
    EVERYBODY.iter().any(|all| word.eq_ignore_ascii_case(all))
}

/// Markdown that calls nobody, and is otherwise as it was written.
pub fn in_markdown(markdown: &str) -> String {
    let mut changed = String::with_capacity(markdown.len());
    let (mut from, mut in_code) = (0, false);
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(_) | Event::Html(_) | Event::InlineHtml(_) if !in_code && range.start >= from => {
                changed.push_str(&markdown[from..range.start]);
                changed.push_str(&neutral(&markdown[range.clone()]));
                from = range.end;
            }
            _ => {}
        }
    }
    changed.push_str(&markdown[from..]);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_not_called() {
        for (text, expected) in [
            ("@everyone look", "@\u{2060}everyone look"),
            ("hi @Here!", "hi @\u{2060}Here!"),
            ("<!channel>", "<!\u{2060}channel>"),
            ("@ada, wow!", "@ada, wow!"),
            ("@allison and a@b.test", "@allison and a@b.test"),
        ] {
            assert_eq!(neutral(text), expected);
        }
    }

    #[test]
    fn code_stays_as_it_is() {
        let markdown = "**@all** `@all`\n\n```\n@all <!here>\n```\n\n@all";
        let expected = "**@\u{2060}all** `@all`\n\n```\n@all <!here>\n```\n\n@\u{2060}all";
        assert_eq!(in_markdown(markdown), expected);
    }
}
