//! Removes a folder with all that is in it, however deep and however much that is.
//!
//! An agent can nest more folders than a recursion has stack or open files for. So what is in a folder's folders moves up into
//! it, and nothing is ever looked for further down. It can also make so many that their names would fill the memory. So a
//! portion of them is removed before the next is read. The agent may run, and may be hostile: no link is followed.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, openat, renameat, unlinkat},
    io::Errno,
    path::Arg,
};

use super::pack::FOLDER;

/// An agent that goes on making files would keep the host at removing them without end.
const MOST: u64 = 50_000_000;

/// Removes a folder. One that is gone already is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_in_portions(path, 16_384, MOST)
}

fn remove_in_portions(path: &Path, portion: usize, most: u64) -> io::Result<()> {
    let top = match open(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    Removal::of(&top, portion, most).empty()?;
    Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}

/// Opens a folder, also for writing in it.
fn open(within: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    open_as(within, name, Mode::RWXU)
}

/// Opens a folder and gives it this mode: also one that the agent has closed to its own user, which can't be opened before.
///
/// # Errors
/// It can't be opened. Someone else's keeps its mode: what fails then says why.
pub fn open_as(within: impl AsFd, name: impl Arg, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let found = openat(within, name, FOLDER | OFlags::PATH, Mode::empty())?;
    let _ = chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), mode);
    openat(found, c".", FOLDER, Mode::empty())
}

/// A folder that is being emptied.
struct Removal<'a> {
    top: &'a OwnedFd,
    /// Names of folders in it.
    folders: Vec<Vec<u8>>,
    /// How many of them are kept.
    portion: usize,
    /// Whether there are others, or may be.
    is_more: bool,
    /// How many entries are gone.
    removed: u64,
    /// How many folders have moved up.
    moved: u64,
    /// How many may do either.
    most: u64,
}

impl<'a> Removal<'a> {
    fn of(top: &'a OwnedFd, portion: usize, most: u64) -> Self {
        Self { top, folders: Vec::new(), portion, is_more: true, removed: 0, moved: 0, most }
    }

    fn empty(&mut self) -> io::Result<()> {
        while mem::take(&mut self.is_more) {
            self.look()?;
            while let Some(name) = self.folders.pop() {
                self.folder(&name)?;
            }
        }
        Ok(())
    }

    /// Removes what is there, except for folders, until there is no room for the names of these.
    fn look(&mut self) -> io::Result<()> {
        for entry in Dir::read_from(self.top)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if self.stays(self.top, name)? {
                self.keep(name.to_vec());
            }
            if self.is_more {
                break;
            }
        }
        Ok(())
    }

    /// Removes a folder. Those in it move up.
    fn folder(&mut self, name: &[u8]) -> io::Result<()> {
        let folder = match open(self.top, name) {
            // Another was moved into its place, and is removed; or someone else renamed it. It counts, lest that go on forever.
            Err(Errno::NOENT) => return self.count(),
            folder => folder?,
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let inner = entry.file_name().to_bytes();
            if self.stays(&folder, inner)? {
                // One that is closed for writing can't be moved.
                open(&folder, inner)?;
                let new = self.move_up(&folder, inner)?;
                self.keep(new);
            }
        }
        unlinkat(self.top, name, AtFlags::REMOVEDIR)?;
        self.count()
    }

    /// Removes an entry, unless it is a folder. Then it stays.
    fn stays(&mut self, within: &OwnedFd, name: &[u8]) -> io::Result<bool> {
        if [".", ".."].map(str::as_bytes).contains(&name) {
            return Ok(false);
        }
        match unlinkat(within, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => self.count().map(|()| false),
            Err(Errno::ISDIR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps a folder's name, or notes that there are more.
    fn keep(&mut self, name: Vec<u8>) {
        if self.folders.len() < self.portion {
            self.folders.push(name);
        } else {
            self.is_more = true;
        }
    }

    /// Moves a folder up, and returns its name there.
    fn move_up(&mut self, from: &OwnedFd, name: &[u8]) -> io::Result<Vec<u8>> {
        while self.moved < self.most {
            self.moved += 1;
            let new = format!("muster-{}", self.moved).into_bytes();
            match renameat(from, name, self.top, &new) {
                Ok(()) => return Ok(new),
                // The agent has one of this name.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.too_many())
    }

    /// One entry more is gone.
    fn count(&mut self) -> io::Result<()> {
        self.removed += 1;
        if self.removed > self.most { Err(self.too_many()) } else { Ok(()) }
    }

    fn too_many(&self) -> io::Error {
        io::Error::other(format!("there are more than {} files and folders in it", self.most))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };

    use rustix::fs::mkdirat;

    use super::*;

    #[test]
    fn folders_that_are_nested_too_deep_for_a_recursion_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep");
        fs::create_dir(&path).unwrap();
        let mut folder = open(CWD, &path).unwrap();
        for _ in 0..20_000 {
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = open(&folder, "d").unwrap();
        }
        remove(&path).unwrap();
        assert!(!path.exists());
        remove(&path).unwrap();
    }

    #[test]
    fn a_folder_is_removed_without_following_links() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("kept"), "kept").unwrap();
        let path = dir.path().join("home");
        // Names that those which move up would get.
        for inner in ["a/muster-1/x", "a/b/c", "muster-1/muster-2/y", "muster-2", "muster-3/z"] {
            fs::create_dir_all(path.join(inner)).unwrap();
            fs::write(path.join(inner).join("file"), "text").unwrap();
        }
        symlink(outside.path(), path.join("a/link")).unwrap();
        symlink(outside.path(), path.join("link")).unwrap();
        // As Go leaves what it has fetched.
        for closed in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(path.join(closed), Permissions::from_mode(0o555)).unwrap();
        }
        remove(&path).unwrap();
        assert!(!path.exists());
        symlink(outside.path(), &path).unwrap();
        remove(&path).unwrap_err();
        assert_eq!(fs::read_to_string(outside.path().join("kept")).unwrap(), "kept");
    }

    #[test]
    fn a_folder_of_more_folders_than_names_are_kept_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wide");
        for outer in 0..20 {
            for inner in 0..20 {
                fs::create_dir_all(path.join(format!("{outer}/{inner}/deep"))).unwrap();
                fs::write(path.join(format!("{outer}/{inner}/file")), "text").unwrap();
            }
            fs::write(path.join(format!("file-{outer}")), "text").unwrap();
        }
        let top = open(CWD, &path).unwrap();
        let mut removal = Removal::of(&top, 7, MOST);
        removal.is_more = false;
        removal.look().unwrap();
        assert!(removal.is_more && removal.folders.len() == 7, "{:?}", removal.folders);
        remove_in_portions(&path, 7, MOST).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn too_much_to_remove_is_said_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let (wide, deep) = (dir.path().join("wide"), dir.path().join("deep"));
        fs::create_dir(&wide).unwrap();
        for number in 0..21 {
            fs::write(wide.join(number.to_string()), "text").unwrap();
        }
        fs::create_dir_all(deep.join(["d"; 21].join("/"))).unwrap();
        for path in [wide, deep] {
            let refused = remove_in_portions(&path, 4, 20).unwrap_err().to_string();
            assert_eq!(refused, "there are more than 20 files and folders in it");
            fs::create_dir_all(path.join("again")).unwrap();
            remove_in_portions(&path, 4, 20).unwrap();
            assert!(!path.exists());
        }
    }
}
