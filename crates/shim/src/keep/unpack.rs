//! An archive into a new folder. No one else writes there; even so, every step is taken from the folder itself and through
//! no link, and whatever a home's archive doesn't hold is refused.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chownat, fchmod, fchown, futimens, linkat,
        mkdirat, open, openat, openat2, symlinkat,
    },
    process::geteuid,
};
use tar::{Archive, Entry, EntryType};

use super::{
    at,
    pack::{FOLDER, WITHIN},
    room::Room,
};
use crate::bounds::PIECE;

const WHAT: &str = "The backup can't be unpacked";
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(OFlags::CLOEXEC);

/// Unpacks an archive into an empty folder.
pub fn unpack(archive: impl Read, into: &Path, room: Room) -> io::Result<()> {
    let root = open(into, FOLDER, Mode::empty()).map_err(|error| at(WHAT)(error.into()))?;
    let mut unpacker = Unpacker { root, room, folders: Vec::new(), keeps_owners: geteuid().is_root() };
    let mut archive = Archive::new(archive);
    for entry in archive.entries().map_err(at(WHAT))? {
        unpacker.entry(entry.map_err(at(WHAT))?)?;
    }
    unpacker.finish().map_err(at(WHAT))
}

/// What is set when everything is there: a folder may be closed for writing.
struct Shape {
    mode: Mode,
    owner: (Uid, Gid),
    times: Timestamps,
}

struct Unpacker {
    root: OwnedFd,
    room: Room,
    folders: Vec<(PathBuf, Shape)>,
    /// Root alone gives files away; in containers agents have users of their own.
    keeps_owners: bool,
}

impl Unpacker {
    fn entry(&mut self, mut entry: Entry<'_, impl Read>) -> io::Result<()> {
        let path = inside(&entry.path_bytes())?;
        // What a file or a folder takes besides its bytes.
        self.room.take(4096).map_err(at(WHAT))?;
        let shape = shape(&entry).map_err(at(WHAT))?;
        let (folder, name) = self.place(&path).map_err(at(WHAT))?;
        match entry.header().entry_type() {
            EntryType::Directory => {
                mkdirat(&folder, &name, Mode::RWXU).map_err(|error| at(WHAT)(error.into()))?;
                self.folders.push((path, shape));
                Ok(())
            }
            EntryType::Regular => self.file(&mut entry, &folder, &name, &shape).map_err(at(WHAT)),
            EntryType::Symlink => {
                let target = entry.link_name_bytes().ok_or_else(strange)?;
                self.symlink(&target, &folder, &name, &shape).map_err(at(WHAT))
            }
            EntryType::Link => {
                let first = inside(&entry.link_name_bytes().ok_or_else(strange)?)?;
                let (from, first) = self.place(&first).map_err(at(WHAT))?;
                linkat(&from, &first, &folder, &name, AtFlags::empty())
                    .map_err(|error| at(WHAT)(error.into()))
            }
            _ => Err(strange()),
        }
    }

    /// The folder of a path, and the path's last part.
    fn place(&self, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        let folder = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => openat2(&self.root, parent, FOLDER, Mode::empty(), WITHIN)?,
            None => self.root.try_clone()?,
        };
        Ok((folder, name))
    }

    fn file(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        folder: &OwnedFd,
        name: &Path,
        shape: &Shape,
    ) -> io::Result<()> {
        let file = File::from(openat(folder, name, NEW, Mode::RUSR | Mode::WUSR)?);
        // Where all of it is zeros, a hole is left.
        let (mut buffer, mut at) = (vec![0; PIECE], 0);
        loop {
            let read = fill(entry, &mut buffer)?;
            if read == 0 {
                break;
            }
            if buffer[..read].iter().any(|byte| *byte != 0) {
                self.room.take(read as u64)?;
                file.write_all_at(&buffer[..read], at)?;
            }
            at += read as u64;
        }
        file.set_len(at)?;
        self.give(&file.into(), shape)
    }

    fn symlink(&self, target: &[u8], folder: &OwnedFd, name: &Path, shape: &Shape) -> io::Result<()> {
        symlinkat(OsStr::from_bytes(target), folder, name)?;
        if self.keeps_owners {
            let (uid, gid) = shape.owner;
            chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    /// Gives folders their modes and times, the deepest first.
    fn finish(self) -> io::Result<()> {
        for (path, shape) in self.folders.iter().rev() {
            let folder = openat2(&self.root, path, FOLDER, Mode::empty(), WITHIN)?;
            self.give(&folder, shape)?;
        }
        Ok(())
    }

    fn give(&self, file: &OwnedFd, shape: &Shape) -> io::Result<()> {
        if self.keeps_owners {
            let (uid, gid) = shape.owner;
            fchown(file, Some(uid), Some(gid))?;
        }
        fchmod(file, shape.mode)?;
        Ok(futimens(file, &shape.times)?)
    }
}

/// Reads until the buffer is full, or nothing is left.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// A path that stays inside.
fn inside(path: &[u8]) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && path.file_name().is_some() { Ok(path.to_owned()) } else { Err(strange()) }
}

fn strange() -> io::Error {
    io::Error::other("The backup holds something that no home holds. Nothing was restored")
}

fn shape(entry: &Entry<'_, impl Read>) -> io::Result<Shape> {
    let header = entry.header();
    let id = |id: u64| u32::try_from(id).map_err(io::Error::other);
    let time = Timespec { tv_sec: header.mtime()?.cast_signed(), tv_nsec: 0 };
    Ok(Shape {
        mode: Mode::from_raw_mode(header.mode()? & 0o777),
        owner: (Uid::from_raw(id(header.uid()?)?), Gid::from_raw(id(header.gid()?)?)),
        times: Timestamps { last_access: time, last_modification: time },
    })
}
