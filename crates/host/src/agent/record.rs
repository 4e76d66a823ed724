//! The journal's record of an agent.

use std::path::PathBuf;

use indexmap::IndexMap;
use muster_protocol::event::EndReason;
use serde::{Deserialize, Serialize};

use crate::acp::Machine;

/// Phase of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// No process.
    #[default]
    Ended,
    /// About to start.
    Launching,
    /// Started, before the handshake's answer.
    Starting,
    /// Accepts turns.
    Running,
}

/// Stored state of an agent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    pub agent_id: i64,
    /// Number of the last launch.
    pub generation: i64,
    pub phase: Phase,
    /// Whether turns are held back.
    pub is_paused: bool,
    /// Whether a home from before a restore still exists.
    #[serde(default)]
    pub has_old_home: bool,
    /// Paths visible in the sandbox for MCP servers.
    #[serde(default)]
    pub shown: Vec<PathBuf>,
    /// The reason of a deliberate end, during that end.
    pub verdict: Option<(EndReason, String)>,
    /// Its conversations.
    pub machine: Machine,
}

impl Record {
    /// An agent without a launch.
    pub fn new(agent_id: i64) -> Self {
        Self { agent_id, ..Self::default() }
    }

    /// Starts a launch. Session costs, and a home from before a restore, carry over.
    pub fn begin(&mut self, generation: i64) {
        let costs = std::mem::take(&mut self.machine.costs);
        *self = Self {
            agent_id: self.agent_id,
            generation,
            phase: Phase::Launching,
            has_old_home: self.has_old_home,
            machine: Machine::new(generation, costs),
            ..Self::default()
        };
    }

    /// State that remains valid when the host begins again: session costs, and whether a home from before a restore
    /// exists.
    pub fn begun_again(mut self) -> Self {
        self.begin(0);
        self.end();
        self
    }

    /// Ends the launch, and drops its open work.
    pub fn end(&mut self) {
        let costs = std::mem::take(&mut self.machine.costs);
        self.machine = Machine::new(self.generation, costs);
        self.phase = Phase::Ended;
        self.verdict = None;
    }

    /// Reads a record from the journal. If the launch's open work is unreadable, the launch ends: it could not
    /// continue, and must not end the host with all its agents.
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        /// The parts that are readable, however deeply the others are nested.
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
            let why = "The host could not read the agent's open work.".to_owned();
            Ok(Self {
                generation,
                phase,
                has_old_home,
                verdict: (phase != Phase::Ended).then_some((EndReason::ShimLost, why)),
                machine: Machine::new(generation, IndexMap::new()),
                ..Self::new(agent_id)
            })
        })
    }

    /// The record as the journal stores it.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Always valid JSON: keys are texts or numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_unreadable_record_ends_only_its_own_launch() {
        let record = Record { generation: 3, phase: Phase::Running, has_old_home: true, ..Record::new(7) };
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
