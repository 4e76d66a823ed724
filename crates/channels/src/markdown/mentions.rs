//! Disables mass mentions: an invisible character goes between the `@` and the word that would notify a whole room.
//!
//! Code stays unchanged, since vendors ignore mentions there.

use std::borrow::Cow;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Mass mentions of Slack, Discord, Matrix, Telegram's bots and others.
const MASS_MENTIONS: [&str; 7] = ["everyone", "here", "channel", "all", "room", "group", "team"];
/// Invisible, without width or line break.
const JOINER: char = '\u{2060}';

/// Disables mass mentions in a text.
pub fn neutralize(text: &str) -> Cow<'_, str> {
    let mut changed = String::new();
    let mut from = 0;
    for (at, sign) in text.match_indices(['@', '!']) {
        let after = at + sign.len();
        let calls = match sign {
            "@" => is_mass_mention(&text[after..]),
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

fn is_mass_mention(after: &str) -> bool {
    let word: String = after.chars().take_while(char::is_ascii_alphanumeric).collect();
    MASS_MENTIONS.iter().any(|all| word.eq_ignore_ascii_case(all))
}

/// Disables mass mentions in Markdown, and changes nothing else.
pub fn neutralize_markdown(markdown: &str) -> String {
    let mut changed = String::with_capacity(markdown.len());
    let (mut from, mut in_code) = (0, false);
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(_) | Event::Html(_) | Event::InlineHtml(_) if !in_code && range.start >= from => {
                changed.push_str(&markdown[from..range.start]);
                changed.push_str(&neutralize(&markdown[range.clone()]));
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
    fn mass_mentions_are_defused() {
        for (text, expected) in [
            ("@everyone look", "@\u{2060}everyone look"),
            ("hi @Here!", "hi @\u{2060}Here!"),
            ("<!channel>", "<!\u{2060}channel>"),
            ("@ada, wow!", "@ada, wow!"),
            ("@allison and a@b.test", "@allison and a@b.test"),
        ] {
            assert_eq!(neutralize(text), expected);
        }
    }

    #[test]
    fn code_stays_as_it_is() {
        let markdown = "**@all** `@all`\n\n```\n@all <!here>\n```\n\n@all";
        let expected = "**@\u{2060}all** `@all`\n\n```\n@all <!here>\n```\n\n@\u{2060}all";
        assert_eq!(neutralize_markdown(markdown), expected);
    }
}
