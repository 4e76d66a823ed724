//! A launch's folder: file names, file formats, and the path to its socket.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use crate::about;

/// Socket for clients.
pub const SOCKET: &str = "socket";
/// Folder of the agent's untrimmed lines.
pub const SPOOL: &str = "spool";
/// The end of the agent's stderr.
pub const STDERR: &str = "stderr";
/// The previous part of [`STDERR`].
pub const STDERR_BEFORE: &str = "stderr.1";
/// Processes of the launch: [`crate::record::Record`].
pub const RECORD: &str = "shim";
/// The agent's exit: [`crate::record::Exit`].
pub const EXIT: &str = "exit";
/// In a container: locked while the shim lives.
pub const LOCK: &str = "lock";
/// In a container: the pipe with the agent's environment, which is stored in no file.
pub const ENVIRONMENT: &str = "environment";
/// The error of a failed start.
pub const FAILED: &str = "failed";

/// Limit of the returned stderr, in bytes: an agent may write without end.
pub const STDERR_BYTES: u64 = 256 << 10;

/// A path of a socket that is short enough to connect to, valid while this value lives.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    /// Returns a path that the kernel accepts. For a longer one it goes through an open descriptor of the folder, on
    /// Linux only.
    pub fn for_socket(socket: &Path) -> io::Result<Self> {
        // Linux has 108 bytes with the final NUL, others 104.
        let most = 103;
        if socket.as_os_str().len() <= most {
            return Ok(Self { path: socket.to_owned(), _folder: None });
        }
        let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not the path of a socket"));
        };
        let open = File::open(folder).map_err(|error| about(folder.display(), error))?;
        let through = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open)));
        let path = through.join(name);
        if !through.exists() || path.as_os_str().len() > most {
            let why = format!(
                "{}: a socket's path may have {most} bytes, and there is no /proc to shorten it: use a shorter folder",
                socket.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Self { path, _folder: Some(open) })
    }

    /// The path to connect to.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The end of the agent's stderr, at most [`STDERR_BYTES`], with or without a running shim.
pub fn stderr(dir: &Path) -> io::Result<Vec<u8>> {
    let mut end = tail(&dir.join(STDERR), STDERR_BYTES)?;
    let room = STDERR_BYTES - end.len() as u64;
    if room > 0 {
        let mut before = tail(&dir.join(STDERR_BEFORE), room)?;
        before.append(&mut end);
        end = before;
    }
    Ok(end)
}

/// Opens a file of a launch's folder. Links, pipes and other special files are refused: a container's folder may be
/// under an attacker's control, and following a link would read the host's own secrets.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from);
    let file = File::from(opened.map_err(|error| about(path.display(), error))?);
    if !file.metadata()?.is_file() {
        return Err(about(path.display(), io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    Ok(file)
}

/// The reason of a failed start, at most 64 KiB; `None` without one.
pub fn failed(dir: &Path) -> io::Result<Option<String>> {
    let file = match open(&dir.join(FAILED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(64 << 10).read_to_end(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// The last bytes of a file; empty without a file.
fn tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end)?;
    Ok(end)
}

/// Writes `key=value` lines atomically: readers see the whole file or none, even after a crash of the machine.
pub(crate) fn write_pairs(path: &Path, pairs: &[(&str, String)]) -> io::Result<()> {
    let mut text = String::new();
    for (key, value) in pairs {
        let _ = writeln!(text, "{key}={value}");
    }
    let new = path.with_extension("new");
    let mut file = File::create(&new).map_err(|error| about(new.display(), error))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| about(new.display(), error))?;
    fs::rename(&new, path).map_err(|error| about(path.display(), error))?;
    sync_folder(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| about(folder.display(), error))
}

/// A file of `key=value` lines.
pub(crate) struct Pairs {
    path: PathBuf,
    text: String,
}

impl Pairs {
    /// Reads at most 64 KiB.
    pub(crate) fn read(path: PathBuf) -> io::Result<Self> {
        let mut text = String::new();
        let file = open(&path)?;
        file.take(64 << 10).read_to_string(&mut text).map_err(|error| about(path.display(), error))?;
        Ok(Self { path, text })
    }

    pub(crate) fn text(&self, key: &str) -> io::Result<&str> {
        let found = self.text.lines().find_map(|line| line.split_once('=').filter(|(name, _)| *name == key));
        found.map(|(_, value)| value).ok_or_else(|| self.wrong(key))
    }

    pub(crate) fn value<T: std::str::FromStr>(&self, key: &str) -> io::Result<T> {
        self.text(key)?.parse().map_err(|_| self.wrong(key))
    }

    /// A value that may be `-`.
    pub(crate) fn optional<T: std::str::FromStr>(&self, key: &str) -> io::Result<Option<T>> {
        if self.text(key)? == "-" { Ok(None) } else { self.value(key).map(Some) }
    }

    fn wrong(&self, key: &str) -> io::Error {
        let why = format!("{}: {key} is missing or invalid", self.path.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    }
}

/// Text as a single line, for a file of lines.
pub(crate) fn one_line(text: &[u8], most: usize) -> String {
    text[..text.len().min(most)].escape_ascii().to_string()
}

/// Whether a path contains neither newline nor NUL.
pub(crate) fn is_plain(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b'\n' | 0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::record::{Exit, Record};

    #[test]
    fn a_link_in_a_launchs_folder_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (launch, secret) = (dir.path().join("1"), dir.path().join("identity.json"));
        fs::create_dir(&launch).unwrap();
        fs::write(&secret, "generation=1\nversion=1\ncanary").unwrap();
        assert_eq!(stderr(&launch).unwrap(), b"");
        assert_eq!(failed(&launch).unwrap(), None);
        let all = [STDERR, STDERR_BEFORE, RECORD, EXIT, FAILED];
        let refused = |why: &str| {
            let said = [
                stderr(&launch).map(|_| ()),
                failed(&launch).map(|_| ()),
                Record::read(&launch).map(|_| ()),
                Exit::read(&launch).map(|_| ()),
            ];
            for error in said.map(Result::unwrap_err) {
                assert_ne!(error.kind(), io::ErrorKind::NotFound, "{why}: {error}");
                assert!(!error.to_string().contains("canary"), "{why}: {error}");
            }
        };
        for name in all {
            symlink(&secret, launch.join(name)).unwrap();
        }
        refused("a link");
        for name in all {
            fs::remove_file(launch.join(name)).unwrap();
            let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR);
            rustix::fs::mknodat(rustix::fs::CWD, launch.join(name), kind, mode, 0).unwrap();
        }
        refused("a pipe without a writer");
        for name in all {
            fs::remove_file(launch.join(name)).unwrap();
            fs::write(launch.join(name), "words").unwrap();
        }
        assert_eq!(stderr(&launch).unwrap(), b"wordswords");
        assert_eq!(failed(&launch).unwrap().as_deref(), Some("words"));
    }
}
