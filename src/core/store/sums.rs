//! Sums of what others report.

/// A sum that is so large counts no further. One that overflowed because of a single host would refuse every later change of
/// its row, or come back as a number that no one can read.
pub const FULL: i64 = 1 << 60;

/// SQL for a column and what is added to it.
#[must_use]
pub fn added(column: &str, more: i64) -> String {
    format!("CASE WHEN {column} < {FULL} THEN {column} + {more} ELSE {column} END")
}
