//! A machine on which agents run: `muster host` as a process of its own, in a folder of its own.

use std::{
    env, fs,
    io::Write,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Actor, found};

/// A host, and the folder that it keeps.
pub struct Machine {
    folder: TempDir,
    /// The host, or the shell of [`Self::types`].
    host: Option<Child>,
    /// Variables of the host's environment, besides the path.
    variables: Vec<(String, String)>,
    /// Further options of `muster host run`.
    options: Vec<String>,
}

/// A server with a machine behind it, and an agent of the reference image on it.
pub struct Crew {
    pub machine: Machine,
    pub agent: i64,
}

impl Machine {
    /// A machine that has not joined.
    pub fn new() -> Self {
        Self::below("/tmp")
    }

    /// The same, with its folder below `parent`, whose path must be as short: the path of a socket must fit into 107
    /// bytes.
    pub fn below(parent: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("mh").tempdir_in(parent).unwrap();
        Self { folder, host: None, variables: Vec::new(), options: Vec::new() }
    }

    /// Another variable of the host's environment.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Further options of `muster host run`, from the next start on.
    pub fn options(&mut self, options: &[&str]) {
        self.options = options.iter().map(|option| (*option).to_owned()).collect();
    }

    /// The host's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `muster host …` in this folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command.arg("host").args(arguments).arg("--dir").arg(self.folder()).env_clear();
        command.envs(env::vars_os().filter(|(name, _)| name == "PATH"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Joins with a provisioning token.
    #[track_caller]
    pub fn join(&self, base: &str, token: &str) {
        let mut command = self.command(&["join", "--url", base]);
        let ran = command.env("MUSTER_HOST_TOKEN", token).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Starts the host.
    pub fn run(&mut self) {
        self.run_logging_to(self.appended("log"));
    }

    /// The same, with its log redirected to `log`.
    pub fn run_logging_to(&mut self, log: impl Into<Stdio>) {
        let mut command = self.command(&["run"]);
        command.args(&self.options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.host = Some(command.spawn().unwrap());
    }

    /// Tells the host to stop, and returns its exit code. Its agents live on.
    pub async fn ends(&mut self) -> Option<i32> {
        let mut host = self.host.take().expect("it runs");
        let sent = Command::new("kill").args(["-TERM", &host.id().to_string()]).status().unwrap();
        assert!(sent.success());
        found(async || host.try_wait().unwrap()).await.expect("the host stops").code()
    }

    fn appended(&self, name: &str) -> fs::File {
        fs::File::options().append(true).create(true).open(self.folder().join(name)).unwrap()
    }

    /// Runs a line in a shell, as a person does who has copied it: `muster` is on the path, and this folder is the home
    /// and the working directory. All processes that the line starts end with the machine.
    pub fn types(&mut self, line: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_muster")).parent().unwrap().to_owned();
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([program].into_iter().chain(env::split_paths(&path))).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder()).env_clear();
        shell.env("HOME", self.folder()).env("PATH", path);
        // As `Program` does.
        shell.envs(env::vars_os().filter(|(name, _)| name == "MUSTER_PANEL_DIR"));
        shell.stdin(Stdio::null()).stdout(self.appended("said")).stderr(self.appended("log"));
        self.host = Some(shell.process_group(0).spawn().unwrap());
    }

    /// The output of the line run by [`Self::types`].
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder().join("said")).unwrap_or_default()
    }

    /// Presses Ctrl-C, which reaches all that runs in the foreground.
    pub fn interrupts(&self) {
        let group = format!("-{}", self.host.as_ref().expect("something runs").id());
        let sent = Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
        assert!(sent.success(), "kill -INT -- {group}");
    }

    /// Ends the host without warning. Its agents live on.
    pub fn kill(&mut self) {
        if let Some(mut host) = self.host.take() {
            let _ = host.kill();
            let _ = host.wait();
        }
    }

    /// Ends one process of an agent without warning: its `shim`, or the `agent` itself.
    pub fn kill_one(&self, word: &str) {
        if let Some(process) = self.find_one(word) {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// Writes to an agent's standard error, in the agent's place: its pipe to the shim.
    pub fn write_stderr(&self, text: &str) {
        let agent = self.find_one("agent").expect("an agent runs");
        let stderr = fs::File::options().write(true).open(format!("/proc/{agent}/fd/2"));
        stderr.unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// One process of an agent: its `shim`, or the `agent` itself.
    fn find_one(&self, word: &str) -> Option<i32> {
        let is_it = |process: &i32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0).skip(1);
            // The relays of an agent's gate and of Muster's MCP server belong to the agent.
            words.next() == Some(word.as_bytes()) && !matches!(words.next(), Some(b"serve-gate" | b"mcp"))
        };
        self.processes().into_iter().find(is_it)
    }

    /// The host's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// The processes that live in this machine's folder: shims and agents.
    pub fn processes(&self) -> Vec<i32> {
        let here = self.folder().to_str().unwrap();
        let found = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let process: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let said = |what: &str| fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
            let text = [said("cmdline"), said("environ")].concat();
            let cwd = fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
            let is_here = String::from_utf8_lossy(&text).contains(here) || cwd.starts_with(here);
            (is_here && process as u32 != std::process::id()).then_some(process)
        });
        found.collect()
    }

