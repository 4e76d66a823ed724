//! Disables what has effects in comments beyond reading: mentions of teams, keywords that close issues, and commands.
//!
//! Code stays unchanged: hosts ignore it.

use pulldown_cmark::{Event, Options, Parser, Tag};

/// Begins what each comment of Muster carries. Hosts don't show it.
pub const MARKER: &str = "<!-- muster:";
/// Invisible, without width or line break.
const JOINER: char = '\u{2060}';
/// The stems of closing keywords, and their endings: `fixes`, `closed`, `resolving`.
const STEMS: [&str; 4] = ["clos", "fix", "implement", "resolv"];
const ENDINGS: [&str; 6] = ["", "e", "es", "ed", "ing", "s"];

/// Disables all of them in Markdown.
pub fn neutralize(markdown: &str) -> String {
    let (mut said, mut from) = (String::with_capacity(markdown.len()), 0);
    // A cell of a table ends code.
    for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
        let is_code = matches!(event, Event::Start(Tag::CodeBlock(_)) | Event::Code(_));
        if is_code && range.start >= from {
            neutralize_words(&markdown[from..range.start], &mut said);
            said.push_str(&markdown[range.clone()]);
            from = range.end;
        }
    }
    neutralize_words(&markdown[from..], &mut said);
    said
}

fn neutralize_words(text: &str, to: &mut String) {
    let (mut begins_line, mut closes) = (to.is_empty() || to.ends_with('\n'), false);
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        if !bare.is_empty() {
            let command = bare.strip_prefix('/').filter(|_| begins_line);
            let is_command = command.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
            if is_command || (closes && is_reference(bare)) {
                to.push(JOINER);
            }
            begins_line = false;
            closes = is_closing(bare);
        }
        neutralize_word(word, to);
        begins_line |= word.ends_with('\n');
    }
}

fn neutralize_word(word: &str, to: &mut String) {
    let mut from = 0;
    if let Some((keyword, reference)) = word.split_once(':')
        && is_closing(keyword)
        && is_reference(reference)
    {
        to.push_str(&format!("{keyword}:{JOINER}"));
        from = keyword.len() + 1;
    }
    for (at, mark) in word.match_indices(['@', '&']) {
        let rest = &word[at + 1..];
        let has_effect = if mark == "@" { is_team(rest) } else { may_hide_mention(rest) };
        if at >= from && has_effect {
            to.push_str(&word[from..=at]);
            to.push(JOINER);
            from = at + 1;
        }
    }
    to.push_str(&word[from..]);
}

/// Whether a name begins with an organization and a team, `acme/ops`, or is `all`: at GitLab, the whole project.
fn is_team(name: &str) -> bool {
    // Markdown drops backslashes.
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '\\');
    let rest = name.trim_start_matches(is_part);
    let first = &name[..name.len() - rest.len()];
    let is_all = || first.trim_end_matches(['-', '_', '.', '\\']).eq_ignore_ascii_case("all");
    let has_team = || rest.strip_prefix('/').is_some_and(|team| team.starts_with(is_part));
    !first.is_empty() && (has_team() || is_all())
}

/// Whether what follows a `&` may make it a character reference to `@` or `/`.
fn may_hide_mention(rest: &str) -> bool {
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, 'x' | 'X'));
    rest.strip_prefix('#').is_some_and(is_number) || rest.starts_with("commat;") || rest.starts_with("sol;")
}

fn is_closing(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    STEMS.iter().any(|stem| word.strip_prefix(stem).is_some_and(|ending| ENDINGS.contains(&ending)))
}

/// Whether a word may name an issue: `#12`, `acme/shop#12`, `GH-12`, or its address.
fn is_reference(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit()) || word.contains('#')
}

/// A text without mentions of `login`, and whether it has some.
pub fn take_mentions(text: &str, login: Option<&str>) -> (String, bool) {
    let Some(login) = login.filter(|login| !login.is_empty()) else { return (text.to_owned(), false) };
    let (mut rest, mut said, mut is_mentioned) = (text, String::with_capacity(text.len()), false);
    while let Some(at) = rest.find('@') {
        let (before, name) = rest.split_at(at);
        said.push_str(before);
        let after = name.get(1..=login.len()).filter(|name| name.eq_ignore_ascii_case(login));
        let after = after.map(|_| &name[login.len() + 1..]);
        let after = after.map(|after| after.strip_prefix("[bot]").unwrap_or(after));
        let ends =
            |after: &&str| !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/'));
        let begins = !said.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '`' | '/'));
        match after.filter(ends).filter(|_| begins) {
            Some(after) => {
                is_mentioned = true;
                let is_double = said.is_empty() || said.ends_with(char::is_whitespace);
                rest = if is_double { after.strip_prefix(' ').unwrap_or(after) } else { after };
            }
            None => {
                said.push('@');
                rest = &name[1..];
            }
        }
    }
    said.push_str(rest);
    (said, is_mentioned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_keywords_and_commands_have_no_effect() {
        for (text, expected) in [
            ("@acme/ops look", "@\u{2060}acme/ops look"),
            ("@acme\\/ops @ac\\-me/ops", "@\u{2060}acme\\/ops @\u{2060}ac\\-me/ops"),
            ("&#64;acme/ops, @acme&#x2f;ops", "&\u{2060}#64;acme/ops, @acme&\u{2060}#x2f;ops"),
            ("&commat;a/b @a&sol;b &amp; R&D", "&\u{2060}commat;a/b @a&\u{2060}sol;b &amp; R&D"),
            ("@all. @all-hands @allen", "@\u{2060}all. @all-hands @allen"),
            ("|a|\n|-|\n|`|@a/b|`|", "|a|\n|-|\n|`|@\u{2060}a/b|`|"),
            ("@ada look at ada@b.test", "@ada look at ada@b.test"),
            ("This fixes #12.", "This fixes \u{2060}#12."),
            ("Closes: acme/a_b#3, GH-4", "Closes: \u{2060}acme/a_b#3, GH-4"),
            ("fixed:#3", "fixed:\u{2060}#3"),
            (
                "resolves\nhttps://github.com/a/b/issues/3",
                "resolves\n\u{2060}https://github.com/a/b/issues/3",
            ),
            ("It closes at noon, see #3", "It closes at noon, see #3"),
            ("/close\n /merge\na /b 1/2", "\u{2060}/close\n \u{2060}/merge\na /b 1/2"),
            ("`fixes #1` and `@a/b`\n\n```\n/close\n```", "`fixes #1` and `@a/b`\n\n```\n/close\n```"),
            ("é @é/x ä", "é @é/x ä"),
        ] {
            assert_eq!(neutralize(text), expected);
        }
    }

    #[test]
    fn mentions_are_taken_out() {
        let of = |text| take_mentions(text, Some("muster"));
        assert_eq!(of("@muster please"), ("please".to_owned(), true));
        assert_eq!(of("Well, @Muster[bot], do"), ("Well, , do".to_owned(), true));
        for other in ["@muster-two do", "a@muster.test", "@musters", "@", "`@muster`", "@acme/muster"] {
            assert!(!of(other).1, "{other}");
        }
        assert_eq!(take_mentions("@muster", None), ("@muster".to_owned(), false));
    }
}
