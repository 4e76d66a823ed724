//! What the journal keeps of an agent.

use std::path::PathBuf;

use indexmap::IndexMap;
use muster_protocol::event::EndReason;
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
    /// What its sandbox shows for MCP servers.
    #[serde(default)]
    pub shown: Vec<PathBuf>,
    /// What was said about its end, while it is being ended for it.
    pub verdict: Option<(EndReason, String)>,
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

    /// What is still so when the host begins again: what sessions have cost, and whether a home from before is there.
    pub fn begun_again(mut self) -> Self {
        self.begin(0);
        self.end();
        self
    }

    /// Ends the launch, and forgets what it was in the middle of.
    pub fn end(&mut self) {
        let costs = std::mem::take(&mut self.machine.costs);
        self.machine = Machine::of(self.generation, costs);
        self.phase = Phase::Ended;
        self.verdict = None;
    }

    /// The record as the journal has it. If what the agent was in the middle of can't be read, its launch is ended: it could not go
    /// on, and must not end the host with all other agents.
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        /// The parts that can be read, however deep the others are nested.
        #[derive(Deserialize)]
        struct Parts {
            agent_id: i64,
            generation: i64,
            phase: Phase,
            #[serde(default)]
            has_old_home: bool,
        }
        muster_json::from_slice(bytes).or_else(|error| {
            let Parts { agent_id, generation, phase, has_old_home } = muster_json::from_slice(bytes)?;
            tracing::error!(agent = agent_id, %error, "the record of an agent can't be read: its launch is ended");
            let why = "The host could not read what the agent was in the middle of.".to_owned();
            Ok(Self {
                generation,
                phase,
                has_old_home,
                verdict: (phase != Phase::Ended).then_some((EndReason::ShimLost, why)),
                machine: Machine::of(generation, IndexMap::new()),
                ..Self::of(agent_id)
            })
        })
    }

    /// The record as the journal keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Everything in it has a form in JSON: keys are texts or numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_record_that_can_not_be_read_ends_its_launch_alone() {
        let record = Record { generation: 3, phase: Phase::Running, has_old_home: true, ..Record::of(7) };
        let mut record = serde_json::to_value(record).unwrap();
        let read = |record: &Value| Record::read(record.to_string().as_bytes()).unwrap();
        assert_eq!(read(&record).verdict, None);
        record["machine"]["open"] = (0..130).fold(Value::Null, |inner, _| json!([inner]));
        let running = read(&record);
        assert_eq!((running.agent_id, running.generation, running.machine.generation), (7, 3, 3));
        assert_eq!((running.phase, running.has_old_home), (Phase::Running, true));
        assert!(matches!(running.verdict, Some((EndReason::ShimLost, _))), "{:?}", running.verdict);
        record["phase"] = json!("Ended");
        let ended = read(&record);
        assert_eq!((ended.generation, ended.phase, ended.verdict), (3, Phase::Ended, None));
        assert!(Record::read(b"").is_err(), "a journal that is damaged is not guessed at");
    }
}
