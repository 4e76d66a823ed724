//! Archives of an agent's home.
//!
//! - `pack.rs`: packs a home. `unpack.rs`: unpacks into a folder.
//! - `disk_budget.rs`: keeps part of the disk free. `remove.rs`: removes a home.
//! - `frames.rs`: an archive on a stream with an explicit end.
//!
//! **A restore** unpacks next to the home and swaps the names: `home` becomes `home.before-<command>`, and
//! `home.new-<command>` becomes `home`. After a crash these names show the progress, and the restore continues from
//! there. The previous home stays until it is dropped.
//!
//! The host does this itself for a home that is a folder. In containers the files belong to users of the engine, and
//! only the engine's root can read and assign them. There `muster-shim keep` runs as root of a container with nothing
//! but the home, and the archive passes through a socket of the host.

mod disk_budget;
mod frames;
mod pack;
mod remove;
mod unpack;

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

pub use self::{
    disk_budget::DiskBudget,
    frames::{Receiver, Sender},
    pack::pack,
    remove::{open_as, remove},
};
use crate::{about, bounds::PIECE, folder::Address};

/// A task on a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Pack,
    /// Restores it from an archive.
    Restore {
        /// The command's id, by which an interrupted restore is found.
        command_id: i64,
        /// Bytes of the disk to keep free.
        reserve: u64,
    },
    /// Removes homes from before restores.
    Drop,
}

impl Task {
    /// The task's name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Restore { .. } => "restore",
            Self::Drop => "drop",
        }
    }

    /// The arguments after `keep`.
    pub fn to_args(self, socket: &str, home: &str) -> Vec<String> {
        let mut args = vec![socket.to_owned(), home.to_owned(), self.word().to_owned()];
        if let Self::Restore { command_id, reserve } = self {
            args.extend([command_id.to_string(), reserve.to_string()]);
        }
        args
    }
}

/// `muster-shim keep`: runs a task for the host at the other end of the socket.
pub(crate) fn run_task(socket: &Path, home: &Path, task: Task) -> io::Result<()> {
    let address = Address::for_socket(socket)?;
    let stream = UnixStream::connect(address.path()).map_err(|error| about(socket.display(), error))?;
    let done = match task {
        Task::Pack => pack(home, BufWriter::with_capacity(PIECE, Sender::new(&stream)))
            .and_then(|mut packed| packed.flush()),
        Task::Restore { command_id, reserve } => {
            let archive = BufReader::with_capacity(PIECE, Receiver::new(&stream));
            restore(home, command_id, reserve, archive)
        }
        Task::Drop => drop_old(home),
    };
    Sender::new(&stream).end(done.map_err(|error| error.to_string()))
}

/// Restores a home from an archive. Repeating it changes nothing.
pub fn restore(home: &Path, command_id: i64, reserve: u64, archive: impl Read) -> io::Result<()> {
    const WHAT: &str = "The home can't be restored";
    let (before, fresh) = (
        sibling_path(home, &format!("before-{command_id}")),
        sibling_path(home, &format!("new-{command_id}")),
    );
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    if exists(&before) && !exists(&fresh) && exists(home) {
        return Ok(());
    }
    if !exists(&fresh) {
        let partial = sibling_path(home, "unpacking");
        let unpacked = unpack_beside(archive, home, &partial, reserve);
        let kept = unpacked.and_then(|()| rename_durably(&partial, &fresh).map_err(at(WHAT)));
        if kept.is_err() {
            let _ = remove(&partial);
        }
        kept?;
    }
    if exists(home) {
        rename_durably(home, &before).map_err(at(WHAT))?;
    }
    rename_durably(&fresh, home).map_err(|source| {
        // Without a home the agent would start with an empty one.
        let _ = rename_durably(&before, home);
        at(WHAT)(source)
    })
}

/// Unpacks an archive into a new folder, and syncs it to the disk.
fn unpack_beside(archive: impl Read, home: &Path, partial: &Path, reserve: u64) -> io::Result<()> {
    const WHAT: &str = "The backup can't be unpacked";
    remove(partial).map_err(at(WHAT))?;
    let parent = partial.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(at(WHAT))?;
    DirBuilder::new().mode(0o700).create(partial).map_err(at(WHAT))?;
    unpack::unpack(archive, partial, DiskBudget::new(parent, reserve))?;
    if let Ok(like) = home.metadata() {
        fs::set_permissions(partial, like.permissions()).map_err(at(WHAT))?;
        if rustix::process::geteuid().is_root() {
            chown(partial, Some(like.uid()), Some(like.gid())).map_err(at(WHAT))?;
        }
    }
    let folder = File::open(partial).map_err(at(WHAT))?;
    rustix::fs::syncfs(&folder).map_err(|error| at(WHAT)(error.into()))
}

/// Removes the homes from before restores.
pub fn drop_old(home: &Path) -> io::Result<()> {
    let Some(parent) = home.parent() else { return Ok(()) };
    let start = sibling_path(home, "before-").into_os_string();
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if path.as_os_str().as_encoded_bytes().starts_with(start.as_encoded_bytes()) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// A path next to the home.
fn sibling_path(home: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(home);
    name.push(".");
    name.push(what);
    name.into()
}

/// Renames, and syncs the folder.
pub fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Adds the failed step to an error.
fn at(what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| about(what, error)
}
