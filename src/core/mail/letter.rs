//! Letters: built-in templates, filled in, in two forms.
//!
//! A template is plain text. Its first line is the subject, the paragraph `{{link}}` becomes a button in the HTML form,
//! and `{{items}}` stands for a list of paragraphs. Both forms come from one text, so they can't differ. Values are
//! inserted in one pass (a value that looks like a placeholder stays as it is), lose their control characters and those
//! that change the direction of text, and are escaped in HTML.

use crate::base::plain::html_escaped;

/// The frame of the HTML form.
const LAYOUT: &str = include_str!("templates/layout.html");

/// The text of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Asks someone to confirm their address.
    ConfirmEmail,
    /// Contains a link for setting a new password.
    ResetPassword,
    /// Invites someone to an organization.
    Invitation,
    /// Reports something that happened to an account.
    Notice,
    /// Lists what waits for a person.
    Notifications,
    /// Reports that an event endpoint was switched off.
    EventEndpointOff,
}

impl Template {
    pub const ALL: [Self; 6] = [
        Self::ConfirmEmail,
        Self::ResetPassword,
        Self::Invitation,
        Self::Notice,
        Self::Notifications,
        Self::EventEndpointOff,
    ];

    const fn text(self) -> &'static str {
        match self {
            Self::ConfirmEmail => include_str!("templates/confirm_email.txt"),
            Self::ResetPassword => include_str!("templates/reset_password.txt"),
            Self::Invitation => include_str!("templates/invitation.txt"),
            Self::Notice => include_str!("templates/notice.txt"),
            Self::Notifications => include_str!("templates/notifications.txt"),
            Self::EventEndpointOff => include_str!("templates/event_endpoint_off.txt"),
        }
    }
}

/// A letter ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The subject: one line.
    pub subject: String,
    pub text: String,
    /// The same in HTML.
    pub html: String,
}

/// A paragraph of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paragraph {
    Text(String),
    /// A URL, shown as a button.
    Link(String),
}

impl Letter {
    /// The template with these values, given as name and value.
    #[must_use]
    pub fn write(template: Template, values: &[(&str, &str)]) -> Self {
        Self::with_items(template, values, &[])
    }

    /// The same, with these paragraphs where the template has `{{items}}`. A paragraph that comes out empty is left
    /// out.
    #[must_use]
    pub fn with_items(template: Template, values: &[(&str, &str)], items: &[Paragraph]) -> Self {
        let (subject, body) = template.text().split_once('\n').unwrap_or_default();
        let mut paragraphs = Vec::new();
        for paragraph in body.trim().split("\n\n") {
            match paragraph {
                "{{items}}" => paragraphs.extend(items.iter().map(|item| match item {
                    Paragraph::Text(text) => Paragraph::Text(plain(text).collect()),
                    Paragraph::Link(url) => Paragraph::Link(plain(url).collect()),
                })),
                // Only the template can create a link: values may come from anyone.
                "{{link}}" => paragraphs.push(Paragraph::Link(fill(paragraph, values))),
                text => paragraphs.push(Paragraph::Text(fill(text, values))),
            }
        }
        paragraphs.retain(|paragraph| !paragraph.text().trim().is_empty());
        let subject = fill(subject, values);
        let html: String = paragraphs.iter().map(in_html).collect();
        // The body first: a subject contains names, which may be anything.
        let html = LAYOUT.replacen("{{body}}", &html, 1).replacen("{{title}}", &html_escaped(&subject), 1);
        let texts: Vec<&str> = paragraphs.iter().map(Paragraph::text).collect();
        Self { subject, text: texts.join("\n\n") + "\n", html }
    }
}

impl Paragraph {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Link(text) => text,
        }
    }
}

/// Inserts the values in one pass.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 200);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        let value = values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        out.extend(plain(value));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A value without line breaks and other control characters, and without those that change the direction of text.
fn plain(value: &str) -> impl Iterator<Item = char> {
    value.chars().filter(|letter| !turns_text(*letter)).map(|letter| match letter {
        '\u{2028}' | '\u{2029}' => ' ',
        letter if letter.is_control() => ' ',
        letter => letter,
    })
}

const fn turns_text(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn in_html(paragraph: &Paragraph) -> String {
    let escaped = html_escaped(paragraph.text());
    match paragraph {
        Paragraph::Link(_) => format!("<p><a class=\"button\" href=\"{escaped}\">{escaped}</a></p>\n"),
        Paragraph::Text(_) => format!("<p>{}</p>\n", escaped.replace('\n', "<br>\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_once_and_escaped() {
        let values = [
            ("organization", "<b>{{inviter}}</b>\r\nBcc: x@example.com"),
            ("inviter", "O'Neill & Co"),
            ("link", "https://muster.example/accept-invitation#token=abc"),
        ];
        let letter = Letter::write(Template::Invitation, &values);
        assert!(!letter.subject.contains(['\r', '\n']), "{:?}", letter.subject);
        assert!(letter.subject.contains("<b>{{inviter}}</b>  Bcc: x@example.com"), "{}", letter.subject);
        assert!(letter.text.contains("O'Neill & Co"), "{}", letter.text);
        assert!(letter.html.contains("O&#39;Neill &amp; Co"), "{}", letter.html);
        assert!(letter.html.contains("&lt;b&gt;{{inviter}}&lt;/b&gt;") && !letter.html.contains("<b>"));
        let link = "href=\"https://muster.example/accept-invitation#token=abc\"";
        assert!(letter.html.contains(link), "{}", letter.html);
    }

    #[test]
    fn a_name_takes_no_place_of_the_layout() {
        let values = [("organization", "{{body}}{{title}}"), ("link", "https://muster.example/x")];
        let html = Letter::write(Template::Invitation, &values).html;
        let (head, body) = html.split_once("</head>").unwrap();
        assert!(head.contains("{{body}}{{title}}") && body.contains("https://muster.example/x"), "{html}");
    }

    #[test]
    fn the_words_of_others_become_no_link_and_turn_no_text() {
        let bad = "https://evil.example/\u{202e}gpj.exe\u{2028}";
        let items =
            [Paragraph::Text(bad.to_owned()), Paragraph::Link("https://muster.example/o/1".to_owned())];
        let letter = Letter::with_items(Template::Notifications, &[("name", bad), ("more", "")], &items);
        assert_eq!(letter.html.matches("href=").count(), 1, "{}", letter.html);
        assert!(letter.html.contains("href=\"https://muster.example/o/1\""), "{}", letter.html);
        assert!(!letter.text.contains(['\u{202e}', '\u{2028}']), "{}", letter.text);
        assert!(!letter.text.contains("\n\n\n"), "an empty paragraph is left out: {}", letter.text);
    }

    #[test]
    fn every_template_has_a_subject_and_a_text() {
        for template in Template::ALL {
            let letter = Letter::write(template, &[("subject", "Something")]);
            assert!(letter.subject.len() > 5 && letter.text.len() > 40, "{letter:?}");
            assert!(!letter.html.contains("{{") && letter.html.contains("</html>"), "{}", letter.html);
        }
    }
}
