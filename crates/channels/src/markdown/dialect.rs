//! Markup and escaping of each dialect.

use std::borrow::Cow;

use super::pieces::Mark;
use crate::contract::Dialect;

/// A mark in one dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub open: Cow<'static, str>,
    /// Opens the mark again in the next part.
    pub again: Option<Cow<'static, str>>,
    pub close: Cow<'static, str>,
    /// Begins each further line.
    pub prefix: Cow<'static, str>,
}

impl Form {
    /// Upper bound of the form's length.
    pub fn max_length(&self) -> usize {
        self.open.len()
            + self.again.as_ref().map_or(0, |again| again.len())
            + self.close.len()
            + self.prefix.len()
    }

    /// The opening, or the reopening in a later part.
    pub fn opening(&self, is_continued: bool) -> &str {
        match &self.again {
            Some(again) if is_continued => again,
            _ => &self.open,
        }
    }
}

fn wrapped(open: impl Into<Cow<'static, str>>, close: impl Into<Cow<'static, str>>) -> Form {
    Form { open: open.into(), close: close.into(), ..Form::default() }
}

fn prefixed_with(first: impl Into<Cow<'static, str>>, others: impl Into<Cow<'static, str>>) -> Form {
    let (open, prefix) = (first.into(), others.into());
    Form { open, again: Some(prefix.clone()), prefix, ..Form::default() }
}

/// The form of a mark inside of others.
pub fn form(dialect: Dialect, mark: &Mark, inside: &[Mark]) -> Form {
    match dialect {
        Dialect::Discord => discord(mark, inside),
        Dialect::Html => html(mark),
        Dialect::TelegramHtml => telegram(mark, inside),
        Dialect::Mrkdwn => mrkdwn(mark, inside),
        Dialect::Markdown => markdown(mark),
        Dialect::Plain => plain(mark),
    }
}

fn html(mark: &Mark) -> Form {
    match mark {
        Mark::Paragraph => wrapped("<p>", "</p>\n"),
        Mark::Heading(level) => wrapped(format!("<h{level}>"), format!("</h{level}>\n")),
        Mark::Strong => wrapped("<strong>", "</strong>"),
        Mark::Emphasis => wrapped("<em>", "</em>"),
        Mark::Strike => wrapped("<s>", "</s>"),
        Mark::Code => wrapped("<code>", "</code>"),
        Mark::Pre(_) => wrapped("<pre><code>", "</code></pre>\n"),
        Mark::Quote => wrapped("<blockquote>\n", "</blockquote>\n"),
        Mark::List(None) => wrapped("<ul>\n", "</ul>\n"),
        Mark::List(Some(1)) => wrapped("<ol>\n", "</ol>\n"),
        Mark::List(Some(first)) => wrapped(format!("<ol start=\"{first}\">\n"), "</ol>\n"),
        Mark::Item(_) => wrapped("<li>", "</li>\n"),
        Mark::Link(url) => wrapped(format!("<a href=\"{}\">", escape_html(url)), "</a>"),
        Mark::Table => wrapped("<table border=\"1\" cellpadding=\"4\">\n", "</table>\n"),
        Mark::Row => wrapped("<tr>", "</tr>\n"),
        Mark::Cell => wrapped("<td>", "</td>"),
    }
}

/// Markdown with three levels of headings, and fences of three backticks.
fn discord(mark: &Mark, inside: &[Mark]) -> Form {
    match mark {
        Mark::Strong | Mark::Heading(4..) if is_bold(inside) => Form::default(),
        Mark::Heading(4..) => wrapped("**", "**"),
        Mark::Pre(language) => wrapped(format!("```{language}\n"), "\n```"),
        _ => markdown(mark),
    }
}

