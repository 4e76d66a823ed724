//! Flowed text (`format=flowed`, RFC 3676).

/// Joins soft-wrapped lines into paragraphs. `deletes` (`delsp=yes`): the space at a soft break is not part of the
/// text.
pub fn join_lines(text: &str, deletes: bool) -> String {
    let mut joined = String::with_capacity(text.len());
    // Quote depth of the line before, if it continues.
    let mut before: Option<usize> = None;
    for (nth, line) in text.lines().enumerate() {
        let words = line.trim_start_matches('>');
        let depth = line.len() - words.len();
        // A line may be stuffed with one space.
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
    fn soft_line_breaks_are_joined() {
        for (text, deletes, expected) in [
            ("one \ntwo\nthree", false, "one two\nthree"),
            ("para- \ngraph \nend\n", true, "para-graphend"),
            ("one \n\ntwo", false, "one \n\ntwo"),
            // Quotes, and their ends.
            ("> a \n> b\n>> c \n> d \ne", false, "> a b\n>> c \n> d \ne"),
            (">a \n> b", false, "> a b"),
            (">\n> b", false, ">\n> b"),
            // A stuffed space is dropped, and a signature separator stays.
            (" From me \n  to you", false, "From me  to you"),
            ("one \n-- \nAda", false, "one \n-- \nAda"),
            ("hard\nbreaks\n stay", false, "hard\nbreaks\nstay"),
            ("", false, ""),
        ] {
            assert_eq!(join_lines(text, deletes), expected, "{text:?}");
        }
    }
}
