//! Files in an agent's home. The agent writes there too, and may replace an expected folder by a symbolic link. So
//! every step starts from an open folder, and links are not followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read, Write},
    iter,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use muster_protocol::plan::Skill;
use muster_shim::home_archive;
use rustix::{
    fs::{
        AtFlags, Dir, Mode, OFlags, ResolveFlags, fchmod, mkdirat, open, openat, openat2, renameat, unlinkat,
    },
    io::Errno,
    path::Arg,
};

/// The largest file sent to people, in bytes: an agent may send any number.
pub const LARGEST_FILE: u64 = 512 * 1024;

/// Modes of the host's files for an agent.
const SHOWN_FOLDER: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);
const SHOWN_FILE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);
/// For files that an agent of another user reads too; their parent folder is closed to others.
const SHOWN: Option<(Mode, Mode)> = Some((SHOWN_FOLDER, SHOWN_FILE));

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Skills are prepared here, next to the folder that the agent reads.
const BESIDE: &str = ".skills";

/// Writes the skills, and removes obsolete ones. The folder `skills` belongs to the host.
///
/// All are prepared next to the old ones first, so a full disk leaves the old ones untouched. Then each moves into
/// place under its name. A kill in between leaves complete skills, old or new, and prepared ones don't count.
pub fn write_skills(home: &Path, skills: &[Skill]) -> io::Result<()> {
    let beside = home.join(BESIDE);
    discard(&beside)?;
    let folders = folders_of(skills);
    let written = write_beside(home, skills, &folders).and_then(|()| take_places(home, &folders));
    let discarded = discard(&beside);
    written.and(discarded)
}

fn write_beside(home: &Path, skills: &[Skill], folders: &[String]) -> io::Result<()> {
    for (skill, folder) in skills.iter().zip(folders) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!("---\nname: {}\n", quoted(&skill.name));
        if let Some(description) = &skill.description {
            text.push_str(&format!("description: {}\n", quoted(description)));
        }
        text.push_str(&format!("---\n\n{}\n", skill.content));
        write(home, &[BESIDE, "new", folder], "SKILL.md", text.as_bytes(), SHOWN)?;
    }
    Ok(())
}

/// Moves the skills into the folder that the agent reads, and all other entries out of it. The folder itself stays: a
/// container may have mounted it.
fn take_places(home: &Path, folders: &[String]) -> io::Result<()> {
    let home = open(home, FOLDER, Mode::empty())?;
    let shown = match enter(&home, "skills", Some(SHOWN_FOLDER)) {
        Err(Errno::NOTDIR | Errno::LOOP) => {
            unlinkat(&home, "skills", AtFlags::empty())?;
            enter(&home, "skills", Some(SHOWN_FOLDER))?
        }
        shown => shown?,
    };
    let beside = enter(&home, BESIDE, None)?;
    let (new, old) = (enter(&beside, "new", None)?, enter(&beside, "old", None)?);
    for name in folders {
        let was_there = match move_out(&shown, name, &old) {
            Ok(()) => true,
            Err(Errno::NOENT) => false,
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = renameat(&new, name, &shown, name) {
            if was_there {
                let _ = renameat(&old, name, &shown, name);
            }
            return Err(error.into());
        }
    }
    for entry in Dir::read_from(&shown)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_kept = folders.iter().any(|folder| folder.as_bytes() == name.to_bytes());
        if !is_kept && ![c".", c".."].contains(&name) {
            move_out(&shown, name, &old)?;
        }
    }
    Ok(())
}

fn move_out(from: &OwnedFd, name: impl Arg + Copy, to: &OwnedFd) -> rustix::io::Result<()> {
    // Only a writable folder can be moved, and the agent may have removed that permission.
    let _ = home_archive::open_as(from, name, Mode::RWXU);
    renameat(from, name, to, name)
}

