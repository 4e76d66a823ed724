//! Backups of agents' homes: one file each, `<dir>/backups/<agent>/<backup>.tar.zst`, which `tar --zstd` reads too.
//!
//! - `pack.rs`: a home into an archive. `unpack.rs`: an archive into a folder.
//! - `room.rs`: the disk is never filled up.
//!
//! **A backup** is written under another name, synchronized, and renamed, so a file that has its name is whole. The agent may
//! run meanwhile, and what it changes then may be half in it.
//!
//! **A restore** checks the file's SHA-256, unpacks beside the home, and changes the names: `home` becomes
//! `home.before-<command>`, and `home.new-<command>` becomes `home`. A host that is killed anywhere finds out from these
//! names how far it came, and goes on from there. The home before stays until the agent is started.

mod pack;
mod room;
#[cfg(test)]
mod tests;
mod unpack;

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use self::room::Room;
use crate::folder::{Folder, FolderError, create_private};

/// How well files are compressed: zstd's own default.
const LEVEL: i32 = 3;

/// Why a home was not backed up or restored. People read it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("The agent has no home on this host yet: it was never started here.")]
    NoHome,
    /// The home can't be reached.
    #[error("The agent's home can't be reached: {0}")]
    Unreachable(String),
    /// The home can't be an archive.
    #[error("{0}")]
    Unfit(String),
    /// The file is gone.
    #[error("The backup's file is not on this host any more.")]
    Missing,
    /// The file is another.
    #[error(
        "The backup's file was changed after it was written: its SHA-256 is another. Nothing was restored."
    )]
    Changed,
    /// The agent runs.
    #[error("The agent runs. Stop it, and restore again.")]
    Running,
    /// The host's folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file can't be read or written.
    #[error("{what}: {source}.")]
    Io {
        /// What was done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A bug.
    #[error("The host failed. Its log has the cause.")]
    Failed,
}

/// A backup that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The size of its file, in bytes.
    pub bytes: u64,
    /// The SHA-256 of its file, in hexadecimal.
    pub sha256: String,
}

type Result<T> = std::result::Result<T, BackupError>;

fn at(what: &'static str) -> impl FnOnce(io::Error) -> BackupError {
    move |source| BackupError::Io { what, source }
}

/// Backs up a home. The disk keeps `reserve` bytes free.
pub fn back_up(
    folder: &Folder,
    home: &Path,
    (agent_id, backup_id): (i64, i64),
    reserve: u64,
) -> Result<Written> {
    let file = folder.backup(agent_id, backup_id);
    let dir = folder.backups(agent_id);
    create_private(&dir)?;
    let partial = file.with_extension("part");
    let done = write(home, &partial, Room::of(&dir, reserve)).and_then(|written| {
        renamed(&partial, &file).map_err(at("The backup can't be kept"))?;
        Ok(written)
    });
    if done.is_err() {
        let _ = fs::remove_file(&partial);
    }
    done
}

fn write(home: &Path, partial: &Path, room: Room) -> Result<Written> {
    const WHAT: &str = "The backup can't be written";
    let open = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(partial);
    let file = open.map_err(at(WHAT))?;
    let out = Digested { file, room, sha256: Sha256::new(), bytes: 0 };
    let mut encoder = zstd::Encoder::new(out, LEVEL).map_err(at(WHAT))?;
    encoder.include_checksum(true).map_err(at(WHAT))?;
    let packed = pack::pack(home, encoder)?;
    let out = packed.out.finish().map_err(at(WHAT))?;
    out.file.sync_all().map_err(at(WHAT))?;
    tracing::info!(
        bytes = out.bytes,
        entries = packed.entries,
        left_out = packed.left_out,
        "a home is backed up"
    );
    Ok(Written { bytes: out.bytes, sha256: hex(&out.sha256.finalize()) })
}

/// Makes a home what it was in a backup. `command_id` identifies the command: carrying it out again changes nothing.
pub fn restore(
    folder: &Folder,
    home: &Path,
    (agent_id, backup_id, command_id): (i64, i64, i64),
    sha256: &str,
    reserve: u64,
) -> Result<()> {
    const WHAT: &str = "The home can't be restored";
    let (before, fresh) =
        (beside(home, &format!("before-{command_id}")), beside(home, &format!("new-{command_id}")));
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    if exists(&before) && !exists(&fresh) && exists(home) {
        return Ok(());
    }
    if !exists(&fresh) {
        let partial = beside(home, "unpacking");
        let unpacked = unpacked(folder.backup(agent_id, backup_id), sha256, home, &partial, reserve);
        let kept = unpacked.and_then(|()| renamed(&partial, &fresh).map_err(at(WHAT)));
        if kept.is_err() {
            let _ = removed(&partial);
        }
        kept?;
    }
    if exists(home) {
        renamed(home, &before).map_err(at(WHAT))?;
    }
    renamed(&fresh, home).map_err(|source| {
        // Without a home the agent would begin with an empty one.
        let _ = renamed(&before, home);
        at(WHAT)(source)
    })
}

/// Unpacks the backup into a new folder, which is on the disk then.
fn unpacked(file: PathBuf, sha256: &str, home: &Path, partial: &Path, reserve: u64) -> Result<()> {
    const WHAT: &str = "The backup can't be unpacked";
    let mut file = File::open(file).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => BackupError::Missing,
        _ => at("The backup can't be read")(source),
    })?;
    if digest(&mut file).map_err(at("The backup can't be read"))? != sha256 {
        return Err(BackupError::Changed);
    }
    file.rewind().map_err(at(WHAT))?;
    removed(partial).map_err(at(WHAT))?;
    let parent = partial.parent().unwrap_or(Path::new("/"));
    create_private(parent)?;
    fs::DirBuilder::new().mode(0o700).create(partial).map_err(at(WHAT))?;
    let decoder = zstd::Decoder::new(file).map_err(at(WHAT))?;
    unpack::unpack(decoder, partial, Room::of(parent, reserve))?;
    if let Ok(like) = home.metadata() {
        fs::set_permissions(partial, like.permissions()).map_err(at(WHAT))?;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(partial, Some(like.uid()), Some(like.gid())).map_err(at(WHAT))?;
        }
    }
    let folder = File::open(partial).map_err(at(WHAT))?;
    rustix::fs::syncfs(&folder).map_err(|error| at(WHAT)(error.into()))
}

/// Removes a backup's file. One that is gone already is not an error.
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

/// Removes the homes from before restores.
pub fn drop_old_homes(home: &Path) -> io::Result<()> {
    let Some(parent) = home.parent() else { return Ok(()) };
    let start = beside(home, "before-").into_os_string();
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if path.as_os_str().as_encoded_bytes().starts_with(start.as_encoded_bytes()) {
            removed(&path)?;
        }
    }
    Ok(())
}

/// A name beside the home.
fn beside(home: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(home);
    name.push(".");
    name.push(what);
    name.into()
}

fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Renames, and waits until the disk knows.
fn renamed(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
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

/// A file that is digested while it is written, as long as there is room.
struct Digested {
    file: File,
    room: Room,
    sha256: Sha256,
    bytes: u64,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room.take(bytes.len() as u64)?;
        let written = self.file.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
