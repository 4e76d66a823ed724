//! What is marked in a text: <https://core.telegram.org/bots/api#messageentity>. Links keep their address, code, quotes and struck
//! words their marks; the rest (bold, italic, spoilers, emoji of one's own) is text.

use serde::Deserialize;

use super::updates::{Me, User};

/// Offsets and lengths are in UTF-16 code units.
#[derive(Deserialize)]
pub struct Entity {
    r#type: String,
    offset: usize,
    length: usize,
    url: Option<String>,
    language: Option<String>,
    user: Option<User>,
}

/// The end of a line.
const LINE: u16 = b'\n' as u16;

/// Other words instead of some of a text. Nothing is taken away where both ends are the same.
struct Change {
    from: usize,
    to: usize,
    words: String,
}

impl Change {
    fn put(at: usize, words: impl Into<String>) -> Self {
        Self { from: at, to: at, words: words.into() }
    }
}

/// A text with its marks, without what names us, and whether something does.
pub fn marked(text: &str, entities: &[Entity], me: &Me) -> (String, bool) {
    let units: Vec<u16> = text.encode_utf16().collect();
    let (mut begin, mut end, mut is_named, mut quoted) = (Vec::new(), Vec::new(), false, 0);
    for entity in entities {
        let range = entity.offset..entity.offset.saturating_add(entity.length);
        let Some(words) = units.get(range.clone()).filter(|words| !words.is_empty()) else { continue };
        match entity.r#type.as_str() {
            "blockquote" | "expandable_blockquote" if range.start >= quoted => {
                quoted = range.end;
                let breaks = words.iter().enumerate().filter(|(_, unit)| **unit == LINE);
                begin.push(Change::put(range.start, line_break(&units, range.start) + "> "));
                begin.extend(breaks.map(|(nth, _)| Change::put(range.start + nth + 1, "> ")));
                // The next line would go on with the quote.
                let apart = match units.get(range.end) {
                    None => "",
                    Some(&LINE) => "\n",
                    Some(_) => "\n\n",
                };
                end.push(Change::put(range.end, apart));
            }
            kind => {
                let words = String::from_utf16_lossy(words);
                if let Some(change) = named(entity, &words, me) {
                    is_named = true;
                    begin.push(Change { from: range.start, to: range.end, words: change });
                } else if let Some((before, after)) = around(kind, entity, &words) {
                    let is_block = kind == "pre";
                    let before = if is_block { line_break(&units, range.start) + &before } else { before };
                    let is_followed = is_block && units.get(range.end).is_some_and(|unit| *unit != LINE);
                    begin.push(Change::put(range.start, before));
                    end.push(Change::put(range.end, if is_followed { after + "\n" } else { after }));
                }
            }
        }
    }
    // What begins last ends first, and ends before another begins.
    end.reverse();
    end.extend(begin);
    end.sort_by_key(|change| change.from);
    (written(&units, &end), is_named)
}

/// What stands before a block that does not begin a line.
fn line_break(units: &[u16], at: usize) -> String {
    let is_first = at.checked_sub(1).and_then(|before| units.get(before)).is_none_or(|unit| *unit == LINE);
    if is_first { String::new() } else { "\n".to_owned() }
}

fn written(units: &[u16], changes: &[Change]) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for change in changes.iter().filter(|change| !(change.words.is_empty() && change.from == change.to)) {
        if change.from < from {
            continue;
        }
        text.push_str(&String::from_utf16_lossy(units.get(from..change.from).unwrap_or_default()));
        text.push_str(&change.words);
        from = change.to;
    }
    text.push_str(&String::from_utf16_lossy(units.get(from..).unwrap_or_default()));
    text.trim().to_owned()
}

/// What stays of words that name us.
fn named(entity: &Entity, words: &str, me: &Me) -> Option<String> {
    let is_us = |name: &str| me.username.as_deref().is_some_and(|us| us.eq_ignore_ascii_case(name));
    match entity.r#type.as_str() {
        "mention" => words.strip_prefix('@').filter(|name| is_us(name)).map(|_| String::new()),
        "text_mention" => entity.user.as_ref().filter(|user| user.id == me.id).map(|_| String::new()),
        "bot_command" => match words.split_once('@') {
            Some((command, name)) => is_us(name).then(|| command.to_owned()),
            None => Some(words.to_owned()),
        },
        _ => None,
    }
}

/// The marks around words of this kind.
fn around(kind: &str, entity: &Entity, words: &str) -> Option<(String, String)> {
    match kind {
        "text_link" => {
            let url = entity.url.as_deref()?;
            (url != words).then(|| ("[".to_owned(), format!("]({})", address(url))))
        }
        "code" => {
            let ticks = ticks(words, 1);
            let space = if words.starts_with('`') || words.ends_with('`') { " " } else { "" };
            Some((format!("{ticks}{space}"), format!("{space}{ticks}")))
        }
        "pre" => {
            let (ticks, language) = (ticks(words, 3), entity.language.as_deref().unwrap_or_default());
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.');
            let language = if language.chars().all(is_name) { language } else { "" };
            let last = if words.ends_with('\n') { "" } else { "\n" };
            Some((format!("{ticks}{language}\n"), format!("{last}{ticks}")))
        }
        "strikethrough" => Some(("~~".to_owned(), "~~".to_owned())),
        _ => None,
    }
}

