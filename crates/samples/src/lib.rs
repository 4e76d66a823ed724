//! The samples in `tests/samples`: what vendors send, each beside what must come of it.
//!
//! A sample is two files in the folder of its kind: the input (`<name>.eml`, `.json`, `.txt` …) and `<name>.expected.json`. The crate
//! that reads the kind has a test `samples`, which calls [`check`]. `UPDATE=1` writes what is expected.

#![expect(clippy::expect_used, reason = "tests call this crate")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The folders, and the crate whose test reads each.
pub const KINDS: &[(&str, &str)] = &[
    ("acp", "muster-host"),
    ("calendar", "muster-channels"),
    ("code_host", "muster-channels"),
    ("discord", "muster-channels"),
    ("drive", "muster-channels"),
    ("id_tokens", "muster"),
    ("mail", "muster-channels"),
    ("slack", "muster-channels"),
    ("streams", "muster-egress"),
    ("telegram", "muster-channels"),
    ("webhook", "muster-channels"),
];

const EXPECTED: &str = ".expected.json";

/// Reads every sample of a kind, and compares the results.
///
/// # Panics
/// A result is another one than expected, a file has no partner, or the kind has no samples.
pub fn check(kind: &str, read: impl Fn(&[u8]) -> Value) {
    assert!(KINDS.iter().any(|(known, _)| *known == kind), "{kind} is not in KINDS");
    let folder = folder(kind);
    let files = files(&folder);
    let inputs: Vec<&String> = files.iter().filter(|name| !name.ends_with(EXPECTED)).collect();
    assert!(!inputs.is_empty(), "{} has no samples", folder.display());
    let mut partners = BTreeSet::new();
    let mut wrong = Vec::new();
    for input in inputs {
        let name = input.split_once('.').map_or(input.as_str(), |(name, _)| name);
        let partner = format!("{name}{EXPECTED}");
        let found = read(&fs::read(folder.join(input)).expect("a sample can be read"));
        assert!(partners.insert(partner.clone()), "two samples are called {name}");
        let expected = fs::read(folder.join(&partner)).unwrap_or_default();
        let expected: Value = serde_json::from_slice(&expected).unwrap_or_default();
        if found == expected {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            let text = serde_json::to_string_pretty(&found).expect("a value is JSON") + "\n";
            fs::write(folder.join(partner), text).expect("a sample can be written");
        } else {
            wrong.push(format!("{kind}/{input}\nexpected: {expected:#}\nfound: {found:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let alone: Vec<&String> =
        files.iter().filter(|name| name.ends_with(EXPECTED) && !partners.contains(*name)).collect();
    assert!(alone.is_empty(), "{alone:?} belong to no input");
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/samples").join(kind)
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_is_of_a_kind() {
        let kinds: BTreeSet<String> = KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
        assert_eq!(files(&folder("")), kinds);
    }
}
