//! How much may be written: what is free on the disk, except a reserve, without which journal and agents would stop.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Room on a disk.
#[derive(Debug)]
pub struct Room {
    folder: PathBuf,
    reserve: u64,
    left: u64,
}

impl Room {
    /// The room on the disk of a folder.
    pub fn of(folder: &Path, reserve: u64) -> Self {
        Self { folder: folder.to_owned(), reserve, left: 0 }
    }

    /// Takes room for this many bytes.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.left {
            let free = free(&self.folder)?.saturating_sub(self.reserve);
            if bytes > free {
                let reserve = self.reserve / (1024 * 1024);
                let why = format!("the host's disk is full, except for the {reserve} MiB that it keeps free");
                return Err(io::Error::new(io::ErrorKind::StorageFull, why));
            }
            // Others write, too: so many bytes are written until the disk is asked again.
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
