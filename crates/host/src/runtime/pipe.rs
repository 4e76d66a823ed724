//! The pipe for the agent's environment into a container's shim. An engine stores a container's definition in a file;
//! the pipe's content is stored nowhere.

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

/// Creates the pipe, unless it exists.
pub(super) fn make(path: &Path) -> io::Result<()> {
    match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens the pipe, if it has a reader. Writes wait for the reader.
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

pub(super) async fn write(mut file: File, bytes: Vec<u8>) -> io::Result<()> {
    let written = tokio::task::spawn_blocking(move || file.write_all(&bytes)).await;
    written.map_err(io::Error::other)?
}
