//! The command line, both ways: the host writes it, the shim reads it.

use std::{
    ffi::{OsStr, OsString},
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{folder::is_plain, isolate::Sandbox, keep::Task};

/// What the program understands.
pub const USAGE: &str = "\
Usage:
  muster-shim run --dir DIR --generation N [OPTIONS] -- PROGRAM [ARGS]
      Starts PROGRAM and a shim that owns its pipes, and returns when DIR/socket answers. PROGRAM gets this
      environment as it is.
        --spool-bytes N   lines that no client has taken yet: the agent waits beyond that (default 64 MiB)
        --line-bytes N    the longest line; a longer one ends the agent (default 4 MiB)
        --cwd DIR         where PROGRAM runs (default: here)
      and those of exec.
  muster-shim exec [OPTIONS] -- PROGRAM [ARGS]
      Sets limits, and becomes PROGRAM.
        --nofile N, --nproc N, --core N, --memory N, --data N, --cpu-seconds N, --file-bytes N
                          limits of the process; --nproc counts all processes of the user, --core is 0 if not given
        --isolate bwrap   in a sandbox of bubblewrap: it sees the system read-only, and what follows
        --bind PATH       with --isolate: a path that it may write; may be repeated
        --ro-bind PATH    with --isolate: a path that it may read; may be repeated
        --no-network      with --isolate: without a network; the gate is the one way out
        --gate SOCKET     a port of 127.0.0.1 leads to this socket; --gate-port N says which (default 3128)
  muster-shim contain --dir DIR --generation N --uid N --gid N --agent-uid N [OPTIONS] -- PROGRAM [ARGS]
      Is the first process of a container, begun as root: becomes the user --uid, who owns DIR, reads the environment
      and the agent's files from the pipe DIR/environment, and runs PROGRAM as --agent-uid in --cwd. The options are
      those of run.
  muster-shim place
      Writes the files that stdin names into the current folder.
  muster-shim read FILE BYTES
      Copies a regular file to stdout, unless it has more bytes.
  muster-shim keep SOCKET HOME pack
  muster-shim keep SOCKET HOME restore COMMAND BYTES
  muster-shim keep SOCKET HOME drop
      Sends an archive of HOME to the socket; makes HOME what it is in one that comes from there, and keeps so many bytes
      of the disk free; or removes the homes from before that.
  muster-shim connect SOCKET
  muster-shim mcp SOCKET
      Copies stdin to the socket and the socket to stdout, until either ends.
  muster-shim mcp SOCKET -- PROGRAM [ARGS]
      The same for an MCP server that is started here: each line of stdin, PROGRAM's stdout and stderr goes to the socket, and
      what comes from there to stdout or PROGRAM, as it says.
  muster-shim gate SOCKET PORT -- PROGRAM [ARGS]
      Makes a port of 127.0.0.1 lead to the socket for as long as PROGRAM lives, and becomes PROGRAM.
  muster-shim isolation
      Says how agents can be isolated on this machine.";

/// The default bound of the spool.
pub const SPOOL_BYTES: u64 = 64 << 20;
/// The default bound of a line.
pub const LINE_BYTES: usize = 4 << 20;

/// A launch of an agent: what `muster-shim run` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The launch's own folder. It is made if it is missing.
    pub dir: PathBuf,
    /// The launch.
    pub generation: u64,
    /// How many bytes of lines may wait for the host before the agent waits.
    pub spool_bytes: u64,
    /// The longest line, both ways.
    pub line_bytes: usize,
    /// Where the agent runs; `None`: where the shim was started.
    pub cwd: Option<PathBuf>,
    /// Who is who, if the shim is the first process of a container.
    pub contained: Option<Contained>,
    /// What is started, and how.
    pub step: Step,
}

/// The users in a container, by number. The agent can't become another, nor reach what is the shim's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contained {
    /// The shim's user, who owns the launch's folder: the host's, as the container sees it.
    pub uid: u32,
    /// The shim's group.
    pub gid: u32,
    /// The agent's user and group.
    pub agent: u32,
}

/// A program with its limits: what `muster-shim exec` is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Limits of the process.
    pub limits: Limits,
    /// The sandbox, if it runs in one.
    pub sandbox: Option<Sandbox>,
    /// Where its requests to the world go.
    pub gate: Option<Gate>,
    /// Die with this process, which must be the parent.
    pub parent: Option<i32>,
    /// A file that gets the reason if the program can't be started.
    pub failed: Option<PathBuf>,
    /// The program: a path, or a name on the PATH.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// The way out of a sandbox: a port of 127.0.0.1 that leads to a socket of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The socket.
    pub socket: PathBuf,
    /// The port.
    pub port: u16,
}

