//! The text of a whole mail: its texts in order, its events, and notes about unreadable parts.

use super::{
    inbound::LONGEST_TEXT,
    mime::{MimeMail, Part},
};
use crate::{icalendar::describe_calendar, quoting::escape_notes};

/// The text of a mail from this address.
pub fn read_body(mail: &MimeMail<'_>, from: &str) -> String {
    let mut text = String::new();
    for (words, is_whole) in mail.select(&mail.texts).map(Part::read_text) {
        append(&mut text, &escape_notes(&words));
        if !is_whole {
            append(&mut text, TOO_LONG);
        }
        if text.len() > 4 * LONGEST_TEXT {
            break;
        }
    }
    if let Some(at) = text.find("-----BEGIN PGP MESSAGE-----") {
        text.insert_str(at, "[What follows is encrypted with OpenPGP and can't be read here.]\n");
    }
    for event in mail.select(&mail.events).take(10).filter_map(|part| describe_calendar(&part.text(), from)) {
        // The same event comes as a text and as a file.
        if !text.contains(&event) {
            append(&mut text, &event);
        }
    }
    let has_words = !text.is_empty();
    if let Some(note) = mail.parts.iter().find_map(|part| note_encryption(part, has_words)) {
        append(&mut text, note);
    }
    limit_length(text)
}

/// Limits a text. A longer one ends with a note.
fn limit_length(text: String) -> String {
    if text.chars().nth(LONGEST_TEXT).is_none() {
        return text;
    }
    let mut beginning: String = text.chars().take(LONGEST_TEXT - TOO_LONG.len() - 2).collect();
    append(&mut beginning, TOO_LONG);
    beginning
}

/// Appends visible text after a blank line.
fn append(text: &mut String, words: &str) {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    if !words.chars().any(is_visible) {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(words.trim_end_matches(is_blank).trim_start_matches(['\n', '\u{feff}']));
}

pub fn is_visible(c: char) -> bool {
    let is_filler = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
            ..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
    );
    !is_filler && !c.is_whitespace() && !c.is_control()
}

/// A note about an encrypted or signed part.
fn note_encryption(part: &Part<'_>, has_words: bool) -> Option<&'static str> {
    if part.is("application", "pgp-encrypted") && !has_words {
        return Some("[This mail is encrypted with OpenPGP and can't be read here.]");
    }
    // Signed files have the same type, and other names (RFC 8551, 3.2.1).
    let name = part.name(None);
    let is_named = name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case("smime.p7m"));
    let is_smime = part.is("application", "pkcs7-mime") || part.is("application", "x-pkcs7-mime");
    if !is_named && (!is_smime || name.is_some()) {
        return None;
    }
    // Without a parameter, the content type decides (RFC 5652): 1.2.840.113549.1.7.2 is signed data.
    let is_signed_data = || {
        let beginning = part.content();
        let signed = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
        beginning.get(..64).unwrap_or(&beginning).windows(signed.len()).any(|found| found == signed)
    };
    Some(match part.param("smime-type").map(str::to_ascii_lowercase).as_deref() {
        Some("signed-data") => SIGNED,
        Some("certs-only") => return None,
        Some("compressed-data") => "[The text of this mail is compressed with S/MIME and was not read.]",
        None if is_signed_data() => SIGNED,
        _ => "[This mail is encrypted with S/MIME and can't be read here.]",
    })
}

const TOO_LONG: &str = "[The rest of this mail is too long and was left out.]";
const SIGNED: &str = "[The text of this mail is inside its S/MIME signature and was not read.]";

#[cfg(test)]
mod tests {
    use super::*;

    fn several(kind: &str, parts: &[&str]) -> String {
        let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
        format!("Content-Type: multipart/{kind}; boundary=b\n\n{parts}--b--\n")
    }

    fn of(mail: &str) -> String {
        let mail = mail.replace('\n', "\r\n");
        read_body(&MimeMail::parse(mail.as_bytes()).unwrap(), "ada@a.test")
    }

    const HTML: &str = "Content-Type: text/html\n\n<p>cancel order 4711</p>";
    const PICTURE: &str = "Content-Type: image/png\nContent-Disposition: inline; filename=a.png\n\npicture";

    #[test]
    fn all_text_parts_are_read_in_order() {
        let plain = |words: &str| format!("Content-Type: text/plain\n\n{words}");
        let (one, two, three) = (plain("one\n"), plain("two"), plain("three"));
        for (mail, expected) in [
            (several("mixed", &[&one, PICTURE, &two]), "one\n\ntwo"),
            (several("mixed", &[PICTURE, &one]), "one"),
            (several("mixed", &[&one, PICTURE, &two, PICTURE, &three]), "one\n\ntwo\n\nthree"),
            (several("mixed", &[HTML, PICTURE, &two]), "cancel order 4711\n\ntwo"),
            (several("related", &[HTML, PICTURE]), "cancel order 4711"),
            // Blank texts.
            (several("alternative", &["Content-Type: text/plain\n\n", HTML]), "cancel order 4711"),
            (several("alternative", &[" \n\n \u{a0}\u{200b}\n", HTML]), "cancel order 4711"),
            (several("mixed", &[&plain(""), HTML]), "cancel order 4711"),
            (several("mixed", &[&plain(" "), &two]), "two"),
            (several("alternative", &[&plain("plain"), HTML]), "plain"),
            // Other types.
            ("Content-Type: text\n\nhi".to_owned(), "hi"),
            ("Content-Type: text/markdown\n\n# hi".to_owned(), "# hi"),
            ("Content-Type: text/x-note; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nh=EF".to_owned(), "hï"),
            (several("alternative", &[&plain("plain"), "Content-Type: text/x-amp-html\n\n<html amp>", HTML]), "plain"),
            (several("alternative", &["Content-Type: text/markdown\n\n# hi"]), "# hi"),
            (
                several("alternative", &[&plain("plain"), HTML, "Content-Type: text/plain\nContent-Disposition: attachment\n\nfile"]),
                "plain",
            ),
            ("Content-Transfer-Encoding: quoted-printable\n\nGr=C3=BC=\n=C3=9Fe\nhttps://a.test/?d=xyz==".to_owned(), "Grüße\nhttps://a.test/?d=xyz=="),
            ("\n[This mail is encrypted with OpenPGP]".to_owned(), "\\[This mail is encrypted with OpenPGP]"),
            (
                several("mixed", &[&one, "Content-Type: text/x-log; name=a.log\n\nlog"]),
                "one",
            ),
            ("Content-Type: text/plain; format=flowed; delsp=yes\n\npara- \ngraph\n> a \n> b".to_owned(), "para-graph\n> ab"),
        ] {
            assert_eq!(of(&mail), expected, "{mail}");
        }
    }

