//! `muster-shim run`: starts the shim apart from its caller, and waits until it stands.
//!
//! The shim is this executable again: a child that leads a session of its own and whose parent ends at once, so that
//! no one has to reap it and nothing that happens to the caller reaches it.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::fs::FileType;

use crate::{about, args::Launch, isolate::find, step::no_bwrap};

/// What the shim writes to its stdout once its socket answers.
pub(crate) const READY: &str = "READY\n";

pub(crate) fn run(prefix: &[&str], launch: &Launch) -> io::Result<()> {
    let mut launch = launch.clone();
    launch.dir = std::path::absolute(&launch.dir)?;
    launch.cwd = Some(match launch.cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => std::env::current_dir()?,
    });
    launch.step.program = find(&launch.step.program)
        .ok_or_else(|| {
            let why =
                "there is no such program that can be run; it is looked up on the PATH that the agent gets";
            about(launch.step.program.display(), io::Error::new(io::ErrorKind::NotFound, why))
        })?
        .into();
    if launch.step.sandbox.is_some() {
        find("bwrap".as_ref()).ok_or_else(no_bwrap)?;
    }
    let mut args: Vec<OsString> = prefix.iter().map(OsString::from).collect();
    args.push("serve".into());
    args.extend(launch.to_args());
    let mut command = clean(&executable()?, &args);
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

/// The shim's stdin: this process's own, if it is a file. Its starter gives it a locked file that way, and sees by
/// the lock that the shim lives, even before it has a record.
fn kept_open() -> Stdio {
    let is_file = rustix::fs::fstat(rustix::stdio::stdin())
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    if is_file { Stdio::inherit() } else { Stdio::null() }
}

/// This program. Through /proc it is the same one even if its file was replaced meanwhile.
pub(crate) fn executable() -> io::Result<PathBuf> {
    let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

/// A command that doesn't inherit what this process has inherited by mistake, such as `9>file` of the script that
/// started the host: the shim would keep it open for as long as the agent lives, and the program could use it.
///
/// Only unsafe code can close a descriptor by its number, so a shell does, if there are any. Where there is no bash, those
/// of more than one digit stay open.
pub(crate) fn clean(program: &Path, args: &[OsString]) -> Command {
    let mut open = inherited();
    let shell = find("bash".as_ref()).or_else(|| {
        open.retain(|number| *number < 10);
        find("sh".as_ref())
    });
    let Some(shell) = shell.filter(|_| !open.is_empty()) else {
        let mut command = Command::new(program);
        command.args(args);
        return command;
    };
    let close: String = open.iter().map(|number| format!(" {number}>&-")).collect();
    let is_bash = shell.file_name().is_some_and(|name| name == "bash");
    let mut command = Command::new(shell);
    // The environment is the agent's, so people who name credentials choose it. Privileged, bash takes nothing from it that
    // would make it run commands, such as SHELLOPTS with PS4. A plain sh reads nothing of the kind.
    command.args(is_bash.then_some("-p"));
    command
        .args([OsStr::new("-c"), format!("exec{close}; exec \"$0\" \"$@\"").as_ref(), program.as_ref()])
        .args(args);
    command
}

/// The descriptors, beside the usual three, that are open and stay so in what this process starts.
fn inherited() -> Vec<u32> {
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
