//! Searching in columns that hold a folded form ([`folding`](crate::base::folding)).
//!
//! An entity names them (`tenant_entity!(name_folded = folding::name(name))`), and every row it saves writes both.

use crate::base::folding;

/// The condition that the folded column `column` contains a text; its value is the text's [`holding`].
#[must_use]
pub fn holds(column: &str) -> String {
    format!(r"{column} LIKE ? ESCAPE '\'")
}

/// The condition that an unfolded text contains another; its value is [`holding_as_is`]. The database lowers the case
/// of both: PostgreSQL of all letters, SQLite of A to Z.
#[must_use]
pub fn holds_in_any_case(text: &str) -> String {
    format!(r"LOWER({text}) LIKE LOWER(?) ESCAPE '\'")
}

/// The pattern that finds `text`, in which wildcards stand for themselves. `None` for a text that folds to nothing,
/// such as a lone accent: it matches nothing.
#[must_use]
pub fn holding(text: &str) -> Option<String> {
    starting(text).map(|pattern| format!("%{pattern}"))
}

/// The same for texts that begin with `text`.
#[must_use]
pub fn starting(text: &str) -> Option<String> {
    let folded = folding::name(text);
    if folded.trim().is_empty() {
        return None;
    }
    Some(format!("{}%", escape(&folded)))
}

/// The same as [`holding`] for unfolded texts.
#[must_use]
pub fn holding_as_is(text: &str) -> String {
    format!("%{}%", escape(text))
}

/// Escapes the wildcards of a pattern.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_folded_and_no_pattern() {
        assert_eq!(holding("ÉMILE").as_deref(), Some("%emile%"));
        assert_eq!(holding(r"50%_\").as_deref(), Some(r"%50\%\_\\%"));
        assert_eq!(holding("\u{301}"), None);
        assert_eq!(holding_as_is("50% É"), r"%50\% É%");
    }
}