/// More backticks than the words have side by side.
fn ticks(words: &str, least: usize) -> String {
    let longest = words.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(if longest < least { least } else { longest + 1 })
}

/// An address that ends where the brackets around it do.
fn address(url: &str) -> String {
    let mut address = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            '(' => address.push_str("%28"),
            ')' => address.push_str("%29"),
            '<' => address.push_str("%3C"),
            '>' => address.push_str("%3E"),
            c if c.is_whitespace() || c.is_control() => address.push_str("%20"),
            c => address.push(c),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str, entities: &Value) -> (String, bool) {
        let entities: Vec<Entity> = serde_json::from_value(entities.clone()).unwrap();
        marked(text, &entities, &Me { id: 7, username: Some("muster_bot".to_owned()) })
    }

    fn of(kind: &str, offset: usize, length: usize) -> Value {
        json!({"type": kind, "offset": offset, "length": length})
    }

    #[test]
    fn what_is_marked_keeps_what_it_says() {
        let link = |offset, length, url: &str| json!({"type": "text_link", "offset": offset, "length": length, "url": url});
        for (text, entities, expected) in [
            (
                "see the offer now",
                json!([link(4, 9, "https://a.test/b")]),
                "see [the offer](https://a.test/b) now",
            ),
            (
                "😀 the offer",
                json!([link(3, 9, "https://a.test/(b)")]),
                "😀 [the offer](https://a.test/%28b%29)",
            ),
            ("https://a.test", json!([link(0, 14, "https://a.test")]), "https://a.test"),
            ("https://a.test", json!([of("url", 0, 14)]), "https://a.test"),
            ("bold offer", json!([of("bold", 0, 4), of("italic", 0, 4)]), "bold offer"),
            (
                "a bold link",
                json!([link(2, 9, "https://a.test/"), of("bold", 2, 4)]),
                "a [bold link](https://a.test/)",
            ),
            ("not now", json!([of("strikethrough", 0, 3)]), "~~not~~ now"),
            ("run rm -r x", json!([of("code", 4, 7)]), "run `rm -r x`"),
            ("run `x", json!([of("code", 4, 2)]), "run `` `x ``"),
            (
                "so: fn a() {}\nthen",
                json!([{"type": "pre", "offset": 4, "length": 9, "language": "rust"}]),
                "so: \n```rust\nfn a() {}\n```\nthen",
            ),
            ("a\nb\nmine", json!([of("blockquote", 0, 3)]), "> a\n> b\n\nmine"),
            ("a bc", json!([of("blockquote", 0, 1)]), "> a\n\n bc"),
            ("he said no", json!([of("expandable_blockquote", 8, 2)]), "he said \n> no"),
            ("secret", json!([of("spoiler", 0, 6)]), "secret"),
            (
                "#tag $USD a@b.test +49",
                json!([of("hashtag", 0, 4), of("cashtag", 5, 4), of("email", 10, 8)]),
                "#tag $USD a@b.test +49",
            ),
            (
                "ask Ada",
                json!([{"type": "text_mention", "offset": 4, "length": 3, "user": {"id": 5}}]),
                "ask Ada",
            ),
            (
                "past the end",
                json!([of("code", 5, 99), of("code", usize::MAX, 2), of("code", 0, 0)]),
                "past the end",
            ),
        ] {
            assert_eq!(read(text, &entities), (expected.to_owned(), false), "{text} {entities}");
        }
    }

    #[test]
    fn what_names_us_is_taken_out() {
        for (text, entities, expected) in [
            ("😀 @Muster_Bot hello", json!([of("mention", 3, 11)]), "😀  hello"),
            (
                "hello you",
                json!([{"type": "text_mention", "offset": 6, "length": 3, "user": {"id": 7}}]),
                "hello",
            ),
            ("/status@muster_bot now", json!([of("bot_command", 0, 18)]), "/status now"),
            ("/status now", json!([of("bot_command", 0, 7)]), "/status now"),
            ("@muster_bot", json!([of("mention", 0, 11)]), ""),
            ("@muster_bot not", json!([of("strikethrough", 0, 15), of("mention", 0, 11)]), "~~ not~~"),
        ] {
            assert_eq!(read(text, &entities), (expected.to_owned(), true), "{text}");
        }
        for (text, entities) in
            [("@other hello", json!([of("mention", 0, 6)])), ("/a@other", json!([of("bot_command", 0, 8)]))]
        {
            assert_eq!(read(text, &entities), (text.to_owned(), false));
        }
    }
}
