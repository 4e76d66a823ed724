//! Removes a folder with all that is in it, however deep that is.
//!
//! An agent can nest more folders than a recursion has stack or open files for. So what is in a folder's folders moves up into
//! it, and nothing is ever looked for further down. The agent may run, and may be hostile: no link is followed.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, fchmod, openat, renameat, unlinkat},
    io::Errno,
    path::Arg,
};

use super::pack::FOLDER;

/// How many folders move up. An agent that goes on making them would otherwise keep the host at it without end.
const MOST: u32 = 4_000_000;

/// Removes a folder. One that is gone already is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    let top = match open(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    let (mut folders, mut moved) = (empty(&top)?, 0);
    while let Some(name) = folders.pop() {
        let folder = match open(&top, &name) {
            // Another was moved into its place, and is removed.
            Err(Errno::NOENT) => continue,
            folder => folder?,
        };
        for inner in empty(&folder)? {
            // One that is closed for writing can't be moved.
            open(&folder, &inner)?;
            folders.push(move_up(&folder, &inner, &top, &mut moved)?);
        }
        unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}

/// Opens a folder, also for writing in it.
fn open(within: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let folder = openat(within, name, FOLDER, Mode::empty())?;
    // Somebody else's stays as it is: what fails then says why.
    let _ = fchmod(&folder, Mode::RWXU);
    Ok(folder)
}

/// Removes what is in a folder, except for folders. These are their names.
fn empty(folder: &OwnedFd) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if [".", ".."].map(str::as_bytes).contains(&name) {
            continue;
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => folders.push(name.to_vec()),
            Err(error) => return Err(error),
        }
    }
    Ok(folders)
}

/// Moves a folder up, and returns its name there.
fn move_up(from: &OwnedFd, name: &[u8], top: &OwnedFd, moved: &mut u32) -> io::Result<Vec<u8>> {
    while *moved < MOST {
        *moved += 1;
        let new = format!("muster-{moved}").into_bytes();
        match renameat(from, name, top, &new) {
            Ok(()) => return Ok(new),
            // The agent has one of this name.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("there are too many folders in it"))
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
    fn whatever_is_in_a_folder_is_removed_and_nothing_that_a_link_leads_to() {
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
}
