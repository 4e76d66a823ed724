//! What is started: the operator's list of agents' programs, the shim, and the reference agent.
//!
//! A plain process runs with the rights of the host's user, so only what the operator has listed is started; the
//! reference agent needs no list. The list is a TOML file:
//!
//! ```toml
//! ["example/opencode:1"]
//! command = "/opt/opencode/bin/opencode"
//! args = ["acp"]
//! pass = ["HTTPS_PROXY"]              # variables of the host's own environment
//! set = { OPENCODE_DISABLE_LSP = "1" }
//! readable = ["/opt/opencode"]        # in a sandbox: what it may read beside the system
//! ```

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// The reference agent's image. A tag may follow.
const REFERENCE: &str = "muster/agent";

/// Why a program can't be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The list can't be read.
    #[error("The list of programs {path} can't be read: {reason}")]
    List {
        /// The list.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The operator doesn't list the image.
    #[error("This host doesn't know the image {image:?}. Its operator can add it to {list}.")]
    NotListed {
        /// The image.
        image: String,
        /// What to edit.
        list: String,
    },
    /// A program of Muster's own is missing.
    #[error("{name} is not beside {beside}, where this host expects it. Install it there, or set {setting}.")]
    Missing {
        /// The program.
        name: &'static str,
        /// The host's own program.
        beside: PathBuf,
        /// The setting that names another place.
        setting: &'static str,
    },
    /// The host's own program can't be found.
    #[error("This host can't find its own program: {0}.")]
    Own(std::io::Error),
}

/// A program and how to start it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program: a path, or a name on the PATH.
    pub command: PathBuf,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the host's environment that it gets.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Variables that it gets.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// What it may read in a sandbox, beside the system.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
}

/// Where programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    list: Option<PathBuf>,
    shim: Program,
    agent: Result<Program, PathBuf>,
}

impl Programs {
    /// Finds the host's companions: in the program `muster` they are its subcommands, else they are beside the host.
    pub fn find(list: Option<PathBuf>) -> Result<Self, ProgramError> {
        let own = std::env::current_exe().map_err(ProgramError::Own)?;
        let shim = companion(&own, "shim", "muster-shim", "MUSTER_SHIM");
        let shim = shim.map_err(|beside| ProgramError::Missing {
            name: "muster-shim",
            beside,
            setting: "MUSTER_SHIM",
        })?;
        let agent = companion(&own, "agent", "muster-agent", "MUSTER_AGENT");
        let found = Self { list, shim, agent };
        found.listed()?;
        Ok(found)
    }

    /// The program of an image. The list is read again each time, so an edit needs no restart.
    pub fn of_image(&self, image: &str) -> Result<Program, ProgramError> {
        if let Some(program) = self.listed()?.remove(image) {
            return Ok(program);
        }
        if image == REFERENCE
            || image.strip_prefix(REFERENCE).is_some_and(|rest| rest.starts_with([':', '@']))
        {
            return self.agent.clone().map_err(|beside| ProgramError::Missing {
                name: "muster-agent",
                beside,
                setting: "MUSTER_AGENT",
            });
        }
        let list = match &self.list {
            Some(list) => list.display().to_string(),
            None => "a list of programs, and give the list to the host with --programs".to_owned(),
        };
        Err(ProgramError::NotListed { image: super::acp::short(image, 200), list })
    }

    /// The shim.
    pub fn shim(&self) -> &Program {
        &self.shim
    }

    fn listed(&self) -> Result<BTreeMap<String, Program>, ProgramError> {
        let Some(path) = &self.list else { return Ok(BTreeMap::new()) };
        let at = |reason: String| ProgramError::List { path: path.clone(), reason };
        let text = fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        toml::from_str(&text).map_err(|error| at(error.to_string()))
    }
}

/// A companion, or the place where it was looked for.
fn companion(own: &Path, word: &str, name: &str, setting: &str) -> Result<Program, PathBuf> {
    if let Some(path) = std::env::var_os(setting) {
        return Ok(Program { command: path.into(), ..Program::default() });
    }
    if own.file_stem().is_some_and(|stem| stem == "muster") {
        return Ok(Program { command: own.to_owned(), args: vec![word.to_owned()], ..Program::default() });
    }
    let beside = own.with_file_name(name);
    if beside.is_file() { Ok(Program { command: beside, ..Program::default() }) } else { Err(own.to_owned()) }
}

/// A program's path: agents want to know it whole.
pub fn absolute(command: &str) -> PathBuf {
    if command.contains('/') {
        return PathBuf::from(command);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(SYSTEM_PATH));
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(command));
    candidates.find(|candidate| candidate.is_file()).unwrap_or_else(|| command.into())
}

/// The PATH if the host has none.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(list: Option<PathBuf>) -> Programs {
        let agent = Ok(Program { command: "/muster-agent".into(), ..Program::default() });
        Programs { list, shim: Program::default(), agent }
    }

    #[test]
    fn the_reference_agent_needs_no_list_and_others_do() {
        let found = programs(None);
        for image in ["muster/agent", "muster/agent:1", "muster/agent@sha256:0"] {
            assert_eq!(found.of_image(image).unwrap().command, Path::new("/muster-agent"));
        }
        for image in ["muster/agents", "other", ""] {
            let error = found.of_image(image).unwrap_err().to_string();
            assert!(error.contains("--programs"), "{error}");
        }
    }

    #[test]
    fn the_list_is_read_each_time_and_says_what_is_wrong_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("programs.toml");
        let found = programs(Some(list.clone()));
        fs::write(&list, "[\"a/b:1\"]\ncommand = \"/bin/b\"\nargs = [\"acp\"]\n").unwrap();
        let program = found.of_image("a/b:1").unwrap();
        assert_eq!(
            (program.command.as_path(), program.args.as_slice()),
            (Path::new("/bin/b"), &["acp".to_owned()][..])
        );
        let error = found.of_image("a/b:2").unwrap_err();
        assert!(error.to_string().contains(list.to_str().unwrap()), "{error}");
        fs::write(&list, "[\"a/b:1\"]\ncomand = \"/bin/b\"\n").unwrap();
        let error = found.of_image("a/b:1").unwrap_err().to_string();
        assert!(error.contains("comand"), "{error}");
    }
}
