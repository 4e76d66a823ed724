//! The command line: written by the host, parsed by the shim.

use std::{
    ffi::{OsStr, OsString},
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{folder::is_plain, home_archive::Task, isolate::Sandbox};

/// The help text.
pub const USAGE: &str = "\
Usage:
  muster-shim run --dir DIR --generation N [OPTIONS] -- PROGRAM [ARGS]
      Starts PROGRAM and a shim that owns its pipes, and returns when DIR/socket answers. PROGRAM gets this
      environment unchanged.
        --spool-bytes N   limit of unread lines, beyond which the agent waits (default 64 MiB)
        --line-bytes N    the longest line; a longer one ends the agent (default 4 MiB)
        --cwd DIR         working directory of PROGRAM (default: the current one)
      and the options of exec.
  muster-shim exec [OPTIONS] -- PROGRAM [ARGS]
      Sets limits, and becomes PROGRAM.
        --nofile N, --nproc N, --core N, --memory N, --data N, --cpu-seconds N, --file-bytes N
                          limits of the process; --nproc counts all processes of the user, --core defaults to 0
        --isolate bwrap   a sandbox of bubblewrap, with the system read-only and the following paths
        --bind PATH       with --isolate: a writable path; may be repeated
        --ro-bind PATH    with --isolate: a readable path; may be repeated
        --no-network      with --isolate: no network but the gate
        --gate SOCKET     relays a port of 127.0.0.1 to this socket; --gate-port N sets the port (default 3128)
  muster-shim contain --dir DIR --generation N --uid N --gid N --agent-uid N [OPTIONS] -- PROGRAM [ARGS]
      Runs as the first process of a container, started as root: becomes the user --uid, who owns DIR, reads the
      environment and the agent's files from the pipe DIR/environment, and runs PROGRAM as --agent-uid in --cwd.
      The options are those of run.
  muster-shim place
      Writes files from stdin into the current folder.
  muster-shim read FILE BYTES
      Copies a regular file of at most BYTES to stdout.
  muster-shim keep SOCKET HOME pack
  muster-shim keep SOCKET HOME restore COMMAND BYTES
  muster-shim keep SOCKET HOME drop
      Sends an archive of HOME to the socket; restores HOME from the socket's archive, keeping BYTES of the disk free;
      or removes the homes from before restores.
  muster-shim connect SOCKET
  muster-shim mcp SOCKET
      Copies stdin to the socket and the socket to stdout, until either ends.
  muster-shim mcp SOCKET -- PROGRAM [ARGS]
      The same for an MCP server started here: all lines of stdin, and of PROGRAM's stdout and stderr, go to the socket,
      which routes lines to stdout or PROGRAM.
  muster-shim gate SOCKET PORT -- PROGRAM [ARGS]
      Relays a port of 127.0.0.1 to the socket while PROGRAM lives, and becomes PROGRAM.
  muster-shim isolation
      Shows how agents can be isolated on this machine.";

/// Default limit of the spool.
pub const SPOOL_BYTES: u64 = 64 << 20;
/// Default limit of a line.
pub const LINE_BYTES: usize = 4 << 20;

/// Arguments of `muster-shim run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The launch's own folder, created if missing.
    pub dir: PathBuf,
    /// Number of the launch.
    pub generation: u64,
    /// Unread bytes in the spool before the agent blocks.
    pub spool_bytes: u64,
    /// The longest line, in either direction.
    pub line_bytes: usize,
    /// Working directory of the agent; `None`: the shim's.
    pub cwd: Option<PathBuf>,
    /// The users, if the shim is the first process of a container.
    pub contained: Option<Contained>,
    /// The agent's program.
    pub spec: ProgramSpec,
}

/// User ids in a container. The agent can neither change its user nor reach the shim's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contained {
    /// The shim's user, who owns the launch's folder: the host's user, as seen in the container.
    pub uid: u32,
    /// The shim's group.
    pub gid: u32,
    /// The agent's user and group.
    pub agent: u32,
}

/// A program with limits and sandbox: arguments of `muster-shim exec`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSpec {
    /// Resource limits.
    pub limits: Limits,
    /// The sandbox, if any.
    pub sandbox: Option<Sandbox>,
    /// The agent's only way out, if it has one.
    pub gate: Option<Gate>,
    /// The required parent: the program dies with it.
    pub parent: Option<i32>,
    /// File for the error, if the program can't be started.
    pub failed: Option<PathBuf>,
    /// A path, or a name on the PATH.
    pub program: OsString,
    /// Arguments of the program.
    pub args: Vec<OsString>,
}

