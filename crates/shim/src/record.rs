//! A shim's files for the host: its processes (DIR/shim), and the agent's exit (DIR/exit).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal};

use crate::{
    folder::{EXIT, Pairs, RECORD, write_pairs},
    wire::{Ended, VERSION, or_dash},
};

/// A process, distinct from later ones with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat); 0 without /proc.
    pub start: u64,
}

impl Process {
    /// The current process with this id.
    pub(crate) fn from_pid(pid: i32) -> Self {
        Self { pid, start: Stat::read(pid).map_or(0, |stat| stat.start) }
    }

    /// Whether it still runs. A zombie does not.
    pub fn is_alive(self) -> bool {
        if self.start == 0 {
            return Pid::from_raw(self.pid)
                .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
        }
        Stat::read(self.pid).is_some_and(|stat| stat.start == self.start && !matches!(stat.state, 'Z' | 'X'))
    }
}

/// The processes of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The shim's version of [`crate::wire`].
    pub version: u16,
    /// Number of the launch.
    pub generation: u64,
    /// The shim, leader of the launch's session.
    pub shim: Process,
    /// The agent, leader of its process group.
    pub agent: Process,
    /// The machine's boot id.
    pub boot: String,
}

impl Record {
    /// Reads the record of a launch's folder.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let pairs = Pairs::read(dir.join(RECORD))?;
        let process = |pid: &str, start: &str| {
            Ok::<_, io::Error>(Process { pid: pairs.value(pid)?, start: pairs.value(start)? })
        };
        Ok(Self {
            version: pairs.value("version")?,
            generation: pairs.value("generation")?,
            shim: process("shim_pid", "shim_start")?,
            agent: process("agent_pid", "agent_start")?,
            boot: pairs.text("boot")?.to_owned(),
        })
    }

    /// The record of this process and its agent.
    pub(crate) fn current(generation: u64, agent: i32) -> Self {
        let shim = Process::from_pid(rustix::process::getpid().as_raw_nonzero().get());
        Self { version: VERSION, generation, shim, agent: Process::from_pid(agent), boot: boot() }
    }

    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let pairs = [
            ("version", self.version.to_string()),
            ("generation", self.generation.to_string()),
            ("shim_pid", self.shim.pid.to_string()),
            ("shim_start", self.shim.start.to_string()),
            ("agent_pid", self.agent.pid.to_string()),
            ("agent_start", self.agent.start.to_string()),
            ("boot", self.boot.clone()),
        ];
        write_pairs(&dir.join(RECORD), &pairs)
    }

    /// Whether the shim lives.
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && self.shim.is_alive()
    }

    /// Kills the shim, and with it a running agent. The files stay.
    pub fn end_shim(&self) -> bool {
        self.is_alive() && kill_exactly(self.shim)
    }

    /// Kills the processes of a dead shim's session, and returns their number. The agent died with its shim, but its
    /// children may live on. Does nothing while the shim lives, or without /proc. Processes in sessions of their own
    /// are not found; with bubblewrap there are none.
    pub fn sweep(&self) -> usize {
        let reused = Stat::read(self.shim.pid).is_some_and(|stat| stat.start != self.shim.start);
        if self.is_alive() || reused || self.boot != boot() {
            return 0;
        }
        let left =
            Stat::all().filter(|stat| stat.session == self.shim.pid && !matches!(stat.state, 'Z' | 'X'));
        left.filter(|stat| kill_exactly(Process { pid: stat.pid, start: stat.start })).count()
    }
}

/// Kills a process, but no later one with the same id.
#[cfg(target_os = "linux")]
fn kill_exactly(process: Process) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(process.pid) else { return false };
    // The descriptor stays bound to this process, so a check after opening it is enough.
    pidfd_open(pid, PidfdFlags::empty())
        .is_ok_and(|open| process.is_alive() && pidfd_send_signal(open, Signal::KILL).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn kill_exactly(process: Process) -> bool {
    Pid::from_raw(process.pid)
        .is_some_and(|pid| process.is_alive() && rustix::process::kill_process(pid, Signal::KILL).is_ok())
}

/// An agent's exit, as in DIR/exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Number of the launch.
    pub generation: u64,
    /// Code, signal, time and reason.
    pub ended: Ended,
    /// Number of the agent's lines.
    pub lines: u64,
    /// Details in one line: why the program could not start, or the beginning of an overlong line.
    pub detail: String,
}

impl Exit {
    /// Reads the exit from a launch's folder.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let pairs = Pairs::read(dir.join(EXIT))?;
        Ok(Self {
            generation: pairs.value("generation")?,
            ended: Ended {
                code: pairs.optional("code")?,
                signal: pairs.optional("signal")?,
                at: pairs.value("at")?,
                reason: pairs.value("reason")?,
            },
            lines: pairs.value("lines")?,
            detail: pairs.text("detail")?.to_owned(),
        })
    }

    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let pairs = [
            ("generation", self.generation.to_string()),
            ("code", or_dash(self.ended.code)),
            ("signal", or_dash(self.ended.signal)),
            ("at", self.ended.at.to_string()),
            ("reason", self.ended.reason.word().to_owned()),
            ("lines", self.lines.to_string()),
            ("detail", self.detail.clone()),
        ];
        write_pairs(&dir.join(EXIT), &pairs)
    }
}

/// Fields of /proc/PID/stat.
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) start: u64,
}

impl Stat {
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let (pid, _) = text.split_once(' ')?;
        // The name, in parentheses, may contain any byte.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            pid: pid.parse().ok()?,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// All processes of the machine.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        names.filter_map(|entry| Self::read(entry.file_name().to_str()?.parse().ok()?))
    }
}

/// The boot id: process ids mean nothing after the next boot.
fn boot() -> String {
    let read = fs::read_to_string(PathBuf::from("/proc/sys/kernel/random/boot_id"));
    read.map_or_else(|_| "-".to_owned(), |id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = Process::from_pid(i32::try_from(std::process::id()).unwrap());
        assert!(own.start > 0 && own.is_alive());
        assert!(!Process { start: own.start + 1, ..own }.is_alive());
    }

    #[test]
    fn a_name_may_hold_anything() {
        let text = b"7 (a) R 1 (b) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.pid, stat.state, stat.parent, stat.session, stat.start), (7, 'S', 3, 5, 99));
    }
}
