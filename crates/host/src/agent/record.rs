//! What the journal keeps of an agent.

use serde::{Deserialize, Serialize};

use crate::acp::Machine;

/// Where a launch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing runs.
    #[default]
    Ended,
    /// It is to be started.
    Launching,
    /// It has a process, and hasn't answered the handshake.
    Starting,
    /// It takes turns.
    Running,
}

/// What is kept of an agent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The agent.
    pub agent_id: i64,
    /// Its last launch.
    pub generation: i64,
    /// Where it is.
    pub phase: Phase,
    /// Whether it gets no turns.
    pub is_paused: bool,
    /// Whether its home was restored, and the one before is still there.
    #[serde(default)]
    pub has_old_home: bool,
    /// What was said about its end, while it is being ended for it.
    pub verdict: Option<(muster_protocol::event::EndReason, String)>,
    /// Its conversations.
    pub machine: Machine,
}

impl Record {
    /// An agent that was never launched here.
    pub fn of(agent_id: i64) -> Self {
        Self { agent_id, ..Self::default() }
    }

    /// Begins a launch. What sessions have cost so far outlives the one before, and so does a home that is still there.
    pub fn begin(&mut self, generation: i64) {
        let costs = std::mem::take(&mut self.machine.costs);
        *self = Self {
            agent_id: self.agent_id,
            generation,
            phase: Phase::Launching,
            has_old_home: self.has_old_home,
            machine: Machine::of(generation, costs),
            ..Self::default()
        };
    }

    /// Ends the launch, and forgets what it was in the middle of.
    pub fn end(&mut self) {
        let costs = std::mem::take(&mut self.machine.costs);
        self.machine = Machine::of(self.generation, costs);
        self.phase = Phase::Ended;
        self.verdict = None;
    }

    /// The record as the journal keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Everything in it has a form in JSON: keys are texts or numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
