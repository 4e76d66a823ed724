//! Runtimes of agents: plain processes of this machine, or containers of Docker Engine or Podman. In both an agent has
//! a shim, which owns its pipes and has a socket in the launch's folder.
//!
//! - `client.rs`: an engine's socket. `docker.rs`: starting, finding and removing containers. `spec.rs`: their
//!   definition.
//! - `image.rs`: finding, pulling and pinning images. `reference.rs`: images built here.
//! - `home_container.rs`: agents' homes, archived by a shim in a separate container.
//! - `choice.rs`: the choice of a runtime. `args.rs`: its options.
//! - `pipe.rs`: passes secrets into a container without storing them.
//! - `agent/launch.rs` starts plain processes.

mod args;
mod choice;
mod client;
mod docker;
mod doctor;
mod home_container;
mod image;
mod pipe;
mod reference;
mod spec;
mod variables;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use muster_protocol::{event::EndReason, frame, plan::LaunchPlan};
use muster_shim::{args::Gate, home_archive::Task, record::Record};
use tokio::sync::{mpsc::UnboundedSender, watch};

pub use self::{
    args::{BoundArgs, EngineArgs, RuntimeArgs},
    choice::{Choice, ChoiceError, SavedRuntime},
    client::EngineError,
    docker::{Engine, Settings},
    variables::{EngineVariables, RemoteEngine},
};
use crate::{
    agent::home::{self, SendError},
    backup::{BackupError, Home},
    folder::Folder,
    programs::{Program, Programs, absolute},
};

/// The host's runtime.
#[derive(Debug)]
pub enum Runtime {
    /// Plain processes, in a sandbox of bubblewrap if enabled.
    Process,
    Engine(Box<Engine>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Docker,
    Podman,
}

/// Locations as the agent sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPaths {
    pub home: PathBuf,
    /// The folder of the sockets that lead out of its sandbox.
    pub sockets: PathBuf,
    pub shim: Program,
    /// Whether its programs are this machine's.
    pub is_here: bool,
}

impl AgentPaths {
    /// The path of a program. In a container the agent resolves the name itself.
    pub fn program(&self, command: &str) -> PathBuf {
        if self.is_here { absolute(command) } else { command.into() }
    }
}

pub struct PreparedLaunch<'a> {
    pub agent_id: i64,
    pub generation: i64,
    pub dir: PathBuf,
    /// The host's files for the agent: skills, and people's files.
    pub given: PathBuf,
    /// The program to run instead of the image's.
    pub program: Option<Program>,
    /// The way out, as seen in the container.
    pub gate: Gate,
    /// Files in the agent's home: paths and texts, possibly secret.
    pub files: BTreeMap<String, String>,
    /// The environment, with secrets.
    pub environment: BTreeMap<OsString, OsString>,
    /// Image, limits and network.
    pub plan: &'a LaunchPlan,
    /// The shim's limits: spool and line.
    pub bounds: (u64, usize),
    /// Time to wait for an unreachable engine.
    pub patience: Duration,
}

/// Channels between a launch that waits for its engine and its starter.
#[derive(Debug)]
pub struct EngineWait {
    /// Receives the reason for waiting, once.
    pub away: UnboundedSender<String>,
    /// Whether the launch is stopped.
    pub stop: watch::Receiver<bool>,
}

impl EngineWait {
    /// Returns when the launch is stopped.
    pub async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // The starter holds the other end during the launch.
        let _ = stop.wait_for(|is_stopped| *is_stopped).await;
    }
}

/// State of a launch's shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShimState {
    /// Alive or starting.
    Alive,
    /// Gone without a record.
    Gone(ShimLoss),
}

/// Cause of a shim's end without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShimLoss {
    /// Out-of-memory kill of its container.
    OutOfMemory,
    /// Its container has ended.
    Killed,
    /// Its container was removed.
    Removed,
    Unknown,
}

impl ShimLoss {
    /// The reported reason.
    pub fn reason(self) -> EndReason {
        if self == Self::OutOfMemory { EndReason::OutOfMemory } else { EndReason::ShimLost }
    }

    /// Further details.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Self::OutOfMemory => Some("Its container ran out of memory."),
            Self::Killed => Some("Its container was killed, by a person or with the engine."),
            Self::Removed => Some("Its container was removed."),
            Self::Unknown => None,
        }
    }
}

/// The network that every engine has.
const NETWORK: &str = "bridge";

/// Default limits of an agent.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Memory in MiB.
    pub memory_mb: Option<i64>,
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: i64,
    /// The engine's network for agents with network access.
    pub network: String,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { memory_mb: None, cpus: None, pids: 512, network: NETWORK.to_owned() }
    }
}

