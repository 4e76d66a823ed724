//! What is marked in a text: <https://core.telegram.org/bots/api#messageentity>. Links keep their address, code, quotes and struck
//! words their marks, dates their moment; the rest (bold, italic, spoilers, emoji of one's own) is text.

use std::ops::Range;

use serde::Deserialize;

use super::updates::{Me, User};
use crate::quoted::ticks;

/// Offsets and lengths are in UTF-16 code units.
#[derive(Deserialize)]
pub struct Entity {
    r#type: String,
    offset: usize,
    length: usize,
    url: Option<String>,
    language: Option<String>,
    user: Option<User>,
    unix_time: Option<i64>,
}

/// The end of a line.
const LINE: u16 = b'\n' as u16;
const SPACE: u16 = b' ' as u16;
const TILDE: u16 = b'~' as u16;

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
    let entities = entities.iter().filter(|entity| is_in(entity, &units)).collect();
    let mut reader = Reader { left: units.clone(), units: &units, entities, me, is_named: false };
    reader.leave_out_names();
    (reader.read().trim().to_owned(), reader.is_named)
}

struct Reader<'a> {
    units: &'a [u16],
    /// The same with spaces instead of the names that are left out.
    left: Vec<u16>,
    entities: Vec<&'a Entity>,
    me: &'a Me,
    is_named: bool,
}

impl Reader<'_> {
    fn leave_out_names(&mut self) {
        for entity in &self.entities {
            let range = entity.offset..entity.offset + entity.length;
            if let Some(words) = named(entity, &String::from_utf16_lossy(&self.units[range.clone()]), self.me)
            {
                self.is_named = true;
                if words.is_empty() {
                    self.left[range].fill(SPACE);
                }
            }
        }
    }

    /// The text, each quote with what is in it: no mark reaches into a quote or out of it.
    fn read(&self) -> String {
        let (mut text, mut from) = (String::new(), 0);
        for entity in &self.entities {
            if !matches!(entity.r#type.as_str(), "blockquote" | "expandable_blockquote") {
                continue;
            }
            let Some(quote) = within(entity, &(from..self.units.len())) else { continue };
            text.push_str(&self.part(from..quote.start));
            from = quote.end;
            begin_line(&mut text);
            let said = self.part(quote);
            let lines = said.trim_end_matches('\n').split('\n').map(|line| format!("> {line}"));
            text.push_str(&lines.collect::<Vec<_>>().join("\n"));
            // The next line would go on with the quote.
            text.push_str(match self.units.get(from) {
                None => "",
                Some(&LINE) => "\n",
                Some(_) => "\n\n",
            });
        }
        text + &self.part(from..self.units.len())
    }

    /// A part of the text with the marks in it.
    fn part(&self, part: Range<usize>) -> String {
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        for entity in &self.entities {
            let Some(range) = within(entity, &part) else { continue };
            let words = String::from_utf16_lossy(&self.units[range.clone()]);
            if let Some(words) = named(entity, &words, self.me) {
                begin.push(Change { from: range.start, to: range.end, words });
            } else if let Some((before, after)) = around(entity, &words) {
                let is_block = entity.r#type == "pre";
                let Some(range) = self.trimmed(entity, range) else { continue };
                let is_first = range.start == part.start || self.units[range.start - 1] == LINE;
                let is_last = range.end == part.end || self.units[range.end] == LINE;
                let line_break = |is_needed: bool| if is_block && is_needed { "\n" } else { "" };
                // Three tildes side by side are no marks, but the beginning of code.
                let is_tilde = |at: usize| entity.r#type == "strikethrough" && self.units[at] == TILDE;
                let before = if is_tilde(range.start) { before + "\\" } else { before };
                if range.len() > 1 && is_tilde(range.end - 1) {
                    end.push(Change::put(range.end - 1, "\\"));
                }
                begin.push(Change::put(range.start, line_break(!is_first).to_owned() + &before));
                end.push(Change::put(range.end, after + line_break(!is_last)));
            }
        }
        // What begins last ends first, and ends before another begins.
        end.reverse();
        end.extend(begin);
        end.sort_by_key(|change| change.from);
        self.written(part, &end)
    }

    /// Where the marks of an entity stand. Those of struck words count only beside a word. `None`: no word is left.
    fn trimmed(&self, entity: &Entity, range: Range<usize>) -> Option<Range<usize>> {
        if entity.r#type != "strikethrough" {
            return Some(range);
        }
        let is_word = |unit: &u16| !char::from_u32(u32::from(*unit)).is_some_and(char::is_whitespace);
        let words = &self.left[range.clone()];
        let (first, last) = (words.iter().position(is_word)?, words.iter().rposition(is_word)?);
        Some(range.start + first..range.start + last + 1)
    }

    fn written(&self, part: Range<usize>, changes: &[Change]) -> String {
        let (mut text, mut from) = (String::new(), part.start);
        let some = changes.iter().filter(|change| !(change.words.is_empty() && change.from == change.to));
        for change in some {
            if change.from < from {
                continue;
            }
            text.push_str(&String::from_utf16_lossy(&self.units[from..change.from]));
            text.push_str(&change.words);
            from = change.to;
        }
        text + &String::from_utf16_lossy(&self.units[from..part.end])
    }
}

