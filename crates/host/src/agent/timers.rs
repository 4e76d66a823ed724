//! Timers.

use std::collections::BTreeMap;

use muster_protocol::plan::PlanRequest;
use tokio::time::Instant;

use super::{Agent, AskReason, Phase};
use crate::journal::Closed;

#[derive(Default)]
pub(super) struct Timers {
    /// Deadline for the agent's start.
    pub(super) start_by: Option<Instant>,
    /// Time at which output outside of a turn counts as complete.
    pub(super) settle_at: Option<Instant>,
    /// Deadlines for the agent to end cancelled turns.
    give_up: BTreeMap<i64, Instant>,
    /// Start of each idle session's idle time.
    idle: BTreeMap<i64, Instant>,
}

impl Agent {
    /// Sets deadlines for cancelled turns: they end by the agent or without it.
    pub(super) fn await_cancelled(&mut self) {
        let until = Instant::now() + self.shared.options.grace * 10;
        let cancelled: Vec<i64> = self.record.machine.cancelled().collect();
        self.timers.give_up.retain(|turn, _| cancelled.contains(turn));
        for turn in cancelled {
            self.timers.give_up.entry(turn).or_insert(until);
        }
    }

    /// Tracks idle sessions.
    pub(super) fn track_idle(&mut self) {
        let is_up = self.record.phase == Phase::Running && self.stopping.is_none();
        if !is_up || !self.record.machine.may_suspend() {
            return self.timers.idle.clear();
        }
        let now = Instant::now();
        let since: BTreeMap<i64, Instant> = self.record.machine.idle().map(|id| (id, now)).collect();
        self.timers.idle.retain(|id, _| since.contains_key(id));
        for (id, now) in since {
            self.timers.idle.entry(id).or_insert(now);
        }
    }

    /// Time to close the longest idle session: after a while, or at once if there are many.
    fn rest_at(&self) -> Option<(Instant, i64)> {
        let (since, id) = self.timers.idle.iter().map(|(id, since)| (*since, *id)).min()?;
        // Each has a process of Muster's MCP server.
        let is_full = self.timers.idle.len() > 16;
        Some((if is_full { since } else { since + self.shared.options.idle }, id))
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let stopping = self.stopping.as_ref().map(|stopping| stopping.until);
        let give_up = self.timers.give_up.values().min().copied();
        let rest = self.rest_at().map(|(at, _)| at);
        let sync = self.commands.sync_again.as_ref().map(|(_, at)| *at);
        let (deltas, stderr) = (self.deltas.due(), self.stderr.due);
        let times =
            [deltas, stderr, self.timers.start_by, self.timers.settle_at, give_up, stopping, rest, sync];
        times.into_iter().flatten().min()
    }

    pub(super) async fn run_due(&mut self) -> Result<(), Closed> {
        let now = Instant::now();
        self.deltas.flush_due(now);
        self.follow_stderr(now);
        if self.timers.settle_at.is_some_and(|at| at <= now) {
            self.timers.settle_at = None;
            self.record.machine.settle(&mut self.changes.effects);
        }
        let over: Vec<i64> =
            self.timers.give_up.iter().filter(|(_, at)| **at <= now).map(|(turn, _)| *turn).collect();
        for turn_id in over {
            self.timers.give_up.remove(&turn_id);
            self.record.machine.give_up(turn_id, &mut self.changes.effects);
        }
        while let Some((_, id)) = self.rest_at().filter(|(at, _)| *at <= now) {
            self.timers.idle.remove(&id);
            self.record.machine.suspend_session(id);
            self.calls.sockets.end(id);
        }
        if let Some((envelope, _)) = self.commands.sync_again.take_if(|(_, at)| *at <= now) {
            self.ask_control_plane(PlanRequest::Launch, AskReason::Sync(envelope));
        }
        if self.timers.start_by.is_some_and(|at| at <= now) {
            self.fail_handshake("It did not answer the handshake of the Agent Client Protocol in time.");
        }
        if self.stopping.as_ref().is_some_and(|stopping| stopping.until <= now) {
            self.escalate_stop().await?;
        }
        Ok(())
    }
}
