//! How Slack writes what people wrote: <https://docs.slack.dev/messaging/formatting-message-text>.

use jiff::Timestamp;

use crate::quoted::{coded, fenced};

/// The longest text whose marks are read, in bytes. Slack cuts texts after 40,000 characters, but whoever has a channel's secret may
/// send more, and signs take many times the memory of their text.
const LONGEST: usize = 200_000;

/// Reads texts, without what names us.
pub struct Reader<'a> {
    us: &'a [&'a str],
    /// Whether one of them names us.
    pub is_named: bool,
}

impl<'a> Reader<'a> {
    /// A reader for these users of ours.
    pub fn new(us: &'a [&'a str]) -> Self {
        Self { us, is_named: false }
    }

    /// Whether this is a user of ours, who is named then.
    pub fn is_us(&mut self, id: &str) -> bool {
        let is_us = self.us.contains(&id);
        self.is_named |= is_us;
        is_us
    }

    /// Reads a text, as Markdown.
    pub fn read(&mut self, text: &str) -> String {
        if text.len() > LONGEST {
            return self.without_commands(text).trim().to_owned();
        }
        let signs = self.signs(text);
        end_quotes(&marked(&signs, true)).trim().to_owned()
    }

    fn signs(&mut self, text: &str) -> Vec<Sign> {
        let (mut signs, mut rest) = (Vec::new(), text);
        // Once one is not closed, no later one is.
        let (mut has_blocks, mut has_commands) = (true, true);
        while let Some(c) = rest.chars().next() {
            if has_blocks && rest.starts_with("```") {
                match rest[3..].split_once("```") {
                    Some((code, after)) if !code.trim().is_empty() => {
                        let code = self.without_commands(code);
                        rest = put_block(&mut signs, &code, after);
                        continue;
                    }
                    found => has_blocks = found.is_some(),
                }
            } else if let Some((code, after)) = code_at(rest) {
                write(&mut signs, &coded(&self.without_commands(code)));
                rest = after;
                continue;
            } else if has_commands && c == '<' {
                if let Some((inner, after)) = rest[1..].split_once('>') {
                    let words = unescaped(&self.command(inner));
                    rest = if words.is_empty() { without_marks(&mut signs, after) } else { after };
                    write(&mut signs, &words);
                    continue;
                }
                has_commands = false;
            }
            let escaped = ESCAPED.iter().find(|(written, _)| rest.starts_with(written));
            let (length, c) = escaped.map_or((c.len_utf8(), c), |(written, c)| (written.len(), *c));
            signs.push(Sign { c, is_typed: true });
            rest = &rest[length..];
        }
        signs
    }

    /// Code as it is seen.
    fn without_commands(&mut self, code: &str) -> String {
        let (mut read, mut rest) = (String::new(), code);
        while let Some((before, (inner, after))) =
            rest.split_once('<').and_then(|(before, rest)| Some((before, rest.split_once('>')?)))
        {
            read.push_str(before);
            read.push_str(&self.command(inner));
            rest = after;
        }
        unescaped(&(read + rest))
    }

    /// What stands between `<` and `>`.
    fn command(&mut self, inner: &str) -> String {
        let (word, label) = inner.split_once('|').unwrap_or((inner, ""));
        match word.split_at_checked(1) {
            Some(("@", id)) if self.is_us(id) => String::new(),
            Some(("@", id)) => format!("@{}", or(label, id)),
            Some(("#", id)) => format!("#{}", or(label, id)),
            Some(("!", command)) => special(command, label),
            _ => link(label, word),
        }
    }
}

/// A character of a text. What people typed may be a mark; what we made of a command or of code is none.
struct Sign {
    c: char,
    is_typed: bool,
}

/// What Slack escapes.
const ESCAPED: [(&str, char); 3] = [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&')];

fn write(signs: &mut Vec<Sign>, words: &str) {
    signs.extend(words.chars().map(|c| Sign { c, is_typed: false }));
}

/// Code within a line that a text begins with, and the rest.
fn code_at(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('`')?;
    let end = inner.find(['`', '\n'])?;
    let (code, after) = inner.split_at(end);
    after.strip_prefix('`').filter(|_| !code.is_empty()).map(|after| (code, after))
}

/// Adds a block of code on lines of its own, within a quote if one is open. Returns the rest behind it.
fn put_block<'a>(signs: &mut Vec<Sign>, code: &str, after: &'a str) -> &'a str {
    let start = signs.iter().rposition(|sign| sign.c == '\n').map_or(0, |end| end + 1);
    let is_quoted = signs.get(start).is_some_and(|sign| sign.c == '>');
    let is_beside = |sign: &Sign| sign.c.is_whitespace() || is_quoted && sign.c == '>';
    if !signs[start..].iter().all(is_beside) {
        write(signs, "\n");
    } else if is_quoted {
        signs.truncate(start);
    }
    let block = fenced(code.trim_matches('\n'), "");
    let block = if is_quoted {
        block.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
    } else {
        block
    };
    write(signs, &block);
    let rest = after.trim_start_matches(' ');
    let rest = rest.strip_prefix('\n').unwrap_or(rest);
    if !rest.is_empty() {
        write(signs, "\n");
    }
    rest
}

