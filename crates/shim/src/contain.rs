//! `muster-shim contain`: the shim as the first process of a container.
//!
//! The container starts as root with a few capabilities. The shim gives the agent its home, becomes the owner of the
//! launch's folder, and keeps only the rights to run the agent as another user and to end it. The bounding set is empty
//! afterwards, so the agent can gain no capability. It can't open the shim's folder, connect to its socket, signal it
//! or inspect it.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write, stdin, stdout},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
};

use rustix::fs::{Gid, OFlags, Uid, chown};

use crate::{
    about,
    args::{Contained, Launch},
    bounds::LARGEST,
    folder::{ENVIRONMENT, FAILED, LOCK},
    serve,
};

/// Variables of the agent, in addition to its image's.
pub(crate) type Environment = Pairs;
/// Files in the agent's home: path and text.
type Files = Pairs;
type Pairs = Vec<(OsString, OsString)>;

/// Runs the shim in a container until it is no longer needed.
pub(crate) fn contain(prefix: &[&str], launch: &Launch) -> io::Result<()> {
    let users = launch.contained.unwrap_or_default();
    if let Some(home) = &launch.cwd {
        give_home_to_agent(home, users.agent).map_err(|error| about(home.display(), error))?;
    }
    become_user(users)?;
    let served = hold_lock(&launch.dir).and_then(|_lock| {
        let (environment, files) = receive(&launch.dir.join(ENVIRONMENT))?;
        if !files.is_empty() {
            write_files_as_agent(prefix, launch, users.agent, &files)?;
        }
        serve::serve(prefix, launch, Some(environment))
    });
    if let Err(error) = &served {
        // The output of a container is not read.
        drop(fs::write(launch.dir.join(FAILED), error.to_string()));
    }
    served
}

/// Gives the agent its home, once.
fn give_home_to_agent(home: &Path, agent: u32) -> io::Result<()> {
    if fs::metadata(home)?.uid() != agent {
        fs::set_permissions(home, fs::Permissions::from_mode(0o700))?;
        chown(home, Some(Uid::from_raw(agent)), Some(Gid::from_raw(agent)))?;
    }
    Ok(())
}

/// Becomes the owner of the launch's folder. Keeps only the rights to run the agent as another user and to end its
/// processes. The process still has a single thread.
#[cfg(target_os = "linux")]
fn become_user(users: Contained) -> io::Result<()> {
    use rustix::{
        io::Errno,
        thread::{
            CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
            set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
        },
    };
    let kept = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            // An older kernel knows fewer capabilities.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(about("the container's capabilities can't be dropped", error)),
        }
    }
    let (uid, gid) = (Uid::from_raw(users.uid), Gid::from_raw(users.gid));
    set_thread_groups(&[])?;
    set_keep_capabilities(true)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let empty = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: empty })?;
    set_keep_capabilities(false)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn become_user(_: Contained) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "the shim runs only in Linux containers"))
}

/// Proves to a host without access to the engine that the shim lives.
fn hold_lock(dir: &Path) -> io::Result<File> {
    let path = dir.join(LOCK);
    let open = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = open.map_err(|error| about(path.display(), error))?;
    file.try_lock().map_err(|error| about(path.display(), error))?;
    Ok(file)
}

/// Waits for environment and files. A host killed during the write leaves half of them; the next host writes all again.
fn receive(pipe: &Path) -> io::Result<(Environment, Files)> {
    loop {
        let file = File::open(pipe).map_err(|error| about(pipe.display(), error))?;
        let mut bytes = Vec::new();
        file.take(LARGEST as u64).read_to_end(&mut bytes)?;
        if let Some(given) = parse(&bytes) {
            return Ok(given);
        }
    }
}

/// Writes the files in a process of the agent's user. The files then belong to the agent, and links in its home lead
/// only where the agent may go anyway.
fn write_files_as_agent(prefix: &[&str], launch: &Launch, agent: u32, files: &Files) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(prefix).arg("place").uid(agent).gid(agent).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    if let Some(home) = &launch.cwd {
        command.current_dir(home);
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // The exit status explains more than a broken pipe.
        drop(
            stdin.write_all(&to_bytes(files.iter().map(|(path, text)| (path.as_os_str(), text.as_os_str())))),
        );
    }
    let ended = child.wait_with_output()?;
    if ended.status.success() {
        return Ok(());
    }
    let says = String::from_utf8_lossy(&ended.stderr);
    Err(io::Error::other(format!("the agent's files can't be written: {}", says.trim())))
}

/// `muster-shim place`: writes files from stdin into the current folder, private to their owner.
pub(crate) fn write_files() -> io::Result<()> {
    let mut bytes = Vec::new();
    stdin().take(LARGEST as u64).read_to_end(&mut bytes)?;
    let files = section(&bytes).filter(|(_, rest)| rest.is_empty());
    let (files, _) = files.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    for (path, text) in files {
        let path = Path::new(&path);
        write_file(path, text.as_bytes()).map_err(|error| about(path.display(), error))?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text),
    }
}

/// The content of the pipe: environment, then files. Names contain no `=`, and nothing contains a NUL.
pub fn given_to_bytes<'a>(
    variables: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    files: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
) -> Vec<u8> {
    [to_bytes(variables), to_bytes(files)].concat()
}

/// A section: `NAME=VALUE` entries, each ended by a NUL, and a final NUL.
fn to_bytes<'a>(all: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in all {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes.push(0);
    bytes
}

/// Environment and files, if complete.
fn parse(bytes: &[u8]) -> Option<(Environment, Files)> {
    let (environment, rest) = section(bytes)?;
    let (files, rest) = section(rest)?;
    rest.is_empty().then_some((environment, files))
}

/// A section and the bytes after it, if complete.
fn section(mut bytes: &[u8]) -> Option<(Pairs, &[u8])> {
    let mut all = Vec::new();
    loop {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let entry = &bytes[..end];
        bytes = &bytes[end + 1..];
        if entry.is_empty() {
            return Some((all, bytes));
        }
        if let Some(at) = entry.iter().position(|byte| *byte == b'=') {
            let (name, value) = (&entry[..at], &entry[at + 1..]);
            all.push((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()));
        }
    }
}

/// `muster-shim read`: reads a file with the agent's rights. Only regular files, since others could block.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<()> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_A_FILE));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_LARGE));
    }
    stdout().write_all(&bytes)
}

/// Error of `read` for anything but a regular file.
pub const NOT_A_FILE: &str = "this is not a regular file";
/// Error of `read` for a file above the size limit.
pub const TOO_LARGE: &str = "the file is larger than that";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_and_files_arrive_as_a_whole_or_not_at_all() {
        let variables = [("A", "1"), ("EMPTY", ""), ("LINES", "x=y\nz")];
        let files = [(".config/a.json", "{\n\"b\": \"=\"}\n"), ("empty", "")];
        let words = |all: &[(&'static str, &'static str)]| {
            all.iter().map(|(name, value)| (OsStr::new(*name), OsStr::new(*value))).collect::<Vec<_>>()
        };
        let owned = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect::<Vec<_>>()
        };
        let bytes = given_to_bytes(words(&variables), words(&files));
        assert_eq!(parse(&bytes).unwrap(), (owned(&variables), owned(&files)));
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_none(), "{cut}");
        }
        assert_eq!(parse(&given_to_bytes([], [])).unwrap(), (vec![], vec![]));
    }
}
