//! Lines of agents' logs while people look at them. The hosts keep the logs.

use muster_protocol::frame::LogLine;
use serde::{Deserialize, Serialize};

use super::piece::{Key, Piece};
use crate::base::ids::{AgentId, OrgId};

/// Consecutive lines of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLines {
    pub org: OrgId,
    pub agent: AgentId,
    /// When the log was begun, by the host's clock.
    pub begun_at: i64,
    /// The number of the first line in the log.
    pub position: i64,
    pub lines: Vec<LogLine>,
}

impl Piece for LogLines {
    type Of = AgentId;

    const CHANNEL: &'static str = "muster_logs";

    fn key(&self) -> Key<Self> {
        (self.org, self.agent)
    }

    fn halves(mut self) -> Option<(Self, Self)> {
        let middle = self.lines.len() / 2;
        if middle == 0 {
            return None;
        }
        let lines = self.lines.split_off(middle);
        let second =
            Self { position: self.position.saturating_add(middle.cast_signed() as i64), lines, ..self };
        Some((self, second))
    }
}
