//! State shared by all parts of a running host.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use ipnet::IpNet;
use muster_egress::Reach;
use muster_protocol::{
    frame::{Delta, Running},
    plan::{PlanRequest, PlanResponse},
};
use muster_shim::args::Limits;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{
    bounds::OPEN_FILES,
    folder::Folder,
    journal::Journal,
    logs::Logs,
    metrics::Counts,
    programs::Programs,
    runtime::{AgentPaths, Runtime},
};

/// The owner's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Unread bytes in a shim's spool before its agent blocks.
    pub spool_bytes: u64,
    /// The longest line of an agent.
    pub line_bytes: usize,
    /// Limit of processes and threads of the host's user, agents included.
    pub nproc: Option<u64>,
    /// Whether agents run in a sandbox of bubblewrap.
    pub sandbox: bool,
    /// Time that `ask_person` and `request_approval` wait for a person before the agent should end its turn.
    pub ask_wait: Duration,
    /// Time limit for an agent's start, unless the plan sets one.
    pub start: Duration,
    /// Idle time after which a session is closed.
    pub idle: Duration,
    /// Disk space in bytes that backups leave free.
    pub reserve: u64,
    /// Time limit for each stage of stopping an agent: its turn, its stdin, SIGTERM.
    pub grace: Duration,
    /// Networks that agents may reach, in addition to the configuration's.
    pub allow_net: Vec<IpNet>,
    /// Where to show the metrics.
    pub metrics: Option<SocketAddr>,
}

/// A question to the control plane.
#[derive(Debug)]
pub struct Ask {
    pub agent_id: i64,
    pub generation: i64,
    pub wanted: PlanRequest,
    pub told: oneshot::Sender<PlanResponse>,
}

#[derive(Debug)]
pub struct Shared {
    pub folder: Folder,
    pub journal: Journal,
    pub programs: Programs,
    pub runtime: Runtime,
    pub options: Options,
    /// Outgoing connections of gates.
    pub reach: Arc<Reach>,
    /// Questions to the control plane, which wait for a connection.
    pub asks: mpsc::Sender<Ask>,
    /// Live text for the control plane. Overflow is dropped.
    pub deltas: mpsc::Sender<Delta>,
    pub logs: Logs,
    /// Parallel backups, restores and removals of homes.
    pub backup_slots: Semaphore,
    /// Current launches of running agents.
    pub running: Mutex<BTreeMap<i64, i64>>,
    /// For the metrics.
    pub counts: Counts,
}

impl Shared {
    /// Limits of each program outside of containers.
    pub fn limits(&self) -> Limits {
        Limits { nofile: Some(OPEN_FILES), nproc: self.options.nproc, ..Limits::default() }
    }

    /// Locations as seen by the agent in this launch.
    pub fn agent_paths(&self, agent_id: i64, generation: i64) -> AgentPaths {
        self.runtime.agent_paths(&self.folder, &self.programs, agent_id, generation)
    }

    /// The host's agents.
    pub fn running(&self) -> Vec<Running> {
        let running = self.running.lock();
        running.iter().map(|(&agent_id, &generation)| Running { agent_id, generation }).collect()
    }

    /// Records an agent's current launch, or that it doesn't run.
    pub fn set_running(&self, agent_id: i64, generation: Option<i64>) {
        let mut running = self.running.lock();
        match generation {
            Some(generation) => running.insert(agent_id, generation),
            None => running.remove(&agent_id),
        };
    }
}
