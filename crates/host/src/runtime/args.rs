//! Options of the runtime.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use muster_protocol::frame;

use super::{Bounds, Choice, EngineVariables, RemoteEngine, SavedRuntime};
use crate::machine;

#[derive(Debug, Args)]
pub struct RuntimeArgs {
    /// Runtime of agents: by default the folder's, and `process` at first.
    #[arg(long, value_enum, env = "MUSTER_HOST_RUNTIME")]
    runtime: Option<RuntimeArg>,
    /// The engine's socket, if not that of DOCKER_HOST or CONTAINER_HOST, or the usual one. The folder keeps it.
    #[arg(long, env = "MUSTER_HOST_ENGINE")]
    engine: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct BoundArgs {
    /// Memory of a contained agent in MiB, unless the control plane sets it. By default half of the machine's.
    // Engines refuse less than about 6 MiB, and the shim needs some.
    #[arg(long, value_parser = clap::value_parser!(i64).range(16..=16 << 20))]
    memory_mb: Option<i64>,
    /// Processors of a contained agent, unless the control plane sets them.
    #[arg(long, value_parser = processors)]
    cpus: Option<f64>,
    /// Limit of processes and threads of a contained agent.
    // From the shim and a small agent up to Linux' limit.
    #[arg(long, default_value_t = Bounds::default().pids, value_parser = clap::value_parser!(i64).range(16..=4 << 20))]
    pids: i64,
    /// The engine's network for contained agents with a network of their own.
    #[arg(long, default_value = super::NETWORK, value_parser = network)]
    container_network: String,
}

#[derive(Debug, Args)]
pub struct EngineArgs {
    /// The engine.
    #[arg(long, value_enum, env = "MUSTER_HOST_RUNTIME")]
    runtime: EngineArg,
    /// The engine's socket, if not that of DOCKER_HOST or CONTAINER_HOST, or the usual one.
    #[arg(long, env = "MUSTER_HOST_ENGINE")]
    engine: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuntimeArg {
    /// Plain processes.
    Process,
    /// Containers of Docker Engine.
    Docker,
    /// Containers of Podman.
    Podman,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineArg {
    /// Docker Engine.
    Docker,
    /// Podman.
    Podman,
}

impl RuntimeArgs {
    pub fn choice(self) -> Choice {
        let runtime = self.runtime.map(|runtime| match runtime {
            RuntimeArg::Process => frame::Runtime::Process,
            RuntimeArg::Docker => frame::Runtime::Docker,
            RuntimeArg::Podman => frame::Runtime::Podman,
        });
        Choice { runtime, engine: self.engine.map(absolute), variables: EngineVariables::read() }
    }
}

impl EngineArgs {
    pub fn chosen(self) -> Result<SavedRuntime, RemoteEngine> {
        let runtime = match self.runtime {
            EngineArg::Docker => frame::Runtime::Docker,
            EngineArg::Podman => frame::Runtime::Podman,
        };
        let engine = match self.engine {
            Some(engine) => Some(absolute(engine)),
            None => EngineVariables::read().socket(runtime)?,
        };
        Ok(SavedRuntime { runtime, engine })
    }
}

impl BoundArgs {
    pub fn bounds(self) -> Bounds {
        Bounds {
            memory_mb: self.memory_mb.or_else(usual_memory),
            cpus: self.cpus,
            pids: self.pids,
            network: self.container_network,
        }
    }
}

/// An agent's default memory limit in MiB: a single agent can't take all of the machine's.
pub(super) fn usual_memory() -> Option<i64> {
    machine::memory_mb().map(|all| (all / 2).max(16))
}

fn processors(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| (0.01..=1024.0).contains(number));
    number.ok_or_else(|| "give a number from 0.01 to 1024, such as 1.5".to_owned())
}

/// Parses a network's name as engines accept it.
fn network(text: &str) -> Result<String, String> {
    let is_word = |char: char| char.is_ascii_alphanumeric() || "_.-".contains(char);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_word) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, `_`, `.` and `-`, and begins with a letter or a digit".to_owned())
}

/// A path that is valid from any working directory.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
