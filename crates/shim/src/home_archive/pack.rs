//! Packs a home into an archive.
//!
//! The agent may be running and hostile: it can replace a folder by a link at any moment. So every folder is opened
//! from the home itself, without following links, and files are read from open descriptors. Links stay links; sockets,
//! pipes and devices are skipped. A file that shrinks meanwhile is padded with zeros, one that grows is cut. An agent
//! can also create files faster than they are read, so the number of files, the length of their names and the total
//! time are limited.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, OsStr},
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
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
/// A folder, but no link to one.
pub const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// NONBLOCK, since a pipe in a file's place would block the host.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// Below the home, through no link.
pub const WITHIN: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Bytes of holes beyond the files' size on disk: holes cost an agent nothing, and are read as zeros.
const MAX_HOLES: u64 = 64 * 1024 * 1024 * 1024;
/// Entries: an agent may create files without end, and each takes memory in packing and unpacking.
const MAX_ENTRIES: u64 = 1_000_000;
/// Bytes of all paths: an agent may use long ones. An ordinary path has a hundred.
const MAX_PATHS: u64 = 128 * 1024 * 1024;
/// Time: an agent that keeps writing must not block other homes forever. Even a slow disk reads a terabyte in this
/// time.
const LONGEST: Duration = Duration::from_hours(6);

/// Writes an archive of a home, and returns the writer.
pub fn pack<W: Write>(home: &Path, out: W) -> io::Result<W> {
    Packer::new(home, out)?.pack_all()
}

struct Packer<W: Write> {
    root: OwnedFd,
    builder: Builder<W>,
    /// Pending folders. No recursion: an agent can nest them deeply.
    folders: Vec<PathBuf>,
    /// Files with several names, by device and inode.
    linked: HashMap<(u64, u64), PathBuf>,
    /// Remaining bytes of holes.
    holes: u64,
    /// Remaining entries, and remaining bytes of their paths.
    entries: u64,
    paths: u64,
    until: Instant,
}

impl<W: Write> Packer<W> {
    fn new(home: &Path, out: W) -> io::Result<Self> {
        Ok(Self {
            root: open(home, FOLDER, Mode::empty()).map_err(|error| at(WHAT)(error.into()))?,
            builder: Builder::new(out),
            folders: vec![PathBuf::new()],
            linked: HashMap::new(),
            holes: MAX_HOLES,
            entries: MAX_ENTRIES,
            paths: MAX_PATHS,
            until: Instant::now() + LONGEST,
        })
    }

    fn pack_all(mut self) -> io::Result<W> {
        while let Some(path) = self.folders.pop() {
            self.add_folder(&path)?;
        }
        self.builder.into_inner().map_err(at(WHAT))
    }

    fn add_folder(&mut self, path: &Path) -> io::Result<()> {
        let folder = if path.as_os_str().is_empty() {
            self.root.try_clone().map_err(at(WHAT))?
        } else {
            let Some(folder) = if_present(openat2(&self.root, path, FOLDER, Mode::empty(), WITHIN))? else {
                return Ok(());
            };
            let stat = fstat(&folder).map_err(|error| at(WHAT)(error.into()))?;
            self.append(header(&stat, EntryType::Directory, 0), path, io::empty())?;
            folder
        };
        // Names first: the number of open descriptors must not depend on the number of entries.
        for name in self.read_names(&folder, path)? {
            self.add_entry(&folder, path, &name)?;
        }
        Ok(())
    }