/// The way out of a sandbox: a port of 127.0.0.1, relayed to a socket of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The host's socket.
    pub socket: PathBuf,
    /// The port on 127.0.0.1.
    pub port: u16,
}

impl Gate {
    /// Port in a sandbox without a network, where every port is free.
    pub const PORT: u16 = 3128;
}

/// Limits of a process. `None` keeps the current limit; larger values are capped at the hard limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open files.
    pub nofile: Option<u64>,
    /// Processes and threads of the user in total.
    pub nproc: Option<u64>,
    /// Bytes of a core dump; `None` is 0, since a dump contains the agent's secrets.
    pub core: Option<u64>,
    /// Bytes of address space. Node, Bun and Go reserve far more than they use.
    pub memory: Option<u64>,
    /// Bytes of private writable memory.
    pub data: Option<u64>,
    /// Processor seconds per process.
    pub cpu_seconds: Option<u64>,
    /// Bytes per written file.
    pub file_bytes: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Subcommand {
    Run(Launch),
    /// Runs as the first process of a container.
    Contain(Launch),
    /// A file, and its size limit in bytes.
    Read(PathBuf, u64),
    /// Writes files from standard input into the agent's home.
    WriteFiles,
    /// Archives, restores or cleans up a home, for a host at the other end of the socket.
    HomeTask(PathBuf, PathBuf, Task),
    /// Started by `run`: the shim itself.
    Serve(Launch),
    Exec(ProgramSpec),
    /// Started by `exec`: a program with a gate.
    Gate(Gate, OsString, Vec<OsString>),
    /// Started by `gate`: the relay. It listens on its standard input and ends with this parent.
    ServeGate(PathBuf, i32),
    Relay(PathBuf),
    /// A relay for an MCP server, and the server's program.
    RelayMcp(PathBuf, OsString, Vec<OsString>),
    Isolation,
    Help,
}

#[derive(Debug, PartialEq, Eq)]
pub struct InvalidArgument(String);

impl std::error::Error for InvalidArgument {}

impl Display for InvalidArgument {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl Launch {
    /// A launch with default limits.
    pub fn new(dir: impl Into<PathBuf>, generation: u64, program: impl Into<OsString>) -> Self {
        let spec = ProgramSpec { program: program.into(), ..ProgramSpec::default() };
        let (spool_bytes, line_bytes) = (SPOOL_BYTES, LINE_BYTES);
        Self { dir: dir.into(), generation, spool_bytes, line_bytes, cwd: None, contained: None, spec }
    }

    /// The arguments after `run` or `contain`.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args = vec!["--dir".into(), self.dir.clone().into()];
        args.extend(["--generation".into(), self.generation.to_string().into()]);
        args.extend(["--spool-bytes".into(), self.spool_bytes.to_string().into()]);
        args.extend(["--line-bytes".into(), self.line_bytes.to_string().into()]);
        if let Some(cwd) = &self.cwd {
            args.extend(["--cwd".into(), cwd.clone().into()]);
        }
        if let Some(Contained { uid, gid, agent }) = self.contained {
            let users = [("--uid", uid), ("--gid", gid), ("--agent-uid", agent)];
            args.extend(users.into_iter().flat_map(|(name, id)| [name.into(), id.to_string().into()]));
        }
        args.extend(self.spec.to_args());
        args
    }
}

impl ProgramSpec {
    /// The arguments after `exec`.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let Limits { nofile, nproc, core, memory, data, cpu_seconds, file_bytes } = self.limits;
        let limits = [
            ("--nofile", nofile),
            ("--nproc", nproc),
            ("--core", core),
            ("--memory", memory),
            ("--data", data),
            ("--cpu-seconds", cpu_seconds),
            ("--file-bytes", file_bytes),
        ];
        for (name, limit) in limits {
            args.extend(limit.into_iter().flat_map(|limit| [name.into(), limit.to_string().into()]));
        }
        if let Some(parent) = self.parent {
            args.extend(["--parent".into(), parent.to_string().into()]);
        }
        if let Some(failed) = &self.failed {
            args.extend(["--failed".into(), failed.clone().into()]);
        }
        if let Some(sandbox) = &self.sandbox {
            args.extend(["--isolate".into(), "bwrap".into()]);
            args.extend(sandbox.writable.iter().flat_map(|path| ["--bind".into(), path.clone().into()]));
            args.extend(sandbox.readable.iter().flat_map(|path| ["--ro-bind".into(), path.clone().into()]));
            args.extend(sandbox.no_network.then(|| "--no-network".into()));
        }
        if let Some(gate) = &self.gate {
            args.extend(["--gate".into(), gate.socket.clone().into()]);
            args.extend(["--gate-port".into(), gate.port.to_string().into()]);
        }
        args.push("--".into());
        args.push(self.program.clone());
        args.extend(self.args.iter().cloned());
        args
    }
}

