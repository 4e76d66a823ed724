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

/// The Rust files of a folder of the repository, by their names in it: without unit tests and lines of comments.
pub fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let rust = files_below(&root).into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs"));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        (file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), code.join("\n"))
    };
    rust.map(read).filter(|(file, _)| !file.ends_with("tests.rs")).collect()
}
