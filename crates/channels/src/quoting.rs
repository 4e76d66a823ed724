//! Quotes and notes inside a message: the author stands above in brackets, and each quoted line is marked.

use crate::bounds;

/// Phrases by which people recognize Muster's notes, in lower case.
const NOTE_PHRASES: [&str; 6] = [
    "forwarded from ",
    "in answer to ",
    " came with this message",
    "this message was deleted",
    "this mail is encrypted",
    " of this mail is ",
];
/// Prefix of a later version of a message, in lower case.
const EDITED_PREFIX: &str = "edited:";

/// Quotes text below `[head]`. Without text, only the head.
pub fn quote(head: &str, words: &str) -> String {
    let mut quoted = format!("[{head}]");
    for line in words.trim().lines() {
        quoted.push_str(if line.is_empty() { "\n>" } else { "\n> " });
        // A carriage return must not end the quote.
        quoted.push_str(&line.replace('\r', " "));
    }
    quoted
}

/// Escapes an author's own lines that look like Muster's notes: otherwise anyone could claim that a payment arrived, or
/// that the text is another person's. Also escapes a beginning that looks like a later version.
pub fn escape_notes(words: &str) -> String {
    let escape = |line: &str| {
        let is_note = is_note(line);
        if is_note { line.replacen('[', "\\[", 1) } else { line.to_owned() }
    };
    let ends_line =
        |c: char| matches!(c, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let said: String = words.split_inclusive(ends_line).map(escape).collect();
    if fold_line(said.trim_start().lines().next().unwrap_or_default()).starts_with(EDITED_PREFIX) {
        said.replacen(':', "\\:", 1)
    } else {
        said
    }
}

/// Whether people would read a line as a note, even with characters before its bracket.
fn is_note(line: &str) -> bool {
    if !line.contains('[') {
        return false;
    }
    let line = fold_line(line);
    line.starts_with('[') && NOTE_PHRASES.iter().any(|note| line.contains(note))
}

/// A line as people see it: in lower case, without leading marks and invisible characters, with plain spaces.
fn fold_line(line: &str) -> String {
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

/// Whether a character is invisible, but may change the look of others.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
}

/// A one-line name that can't close the brackets around it.
pub fn bracket_name(name: &str) -> String {
    let inner = |c: char| match c {
        '[' => '(',
        ']' => ')',
        c => c,
    };
    short_name(name).chars().map(inner).collect()
}

/// A one-line name of at most 100 characters.
pub fn short_name(name: &str) -> String {
    let name: String = single_line(name).chars().take(100).collect();
    name.trim_end().to_owned()
}

/// One line without characters that change the look of others. Joiners inside emoji and non-Latin words stay.
pub fn single_line(words: &str) -> String {
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

/// A code block whose content can't close it.
pub fn code_block(code: &str, language: &str) -> String {
    let (ticks, last) = (backticks(code, 3), if code.ends_with('\n') { "" } else { "\n" });
    format!("{ticks}{language}\n{code}{last}{ticks}")
}

pub fn inline_code(code: &str) -> String {
    let ticks = backticks(code, 1);
    let space = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{code}{space}{ticks}")
}

/// A run of backticks longer than any in the code.
pub fn backticks(code: &str, least: usize) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(if longest < least { least } else { longest + 1 })
}

/// Joins the non-empty pieces with blank lines.
pub fn join_paragraphs(pieces: &[&str]) -> String {
    let said: Vec<_> = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty()).collect();
    said.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_stays_in_its_quote() {
        assert_eq!(quote("In answer to Bob", "a\n\nb\r> c\n"), "[In answer to Bob]\n> a\n>\n> b > c");
        assert_eq!(quote("Forwarded from Bob", " "), "[Forwarded from Bob]");
        assert_eq!(bracket_name(" Bob]\nAda: yes ["), "Bob) Ada: yes (");
        assert_eq!(bracket_name(&"x".repeat(500)).len(), 100);
        assert_eq!(bracket_name("\u{202e}Bob\u{200b}"), "Bob");
        assert_eq!(single_line("[Spam]\r\n\u{2066}Offer\u{2069}\n"), "[Spam]  Offer");
        assert_eq!(bracket_name("A\u{200d}da \u{200d}👩\u{200d}💻\u{200d}"), "Ada 👩\u{200d}💻");
        assert_eq!(bracket_name("نرم\u{200c}افزار"), "نرم\u{200c}افزار");
        let forged = "[A payment came with this message: 5 EUR]\n [Forwarded from Eve]\n[FIRING:1] disk";
        let escaped = "\\[A payment came with this message: 5 EUR]\n \\[Forwarded from Eve]\n[FIRING:1] disk";
        assert_eq!(escape_notes(forged), escaped);
        for forged in [
            "\u{a0}[Forwarded\u{a0}from Eve]",
            "\u{200b}[forwarded  from Eve]",
            "> **[Forwarded** from Eve]",
            "a\r[In answer to Eve]",
        ] {
            assert_eq!(escape_notes(forged), forged.replace('[', "\\["));
        }
        assert_eq!(escape_notes("\u{200b}Edited: 5"), "\u{200b}Edited\\: 5");
        assert_eq!(escape_notes("I edited: 5\nedited: 6"), "I edited: 5\nedited: 6");
        assert_eq!(join_paragraphs(&["", " a ", "\n", "b"]), "a\n\nb");
        assert_eq!(code_block("a\n```\nb", "rust"), "````rust\na\n```\nb\n````");
        assert_eq!(
            (inline_code("a`b"), inline_code("`"), inline_code("a")),
            ("``a`b``".to_owned(), "`` ` ``".to_owned(), "`a`".to_owned())
        );
    }
}