impl Gate {
    /// The port in a sandbox without a network, where every port is free.
    pub const PORT: u16 = 3128;
}

/// Limits of a process. What is `None` stays as it is; what is more than the process may have becomes what it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open files.
    pub nofile: Option<u64>,
    /// Processes and threads of its user, all together.
    pub nproc: Option<u64>,
    /// Bytes of a core dump; `None` is 0: a dump has the agent's secrets in it.
    pub core: Option<u64>,
    /// Bytes of address space. Node, Bun and Go reserve far more than they use.
    pub memory: Option<u64>,
    /// Bytes of memory that it may write and shares with no other process.
    pub data: Option<u64>,
    /// Seconds of processor time of one process.
    pub cpu_seconds: Option<u64>,
    /// Bytes of one file that it writes.
    pub file_bytes: Option<u64>,
}

/// What the program is asked to do.
#[derive(Debug)]
pub(crate) enum Order {
    Run(Launch),
    /// The first process of a container.
    Contain(Launch),
    /// A file, and the most bytes that it may have.
    Read(PathBuf, u64),
    /// Files for the agent's home, from standard input.
    Place,
    /// A home, with a host at the other end of the socket.
    Keep(PathBuf, PathBuf, Task),
    /// What `run` starts: the shim itself.
    Serve(Launch),
    Exec(Step),
    /// What `exec` becomes: a program with a gate.
    Gate(Gate, OsString, Vec<OsString>),
    /// What `gate` starts: its relay, which listens on its standard input and ends with this parent.
    ServeGate(PathBuf, i32),
    Relay(PathBuf),
    /// A relay for an MCP server, and its program.
    RelayMcp(PathBuf, OsString, Vec<OsString>),
    Isolation,
    Help,
}

/// An argument that is invalid.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong(String);

impl std::error::Error for Wrong {}

impl Display for Wrong {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl Launch {
    /// A launch with the default bounds.
    pub fn new(dir: impl Into<PathBuf>, generation: u64, program: impl Into<OsString>) -> Self {
        let step = Step { program: program.into(), ..Step::default() };
        let (spool_bytes, line_bytes) = (SPOOL_BYTES, LINE_BYTES);
        Self { dir: dir.into(), generation, spool_bytes, line_bytes, cwd: None, contained: None, step }
    }

    /// The arguments after `run` or `contain` that say this.
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
        args.extend(self.step.to_args());
        args
    }
}