impl Kind {
    fn usual_socket(self) -> PathBuf {
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        match (self, own) {
            (Self::Docker, _) => "/var/run/docker.sock".into(),
            (Self::Podman, Some(own)) if !rustix::process::geteuid().is_root() => {
                own.join("podman/podman.sock")
            }
            (Self::Podman, _) => "/run/podman/podman.sock".into(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker Engine",
            Self::Podman => "Podman",
        }
    }

    /// The engine's word in options and container ids.
    pub fn word(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl Runtime {
    /// Locations for an agent in this launch.
    pub fn agent_paths(
        &self,
        folder: &Folder,
        programs: &Programs,
        agent_id: i64,
        generation: i64,
    ) -> AgentPaths {
        match self {
            Self::Process => AgentPaths {
                home: folder.home(agent_id),
                sockets: folder.sockets(agent_id, generation),
                shim: programs.shim().clone(),
                is_here: true,
            },
            Self::Engine(_) => spec::container_paths(),
        }
    }

    /// The folder of the host's files for an agent. A container mounts it read-only into the agent's home.
    pub fn host_files(&self, folder: &Folder, agent_id: i64) -> PathBuf {
        match self {
            Self::Process => folder.home(agent_id),
            Self::Engine(_) => folder.host_files(agent_id),
        }
    }

    /// The volume of the home of the agent created at this time, if homes are volumes.
    pub fn volume(&self, agent_id: i64, created_at: i64) -> Option<String> {
        match self {
            Self::Process => None,
            Self::Engine(engine) => Some(spec::volume(&engine.settings.host, agent_id, created_at)),
        }
    }

    /// Opens the agent's home for a task. Its resources exist until [`Self::release_home`].
    pub async fn home(&self, folder: &Folder, agent_id: i64, task: Task) -> Result<Home, BackupError> {
        match self {
            Self::Process => Ok(Home::Folder(folder.home(agent_id))),
            Self::Engine(engine) => engine.start_home_shim(folder, agent_id, task).await.map(Home::Volume),
        }
    }

    /// Releases the resources of a task.
    pub async fn release_home(&self, folder: &Folder, agent_id: i64, task: Task) {
        if let Self::Engine(engine) = self {
            engine.release_home(folder, agent_id, task).await;
        }
    }

    /// Mode of a socket for the agent: in a container it is another user, and others can't reach the folder.
    pub fn socket_mode(&self) -> u32 {
        match self {
            Self::Process => 0o600,
            Self::Engine(_) => 0o666,
        }
    }

    /// Default memory limit of an agent in MiB. `None`: plain processes are not limited.
    pub fn memory_mb(&self) -> Option<i64> {
        match self {
            Self::Process => None,
            Self::Engine(engine) => engine.settings.bounds.memory_mb,
        }
    }

    /// Finds the state of a launch's shim.
    pub async fn find(&self, folder: &Folder, agent_id: i64, generation: i64) -> ShimState {
        if let Self::Engine(engine) = self {
            return engine.find(folder, agent_id, generation).await;
        }
        let record = Record::read(&folder.launch(agent_id, generation)).ok();
        let is_alive = match &record {
            Some(record) => record.is_alive(),
            // A starting shim has no record yet.
            None => folder.has_shim(agent_id, generation),
        };
        if is_alive { ShimState::Alive } else { ShimState::Gone(ShimLoss::Unknown) }
    }

    /// Removes the rest of a launch whose shim is gone or leaving.
    pub async fn clean(&self, folder: &Folder, agent_id: i64, generation: i64) {
        match self {
            Self::Process => {
                if let Ok(record) = Record::read(&folder.launch(agent_id, generation)) {
                    record.sweep();
                }
            }
            Self::Engine(engine) => {
                if let Err(error) = engine.remove(agent_id, generation).await {
                    tracing::warn!(agent = agent_id, generation, %error, "a container can't be removed");
                }
            }
        }
    }

    /// Removes this host's leftovers: containers of launches that don't run, and home containers of a killed host.
    pub async fn sweep(&self, is_running: impl Fn(i64, i64) -> bool) {
        let Self::Engine(engine) = self else { return };
        match engine.sweep(is_running).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "containers that were left over are removed"),
            Err(error) => tracing::warn!(%error, "containers that were left over can't be removed"),
        }
    }

    /// Reads a file of the agent's home.
    pub async fn read(&self, files: &Files, path: PathBuf) -> Result<Vec<u8>, SendError> {
        if let Self::Engine(engine) = self {
            return engine.read(files.agent_id, files.generation, &path).await;
        }
        let home = files.home.clone();
        let read = tokio::task::spawn_blocking(move || home::read(&home, &path)).await;
        read.map_err(|error| SendError::Io(io::Error::other(error)))?
    }

    /// The name of the agent's process: `process:17`, `docker:0123456789ab`.
    pub async fn name_of(&self, agent_id: i64, generation: i64, pid: Option<i32>) -> String {
        match (self, pid) {
            (Self::Engine(engine), _) => engine.id(agent_id, generation).await,
            (Self::Process, Some(pid)) => format!("process:{pid}"),
            (Self::Process, None) => "process".to_owned(),
        }
    }

    /// The runtime for the control plane.
    pub async fn describe(&self) -> (frame::Runtime, Option<String>) {
        let Self::Engine(engine) = self else { return (frame::Runtime::Process, None) };
        let runtime = match engine.kind() {
            Kind::Docker => frame::Runtime::Docker,
            Kind::Podman => frame::Runtime::Podman,
        };
        (runtime, engine.version().await)
    }
}

/// Owner of the files to read.
#[derive(Clone, Debug)]
pub struct Files {
    pub agent_id: i64,
    pub generation: i64,
    /// Its home, as the agent sees it.
    pub home: PathBuf,
}

/// Creates a folder that the agent may read.
pub(crate) fn show(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path)?;
    // For agents of another user. The parent folder is private.
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
