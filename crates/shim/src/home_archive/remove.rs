//! Removes a folder of any depth and size.
//!
//! An agent can nest more folders than a recursion has stack or descriptors for. So the content of subfolders moves up,
//! and nothing is searched further down. An agent can also create more names than fit into memory, so they are removed
//! in portions. The agent may be running and hostile: links are not followed.

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

/// An agent that keeps creating files would block the host forever.
const MOST: u64 = 50_000_000;

/// Removes a folder. A missing folder is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_in_portions(path, 16_384, MOST)
}

fn remove_in_portions(path: &Path, portion: usize, most: u64) -> io::Result<()> {
    let top = match open(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    Removal::new(&top, portion, most).empty()?;
    Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}

/// Opens a folder for reading and writing.
fn open(within: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    open_as(within, name, Mode::RWXU)
}

/// Opens a folder with this mode, even one that the agent has closed to its own user.
///
/// # Errors
///
/// The folder can't be opened. Another user's folder keeps its mode, and the next error explains why.
pub fn open_as(within: impl AsFd, name: impl Arg, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let found = openat(within, name, FOLDER | OFlags::PATH, Mode::empty())?;
    let _ = chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), mode);
    openat(found, c".", FOLDER, Mode::empty())
}

/// A folder that is being emptied.
struct Removal<'a> {
    top: &'a OwnedFd,
    /// Names of its subfolders.
    folders: Vec<Vec<u8>>,
    /// Limit of these names.
    portion: usize,
    /// Whether there may be others.
    is_more: bool,
    /// Removed entries.
    removed: u64,
    /// Folders moved up.
    moved: u64,
    /// Limit of both.
    most: u64,
}

impl<'a> Removal<'a> {
    fn new(top: &'a OwnedFd, portion: usize, most: u64) -> Self {
        Self { top, folders: Vec::new(), portion, is_more: true, removed: 0, moved: 0, most }
    }

    fn empty(&mut self) -> io::Result<()> {
        while mem::take(&mut self.is_more) {
            self.scan()?;
            while let Some(name) = self.folders.pop() {
                self.remove_folder(&name)?;
            }
        }
        Ok(())
    }

    /// Removes all entries but folders, until the list of folders is full.
    fn scan(&mut self) -> io::Result<()> {
        for entry in Dir::read_from(self.top)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if self.is_folder_after_unlink(self.top, name)? {
                self.queue_folder(name.to_vec());
            }
            if self.is_more {
                break;
            }
        }
        Ok(())
    }

    /// Removes a folder. Its subfolders move up.
    fn remove_folder(&mut self, name: &[u8]) -> io::Result<()> {
        let folder = match open(self.top, name) {
            // It was replaced by another folder, which is removed instead, or renamed by someone else. It counts, so
            // the loop ends.
            Err(Errno::NOENT) => return self.count_removed(),
            folder => folder?,
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let inner = entry.file_name().to_bytes();
            if self.is_folder_after_unlink(&folder, inner)? {
                // A folder closed for writing can't be moved.
                open(&folder, inner)?;
                let new = self.move_up(&folder, inner)?;
                self.queue_folder(new);
            }
        }
        unlinkat(self.top, name, AtFlags::REMOVEDIR)?;
        self.count_removed()
    }

    /// Removes an entry, unless it is a folder. Returns whether it is one.
    fn is_folder_after_unlink(&mut self, within: &OwnedFd, name: &[u8]) -> io::Result<bool> {
        if [".", ".."].map(str::as_bytes).contains(&name) {
            return Ok(false);
        }
        match unlinkat(within, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => self.count_removed().map(|()| false),
            Err(Errno::ISDIR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a folder to the list, or records that there are more.
    fn queue_folder(&mut self, name: Vec<u8>) {
        if self.folders.len() < self.portion {
            self.folders.push(name);
        } else {
            self.is_more = true;
        }
    }

    /// Moves a folder up, and returns its new name.
    fn move_up(&mut self, from: &OwnedFd, name: &[u8]) -> io::Result<Vec<u8>> {
        while self.moved < self.most {
            self.moved += 1;
            let new = format!("muster-{}", self.moved).into_bytes();
            match renameat(from, name, self.top, &new) {
                Ok(()) => return Ok(new),
                // The agent has an entry of this name.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.too_many())
    }

    fn count_removed(&mut self) -> io::Result<()> {
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
        // Names that collide with moved folders.
        for inner in ["a/muster-1/x", "a/b/c", "muster-1/muster-2/y", "muster-2", "muster-3/z"] {
            fs::create_dir_all(path.join(inner)).unwrap();
            fs::write(path.join(inner).join("file"), "text").unwrap();
        }
        symlink(outside.path(), path.join("a/link")).unwrap();
        symlink(outside.path(), path.join("link")).unwrap();
        // Like Go's module cache.
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
        let mut removal = Removal::new(&top, 7, MOST);
        removal.is_more = false;
        removal.scan().unwrap();
        assert!(removal.is_more && removal.folders.len() == 7, "{:?}", removal.folders);
        remove_in_portions(&path, 7, MOST).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_removal_above_its_bound_fails_with_a_reason() {
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
