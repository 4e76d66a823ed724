//! Programs of an integrator, which call the service from outside: shell, Python and TypeScript, in a folder of their
//! own.

use std::{fs, os::unix::fs::symlink, path::Path};

use muster_testing::peers::{self, on_this_machine};
use tempfile::TempDir;
use tokio::process::Command;

use super::peer_folder;

/// A folder of programs.
pub struct Scripts(TempDir);

impl Scripts {
    /// A folder with the packages and the compiler's settings of `tests/peers/clients`.
    pub fn new() -> Self {
        let (folder, clients) = (tempfile::tempdir().unwrap(), peer_folder("clients"));
        symlink(clients.parent().unwrap().join("node_modules"), folder.path().join("node_modules")).unwrap();
        fs::copy(clients.join("tsconfig.json"), folder.path().join("tsconfig.json")).unwrap();
        fs::write(folder.path().join("package.json"), r#"{ "type": "module" }"#).unwrap();
        Self(folder)
    }

    /// One with the examples of a page: those marked as run by this test, named by their first lines.
    pub fn of_page(page: &str, test: &str) -> Self {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
        let scripts = Self::new();
        for example in text.split(&format!("<!-- run by {test} -->\n```")).skip(1) {
            let (_, code) = example.split_once('\n').unwrap();
            let (code, _) = code.split_once("\n```").expect("it ends");
            let name = code.split([' ', ':']).nth(1).expect("its first line names it");
            assert!(!scripts.path().join(name).exists(), "{page} has two examples {name}");
            scripts.add(name, &format!("{code}\n"));
        }
        scripts
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn add(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    /// Changes an example before it runs.
    pub fn replace(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path().join(name)).unwrap();
        assert!(text.contains(from), "{name} does not contain {from:?}");
        self.add(name, &text.replace(from, to));
    }

    /// Compiles the programs in TypeScript, strictly.
    pub async fn compile(&self) {
        self.node("typescript/bin/tsc", &["-p", "."]).await;
    }

    /// Runs a program of an npm package to its end.
    pub async fn node(&self, program: &str, arguments: &[&str]) {
        let mut command = on_this_machine(Command::new("node"));
        command.arg(Path::new("node_modules").join(program)).args(arguments).current_dir(self.path());
        peers::output(command, "").await;
    }

    /// A program of the folder, ready to run. A shell program has `muster.sh`.
    pub fn command(&self, name: &str) -> Command {
        let mut command = match name.rsplit_once('.').expect("its language").1 {
            "sh" => {
                let mut shell = on_this_machine(Command::new("sh"));
                shell.args(["-euc", ". ./muster.sh; . \"./$0\"", name]);
                shell
            }
            "py" => {
                let mut python = peers::python();
                python.arg(name);
                python
            }
            _ => {
                let mut node = on_this_machine(Command::new("node"));
                node.arg(name.replace(".ts", ".js"));
                node
            }
        };
        command.current_dir(self.path());
        command
    }
}
