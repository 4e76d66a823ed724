//! What happens when its time has come.

use std::collections::BTreeMap;

use muster_protocol::plan::Wanted;
use tokio::time::Instant;

use super::{Agent, Phase, Why};
use crate::journal::Closed;

/// When something happens by itself.
#[derive(Default)]
pub(super) struct Times {
    /// Until when the agent may start.
    pub(super) start_by: Option<Instant>,
    /// When what it said outside of a turn is complete.
    pub(super) settle_at: Option<Instant>,
    /// Until when the agent may end turns that were cancelled.
    give_up: BTreeMap<i64, Instant>,
    /// Since when the sessions of these conversations have had nothing to do.
    idle: BTreeMap<i64, Instant>,
}

impl Agent {
    /// Turns that were cancelled end soon, by the agent or without it.
    pub(super) fn await_cancelled(&mut self) {
        let until = Instant::now() + self.shared.options.grace * 10;
        let cancelled: Vec<i64> = self.record.machine.cancelled().collect();
        self.times.give_up.retain(|turn, _| cancelled.contains(turn));
        for turn in cancelled {
            self.times.give_up.entry(turn).or_insert(until);
        }
    }

    /// Notes which sessions have nothing to do.
    pub(super) fn note_idle(&mut self) {
        let is_up = self.record.phase == Phase::Running && self.stopping.is_none();
        if !is_up || !self.record.machine.may_rest() {
            return self.times.idle.clear();
        }
        let now = Instant::now();
        let since: BTreeMap<i64, Instant> = self.record.machine.idle().map(|id| (id, now)).collect();
        self.times.idle.retain(|id, _| since.contains_key(id));
        for (id, now) in since {
            self.times.idle.entry(id).or_insert(now);
        }
    }

    /// When the session that has been unused for the longest time is closed: after a while, or at once if there are many.
    fn rest_at(&self) -> Option<(Instant, i64)> {
        let (since, id) = self.times.idle.iter().map(|(id, since)| (*since, *id)).min()?;
        // Each has a process of Muster's MCP server.
        let is_full = self.times.idle.len() > 16;
        Some((if is_full { since } else { since + self.shared.options.idle }, id))
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        let stopping = self.stopping.as_ref().map(|stopping| stopping.until);
        let give_up = self.times.give_up.values().min().copied();
        let rest = self.rest_at().map(|(at, _)| at);
        let sync = self.orders.sync_again.as_ref().map(|(_, at)| *at);
        let times =
            [self.deltas.due(), self.times.start_by, self.times.settle_at, give_up, stopping, rest, sync];
        times.into_iter().flatten().min()
    }

    pub(super) async fn time(&mut self) -> Result<(), Closed> {
        let now = Instant::now();
        self.deltas.flush_due(now);
        if self.times.settle_at.is_some_and(|at| at <= now) {
            self.times.settle_at = None;
            self.record.machine.settle(&mut self.changes.effects);
        }
        let over: Vec<i64> =
            self.times.give_up.iter().filter(|(_, at)| **at <= now).map(|(turn, _)| *turn).collect();
        for turn_id in over {
            self.times.give_up.remove(&turn_id);
            self.record.machine.give_up(turn_id, &mut self.changes.effects);
        }
        while let Some((_, id)) = self.rest_at().filter(|(at, _)| *at <= now) {
            self.times.idle.remove(&id);
            self.record.machine.rest(id);
            self.calls.sockets.end(id);
        }
        if let Some((order, _)) = self.orders.sync_again.take_if(|(_, at)| *at <= now) {
            self.ask(Wanted::Launch, Why::Sync(order));
        }
        if self.times.start_by.is_some_and(|at| at <= now) {
            self.not_greeted("It did not answer the handshake of the Agent Client Protocol in time.");
        }
        if self.stopping.as_ref().is_some_and(|stopping| stopping.until <= now) {
            self.stop_harder().await?;
        }
        Ok(())
    }
}