/// <https://core.telegram.org/bots/api#html-style>. Quotes can't be nested, and headings are bold.
fn telegram(mark: &Mark, inside: &[Mark]) -> Form {
    let quoted = inside.contains(&Mark::Quote);
    match mark {
        Mark::Heading(_) | Mark::Strong if !is_bold(inside) => wrapped("<b>", "</b>"),
        Mark::Emphasis => wrapped("<i>", "</i>"),
        Mark::Strike => wrapped("<s>", "</s>"),
        Mark::Code => wrapped("<code>", "</code>"),
        Mark::Pre(language) if language.is_empty() => wrapped("<pre>", "</pre>"),
        Mark::Pre(language) => wrapped(format!("<pre><code class=\"language-{language}\">"), "</code></pre>"),
        Mark::Quote if !quoted => wrapped("<blockquote>", "</blockquote>"),
        Mark::Link(url) => wrapped(format!("<a href=\"{}\">", escape_html(url)), "</a>"),
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
        Mark::Heading(_) | Mark::Strong if !is_bold(inside) => wrapped("*", "*"),
        Mark::Emphasis => wrapped("_", "_"),
        Mark::Strike => wrapped("~", "~"),
        Mark::Code => wrapped("`", "`"),
        Mark::Pre(_) => wrapped("```\n", "\n```"),
        Mark::Quote => prefixed_with("> ", "> "),
        Mark::Link(url) => wrapped(format!("<{}|", escape_html(url).replace('|', "%7C")), ">"),
        Mark::Item(number) => item(*number, "• "),
        _ => Form::default(),
    }
}

fn markdown(mark: &Mark) -> Form {
    match mark {
        Mark::Heading(level) => wrapped(format!("{} ", "#".repeat(usize::from(*level))), ""),
        Mark::Strong => wrapped("**", "**"),
        Mark::Emphasis => wrapped("*", "*"),
        Mark::Strike => wrapped("~~", "~~"),
        Mark::Code => wrapped("`", "`"),
        Mark::Pre(language) => wrapped(format!("````{language}\n"), "\n````"),
        Mark::Quote => prefixed_with("> ", "> "),
        Mark::Link(url) => wrapped("[", format!("](<{url}>)")),
        Mark::Item(number) => item(*number, "- "),
        _ => Form::default(),
    }
}

/// No markup, but readable: also the alternative beside each other dialect.
pub fn plain(mark: &Mark) -> Form {
    match mark {
        Mark::Quote => prefixed_with("> ", "> "),
        Mark::Link(url) => wrapped("", format!(" ({url})")),
        Mark::Item(number) => item(*number, "• "),
        _ => Form::default(),
    }
}

fn item(number: Option<u64>, bullet: &'static str) -> Form {
    match number {
        Some(number) => prefixed_with(format!("{number}. "), "   "),
        None => prefixed_with(bullet, "  "),
    }
}

pub fn escape(dialect: Dialect, text: &str, in_code: bool) -> String {
    match dialect {
        Dialect::Html | Dialect::TelegramHtml => escape_html(text),
        // A backtick can't be escaped: an invisible character keeps three of them apart.
        Dialect::Mrkdwn if in_code => escape_tags(text).replace('`', "`\u{2060}"),
        Dialect::Mrkdwn => disable_marks(&escape_tags(text)),
        Dialect::Discord | Dialect::Markdown if in_code => text.replace('`', "`\u{2060}"),
        Dialect::Discord => escape_outside_url(text),
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

/// mrkdwn has no escapes, and reads its marks only at word edges: an invisible character on both sides removes the
/// edge. Within a word marks stay as they are, so that `snake_case` can be copied.
fn disable_marks(text: &str) -> String {
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

/// Discord links an address up to the next `<`, with any backslashes in it.
fn escape_outside_url(word: &str) -> String {
    let begin = ["https://", "http://"].iter().filter_map(|scheme| word.find(scheme)).min();
    let (before, address) = word.split_at(begin.unwrap_or(word.len()));
    let (address, after) = address.split_at(address.find('<').unwrap_or(address.len()));
    format!("{}{address}{}", escape_markdown(before), escape_markdown(after))
}

fn escape_markdown(text: &str) -> String {
    let special = |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '~' | '#' | '|');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
