//! Lists for people: found by a part of the name, sorted by it.

use super::{Record, Rows};
use crate::{
    base::enums::ListSort,
    core::store::{holding, holds},
};

/// The words of a search. Beyond the eighth, they are matched as one.
pub fn words(search: Option<&str>) -> impl Iterator<Item = &str> {
    let search = search.unwrap_or_default().trim();
    search.splitn(8, char::is_whitespace).map(str::trim).filter(|word| !word.is_empty())
}

impl<R: Record> Rows<R> {
    /// Only rows that contain every word of `search` in one of `columns`, which hold folded names.
    #[must_use]
    pub fn found(self, columns: &[&str], search: Option<&str>) -> Self {
        words(search).fold(self, |rows, word| {
            let Some(pattern) = holding(word) else { return rows.filter("1 = 0", []) };
            let any: Vec<String> = columns.iter().map(|column| holds(column)).collect();
            rows.filter(&format!("({})", any.join(" OR ")), vec![pattern.into(); columns.len()])
        })
    }

    /// Only rows in which `column` has one of these values of an enumeration.
    #[must_use]
    pub fn one_of<T: Copy>(self, column: &str, wanted: Option<&[T]>, text: fn(T) -> &'static str) -> Self {
        let Some(wanted) = wanted else { return self };
        // The values are our own words. As literals they let partial indexes apply.
        let words: Vec<String> = wanted.iter().map(|value| format!("'{}'", text(*value))).collect();
        match words.as_slice() {
            [] => self.filter("1 = 0", []),
            [word] => self.filter(&format!("{column} = {word}"), []),
            words => self.filter(&format!("{column} IN ({})", words.join(", ")), []),
        }
    }

    /// Only rows that meet the condition, or that don't.
    #[must_use]
    pub fn whether(self, condition: &str, wanted: Option<bool>) -> Self {
        match wanted {
            Some(true) => self.filter(condition, []),
            Some(false) => self.filter(&format!("NOT ({condition})"), []),
            None => self,
        }
    }

    /// Sorted by name, or in the list's own order.
    #[must_use]
    pub fn listed(self, sort: Option<ListSort>, own: &'static str, name: &'static str) -> Self {
        match sort {
            Some(ListSort::Name) => self.order_by(name),
            Some(ListSort::Created) | None => self.order_by(own),
        }
    }
}

/// The id that a search may mean: `17` or `#17`.
#[must_use]
pub fn id_of(search: &str) -> Option<i64> {
    let digits = search.trim();
    let digits = digits.strip_prefix('#').unwrap_or(digits);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_words_and_perhaps_an_id() {
        assert_eq!(words(Some("  one  two ")).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(words(None).count(), 0);
        assert_eq!(words(Some("1 2 3 4 5 6 7 8 9")).last(), Some("8 9"));
        assert_eq!((id_of("17"), id_of(" #17 "), id_of("17a"), id_of("")), (Some(17), Some(17), None, None));
        assert_eq!(id_of("99999999999999999999"), None);
    }
}
