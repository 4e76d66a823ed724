//! The repository's own files.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// All files below a folder, without those of installed packages.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if !entry.is_dir() {
            files.push(entry);
        } else if !entry.ends_with("node_modules") {
            files.extend(files_below(&entry));
        }
    }
    files
}
