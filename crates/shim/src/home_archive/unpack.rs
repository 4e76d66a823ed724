//! Unpacks an archive into a new folder. No one else writes there; even so, every path is resolved from the folder
//! itself, through no link, and entries that no home contains are refused.

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
    disk_budget::DiskBudget,
    pack::{FOLDER, WITHIN},
};
use crate::bounds::PIECE;

const WHAT: &str = "The backup can't be unpacked";
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(OFlags::CLOEXEC);

/// Unpacks an archive into an empty folder.
pub fn unpack(archive: impl Read, into: &Path, disk: DiskBudget) -> io::Result<()> {
    let root = open(into, FOLDER, Mode::empty()).map_err(|error| at(WHAT)(error.into()))?;
    let mut unpacker = Unpacker { root, disk, folders: Vec::new(), keeps_owners: geteuid().is_root() };
    let mut archive = Archive::new(archive);
    for entry in archive.entries().map_err(at(WHAT))? {
        unpacker.unpack_entry(entry.map_err(at(WHAT))?)?;
    }
    unpacker.apply_folder_metadata().map_err(at(WHAT))
}

/// Set on folders at the end, since a folder may be closed for writing.
struct Metadata {
    mode: Mode,
    owner: (Uid, Gid),
    times: Timestamps,
}

struct Unpacker {
    root: OwnedFd,
    disk: DiskBudget,
    folders: Vec<(PathBuf, Metadata)>,
    /// Only root can change owners; in containers agents have users of their own.
    keeps_owners: bool,
}

impl Unpacker {
    fn unpack_entry(&mut self, mut entry: Entry<'_, impl Read>) -> io::Result<()> {
        let path = require_inside(&entry.path_bytes())?;
        // An entry's size on the disk, without its content.
        self.disk.take(4096).map_err(at(WHAT))?;
        let metadata = read_metadata(&entry).map_err(at(WHAT))?;
        let (folder, name) = self.open_parent(&path).map_err(at(WHAT))?;
        match entry.header().entry_type() {
            EntryType::Directory => {
                mkdirat(&folder, &name, Mode::RWXU).map_err(|error| at(WHAT)(error.into()))?;
                self.folders.push((path, metadata));
                Ok(())
            }
            EntryType::Regular => self.write_file(&mut entry, &folder, &name, &metadata).map_err(at(WHAT)),
            EntryType::Symlink => {
                let target = entry.link_name_bytes().ok_or_else(unexpected_content)?;
                self.write_symlink(&target, &folder, &name, &metadata).map_err(at(WHAT))
            }
            EntryType::Link => {
                let first = require_inside(&entry.link_name_bytes().ok_or_else(unexpected_content)?)?;
                let (from, first) = self.open_parent(&first).map_err(at(WHAT))?;
                linkat(&from, &first, &folder, &name, AtFlags::empty())
                    .map_err(|error| at(WHAT)(error.into()))
            }
            _ => Err(unexpected_content()),
        }
    }

    /// The open parent folder of a path, and the path's last part.
    fn open_parent(&self, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        let folder = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => openat2(&self.root, parent, FOLDER, Mode::empty(), WITHIN)?,
            None => self.root.try_clone()?,
        };
        Ok((folder, name))
    }

    fn write_file(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        folder: &OwnedFd,
        name: &Path,
        metadata: &Metadata,
    ) -> io::Result<()> {
        let file = File::from(openat(folder, name, NEW, Mode::RUSR | Mode::WUSR)?);
        // Blocks of zeros become holes.
        let (mut buffer, mut at) = (vec![0; PIECE], 0);
        loop {
            let read = fill(entry, &mut buffer)?;
            if read == 0 {
                break;
            }
            if buffer[..read].iter().any(|byte| *byte != 0) {
                self.disk.take(read as u64)?;
                file.write_all_at(&buffer[..read], at)?;
            }
            at += read as u64;
        }
        file.set_len(at)?;
        self.apply_metadata(&file.into(), metadata)
    }

    fn write_symlink(
        &self,
        target: &[u8],
        folder: &OwnedFd,
        name: &Path,
        metadata: &Metadata,
    ) -> io::Result<()> {
        symlinkat(OsStr::from_bytes(target), folder, name)?;
        if self.keeps_owners {
            let (uid, gid) = metadata.owner;
            chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    /// Sets modes and times of folders, the deepest first.
    fn apply_folder_metadata(self) -> io::Result<()> {
        for (path, metadata) in self.folders.iter().rev() {
            let folder = openat2(&self.root, path, FOLDER, Mode::empty(), WITHIN)?;
            self.apply_metadata(&folder, metadata)?;
        }
        Ok(())
    }

    fn apply_metadata(&self, file: &OwnedFd, metadata: &Metadata) -> io::Result<()> {
        if self.keeps_owners {
            let (uid, gid) = metadata.owner;
            fchown(file, Some(uid), Some(gid))?;
        }
        fchmod(file, metadata.mode)?;
        Ok(futimens(file, &metadata.times)?)
    }
}

/// Reads until the buffer is full or the input ends.
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

/// A path that stays inside the home.
fn require_inside(path: &[u8]) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && path.file_name().is_some() { Ok(path.to_owned()) } else { Err(unexpected_content()) }
}

fn unexpected_content() -> io::Error {
    io::Error::other("The backup contains an entry that no home can have. Nothing was restored")
}

fn read_metadata(entry: &Entry<'_, impl Read>) -> io::Result<Metadata> {
    let header = entry.header();
    let id = |id: u64| u32::try_from(id).map_err(io::Error::other);
    let time = Timespec { tv_sec: header.mtime()?.cast_signed(), tv_nsec: 0 };
    Ok(Metadata {
        mode: Mode::from_raw_mode(header.mode()? & 0o777),
        owner: (Uid::from_raw(id(header.uid()?)?), Gid::from_raw(id(header.gid()?)?)),
        times: Timestamps { last_access: time, last_modification: time },
    })
}
