//! Slack's markup: <https://docs.slack.dev/messaging/formatting-message-text>.

use jiff::Timestamp;

use crate::quoting::{code_block, inline_code};

/// Bytes of a text whose marks are parsed. Slack cuts texts after 40,000 characters, but a holder of a channel's secret
/// may send more, and parsing takes many times the text's memory.
const LONGEST: usize = 200_000;

/// Reads texts, without mentions of us.
pub struct Reader<'a> {
    us: &'a [&'a str],
    /// Whether a text mentioned us.
    pub is_named: bool,
}

impl<'a> Reader<'a> {
    pub fn new(us: &'a [&'a str]) -> Self {
        Self { us, is_named: false }
    }

    /// Whether this is our user id; if so, we are mentioned.
    pub fn is_us(&mut self, id: &str) -> bool {
        let is_us = self.us.contains(&id);
        self.is_named |= is_us;
        is_us
    }

    /// Converts a text to Markdown.
    pub fn read(&mut self, text: &str) -> String {
        if text.len() > LONGEST {
            return self.replace_commands(text).trim().to_owned();
        }
        let signs = self.characters(text);
        terminate_quotes(&to_markdown(&signs, true)).trim().to_owned()
    }

    fn characters(&mut self, text: &str) -> Vec<Character> {
        let (mut signs, mut rest) = (Vec::new(), text);
        // After one unclosed delimiter, no later one is closed.
        let (mut has_blocks, mut has_commands) = (true, true);
        while let Some(c) = rest.chars().next() {
            if has_blocks && rest.starts_with("```") {
                match rest[3..].split_once("```") {
                    Some((code, after)) if !code.trim().is_empty() => {
                        let code = self.replace_commands(code);
                        rest = push_code_block(&mut signs, &code, after);
                        continue;
                    }
                    found => has_blocks = found.is_some(),
                }
            } else if let Some((code, after)) = split_inline_code(rest) {
                push_literal(&mut signs, &inline_code(&self.replace_commands(code)));
                rest = after;
                continue;
            } else if has_commands && c == '<' {
                if let Some((inner, after)) = rest[1..].split_once('>') {
                    let words = unescape(&self.replace_command(inner));
                    rest = if words.is_empty() { remove_empty_marks(&mut signs, after) } else { after };
                    push_literal(&mut signs, &words);
                    continue;
                }
                has_commands = false;
            }
            let escaped = ESCAPED.iter().find(|(written, _)| rest.starts_with(written));
            let (length, c) = escaped.map_or((c.len_utf8(), c), |(written, c)| (written.len(), *c));
            signs.push(Character { c, is_typed: true });
            rest = &rest[length..];
        }
        signs
    }

    /// Code as shown to people.
    fn replace_commands(&mut self, code: &str) -> String {
        let (mut read, mut rest) = (String::new(), code);
        while let Some((before, (inner, after))) =
            rest.split_once('<').and_then(|(before, rest)| Some((before, rest.split_once('>')?)))
        {
            read.push_str(before);
            read.push_str(&self.replace_command(inner));
            rest = after;
        }
        unescape(&(read + rest))
    }

    /// The text of `<…>`.
    fn replace_command(&mut self, inner: &str) -> String {
        let (word, label) = inner.split_once('|').unwrap_or((inner, ""));
        match word.split_at_checked(1) {
            Some(("@", id)) if self.is_us(id) => String::new(),
            Some(("@", id)) => format!("@{}", label_or(label, id)),
            Some(("#", id)) => format!("#{}", label_or(label, id)),
            Some(("!", command)) => format_command(command, label),
            _ => format_link(label, word),
        }
    }
}

/// A character of a text. Typed ones may be marks; those from a command or from code are not.
struct Character {
    c: char,
    is_typed: bool,
}

/// Slack's escapes.
const ESCAPED: [(&str, char); 3] = [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&')];

fn push_literal(signs: &mut Vec<Character>, words: &str) {
    signs.extend(words.chars().map(|c| Character { c, is_typed: false }));
}

/// Inline code at the beginning of a text, and the rest.
fn split_inline_code(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('`')?;
    let end = inner.find(['`', '\n'])?;
    let (code, after) = inner.split_at(end);
    after.strip_prefix('`').filter(|_| !code.is_empty()).map(|after| (code, after))
}

/// Adds a code block on its own lines, inside of an open quote. Returns the rest of the text.
fn push_code_block<'a>(signs: &mut Vec<Character>, code: &str, after: &'a str) -> &'a str {
    let start = signs.iter().rposition(|sign| sign.c == '\n').map_or(0, |end| end + 1);
    let is_quoted = signs.get(start).is_some_and(|sign| sign.c == '>');
    let is_beside = |sign: &Character| sign.c.is_whitespace() || is_quoted && sign.c == '>';
    if !signs[start..].iter().all(is_beside) {
        push_literal(signs, "\n");
    } else if is_quoted {
        signs.truncate(start);
    }
    let block = code_block(code.trim_matches('\n'), "");
    let block = if is_quoted {
        block.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
    } else {
        block
    };
    push_literal(signs, &block);
    let rest = after.trim_start_matches(' ');
    let rest = rest.strip_prefix('\n').unwrap_or(rest);
    if !rest.is_empty() {
        push_literal(signs, "\n");
    }
    rest
}

