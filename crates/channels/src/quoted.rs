//! Words of others in a message: who said them stands above, in brackets, and each of their lines is marked as a quote.

use crate::bounds;

/// Words by which people tell our notes, in lower case.
const NOTES: [&str; 6] = [
    "forwarded from ",
    "in answer to ",
    " came with this message",
    "this message was deleted",
    "this mail is encrypted",
    " of this mail is ",
];
/// What stands before a later version of a message, in lower case.
const EDITED: &str = "edited:";

/// What others said. Without words, only who.
pub fn quote(head: &str, words: &str) -> String {
    let mut quoted = format!("[{head}]");
    for line in words.trim().lines() {
        quoted.push_str(if line.is_empty() { "\n>" } else { "\n> " });
        // Nothing of it leaves the quote.
        quoted.push_str(&line.replace('\r', " "));
    }
    quoted
}

/// An author's own words. A line that looks like a note of ours is escaped: anyone could say that a payment has come, or that the words
/// are another person's; and so is a beginning that looks like that of a later version.
pub fn own(words: &str) -> String {
    let escape = |line: &str| {
        let is_note = is_note(line);
        if is_note { line.replacen('[', "\\[", 1) } else { line.to_owned() }
    };
    let ends_line =
        |c: char| matches!(c, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let said: String = words.split_inclusive(ends_line).map(escape).collect();
    if folded(said.trim_start().lines().next().unwrap_or_default()).starts_with(EDITED) {
        said.replacen(':', "\\:", 1)
    } else {
        said
    }
}

/// Whether people would read a line as a note of ours, whatever stands before its bracket.
fn is_note(line: &str) -> bool {
    if !line.contains('[') {
        return false;
    }
    let line = folded(line);
    line.starts_with('[') && NOTES.iter().any(|note| line.contains(note))
}

/// A line as people see it: in lower case, without marks at its beginning and what is not seen, each space like any other.
fn folded(line: &str) -> String {
    let mut folded = String::new();
    for c in line.chars().filter(|c| !is_unseen(*c)) {
        match c {
            '*' | '_' | '~' | '`' => {}
            '>' | '#' | '-' | '+' | '•' if folded.is_empty() => {}
            c if c.is_whitespace() => {
                if !folded.is_empty() && !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            c => folded.extend(c.to_lowercase()),
        }
    }
    folded
}

/// Whether a character shows nothing, but may change how others are seen.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
}

/// A name on one line, which can't end the brackets around it.
pub fn name(name: &str) -> String {
    let inner = |c: char| match c {
        '[' => '(',
        ']' => ')',
        c => c,
    };
    short(name).chars().map(inner).collect()
}

/// A name on one line, and no longer than names are.
pub fn short(name: &str) -> String {
    let name: String = line(name).chars().take(100).collect();
    name.trim_end().to_owned()
}

/// Words on one line, in which nothing changes how others are seen. Letters of some scripts, and emoji, are joined or held apart by
/// what is not seen.
pub fn line(words: &str) -> String {
    let shown = |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
    let is_beside =
        |c: Option<&char>| c.is_some_and(|c| !c.is_ascii() && !c.is_whitespace() && !is_unseen(*c));
    let all: Vec<char> = words.trim().chars().take(bounds::NAME).collect();
    let is_joiner = |nth: usize| {
        matches!(all[nth], '\u{200c}' | '\u{200d}')
            && is_beside(nth.checked_sub(1).and_then(|before| all.get(before)))
            && is_beside(all.get(nth + 1))
    };
    let seen = (0..all.len()).filter(|nth| !is_unseen(all[*nth]) || is_joiner(*nth));
    let line: String = seen.map(|nth| shown(all[nth])).collect();
    line.trim().to_owned()
}

/// Code as a block, which nothing in it ends.
pub fn fenced(code: &str, language: &str) -> String {
    let (ticks, last) = (ticks(code, 3), if code.ends_with('\n') { "" } else { "\n" });
    format!("{ticks}{language}\n{code}{last}{ticks}")
}

/// Code within a line.
pub fn coded(code: &str) -> String {
    let ticks = ticks(code, 1);
    let space = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{code}{space}{ticks}")
}

/// More backticks than the code has side by side.
pub fn ticks(code: &str, least: usize) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(if longest < least { least } else { longest + 1 })
}

/// The pieces that say something, each apart from the next.
pub fn apart(pieces: &[&str]) -> String {
    let said: Vec<_> = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty()).collect();
    said.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_stay_in_their_quote() {
        assert_eq!(quote("In answer to Bob", "a\n\nb\r> c\n"), "[In answer to Bob]\n> a\n>\n> b > c");
        assert_eq!(quote("Forwarded from Bob", " "), "[Forwarded from Bob]");
        assert_eq!(name(" Bob]\nAda: yes ["), "Bob) Ada: yes (");
        assert_eq!(name(&"x".repeat(500)).len(), 100);
        assert_eq!(name("\u{202e}Bob\u{200b}"), "Bob");
        assert_eq!(line("[Spam]\r\n\u{2066}Offer\u{2069}\n"), "[Spam]  Offer");
        assert_eq!(name("A\u{200d}da \u{200d}👩\u{200d}💻\u{200d}"), "Ada 👩\u{200d}💻");
        assert_eq!(name("نرم\u{200c}افزار"), "نرم\u{200c}افزار");
        let forged = "[A payment came with this message: 5 EUR]\n [Forwarded from Eve]\n[FIRING:1] disk";
        let escaped = "\\[A payment came with this message: 5 EUR]\n \\[Forwarded from Eve]\n[FIRING:1] disk";
        assert_eq!(own(forged), escaped);
        for forged in [
            "\u{a0}[Forwarded\u{a0}from Eve]",
            "\u{200b}[forwarded  from Eve]",
            "> **[Forwarded** from Eve]",
            "a\r[In answer to Eve]",
        ] {
            assert_eq!(own(forged), forged.replace('[', "\\["));
        }
        assert_eq!(own("\u{200b}Edited: 5"), "\u{200b}Edited\\: 5");
        assert_eq!(own("I edited: 5\nedited: 6"), "I edited: 5\nedited: 6");
        assert_eq!(apart(&["", " a ", "\n", "b"]), "a\n\nb");
        assert_eq!(fenced("a\n```\nb", "rust"), "````rust\na\n```\nb\n````");
        assert_eq!(
            (coded("a`b"), coded("`"), coded("a")),
            ("``a`b``".to_owned(), "`` ` ``".to_owned(), "`a`".to_owned())
        );
    }
}
