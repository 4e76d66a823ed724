//! How each dialect writes marks and text.

use std::borrow::Cow;

use super::pieces::Mark;
use crate::contract::Dialect;

/// What one mark is in one dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Before the text.
    pub open: Cow<'static, str>,
    /// Before it, where a part goes on with what another one began.
    pub again: Option<Cow<'static, str>>,
    /// After the text.
    pub close: Cow<'static, str>,
    /// At the beginning of each further line.
    pub prefix: Cow<'static, str>,
}

impl Form {
    /// How long all of it is at the very most.
    pub fn at_most(&self) -> usize {
        self.open.len()
            + self.again.as_ref().map_or(0, |again| again.len())
            + self.close.len()
            + self.prefix.len()
    }

    /// What stands before the text.
    pub fn beginning(&self, is_continued: bool) -> &str {
        match &self.again {
            Some(again) if is_continued => again,
            _ => &self.open,
        }
    }
}

fn around(open: impl Into<Cow<'static, str>>, close: impl Into<Cow<'static, str>>) -> Form {
    Form { open: open.into(), close: close.into(), ..Form::default() }
}

fn before_lines(first: impl Into<Cow<'static, str>>, others: impl Into<Cow<'static, str>>) -> Form {
    let (open, prefix) = (first.into(), others.into());
    Form { open, again: Some(prefix.clone()), prefix, ..Form::default() }
}

/// The form of a mark. `inside` are the marks around it.
pub fn form(dialect: Dialect, mark: &Mark, inside: &[Mark]) -> Form {
    match dialect {
        Dialect::Html => html(mark),
        Dialect::TelegramHtml => telegram(mark, inside),
        Dialect::Mrkdwn => mrkdwn(mark, inside),
        Dialect::Markdown => markdown(mark),
        Dialect::Plain => plain(mark),
    }
}

fn html(mark: &Mark) -> Form {
    match mark {
        Mark::Paragraph => around("<p>", "</p>\n"),
        Mark::Heading(level) => around(format!("<h{level}>"), format!("</h{level}>\n")),
        Mark::Strong => around("<strong>", "</strong>"),
        Mark::Emphasis => around("<em>", "</em>"),
        Mark::Strike => around("<s>", "</s>"),
        Mark::Code => around("<code>", "</code>"),
        Mark::Pre(_) => around("<pre><code>", "</code></pre>\n"),
        Mark::Quote => around("<blockquote>\n", "</blockquote>\n"),
        Mark::List(None) => around("<ul>\n", "</ul>\n"),
        Mark::List(Some(1)) => around("<ol>\n", "</ol>\n"),
        Mark::List(Some(first)) => around(format!("<ol start=\"{first}\">\n"), "</ol>\n"),
        Mark::Item(_) => around("<li>", "</li>\n"),
        Mark::Link(url) => around(format!("<a href=\"{}\">", escape_html(url)), "</a>"),
        Mark::Table => around("<table border=\"1\" cellpadding=\"4\">\n", "</table>\n"),
        Mark::Row => around("<tr>", "</tr>\n"),
        Mark::Cell => around("<td>", "</td>"),
    }
}

/// <https://core.telegram.org/bots/api#html-style>. Quotes can't be nested, and headings are bold.
fn telegram(mark: &Mark, inside: &[Mark]) -> Form {
    let quoted = inside.contains(&Mark::Quote);
    match mark {
        Mark::Heading(_) | Mark::Strong if !is_bold(inside) => around("<b>", "</b>"),
        Mark::Emphasis => around("<i>", "</i>"),
        Mark::Strike => around("<s>", "</s>"),
        Mark::Code => around("<code>", "</code>"),
        Mark::Pre(language) if language.is_empty() => around("<pre>", "</pre>"),
        Mark::Pre(language) => around(format!("<pre><code class=\"language-{language}\">"), "</code></pre>"),
        Mark::Quote if !quoted => around("<blockquote>", "</blockquote>"),
        Mark::Link(url) => around(format!("<a href=\"{}\">", escape_html(url)), "</a>"),
        Mark::Item(number) => item(*number, "• "),
        _ => Form::default(),
    }
}

fn is_bold(inside: &[Mark]) -> bool {
    inside.iter().any(|outer| matches!(outer, Mark::Strong | Mark::Heading(_)))
}

/// <https://docs.slack.dev/messaging/formatting-message-text>
fn mrkdwn(mark: &Mark, inside: &[Mark]) -> Form {
    match mark {
        Mark::Heading(_) | Mark::Strong if !is_bold(inside) => around("*", "*"),
        Mark::Emphasis => around("_", "_"),
        Mark::Strike => around("~", "~"),
        Mark::Code => around("`", "`"),
        Mark::Pre(_) => around("```\n", "\n```"),
        Mark::Quote => before_lines("> ", "> "),
        Mark::Link(url) => around(format!("<{}|", escape_html(url).replace('|', "%7C")), ">"),
        Mark::Item(number) => item(*number, "• "),
        _ => Form::default(),
    }
}

fn markdown(mark: &Mark) -> Form {
    match mark {
        Mark::Heading(level) => around(format!("{} ", "#".repeat(usize::from(*level))), ""),
        Mark::Strong => around("**", "**"),
        Mark::Emphasis => around("*", "*"),
        Mark::Strike => around("~~", "~~"),
        Mark::Code => around("`", "`"),
        Mark::Pre(language) => around(format!("````{language}\n"), "\n````"),
        Mark::Quote => before_lines("> ", "> "),
        Mark::Link(url) => around("[", format!("](<{url}>)")),
        Mark::Item(number) => item(*number, "- "),
        _ => Form::default(),
    }
}

/// Without any marks, but readable: also what stands beside each other dialect.
pub fn plain(mark: &Mark) -> Form {
    match mark {
        Mark::Quote => before_lines("> ", "> "),
        Mark::Link(url) => around("", format!(" ({url})")),
        Mark::Item(number) => item(*number, "• "),
        _ => Form::default(),
    }
}

fn item(number: Option<u64>, bullet: &'static str) -> Form {
    match number {
        Some(number) => before_lines(format!("{number}. "), "   "),
        None => before_lines(bullet, "  "),
    }
}

/// A text, as the dialect has to write it.
pub fn escape(dialect: Dialect, text: &str, in_code: bool) -> String {
    match dialect {
        Dialect::Html | Dialect::TelegramHtml => escape_html(text),
        // Nothing escapes a backtick: an invisible sign keeps three of them apart.
        Dialect::Mrkdwn if in_code => escape_tags(text).replace('`', "`\u{2060}"),
        Dialect::Mrkdwn => hold_apart(&escape_tags(text)),
        Dialect::Markdown if in_code => text.replace('`', "`\u{2060}"),
        Dialect::Markdown => escape_markdown(text),
        Dialect::Plain => text.to_owned(),
    }
}

fn escape_html(text: &str) -> String {
    escape_tags(text).replace('"', "&quot;")
}

fn escape_tags(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// mrkdwn can't escape its signs, and reads them at the edges of words alone: an invisible sign on both sides takes the
/// edge away. Within a word they stay as they are, so that `snake_case` can be copied.
fn hold_apart(text: &str) -> String {
    let mut held = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let in_word =
            [before, rest.peek().copied()].iter().all(|beside| beside.is_some_and(char::is_alphanumeric));
        match c {
            '*' | '_' | '~' | '`' if !in_word => held.extend(['\u{2060}', c, '\u{2060}']),
            _ => held.push(c),
        }
        before = Some(c);
    }
    held
}

fn escape_markdown(text: &str) -> String {
    let special = |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '~' | '#' | '|');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
