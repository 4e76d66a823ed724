//! Entities of a text: <https://core.telegram.org/bots/api#messageentity>. Links keep their address; code, quotes and
//! struck text keep their marks; dates keep their moment. The rest (bold, italic, spoilers, custom emoji) becomes
//! plain text.

use std::{collections::BTreeSet, ops::Range};

use serde::Deserialize;

use super::updates::{BotIdentity, User};
use crate::quoting::backticks;

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

const LINE_END: u16 = b'\n' as u16;

/// A replacement of a range by text; an insertion if the range is empty.
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

/// Converts to Markdown without mentions of us. Also returns whether we are mentioned.
pub fn to_markdown(text: &str, entities: &[Entity], me: &BotIdentity) -> (String, bool) {
    let units: Vec<u16> = text.encode_utf16().collect();
    let entities = entities.iter().filter(|entity| fits_text(entity, &units)).collect();
    let mut reader = Reader { left: units.clone(), units: &units, entities, me, is_named: false };
    reader.remove_mentions();
    (reader.read().trim().to_owned(), reader.is_named)
}

/// Marks other than strikethrough.
#[derive(Default)]
struct OtherMarks {
    /// Their positions.
    ends: BTreeSet<usize>,
    codes: Vec<Range<usize>>,
}

impl OtherMarks {
    fn add(&mut self, entity: &Entity, range: Range<usize>) {
        let kind = entity.r#type.as_str();
        if matches!(kind, "text_link" | "code" | "pre") {
            self.ends.extend([range.start, range.end]);
        }
        if matches!(kind, "code" | "pre") {
            self.codes.push(range);
        }
    }
}

struct Reader<'a> {
    units: &'a [u16],
    /// The text with spaces in place of removed mentions.
    left: Vec<u16>,
    entities: Vec<&'a Entity>,
    me: &'a BotIdentity,
    is_named: bool,
}

