//! How Slack writes what people wrote: <https://docs.slack.dev/messaging/formatting-message-text>.

use jiff::Timestamp;

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

    /// Reads a text.
    pub fn read(&mut self, text: &str) -> String {
        let (mut read, mut rest) = (String::new(), text);
        while let Some(start) = rest.find('<') {
            let Some(length) = rest[start..].find('>') else { break };
            read.push_str(&rest[..start]);
            let words = self.command(&rest[start + 1..start + length]);
            rest = &rest[start + length + 1..];
            if words.is_empty() {
                rest = without_marks(&mut read, rest);
            }
            read.push_str(&words);
        }
        read.push_str(rest);
        unescaped(&read).trim().to_owned()
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

/// Takes away marks around nothing, as they are left where we were named: at the end of what was read, and at the start of the rest.
fn without_marks<'a>(read: &mut String, mut rest: &'a str) -> &'a str {
    for mark in read.chars().rev().take_while(|c| matches!(c, '*' | '_' | '~')).collect::<Vec<_>>() {
        let Some(after) = rest.strip_prefix(mark) else { break };
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

/// A date as people read it, a group, or everyone.
fn special(command: &str, label: &str) -> String {
    if let Some(date) = command.strip_prefix("date^") {
        let at = date.split('^').next().and_then(|at| at.parse().ok());
        let at = at.and_then(|at| Timestamp::from_second(at).ok());
        return if label.is_empty() {
            at.map(|at| at.to_string()).unwrap_or_default()
        } else {
            label.to_owned()
        };
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
            ("*<@U1> hello*", "* hello*", true),
            ("ask <@U2> in <#C1|general>", "ask @U2 in #general", false),
            (
                "<!here> see <https://a.test/?a=1&amp;b=2|the page> or <https://b.test>",
                "@here see the page (https://a.test/?a=1&b=2) or https://b.test",
                false,
            ),
            ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;", "1 < 2 && 3 > 2 &lt;", false),
            ("open < and <", "open < and <", false),
            ("<!subteam^S1|@team> <>", "@team", false),
            ("<!subteam^S1> <!everyone> <!channel|channel>", "@S1 @everyone @channel", false),
            ("on <!date^1392734382^{date_short}|Feb 18, 2014>", "on Feb 18, 2014", false),
            ("on <!date^1392734382^{date}^https://a.test/|Feb 18>", "on Feb 18", false),
            ("on <!date^1392734382^{date_short}> <!date^x^y>", "on 2014-02-18T14:39:42Z", false),
            (
                "<mailto:a@b.test|a@b.test> <http://b.test|b.test> <tel:+49|+49>",
                "a@b.test http://b.test +49",
                false,
            ),
            ("<#C1|> <@U2|bob>", "#C1 @bob", false),
        ] {
            let mut reader = Reader::new(&["U1"]);
            assert_eq!((reader.read(text), reader.is_named), (expected.to_owned(), named), "{text}");
        }
    }
}