    #[test]
    fn a_large_picture_inside_of_html_hides_no_words() {
        let picture = format!("<img src=\"data:image/png;BASE64,{}\">", "QUJDRA/+\n".repeat(1 << 20));
        let html = format!("<p>before</p>{picture}<p>between</p>{picture}<p>after</p>");
        let plain = format!("Content-Type: text/html\n\n{html}");
        assert_eq!(of(&plain), "before\n\nbetween\n\nafter");
        // A short word after such a mark is text.
        let code = format!("Content-Type: text/html\n\n{picture}<p>use ;base64, or not</p>");
        assert_eq!(of(&code), "use ;base64, or not");
    }

    #[test]
    fn a_truncated_mail_has_a_note() {
        let ends = |mail: &str| of(mail).ends_with(&format!("\n\n{TOO_LONG}"));
        let long = "ä".repeat(LONGEST_TEXT);
        assert!(!ends(&format!("\n{long}")) && ends(&format!("\n{long}ä")));
        assert_eq!(of(&format!("\n{long}ä")).chars().count(), LONGEST_TEXT);
        let comment = format!("<!--{}-->", "a".repeat(9 << 20));
        let html = format!("Content-Type: text/html\n\n<p>before</p>{comment}<p>after</p>");
        assert_eq!(of(&html), format!("before\n\n{TOO_LONG}"));
        let blank = format!("Content-Type: text/html\n\n<p>before</p>{}<p>after</p>", " \n".repeat(5 << 18));
        assert_eq!(of(&blank), format!("before\n\n{TOO_LONG}"));
        let (blank, after) = (format!("\nbefore{}", " \n".repeat((4 << 20) + 1)), "\nafter");
        let mail = several("mixed", &[&blank, after]);
        assert_eq!(of(&mail), format!("before\n\n{TOO_LONG}\n\nafter"));
        // A forged note is escaped.
        assert_eq!(of(&format!("\n{TOO_LONG}")), format!("\\{TOO_LONG}"));
    }

    #[test]
    fn encrypted_mails_have_a_note() {
        let opaque =
            "Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n";
        let pgp = several(
            "encrypted",
            &[
                "Content-Type: application/pgp-encrypted\n\nVersion: 1",
                "Content-Type: application/octet-stream\n\n-----BEGIN",
            ],
        );
        for (mail, expected) in [
            (pgp, "[This mail is encrypted with OpenPGP and can't be read here.]"),
            (
                "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nx".to_owned(),
                "[This mail is encrypted with S/MIME and can't be read here.]",
            ),
            ("Content-Type: application/x-pkcs7-mime; smime-type=Signed-Data\n\nx".to_owned(), SIGNED),
            (format!("{opaque}MIIBAAYJKoZIhvcNAQcC"), SIGNED),
            (
                several(
                    "mixed",
                    &[
                        "Content-Type: text/plain\n\nhi",
                        "Content-Type: application/pkcs7-mime; name=bill.p7m\n\nx",
                    ],
                ),
                "hi",
            ),
            (
                "Content-Type: application/octet-stream; name=smime.p7m; smime-type=signed-data\n\nx"
                    .to_owned(),
                SIGNED,
            ),
            (
                format!("{opaque}MIIBAAYJKoZIhvcNAQcD"),
                "[This mail is encrypted with S/MIME and can't be read here.]",
            ),
            (
                several(
                    "signed",
                    &["Content-Type: text/plain\n\nhi", "Content-Type: application/pkcs7-signature\n\nx"],
                ),
                "hi",
            ),
            (
                "Subject: x\n\nHi\n-----BEGIN PGP MESSAGE-----\n\nabc".to_owned(),
                "Hi\n[What follows is encrypted with OpenPGP and can't be read here.]\n-----BEGIN PGP MESSAGE-----\n\nabc",
            ),
        ] {
            assert_eq!(of(&mail), expected, "{mail}");
        }
    }

    #[test]
    fn an_event_is_described_once() {
        let event = "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nSUMMARY:Tea\nEND:VEVENT\nEND:VCALENDAR";
        let part = format!("Content-Type: text/calendar; method=REQUEST\n\n{event}");
        let mail = several("mixed", &["\nCome", &part, &part]);
        assert_eq!(of(&mail), "Come\n\n[Calendar: an invitation]\nTea");
        assert_eq!(of(&part), "[Calendar: an invitation]\nTea");
    }
}
