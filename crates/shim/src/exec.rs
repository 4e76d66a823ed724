//! `muster-shim exec`: settings of the agent's own process, just before it becomes the agent.

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
    args::{Limits, ProgramSpec},
    detach::command_without_fds,
    folder::one_line,
    isolate::find_program,
    output,
    seccomp::filter,
};

/// The shells' exit code for a program that can't be started.
pub(crate) const NOT_STARTED: u8 = 126;

/// Becomes the program. Returns only on failure.
pub(crate) fn exec(prefix: &[&str], spec: &ProgramSpec) -> ExitCode {
    let error = become_program(prefix, spec);
    let reason = one_line(error.to_string().as_bytes(), 1024);
    output::print_error(&reason);
    if let Some(file) = &spec.failed
        && let Err(error) = fs::write(file, &reason)
    {
        output::print_error(about(file.display(), error));
    }
    ExitCode::from(NOT_STARTED)
}

fn become_program(prefix: &[&str], spec: &ProgramSpec) -> io::Error {
    match prepare(spec).and_then(|leads| command(prefix, spec, leads)) {
        Ok((mut command, _filter)) => about(spec.program.display(), command.exec()),
        Err(error) => error,
    }
}

/// The command, and a pipe that it reads at once.
fn command(prefix: &[&str], spec: &ProgramSpec, leads: bool) -> io::Result<(Command, Option<PipeReader>)> {
    let (program, args) = match &spec.gate {
        Some(gate) => gate.around(prefix, &spec.program, &spec.args)?,
        None => (spec.program.clone(), spec.args.clone()),
    };
    let Some(sandbox) = &spec.sandbox else {
        return Ok((command_without_fds(Path::new(&program), &args), None));
    };
    let bwrap = find_program("bwrap".as_ref()).ok_or_else(missing_bwrap)?;
    let filter = filter()?;
    let mut all: Vec<OsString> = vec!["--seccomp".into(), filter.as_raw_fd().to_string().into()];
    all.extend((!leads && has_terminal()).then(|| OsString::from("--new-session")));
    all.extend(sandbox.arguments(&std::env::current_dir()?, &program, &args));
    let command = command_without_fds(&bwrap, &all);
    // Inheritable only now: accidentally inherited descriptors were closed before.
    fcntl_setfd(&filter, FdFlags::empty())?;
    Ok((command, Some(filter)))
}

/// Sets attributes that the program inherits. Returns whether the process leads a session, and so has no terminal.
/// Otherwise a program could insert input into the terminal from which the owner started the host, and the
/// owner's shell would run it.
fn prepare(spec: &ProgramSpec) -> io::Result<bool> {
    if let Some(parent) = spec.parent {
        die_with(parent)?;
    }
    let leads = match setsid() {
        Ok(_) => true,
        // An agent leads a group in its shim's session. Under a shell that session may have a terminal.
        Err(Errno::PERM) => false,
        Err(error) => return Err(error.into()),
    };
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    #[cfg(target_os = "linux")]
    rustix::thread::set_no_new_privs(true)?;
    limit(&spec.limits)?;
    Ok(leads)
}

fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

/// The error without bubblewrap.
pub(crate) fn missing_bwrap() -> io::Error {
    let why = "bwrap is not on the PATH: install bubblewrap, or run the agent without --isolate";
    io::Error::new(io::ErrorKind::NotFound, why)
}

/// Makes the kernel kill this process with its parent, or now if the parent is already gone.
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
        // The hard limit can't be raised.
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX).min(wanted);
        let new = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, new).map_err(|error| about(format!("{resource:?}"), error))?;
    }
    Ok(())
}