impl Reader<'_> {
    fn remove_mentions(&mut self) {
        for entity in &self.entities {
            let range = entity.offset..entity.offset + entity.length;
            if let Some(words) =
                mention_words(entity, &String::from_utf16_lossy(&self.units[range.clone()]), self.me)
            {
                self.is_named = true;
                if words.is_empty() {
                    self.left[range].fill(u16::from(b' '));
                }
            }
        }
    }

    /// Converts the text quote by quote: no mark crosses a quote's borders.
    fn read(&self) -> String {
        let (mut text, mut from) = (String::new(), 0);
        for entity in &self.entities {
            if !matches!(entity.r#type.as_str(), "blockquote" | "expandable_blockquote") {
                continue;
            }
            let Some(quote) = intersect(entity, &(from..self.units.len())) else { continue };
            text.push_str(&self.write_range(from..quote.start));
            from = quote.end;
            start_line(&mut text);
            let said = self.write_range(quote);
            let lines = said.trim_end_matches('\n').split('\n').map(|line| format!("> {line}"));
            text.push_str(&lines.collect::<Vec<_>>().join("\n"));
            // Otherwise the next line would continue the quote.
            text.push_str(match self.units.get(from) {
                None => "",
                Some(&LINE_END) => "\n",
                Some(_) => "\n\n",
            });
        }
        text + &self.write_range(from..self.units.len())
    }

    /// A range of the text with its marks.
    fn write_range(&self, part: Range<usize>) -> String {
        let (mut begin, mut end, mut others) = (Vec::new(), Vec::new(), OtherMarks::default());
        for entity in &self.entities {
            let Some(range) = intersect(entity, &part) else { continue };
            let words = String::from_utf16_lossy(&self.units[range.clone()]);
            if let Some(words) = mention_words(entity, &words, self.me) {
                begin.push(Change { from: range.start, to: range.end, words });
            } else if let Some((before, after)) = marks_around(entity, &words) {
                let is_block = entity.r#type == "pre";
                let is_first = range.start == part.start || self.units[range.start - 1] == LINE_END;
                let is_last = range.end == part.end || self.units[range.end] == LINE_END;
                let line_break = |is_needed: bool| if is_block && is_needed { "\n" } else { "" };
                begin.push(Change::put(range.start, line_break(!is_first).to_owned() + &before));
                end.push(Change::put(range.end, after + line_break(!is_last)));
                others.add(entity, range);
            }
        }
        let (struck, escaped) = self.struck_ranges(&part, &others);
        for range in struck {
            begin.push(Change::put(range.start, "~~"));
            end.push(Change::put(range.end, "~~"));
        }
        begin.extend(escaped.into_iter().map(|at| Change::put(at, "\\")));
        // Marks that begin last end first, and end before others begin; insertions precede replacements.
        end.reverse();
        end.extend(begin);
        end.sort_by_key(|change| (change.from, change.from != change.to));
        self.apply_changes(part, &end)
    }

    /// Ranges of struck text, and positions to escape beside and inside of them. As in Markdown, strikethrough crosses
    /// no line or link, and there is none within code.
    fn struck_ranges(
        &self,
        part: &Range<usize>,
        others: &OtherMarks,
    ) -> (Vec<Range<usize>>, BTreeSet<usize>) {
        let is_struck = |entity: &&&Entity| entity.r#type == "strikethrough";
        let struck = self.entities.iter().filter(is_struck);
        let mut struck: Vec<_> = struck.filter_map(|entity| intersect(entity, part)).collect();
        struck.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in struck {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        let mut pieces = Vec::new();
        for range in joined {
            let mut from = range.start;
            for at in range.clone() {
                if self.units[at] == LINE_END || others.ends.contains(&at) {
                    pieces.push(from..at);
                    from = if self.units[at] == LINE_END { at + 1 } else { at };
                }
            }
            pieces.push(from..range.end);
        }
        pieces.retain(|piece| !others.codes.iter().any(|code| code.contains(&piece.start)));
        let pieces: Vec<_> =
            pieces.into_iter().filter_map(|piece| self.trim_struck(piece, part, others)).collect();
        let escaped = pieces.iter().flat_map(|piece| self.escape_positions(piece, part, others)).collect();
        (pieces, escaped)
    }

    /// Trims a struck range so that Markdown recognizes its marks: beside words, and beside punctuation only if no word
    /// is on the other side. `None`: no word is left.
    fn trim_struck(
        &self,
        piece: Range<usize>,
        part: &Range<usize>,
        others: &OtherMarks,
    ) -> Option<Range<usize>> {
        let (left, mut chars) = (&self.left, Vec::with_capacity(piece.len()));
        let mut at = piece.start;
        for c in char::decode_utf16(left[piece.clone()].iter().copied()) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            chars.push((at, c));
            at += c.len_utf16();
        }
        let is_beside_marks = |at: usize| others.ends.contains(&at);
        let text =
            String::from_utf16_lossy(&left[piece.start.saturating_sub(2).max(part.start)..piece.start]);
        let before = text.chars().next_back().filter(|_| !is_beside_marks(piece.start));
        let text = String::from_utf16_lossy(&left[piece.end..(piece.end + 2).min(part.end)]);
        let after = text.chars().next().filter(|_| !is_beside_marks(piece.end));
        let is_line = piece.start == part.start || left[piece.start - 1] == LINE_END;
        let mut from = if is_line { marker_length(&chars) } else { 0 };
        let mut to = chars.len();
        while from < to {
            let (first, last) = (chars[from].1, chars[to - 1].1);
            let before = if from == 0 { before } else { Some(chars[from - 1].1) };
            let after = if to == chars.len() { after } else { Some(chars[to].1) };
            let is_left = |c: char| from > 0 && is_combining(c);
            if first.is_whitespace()
                || may_be_punctuation(first) && !before.is_none_or(separates_words)
                || is_left(first)
            {
                from += 1;
            } else if last.is_whitespace()
                || may_be_punctuation(last) && !after.is_none_or(separates_words)
                || last == '\u{200d}' && to < chars.len()
            {
                to -= 1;
            } else {
                return Some(chars[from].0..chars.get(to).map_or(piece.end, |(end, _)| *end));
            }
        }
        None
    }

    /// Positions of characters in and beside a struck range that would merge with its marks or disable them.
    fn escape_positions(&self, piece: &Range<usize>, part: &Range<usize>, others: &OtherMarks) -> Vec<usize> {
        let is = |at: usize, sign: u8| self.units[at] == u16::from(sign);
        let is_tilde = |at: usize| is(at, b'~');
        let (first, last) = (piece.start, piece.end - 1);
        let is_doubled = |at: usize| at > first && is_tilde(at - 1) || at < last && is_tilde(at + 1);
        let within = piece.clone().filter(|at| is_tilde(*at));
        let mut escaped: Vec<_> =
            within.filter(|at| *at == first || *at == last || is_doubled(*at)).collect();
        // Two backslashes are one already.
        let is_escaping =
            |from: usize, at: usize| (from..=at).rev().take_while(|at| is(*at, b'\\')).count() % 2 == 1;
        if is_escaping(first, last) {
            escaped.push(last);
        }
        if first > part.start
            && !others.ends.contains(&first)
            && (is_tilde(first - 1) || is_escaping(part.start, first - 1))
        {
            escaped.push(first - 1);
        }
        if piece.end < part.end && !others.ends.contains(&piece.end) && is_tilde(piece.end) {
            escaped.push(piece.end);
        }
        escaped
    }

    fn apply_changes(&self, part: Range<usize>, changes: &[Change]) -> String {
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

/// Whether the entity lies within the text.
fn fits_text(entity: &Entity, units: &[u16]) -> bool {
    entity.length > 0 && entity.offset.saturating_add(entity.length) <= units.len()
}

/// The intersection of an entity with a range.
fn intersect(entity: &Entity, part: &Range<usize>) -> Option<Range<usize>> {
    let end = (entity.offset + entity.length).min(part.end);
    let start = entity.offset.max(part.start);
    (start < end).then_some(start..end)
}

/// Whether a character modifies the one before it.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}')
}

