//! Renders a page of the documentation as HTML. The pages are our own, so nothing in them is hostile; text is escaped
//! nevertheless, and hardly any markup passes.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::base::plain::html_escaped;

/// A rendered page.
pub(super) struct Rendered {
    /// Its first heading.
    pub title: String,
    pub html: String,
}

/// Renders a page. `target` is where a link in it leads; without one, only its text stays.
pub(super) fn render(markdown: &str, target: impl Fn(&str) -> Option<String>) -> Rendered {
    let mut writer =
        Writer { target, html: String::new(), title: None, heading: None, alt: None, open: Open::default() };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        writer.write(event);
    }
    Rendered { title: writer.title.unwrap_or_default(), html: writer.html }
}

struct Writer<F> {
    target: F,
    html: String,
    title: Option<String>,
    /// The open heading: where its tag belongs, and its text so far.
    heading: Option<(usize, String)>,
    /// The open picture: its address, and its text so far.
    alt: Option<(String, String)>,
    open: Open,
}

/// What is open and ends differently depending on how it began.
#[derive(Default)]
struct Open {
    has_link: bool,
    is_table_head: bool,
}

impl<F: Fn(&str) -> Option<String>> Writer<F> {
    fn write(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) if self.alt.is_none() => {
                self.html.push_str("<code>");
                self.text(&text);
                self.html.push_str("</code>");
            }
            Event::Code(text) => self.text(&text),
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html.push_str("<br>"),
            Event::InlineHtml(html) if is_kept(&html) => self.html.push_str(&html),
            Event::Rule => self.html.push_str("<hr>"),
            // Comments, and what no page has.
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, alt)) = &mut self.alt {
            return alt.push_str(text);
        }
        if let Some((_, heading)) = &mut self.heading {
            heading.push_str(text);
        }
        self.html.push_str(&html_escaped(text));
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let open = match tag {
            Tag::Paragraph => "<p>",
            Tag::Heading { .. } => {
                self.heading = Some((self.html.len(), String::new()));
                return;
            }
            Tag::BlockQuote(_) => "<blockquote>",
            Tag::CodeBlock(_) => "<pre tabindex=\"0\"><code>",
            Tag::List(None) => "<ul>",
            Tag::List(Some(_)) => "<ol>",
            Tag::Item => "<li>",
            Tag::Table(_) => "<div class=\"table\" tabindex=\"0\"><table>",
            Tag::TableHead => {
                self.open.is_table_head = true;
                "<thead><tr>"
            }
            Tag::TableRow => "<tr>",
            Tag::TableCell if self.open.is_table_head => "<th>",
            Tag::TableCell => "<td>",
            Tag::Emphasis => "<em>",
            Tag::Strong => "<strong>",
            Tag::Strikethrough => "<del>",
            Tag::Link { dest_url, .. } => {
                let target = (self.target)(dest_url);
                self.open.has_link = target.is_some();
                if let Some(target) = target {
                    self.html.push_str(&format!("<a href=\"{}\">", html_escaped(&target)));
                }
                return;
            }
            Tag::Image { dest_url, .. } => {
                self.alt = (self.target)(dest_url).map(|target| (target, String::new()));
                return;
            }
            _ => return,
        };
        self.html.push_str(open);
    }

    fn end(&mut self, tag: TagEnd) {
        let close = match tag {
            TagEnd::Paragraph => "</p>\n",
            TagEnd::Heading(level) => return self.end_heading(level),
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::CodeBlock => "</code></pre>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::List(true) => "</ol>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</tbody></table></div>\n",
            TagEnd::TableHead => {
                self.open.is_table_head = false;
                "</tr></thead><tbody>\n"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell if self.open.is_table_head => "</th>",
            TagEnd::TableCell => "</td>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            TagEnd::Link if self.open.has_link => "</a>",
            TagEnd::Image => {
                if let Some((address, alt)) = self.alt.take() {
                    let picture =
                        format!("<img src=\"{}\" alt=\"{}\">", html_escaped(&address), html_escaped(&alt));
                    self.html.push_str(&picture);
                }
                return;
            }
            _ => return,
        };
        self.html.push_str(close);
    }

    fn end_heading(&mut self, level: HeadingLevel) {
        let Some((start, text)) = self.heading.take() else { return };
        self.html.insert_str(start, &format!("<{level} id=\"{}\">", html_escaped(&anchor(&text))));
        self.html.push_str(&format!("</{level}>\n"));
        self.title.get_or_insert(text);
    }
}

/// Whether markup in a page passes: line breaks, and names of places for links.
fn is_kept(html: &str) -> bool {
    matches!(html, "<br>" | "</a>") || html.starts_with("<a id=\"")
}

/// The name of a heading in links, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    heading.to_lowercase().chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str) -> String {
        render(markdown, |link| (link != "../out").then(|| format!("/docs/{link}"))).html
    }

    #[test]
    fn headings_have_the_names_that_links_use() {
        let page = render("# The `muster` *host*, & more\n\n## Two_words: it's", |_| None);
        assert_eq!(page.title, "The muster host, & more");
        assert!(page.html.contains(
            "<h1 id=\"the-muster-host--more\">The <code>muster</code> <em>host</em>, &amp; more</h1>"
        ));
        assert!(page.html.contains("<h2 id=\"two_words-its\">"), "{}", page.html);
    }

    #[test]
    fn links_lead_to_pages_and_other_markup_does_not_pass() {
        assert_eq!(html("[a](b.md#c) [x](../out)"), "<p><a href=\"/docs/b.md#c\">a</a> x</p>\n");
        assert_eq!(
            html("![a \"b\"](c.png)<br>d"),
            "<p><img src=\"/docs/c.png\" alt=\"a &quot;b&quot;\"><br>d</p>\n"
        );
        assert_eq!(html("a<script>1</script>"), "<p>a1</p>\n");
        assert_eq!(html("<a id=\"b\"></a>**B**"), "<p><a id=\"b\"></a><strong>B</strong></p>\n");
        assert_eq!(
            html("<!-- note -->\n\n```sh\na < b\n```"),
            "<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>\n"
        );
    }

    #[test]
    fn a_table_has_a_head_and_a_body() {
        let expected = "<div class=\"table\" tabindex=\"0\"><table><thead><tr><th>A</th></tr></thead><tbody>\n\
                        <tr><td><code>b</code></td></tr>\n</tbody></table></div>\n";
        assert_eq!(html("| A |\n|---|\n| `b` |"), expected);
    }
}
