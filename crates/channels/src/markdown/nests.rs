//! How deep quotes and lists are nested before a text is parsed: the parser compares each further line with every one that is
//! open, so that 200 KB of `>` and short lines took it 18 seconds.

use std::borrow::Cow;

/// The deepest nest that is parsed as one. People write three or four; what is shown is less ([`super::pieces`]).
const DEEPEST: usize = 32;
/// How many columns of a line's beginning hold one more level at least: a marker and a space.
const LEVEL: usize = 2;
/// How many columns a tab takes at most.
const TAB: usize = 4;

/// The text, in which no line can begin deeper than [`DEEPEST`]: the marker that would is escaped, and shown as it is.
pub fn bounded(markdown: &str) -> Cow<'_, str> {
    let mut changed = String::new();
    let (mut from, mut start) = (0, 0);
    for line in markdown.split_inclusive(['\n', '\r']) {
        if let Some(at) = too_deep(line) {
            changed.push_str(&markdown[from..start + at]);
            changed.push('\\');
            from = start + at;
        }
        start += line.len();
    }
    if from == 0 && changed.is_empty() {
        return Cow::Borrowed(markdown);
    }
    changed.push_str(&markdown[from..]);
    Cow::Owned(changed)
}

/// Where a line's first marker stands that is too deep. Spaces before it may continue lists that are open, so they count as well.
fn too_deep(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut at, mut markers, mut columns) = (0, 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += TAB,
            _ => {
                let (length, sign) = marker(&bytes[at..])?;
                if markers + columns / LEVEL >= DEEPEST {
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
            let bounded = bounded(&text);
            assert_eq!(bounded.len(), text.len() + 1, "{marker:?}");
            let before = bounded.split('\\').next().unwrap();
            assert!(before.matches(marker.trim()).count() <= DEEPEST, "{before:?}");
        }
        assert_eq!(bounded(&format!("{}- a", " ".repeat(64))), format!("{}\\- a", " ".repeat(64)));
        assert_eq!(bounded(&format!("{}7. a", "> ".repeat(32))), format!("{}7\\. a", "> ".repeat(32)));
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        let rule = format!("{}\n\n{}", "- ".repeat(80), "* ".repeat(80));
        let code = format!("```\n{}let a = 1;\n```", " ".repeat(100));
        for text in ["", "> a\n> > b\n- c\n  - d\n    1. e", "-----", "**b**", &rule, &code, &"-".repeat(99)]
        {
            assert_eq!(bounded(text), text);
        }
    }
}
