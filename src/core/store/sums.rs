//! Sums of reported numbers.

/// A sum this large stops growing. An overflow caused by a single host would make every later change of the row fail,
/// or yield an unreadable number.
pub const FULL: i64 = 1 << 60;

/// SQL for the sum of a column and `more`.
#[must_use]
pub fn added(column: &str, more: i64) -> String {
    format!("CASE WHEN {column} < {FULL} THEN {column} + {more} ELSE {column} END")
}
