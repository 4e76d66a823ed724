//! Starts shims, and ends each of them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use muster_shim::{
    args::Launch,
    client::{Client, ReceivedFrame},
    record::{Exit, Record},
    wire::{FromClient, FromShim, Greeting, Reason},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Time limit of any wait in a test.
pub const PATIENCE: Duration = Duration::from_mins(2);

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_muster-shim"))
}

/// A launch in a folder of its own.
pub struct Shim {
    pub launch: Launch,
    _folder: TempDir,
}

impl Shim {
    /// An agent that is a shell script, not started yet.
    pub fn of(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut launch = Launch::new(folder.path().join("3"), 3, "sh");
        launch.spec.args = vec!["-c".into(), script.into()];
        launch.cwd = Some(folder.path().to_owned());
        Self { launch, _folder: folder }
    }

    pub fn script(script: &str) -> Self {
        Self::of(script).start()
    }

    pub fn start(self) -> Self {
        let output = self.run();
        assert!(output.status.success(), "{output:?}");
        self
    }

    pub fn run(&self) -> Output {
        program().arg("run").args(self.launch.to_args()).output().unwrap()
    }

    pub fn dir(&self) -> &Path {
        &self.launch.dir
    }

    /// The agent's working directory.
    pub fn home(&self) -> PathBuf {
        self.launch.cwd.clone().unwrap()
    }

    pub fn connect(&self) -> Client {
        let client = Client::connect(self.dir(), 64 << 20).unwrap();
        client.patience(PATIENCE).unwrap();
        client
    }

    /// A client after its HELLO.
    pub fn hello(&self, from: u64) -> (Client, Greeting) {
        let mut client = self.connect();
        let greeting = client.hello(from).unwrap();
        (client, greeting)
    }

    /// The same as a program with pipes.
    pub fn relay(&self) -> Child {
        let mut relay = program();
        relay.arg("connect").arg(self.dir().join("socket"));
        relay.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    pub fn record(&self) -> Record {
        Record::read(self.dir()).unwrap()
    }

    /// Kills the shim with SIGKILL, and waits for its end.
    pub fn kill(&self) -> Record {
        let record = self.record();
        kill(record.shim.pid, Signal::KILL);
        until("the shim is dead", || !record.is_alive());
        record
    }

    /// Waits for the recorded exit.
    pub fn exit(&self) -> Exit {
        until("the exit is recorded", || Exit::read(self.dir()).is_ok());
        Exit::read(self.dir()).unwrap()
    }

    /// A number from a file in the agent's home.
    pub fn pid_in(&self, name: &str) -> i32 {
        let path = self.home().join(name);
        let read = || fs::read_to_string(&path).ok()?.trim().parse().ok();
        until("the agent has written a process's id", || read().is_some());
        read().unwrap()
    }

    /// Resident memory of the shim, in KiB.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.record().shim.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let Ok(record) = Record::read(self.dir()) else { return };
        if record.is_alive() {
            kill(record.shim.pid, Signal::KILL);
        }
        let started = Instant::now();
        while (record.is_alive() || record.agent.is_alive()) && started.elapsed() < PATIENCE {
            sleep(Duration::from_millis(2));
        }
        record.sweep();
    }
}

pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Whether a process runs. A zombie does not.
pub fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not after a long time: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// Helpers on a client.
pub trait Talk {
    /// The next frame.
    fn next(&mut self) -> ReceivedFrame;
    /// Reads until a frame matches, and returns the agent's lines before it.
    fn until(&mut self, wanted: impl Fn(&FromShim) -> bool) -> (ReceivedFrame, Vec<(u64, Vec<u8>)>);
    /// This many of the agent's lines, skipping other frames.
    fn lines(&mut self, count: usize) -> Vec<(u64, Vec<u8>)>;
    /// The same as text, without numbers.
    fn texts(&mut self, count: usize) -> Vec<String>;
    /// The lines up to the agent's exit, and its reason.
    fn rest(&mut self) -> (Vec<(u64, Vec<u8>)>, Reason);
    /// Sends a request, and returns its refusal.
    fn refused(&mut self, header: FromClient, payload: &[u8]) -> String;
    /// Reads until the connection closes.
    fn ends(&mut self) -> bool;
}

impl Talk for Client {
    fn next(&mut self) -> ReceivedFrame {
        self.read().unwrap().expect("the connection goes on")
    }

    fn until(&mut self, wanted: impl Fn(&FromShim) -> bool) -> (ReceivedFrame, Vec<(u64, Vec<u8>)>) {
        let mut lines = Vec::new();
        loop {
            match self.next() {
                said if wanted(&said.0) => return (said, lines),
                (FromShim::Out { seq, .. }, bytes) => lines.push((seq, bytes)),
                _ => {}
            }
        }
    }

    fn lines(&mut self, count: usize) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Vec::new();
        while lines.len() < count {
            if let (FromShim::Out { seq, .. }, bytes) = self.next() {
                lines.push((seq, bytes));
            }
        }
        lines
    }

    fn texts(&mut self, count: usize) -> Vec<String> {
        self.lines(count).into_iter().map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
    }

    fn rest(&mut self) -> (Vec<(u64, Vec<u8>)>, Reason) {
        match self.until(|said| matches!(said, FromShim::Exit(_))) {
            ((FromShim::Exit(ended), _), lines) => (lines, ended.reason),
            _ => unreachable!(),
        }
    }

    fn refused(&mut self, header: FromClient, payload: &[u8]) -> String {
        self.say(header, payload).unwrap();
        self.until(|said| matches!(said, FromShim::Refused { .. })).0.0.to_string()
    }

    fn ends(&mut self) -> bool {
        loop {
            match self.read() {
                Ok(None) => return true,
                Ok(Some(_)) => {}
                // Reset: the shim left data unread.
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}
