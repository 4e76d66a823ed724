//! Folding: the form in which texts are compared, as opposed to shown.
//!
//! Texts are folded only here, before they reach the database, so that SQLite and PostgreSQL find and sort them alike.
//! Names and messages lose case and accents. Addresses lose only their case, because two that differ in an accent are
//! two mailboxes.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

pub enum Folded {
    /// A letter or digit.
    Letter(char),
    /// An accent on the letter before it, to be skipped.
    Silent,
    /// A character outside words.
    Other(char),
}

/// A name as it is sorted and searched.
#[must_use]
pub fn name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        fold(c, |folded| match folded {
            Folded::Letter(c) | Folded::Other(c) => out.push(c),
            Folded::Silent => {}
        });
    }
    out
}

/// An e-mail address in lower case. Letters outside ASCII whose lower case is an ASCII letter stay as they are: `İ`
/// (U+0130) would become `i` and `K` (U+212A) `k`, and two mailboxes would count as one.
#[must_use]
pub fn address(email: &str) -> String {
    let mut out = String::with_capacity(email.len());
    for letter in email.trim().chars() {
        if letter.is_ascii() || letter.to_lowercase().any(|lower| lower.is_ascii()) {
            out.push(letter.to_ascii_lowercase());
        } else {
            out.extend(letter.to_lowercase());
        }
    }
    out
}

/// Calls `emit` with each part that a character becomes.
pub fn fold(c: char, mut emit: impl FnMut(Folded)) {
    if c.is_ascii() {
        let lower = c.to_ascii_lowercase();
        return emit(if c.is_ascii_alphanumeric() { Folded::Letter(lower) } else { Folded::Other(lower) });
    }
    for decomposed in std::iter::once(c).nfkd() {
        for lower in decomposed.to_lowercase() {
            // Letters that don't decompose, written the way people without them on their keyboard write them.
            let plain = match lower {
                'ß' => "ss",
                'æ' => "ae",
                'œ' => "oe",
                'ø' => "o",
                'đ' | 'ð' => "d",
                'ł' => "l",
                'þ' => "th",
                'ı' => "i",
                'ς' => "σ",
                _ if is_accent(lower) => {
                    emit(Folded::Silent);
                    continue;
                }
                _ if lower.is_alphanumeric() || is_combining_mark(lower) => {
                    emit(Folded::Letter(lower));
                    continue;
                }
                _ => {
                    emit(Folded::Other(lower));
                    continue;
                }
            };
            plain.chars().for_each(|c| emit(Folded::Letter(c)));
        }
    }
}

/// Marks that tell how a letter sounds, not which one it is. The vowel signs of Indic scripts and the voiced
/// marks of kana are not among them: without those, words would become other words.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{200c}'..='\u{200d}' | '\u{ad}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_case_and_accents_and_nothing_else() {
        for (shown, folded) in [
            ("Émile Álvarez", "emile alvarez"),
            ("Жан-Жак Руссо", "жан-жак руссо"),
            ("Jean-Éloïse", "jean-eloise"),
            ("Ørsted & Straße 50%_\\", "orsted & strasse 50%_\\"),
            ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
            ("", ""),
        ] {
            assert_eq!(name(shown), folded);
            assert_eq!(name(folded), folded);
        }
    }

    #[test]
    fn no_letter_passes_for_a_plain_one_in_an_address() {
        assert_eq!(address(" Élise@Example.COM"), "élise@example.com");
        assert_eq!(address("ΟΔΟΣ@example.org"), address("οδοσ@example.org"));
        for (strange, plain) in [("vİctim@example.org", "victim@example.org"), ("a@\u{212a}.org", "a@k.org")]
        {
            assert_ne!(address(strange), address(plain), "{strange}");
        }
    }
}