/// Escapes plain words for Markdown.
pub fn escape_literal(text: &str) -> String {
    if text.len() > LONGEST {
        return text.to_owned();
    }
    let signs: Vec<_> = text.chars().map(|c| Character { c, is_typed: true }).collect();
    to_markdown(&signs, false)
}

/// Converts to Markdown: Slack's marks become Markdown's, and characters with a meaning only in Markdown are escaped.
fn to_markdown(signs: &[Character], has_marks: bool) -> String {
    let mut written = String::new();
    for line in signs.split_inclusive(|sign| sign.c == '\n') {
        write_line(line, has_marks, &mut written);
    }
    written
}

fn write_line(line: &[Character], has_marks: bool, written: &mut String) {
    let marks = if has_marks { find_mark_pairs(line) } else { vec![false; line.len()] };
    let is_mark = |nth: usize, c: char| line.get(nth).is_some_and(|sign| sign.is_typed && sign.c == c);
    let left =
        ['*', '_', '~'].map(|c| (0..line.len()).filter(|nth| is_mark(*nth, c) && !marks[*nth]).count());
    let last_link =
        (1..line.len()).rev().find(|nth| is_mark(*nth, '(') && is_mark(nth - 1, ']')).unwrap_or_default();
    let heading = line.iter().take_while(|sign| sign.is_typed && sign.c == '#').count();
    let is_heading =
        (1..=6).contains(&heading) && line.get(heading).is_none_or(|sign| sign.c.is_whitespace());
    for (nth, Character { c, is_typed }) in line.iter().enumerate() {
        let beside = [nth.checked_sub(1).and_then(|before| line.get(before)), line.get(nth + 1)];
        let is_alone = beside.iter().all(|sign| sign.is_none_or(|sign| sign.c.is_whitespace()));
        let is_within = beside.iter().all(|sign| sign.is_some_and(|sign| sign.c.is_alphanumeric()));
        let is_read = match c {
            '*' => left[0] > 1 && !is_alone,
            '_' => left[1] > 1 && !is_alone && !is_within,
            '~' => left[2] > 1 && !is_alone,
            '#' => nth == 0 && is_heading,
            '\\' => beside[1].is_some_and(|next| next.c.is_ascii_punctuation()),
            '[' => nth < last_link,
            '&' => is_entity(&line[nth + 1..]),
            _ => false,
        };
        match c {
            '*' | '~' if marks[nth] => written.extend([*c, *c]),
            '_' if marks[nth] => written.push('_'),
            _ if *is_typed && is_read => written.extend(['\\', *c]),
            _ => written.push(*c),
        }
    }
}

/// The characters of a line that are marks around words.
fn find_mark_pairs(line: &[Character]) -> Vec<bool> {
    let mut marks = vec![false; line.len()];
    for mark in ['*', '_', '~'] {
        let is_mark = |sign: &Character| sign.is_typed && sign.c == mark;
        let before = |nth: usize| nth.checked_sub(1).map(|before| &line[before]);
        let is_edge =
            |sign: Option<&Character>| sign.is_none_or(|sign| !sign.c.is_alphanumeric() && !is_mark(sign));
        let is_word =
            |sign: Option<&Character>| sign.is_some_and(|sign| !sign.c.is_whitespace() && !is_mark(sign));
        let mut opened = None;
        for nth in (0..line.len()).filter(|nth| is_mark(&line[*nth])) {
            match opened {
                Some(start) if is_word(before(nth)) && is_edge(line.get(nth + 1)) => {
                    marks[start] = true;
                    marks[nth] = true;
                    opened = None;
                }
                None if is_edge(before(nth)) && is_word(line.get(nth + 1)) => opened = Some(nth),
                _ => {}
            }
        }
    }
    marks
}

/// Whether a preceding ampersand would begin an entity.
fn is_entity(rest: &[Character]) -> bool {
    let end = rest.iter().take(32).position(|sign| sign.c == ';');
    end.is_some_and(|end| {
        end > 0 && rest[..end].iter().all(|sign| sign.c.is_ascii_alphanumeric() || sign.c == '#')
    })
}

/// Ends quotes with an empty line: otherwise the next line would continue them.
fn terminate_quotes(text: &str) -> String {
    let (mut ended, mut was_quoted) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        let is_quoted = line.starts_with('>');
        if was_quoted && !is_quoted && !line.trim().is_empty() {
            ended.push('\n');
        }
        ended.push_str(line);
        was_quoted = is_quoted;
    }
    ended
}

/// Removes the empty marks around a removed mention: at the end of the read text, and at the start of the rest.
fn remove_empty_marks<'a>(read: &mut Vec<Character>, mut rest: &'a str) -> &'a str {
    let is_mark = |sign: &&Character| sign.is_typed && matches!(sign.c, '*' | '_' | '~');
    while let Some(mark) = read.last().filter(is_mark).map(|sign| sign.c) {
        // A mark before a space doesn't count.
        let Some(after) = rest.strip_prefix(mark) else { return rest.trim_start_matches(' ') };
        read.pop();
        rest = after;
    }
    rest
}

