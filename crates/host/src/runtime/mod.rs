//! How agents are run: as plain processes of this machine, or in containers of Docker Engine or Podman. Either way an agent
//! has a shim, which owns its pipes and is reached by the socket in the launch's folder.
//!
//! - `client.rs`: an engine's socket. `docker.rs`: containers: started, found again, removed. `spec.rs`: what a container is.
//! - `image.rs`: images: found, pulled, pinned. `reference.rs`: images that are made here.
//! - `keeper.rs`: agents' homes, read and made by a shim in a container beside.
//! - `choice.rs`: which runtime it is. `args.rs`: its options.
//! - `pipe.rs`: how a secret gets into a container without being written anywhere.
//! - Plain processes are started by `agent/launch.rs`.

mod args;
mod choice;
mod client;
mod docker;
mod doctor;
mod image;
mod keeper;
mod pipe;
mod reference;
mod spec;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use muster_protocol::{event::EndReason, frame, plan::LaunchPlan};
use muster_shim::{args::Gate, keep::Task, record::Record};
use tokio::sync::{mpsc::UnboundedSender, watch};

pub use self::{
    args::{BoundArgs, EngineArgs, RuntimeArgs},
    choice::{Choice, Kept, OtherRuntime},
    client::EngineError,
    docker::{Engine, Settings},
};
use crate::{
    agent::home::{self, SendError},
    backup::{BackupError, Home},
    folder::Folder,
    programs::{Program, Programs, absolute},
};

/// How this host runs agents.
#[derive(Debug)]
pub enum Runtime {
    /// As plain processes, in a sandbox of bubblewrap if the options say so.
    Process,
    /// In containers.
    Engine(Box<Engine>),
}

/// An engine that runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Docker Engine.
    Docker,
    /// Podman.
    Podman,
}

/// Where things are, as the agent sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its home.
    pub home: PathBuf,
    /// The folder of the sockets that lead out of its sandbox.
    pub sockets: PathBuf,
    /// The shim's program.
    pub shim: Program,
    /// Whether its programs are this machine's.
    pub is_here: bool,
}

impl Places {
    /// Where a program is. In a container the agent finds it by its name.
    pub fn program(&self, command: &str) -> PathBuf {
        if self.is_here { absolute(command) } else { command.into() }
    }
}

/// A launch that is ready to be started.
pub struct Prepared<'a> {
    /// The agent.
    pub agent_id: i64,
    /// The launch.
    pub generation: i64,
    /// The launch's folder.
    pub dir: PathBuf,
    /// The folder of what the host gives the agent: skills, what people send.
    pub given: PathBuf,
    /// What is started instead of the image's own program.
    pub program: Option<Program>,
    /// The way out, as the container sees it.
    pub gate: Gate,
    /// Files in the agent's home: their paths, and their texts. They may hold secrets.
    pub files: BTreeMap<String, String>,
    /// The environment. It holds secrets.
    pub environment: BTreeMap<OsString, OsString>,
    /// The image, its limits, and whether it has a network of its own.
    pub plan: &'a LaunchPlan,
    /// The shim's bounds: of the spool, and of a line.
    pub bounds: (u64, usize),
    /// How long an engine may be away.
    pub patience: Duration,
}

/// What passes between a launch that may have to wait for its engine, and whoever has begun it.
#[derive(Debug)]
pub struct Waiting {
    /// Is told once why it waits.
    pub away: UnboundedSender<String>,
    /// Whether the launch is stopped.
    pub stop: watch::Receiver<bool>,
}

impl Waiting {
    /// Returns when the launch is stopped.
    pub async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // Whoever has begun the launch holds the other end for as long as it takes.
        let _ = stop.wait_for(|is_stopped| *is_stopped).await;
    }
}

/// What became of a launch's shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It lives, or is about to.
    Alive,
    /// It is gone, and left no record.
    Gone(Lost),
}

/// What is known of a shim that left no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The kernel killed its container for want of memory.
    OutOfMemory,
    /// Its container has ended without it.
    Killed,
    /// Its container is not there any more.
    Removed,
    /// Nothing.
    Unknown,
}

impl Lost {
    /// What is reported.
    pub fn reason(self) -> EndReason {
        if self == Self::OutOfMemory { EndReason::OutOfMemory } else { EndReason::ShimLost }
    }

    /// What the reason doesn't say.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Self::OutOfMemory => Some("Its container was ended for want of memory."),
            Self::Killed => Some("Its container was killed, by a person or with the engine."),
            Self::Removed => Some("Its container was removed."),
            Self::Unknown => None,
        }
    }
}

/// The network that every engine has.
const NETWORK: &str = "bridge";

