//! How deep quotes and lists are nested before a text is parsed: the parser compares each further line with every one that is
//! open, so that 200 KB of `>` and short lines took it 18 seconds.
//!
//! Only the parser knows what is code, where signs mean nothing and no escape is needed: it is taken out again there.

use std::{borrow::Cow, ops::Range};

use pulldown_cmark::CowStr;

/// The deepest nest that is parsed as one: a stranger's can be as deep as it is long. People write three or four; what is shown is less ([`super::pieces`]).
const DEEPEST: usize = 32;

/// A text in which no line can begin deeper than [`DEEPEST`].
pub struct Bounded<'a> {
    pub text: Cow<'a, str>,
    /// Where a backslash was added to it.
    escapes: Vec<usize>,
}

/// The text, in which a marker that would be too deep is escaped, and shown as it is.
pub fn bounded(markdown: &str) -> Bounded<'_> {
    let (mut changed, mut escapes) = (String::new(), Vec::new());
    let (mut from, mut start) = (0, 0);
    for line in markdown.split_inclusive(['\n', '\r']) {
        if let Some(at) = too_deep(line) {
            changed.push_str(&markdown[from..start + at]);
            escapes.push(changed.len());
            changed.push('\\');
            from = start + at;
        }
        start += line.len();
    }
    if escapes.is_empty() {
        return Bounded { text: Cow::Borrowed(markdown), escapes };
    }
    changed.push_str(&markdown[from..]);
    Bounded { text: Cow::Owned(changed), escapes }
}

impl Bounded<'_> {
    /// The escapes in a part of the text.
    pub fn escapes(&self, part: &Range<usize>) -> &[usize] {
        let begin = self.escapes.partition_point(|at| *at < part.start);
        let rest = &self.escapes[begin..];
        &rest[..rest.partition_point(|at| *at < part.end)]
    }

    /// A part of the text that is code, as it was written. What the parser has changed stays so.
    pub fn code<'t>(&self, code: CowStr<'t>, part: &Range<usize>) -> CowStr<'t> {
        let escapes = self.escapes(part);
        if escapes.is_empty() || code.len() != part.len() {
            return code;
        }
        without(&code, escapes, part.start).into()
    }

    /// The text without some of its escapes.
    pub fn without(&self, escapes: &[usize]) -> Cow<'_, str> {
        if escapes.is_empty() { Cow::Borrowed(&self.text) } else { without(&self.text, escapes, 0).into() }
    }
}

/// A text that begins at a place, without the characters at others.
fn without(text: &str, escapes: &[usize], start: usize) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for at in escapes {
        rest.push_str(&text[from..at - start]);
        from = at - start + 1;
    }
    rest.push_str(&text[from..]);
    rest
}

/// Where a line's first marker stands that is too deep. Spaces before it may continue lists that are open, so they count as well.
fn too_deep(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut at, mut markers, mut columns) = (0, 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4,
            _ => {
                let (length, sign) = marker(&bytes[at..])?;
                // A level takes two columns at least: a marker and a space.
                if markers + columns / 2 >= DEEPEST {
                    return (!is_rule(&bytes[at..])).then_some(at + sign);
                }
                markers += 1;
                at += length;
                // The space that belongs to a marker.
                at += usize::from(bytes.get(at) == Some(&b' '));
                continue;
            }
        }
        at += 1;
    }
    None
}

/// How long the marker is with which a text begins, and where its sign stands that can be escaped.
fn marker(text: &[u8]) -> Option<(usize, usize)> {
    let ends = |at: usize| text.get(at).is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    match text.first()? {
        b'>' => Some((1, 0)),
        b'-' | b'*' | b'+' => ends(1).then_some((1, 0)),
        b'0'..=b'9' => {
            let digits = text.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
            let is_marker = matches!(text.get(digits), Some(b'.' | b')')) && ends(digits + 1);
            is_marker.then_some((digits + 1, digits))
        }
        _ => None,
    }
}

/// Whether the rest of a line is a rule, which opens nothing: `- - - -`.
fn is_rule(text: &[u8]) -> bool {
    let sign = text.first().copied().filter(|sign| matches!(sign, b'-' | b'*'));
    sign.is_some_and(|sign| text.iter().all(|byte| *byte == sign || byte.is_ascii_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_too_deep_is_escaped() {
        for marker in [">", "> ", "- ", "* ", "+ ", "1. ", "12) ", "> - ", "\t> "] {
            let deep = marker.repeat(100);
            let text = format!("a\n{deep}b\nc");
            let bounded = bounded(&text).text;
            assert_eq!(bounded.len(), text.len() + 1, "{marker:?}");
            let before = bounded.split('\\').next().unwrap();
            assert!(before.matches(marker.trim()).count() <= DEEPEST, "{before:?}");
        }
        for (before, escaped) in [
            (format!("{}- a", " ".repeat(64)), format!("{}\\- a", " ".repeat(64))),
            (format!("{}7. a", "> ".repeat(32)), format!("{}7\\. a", "> ".repeat(32))),
        ] {
            let bounded = bounded(&before);
            assert_eq!(bounded.text, escaped);
            assert_eq!(bounded.without(bounded.escapes(&(0..escaped.len()))), before);
        }
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        let rule = format!("{}\n\n{}", "- ".repeat(80), "* ".repeat(80));
        let code = format!("```\n{}let a = 1;\n```", " ".repeat(100));
        for text in ["", "> a\n> > b\n- c\n  - d\n    1. e", "-----", "**b**", &rule, &code, &"-".repeat(99)]
        {
            assert_eq!(bounded(text).text, text);
        }
    }
}
