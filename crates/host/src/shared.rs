//! What all parts of a running host share.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ipnet::IpNet;
use muster_egress::Reach;
use muster_protocol::{
    frame::{Delta, Running},
    plan::{Given, Wanted},
};
use muster_shim::args::Limits;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{
    bounds::OPEN_FILES,
    folder::Folder,
    journal::Journal,
    programs::Programs,
    runtime::{Places, Runtime},
};

/// What the operator may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many bytes of lines a shim keeps before its agent waits.
    pub spool_bytes: u64,
    /// The longest line of an agent.
    pub line_bytes: usize,
    /// How many processes and threads the host's user may have, agents included.
    pub nproc: Option<u64>,
    /// Whether agents run in a sandbox of bubblewrap.
    pub sandbox: bool,
    /// How long `ask_person` and `request_approval` wait for a person before they tell the agent to end its turn.
    pub ask_wait: Duration,
    /// How long an agent may take to start, unless the plan says.
    pub start: Duration,
    /// How long a session may have nothing to do until it is closed.
    pub idle: Duration,
    /// How many bytes of the disk backups leave free.
    pub reserve: u64,
    /// How long each step of stopping an agent may take: its turn, its stdin, SIGTERM.
    pub grace: Duration,
    /// Networks that agents may reach, beside those of the configuration.
    pub allow_net: Vec<IpNet>,
}

/// A question for the control plane.
#[derive(Debug)]
pub struct Ask {
    /// The agent.
    pub agent_id: i64,
    /// Its launch.
    pub generation: i64,
    /// What is needed.
    pub wanted: Wanted,
    /// Who waits.
    pub told: oneshot::Sender<Given>,
}

/// What all parts share.
#[derive(Debug)]
pub struct Shared {
    /// The host's folder.
    pub folder: Folder,
    /// The journal.
    pub journal: Journal,
    /// Where programs are.
    pub programs: Programs,
    /// How agents are run.
    pub runtime: Runtime,
    /// What the operator chose.
    pub options: Options,
    /// How gates reach the world.
    pub reach: Arc<Reach>,
    /// To the control plane: questions. They wait for a connection.
    pub asks: mpsc::Sender<Ask>,
    /// To the control plane: text that is being written. What doesn't fit is dropped.
    pub deltas: mpsc::Sender<Delta>,
    /// How many homes are backed up, restored or removed at the same time.
    pub keepers: Semaphore,
    /// The launches of agents that run.
    pub running: Mutex<BTreeMap<i64, i64>>,
}

impl Shared {
    /// The limits of each program that is no container's.
    pub fn limits(&self) -> Limits {
        Limits { nofile: Some(OPEN_FILES), nproc: self.options.nproc, ..Limits::default() }
    }

    /// Where things are, as the agent of this launch sees them.
    pub fn places(&self, agent_id: i64, generation: i64) -> Places {
        self.runtime.places(&self.folder, &self.programs, agent_id, generation)
    }

    /// The agents that the host has.
    pub fn running(&self) -> Vec<Running> {
        let running = self.running.lock();
        running.iter().map(|(&agent_id, &generation)| Running { agent_id, generation }).collect()
    }

    /// Notes that an agent runs in this launch, or doesn't run.
    pub fn note(&self, agent_id: i64, generation: Option<i64>) {
        let mut running = self.running.lock();
        match generation {
            Some(generation) => running.insert(agent_id, generation),
            None => running.remove(&agent_id),
        };
    }
}
