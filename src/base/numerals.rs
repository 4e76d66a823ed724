//! Numbers with their nouns.

use std::fmt::Display;

/// `1 file`, `4 files`. `noun` is singular and takes an s in the plural.
#[must_use]
pub fn with_noun<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let s = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        let said = [with_noun(0_usize, "file"), with_noun(1_i64, "file"), with_noun(2_u32, "policy file")];
        assert_eq!(said, ["0 files", "1 file", "2 policy files"]);
    }
}