impl Step {
    /// The arguments after `exec` that say this.
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

impl Order {
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, Wrong> {
        let mut args = args.into_iter();
        let verb = args.next().unwrap_or_default();
        let order = match verb.to_str() {
            Some("run") => Self::Run(launch(&mut args)?),
            Some("serve") => Self::Serve(launch(&mut args)?),
            Some("contain") => {
                let launch = launch(&mut args)?;
                if launch.contained.is_none_or(|users| users.agent == 0 || users.agent == users.uid) {
                    let why = "contain needs --agent-uid, which is neither root nor --uid";
                    return Err(Wrong(why.to_owned()));
                }
                Self::Contain(launch)
            }
            Some("read") => {
                let (Some(file), Some(most)) = (args.next(), args.next()) else {
                    return Err(Wrong("read needs a file and a number of bytes".to_owned()));
                };
                Self::Read(file.into(), number("read", &most)?)
            }
            Some("place") => Self::Place,
            Some("keep") => keep(&mut args)?,
            Some("exec") => {
                let mut step = Step::default();
                options(&mut args, |name, value| step_option(&mut step, name, value))?;
                Self::Exec(program(step, &mut args)?)
            }
            Some("gate") => {
                let mut word = |what| args.next().ok_or_else(|| Wrong(format!("gate needs {what}")));
                let socket = path("gate", &word("the path of a socket")?)?;
                let port = number("gate", &word("a port")?)?;
                if word("-- and a program")? != "--" {
                    return Err(Wrong("gate needs -- before the program".to_owned()));
                }
                let Step { program, args, .. } = program(Step::default(), &mut args)?;
                Self::Gate(Gate { socket, port }, program, args)
            }
            Some("serve-gate") => {
                let mut word = |what| args.next().ok_or_else(|| Wrong(format!("serve-gate needs {what}")));
                let socket = word("the path of a socket")?;
                Self::ServeGate(socket.into(), number("serve-gate", &word("the number of its parent")?)?)
            }
            Some(name @ ("connect" | "mcp")) => {
                let socket =
                    args.next().ok_or_else(|| Wrong(format!("{name} needs the path of a socket")))?;
                match args.next() {
                    Some(word) if name == "mcp" && word == "--" => {
                        let Step { program, args, .. } = program(Step::default(), &mut args)?;
                        Self::RelayMcp(socket.into(), program, args)
                    }
                    Some(more) => return Err(too_many(&more)),
                    None => Self::Relay(socket.into()),
                }
            }
            Some("isolation") => Self::Isolation,
            Some("help" | "--help" | "-h") => Self::Help,
            Some("") => return Err(Wrong("a command is missing".to_owned())),
            _ => return Err(Wrong(format!("there is no command {}", verb.display()))),
        };
        match args.next() {
            Some(more) => Err(too_many(&more)),
            None => Ok(order),
        }
    }
}

fn too_many(more: &OsStr) -> Wrong {
    Wrong(format!("{} is one argument too many", more.display()))
}

/// Reads `--name value` up to `--`. `take` says whether it knows the name.
fn options(
    args: &mut impl Iterator<Item = OsString>,
    mut take: impl FnMut(&str, &OsStr) -> Result<bool, Wrong>,
) -> Result<(), Wrong> {
    loop {
        let name = args.next().ok_or_else(|| Wrong("-- and a program are missing".to_owned()))?;
        if name == "--" {
            return Ok(());
        }
        let unknown = || Wrong(format!("there is no option {} (the program comes after --)", name.display()));
        let text = name.to_str().filter(|name| name.starts_with("--")).ok_or_else(unknown)?;
        if text == "--no-network" {
            // The one without a value.
            if !take(text, OsStr::new(""))? {
                return Err(unknown());
            }
            continue;
        }
        let value = args.next().ok_or_else(|| Wrong(format!("{text} needs a value")))?;
        if !take(text, &value)? {
            return Err(unknown());
        }
    }
}

fn keep(args: &mut impl Iterator<Item = OsString>) -> Result<Order, Wrong> {
    let mut word = |what| args.next().ok_or_else(|| Wrong(format!("keep needs {what}")));
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
        _ => return Err(Wrong(format!("keep can't {}", task.display()))),
    };
    Ok(Order::Keep(socket, home, task))
}

fn launch(args: &mut impl Iterator<Item = OsString>) -> Result<Launch, Wrong> {
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
            _ => return step_option(&mut launch.step, name, value),
        }
        Ok(true)
    })?;
    launch.generation = generation.ok_or_else(|| Wrong("--generation is missing".to_owned()))?;
    if launch.dir.as_os_str().is_empty() {
        return Err(Wrong("--dir is missing".to_owned()));
    }
    if launch.line_bytes == 0 || launch.line_bytes > 1 << 30 {
        return Err(Wrong("--line-bytes must be from 1 to 1073741824".to_owned()));
    }
    if launch.spool_bytes < 64 << 10 {
        return Err(Wrong("--spool-bytes must be at least 65536".to_owned()));
    }
    launch.step = program(launch.step, args)?;
    Ok(launch)
}

