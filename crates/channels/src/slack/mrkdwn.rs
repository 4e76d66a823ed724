//! How Slack writes what people wrote: <https://docs.slack.dev/messaging/formatting-message-text>.

/// Reads a text, without what names us. Also returns whether something does.
pub fn read(text: &str, us: &[&str]) -> (String, bool) {
    let (mut read, mut rest, mut is_named) = (String::new(), text, false);
    while let Some(start) = rest.find('<') {
        let Some(length) = rest[start..].find('>') else { break };
        read.push_str(&rest[..start]);
        let inner = &rest[start + 1..start + length];
        rest = &rest[start + length + 1..];
        let (word, label) = inner.split_once('|').unwrap_or((inner, ""));
        match word.split_at_checked(1) {
            Some(("@", id)) if us.contains(&id) => is_named = true,
            Some(("@", id)) => read.push_str(&format!("@{}", or(label, id))),
            Some(("#", id)) => read.push_str(&format!("#{}", or(label, id))),
            Some(("!", command)) => {
                read.push_str(&format!("@{}", or(label, command).trim_start_matches('@')));
            }
            _ if label.is_empty() || label == word => read.push_str(word),
            _ => read.push_str(&format!("{label} ({word})")),
        }
    }
    read.push_str(rest);
    let read = read.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (read.trim().to_owned(), is_named)
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
            ("ask <@U2> in <#C1|general>", "ask @U2 in #general", false),
            (
                "<!here> see <https://a.test/?a=1&amp;b=2|the page> or <https://b.test>",
                "@here see the page (https://a.test/?a=1&b=2) or https://b.test",
                false,
            ),
            ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;", "1 < 2 && 3 > 2 &lt;", false),
            ("open < and <", "open < and <", false),
            ("<!subteam^S1|@team> <>", "@team", false),
        ] {
            assert_eq!(read(text, &["U1"]), (expected.to_owned(), named), "{text}");
        }
    }
}
