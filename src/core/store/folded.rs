//! Columns that are found and ordered by their folded form ([`folding`](crate::base::folding)).
//!
//! An entity names them (`tenant_entity!(name_folded = folding::name(name))`), and every row that it saves writes both.

use crate::base::folding;

/// The condition that the folded column `column` holds a text; its value is [`holding`] of the text.
#[must_use]
pub fn holds(column: &str) -> String {
    format!(r"{column} LIKE ? ESCAPE '\'")
}

/// The pattern of what is looked for. All of it is text: wildcards stand for themselves.
#[must_use]
pub fn holding(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in folding::name(text).chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_folded_and_no_pattern() {
        assert_eq!(holding("ÉMILE"), "%emile%");
        assert_eq!(holding(r"50%_\"), r"%50\%\_\\%");
    }
}
