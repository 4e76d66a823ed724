//! What a shim leaves for the host: who it and its agent are (DIR/shim), and how the agent ended (DIR/exit).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal};

use crate::{
    folder::{EXIT, Pairs, RECORD, write_pairs},
    wire::{Ended, VERSION, or_dash},
};

/// A process that is not mistaken for a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// When it started, in clock ticks since the machine did (field 22 of /proc/PID/stat); 0 where there is no /proc.
    pub start: u64,
}

impl Process {
    /// The process that has this id now.
    pub(crate) fn of(pid: i32) -> Self {
        Self { pid, start: Stat::of(pid).map_or(0, |stat| stat.start) }
    }

    /// Whether it still runs. A process that has ended and only waits to be reaped does not.
    pub fn is_alive(self) -> bool {
        if self.start == 0 {
            return Pid::from_raw(self.pid)
                .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
        }
        Stat::of(self.pid).is_some_and(|stat| stat.start == self.start && !matches!(stat.state, 'Z' | 'X'))
    }
}

/// Who a launch's shim and agent are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The version of [`crate::wire`] that the shim speaks.
    pub version: u16,
    /// The launch.
    pub generation: u64,
    /// The shim, which leads the launch's session.
    pub shim: Process,
    /// The agent, which leads its process group.
    pub agent: Process,
    /// The machine's boot.
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
    pub(crate) fn of(generation: u64, agent: i32) -> Self {
        let shim = Process::of(rustix::process::getpid().as_raw_nonzero().get());
        Self { version: VERSION, generation, shim, agent: Process::of(agent), boot: boot() }
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

    /// Kills the shim, and with it an agent that still runs. Its files stay.
    pub fn end_shim(&self) -> bool {
        self.is_alive() && kill_exactly(self.shim)
    }

    /// Kills what a dead shim left behind, and says how many processes that were: those of the launch's session. The
    /// agent itself died with its shim, but what it had started may live on. Does nothing while the shim lives, and where
    /// there is no /proc. Processes that made a session of their own are not found; with bubblewrap there are none.
    pub fn sweep(&self) -> usize {
        let reused = Stat::of(self.shim.pid).is_some_and(|stat| stat.start != self.shim.start);
        if self.is_alive() || reused || self.boot != boot() {
            return 0;
        }
        let left =
            Stat::all().filter(|stat| stat.session == self.shim.pid && !matches!(stat.state, 'Z' | 'X'));
        left.filter(|stat| kill_exactly(Process { pid: stat.pid, start: stat.start })).count()
    }
}

/// Kills a process, and no later one with the same id.
#[cfg(target_os = "linux")]
fn kill_exactly(process: Process) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(process.pid) else { return false };
    // The descriptor stays that of this process, so looking after opening it is enough.
    pidfd_open(pid, PidfdFlags::empty())
        .is_ok_and(|open| process.is_alive() && pidfd_send_signal(open, Signal::KILL).is_ok())
}

#[cfg(not(target_os = "linux"))]
fn kill_exactly(process: Process) -> bool {
    Pid::from_raw(process.pid)
        .is_some_and(|pid| process.is_alive() && rustix::process::kill_process(pid, Signal::KILL).is_ok())
}

/// How an agent ended, as DIR/exit has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The launch.
    pub generation: u64,
    /// The code, the signal, the time, the reason.
    pub ended: Ended,
    /// How many lines it wrote.
    pub lines: u64,
    /// What else is known, in one line: why its program could not be started, the beginning of a line that is too long.
    pub detail: String,
}

impl Exit {
    /// Reads how the agent of a launch's folder ended.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let pairs = Pairs::read(dir.join(EXIT))?;
        Ok(Self {
            generation: pairs.value("generation")?,
            ended: Ended {
                code: pairs.maybe("code")?,
                signal: pairs.maybe("signal")?,
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

/// What /proc/PID/stat says.
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) start: u64,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let (pid, _) = text.split_once(' ')?;
        // The name, in parentheses, may hold anything.
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

    /// Every process of the machine.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        names.filter_map(|entry| Self::of(entry.file_name().to_str()?.parse().ok()?))
    }
}

/// The machine's boot: a process id means nothing after the next.
fn boot() -> String {
    let read = fs::read_to_string(PathBuf::from("/proc/sys/kernel/random/boot_id"));
    read.map_or_else(|_| "-".to_owned(), |id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = Process::of(i32::try_from(std::process::id()).unwrap());
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
