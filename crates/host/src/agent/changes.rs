//! Changes since the last commit.

use std::mem::take;

use super::{Agent, Connection, LaunchEvent, Record};
use crate::{
    acp::Effects,
    bounds::BATCH,
    clock,
    journal::{Change, Closed, Draft},
};

/// Results of a step.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) effects: Effects,
    /// Events of other launches.
    pub(super) others: Vec<LaunchEvent>,
    /// Completed commands.
    pub(super) done: Vec<i64>,
    /// Number of lines read.
    pub(super) lines: usize,
}

impl Changes {
    fn is_due(&self) -> bool {
        let Self { effects, others, done, lines } = self;
        !effects.events.is_empty() || !others.is_empty() || !done.is_empty() || *lines >= BATCH
    }

    /// The change for the journal. Starts the next step.
    fn change(&mut self, record: &Record) -> Change {
        let (agent_id, own, at) = (record.agent_id, record.generation, clock::now());
        self.lines = 0;
        let events =
            take(&mut self.effects.events).into_iter().map(|what| (own, what)).chain(take(&mut self.others));
        Change {
            record: Some((agent_id, record.to_bytes())),
            events: events.map(|(generation, what)| Draft { agent_id, generation, at, what }).collect(),
            done: take(&mut self.done),
        }
    }
}

impl Agent {
    /// Commits the step, if it changed anything, and makes it visible.
    pub(super) async fn flush(&mut self) -> Result<(), Closed> {
        let unsent = |shim: &Connection| self.record.machine.lines(shim.sending.sent).next().is_some();
        if self.changes.is_due() || self.shim.as_ref().is_some_and(unsent) {
            self.commit().await?;
        }
        for piece in take(&mut self.changes.effects.pieces) {
            self.deltas.push(self.record.generation, &piece);
        }
        Ok(())
    }

    pub(super) async fn commit(&mut self) -> Result<(), Closed> {
        self.record_turn_starts();
        self.log_events();
        let change = self.changes.change(&self.record);
        self.shared.journal.commit(change).await?;
        self.trim_spool();
        self.write_lines();
        Ok(())
    }
}