impl Subcommand {
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, InvalidArgument> {
        let mut args = args.into_iter();
        let verb = args.next().unwrap_or_default();
        let subcommand = match verb.to_str() {
            Some("run") => Self::Run(launch(&mut args)?),
            Some("serve") => Self::Serve(launch(&mut args)?),
            Some("contain") => {
                let launch = launch(&mut args)?;
                if launch.contained.is_none_or(|users| users.agent == 0 || users.agent == users.uid) {
                    let why = "contain needs --agent-uid, which is neither root nor --uid";
                    return Err(InvalidArgument(why.to_owned()));
                }
                Self::Contain(launch)
            }
            Some("read") => {
                let (Some(file), Some(most)) = (args.next(), args.next()) else {
                    return Err(InvalidArgument("read needs a file and a number of bytes".to_owned()));
                };
                Self::Read(file.into(), number("read", &most)?)
            }
            Some("place") => Self::WriteFiles,
            Some("keep") => home_task(&mut args)?,
            Some("exec") => {
                let mut spec = ProgramSpec::default();
                options(&mut args, |name, value| spec_option(&mut spec, name, value))?;
                Self::Exec(program(spec, &mut args)?)
            }
            Some("gate") => {
                let mut word =
                    |what| args.next().ok_or_else(|| InvalidArgument(format!("gate needs {what}")));
                let socket = path("gate", &word("the path of a socket")?)?;
                let port = number("gate", &word("a port")?)?;
                if word("-- and a program")? != "--" {
                    return Err(InvalidArgument("gate needs -- before the program".to_owned()));
                }
                let ProgramSpec { program, args, .. } = program(ProgramSpec::default(), &mut args)?;
                Self::Gate(Gate { socket, port }, program, args)
            }
            Some("serve-gate") => {
                let mut word =
                    |what| args.next().ok_or_else(|| InvalidArgument(format!("serve-gate needs {what}")));
                let socket = word("the path of a socket")?;
                Self::ServeGate(socket.into(), number("serve-gate", &word("the number of its parent")?)?)
            }
            Some(name @ ("connect" | "mcp")) => {
                let socket = args
                    .next()
                    .ok_or_else(|| InvalidArgument(format!("{name} needs the path of a socket")))?;
                match args.next() {
                    Some(word) if name == "mcp" && word == "--" => {
                        let ProgramSpec { program, args, .. } = program(ProgramSpec::default(), &mut args)?;
                        Self::RelayMcp(socket.into(), program, args)
                    }
                    Some(more) => return Err(too_many(&more)),
                    None => Self::Relay(socket.into()),
                }
            }
            Some("isolation") => Self::Isolation,
            Some("help" | "--help" | "-h") => Self::Help,
            Some("") => return Err(InvalidArgument("a command is missing".to_owned())),
            _ => return Err(InvalidArgument(format!("unknown command {}", verb.display()))),
        };
        match args.next() {
            Some(more) => Err(too_many(&more)),
            None => Ok(subcommand),
        }
    }
}

fn too_many(more: &OsStr) -> InvalidArgument {
    InvalidArgument(format!("{} is one argument too many", more.display()))
}

/// Reads `--name value` up to `--`. `take` returns false for an unknown name.
fn options(
    args: &mut impl Iterator<Item = OsString>,
    mut take: impl FnMut(&str, &OsStr) -> Result<bool, InvalidArgument>,
) -> Result<(), InvalidArgument> {
    loop {
        let name = args.next().ok_or_else(|| InvalidArgument("-- and a program are missing".to_owned()))?;
        if name == "--" {
            return Ok(());
        }
        let unknown =
            || InvalidArgument(format!("unknown option {} (the program comes after --)", name.display()));
        let text = name.to_str().filter(|name| name.starts_with("--")).ok_or_else(unknown)?;
        if text == "--no-network" {
            // The only option without a value.
            if !take(text, OsStr::new(""))? {
                return Err(unknown());
            }
            continue;
        }
        let value = args.next().ok_or_else(|| InvalidArgument(format!("{text} needs a value")))?;
        if !take(text, &value)? {
            return Err(unknown());
        }
    }
}

