//! Limits the nesting of quotes and lists before parsing: the parser compares each further line with every open one, so
//! that 200 KB of `>` and short lines took 18 seconds.
//!
//! Only the parser knows code, in which markers mean nothing and need no escape: escapes are removed there again.

use std::{borrow::Cow, ops::Range};

use pulldown_cmark::CowStr;

/// Parsed nesting: a stranger's can be as deep as its length. People use three or four levels; fewer are shown
/// ([`super::pieces`]).
const DEEPEST: usize = 32;

/// A text whose lines begin at most [`DEEPEST`] levels deep.
pub struct LimitedMarkdown<'a> {
    pub text: Cow<'a, str>,
    /// Positions of added backslashes.
    escapes: Vec<usize>,
}

/// Escapes markers that are too deep, so that they are shown as text.
pub fn limit_nesting(markdown: &str) -> LimitedMarkdown<'_> {
    let (mut changed, mut escapes) = (String::new(), Vec::new());
    let (mut from, mut start) = (0, 0);
    for line in markdown.split_inclusive(['\n', '\r']) {
        if let Some(at) = find_too_deep(line) {
            changed.push_str(&markdown[from..start + at]);
            escapes.push(changed.len());
            changed.push('\\');
            from = start + at;
        }
        start += line.len();
    }
    if escapes.is_empty() {
        return LimitedMarkdown { text: Cow::Borrowed(markdown), escapes };
    }
    changed.push_str(&markdown[from..]);
    LimitedMarkdown { text: Cow::Owned(changed), escapes }
}

impl LimitedMarkdown<'_> {
    /// The escapes within a range.
    pub fn escapes(&self, part: &Range<usize>) -> &[usize] {
        let begin = self.escapes.partition_point(|at| *at < part.start);
        let rest = &self.escapes[begin..];
        &rest[..rest.partition_point(|at| *at < part.end)]
    }

    /// Code within a range, without added escapes. Code changed by the parser stays as is.
    pub fn code<'t>(&self, code: CowStr<'t>, part: &Range<usize>) -> CowStr<'t> {
        let escapes = self.escapes(part);
        if escapes.is_empty() || code.len() != part.len() {
            return code;
        }
        remove_positions(&code, escapes, part.start).into()
    }

    /// The text without some of its escapes.
    pub fn without(&self, escapes: &[usize]) -> Cow<'_, str> {
        if escapes.is_empty() {
            Cow::Borrowed(&self.text)
        } else {
            remove_positions(&self.text, escapes, 0).into()
        }
    }
}

/// Removes the characters at `escapes` from a text that begins at `start`.
fn remove_positions(text: &str, escapes: &[usize], start: usize) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for at in escapes {
        rest.push_str(&text[from..at - start]);
        from = at - start + 1;
    }
    rest.push_str(&text[from..]);
    rest
}

/// Position of the first marker that is too deep in a line. Leading spaces may continue open lists, so they count too.
fn find_too_deep(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut at, mut markers, mut columns) = (0, 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4,
            _ => {
                let (length, sign) = read_marker(&bytes[at..])?;
                // A level takes at least two columns: a marker and a space.
                if markers + columns / 2 >= DEEPEST {
                    return (!is_rule(&bytes[at..])).then_some(at + sign);
                }
                markers += 1;
                at += length;
                // The space after the marker belongs to it.
                at += usize::from(bytes.get(at) == Some(&b' '));
                continue;
            }
        }
        at += 1;
    }
    None
}

/// Length of the marker that a text begins with, and the position of its escapable character.
fn read_marker(text: &[u8]) -> Option<(usize, usize)> {
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

/// Whether the rest of a line is a thematic break, which opens nothing: `- - - -`.
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
            let bounded = limit_nesting(&text).text;
            assert_eq!(bounded.len(), text.len() + 1, "{marker:?}");
            let before = bounded.split('\\').next().unwrap();
            assert!(before.matches(marker.trim()).count() <= DEEPEST, "{before:?}");
        }
        for (before, escaped) in [
            (format!("{}- a", " ".repeat(64)), format!("{}\\- a", " ".repeat(64))),
            (format!("{}7. a", "> ".repeat(32)), format!("{}7\\. a", "> ".repeat(32))),
        ] {
            let bounded = limit_nesting(&before);
            assert_eq!(bounded.text, escaped);
            assert_eq!(bounded.without(bounded.escapes(&(0..escaped.len()))), before);
        }
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let rule = format!("{}\n\n{}", "- ".repeat(80), "* ".repeat(80));
        let code = format!("```\n{}let a = 1;\n```", " ".repeat(100));
        for text in ["", "> a\n> > b\n- c\n  - d\n    1. e", "-----", "**b**", &rule, &code, &"-".repeat(99)]
        {
            assert_eq!(limit_nesting(text).text, text);
        }
    }
}
