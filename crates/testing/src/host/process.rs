//! A host as a process, in a folder of its own. Its processes end on drop.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::SystemTime,
};

use muster_shim::record::Record;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::Plane;

/// A joined host.
pub struct Host {
    dir: TempDir,
    child: Option<Child>,
    /// Options of `run`.
    pub options: Vec<String>,
    /// A program with arguments that becomes the host, or empty.
    pub within: Vec<String>,
}

/// The program with the host, the shim and the reference agent. It is an example of `muster-host`, built by
/// `cargo nextest run -p muster-host`, but not by only `--test it`.
pub fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("examples/muster");
    let built = program.metadata().and_then(|file| file.modified()).ok();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let changed = ["agent", "certificates", "egress", "host", "protocol", "shim"]
        .map(|name| newest(&crates.join(name).join("src")));
    let is_current = built.is_some_and(|built| changed.iter().all(|changed| *changed <= built));
    assert!(is_current, "build it first: cargo build -p muster-host --example muster");
    program
}

fn newest(folder: &Path) -> SystemTime {
    let times = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { newest(&path) } else { path.metadata().unwrap().modified().unwrap() }
    });
    times.max().unwrap()
}

impl Host {
    /// A folder without a host.
    pub fn empty() -> Self {
        Self { dir: TempDir::new().unwrap(), child: None, options: Vec::new(), within: Vec::new() }
    }

    /// A joined host, running with these options.
    pub fn start(plane: &Plane, options: &[&str]) -> Self {
        let mut host = Self::empty();
        let grace: &[&str] = if options.contains(&"--grace-ms") { &[] } else { &["--grace-ms", "500"] };
        let isolation: &[&str] =
            if options.contains(&"--isolation") { &[] } else { &["--isolation", "none"] };
        let all = isolation.iter().chain(grace).chain(options);
        host.options = all.map(|option| (*option).to_owned()).collect();
        let url = plane.lock().url.clone();
        let token = plane.token();
        let joined = within(|| host.join(&url, &token));
        assert!(joined.status.success(), "{joined:?}");
        host.run();
        host
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    pub fn join(&self, url: &str, token: &str) -> Output {
        let mut command = Command::new(program());
        command.args(["host", "join", "--url", url, "--dir"]).arg(self.path());
        command.env("MUSTER_HOST_TOKEN", token).output().unwrap()
    }

    pub fn command(&self, word: &str) -> Command {
        let mut command = Command::new(program());
        command.args(["host", word, "--dir"]).arg(self.path());
        command
    }

    /// Starts the process.
    pub fn run(&mut self) {
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let mut command = self.command("run");
        if let Some((outer, args)) = self.within.split_first() {
            let mut whole = Command::new(outer);
            whole.args(args).arg(command.get_program()).args(command.get_args());
            command = whole;
        }
        command.args(&self.options).env("RUST_LOG", "debug,hyper=info").stdin(Stdio::null()).stderr(log);
        command.env("CANARY", "not for agents");
        self.child = Some(command.spawn().unwrap());
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Asks the process to exit.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        let mut child = self.child.take().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        child.wait().unwrap()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub fn launch(&self, agent_id: i64, generation: i64) -> PathBuf {
        self.path().join(format!("agents/{agent_id}/{generation}"))
    }

    /// The processes of a launch.
    pub fn record(&self, agent_id: i64, generation: i64) -> Record {
        Record::read(&self.launch(agent_id, generation)).unwrap()
    }

    pub fn home(&self, agent_id: i64) -> PathBuf {
        self.path().join(format!("agents/{agent_id}/home"))
    }
}

pub fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
        for record in records(&self.path().join("agents")) {
            if record.is_alive() {
                kill(record.shim.pid);
                kill(record.agent.pid);
            }
        }
        if std::thread::panicking() {
            let log = self.log();
            let end: Vec<&str> = log.lines().rev().take(60).collect();
            eprintln!("the end of the host's log:");
            for line in end.iter().rev() {
                eprintln!("{line}");
            }
        }
    }
}

fn records(agents: &Path) -> Vec<Record> {
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    folders(agents)
        .flat_map(|agent| folders(&agent).collect::<Vec<_>>())
        .filter_map(|launch| Record::read(&launch).ok())
        .collect()
}

/// Runs blocking code while the control plane continues.
pub fn within<T>(run: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(run)
}
