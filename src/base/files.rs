//! Writes files that only their owner may read, and files that appear whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

/// Options for a file that only its owner can read, from the first byte on.
#[must_use]
pub fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates such a file. It must not exist yet.
///
/// # Errors
/// The file exists, or the folder is not writable.
pub fn create_private(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Moves a finished file into the place of another. Readers see either the old file or the new one, and one of them
/// survives a power failure.
///
/// # Errors
/// The folder is not writable.
pub fn put_in_place(finished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(finished, path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