fn home_task(args: &mut impl Iterator<Item = OsString>) -> Result<Subcommand, InvalidArgument> {
    let mut word = |what| args.next().ok_or_else(|| InvalidArgument(format!("keep needs {what}")));
    let socket = path("keep", &word("the path of a socket")?)?;
    let home = path("keep", &word("the path of a home")?)?;
    let task = word("pack, restore or drop")?;
    let task = match task.to_str() {
        Some("pack") => Task::Pack,
        Some("restore") => Task::Restore {
            command_id: number("restore", &word("a command")?)?,
            reserve: number("restore", &word("a number of bytes")?)?,
        },
        Some("drop") => Task::Drop,
        _ => return Err(InvalidArgument(format!("keep can't {}", task.display()))),
    };
    Ok(Subcommand::HomeTask(socket, home, task))
}

fn launch(args: &mut impl Iterator<Item = OsString>) -> Result<Launch, InvalidArgument> {
    let mut launch = Launch::new("", 0, "");
    let mut generation = None;
    options(args, |name, value| {
        match name {
            "--dir" => launch.dir = path(name, value)?,
            "--generation" => generation = Some(number(name, value)?),
            "--spool-bytes" => launch.spool_bytes = number(name, value)?,
            "--line-bytes" => launch.line_bytes = number(name, value)?,
            "--cwd" => launch.cwd = Some(path(name, value)?),
            "--uid" => launch.contained.get_or_insert_default().uid = number(name, value)?,
            "--gid" => launch.contained.get_or_insert_default().gid = number(name, value)?,
            "--agent-uid" => launch.contained.get_or_insert_default().agent = number(name, value)?,
            _ => return spec_option(&mut launch.spec, name, value),
        }
        Ok(true)
    })?;
    launch.generation = generation.ok_or_else(|| InvalidArgument("--generation is missing".to_owned()))?;
    if launch.dir.as_os_str().is_empty() {
        return Err(InvalidArgument("--dir is missing".to_owned()));
    }
    if launch.line_bytes == 0 || launch.line_bytes > 1 << 30 {
        return Err(InvalidArgument("--line-bytes must be from 1 to 1073741824".to_owned()));
    }
    if launch.spool_bytes < 64 << 10 {
        return Err(InvalidArgument("--spool-bytes must be at least 65536".to_owned()));
    }
    launch.spec = program(launch.spec, args)?;
    Ok(launch)
}

