//! A home into an archive.
//!
//! The agent may run, and may be hostile: it can put a link where a folder was a moment ago. So every folder is opened from
//! the home itself, without following any link, and files are read from what was opened. Links are kept as links; sockets,
//! pipes and devices are left out. What ends while it is read is filled up with zeros, what grows is cut off.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, OsStr},
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2, readlinkat,
        statat,
    },
    io::Errno,
};
use tar::{Builder, EntryType, Header};

use super::at;

const WHAT: &str = "The home can't be read";
/// A folder, and no link to one.
pub const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Without NONBLOCK, a pipe that has taken a file's place would keep the host waiting.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// From the home, and through no link.
pub const WITHIN: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
/// The longest path in a home, in bytes: what the system opens in one step, with some room.
const LONGEST_PATH: usize = 4000;

/// How many bytes all files may claim beyond what they take on the disk. A hole costs an agent nothing, and is read as zeros.
const MOST_HOLES: u64 = 64 * 1024 * 1024 * 1024;

/// Writes an archive of a home, and returns where it was written.
pub fn pack<W: Write>(home: &Path, out: W) -> io::Result<W> {
    let root = open(home, FOLDER, Mode::empty()).map_err(|error| at(WHAT)(error.into()))?;
    let mut packer = Packer {
        root,
        builder: Builder::new(out),
        folders: vec![PathBuf::new()],
        linked: HashMap::new(),
        holes: MOST_HOLES,
    };
    while let Some(path) = packer.folders.pop() {
        packer.folder(&path)?;
    }
    packer.builder.into_inner().map_err(at(WHAT))
}

struct Packer<W: Write> {
    root: OwnedFd,
    builder: Builder<W>,
    /// Folders that wait. No recursion: an agent can nest them deeply.
    folders: Vec<PathBuf>,
    /// Files with several names, by device and inode.
    linked: HashMap<(u64, u64), PathBuf>,
    /// How many bytes of holes there may still be.
    holes: u64,
}

impl<W: Write> Packer<W> {
    fn folder(&mut self, path: &Path) -> io::Result<()> {
        let own;
        let folder = if path.as_os_str().is_empty() {
            &self.root
        } else {
            let Some(opened) = there(openat2(&self.root, path, FOLDER, Mode::empty(), WITHIN))? else {
                return Ok(());
            };
            own = opened;
            let stat = fstat(&own).map_err(|error| at(WHAT)(error.into()))?;
            self.append(header(&stat, EntryType::Directory, 0), path, io::empty())?;
            &own
        };
        // Its names first: what is open must not depend on how many there are.
        let names = names(folder).map_err(at(WHAT))?;
        let folder = folder.try_clone().map_err(at(WHAT))?;
        for name in names {
            self.entry(&folder, path, &name)?;
        }
        Ok(())
    }

    fn entry(&mut self, folder: &OwnedFd, within: &Path, name: &CStr) -> io::Result<()> {
        let path = within.join(OsStr::from_bytes(name.to_bytes()));
        if path.as_os_str().len() > LONGEST_PATH {
            let why =
                format!("The home has a path of more than {LONGEST_PATH} bytes, which can't be backed up");
            return Err(io::Error::other(why));
        }
        let Some(stat) = there(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))? else { return Ok(()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.folders.push(path),
            FileType::RegularFile => self.file(folder, name, &path)?,
            FileType::Symlink => {
                let Some(target) = there(readlinkat(folder, name, Vec::new()))? else { return Ok(()) };
                let target = PathBuf::from(OsStr::from_bytes(target.to_bytes()));
                self.link(header(&stat, EntryType::Symlink, 0), &path, &target)?;
            }
            // Sockets, pipes, devices.
            _ => {}
        }
        Ok(())
    }

    fn file(&mut self, folder: &OwnedFd, name: &CStr, path: &Path) -> io::Result<()> {
        let Some(file) = there(openat(folder, name, FILE, Mode::empty()))? else { return Ok(()) };
        let stat = fstat(&file).map_err(|error| at(WHAT)(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        if stat.st_nlink > 1 {
            let inode = (stat.st_dev, stat.st_ino);
            if let Some(first) = self.linked.get(&inode) {
                let first = first.clone();
                return self.link(header(&stat, EntryType::Link, 0), path, &first);
            }
            self.linked.insert(inode, path.to_owned());
        }
        let size = stat.st_size.unsigned_abs();
        let hole = size.saturating_sub(stat.st_blocks.unsigned_abs().saturating_mul(512));
        self.holes = self.holes.checked_sub(hole).ok_or_else(|| {
            let most = MOST_HOLES / (1024 * 1024 * 1024);
            io::Error::other(format!("The home's files have holes of more than {most} GiB. Remove them"))
        })?;
        let bytes = Exactly { file: File::from(file), left: size };
        self.append(header(&stat, EntryType::Regular, size), path, bytes)
    }

    fn append(&mut self, mut header: Header, path: &Path, bytes: impl Read) -> io::Result<()> {
        self.builder.append_data(&mut header, path, bytes).map_err(at("The backup can't be written"))
    }

    fn link(&mut self, mut header: Header, path: &Path, target: &Path) -> io::Result<()> {
        self.builder.append_link(&mut header, path, target).map_err(at("The backup can't be written"))
    }
}

/// What is still there. The agent may have removed it, or put something else in its place.
fn there<T>(found: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::INVAL) => Ok(None),
        Err(error) => Err(at(WHAT)(error.into())),
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if ![".", ".."].map(str::as_bytes).contains(&name.to_bytes()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn header(stat: &Stat, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    // Without set-user-ID and the like: nothing in a home needs them.
    header.set_mode(stat.st_mode & 0o777);
    header.set_uid(stat.st_uid.into());
    header.set_gid(stat.st_gid.into());
    header.set_mtime(stat.st_mtime.unsigned_abs());
    header
}

/// A file's bytes, exactly as many as its header says.
struct Exactly {
    file: File,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..most];
        let read = match self.file.read(buffer)? {
            0 => {
                buffer.fill(0);
                most
            }
            read => read,
        };
        self.left -= read as u64;
        Ok(read)
    }
}
