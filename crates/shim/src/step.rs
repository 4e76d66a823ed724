//! `muster-shim exec`: what must be set in the agent's own process, just before it becomes the agent.

use std::{
    fs, io,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use rustix::process::{Resource, Rlimit, getrlimit, setpgid, setrlimit, umask};

use crate::{
    about,
    args::{Limits, Step},
    folder::one_line,
    isolate::find,
    say,
};

/// As shells have it: a program that can't be started.
pub(crate) const NOT_STARTED: u8 = 126;

/// Becomes the program. Returns only if that is not possible.
pub(crate) fn exec(prefix: &[&str], step: &Step) -> ExitCode {
    let error = prepare(prefix, step)
        .map_or_else(|error| error, |mut command| about(step.program.display(), command.exec()));
    let reason = one_line(error.to_string().as_bytes(), 1024);
    say::complain(&reason);
    if let Some(file) = &step.failed
        && let Err(error) = fs::write(file, &reason)
    {
        say::complain(about(file.display(), error));
    }
    ExitCode::from(NOT_STARTED)
}

fn prepare(prefix: &[&str], step: &Step) -> io::Result<Command> {
    if let Some(parent) = step.parent {
        die_with(parent)?;
    }
    match setpgid(None, None) {
        // One that leads a session leads a group. Which group it is in can't be asked where that is led from outside of a sandbox.
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    #[cfg(target_os = "linux")]
    rustix::thread::set_no_new_privs(true)?;
    limit(&step.limits)?;
    let (program, args) = match &step.gate {
        Some(gate) => gate.around(prefix, &step.program, &step.args)?,
        None => (step.program.clone(), step.args.clone()),
    };
    let Some(sandbox) = &step.sandbox else {
        let mut command = Command::new(program);
        command.args(args);
        return Ok(command);
    };
    let bwrap = find("bwrap".as_ref()).ok_or_else(no_bwrap)?;
    let mut command = Command::new(bwrap);
    command.args(sandbox.arguments(&std::env::current_dir()?, &program, &args));
    Ok(command)
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