    /// The names in a folder. Each is counted before it is stored.
    fn read_names(&mut self, folder: &OwnedFd, within: &Path) -> io::Result<Vec<CString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(|error| at(WHAT)(error.into()))? {
            let name = entry.map_err(|error| at(WHAT)(error.into()))?.file_name().to_owned();
            if [".", ".."].map(str::as_bytes).contains(&name.to_bytes()) {
                continue;
            }
            charge(&mut self.entries, 1, || {
                let most = MAX_ENTRIES / 1_000_000;
                format!("The home has more than {most} million files and folders. Remove some")
            })?;
            let bytes = within.as_os_str().len() + name.to_bytes().len();
            charge(&mut self.paths, bytes as u64, || {
                let most = MAX_PATHS / (1024 * 1024);
                format!(
                    "The paths in the home have more than {most} MiB together. Shorten them, or remove some"
                )
            })?;
            names.push(name);
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn add_entry(&mut self, folder: &OwnedFd, within: &Path, name: &CStr) -> io::Result<()> {
        let path = within.join(OsStr::from_bytes(name.to_bytes()));
        // The system's limit for one open, with a margin.
        let most = 4000;
        if path.as_os_str().len() > most {
            let why = format!("The home has a path of more than {most} bytes, which can't be backed up");
            return Err(io::Error::other(why));
        }
        let Some(stat) = if_present(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))? else { return Ok(()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.folders.push(path),
            FileType::RegularFile => self.add_file(folder, name, &path)?,
            FileType::Symlink => {
                let Some(target) = if_present(readlinkat(folder, name, Vec::new()))? else { return Ok(()) };
                let target = PathBuf::from(OsStr::from_bytes(target.to_bytes()));
                self.add_link(header(&stat, EntryType::Symlink, 0), &path, &target)?;
            }
            // Sockets, pipes, devices.
            _ => {}
        }
        Ok(())
    }

    fn add_file(&mut self, folder: &OwnedFd, name: &CStr, path: &Path) -> io::Result<()> {
        let Some(file) = if_present(openat(folder, name, FILE, Mode::empty()))? else { return Ok(()) };
        let stat = fstat(&file).map_err(|error| at(WHAT)(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        if stat.st_nlink > 1 {
            let inode = (stat.st_dev, stat.st_ino);
            if let Some(first) = self.linked.get(&inode) {
                let first = first.clone();
                return self.add_link(header(&stat, EntryType::Link, 0), path, &first);
            }
            self.linked.insert(inode, path.to_owned());
        }
        let size = stat.st_size.unsigned_abs();
        let hole = size.saturating_sub(stat.st_blocks.unsigned_abs().saturating_mul(512));
        charge(&mut self.holes, hole, || {
            let most = MAX_HOLES / (1024 * 1024 * 1024);
            format!("The home's files have holes of more than {most} GiB. Remove them")
        })?;
        let bytes = ExactLengthReader { file: File::from(file), left: size, until: self.until };
        self.append(header(&stat, EntryType::Regular, size), path, bytes)
    }

    fn append(&mut self, mut header: Header, path: &Path, bytes: impl Read) -> io::Result<()> {
        self.builder.append_data(&mut header, path, bytes).map_err(at("The backup can't be written"))
    }

    fn add_link(&mut self, mut header: Header, path: &Path, target: &Path) -> io::Result<()> {
        self.builder.append_link(&mut header, path, target).map_err(at("The backup can't be written"))
    }
}

/// `None` if the agent has removed or replaced the entry meanwhile.
fn if_present<T>(found: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::INVAL) => Ok(None),
        Err(error) => Err(at(WHAT)(error.into())),
    }
}

/// Subtracts from a limit, or fails with a reason.
fn charge(left: &mut u64, wanted: u64, why: impl FnOnce() -> String) -> io::Result<()> {
    *left = left.checked_sub(wanted).ok_or_else(|| io::Error::other(why()))?;
    Ok(())
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

/// A file's bytes, exactly as many as in its header, within the time limit.
struct ExactLengthReader {
    file: File,
    left: u64,
    until: Instant,
}

impl Read for ExactLengthReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.until {
            let hours = LONGEST.as_secs() / 3600;
            return Err(io::Error::other(format!("the home could not be read in {hours} hours")));
        }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The error of packing a home with a folder and a hard-linked file within these limits.
    fn refused(bound: impl FnOnce(&mut Packer<Vec<u8>>)) -> Option<String> {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("in")).unwrap();
        fs::write(home.path().join("in/one"), "1").unwrap();
        fs::hard_link(home.path().join("in/one"), home.path().join("in/two")).unwrap();
        let mut packer = Packer::new(home.path(), Vec::new()).unwrap();
        bound(&mut packer);
        packer.pack_all().err().map(|error| error.to_string())
    }

    #[test]
    fn a_home_without_end_is_not_packed_without_end() {
        assert_eq!(refused(|packer| (packer.entries, packer.paths) = (3, 12)), None);
        let why = "The home has more than 1 million files and folders. Remove some";
        assert_eq!(refused(|packer| packer.entries = 2).as_deref(), Some(why));
        let why = "The paths in the home have more than 128 MiB together. Shorten them, or remove some";
        assert_eq!(refused(|packer| packer.paths = 11).as_deref(), Some(why));
        let why = "The backup can't be written: the home could not be read in 6 hours";
        assert_eq!(refused(|packer| packer.until = Instant::now()).as_deref(), Some(why));
    }
}