/// Whether the whole entity lies in the text.
fn is_in(entity: &Entity, units: &[u16]) -> bool {
    entity.length > 0 && entity.offset.saturating_add(entity.length) <= units.len()
}

/// What of an entity lies in a part of the text.
fn within(entity: &Entity, part: &Range<usize>) -> Option<Range<usize>> {
    let end = (entity.offset + entity.length).min(part.end);
    let start = entity.offset.max(part.start);
    (start < end).then_some(start..end)
}

/// What follows begins a line.
fn begin_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
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
fn around(entity: &Entity, words: &str) -> Option<(String, String)> {
    match entity.r#type.as_str() {
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
        // Each reader sees it in their own time, and in words of their app.
        "date_time" => {
            let at = jiff::Timestamp::from_second(entity.unix_time?).ok()?;
            Some((String::new(), format!(" ({at})")))
        }
        _ => None,
    }
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
            ("~x~\nb", json!([of("strikethrough", 0, 3)]), "~~\\~x\\~~~\nb"),
            ("run rm -r x", json!([of("code", 4, 7)]), "run `rm -r x`"),
            ("run `x", json!([of("code", 4, 2)]), "run `` `x ``"),
            (
                "so: fn a() {}\nthen",
                json!([{"type": "pre", "offset": 4, "length": 9, "language": "rust"}]),
                "so: \n```rust\nfn a() {}\n```\nthen",
            ),
            ("a\nb\nmine", json!([of("blockquote", 0, 3)]), "> a\n> b\n\nmine"),
            ("a bc", json!([of("blockquote", 0, 1)]), "> a\n\n bc"),
            (
                "a\nb\nc\nmine",
                json!([of("blockquote", 0, 5), of("pre", 2, 1)]),
                "> a\n> ```\n> b\n> ```\n> c\n\nmine",
            ),
            (
                "a\nb mine",
                json!([of("blockquote", 0, 3), of("pre", 0, 3)]),
                "> ```\n> a\n> b\n> ```\n\n mine",
            ),
            (
                "his: a b c",
                json!([of("blockquote", 5, 5), of("pre", 7, 1)]),
                "his: \n> a \n> ```\n> b\n> ```\n>  c",
            ),
            (
                "a\nb\nc",
                json!([of("strikethrough", 0, 5), of("blockquote", 2, 1)]),
                "~~a~~\n> ~~b~~\n\n~~c~~",
            ),
            ("he said no", json!([of("expandable_blockquote", 8, 2)]), "he said \n> no"),
            ("secret", json!([of("spoiler", 0, 6)]), "secret"),
            (
                "at 5pm or x",
                json!([{"type": "date_time", "offset": 3, "length": 3, "unix_time": 1_790_100_000},
                    {"type": "date_time", "offset": 10, "length": 1, "unix_time": i64::MAX}]),
                "at 5pm (2026-09-22T18:00:00Z) or x",
            ),
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
            ("@muster_bot not", json!([of("strikethrough", 0, 15), of("mention", 0, 11)]), "~~not~~"),
            ("@muster_bot", json!([of("strikethrough", 0, 11), of("mention", 0, 11)]), ""),
            ("@muster_bot now", json!([of("strikethrough", 0, 12), of("mention", 0, 11)]), "now"),
            ("no @muster_bot", json!([of("mention", 3, 11), of("strikethrough", 0, 14)]), "~~no~~"),
            ("a @muster_bot", json!([of("blockquote", 2, 11), of("mention", 2, 11)]), "a \n>"),
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
