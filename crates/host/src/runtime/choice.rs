//! The host's runtime: chosen by its owner, or saved in its folder. Agents' homes belong to a runtime, so a folder
//! with homes keeps its own.

use std::path::PathBuf;

use muster_protocol::frame;
use serde::{Deserialize, Serialize};

use super::{Bounds, Engine, EngineVariables, Kind, RemoteEngine, Runtime, Settings};
use crate::{
    folder::Folder,
    programs::{ProgramError, static_shim},
};

/// The owner's choice.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// `None`: the folder's.
    pub runtime: Option<frame::Runtime>,
    /// `None`: the folder's, or at first that of the variables.
    pub engine: Option<PathBuf>,
    pub variables: EngineVariables,
}

/// The runtime saved in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRuntime {
    pub runtime: frame::Runtime,
    /// The engine's socket, if not the usual one.
    pub engine: Option<PathBuf>,
}

/// Why the owner's choice can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The folder's agents belong to another runtime.
    #[error(
        "The agents of {path} ran {saved}, and their homes are there: {wanted} they would begin with empty ones. Leave \
         out `--runtime` and MUSTER_HOST_RUNTIME: the folder knows it. To run agents {wanted}, join as another server, \
         with another folder.",
        saved = home_location(*.saved),
        wanted = home_location(*.wanted)
    )]
    OtherRuntime { path: PathBuf, saved: frame::Runtime, wanted: frame::Runtime },
    #[error(transparent)]
    RemoteEngine(#[from] RemoteEngine),
}

impl Choice {
    /// Completes the choice from the saved runtime. Once a folder has run, the variables count no longer: its agents'
    /// homes are in its engine.
    pub fn or_saved(&self, saved: Option<&SavedRuntime>) -> Result<SavedRuntime, RemoteEngine> {
        let is_other = |saved: &&SavedRuntime| self.runtime.is_some_and(|wanted| wanted != saved.runtime);
        let saved = saved.filter(|saved| !is_other(saved));
        let runtime = self.runtime.or(saved.map(|saved| saved.runtime)).unwrap_or(frame::Runtime::Process);
        let engine = match (&self.engine, saved) {
            _ if runtime == frame::Runtime::Process => None,
            (Some(engine), _) => Some(engine.clone()),
            (None, Some(saved)) => saved.engine.clone(),
            (None, None) => self.variables.socket(runtime)?,
        };
        Ok(SavedRuntime { runtime, engine })
    }

    /// Completes the choice, unless agents have their homes elsewhere.
    pub fn in_folder(
        &self,
        folder: &Folder,
        saved: Option<&SavedRuntime>,
    ) -> Result<SavedRuntime, ChoiceError> {
        let meant = self.or_saved(saved)?;
        match saved {
            Some(saved) if saved.runtime != meant.runtime && folder.has_homes(saved.runtime) => {
                Err(ChoiceError::OtherRuntime {
                    path: folder.root().to_owned(),
                    saved: saved.runtime,
                    wanted: meant.runtime,
                })
            }
            _ => Ok(meant),
        }
    }
}

impl SavedRuntime {
    /// The engine, if any.
    pub fn kind(&self) -> Option<Kind> {
        match self.runtime {
            frame::Runtime::Process => None,
            frame::Runtime::Docker => Some(Kind::Docker),
            frame::Runtime::Podman => Some(Kind::Podman),
        }
    }

    /// The runtime for the host with this id.
    pub fn build(&self, host: &str, bounds: Bounds) -> Result<Runtime, ProgramError> {
        let Some(kind) = self.kind() else { return Ok(Runtime::Process) };
        Ok(Runtime::Engine(Box::new(Engine::new(Settings {
            kind,
            socket: self.engine.clone().unwrap_or_else(|| kind.usual_socket()),
            host: host.to_owned(),
            shim: static_shim()?,
            bounds,
        }))))
    }
}

/// The location of agents and their homes.
fn home_location(runtime: frame::Runtime) -> &'static str {
    match runtime {
        frame::Runtime::Process => "as plain processes",
        frame::Runtime::Docker => "in containers of Docker Engine",
        frame::Runtime::Podman => "in containers of Podman",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docker(engine: &str) -> SavedRuntime {
        SavedRuntime { runtime: frame::Runtime::Docker, engine: Some(engine.into()) }
    }

    fn choice(runtime: Option<frame::Runtime>, engine: Option<&str>) -> Choice {
        Choice { runtime, engine: engine.map(PathBuf::from), variables: EngineVariables::default() }
    }

    #[test]
    fn missing_options_come_from_the_folder() {
        let saved = docker("/a");
        let of = |choice: Choice, saved| choice.or_saved(saved).unwrap();
        assert_eq!(of(choice(None, None), Some(&saved)), saved);
        assert_eq!(of(choice(Some(frame::Runtime::Docker), None), Some(&saved)), saved);
        assert_eq!(of(choice(None, Some("/b")), Some(&saved)), docker("/b"));
        let process = SavedRuntime { runtime: frame::Runtime::Process, engine: None };
        assert_eq!(of(choice(None, Some("/b")), None), process);
        let podman = of(choice(Some(frame::Runtime::Podman), None), Some(&saved));
        assert_eq!(
            podman,
            SavedRuntime { runtime: frame::Runtime::Podman, engine: None },
            "a socket of another engine"
        );
    }

    #[test]
    fn a_folder_that_has_not_run_follows_the_variables() {
        let with = |engine: Option<&str>, variable: &str| Choice {
            variables: EngineVariables { docker: Some(variable.to_owned()), podman: None },
            ..choice(Some(frame::Runtime::Docker), engine)
        };
        assert_eq!(with(None, "unix:///v").or_saved(None).unwrap(), docker("/v"));
        assert_eq!(with(Some("/b"), "unix:///v").or_saved(None).unwrap(), docker("/b"));
        assert_eq!(with(None, "unix:///v").or_saved(Some(&docker("/a"))).unwrap(), docker("/a"));
        assert!(with(None, "tcp://192.0.2.7:2376").or_saved(None).is_err());
        assert_eq!(with(Some("/b"), "tcp://192.0.2.7:2376").or_saved(None).unwrap(), docker("/b"));
    }

    #[test]
    fn only_a_folder_without_homes_may_change_its_runtime() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("h")).unwrap();
        let (saved, process) = (docker("/a"), choice(Some(frame::Runtime::Process), None));
        assert!(process.in_folder(&folder, Some(&saved)).is_ok());
        std::fs::create_dir_all(folder.home(7)).unwrap();
        assert!(process.in_folder(&folder, Some(&saved)).is_ok(), "that is the home of a process");
        std::fs::create_dir_all(folder.host_files(7)).unwrap();
        let refused = process.in_folder(&folder, Some(&saved)).unwrap_err().to_string();
        assert!(refused.contains("ran in containers of Docker Engine"), "{refused}");
        assert_eq!(choice(None, None).in_folder(&folder, Some(&saved)).unwrap(), saved);
    }
}