fn step_option(step: &mut Step, name: &str, value: &OsStr) -> Result<bool, Wrong> {
    let limits = &mut step.limits;
    match name {
        "--nofile" => limits.nofile = Some(number(name, value)?),
        "--nproc" => limits.nproc = Some(number(name, value)?),
        "--core" => limits.core = Some(number(name, value)?),
        "--memory" => limits.memory = Some(number(name, value)?),
        "--data" => limits.data = Some(number(name, value)?),
        "--cpu-seconds" => limits.cpu_seconds = Some(number(name, value)?),
        "--file-bytes" => limits.file_bytes = Some(number(name, value)?),
        "--parent" => step.parent = Some(number(name, value)?),
        "--failed" => step.failed = Some(path(name, value)?),
        "--gate" => gate(step).socket = path(name, value)?,
        "--gate-port" => gate(step).port = number(name, value)?,
        "--no-network" => sandbox(step, name)?.no_network = true,
        "--isolate" if value == "bwrap" => step.sandbox = Some(Sandbox::default()),
        "--isolate" => return Err(Wrong(format!("--isolate knows bwrap, and not {}", value.display()))),
        "--bind" => sandbox(step, name)?.writable.push(path(name, value)?),
        "--ro-bind" => sandbox(step, name)?.readable.push(path(name, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn sandbox<'a>(step: &'a mut Step, name: &str) -> Result<&'a mut Sandbox, Wrong> {
    step.sandbox.as_mut().ok_or_else(|| Wrong(format!("{name} needs --isolate bwrap before it")))
}

fn gate(step: &mut Step) -> &mut Gate {
    step.gate.get_or_insert_with(|| Gate { socket: PathBuf::new(), port: Gate::PORT })
}

fn program(mut step: Step, args: &mut impl Iterator<Item = OsString>) -> Result<Step, Wrong> {
    step.program = args.next().ok_or_else(|| Wrong("the program is missing after --".to_owned()))?;
    step.args = args.collect();
    Ok(step)
}

fn number<T: FromStr>(name: &str, value: &OsStr) -> Result<T, Wrong> {
    let read = value.to_str().and_then(|value| value.parse().ok());
    read.ok_or_else(|| Wrong(format!("{name} needs a number, and {} is none", value.display())))
}

fn path(name: &str, value: &OsStr) -> Result<PathBuf, Wrong> {
    let path = Path::new(value);
    if value.is_empty() || !is_plain(path) {
        return Err(Wrong(format!("{name} needs a path in one line")));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_writes_is_what_the_shim_reads() {
        let mut launch = Launch::new("/a b/c", 7, "agent");
        launch.cwd = Some("/home".into());
        launch.spool_bytes = 1 << 20;
        launch.step.limits = Limits { nofile: Some(1024), core: Some(1), data: Some(9), ..Limits::default() };
        launch.step.parent = Some(12);
        launch.step.failed = Some("/a b/c/failed".into());
        launch.step.args = vec!["--".into(), "--dir".into(), "x y".into()];
        launch.step.sandbox = Some(Sandbox {
            writable: vec!["/home".into()],
            readable: vec!["/opt/agent".into(), "/x".into()],
            no_network: true,
        });
        launch.step.gate = Some(Gate { socket: "/a b/c/mcp/gate".into(), port: 81 });
        let args = std::iter::once("run".into()).chain(launch.to_args());
        assert!(matches!(Order::parse(args), Ok(Order::Run(read)) if read == launch));
        launch.contained = Some(Contained { uid: 990, gid: 991, agent: 20_001 });
        let args = std::iter::once("contain".into()).chain(launch.to_args());
        assert!(matches!(Order::parse(args), Ok(Order::Contain(read)) if read == launch));
        for task in [Task::Pack, Task::Restore { command_id: 11, reserve: 1 << 29 }, Task::Drop] {
            let args = std::iter::once("keep".into()).chain(task.to_args("/s", "/h"));
            let read = Order::parse(args.map(OsString::from));
            assert!(matches!(read, Ok(Order::Keep(_, _, read)) if read == task), "{task:?}");
        }
    }

    #[test]
    fn a_wrong_argument_says_what_is_wrong() {
        let cases = [
            ("", "a command is missing"),
            ("fly", "there is no command fly"),
            ("run --dir /a -- x", "--generation is missing"),
            ("run --generation 1 -- x", "--dir is missing"),
            ("run --dir /a --generation 1 x", "there is no option x"),
            ("run --dir /a --generation one -- x", "--generation needs a number, and one is none"),
            ("run --dir /a --generation 1 --spool-bytes 1 -- x", "--spool-bytes must be at least 65536"),
            ("run --dir /a --generation 1 --", "the program is missing"),
            ("run --dir /a --generation 1", "-- and a program are missing"),
            ("contain --dir /a --generation 1 --uid 9 -- x", "contain needs --agent-uid"),
            ("contain --dir /a --generation 1 --uid 9 --agent-uid 9 -- x", "contain needs --agent-uid"),
            ("exec --bind /a -- x", "--bind needs --isolate bwrap before it"),
            ("exec --isolate jail -- x", "--isolate knows bwrap, and not jail"),
            ("exec --no-network -- x", "--no-network needs --isolate bwrap before it"),
            ("gate /a 81 x", "gate needs -- before the program"),
            ("gate /a b -- x", "gate needs a number, and b is none"),
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
            let error = Order::parse(line.split_whitespace().map(OsString::from)).unwrap_err().to_string();
            assert!(error.starts_with(says), "{line}: {error}");
        }
    }
}
