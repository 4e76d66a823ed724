//! Texts whose lines go on (`format=flowed`, RFC 3676).

/// The paragraphs of a text whose lines end where the screen of its writer did. With `deletes`, the space at such an end is not part of
/// the text (`delsp=yes`).
pub fn joined(text: &str, deletes: bool) -> String {
    let mut joined = String::with_capacity(text.len());
    // How deep the line before is quoted, if it goes on.
    let mut before: Option<usize> = None;
    for (nth, line) in text.lines().enumerate() {
        let words = line.trim_start_matches('>');
        let depth = line.len() - words.len();
        // A line may be moved to the right by one space.
        let words = words.strip_prefix(' ').unwrap_or(words);
        let is_sign = words == "-- ";
        if before != Some(depth) || is_sign || words.is_empty() {
            if nth > 0 {
                joined.push('\n');
            }
            joined.push_str(line.get(..depth).unwrap_or_default());
            if depth > 0 && !words.is_empty() {
                joined.push(' ');
            }
        }
        let goes_on = words.ends_with(' ') && !is_sign;
        let end = words.len() - usize::from(goes_on && deletes);
        joined.push_str(words.get(..end).unwrap_or_default());
        before = goes_on.then_some(depth);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_go_on_are_joined() {
        for (text, deletes, expected) in [
            ("one \ntwo\nthree", false, "one two\nthree"),
            ("para- \ngraph \nend\n", true, "para-graphend"),
            ("one \n\ntwo", false, "one \n\ntwo"),
            // Quotes, and the end of each.
            ("> a \n> b\n>> c \n> d \ne", false, "> a b\n>> c \n> d \ne"),
            (">a \n> b", false, "> a b"),
            (">\n> b", false, ">\n> b"),
            // The space before words is not theirs, and a signature's line is separate.
            (" From me \n  to you", false, "From me  to you"),
            ("one \n-- \nAda", false, "one \n-- \nAda"),
            ("hard\nbreaks\n stay", false, "hard\nbreaks\nstay"),
            ("", false, ""),
        ] {
            assert_eq!(joined(text, deletes), expected, "{text:?}");
        }
    }
}
