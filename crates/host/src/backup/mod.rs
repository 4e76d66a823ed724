//! Backups of agents' homes, each a file `<dir>/backups/<agent>/<backup>.tar.zst`, readable by `tar --zstd`.
//!
//! `muster_shim::home_archive` handles the homes: in this process for a home that is a folder, in a container's shim
//! for a volume (`runtime/home_container.rs`).
//!
//! **A backup** is written under another name, synced, and renamed, so a file with its final name is complete. The
//! agent may be running, and its concurrent changes may be partly included.
//!
//! **A restore** checks the file's SHA-256 before unpacking.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Seek, Write},
    net::Shutdown,
    os::unix::{fs::OpenOptionsExt, net::UnixStream},
    path::{Path, PathBuf},
};

use muster_shim::home_archive::{self, DiskBudget, Receiver, Sender};
use sha2::{Digest, Sha256};

use crate::folder::{Folder, FolderError, create_private};

/// Why a backup or a restore failed. People read it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("The agent has no home on this host yet: it was never started here.")]
    NoHome,
    #[error("The agent's home can't be reached: {0}")]
    Unreachable(String),
    #[error("{0}.")]
    Home(io::Error),
    #[error("The backup's file is no longer on this host.")]
    Missing,
    #[error("The backup's file was changed after it was written: its SHA-256 differs. Nothing was restored.")]
    Changed,
    #[error("The agent is running. Stop it, and restore again.")]
    Running,
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{what}: {source}.")]
    Io {
        /// The failed action.
        what: &'static str,
        source: io::Error,
    },
    /// A bug.
    #[error("The host failed. Its log has the cause.")]
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteBackup {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

type Result<T> = std::result::Result<T, BackupError>;

fn at(what: &'static str) -> impl FnOnce(io::Error) -> BackupError {
    move |source| BackupError::Io { what, source }
}

/// Access to a home.
#[derive(Debug)]
pub enum Home {
    /// A folder, by this process.
    Folder(PathBuf),
    /// A volume, by a shim with a task; this is the host's end of its stream.
    Volume(UnixStream),
}

impl Home {
    /// Packs the home. Returns the writer.
    fn pack<W: Write>(self, mut out: W) -> Result<W> {
        match self {
            Self::Folder(home) if !home.is_dir() => Err(BackupError::NoHome),
            Self::Folder(home) => home_archive::pack(&home, out).map_err(BackupError::Home),
            Self::Volume(stream) => {
                let mut archive = Receiver::new(&stream);
                match io::copy(&mut archive, &mut out) {
                    Ok(_) => Ok(out),
                    Err(error) if archive.has_failed() => Err(BackupError::Home(error)),
                    Err(error) => Err(at("The backup can't be written")(error)),
                }
            }
        }
    }

    /// Restores the home from an archive.
    fn restore(self, command_id: i64, reserve: u64, mut archive: impl Read) -> Result<()> {
        match self {
            Self::Folder(home) => {
                home_archive::restore(&home, command_id, reserve, archive).map_err(BackupError::Home)
            }
            Self::Volume(stream) => {
                let mut to = BufWriter::with_capacity(muster_shim::PIECE, Sender::new(&stream));
                let sent = io::copy(&mut archive, &mut to).map(|_| ()).map_err(|error| error.to_string());
                // A shim that already finished this restore reads nothing, so only its answer counts. A read error here
                // is repeated in its answer.
                let _ = to.into_inner().map_err(io::Error::from).and_then(|to| to.end(sent));
                let _ = stream.shutdown(Shutdown::Write);
                answer(&stream)
            }
        }
    }

    /// Removes the homes from before restores.
    pub fn drop_old(self) -> Result<()> {
        match self {
            Self::Folder(home) => home_archive::drop_old(&home).map_err(BackupError::Home),
            Self::Volume(stream) => answer(&stream),
        }
    }
}

/// The shim's final answer.
fn answer(stream: &UnixStream) -> Result<()> {
    let mut said = Receiver::new(stream);
    match io::copy(&mut said, &mut io::sink()) {
        Ok(_) => Ok(()),
        Err(error) if said.has_failed() => Err(BackupError::Home(error)),
        Err(error) => Err(at("The container that copies the home doesn't answer")(error)),
    }
}

/// Backs up a home. The disk keeps `reserve` bytes free.
pub fn back_up(
    folder: &Folder,
    home: Home,
    agent_id: i64,
    backup_id: i64,
    reserve: u64,
) -> Result<CompleteBackup> {
    let file = folder.backup(agent_id, backup_id);
    let dir = folder.backups(agent_id);
    create_private(&dir)?;
    let partial = file.with_extension("part");
    let done = write(home, &partial, DiskBudget::new(&dir, reserve)).and_then(|written| {
        home_archive::rename_durably(&partial, &file).map_err(at("The backup can't be stored"))?;
        Ok(written)
    });
    if done.is_err() {
        let _ = fs::remove_file(&partial);
    }
    done
}

fn write(home: Home, partial: &Path, disk: DiskBudget) -> Result<CompleteBackup> {
    const WHAT: &str = "The backup can't be written";
    let open = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(partial);
    let file = open.map_err(at(WHAT))?;
    let out = HashingWriter { file, disk, sha256: Sha256::new(), bytes: 0 };
    // zstd's own default.
    let mut encoder = zstd::Encoder::new(out, 3).map_err(at(WHAT))?;
    encoder.include_checksum(true).map_err(at(WHAT))?;
    let out = home.pack(encoder)?.finish().map_err(at(WHAT))?;
    out.file.sync_all().map_err(at(WHAT))?;
    tracing::info!(bytes = out.bytes, "a home is backed up");
    Ok(CompleteBackup { bytes: out.bytes, sha256: hex(&out.sha256.finalize()) })
}

/// Restores a home from a backup. `command_id` identifies the command: repeating it changes nothing.
pub fn restore(
    folder: &Folder,
    home: Home,
    agent_id: i64,
    backup_id: i64,
    command_id: i64,
    sha256: &str,
    reserve: u64,
) -> Result<()> {
    const WHAT: &str = "The backup can't be read";
    let mut file = File::open(folder.backup(agent_id, backup_id)).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => BackupError::Missing,
        _ => at(WHAT)(source),
    })?;
    if digest(&mut file).map_err(at(WHAT))? != sha256 {
        return Err(BackupError::Changed);
    }
    file.rewind().map_err(at(WHAT))?;
    home.restore(command_id, reserve, zstd::Decoder::new(file).map_err(at(WHAT))?)
}

/// Removes a backup's file. A missing file is not an error.
pub fn forget(folder: &Folder, agent_id: i64, backup_id: i64) -> io::Result<()> {
    let file = folder.backup(agent_id, backup_id);
    for path in [file.with_extension("part"), file] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn digest(file: &mut File) -> io::Result<String> {
    let (mut sha256, mut buffer) = (Sha256::new(), vec![0; 128 * 1024]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&sha256.finalize())),
            read => sha256.update(&buffer[..read]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file, hashed while written, within the disk's budget.
struct HashingWriter {
    file: File,
    disk: DiskBudget,
    sha256: Sha256,
    bytes: u64,
}

impl Write for HashingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.take(bytes.len() as u64)?;
        let written = self.file.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