/// Resolves Slack's three escapes.
pub fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// A link's text and address.
pub fn format_link(words: &str, address: &str) -> String {
    match (words.is_empty(), address.is_empty()) {
        (_, true) => words.to_owned(),
        (true, false) => address.to_owned(),
        _ if is_same_address(address, words) => {
            if address.starts_with("http") { address } else { words }.to_owned()
        }
        _ => format!("{words} ({address})"),
    }
}

/// A moment, in seconds. People see it in their own time zone; the fallback text is for programs without dates.
pub fn format_date(at: Option<i64>, words: &str, address: &str) -> String {
    let at = at.and_then(|at| Timestamp::from_second(at).ok()).map(|at| at.to_string()).unwrap_or_default();
    let said = match (words, at) {
        (words, at) if at.is_empty() || words.contains(&at) => words.to_owned(),
        ("", at) => at,
        (words, at) => format!("{words} ({at})"),
    };
    format_link(&said, address)
}

/// A date as people read it, a group, or everyone.
fn format_command(command: &str, label: &str) -> String {
    if let Some(date) = command.strip_prefix("date^") {
        let mut fields = date.splitn(3, '^');
        let at = fields.next().and_then(|at| at.parse().ok());
        return format_date(at, label, fields.nth(1).unwrap_or_default());
    }
    let group = command.strip_prefix("subteam^").unwrap_or(command);
    format!("@{}", label_or(label, group).trim_start_matches('@'))
}

/// Whether the text is the address itself, as with typed addresses.
fn is_same_address(address: &str, words: &str) -> bool {
    let bare = |text: &str| -> String {
        let text = ["https://", "http://", "mailto:", "tel:"]
            .iter()
            .find_map(|start| text.strip_prefix(start))
            .unwrap_or(text);
        text.trim_end_matches('/').to_owned()
    };
    bare(address) == bare(words)
}

fn label_or<'a>(label: &'a str, id: &'a str) -> &'a str {
    if label.is_empty() { id } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_text() {
        for (text, expected, named) in [
            ("<@U1> hello", "hello", true),
            ("~<@U1>~ hello", "hello", true),
            ("so *_<@U1>_* hello~", "so  hello~", true),
            ("*<@U1> hello*", "**hello**", true),
            ("ask <@U2> in <#C1|general>", "ask @U2 in #general", false),
            (
                "<!here> see <https://a.test/?a=1&amp;b=2|the page> or <https://b.test>",
                "@here see the page (https://a.test/?a=1&b=2) or https://b.test",
                false,
            ),
            ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;", "1 < 2 && 3 > 2 \\&lt;", false),
            ("open < and <", "open < and <", false),
            ("<!subteam^S1|@team> <>", "@team", false),
            ("<!subteam^S1> <!everyone> <!channel|channel>", "@S1 @everyone @channel", false),
            ("on <!date^1392734382^{date_short}|soon>", "on soon (2014-02-18T14:39:42Z)", false),
            (
                "on <!date^1392734382^{date}^https://a.test/|Feb 18>",
                "on Feb 18 (2014-02-18T14:39:42Z) (https://a.test/)",
                false,
            ),
            ("on <!date^1392734382^{date_short}> <!date^x^y>", "on 2014-02-18T14:39:42Z", false),
            (
                "<!date^x^{date}^https://a.test|soon> <!date^99999999999999^{date}|b>",
                "soon (https://a.test) b",
                false,
            ),
            (
                "<mailto:a@b.test|a@b.test> <http://b.test|b.test> <tel:+49|+49>",
                "a@b.test http://b.test +49",
                false,
            ),
            ("<#C1|> <@U2|bob>", "#C1 @bob", false),
            (
                "*bold* _it_ ~no~ *a b*, *<https://b.test|c>*",
                "**bold** _it_ ~~no~~ **a b**, **c (https://b.test)**",
                false,
            ),
            (
                "2*3*4 __init__ snake_case_x ~5 a * b * c",
                "2\\*3\\*4 \\_\\_init\\_\\_ snake_case_x ~5 a * b * c",
                false,
            ),
            ("# no [a](b) &amp;amp; \\*", "\\# no \\[a](b) \\&amp; \\\\*", false),
            ("<https://b.test/_x_*y*>", "https://b.test/_x_*y*", false),
            (
                "&gt; You owe 500\n&gt; now\nI never said so\n\n&gt; b\n\nc",
                "> You owe 500\n> now\n\nI never said so\n\n> b\n\nc",
                false,
            ),
            (
                "so ```a = 1\n*b* &lt; <https://b.test>``` end",
                "so \n```\na = 1\n*b* < https://b.test\n```\nend",
                false,
            ),
            ("&gt; ```a\nb```\nmine", "> ```\n> a\n> b\n> ```\n\nmine", false),
            ("`a*b*` `` ` ```", "`a*b*` `` ` ```", false),
        ] {
            let mut reader = Reader::new(&["U1"]);
            assert_eq!((reader.read(text), reader.is_named), (expected.to_owned(), named), "{text}");
        }
    }
}
