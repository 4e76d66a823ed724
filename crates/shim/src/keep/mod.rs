//! Copies of an agent's home: packed into an archive, and unpacked again.
//!
//! - `pack.rs`: a home into an archive. `unpack.rs`: an archive into a folder.
//! - `room.rs`: the disk is never filled up. `remove.rs`: a home is removed.
//! - `frames.rs`: an archive on a stream, whose end is said.
//!
//! **A restore** unpacks beside the home, and changes the names: `home` becomes `home.before-<command>`, and
//! `home.new-<command>` becomes `home`. After a crash these names show how far it came, and goes on
//! from there. The home before stays until it is dropped.
//!
//! The host does this itself where a home is a folder of its own. In containers the files belong to users whom the engine's
//! root alone reads and gives away: there `muster-shim keep` does it, as root of a container that has the home and nothing
//! else, and the archive comes and goes by a socket of the host.

mod frames;
mod pack;
mod remove;
mod room;
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
    frames::{Receiver, Sender},
    pack::pack,
    remove::{open_as, remove},
    room::Room,
};
use crate::{about, bounds::PIECE, folder::Address};

/// What is done with a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// It is packed.
    Pack,
    /// It becomes what it was.
    Restore {
        /// The command, by which an interrupted restore is found again.
        command_id: i64,
        /// How many bytes of the disk stay free.
        reserve: u64,
    },
    /// The homes from before restores are removed.
    Drop,
}

impl Task {
    /// What it is called.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Restore { .. } => "restore",
            Self::Drop => "drop",
        }
    }

    /// The arguments after `keep` that say this.
    pub fn to_args(self, socket: &str, home: &str) -> Vec<String> {
        let mut args = vec![socket.to_owned(), home.to_owned(), self.word().to_owned()];
        if let Self::Restore { command_id, reserve } = self {
            args.extend([command_id.to_string(), reserve.to_string()]);
        }
        args
    }
}

/// `muster-shim keep`: does it, with a host at the other end of the socket.
pub(crate) fn keep(socket: &Path, home: &Path, task: Task) -> io::Result<()> {
    let address = Address::of(socket)?;
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

/// Makes a home what it is in an archive. Doing it again changes nothing.
pub fn restore(home: &Path, command_id: i64, reserve: u64, archive: impl Read) -> io::Result<()> {
    const WHAT: &str = "The home can't be restored";
    let (before, fresh) =
        (beside(home, &format!("before-{command_id}")), beside(home, &format!("new-{command_id}")));
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    if exists(&before) && !exists(&fresh) && exists(home) {
        return Ok(());
    }
    if !exists(&fresh) {
        let partial = beside(home, "unpacking");
        let unpacked = unpacked(archive, home, &partial, reserve);
        let kept = unpacked.and_then(|()| renamed(&partial, &fresh).map_err(at(WHAT)));
        if kept.is_err() {
            let _ = remove(&partial);
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

/// Unpacks an archive into a new folder, which is on the disk then.
fn unpacked(archive: impl Read, home: &Path, partial: &Path, reserve: u64) -> io::Result<()> {
    const WHAT: &str = "The backup can't be unpacked";
    remove(partial).map_err(at(WHAT))?;
    let parent = partial.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(at(WHAT))?;
    DirBuilder::new().mode(0o700).create(partial).map_err(at(WHAT))?;
    unpack::unpack(archive, partial, Room::of(parent, reserve))?;
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
    let start = beside(home, "before-").into_os_string();
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if path.as_os_str().as_encoded_bytes().starts_with(start.as_encoded_bytes()) {
            remove(&path)?;
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

/// Renames, and waits until the disk knows.
pub fn renamed(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// What was done when it failed.
fn at(what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| about(what, error)
}