fn discard(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => home_archive::remove(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a profile's files and secrets for the agent: paths in the home, and texts, readable only by their owner.
pub fn write_files(home: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    for (path, text) in files {
        let mut folders = inside(path)?;
        let name = folders.pop().unwrap_or_default();
        write(home, &folders, name, text.as_bytes(), None)?;
    }
    Ok(())
}

/// Whether a shim could write these files.
pub fn check_files(files: &BTreeMap<String, String>) -> io::Result<()> {
    files.iter().try_for_each(|(path, text)| {
        inside(path)?;
        if path.contains(['=', '\0']) || text.contains('\0') {
            let why = format!("{path:?} has a character that a file in a container can't have");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(())
    })
}

/// The parts of a path inside the home.
fn inside(path: &str) -> io::Result<Vec<&str>> {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| ["", ".", ".."].contains(part)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is not inside the home")));
    }
    Ok(parts)
}

/// Unique folder names for skills, even for similar names.
fn folders_of(skills: &[Skill]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let folders = skills.iter().map(|skill| {
        let name = file_name(&skill.name);
        let start: String = name.chars().take(54).collect();
        let numbered = (2..=skills.len()).map(|n| format!("{start}-{n}"));
        let mut all = iter::once(name.clone()).chain(numbered);
        all.find(|folder| taken.insert(folder.to_lowercase())).unwrap_or(name)
    });
    folders.collect()
}

/// Writes a file sent by people, and returns its path in the home.
pub fn write_inbox(home: &Path, turn_id: i64, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let (turn, name) = (turn_id.to_string(), file_name(name));
    write(home, &["inbox", &turn], &name, bytes, SHOWN)?;
    Ok(Path::new("inbox").join(turn).join(name))
}

/// Writes a file and its missing folders: private to the owner, or with these modes.
fn write(
    home: &Path,
    folders: &[&str],
    name: &str,
    bytes: &[u8],
    modes: Option<(Mode, Mode)>,
) -> io::Result<()> {
    let mut folder = open(home, FOLDER, Mode::empty())?;
    for name in folders {
        folder = enter(&folder, name, modes.map(|(of_folders, _)| of_folders))?;
    }
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    if let Some((_, of_file)) = modes {
        fchmod(&file, of_file)?;
    }
    File::from(file).write_all(bytes)
}

/// Opens a folder, creating it if missing, and applies a mode, if given.
fn enter(within: &OwnedFd, name: &str, mode: Option<Mode>) -> rustix::io::Result<OwnedFd> {
    match mkdirat(within, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let Some(mode) = mode else { return openat(within, name, FOLDER, Mode::empty()) };
    let folder = home_archive::open_as(within, name, mode)?;
    fchmod(&folder, mode)?;
    Ok(folder)
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("The path leads out of your home folder. Send a file from there.")]
    Outside,
    #[error("This is not a regular file.")]
    NotAFile,
    #[error("The file is larger than 512 KiB.")]
    TooLarge,
    #[error("The file can't be read: {0}.")]
    Io(#[from] io::Error),
}

/// Reads a file of an agent. Its real path must be in the home, regardless of links.
pub fn read(home: &Path, path: &Path) -> Result<Vec<u8>, SendError> {
    let relative = path.strip_prefix(home).unwrap_or(path);
    if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(SendError::Outside);
    }
    let folder = open(home, FOLDER, Mode::empty()).map_err(io::Error::from)?;
    // NONBLOCK, since a pipe would block the host.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = match openat2(&folder, relative, flags, Mode::empty(), resolve) {
        Ok(file) => File::from(file),
        Err(Errno::XDEV | Errno::LOOP) => return Err(SendError::Outside),
        Err(error) => return Err(io::Error::from(error).into()),
    };
    if !file.metadata()?.is_file() {
        return Err(SendError::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE { Err(SendError::TooLarge) } else { Ok(bytes) }
}

/// A name that is safe as a path segment.
pub fn file_name(name: &str) -> String {
    let safe = |char: char| if char.is_alphanumeric() || "-_. ".contains(char) { char } else { '_' };
    let name: String = name.chars().take(60).map(safe).collect();
    let name = name.trim_matches([' ', '.']);
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use rustix::thread::{CapabilitySet, CapabilitySets};

    use super::*;

    fn skill(name: &str) -> Skill {
        let description = Some("When \"this\":\nthat".to_owned());
        Skill { name: name.to_owned(), description, content: "Do it.".to_owned(), version: 1 }
    }

    const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Runs this subject to file permissions, even for root.
    fn without_privileges<T: Send>(run: impl FnOnce() -> T + Send) -> T {
        let drop_and_run = || {
            // For this thread only.
            rustix::thread::set_capabilities(None, NO_CAPABILITIES).unwrap();
            run()
        };
        std::thread::scope(|scope| scope.spawn(drop_and_run).join().unwrap())
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn skills_are_replaced_as_a_whole() {
        let home = tempfile::tempdir().unwrap();
        write_skills(home.path(), &[skill("one"), skill("../two")]).unwrap();
        let text = fs::read_to_string(home.path().join("skills/one/SKILL.md")).unwrap();
        assert!(text.contains(r#"description: "When \"this\":\nthat""#), "{text}");
        assert!(home.path().join("skills/_two/SKILL.md").is_file());
        write_skills(home.path(), &[skill("three")]).unwrap();
        assert_eq!(names(&home.path().join("skills")), ["three"]);
    }

    #[test]
    fn a_failed_skill_write_keeps_the_previous_skills() {
        let home = tempfile::tempdir().unwrap();
        write_skills(home.path(), &[skill("one")]).unwrap();
        set_mode(home.path(), 0o500);
        let written = without_privileges(|| write_skills(home.path(), &[skill("two")]));
        set_mode(home.path(), 0o700);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(names(&home.path().join("skills")), ["one"]);
        assert!(home.path().join("skills/one/SKILL.md").is_file());
    }

    #[test]
    fn leftovers_of_a_killed_host_do_not_become_skills() {
        let home = tempfile::tempdir().unwrap();
        for half in ["new/one", "new/gone", "old/two"] {
            fs::create_dir_all(home.path().join(BESIDE).join(half)).unwrap();
        }
        write_skills(home.path(), &[skill("one")]).unwrap();
        assert_eq!(names(&home.path().join("skills")), ["one"]);
        assert!(home.path().join("skills/one/SKILL.md").is_file());
        assert_eq!(names(home.path()), ["skills"]);
    }

    #[test]
    fn read_only_folders_do_not_stop_skill_replacement() {
        let home = tempfile::tempdir().unwrap();
        for closed in [0o500, 0o000] {
            write_skills(home.path(), &[skill("one"), skill("two")]).unwrap();
            for folder in ["skills/one", "skills/two", "skills"] {
                set_mode(&home.path().join(folder), closed);
            }
            without_privileges(|| write_skills(home.path(), &[skill("one")])).unwrap();
            assert_eq!(names(&home.path().join("skills")), ["one"]);
            let mode = fs::metadata(home.path().join("skills/one")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755, "it is the new one");
        }
    }

    #[test]
    fn folders_that_an_agent_nests_among_the_skills_are_removed() {
        let home = tempfile::tempdir().unwrap();
        write_skills(home.path(), &[skill("one")]).unwrap();
        let mut folder = open(home.path().join("skills"), FOLDER, Mode::empty()).unwrap();
        // Too deep for a recursion.
        for _ in 0..20_000 {
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        write_skills(home.path(), &[]).unwrap();
        assert_eq!(fs::read_dir(home.path().join("skills")).unwrap().count(), 0);
    }

    #[test]
    fn names_that_are_alike_get_folders_of_their_own() {
        let long = "x".repeat(70);
        let names = ["a/b", "a:b", "A_B", &format!("{long}1"), &format!("{long}2"), "a_b-2"];
        let skills: Vec<Skill> = names.into_iter().map(skill).collect();
        let home = tempfile::tempdir().unwrap();
        write_skills(home.path(), &skills).unwrap();
        let folders = folders_of(&skills);
        assert_eq!(folders[..3], ["a_b", "a_b-2", "A_B-3"]);
        for (skill, folder) in skills.iter().zip(&folders) {
            let text = fs::read_to_string(home.path().join("skills").join(folder).join("SKILL.md")).unwrap();
            assert!(text.contains(&format!("name: {:?}", skill.name)), "{folder}: {text}");
        }
    }

    #[test]
    fn the_files_of_a_profile_are_inside_the_home() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let one = |path: &str| write_files(home.path(), &[(path.to_owned(), "new".to_owned())].into());
        fs::create_dir_all(home.path().join(".config")).unwrap();
        symlink(outside.path().join("kept"), home.path().join(".config/file")).unwrap();
        one(".config/file").unwrap();
        assert_eq!(fs::read_to_string(home.path().join(".config/file")).unwrap(), "new");
        let mode = fs::metadata(home.path().join(".config/file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it is for its owner alone");
        symlink(outside.path(), home.path().join("link")).unwrap();
        for path in ["../x", "/x", "link/x", "a//b", "a/../../x", ""] {
            assert!(one(path).is_err(), "{path}");
            assert!(check_files(&[(path.to_owned(), String::new())].into()).is_err() || path == "link/x");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_of_the_agent_leads_the_host_nowhere() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("kept"), "kept").unwrap();
        symlink(outside.path(), home.path().join("skills")).unwrap();
        symlink(outside.path(), home.path().join("inbox")).unwrap();
        write_skills(home.path(), &[skill("one")]).unwrap();
        assert!(write_inbox(home.path(), 1, "file", b"x").is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        symlink(outside.path().join("kept"), home.path().join("link")).unwrap();
        assert!(matches!(read(home.path(), Path::new("link")), Err(SendError::Outside)));
        assert!(matches!(read(home.path(), Path::new("../kept")), Err(SendError::Outside)));
        assert!(matches!(read(home.path(), &outside.path().join("kept")), Err(SendError::Outside)));
        assert!(matches!(read(home.path(), Path::new("skills")), Err(SendError::NotAFile)));
    }

    #[test]
    fn a_file_is_sent_up_to_its_limit() {
        let home = tempfile::tempdir().unwrap();
        let path = write_inbox(home.path(), 7, "notes.txt", b"hello").unwrap();
        assert_eq!(read(home.path(), &path).unwrap(), b"hello");
        assert_eq!(read(home.path(), Path::new("inbox/7/notes.txt")).unwrap(), b"hello");
        fs::write(home.path().join("large"), vec![0; 512 * 1024 + 1]).unwrap();
        assert!(matches!(read(home.path(), Path::new("large")), Err(SendError::TooLarge)));
    }
}