/// Whether Markdown may treat a character as punctuation: its versions differ over symbols.
fn may_be_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace() && !is_combining(c)
}

/// Whether all versions of Markdown treat a character as white space or punctuation.
fn separates_words(c: char) -> bool {
    c.is_ascii_whitespace()
        || c.is_ascii_punctuation()
        || matches!(c, '\u{a0}' | '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}' | '\u{202f}'..='\u{2043}'
            | '\u{2045}'..='\u{2051}' | '\u{3000}'..='\u{3003}' | '\u{3008}'..='\u{3011}')
}

/// Length of the list, quote or heading markers at the beginning of a line.
fn marker_length(line: &[(usize, char)]) -> usize {
    let at = |nth: usize| line.get(nth).map(|(_, c)| *c);
    let is_space = |nth: usize| at(nth).is_some_and(char::is_whitespace);
    let run =
        |from: usize, is_one: fn(char) -> bool| line[from..].iter().take_while(|(_, c)| is_one(*c)).count();
    let mut from = 0;
    loop {
        let word = from + run(from, char::is_whitespace);
        let (digits, hashes) = (run(word, |c| c.is_ascii_digit()), run(word, |c| c == '#'));
        let ends = |length: usize| is_space(word + length).then_some(length + 1);
        let length = match at(word) {
            Some('>') => Some(1),
            Some('-' | '+' | '*' | '•') => ends(1),
            Some('#') if hashes < 7 => ends(hashes),
            _ if (1..10).contains(&digits) && matches!(at(word + digits), Some('.' | ')')) => {
                ends(digits + 1)
            }
            _ => None,
        };
        match length {
            Some(length) => from = word + length,
            None => return from,
        }
    }
}

