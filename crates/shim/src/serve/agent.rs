//! The agent: its process, its pipes, and its queue of input lines.

use std::{
    collections::VecDeque,
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group},
};

use crate::{
    about,
    args::{Contained, Launch},
    contain::Environment,
    detach::executable,
    folder::FAILED,
    record::Stat,
    wire::Refusal,
};

pub(super) struct Agent {
    pub(super) pid: Pid,
    /// Readable once the agent has exited. Linux only; elsewhere a timer replaces it.
    pub(super) gone: Option<OwnedFd>,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    pub(super) status: Option<ExitStatus>,
    input: Input,
}

/// Lines for the agent's stdin.
#[derive(Default)]
struct Input {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Written bytes of the first line.
    written: usize,
    taken: u64,
    /// No line follows the queued ones.
    closing: bool,
}

impl Agent {
    /// Starts the agent through `exec`, which sets its limits. In a container it runs as another user, with this
    /// environment in addition to the image's.
    pub(super) fn start(
        prefix: &[&str],
        launch: &Launch,
        dir: &Path,
        environment: Option<Environment>,
    ) -> io::Result<Self> {
        let mut spec = launch.spec.clone();
        spec.parent = Some(getpid().as_raw_nonzero().get());
        let mut command = match launch.contained {
            // By its mounted path: another user can't resolve it through /proc.
            Some(Contained { agent, .. }) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.uid(agent).gid(agent).envs(environment.unwrap_or_default());
                command
            }
            None => {
                spec.failed = Some(dir.join(FAILED));
                Command::new(executable()?)
            }
        };
        command.arg0("muster-shim").args(prefix).arg("exec").args(spec.to_args());
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Set at the start, so that no signal for the group comes too early.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| about("the agent can't be started", error))?;
        let pid = Pid::from_child(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { pid, gone: gone(pid), stdin, stdout, stderr, status: None, input: Input::default() })
    }

    /// The last line in the agent's pipe.
    pub(super) fn taken(&self) -> u64 {
        self.input.taken
    }

    /// Whether a line, or the end of input, is pending.
    pub(super) fn has_input(&self) -> bool {
        self.stdin.is_some() && (!self.input.waiting.is_empty() || self.input.closing)
    }

    /// Queues a line. `Ok(true)`: the agent already has it.
    pub(super) fn accept(&mut self, seq: u64, mut line: Vec<u8>) -> Result<bool, (Refusal, String)> {
        let input = &mut self.input;
        let next = input.taken + input.waiting.len() as u64 + 1;
        if seq < next {
            return Ok(seq <= input.taken);
        }
        if self.stdin.is_none() || input.closing {
            return Err((Refusal::Closed, "the agent no longer reads lines".to_owned()));
        }
        if seq > next {
            return Err((Refusal::Gap, format!("the next line is {next}, and this is {seq}")));
        }
        if line.contains(&b'\n') {
            return Err((Refusal::Line, format!("line {seq} has a newline in it")));
        }
        // Limits for an agent that doesn't read: queued bytes beyond the first line, and queued lines.
        let is_much = input.bytes + line.len() > 1 << 20 && !input.waiting.is_empty();
        if is_much || input.waiting.len() >= 64 {
            let waiting = input.waiting.len();
            return Err((Refusal::Busy, format!("the agent doesn't read: {waiting} lines wait for it")));
        }
        line.push(b'\n');
        input.bytes += line.len();
        input.waiting.push_back(line);
        Ok(false)
    }

    /// Accepts no more lines.
    pub(super) fn close(&mut self) {
        self.input.closing = true;
    }

    /// Writes as much as the pipe takes. Returns whether lines were lost because the agent closed its stdin.
    pub(super) fn write(&mut self) -> bool {
        let input = &mut self.input;
        let Some(stdin) = &mut self.stdin else { return false };
        while let Some(line) = input.waiting.front() {
            match stdin.write(&line[input.written..]) {
                Ok(count) => input.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.close_stdin(),
            }
            if input.written == line.len() {
                input.bytes -= line.len();
                input.waiting.pop_front();
                input.written = 0;
                input.taken += 1;
            }
        }
        if input.closing {
            self.stdin = None;
        }
        false
    }

    /// Closes stdin and drops queued lines. Returns whether there were any.
    pub(super) fn close_stdin(&mut self) -> bool {
        self.stdin = None;
        let lost = !self.input.waiting.is_empty();
        self.input.waiting = VecDeque::new();
        (self.input.bytes, self.input.written) = (0, 0);
        lost
    }

    /// Sends a signal, but not after the exit: the id may be another process's by then.
    pub(super) fn signal(&self, number: i32) -> Result<(), (Refusal, String)> {
        if self.status.is_some() {
            return Err((Refusal::Closed, "the agent has ended".to_owned()));
        }
        let signal = Signal::from_named_raw(number);
        let signal = signal.ok_or_else(|| (Refusal::Signal, format!("unknown signal {number}")))?;
        self.send(signal).map_err(|error| (Refusal::Signal, error.to_string()))
    }

    /// Kills the agent and its process group.
    pub(super) fn kill(&self) {
        if self.status.is_none() {
            let _ = self.send(Signal::KILL);
        }
    }

    /// Signals the process group, and the agent itself if it may have left the group. It isn't reaped yet, so its id is
    /// still its own.
    fn send(&self, signal: Signal) -> Result<(), Errno> {
        let group = kill_process_group(self.pid, signal);
        if group.is_err() || signal == Signal::KILL { kill_process(self.pid, signal) } else { group }
    }

    /// Reaps exited processes: the agent, and orphans. Returns whether any child is left.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => {
                    self.status = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// After the agent's exit: kills its remaining processes, in any session or group. Their parents have ended,
    /// so they are the shim's children, one generation after the other. Returns whether any are left.
    pub(super) fn kill_descendants(&mut self) -> bool {
        if !self.reap() {
            return false;
        }
        let own = getpid().as_raw_nonzero().get();
        for left in Stat::all().filter(|stat| stat.parent == own) {
            if let Some(pid) = Pid::from_raw(left.pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        self.reap()
    }

    /// Reads available output. `None`: nothing yet. Empty: end of output.
    pub(super) fn read<'a>(from: &mut impl Read, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        match from.read(buffer) {
            Ok(count) => Some(&buffer[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                None
            }
            Err(_) => Some(&[]),
        }
    }
}

#[cfg(target_os = "linux")]
fn gone(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn gone(_: Pid) -> Option<OwnedFd> {
    None
}

/// The kernel's count of out-of-memory kills, in this container or since boot.
pub(super) fn killed_for_memory(is_contained: bool) -> Option<u64> {
    /// Version 2 and version 1 of control groups, as seen inside a container.
    const GROUPS: [&str; 2] = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
    let count = |path: &&str| {
        let counters = fs::read_to_string(path).ok()?;
        counters.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    };
    let own = GROUPS.iter().filter(|_| is_contained).find_map(count);
    own.or_else(|| count(&"/proc/vmstat"))
}
