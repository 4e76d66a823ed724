//! `muster-shim run`: starts the shim detached from its caller, and waits until it is ready.
//!
//! The shim is this executable again: a session leader whose parent exits at once. It needs no reaping, and signals
//! to the caller don't reach it.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::fs::FileType;

use crate::{about, args::Launch, exec::missing_bwrap, isolate::find_program};

/// The shim's output once its socket accepts connections.
pub(crate) const READY: &str = "READY\n";

pub(crate) fn run(prefix: &[&str], launch: &Launch) -> io::Result<()> {
    let mut launch = launch.clone();
    launch.dir = std::path::absolute(&launch.dir)?;
    launch.cwd = Some(match launch.cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => std::env::current_dir()?,
    });
    launch.spec.program = find_program(&launch.spec.program)
        .ok_or_else(|| {
            let why = "program not found; names are looked up on the agent's PATH";
            about(launch.spec.program.display(), io::Error::new(io::ErrorKind::NotFound, why))
        })?
        .into();
    if launch.spec.sandbox.is_some() {
        find_program("bwrap".as_ref()).ok_or_else(missing_bwrap)?;
    }
    let mut args: Vec<OsString> = prefix.iter().map(OsString::from).collect();
    args.push("serve".into());
    args.extend(launch.to_args());
    let mut command = command_without_fds(&executable()?, &args);
    let mut shim = command.stdin(kept_open()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut says = String::new();
    if let Some(stdout) = shim.stdout.take() {
        stdout.take(8 << 10).read_to_string(&mut says)?;
    }
    match says.as_str() {
        READY => Ok(()),
        "" => Err(io::Error::other("the shim ended before it could start the agent")),
        reason => Err(io::Error::other(reason.trim_end().to_owned())),
    }
}

/// The shim's stdin: this process's own, if it is a file. The host passes a locked file that way. The lock proves that
/// the shim lives, even before it writes its record.
fn kept_open() -> Stdio {
    let is_file = rustix::fs::fstat(rustix::stdio::stdin())
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    if is_file { Stdio::inherit() } else { Stdio::null() }
}

/// This program. /proc leads to the running executable even after its file was replaced.
pub(crate) fn executable() -> io::Result<PathBuf> {
    let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

/// A command without accidentally inherited descriptors, such as `9>file` in the script that started the host. The shim
/// would keep the file open for as long as the agent lives, and the program could use it.
///
/// Closing a descriptor by its number is unsafe code, so a shell closes them, if there are any. Without bash,
/// descriptors of more than one digit stay open.
pub(crate) fn command_without_fds(program: &Path, args: &[OsString]) -> Command {
    let mut open = inherited_fds();
    let shell = find_program("bash".as_ref()).or_else(|| {
        open.retain(|number| *number < 10);
        find_program("sh".as_ref())
    });
    let Some(shell) = shell.filter(|_| !open.is_empty()) else {
        let mut command = Command::new(program);
        command.args(args);
        return command;
    };
    let close: String = open.iter().map(|number| format!(" {number}>&-")).collect();
    let is_bash = shell.file_name().is_some_and(|name| name == "bash");
    let mut command = Command::new(shell);
    // The environment comes from the agent, and so from people who name credentials. In privileged mode bash ignores
    // variables that run commands, such as SHELLOPTS with PS4. A plain sh has none.
    command.args(is_bash.then_some("-p"));
    command
        .args([OsStr::new("-c"), format!("exec{close}; exec \"$0\" \"$@\"").as_ref(), program.as_ref()])
        .args(args);
    command
}

/// Open descriptors above 2 that child processes inherit.
fn inherited_fds() -> Vec<u32> {
    let entries = fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten();
    let stays = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok().filter(|number| *number > 2)?;
        let info = fs::read_to_string(entry.path()).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        (u32::from_str_radix(flags.trim(), 8).ok()? & rustix::fs::OFlags::CLOEXEC.bits() == 0)
            .then_some(number)
    };
    entries.filter_map(stays).collect()
}