fn spec_option(spec: &mut ProgramSpec, name: &str, value: &OsStr) -> Result<bool, InvalidArgument> {
    let limits = &mut spec.limits;
    match name {
        "--nofile" => limits.nofile = Some(number(name, value)?),
        "--nproc" => limits.nproc = Some(number(name, value)?),
        "--core" => limits.core = Some(number(name, value)?),
        "--memory" => limits.memory = Some(number(name, value)?),
        "--data" => limits.data = Some(number(name, value)?),
        "--cpu-seconds" => limits.cpu_seconds = Some(number(name, value)?),
        "--file-bytes" => limits.file_bytes = Some(number(name, value)?),
        "--parent" => spec.parent = Some(number(name, value)?),
        "--failed" => spec.failed = Some(path(name, value)?),
        "--gate" => gate(spec).socket = path(name, value)?,
        "--gate-port" => gate(spec).port = number(name, value)?,
        "--no-network" => sandbox(spec, name)?.no_network = true,
        "--isolate" if value == "bwrap" => spec.sandbox = Some(Sandbox::default()),
        "--isolate" => {
            return Err(InvalidArgument(format!("--isolate supports only bwrap, got {}", value.display())));
        }
        "--bind" => sandbox(spec, name)?.writable.push(path(name, value)?),
        "--ro-bind" => sandbox(spec, name)?.readable.push(path(name, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn sandbox<'a>(spec: &'a mut ProgramSpec, name: &str) -> Result<&'a mut Sandbox, InvalidArgument> {
    spec.sandbox.as_mut().ok_or_else(|| InvalidArgument(format!("{name} needs --isolate bwrap before it")))
}

fn gate(spec: &mut ProgramSpec) -> &mut Gate {
    spec.gate.get_or_insert_with(|| Gate { socket: PathBuf::new(), port: Gate::PORT })
}

fn program(
    mut spec: ProgramSpec,
    args: &mut impl Iterator<Item = OsString>,
) -> Result<ProgramSpec, InvalidArgument> {
    spec.program =
        args.next().ok_or_else(|| InvalidArgument("the program is missing after --".to_owned()))?;
    spec.args = args.collect();
    Ok(spec)
}

fn number<T: FromStr>(name: &str, value: &OsStr) -> Result<T, InvalidArgument> {
    let read = value.to_str().and_then(|value| value.parse().ok());
    read.ok_or_else(|| InvalidArgument(format!("{name} expects a number, got {}", value.display())))
}

fn path(name: &str, value: &OsStr) -> Result<PathBuf, InvalidArgument> {
    let path = Path::new(value);
    if value.is_empty() || !is_plain(path) {
        return Err(InvalidArgument(format!("{name} needs a path in one line")));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_round_trip() {
        let mut launch = Launch::new("/a b/c", 7, "agent");
        launch.cwd = Some("/home".into());
        launch.spool_bytes = 1 << 20;
        launch.spec.limits = Limits { nofile: Some(1024), core: Some(1), data: Some(9), ..Limits::default() };
        launch.spec.parent = Some(12);
        launch.spec.failed = Some("/a b/c/failed".into());
        launch.spec.args = vec!["--".into(), "--dir".into(), "x y".into()];
        launch.spec.sandbox = Some(Sandbox {
            writable: vec!["/home".into()],
            readable: vec!["/opt/agent".into(), "/x".into()],
            no_network: true,
        });
        launch.spec.gate = Some(Gate { socket: "/a b/c/mcp/gate".into(), port: 81 });
        let args = std::iter::once("run".into()).chain(launch.to_args());
        assert!(matches!(Subcommand::parse(args), Ok(Subcommand::Run(read)) if read == launch));
        launch.contained = Some(Contained { uid: 990, gid: 991, agent: 20_001 });
        let args = std::iter::once("contain".into()).chain(launch.to_args());
        assert!(matches!(Subcommand::parse(args), Ok(Subcommand::Contain(read)) if read == launch));
        for task in [Task::Pack, Task::Restore { command_id: 11, reserve: 1 << 29 }, Task::Drop] {
            let args = std::iter::once("keep".into()).chain(task.to_args("/s", "/h"));
            let read = Subcommand::parse(args.map(OsString::from));
            assert!(matches!(read, Ok(Subcommand::HomeTask(_, _, read)) if read == task), "{task:?}");
        }
    }

    #[test]
    fn an_invalid_argument_is_explained() {
        let cases = [
            ("", "a command is missing"),
            ("fly", "unknown command fly"),
            ("run --dir /a -- x", "--generation is missing"),
            ("run --generation 1 -- x", "--dir is missing"),
            ("run --dir /a --generation 1 x", "unknown option x"),
            ("run --dir /a --generation one -- x", "--generation expects a number, got one"),
            ("run --dir /a --generation 1 --spool-bytes 1 -- x", "--spool-bytes must be at least 65536"),
            ("run --dir /a --generation 1 --", "the program is missing"),
            ("run --dir /a --generation 1", "-- and a program are missing"),
            ("contain --dir /a --generation 1 --uid 9 -- x", "contain needs --agent-uid"),
            ("contain --dir /a --generation 1 --uid 9 --agent-uid 9 -- x", "contain needs --agent-uid"),
            ("exec --bind /a -- x", "--bind needs --isolate bwrap before it"),
            ("exec --isolate jail -- x", "--isolate supports only bwrap, got jail"),
            ("exec --no-network -- x", "--no-network needs --isolate bwrap before it"),
            ("gate /a 81 x", "gate needs -- before the program"),
            ("gate /a b -- x", "gate expects a number, got b"),
            ("serve-gate /a", "serve-gate needs the number of its parent"),
            ("exec --nofile", "--nofile needs a value"),
            ("keep /s /h restore 1", "keep needs a number of bytes"),
            ("keep /s /h eat", "keep can't eat"),
            ("connect", "connect needs the path of a socket"),
            ("mcp a b", "b is one argument too many"),
            ("mcp a --", "the program is missing"),
            ("connect a -- b", "-- is one argument too many"),
        ];
        for (line, says) in cases {
            let error =
                Subcommand::parse(line.split_whitespace().map(OsString::from)).unwrap_err().to_string();
            assert!(error.starts_with(says), "{line}: {error}");
        }
    }
}
