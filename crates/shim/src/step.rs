//! `muster-shim exec`: what must be set in the agent's own process, just before it becomes the agent.

use std::{
    ffi::OsString,
    fs,
    io::{self, PipeReader},
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::Path,
    process::{Command, ExitCode},
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Resource, Rlimit, getrlimit, setrlimit, setsid, umask},
};

use crate::{
    about,
    args::{Limits, Step},
    detach::clean,
    filter::filter,
    folder::one_line,
    isolate::find,
    say,
};

/// As shells have it: a program that can't be started.
pub(crate) const NOT_STARTED: u8 = 126;

/// Becomes the program. Returns only if that is not possible.
pub(crate) fn exec(prefix: &[&str], step: &Step) -> ExitCode {
    let error = become_program(prefix, step);
    let reason = one_line(error.to_string().as_bytes(), 1024);
    say::complain(&reason);
    if let Some(file) = &step.failed
        && let Err(error) = fs::write(file, &reason)
    {
        say::complain(about(file.display(), error));
    }
    ExitCode::from(NOT_STARTED)
}

fn become_program(prefix: &[&str], step: &Step) -> io::Error {
    match prepare(step).and_then(|leads| command(prefix, step, leads)) {
        Ok((mut command, _filter)) => about(step.program.display(), command.exec()),
        Err(error) => error,
    }
}

/// What to become, and a file that it reads at once.
fn command(prefix: &[&str], step: &Step, leads: bool) -> io::Result<(Command, Option<PipeReader>)> {
    let (program, args) = match &step.gate {
        Some(gate) => gate.around(prefix, &step.program, &step.args)?,
        None => (step.program.clone(), step.args.clone()),
    };
    let Some(sandbox) = &step.sandbox else { return Ok((clean(Path::new(&program), &args), None)) };
    let bwrap = find("bwrap".as_ref()).ok_or_else(no_bwrap)?;
    let filter = filter()?;
    let mut all: Vec<OsString> = vec!["--seccomp".into(), filter.as_raw_fd().to_string().into()];
    all.extend((!leads && has_terminal()).then(|| OsString::from("--new-session")));
    all.extend(sandbox.arguments(&std::env::current_dir()?, &program, &args));
    let command = clean(&bwrap, &all);
    // Only now: what stays open by mistake is closed.
    fcntl_setfd(&filter, FdFlags::empty())?;
    Ok((command, Some(filter)))
}

/// Gives this process what its program has as well. Says whether it leads a session, which has no terminal then: the host's
/// operator may have started it in one, and what a program writes into that as if it was typed, the operator's shell runs.
fn prepare(step: &Step) -> io::Result<bool> {
    if let Some(parent) = step.parent {
        die_with(parent)?;
    }
    let leads = match setsid() {
        Ok(_) => true,
        // It leads a group, as an agent does, in the session of its shim. Under a shell that session may have a terminal.
        Err(Errno::PERM) => false,
        Err(error) => return Err(error.into()),
    };
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    #[cfg(target_os = "linux")]
    rustix::thread::set_no_new_privs(true)?;
    limit(&step.limits)?;
    Ok(leads)
}

/// Whether the session has a terminal.
fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

/// What to say where bubblewrap is missing.
pub(crate) fn no_bwrap() -> io::Error {
    let why = "bwrap is not on the PATH: install bubblewrap, or run the agent without --isolate";
    io::Error::new(io::ErrorKind::NotFound, why)
}

/// Makes the kernel kill this process when its parent ends, also if that has happened already.
#[cfg(target_os = "linux")]
pub(crate) fn die_with(parent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match rustix::process::getppid() {
        Some(now) if now.as_raw_nonzero().get() == parent => Ok(()),
        _ => Err(io::Error::other("its parent has ended")),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn die_with(_: i32) -> io::Result<()> {
    Ok(())
}

fn limit(limits: &Limits) -> io::Result<()> {
    let all = [
        (Resource::Nofile, limits.nofile),
        (Resource::Nproc, limits.nproc),
        (Resource::Core, Some(limits.core.unwrap_or(0))),
        (Resource::As, limits.memory),
        (Resource::Data, limits.data),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Fsize, limits.file_bytes),
    ];
    for (resource, wanted) in all {
        let Some(wanted) = wanted else { continue };
        // The most that this process may have can't be raised.
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX).min(wanted);
        let new = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, new).map_err(|error| about(format!("{resource:?}"), error))?;
    }
    Ok(())
}
