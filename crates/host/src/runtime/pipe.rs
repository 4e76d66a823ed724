//! The pipe by which a container's shim gets the agent's environment. What is in a container's definition is kept by its
//! engine, in a file; this is kept by nobody.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat},
    io::Errno,
};

/// Makes it, unless it is there.
pub(super) fn make(path: &Path) -> io::Result<()> {
    match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens it, if somebody reads. Writing to it waits for them.
pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) => {
            fcntl_setfl(&file, OFlags::empty())?;
            Ok(Some(file))
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes all of it.
pub(super) async fn write(mut file: File, bytes: Vec<u8>) -> io::Result<()> {
    let written = tokio::task::spawn_blocking(move || file.write_all(&bytes)).await;
    written.map_err(io::Error::other)?
}
