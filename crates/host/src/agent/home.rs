//! Files in an agent's home. The agent writes there too, and may put a symbolic link where the host expects a folder; so
//! every step is taken from an open folder, and links are not followed.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
};

use muster_protocol::plan::Skill;
use rustix::{
    fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2, unlinkat},
    io::Errno,
};

/// The largest file that an agent may send, in bytes.
pub const LARGEST_FILE: u64 = 512 * 1024;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writes the skills, and removes those that are gone. The folder `skills` is the host's.
pub fn write_skills(home: &Path, skills: &[Skill]) -> io::Result<()> {
    let path = home.join("skills");
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path)?,
        Ok(_) => std::fs::remove_file(&path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    for skill in skills {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!("---\nname: {}\n", quoted(&skill.name));
        if let Some(description) = &skill.description {
            text.push_str(&format!("description: {}\n", quoted(description)));
        }
        text.push_str(&format!("---\n\n{}\n", skill.content));
        write(home, &["skills", &file_name(&skill.name)], "SKILL.md", text.as_bytes())?;
    }
    Ok(())
}

/// Writes a file that people send, and answers where it is.
pub fn write_inbox(home: &Path, turn_id: i64, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let (turn, name) = (turn_id.to_string(), file_name(name));
    write(home, &["inbox", &turn], &name, bytes)?;
    Ok(home.join("inbox").join(turn).join(name))
}

fn write(home: &Path, folders: &[&str], name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut folder = open(home, FOLDER, Mode::empty())?;
    for name in folders {
        match mkdirat(&folder, *name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = openat(&folder, *name, FOLDER, Mode::empty())?;
    }
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(bytes)
}

/// Why a file can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The path leaves the home.
    #[error("The path leads out of your home folder. Send a file from there.")]
    Outside,
    /// It isn't a file.
    #[error("This is not a regular file.")]
    NotAFile,
    /// It is too large.
    #[error("The file is larger than 512 KiB.")]
    TooLarge,
    /// The system says no.
    #[error("The file can't be read: {0}.")]
    Io(#[from] io::Error),
}

/// Reads a file of an agent: one that is really in its home, whatever links there are.
pub fn read(home: &Path, path: &Path) -> Result<Vec<u8>, SendError> {
    let relative = path.strip_prefix(home).unwrap_or(path);
    if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(SendError::Outside);
    }
    let folder = open(home, FOLDER, Mode::empty()).map_err(io::Error::from)?;
    // Without NONBLOCK, a pipe would keep the host waiting.
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

/// A name that is safe as one part of a path.
pub fn file_name(name: &str) -> String {
    let safe = |char: char| if char.is_alphanumeric() || "-_. ".contains(char) { char } else { '_' };
    let name: String = name.chars().take(60).map(safe).collect();
    let name = name.trim_matches([' ', '.']);
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn skill(name: &str) -> Skill {
        let description = Some("When \"this\":\nthat".to_owned());
        Skill { name: name.to_owned(), description, content: "Do it.".to_owned(), version: 1 }
    }

    #[test]
    fn skills_are_replaced_as_a_whole() {
        let home = tempfile::tempdir().unwrap();
        write_skills(home.path(), &[skill("one"), skill("../two")]).unwrap();
        let text = fs::read_to_string(home.path().join("skills/one/SKILL.md")).unwrap();
        assert!(text.contains(r#"description: "When \"this\":\nthat""#), "{text}");
        assert!(home.path().join("skills/_two/SKILL.md").is_file());
        write_skills(home.path(), &[skill("three")]).unwrap();
        let left: Vec<_> = fs::read_dir(home.path().join("skills"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["three"]);
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