/// What an agent may take, unless its plan says.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The memory, in MiB.
    pub memory_mb: Option<i64>,
    /// The processors.
    pub cpus: Option<f64>,
    /// How many processes and threads.
    pub pids: i64,
    /// The engine's network for agents that have one of their own.
    pub network: String,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { memory_mb: None, cpus: None, pids: 512, network: NETWORK.to_owned() }
    }
}

impl Kind {
    /// Where its socket usually is.
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

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker Engine",
            Self::Podman => "Podman",
        }
    }

    /// As options and its containers' ids name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl Runtime {
    /// Where things are for an agent, in this launch.
    pub fn places(&self, folder: &Folder, programs: &Programs, agent_id: i64, generation: i64) -> Places {
        match self {
            Self::Process => Places {
                home: folder.home(agent_id),
                sockets: folder.sockets(agent_id, generation),
                shim: programs.shim().clone(),
                is_here: true,
            },
            Self::Engine(_) => spec::places(),
        }
    }

    /// Where the host puts what it gives an agent. A container shows it, read-only, in the agent's home.
    pub fn given(&self, folder: &Folder, agent_id: i64) -> PathBuf {
        match self {
            Self::Process => folder.home(agent_id),
            Self::Engine(_) => folder.given(agent_id),
        }
    }

    /// The volume that is the home of the agent that was created at this time, if homes are volumes.
    pub fn volume(&self, agent_id: i64, created_at: i64) -> Option<String> {
        match self {
            Self::Process => None,
            Self::Engine(engine) => Some(spec::volume(&engine.settings.host, agent_id, created_at)),
        }
    }

    /// The agent's home, for this task. What it takes is there until [`Self::release_home`].
    pub async fn home(&self, folder: &Folder, agent_id: i64, task: Task) -> Result<Home, BackupError> {
        match self {
            Self::Process => Ok(Home::Folder(folder.home(agent_id))),
            Self::Engine(engine) => engine.keeper(folder, agent_id, task).await.map(Home::Volume),
        }
    }

    /// The task is done, or has failed.
    pub async fn release_home(&self, folder: &Folder, agent_id: i64, task: Task) {
        if let Self::Engine(engine) = self {
            engine.release_home(folder, agent_id, task).await;
        }
    }

    /// The mode of a socket that the agent may use: in a container it is another user, and nobody else gets there.
    pub fn socket_mode(&self) -> u32 {
        match self {
            Self::Process => 0o600,
            Self::Engine(_) => 0o666,
        }
    }

    /// How much memory an agent may have unless its plan says, in MiB. None: plain processes are not bounded.
    pub fn memory_mb(&self) -> Option<i64> {
        match self {
            Self::Process => None,
            Self::Engine(engine) => engine.settings.bounds.memory_mb,
        }
    }

    /// What became of a launch's shim.
    pub async fn find(&self, folder: &Folder, agent_id: i64, generation: i64) -> Found {
        if let Self::Engine(engine) = self {
            return engine.find(folder, agent_id, generation).await;
        }
        let record = Record::read(&folder.launch(agent_id, generation)).ok();
        let is_alive = match &record {
            Some(record) => record.is_alive(),
            // A shim that is starting has no record yet.
            None => folder.has_shim(agent_id, generation),
        };
        if is_alive { Found::Alive } else { Found::Gone(Lost::Unknown) }
    }

    /// Removes what is left of a launch whose shim is gone or is leaving.
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

    /// Removes what this host has left behind: containers of launches that don't run when it gets to them, and those that copied
    /// homes when it was killed.
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

    /// What the agent's process is called: `process:17`, `docker:0123456789ab`.
    pub async fn name_of(&self, agent_id: i64, generation: i64, pid: Option<i32>) -> String {
        match (self, pid) {
            (Self::Engine(engine), _) => engine.id(agent_id, generation).await,
            (Self::Process, Some(pid)) => format!("process:{pid}"),
            (Self::Process, None) => "process".to_owned(),
        }
    }

    /// What it is, for the control plane.
    pub async fn described(&self) -> (frame::Runtime, Option<String>) {
        let Self::Engine(engine) = self else { return (frame::Runtime::Process, None) };
        let runtime = match engine.kind() {
            Kind::Docker => frame::Runtime::Docker,
            Kind::Podman => frame::Runtime::Podman,
        };
        (runtime, engine.version().await)
    }
}

/// Whose files are read.
#[derive(Clone, Debug)]
pub struct Files {
    /// The agent.
    pub agent_id: i64,
    /// Its launch.
    pub generation: i64,
    /// Its home, as it sees it.
    pub home: PathBuf,
}

/// Makes a folder that the agent may look into.
pub(crate) fn show(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path)?;
    // An agent of another user can read it. The folder above is its owner's alone.
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
