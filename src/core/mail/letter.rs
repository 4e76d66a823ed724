//! Letters: built-in templates, filled in, in two forms.
//!
//! A template is plain text. Its first line is the subject, and a paragraph that consists of a URL becomes a button in
//! the HTML form. Both forms come from one text, so they can't differ. Values are inserted in one pass (a value that
//! looks like a placeholder stays as it is), lose their control characters, and are escaped in HTML.

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
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 4] = [Self::ConfirmEmail, Self::ResetPassword, Self::Invitation, Self::Notice];

    const fn text(self) -> &'static str {
        match self {
            Self::ConfirmEmail => include_str!("templates/confirm_email.txt"),
            Self::ResetPassword => include_str!("templates/reset_password.txt"),
            Self::Invitation => include_str!("templates/invitation.txt"),
            Self::Notice => include_str!("templates/notice.txt"),
        }
    }
}

/// A letter ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The subject: one line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The same in HTML.
    pub html: String,
}

impl Letter {
    /// The template with these values, given as name and value.
    #[must_use]
    pub fn write(template: Template, values: &[(&str, &str)]) -> Self {
        let (subject, body) = template.text().split_once('\n').unwrap_or_default();
        let paragraphs: Vec<String> =
            body.trim().split("\n\n").map(|paragraph| fill(paragraph, values)).collect();
        let subject = fill(subject, values);
        let html: String = paragraphs.iter().map(|paragraph| in_html(paragraph)).collect();
        let html = LAYOUT.replacen("{{title}}", &escape(&subject), 1).replacen("{{body}}", &html, 1);
        Self { subject, text: paragraphs.join("\n\n") + "\n", html }
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
        out.extend(value.chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn in_html(paragraph: &str) -> String {
    let escaped = escape(paragraph);
    let is_link = ["https://", "http://"].iter().any(|scheme| paragraph.starts_with(scheme))
        && !paragraph.contains(char::is_whitespace);
    if is_link {
        format!("<p><a class=\"button\" href=\"{escaped}\">{escaped}</a></p>\n")
    } else {
        format!("<p>{}</p>\n", escaped.replace('\n', "<br>\n"))
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
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
    fn every_template_has_a_subject_and_a_text() {
        for template in Template::ALL {
            let letter = Letter::write(template, &[("subject", "Something")]);
            assert!(letter.subject.len() > 5 && letter.text.len() > 40, "{letter:?}");
            assert!(!letter.html.contains("{{") && letter.html.contains("</html>"), "{}", letter.html);
        }
    }
}
