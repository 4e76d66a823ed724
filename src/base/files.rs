//! Files that are for their owner alone, and files that are whole or not there: one way to write either.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

/// How a file is opened for writing that nobody but its owner may read, from its first byte on.
#[must_use]
pub fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes such a file, where there must be none yet.
///
/// # Errors
/// There is one, or the folder can't be written.
pub fn create_private(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Puts a finished file in the place of another one: whoever reads meanwhile finds the old one or the new one, and after a
/// power failure one of them is there.
///
/// # Errors
/// The folder can't be written.
pub fn put_in_place(finished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(finished, path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
