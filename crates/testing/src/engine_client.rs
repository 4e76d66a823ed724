//! The engine's command line, and engines of a test's own.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

/// The image with the reference agent and busybox.
pub const PROBE: &str = "muster-test/probe";

/// A setting from `tests/containers`.
pub fn variable(name: &str) -> String {
    let value = std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run tests/containers"));
    value.into_string().unwrap()
}

/// The tested engine: `docker` or `podman`.
pub fn kind() -> String {
    variable("MUSTER_TEST_ENGINE")
}

/// Runs the engine's client.
pub fn docker(socket: &str, args: &[&str]) -> Output {
    let mut command = Command::new("docker");
    command.args(["--host", &format!("unix://{socket}")]).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs the engine's client, and returns its output.
#[track_caller]
pub fn says(socket: &str, args: &[&str]) -> String {
    let ran = docker(socket, args);
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// The containers of a host, running or not.
pub fn containers(socket: &str, host: &str) -> Vec<String> {
    let label = format!("label=muster.host={host}");
    let found = says(socket, &["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]);
    found.lines().map(str::to_owned).collect()
}

/// The volumes of a host, by name: Podman gives them no labels.
pub fn volumes(socket: &str, host: &str) -> Vec<String> {
    let name = format!("name=muster-{}-", &host[..12]);
    let found = says(socket, &["volume", "ls", "--quiet", "--filter", &name]);
    found.lines().map(str::to_owned).collect()
}

/// Removes all resources of a host.
pub fn clean(socket: &str, host: &str) {
    for name in containers(socket, host) {
        docker(socket, &["rm", "--force", &name]);
    }
    for volume in volumes(socket, host) {
        docker(socket, &["volume", "rm", "--force", &volume]);
    }
}

/// Runs a command in a container as its agent's user.
pub fn as_agent(socket: &str, container: &str, agent_id: i64, words: &[&str]) -> Output {
    let user = format!("{0}:{0}", 20_000 + agent_id % 40_000);
    docker(socket, &[&["exec", "--user", &user, container], words].concat())
}

/// The processes in a container, by the machine's ids.
pub fn processes(socket: &str, container: &str) -> Vec<i32> {
    let id = says(socket, &["inspect", "--format", "{{.Id}}", container]);
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let groups = |process: &i32| std::fs::read_to_string(format!("/proc/{process}/cgroup"));
    all.filter(|process| groups(process).is_ok_and(|text| text.contains(&id))).collect()
}

/// An engine of a test's own, which may be killed.
pub struct Own {
    folder: tempfile::TempDir,
    engine: Option<Child>,
}

impl Own {
    pub fn socket(&self) -> String {
        self.folder.path().join("socket").display().to_string()
    }

    /// With the images of the tests.
    pub fn start() -> Self {
        // Below the tests' folder, which is cleaned up even after a kill of this test.
        let above = variable("MUSTER_TEST_SOCKET");
        let above = Path::new(&above).parent().unwrap();
        let folder = tempfile::Builder::new().prefix("me").tempdir_in(above).unwrap();
        let mut own = Self { folder, engine: None };
        own.rises();
        says(&own.socket(), &["load", "--input", &variable("MUSTER_TEST_IMAGE")]);
        own
    }

    /// Starts the engine, as `tests/containers` does.
    pub fn rises(&mut self) {
        let mut command = Command::new(script());
        command.arg(kind()).arg(self.folder.path()).stdin(Stdio::null());
        self.engine = Some(command.spawn().unwrap());
        for _ in 0..600 {
            if docker(&self.socket(), &["version"]).status.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        panic!("the engine doesn't start: {log}");
    }

    /// Kills the engine.
    pub fn falls(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            let _ = engine.kill();
            let _ = engine.wait();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = Command::new(script()).arg("stop").arg(self.folder.path()).status();
        self.falls();
    }
}

/// The script that starts and ends an engine.
fn script() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|folder| folder.join("tests/engine")).find(|script| script.is_file()).unwrap()
}
