//! Runs other projects' programs from `tests/peers`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

pub fn file(path: &str) -> PathBuf {
    // The root is the folder with the lock file.
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("Cargo.lock").exists()).unwrap().join(path)
}

/// Python with the installed libraries.
pub fn python() -> Command {
    let program = file("target/channels/bin/python3");
    assert!(
        program.exists(),
        "the peers are not installed: python3 -m venv target/channels && target/channels/bin/pip install -r \
         tests/peers/channels/requirements.txt"
    );
    on_this_machine(Command::new(program))
}

/// A Python program from `tests/peers/channels`.
pub fn peer(name: &str) -> Command {
    let mut command = python();
    command.arg(file("tests/peers/channels").join(name));
    command
}

/// A folder of Node.js programs.
pub fn peer_folder(name: &str) -> PathBuf {
    let folder = file("tests/peers");
    assert!(folder.join("node_modules").is_dir(), "the peers are not installed: npm ci --prefix tests/peers");
    folder.join(name)
}

/// A Node.js script in such a folder.
pub fn node(folder: &str, script: &str) -> Command {
    let mut command = without_proxy(Command::new("node"));
    command.current_dir(peer_folder(folder)).arg(script).kill_on_drop(true);
    command
}

/// The servers are local, so a proxy must not be used.
fn without_proxy(mut command: Command) -> Command {
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command
}

/// Without the environment's proxy, and with piped input and output.
pub fn on_this_machine(command: Command) -> Command {
    let mut command = without_proxy(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs a program, and returns its output. It must succeed.
pub async fn output(mut command: Command, input: &str) -> String {
    let run = async {
        let mut process = command.spawn().expect("the program is installed");
        process.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        process.wait_with_output().await.unwrap()
    };
    let output = timeout(Duration::from_mins(1), run).await.expect("it ends in time");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Runs a program, and returns its lines of JSON.
pub async fn json_lines(command: Command, input: &str) -> Vec<Value> {
    output(command, input).await.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