/// Words that are no Markdown, as Markdown.
pub fn literal(text: &str) -> String {
    if text.len() > LONGEST {
        return text.to_owned();
    }
    let signs: Vec<_> = text.chars().map(|c| Sign { c, is_typed: true }).collect();
    marked(&signs, false)
}

/// A text as Markdown: Slack's marks are those of Markdown if they are any, and what only Markdown would read is escaped.
fn marked(signs: &[Sign], has_marks: bool) -> String {
    let mut written = String::new();
    for line in signs.split_inclusive(|sign| sign.c == '\n') {
        write_line(line, has_marks, &mut written);
    }
    written
}

fn write_line(line: &[Sign], has_marks: bool, written: &mut String) {
    let marks = if has_marks { pairs(line) } else { vec![false; line.len()] };
    let is_mark = |nth: usize, c: char| line.get(nth).is_some_and(|sign| sign.is_typed && sign.c == c);
    let left =
        ['*', '_', '~'].map(|c| (0..line.len()).filter(|nth| is_mark(*nth, c) && !marks[*nth]).count());
    let last_link =
        (1..line.len()).rev().find(|nth| is_mark(*nth, '(') && is_mark(nth - 1, ']')).unwrap_or_default();
    let heading = line.iter().take_while(|sign| sign.is_typed && sign.c == '#').count();
    let is_heading =
        (1..=6).contains(&heading) && line.get(heading).is_none_or(|sign| sign.c.is_whitespace());
    for (nth, Sign { c, is_typed }) in line.iter().enumerate() {
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

/// Which signs of a line are marks around words.
fn pairs(line: &[Sign]) -> Vec<bool> {
    let mut marks = vec![false; line.len()];
    for mark in ['*', '_', '~'] {
        let is_mark = |sign: &Sign| sign.is_typed && sign.c == mark;
        let before = |nth: usize| nth.checked_sub(1).map(|before| &line[before]);
        let is_edge =
            |sign: Option<&Sign>| sign.is_none_or(|sign| !sign.c.is_alphanumeric() && !is_mark(sign));
        let is_word =
            |sign: Option<&Sign>| sign.is_some_and(|sign| !sign.c.is_whitespace() && !is_mark(sign));
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

/// Whether an ampersand before these would begin a character's name.
fn is_entity(rest: &[Sign]) -> bool {
    let end = rest.iter().take(32).position(|sign| sign.c == ';');
    end.is_some_and(|end| {
        end > 0 && rest[..end].iter().all(|sign| sign.c.is_ascii_alphanumeric() || sign.c == '#')
    })
}

/// A text whose quotes end where they do: without an empty line, the next line would go on with one.
fn end_quotes(text: &str) -> String {
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

/// Takes away marks around nothing, as they are left where we were named: at the end of what was read, and at the start of the rest.
fn without_marks<'a>(read: &mut Vec<Sign>, mut rest: &'a str) -> &'a str {
    let is_mark = |sign: &&Sign| sign.is_typed && matches!(sign.c, '*' | '_' | '~');
    while let Some(mark) = read.last().filter(is_mark).map(|sign| sign.c) {
        // A mark before a space is none.
        let Some(after) = rest.strip_prefix(mark) else { return rest.trim_start_matches(' ') };
        read.pop();
        rest = after;
    }
    rest
}

/// A text as it was written: Slack escapes three signs.
pub fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Words and where they lead.
pub fn link(words: &str, address: &str) -> String {
    match (words.is_empty(), address.is_empty()) {
        (_, true) => words.to_owned(),
        (true, false) => address.to_owned(),
        _ if is_same(address, words) => if address.starts_with("http") { address } else { words }.to_owned(),
        _ => format!("{words} ({address})"),
    }
}

/// A moment, in seconds. Each reader sees it in their own time, and not the words, which are for programs that show none.
pub fn dated(at: Option<i64>, words: &str, address: &str) -> String {
    let at = at.and_then(|at| Timestamp::from_second(at).ok()).map(|at| at.to_string()).unwrap_or_default();
    let said = match (words, at) {
        (words, at) if at.is_empty() || words.contains(&at) => words.to_owned(),
        ("", at) => at,
        (words, at) => format!("{words} ({at})"),
    };
    link(&said, address)
}

/// A date as people read it, a group, or everyone.
fn special(command: &str, label: &str) -> String {
    if let Some(date) = command.strip_prefix("date^") {
        let mut fields = date.splitn(3, '^');
        let at = fields.next().and_then(|at| at.parse().ok());
        return dated(at, label, fields.nth(1).unwrap_or_default());
    }
    let group = command.strip_prefix("subteam^").unwrap_or(command);
    format!("@{}", or(label, group).trim_start_matches('@'))
}

/// Whether words are the address itself, as Slack marks one that people type.
fn is_same(address: &str, words: &str) -> bool {
    let bare = |text: &str| -> String {
        let text = ["https://", "http://", "mailto:", "tel:"]
            .iter()
            .find_map(|start| text.strip_prefix(start))
            .unwrap_or(text);
        text.trim_end_matches('/').to_owned()
    };
    bare(address) == bare(words)
}

fn or<'a>(label: &'a str, id: &'a str) -> &'a str {
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
