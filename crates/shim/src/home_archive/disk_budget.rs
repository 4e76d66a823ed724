//! Free space on the disk, minus a reserve that journal and agents need.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Writable bytes on a disk.
#[derive(Debug)]
pub struct DiskBudget {
    folder: PathBuf,
    reserve: u64,
    left: u64,
}

impl DiskBudget {
    /// The budget on a folder's disk.
    pub fn new(folder: &Path, reserve: u64) -> Self {
        Self { folder: folder.to_owned(), reserve, left: 0 }
    }

    /// Takes this many bytes, or fails if the disk is full.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.left {
            let free = free(&self.folder)?.saturating_sub(self.reserve);
            if bytes > free {
                let reserve = self.reserve / (1024 * 1024);
                let why = format!("the host's disk is full, except for the {reserve} MiB that it keeps free");
                return Err(io::Error::new(io::ErrorKind::StorageFull, why));
            }
            // Others write too, so the disk is asked again after this many bytes.
            self.left = free.min(bytes.max(8 << 20));
        }
        self.left -= bytes;
        Ok(())
    }
}

fn free(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
