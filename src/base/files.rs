//! Writes files that only their owner may read, and files that appear whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

/// Options for a file that only its owner can read, from the first byte on.
#[must_use]
pub fn private_options() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a file that only its owner can read. It must not exist yet.
///
/// # Errors
/// The file exists, or the folder is not writable.
pub fn create_private(path: &Path) -> io::Result<File> {
    private_options().create_new(true).open(path)
}

/// Replaces a file with a finished one. Readers see either the old file or the new one, and one of them survives a
/// power failure.
///
/// # Errors
/// The folder is not writable.
pub fn replace_file(finished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(finished, path)?;
    sync_parent_folder(path)
}

/// Makes the name of a file or folder survive a power failure. Its contents are synced separately.
///
/// # Errors
/// The folder that it is in can't be synced.
pub fn sync_parent_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            // Not every file system supports this, and write access to the folder does not always permit it.
            Err(error)
                if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_in_every_folder_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for path in [file.as_path(), folder.path(), Path::new("file"), Path::new("/")] {
            sync_parent_folder(path).unwrap();
        }
        assert!(sync_parent_folder(&folder.path().join("missing/file")).is_err());
    }
}
