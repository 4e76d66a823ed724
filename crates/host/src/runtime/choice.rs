//! Which runtime a host has: the one that its operator names, or the one that its folder keeps. Agents' homes are in their
//! runtime, so a folder that has homes keeps its runtime, too.

use std::path::PathBuf;

use muster_protocol::frame;
use serde::{Deserialize, Serialize};

use super::{Bounds, Engine, Kind, Runtime, Settings};
use crate::{
    folder::Folder,
    programs::{ProgramError, static_shim},
};

/// What the operator has chosen.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// How agents run; without it, as the folder has it.
    pub runtime: Option<frame::Runtime>,
    /// The engine's socket; without it, the folder's.
    pub engine: Option<PathBuf>,
}

/// What a folder keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// How agents run.
    pub runtime: frame::Runtime,
    /// The engine's socket, unless it is the usual one.
    pub engine: Option<PathBuf>,
}

/// The folder's agents belong to another runtime.
#[derive(Debug, thiserror::Error)]
#[error(
    "The agents of {path} ran {kept}, and their homes are there: {wanted} they would begin with empty ones. Leave out \
     `--runtime` and MUSTER_HOST_RUNTIME: the folder knows it. To run agents {wanted}, join as another server, with another \
     folder.",
    kept = place(*.kept),
    wanted = place(*.wanted)
)]
pub struct OtherRuntime {
    path: PathBuf,
    kept: frame::Runtime,
    wanted: frame::Runtime,
}

impl Choice {
    /// What is meant in a folder that keeps this.
    pub fn or(&self, kept: Option<&Kept>) -> Kept {
        let is_other = |kept: &&Kept| self.runtime.is_some_and(|wanted| wanted != kept.runtime);
        let kept = kept.filter(|kept| !is_other(kept));
        let runtime = self.runtime.or(kept.map(|kept| kept.runtime)).unwrap_or(frame::Runtime::Process);
        let engine = self.engine.clone().or_else(|| kept.and_then(|kept| kept.engine.clone()));
        Kept { runtime, engine: engine.filter(|_| runtime != frame::Runtime::Process) }
    }

    /// The same, unless agents have their homes elsewhere.
    pub fn in_folder(&self, folder: &Folder, kept: Option<&Kept>) -> Result<Kept, OtherRuntime> {
        let meant = self.or(kept);
        match kept {
            Some(kept) if kept.runtime != meant.runtime && folder.has_homes(kept.runtime) => {
                Err(OtherRuntime {
                    path: folder.root().to_owned(),
                    kept: kept.runtime,
                    wanted: meant.runtime,
                })
            }
            _ => Ok(meant),
        }
    }
}

impl Kept {
    /// The engine, if it is one.
    pub fn kind(&self) -> Option<Kind> {
        match self.runtime {
            frame::Runtime::Process => None,
            frame::Runtime::Docker => Some(Kind::Docker),
            frame::Runtime::Podman => Some(Kind::Podman),
        }
    }

    /// The runtime of the host with this id.
    pub fn made(&self, host: &str, bounds: Bounds) -> Result<Runtime, ProgramError> {
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

/// Where agents and their homes are.
fn place(runtime: frame::Runtime) -> &'static str {
    match runtime {
        frame::Runtime::Process => "as plain processes",
        frame::Runtime::Docker => "in containers of Docker Engine",
        frame::Runtime::Podman => "in containers of Podman",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docker(engine: &str) -> Kept {
        Kept { runtime: frame::Runtime::Docker, engine: Some(engine.into()) }
    }

    fn choice(runtime: Option<frame::Runtime>, engine: Option<&str>) -> Choice {
        Choice { runtime, engine: engine.map(PathBuf::from) }
    }

    #[test]
    fn what_is_not_given_is_as_the_folder_has_it() {
        let kept = docker("/a");
        assert_eq!(choice(None, None).or(Some(&kept)), kept);
        assert_eq!(choice(Some(frame::Runtime::Docker), None).or(Some(&kept)), kept);
        assert_eq!(choice(None, Some("/b")).or(Some(&kept)), docker("/b"));
        let process = Kept { runtime: frame::Runtime::Process, engine: None };
        assert_eq!(choice(None, Some("/b")).or(None), process);
        let podman = choice(Some(frame::Runtime::Podman), None).or(Some(&kept));
        assert_eq!(
            podman,
            Kept { runtime: frame::Runtime::Podman, engine: None },
            "a socket of another engine"
        );
    }

    #[test]
    fn a_folder_with_homes_keeps_its_runtime_and_one_without_may_change() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(&dir.path().join("h")).unwrap();
        let (kept, process) = (docker("/a"), choice(Some(frame::Runtime::Process), None));
        assert!(process.in_folder(&folder, Some(&kept)).is_ok());
        std::fs::create_dir_all(folder.home(7)).unwrap();
        assert!(process.in_folder(&folder, Some(&kept)).is_ok(), "that is the home of a process");
        std::fs::create_dir_all(folder.given(7)).unwrap();
        let refused = process.in_folder(&folder, Some(&kept)).unwrap_err().to_string();
        assert!(refused.contains("ran in containers of Docker Engine"), "{refused}");
        assert_eq!(choice(None, None).in_folder(&folder, Some(&kept)).unwrap(), kept);
    }
}