fn start_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// The remaining text of a mention of us.
fn mention_words(entity: &Entity, words: &str, me: &BotIdentity) -> Option<String> {
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

fn marks_around(entity: &Entity, words: &str) -> Option<(String, String)> {
    match entity.r#type.as_str() {
        "text_link" => {
            let url = entity.url.as_deref()?;
            (url != words).then(|| ("[".to_owned(), format!("]({})", encode_address(url))))
        }
        "code" => {
            let ticks = backticks(words, 1);
            let space = if words.starts_with('`') || words.ends_with('`') { " " } else { "" };
            Some((format!("{ticks}{space}"), format!("{space}{ticks}")))
        }
        "pre" => {
            let (ticks, language) = (backticks(words, 3), entity.language.as_deref().unwrap_or_default());
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_' | '.');
            let language = if language.chars().all(is_name) { language } else { "" };
            let last = if words.ends_with('\n') { "" } else { "\n" };
            Some((format!("{ticks}{language}\n"), format!("{last}{ticks}")))
        }
        // People see it in their own time zone, and in their app's wording.
        "date_time" => {
            let at = jiff::Timestamp::from_second(entity.unix_time?).ok()?;
            Some((String::new(), format!(" ({at})")))
        }
        _ => None,
    }
}

/// Encodes an address so that the brackets around it stay balanced.
fn encode_address(url: &str) -> String {
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
        to_markdown(text, &entities, &BotIdentity { id: 7, username: Some("muster_bot".to_owned()) })
    }

    fn of(kind: &str, offset: usize, length: usize) -> Value {
        json!({"type": kind, "offset": offset, "length": length})
    }

    #[test]
    fn markup_keeps_its_text() {
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
    fn struck_words_are_struck_in_markdown_too() {
        let struck = |offset, length| of("strikethrough", offset, length);
        let link = |offset, length| json!({"type": "text_link", "offset": offset, "length": length, "url": "https://a.test/"});
        for (text, entities, expected) in [
            ("No\n\nnot today\nok", json!([struck(0, 13)]), "~~No~~\n\n~~not today~~\nok"),
            ("Buy:\n- milk\n- bread\nend", json!([struck(5, 14)]), "Buy:\n- ~~milk~~\n- ~~bread~~\nend"),
            ("1. a\n> # b\n- \n-c", json!([struck(0, 16)]), "1. ~~a~~\n> # ~~b~~\n- \n~~-c~~"),
            ("oldprice new", json!([struck(0, 3), of("bold", 3, 5), struck(3, 5)]), "~~oldprice~~ new"),
            ("old price", json!([struck(0, 6), struck(4, 5)]), "~~old price~~"),
            ("price(100)now 50", json!([struck(5, 5)]), "price(~~100~~)now 50"),
            ("price (100) now", json!([struck(6, 5)]), "price ~~(100)~~ now"),
            ("price€100€now", json!([struck(5, 5)]), "price€~~100~~€now"),
            ("price 100 €", json!([struck(6, 5)]), "price ~~100 €~~"),
            ("un„möglich“e", json!([struck(2, 9)]), "un„~~möglich~~“e"),
            ("a👩\u{200d}💻 b c", json!([struck(1, 7)]), "a👩\u{200d}💻 ~~b~~ c"),
            ("cafe\u{301}s", json!([struck(0, 5)]), "~~cafe\u{301}~~s"),
            ("a?!b", json!([struck(1, 2)]), "a?!b"),
            ("a~~b ~c", json!([struck(0, 4), struck(6, 1)]), "~~a\\~\\~b~~ \\~~~c~~"),
            ("a~b", json!([struck(0, 1), struck(2, 1)]), "~~a~~\\~~~b~~"),
            ("c:\\a\\", json!([struck(3, 2)]), "c:\\\\~~a\\\\~~"),
            (
                "oldprice new",
                json!([link(3, 5), struck(0, 12)]),
                "~~old~~[~~price~~](https://a.test/) ~~new~~",
            ),
            ("a b c", json!([struck(0, 5), of("code", 2, 1)]), "~~a~~ `b` ~~c~~"),
            ("/go@muster_bot", json!([of("bot_command", 0, 14), struck(0, 14)]), "~~/go~~"),
        ] {
            assert_eq!(read(text, &entities).0, expected, "{text} {entities}");
        }
    }

    #[test]
    fn mentions_of_the_bot_are_removed() {
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