    /// The places that contain this secret, of which there should be none: files of the host and its agents, and the
    /// environments and arguments of their processes.
    pub fn find(&self, secret: &str) -> Vec<String> {
        let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        let mut found = Vec::new();
        let mut folders = vec![self.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && fs::read(&path).is_ok_and(|bytes| holds(&bytes)) {
                    found.push(path.display().to_string());
                }
            }
        }
        for process in self.processes() {
            for what in ["environ", "cmdline"] {
                let path = format!("/proc/{process}/{what}");
                if fs::read(&path).is_ok_and(|bytes| holds(&bytes)) {
                    found.push(path);
                }
            }
        }
        found
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        for process in self.processes() {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

impl Crew {
    /// A server, its machine with a running host, and a stopped agent.
    pub async fn hired(
        actor: &Actor,
        org: i64,
        name: &str,
        image: Option<i64>,
        variables: &[(&str, &str)],
    ) -> Self {
        let machine = Machine::new();
        let mut machine = variables.iter().fold(machine, |machine, (name, value)| machine.with(name, value));
        let made = actor.post(&format!("/v1/org/{org}/server"), json!({ "name": name })).await;
        let made = made.expect(201);
        machine.join(actor.base(), made["provisioning_token"].as_str().unwrap());
        // In tests, everything that agents connect to is on this machine.
        let reached = "allow_net = [\"127.0.0.0/8\", \"::1/128\"]\n";
        fs::write(machine.folder().join("host.toml"), reached).unwrap();
        machine.run();
        let server = made["id"].clone();
        let agent = json!({ "name": format!("agent of {name}"), "server_id": server, "image_id": image });
        let agent = actor.post(&format!("/v1/org/{org}/agent"), agent).await.expect(201);
        Self { machine, agent: agent["id"].as_i64().unwrap() }
    }

    /// Starts the agent, and waits until it runs.
    pub async fn started(&self, actor: &Actor, org: i64) {
        let start = format!("/v1/org/{org}/agent/{}/start", self.agent);
        actor.post(&start, Value::Null).await;
        self.until(actor, org, "RUNNING").await;
    }

    /// Waits until the agent runs, and starts it again if it has ended.
    pub async fn is_up_again(&self, actor: &Actor, org: i64) {
        let query = "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { status } }";
        let is_up = async || {
            let agent = actor.gql(query, json!({ "o": org, "id": self.agent })).await.data()["agent"].clone();
            if agent["status"] == "ERROR" {
                actor.post(&format!("/v1/org/{org}/agent/{}/start", self.agent), Value::Null).await;
            }
            (agent["status"] == "RUNNING").then_some(())
        };
        assert!(found(is_up).await.is_some(), "the agent doesn't run again\n{}", self.machine.log());
    }

    /// Waits until the agent has this status.
    pub async fn until(&self, actor: &Actor, org: i64, status: &str) {
        let query =
            "query($o: Id!, $id: Id!) { agent(orgId: $o, id: $id) { status statusReason statusDetail } }";
        let mut last = Value::Null;
        let has_it = async || {
            last = actor.gql(query, json!({ "o": org, "id": self.agent })).await.data()["agent"].clone();
            (last["status"] == status).then_some(())
        };
        let has_it = found(has_it).await.is_some();
        assert!(has_it, "the agent is not {status}: {last}\n{}", self.machine.log());
    }
}
