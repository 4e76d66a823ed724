//! Names that contain a word, ignoring case, in the same way on both databases.
//!
//! SQLite's `lower()` only lowers ASCII letters, so it leaves `Émile` as it is: the usual ways to write a word are all
//! tried.

use sea_orm::Value;

/// A word to search for in names.
pub struct Word {
    /// What `lower(name)` may look like, as patterns for `LIKE`.
    patterns: Vec<String>,
}

impl Word {
    /// Takes `text` literally: wildcards stand for themselves.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut title = String::with_capacity(lower.len());
        let mut chars = lower.chars();
        title.extend(chars.next().into_iter().flat_map(char::to_uppercase));
        title.push_str(chars.as_str());
        let mut patterns = Vec::new();
        for spelled in [&lower, &title, &text.to_uppercase(), text] {
            let pattern = format!("%{}%", escape(&spelled.to_ascii_lowercase()));
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        Self { patterns }
    }

    /// The condition that the SQL expression `name` contains the word, for [`Word::values`].
    #[must_use]
    pub fn in_name(&self, name: &str) -> String {
        let like = format!(r"lower({name}) LIKE ? ESCAPE '\'");
        format!("({})", vec![like; self.patterns.len()].join(" OR "))
    }

    /// The values for this many such conditions.
    pub fn values(&self, conditions: usize) -> impl Iterator<Item = Value> {
        let all = self.patterns.iter().cycle().take(self.patterns.len() * conditions);
        all.map(|pattern| Value::from(pattern.as_str()))
    }
}

/// Escapes LIKE's wildcards.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_of_a_search_are_letters() {
        assert_eq!(Word::new(r"50%_\").patterns, [r"%50\%\_\\%"]);
    }

    #[test]
    fn the_usual_spellings_are_tried() {
        assert_eq!(Word::new("ÉMILE").patterns, ["%émile%", "%Émile%"]);
        assert_eq!(Word::new("anÉ").patterns, ["%ané%", "%anÉ%"]);
        assert_eq!(Word::new("Anna").patterns, ["%anna%"]);
    }

    #[test]
    fn a_condition_has_a_value_for_each_spelling() {
        let word = Word::new("émile");
        assert_eq!(word.in_name("n.name").matches('?').count() * 3, word.values(3).count());
    }
}
