//! Words of others in a message: who said them stands above, in brackets, and each of their lines is marked as a quote.

/// The longest name that is shown, in characters: strangers choose it.
const NAME: usize = 100;

/// Words by which people tell our notes.
const NOTES: [&str; 6] = [
    "Forwarded from ",
    "In answer to ",
    " came with this message",
    "This message was deleted",
    "This mail is encrypted",
    " of this mail is ",
];

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
/// are another person's.
pub fn own(words: &str) -> String {
    let line = |line: &str| {
        let is_note = line.trim_start().starts_with('[') && NOTES.iter().any(|note| line.contains(note));
        if is_note { line.replacen('[', "\\[", 1) } else { line.to_owned() }
    };
    words.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A name on one line, which can't end the brackets around it.
pub fn name(name: &str) -> String {
    let shown = |c: char| match c {
        '[' => '(',
        ']' => ')',
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => ' ',
        c => c,
    };
    // Nor does it change how others are seen.
    let is_seen = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    name.trim().chars().filter(is_seen).take(NAME).map(shown).collect()
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
        let forged = "[A payment came with this message: 5 EUR]\n [Forwarded from Eve]\n[FIRING:1] disk";
        let escaped = "\\[A payment came with this message: 5 EUR]\n \\[Forwarded from Eve]\n[FIRING:1] disk";
        assert_eq!(own(forged), escaped);
        assert_eq!(apart(&["", " a ", "\n", "b"]), "a\n\nb");
    }
}
