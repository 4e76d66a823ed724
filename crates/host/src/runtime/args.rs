//! The options that say how agents are run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use muster_protocol::frame;

use super::{Bounds, Choice, Kept};
use crate::machine;

/// Which runtime.
#[derive(Debug, Args)]
pub struct RuntimeArgs {
    /// How agents are run: as the folder has it, and `process` at first.
    #[arg(long, value_enum, env = "MUSTER_HOST_RUNTIME")]
    runtime: Option<RuntimeArg>,
    /// The engine's socket, unless it is the usual one. The folder keeps it.
    #[arg(long, env = "MUSTER_HOST_ENGINE")]
    engine: Option<PathBuf>,
}

/// What agents in containers may take.
#[derive(Debug, Args)]
pub struct BoundArgs {
    /// The memory of a contained agent, in MiB, unless the control plane says: half of the machine's, if nobody says.
    // Engines refuse less than about 6 MiB, and the shim needs some.
    #[arg(long, value_parser = clap::value_parser!(i64).range(16..=16 << 20))]
    memory_mb: Option<i64>,
    /// The processors of a contained agent, unless the control plane says.
    #[arg(long, value_parser = processors)]
    cpus: Option<f64>,
    /// How many processes and threads a contained agent may have.
    // Those of the shim and of a small agent; what Linux can have.
    #[arg(long, default_value_t = Bounds::default().pids, value_parser = clap::value_parser!(i64).range(16..=4 << 20))]
    pids: i64,
    /// The engine's network for contained agents that have a network of their own.
    #[arg(long, default_value = super::NETWORK, value_parser = network)]
    container_network: String,
}

/// Which engine.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// The engine.
    #[arg(long, value_enum, env = "MUSTER_HOST_RUNTIME")]
    runtime: EngineArg,
    /// The engine's socket, unless it is the usual one.
    #[arg(long, env = "MUSTER_HOST_ENGINE")]
    engine: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuntimeArg {
    /// As plain processes.
    Process,
    /// In containers of Docker Engine.
    Docker,
    /// In containers of Podman.
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
    /// What was chosen.
    pub fn choice(self) -> Choice {
        let runtime = self.runtime.map(|runtime| match runtime {
            RuntimeArg::Process => frame::Runtime::Process,
            RuntimeArg::Docker => frame::Runtime::Docker,
            RuntimeArg::Podman => frame::Runtime::Podman,
        });
        Choice { runtime, engine: self.engine.map(absolute) }
    }
}

impl EngineArgs {
    /// What was chosen.
    pub fn chosen(self) -> Kept {
        let runtime = match self.runtime {
            EngineArg::Docker => frame::Runtime::Docker,
            EngineArg::Podman => frame::Runtime::Podman,
        };
        Kept { runtime, engine: self.engine.map(absolute) }
    }
}

impl BoundArgs {
    /// What was chosen.
    pub fn bounds(self) -> Bounds {
        Bounds {
            memory_mb: self.memory_mb.or_else(usual_memory),
            cpus: self.cpus,
            pids: self.pids,
            network: self.container_network,
        }
    }
}

/// How much memory an agent may have if nobody says, in MiB: one alone can't take all of the machine's.
pub(super) fn usual_memory() -> Option<i64> {
    machine::memory_mb().map(|all| (all / 2).max(16))
}

fn processors(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| (0.01..=1024.0).contains(number));
    number.ok_or_else(|| "give a number from 0.01 to 1024, such as 1.5".to_owned())
}

/// A network's name, as engines take it.
fn network(text: &str) -> Result<String, String> {
    let is_word = |char: char| char.is_ascii_alphanumeric() || "_.-".contains(char);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_word) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, `_`, `.` and `-`, and begins with a letter or a digit".to_owned())
}

/// A path that later runs understand, wherever they are started.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
